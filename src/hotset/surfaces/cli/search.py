"""`hotset search`: pages of conversations, the project's code, memories and tools, in one list."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
import msgspec

from hotset.config import Config
from hotset.errors import BadInput, HotsetError
from hotset.nouns.knobs import Prefetch
from hotset.nouns.search import Filter, Query, SearchHit, Sort
from hotset.runtime.audit import ids_of
from hotset.runtime.filters import parse_kinds, parse_turns
from hotset.runtime.reader import (
    Store,
    empty_where_missing,
    find_session_id,
    has_store,
    keep_search,
    open_existing,
    open_index,
    open_or_empty,
    open_toolbox,
)
from hotset.runtime.search import TextSearch, find_text, merge_hits
from hotset.sources.code import CodeSource, below, catch_up, has_code
from hotset.sources.history import HistoryFinder, follow
from hotset.sources.memory import MemorySource, ProjectMemories
from hotset.surfaces.cli.consent import is_allowed
from hotset.surfaces.cli.exit import FOUND, OK
from hotset.surfaces.cli.options import (
    ProjectOptions,
    as_json,
    examples,
    limit_option,
    parse_moment,
    parse_option,
    project_options,
)
from hotset.surfaces.cli.progress import counting
from hotset.surfaces.cli.terminal import (
    emit,
    emit_json,
    moment,
    plain,
    shortened,
    width,
)
from hotset.text.terms import ExcerptLine, Term, excerpt, terms

if TYPE_CHECKING:
    from hotset.runtime.reader import Index

_SECONDS = 2.0  # for the search itself; cold files are read from disk
_FOLLOW_SECONDS = 30.0  # to index new pages: usually none, the first time all
_STINT_SECONDS = 0.3  # of those, between two steps of the bar
_WORTH_FOLDING = 500  # entries that have no vectors yet
_EXCERPT_LINES = 6
_MOST_ECHOED = 100  # characters of a query
_NUMBER_WIDTH = 6
_COLOURS = {
    Sort.PAGE: "green",
    Sort.CODE: "cyan",
    Sort.MEMORY: "magenta",
    Sort.TOOL: "blue",
    Sort.RECORD: "yellow",
}


@dataclass(frozen=True, slots=True)
class SearchRequest:
    words: str
    types: frozenset[Sort]
    only: Filter
    session: str | None
    most: int


@dataclass(slots=True)
class SearchResults:
    """Hits and notes about them."""

    groups: list[Sequence[SearchHit]] = field(default_factory=list)
    """The hits of each source."""
    notes: list[str] = field(default_factory=list)
    loose: bool = False
    """True if no text holds the quoted phrase; these are the nearest hits."""


@click.command(
    epilog=examples(
        'hotset search "where are retries counted"',
        "hotset search parse_call --type code --path src/",
        'hotset search "connection refused" --type page --type memory --since 2d',
        "hotset search migration --session last -n 3 --json",
    )
)
@click.argument("query", nargs=-1, required=True)
@project_options
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice(tuple(map(str, Sort))),
    help="Only conversations, the project's files, memories, tools, or records (references, "
    "checkpoints, handoffs); may be given several times.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    help="Only this kind of page (tool_result, prompt ...) or language (python, go ...); may be "
    "given several times.",
)
@click.option(
    "--path",
    metavar="GLOB",
    default="",
    help="Only this file, folder or pattern: src/, app.py, '**/*.{ts,tsx}'.",
)
@click.option(
    "--session", metavar="ID", help="Only this session: an id, the beginning of one, or `last`."
)
@click.option(
    "--agent", "agents", multiple=True, help="Only this agent's pages; may be given several times."
)
@click.option("--turns", metavar="A-B", help="Only these turns of a session: 12, 12-20, 12-.")
@click.option(
    "--since",
    metavar="WHEN",
    help="Only what is newer: 30m, 12h, 2d, 1w or 2026-11-15.",
)
@click.option("--until", metavar="WHEN", help="Only what is older, in the same form.")
@limit_option(5, 200, help="At most so many of each type.")
@as_json
def search(
    chosen: ProjectOptions,
    query: tuple[str, ...],
    *,
    types: tuple[str, ...],
    kinds: tuple[str, ...],
    path: str,
    session: str | None,
    agents: tuple[str, ...],
    turns: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    as_json: bool,
) -> int:
    """Search conversations, the project's code, memories and tools, by meaning and by words.

    Words "in quotes" must occur as they are; if nothing contains them, the nearest hits are shown.
    There are no other operators. The project's files are found once they are indexed: hotset
    index.
    """
    config = chosen.config()
    now = time.time()
    of_kinds, possible = parse_option("--kind", parse_kinds, kinds)
    possible &= frozenset(map(Sort, types)) or possible
    possible &= {Sort.PAGE, Sort.RECORD} if session or agents or turns else possible
    possible &= {Sort.PAGE, Sort.CODE} if path else possible
    possible -= {Sort.TOOL} if since or until else frozenset()
    if not possible:
        raise BadInput(
            "--type, --kind, --path, --session, --agent, --turns, --since and --until leave "
            "nothing to search: sessions, agents and turns have pages, languages are of code, "
            "memories and tools have no path, tools no time"
        )
    only = Filter(
        kinds=of_kinds,
        agents=frozenset(agents),
        turns=parse_option("--turns", parse_turns, turns) if turns else None,
        since=parse_moment(since, now) if since else None,
        until=parse_moment(until, now, "--until") if until else None,
        path=path,
    )
    asked = SearchRequest(" ".join(query), possible, only, session, limit)
    code_is_missing = Sort.CODE in possible and not _searches_code(config)
    results, begun = SearchResults(), time.monotonic()
    _search_index(config, asked, results, quiet=chosen.quiet)
    _search_tools(config, asked, results)
    found = merge_hits(results.groups)
    took = 1000 * (time.monotonic() - begun)
    keep_search(config, "hotset search", asked.words, ids_of(found), ms=took, session=session)
    if as_json:
        emit_json([_document(each, loose=results.loose) for each in found])
    else:
        wanted = terms(asked.words)
        for each in found:
            _print_hit(each, wanted)
    for note in results.notes:
        chosen.say(f"hotset: {note}")
    if not found and not _searches_code(config) and not _holds_pages(config):
        start = f"start with: {chosen.hint('index')}, or {chosen.hint('wrap AGENT')}"
        chosen.say(f"there is nothing to search yet for {config.project}; {start}")
        return OK
    if not found:
        chosen.say(f"nothing found for {shortened(asked.words, _MOST_ECHOED)!r}; {_advice(asked)}")
    if code_is_missing:
        chosen.say(
            f"The project's files are not indexed; to search them, too: {chosen.hint('index')}"
        )
    return OK if found else FOUND


def _holds_pages(config: Config) -> bool:
    with open_or_empty(config) as store:
        return store.census().pages > 0


def _searches_code(config: Config) -> bool:
    return is_allowed(config) and has_code(config.folder)


def _search_index(
    config: Config, asked: SearchRequest, results: SearchResults, *, quiet: bool
) -> None:
    """Hits among pages, code and memories."""
    if not config.search:
        results.notes.append(
            f"conversations are not indexed: {config.origins['search']} switches it off"
        )
    searches_code = Sort.CODE in asked.types and _searches_code(config)
    with ExitStack() as opened:
        store = None
        searches_pages = searches_memories = False
        if asked.types & {Sort.PAGE, Sort.RECORD, Sort.MEMORY} and has_store(config.folder):
            store = opened.enter_context(open_existing(config))
            searches_pages = bool(asked.types & {Sort.PAGE, Sort.RECORD})
            searches_pages = searches_pages and config.search and store.census().pages > 0
            is_asked = Sort.MEMORY in asked.types and bool(asked.words.strip())
            searches_memories = is_asked and any(True for _ in store.memories())
        needs_store = searches_pages or searches_memories
        if not needs_store and not searches_code:
            return
        embedding = (
            config.embedding if needs_store else config.embedding.of_documents
        )  # otherwise only code is searched
        try:
            index = opened.enter_context(closing(open_index(config.folder, embedding, folds=False)))
        except (HotsetError, OSError) as error:
            if not needs_store or os.access(config.folder, os.W_OK):
                raise
            results.notes.append(
                f"searched with an index made for this once, and without the project's files: "
                f"{error}"
            )
            searches_code = False
            folder = Path(opened.enter_context(TemporaryDirectory(prefix="hotset-")))
            index = opened.enter_context(closing(open_index(folder, embedding, folds=False)))
        if store is not None and searches_pages:
            results.notes += _follow_pages(store, index, quiet)
        if searches_code:
            results.notes += catch_up(config.project, config.folder, index)
        of_code = below(config.project, asked.only.path) if searches_code else None
        _search_text(asked, index, store if searches_pages else None, of_code, results)
        if store is not None and searches_memories:
            memories = ProjectMemories(
                config, lambda: store, lambda: index if config.search else None, logged=False
            )
            query = Query(asked.words, asked.only, asked.most)
            source = MemorySource(memories, config.memory, offers=False)
            results.groups.append(source.find(query).hits)


def _search_text(
    asked: SearchRequest,
    index: Index,
    store: Store | None,
    of_code: str | None,
    results: SearchResults,
) -> None:
    """Hits in the project's files on the path `of_code`, where they are searched, and in pages,
    where there is a store."""
    session = find_session_id(store, asked.session) if store is not None else None
    only = replace(asked.only, sessions=frozenset({session} if session else ()))
    query = Query(asked.words, only, asked.most, _SECONDS)
    searches: list[TextSearch] = []
    if of_code is not None:
        files = replace(query, only=replace(only, path=of_code))
        searches.append((CodeSource(lambda: index, Prefetch()), files))
    if store is not None:
        history = HistoryFinder(lambda: store, lambda: index)
        if Sort.PAGE in asked.types:
            searches.append((history, query))
        if Sort.RECORD in asked.types:
            records = replace(only, sorts=frozenset({Sort.RECORD}))
            searches.append((history, replace(query, only=records)))
    found = find_text(searches)
    results.groups += found.groups
    results.loose = bool(found.note) and any(found.groups)
    if results.loose:
        results.notes.append(found.note)
    if found.lacking:
        results.notes.append(f"searched without {found.lacking}; the order may be worse")


def _search_tools(config: Config, asked: SearchRequest, results: SearchResults) -> None:
    """Hits among known tools; no server is started to list more."""
    if Sort.TOOL not in asked.types or not asked.words.strip() or not config.tooling.enabled:
        return
    from hotset.sources.tools import ToolSource  # noqa: PLC0415 - with the toolbox

    known = replace(config, tooling=msgspec.structs.replace(config.tooling, list_seconds=0.0))
    try:
        with (
            empty_where_missing(known, is_there=has_store(known.folder)) as there,
            open_toolbox(there) as tools,
        ):
            if not tools.empty:
                query = Query(asked.words, most=asked.most)
                results.groups.append(ToolSource(tools, 0).find(query).hits)
    except (HotsetError, OSError) as error:
        results.notes.append(f"tools were not searched: {error}")


def _follow_pages(store: Store, index: Index, quiet: bool) -> Iterator[str]:
    """Indexes new pages. An error here costs the latest hits, not the search."""
    until = time.monotonic() + _FOLLOW_SECONDS
    try:
        if follow(store, index, time.monotonic() + _STINT_SECONDS):
            with counting("reading what was kept", None, quiet=quiet) as counter:
                while time.monotonic() < until and (
                    passed := follow(store, index, time.monotonic() + _STINT_SECONDS)
                ):
                    counter.step(passed)
        if index.state().lag > _WORTH_FOLDING:
            index.fold()
    except HotsetError as error:
        yield f"the latest turns may be missing: {error}"


def _document(found: SearchHit, *, loose: bool) -> dict[str, object]:
    return {
        "type": found.type,
        "score": round(found.score, 4),
        **found.detail,
        "loose": loose,
        "show": found.show,
    }


def _print_hit(found: SearchHit, wanted: Sequence[Term]) -> None:
    where = plain(found.where)
    what = plain(found.what) + (f", {moment(found.time)}" if found.time else "")
    room = max(20, width() - len(where) - 2)
    emit(click.style(where, fg=_COLOURS[found.type], bold=True) + f"  {shortened(what, room)}")
    for row in excerpt(found.stretch, wanted, _EXCERPT_LINES) if found.stretch is not None else ():
        number = str(row.number) if row.number else ""
        emit(
            click.style(f"{number:>{_NUMBER_WIDTH}}  ", dim=True)
            + _highlight(row, width() - _NUMBER_WIDTH - 2)
        )
    reference = found.detail.get("reference")
    left = f"left the window, with others: hotset recall {reference}" if reference else ""
    for line in filter(None, (found.show, left)):
        emit(click.style(f"{'':>{_NUMBER_WIDTH}}  {line}", dim=True))
    emit("")


def _highlight(line: ExcerptLine, room: int) -> str:
    """The line as far as it fits, with its matches highlighted. `plain` keeps every character's
    position."""
    text = shortened(plain(line.text), max(20, room))
    pieces: list[str] = []
    at = 0
    for start, end in line.marks:
        if start >= len(text):
            break
        pieces += [text[at:start], click.style(text[start:end], fg="yellow", bold=True)]
        at = end
    return "".join([*pieces, text[at:]])


def _advice(asked: SearchRequest) -> str:
    if not asked.words.strip():
        return 'the query is empty; for example: hotset search "where are retries counted"'
    only = asked.only
    given = {
        "--path": only.path,
        "--kind": only.kinds,
        "--session": asked.session,
        "--agent": only.agents,
        "--turns": only.turns,
        "--since": only.since is not None,
        "--until": only.until is not None,
    }
    narrowed = [flag for flag, value in given.items() if value]
    if narrowed:
        return f"try it without {' and '.join(narrowed)}, or with other words"
    return "try fewer words, or others for the same thing"
