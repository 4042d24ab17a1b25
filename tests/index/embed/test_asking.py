"""Questions of a model for documents of the table."""

import numpy as np
import pytest

from hotset.errors import BadConfig
from hotset.index.embed.embedders import QueryEmbedder
from hotset.index.embed.table import WordVectors


class Pointing:
    """An embedder that sends every text in one direction."""

    id = "pointing"

    def __init__(self, size: int) -> None:
        self.size = size

    def embed(self, texts):
        vectors = np.zeros((len(texts), self.size), np.float32)
        vectors[:, 0] = 1
        return vectors


def test_a_question_lies_between_what_the_two_say_and_belongs_to_the_documents():
    table = WordVectors()
    asking = QueryEmbedder(table, Pointing(table.size))
    [alone], [both] = (
        table.embed(["where is the cache cleared?"]),
        asking.embed(["where is the cache cleared?"]),
    )
    assert np.linalg.norm(both) == pytest.approx(1, abs=1e-6)
    assert both @ alone == pytest.approx(both[0], abs=1e-6)
    assert both @ alone > alone[0]
    assert (asking.id, asking.size) == (table.id, table.size)


def test_a_model_of_another_size_cannot_ask():
    with pytest.raises(BadConfig, match="vectors of 3 numbers"):
        QueryEmbedder(WordVectors(), Pointing(3))
