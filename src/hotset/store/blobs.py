"""Content as it lies on disk: addressed by its hash, compressed where that helps, checked whenever
it is read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from hotset.errors import PageDamaged
from hotset.files.lru import Lru
from hotset.nouns.deposit import (
    Deposit,
    HiddenKept,
    PageAdded,
    PlanMade,
    ReplyReceived,
    RequestReceived,
)
from hotset.nouns.message import Message, Request
from hotset.nouns.page import Digest, digest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LEVEL = (
    1  # on a recorded session as small as 3 (346 and 347 KB of 1.6 MB), in two thirds of the time
)
_WORTH_TRYING = (
    1024  # below this it saves less than a quarter of a database page; compressing 1 KB takes 27 us
)
_MOST_SEEN = 16384  # digests: the latest requests of some dozens of sessions, in 3 MB
_WORTH_KEEPING = 0.9  # decompression is paid at every read; a saving of a tenth pays for it


class Codec(IntEnum):
    PLAIN = 0
    ZSTD = 1


@dataclass(frozen=True, slots=True)
class Compressed:
    """Content in the form in which it is stored."""

    codec: Codec
    size: int
    """Bytes of content before compression: the bound for taking it out again."""
    body: bytes


def compress(content: bytes) -> Compressed:
    if len(content) >= _WORTH_TRYING:
        body = zstd.compress(content, _LEVEL)
        if len(body) <= _WORTH_KEEPING * len(content):
            return Compressed(Codec.ZSTD, len(content), body)
    return Compressed(Codec.PLAIN, len(content), content)


def read_content(address: Digest, codec: object, size: object, body: object) -> bytes:
    """The content, or `PageDamaged`: never other bytes, never more of them than were kept."""
    content = decompress(f"content {address}", codec, size, body)
    if len(content) != size or digest(content) != address:
        raise PageDamaged(f"content {address} is damaged: its bytes do not have that hash")
    return content


def decompress(what: str, codec: object, size: object, body: object) -> bytes:
    """The bytes without a proof that they are the right ones; `what` names them where they cannot
    be read."""
    if not isinstance(size, int) or not isinstance(body, bytes):
        raise PageDamaged(f"{what} is damaged: its row is not readable")
    if codec != Codec.ZSTD:
        return body
    reader = zstd.ZstdDecompressor()
    try:
        return reader.decompress(body, max_length=size + 1)
    except (zstd.ZstdError, ValueError, OverflowError) as error:
        raise PageDamaged(f"{what} is damaged: it cannot be decompressed") from error


class DepositCompressor:
    """Compresses the content of deposits before they come to the writer. For one thread."""

    def __init__(self) -> None:
        self._seen: Lru[Digest, bool] = Lru(count=_MOST_SEEN)
        """Content of the latest deposits: most of a request was in the one before it."""

    def pressed(self, deposit: Deposit) -> dict[Digest, Compressed]:
        """Whatever of it may be new to the store."""
        made: dict[Digest, Compressed] = {}
        for content in content_beside_messages(deposit):
            self._press(content, made)
        for message in _newest_first(deposit):
            if not self._press(message.raw, made):
                break  # a client resends what is known: what it adds stands behind that
            for part in message.parts:
                self._press(part.content, made)
        return made

    def _press(self, content: bytes, made: dict[Digest, Compressed]) -> bool:
        """False where it was seen before."""
        address = digest(content)
        if self._seen.get(address):
            return False
        self._seen.put(address, True)
        if len(content) >= _WORTH_TRYING:
            made[address] = compress(content)
        return True


def whole_system(request: Request) -> bytes:
    return b"\n\n".join(part.content for part in request.system)


def whole_toolbox(request: Request) -> bytes:
    return b"[" + b",".join(tool.raw for tool in request.tools) + b"]"


def content_beside_messages(deposit: Deposit) -> Iterator[bytes]:
    """The content of a deposit that is no message and no part of one."""
    match deposit:
        case RequestReceived(request=request):
            yield from (part.content for part in request.system)
            yield from (tool.raw for tool in request.tools)
            yield from (whole_system(request), whole_toolbox(request), request.params)
        case ReplyReceived():
            yield deposit.raw
        case PageAdded():
            yield deposit.content
        case PlanMade():
            yield from (shown.text for shown in deposit.shown)
        case HiddenKept():
            yield from (*deposit.hidden.before, deposit.hidden.instead, *deposit.hidden.after)


def _newest_first(deposit: Deposit) -> Iterator[Message]:
    match deposit:
        case RequestReceived():
            yield from reversed(deposit.request.messages)
        case ReplyReceived():
            yield from reversed(deposit.reply.messages)
