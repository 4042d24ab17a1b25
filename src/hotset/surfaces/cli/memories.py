"""Opens memories for commands, brings them up to date with the sessions, and prints them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from hotset.errors import HotsetError, NotFound
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
from hotset.nouns.progress import Progress
from hotset.runtime.reader import (
    empty_where_missing,
    find_session,
    has_store,
    open_existing,
    open_memories,
)
from hotset.sources.memory import KINDS
from hotset.surfaces.cli.options import ProjectOptions
from hotset.surfaces.cli.progress import counting
from hotset.surfaces.cli.terminal import (
    count,
    emit,
    moment,
    plain,
    shortened,
    span,
    table,
    width,
)

if TYPE_CHECKING:
    from hotset.sources.memory import MemoryDetails, ProjectMemories

_FOLLOW_SECONDS = 30.0  # to index new pages: usually none, the first time all

no_encode = click.option(
    "--no-encode", is_flag=True, help="Skip sessions that are not remembered yet."
)

_PLAIN_COLOUR = "magenta"
_LABEL = 9  # characters of a label in front of a memory's facts
_MOST_PAGES, _MOST_PLACES = 3, 6  # listed at most; JSON has all
_JUST_NOW_SECONDS = 1.0
_FORWARD = {
    Relation.DERIVED_FROM: "derived from",
    Relation.RELATED_TO: "related to",
    Relation.CONTRADICTS: "contradicts",
    Relation.SUPERSEDES: "replaces",
}
_BACKWARD = {**_FORWARD, Relation.DERIVED_FROM: "source of", Relation.SUPERSEDES: "replaced by"}


def as_text(typed: str) -> str:
    """The typed text, with a replacement character for bytes that are no text: no store takes
    those."""
    return typed.encode("utf-8", "replace").decode()


@contextmanager
def open_project_memories(
    chosen: ProjectOptions, *, makes: bool = False, lists: bool = False
) -> Iterator[ProjectMemories]:
    """The project's memories.

    Reading must not create a store: for a project without one a list is empty, and anything else
    raises `NotFound`, unless the command `makes` something to keep.
    """
    config = chosen.config()
    is_there = has_store(config.folder)
    if not (is_there or makes or lists):
        raise NotFound(
            f"nothing is remembered yet for {config.project}; sessions have to go through "
            f"hotset ({chosen.hint('wrap AGENT')}), "
            f"or add one yourself: {chosen.hint('memory add TEXT')}"
        )
    with (
        empty_where_missing(config, is_there=is_there or makes) as there,
        open_memories(there) as memories,
    ):
        yield memories


@contextmanager
def open_updated_memories(
    chosen: ProjectOptions, *, no_encode: bool, makes: bool = False, lists: bool = False
) -> Iterator[ProjectMemories]:
    """`open_project_memories`, after new parts of sessions became memories, unless `no_encode`."""
    with open_project_memories(chosen, makes=makes, lists=lists) as memories:
        if not no_encode:
            encode_new(memories, chosen)
        yield memories


def resolve_session(chosen: ProjectOptions, typed: str) -> str:
    """A session by its id, a beginning of one, or `last`; the key of a session that is no
    conversation, such as an agent's over MCP, is returned as typed."""
    if not typed:
        return ""
    with open_existing(chosen.config()) as store, suppress(NotFound):
        return find_session(store, typed).id
    return typed


def encode_new(memories: ProjectMemories, chosen: ProjectOptions) -> None:
    """Makes memories of new parts of sessions. An error here costs the latest memories, not the
    command."""
    with _latest_may_be_missing("said", chosen), progress(chosen) as moved:
        memories.encode(moved)


def index_new(memories: ProjectMemories, chosen: ProjectOptions) -> None:
    """Indexes new memories and pages. An error here costs the latest hits, not the search."""
    with _latest_may_be_missing("remembered", chosen), progress(chosen) as moved:
        memories.follow(moved, _FOLLOW_SECONDS)


@contextmanager
def _latest_may_be_missing(what: str, chosen: ProjectOptions) -> Iterator[None]:
    try:
        yield
    except HotsetError as error:
        chosen.say(f"hotset: what was {what} last may be missing: {error}")


@contextmanager
def progress(chosen: ProjectOptions) -> Iterator[Progress]:
    """A line on stderr that appears with the first step; nothing without a terminal."""
    with counting("", quiet=chosen.quiet) as line:

        def moved(what: str, done: int, of: int) -> None:
            line.move(done, of or None, what)

        yield moved


def count_memories(number: int) -> str:
    return f"{number:,} memory" if number == 1 else f"{number:,} memories"


def ago(when: float, now: float) -> str:
    return "just now" if now - when < _JUST_NOW_SECONDS else f"{span(now - when)} ago"


def colour(kind: str) -> str:
    return KINDS[MemoryKind(kind)].colour or _PLAIN_COLOUR if kind in set(MemoryKind) else "white"


def state(memory: MemoryRecord) -> str:
    """Its state in one word: why it does not hold, or its outcome."""
    if memory.standing is not Standing.ACTIVE:
        return str(memory.standing)
    return "" if memory.ending is Ending.UNKNOWN else str(memory.ending)


def relation(link: MemoryLink, seen_from: MemoryId) -> str:
    """The link in words, seen from one of its ends."""
    return (_FORWARD if link.of == seen_from else _BACKWARD)[link.relation]


def print_list(memories: Sequence[MemoryRecord], now: float) -> None:
    rows = [(each.id, span(now - each.created), state(each), title(each)) for each in memories]
    table(("memory", "age", "state", "title"), rows, right=(1,))


def print_details(
    shown: MemoryDetails, version: MemoryRecord, titles: dict[MemoryId, str], now: float
) -> None:
    """Prints one version of a memory with all its facts."""
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
    emit("\n".join(click.style(line, bold=True) for line in wrap_lines(title(version))))
    emit("")
    if text := rest.strip() if is_titled else version.text:
        emit("\n".join(wrap_lines(text)))
        emit("")
    _print_fact("topics", ", ".join(version.topics))
    _print_fact("outcome", "" if version.ending is Ending.UNKNOWN else str(version.ending))
    _print_fact(
        "holds", f"until {moment(version.valid_until)}" if version.valid_until is not None else ""
    )
    _print_fact("source", _source(version))
    _print_fact("pages", _pages(version))
    _print_fact("trust", f"{version.trust}, confidence {version.confidence:.2f}")
    _print_fact(
        "use",
        f"{_describe_uses(shown.uses, now)}; "
        f"shown as {shown.layer}, {count(memory.tokens, 'token')}",
    )
    for link in shown.links:
        other = link.to if link.of == memory.id else link.of
        _print_fact("link", f"{relation(link, memory.id)} [{other}] {titles.get(other, '')}")
    if len(shown.versions) > 1:
        for each in shown.versions:
            mark = "*" if each.version == version.version else " "
            _print_fact(f"{mark} v{each.version}", f"{moment(each.time)}  {each.why or 'kept'}")


def title(memory: MemoryRecord) -> str:
    return " ".join(plain(memory.title or memory.text).split())


def wrap_lines(text: str, indent: str = "", most: int | None = None) -> list[str]:
    """The text in lines that fit the screen; beyond `most` lines it ends with an ellipsis."""
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


def _print_fact(label: str, text: str) -> None:
    """Prints a fact about a memory behind its label; nothing if the text is empty."""
    if text:
        first, *rest = wrap_lines(text, " " * _LABEL)
        emit(click.style(f"{label:<{_LABEL}}", dim=True) + first[_LABEL:])
        for line in rest:
            emit(line)


def _source(memory: MemoryRecord) -> str:
    source = memory.source
    parts = [f"by {source.by}"]
    parts += [f"agent {source.agent}"] if source.agent else []
    parts += [f"session {source.session}"] if source.session else []
    parts += [_some(source.places, _MOST_PLACES)] if source.places else []
    return "; ".join(parts)


def _pages(memory: MemoryRecord) -> str:
    pages = memory.source.pages
    if not pages:
        return ""
    return f"{_some(pages, _MOST_PAGES)} (hotset recall {pages[0]})"


def _some(each: Sequence[str], most: int) -> str:
    more = f" and {len(each) - most} more" if len(each) > most else ""
    return f"{', '.join(each[:most])}{more}"


def _describe_uses(uses: Uses, now: float) -> str:
    ways = ("shown", "read", "helped", "misled")
    parts = [f"{number} {way}" for way in ways if (number := getattr(uses, way))]
    last = f", last {ago(uses.last, now)}" if uses.last else ""
    return f"{', '.join(parts)}{last}" if parts else "not used yet"
