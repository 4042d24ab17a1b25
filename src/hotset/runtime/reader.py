"""Opens a project's store and index for short commands, without event loop, wire or numpy, and
resolves what a person typed to a session or a page."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hotset.config import Config
from hotset.errors import BadInput, HotsetError, NotFound
from hotset.index import FOLDER, open_index
from hotset.nouns.note import METADATA, decode_metadata
from hotset.nouns.page import Digest, Gist, Kind, Page, SessionId
from hotset.nouns.turn import Event, Reference, Session
from hotset.store.kinship import Parent, parents_in
from hotset.store.migrations import VERSION as STORE_VERSION
from hotset.store.port import Census, Store, Where
from hotset.store.sqlite import SqliteStore
from hotset.store.store_files import BALLAST_BYTES, DATABASE, has_store, wal_and_shm

if TYPE_CHECKING:
    from hotset.index.port import Index as Index, IndexState as IndexState  # noqa: PLC0414
    from hotset.nouns.deposit import PageAdded
    from hotset.sources.memory import ProjectMemories
    from hotset.sources.tools import Toolbox

__all__ = [
    "BALLAST_BYTES",
    "DATABASE",
    "STORE_VERSION",
    "Census",
    "Parent",
    "Store",
    "Where",
    "has_store",
    "open_index",
    "parents_in",
    "wal_and_shm",
]

_DIGEST_LENGTH = 64
_REFERENCE_ID = re.compile(r"r[0-9a-f]{11}")
_SHOWN = 5
_NEAR = 0.6  # of 1, at which two names are equal: one letter wrong in three is still near
_NEAREST = 3
_SHORTEST_BEGINNING = 4


def open_to_look(folder: Path) -> SqliteStore:
    """The store of a data folder, also if it is read-only. The caller closes it."""
    return SqliteStore.open_to_look(folder)


@contextmanager
def open_existing(config: Config) -> Iterator[SqliteStore]:
    """The project's store. Raises `NotFound` if there is none: reading must not create one."""
    if not has_store(config.folder):
        raise NotFound(
            f"nothing is kept yet for {config.project} (in {config.folder}); start with: hotset up"
        )
    with open_to_look(config.folder) as store:
        yield store


@contextmanager
def open_or_empty(config: Config) -> Iterator[SqliteStore]:
    """The project's store, for a list; an empty temporary one if there is none."""
    with (
        empty_where_missing(config, is_there=has_store(config.folder)) as there,
        open_to_look(there.folder) as store,
    ):
        yield store


@contextmanager
def empty_where_missing(config: Config, *, is_there: bool) -> Iterator[Config]:
    """The settings, with an empty temporary folder if nothing is kept yet: lists are then empty
    too."""
    if is_there:
        yield config
        return
    with TemporaryDirectory(prefix="hotset-") as empty:
        yield replace(config, folder=Path(empty))


@contextmanager
def open_memories(config: Config) -> Iterator[ProjectMemories]:
    """The project's memories, for a short command."""
    from hotset.runtime.learned_state import read_state  # noqa: PLC0415
    from hotset.runtime.learning import learned_knobs  # noqa: PLC0415
    from hotset.sources.history import follow  # noqa: PLC0415 - with the index
    from hotset.sources.memory import ProjectMemories  # noqa: PLC0415

    with ExitStack() as opened:
        store = opened.enter_context(open_to_look(config.folder))
        found: list[Index] = []

        def index() -> Index | None:
            if not found and config.search:
                with suppress(HotsetError, OSError, ImportError):
                    made = open_index(config.folder, config.embedding, folds=False)
                    opened.callback(made.close)
                    found.append(made)
            return found[0] if found else None

        yield ProjectMemories(
            config,
            lambda: store,
            index,
            follow_pages=follow,
            logged=False,
            knobs=lambda: learned_knobs(config, read_state(store)).memory,
        )


@contextmanager
def open_toolbox(config: Config) -> Iterator[Toolbox]:
    """The toolbox, for a command that lists tools or calls one. Every use is in the audit."""
    from hotset.runtime.learned_state import read_state  # noqa: PLC0415
    from hotset.runtime.learning import learned_knobs  # noqa: PLC0415
    from hotset.sources.tools import Toolbox  # noqa: PLC0415 - half a second

    with open_to_look(config.folder) as store:

        def happened(event: Event) -> None:
            store.keep(event)

        with closing(
            Toolbox(config, lambda: store, whose="hotset tools", happened=happened)
        ) as toolbox:
            toolbox.knobs = lambda: learned_knobs(config, read_state(store)).toolbox
            yield toolbox


@dataclass(frozen=True, slots=True)
class IndexGlance:
    """State of the index."""

    entries: int
    waiting: int
    """Entries that are searchable by their words, but not yet by their meaning and not yet at full
    speed."""
    behind: int
    """Pages of the store that are not indexed yet, up to the limit of the count."""
    embedder: str
    writer: int | None
    """The process that folds, if any."""
    building: bool
    """A new index is being built beside it."""
    troubles: tuple[str, ...]


def glance_at_index(
    config: Config, store: Store | None, troubles: Sequence[str], most_behind: int
) -> IndexGlance | None:
    """State of the index, without opening it; None if there is none. `troubles` are those that a
    running proxy reports; at most `most_behind` pages are counted."""
    if not (folder := config.folder / FOLDER).exists():
        return None
    from hotset.index.database import summarise_index  # noqa: PLC0415 - with the rules of secrets 20 ms
    from hotset.sealing import VERSION  # noqa: PLC0415
    from hotset.sources.history import behind  # noqa: PLC0415

    seen = summarise_index(folder, VERSION)
    if seen is None:
        return None
    counts = store is not None and config.search and not seen.trouble
    return IndexGlance(
        seen.entries,
        seen.waiting,
        behind(store, seen.watermarks, most_behind) if store is not None and counts else 0,
        seen.embedder,
        seen.writer,
        seen.building,
        (*([seen.trouble] if seen.trouble else ()), *troubles),
    )


def find_session(store: Store, typed: str) -> Session:
    """Resolve `last` (the session used last), an id, the beginning of one, or the client's own name
    for it. Raises `NotFound`."""
    with suppress(NotFound):
        return store.session(SessionId(typed))  # not all are read where the id is whole
    every = store.recent_sessions()
    if not every:
        raise NotFound("no session is kept yet; start one with: hotset wrap AGENT")
    if typed == "last":
        return every[0]
    exact = [each for each in every if typed in (each.id, each.key, each.key.partition(":")[2])]
    found = exact or [each for each in every if each.id.startswith(typed)]
    if not found:
        names = [name for each in every for name in (each.id, each.key.partition(":")[2]) if name]
        raise NotFound(
            f"no session begins with {typed}; {did_you_mean(typed, ('last', *names))}see: "
            f"hotset sessions"
        )
    if len(found) > 1:
        raise NotFound(
            f"{len(found)} sessions begin with {typed}: {_some([each.id for each in found])}; "
            f"type more of it"
        )
    return found[0]


def session_named(store: Store, name: str) -> SessionId | None:
    """The session with this id, or with this name from its client; `last` is the one used last.
    None if there is none."""
    every = store.recent_sessions()
    if name == "last" and every:
        return every[0].id
    names = (name, f"x-hotset-session:{name}")
    return next((each.id for each in every if each.id == name or each.key in names), None)


def find_session_id(store: Store, typed: str | None) -> SessionId | None:
    """The same; None if nothing was typed."""
    return None if typed is None else find_session(store, typed).id


def keep_search(
    config: Config,
    door: str,
    words: str,
    hits: Sequence[tuple[str, float]],
    *,
    ms: float,
    session: str | None = None,
) -> None:
    """Keeps a person's search among the events: ids with scores, best first. Nothing where nothing
    is kept, or the folder is read-only."""
    from hotset.runtime.audit import keep_event, searched_event  # noqa: PLC0415 - with secrets' kinds

    if has_store(config.folder) and os.access(config.folder, os.W_OK):
        with suppress(HotsetError, OSError), open_existing(config) as store:
            where = find_session_id(store, session)
            event = searched_event(
                door, words, hits, time.time(), ms=ms, session=where, agent="user"
            )
            keep_event(store, event)


def find_page(store: Store, typed: str) -> Page:
    """Resolve a page's id, the beginning of one, or a tool call's id (its latest result). Raises
    `NotFound`."""
    ids = store.match(typed)
    if len(ids) == 1:
        return store.page(ids[0])
    if typed in ids:
        return next(store.page(id) for id in ids if id == typed)
    if len(ids) > 1:
        raise NotFound(f"several pages begin with {typed}: {_some(ids)}; type more of it")
    of_call = list(store.pages(Where(call=typed)))
    results = [each for each in of_call if each.kind.family is Kind.TOOL_RESULT]
    if not of_call:
        near = did_you_mean(typed, _alike(typed, store.match))
        raise NotFound(f"no page, tool call or content {typed}; {near}see: hotset show last")
    return (results or of_call)[-1]


def find_reference(store: Store, typed: str) -> tuple[Reference, list[Page]] | None:
    """A reference by its id, with the pages that are still kept; None if it is no reference's."""
    if not _REFERENCE_ID.fullmatch(typed):
        return None
    try:
        reference = store.reference(typed)
    except NotFound:
        return None
    pages: list[Page] = []
    for id in reference.pages:
        with suppress(NotFound):
            pages.append(store.page(id))
    return reference, pages


def find_content(store: Store, typed: str) -> tuple[Page | None, Digest]:
    """Resolve what to recall: a page and its content's address, or an address alone."""
    if len(typed) == _DIGEST_LENGTH and all(c in "0123456789abcdef" for c in typed):
        return None, Digest(typed)
    found = find_page(store, typed)
    return found, found.digest


def gist_of(store: Store, page: Page, content: bytes) -> Gist:
    """The gist of a page: the stored one, or made from its content."""
    from hotset.window.page_text import make_gist  # noqa: PLC0415 - seldom needed

    return store.gist(page.id) or make_gist(page, content)


def page_to_keep(
    store: Store,
    content: bytes,
    now: float,
    *,
    kind: str,
    session: str,
    agent: str,
    parent: str = "",
    media: str = "text/plain",
    metadata: Mapping[str, str],
) -> PageAdded:
    """The deposit of content that a program or a person puts in. A session of that name is opened
    if there is none. Raises `BadInput` and `NotFound`."""
    from hotset.nouns.deposit import PageAdded  # noqa: PLC0415 - of no use to a reader

    if kind not in set(Kind):
        raise BadInput(f"no kind {kind!r}: there are {', '.join(Kind)}")
    known = session_named(store, session)
    return PageAdded(
        known,
        agent,
        Kind(kind),
        content,
        now,
        media,
        find_page(store, parent).id if parent else None,
        key="" if known else f"x-hotset-session:{session}",
        metadata=metadata,
    )


def metadata_of(store: Store, ids: Sequence[str]) -> dict[str, dict[str, str]]:
    """The metadata of these sessions or pages, of those that have any."""
    found = store.notes(METADATA, ids) if ids else {}
    return {id: decode_metadata(note.value) for id, note in found.items()}


def candidates_in(store: Store) -> int:
    """Number of memories that wait until a person or an outcome confirms them."""
    from hotset.nouns.memory import Standing  # noqa: PLC0415 - with the tables of memories

    return sum(1 for _ in store.memories(standings=frozenset({Standing.CANDIDATE})))


def did_you_mean(typed: str, names: Collection[str]) -> str:
    """The names nearest to what was typed, as the middle of a sentence; empty if none is near."""
    near = get_close_matches(typed, names, _NEAREST, _NEAR)
    return f"did you mean {' or '.join(near)}? " if near else ""


def _alike(typed: str, match: Callable[[str], Sequence[str]]) -> Sequence[str]:
    """The names that share the longest beginning with what was typed."""
    beginnings = (typed[:end] for end in range(len(typed) - 1, _SHORTEST_BEGINNING - 1, -1))
    return next(filter(None, map(match, beginnings)), ())


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "")
