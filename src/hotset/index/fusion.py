"""One order from two signals. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter, mul, neg

import msgspec

from hotset.nouns.search import Sort

WORDS_WEIGHT: Mapping[Sort, float] = {
    Sort.TOOL: 1.0,
    Sort.MEMORY: 0.7,
    Sort.PAGE: 1.0,
    Sort.CODE: 1.2,
    Sort.RECORD: 1.0,
}
"""Weight of words relative to meaning. Code is best between 0.7 and 1.5, on docstrings and their
functions; tools between 0.5 and 1.5, without the words of chat."""

_NAMED = 0.6  # deviations for a file whose whole name the question says
_OTHERS = 0.2  # of what other finds of the same file have, the second a half, the third a third
_MOST_OTHERS = 4
_BY_SCORE = itemgetter(0, 1)


class FusedHit(
    msgspec.Struct, frozen=True
):  # hundreds a search; made in a third of the time of a tuple with names
    """An entry that a signal found."""

    doc: int
    score: float
    sort: Sort
    path: int | None = None
    """Its number, where the entry is folded."""


class RankedHit(msgspec.Struct, frozen=True):
    found: FusedHit
    score: float
    by_words: float | None
    by_meaning: float | None

    @property
    def doc(self) -> int:
        return self.found.doc


def fuse(words: Iterable[FusedHit], meaning: Iterable[FusedHit]) -> list[RankedHit]:
    """Each signal in its own deviations from its own mean, weighed by the sort of the entry; best
    first.

    Of an entry that a signal names twice the last counts. On 700 docstrings and 4,000 functions
    this put the right one at a mean reciprocal rank of .573, scores between 0 and 1 at .569,
    reciprocal ranks at .549, words alone at .523 and meaning alone at .476.
    """
    of_words = {each.doc: each for each in words}
    of_meaning = {each.doc: each for each in meaning}
    there = of_words | of_meaning
    every_word = [None if (each := of_words.get(doc)) is None else each.score for doc in there]
    every_meaning = [None if (each := of_meaning.get(doc)) is None else each.score for doc in there]
    by_words = _deviations(every_word, narrow=len(of_words) < len(of_meaning))
    by_meaning = _deviations(every_meaning, narrow=len(of_meaning) < len(of_words))
    weights = [WORDS_WEIGHT[each.sort] for each in there.values()]
    scores = [
        (weight * word + meant) / (weight + 1.0)
        for weight, word, meant in zip(weights, by_words, by_meaning, strict=True)
    ]
    order = sorted(zip(map(neg, scores), there, scores, every_word, every_meaning, strict=True))
    return [RankedHit(there[doc], score, word, meant) for _, doc, score, word, meant in order]


def by_file(
    ranked: Sequence[RankedHit], files: Mapping[int, int], shares: Mapping[int, float]
) -> list[RankedHit]:
    """Rerank code by its files: a file named in the query is boosted, and so is the best hit in a
    file with several.

    `files` maps each entry to its file, `shares` a file to the share of its name that occurs in the
    query. On commits of four public repositories and the files that they changed, NDCG@10 rose from
    .534 to .554, on docstrings of two and their functions from .571 to .572. More for other finds
    (0.4) gave .556 and .568, more for names (1.0) .560 and .571.
    """
    of_file: dict[int, list[int]] = {}
    scores = [each.score for each in ranked]
    for at, each in enumerate(ranked):
        if (file := files.get(each.doc)) is not None:
            of_file.setdefault(file, []).append(at)
            scores[at] += _NAMED * shares.get(file, 0.0)
    for first, *others in of_file.values():  # ranked: the first of a file is its best
        if others:
            rest = (max(0.0, ranked[at].score) for at in others[:_MOST_OTHERS])
            scores[first] += _OTHERS * sum(score / place for place, score in enumerate(rest, 2))
    order = sorted(
        zip(map(neg, scores), (each.doc for each in ranked), ranked, strict=True), key=_BY_SCORE
    )
    return [
        RankedHit(each.found, -score, each.by_words, each.by_meaning) for score, _, each in order
    ]


def _deviations(scores: Sequence[float | None], *, narrow: bool) -> list[float]:
    """An entry that a signal did not find gets its lowest score; 0 if the signal found fewer than
    the other."""
    found = [score for score in scores if score is not None]
    if not found:
        return [0.0] * len(scores)
    floor = min(0.0, *found) if narrow else min(found)
    every = [floor if score is None else score for score in scores]
    mean = sum(every) / len(every)
    apart = [score - mean for score in every]
    spread = math.sqrt(
        sum(map(mul, apart, apart)) / len(every)
    )  # `statistics` takes 20 times as long
    return [each / spread for each in apart] if spread else [0.0] * len(scores)
