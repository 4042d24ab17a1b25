"""The end of a streamed reply, held back until it is on disk: from the event on that tells how the
reply ended."""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import partial
from typing import Any

from hotset.dialects.port import Dialect, Mark
from hotset.dialects.sse import Frames

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

REST_SECONDS = 1.0
"""How long the rest of a stream (counts, an end mark) may take behind the event that told how the
reply ended."""

_FIRST_EVENT = 64 << 10
"""Bytes without a single event: then it is no event stream, whatever its type says."""

_MOST_AT_ONCE = 4 << 20  # a chunk has 128 KiB at most, and events pack to a tenth


class StreamTail:
    """Feed it a reply's bytes as they come; it gives back those that may go to the client now.

    Events go as soon as they are whole; half an event says nothing to a client. From the one on
    that tells how the reply ended, everything is held until `release`. Where the reply goes on
    behind it, it was no end.

    A compressed stream is unpacked beside the relay, to see its events: its bytes go as they came,
    up to the last of them that ends an event. In one that cannot be read at all the latest bytes
    are always held: they may be the end.
    """

    def __init__(self, dialect: Dialect, coding: str) -> None:
        self._dialect = dialect
        self._unpacker = _unpacker(coding)
        self._frames = Frames()
        self._held: list[bytes] = []
        self._size = 0
        self._has_events = False
        self._is_opaque = False
        self.is_stopped = False
        """How the reply ended has come, and is held."""
        self.is_whole = False
        """Its end mark has come, and is held."""

    @property
    def is_plain(self) -> bool:
        """Its events are there as they are: a comment can stand between them."""
        return self._unpacker is None and not self._is_opaque

    def feed(self, chunk: bytes) -> bytes:
        try:
            text = chunk if self._unpacker is None else self._unpacker(chunk)
        except (zlib.error, zstd.ZstdError, ValueError):
            text, self._is_opaque = b"", True
        self._size += len(text)
        if self._size > _FIRST_EVENT and not self._has_events:
            self._is_opaque = True
        if self._is_opaque:
            return self._all_but(chunk)
        return (
            self._whole_events(text) if self._unpacker is None else self._whole_chunks(text, chunk)
        )

    def release(self) -> bytes:
        """Everything that is held; what comes behind it is held only where it tells an end
        again."""
        self.is_stopped = self.is_whole = False
        held, self._held = b"".join(self._held), []
        return held

    def rest(self) -> bytes:
        """The stream has ended: everything that is left of it."""
        half = self._frames.rest() if self._unpacker is None else None
        return self.release() + (half.raw if half is not None else b"")

    def _whole_events(self, text: bytes) -> bytes:
        shown = b""
        for frame in self._frames.feed(text):
            shown += self._note(self._dialect.mark(frame.name, frame.data))
            if self.is_stopped:
                self._held.append(frame.raw)
            else:
                shown += frame.raw
        return shown

    def _whole_chunks(self, text: bytes, chunk: bytes) -> bytes:
        shown = b""
        for frame in self._frames.feed(text):
            shown += self._note(self._dialect.mark(frame.name, frame.data))
        self._held.append(chunk)
        return shown if self.is_stopped or self._frames.has_half else shown + self.release()

    def _note(self, mark: Mark) -> bytes:
        """Gives what was held where it turns out that the reply goes on."""
        self._has_events = True
        shown = self.release() if self.is_stopped and Mark.MORE in mark else b""
        if mark & (Mark.STOP | Mark.LAST):
            self.is_stopped = True
        self.is_whole = self.is_whole or Mark.LAST in mark
        return shown

    def _all_but(self, chunk: bytes) -> bytes:
        shown = self.rest()
        self._held = [chunk]
        return shown


async def patiently(
    chunks: AsyncIterator[bytes], is_stopped: Callable[[], bool]
) -> AsyncGenerator[bytes]:
    """The chunks as they come, and an empty one where the reply has told how it ended and its rest
    keeps the client waiting."""
    loop = asyncio.get_running_loop()
    reading: asyncio.Future[bytes | None] | None = None
    until: float | None = None
    try:
        while True:
            if is_stopped():
                until = loop.time() + REST_SECONDS if until is None else until
                reading = asyncio.ensure_future(anext(chunks, None))
                await asyncio.wait({reading}, timeout=max(0.0, until - loop.time()))
                if not reading.done() or loop.time() > until:
                    yield b""
                chunk = await reading
            else:
                until = None
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            if chunk:
                yield chunk
    finally:
        if reading is not None and not reading.done():
            reading.cancel()
            await asyncio.wait({reading})


def _unpacker(coding: str) -> Callable[[bytes], bytes] | None:
    """None where nothing is packed. What it raises says that the stream cannot be read."""
    match coding.lower().strip():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip":
            return partial(_unpacked, zlib.decompressobj(16 + zlib.MAX_WBITS))
        case "deflate":
            return partial(_unpacked, zlib.decompressobj())
        case "zstd":
            return partial(_unpacked, zstd.ZstdDecompressor())
        case _:
            return partial(_unpacked, None)


def _unpacked(unpacker: Any, chunk: bytes) -> bytes:
    if unpacker is None or unpacker.eof:
        raise ValueError("a coding that we cannot read, or something behind its end")
    text: bytes = unpacker.decompress(chunk, _MOST_AT_ONCE)
    if len(text) == _MOST_AT_ONCE:
        raise ValueError("a few bytes that unpack to very many")
    return text
