"""Stops asking what keeps failing, and tries it once now and then."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from math import inf

_FAILURES = 3  # one can be chance, and a slow disk makes two
_REST_SECONDS = 5.0


class Breaker:
    """Closed: everything goes. Open: nothing does, for a while. Then one may try; it closes the
    breaker, or opens it again."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        within: float = inf,
        rest: float = _REST_SECONDS,
        longest: float = _REST_SECONDS,
    ) -> None:
        """Opens after three failures in a row that lie `within` so many seconds; rests twice as
        long after each try that failed, up to the `longest`."""
        self._clock = clock
        self._within = within
        self._first_rest = rest
        self._longest = longest
        self._lock = threading.Lock()
        self._failed_at: deque[float] = deque(maxlen=_FAILURES)
        self._rest = 0.0
        self._trying = False

    @property
    def open(self) -> bool:
        return self._rest > 0

    @property
    def seconds_left(self) -> float:
        """Until the next attempt is allowed."""
        with self._lock:
            return max(0.0, self._failed_at[-1] + self._rest - self._clock()) if self._rest else 0.0

    def allows(self) -> bool:
        """May it be asked? Whoever hears yes says `succeeded` or `failed` afterwards."""
        with self._lock:
            if not self._rest:
                return True
            if self._trying or self._clock() - self._failed_at[-1] < self._rest:
                return False
            self._trying = True
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._failed_at.clear()
            self._rest, self._trying = 0.0, False

    def failed(self) -> None:
        with self._lock:
            now = self._clock()
            self._failed_at.append(now)
            if self._trying:
                self._rest = min(self._longest, 2 * self._rest)
            elif (
                not self._rest
                and len(self._failed_at) == _FAILURES
                and now - self._failed_at[0] <= self._within
            ):
                self._rest = self._first_rest
            self._trying = False
