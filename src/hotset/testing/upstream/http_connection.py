"""From a reply and its faults to bytes on a socket: the sequence of acts, and the HTTP/1.1
connection that performs it. Faults below HTTP need the socket itself."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from time import monotonic
from typing import TypeVar

import msgspec

from hotset.testing.upstream.faults import (
    CloseDelimited,
    Comments,
    Crlf,
    Drip,
    ErrorEvent,
    Fault,
    Fin,
    Gate,
    Gzipped,
    Hold,
    HugeEvent,
    InvalidUtf8,
    Missing,
    MultilineData,
    Reset,
    Silence,
    Split,
    Twice,
    WrongLength,
    WrongOrder,
)
from hotset.testing.upstream.script import Received, Say
from hotset.testing.upstream.wires import DialectWire, WireEvent


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """An HTTP answer before transport faults are applied."""

    status: int
    headers: tuple[tuple[str, str], ...]
    frames: tuple[bytes, ...]
    """The body: one frame an event, or one for a whole document."""
    streamed: bool = False


@dataclass(frozen=True, slots=True)
class Write:
    bytes: bytes


@dataclass(frozen=True, slots=True)
class Wait:
    until: float | Gate
    """Seconds, or a gate that a test opens."""


@dataclass(frozen=True, slots=True)
class ScriptedEnd:
    """The connection ends here."""

    reset: bool = False


Act = Write | Wait | ScriptedEnd

_F = TypeVar("_F")
_NO_CHARACTER = "\ue000"  # private use: placeholder for the bytes of `InvalidUtf8`
_NOT_UTF8 = b"\xff\xc3"


def put_faults_into_text(say: Say) -> Say:
    """The reply with the faults that change its text."""
    text, chunks = say.text, say.chunks
    if huge := _find_fault(say.faults, HugeEvent):
        text, chunks = text + "x" * huge.size, 1
    if _find_fault(say.faults, InvalidUtf8):
        text = text[: len(text) // 2] + _NO_CHARACTER + text[len(text) // 2 :]
    return replace(say, text=text, chunks=chunks)


def event_frames(
    events: Iterable[WireEvent], faults: Sequence[Fault], wire: DialectWire
) -> tuple[bytes, ...]:
    """The frames of an event stream: each event's bytes."""
    arranged = _arrange_events(list(events), faults, wire)
    return tuple(_frame(event, faults) for event in arranged)


def socket_acts(answer: ScriptedAnswer, faults: Sequence[Fault], delay: float) -> Iterator[Act]:
    """The acts on the socket, in order. A connection without a `ScriptedEnd` can be reused."""
    if delay:
        yield Wait(delay)
    yield from _pauses(faults, None)
    cut = _find_fault(faults, Reset) or _find_fault(faults, Fin)
    if cut and cut.events is None and cut.bytes is None:
        yield _end(cut)
        return
    frames = tuple(frame.replace(_NO_CHARACTER.encode(), _NOT_UTF8) for frame in answer.frames)
    if _find_fault(faults, Gzipped):
        frames = tuple(_gzip_frames(frames))
    framing = _framing(answer, frames, faults)
    yield Write(_head(answer, framing, faults))
    yield from _body(frames, framing, faults, cut)
    if framing.closes:
        yield ScriptedEnd()


@dataclass(frozen=True, slots=True)
class _Framing:
    header: tuple[str, str]
    chunked: bool = False
    closes: bool = False

    def wrap(self, piece: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(piece), piece) if self.chunked and piece else piece

    @property
    def last(self) -> bytes:
        return b"0\r\n\r\n" if self.chunked else b""


def _framing(answer: ScriptedAnswer, frames: Sequence[bytes], faults: Sequence[Fault]) -> _Framing:
    length = sum(map(len, frames))
    if wrong := _find_fault(faults, WrongLength):
        return _Framing(("content-length", str(max(0, length + wrong.by))), closes=True)
    if _find_fault(faults, CloseDelimited):
        return _Framing(("connection", "close"), closes=True)
    if answer.streamed:
        return _Framing(("transfer-encoding", "chunked"), chunked=True)
    return _Framing(("content-length", str(length)))


def _head(answer: ScriptedAnswer, framing: _Framing, faults: Sequence[Fault]) -> bytes:
    phrase = (
        HTTPStatus(answer.status).phrase
        if answer.status in HTTPStatus._value2member_map_
        else "Overloaded"
    )
    version = "1.0" if _find_fault(faults, CloseDelimited) else "1.1"
    encoding = [("content-encoding", "gzip")] if _find_fault(faults, Gzipped) else []
    lines = [f"HTTP/{version} {answer.status} {phrase}"]
    lines += [f"{name}: {value}" for name, value in [*answer.headers, *encoding, framing.header]]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _body(
    frames: Sequence[bytes], framing: _Framing, faults: Sequence[Fault], cut: Reset | Fin | None
) -> Iterator[Act]:
    drip = _find_fault(faults, Drip)
    split = _find_fault(faults, Split)
    length, sent = sum(map(len, frames)), 0
    for number, frame in enumerate(frames):
        yield from _pauses(faults, number)
        if cut and cut.events == number:
            yield _end(cut)
            return
        parts = (
            [frame[at : at + split.size] for at in range(0, len(frame), split.size)]
            if split
            else [frame]
        )
        for part in parts:
            if drip:
                yield Wait(drip.interval)
            if cut and cut.bytes is not None and sent + len(part) >= cut.bytes:
                yield Write(framing.wrap(part[: cut.bytes - sent]))
                yield _end(cut)
                return
            sent += len(part)
            # The end goes out with the last piece: a client that leaves once it has its reply has
            # not cancelled it.
            ends = cut is None and sent == length
            yield Write(framing.wrap(part) + (framing.last if ends else b""))
    if cut:
        yield _end(cut)
    elif not frames:
        yield Write(framing.last)


def _pauses(faults: Sequence[Fault], events: int | None) -> Iterator[Wait]:
    for fault in faults:
        if isinstance(fault, Silence) and fault.events == events:
            yield Wait(fault.seconds)
        if isinstance(fault, Hold) and fault.events == events:
            yield Wait(fault.gate)


def _end(cut: Reset | Fin) -> ScriptedEnd:
    return ScriptedEnd(reset=isinstance(cut, Reset))


def _arrange_events(
    events: list[WireEvent], faults: Sequence[Fault], wire: DialectWire
) -> list[WireEvent]:
    for fault in faults:
        if isinstance(fault, Missing):
            events = [event for event in events if event.edge is not fault.edge]
        elif isinstance(fault, Twice):
            events = [
                copy
                for event in events
                for copy in [event] * (2 if event.edge is fault.edge else 1)
            ]
        elif isinstance(fault, WrongOrder):
            events = _reverse_blocks(events)
        elif isinstance(fault, ErrorEvent):
            events = [
                *events[: fault.events],
                wire.error_event(fault.type, fault.message, fault.events),
            ]
    return events


def _reverse_blocks(events: list[WireEvent]) -> list[WireEvent]:
    """Each block's events stay in order; the blocks come from the last to the first."""
    blocks = sorted(
        (event for event in events if event.block is not None),
        key=lambda event: -(event.block or 0),
    )
    first = next(
        (place for place, event in enumerate(events) if event.block is not None), len(events)
    )
    before = events[:first]
    after = [event for event in events[first:] if event.block is None]
    pings = [event for event in after if event.name == "ping"]
    return [*before, *pings, *blocks, *(event for event in after if event.name != "ping")]


def _frame(event: WireEvent, faults: Sequence[Fault]) -> bytes:
    lines = [b"event: " + event.name.encode()] if event.name else []
    if comments := _find_fault(faults, Comments):
        lines.insert(0, b": " + comments.text.encode())
    many = _find_fault(faults, MultilineData) and event.data.startswith(b"{")  # `[DONE]` is no JSON
    lines += [b"data: " + line for line in (_split_json(event.data) if many else [event.data])]
    newline = b"\r\n" if _find_fault(faults, Crlf) else b"\n"
    return newline.join([*lines, b"", b""])


def _split_json(data: bytes) -> list[bytes]:
    """JSON over several lines, broken only where JSON allows white space."""
    return msgspec.json.format(data, indent=1).split(b"\n")


def _gzip_frames(frames: Sequence[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    for number, frame in enumerate(frames, start=1):
        packed = packer.compress(frame)
        yield packed + packer.flush(zlib.Z_FINISH if number == len(frames) else zlib.Z_SYNC_FLUSH)


def _find_fault(faults: Sequence[Fault], kind: type[_F]) -> _F | None:
    return next((fault for fault in faults if isinstance(fault, kind)), None)


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """How an answer ended."""

    cancelled_after: float | None
    """Seconds until the client left before the end; None if it stayed."""
    closed: bool


class ClientGone(Exception):
    """The client closed its side while we still had something to read or to do."""


class Unreadable(Exception):
    """The client's bytes are not HTTP."""


Answering = Callable[[Received], Awaitable[tuple[Iterable[Act], Callable[[AnswerOutcome], None]]]]
"""Returns the acts for a request, and a callback for how it ended."""


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
        """End the connection and wait until all its tasks are done."""
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
                received = await self._read()
                started = monotonic()
                acts, tell = await self._answer(received)
                performed = await self._perform(acts, started)
                tell(performed)
                if performed.closed or received.header("connection").lower() == "close":
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

    async def _perform(self, acts: Iterable[Act], started: float) -> AnswerOutcome:
        try:
            for act in acts:
                if isinstance(act, ScriptedEnd):
                    self._end(act)
                    return AnswerOutcome(None, closed=True)
                await self._do(act)
        except ClientGone:
            return AnswerOutcome(monotonic() - started, closed=True)
        return AnswerOutcome(None, closed=False)

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

    async def _read(self) -> Received:
        while not self._buffer:
            await self._more()
        if not self._buffer[:1].isalpha():
            # at once: who speaks TLS to this port sends no line, and waits for an answer
            raise Unreadable
        received = _parse_head(await self._until(b"\r\n\r\n"))
        if received.header("expect").lower() == "100-continue":
            assert self._transport is not None
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if received.header("transfer-encoding").lower() == "chunked":
            body = await self._chunks()
        else:
            body = await self._exactly(_parse_number(received.header("content-length") or "0", 10))
        return replace(received, body=body)

    async def _chunks(self) -> bytes:
        body = bytearray()
        while size := _parse_number(
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


def _parse_head(head: bytes) -> Received:
    first, *lines = head.decode("latin-1").split("\r\n")
    if first.count(" ") != 2:
        raise Unreadable(first)
    method, path, _ = first.split(" ")
    headers = tuple(
        (name, value.strip()) for name, _, value in (line.partition(":") for line in lines)
    )
    return Received(0, method, path, headers, b"", 0.0)


def _parse_number(text: str, radix: int) -> int:
    try:
        return int(text, radix)
    except ValueError as error:
        raise Unreadable(text) from error
