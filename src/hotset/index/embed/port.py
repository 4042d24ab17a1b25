"""The `Embedder` protocol: texts to vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hotset.errors import BadInput

Vectors = NDArray[np.float32]
"""One row per text."""


class Embedder(Protocol):
    """Texts to vectors whose dot product says how alike two texts are in meaning.

    The same text gives the same vector, alone or among others: bit for bit from the table, up to
    rounding from a model. A row has length 1, or 0 where nothing of its text is known; an empty
    text is such a one. Any text is fine: of one that is too long the begin counts. May be called
    from several threads.
    """

    @property
    def id(self) -> str:
        """Name, version and hash of the weights. Vectors of two embedders whose ids differ do not
        compare."""

    @property
    def size(self) -> int:
        """Dimension of a vector."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), size)."""


def normalise(vectors: Vectors) -> Vectors:
    """Each row at length 1, in place; a row of zeros stays one. What an embedder does last."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return vectors


def embed_one(embedder: Embedder, text: str) -> NDArray[np.float32]:
    """The vector of one text. Raises `BadInput` if the embedder returns anything else."""
    made: NDArray[np.float32] = embed_checked(embedder, [text])[0]
    if not np.isfinite(made).all():
        raise BadInput(f"the embedder {embedder.id} gave something that is not a number")
    return made


def embed_checked(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Vectors of the promised form, or `BadInput`."""
    made = np.array(embedder.embed(texts), np.float32)
    if made.shape != (len(texts), embedder.size):
        raise BadInput(
            f"the embedder {embedder.id} gave {made.shape} instead of {(len(texts), embedder.size)}"
        )
    return made
