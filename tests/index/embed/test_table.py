"""The table that ships with the package: any text, at once, to the same vector every time."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hotset.index.embed import table as module
from hotset.index.embed.table import WordVectors
from hotset.index.embed.wordpiece import tokens_of

TEXTS = [
    "def read_config(path): return tomllib.load(path)",
    "The weather in Paris is mild.",
    "",
    "naïve Straße 日本",
    "a" * 100_000,
]


@pytest.fixture(scope="module")
def table() -> WordVectors:
    return WordVectors()


def test_a_vector_has_length_one_and_that_of_an_empty_text_is_zero(table):
    vectors = table.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), table.size) == (5, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1)[[0, 1, 3]] == pytest.approx(1, abs=1e-6)
    assert not vectors[2].any()


def test_no_texts_give_no_vectors(table):
    assert table.embed([]).shape == (0, 384)


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(st.text(st.characters(exclude_categories=()), max_size=300), max_size=6))
def test_any_text_has_a_finite_vector_that_does_not_depend_on_its_neighbours(table, texts):
    together = table.embed(texts)
    lengths = np.linalg.norm(together, axis=1)
    assert np.all((np.abs(lengths - 1) < 1e-5) | (lengths == 0))
    for text, vector in zip(texts, together, strict=True):
        assert table.embed([text])[0].tobytes() == vector.tobytes()


def test_many_texts_come_back_in_their_order(table):
    texts = [f"number {number} of a long list" for number in range(600)]
    together = table.embed(texts)
    for place in (0, 255, 256, 599):
        assert np.array_equal(together[place], table.embed([texts[place]])[0])


def test_of_an_endless_text_the_begin_counts(table):
    words = "the quick brown fox jumps over the lazy dog " * 20_000
    short, long = table.embed([words[:8192], words])
    assert np.array_equal(short, long)
    assert len(tokens_of([words], 512)[0]) == 512


def test_special_words_in_a_text_are_harmless(table):
    assert np.isfinite(table.embed(["[CLS] [PAD] [MASK] [UNK] [SEP]"])).all()


def test_another_process_gives_the_same_vectors_and_identity(table):
    program = (
        "from hotset.index.embed.table import WordVectors; t = WordVectors();"
        "print(t.id, t.embed(['what another process reads'])[0].tobytes().hex())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    ).stdout.split()
    assert told == [table.id, table.embed(["what another process reads"])[0].tobytes().hex()]


def test_threads_do_not_disturb_each_other(table):
    texts = [f"thread {number} reads and writes files" for number in range(300)]
    alone = table.embed(texts)
    seen: list[bool] = []
    threads = [
        threading.Thread(target=lambda: seen.append(np.array_equal(table.embed(texts), alone)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 4


def test_other_weights_have_another_identity(table, tmp_path):
    shipped = Path(module.__file__).with_name("data")
    rows = np.load(shipped / "table.npy")
    rows[2000, 0] ^= 1
    np.save(tmp_path / "table.npy", rows)
    np.save(tmp_path / "weights.npy", np.load(shipped / "weights.npy"))
    assert WordVectors(tmp_path).id != table.id


@pytest.mark.parametrize(
    ("question", "answer", "others"),
    [
        (
            "how do I read a configuration file?",
            "def load_settings(path): return toml.load(open(path))",
            ["def rotate(image, angle): ..."],
        ),
        (
            "What will the weather be like tomorrow?",
            "Forecast: temperature and rain of the coming days",
            ["Converts currencies"],
        ),
        (
            "delete a user account",
            "def remove_member(user_id): accounts.pop(user_id)",
            ["def draw_circle(canvas, radius): ..."],
        ),
        (
            "the test failed with a timeout",
            "error: deadline of 30 seconds exceeded while waiting",
            ["a recipe for apple pie"],
        ),
    ],
)
def test_what_means_the_same_is_nearer_than_what_does_not(table, question, answer, others):
    asked, right, *wrong = table.embed([question, answer, *others])
    assert all(asked @ right > asked @ other for other in wrong)
