"""The library's search over pages of the project's sessions, its files, memories and tools."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING

from hotset.errors import BadInput, HotsetError
from hotset.nouns.page import Kind
from hotset.nouns.retrieval import Place, Retrieved, Search
from hotset.nouns.search import Filter, Query, Sort
from hotset.runtime import retrieval
from hotset.runtime.audit import ids_of, keep_event, searched_event, zip_scores
from hotset.runtime.filters import RECORDS, parse_kinds, parse_turns
from hotset.runtime.model_tools import clip_to_tokens, count, count_fitting
from hotset.runtime.reader import Store, open_index, session_named
from hotset.runtime.search import merge_hits
from hotset.sources.code import catch_up, has_code, index_folder, read_consent
from hotset.sources.tools import Toolbox
from hotset.surfaces.library.engine import Engine
from hotset.text.languages import LANGUAGES
from hotset.text.moments import parse_moment

if TYPE_CHECKING:
    from hotset.runtime.reader import Index

_EVERY_SESSION = "all"
_MOST_HITS = 20
_SECONDS = 2.0  # for a search of the files; cold ones are read from disk
_LOOK_AGAIN_SECONDS = (
    5.0  # after a look for files that were changed: a program may ask a hundred questions in a row
)
_MOST_OTHERS = 5  # memories, and tools
_OTHERS = (
    "[hotset: memories and tools that fit, best first; read one: retrieve_context(id); "
    "call one: use_tool(name)]\n"
)
_NO_OTHERS = "[hotset: no memory and no tool fits; try other words]"
_NOT_INDEXED = (
    "[hotset: the files of this project are not indexed; ask the user to run `hotset index`]"
)


@dataclass(frozen=True, slots=True)
class LibraryQuery:
    query: str
    only: Filter
    """Kinds of pages and languages, agents, turns, times, and a path."""
    session: str
    max_tokens: int
    types: frozenset[Sort] = frozenset(Sort)
    """Those that can have what `only` asks for."""

    @property
    def of_pages(self) -> bool:
        return Sort.PAGE in self.types and not self.only.path

    @property
    def of_code(self) -> bool:
        return (
            Sort.CODE in self.types
            and self.session == _EVERY_SESSION
            and not self.only.agents
            and self.only.turns is None
        )

    @property
    def of_others(self) -> frozenset[Sort]:
        """Memories and tools to search: they have no kind of a page, no path and no session."""
        narrowed = replace(self.only, since=None, until=None) != Filter()
        if narrowed or self.session != _EVERY_SESSION or not self.query.strip():
            return frozenset()
        timed = self.only != Filter()
        return self.types & ({Sort.MEMORY} if timed else {Sort.MEMORY, Sort.TOOL})

    @property
    def of_records(self) -> bool:
        return Sort.RECORD in self.types and not self.only.path and bool(self.query.strip())

    def records(self, store: Store) -> Filter:
        """The filter of a search for records."""
        session = session_named(store, self.session) or self.session
        sessions = frozenset() if self.session == _EVERY_SESSION else frozenset({session})
        kinds = self.only.kinds & frozenset(RECORDS)
        return replace(self.only, sorts=frozenset({Sort.RECORD}), sessions=sessions, kinds=kinds)


def parse_types(types: str | Sequence[str]) -> frozenset[Sort]:
    """The types that a program names; all by default. Raises `BadInput`."""
    named = {types} if isinstance(types, str) else {*types}
    if unknown := named - {*Sort, ""}:
        raise BadInput(f"no type {min(unknown)!r}: there are {', '.join(Sort)}")
    return frozenset(map(Sort, named - {""})) or frozenset(Sort)


Moment = float | str | datetime | None
"""Seconds, `2d` before now, an ISO date, or a datetime."""


def make_filter(
    *,
    kind: str | Sequence[str] = (),
    agent: str | Sequence[str] = (),
    turns: tuple[int, int] | str | None = None,
    since: Moment = None,
    until: Moment = None,
    path: str = "",
) -> tuple[Filter, frozenset[Sort]]:
    """The filter that a program asks for, and the types that can have it. Raises `BadInput`."""
    kinds, sorts = parse_kinds(_several(kind))
    only = Filter(
        kinds=kinds,
        agents=_several(agent),
        turns=parse_turns(turns) if isinstance(turns, str) and turns else turns or None,
        since=_seconds(since),
        until=_seconds(until),
        path=path,
    )
    return only, sorts


def _several(given: str | Sequence[str]) -> frozenset[str]:
    return frozenset({given} if isinstance(given, str) else given) - {""}


def _seconds(moment: Moment) -> float | None:
    if isinstance(moment, datetime):
        return moment.timestamp()
    return parse_moment(moment, time.time()) if isinstance(moment, str) else moment


class LibrarySearch:
    """Searches for a program. Safe to use from any thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._looked = -inf

    def search(self, wanted: LibraryQuery, store: Store) -> Retrieved:
        """What `hotset search` finds, as text within the budget. Raises `BadInput`."""
        ids: list[tuple[str, float]] = []
        begun = time.monotonic()
        found = self._search(wanted, store, ids)
        took = 1000 * (time.monotonic() - begun)
        event = searched_event(
            "memory.search", wanted.query, ids, time.time(), ms=took, agent="program"
        )
        keep_event(store, event)
        return found

    def _search(
        self, wanted: LibraryQuery, store: Store, ids: list[tuple[str, float]]
    ) -> Retrieved:
        """The same; `ids` gets the ids and scores of the hits."""
        of_others = wanted.of_others or wanted.of_records
        if not wanted.of_pages and not wanted.of_code and not of_others:
            raise BadInput(
                "type, kind, path, session, agent and turns leave nothing to search: sessions, "
                "agents and turns have pages, paths and languages are of code"
            )
        of_text = wanted.of_pages or wanted.of_code
        found = self._text(wanted, store, ids) if of_text else _no_hits("")
        ids += zip_scores(found.pages, found.scores)
        others = self._others(
            wanted, store, wanted.max_tokens - (found.tokens + 1 if found.found else 0), ids
        )
        if not others.found:
            return found if found.text else others
        return _join(found, others) if found.found else others

    def _text(self, wanted: LibraryQuery, store: Store, ids: list[tuple[str, float]]) -> Retrieved:
        """Hits in files and pages; pages take half of the room at most."""
        has_files = wanted.of_code and self._may_search_files()
        if not wanted.of_pages:
            if not has_files:
                return _no_hits(_NOT_INDEXED)
            return self._files(wanted, wanted.max_tokens, ids)
        if not has_files:
            return self._pages(wanted, store, wanted.max_tokens)
        pages = self._pages(wanted, store, wanted.max_tokens // 2)
        room = wanted.max_tokens - (pages.tokens + 1 if pages.found else 0)
        files = self._files(wanted, room, ids)
        if not files.found:
            return self._pages(wanted, store, wanted.max_tokens) if pages.truncated else pages
        return _join(files, pages) if pages.found else files

    def _others(
        self, wanted: LibraryQuery, store: Store, room: int, ids: list[tuple[str, float]]
    ) -> Retrieved:
        """Memories and tools, in the room that is left."""
        sorts: set[str] = set()
        machine = self._engine.machine
        if Sort.MEMORY in wanted.of_others and any(True for _ in store.memories()):
            sorts.add("memory")
        tools = machine.toolbox if Sort.TOOL in wanted.of_others else None
        # A search that asks for everything does not wait until servers have started.
        if (
            isinstance(tools, Toolbox)
            and not tools.empty
            and (tools.ready or wanted.types != frozenset(Sort))
        ):
            sorts.add("tools")
        query = Query(wanted.query, wanted.only, most=_MOST_OTHERS)
        groups = [each.find(query).hits for each in machine.sources if each.name in sorts]
        if wanted.of_records and self._index(store) is not None:
            groups += [
                each.find(replace(query, only=wanted.records(store))).hits
                for each in machine.sources
                if each.name == "history"
            ]
        merged = merge_hits(groups)
        ids += ids_of(merged)
        lines = [
            f"{number}. {hit.where} ({hit.type}, {hit.what})\n"
            for number, hit in enumerate(merged, 1)
        ]
        kept = count_fitting(lines, room - count(_OTHERS), count)
        text = (_OTHERS + "".join(lines[:kept])).rstrip()
        return (
            Retrieved(text, count(text), truncated=kept < len(lines))
            if kept
            else _no_hits(_NO_OTHERS)
        )

    def _pages(self, wanted: LibraryQuery, store: Store, room: int) -> Retrieved:
        config = self._engine.config
        here, wait = Place(None, knobs=self._engine.machine.learning.knobs.history), config.patience
        of_pages = replace(wanted.only, kinds=wanted.only.kinds & frozenset(map(str, Kind)))
        search = Search(wanted.query, session=wanted.session, max_tokens=room, only=of_pages)
        return retrieval.answer(search, store, here, index=self._index(store), patience=wait)

    def _index(self, store: Store) -> Index | None:
        """The index of pages; None where there is none and nothing is kept. Newer pages are added
        in the background."""
        if not index_folder(self._engine.config.folder).exists() and not any(
            True for _ in store.sessions()
        ):
            return None
        follower = self._engine.machine.follower
        index = follower.opened()
        self._engine.call_soon(follower.nudge)
        return index

    def _may_search_files(self) -> bool:
        config = self._engine.config
        return read_consent(config.folder).allows(config.project) and has_code(config.folder)

    def _files(self, wanted: LibraryQuery, room: int, ids: list[tuple[str, float]]) -> Retrieved:
        from hotset.sources.code import list_code  # noqa: PLC0415 - loaded on demand

        config = self._engine.config
        only = replace(
            wanted.only,
            kinds=wanted.only.kinds & frozenset(LANGUAGES),
            path=wanted.only.path.removeprefix("./"),
        )
        try:
            with self._index_of_files() as index:
                if time.monotonic() - self._looked > _LOOK_AGAIN_SECONDS:
                    list(catch_up(config.project, config.folder, index))
                    self._looked = time.monotonic()
                found = list_code(
                    index, Query(wanted.query, only, _MOST_HITS, _SECONDS * config.patience), room
                )
        except (HotsetError, OSError) as error:  # pages are found all the same
            return _no_hits(
                f"[hotset: files cannot be searched ({type(error).__name__}); see: "
                "hotset index --status]"
            )
        ids += found.ids
        text = clip_to_tokens(found.text, room, count)
        return Retrieved(text, count(text)) if found.hits.hits else _no_hits(text)

    @contextmanager
    def _index_of_files(self) -> Iterator[Index]:
        """The open index; where pages are not indexed, one for this query alone."""
        config = self._engine.config
        if (index := self._engine.machine.follower.opened()) is not None:
            yield index
            return
        with closing(open_index(config.folder, config.embedding.of_documents, folds=False)) as own:
            yield own


def _no_hits(text: str) -> Retrieved:
    return Retrieved(text, count(text), found=False)


def _join(first: Retrieved, second: Retrieved) -> Retrieved:
    text = f"{first.text.rstrip()}\n{second.text}"
    pages = first if first.pages else second
    return replace(pages, text=text, tokens=count(text))
