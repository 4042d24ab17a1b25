"""Watches memory: a pure function gives the level, and everything that holds memory responds."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from msgspec import structs

from hotset.files.lru import CACHES, add_memo
from hotset.files.memory_use import SystemMemory
from hotset.nouns.link import derive
from hotset.nouns.pressure import (
    LEVELS,
    RESPONSES,
    MemoryReading,
    PressureLevel,
    PressureLimits,
    PressureResponse,
)

_log = logging.getLogger("hotset")

PRESSURE = "Pressure"
"""The event of a change of level."""

_BELOW = 0.05
"""Share of the limit by which use must fall under a threshold before the level does: caches that
refill would move it up and down at every look."""

_STALLED = 10.0
"""Percent of time in which some process waits for memory: then it is short, whatever the counts
say. A machine that swaps now and then has one or two."""

_REST_SECONDS = 3.0  # without a request: then none waits for a cache
_AT_REST = 0.5
"""Share of every cache that goes at each look while memory is short and no request comes."""

_IDLE_WHEN_SHORT = 15.0
"""Seconds without a request after which caches are emptied if memory is short."""

add_memo("chains", derive)  # `nouns` knows nothing of caches


class MemoryReader(Protocol):
    """Where readings come from."""

    def read(self) -> MemoryReading: ...


@dataclass(frozen=True, slots=True)
class PressureState:
    """The level, and since when there is less use than it stands for."""

    level: PressureLevel = PressureLevel.NORMAL
    calm_since: float | None = None


def level_of(
    reading: MemoryReading, limits: PressureLimits, below: float = 0.0, stalled: float = _STALLED
) -> PressureLevel:
    """The level of one reading, with thresholds that are lower by `below`."""
    thresholds = (limits.critical, limits.high, limits.elevated)
    by_use = next(
        (
            level
            for level, threshold in zip(reversed(LEVELS), thresholds, strict=False)
            if reading.share >= threshold - below
        ),
        PressureLevel.NORMAL,
    )
    by_stalls = (
        PressureLevel.HIGH
        if reading.all_stalled >= stalled
        else PressureLevel.ELEVATED
        if reading.stalled >= stalled
        else PressureLevel.NORMAL
    )
    return max(by_use, by_stalls, key=lambda each: each.rank)


def next_state(
    state: PressureState, reading: MemoryReading, limits: PressureLimits, now: float
) -> PressureState:
    """The state after a reading: one level up at once, or one level down after a calm time."""
    rank = state.level.rank
    if level_of(reading, limits).rank > rank:
        return PressureState(LEVELS[rank + 1])
    if level_of(reading, limits, _BELOW, _STALLED / 2).rank >= rank:
        return PressureState(state.level)
    since = now if state.calm_since is None else state.calm_since
    if now - since < limits.calm:
        return PressureState(state.level, since)
    return PressureState(LEVELS[rank - 1], now)


@dataclass(frozen=True, slots=True)
class PressureChange:
    """One step from a level to the next."""

    before: PressureLevel
    after: PressureLevel
    reading: MemoryReading

    @property
    def detail(self) -> dict[str, str | int | float]:
        """For its event."""
        return {
            "from": str(self.before),
            "to": str(self.after),
            "used": self.reading.used,
            "limit": self.reading.limit,
            "rss": self.reading.rss,
            "stalled": self.reading.stalled,
            "source": self.reading.source,
        }


class PressureMonitor:
    """Reads memory and tells the caches of this process what to hold. For one thread.

    A reader that fails means a normal level; it is logged once.
    """

    def __init__(
        self,
        limits: PressureLimits,
        reader: MemoryReader | None = None,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self._reader = reader or SystemMemory(limits.limit_mb << 20)
        self._clock = clock
        self._monotonic = monotonic
        self._state = PressureState()
        self._since = clock()
        self._reading = MemoryReading()
        self._trouble = ""
        self._is_idle = False
        self.dropped = False
        """True if caches dropped something at the latest look: its memory may go back."""

    @property
    def level(self) -> PressureLevel:
        return self._state.level

    @property
    def response(self) -> PressureResponse:
        return RESPONSES[self._state.level]

    def look(self, rest: float = 0.0) -> list[PressureChange]:
        """Read memory once, and respond. The steps that were taken, in order; mostly none.

        `rest` is the seconds since the latest request: after a few, caches that only keep the level
        up go too, and after many at any level.
        """
        now, limits = self._monotonic(), self.limits
        self._read()
        if self._trouble:
            limits = structs.replace(limits, calm=0.0)
        changes: list[PressureChange] = []
        while True:
            before = self._state.level
            self._state = next_state(self._state, self._reading, limits, now)
            if self._state.level is before:
                break
            changes.append(PressureChange(before, self._state.level, self._reading))
            self._respond(before)
            if self._state.level.rank < before.rank and not self._trouble:
                break  # one level at a time: what was dropped is not wanted back at once
        goes = 0.0 if changes else self._goes_at_rest(rest)
        if goes or (not changes and self.level is not PressureLevel.NORMAL):
            CACHES.respond(replace(self.response, evicted=goes))
        self.dropped = bool(changes or goes)
        return changes

    def _goes_at_rest(self, rest: float) -> float:
        """Share of what is left in the caches that goes without a change of level."""
        is_normal = self.level is PressureLevel.NORMAL
        idle = self.limits.idle if is_normal else min(self.limits.idle, _IDLE_WHEN_SHORT)
        was_idle, self._is_idle = self._is_idle, rest > idle
        if self._is_idle and not was_idle:
            return 1.0
        if is_normal:
            return 0.0
        if rest > _REST_SECONDS:
            return _AT_REST
        # While memory stays critical, half of what is left goes at every look.
        is_critical = level_of(self._reading, self.limits) is PressureLevel.CRITICAL
        return self.response.evicted if is_critical else 0.0

    def _respond(self, before: PressureLevel) -> None:
        level, reading = self._state.level, self._reading
        self._since = self._clock()
        rises = level.rank > before.rank
        CACHES.respond(self.response if rises else replace(self.response, evicted=0.0))
        _log.warning(
            "memory pressure is %s, it was %s: %d MB used, limit %s",
            level,
            before,
            reading.used >> 20,
            f"{reading.limit >> 20} MB ({reading.source})" if reading.limit else "none",
        )

    def _read(self) -> None:
        try:
            self._reading = self._reader.read()
        except Exception as error:  # background work: no reader may fail or delay a call
            self._reading = MemoryReading()
            if not self._trouble:
                _log.warning("memory is not watched: it cannot be read (%s)", type(error).__name__)
            self._trouble = type(error).__name__
        else:
            self._trouble = ""
        limit, used = self._reading.limit, self._reading.used
        CACHES.room = max(0, limit - used) if limit else None

    def close(self) -> None:
        """Everything may hold its usual share again."""
        if self.level is not PressureLevel.NORMAL:
            self._state = PressureState()
            CACHES.respond(self.response)
        CACHES.room = None

    def report(self) -> dict[str, Any]:
        """The level, why, and what it means; for `status`."""
        reading, response = self._reading, self.response
        return {
            "level": self.level,
            "since": self._since,
            "rss": reading.rss,
            "used": reading.used,
            "limit": reading.limit,
            "source": reading.source,
            "stalled": reading.stalled,
            "tier": response.tier,
            "prefetch": response.prefetches,
            "share": response.share,
            "trouble": self._trouble,
        }
