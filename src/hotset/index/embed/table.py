"""The embedder that is always there: one vector a token, weighed and summed. No model runs, and
nothing is downloaded.

The table has BERT's lower-case vocabulary and lives in the vector space of all-MiniLM-L6-v2, so
that vectors of that model (`minilm.py`) can be asked against vectors of this one.
`tools/train_table` made it and tells from what.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotset.index.embed.blas_threads import one_thread
from hotset.index.embed.port import Vectors, normalise
from hotset.index.embed.wordpiece import VOCABULARY, counts_of

_SHIPPED = Path(__file__).with_name("data")
_VERSION = 1  # of how a vector is made of the table; the table itself is known by its hash
# of a text: three times an ordinary stretch, and few enough for BLAS to stay on one thread by
# itself
_MOST_TOKENS = 512
_BATCH = 256  # texts; their tokens stay in the cache until they are summed


class WordVectors:
    """An `Embedder`. Rows of eight-bit numbers, mapped into memory and so shared by all processes;
    a weight for each."""

    def __init__(self, folder: Path = _SHIPPED) -> None:
        rows, weights = folder / "table.npy", folder / "weights.npy"
        # A plain view: indexing the memmap itself goes through Python.
        self._rows: NDArray[np.int8] = np.load(rows, mmap_mode="r").view(np.ndarray)
        self._weights: NDArray[np.float32] = np.load(weights)
        self._id = f"table-{_VERSION}-{_hash(rows, weights, VOCABULARY)}"

    @property
    def id(self) -> str:
        return self._id

    @property
    def size(self) -> int:
        return int(self._rows.shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.size), np.float32)
        for start in range(0, len(texts), _BATCH):
            tokens, counts, ends = counts_of(texts[start : start + _BATCH], _MOST_TOKENS)
            # A token that comes four times counts twice: the mean of 1/place of a docstring's
            # function rose from .49 to .57.
            weights = self._weights.take(tokens) * np.sqrt(counts, dtype=np.float32)
            longest = max(end - begin for begin, end in zip([0, *ends], ends, strict=False))
            packed, spread = (
                np.empty((longest, self.size), np.int8),
                np.empty((longest, self.size), np.float32),
            )
            begin = 0
            for row, end in enumerate(ends, start):
                many = end - begin
                # Into buffers that stay in the cache: ten times as fast as `add.reduceat` over all
                # rows.
                self._rows.take(tokens[begin:end], 0, out=packed[:many], mode="clip")
                spread[:many] = packed[:many]
                np.dot(weights[begin:end], spread[:many], out=vectors[row])
                begin = end
        return normalise(vectors)

    def directions(self, tokens: NDArray[np.intp]) -> tuple[Vectors, Vectors]:
        """Each token's unit vector, and its weight in a text's sum."""
        rows = self._rows.take(tokens, 0, mode="clip").astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        return normalise(rows), self._weights.take(tokens) * lengths


@cache
def shipped_vectors() -> WordVectors:
    """The shipped table, one for the whole process."""
    return WordVectors()


def _hash(*files: Path) -> str:
    digest = sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


_MOST_MATCHED_TOKENS = 256  # of a text, as it begins


class TokenMaxSim:
    """How well a text answers each token of a question (late interaction): the table's vectors
    token against token, instead of sum against sum. Use it from any thread.

    For the few texts that a search has found: a sum forgets which of its words was meant, and a
    long text hides the one that fits.
    """

    def __init__(self, table: WordVectors) -> None:
        self._table = table

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """For each text the mean, over the question's tokens, of the cosine with the nearest token
        of the text.

        A token weighs as the square of what it adds to the sum of a text: on four sets of tools
        NDCG@10 was 53.0 by that alone, and 47.9 with the weight as it is.
        """
        tokens, _, ends = counts_of([question, *texts], _MOST_MATCHED_TOKENS)
        asked, answers = tokens[: ends[0]], tokens[ends[0] :]
        if not len(asked) or not len(answers):
            return [0.0] * len(texts)
        different, place = np.unique(answers, return_inverse=True)
        directions, weights = self._table.directions(asked)
        others, _ = self._table.directions(different)
        with one_thread():
            cosines = directions @ others.T
        shares = weights**2 / max(float((weights**2).sum()), 1e-12)
        begins = np.array(ends[:-1]) - ends[0]
        return _best_of_each(cosines, place, begins, len(answers), shares)


def _best_of_each(cosines: Any, place: Any, begins: Any, end: int, shares: Any) -> list[float]:
    lengths = np.diff(begins, append=end)
    there = lengths > 0
    best: NDArray[np.float32] = np.zeros((len(cosines), len(begins)), np.float32)
    best[:, there] = np.maximum.reduceat(cosines[:, place], begins[there], axis=1)
    scores: list[float] = (shares @ best).tolist()
    return scores
