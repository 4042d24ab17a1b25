"""Which of many pages speak of something, without an index: gists say where to look first, contents decide, in limited time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hotset.nouns.page import Gist, Kind, Page
from hotset.runtime.retrieval_telling import tell
from hotset.sources.history.pages import is_ours
from hotset.store.port import Store
from hotset.text.terms import Term, hits, terms
from hotset.text.words import lowered

_GIST_SHARE = 0.4  # of the time, for the gists
_LOOKED_AT = 1 << 20  # characters of one page
_MOST_BYTES = 64 << 20  # of contents, however much time there is
_SATURATION, _LENGTH = 1.2, 0.5
_UNKNOWN = 0.5  # of a term's weight, for a page that has no gist yet: before those that do not speak of it, behind those that do


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
class Ranking:
    best: list[tuple[float, Page, str]]
    """Score, page and text, best first; the newest first among equals."""
    missed: int = 0
    """Pages for which there was no time."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A page that speaks of it."""

    score: float
    """1 for the best."""
    page: Page
    text: str
    lines: tuple[int, int]
    """Where it does; (0, 0) where that is not known."""
    by_words: bool
    """In words of the question; otherwise in others."""


@dataclass(frozen=True, slots=True)
class _Looked:
    page: Page
    text: str
    often: tuple[int, ...]
    """How often each term stands in it."""


def ranked_pages(query: str, pages: Sequence[Page], store: Store, deadline: Deadline) -> Ranking:
    """The pages that speak of the query. They come newest first; each content counts once."""
    wanted = terms(query)
    told = (page for page in reversed(pages) if page.kind is not Kind.IMAGE and not is_ours(page))
    unlike = list({page.digest: page for page in told}.values())[::-1]
    order = _by_gist(unlike, wanted, store, deadline.share(_GIST_SHARE))
    looked = _look(order, wanted, store, deadline)
    if not looked:
        return Ranking([])
    newest = {page.id: number for number, page in enumerate(unlike)}
    scored = ((score, each) for each, score in zip(looked, _scores(looked, wanted), strict=True) if score > 0)
    best = sorted(scored, key=lambda pair: (-round(pair[0], 6), newest[pair[1].page.id]))
    return Ranking([(score, each.page, each.text) for score, each in best], len(unlike) - len(looked))


def _by_gist(pages: Sequence[Page], wanted: Sequence[Term], store: Store, deadline: Deadline) -> list[Page]:
    scores: list[float] = []
    for page in pages:
        if deadline.passed:
            break
        scores.append(_gist_score(store.gist(page.id), wanted))
    scores += [_UNKNOWN] * (len(pages) - len(scores))
    return [pages[number] for number in sorted(range(len(pages)), key=lambda number: -scores[number])]


def _gist_score(gist: Gist | None, wanted: Sequence[Term]) -> float:
    if gist is None:
        return _UNKNOWN
    told = " ".join((*gist.files, *gist.entities, *gist.keywords))
    low = lowered(told)
    return sum(term.weight for term in wanted if term.text in low)


def _look(pages: Sequence[Page], wanted: Sequence[Term], store: Store, deadline: Deadline) -> list[_Looked]:
    looked: list[_Looked] = []
    left = _MOST_BYTES
    for page in pages:
        left -= page.size
        if looked and (deadline.passed or left < 0):
            break
        told = tell(store, page)
        seen = told.text[:_LOOKED_AT] if told.own else ""
        low = lowered(seen)
        looked.append(_Looked(page, told.text, tuple(sum(1 for _ in hits(seen, low, term)) for term in wanted)))
    return looked


def _scores(looked: Sequence[_Looked], wanted: Sequence[Term]) -> list[float]:
    """BM25 over what was looked at."""
    mean = sum(min(len(each.text), _LOOKED_AT) for each in looked) / len(looked) or 1.0
    spoken = [sum(1 for each in looked if each.often[number]) for number in range(len(wanted))]
    rare = [
        term.weight * math.log(1 + (len(looked) - many + 0.5) / (many + 0.5)) for term, many in zip(wanted, spoken, strict=True)
    ]

    def score(each: _Looked) -> float:
        length = 1 - _LENGTH + _LENGTH * min(len(each.text), _LOOKED_AT) / mean
        return sum(
            weight * often * (_SATURATION + 1) / (often + _SATURATION * length)
            for weight, often in zip(rare, each.often, strict=True)
            if often
        )

    return [score(each) for each in looked]
