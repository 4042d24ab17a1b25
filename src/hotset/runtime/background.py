"""Work beside the calls: the supervisor of background tasks, and threads for work that a call waits
for, within a time limit."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, TypeVar

from hotset.files.breaker import Breaker
from hotset.files.lru import Lru
from hotset.files.scope import PROCESS, Scope, ScopedQueue

_log = logging.getLogger("hotset")

_CANCEL_SECONDS = 1.0
"""How long cancelled work may take to clean up."""


class Background:
    """Supervises background tasks: `failed` is called with the name and the error of each that
    fails."""

    def __init__(
        self, failed: Callable[[str, BaseException], None], scope: Scope = PROCESS
    ) -> None:
        self._failed = failed
        self._scope = scope.child("background")

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = self._scope.task(self._watch(work, name), name)
        task.add_done_callback(
            lambda _: work.close()
        )  # cancelled before its first step, it would never be awaited
        return task

    def under_way(self, name: str) -> int:
        """Number of unfinished tasks of that name."""
        return sum(task.get_name() == name for task in self._scope.tasks)

    @property
    def names(self) -> frozenset[str]:
        """Names of all unfinished tasks."""
        return frozenset(task.get_name() for task in self._scope.tasks)

    async def settled(self, name: str, seconds: float) -> None:
        """Wait for the tasks of that name, at most so many seconds."""
        if tasks := {task for task in self._scope.tasks if task.get_name() == name}:
            await asyncio.wait(tasks, timeout=seconds)

    async def drain(self, seconds: float) -> None:
        """Wait for all tasks; those that have not ended by then are cancelled."""
        if not (tasks := self._scope.tasks):
            return
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            _log.warning("%s did not end in %.0f s and was cancelled", task.get_name(), seconds)
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=_CANCEL_SECONDS)

    async def _watch(self, work: Coroutine[Any, Any, None], name: str) -> None:
        try:
            await work
        except Exception as error:  # the supervisor: no caller above could handle it
            if not (isinstance(error, RuntimeError) and _is_ending()):
                self._failed(name, error)


def _is_ending() -> bool:
    """True if this program is about to end: then no pool takes work any more, and unfinished work
    is done after the next start."""
    with PROCESS.executor(1, "hotset-ending") as pool:
        try:
            pool.submit(int)
        except RuntimeError:
            return True
    return False


_P = ParamSpec("_P")
_T = TypeVar("_T")

_SECONDS = 20.0
"""Wall clock: on a busy machine a plan gets a tenth of a core."""

_CPU_SECONDS = 5.0
"""CPU time of the working thread. A plan takes milliseconds, and a first look at a conversation of
20 MB up to ten seconds."""

_MOST_CPU_SECONDS = 30.0
"""Work that has used so much CPU time is ended at its next `check`; its session rests before the
next try."""

_REST_SECONDS = 300.0

_THREADS = 4  # work is done under one lock of the interpreter: more threads would only take turns
_SLOW_SECONDS = (
    1.0  # after which a thread no longer counts as one of these, so that short work finds one
)
_MOST_THREADS = 20
_MOST_RESTING = 1000


class Late(TimeoutError):
    """The call goes on without its work, which has not ended."""

    def __init__(self, work: Future[Any]) -> None:
        super().__init__("it has not ended in time")
        self.work = work


class TooManyThreads(TimeoutError):
    """So many threads hang that no more are started."""


_CHECK_SECONDS = 0.001
"""Between two looks at the CPU time, which is a system call; plans check for every message."""


class OutOfTime(TimeoutError):
    """Raised inside the work, by `check`."""


_own = threading.local()


def check() -> None:
    """Call this in the loops of long work: raises `OutOfTime` once it has used too much. Free
    outside of a `BoundedPool`."""
    job: _Job | None = getattr(_own, "job", None)
    if job is not None:
        job.check()


class BoundedPool:
    """Worker threads with time limits. All methods except `close` are for one event loop."""

    def __init__(
        self,
        seconds: float = _SECONDS,
        cpu_seconds: float = _CPU_SECONDS,
        most_cpu_seconds: float = _MOST_CPU_SECONDS,
        *,
        patience: float = 1.0,
    ) -> None:
        self._seconds = seconds * patience
        self._cpu = (cpu_seconds * patience, most_cpu_seconds * patience)
        self._waiting: dict[str, deque[_Job]] = {}
        self._running: dict[str, _Job] = {}
        self._resting: Lru[str, Breaker] = Lru(
            "resting sessions", count=_MOST_RESTING, shrinks=False
        )
        """Sessions whose work was ended: they rest before the next try."""
        self._scope = PROCESS.child("plans")
        self._idle: list[_Worker] = []
        self._closed = threading.Event()

    def of(self, session: str) -> SessionQueue:
        return SessionQueue(self, session)

    @property
    def hung(self) -> int:
        """Number of threads whose work no call waits for any more."""
        return sum(self._is_late(job) for job in self._running.values())

    async def run(self, session: str, work: Callable[[], _T]) -> _T:
        """The result of the work, or its exception; `TimeoutError` if it, or earlier work of the
        session, takes too long."""
        loop = asyncio.get_running_loop()
        running = self._running.get(session)
        resting = self._resting.get(session)
        if (running is not None and self._is_late(running)) or (
            resting is not None and resting.seconds_left
        ):
            raise TimeoutError("what was begun before has not ended yet")
        if len(self._running) >= _MOST_THREADS:
            raise TooManyThreads(f"{self.hung} earlier ones have not ended")
        job = _Job(session, work, loop, loop.create_future(), *self._cpu, self._closed)
        self._waiting.setdefault(session, deque()).append(job)
        self._begin()
        alarm = loop.call_later(self._seconds, job.go_on)
        try:
            await job.over
        finally:
            alarm.cancel()
            self._take_back(job)
        if job.done.done():
            result: _T = job.done.result()
            return result
        if not job.began:
            raise TimeoutError("its turn did not come in time")
        job.late = True
        self._begin()
        raise Late(job.done)

    def close(self) -> None:
        """End the work that calls `check`; work that hangs otherwise is left alone."""
        self._closed.set()
        for worker in self._idle:
            worker.jobs.put(None)
        self._idle.clear()

    def _is_late(self, job: _Job) -> bool:
        return job.late or time.monotonic() - job.began > self._seconds

    def _take_back(self, job: _Job) -> None:
        """Withdraw a job that has not begun."""
        waiting = self._waiting.get(job.session)
        if not job.began and waiting is not None:
            with suppress(ValueError):
                waiting.remove(job)
            if not waiting:
                del self._waiting[job.session]

    def _begin(self) -> None:
        """Start waiting jobs: sessions in turn, one job at a time for each."""
        quick = sum(not (job.slow or job.late) for job in self._running.values())
        for session in [each for each in self._waiting if each not in self._running]:
            if quick >= _THREADS or len(self._running) >= _MOST_THREADS:
                return
            waiting = self._waiting.pop(session)
            job = waiting.popleft()
            if waiting:
                self._waiting[session] = waiting  # behind the others
            quick += 1
            self._running[session] = job
            job.began = time.monotonic()
            job.slowness = job.loop.call_later(_SLOW_SECONDS, self._is_slow, job)
            worker = self._idle.pop() if self._idle else _Worker(self._report_end, self._scope)
            worker.jobs.put(job)

    def _is_slow(self, job: _Job) -> None:
        job.slow = True
        self._begin()

    def _report_end(self, job: _Job, worker: _Worker) -> None:
        """Report the end from the worker's thread. If the loop has ended, no call waits any
        more."""
        with suppress(RuntimeError):
            job.loop.call_soon_threadsafe(self._ended, job, worker)

    def _ended(self, job: _Job, worker: _Worker) -> None:
        del self._running[job.session]
        if job.slowness is not None:
            job.slowness.cancel()
        if isinstance(job.done.exception(), OutOfTime):
            rest = Breaker(f"plans of {job.session}", after=1, rest=_REST_SECONDS)
            rest.failed("it took too much time")
            self._resting.put(job.session, rest)
        else:
            self._resting.pop(job.session)
        if self._closed.is_set() or len(self._idle) >= _THREADS:
            worker.jobs.put(None)
        else:
            self._idle.append(worker)
        job.go_on()
        self._begin()


@dataclass(frozen=True, slots=True)
class SessionQueue:
    """The work of one session: one piece at a time, in order."""

    pool: BoundedPool
    session: str

    async def run(self, work: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
        """The result of the work, or its exception; `TimeoutError` if it takes too long."""
        return await self.pool.run(self.session, partial(work, *arguments, **named))


@dataclass(slots=True, eq=False)
class _Job:
    session: str
    work: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    over: asyncio.Future[None]
    """Done once no call need wait for it any more."""
    cpu: float
    most_cpu: float
    closed: threading.Event
    done: Future[Any] = field(default_factory=Future)
    began: float = 0.0
    began_cpu: float = 0.0
    checked: float = 0.0
    slowness: asyncio.TimerHandle | None = None
    slow: bool = False
    late: bool = False
    is_overdue: bool = False

    def do(self) -> None:
        self.began_cpu = time.thread_time()
        try:
            result = self.work()
        except BaseException as error:  # raised again where the result is awaited
            self.done.set_exception(error)
        else:
            self.done.set_result(result)

    def check(self) -> None:
        now = time.monotonic()
        if now - self.checked < _CHECK_SECONDS:
            return
        self.checked = now
        used = time.thread_time() - self.began_cpu
        if used > self.most_cpu or self.closed.is_set():
            raise OutOfTime(f"after {used:.0f} s of CPU time")
        if used > self.cpu and not self.is_overdue:
            self.is_overdue = True
            with suppress(RuntimeError):  # the loop has ended
                self.loop.call_soon_threadsafe(self.go_on)

    def go_on(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


class _Worker:
    """One thread, which runs the jobs in its queue until it gets None."""

    def __init__(self, report_end: Callable[[_Job, _Worker], None], scope: Scope) -> None:
        self.jobs: ScopedQueue[_Job | None] = scope.queue(2)  # a job and the end
        self._report_end = report_end
        scope.thread(self._run, "hotset-bounded")

    def _run(self) -> None:
        while (job := self.jobs.get()) is not None:
            _own.job = job
            job.do()
            _own.job = None
            self._report_end(job, self)
            del job
