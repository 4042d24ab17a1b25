"""How well a text answers each word of a question: the table's vectors word against word, instead
of sum against sum.

For the few texts that a search has found: a sum forgets which of its words was meant, and a long
text hides the one that fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotset.index.embed.table import WordVectors
from hotset.index.embed.threads import one_thread
from hotset.index.embed.wordpiece import counts_of

_MOST_TOKENS = 256  # of a text, as it begins


class TokenMaxSim:
    """Use it from any thread."""

    def __init__(self, table: WordVectors) -> None:
        self._table = table

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """For each text the mean, over the question's tokens, of the cosine with the nearest token
        of the text.

        A token weighs as the square of what it adds to the sum of a text: on four sets of tools
        NDCG@10 was 53.0 by that alone, and 47.9 with the weight as it is.
        """
        tokens, _, ends = counts_of([question, *texts], _MOST_TOKENS)
        asked, told = tokens[: ends[0]], tokens[ends[0] :]
        if not len(asked) or not len(told):
            return [0.0] * len(texts)
        different, place = np.unique(told, return_inverse=True)
        directions, weights = self._table.directions(asked)
        others, _ = self._table.directions(different)
        with one_thread():
            cosines = directions @ others.T
        shares = weights**2 / max(float((weights**2).sum()), 1e-12)
        begins = np.array(ends[:-1]) - ends[0]
        return _best_of_each(cosines, place, begins, len(told), shares)


def _best_of_each(cosines: Any, place: Any, begins: Any, end: int, shares: Any) -> list[float]:
    lengths = np.diff(begins, append=end)
    there = lengths > 0
    best: NDArray[np.float32] = np.zeros((len(cosines), len(begins)), np.float32)
    best[:, there] = np.maximum.reduceat(cosines[:, place], begins[there], axis=1)
    scores: list[float] = (shares @ best).tolist()
    return scores
