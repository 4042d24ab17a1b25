"""Events keep the bytes they came with, however these were cut."""

from __future__ import annotations

import pytest

from hotset.dialects import sse
from hotset.dialects.sse import Frames

BODY = (
    b'\xef\xbb\xbf: awake\n\nevent: a\ndata: {"n":1,\ndata: "x":"y"}\nid: 7\n\n\n\ndata:two\n\n'
    b"event: last\ndata: three"
)


def _frames(body, size):
    frames, found = Frames(), []
    for start in range(0, len(body), size):
        found += frames.feed(body[start : start + size])
    rest = frames.rest()
    return [*found, *([rest] if rest else [])]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CR LF", "CR"])
@pytest.mark.parametrize("size", range(1, 9))
def test_frames_are_events_with_their_bytes_however_they_are_cut_and_whatever_ends_their_lines(
    end, size
):
    body = BODY.replace(b"\n", end)
    frames = _frames(body, size)
    assert b"".join(frame.raw for frame in frames) == body
    told = [(frame.name, frame.data) for frame in frames if frame.name or frame.data]
    assert told == [(event.name, event.data) for event in sse.events(body)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CR LF"])
def test_other_data_leaves_the_rest_of_an_event_as_it_is(end):
    _, frame, *_ = _frames(BODY.replace(b"\n", end), 1 << 10)
    assert frame.with_data(frame.data) == frame.raw
    assert frame.with_data(b'{\n"n":2}') == end.join(
        [b"event: a", b"data: {", b'data: "n":2}', b"id: 7", b"", b""]
    )


def test_what_is_no_event_stream_is_not_held_back():
    frames = Frames(max_event=100)
    assert list(frames.feed(b"x" * 100)) == []
    assert [frame.raw for frame in frames.feed(b"yz")] == [b"x" * 100 + b"yz"]
    assert frames.rest() is None
