"""Stops asking what keeps failing, and tries it once now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_FAILURES = 3  # one can be chance, and a slow disk makes two
_REST_SECONDS = 5.0


class Breaker:
    """Closed: everything goes. Open: nothing does, for a while. Then one may try; it closes the breaker, or opens it again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._since = 0.0
        self._trying = False

    @property
    def open(self) -> bool:
        return self._failures >= _FAILURES

    def allows(self) -> bool:
        """May it be asked? Whoever hears yes says `succeeded` or `failed` afterwards."""
        with self._lock:
            if self._failures < _FAILURES:
                return True
            if self._trying or self._clock() - self._since < _REST_SECONDS:
                return False
            self._trying = True
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._failures, self._trying = 0, False

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            self._since, self._trying = self._clock(), False
