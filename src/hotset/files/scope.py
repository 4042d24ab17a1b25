"""Scopes: every thread, task, queue and long-lived file belongs to one, within a budget.

Scopes form a tree with the process at its root. A budget blocks, or lets a task wait for its turn;
it never fails. Closing a scope ends what is in it and names what is left over.
"""

# ruff: noqa: SLF001 - scopes count along the tree

from __future__ import annotations

import os
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

_T = TypeVar("_T")

_CLOSE_SECONDS = 5.0
_CHECK_SECONDS = 0.01

ScopedQueue = queue.Queue
"""The type of `Scope.queue`, for annotations."""

THREADS, TASKS, FILES = "threads", "tasks", "files"


@dataclass(frozen=True, slots=True)
class Budget:
    """How many of each kind a scope may have at once, with the scopes below it."""

    threads: float = 64
    tasks: float = 4096
    """The calls of a proxy are bounded before: each has two."""
    files: float = 256


@dataclass(frozen=True, slots=True)
class ScopeCount:
    """What belongs to a scope and to those below it."""

    name: str
    """With the scopes above it: `process/machine`."""
    threads: int
    tasks: int
    files: int
    queued: int
    """Items in its queues, and work that waits for a thread."""
    waiting: int
    """Tasks, threads and files that wait because a budget is used up."""


class Scope:
    """A place for threads, tasks, queues and files. Safe to use from several threads.

    A scope lives as long as its owner or anything in it.
    """

    def __init__(self, name: str, parent: Scope | None, budget: Budget) -> None:
        self.name = name
        self.closed = False
        self._parent = parent
        self._budget = budget
        self._counts: Counter[str] = Counter()
        self._blocked = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._threads: set[threading.Thread] = set()
        self._executors: set[ThreadPoolExecutor] = set()
        self._files: dict[int, ScopedFile] = {}
        self._queues: WeakSet[Any] = WeakSet()
        self._children: WeakSet[Scope] = WeakSet()
        chain = [self]
        while chain[-1]._parent is not None:
            chain.append(chain[-1]._parent)
        self._chain = tuple(chain)
        """This scope and those above it, up to the root."""

    def child(self, name: str, budget: Budget | None = None) -> Scope:
        made = Scope(name, self, budget or Budget())
        with _changed:
            self._children.add(made)
        return made

    # Tasks

    def task(self, work: Coroutine[Any, Any, _T], name: str | None = None) -> asyncio.Task[_T]:
        """Start a task on the running loop; it waits for its turn while the budget is used up."""
        import asyncio  # noqa: PLC0415 - 50 ms that a command without a loop does not pay

        taken = self._take_if_free(TASKS)
        task = asyncio.get_running_loop().create_task(
            work if taken else self._in_turn(work), name=name
        )
        self._tasks.add(task)
        if taken:
            task.add_done_callback(self._task_ended)
        else:
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(lambda _: work.close())  # cancelled before it began
        if self.closed:
            task.cancel()
        return task

    @property
    def tasks(self) -> frozenset[asyncio.Task[Any]]:
        """Its own unfinished tasks."""
        return frozenset(self._tasks)

    async def _in_turn(self, work: Coroutine[Any, Any, _T]) -> _T:
        import asyncio  # noqa: PLC0415 - as above

        loop = asyncio.get_running_loop()
        self._blocked += 1
        try:
            while not self._take_if_free(TASKS):
                turn = loop.create_future()
                _turns.append(partial(loop.call_soon_threadsafe, _wake, turn))
                await turn
        finally:
            self._blocked -= 1
        try:
            return await work
        finally:
            self._give_back(TASKS)

    def _task_ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._give_back(TASKS)

    # Threads

    def thread(
        self, work: Callable[..., object], name: str, *given: Any, daemon: bool = True
    ) -> ScopedThread:
        """Start a thread; blocks while the budget is used up."""
        thread = self.new_thread(work, name, *given, daemon=daemon)
        thread.start()
        return thread

    def new_thread(
        self, work: Callable[..., object], name: str, *given: Any, daemon: bool = True
    ) -> ScopedThread:
        """A thread that is yet to be started: then it counts, and may block."""
        return ScopedThread(self, work, name, given, daemon=daemon)

    def timer(self, seconds: float, act: Callable[[], object]) -> ScopedTimer:
        """Call `act` after so many seconds, in a thread of its own, unless it is cancelled."""
        timer = ScopedTimer(self, seconds, act)
        timer.start()
        return timer

    def executor(self, threads: int, name: str) -> ThreadPoolExecutor:
        """A pool of at most so many threads, whose work waits for a free one. Shut it down."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - 10 ms

        self._take(THREADS, threads)
        pool = ThreadPoolExecutor(threads, name)
        self._executors.add(pool)
        shutdown = pool.shutdown
        given_back = threading.Lock()

        def shut_down(*given: Any, **named: Any) -> None:
            shutdown(*given, **named)
            if given_back.acquire(blocking=False):  # the first time
                self._executors.discard(pool)
                self._give_back(THREADS, threads)

        pool.shutdown = shut_down  # type: ignore[method-assign]
        return pool

    def _thread_ended(self, thread: threading.Thread) -> None:
        self._threads.discard(thread)
        self._give_back(THREADS)

    # Queues and files

    def queue(self, most: int, *, last_first: bool = False) -> queue.Queue[Any]:
        """A queue of at most so many items: putting more blocks. With 0 its callers bound it."""
        made: queue.Queue[Any] = (queue.LifoQueue if last_first else queue.Queue)(most)
        self._queues.add(made)
        return made

    def loop_queue(self, most: int) -> asyncio.Queue[Any]:
        """The same for tasks of one event loop."""
        import asyncio  # noqa: PLC0415 - as above

        made: asyncio.Queue[Any] = asyncio.Queue(most)
        self._queues.add(made)
        return made

    def file(self, name: str, close: Callable[[], object], count: int = 1) -> ScopedFile:
        """Count an open file, or several; blocks while the budget is used up. `close` ends it with
        the scope, if its owner has not released it."""
        self._take(FILES, count)
        held = ScopedFile(self, name, close, count)
        self._files[id(held)] = held
        return held

    # The whole

    def counts(self) -> list[ScopeCount]:
        """This scope and those below it that have anything, the outermost first."""
        found = [self._count()]
        for child in self._below():
            found += child.counts()
        return [each for each in found if any(_numbers(each)) or each.name == self.path]

    @property
    def path(self) -> str:
        return "/".join(each.name for each in reversed(self._chain))

    def left_over(self) -> list[str]:
        """The names of what has not ended: `process/store: thread hotset-writer`."""
        found = [f"{self.path}: task {task.get_name()}" for task in list(self._tasks)]
        found += [f"{self.path}: thread {each.name}" for each in list(self._threads)]
        found += [
            f"{self.path}: threads {each._thread_name_prefix}" for each in list(self._executors)
        ]
        found += [f"{self.path}: file {each.name}" for each in list(self._files.values())]
        return [*found, *(name for child in self._below() for name in child.left_over())]

    def close(self, seconds: float = _CLOSE_SECONDS) -> list[str]:
        """End what is in it and in the scopes below, and return the names of what did not end in
        time. Not for the event loop that runs its tasks: there, use `aclose`."""
        until = time.monotonic() + seconds
        self._stop()
        for thread in self._every_thread():
            if thread is not threading.current_thread() and thread.is_alive():
                thread.join(max(0.0, until - time.monotonic()))
        while self._has_tasks() and time.monotonic() < until:
            time.sleep(_CHECK_SECONDS)
        return self.left_over()

    async def aclose(self, seconds: float = _CLOSE_SECONDS) -> list[str]:
        """`close` on the event loop that runs its tasks."""
        import asyncio  # noqa: PLC0415 - as above

        until = time.monotonic() + seconds
        self._stop()
        while self._is_alive() and time.monotonic() < until:  # noqa: ASYNC110 - a thread sets no event
            await asyncio.sleep(_CHECK_SECONDS)
        return self.left_over()

    def _stop(self) -> None:
        self.closed = True
        for child in self._below():
            child._stop()
        for task in list(self._tasks):
            with suppress(RuntimeError):  # its loop has ended, and with it the task
                task.get_loop().call_soon_threadsafe(task.cancel)
        for pool in list(self._executors):
            pool.shutdown(wait=False, cancel_futures=True)
        for thread in list(self._threads):
            if isinstance(thread, ScopedTimer):
                thread.cancel()
        for held in list(self._files.values()):
            held.close()
            held.release()

    def _is_alive(self) -> bool:
        return self._has_tasks() or any(each.is_alive() for each in self._every_thread())

    def _has_tasks(self) -> bool:
        alive = any(not task.get_loop().is_closed() for task in list(self._tasks))
        return alive or any(child._has_tasks() for child in self._below())

    def _every_thread(self) -> Iterator[threading.Thread]:
        yield from list(self._threads)
        for child in self._below():
            yield from child._every_thread()

    def _below(self) -> list[Scope]:
        with _changed:
            return list(self._children)

    def _count(self) -> ScopeCount:
        pools = list(self._executors)
        queued = sum(each.qsize() for each in list(self._queues))
        queued += sum(pool._work_queue.qsize() for pool in pools)
        return ScopeCount(
            self.path,
            self._counts[THREADS],
            self._counts[TASKS],
            self._counts[FILES],
            queued,
            self._blocked,
        )

    def _take(self, kind: str, many: int = 1) -> None:
        with _changed:
            if not self._has_room(kind, many):
                self._blocked += 1
                try:
                    _changed.wait_for(lambda: self._has_room(kind, many))
                finally:
                    self._blocked -= 1
            self._add(kind, many)

    def _take_if_free(self, kind: str) -> bool:
        with _changed:
            if self._has_room(kind, 1):
                self._add(kind, 1)
                return True
            return False

    def _give_back(self, kind: str, many: int = 1) -> None:
        with _changed:
            self._add(kind, -many)
            _changed.notify_all()
        if kind == TASKS:
            while _turns:
                with suppress(IndexError, RuntimeError):  # another thread was faster; a loop ended
                    _turns.popleft()()

    def _has_room(self, kind: str, many: int) -> bool:
        return all(
            each._counts[kind] + many <= max(many, getattr(each._budget, kind))
            for each in self._chain
        )

    def _add(self, kind: str, many: int) -> None:
        for each in self._chain:
            each._counts[kind] += many


@dataclass(slots=True, eq=False)
class ScopedFile:
    """A file, or several, that belong to a scope as long as they are open."""

    scope: Scope
    name: str
    close: Callable[[], object]
    count: int
    is_open: bool = field(default=True, init=False)

    def release(self) -> None:
        """It is closed. A second call does nothing."""
        with _changed:
            was_open, self.is_open = self.is_open, False
        if was_open:
            self.scope._files.pop(id(self), None)
            self.scope._give_back(FILES, self.count)


class ScopedThread(threading.Thread):
    """A thread that counts in its scope from its start to its end."""

    def __init__(
        self,
        scope: Scope,
        work: Callable[..., object],
        name: str,
        given: tuple[Any, ...],
        *,
        daemon: bool,
    ) -> None:
        super().__init__(name=name, daemon=daemon)
        self._scope = scope
        self._work = work
        self._given = given

    def start(self) -> None:
        if self._scope.closed:
            raise RuntimeError(f"{self._scope.path} is closed")
        self._scope._take(THREADS)
        self._scope._threads.add(self)
        try:
            super().start()
        except BaseException:
            self._scope._thread_ended(self)
            raise

    def run(self) -> None:
        try:
            self._work(*self._given)
        finally:
            self._scope._thread_ended(self)
            del self._work, self._given


class ScopedTimer(ScopedThread):
    """A thread that waits, and then acts, unless it is cancelled."""

    def __init__(self, scope: Scope, seconds: float, act: Callable[[], object]) -> None:
        super().__init__(scope, self._wait, "hotset-timer", (seconds, act), daemon=True)
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        self._cancelled.set()

    def _wait(self, seconds: float, act: Callable[[], object]) -> None:
        if not self._cancelled.wait(seconds):
            act()


_changed = threading.Condition()
"""Guards the counts of all scopes: they are added up along the tree."""

_turns: deque[Callable[[], object]] = deque()
"""Wakes tasks that wait for their turn."""


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


def _numbers(count: ScopeCount) -> tuple[int, ...]:
    return count.threads, count.tasks, count.files, count.queued, count.waiting


# A thread of the parent may have held it, and is not there any more.
os.register_at_fork(after_in_child=_changed.__init__)  # type: ignore[misc]

PROCESS = Scope("process", None, Budget(threads=512, tasks=inf, files=4096))
"""The root of all scopes."""
