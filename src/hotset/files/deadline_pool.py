"""Threads for background work: work that a caller waits for until a deadline and then goes on
without (`DeadlinePool`), and work that is done soon, once for all who asked meanwhile
(`Debouncer`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty
from threading import Lock, current_thread
from typing import Any, TypeVar

from hotset.files.scope import PROCESS, Scope, ScopedQueue, ScopedThread

_T = TypeVar("_T")
_Job = tuple[Future[Any], Callable[[], Any]]

_IDLE_SECONDS = 10.0  # after which a thread without work ends


class DeadlinePool:
    """At most so many daemon threads, started when they are needed. Safe to use from any thread.

    Wait for a result with the future's own timeout; what comes later is dropped with the future.
    Work that hangs keeps its thread, but neither `close` nor the end of the process waits for it.
    """

    def __init__(self, threads: int, name: str, scope: Scope = PROCESS) -> None:
        self._most = threads
        self._name = name
        self._scope = scope.child(name)
        self._jobs: ScopedQueue[_Job | None] = self._scope.queue(0)
        """Without a limit of its own: callers leave what takes too long, and cancel it."""
        self._threads: set[ScopedThread] = set()
        self._open: set[Future[Any]] = set()
        """Work that runs or waits for a thread; some of it may have ended."""
        self._closed = False
        self._lock = Lock()

    @property
    def busy(self) -> bool:
        """True while any work runs or waits."""
        with self._lock:
            return self._count() > 0

    def submit(self, work: Callable[[], _T]) -> Future[_T]:
        """Begin work as soon as a thread is free; cancel the future where it came too late."""
        with self._lock:
            return self._begin(work)

    def submit_if_free(self, work: Callable[[], _T]) -> Future[_T] | None:
        """Begin work now; None where every thread is busy: it would only wait behind what hangs."""
        with self._lock:
            return self._begin(work) if self._count() < self._most and not self._closed else None

    def close(self, seconds: float = 0.0) -> None:
        """Cancel work that has not begun, and wait at most so long for work that has."""
        with self._lock:
            self._closed = True
            for job in self._open:
                job.cancel()
            for _ in self._threads:
                self._jobs.put(None)
            threads = list(self._threads)
        until = time.monotonic() + seconds
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _begin(self, work: Callable[[], _T]) -> Future[_T]:
        if self._closed:
            raise RuntimeError("the pool is closed")
        if len(self._threads) <= self._count() and len(self._threads) < self._most:
            self._threads.add(self._scope.thread(self._run, self._name))
        job: Future[_T] = Future()
        self._open.add(job)
        self._jobs.put((job, work))
        return job

    def _count(self) -> int:
        self._open = {job for job in self._open if not job.done()}
        return len(self._open)

    def _run(self) -> None:
        while (job := self._next()) is not None:
            _do(*job)
            del job  # it may hold a lot, and the next one may be far

    def _next(self) -> _Job | None:
        with suppress(Empty):
            return self._jobs.get(timeout=_IDLE_SECONDS)
        with self._lock:
            with suppress(Empty):
                return self._jobs.get_nowait()
            self._threads -= {current_thread()}
            return None


def _do(job: Future[_T], work: Callable[[], _T]) -> None:
    if job.set_running_or_notify_cancel():
        try:
            job.set_result(work())
        except BaseException as error:  # for the one who waits
            job.set_exception(error)


class Debouncer:
    """Any thread may ask. The thread starts with the first request and does not keep a program from
    ending."""

    def __init__(self, work: Callable[[], None], seconds: float) -> None:
        """The work reports its own failures; it must not raise."""
        self._work = work
        self._seconds = seconds
        self._changed = threading.Condition()
        self._due: float | None = None
        self._scope = PROCESS.child("soon")
        self._thread: ScopedThread | None = None
        self._closed = False

    def ask(self, *, at_once: bool = False) -> None:
        due = time.monotonic() + (0.0 if at_once else self._seconds)
        with self._changed:
            if not self._closed:
                self._due = due if self._due is None else min(self._due, due)
                if self._thread is None:
                    self._thread = self._scope.thread(self._run, "hotset-soon")
                self._changed.notify()
                return
        self._work()

    def close(self) -> None:
        """What was asked for is done when this returns."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        self._work()

    def _run(self) -> None:
        while self._is_due():
            self._work()

    def _is_due(self) -> bool:
        """Waits for it; False at the end."""
        with self._changed:
            while not self._closed:
                left = None if self._due is None else self._due - time.monotonic()
                if left is not None and left <= 0:
                    self._due = None
                    return True
                self._changed.wait(left)
            return False
