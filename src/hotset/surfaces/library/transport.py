"""Transports for httpx clients that walk each call of a conversation: the client's own connection
sends, the walk decides what.

They stand in front of the client that an SDK came with, and send through it: its connections,
proxies, timeouts, hooks and certificates stay in force. Whatever is not a conversation passes
untouched. `httpx` and `httpx2` are served alike.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from hotset.errors import MemoryClosed
from hotset.nouns.call import ClientCall, Headers
from hotset.runtime.codings import MOST
from hotset.runtime.planning import Planner
from hotset.runtime.wire import onward
from hotset.surfaces.library.driving import Flow, awaiting, blocking
from hotset.surfaces.library.engine import Engine, Work
from hotset.surfaces.library.errand import Begin, Broken, Errand, ReplyEnd, Show
from hotset.surfaces.library.exchange import Exchange, Hands
from hotset.surfaces.library.routes import dialect_of, upstream_of

_OURS = "x-hotset-"


@dataclass(frozen=True, slots=True)
class Way:
    """How one client's calls go."""

    engine: Engine
    planner: Planner
    named: Headers
    """Headers of ours: the agent and the session that the caller named."""
    http: Any
    """The client that sends."""
    httpx: Any
    """The module that it is of: `httpx` or `httpx2`."""


def blocking_transport(way: Way) -> Any:
    return type("BlockingTransport", (_Blocking, way.httpx.BaseTransport), {})(way)


def awaiting_transport(way: Way) -> Any:
    return type("AwaitingTransport", (_Awaiting, way.httpx.AsyncBaseTransport), {})(way)


def way_of(http: Any) -> Way | None:
    """How a client's calls go, if it has one of these transports."""
    transport = getattr(http, "_transport", None)
    return transport.way if isinstance(transport, _Blocking | _Awaiting) else None


class _Blocking:
    """A transport for a client that blocks."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self._stream = type("Stream", (_BlockingStream, way.httpx.SyncByteStream), {})

    def handle_request(self, request: Any) -> Any:
        request.read()
        return blocking(_answer(self.way, request, self, self._stream))

    def close(self) -> None:
        self.way.http.close()

    def ask(self, work: Work[Any]) -> Any:
        return self.way.engine.wait(work)

    def send(self, request: Any) -> Any:
        return self.way.http.send(request, stream=True)

    def chunks(self, response: Any) -> Any:
        return response.iter_raw()

    def read(self, chunks: Any) -> Any:
        return next(chunks, None)

    def close_reply(self, response: Any, chunks: Any) -> None:
        chunks.close()
        response.close()


class _Awaiting:
    """A transport for a client that awaits."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self._stream = type("Stream", (_AwaitingStream, way.httpx.AsyncByteStream), {})

    async def handle_async_request(self, request: Any) -> Any:
        await request.aread()
        return await awaiting(_answer(self.way, request, self, self._stream))

    async def aclose(self) -> None:
        await self.way.http.aclose()

    def ask(self, work: Work[Any]) -> Any:
        return self.way.engine.done(work)

    def send(self, request: Any) -> Any:
        return self.way.http.send(request, stream=True)

    def chunks(self, response: Any) -> Any:
        return response.aiter_raw()

    def read(self, chunks: Any) -> Any:
        return anext(chunks, None)

    async def close_reply(self, response: Any, chunks: Any) -> None:
        await chunks.aclose()
        await response.aclose()


def _answer(way: Way, request: Any, hands: Hands, stream: Callable[[_Reply], Any]) -> Flow[Any]:
    """The reply to a request of the client's: as the walk has it, or the upstream's own where there
    is nothing to walk."""
    exchange = _exchange(way, request, hands)
    if exchange is not None:
        try:
            first = yield from exchange.next()
        except MemoryClosed as error:
            if exchange.sent:
                raise
            way.engine.tell_once(str(error))
        else:
            if isinstance(first, Begin):
                kept = {
                    name: value
                    for name, value in exchange.extensions.items()
                    if name != "network_stream"
                }
                reply = stream(_Reply(exchange, way))
                return way.httpx.Response(
                    first.status, headers=list(first.headers), stream=reply, extensions=kept
                )
            assert isinstance(first, Broken)
            if exchange.sent:
                raise _broke(first, way)
            way.engine.tell_once("a fault of ours")
    return (yield partial(hands.send, _untouched(request)))


def _exchange(way: Way, request: Any, hands: Hands) -> Exchange | None:
    """None where the request is not a turn of a conversation that we can read."""
    dialect = dialect_of(request.method, request.url.path)
    if dialect is None or len(request.content) > MOST:
        return None
    call = ClientCall(
        method=request.method,
        path=request.url.raw_path.decode("ascii", "replace"),
        headers=(*way.named, *((bytes(name), bytes(value)) for name, value in request.headers.raw)),
        body=request.content,
        upstream=upstream_of(str(request.url), dialect, way.engine.config.upstreams),
        dialect=dialect,
    )

    def outgoing(made: ClientCall) -> Any:
        headers = onward(made.headers)
        return way.httpx.Request(
            made.method,
            request.url,
            headers=headers,
            content=made.body,
            extensions=request.extensions,
        )

    return Exchange(Errand(call, way.engine, way.planner), hands, outgoing)


def _untouched(request: Any) -> Any:
    """A request that goes through as it is, but for what was said to us."""
    for name in [name for name in request.headers if name.lower().startswith(_OURS)]:
        del request.headers[name]
    return request


def _broke(broken: Broken, way: Way) -> BaseException:
    """What the caller is to see: its own error, wherever there is one."""
    return broken.why or way.httpx.ReadError(
        "hotset could not finish this call; it was not sent again"
    )


class _Reply:
    """The rest of a reply, piece by piece."""

    def __init__(self, exchange: Exchange, way: Way) -> None:
        self._exchange = exchange
        self._way = way
        self._ended = False

    def chunk(self) -> Flow[bytes | None]:
        """None at the end."""
        if self._ended:
            return None
        told = yield from self._exchange.next()
        if isinstance(told, Show):
            return told.chunk
        self._ended = True
        if isinstance(told, ReplyEnd):
            return told.last
        assert isinstance(told, Broken)
        raise _broke(told, self._way)

    def leave(self) -> Flow[None]:
        return self._exchange.leave()


class _BlockingStream:
    def __init__(self, reply: _Reply) -> None:
        self._reply = reply

    def __iter__(self) -> Iterator[bytes]:
        while (chunk := blocking(self._reply.chunk())) is not None:
            yield chunk

    def close(self) -> None:
        blocking(self._reply.leave())


class _AwaitingStream:
    def __init__(self, reply: _Reply) -> None:
        self._reply = reply

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (chunk := await awaiting(self._reply.chunk())) is not None:
            yield chunk

    async def aclose(self) -> None:
        await awaiting(self._reply.leave())
