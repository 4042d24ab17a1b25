"""Vectors of what is asked: by the documents' own embedder, or by one that reads more closely where
that helps and fits."""

from __future__ import annotations

import numpy as np

from hotset.errors import BadInput
from hotset.files.lru import Lru
from hotset.index.analysis import analyse_query
from hotset.index.embed.port import Embedder
from hotset.index.vectors import Floats
from hotset.index.writing import embed_checked
from hotset.nouns.finding import Query, Sort

_KEPT = 256  # vectors of the last questions
_CLOSE_SECONDS = 0.1  # less leaves no time for that and for the search itself
_CLOSE_CHARACTERS = (
    400  # 31 ms of one core, 8 for a few words; and a long text has words enough for the table
)
_CODE_ALONE = frozenset({Sort.CODE})


class QueryVectors:
    """Use it from any thread."""

    def __init__(self, documents: Embedder, asking: Embedder | None = None) -> None:
        """`asking` gives vectors of the documents' space."""
        if asking is not None and asking.id != documents.id:
            raise BadInput(f"vectors of {asking.id} cannot ask for those of {documents.id}")
        self._documents = documents
        self._asking = asking
        self._known: Lru[tuple[bool, str], Floats] = Lru(count=_KEPT)

    def vector(self, query: Query) -> Floats:
        text = analyse_query(query.words).text
        reader = self._reader(query)
        return self._known.get_or_make(
            (reader is self._asking, text), lambda: _vector_of(text, reader)
        )

    def _reader(self, query: Query) -> Embedder:
        # Asked by the mean of table and MiniLM, code gave .555 instead of .569 (mean of 1/place),
        # tools .644 instead of .590.
        helps = query.only.sorts != _CODE_ALONE
        fits = query.deadline >= _CLOSE_SECONDS and len(query.words) <= _CLOSE_CHARACTERS
        return self._asking if self._asking is not None and helps and fits else self._documents


def _vector_of(text: str, reader: Embedder) -> Floats:
    made: Floats = embed_checked(reader, [text])[0]
    if not np.isfinite(made).all():
        raise BadInput(f"the embedder {reader.id} gave something that is not a number")
    return made
