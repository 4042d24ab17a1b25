"""`hotset top`: the window of the session that was used last, live in the terminal."""

from __future__ import annotations

import os
import select
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

import click

from hotset.config import Config
from hotset.errors import NotFound
from hotset.nouns.page import Kind
from hotset.nouns.turn import Event, Session
from hotset.runtime.audit import sentence, type_of
from hotset.runtime.glance import thousands
from hotset.runtime.orders import read_orders
from hotset.runtime.reader import Store, find_session, open_existing
from hotset.runtime.views.window import WindowView, read_window
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.strip import StripCell, lay_out
from hotset.surfaces.cli.terminal import emit, emit_json, money, plain_line, shortened, width

_SECONDS = 1.0
"""Between two looks at the store."""

_LABEL = 8  # columns of the words in front
_FIGURES = 26  # columns behind a strip
_MOST_EVENTS, _LEAST_EVENTS = 12, 3
_QUIET = frozenset({"Searched", "MemoryArranged"})
_QUIT = ("q", "Q", "\x04", "\x1b")

_FORMS = {
    "full": ("█", "whole"),
    "excerpt": ("▓", "shortened"),
    "echo": ("▒", "points back"),
    "overlap": ("▒", "points back"),
    "change": ("▒", "points back"),
    "stub": ("░", "left"),
    "gone": ("░", "left"),
}
_COLOURS = {
    Kind.SYSTEM: ("magenta", "system"),
    Kind.PROMPT: ("green", "prompts"),
    Kind.RESPONSE: ("cyan", "model"),
    Kind.THINKING: ("cyan", "model"),
    Kind.TOOL_CALL: ("yellow", "calls"),
    Kind.TOOL_RESULT: ("blue", "results"),
}
_OTHER = ("white", "tools and offers")


@dataclass(frozen=True, slots=True)
class TopFrame:
    """What one frame shows."""

    session: Session
    view: WindowView
    events: tuple[Event, ...]
    """The latest of the session, the oldest first."""


@click.command(epilog=examples("hotset top", "hotset top s3f9a", "hotset top --once"))
@click.argument("session", default="last")
@project_options
@click.option("--once", is_flag=True, help="Print one frame and end.")
@as_json
def top(chosen: ProjectOptions, session: str, *, once: bool, as_json: bool) -> None:
    """The window of a session, live: what the client sent, what the model saw instead, what it
    costs and what happened last.

    SESSION is an id, the beginning of one, or `last`, which follows the session that was used last.
    The strips are in the order of the window and on one scale. `q` or Ctrl-C ends it; without a
    terminal one frame is printed.
    """
    config = chosen.config()
    with open_existing(config) as store:
        if as_json:
            emit_json(read_frame(store, config, session))
        elif once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            for line in draw(read_frame(store, config, session), width(), _MOST_EVENTS):
                emit(line)
        else:
            _follow(store, lambda: read_frame(store, config, session))


def read_frame(store: Store, config: Config, name: str) -> TopFrame:
    """The session's latest turn. Raises `NotFound`."""
    session = find_session(store, name)
    view = read_window(store, config, session, orders=read_orders(store))
    if view is None:
        raise NotFound(f"{session.id} has no turn yet; see: hotset sessions")
    events = [each for each in store.events(session.id) if each.name not in _QUIET]
    return TopFrame(session, view, tuple(events[-_MOST_EVENTS:]))


def draw(frame: TopFrame, wide: int, most_events: int) -> list[str]:
    """The lines of a frame, none wider than the terminal."""
    view = frame.view
    head = f"{view.session}  turn {view.turn}  {plain_line(view.model)}"
    title = shortened(plain_line(frame.session.title), max(0, wide - len(head) - 2))
    cells = max(10, wide - _LABEL - _FIGURES)
    scale = max(view.whole, view.sent, 1)
    sent = lay_out(view.segments, cells, scale)
    came = lay_out(view.segments, cells, scale, is_client=True)
    return [
        f"{click.style(head, bold=True)}  {title}".rstrip(),
        _labelled("window", _gauge(view, cells), cells, _describe_fill(view)),
        _labelled("client", _strip(came), len(came), f"{view.whole:,} tokens", cells),
        _labelled("model", _strip(sent), len(sent), f"{view.sent:,} tokens", cells),
        _boundary(view, cells, scale),
        "",
        f"{'':{_LABEL}}{_legend((*came, *sent))}",
        _row("cost", f"{money(view.spent)} so far instead of {money(view.everything)}", wide),
        _row("next", view.next_when or "nothing leaves", wide),
        *([""] if frame.events else []),
        *(_event_line(each, wide) for each in frame.events[-most_events:]),
    ]


def _labelled(name: str, drawn: str, drawn_cells: int, figures: str, cells: int = 0) -> str:
    return f"{name:<{_LABEL}}{drawn}{' ' * max(0, cells - drawn_cells)} {figures}"


def _gauge(view: WindowView, cells: int) -> str:
    filled = min(cells, round(cells * view.sent / max(1, view.window)))
    return "█" * filled + "·" * (cells - filled)


def _describe_fill(view: WindowView) -> str:
    return f"{100 * view.sent / max(1, view.window):.0f} % of {thousands(view.window)}"


def _strip(cells: Sequence[StripCell]) -> str:
    return "".join(
        click.style(_FORMS.get(cell.form, _FORMS["full"])[0] * len(list(run)), fg=_colour(cell)[0])
        for cell, run in groupby(cells)
    )


def _colour(cell: StripCell) -> tuple[str, str]:
    known = cell.kind in set(Kind)
    return _COLOURS.get(Kind(cell.kind).family, _OTHER) if known else _OTHER


def _boundary(view: WindowView, cells: int, scale: int) -> str:
    """Where the part ends that was read from the provider's cache."""
    if not view.boundary.tokens:
        return f"{'':{_LABEL}}nothing was read from the provider's cache"
    at = min(cells - 1, round(cells * view.boundary.tokens / scale))
    told = f"{view.boundary.tokens:,} read from the cache"
    return (
        f"{'':{_LABEL}}{' ' * at}▲ {told}"
        if at + len(told) + 2 <= cells
        else f"{'':{_LABEL}}{' ' * max(0, at - len(told) - 1)}{told} ▲"
    )


def _legend(cells: Sequence[StripCell]) -> str:
    """The colours and forms that occur."""
    colours = dict.fromkeys(map(_colour, cells))
    forms = dict.fromkeys(_FORMS.get(cell.form, _FORMS["full"]) for cell in cells)
    named = [click.style(name, fg=colour) for colour, name in colours]
    return "  ".join((*named, *(f"{sign} {name}" for sign, name in forms)))


def _row(name: str, text: str, wide: int) -> str:
    return f"{name:<{_LABEL}}{shortened(plain_line(text), max(10, wide - _LABEL))}"


def _event_line(event: Event, wide: int) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(event.time))
    head = f"{clock}  turn {event.turn:<4}  {type_of(event):<11}  "
    return head + shortened(plain_line(sentence(event)), max(10, wide - len(head)))


def _follow(store: Store, read: Callable[[], TopFrame]) -> None:
    """Draws a frame whenever the store or the terminal has changed, until the person ends it."""
    known: tuple[int, os.terminal_size] | None = None
    with _own_screen() as is_over:
        while True:
            now = store.version(), shutil.get_terminal_size()
            if now != known:
                known = now
                wide, high = now[1]
                frame = draw(read(), wide, max(_LEAST_EVENTS, high - 12))
                _paint([*frame[: high - 2], click.style("q ends", dim=True)])
            if is_over(_SECONDS):
                return


def _paint(lines: Sequence[str]) -> None:
    """Puts lines on the screen from its top; what was there is cleared line by line, so that
    nothing flickers."""
    context = click.get_current_context(silent=True)
    plain = context is not None and context.color is False
    shown = [click.unstyle(line) if plain else line for line in lines]
    sys.stdout.write("\x1b[H" + "".join(f"{line}\x1b[K\n" for line in shown) + "\x1b[J")
    sys.stdout.flush()


@contextmanager
def _own_screen() -> Iterator[Callable[[float], bool]]:
    """A screen of its own, put back at the end. Yields a wait that is true if the person ended
    it."""
    import termios  # noqa: PLC0415 - not on every system
    import tty  # noqa: PLC0415

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    def is_over(seconds: float) -> bool:
        ready, _, _ = select.select([terminal], [], [], seconds)
        return bool(ready) and os.read(terminal, 64).decode("utf-8", "replace")[:1] in ("", *_QUIT)

    sys.stdout.write("\x1b[?1049h\x1b[?25l")
    try:
        tty.setcbreak(terminal)
        yield is_over
    except KeyboardInterrupt:
        pass
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()
