"""The bytes of requests and replies: compression, and the end of a stream, which is held until it
is on disk."""

from __future__ import annotations

import asyncio
import sys
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from math import inf
from typing import Any

from hotset.errors import Malformed, UpstreamFailed
from hotset.files.scope import PROCESS, Budget
from hotset.nouns.call import Response, header

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd
from collections.abc import AsyncGenerator
from functools import partial

from hotset.dialects.port import Dialect, Mark
from hotset.dialects.sse import Frames

MOST = 64 << 20
"""Bytes of a body that we read at most; a larger one passes through unread."""

_OF_ITS_FORM = frozenset((b"content-encoding", b"content-length"))
_STEP = 1 << 20
_MOST_CODINGS = 2

_MOST_MEMBERS = 4096
"""Gzip members or zstd frames in a body. The usual writers make one, parallel ones make one for
each 64 KiB."""

_LEAST_FED, _MOST_FED = 1 << 8, 1 << 16
"""Bytes of input at a time, doubled from the first to the second within a member: what a member
leaves over is copied, and must not be longer than the member. With the whole body fed at once, 9.7
KB of small members inside a gzip body took minutes."""

_WINDOW_LOG = (
    26  # zstd frames that need a window of more than 64 MiB, as much as `MOST`, are refused
)


def _goes_on() -> bool:
    return False


def decode(body: bytes, encoding: str, stopped: Callable[[], bool] = _goes_on) -> bytes:
    """The body without its compression, in time linear in its unpacked size.

    Raises `Malformed` for a coding we cannot read, a body that breaks it, one that is larger than
    `MOST` or in too many pieces, and once `stopped` says so.
    """
    codings = [
        coding
        for each in encoding.lower().split(",")
        if (coding := each.strip()) not in ("", "identity")
    ]
    if len(codings) > _MOST_CODINGS:
        raise Malformed(f"{len(codings)} content codings on top of each other")
    for coding in reversed(codings):
        body = _join(_unpack(body, coding), coding, stopped)
    return body


async def decode_off_loop(body: bytes, encoding: str) -> bytes:
    """`decode` on a thread; a caller that is cancelled stops it."""
    left = threading.Event()
    try:
        return await asyncio.to_thread(decode, body, encoding, left.is_set)
    finally:
        left.set()


def salvage(body: bytes, encoding: str) -> bytes:
    """As much of a body as can be decoded: a reply that broke off is still worth keeping."""
    try:
        return decode(body, encoding)
    except Malformed:
        pass
    got = bytearray()
    try:
        for piece in _unpack(body, encoding.lower().strip()):
            got += piece
            if len(got) > MOST:
                break
    except Malformed:
        pass
    return bytes(got[:MOST]) or body


async def decompress_reply(response: Response) -> Response:
    """The same reply without compression, and without the headers that describe its encoding.

    Replies that we read are requested uncompressed; one that is compressed all the same is
    read whole first.
    """
    coding = header(response.headers, b"content-encoding")
    headers = tuple(
        (name, value) for name, value in response.headers if name.lower() not in _OF_ITS_FORM
    )
    if coding.lower() in ("", "identity"):
        return Response(response.status, headers, response.chunks)
    return Response(response.status, headers, _decode_chunks(response, coding))


async def _decode_chunks(response: Response, coding: str) -> AsyncIterator[bytes]:
    body = bytearray()
    async for chunk in response.chunks:
        body += chunk
        if len(body) > MOST:
            raise UpstreamFailed(f"the reply cannot be unpacked: it has more than {MOST >> 20} MiB")
    try:
        yield await decode_off_loop(bytes(body), coding)
    except Malformed as error:  # half of it would look complete to the client
        raise UpstreamFailed(f"the reply cannot be unpacked: {error}") from error


def _join(pieces: Iterator[bytes], coding: str, stopped: Callable[[], bool]) -> bytes:
    whole = bytearray()
    for piece in pieces:
        whole += piece
        if len(whole) > MOST:
            raise Malformed(f"the {coding} body unpacks to more than {MOST >> 20} MiB")
        if stopped():
            raise Malformed("the unpacking was stopped")
    return bytes(whole)


def _unpack(body: bytes, coding: str) -> Iterator[bytes]:
    match coding:
        case "gzip" | "x-gzip":
            return _members(body, lambda: zlib.decompressobj(16 + zlib.MAX_WBITS), _inflate)
        case "deflate":
            # Servers disagree on whether deflate has a zlib header; the first byte tells.
            window = zlib.MAX_WBITS if body[:1] == b"\x78" else -zlib.MAX_WBITS
            return _members(body, lambda: zlib.decompressobj(window), _inflate)
        case "zstd":
            options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
            return _members(
                body, lambda: zstd.ZstdDecompressor(options=options), _decompress_frames
            )
        case _:
            raise Malformed(f"content coding {coding[:20]!r} is not one that hotset reads")


def _members(
    body: bytes, begin: Callable[[], Any], feed: Callable[[Any, memoryview], Iterator[bytes]]
) -> Iterator[bytes]:
    """The contents of all members of a body, in order."""
    view, at, members = memoryview(body), 0, 0
    try:
        while at < len(view):
            members += 1
            if members > _MOST_MEMBERS:
                raise Malformed(f"the compressed body is in more than {_MOST_MEMBERS:,} pieces")
            unpacker, fed = begin(), _LEAST_FED
            while not unpacker.eof:
                if at >= len(view):
                    raise Malformed("the compressed body ends in the middle")
                yield from feed(unpacker, view[at : at + fed])
                at, fed = min(at + fed, len(view)), min(2 * fed, _MOST_FED)
            at -= len(unpacker.unused_data)
    except (zlib.error, zstd.ZstdError) as error:
        raise Malformed("the body is not what its content-encoding says") from error


def _inflate(unpacker: Any, piece: bytes | memoryview) -> Iterator[bytes]:
    while True:
        yield (out := unpacker.decompress(piece, _STEP))
        piece = unpacker.unconsumed_tail
        if unpacker.eof or (not piece and len(out) < _STEP):
            return


def _decompress_frames(unpacker: Any, piece: memoryview) -> Iterator[bytes]:
    yield unpacker.decompress(piece, _STEP)
    while not unpacker.eof and not unpacker.needs_input:
        yield unpacker.decompress(b"", _STEP)


REST_SECONDS = 1.0
"""How long the rest of a stream (counts, an end mark) may take after the event that ends the
reply."""

_FIRST_EVENT = 64 << 10
"""After this many bytes without an event it is no event stream, whatever its type says."""

_MOST_AT_ONCE = 4 << 20  # a chunk has 128 KiB at most, and events pack to a tenth


class StreamTail:
    """Takes a reply's bytes as they arrive and returns those that may go to the client now.

    Events are released once they are complete; half an event says nothing to a client. From the
    event that ends the reply on, everything is held until `release`. If the reply continues after
    it, that was not the end.

    A compressed stream is also unpacked, to see its events: its bytes go out as they came, up to
    the last one that completes an event. If a stream cannot be decoded at all, its latest bytes are
    always held: they may be the end.
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
        """The event that ends the reply has arrived, and is held."""
        self.is_whole = False
        """The end mark has arrived, and is held."""

    @property
    def is_plain(self) -> bool:
        """Its events are uncompressed: a comment can go between them."""
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
        """Everything that is held; later bytes are held only if they end the reply again."""
        self.is_stopped = self.is_whole = False
        held, self._held = b"".join(self._held), []
        return held

    def rest(self) -> bytes:
        """Everything that is left when the stream has ended."""
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
        """Record an event's mark; returns what was held if the reply turns out to continue."""
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


_SCOPE = PROCESS.child("replies", Budget(tasks=inf))  # each belongs to one call, and ends with it


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


async def chunks_with_timeout(
    chunks: AsyncIterator[bytes], is_stopped: Callable[[], bool]
) -> AsyncGenerator[bytes]:
    """The chunks as they arrive, and an empty one if the reply has ended but the rest of its stream
    is late."""
    loop = asyncio.get_running_loop()
    reading: asyncio.Future[bytes | None] | None = None
    until: float | None = None
    try:
        while True:
            if is_stopped():
                until = loop.time() + REST_SECONDS if until is None else until
                reading = _SCOPE.task(_next(chunks), "rest of a reply")
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
    """An incremental decoder; None if the coding is identity. It raises if the stream cannot be
    decoded."""
    match coding.lower().strip():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip":
            return partial(_unpack_chunk, zlib.decompressobj(16 + zlib.MAX_WBITS))
        case "deflate":
            return partial(_unpack_chunk, zlib.decompressobj())
        case "zstd":
            return partial(_unpack_chunk, zstd.ZstdDecompressor())
        case _:
            return partial(_unpack_chunk, None)


def _unpack_chunk(unpacker: Any, chunk: bytes) -> bytes:
    if unpacker is None or unpacker.eof:
        raise ValueError("a coding that we cannot read, or something behind its end")
    text: bytes = unpacker.decompress(chunk, _MOST_AT_ONCE)
    if len(text) == _MOST_AT_ONCE:
        raise ValueError("a few bytes that unpack to very many")
    return text
