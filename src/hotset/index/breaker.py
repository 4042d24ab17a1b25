"""Circuit breaker: stops calling what keeps failing, and retries now and then."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from math import inf

_FAILURES = 3  # one can be chance, and a slow disk makes two
_REST_SECONDS = 5.0


class Breaker:
    """Closed: all calls are allowed. Open: none are, for a while. Then one may try; it closes the
    breaker, or opens it again."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        within: float = inf,
        rest: float = _REST_SECONDS,
        longest: float = _REST_SECONDS,
    ) -> None:
        """Opens after three failures in a row `within` so many seconds; doubles the pause after
        each failed try, up to the `longest`."""
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
        """True if a call is allowed. The caller then reports `succeeded` or `failed`."""
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
