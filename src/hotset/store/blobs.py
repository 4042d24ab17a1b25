"""Content as it lies on disk: addressed by its hash, compressed where that helps, checked whenever it is read."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from hotset.errors import PageDamaged
from hotset.nouns.deposit import Answered, Asked, Deposit, Hid, Noted, Planned
from hotset.nouns.message import Message
from hotset.nouns.page import Digest, Role

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LEVEL = 1  # on a recorded session as small as 3 (346 and 347 KB of 1.6 MB), in two thirds of the time
_WORTH_TRYING = 1024  # below this it saves less than a quarter of a database page; compressing 1 KB takes 27 us
_WORTH_KEEPING = 0.9  # decompression is paid at every read; a saving of a tenth pays for it


class Codec(IntEnum):
    PLAIN = 0
    ZSTD = 1


@dataclass(frozen=True, slots=True)
class Pressed:
    """Content in the form in which it is stored."""

    codec: Codec
    size: int
    """Bytes of content before compression: the bound for taking it out again."""
    body: bytes


def press(content: bytes) -> Pressed:
    if len(content) >= _WORTH_TRYING:
        body = zstd.compress(content, _LEVEL)
        if len(body) <= _WORTH_KEEPING * len(content):
            return Pressed(Codec.ZSTD, len(content), body)
    return Pressed(Codec.PLAIN, len(content), content)


def unpress(digest: Digest, codec: object, size: object, body: object) -> bytes:
    """The content, or `PageDamaged`: never other bytes, never more of them than were kept."""
    content = inflate(f"content {digest}", codec, size, body)
    if len(content) != size or hashlib.sha256(content).hexdigest() != digest:
        raise PageDamaged(f"content {digest} is damaged: its bytes do not have that hash")
    return content


def inflate(what: str, codec: object, size: object, body: object) -> bytes:
    """The bytes without a proof that they are the right ones; `what` names them where they cannot be read."""
    if not isinstance(size, int) or not isinstance(body, bytes):
        raise PageDamaged(f"{what} is damaged: its row is not readable")
    if codec != Codec.ZSTD:
        return body
    reader = zstd.ZstdDecompressor()
    try:
        return reader.decompress(body, max_length=size + 1)
    except (zstd.ZstdError, ValueError, OverflowError) as error:
        raise PageDamaged(f"{what} is damaged: it cannot be decompressed") from error


def likely_new(deposit: Deposit) -> Iterator[bytes]:
    """Content that is probably not in the store yet, told without looking: it is compressed before the write lock is taken."""
    match deposit:
        case Asked():
            yield from _of(_since_last_reply(deposit.request.messages))
        case Answered():
            yield deposit.raw
            yield from _of(deposit.reply.messages)
        case Noted():
            yield deposit.content
        case Planned():
            yield from (shown.text for shown in deposit.shown)
        case Hid():
            yield from (*deposit.hidden.before, deposit.hidden.instead, *deposit.hidden.after)


def _since_last_reply(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """A client resends what is known; what it adds stands behind the last reply."""
    last = max((i for i, message in enumerate(messages) if message.role is Role.ASSISTANT), default=-1)
    return messages[last + 1 :]


def _of(messages: tuple[Message, ...]) -> Iterator[bytes]:
    for message in messages:
        yield message.raw
        yield from (part.content for part in message.parts)
