"""One line on stderr that says how far something has come: how many, how fast, how long it will
still take. On a terminal only, and never for what is over within a second."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO, TypeVar

from hotset.surfaces.cli.terminal import plain_line, span

T = TypeVar("T")

_SHORTEST_SECONDS = 1.0
"""What takes less is not worth a line."""

_BETWEEN_SECONDS = 0.1
_BAR = 24


class ProgressLine:
    """Counts, and draws itself where there is somewhere to draw."""

    def __init__(
        self,
        title: str,
        total: int | None = None,
        *,
        out: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        written: Callable[[float], str] = "{:,.0f}".format,
        until: float | None = None,
    ) -> None:
        """`out` is None where nothing is drawn. `written` writes a number of what is counted;
        `until` is when it ends by itself, on that clock."""
        self.count = 0
        self._title, self._total, self._until = title, total, until
        self._out, self._clock, self._written = out, clock, written
        self._began = self._since = clock()
        self._drawn = float("-inf")
        self._is_shown = False

    def step(self, by: int = 1) -> None:
        self.move(self.count + by)

    def move(self, done: int, total: int | None = None, title: str = "") -> None:
        """So many are done now. With another title something else begins, at a rate of its own."""
        if title and title != self._title:
            self._title, self._total, self._since = title, total, self._clock()
            self._drawn = float("-inf")
        self._total = total if total is not None else self._total
        self.count = done
        if self._out is not None:
            self._draw(self._out, self._clock())

    def over(self, items: Iterable[T]) -> Iterator[T]:
        for item in items:
            yield item
            self.step()

    def clear(self) -> None:
        """Take the line away, as if it had never been there."""
        if self._is_shown and self._out is not None:
            self._out.write("\r\x1b[K")
            self._out.flush()
            self._is_shown = False

    def _draw(self, out: TextIO, now: float) -> None:
        if now - self._began < _SHORTEST_SECONDS or now - self._drawn < _BETWEEN_SECONDS:
            return
        self._drawn, self._is_shown = now, True
        wide = shutil.get_terminal_size().columns
        out.write(f"\r{self.describe(now)[: wide - 1]}\x1b[K")
        out.flush()

    def describe(self, now: float) -> str:
        """`checking  ━━━━━╌╌╌  412 of 1,020  40 %  152/s  4 s left`."""
        rate = self.count / max(1e-3, now - self._since)
        parts = [plain_line(self._title)]
        if self._total:
            share = min(1.0, self.count / self._total)
            parts.append("━" * round(_BAR * share) + "╌" * (_BAR - round(_BAR * share)))
            parts.append(f"{self._written(self.count)} of {self._written(self._total)}")
            parts.append(f"{100 * share:.0f} %")
        elif self.count:
            parts.append(self._written(self.count))
        if self.count:
            parts.append(f"{self._written(rate) if rate >= 10 else f'{rate:.1f}'}/s")
        if self._until is not None:
            parts.append(f"at most {span(self._until - now)} left")
        elif self._total and 0 < self.count < self._total:
            parts.append(f"{span((self._total - self.count) / rate)} left")
        return "  ".join(parts)


@contextmanager
def counting(
    title: str,
    total: int | None = None,
    *,
    quiet: bool = False,
    written: Callable[[float], str] = "{:,.0f}".format,
    until: float | None = None,
) -> Iterator[ProgressLine]:
    """A line of progress that is gone at the end; it only counts where nobody watches."""
    shown = not quiet and sys.stderr.isatty()
    line = ProgressLine(
        title, total, out=sys.stderr if shown else None, written=written, until=until
    )
    try:
        yield line
    finally:
        line.clear()
