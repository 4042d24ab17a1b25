"""`hotset search`: anything that was said, read or returned, and the project's code."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from hotset.config import Config
from hotset.errors import BadInput, HotsetError
from hotset.index import open_index
from hotset.index.port import Index
from hotset.nouns.finding import Entry, EntryId, Filter, Query, Sort
from hotset.nouns.page import Kind, Page, SessionId, including
from hotset.sealing import seal
from hotset.sources.code.languages import LANGUAGES
from hotset.sources.history import PageHit, find, follow
from hotset.store.folder import has_store
from hotset.store.port import Store
from hotset.surfaces.cli import meant
from hotset.surfaces.cli.consenting import is_allowed
from hotset.surfaces.cli.ending import FOUND, OK
from hotset.surfaces.cli.options import Chosen, as_json, examples, of_project
from hotset.surfaces.cli.sessions import moment_meant
from hotset.surfaces.cli.terminal import counting, emit, emit_json, moment, plain, say, shortened, width
from hotset.surfaces.excerpts import Line, excerpt
from hotset.surfaces.phrases import wordings
from hotset.surfaces.project_index import below, catch_up, find_code, has_code
from hotset.text.terms import Term, terms

_SECONDS = 2.0  # for the search itself; cold files are read from disk
_FOLLOW_SECONDS = 30.0  # for what was kept since the last search: as a rule nothing, the first time everything
_STINT_SECONDS = 0.3  # of that, between two steps of the bar
_WORTH_FOLDING = 500  # entries that are found by their words alone so far
_EXCERPT_LINES = 6
_MOST_ECHOED = 100  # characters of a query
_NUMBER_WIDTH = 6


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that was found, of whichever sort."""

    sort: Sort
    where: str
    """A file's `path:first-last`, or what was said when."""
    what: str
    lines: tuple[Line, ...]
    look: str
    """The command that shows more of it."""
    score: float
    told: dict[str, Any]
    """What else there is to say of it, for JSON."""


@dataclass(frozen=True, slots=True)
class Asked:
    words: str
    sorts: frozenset[Sort]
    kinds: frozenset[str]
    path: str
    session: str | None
    since: float | None
    most: int


@click.command(
    epilog=examples(
        'hotset search "where are retries counted"',
        "hotset search parse_call --type code --path src/",
        'hotset search "connection refused" --type page --since 2d',
        "hotset search migration --session last -n 3 --json",
    )
)
@click.argument("query", nargs=-1, required=True)
@of_project
@click.option("--type", "sort", type=click.Choice(["page", "code"]), help="Only conversations, or only the project's files.")
@click.option("--kind", help="Only this kind of page (tool_result, prompt ...) or language (python, go ...).")
@click.option("--path", metavar="GLOB", default="", help="Only this file, folder or pattern: src/, app.py, '**/*.{ts,tsx}'.")
@click.option("--session", metavar="ID", help="Only this session: an id, the beginning of one, or `last`.")
@click.option("--since", metavar="WHEN", help="Said or changed since: 30m, 12h, 2d, 1w or 2026-11-15.")
@click.option("-n", "--limit", type=click.IntRange(1, 200), default=5, show_default=True, help="At most so many of each type.")
@as_json
def search(
    chosen: Chosen,
    query: tuple[str, ...],
    *,
    sort: str | None,
    kind: str | None,
    path: str,
    session: str | None,
    since: str | None,
    limit: int,
    as_json: bool,
) -> int:
    """Search conversations and the project's code, by meaning and by words.

    No character of QUERY is an operator, but words "in quotes" must occur as they are; where nothing holds them so, what comes
    nearest is shown. Everything that is kept is found; the project's files are, once they are indexed: hotset index.
    """
    config = chosen.config()
    kinds, of_kind = _kinds(kind)
    sorts = (
        frozenset({Sort.PAGE, Sort.CODE}) & of_kind & ({Sort(sort)} if sort else of_kind) & ({Sort.PAGE} if session else of_kind)
    )
    if not sorts:
        raise BadInput("--type, --kind and --session leave nothing to search: sessions have pages, languages are of code")
    earliest = moment_meant(since, time.time()) if since else None
    asked = Asked(" ".join(query), sorts, kinds, path, session, earliest, limit)
    found, notes, loose = _search(config, asked, chosen.quiet)
    code_is_missing = Sort.CODE in sorts and not _searches_code(config)
    if as_json:
        emit_json([_document(each, loose=loose) for each in found])
    else:
        for each in found:
            _tell(each)
    for note in notes:
        say(f"hotset: {note}", quiet=chosen.quiet)
    if not found and not _searches_code(config) and _holds_nothing(config):
        start = f"start with: {chosen.hint('index')}, or {chosen.hint('wrap AGENT')}"
        say(f"there is nothing to search yet for {config.project}; {start}", quiet=chosen.quiet)
        return OK
    if not found:
        say(f"nothing found for {shortened(asked.words, _MOST_ECHOED)!r}; {_advice(asked)}", quiet=chosen.quiet)
    if code_is_missing:
        say(f"The project's files are not indexed; to search them, too: {chosen.hint('index')}", quiet=chosen.quiet)
    return OK if found else FOUND


def _kinds(typed: str | None) -> tuple[frozenset[str], frozenset[Sort]]:
    """The kinds that are meant, and what has such kinds."""
    if typed is None:
        return frozenset(), frozenset({Sort.PAGE, Sort.CODE})
    name = typed.lower().replace("-", "_")
    if name in set(Kind):
        return frozenset(str(each) for each in including(Kind(name))), frozenset({Sort.PAGE})
    if name in LANGUAGES:
        return frozenset({name}), frozenset({Sort.CODE})
    raise BadInput(f"--kind {typed}: pages are {', '.join(Kind)}; languages are {', '.join(LANGUAGES)}")


def _holds_nothing(config: Config) -> bool:
    with meant.listing(config) as store:
        return store.census().pages == 0


def _searches_code(config: Config) -> bool:
    return is_allowed(config) and has_code(config.folder)


def _search(config: Config, asked: Asked, quiet: bool) -> tuple[list[Found], list[str], bool]:
    """What is found, what is to be said of it, and whether it has to do without the phrase that was asked for."""
    has_pages = Sort.PAGE in asked.sorts and has_store(config.folder) and config.search
    searches_code = Sort.CODE in asked.sorts and _searches_code(config)
    notes = [] if config.search else [f"what was said is not indexed: {config.origins['search']} says that it should not be"]
    if not has_pages and not searches_code:
        return [], notes, False
    with ExitStack() as opened:
        embedding = config.embedding if has_pages else config.embedding.of_documents  # nothing but code is asked for otherwise
        try:
            index = opened.enter_context(closing(open_index(config.folder, embedding, folds=False)))
        except (HotsetError, OSError) as error:
            if not has_pages or os.access(config.folder, os.W_OK):
                raise
            notes.append(f"searched with an index made for this once, and without the project's files: {error}")
            searches_code = False
            folder = Path(opened.enter_context(TemporaryDirectory(prefix="hotset-")))
            index = opened.enter_context(closing(open_index(folder, embedding, folds=False)))
        store = opened.enter_context(meant.reading(config)) if has_pages else None
        if store is not None:
            notes += _caught_up(store, index, quiet)
        if searches_code:
            notes += catch_up(config.project, config.folder, index)
        session = meant.session_id(store, asked.session) if store is not None else None
        for wording in wordings(asked.words):
            query = _query(replace(asked, words=wording.words), session)
            found, lacking = _found(query, index, store, below(config.project, asked.path) if searches_code else None)
            if found or "words" in lacking:  # which did not answer: nobody knows what holds the phrase
                break
    if found and wording.note:
        notes.append(wording.note)
    if lacking:
        notes.append(f"searched without {', '.join(sorted(lacking))}, which did not answer in time; the order may be worse")
    return found, notes, bool(found and wording.note)


def _found(query: Query, index: Index, store: Store | None, of_code: str | None) -> tuple[list[Found], frozenset[str]]:
    """Of the project's files on the path `of_code`, where they are searched, and of what was said where there is a store; and
    which signals did not serve.
    """
    wanted = terms(query.words)
    found: list[Found] = []
    lacking: frozenset[str] = frozenset()
    if of_code is not None:
        hits = find_code(index, replace(query, only=replace(query.only, path=of_code)))
        lacking |= hits.lacking
        found += [_of_code(hit.entry, hit.score, wanted) for hit in hits.hits]
    if store is not None:
        finds = find(query, store, index)
        lacking |= finds.lacking
        found += [_of_page(store, each, wanted) for each in finds.best]
    return found, lacking


def _query(asked: Asked, session: SessionId | None = None) -> Query:
    only = Filter(
        kinds=asked.kinds,
        sessions=frozenset({session} if session else ()),
        since=asked.since,
        path=asked.path,
    )
    return Query(asked.words, only, asked.most, _SECONDS)


def _caught_up(store: Store, index: Index, quiet: bool) -> Iterator[str]:
    """Brings what was kept since into the index. What fails here costs the latest, not the search."""
    until = time.monotonic() + _FOLLOW_SECONDS
    try:
        if follow(store, index, time.monotonic() + _STINT_SECONDS):
            with counting("reading what was kept", None, quiet=quiet) as counter:
                while time.monotonic() < until and (passed := follow(store, index, time.monotonic() + _STINT_SECONDS)):
                    counter.step(passed)
        if index.state().lag > _WORTH_FOLDING:
            index.fold()
    except HotsetError as error:
        yield f"what was said last may be missing: {error}"


def _of_code(entry: Entry, score: float, wanted: Sequence[Term]) -> Found:
    first, last = entry.lines
    what = entry.title.removeprefix(entry.path).strip()
    told = {"path": entry.path, "lines": [first, last], "title": what, "language": entry.kind, "text": entry.text}
    return Found(
        Sort.CODE,
        f"{entry.path}:{first}-{last}",
        what,
        tuple(excerpt(entry, wanted, _EXCERPT_LINES)),
        "",
        score,
        told,
    )


def _of_page(store: Store, each: PageHit, wanted: Sequence[Term]) -> Found:
    page = each.page
    entry = _stretch(store, page, each.lines)
    what = f"{page.tool} {page.kind}" if page.tool else str(page.kind)
    look = f"hotset show {page.session} --turns {page.turn}"
    told = {
        "page": page.id,
        "session": page.session,
        "turn": page.turn,
        "kind": page.kind,
        "tool": page.tool,
        "agent": page.agent,
        "time": page.time,
        "lines": list(each.lines),
        "text": entry.text,
        "recall": f"hotset recall {page.id}",
    }
    where = f"{page.session} turn {page.turn}"
    return Found(
        Sort.PAGE, where, f"{what}, {moment(page.time)}", tuple(excerpt(entry, wanted, _EXCERPT_LINES)), look, each.score, told
    )


def _stretch(store: Store, page: Page, lines: tuple[int, int]) -> Entry:
    """The lines that were found, or the whole of a page without lines; its secrets stay in the store."""
    try:
        text = seal(store.content(page.digest).decode("utf-8", "replace")).text
    except HotsetError as error:
        return Entry(EntryId(page.id), page.id, Sort.PAGE, f"({error})")
    if lines != (0, 0):
        text = "\n".join(text.split("\n")[lines[0] - 1 : lines[1]])
    return Entry(EntryId(page.id), page.id, Sort.PAGE, text, lines=lines)


def _document(found: Found, *, loose: bool) -> dict[str, Any]:
    return {"type": found.sort, "score": round(found.score, 4), **found.told, "loose": loose, "show": found.look}


def _tell(found: Found) -> None:
    colour = "cyan" if found.sort is Sort.CODE else "green"
    where = plain(found.where)
    room = max(20, width() - len(where) - 2)
    emit(click.style(where, fg=colour, bold=True) + f"  {shortened(plain(found.what), room)}")
    for line in found.lines:
        number = str(line.number) if line.number else ""
        emit(click.style(f"{number:>{_NUMBER_WIDTH}}  ", dim=True) + _highlighted(line, width() - _NUMBER_WIDTH - 2))
    if found.look:
        emit(click.style(f"{'':>{_NUMBER_WIDTH}}  {found.look}", dim=True))
    emit("")


def _highlighted(line: Line, room: int) -> str:
    """The line as far as it fits, with its words marked. `plain` keeps every character at its place."""
    text = shortened(plain(line.text), max(20, room))
    pieces: list[str] = []
    at = 0
    for start, end in line.marks:
        if start >= len(text):
            break
        pieces += [text[at:start], click.style(text[start:end], fg="yellow", bold=True)]
        at = end
    return "".join([*pieces, text[at:]])


def _advice(asked: Asked) -> str:
    if not asked.words.strip():
        return 'say what you look for: hotset search "where are retries counted"'
    narrowed = [flag for flag, said in (("--path", asked.path), ("--kind", asked.kinds), ("--session", asked.session)) if said]
    narrowed += ["--since"] if asked.since is not None else []
    if narrowed:
        return f"try it without {' and '.join(narrowed)}, or with other words"
    return "try fewer words, or others for the same thing"
