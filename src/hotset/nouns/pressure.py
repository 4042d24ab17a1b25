"""Memory pressure: how much memory is used, how serious that is, and what is done about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

Share = Annotated[float, Meta(ge=0.1, le=1)]


class PressureLevel(StrEnum):
    """In their order, the mildest first."""

    NORMAL = "normal"
    ELEVATED = "elevated"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return LEVELS.index(self)


LEVELS = tuple(PressureLevel)


class MemoryTier(StrEnum):
    """What stays in memory between two requests."""

    FULL = "full"
    """Everything: also the model that reads questions closely, and the fold's own buffers."""
    WARM = "warm"
    """No model, and no vectors of entries that are not folded yet."""
    HOT = "hot"
    """The hot entries alone: full text and vectors are closed after use, and nothing is folded."""


@dataclass(frozen=True, slots=True)
class PressureResponse:
    """What a level asks of everything that holds memory."""

    tier: MemoryTier
    prefetches: bool
    """False: nothing is searched or read ahead that was not asked for."""
    share: float
    """Of its usual limit, for every cache."""
    evicted: float = 0.0
    """Share of every cache that goes at once."""

    @property
    def empties(self) -> bool:
        """True after a long rest: everything goes that can be made or read again."""
        return self.evicted >= 1


RESPONSES: Mapping[PressureLevel, PressureResponse] = {
    PressureLevel.NORMAL: PressureResponse(MemoryTier.FULL, prefetches=True, share=1.0),
    PressureLevel.ELEVATED: PressureResponse(MemoryTier.WARM, prefetches=True, share=0.75),
    PressureLevel.HIGH: PressureResponse(MemoryTier.HOT, prefetches=False, share=0.5),
    PressureLevel.CRITICAL: PressureResponse(
        MemoryTier.HOT, prefetches=False, share=0.25, evicted=0.5
    ),
}


class PressureLimits(Struct, frozen=True):
    """Settings of `[pressure]`."""

    enabled: bool = True
    limit_mb: Annotated[int, Meta(ge=0)] = 0
    """Megabytes that this process may take; 0 is what its group of processes may."""
    elevated: Share = 0.8
    """Share of the limit from which memory is short: a burst of requests takes the rest."""
    high: Share = 0.9
    critical: Share = 0.95
    seconds: Annotated[float, Meta(ge=0.01, le=60)] = 1.0
    """Between two looks."""
    calm: Annotated[float, Meta(ge=0, le=10)] = 5.0
    """Seconds of less use before it is one level lower: three levels within 30 s, at most."""
    idle: Annotated[float, Meta(ge=1, le=86_400)] = 300.0
    """Seconds without a request after which caches are emptied at any level. By then a provider has
    forgotten the prompt, and the next request takes longer anyway."""


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """The memory of this process and its group, at one moment."""

    rss: int = 0
    """Bytes of this process, with the files that it has mapped."""
    used: int = 0
    """Bytes that count against the limit: not what the kernel drops when it needs room."""
    limit: int = 0
    """0: none."""
    stalled: float = 0.0
    """Percent of the last ten seconds in which some process of the group waited for memory."""
    all_stalled: float = 0.0
    """Percent in which all of them did."""
    source: str = ""
    """Whose limit it is: `cgroup v2`, `cgroup v1` or `own limit`; empty without one."""

    @property
    def share(self) -> float:
        return self.used / self.limit if self.limit else 0.0
