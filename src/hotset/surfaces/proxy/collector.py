"""When Python looks for garbage: while nobody waits.

A full collection looks at every object. With a few long conversations in memory it takes 50 to 100
ms, and whichever request comes at that moment would wait for it.
"""

from __future__ import annotations

import gc

_NEW_OBJECTS = 20_000
"""Between collections of new objects: with Python's 700 they took a sixth of the latency that a
small call adds."""

_FULL = 100
"""Collections of middle-aged objects before a full one, where Python has 10: only a process that
never rests needs it."""

_IDLE_SECONDS = 3.0
_REST_SECONDS = 30.0
"""Between two full collections of an idle process."""


class IdleCollector:
    """Collects all garbage once no request has come for a while."""

    def __init__(self) -> None:
        self._collected = 0.0

    def settle(self) -> None:
        """From now on, collect rarely."""
        gc.freeze()  # what start-up made stays
        gc.set_threshold(_NEW_OBJECTS, gc.get_threshold()[1], _FULL)

    def tick(self, latest: float, now: float) -> bool:
        """Collect, if it is time: `latest` is when the latest request came. True if it did."""
        is_due = now - latest > _IDLE_SECONDS and now - self._collected > _REST_SECONDS
        if not is_due or latest < self._collected:
            return False
        gc.collect()
        self._collected = now
        return True
