"""`search_history`: where something was said, in this session or in any of the project, with the call that brings it back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotset.index.port import Index
from hotset.nouns.finding import Filter, Query
from hotset.nouns.page import Kind, Page, SessionId, including
from hotset.nouns.retrieval import Place, Search
from hotset.nouns.turn import Session
from hotset.runtime.retrieval_finding import Missing, standing
from hotset.runtime.retrieval_ranking import Deadline, Spoken, ranked_pages
from hotset.runtime.retrieval_telling import moment, origin
from hotset.sealing import seal
from hotset.sources.history.pages import LEFT_OUT
from hotset.store.port import Store, Where
from hotset.text.clip import plain
from hotset.text.terms import Term, first_hits, hits, terms
from hotset.text.words import lowered
from hotset.window.pieces import PIECE, lines_of, pieces_of

_MOST_PAGES = 20_000
_LISTING_SHARE = 0.3  # of the time, for the list of pages
_AROUND_PIECES = 3  # of a very long line
_INDEX_SHARE = 0.6  # of the time, where there is an index; what it leaves is enough for a look through the store


@dataclass(frozen=True, slots=True)
class Results:
    told: list[str]
    """As the model reads them, best first."""
    pages: list[Page]
    note: str = ""
    """What was not searched."""


def search(call: Search, store: Store, here: Place, deadline: Deadline, index: Index | None = None) -> Results:
    """By the index where there is one; through the store itself where that finds nothing or cannot tell. Raises `Missing`."""
    found = _by_index(call, store, here, deadline.share(_INDEX_SHARE), index) if index is not None else None
    best, note = found or _through_the_store(call, store, here, deadline)
    wanted = terms(call.query)
    results = [f"{at}. {_result(each, wanted, store, here)}" for at, each in enumerate(best, 1)]
    return Results(results, [each.page for each in best], note)


def _by_index(call: Search, store: Store, here: Place, deadline: Deadline, index: Index) -> tuple[list[Spoken], str] | None:
    """The finds, and what was not searched; None where there are none."""
    from hotset.runtime.retrieval_indexed import indexed_pages  # noqa: PLC0415 - where there is an index, and not before

    if call.kind in LEFT_OUT:
        return None
    only = Filter(
        sessions=frozenset() if call.session == "all" else frozenset(_sessions(call.session, store, here)),
        kinds=frozenset(including(call.kind)) if call.kind else frozenset(),
    )
    here_now = standing(store, here)
    query = Query(call.query, only, here.knobs.results)
    found = indexed_pages(query, store, index, deadline, lambda page: page.id not in here_now)
    if found is None or not found.best:
        return None
    note = "the latest pages were not all searched for want of time" if found.missed else ""
    return found.best, note


def _through_the_store(call: Search, store: Store, here: Place, deadline: Deadline) -> tuple[list[Spoken], str]:
    """The finds, and what was not searched. Raises `Missing`."""
    sessions = _sessions(call.session, store, here)
    here_now = standing(store, here)
    pages = [page for page in _pages(call.kind, sessions, store, deadline.share(_LISTING_SHARE)) if page.id not in here_now]
    ranking = ranked_pages(call.query, pages, store, deadline)
    note = f"{ranking.missed:,} of {len(pages):,} pages were not searched for want of time" if ranking.missed else ""
    if not ranking.best:
        raise Missing(_nothing(call, len(pages), note))
    best = ranking.best[: here.knobs.results]
    return [Spoken(score, page, text, (0, 0), by_words=True) for score, page, text in best], note


def _nothing(call: Search, pages: int, note: str) -> str:
    """What was looked through, and what to try."""
    where = "this project" if call.session == "all" else "this session" if not call.session else "that session"
    of_kind = f" of type {call.kind}" if call.kind else ""
    ways = ["other or fewer words"]
    if call.kind:
        ways.append("no type")
    if call.session != "all":
        ways.append('session="all"')
    looked = f"{pages:,} page{'' if pages == 1 else 's'}{of_kind}"
    return f"nothing was found: none of {looked} in {where} speaks of it{note and f' ({note})'}; try {', '.join(ways)}"


def _sessions(asked: str, store: Store, here: Place) -> Sequence[SessionId]:
    """The newest first."""
    if not asked:
        if here.session is None:
            raise Missing("nothing is kept of this conversation yet; session all searches the project's earlier ones")
        return [here.session]
    every: list[Session] = list(store.sessions())
    if asked == "all":
        return [session.id for session in reversed(every)]
    named = [session.id for session in every if asked in (session.id, session.key)]
    found = named or [session.id for session in every if session.id.startswith(asked)]
    if not found:
        raise Missing(f"no session {plain(asked)} in this project; say this or all")
    return found


def _pages(kind: Kind | None, sessions: Sequence[SessionId], store: Store, deadline: Deadline) -> Iterator[Page]:
    kinds = frozenset({kind} if kind else ())
    left = _MOST_PAGES
    for session in sessions:
        newest_first = list(store.pages(Where(session=session, kinds=kinds)))[::-1]
        yield from (page for page in newest_first[:left] if kind or page.kind not in LEFT_OUT)
        left -= len(newest_first)
        if left <= 0 or deadline.passed:
            return


def _result(found: Spoken, wanted: Sequence[Term], store: Store, here: Place) -> str:
    page, text = found.page, seal(found.text).text  # it may be another session's: what its model saw is not for everybody
    lines = lines_of(text)
    at = _best_line(text, wanted, found.lines)
    shown = range(max(0, at - 1), min(len(lines), at + 2))
    excerpt = [f"   {_clipped(lines[line], wanted, here.knobs.excerpt_chars)}" for line in shown if lines[line].strip()]
    part = "" if len(text) <= here.knobs.whole_chars else f', lines="{_around(lines, at, wanted, here.knobs.around_lines)}"'
    head = f"{page.id} {page.kind}, {origin(store, page, here.session)}, {moment(page.time)}"
    return "\n".join([head, *excerpt, f'   retrieve_context(id="{page.id}"{part})'])


def _around(lines: Sequence[str], at: int, wanted: Sequence[Term], many: int) -> str:
    """What to ask for: the lines around a find, or, in a very long line, the pieces around it."""
    pieces = pieces_of(lines[at])
    if pieces == 1:
        return f"{max(1, at - many)}-{min(len(lines), at + many)}"
    piece = _first_word(lines[at], wanted) // PIECE + 1
    return f"{at + 1}.{max(1, piece - _AROUND_PIECES)}-{at + 1}.{min(pieces, piece + _AROUND_PIECES)}"


def _best_line(text: str, wanted: Sequence[Term], among: tuple[int, int]) -> int:
    """The line, from 0, on which the most telling words stand: among these, counted from 1, where some are given."""
    start, last = (among[0] - 1, among[1] - 1) if among[0] else (0, text.count("\n"))
    low = lowered(text)
    scores: dict[int, float] = {}
    for term in wanted:
        first = 0
        line = 0
        for at in hits(text, low, term):
            line += text.count("\n", first, at)
            first = at
            if start <= line <= last:
                scores[line] = scores.get(line, 0.0) + term.weight
    return min(scores, key=lambda line: (-scores[line], line), default=start)


def _clipped(line: str, wanted: Sequence[Term], chars: int) -> str:
    """A line as it is, or the part of a long one around the first telling word."""
    if len(line) <= chars:
        return line.rstrip()
    first = _first_word(line, wanted)
    start = max(0, min(first - chars // 3, len(line) - chars))
    return f"...{line[start : start + chars]}..."


def _first_word(line: str, wanted: Sequence[Term]) -> int:
    return min((at for at, _ in first_hits(line, wanted)), default=0)
