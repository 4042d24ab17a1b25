"""A connection to one server over its three pipes: messages out of lines, the tail of its stderr,
and writing no faster than it reads."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from typing import cast

from hotset.errors import ToolFailed

LONGEST = 32 << 20
"""Bytes of a message. Servers send files and pictures as base64; what is longer is a mistake or an
attack."""

_HELD = 1 << 20  # bytes of messages that nobody has taken yet; above that the server has to wait
_TAIL = 2_000  # characters
_KEPT = _TAIL * 4  # bytes: the widest character of UTF-8 has four
_MESSAGE = re.compile(rb"\{|\[\s*\{")  # "[INFO] listening" is none
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class ServerGone(ToolFailed):
    """The process or the connection ended before the answer came."""


class Messages(asyncio.Protocol):
    """What a server writes to stdout: each line is a message. What is none, as the banners of some,
    is passed over."""

    def __init__(
        self, *, on_garbage: Callable[[bytes], None], on_too_long: Callable[[], None]
    ) -> None:
        self.garbage = 0
        """Lines that were no messages."""
        self._on_garbage = on_garbage
        self._on_too_long = on_too_long
        self._messages: deque[bytes] = deque()
        self._held = 0
        self._pieces: list[bytes] = []
        self._length = 0
        self._news = asyncio.Event()
        self._ended = False
        self._dropping = False
        self._transport: asyncio.ReadTransport | None = None

    async def next(self) -> bytes | None:
        """None at the end, and from then on."""
        while not self._messages:
            if self._ended or self._dropping:
                return None
            self._news.clear()
            await self._news.wait()
        message = self._messages.popleft()
        self._held -= len(message)
        if self._held < _HELD:
            self._resume()
        return message

    def drop(self) -> None:
        """From now on nobody is interested; read on all the same, since a server that cannot write
        does not end either."""
        self._dropping = True
        self._messages.clear()
        self._pieces.clear()
        self._resume()
        self._news.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        if self._dropping:
            return
        first, *others = data.split(b"\n")
        self._pieces.append(first)
        self._length += len(first)
        if self._length > LONGEST:
            self.drop()
            self._on_too_long()
            return
        for piece in others:
            self._take(b"".join(self._pieces))
            self._pieces, self._length = [piece], len(piece)
        if self._held >= _HELD and self._transport is not None:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._take(b"".join(self._pieces))
        self._pieces.clear()
        self._ended = True
        self._news.set()

    def _take(self, line: bytes) -> None:
        line = line.strip()
        if not line or self._dropping:
            return
        if not _MESSAGE.match(line):
            self.garbage += 1
            self._on_garbage(line)
            return
        self._messages.append(line)
        self._held += len(line)
        self._news.set()

    def _resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()


class Tail(asyncio.Protocol):
    """The end of what a server says on stderr. All of it is read: one that talks much must not have
    to wait for us."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self._bytes = b""

    def text(self) -> str:
        return _COLOURS.sub("", self._bytes.decode("utf-8", "replace")).strip()[-_TAIL:]

    def add(self, line: bytes) -> None:
        """Something that it said elsewhere."""
        self.data_received(line + b"\n")

    def data_received(self, data: bytes) -> None:
        self._bytes = (self._bytes + data[-_KEPT:])[-_KEPT:]

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.ended.set()


class PipeRoom(asyncio.BaseProtocol):
    """Whether the server has room for more on its stdin, and whether it still reads at all."""

    def __init__(self) -> None:
        self._free = asyncio.Event()
        self._free.set()
        self.lost = False

    async def wait(self) -> None:
        await self._free.wait()

    def pause_writing(self) -> None:
        self._free.clear()

    def resume_writing(self) -> None:
        self._free.set()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.lost = True
        self._free.set()
