"""Drives a walk for a caller that owns the connection.

The walk runs on the engine's loop; the connection stays on the caller's thread or loop. So the walk
gives *orders* (send, read, show), and the caller carries them out and hands back their results.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from hotset.errors import UpstreamFailed
from hotset.files.scope import PROCESS
from hotset.nouns.call import ClientCall, Headers, Response
from hotset.runtime.planner import Planner
from hotset.runtime.walk import walk
from hotset.surfaces.library.engine import Engine


@dataclass(frozen=True, slots=True)
class Send:
    """Send this call; the result is a `Head`."""

    call: ClientCall


@dataclass(frozen=True, slots=True)
class Read:
    """Read the next bytes of the reply; the result is bytes, or None at its end."""


@dataclass(frozen=True, slots=True)
class Begin:
    """The client's reply begins."""

    status: int
    headers: Headers


@dataclass(frozen=True, slots=True)
class Show:
    """Bytes of the client's reply."""

    chunk: bytes


@dataclass(frozen=True, slots=True)
class ReplyEnd:
    """The client's reply has ended."""

    last: bytes


@dataclass(frozen=True, slots=True)
class Broken:
    """The reply fails, or breaks off."""

    why: BaseException | None
    """The caller's own error while it sent or read; None for a fault of ours."""
    sent: bool
    """True if something was sent already: it must not be sent again."""


Order = Send | Read | Begin | Show | ReplyEnd | Broken


@dataclass(frozen=True, slots=True)
class Head:
    """A reply has begun."""

    status: int
    headers: Headers


@dataclass(frozen=True, slots=True)
class SendFailure:
    """A call that could not be sent, or whose reply broke off."""

    error: Exception


OrderResult = Head | bytes | SendFailure | None


class WalkDriver:
    """The walk's client (see `runtime.walk.Client`), which sends through its caller. Lives on the
    engine's loop."""

    def __init__(self, call: ClientCall, engine: Engine, planner: Planner) -> None:
        self._call = call
        self._engine = engine
        self._planner = planner
        self._orders = PROCESS.loop_queue(0)
        self._pending: asyncio.Future[OrderResult] | None = None
        self._walking: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._last = b""
        self._sent = False
        self._is_over = False
        self.begun = False

    async def begin(self) -> Sequence[Order]:
        machine = self._engine.machine.over(_CallerWire(self), self._planner)
        self._walking = self._engine.walk(walk(self._call, self, machine))
        self._walking.add_done_callback(self._on_walk_end)
        return await self.next_orders()

    async def resume(self, result: OrderResult) -> Sequence[Order]:
        """Continues the walk with the result of the latest order; returns the next orders."""
        pending, self._pending = self._pending, None
        if pending is not None and not pending.done():
            pending.set_result(result)
        return await self.next_orders()

    async def next_orders(self) -> Sequence[Order]:
        orders = [await self._orders.get()]
        while not self._orders.empty():
            orders.append(self._orders.get_nowait())
        return orders

    def leave(self) -> None:
        """Cancels the walk: the caller wants no more of it. From any thread."""
        self._engine.call_soon(self._cancel)

    async def perform(self, order: Send | Read) -> OrderResult:
        """Gives an order to the caller and waits for its result. Raises `UpstreamFailed`."""
        self._sent = True
        self._pending = asyncio.get_running_loop().create_future()
        self._orders.put_nowait(order)
        result = await self._pending
        if isinstance(result, SendFailure):
            self._failure = result.error
            raise UpstreamFailed(
                f"{self._call.upstream} could not be reached or broke off: "
                f"{type(result.error).__name__}"
            )
        return result

    async def start(self, status: int, headers: Headers) -> None:
        self.begun = True
        self._orders.put_nowait(Begin(status, headers))

    async def send(self, chunk: bytes) -> None:
        self._orders.put_nowait(Show(chunk))

    async def finish(self, last: bytes = b"") -> None:
        """Keeps the last bytes until the walk is over: a caller who has them may leave at once."""
        self._last = last

    async def refuse(self, _status: int, _message: str, _headers: Headers) -> None:
        self.broke()

    def broke(self) -> None:
        self._is_over = True
        self._orders.put_nowait(Broken(self._failure, self._sent))

    def _on_walk_end(self, walking: asyncio.Task[None]) -> None:
        if walking.cancelled() or walking.exception() is not None:
            self.broke()
        elif not self._is_over:
            self._orders.put_nowait(ReplyEnd(self._last))

    def _cancel(self) -> None:
        if self._walking is not None:
            self._walking.cancel()


class _CallerWire:
    """The wire of one driver: it sends through the caller."""

    def __init__(self, driver: WalkDriver) -> None:
        self._driver = driver

    @asynccontextmanager
    async def send(self, call: ClientCall) -> AsyncIterator[Response]:
        head = await self._driver.perform(Send(call))
        assert isinstance(head, Head)
        yield Response(head.status, head.headers, self._chunks())

    async def close(self) -> None: ...

    async def _chunks(self) -> AsyncIterator[bytes]:
        while (chunk := await self._driver.perform(Read())) is not None:
            assert isinstance(chunk, bytes)
            yield chunk
