"""A piece of work that is done soon, on a thread of its own, once for all who asked for it
meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Debouncer:
    """Any thread may ask. The thread starts with the first request and does not keep a program from
    ending."""

    def __init__(self, work: Callable[[], None], seconds: float) -> None:
        """The work tells of its own failures; it must not raise."""
        self._work = work
        self._seconds = seconds
        self._changed = threading.Condition()
        self._due: float | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def ask(self, *, at_once: bool = False) -> None:
        due = time.monotonic() + (0.0 if at_once else self._seconds)
        with self._changed:
            if not self._closed:
                self._due = due if self._due is None else min(self._due, due)
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._run, name="hotset-soon", daemon=True
                    )
                    self._thread.start()
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
