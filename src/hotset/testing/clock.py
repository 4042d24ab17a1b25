"""A clock that stands still until it is told to move."""

from __future__ import annotations

from threading import Lock


class Clock:
    """Call it to read it, like `time.time`. Safe to move from one thread while another reads."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now
        self._lock = Lock()

    def __call__(self) -> float:
        with self._lock:
            return self._now

    def advance(self, seconds: float) -> float:
        """Moves forward, or back where `seconds` is negative, as real clocks do too; gives the new
        time."""
        with self._lock:
            self._now += seconds
            return self._now

    def set(self, now: float) -> None:
        with self._lock:
            self._now = now
