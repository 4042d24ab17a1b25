"""Runs the machine on its own event loop: one thread for any number of clients and windows,
blocking or not."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import logging
import os
import threading
from collections.abc import Callable, Collection, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from math import inf
from typing import Any, TypeVar

from hotset.config import Config
from hotset.errors import MemoryClosed, UpstreamFailed
from hotset.files.lru import Lru
from hotset.files.scope import PROCESS, Budget
from hotset.nouns.call import ClientCall, Response
from hotset.runtime.machine import Machine
from hotset.runtime.planner import Planner
from hotset.runtime.reader import Store
from hotset.runtime.wire import Wire, open_wire

_log = logging.getLogger("hotset")

_T = TypeVar("_T")
Work = Coroutine[Any, Any, _T]

_START_SECONDS = 30.0
_MOST_PLANNERS = 64  # budgets that a program uses by turns
_MOST_WARNINGS = 256
_END_SECONDS = 15.0  # longer than the machine's own patience with what is under way


class Engine:
    """Runs work on its loop for callers on any thread and any loop. Safe to use from all of them at
    once."""

    def __init__(self, config: Config, open_store: Callable[[], Store]) -> None:
        self.config = config
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_log_fault)
        self._scope = PROCESS.child("library", Budget(tasks=inf))
        self._thread = self._scope.new_thread(self._run, "hotset-memory")
        self._process = os.getpid()
        self._closing = threading.Lock()
        self._closed = False
        self._planners: Lru[tuple[int, bool], Planner] = Lru(
            "planners", count=_MOST_PLANNERS, shrinks=False
        )
        self._warned: Lru[str, bool] = Lru("warnings given", count=_MOST_WARNINGS, shrinks=False)
        self._thread.start()
        self.machine = self._submit(_start_machine(config, open_store)).result(_START_SECONDS)
        atexit.register(self._close_at_exit)

    def wait(self, work: Work[_T]) -> _T:
        """Blocks until the work is done. Raises `MemoryClosed`, and what the work raises."""
        under_way = self._submit(work)
        try:
            return under_way.result()
        except concurrent.futures.CancelledError:
            raise MemoryClosed("the memory was closed while it worked for this call") from None
        except BaseException:
            under_way.cancel()  # the caller was interrupted
            raise

    async def wait_async(self, work: Work[_T]) -> _T:
        """`wait` for a caller on its own event loop."""
        under_way = self._submit(work)
        try:
            return await asyncio.wrap_future(under_way)
        except asyncio.CancelledError:
            if self._closed and under_way.cancelled():
                raise MemoryClosed("the memory was closed while it worked for this call") from None
            raise

    @property
    def is_alive(self) -> bool:
        return not self._closed and os.getpid() == self._process

    def require_machine(self) -> Machine:
        """The machine, as long as it works. Raises `MemoryClosed`."""
        if self.is_alive:
            return self.machine
        raise MemoryClosed(
            "the memory is closed; open it again with hotset.open()"
            if os.getpid() == self._process
            else (
                "the memory was opened before this process was forked; open it again with "
                "hotset.open()"
            )
        )

    def walk(self, work: Work[None]) -> asyncio.Task[None]:
        """Begins a walk, which ends with the engine at the latest. On the loop only."""
        return self._scope.task(work)

    def call_soon(self, act: Callable[[], object]) -> None:
        """Runs `act` on the loop without waiting for it."""
        if self.is_alive:
            self._loop.call_soon_threadsafe(act)

    def planner(self, budget: int, *, program_decides: bool = False) -> Planner:
        """The planner for windows of so many tokens; 0 is what the configuration says. With
        `program_decides`, the program is told when to hand a window over."""
        budget = budget or self.config.budget
        if budget == self.config.budget and not program_decides:
            return self.machine.planner
        with self._closing:
            # One that is dropped still serves its walks; its threads end by themselves.
            return self._planners.get_or_make(
                (budget, program_decides),
                lambda: self.machine.plan_with(
                    replace(self.config, budget=budget), program_decides=program_decides
                ),
            )

    def warn_once(self, trouble: str) -> None:
        """Logs a fault that did not harm the caller's request, each text once."""
        if trouble not in self._warned:
            self._warned.put(trouble, True)
            _log.warning("%s; requests go through untouched", trouble)

    def close(self) -> None:
        """Keeps what is under way, and ends. A second call does nothing."""
        with self._closing:
            if not self.is_alive:
                return
            ending = asyncio.run_coroutine_threadsafe(self._end(), self._loop)
            self._closed = True
        atexit.unregister(self._close_at_exit)
        try:
            ending.result(_END_SECONDS)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_END_SECONDS)

    def _close_at_exit(self) -> None:
        try:
            self.close()
        except Exception as error:
            # no caller is left to catch it, and Python would write it on stderr
            _log.warning("the memory did not end well: %s", type(error).__name__)

    def _submit(self, work: Work[_T]) -> concurrent.futures.Future[_T]:
        if not self.is_alive:
            work.close()
            self.require_machine()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _end(self) -> None:
        await _cancel_all(
            self._scope.tasks
        )  # first: what they leave behind is kept while the machine closes
        for planner in self._planners.values():
            planner.close()
        await self.machine.close()
        await _cancel_all(asyncio.all_tasks() - {asyncio.current_task()})


def _log_fault(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Logs an exception that was not awaited. asyncio's own log goes to stderr where a program set
    up none, and quotes content."""
    error = context.get("exception")
    _log.error(
        "a fault in the background: %s",
        type(error).__name__ if error is not None else context.get("message", ""),
    )


async def _cancel_all(tasks: Collection[asyncio.Task[Any] | None]) -> None:
    left = [task for task in tasks if task is not None]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


async def _start_machine(config: Config, open_store: Callable[[], Store]) -> Machine:
    return Machine.start(config, open_store, _own_wire(config), whose="a program")


def _own_wire(config: Config) -> Wire:
    """Calls are sent by their callers (see `walk_driver`); only summaries need a wire."""
    return open_wire(config) if config.summary.model else _NoWire()


class _NoWire:
    def send(self, call: ClientCall) -> AbstractAsyncContextManager[Response]:
        raise UpstreamFailed(f"{call.upstream} has no way out of its own")

    async def close(self) -> None: ...
