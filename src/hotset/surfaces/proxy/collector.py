"""How memory is used: Python looks for garbage while no request waits, and freed memory goes back.

A full collection looks at every object. With a few long conversations in memory it takes 50 to 100
ms, and whichever request comes at that moment would wait for it. glibc keeps what was freed, in up
to eight arenas for each core: that was 50 of 265 MB after `make bench-overhead`.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc

from hotset.files.memory_use import release_freed

_NEW_OBJECTS = 20_000
"""Between collections of new objects: with Python's 700 they took a sixth of the latency that a
small call adds."""

_FULL = 100
"""Collections of middle-aged objects before a full one, where Python has 10: only a process that
never rests needs it."""

_IDLE_SECONDS = 3.0
_REST_SECONDS = 30.0
"""Between two full collections of an idle process."""


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of glibc's malloc.h
_ARENAS = 1
_RETURNED_BYTES = 1 << 18
"""Larger blocks go back at once. glibc raises this threshold to 32 MiB unless it is set."""
_SPARE_BYTES = 8 << 20
"""Freed memory that is kept for what comes next: glibc's 128 KiB would go back and forth."""


class IdleCollector:
    """Collects all garbage once no request has come for a while."""

    def __init__(self) -> None:
        self._collected = 0.0

    def settle(self) -> None:
        """From now on, collect rarely, and keep little of what was freed. Call it before the first
        thread starts."""
        with contextlib.suppress(OSError, AttributeError):  # another C library has its own ways
            library = ctypes.CDLL(None)
            library.mallopt(_M_ARENA_MAX, _ARENAS)
            library.mallopt(_M_TRIM_THRESHOLD, _SPARE_BYTES)
            library.mallopt(_M_MMAP_THRESHOLD, _RETURNED_BYTES)
        gc.freeze()  # what start-up made stays
        gc.set_threshold(_NEW_OBJECTS, gc.get_threshold()[1], _FULL)

    def tick(self, latest: float, now: float) -> bool:
        """Collect, if it is time: `latest` is when the latest request came. True if it did."""
        is_due = now - latest > _IDLE_SECONDS and now - self._collected > _REST_SECONDS
        if not is_due or latest < self._collected:
            return False
        gc.collect()
        release_freed()
        self._collected = now
        return True
