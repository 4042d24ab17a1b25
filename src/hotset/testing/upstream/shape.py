"""From a reply and its faults to what is done on the socket, byte by byte. Pure: the clock and the
socket are elsewhere."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
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
from hotset.testing.upstream.script import Say
from hotset.testing.upstream.wire import DialectWire, WireEvent


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """An HTTP answer before the transport has its way with it."""

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
_NO_CHARACTER = (
    "\ue000"  # private use: stands for the bytes of `InvalidUtf8` until the reply is bytes
)
_NOT_UTF8 = b"\xff\xc3"


def swollen(say: Say) -> Say:
    """The reply with what its faults put into its text."""
    text, chunks = say.text, say.chunks
    if huge := _first(say.faults, HugeEvent):
        text, chunks = text + "x" * huge.size, 1
    if _first(say.faults, InvalidUtf8):
        text = text[: len(text) // 2] + _NO_CHARACTER + text[len(text) // 2 :]
    return replace(say, text=text, chunks=chunks)


def stream(
    events: Sequence[WireEvent], faults: Sequence[Fault], wire: DialectWire
) -> tuple[bytes, ...]:
    """The frames of an event stream: each event's bytes."""
    arranged = _arranged(list(events), faults, wire)
    return tuple(_frame(event, faults) for event in arranged)


def acts(answer: ScriptedAnswer, faults: Sequence[Fault], delay: float) -> Iterator[Act]:
    """What to do on the socket, in order. A connection that no `ScriptedEnd` closes can be used
    again."""
    if delay:
        yield Wait(delay)
    yield from _pauses(faults, None)
    cut = _first(faults, Reset) or _first(faults, Fin)
    if cut and cut.events is None and cut.bytes is None:
        yield _end(cut)
        return
    frames = tuple(frame.replace(_NO_CHARACTER.encode(), _NOT_UTF8) for frame in answer.frames)
    if _first(faults, Gzipped):
        frames = tuple(_gzipped(frames))
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
    if wrong := _first(faults, WrongLength):
        return _Framing(("content-length", str(max(0, length + wrong.by))), closes=True)
    if _first(faults, CloseDelimited):
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
    version = "1.0" if _first(faults, CloseDelimited) else "1.1"
    encoding = [("content-encoding", "gzip")] if _first(faults, Gzipped) else []
    lines = [f"HTTP/{version} {answer.status} {phrase}"]
    lines += [f"{name}: {value}" for name, value in [*answer.headers, *encoding, framing.header]]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _body(
    frames: Sequence[bytes], framing: _Framing, faults: Sequence[Fault], cut: Reset | Fin | None
) -> Iterator[Act]:
    drip = _first(faults, Drip)
    split = _first(faults, Split)
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


def _arranged(
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
            events = _reversed_blocks(events)
        elif isinstance(fault, ErrorEvent):
            events = [
                *events[: fault.events],
                wire.error_event(fault.type, fault.message, fault.events),
            ]
    return events


def _reversed_blocks(events: list[WireEvent]) -> list[WireEvent]:
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
    if comments := _first(faults, Comments):
        lines.insert(0, b": " + comments.text.encode())
    many = _first(faults, MultilineData) and event.data.startswith(b"{")  # `[DONE]` is no JSON
    lines += [b"data: " + line for line in (_spread(event.data) if many else [event.data])]
    newline = b"\r\n" if _first(faults, Crlf) else b"\n"
    return newline.join([*lines, b"", b""])


def _spread(data: bytes) -> list[bytes]:
    """JSON over several lines, broken only where JSON allows white space."""
    return msgspec.json.format(data, indent=1).split(b"\n")


def _gzipped(frames: Sequence[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    for number, frame in enumerate(frames, start=1):
        packed = packer.compress(frame)
        yield packed + packer.flush(zlib.Z_FINISH if number == len(frames) else zlib.Z_SYNC_FLUSH)


def _first(faults: Sequence[Fault], kind: type[_F]) -> _F | None:
    return next((fault for fault in faults if isinstance(fault, kind)), None)
