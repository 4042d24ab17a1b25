"""One order from two signals. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hotset.nouns.finding import Sort

WORDS_WEIGHT: Mapping[Sort, float] = {Sort.TOOL: 1.0, Sort.MEMORY: 0.7, Sort.PAGE: 1.0, Sort.CODE: 1.2}
"""What words count beside meaning.

Code is best between 0.7 and 1.5, on docstrings and their functions; tools between 0.5 and 1.5, without the words of chat.
"""

_RANK_OFFSET = 10  # of reciprocal ranks: between 5 and 20 it makes little difference, 60 flattens the first places


@dataclass(frozen=True, slots=True)
class Ranked:
    doc: int
    score: float
    by_words: float | None
    by_meaning: float | None


def fuse(words: Mapping[int, float], meaning: Mapping[int, float], sorts: Mapping[int, Sort]) -> list[Ranked]:
    """Each signal in its own deviations from its own mean, weighed by the sort of the entry; best first.

    Only entries with a sort are there. On 700 docstrings and 4,000 functions this put the right one at a mean reciprocal rank of
    .573, scores between 0 and 1 at .569, reciprocal ranks at .549, words alone at .523 and meaning alone at .476.
    """
    there = {doc for doc in (*words, *meaning) if doc in sorts}
    by_words, by_meaning = _deviations(words, there, meaning), _deviations(meaning, there, words)
    ranked = []
    for doc in there:
        weight = WORDS_WEIGHT[sorts[doc]]
        score = (weight * by_words.get(doc, 0.0) + by_meaning.get(doc, 0.0)) / (weight + 1.0)
        ranked.append(Ranked(doc, score, words.get(doc), meaning.get(doc)))
    return sorted(ranked, key=lambda each: (-each.score, each.doc))


def by_rank(*orders: Sequence[int]) -> dict[int, float]:
    """Reciprocal ranks, for signals whose scores say nothing about each other."""
    scores: dict[int, float] = {}
    for order in orders:
        for place, doc in enumerate(order):
            scores[doc] = scores.get(doc, 0.0) + 1.0 / (_RANK_OFFSET + place + 1)
    return scores


def _deviations(scores: Mapping[int, float], there: Collection[int], other: Mapping[int, float]) -> dict[int, float]:
    """What a signal did not find counts as the least that it found; as nothing, where it could have found more."""
    found = [scores[doc] for doc in there if doc in scores]
    if not found:
        return {}
    floor = min(0.0, *found) if len(scores) < len(other) else min(found)
    every = {doc: scores.get(doc, floor) for doc in there}
    mean = sum(every.values()) / len(every)
    spread = math.sqrt(sum((score - mean) ** 2 for score in every.values()) / len(every))  # `statistics` takes 20 times as long
    return {doc: (score - mean) / spread if spread else 0.0 for doc, score in every.items()}
