"""Hands deposits to the store and tracks its state: a store that is down is reported, not
raised."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

from hotset.errors import HotsetError, StoreBusy, StoreFailed, StoreMoved
from hotset.files.breaker import Breaker
from hotset.nouns.deposit import CommitReceipt, Deposit, ReplyReceived, RequestReceived
from hotset.nouns.turn import Event
from hotset.store.port import Store

_log = logging.getLogger("hotset")

_MOST_EVENTS = 1000
_REOPEN_SECONDS = 5.0
_SLOW_SECONDS = 2.0
"""The store is stuck if nothing was kept for so long while something waits. A commit takes a
millisecond; a long queue on a busy machine is no trouble as long as commits go on."""

_MOST_STUCK = 128
"""Deposits that may wait for a stuck store: each holds a request in memory."""

_MOST_STUCK_BYTES = 64 << 20
"""Bytes of requests and replies that these may hold."""


class Keeper:
    """The way to the store, with its state. One event loop uses it."""

    def __init__(
        self, open_store: Callable[[], Store], monotonic: Callable[[], float], patience: float = 1.0
    ) -> None:
        self._open = open_store
        self._monotonic = monotonic
        self._slow = _SLOW_SECONDS * patience
        self._store: Store | None = None
        self._tried = -_REOPEN_SECONDS
        self._failure = ""
        self._breaker = Breaker("store", monotonic, after=1, rest=_REOPEN_SECONDS)
        self.event_counts: Counter[str] = Counter()
        """Events handed over since the start, by name."""
        self._under_way: dict[asyncio.Future[CommitReceipt], float] = {}
        """When each unfinished deposit was handed over, the oldest first."""
        self._waiting_bytes = 0
        """Bytes of requests and replies that are not kept yet."""
        self._moved = -self._slow
        """When a deposit was last kept or refused."""
        self._events: deque[Event] = deque(maxlen=_MOST_EVENTS)
        """Events that could not be kept yet."""
        self.pages_came: Callable[[], None] = lambda: None
        """Called when pages were kept."""

    @property
    def store(self) -> Store | None:
        return self._store

    @property
    def trouble(self) -> str:
        """Why nothing is being kept; empty while all is well."""
        return self._failure or ("the store does not answer" if self._stuck() else "")

    @property
    def busy(self) -> bool:
        """True if something is on its way to the disk."""
        return bool(self._under_way)

    def open(self) -> None:
        """Open the store, unless it is open or was tried a moment ago. Blocks: not for the event
        loop."""
        now = self._monotonic()
        if self._store is not None or now - self._tried < _REOPEN_SECONDS:
            return
        self._tried = now
        try:
            self._store = self._open()
        except (StoreFailed, OSError) as error:
            self._set_failure(str(error))
        else:
            self._set_failure("")

    async def ready(self) -> None:
        """Open the store if necessary, without blocking the event loop."""
        if self._store is None:
            await asyncio.to_thread(self.open)

    async def look(self) -> None:
        """Check that the store is still in its place, for callers who ask while nothing is being
        kept."""
        await self.ready()
        if self._store is not None:
            try:
                await asyncio.to_thread(self._store.version)
            except StoreFailed as error:
                self._failed(error)

    def hand_over(self, *deposits: Deposit) -> asyncio.Future[CommitReceipt]:
        """Queue a group of deposits for the store, after all earlier ones. Raises a
        `HotsetError`."""
        self.event_counts.update(each.name for each in deposits if isinstance(each, Event))
        if self._store is None:
            raise StoreFailed(self._failure or "the store is not open")
        size = sum(map(_bytes_of, deposits))
        crowded = (
            len(self._under_way) >= _MOST_STUCK or self._waiting_bytes + size > _MOST_STUCK_BYTES
        )
        if crowded and self._stuck():
            raise StoreBusy("the store does not answer, and too much waits for it")
        loop = asyncio.get_running_loop()
        keeping: asyncio.Future[CommitReceipt] = loop.create_future()
        kept = self._store.keep(*deposits)
        self._under_way[keeping] = self._monotonic()
        self._waiting_bytes += size

        def report(kept: Future[CommitReceipt]) -> None:  # on the store's own thread
            with suppress(RuntimeError):  # the loop has ended, and with it every waiter
                loop.call_soon_threadsafe(self._done, deposits, size, keeping, kept)

        # Not `asyncio.wrap_future`: its support for cancelling costs twice as much, at every
        # commit.
        kept.add_done_callback(report)
        return keeping

    async def keep(self, deposit: Deposit) -> CommitReceipt:
        """Keep a deposit and wait for its commit. Raises a `HotsetError` if that fails."""
        await self.ready()
        return await self.hand_over(deposit)

    async def happened(self, event: Event) -> None:
        """Keep an event now, or as soon as the store works again."""
        try:
            await self.keep(event)
        except HotsetError:
            self._events.append(event)

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def _done(
        self,
        deposits: tuple[Deposit, ...],
        size: int,
        keeping: asyncio.Future[CommitReceipt],
        kept: Future[CommitReceipt],
    ) -> None:
        del self._under_way[keeping]
        self._waiting_bytes -= size
        self._moved = self._monotonic()
        error = kept.exception()
        if not keeping.cancelled():
            _settle(keeping, kept, error)
        if error is None and kept.result().pages:
            self.pages_came()
        if isinstance(error, StoreFailed):
            self._failed(error)
        elif error is None and any(
            isinstance(each, RequestReceived | ReplyReceived) for each in deposits
        ):
            # Only a turn proves that turns are kept: on a full disk an event may still find room.
            self._set_failure("")
            self._keep_missed_events()

    def _failed(self, error: StoreFailed) -> None:
        self._set_failure(str(error))
        if isinstance(error, StoreMoved) and self._store is not None:
            store, self._store, self._tried = self._store, None, self._monotonic()
            asyncio.get_running_loop().run_in_executor(None, store.close)

    def _stuck(self) -> bool:
        oldest = next(iter(self._under_way.values()), None)
        return oldest is not None and self._monotonic() - max(oldest, self._moved) > self._slow

    def _keep_missed_events(self) -> None:
        while self._events and self._store is not None:
            self._store.keep(self._events.popleft())

    def _set_failure(self, failure: str) -> None:
        if failure:
            self._breaker.failed(failure)
        else:
            self._breaker.succeeded()
        if failure and not self._failure:
            _log.error("the store keeps nothing: %s (calls go through untouched)", failure)
        if self._failure and not failure:
            _log.warning("the store keeps again")
        self._failure = failure


def _bytes_of(deposit: Deposit) -> int:
    if isinstance(deposit, RequestReceived):
        return len(deposit.request.raw)
    return len(deposit.raw) if isinstance(deposit, ReplyReceived) else 0


def _settle(
    keeping: asyncio.Future[CommitReceipt], kept: Future[CommitReceipt], error: BaseException | None
) -> None:
    if error is None:
        keeping.set_result(kept.result())
    else:
        keeping.set_exception(error)
        keeping.exception()  # marks it as retrieved: the keeper has handled it
