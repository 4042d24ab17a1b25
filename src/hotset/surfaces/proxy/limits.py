"""Limits of one connection: header bytes, time, unread bytes, enforced before its data is parsed.

uvicorn bounds none of it with this parser. Times are checked by one sweep over all connections each
second, not by timers.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from hotset.runtime.wire import DEFAULT

MOST_HEADER_BYTES = 64 << 10  # the request line and all headers
MOST_HEADERS = 256
LONGEST_URL = 16 << 10

_MOST_CONNECTIONS = 2000
_FILES_OF_OURS = 64
"""Open files reserved for the store, the index and tools where the system allows few; a call takes
two."""

_LINGER_SECONDS = 1.0
"""For so long a refused client's data is read and dropped: if we closed at once, it might not get
to read the reason."""

_SEND_BUFFER = 128 << 10
"""Bytes of a reply that the system buffers for a client who does not read: by default it takes up
to 4 MB for each, and we have kept those bytes as well."""


def _most_connections() -> int:
    """The most connections that the system's limit of open files allows."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        _MOST_CONNECTIONS
        if allowed < 0
        else min(_MOST_CONNECTIONS, max(16, (allowed - _FILES_OF_OURS) // 2))
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in seconds, and the number of connections."""

    header_seconds: float = 15.0
    """From the first byte of a request, or from the connection, to the end of its headers."""
    stall_seconds: float = 60.0
    """The longest pause in a body that is being read."""
    unread_seconds: float = 600.0
    """The longest time in which a client reads nothing of a reply that is ready. An agent may be
    paused for a while."""
    connections: int = field(default_factory=_most_connections)


class BoundedHttp(HttpToolsProtocol):
    """One connection, within limits."""

    def __init__(self, limits: Limits, **uvicorn_s: Any) -> None:
        super().__init__(**uvicorn_s)
        self._limits = limits

    _head = 0
    """Bytes of headers that are not complete yet."""
    _in_head = True
    _refusal: tuple[int, str] | None = None
    _since = 0.0
    """When the wait for the headers, or for the next piece of the body, began."""
    _unread_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = time.monotonic()
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        if len(self.connections) > self._limits.connections:
            self._refuse(503, "too many connections are open")

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            return
        if self._in_head and not self._head:
            self._since = time.monotonic()
        self._head += len(data) if self._in_head else 0
        super().data_received(data)
        if self._in_head and self._head > MOST_HEADER_BYTES and self._refusal is None:
            self._refuse(431, f"the headers are larger than {MOST_HEADER_BYTES >> 10} KiB")

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > LONGEST_URL:
            self._stop(414, f"the URL is longer than {LONGEST_URL >> 10} KiB")

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > MOST_HEADERS:
            self._stop(431, f"there are more than {MOST_HEADERS} headers")

    def on_headers_complete(self) -> None:
        if sum(len(name) + len(value) for name, value in self.headers) > MOST_HEADER_BYTES:
            self._stop(431, f"the headers are larger than {MOST_HEADER_BYTES >> 10} KiB")
        self._in_head, self._head = False, 0
        self._since = time.monotonic()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self.cycle.response_complete:  # data behind a refusal is dropped, for a while
            self._since = time.monotonic()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head, self._head = True, 0
        super().on_message_complete()

    def pause_writing(self) -> None:
        self._unread_since = time.monotonic()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._unread_since = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Also called where a callback above stopped the parser."""
        self._refuse(*(self._refusal or (400, msg)))

    def sweep(self, now: float) -> None:
        """Closes the connection if it has kept us waiting too long."""
        if (
            self._unread_since is not None
            and now - self._unread_since > self._limits.unread_seconds
        ):
            self.transport.abort()  # to close it would be to wait until it is read
        elif self._refusal is not None or self.transport.is_closing():
            return
        elif self._in_head:
            is_idle = self.cycle is not None and not self._head  # that is uvicorn's to bound
            if not is_idle and now - self._since > self._limits.header_seconds:
                self._refuse(
                    408, f"the headers were not whole within {self._limits.header_seconds:.0f} s"
                )
        elif not self.flow.read_paused and now - self._since > self._limits.stall_seconds:
            self.transport.abort()

    def _stop(self, status: int, message: str) -> None:
        self._refusal = status, message
        raise ValueError(message)  # the parser stops, and `send_400_response` is called

    def _refuse(self, status: int, message: str) -> None:
        self._refusal = status, message
        body = DEFAULT.refuse(status, f"hotset: {message}")
        head = (
            b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
            % len(body)
        )
        self.transport.write(STATUS_LINE[status] + head + body)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER_SECONDS, self.transport.close)


def sweep(connections: set[Any]) -> None:
    now = time.monotonic()
    for connection in tuple(connections):
        connection.sweep(now)
