"""One call between an httpx client and the walk: does what the walk orders, and has what there is
for the client."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from hotset.nouns.call import ClientCall
from hotset.runtime.wire import back
from hotset.surfaces.library.driving import Flow
from hotset.surfaces.library.engine import Work
from hotset.surfaces.library.errand import (
    Begin,
    Broken,
    Errand,
    Head,
    Order,
    Read,
    ReplyEnd,
    Send,
    SendFailure,
    Show,
)

ForClient = Begin | Show | ReplyEnd | Broken


class Hands(Protocol):
    """What those who block and those who await do differently: each gives its result, or an
    awaitable of it."""

    def ask(self, work: Work[Any]) -> Any:
        """Of the engine."""
        ...

    def send(self, request: Any) -> Any: ...

    def chunks(self, response: Any) -> Any:
        """An iterator over the reply's bytes as they came, at once."""
        ...

    def read(self, chunks: Any) -> Any:
        """The next bytes, or None."""
        ...

    def close_reply(self, response: Any, chunks: Any) -> Any: ...


class Exchange:
    def __init__(self, errand: Errand, hands: Hands, outgoing: Callable[[ClientCall], Any]) -> None:
        self._errand = errand
        self._hands = hands
        self._outgoing = outgoing
        self._orders: deque[Order] = deque()
        self._open: tuple[Any, Any] | None = None
        """The upstream's reply that is being read, and the iterator over its bytes."""
        self._begun = False
        self.sent = False
        """Something went out: it must not go out again."""
        self.extensions: dict[str, Any] = {}
        """What the client's own transport said beside its first reply."""

    def next(self) -> Flow[ForClient]:
        """Does what there is to do until there is something for the client."""
        try:
            while True:
                while self._orders:
                    order = self._orders.popleft()
                    if not isinstance(order, Send | Read):
                        return order
                    told = (
                        yield from self._send(order.call)
                        if isinstance(order, Send)
                        else self._read()
                    )
                    self._orders.extend((yield partial(self._hands.ask, self._errand.tell(told))))
                work, self._begun = (
                    self._errand.more() if self._begun else self._errand.begin(),
                    True,
                )
                self._orders.extend((yield partial(self._hands.ask, work)))
        except BaseException:
            yield from self.leave()
            raise

    def leave(self) -> Flow[None]:
        """The client wants no more of it, or has all of it."""
        self._errand.leave()
        if self._open is not None:
            was_open, self._open = self._open, None
            yield partial(self._hands.close_reply, *was_open)

    def _send(self, call: ClientCall) -> Flow[Head | SendFailure]:
        self.sent = True
        self._open = None  # the reply before it was read to its end
        try:
            response = yield partial(self._hands.send, self._outgoing(call))
        except Exception as error:  # told to the walk, and raised for the caller in the end
            return SendFailure(error)
        self._open = response, self._hands.chunks(response)
        self.extensions = self.extensions or dict(response.extensions)
        return Head(response.status_code, back(tuple(response.headers.raw)))

    def _read(self) -> Flow[bytes | SendFailure | None]:
        assert self._open is not None
        try:
            chunk: bytes | None = yield partial(self._hands.read, self._open[1])
        except Exception as error:  # the same
            return SendFailure(error)
        return chunk
