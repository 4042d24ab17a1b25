"""Which pages speak of something, by the index: up to what was kept a moment ago, and with what the store says today."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from hotset.errors import HotsetError
from hotset.index.port import Index
from hotset.nouns.finding import Filter, Query
from hotset.nouns.page import Page
from hotset.runtime.retrieval_ranking import Deadline, Ranking, Spoken, ranked_pages
from hotset.runtime.retrieval_telling import tell
from hotset.sources.history.finding import Find, Finds, find
from hotset.sources.history.following import follow, followed
from hotset.sources.history.pages import LEFT_OUT
from hotset.store.port import Store

_FOLLOWING_SHARE, _FINDING_SHARE = 0.4, 0.6  # of the time that is left then
_FINDING_SECONDS = 0.3  # at most: the index takes milliseconds, and whoever finds nothing there looks through the store
_MOST_BEHIND = 2000  # pages that are looked through one by one, where there was no time to bring them into the index


@dataclass(frozen=True, slots=True)
class Indexed:
    best: list[Spoken]
    missed: int = 0
    """Pages for which there was no time."""


def indexed_pages(
    query: Query, store: Store, index: Index, deadline: Deadline, fits: Callable[[Page], bool] = lambda _: True
) -> Indexed | None:
    """The pages that speak of it; None where the index cannot tell. The query's own deadline is not looked at."""
    try:
        reached = _caught_up(store, index, deadline)
        found = _find(query, store, index, deadline, fits)
        if followed(store, index) < reached:  # somebody threw the index away, and it was made anew meanwhile
            reached = _caught_up(store, index, deadline)
            found = _find(query, store, index, deadline, fits)
        if "words" in found.lacking:
            return None
        behind = [page for _, page in store.pages_after(reached, _MOST_BEHIND + 1)]
    except HotsetError:
        return None
    new = [page for page in behind[:_MOST_BEHIND] if page.kind not in LEFT_OUT and _holds(query.only, page) and fits(page)]
    ranking = ranked_pages(query.words, new[::-1], store, deadline)
    merged = sorted((*_looked_at(ranking), *_told(found.best, store)), key=lambda each: -each.score)
    return Indexed(_once(merged)[: query.most], ranking.missed + (len(behind) > _MOST_BEHIND))


def _caught_up(store: Store, index: Index, deadline: Deadline) -> int:
    """How far the index is, after there was some time to follow."""
    follow(store, index, deadline.share(_FOLLOWING_SHARE).at, deadline.clock)
    return followed(store, index)


def _find(query: Query, store: Store, index: Index, deadline: Deadline, fits: Callable[[Page], bool]) -> Finds:
    left = deadline.share(_FINDING_SHARE).at - deadline.clock()
    timed = replace(query, deadline=max(0.0, min(_FINDING_SECONDS * deadline.patience, left)))
    return find(timed, store, index, fits, deadline.clock)


def _holds(only: Filter, page: Page) -> bool:
    return (not only.sessions or page.session in only.sessions) and (not only.kinds or page.kind in only.kinds)


def _looked_at(ranking: Ranking) -> Iterator[Spoken]:
    best = ranking.best[0][0] if ranking.best else 1.0
    return (Spoken(score / best, page, text, (0, 0), by_words=True) for score, page, text in ranking.best)


def _told(finds: Sequence[Find], store: Store) -> Iterator[Spoken]:
    best = max((each.score for each in finds), default=0.0) or 1.0
    for each in finds:
        told = tell(store, each.page)
        if told.own:
            yield Spoken(each.score / best, each.page, told.text, each.lines, each.by_words)


def _once(spoken: Sequence[Spoken]) -> list[Spoken]:
    """Each content once."""
    return list({each.page.digest: each for each in reversed(spoken)}.values())[::-1]
