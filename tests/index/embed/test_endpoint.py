"""An endpoint that speaks OpenAI's `/embeddings`, asked over real HTTP; and one that does not speak
it well."""

import threading

import numpy as np
import pytest
from tests.embedders import endpoint

from hotset.errors import BadConfig, UpstreamFailed
from hotset.index.embed.endpoint import Endpoint, EndpointAddress

KEY = "sk-not-a-real-one"


def test_texts_come_back_as_vectors_of_length_one_in_their_order():
    with endpoint(lambda _, texts: (200, vectors_of(texts)[::-1])) as (url, seen):
        vectors = Endpoint(EndpointAddress(url, "small", 3, KEY)).embed(
            ["aaa", "b", "", "  ", "cc"]
        )
    assert vectors.dtype == np.float32
    assert vectors.shape == (5, 3)
    assert vectors[0] == pytest.approx(np.array([3, 1, 0]) / np.sqrt(10))
    assert vectors[4] == pytest.approx(np.array([2, 1, 0]) / np.sqrt(5))
    assert not vectors[2:4].any()
    [(path, headers, body)] = seen
    assert path == "/v1/embeddings"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert body == {"model": "small", "input": ["aaa", "b", "cc"], "encoding_format": "float"}


def test_many_and_long_texts_go_in_several_requests_of_bounded_size():
    texts = ["a" * (index % 50 + 1) for index in range(300)] + ["b" * 1_000_000] * 20
    with endpoint(lambda _, some: (200, vectors_of(some))) as (url, seen):
        vectors = Endpoint(EndpointAddress(url, "small", 3)).embed(texts)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1)
    sent = [body["input"] for _, _, body in seen]
    assert sum(map(len, sent)) == len(texts)
    assert max(map(len, sent)) <= 64
    assert max(sum(map(len, some)) for some in sent) <= 200_000
    assert all("authorization" not in headers for _, headers, _ in seen)


def test_nothing_is_asked_where_there_is_nothing_to_embed():
    endpoint = Endpoint(EndpointAddress("http://127.0.0.1:9", "small", 3))
    assert endpoint.embed([]).shape == (0, 3)
    assert not endpoint.embed(["", "\n"]).any()


def test_half_a_surrogate_pair_does_no_harm():
    with endpoint(lambda _, texts: (200, vectors_of(texts))) as (url, seen):
        Endpoint(EndpointAddress(url, "small", 3)).embed(["broken \ud800 text"])
    assert seen[0][2]["input"] == ["broken ? text"]


@pytest.mark.parametrize(
    ("status", "answer", "told"),
    [
        (401, {"error": {"message": f"bad key {KEY}"}}, "is the key right"),
        (404, {}, "URL"),
        (500, {}, "answered 500"),
        (302, {}, "answered 302"),
        (200, [], "gave no list of vectors"),
        (200, b"<html>", "gave no list of vectors"),
        (200, {"data": []}, "gave 0 vectors for 2 texts"),
        (200, {"data": [{"index": 0, "embedding": [1, 2, 3]}] * 2}, "numbered them wrongly"),
        (
            200,
            {"data": [{"index": i, "embedding": [1, 2]} for i in range(2)]},
            "vectors of 2 numbers; the configuration says 3",
        ),
        (
            200,
            (
                b'{"data": [{"index": 0, "embedding": [NaN, 1, 1]}, {"index": 1, "embedding": [1, '
                b"1, 1]}]}"
            ),
            "gave no list of vectors",
        ),
        (
            200,
            (
                b'{"data": [{"index": 0, "embedding": [1e300, 1, 1]}, {"index": 1, "embedding": '
                b"[1, 1, 1]}]}"
            ),
            "numbers that are none",
        ),
        (
            200,
            {"data": [{"index": i, "embedding": None} for i in range(2)]},
            "gave no list of vectors",
        ),
    ],
)
def test_an_answer_that_cannot_be_used_is_told_without_the_key_or_the_texts(status, answer, told):
    with endpoint(lambda *_: (status, answer)) as (url, _), pytest.raises(UpstreamFailed) as error:
        Endpoint(EndpointAddress(url, "small", 3, KEY)).embed(["a private text", "another"])
    assert told in str(error.value)
    assert KEY not in str(error.value)
    assert "private" not in str(error.value)


def test_a_server_that_is_not_there_or_never_answers_is_an_error_in_bounded_time():
    with pytest.raises(UpstreamFailed, match="cannot be asked"):
        Endpoint(EndpointAddress("http://127.0.0.1:9", "small", 3)).embed(["text"])
    release = threading.Event()
    with endpoint(lambda *_: (200, release.wait(10) or {})) as (url, _):
        with pytest.raises(UpstreamFailed, match="timed out"):
            Endpoint(EndpointAddress(url, "small", 3, seconds=0.05)).embed(["text"])
        release.set()


def test_the_identity_follows_the_place_the_model_and_the_size_and_not_the_key():
    same = {
        Endpoint(EndpointAddress("http://host/v1", "m", 3, key)).id for key in (None, "one", "two")
    }
    others = {
        Endpoint(EndpointAddress(*other)).id
        for other in [
            ("http://host/v2", "m", 3),
            ("http://host/v1", "n", 3),
            ("http://host/v1", "m", 4),
        ]
    }
    assert len(same) == 1
    assert len(same | others) == 4
    assert KEY not in repr(EndpointAddress("http://host/v1", "m", 3, KEY))


@pytest.mark.parametrize(
    "url",
    ["", "host/v1", "ftp://host", "http://", "http://name:word@host/v1", "http://host/v1?key=1"],
)
def test_a_url_that_cannot_be_one_is_refused(url):
    with pytest.raises(BadConfig, match="must look like"):
        Endpoint(EndpointAddress(url, "small", 3))


def vectors_of(texts):
    return [{"index": index, "embedding": [len(text), 1, 0]} for index, text in enumerate(texts)]
