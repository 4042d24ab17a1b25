"""Transfer compression is taken off in linear time, within bounds, off the event loop."""

from __future__ import annotations

import asyncio
import gzip
import os
import sys
import threading
import time
import zlib
from collections.abc import AsyncIterator

import pytest

from hotset.errors import Malformed, UpstreamFailed
from hotset.nouns.call import Response
from hotset.runtime.reply_bytes import MOST, decode, decode_off_loop, decompress_reply, salvage

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_CPU_SECONDS = 10.0  # it takes 0.2, and took minutes: no machine is so noisy


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "raw deflate": _raw_deflate,
    "zstd": zstd.compress,
}


@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize(
    "size", [0, 1, 255, 256, 257, 1 << 16, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20]
)
@pytest.mark.parametrize("fill", ["zeros", "noise"])
@pytest.mark.rest_slow
def test_what_was_packed_is_unpacked_whatever_its_size(name, size, fill):
    data = bytes(size) if fill == "zeros" else os.urandom(size)
    coding = name.removeprefix("raw ")
    assert decode(PACKERS[name](data), coding) == data
    assert salvage(PACKERS[name](data), coding) == data


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_members_behind_each_other_are_one_body(name):
    pieces = [os.urandom(size) for size in (0, 1, 300, 70_000, 0, 5)] * 50
    assert decode(b"".join(map(PACKERS[name], pieces)), name) == b"".join(pieces)


EMPTY = gzip.compress(b"", mtime=0)
ATTACKS = {
    "gzip members in gzip": (lambda: gzip.compress(EMPTY * 500_000), "gzip, gzip"),
    "zstd frames in zstd": (lambda: zstd.compress(zstd.compress(b"") * 1_000_000), "zstd, zstd"),
    "gzip members": (lambda: EMPTY * 500_000, "gzip"),
    "empty blocks": (lambda: EMPTY[:10] + b"\0\0\0\xff\xff" * 4_000_000, "gzip"),
    "bomb": (lambda: gzip.compress(bytes(MOST + 1), 1), "gzip"),
    "bomb in a bomb": (lambda: gzip.compress(gzip.compress(bytes(3 * MOST), 1), 1), "gzip, gzip"),
    "zstd bomb": (lambda: zstd.compress(bytes(2 * MOST), 1), "zstd"),
}


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.rest_slow
def test_a_body_that_is_made_to_take_long_is_refused_in_no_time(name):
    pack, coding = ATTACKS[name]
    body = pack()
    begun = time.thread_time()

    with pytest.raises(Malformed):
        decode(body, coding)
    assert len(salvage(body, coding)) <= max(MOST, len(body))

    assert time.thread_time() - begun < _CPU_SECONDS


def test_a_zstd_frame_that_wants_a_window_larger_than_any_body_is_refused():
    options = {
        zstd.CompressionParameter.window_log: 27,
        zstd.CompressionParameter.content_size_flag: 0,
    }
    packer = zstd.ZstdCompressor(options=options)
    body = packer.compress(b"x" * 100) + packer.flush()
    with pytest.raises(Malformed, match="not what its content-encoding says"):
        decode(body, "zstd")


def test_unpacking_ends_when_it_is_told_to():
    asked = iter([False, False, True])
    with pytest.raises(Malformed, match="stopped"):
        decode(gzip.compress(bytes(MOST - 1), 1), "gzip", lambda: next(asked))


def test_a_caller_that_is_cancelled_stops_the_thread_and_the_loop_goes_on_meanwhile():
    body = gzip.compress(bytes(MOST - 1), 1)
    before = threading.active_count()

    async def run() -> int:
        unpacking = asyncio.ensure_future(decode_off_loop(body, "gzip"))
        turns = 0
        while turns < 3:
            await asyncio.sleep(0)
            turns += 1
        unpacking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await unpacking
        return turns

    assert asyncio.run(run()) == 3  # which waits for its threads
    assert threading.active_count() <= before


def _reply(body: bytes, coding: str) -> Response:
    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 1 << 20):
            yield body[at : at + (1 << 20)]

    return Response(200, ((b"content-encoding", coding.encode()),), chunks())


def test_a_packed_reply_is_unpacked_and_one_that_is_made_to_take_long_is_an_error():
    async def read(body: bytes, coding: str) -> bytes:
        return b"".join(
            [chunk async for chunk in (await decompress_reply(_reply(body, coding))).chunks]
        )

    assert asyncio.run(read(gzip.compress(b"said"), "gzip")) == b"said"
    with pytest.raises(UpstreamFailed, match="in more than 4,096 pieces"):
        asyncio.run(read(gzip.compress(EMPTY * 500_000), "gzip, gzip"))
    with pytest.raises(UpstreamFailed, match="more than 64 MiB"):
        asyncio.run(read(bytes(MOST + 1), "gzip"))
