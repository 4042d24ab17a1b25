"""`hotset standup`: what was done and decided by day, and what is open; and how days are
printed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from hotset.errors import BadInput
from hotset.nouns.memory import Ending, MemoryRecord
from hotset.surfaces.cli.memories import no_encode, open_updated_memories, wrap_lines
from hotset.surfaces.cli.memory_views import has_any, parse_period
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.terminal import count, emit, emit_json, plain

if TYPE_CHECKING:
    from hotset.sources.memory import ProjectMemories, WorkDay

_YESTERDAY = "yesterday"
_MOST_TITLES = 5  # of one work
_ENDINGS = {Ending.FAILURE: "did not work", Ending.PARTIAL: "unfinished"}
_ID = re.compile(r" \[[a-z]+-[a-z0-9-]+\]$")


@click.command(
    epilog=examples(
        "hotset standup",
        'hotset standup --since "last Monday"',
        'hotset standup --since "the release"',
        "hotset standup --since 2026-11-09 --json",
    )
)
@project_options
@click.option(
    "--since",
    metavar="WHEN",
    default=_YESTERDAY,
    show_default=True,
    help='2d, 2026-11-15, "last week", or words for an event: "the release".',
)
@no_encode
@as_json
def standup(chosen: ProjectOptions, *, since: str, no_encode: bool, as_json: bool) -> None:
    """What was done and decided, day by day, and what is open."""
    now = time.time()
    with open_updated_memories(chosen, no_encode=no_encode, lists=True) as memories:
        begin = _parse_since(since, now, memories)
        found = memories.standup(begin)
        is_empty = not found.days and not has_any(memories)
    if as_json:
        days = [_day_document(day) for day in found.days]
        emit_json({"since": begin, "days": days, "open": [line.text for line in found.open]})
    else:
        print_days(found.days)
        if found.open:
            emit(click.style("Open", bold=True))
            for line in found.open:
                _print_line(_ID.sub("", plain(line.text)))
    if is_empty:
        chosen.say(
            "nothing is remembered yet: a session that goes through hotset is in the next "
            f"stand-up ({chosen.hint('wrap AGENT')})"
        )
    elif not found.days:
        last = ""
        if found.last is not None:
            day = f"{time.strftime('%A %Y-%m-%d', time.localtime(found.last))}"
            hint = chosen.hint(f"standup --since {day.rsplit(maxsplit=1)[-1]}")
            last = f"; the last work was on {day}: {hint}"
        chosen.say(f"nothing was done since {since}{last}")


def print_days(days: Sequence[WorkDay], *, ids: bool = False) -> None:
    """Prints what was done, decided, noted and left on each day; one line for each work."""
    from hotset.sources.memory import day_name  # noqa: PLC0415 - loaded on demand

    for day in days:
        emit(click.style(day_name(day.day), bold=True))
        for work in day.works:
            name = f"{work.name}: " if work.name else ""
            _print_line(f"{name}{'; '.join(_titles(work.episodes, ids=ids))}")
        for label, memories in (
            ("Decided", day.decided),
            ("Noted", day.noted),
            ("Left", day.left),
        ):
            for title in _titles(memories, ids=ids):
                _print_line(f"{label}: {title}")
        emit("")


def _print_line(text: str) -> None:
    first, *rest = wrap_lines(text, "    ")
    emit("\n".join([f"  - {first[4:]}", *rest]))


def _titles(memories: Sequence[MemoryRecord], *, ids: bool) -> Iterator[str]:
    """A few titles with how they came out; near-equal ones once."""
    from hotset.sources.memory import title_of  # noqa: PLC0415 - loaded on demand

    often: dict[str, list[MemoryRecord]] = {}
    for each in memories:
        often.setdefault(plain(title_of(each)), []).append(each)
    for title, alike in list(often.items())[:_MOST_TITLES]:
        last = alike[-1]
        notes = [f"{len(alike)} times"] if len(alike) > 1 else []
        notes += [_ENDINGS[last.ending]] if last.ending in _ENDINGS else []
        notes += ["replaced since"] if last.valid_until is not None else []
        about = f" ({', '.join(notes)})" if notes else ""
        yield f"{title.rstrip('.')}{about}{f' [{last.id}]' if ids else ''}"
    if len(often) > _MOST_TITLES:
        yield f"and {count(len(often) - _MOST_TITLES, 'other')}"


def _parse_since(typed: str, now: float, memories: ProjectMemories) -> float:
    """The start of a period, or the time of an event. Raises `BadInput`."""
    words = typed.strip().removeprefix("since ")
    try:
        return parse_period("--since", words, now)[0] or 0.0
    except BadInput as error:
        if (event := memories.event_time(words)) is not None:
            return event
        raise BadInput(f"{error}; and no memory mentions an event of that name") from None


def _day_document(day: WorkDay) -> dict[str, Any]:
    def short(memories: Iterable[MemoryRecord]) -> list[dict[str, Any]]:
        return [
            {"id": each.id, "title": each.title, "ending": each.ending, "time": each.created}
            for each in memories
        ]

    return {
        "day": day.day.isoformat(),
        "done": [{"work": work.name, "episodes": short(work.episodes)} for work in day.works],
        "decided": short(day.decided),
        "noted": short(day.noted),
    }
