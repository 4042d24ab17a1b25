"""How memories read on a screen."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hotset.nouns.memory import (
    Ending,
    MemoryId,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    Relation,
    Standing,
    Uses,
)
from hotset.sources.memory import KINDS
from hotset.surfaces.cli.terminal import count, emit, moment, plain, shortened, span, table, width

if TYPE_CHECKING:
    from hotset.sources.memory import MemoryDetails

_PLAIN_COLOUR = "magenta"
_LABEL = 9  # characters in front of what is told about a memory
_MOST_PAGES, _MOST_PLACES = 3, 6  # that are named; JSON has all
_JUST_NOW_SECONDS = 1.0

_FORWARD = {
    Relation.DERIVED_FROM: "derived from",
    Relation.RELATED_TO: "related to",
    Relation.CONTRADICTS: "contradicts",
    Relation.SUPERSEDES: "replaces",
}
_BACKWARD = {**_FORWARD, Relation.DERIVED_FROM: "source of", Relation.SUPERSEDES: "replaced by"}


def counted(number: int) -> str:
    return f"{number:,} memory" if number == 1 else f"{number:,} memories"


def ago(when: float, now: float) -> str:
    return "just now" if now - when < _JUST_NOW_SECONDS else f"{span(now - when)} ago"


def colour(kind: str) -> str:
    return KINDS[MemoryKind(kind)].colour or _PLAIN_COLOUR if kind in set(MemoryKind) else "white"


def state(memory: MemoryRecord) -> str:
    """What is most worth knowing about it in one word: that it does not hold, or how it came
    out."""
    if memory.standing is not Standing.ACTIVE:
        return str(memory.standing)
    return "" if memory.ending is Ending.UNKNOWN else str(memory.ending)


def relation(link: MemoryLink, seen_from: MemoryId) -> str:
    """The link in words, from where one stands."""
    return (_FORWARD if link.of == seen_from else _BACKWARD)[link.relation]


def tell_list(memories: Sequence[MemoryRecord], now: float) -> None:
    rows = [(each.id, span(now - each.created), state(each), title(each)) for each in memories]
    table(("memory", "age", "state", "title"), rows, right=(1,))


def tell_shown(
    shown: MemoryDetails, version: MemoryRecord, titles: dict[MemoryId, str], now: float
) -> None:
    """A memory as it stands, or stood, and all that is known about it."""
    memory = shown.memory
    facts = ", ".join(
        filter(None, (str(version.kind), str(version.standing), "pinned" if version.pinned else ""))
    )
    emit(
        click.style(version.id, fg=colour(version.kind), bold=True)
        + f"  {facts}, {ago(version.created, now)}"
    )
    first, _, rest = version.text.strip().partition("\n")
    is_titled = " ".join(plain(first).split()) == title(version)
    emit("\n".join(click.style(line, bold=True) for line in wrapped(title(version))))
    emit("")
    if text := rest.strip() if is_titled else version.text:
        emit("\n".join(wrapped(text)))
        emit("")
    _tell("topics", ", ".join(version.topics))
    _tell("outcome", "" if version.ending is Ending.UNKNOWN else str(version.ending))
    _tell(
        "holds", f"until {moment(version.valid_until)}" if version.valid_until is not None else ""
    )
    _tell("source", _source(version))
    _tell("pages", _pages(version))
    _tell("trust", f"{version.trust}, confidence {version.confidence:.2f}")
    _tell(
        "use", f"{_used(shown.uses, now)}; shown as {shown.layer}, {count(memory.tokens, 'token')}"
    )
    for link in shown.links:
        other = link.to if link.of == memory.id else link.of
        _tell("link", f"{relation(link, memory.id)} [{other}] {titles.get(other, '')}")
    if len(shown.versions) > 1:
        for each in shown.versions:
            mark = "*" if each.version == version.version else " "
            _tell(f"{mark} v{each.version}", f"{moment(each.time)}  {each.why or 'kept'}")


def title(memory: MemoryRecord) -> str:
    return " ".join(plain(memory.title or memory.text).split())


def wrapped(text: str, indent: str = "", most: int | None = None) -> list[str]:
    """The text in lines that fit the screen; what does not fit into `most` of them ends with an
    ellipsis."""
    room = max(20, width() - len(indent))
    lines = [
        piece
        for line in plain(text).strip().split("\n")
        for piece in textwrap.wrap(line, room, drop_whitespace=True, replace_whitespace=False)
        or [""]
    ]
    if most is not None and len(lines) > most:
        lines = [*lines[: most - 1], shortened(f"{lines[most - 1]} …", room)]
    return [f"{indent}{line}".rstrip() for line in lines]


def _tell(label: str, text: str) -> None:
    """A fact about a memory, behind its name; one that says nothing is left out."""
    if text:
        first, *rest = wrapped(text, " " * _LABEL)
        emit(click.style(f"{label:<{_LABEL}}", dim=True) + first[_LABEL:])
        for line in rest:
            emit(line)


def _source(memory: MemoryRecord) -> str:
    source = memory.source
    told = [f"by {source.by}"]
    told += [f"agent {source.agent}"] if source.agent else []
    told += [f"session {source.session}"] if source.session else []
    told += [_some(source.places, _MOST_PLACES)] if source.places else []
    return "; ".join(told)


def _pages(memory: MemoryRecord) -> str:
    pages = memory.source.pages
    if not pages:
        return ""
    return f"{_some(pages, _MOST_PAGES)} (hotset recall {pages[0]})"


def _some(each: Sequence[str], most: int) -> str:
    more = f" and {len(each) - most} more" if len(each) > most else ""
    return f"{', '.join(each[:most])}{more}"


def _used(uses: Uses, now: float) -> str:
    told = [f"{number} {what}" for number, what in _ways(uses) if number]
    last = f", last {ago(uses.last, now)}" if uses.last else ""
    return f"{', '.join(told)}{last}" if told else "not used yet"


def _ways(uses: Uses) -> tuple[tuple[int, str], ...]:
    return (
        (uses.shown, "shown"),
        (uses.read, "read"),
        (uses.helped, "helped"),
        (uses.misled, "misled"),
    )
