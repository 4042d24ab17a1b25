"""Circuit breakers: each stops calling what keeps failing, and retries now and then. And the list
of all of them in this process."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from weakref import WeakSet

_FAILURES = 3  # one can be chance, and a slow disk makes two
_REST_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class BreakerState:
    """A breaker at one moment, for people."""

    name: str
    state: str
    """`closed` while all calls are allowed, `open` while none are, `trying` while one is."""
    since: float | None
    """Wall clock; None if it never opened or closed again."""
    reason: str
    """Of its latest failure; holds no content."""
    seconds_left: float


class BreakerList:
    """The breakers of this process, by weak references. Thread-safe."""

    def __init__(self) -> None:
        self._breakers: WeakSet[Breaker] = WeakSet()
        self._lock = threading.Lock()

    def add(self, breaker: Breaker) -> None:
        with self._lock:
            self._breakers.add(breaker)

    def states(self) -> list[BreakerState]:
        """All of them; those that are not closed first."""
        with self._lock:
            every = list(self._breakers)
        return sorted(
            (each.state() for each in every), key=lambda each: (each.state == "closed", each.name)
        )


BREAKERS = BreakerList()


class Breaker:
    """Closed: all calls are allowed. Open: none are, for a while. Then one may try; it closes the
    breaker, or opens it again."""

    def __init__(
        self,
        name: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        after: int = _FAILURES,
        within: float = inf,
        rest: float = _REST_SECONDS,
        longest: float = _REST_SECONDS,
    ) -> None:
        """Opens `after` so many failures in a row `within` so many seconds; doubles the pause after
        each failed try, up to the `longest`."""
        self.name = name
        self._clock = clock
        self._after = after
        self._within = within
        self._first_rest = rest
        self._longest = longest
        self._lock = threading.Lock()
        self._failed_at: deque[float] = deque(maxlen=after)
        self._rest = 0.0
        self._trying = False
        self._since: float | None = None
        self._reason = ""
        BREAKERS.add(self)

    @property
    def open(self) -> bool:
        return self._rest > 0

    @property
    def seconds_left(self) -> float:
        """Until the next attempt is allowed."""
        with self._lock:
            return self._seconds_left()

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
            if self._rest:
                self._since = time.time()
            self._rest, self._trying, self._reason = 0.0, False, ""

    def failed(self, reason: str = "") -> None:
        """`reason` is shown to people; it holds no content."""
        with self._lock:
            now = self._clock()
            self._failed_at.append(now)
            self._reason = reason
            if self._trying:
                self._rest = min(self._longest, 2 * self._rest)
            elif (
                not self._rest
                and len(self._failed_at) == self._after
                and now - self._failed_at[0] <= self._within
            ):
                self._rest = self._first_rest
                self._since = time.time()
            self._trying = False

    def state(self) -> BreakerState:
        with self._lock:
            state = "trying" if self._trying else "open" if self._rest else "closed"
            return BreakerState(self.name, state, self._since, self._reason, self._seconds_left())

    def _seconds_left(self) -> float:
        return max(0.0, self._failed_at[-1] + self._rest - self._clock()) if self._rest else 0.0
