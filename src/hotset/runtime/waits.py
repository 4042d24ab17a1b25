"""How long requests wait for us before they go upstream."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

_LATEST = 1000


@dataclass(frozen=True, slots=True)
class WaitFigures:
    """Milliseconds from a request's last byte to its way upstream; `cpu` is what we computed in
    that time, the rest is the machine's."""

    requests: int
    p50_ms: float
    p99_ms: float
    longest_ms: float
    cpu_p50_ms: float
    cpu_p99_ms: float
    cpu_longest_ms: float


@dataclass(slots=True)
class Waits:
    """The waits since the start. Percentiles are those of the latest thousand."""

    requests: int = 0
    longest: float = 0.0
    longest_cpu: float = 0.0
    _latest: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_LATEST))

    def add(self, seconds: float, cpu: float) -> None:
        self.requests += 1
        self.longest = max(self.longest, seconds)
        self.longest_cpu = max(self.longest_cpu, cpu)
        self._latest.append((seconds, cpu))

    def figures(self) -> WaitFigures:
        seconds = sorted(each for each, _ in self._latest) or [0.0]
        cpu = sorted(each for _, each in self._latest) or [0.0]
        middle, late = len(seconds) // 2, int(len(seconds) * 0.99)
        return WaitFigures(
            self.requests,
            *(1000 * each for each in (seconds[middle], seconds[late], self.longest)),
            *(1000 * each for each in (cpu[middle], cpu[late], self.longest_cpu)),
        )
