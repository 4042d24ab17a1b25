"""openai and anthropic clients whose conversations have a memory: a copy whose httpx transport
walks each call.

The transport wraps the SDK's own HTTP client and sends through it: its connections, proxies,
timeouts, hooks and certificates stay in force. The walk decides what is sent. Calls that are no
conversation pass untouched. `httpx` and `httpx2` are served alike.

Code for blocking and awaiting callers is written once, as a `Flow`: a generator that yields acts,
which one of two runners performs, at once or awaited. An act's exception is raised in the flow,
where the act was yielded.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from hotset.errors import BadInput, MemoryClosed
from hotset.nouns.call import ClientCall, Headers
from hotset.runtime.planner import Planner
from hotset.runtime.reply_bytes import MOST
from hotset.runtime.wire import back, onward
from hotset.surfaces.library.engine import Engine, Work
from hotset.surfaces.library.sdk_messages import dialect_at, upstream_of
from hotset.surfaces.library.walk_driver import (
    Begin,
    Broken,
    Head,
    Order,
    Read,
    ReplyEnd,
    Send,
    SendFailure,
    Show,
    WalkDriver,
)

_Client = TypeVar("_Client")

_MODULES = ("httpx2", "httpx")
_PASSED_ON = ("params", "headers", "cookies", "timeout", "base_url", "trust_env")
"""Arguments that an httpx client puts into requests that are built with it; it does the rest when
it sends them."""

_OURS = "x-hotset-"
ForClient = Begin | Show | ReplyEnd | Broken
_T = TypeVar("_T")
Act = Callable[[], Any]
Flow = Generator[Act, Any, _T]


def wrap_client(client: _Client, engine: Engine, *, budget: int, named: Headers) -> _Client:
    """A copy of an SDK's client: its key, URL, headers, timeouts and retries stay. Closing it
    closes the client too.

    Raises `BadInput` for what is not a client.
    """
    remake = getattr(client, "copy", None)
    http = getattr(client, "_client", None)  # the SDKs have no public name for it
    if remake is None or _httpx_of(http) is None:
        kind = f"{type(client).__module__.split('.')[0]}.{type(client).__name__}"
        raise BadInput(
            f"hotset.wrap takes a client of openai or anthropic, or a model made of one, not {kind}"
        )
    made: _Client = remake(http_client=wrap_http(http, engine, budget=budget, named=named))
    return made


def wrap_http(http: Any, engine: Engine, *, budget: int, named: Headers) -> Any:
    """An httpx client that walks conversations and sends through the given one."""
    if (before := setup_of(http)) is not None:
        http = before.http  # wrapped already: the later setup wins
    httpx = _httpx_of(http)
    if httpx is None:
        raise BadInput("that is not a client of httpx or httpx2")
    setup = ClientSetup(engine, engine.planner(budget), named, http, httpx)
    settings = {name: getattr(http, name) for name in _PASSED_ON}
    if isinstance(http, httpx.Client):
        transport = type("BlockingTransport", (_Blocking, httpx.BaseTransport), {})
        return httpx.Client(transport=transport(setup), **settings)
    transport = type("AwaitingTransport", (_Awaiting, httpx.AsyncBaseTransport), {})
    return httpx.AsyncClient(transport=transport(setup), **settings)


def _httpx_of(http: object) -> Any:
    """The module of an HTTP client, `httpx` or `httpx2`; None for any other."""
    loaded = (sys.modules.get(name) for name in _MODULES)
    return next(
        (
            each
            for each in loaded
            if each is not None and isinstance(http, each.Client | each.AsyncClient)
        ),
        None,
    )


@dataclass(frozen=True, slots=True)
class ClientSetup:
    """The settings of one wrapped client."""

    engine: Engine
    planner: Planner
    named: Headers
    """Our headers: the agent and the session that the caller named."""
    http: Any
    """The client that sends."""
    httpx: Any
    """The module of that client: `httpx` or `httpx2`."""


def setup_of(http: Any) -> ClientSetup | None:
    """The setup of a client that has one of these transports; otherwise None."""
    transport = getattr(http, "_transport", None)
    return transport.setup if isinstance(transport, _Blocking | _Awaiting) else None


class _Blocking:
    """The transport for a blocking client."""

    def __init__(self, setup: ClientSetup) -> None:
        self.setup = setup
        self._stream = type("Stream", (_BlockingStream, setup.httpx.SyncByteStream), {})

    def handle_request(self, request: Any) -> Any:
        request.read()
        return run_blocking(_answer(self.setup, request, self, self._stream))

    def close(self) -> None:
        self.setup.http.close()

    def ask(self, work: Work[Any]) -> Any:
        return self.setup.engine.wait(work)

    def send(self, request: Any) -> Any:
        return self.setup.http.send(request, stream=True)

    def chunks(self, response: Any) -> Any:
        return response.iter_raw()

    def read(self, chunks: Any) -> Any:
        return next(chunks, None)

    def close_reply(self, response: Any, chunks: Any) -> None:
        chunks.close()
        response.close()


class _Awaiting:
    """The transport for an awaiting client."""

    def __init__(self, setup: ClientSetup) -> None:
        self.setup = setup
        self._stream = type("Stream", (_AwaitingStream, setup.httpx.AsyncByteStream), {})

    async def handle_async_request(self, request: Any) -> Any:
        await request.aread()
        return await run_awaiting(_answer(self.setup, request, self, self._stream))

    async def aclose(self) -> None:
        await self.setup.http.aclose()

    def ask(self, work: Work[Any]) -> Any:
        return self.setup.engine.wait_async(work)

    def send(self, request: Any) -> Any:
        return self.setup.http.send(request, stream=True)

    def chunks(self, response: Any) -> Any:
        return response.aiter_raw()

    def read(self, chunks: Any) -> Any:
        return anext(chunks, None)

    async def close_reply(self, response: Any, chunks: Any) -> None:
        await chunks.aclose()
        await response.aclose()


def _answer(
    setup: ClientSetup, request: Any, acts: HttpActs, stream: Callable[[Exchange], Any]
) -> Flow[Any]:
    """The reply to a client's request: the walk's, or the upstream's own where there is nothing to
    walk."""
    exchange = _exchange(setup, request, acts)
    if exchange is not None:
        try:
            first = yield from exchange.next()
        except MemoryClosed as error:
            if exchange.sent:
                raise
            setup.engine.warn_once(str(error))
        else:
            if isinstance(first, Begin):
                kept = {
                    name: value
                    for name, value in exchange.extensions.items()
                    if name != "network_stream"
                }
                reply = stream(exchange)
                return setup.httpx.Response(
                    first.status, headers=list(first.headers), stream=reply, extensions=kept
                )
            assert isinstance(first, Broken)
            if exchange.sent:
                raise exchange.error_of(first)
            setup.engine.warn_once("a fault of ours")
    return (yield partial(acts.send, _without_our_headers(request)))


def _exchange(setup: ClientSetup, request: Any, acts: HttpActs) -> Exchange | None:
    """The exchange for a request; None if it is not a turn of a conversation that we can read."""
    dialect = dialect_at(request.method, request.url.path)
    if dialect is None or len(request.content) > MOST:
        return None
    call = ClientCall(
        method=request.method,
        path=request.url.raw_path.decode("ascii", "replace"),
        headers=(
            *setup.named,
            *((bytes(name), bytes(value)) for name, value in request.headers.raw),
        ),
        body=request.content,
        upstream=upstream_of(str(request.url), dialect, setup.engine.config.upstreams),
        dialect=dialect,
    )

    return Exchange(WalkDriver(call, setup.engine, setup.planner), acts, setup, request)


def _without_our_headers(request: Any) -> Any:
    """The request without headers that are for us."""
    for name in [name for name in request.headers if name.lower().startswith(_OURS)]:
        del request.headers[name]
    return request


class _BlockingStream:
    def __init__(self, reply: Exchange) -> None:
        self._reply = reply

    def __iter__(self) -> Iterator[bytes]:
        while (chunk := run_blocking(self._reply.chunk())) is not None:
            yield chunk

    def close(self) -> None:
        run_blocking(self._reply.leave())


class _AwaitingStream:
    def __init__(self, reply: Exchange) -> None:
        self._reply = reply

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (chunk := await run_awaiting(self._reply.chunk())) is not None:
            yield chunk

    async def aclose(self) -> None:
        await run_awaiting(self._reply.leave())


class HttpActs(Protocol):
    """Acts that differ between blocking and awaiting callers: each gives its result, or an
    awaitable of it."""

    def ask(self, work: Work[Any]) -> Any:
        """Runs work on the engine."""
        ...

    def send(self, request: Any) -> Any: ...

    def chunks(self, response: Any) -> Any:
        """An iterator over the reply's raw bytes, as they arrive."""
        ...

    def read(self, chunks: Any) -> Any:
        """The next bytes, or None."""
        ...

    def close_reply(self, response: Any, chunks: Any) -> Any: ...


class Exchange:
    """One call between an httpx client and the walk: carries out the walk's orders, and passes the
    rest to the client."""

    def __init__(
        self, driver: WalkDriver, acts: HttpActs, setup: ClientSetup, request: Any
    ) -> None:
        self._driver = driver
        self._acts = acts
        self._setup = setup
        self._request = request
        self._orders: deque[Order] = deque()
        self._open: tuple[Any, Any] | None = None
        """The upstream's reply that is being read, and the iterator over its bytes."""
        self._begun = self._ended = False
        self.sent = False
        """True if something was sent: it must not be sent again."""
        self.extensions: dict[str, Any] = {}
        """The extensions of the first reply of the client's own transport."""

    def next(self) -> Flow[ForClient]:
        """Carries out orders up to the next one that is for the client."""
        try:
            while True:
                while self._orders:
                    order = self._orders.popleft()
                    if not isinstance(order, Send | Read):
                        return order
                    outcome = (
                        yield from self._send(order.call)
                        if isinstance(order, Send)
                        else self._read()
                    )
                    self._orders.extend(
                        (yield partial(self._acts.ask, self._driver.resume(outcome)))
                    )
                work, self._begun = (
                    self._driver.next_orders() if self._begun else self._driver.begin(),
                    True,
                )
                self._orders.extend((yield partial(self._acts.ask, work)))
        except BaseException:
            yield from self.leave()
            raise

    def chunk(self) -> Flow[bytes | None]:
        """The next bytes of a reply that has begun; None at its end."""
        if self._ended:
            return None
        order = yield from self.next()
        if isinstance(order, Show):
            return order.chunk
        self._ended = True
        if isinstance(order, ReplyEnd):
            return order.last
        assert isinstance(order, Broken)
        raise self.error_of(order)

    def error_of(self, broken: Broken) -> BaseException:
        """The error for the caller: its own, where there is one."""
        return broken.why or self._setup.httpx.ReadError(
            "hotset could not finish this call; it was not sent again"
        )

    def leave(self) -> Flow[None]:
        """Ends the exchange: the client wants no more of it, or has all of it."""
        self._driver.leave()
        if self._open is not None:
            was_open, self._open = self._open, None
            yield partial(self._acts.close_reply, *was_open)

    def _send(self, call: ClientCall) -> Flow[Head | SendFailure]:
        self.sent = True
        self._open = None  # the reply before it was read to its end
        try:
            outgoing = self._setup.httpx.Request(
                call.method,
                self._request.url,
                headers=onward(call.headers),
                content=call.body,
                extensions=self._request.extensions,
            )
            response = yield partial(self._acts.send, outgoing)
        except Exception as error:  # goes to the walk, and is raised for the caller in the end
            return SendFailure(error)
        self._open = response, self._acts.chunks(response)
        self.extensions = self.extensions or dict(response.extensions)
        return Head(response.status_code, back(tuple(response.headers.raw)))

    def _read(self) -> Flow[bytes | SendFailure | None]:
        assert self._open is not None
        try:
            chunk: bytes | None = yield partial(self._acts.read, self._open[1])
        except Exception as error:  # as above
            return SendFailure(error)
        return chunk


def run_blocking(flow: Flow[_T]) -> _T:
    step: Callable[[Any], Act] = flow.send
    value: Any = None
    while True:
        try:
            act = step(value)
        except StopIteration as end:
            result: _T = end.value
            return result
        try:
            step, value = flow.send, act()
        except BaseException as error:  # the flow handles it
            step, value = flow.throw, error


async def run_awaiting(flow: Flow[_T]) -> _T:
    step: Callable[[Any], Act] = flow.send
    value: Any = None
    while True:
        try:
            act = step(value)
        except StopIteration as end:
            result: _T = end.value
            return result
        try:
            step, value = flow.send, await act()
        except BaseException as error:  # the flow handles it
            step, value = flow.throw, error
