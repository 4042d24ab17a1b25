"""Events out of bytes that arrive cut anywhere."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from hotset.dialects.sse import Splitter, SseEvent, events
from hotset.errors import Malformed
from tests.campaign import sample
from tests.dialects import recordings

_line = st.one_of(
    st.sampled_from(
        [
            b"",
            b"data: x",
            b"data:y",
            b"data",
            b"data:  two",
            b": comment",
            b"event: e",
            b"id: 7",
            b"retry: 10",
            b"odd line",
        ]
    ),
    st.binary(max_size=12).map(lambda raw: b"data: " + raw.replace(b"\r", b"").replace(b"\n", b"")),
)
_streams = st.lists(st.tuples(_line, st.sampled_from([b"\n", b"\r", b"\r\n"])), max_size=20).map(
    lambda lines: b"".join(line + end for line, end in lines)
)


def _split(chunks):
    splitter = Splitter()
    found = [event for chunk in chunks for event in splitter.feed(chunk)]
    return found + splitter.close()


@settings(max_examples=sample(150, 400), deadline=None)
@given(
    stream=st.one_of(_streams, st.binary(max_size=80)),
    cuts=st.lists(st.integers(0, 400), max_size=12),
    bom=st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
def test_any_cut_of_a_stream_yields_the_same_events(stream, cuts, bom):
    stream = bom + stream
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[start:end] for start, end in pairwise(edges)]
    whole = _split([stream])
    assert _split(chunks) == whole
    assert _split([stream[index : index + 1] for index in range(len(stream))]) == whole
    assert list(events(stream)) == whole


@pytest.mark.parametrize(
    ("name", "file"), [(name, file) for name, file in recordings.REPLIES if file.endswith(".sse")]
)
def test_a_recorded_stream_yields_the_same_events_byte_by_byte(name, file):
    stream = recordings.recording(name, file)
    assert _split([stream[index : index + 1] for index in range(len(stream))]) == _split([stream])
    assert _split([stream.replace(b"\r\n", b"\n").replace(b"\n", b"\r")]) == _split([stream])


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\n", [SseEvent("", b"a")]),
        (b"data:a\ndata: b\ndata\n\n", [SseEvent("", b"a\nb\n")]),
        (b"event: x\ndata: 1\n\ndata: 2\n\n", [SseEvent("x", b"1"), SseEvent("", b"2")]),
        (b"event: x\n\ndata: 2\n\n", [SseEvent("", b"2")]),
        (b": hello\n\n:\n\ndata: 1\n\n", [SseEvent("", b"1")]),
        (
            b"id: 5\nretry: 3\ndata: 1\r\n\r\ndata: 2\r\r",
            [SseEvent("", b"1", "5"), SseEvent("", b"2", "5")],
        ),
        (b"\xef\xbb\xbfdata: 1\n\n", [SseEvent("", b"1")]),
        (b"data: caf\xff\n\n", [SseEvent("", b"caf\xff")]),
        (b"event: \xff\ndata: 1\n\n", [SseEvent("\ufffd", b"1")]),
        (b"data: [DONE]", [SseEvent("", b"[DONE]")]),
        (b"data: a\r\ndata: b\r\n\r\n", [SseEvent("", b"a\nb")]),
        (b"", []),
        (b"\n\n\r\n", []),
    ],
)
def test_a_stream_is_read_as_the_standard_says(stream, expected):
    assert _split([stream]) == expected


def test_an_event_without_end_is_refused_and_not_gathered_for_ever():
    splitter = Splitter(max_event=1000)
    assert splitter.feed(b"data: " + b"x" * 900 + b"\n\n")
    for _ in range(10):
        splitter.feed(b"x" * 100)
    with pytest.raises(Malformed, match="more than 1000 bytes"):
        splitter.feed(b"x")


def test_comments_that_come_for_hours_are_no_large_event():
    splitter = Splitter(max_event=1000)
    for _ in range(1000):
        assert splitter.feed(b": still here\n") == []
    assert splitter.feed(b"data: 1\n\n") == [SseEvent("", b"1")]


def test_a_line_that_arrives_in_a_hundred_thousand_pieces_takes_no_longer_than_its_bytes():
    splitter = Splitter()
    splitter.feed(b"data: ")
    for _ in range(100_000):
        splitter.feed(b"xx")
    assert splitter.feed(b"\n\n") == [SseEvent("", b"x" * 200_000)]
