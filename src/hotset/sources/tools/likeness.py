"""How well a tool answers each word of a question, and how much of its name the question speaks of: word against word.

Both lie between 0 and 1 and mean the same in a library of ten tools and of ten thousand, which no order of a search does: they
tell a tool that fits from one that is only the nearest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hotset.index.embed.table import Table
from hotset.index.embed.threads import one_thread
from hotset.index.embed.wordpiece import counts_of
from hotset.sources.tools.likelihood import Likeness

_MOST_TOKENS = 256  # of a text, as it begins


class Likening:
    """Use it from any thread."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def of(self, question: str, tools: Sequence[tuple[str, str]]) -> list[Likeness]:
        """Of each tool's name and text, in words, to the question.

        A token of the one side counts with the cosine of the token of the other side that is nearest to it, and weighs as the
        square of what it adds to the sum of a text: on four sets of tools NDCG@10 was 53.0 by `answered` alone, and 47.9 with the
        weight as it is.
        """
        names, texts = [name for name, _ in tools], [f"{name}\n{text}" for name, text in tools]
        tokens, _, ends = counts_of([question, *texts, *names], _MOST_TOKENS)
        asked = tokens[: ends[0]]
        if not len(asked) or not tools:
            return [Likeness()] * len(tools)
        different, place = np.unique(tokens[ends[0] :], return_inverse=True)
        directions, weights = self._table.directions(asked)
        others, their_weights = self._table.directions(different)
        with one_thread():
            cosines = directions @ others.T
        begins = np.array(ends[:-1]) - ends[0]
        lengths = np.diff(np.array(ends))
        many = len(tools)
        best = _largest(cosines[:, place], begins[:many], lengths[:many])
        answered = _shares(weights**2) @ best
        named = _means(cosines.max(0)[place], their_weights[place] ** 2, begins[many:], lengths[many:])
        return [Likeness(*pair) for pair in zip(answered.tolist(), named.tolist(), strict=True)]


_Floats = NDArray[np.float32]
_Places = NDArray[np.intp]


def _largest(values: _Floats, begins: _Places, lengths: _Places) -> _Floats:
    """Of each row, the largest of each stretch; 0 where a stretch is empty."""
    best = np.zeros((len(values), len(begins)), np.float32)
    there = lengths > 0
    if there.any():
        end = begins[there][-1] + lengths[there][-1]
        best[:, there] = np.maximum.reduceat(values[:, :end], begins[there], axis=1)
    return best


def _means(values: _Floats, weights: _Floats, begins: _Places, lengths: _Places) -> _Floats:
    """Of each stretch, weighed; 0 where it is empty."""
    means = np.zeros(len(begins), np.float32)
    there = lengths > 0
    if there.any():
        sums = np.add.reduceat(np.stack([values * weights, weights]), begins[there], axis=1)
        means[there] = sums[0] / np.maximum(sums[1], 1e-12)
    return means


def _shares(weights: _Floats) -> _Floats:
    shares: _Floats = weights / max(float(weights.sum()), 1e-12)
    return shares
