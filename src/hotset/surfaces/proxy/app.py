"""The proxy's door: ASGI in, a `ClientCall` out, and the walk's reply back as it comes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hotset.nouns.call import ClientCall, Headers, header
from hotset.nouns.message import DialectName
from hotset.runtime.codings import MOST
from hotset.runtime.machine import Machine
from hotset.runtime.walk import pass_through, walk
from hotset.runtime.wire import DEFAULT, Dialects
from hotset.surfaces.proxy.guard import Guard, Refusal, encoded
from hotset.surfaces.proxy.routes import route

_OWN = "/hotset"
_MCP = ("/mcp", "/mcp/")
_SLICE = 1 << 18
_JSON: Headers = ((b"content-type", b"application/json"),)


class Gone(Exception):
    """The client went away before its request was whole."""


def build(
    machine: Machine, guard: Guard, status: Callable[[], Awaitable[dict[str, Any]]], mcp: ASGIApp
) -> ASGIApp:
    """Everything behind the guard: our own pages under `/hotset/`, agents' tools at `/mcp`, the
    rest through `Proxy`."""

    async def tell(_request: object) -> JSONResponse:
        return JSONResponse(await status())

    # No redirects: they would lead to a path without the token.
    own = Starlette(
        routes=[
            Route(path, tell) for path in (_OWN, f"{_OWN}/", f"{_OWN}/status", f"{_OWN}/status/")
        ]
    )
    own.router.redirect_slashes = False
    return Door(own, mcp, Proxy(machine), guard, machine.dialects)


class Door:
    """Lets in whom the guard admits, with the token taken off the path."""

    def __init__(
        self, own: ASGIApp, mcp: ASGIApp, proxy: ASGIApp, guard: Guard, dialects: Dialects
    ) -> None:
        self._own = own
        self._mcp = mcp
        self._proxy = proxy
        self._guard = guard
        self._dialects = dialects

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        admitted = self._guard.admit(encoded(scope["raw_path"]), tuple(scope["headers"]))
        if isinstance(admitted, Refusal):
            client = AsgiClient(send, _dialect_of(scope["path"], self._dialects), self._dialects)
            await client.refuse(admitted.status, admitted.message, ())
            return
        scope["path"], scope["raw_path"] = admitted, admitted.encode()
        scope["headers"] = self._guard.without_token(tuple(scope["headers"]))
        scope["query_string"] = self._guard.query_without_token(scope["query_string"])
        # The proxy is not a route of the application: its calls need none of what routing does.
        inside = admitted == _OWN or admitted.startswith(f"{_OWN}/")
        where = self._own if inside else self._mcp if admitted in _MCP else self._proxy
        await where(scope, receive, send)


class Proxy:
    """Every call that is not for hotset itself."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        machine = self._machine
        headers: Headers = tuple(scope["headers"])
        where = route(
            scope["method"], scope["raw_path"].decode(), headers, machine.config.upstreams
        )
        client = AsgiClient(send, where.dialect if where else None, machine.dialects)
        if where is None:
            await client.refuse(
                404, "no upstream of that name is configured; `hotset status` lists them", ()
            )
            return
        if header(headers, b"upgrade").lower() == "websocket":
            # Passed on as a plain GET it would fail in ways that clients try again and again; this
            # makes them use HTTP at once.
            await client.refuse(
                426,
                "hotset speaks HTTP only; without a WebSocket everything works",
                ((b"upgrade", b"HTTP/1.1"),),
            )
            return
        query = "?" + scope["query_string"].decode("latin-1") if scope["query_string"] else ""
        upload = Upload(receive)
        machine.tally.requests += 1
        machine.tally.last = machine.clock()
        try:
            body: bytes | AsyncIterator[bytes] = upload.chunks()
            unread = ""
            if where.dialect is not None:
                body, unread = await upload.whole(MOST)
            call = ClientCall(
                method=scope["method"],
                path=where.path + query,
                headers=headers,
                body=body,
                upstream=where.upstream,
                dialect=None if unread else where.dialect,
                unread=unread,
            )
            if unread:
                machine.bypass(unread, path=where.path)
            await _unless_left(
                (pass_through if call.dialect is None else walk)(call, client, machine), upload
            )
        except Gone:
            machine.tally.left += 1


async def _unless_left(work: Awaitable[None], upload: Upload) -> None:
    """Ends the work at once when the client leaves, also before the first byte of a reply."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(upload.left())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working


class Upload:
    """A request's body as it comes in, and the moment its client leaves."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._first: list[bytes] = []
        self._done = asyncio.Event()

    async def whole(self, most: int) -> tuple[bytes | AsyncIterator[bytes], str]:
        """The whole body; or, where it is larger than `most`, its stream and a word on why it stays
        unread."""
        size = 0
        while True:
            message = await self._next()
            self._first.append(message.get("body", b""))
            size += len(self._first[-1])
            if not message.get("more_body", False):
                self._done.set()
                return b"".join(self._first), ""
            if size > most:
                return self.chunks(), f"the body is larger than {most >> 20} MiB"

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._first:
            yield chunk
        while not self._done.is_set():
            message = await self._next()
            if not message.get("more_body", False):
                self._done.set()
            if chunk := message.get("body", b""):
                yield chunk

    async def left(self) -> None:
        """Returns when the client goes away; meaningful once the body has come."""
        await self._done.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Gone
        return message


class AsgiClient:
    """The client's end of a call; see `runtime.walk.Client`."""

    def __init__(self, send: Send, dialect: DialectName | None, dialects: Dialects) -> None:
        self._send = send
        self._dialect = dialects[dialect] if dialect else DEFAULT
        self.begun = False

    async def start(self, status: int, headers: Headers) -> None:
        self.begun = True
        await self._send(
            {"type": "http.response.start", "status": status, "headers": list(headers)}
        )

    async def send(self, chunk: bytes) -> None:
        """In slices: the server waits for a client to read before it takes another one, but takes
        each one whole."""
        for piece in _slices(chunk):
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def finish(self, last: bytes = b"") -> None:
        if len(last) > _SLICE:
            await self.send(last)
            last = b""
        await self._send({"type": "http.response.body", "body": last, "more_body": False})

    async def refuse(self, status: int, message: str, headers: Headers) -> None:
        body = self._dialect.refuse(status, f"hotset: {message}")
        await self.start(status, (*_JSON, (b"content-length", str(len(body)).encode()), *headers))
        await self._send({"type": "http.response.body", "body": body})

    def broke(self) -> None:
        """Returning without a last chunk makes the server close the connection, so that the client
        sees the break."""


def _slices(chunk: bytes) -> Iterator[bytes | memoryview]:
    if len(chunk) <= _SLICE:
        yield chunk
        return
    view = memoryview(chunk)
    for start in range(0, len(chunk), _SLICE):
        yield view[start : start + _SLICE]


def _dialect_of(path: str, dialects: Dialects) -> DialectName | None:
    """The dialect in which to refuse a call that was not let in."""
    return next((name for name, each in dialects.items() if each.path in path), None)
