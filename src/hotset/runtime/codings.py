"""Takes transfer compression off a body, within bounds: a bomb is refused, never unpacked."""

from __future__ import annotations

import sys
import zlib
from collections.abc import AsyncIterator, Iterator

from hotset.errors import Malformed, UpstreamFailed
from hotset.nouns.call import Response, header

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MOST = 64 << 20
"""Bytes of a body that we are willing to read; what is larger passes through unread."""

_OF_ITS_FORM = frozenset((b"content-encoding", b"content-length"))
_STEP = 1 << 20
_MOST_CODINGS = 2


def decode(body: bytes, encoding: str) -> bytes:
    """Raises `Malformed` for a coding we cannot read, a body that breaks it, or one that is larger than `MOST`."""
    codings = [coding for each in encoding.lower().split(",") if (coding := each.strip()) not in ("", "identity")]
    if len(codings) > _MOST_CODINGS:
        raise Malformed(f"{len(codings)} content codings on top of each other")
    for coding in reversed(codings):
        body = _join(_unpack(body, coding), coding)
    return body


def salvage(body: bytes, encoding: str) -> bytes:
    """As much of a body as can be read: a reply that broke off is still worth keeping."""
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


async def plain(response: Response) -> Response:
    """The same reply without compression, and without the headers that speak of its form.

    Replies that we look into are asked for uncompressed; one that is compressed all the same is read whole first.
    """
    coding = header(response.headers, b"content-encoding")
    headers = tuple((name, value) for name, value in response.headers if name.lower() not in _OF_ITS_FORM)
    if coding.lower() in ("", "identity"):
        return Response(response.status, headers, response.chunks)
    return Response(response.status, headers, _decoded(response, coding))


async def _decoded(response: Response, coding: str) -> AsyncIterator[bytes]:
    body = b"".join([chunk async for chunk in response.chunks])
    try:
        yield decode(body, coding)
    except Malformed as error:  # half of it would look whole to the client
        raise UpstreamFailed(f"the reply cannot be unpacked: {error}") from error


def _join(pieces: Iterator[bytes], coding: str) -> bytes:
    whole = bytearray()
    for piece in pieces:
        whole += piece
        if len(whole) > MOST:
            raise Malformed(f"the {coding} body unpacks to more than {MOST >> 20} MiB")
    return bytes(whole)


def _unpack(body: bytes, coding: str) -> Iterator[bytes]:
    match coding:
        case "gzip" | "x-gzip":
            return _zlib(body, 16 + zlib.MAX_WBITS)
        case "deflate":
            # Servers disagree on whether deflate has a zlib header; the first byte tells.
            return _zlib(body, zlib.MAX_WBITS if body[:1] == b"\x78" else -zlib.MAX_WBITS)
        case "zstd":
            return _zstd(body)
        case _:
            raise Malformed(f"content coding {coding[:20]!r} is not one that hotset reads")


def _zlib(body: bytes, window: int) -> Iterator[bytes]:
    try:
        while body:
            unpacker = zlib.decompressobj(window)
            while not unpacker.eof:
                yield (piece := unpacker.decompress(body, _STEP))
                body = unpacker.unconsumed_tail
                if not piece and not body and not unpacker.eof:
                    raise Malformed("the compressed body ends in the middle")
            body = unpacker.unused_data
    except zlib.error as error:
        raise Malformed("the body is not what its content-encoding says") from error


def _zstd(body: bytes) -> Iterator[bytes]:
    try:
        while body:
            unpacker = zstd.ZstdDecompressor()
            yield unpacker.decompress(body, _STEP)
            while not unpacker.eof:
                if unpacker.needs_input:
                    raise Malformed("the compressed body ends in the middle")
                yield unpacker.decompress(b"", _STEP)
            body = unpacker.unused_data
    except zstd.ZstdError as error:
        raise Malformed("the body is not what its content-encoding says") from error
