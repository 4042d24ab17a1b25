"""How long a process that nobody uses is kept, and which ones make room for another. Pure: the clock is passed in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp
from typing import Protocol, TypeVar

_HOUR = 3600.0
_OFTEN = 20.0  # calls an hour from which on a process is kept longest
_LONGEST = 5.0  # times as long as one that is hardly ever used


@dataclass(frozen=True, slots=True)
class Use:
    """How often something is used: each call counts one, and fades over an hour."""

    rate: float = 0.0
    """Calls in an hour, as of then."""
    at: float = 0.0


class Kept(Protocol):
    """What is asked of a process that may have to go."""

    @property
    def is_idle(self) -> bool:
        """Nobody waits for it, and nobody pinned it."""

    @property
    def last_used(self) -> float: ...


def used(use: Use, now: float) -> Use:
    return Use(use.rate * exp(-max(0.0, now - use.at) / _HOUR) + 1, now)


def patience(use: Use, idle_seconds: float) -> float:
    """Seconds after its last call for which a process is kept."""
    return idle_seconds * (1 + (_LONGEST - 1) * min(1.0, use.rate / _OFTEN))


_Process = TypeVar("_Process", bound=Kept)


def in_the_way(processes: Iterable[_Process], limit: int) -> list[_Process]:
    """Those that have to go so that no more than the limit are left: the ones that were not used for longest.

    Never one that is in use. So there may be fewer of them than it would take.
    """
    every = list(processes)
    idle = sorted((each for each in every if each.is_idle), key=lambda each: each.last_used)
    return idle[: max(0, len(every) - limit)]
