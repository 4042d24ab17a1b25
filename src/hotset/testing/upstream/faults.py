"""Faults between a provider and its client, as objects that a reply may carry."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock


class Edge(StrEnum):
    """The two events that frame a streamed reply: `message_start`, a role chunk,
    `response.created`; and their last."""

    START = "start"
    END = "end"


class Gate:
    """Holds replies back until a test opens it: orders events without sleeping."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._open = False
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def open(self) -> None:
        with self._lock:
            self._open = True
            for loop, event in self._waiting:
                loop.call_soon_threadsafe(event.set)
            self._waiting.clear()

    async def opened(self) -> None:
        event = asyncio.Event()
        with self._lock:
            if self._open:
                return
            waiting = (asyncio.get_running_loop(), event)
            self._waiting.append(waiting)
        try:
            await event.wait()
        finally:
            # a client that left does not wait any more, and its loop may be closed when the gate
            # opens
            with self._lock:
                self._waiting = [other for other in self._waiting if other is not waiting]


@dataclass(frozen=True, slots=True)
class Status:
    """The provider answers with an error status, in the dialect's own error body."""

    code: int
    message: str = ""
    """Empty for the provider's usual message with this status."""
    retry_after: float | None = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Raw:
    """Any answer at all: a gateway's HTML page, an empty body, a 204."""

    status: int = 502
    headers: tuple[tuple[str, str], ...] = (("content-type", "text/html"),)
    body: bytes = b"<html><body><h1>502 Bad Gateway</h1></body></html>"


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """Status 200, some events, then an error inside the stream, and no more."""

    events: int = 1
    """How many events come before it."""
    type: str = "overloaded_error"
    message: str = "Overloaded"


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is reset (RST). With neither place given: before the first byte of the
    answer."""

    events: int | None = None
    """After so many events; 0 is after the headers."""
    bytes: int | None = None
    """After so many bytes of body."""


@dataclass(frozen=True, slots=True)
class Fin:
    """The connection ends early and politely (FIN): half a stream. Places as in `Reset`."""

    events: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing comes for a while. Without a place: before the first byte."""

    seconds: float
    events: int | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing comes until the gate opens. Without a place: before the first byte."""

    gate: Gate
    events: int | None = None


@dataclass(frozen=True, slots=True)
class Drip:
    """A pause before every piece that is sent."""

    interval: float


@dataclass(frozen=True, slots=True)
class Split:
    """The body is sent in pieces of so many bytes, each flushed by itself: cuts fall inside events
    and characters."""

    size: int = 1


@dataclass(frozen=True, slots=True)
class Crlf:
    """The stream's lines end with CR LF."""


@dataclass(frozen=True, slots=True)
class Comments:
    """A comment line precedes every event."""

    text: str = "keep-alive"


@dataclass(frozen=True, slots=True)
class MultilineData:
    """Each event's data is spread over several `data:` lines."""


@dataclass(frozen=True, slots=True)
class HugeEvent:
    """One delta carries so many bytes more."""

    size: int = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Missing:
    """The stream lacks its first or last event."""

    edge: Edge


@dataclass(frozen=True, slots=True)
class Twice:
    """The stream's first or last event comes twice."""

    edge: Edge


@dataclass(frozen=True, slots=True)
class WrongOrder:
    """Blocks are streamed with their highest index first. Needs a reply with two blocks to show."""


@dataclass(frozen=True, slots=True)
class Gzipped:
    """The body is compressed, event by event where it is a stream, whether the client asked for it
    or not."""


@dataclass(frozen=True, slots=True)
class WrongLength:
    """A content-length that is off by so many bytes, also on a stream; the connection closes after
    the body."""

    by: int


@dataclass(frozen=True, slots=True)
class CloseDelimited:
    """The body ends where the connection does, as in HTTP/1.0: neither length nor chunks."""


@dataclass(frozen=True, slots=True)
class InvalidUtf8:
    """The reply's text contains two bytes that are not UTF-8."""


Fault = (
    Status
    | Raw
    | ErrorEvent
    | Reset
    | Fin
    | Silence
    | Hold
    | Drip
    | Split
    | Crlf
    | Comments
    | MultilineData
    | HugeEvent
    | Missing
    | Twice
    | WrongOrder
    | Gzipped
    | WrongLength
    | CloseDelimited
    | InvalidUtf8
)
