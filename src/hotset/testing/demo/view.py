"""The demonstration's output: a live board on a terminal, plain lines everywhere else."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hotset.nouns.page import Kind, Page
from hotset.nouns.turn import Outcome
from hotset.store.port import Census, Where
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.cli.terminal import console, count, size

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live


@dataclass(frozen=True, slots=True)
class Board:
    """The state after one call. Every number was measured."""

    call: int
    of: int
    doing: str
    """What the agent does with the reply: the tool it calls, or that it answers."""
    sent: int
    """Bytes of all requests so far: a client sends its whole history each time."""
    added: float
    """Seconds that the proxy added to this call."""
    median: float
    """Median of the seconds that it adds."""
    held: Holdings
    through: float
    """Dollars that the provider would have charged so far."""
    direct: float
    """The same without hotset."""


class Screen(Protocol):
    def show(self, board: Board) -> None: ...

    def say(self, text: str = "") -> None: ...


@contextmanager
def screen() -> Iterator[Screen]:
    """A live board on a terminal, plain lines everywhere else."""
    if not sys.stdout.isatty():
        yield PlainScreen()
        return
    from rich.live import Live  # noqa: PLC0415

    with Live(console=console(), auto_refresh=False) as live:
        yield LiveScreen(live)


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


class LiveScreen:
    """For a terminal: a board that stays in its place, with messages above it."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, board: Board) -> None:
        self._live.update(_render_board(board), refresh=True)

    def say(self, text: str = "") -> None:
        self._live.console.print(text, markup=False)


def _render_board(board: Board) -> RenderableType:
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


@dataclass(frozen=True, slots=True)
class Holdings:
    census: Census
    done: int
    """Turns with a complete reply."""
    unfinished: int
    """Turns whose reply broke off."""
    branches: Mapping[str, int]
    """Turns by session and branch, as `session/branch`."""
    kinds: Mapping[str, tuple[int, int]]
    """Pages and bytes by kind."""
    largest: Page | None
    """The largest tool result."""


def count_holdings(folder: Path) -> Holdings:
    with closing(SqliteStore.open(folder)) as store:
        pages, sizes = Counter[str](), Counter[str]()
        largest: Page | None = None
        for page in store.pages(Where()):
            pages[page.kind] += 1
            sizes[page.kind] += page.size
            if page.kind.family is Kind.TOOL_RESULT and (
                largest is None or page.size > largest.size
            ):
                largest = page
        turns = [turn for session in store.sessions() for turn in store.turns(session.id)]
        return Holdings(
            census=store.census(),
            done=sum(turn.outcome is Outcome.DONE for turn in turns),
            unfinished=sum(turn.outcome is not Outcome.DONE for turn in turns),
            branches=Counter(f"{turn.session}/{turn.branch}" for turn in turns),
            kinds={kind: (count, sizes[kind]) for kind, count in pages.most_common()},
            largest=largest,
        )
