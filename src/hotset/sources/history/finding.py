"""From the index back to the store: which pages a query finds, each content once, only where every condition holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from hotset.errors import NotFound, PageDamaged
from hotset.index.port import Index
from hotset.nouns.finding import Entry, Filter, Hit, Query, Sort
from hotset.nouns.page import Digest, Page, PageId
from hotset.sealing import seal
from hotset.sources.history.pages import path_of
from hotset.store.port import Store, Where
from hotset.text.terms import Term, first_hits, terms

_FURTHER = 4  # times as many entries, where those found are too few pages
_MOST_LOOKED_AT = 4096
_CLOSE = 0.45  # cosine that counts where no telling word is shared; of what nobody spoke of, 32,000 stretches came up to 0.42
_FAR = 2**62


@dataclass(frozen=True, slots=True)
class Find:
    page: Page
    score: float
    lines: tuple[int, int]
    """Of its best stretch; (0, 0) where that has none."""
    by_words: bool
    """It shares words with the query; otherwise only its meaning is close."""


@dataclass(frozen=True, slots=True)
class Finds:
    best: tuple[Find, ...] = ()
    """The best first."""
    lacking: frozenset[str] = frozenset()
    """Signals of the index that did not serve."""


def find(
    query: Query,
    store: Store,
    index: Index,
    fits: Callable[[Page], bool] = lambda _: True,
    clock: Callable[[], float] = time.monotonic,
) -> Finds:
    """The pages that speak of it and still are in the store; `fits` is one more condition.

    An entry stands for every time that its content was said, and has the latest turn and time of these: the index is asked for
    what was said last since then, and the store says whether it was said then.
    """
    until = clock() + query.deadline
    only = replace(query.only, sorts=frozenset({Sort.PAGE}), turns=_from(query.only.turns), until=None)
    pages = _Pages(store, lambda page: _holds(query.only, page) and fits(page))
    wanted = terms(query.words)
    most = _FURTHER * query.most
    while True:
        left = max(0.0, until - clock())
        hits = index.search(replace(query, only=only, most=most, deadline=left))
        best = _best(hits.hits, query.most, wanted, pages)
        if len(best) >= query.most or len(hits.hits) < most or most >= _MOST_LOOKED_AT or clock() >= until:
            return Finds(tuple(best), hits.lacking)
        most *= _FURTHER


def _from(turns: tuple[int, int] | None) -> tuple[int, int] | None:
    return None if turns is None else (turns[0], _FAR)


def _best(hits: Sequence[Hit], most: int, wanted: Sequence[Term], pages: _Pages) -> list[Find]:
    found: dict[Digest, Find] = {}
    for hit in hits:
        by_words = hit.by_words is not None and _shares(hit.entry, wanted)
        page = pages.of(hit.entry) if by_words or (hit.by_meaning or 0.0) >= _CLOSE else None
        if page is None:
            continue
        better = found.get(page.digest)
        if better is None:
            found[page.digest] = Find(page, hit.score, hit.entry.lines, by_words)
            if len(found) >= most:
                break
        elif page.time > better.page.time:  # said in several sessions: the latest is meant
            found[page.digest] = replace(better, page=page)
    return sorted(found.values(), key=lambda each: (-round(each.score, 6), -each.page.time))


def _shares(entry: Entry, wanted: Sequence[Term]) -> bool:
    """A telling word of the query stands in it: full text is content with an "in the", too."""
    return any(True for _ in first_hits(f"{entry.title}\n{entry.text}", wanted))


class _Pages:
    """The page that an entry stands for: its latest occurrence of which every condition holds."""

    def __init__(self, store: Store, fits: Callable[[Page], bool]) -> None:
        self._store = store
        self._fits = fits
        self._known: dict[str, Page | None] = {}

    def of(self, entry: Entry) -> Page | None:
        if entry.whole not in self._known:
            self._known[entry.whole] = next((page for page in self._occurrences(entry) if self._fits(page)), None)
        return self._known[entry.whole]

    def _occurrences(self, entry: Entry) -> Iterator[Page]:
        try:
            page = self._store.page(PageId(entry.whole))
            yield page
            every = list(self._store.pages(Where(session=page.session, digest=page.digest)))
        except (NotFound, PageDamaged):
            return
        for other in reversed(every):
            alike = (other.agent, other.kind, other.tool) == (page.agent, page.kind, page.tool)
            if alike and (not entry.path or seal(path_of(self._store, other)).text == entry.path):
                yield other


def _holds(only: Filter, page: Page) -> bool:
    """What the index does not know of every occurrence."""
    return (
        (only.turns is None or only.turns[0] <= page.turn <= only.turns[1])
        and (only.since is None or only.since <= page.time)
        and (only.until is None or page.time < only.until)
    )
