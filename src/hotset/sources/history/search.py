"""Which pages match a query: by the index, by looking through the store, or by both where the index
lags behind."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from hotset.errors import HotsetError, NotFound, PageDamaged
from hotset.index.port import Index
from hotset.nouns.finding import Entry, Filter, IndexHit, Query, Sort
from hotset.nouns.page import Digest, Gist, Kind, Page, PageId
from hotset.sealing import seal
from hotset.sources.history.entries import follow, followed
from hotset.sources.history.pages import page_text, path_of
from hotset.store.port import Store, Where
from hotset.text.terms import Term, first_hits, hits, terms
from hotset.text.words import lowered
from hotset.window.page_text import NOT_SEARCHED, is_ours

_FURTHER = 4  # times as many entries, where those found are too few pages
_MOST_LOOKED_AT = 4096
_CLOSE = (
    0.45  # cosine that counts where no telling word is shared; unrelated stretches came up to 0.42
)
_FAR = 2**62
_FOLLOWING_SHARE, _FINDING_SHARE = 0.4, 0.6  # of the time that is left then
_FINDING_SECONDS = 0.3  # at most: the index takes milliseconds
_MOST_BEHIND = (
    2000  # pages that are looked through one by one, where there was no time to index them
)
_GIST_SHARE = 0.4  # of the time, for the gists
_LOOKED_AT = 1 << 20  # characters of one page
_MOST_BYTES = 64 << 20  # of contents, however much time there is
_SATURATION, _LENGTH = 1.2, 0.5
_UNKNOWN = 0.5  # of a term's weight, for a page without a gist: behind those whose gist matches


@dataclass(frozen=True, slots=True)
class Deadline:
    """Until when to look. `clock` counts seconds, from anywhere."""

    clock: Callable[[], float]
    at: float
    patience: float = 1.0
    """How many times as long as usual it is."""

    @property
    def passed(self) -> bool:
        return self.clock() >= self.at

    def share(self, part: float) -> Deadline:
        """A part of what is left of it."""
        now = self.clock()
        return Deadline(self.clock, now + (self.at - now) * part, self.patience)


@dataclass(frozen=True, slots=True)
class PageHit:
    page: Page
    score: float
    lines: tuple[int, int] = (0, 0)
    """Of its best stretch; (0, 0) where that has none or is not known."""
    by_words: bool = True
    """It shares words with the query; otherwise only its meaning is close."""
    text: str = ""
    """The page's text, where the search has read it."""


@dataclass(frozen=True, slots=True)
class PageHits:
    best: Sequence[PageHit] = ()
    """The best first."""
    lacking: frozenset[str] = frozenset()
    """Signals of the index that did not serve."""
    missed: int = 0
    """Pages for which there was no time."""


def find(
    query: Query,
    store: Store,
    index: Index,
    fits: Callable[[Page], bool] = lambda _: True,
    clock: Callable[[], float] = time.monotonic,
) -> PageHits:
    """The pages that the index finds and the store still holds; `fits` is one more condition.

    An entry stands for every occurrence of its content and has the latest turn and time of these:
    the index is asked for the latest occurrence since then, and the store says whether there was
    one then.
    """
    until = clock() + query.deadline
    turns = query.only.turns and (query.only.turns[0], _FAR)
    only = replace(query.only, sorts=frozenset({Sort.PAGE}), turns=turns, until=None)
    pages = _Pages(store, lambda page: _is_within(query.only, page) and fits(page))
    wanted = terms(query.words)
    most = _FURTHER * query.most
    while True:
        left = max(0.0, until - clock())
        found = index.search(replace(query, only=only, most=most, deadline=left))
        best = _best(found.hits, query.most, wanted, pages)
        if (
            len(best) >= query.most
            or len(found.hits) < most
            or most >= _MOST_LOOKED_AT
            or clock() >= until
        ):
            return PageHits(best, found.lacking)
        most *= _FURTHER


def find_latest(
    query: Query,
    store: Store,
    index: Index,
    deadline: Deadline,
    fits: Callable[[Page], bool] = lambda _: True,
) -> PageHits | None:
    """The pages that match, up to the ones kept a moment ago, with their texts, each content once;
    the best scores 1.

    None where the index cannot tell. The query's own deadline is not used.
    """
    try:
        reached, found = _follow_and_find(query, store, index, deadline, fits)
        if followed(store, index) < reached:  # the index was thrown away and made anew meanwhile
            reached, found = _follow_and_find(query, store, index, deadline, fits)
        if "words" in found.lacking:
            return None
        behind = [page for _, page in store.pages_after(reached, _MOST_BEHIND + 1)]
    except HotsetError:
        return None
    only = query.only
    new = [
        page
        for page in behind[:_MOST_BEHIND]
        if page.kind not in NOT_SEARCHED
        and (not only.sessions or page.session in only.sessions)
        and (not only.kinds or page.kind in only.kinds)
        and fits(page)
    ]
    looked = look_through(query.words, new[::-1], store, deadline)
    hits = sorted(
        (*_scaled(looked.best), *_read(_scaled(found.best), store)), key=lambda each: -each.score
    )
    once = list({each.page.digest: each for each in reversed(hits)}.values())[::-1]
    return PageHits(once[: query.most], missed=looked.missed + (len(behind) > _MOST_BEHIND))


def look_through(words: str, pages: Sequence[Page], store: Store, deadline: Deadline) -> PageHits:
    """The pages among these, newest first, that match, without an index: BM25 over what there was
    time to read.

    Gists say where to look first. Each content counts once; among equals the newest is first.
    """
    wanted = terms(words)
    read = (page for page in reversed(pages) if page.kind is not Kind.IMAGE and not is_ours(page))
    unlike = list({page.digest: page for page in read}.values())[::-1]
    looked = _look(
        _by_gist(unlike, wanted, store, deadline.share(_GIST_SHARE)), wanted, store, deadline
    )
    if not looked:
        return PageHits()
    newest = {page.id: number for number, page in enumerate(unlike)}
    scored = [
        PageHit(page, score, text=text)
        for (page, text, _), score in zip(looked, _scores(looked, wanted), strict=True)
        if score > 0
    ]
    best = sorted(scored, key=lambda each: (-round(each.score, 6), newest[each.page.id]))
    return PageHits(best, missed=len(unlike) - len(looked))


def _best(
    hits: Sequence[IndexHit], most: int, wanted: Sequence[Term], pages: _Pages
) -> list[PageHit]:
    found: dict[Digest, PageHit] = {}
    for hit in hits:
        entry = hit.entry
        # A telling word of the query must stand in it: full text is content with an "in the", too.
        by_words = hit.by_words is not None and any(
            True for _ in first_hits(f"{entry.title}\n{entry.text}", wanted)
        )
        page = pages.of(entry) if by_words or (hit.by_meaning or 0.0) >= _CLOSE else None
        if page is None:
            continue
        better = found.get(page.digest)
        if better is None:
            found[page.digest] = PageHit(page, hit.score, entry.lines, by_words)
            if len(found) >= most:
                break
        elif page.time > better.page.time:  # said in several sessions: the latest is meant
            found[page.digest] = replace(better, page=page)
    return sorted(found.values(), key=lambda each: (-round(each.score, 6), -each.page.time))


class _Pages:
    """The page that an entry stands for: its latest occurrence of which every condition holds."""

    def __init__(self, store: Store, fits: Callable[[Page], bool]) -> None:
        self._store = store
        self._fits = fits
        self._known: dict[str, Page | None] = {}

    def of(self, entry: Entry) -> Page | None:
        if entry.whole not in self._known:
            self._known[entry.whole] = next(filter(self._fits, self._occurrences(entry)), None)
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


def _is_within(only: Filter, page: Page) -> bool:
    """The conditions that the index does not know of every occurrence."""
    return (
        (only.turns is None or only.turns[0] <= page.turn <= only.turns[1])
        and (only.since is None or only.since <= page.time)
        and (only.until is None or page.time < only.until)
    )


def _follow_and_find(
    query: Query, store: Store, index: Index, deadline: Deadline, fits: Callable[[Page], bool]
) -> tuple[int, PageHits]:
    """How far the index came in a share of the time, and what it finds in another."""
    follow(store, index, deadline.share(_FOLLOWING_SHARE).at, deadline.clock)
    reached = followed(store, index)
    left = deadline.share(_FINDING_SHARE).at - deadline.clock()
    timed = replace(query, deadline=max(0.0, min(_FINDING_SECONDS * deadline.patience, left)))
    return reached, find(timed, store, index, fits, deadline.clock)


def _read(best: Iterable[PageHit], store: Store) -> Iterator[PageHit]:
    for each in best:
        told = page_text(store, each.page)
        if told.own:
            yield replace(each, text=told.text)


def _scaled(found: Iterable[PageHit]) -> list[PageHit]:
    """Scores as shares of the best one."""
    every = list(found)
    best = max((each.score for each in every), default=0.0) or 1.0
    return [replace(each, score=each.score / best) for each in every]


def _by_gist(
    pages: Sequence[Page], wanted: Sequence[Term], store: Store, deadline: Deadline
) -> list[Page]:
    scores: list[float] = []
    for page in pages:
        if deadline.passed:
            break
        scores.append(_gist_score(store.gist(page.id), wanted))
    scores += [_UNKNOWN] * (len(pages) - len(scores))
    return [
        pages[number] for number in sorted(range(len(pages)), key=lambda number: -scores[number])
    ]


def _gist_score(gist: Gist | None, wanted: Sequence[Term]) -> float:
    if gist is None:
        return _UNKNOWN
    low = lowered(" ".join((*gist.files, *gist.entities, *gist.keywords)))
    return sum(term.weight for term in wanted if term.text in low)


_Looked = tuple[Page, str, tuple[int, ...]]
"""A page, its text, and how often each term stands in it."""


def _look(
    pages: Sequence[Page], wanted: Sequence[Term], store: Store, deadline: Deadline
) -> list[_Looked]:
    looked: list[_Looked] = []
    left = _MOST_BYTES
    for page in pages:
        left -= page.size
        if looked and (deadline.passed or left < 0):
            break
        told = page_text(store, page)
        seen = told.text[:_LOOKED_AT] if told.own else ""
        low = lowered(seen)
        looked.append(
            (page, told.text, tuple(sum(1 for _ in hits(seen, low, term)) for term in wanted))
        )
    return looked


def _scores(looked: Sequence[_Looked], wanted: Sequence[Term]) -> Iterator[float]:
    """BM25 over what was looked at."""
    lengths = [min(len(text), _LOOKED_AT) for _, text, _ in looked]
    mean = sum(lengths) / len(looked) or 1.0
    spoken = [sum(1 for _, _, often in looked if often[number]) for number in range(len(wanted))]
    rare = [
        term.weight * math.log(1 + (len(looked) - many + 0.5) / (many + 0.5))
        for term, many in zip(wanted, spoken, strict=True)
    ]
    for size, (_, _, often) in zip(lengths, looked, strict=True):
        length = 1 - _LENGTH + _LENGTH * size / mean
        yield sum(
            weight * times * (_SATURATION + 1) / (times + _SATURATION * length)
            for weight, times in zip(rare, often, strict=True)
            if times
        )
