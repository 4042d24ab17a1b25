"""One walk as its caller sees it: what to send, what to read, what to show. The walk decides, the
caller does the talking.

The walk runs on the engine's loop; the connection belongs to the caller's thread or loop, and stays
there. So the walk gives *orders*, and the caller tells what came of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from hotset.errors import UpstreamFailed
from hotset.nouns.call import ClientCall, Headers, Response
from hotset.runtime.planner import Planner
from hotset.runtime.walk import walk
from hotset.surfaces.library.engine import Engine


@dataclass(frozen=True, slots=True)
class Send:
    """To be sent; what is told in return is a `Head`."""

    call: ClientCall


@dataclass(frozen=True, slots=True)
class Read:
    """The next bytes of the reply are wanted; what is told in return is bytes, or None at its
    end."""


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
    """There will be no reply, or no end of it."""

    why: BaseException | None
    """What the caller itself met while it sent or read; None for a fault of ours."""
    sent: bool
    """Something was sent by then: it must not be sent again."""


Order = Send | Read | Begin | Show | ReplyEnd | Broken


@dataclass(frozen=True, slots=True)
class Head:
    """A reply has begun."""

    status: int
    headers: Headers


@dataclass(frozen=True, slots=True)
class SendFailure:
    """It could not be sent, or its reply broke off."""

    error: Exception


Told = Head | bytes | SendFailure | None


class Errand:
    """The walk's client (see `runtime.walk.Client`), whose way out is its caller's. Lives on the
    engine's loop."""

    def __init__(self, call: ClientCall, engine: Engine, planner: Planner) -> None:
        self._call = call
        self._engine = engine
        self._planner = planner
        self._orders: asyncio.Queue[Order] = asyncio.Queue()
        self._telling: asyncio.Future[Told] | None = None
        self._walking: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._last = b""
        self._sent = False
        self._is_over = False
        self.begun = False

    async def begin(self) -> Sequence[Order]:
        machine = self._engine.machine.over(_Way(self), self._planner)
        self._walking = self._engine.walk(walk(self._call, self, machine))
        self._walking.add_done_callback(self._walked)
        return await self.more()

    async def tell(self, told: Told) -> Sequence[Order]:
        """Goes on with what came of the latest order."""
        telling, self._telling = self._telling, None
        if telling is not None and not telling.done():
            telling.set_result(told)
        return await self.more()

    async def more(self) -> Sequence[Order]:
        orders = [await self._orders.get()]
        while not self._orders.empty():
            orders.append(self._orders.get_nowait())
        return orders

    def leave(self) -> None:
        """The caller wants no more of it. From any thread."""
        self._engine.soon(self._cancel)

    async def told(self, order: Send | Read) -> Told:
        """What came of an order. Raises `UpstreamFailed`."""
        self._sent = True
        self._telling = asyncio.get_running_loop().create_future()
        self._orders.put_nowait(order)
        told = await self._telling
        if isinstance(told, SendFailure):
            self._failure = told.error
            raise UpstreamFailed(
                f"{self._call.upstream} could not be reached or broke off: "
                f"{type(told.error).__name__}"
            )
        return told

    async def start(self, status: int, headers: Headers) -> None:
        self.begun = True
        self._orders.put_nowait(Begin(status, headers))

    async def send(self, chunk: bytes) -> None:
        self._orders.put_nowait(Show(chunk))

    async def finish(self, last: bytes = b"") -> None:
        """Told when the walk is over, and not before: a caller who has the last bytes may leave at
        once."""
        self._last = last

    async def refuse(self, _status: int, _message: str, _headers: Headers) -> None:
        self.broke()

    def broke(self) -> None:
        self._is_over = True
        self._orders.put_nowait(Broken(self._failure, self._sent))

    def _walked(self, walking: asyncio.Task[None]) -> None:
        if walking.cancelled() or walking.exception() is not None:
            self.broke()
        elif not self._is_over:
            self._orders.put_nowait(ReplyEnd(self._last))

    def _cancel(self) -> None:
        if self._walking is not None:
            self._walking.cancel()


class _Way:
    """The way out of one errand: its caller."""

    def __init__(self, errand: Errand) -> None:
        self._errand = errand

    @asynccontextmanager
    async def send(self, call: ClientCall) -> AsyncIterator[Response]:
        head = await self._errand.told(Send(call))
        assert isinstance(head, Head)
        yield Response(head.status, head.headers, self._chunks())

    async def close(self) -> None: ...

    async def _chunks(self) -> AsyncIterator[bytes]:
        while (chunk := await self._errand.told(Read())) is not None:
            assert isinstance(chunk, bytes)
            yield chunk
