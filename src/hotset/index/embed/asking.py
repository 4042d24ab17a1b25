"""Questions read by a model, for documents that the table embedded."""

from __future__ import annotations

from collections.abc import Sequence

from hotset.errors import BadConfig
from hotset.index.embed.port import Embedder, Vectors, normalise


class QueryEmbedder:
    """An `Embedder` of questions: the mean of the documents' embedder and of a model in the same
    vector space.

    It has the documents' identity: what it gives compares with their vectors, and no index is made
    anew when the model comes or goes.
    """

    def __init__(self, documents: Embedder, model: Embedder) -> None:
        if documents.size != model.size:
            raise BadConfig(
                f"{model.id} has vectors of {model.size} numbers and cannot ask for documents "
                f"of {documents.size}"
            )
        self._documents = documents
        self._model = model

    @property
    def id(self) -> str:
        return self._documents.id

    @property
    def size(self) -> int:
        return self._documents.size

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = self._documents.embed(texts)
        vectors += self._model.embed(texts)
        return normalise(vectors)
