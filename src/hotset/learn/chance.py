"""Chance from a key: the same key gives the same draw, on every machine."""

from __future__ import annotations

from hashlib import sha256
from statistics import NormalDist

_NORMAL = NormalDist()
_STEPS = 1 << 52


def uniform(key: str) -> float:
    """At least 0 and less than 1."""
    return (int.from_bytes(sha256(key.encode()).digest()[:8], "big") >> 12) / _STEPS


def normal(key: str) -> float:
    """Mean 0, standard deviation 1."""
    return _NORMAL.inv_cdf(uniform(key) + 0.5 / _STEPS)
