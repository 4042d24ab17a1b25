"""What the audience sees: a live board where someone watches a terminal, plain lines everywhere
else."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from hotset.surfaces.cli.terminal import console, count, size
from hotset.testing.demo.holdings import Holdings

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live


@dataclass(frozen=True, slots=True)
class Board:
    """The state of play after one call. Every number was measured."""

    call: int
    of: int
    doing: str
    """What the agent does with the reply: the tool it calls, or that it speaks."""
    sent: int
    """Bytes of all requests so far: a client sends its whole history each time."""
    added: float
    """Seconds that the proxy added to this call."""
    median: float
    """Seconds that it adds in the middle."""
    held: Holdings
    through: float
    """Dollars that the provider would have charged so far."""
    direct: float
    """The same without hotset."""


class Screen(Protocol):
    def show(self, board: Board) -> None: ...

    def say(self, text: str = "") -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class PlainScreen:
    """For pipes, logs and tests."""

    def show(self, board: Board) -> None:
        census = board.held.census
        kept = (
            f"kept {size(census.content_bytes):>8}  on disk {size(census.stored_bytes):>8}  "
            f"{census.pages:>4} pages"
        )
        call = f"call {board.call:>3}/{board.of}  {board.doing:<34.34}"
        cost = f"cost ${board.through:.2f} of ${board.direct:.2f}"
        self.say(f"{call} sent {size(board.sent):>8}  {cost}  {kept}  {1000 * board.added:+.1f} ms")

    def say(self, text: str = "") -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


class LiveScreen:
    """For a terminal: a board that stays in its place, with what is said above it."""

    def __init__(self) -> None:
        self._console = console()
        self._live: Live | None = None

    def show(self, board: Board) -> None:
        if self._live is not None:
            self._live.update(_drawn(board), refresh=True)

    def say(self, text: str = "") -> None:
        self._console.print(text, markup=False)

    def __enter__(self) -> Self:
        from rich.live import Live  # noqa: PLC0415

        self._live = Live(console=self._console, auto_refresh=False)
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)
            self._live = None


def _drawn(board: Board) -> RenderableType:
    from rich.panel import Panel  # noqa: PLC0415
    from rich.progress_bar import ProgressBar  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    census = board.held.census
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column()
    grid.add_row("call", Text(f"{board.call} of {board.of}   {board.doing}"))
    grid.add_row("", ProgressBar(total=board.of, completed=board.call, width=40))
    grid.add_row(
        "sent by the agent",
        Text(f"{size(board.sent):>9}   its whole history, again with every call"),
    )
    share = board.through / board.direct if board.direct else 1.0
    grid.add_row(
        "charged by the provider",
        Text(f"${board.through:>8.2f}   instead of ${board.direct:.2f}: {share:.0%}"),
    )
    grid.add_row(
        "kept",
        Text(
            f"{size(census.content_bytes):>9}   each message once: {census.pages} pages, "
            f"{census.blobs} blobs"
        ),
    )
    grid.add_row(
        "on disk",
        Text(f"{size(census.stored_bytes):>9}   compressed, every hash checked when it is read"),
    )
    grid.add_row(
        "added by the proxy",
        Text(
            f"{1000 * board.added:>6.1f} ms   median {1000 * board.median:.1f} ms a call; its "
            f"request and reply are on disk"
        ),
    )
    for name, turns in board.held.branches.items():
        session, branch = name.split("/")
        grid.add_row(
            "session" if branch == "0" else "  branch",
            Text(f"{session}  {'●' * min(turns, 60)} {count(turns, 'turn')}"),
        )
    return Panel(
        grid,
        title="hotset: a recorded agent session, through the real proxy",
        title_align="left",
        border_style="cyan",
    )


def screen() -> Screen:
    return LiveScreen() if sys.stdout.isatty() else PlainScreen()
