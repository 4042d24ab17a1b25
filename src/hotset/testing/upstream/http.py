"""A small HTTP/1.1 server of our own, because faults below HTTP need the socket itself."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from time import monotonic

from hotset.testing.upstream.shape import Act, ScriptedEnd, Wait, Write


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request as read from the socket."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")


@dataclass(frozen=True, slots=True)
class Performed:
    """How an answer ended."""

    cancelled_after: float | None
    """Seconds until the client went away before the end; None where it stayed."""
    closed: bool


class ClientGone(Exception):
    """The client closed its side while we still had something to read or to do."""


class Unreadable(Exception):
    """What the client sent is no HTTP."""


Answering = Callable[[Arrival], Awaitable[tuple[Iterable[Act], Callable[[Performed], None]]]]
"""Gives what to do for a request, and whom to tell how it ended."""


class ScriptedConnection(asyncio.Protocol):
    """One client's connection: bytes in, acts out, and whether the client is still there."""

    def __init__(self, answer: Answering, living: set[ScriptedConnection]) -> None:
        self._answer = answer
        self._living = living
        self._buffer = bytearray()
        self._grown = asyncio.Event()
        self._gone = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(
            0
        )  # `_flushed` then means: handed to the kernel, down to the last byte
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._living.add(self)
        self._task = asyncio.get_running_loop().create_task(self._converse())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._grown.set()

    def eof_received(self) -> bool:
        self._leave()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._leave()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def close(self) -> None:
        """Ends the connection and waits until nothing of it runs any more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _leave(self) -> None:
        self._gone.set()
        self._grown.set()
        self._writable.set()

    async def _converse(self) -> None:
        assert self._transport is not None
        try:
            while not self._gone.is_set():
                arrival = await self._read()
                started = monotonic()
                acts, tell = await self._answer(arrival)
                performed = await self._perform(acts, started)
                tell(performed)
                if performed.closed or arrival.header("connection").lower() == "close":
                    return
        except ClientGone:
            return
        except Unreadable:
            self._transport.write(
                b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
        finally:
            self._transport.close()
            self._living.discard(self)

    async def _perform(self, acts: Iterable[Act], started: float) -> Performed:
        try:
            for act in acts:
                if isinstance(act, ScriptedEnd):
                    self._end(act)
                    return Performed(None, closed=True)
                await self._do(act)
        except ClientGone:
            return Performed(monotonic() - started, closed=True)
        return Performed(None, closed=False)

    async def _do(self, act: Write | Wait) -> None:
        assert self._transport is not None
        if self._gone.is_set():
            raise ClientGone
        if isinstance(act, Write):
            self._transport.write(act.bytes)
            await asyncio.sleep(
                0
            )  # lets the loop see a client that left, and keeps one write one send
            await self._writable.wait()
            return
        await self._pause(act)

    async def _pause(self, wait: Wait) -> None:
        """Waits, unless the client leaves first."""
        opened = (
            asyncio.sleep(wait.until)
            if isinstance(wait.until, float | int)
            else wait.until.opened()
        )
        waits = [asyncio.ensure_future(opened), asyncio.ensure_future(self._gone.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait_ in waits:
                wait_.cancel()
        if self._gone.is_set():
            raise ClientGone

    def _end(self, end: ScriptedEnd) -> None:
        assert self._transport is not None
        if end.reset:
            # Lingering for zero seconds makes the kernel send RST instead of FIN.
            linger = struct.pack("ii", 1, 0)
            self._transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, linger
            )
            self._transport.abort()
        else:
            self._transport.close()

    async def _read(self) -> Arrival:
        while not self._buffer:
            await self._more()
        if not self._buffer[:1].isalpha():
            # at once: who speaks TLS to this port sends no line, and waits for an answer
            raise Unreadable
        arrival = _parsed(await self._until(b"\r\n\r\n"))
        if arrival.header("expect").lower() == "100-continue":
            assert self._transport is not None
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if arrival.header("transfer-encoding").lower() == "chunked":
            body = await self._chunks()
        else:
            body = await self._exactly(_number(arrival.header("content-length") or "0", 10))
        return replace(arrival, body=body)

    async def _chunks(self) -> bytes:
        body = bytearray()
        while size := _number(
            (await self._until(b"\r\n")).partition(b";")[0].decode("latin-1"), 16
        ):
            body += await self._exactly(size)
            await self._exactly(2)
        while await self._until(b"\r\n"):  # trailers
            pass
        return bytes(body)

    async def _until(self, mark: bytes) -> bytes:
        searched = 0
        while (at := self._buffer.find(mark, searched)) < 0:
            searched = max(0, len(self._buffer) - len(mark))
            await self._more()
        line = bytes(self._buffer[:at])
        del self._buffer[: at + len(mark)]
        return line

    async def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            await self._more()
        body = bytes(self._buffer[:size])
        del self._buffer[:size]
        return body

    async def _more(self) -> None:
        if self._gone.is_set():
            raise ClientGone
        self._grown.clear()
        await self._grown.wait()


def _parsed(head: bytes) -> Arrival:
    first, *lines = head.decode("latin-1").split("\r\n")
    if first.count(" ") != 2:
        raise Unreadable(first)
    method, path, _ = first.split(" ")
    headers = tuple(
        (name, value.strip()) for name, _, value in (line.partition(":") for line in lines)
    )
    return Arrival(method, path, headers, b"")


def _number(text: str, radix: int) -> int:
    try:
        return int(text, radix)
    except ValueError as error:
        raise Unreadable(text) from error
