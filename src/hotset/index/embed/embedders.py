"""The configured embedders, and a model that embeds questions for documents embedded by the
table."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hotset.errors import BadConfig
from hotset.index.embed.minilm import MiniLm, find_weights
from hotset.index.embed.port import Embedder, Vectors, normalise
from hotset.nouns.embedding import AUTO, OFF, Embedding

_log = logging.getLogger("hotset")


@dataclass(frozen=True, slots=True)
class Embedders:
    documents: Embedder
    asking: Embedder | None = None
    """Embeds questions better, in the documents' vector space; None if there is no such model."""


def embedders(chosen: Embedding) -> Embedders:
    """Load them: MiniLM takes 0.2 s and 130 MB. Raises `BadConfig` for an unusable file or
    address."""
    if chosen.url:
        from hotset.index.embed.endpoint import Endpoint, EndpointAddress  # noqa: PLC0415 - few have one

        return Embedders(
            Endpoint(EndpointAddress(chosen.url, chosen.model, chosen.size, chosen.key or None))
        )
    from hotset.index.embed.table import WordVectors  # noqa: PLC0415 - an endpoint needs none

    table = WordVectors()
    model = _minilm(chosen.minilm)
    return Embedders(table) if model is None else Embedders(table, QueryEmbedder(table, model))


def _minilm(named: str) -> MiniLm | None:
    if named == OFF:
        return None
    if named != AUTO:
        return MiniLm(Path(named))
    file = find_weights()
    try:
        return MiniLm(file) if file is not None else None
    except BadConfig as error:  # it was not asked for by name: the table serves alone
        _log.warning("%s", error)
        return None


class QueryEmbedder:
    """An `Embedder` of questions: the mean of the documents' embedder and of a model in the same
    vector space.

    It has the documents' identity: its vectors compare with theirs, and no index is rebuilt when
    the model comes or goes.
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
