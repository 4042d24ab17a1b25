"""Work that a call waits for, but not for long: on threads of its own, so that what hangs there holds up nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

_SECONDS = 5.0
"""A plan takes milliseconds, and a first look at the longest conversations two seconds; what takes longer waits for a disk."""

_THREADS = 4  # plans are made under one lock of the interpreter: more threads would only take turns


class Bounded:
    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._pool = ThreadPoolExecutor(_THREADS, "hotset-bounded")
        self._late: set[Future[Any]] = set()

    async def run(self, work: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Raises `TimeoutError` where it takes too long; and at once while an earlier piece of work that did hangs on."""
        if self._late:
            raise TimeoutError("what was begun before has not ended yet")
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        working = self._pool.submit(work, *arguments, **named)

        def tell(_: Future[_T]) -> None:  # on the thread that did the work
            with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
                loop.call_soon_threadsafe(_end, over)

        # Not `asyncio.wrap_future` in a `timeout` and a `shield`: three futures and a task's cancelling for what one tells.
        working.add_done_callback(tell)
        alarm = loop.call_later(self._seconds, _end, over)
        try:
            await over
        finally:
            alarm.cancel()
        if not working.done() and not working.cancel():
            self._late.add(working)
            working.add_done_callback(self._late.discard)
            raise TimeoutError
        if working.cancelled():
            raise TimeoutError
        return working.result()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _end(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)
