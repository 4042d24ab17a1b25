"""The hot entries, read once more by whoever reads questions: slowly, while nobody works. Their
vectors stay in memory.

As long as an entry is hot, in the process where it is: nothing of it is on the disk, and whoever
folds knows nothing of it.
"""

from __future__ import annotations

import threading

import numpy as np

from hotset.errors import BadInput
from hotset.index.embed.port import Embedder
from hotset.index.filters import matches_filter
from hotset.index.hybrid import FusedHit
from hotset.index.tiers import HotEntries
from hotset.index.vectors import Floats
from hotset.index.writing import embed_checked, embedded_text
from hotset.nouns.finding import Filter

_FAIR = 0.97
"""What a cosine with an entry that was read closely is worth beside the others'.

Such an entry is a little nearer to everything. On 1,200 docstrings and as many functions of
Python's library, the mean of 1/place of what was hot rose from .50 to .56 and from .53 to .61; that
of the rest fell by .01, and without the factor by up to .02.
"""


class HotReranker:
    """Use it from any thread; one at a time reads."""

    def __init__(self, asking: Embedder, hot: HotEntries) -> None:
        self._asking = asking
        self._hot = hot
        self._lock = threading.Lock()
        self._read: dict[int, Floats] = {}

    def read_one(self) -> bool:
        """Was there an entry that had not been read?"""
        hot = dict(self._hot.every())
        with self._lock:
            self._read = {doc: vector for doc, vector in self._read.items() if doc in hot}
            unread = next((doc for doc in hot if doc not in self._read), None)
        if unread is None:
            return False
        made: Floats = embed_checked(self._asking, [embedded_text(hot[unread])])[0]
        if not np.isfinite(made).all():
            raise BadInput(f"the embedder {self._asking.id} gave something that is not a number")
        with self._lock:
            self._read[unread] = made
        return True

    def found(self, query: Floats, only: Filter) -> list[FusedHit]:
        """How near those are that were read and fit, on the scale of the documents' own vectors."""
        with self._lock:
            read = dict(self._read)
        every = self._hot.every() if read else []
        fitting = {
            doc: entry.sort for doc, entry in every if doc in read and matches_filter(only, entry)
        }
        if not fitting:
            return []
        cosines = _FAIR * np.einsum("ij,j->i", np.stack([read[doc] for doc in fitting]), query)
        return [
            FusedHit(doc, cosine, sort)
            for (doc, sort), cosine in zip(fitting.items(), cosines.tolist(), strict=True)
        ]
