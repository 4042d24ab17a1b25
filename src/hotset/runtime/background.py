"""The one supervisor of work that nobody waits for. What fails here is counted and told, never
raised at a client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

_log = logging.getLogger("hotset")

_CANCEL_SECONDS = 1.0
"""For which work that was cancelled may still tidy up."""


class Background:
    def __init__(self, failed: Callable[[str, BaseException], None]) -> None:
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(self._watch(work, name), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(
            lambda _: work.close()
        )  # cancelled before its first step, it would never be awaited
        return task

    def under_way(self, name: str) -> int:
        """How many pieces of work of that name have not ended."""
        return sum(task.get_name() == name for task in self._tasks)

    @property
    def names(self) -> frozenset[str]:
        """Of everything that has not ended."""
        return frozenset(task.get_name() for task in self._tasks)

    async def settled(self, name: str, seconds: float) -> None:
        """Waits for what is under way under that name, and no longer than so many seconds."""
        if tasks := {task for task in self._tasks if task.get_name() == name}:
            await asyncio.wait(tasks, timeout=seconds)

    async def drain(self, seconds: float) -> None:
        """Waits for what is under way; what has not ended by then is cancelled."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=seconds)
        for task in late:
            _log.warning("%s did not end in %.0f s and was cancelled", task.get_name(), seconds)
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=_CANCEL_SECONDS)

    async def _watch(self, work: Coroutine[Any, Any, None], name: str) -> None:
        try:
            await work
        except Exception as error:  # the supervisor: nobody above could do anything about it
            if not (isinstance(error, RuntimeError) and _is_ending()):
                self._failed(name, error)


def _is_ending() -> bool:
    """Whether this program is about to end: then no pool takes work any more, and what was begun is
    done after the next start."""
    with ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(int)
        except RuntimeError:
            return True
    return False
