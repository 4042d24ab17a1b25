"""`search_history`: where something was said, in this session or in any of the project, with the call that brings it back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotset.nouns.page import Kind, Page, SessionId
from hotset.nouns.retrieval import Place, Search
from hotset.nouns.turn import Session
from hotset.runtime.retrieval_finding import Missing
from hotset.runtime.retrieval_ranking import Deadline, ranked_pages
from hotset.runtime.retrieval_telling import moment, origin, plain
from hotset.store.port import Store, Where
from hotset.window.slice.words import Term, hits, lowered, terms

_MOST_PAGES = 20_000
_LISTING_SHARE = 0.3  # of the time, for the list of pages
_MOST_RESULTS = 20
_EXCERPT_CHARS = 160
_WHOLE_CHARS = 4000  # up to this a page is brought back whole
_AROUND = 30  # lines around a find, to be brought back
_SILENT = frozenset({Kind.SYSTEM, Kind.THINKING, Kind.OPAQUE, Kind.IMAGE})


@dataclass(frozen=True, slots=True)
class Results:
    told: list[str]
    """As the model reads them, best first."""
    pages: list[Page]
    note: str = ""
    """What was not searched."""


def search(call: Search, store: Store, here: Place, deadline: Deadline) -> Results:
    """Raises `Missing`."""
    sessions = _sessions(call.session, store, here)
    pages = list(_pages(call.kind, sessions, store, deadline.share(_LISTING_SHARE)))
    ranking = ranked_pages(call.query, pages, store, deadline)
    best = ranking.best[:_MOST_RESULTS]
    note = f"{ranking.missed:,} of {len(pages):,} pages were not searched for want of time" if ranking.missed else ""
    if not best:
        wider = "" if call.session == "all" else ", or session all"
        raise Missing(f"nothing in {len(pages):,} pages speaks of it; other words{wider} may find it{note and f' ({note})'}")
    wanted = terms(call.query)
    results = [f"{at}. {_result(page, text, wanted, store, here)}" for at, (_, page, text) in enumerate(best, 1)]
    return Results(results, [page for _, page, _ in best], note)


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
        yield from (page for page in newest_first[:left] if kind or page.kind not in _SILENT)
        left -= len(newest_first)
        if left <= 0 or deadline.passed:
            return


def _result(page: Page, text: str, wanted: Sequence[Term], store: Store, here: Place) -> str:
    lines = text.split("\n")
    at = _best_line(text, wanted)
    shown = range(max(0, at - 1), min(len(lines), at + 2))
    excerpt = [f"   {_clipped(lines[line], wanted)}" for line in shown if lines[line].strip()]
    part = "" if len(text) <= _WHOLE_CHARS else f', lines="{max(1, at - _AROUND)}-{min(len(lines), at + _AROUND)}"'
    head = f"{page.id} {page.kind}, {origin(store, page, here.session)}, {moment(page.time)}"
    return "\n".join([head, *excerpt, f'   retrieve_context(id="{page.id}"{part})'])


def _best_line(text: str, wanted: Sequence[Term]) -> int:
    """The line, from 0, on which the most telling words stand."""
    low = lowered(text)
    scores: dict[int, float] = {}
    for term in wanted:
        first = 0
        line = 0
        for at in hits(text, low, term):
            line += text.count("\n", first, at)
            first = at
            scores[line] = scores.get(line, 0.0) + term.weight
    return min(scores, key=lambda line: (-scores[line], line), default=0)


def _clipped(line: str, wanted: Sequence[Term]) -> str:
    """A line as it is, or the part of a long one around the first telling word."""
    if len(line) <= _EXCERPT_CHARS:
        return line.rstrip()
    low = lowered(line)
    first = min((at for term in wanted for at in _first_hit(line, low, term)), default=0)
    start = max(0, min(first - _EXCERPT_CHARS // 3, len(line) - _EXCERPT_CHARS))
    return f"...{line[start : start + _EXCERPT_CHARS]}..."


def _first_hit(line: str, low: str, term: Term) -> Sequence[int]:
    at = next(hits(line, low, term), None)
    return () if at is None else (at,)
