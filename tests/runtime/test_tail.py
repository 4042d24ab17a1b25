"""Where a stream is held, whatever it is cut into."""

from __future__ import annotations

import gzip
import json
import random
import zlib

import pytest

from hotset.dialects import DIALECTS
from hotset.dialects.port import Mark
from hotset.dialects.sse import events
from hotset.nouns.message import DialectName
from hotset.runtime.reply_bytes import StreamTail, salvage
from hotset.store.tables import zstd
from tests.dialects.recordings import REPLIES, recording

STREAMS = [(name, file) for name, file in REPLIES if file.endswith(".sse")]
CHAT = DIALECTS[DialectName.OPENAI_CHAT]


def _told(dialect, body):
    return any(
        dialect.mark(event.name, event.data) & (Mark.STOP | Mark.LAST) for event in events(body)
    )


def _cut(body, rng):
    while body:
        size = rng.choice((1, 2, 3, 7, 40, 400, 4000))
        yield body[:size]
        body = body[size:]


@pytest.mark.parametrize("line", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize(("name", "file"), STREAMS)
def test_all_but_the_end_goes_at_once_and_nothing_is_changed(name, file, line):
    dialect, rng = DIALECTS[name], random.Random(file)
    body = recording(name, file).replace(b"\r\n", b"\n").replace(b"\n", line)
    for _ in range(10):
        tail, shown = StreamTail(dialect, ""), b""
        for chunk in _cut(body, rng):
            shown += tail.feed(chunk)
            assert tail.is_stopped or body.startswith(shown)
        assert not _told(dialect, shown)
        assert _told(
            dialect, shown + next(iter(body[len(shown) :].split(line * 2))) + line * 2
        )  # the very next event is the end
        assert shown + tail.rest() == body
        assert tail.is_plain


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
@pytest.mark.parametrize(("name", "file"), STREAMS)
def test_a_compressed_stream_is_held_from_the_bytes_on_that_hold_the_end(name, file, coding):
    dialect, rng = DIALECTS[name], random.Random(file)
    packer = {
        "gzip": lambda: zlib.compressobj(wbits=31),
        "deflate": zlib.compressobj,
        "zstd": zstd.ZstdCompressor,
    }[coding]()
    flush = (zlib.Z_SYNC_FLUSH,) if coding != "zstd" else (zstd.ZstdCompressor.FLUSH_BLOCK,)
    said = recording(name, file).replace(b"\r\n", b"\n").split(b"\n\n")
    pieces = [packer.compress(event + b"\n\n") + packer.flush(*flush) for event in said if event]
    pieces.append(packer.flush())
    for chunks in (pieces, list(_cut(b"".join(pieces), rng))):
        tail, shown = StreamTail(dialect, coding), b""
        for chunk in chunks:
            shown += tail.feed(chunk)
        assert tail.is_stopped
        assert not tail.is_plain
        assert shown == b"" or not _told(dialect, salvage(shown, coding))
        assert chunks is not pieces or shown  # what came before it went
        assert shown + tail.rest() == b"".join(chunks)


def _chunk(text="", stop=None, index=0):
    return (
        b"data: %s\n\n"
        % json.dumps(
            {"choices": [{"index": index, "delta": {"content": text}, "finish_reason": stop}]}
        ).encode()
    )


def test_a_provider_that_calls_every_chunk_the_last_is_one_chunk_behind():
    tail = StreamTail(CHAT, "")
    chunks = [_chunk(text, "stop") for text in "abc"]
    assert [tail.feed(chunk) for chunk in chunks] == [b"", chunks[0], chunks[1]]
    assert tail.feed(b"data: [DONE]\n\n") == b""
    assert tail.is_whole
    assert tail.release() == chunks[2] + b"data: [DONE]\n\n"


def test_of_several_choices_the_last_to_end_is_the_end():
    tail = StreamTail(CHAT, "")
    first, second = _chunk(stop="stop"), _chunk("more", index=1)
    assert tail.feed(first) == b""
    assert tail.feed(second) == first + second
    assert tail.feed(_chunk(stop="stop", index=1)) == b""


def test_counts_behind_the_end_are_held_with_it():
    tail = StreamTail(CHAT, "")
    last, counts = _chunk(stop="stop"), b'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n'
    assert tail.feed(last) + tail.feed(counts) + tail.feed(b": ping\n\n") == b""
    assert not tail.is_whole
    assert tail.rest() == last + counts + b": ping\n\n"


def test_what_is_no_event_stream_passes_but_for_its_latest_bytes():
    tail, pieces = StreamTail(CHAT, ""), [b"<p>%d" % n + b"x" * 40_000 for n in range(4)]
    assert b"".join(map(tail.feed, pieces)) == b"".join(pieces[:-1])
    assert tail.rest() == pieces[-1]
    assert not tail.is_plain


@pytest.mark.parametrize("coding", ["br", "gzip", "zstd"])
def test_what_cannot_be_unpacked_passes_but_for_its_latest_bytes(coding):
    tail, pieces = StreamTail(CHAT, coding), [b"\x01nothing of that kind", b"more", b"end"]
    assert b"".join(map(tail.feed, pieces)) == b"\x01nothing of that kindmore"
    assert tail.rest() == b"end"


@pytest.mark.slow
def test_a_bomb_is_not_unpacked():
    packed = gzip.compress(b"\0" * (64 << 20))
    tail = StreamTail(CHAT, "gzip")
    assert tail.feed(packed[: 32 << 10]) + tail.feed(packed[32 << 10 :]) + tail.rest() == packed
