"""Bounds on a mean that hold at any time, however often one looks, from one observation after the
other.

For each value m of a grid somebody bets against "the mean is m", with stakes that depend only on
what came before. If the mean is m, the capital is expected to stay as it is, so that the chance
that it ever grows to 1 / alpha is at most alpha (Ville). Values against which somebody got that
rich are ruled out. The stakes are the nearly growth-optimal ones of Waudby-Smith and Ramdas,
"Estimating means of bounded random variables by betting" (2023).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct

_HALF = (0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
GRID = (*(-point for point in reversed(_HALF)), 0.0, *_HALF)
"""Means that are bet against. Bounds are points of it: between two of them nothing was bet."""

ALPHA = 0.05

_MOST_STAKE = 0.75  # of all that could be lost: a stake of everything can lose everything
_FIRST = 2.0  # observations that the first guess (no effect, `_FIRST_SPREAD`) counts for
_FIRST_SPREAD = 0.02  # variance on a scale from 0 to 1
_DIGITS = 5  # of a logarithm: that changes no decision, and 17 digits fill the state


class Wager(Struct, frozen=True, array_like=True):
    """What is known of the mean of values from -1 to 1."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    above: tuple[float, ...] = ()
    """For each value of the grid: the logarithm of what betting on a larger mean has come to."""
    below: tuple[float, ...] = ()
    """And on a smaller one."""

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


def add_value(wager: Wager, value: float, grid: Sequence[float] = GRID) -> Wager:
    """With one more observation, clipped to -1..1."""
    value = max(-1.0, min(1.0, value))
    # on a scale from 0 to 1; the first guess is that there is no effect
    seen = (value + 1) / 2
    weight = wager.count + _FIRST
    mean = ((wager.total + wager.count) / 2 + _FIRST / 2) / weight
    around = (wager.squares + 2 * wager.total + wager.count) / 4 + _FIRST / 4
    spread = max(0.0, around / weight - mean * mean) + _FIRST * _FIRST_SPREAD / weight
    nothing = (0.0,) * len(grid)
    above, below = wager.above or nothing, wager.below or nothing
    new_above, new_below = [], []
    for at, point in enumerate(grid):
        null = (point + 1) / 2
        edge = mean - null
        stake = edge / (spread + edge * edge)
        up = min(max(stake, 0.0), _MOST_STAKE / null if null else _MOST_STAKE)
        down = min(max(-stake, 0.0), _MOST_STAKE / (1 - null) if null < 1 else _MOST_STAKE)
        new_above.append(round(above[at] + math.log1p(up * (seen - null)), _DIGITS))
        new_below.append(round(below[at] + math.log1p(down * (null - seen)), _DIGITS))
    return Wager(
        wager.count + 1,
        wager.total + value,
        wager.squares + value * value,
        tuple(new_above),
        tuple(new_below),
    )


def add_values(values: Iterable[float], grid: Sequence[float] = GRID) -> Wager:
    """What all of them say."""
    wager = Wager()
    for value in values:
        wager = add_value(wager, value, grid)
    return wager


def bounds(wager: Wager, alpha: float = ALPHA, grid: Sequence[float] = GRID) -> tuple[float, float]:
    """An interval that has the mean in it, at all times together with probability 1 - alpha."""
    if not wager.count:
        return -1.0, 1.0
    return (
        _crossing(wager.above, alpha / 2, grid),
        -_crossing(wager.below[::-1], alpha / 2, [-point for point in reversed(grid)]),
    )


def is_above(wager: Wager, null: float, alpha: float = ALPHA, grid: Sequence[float] = GRID) -> bool:
    """True if the mean is shown to be larger than `null`; one-sided."""
    return bool(wager.count) and _crossing(wager.above, alpha, grid) >= null


def is_below(wager: Wager, null: float, alpha: float = ALPHA, grid: Sequence[float] = GRID) -> bool:
    """True if the mean is shown to be smaller than `null`; one-sided."""
    turned = [-point for point in reversed(grid)]
    return bool(wager.count) and _crossing(wager.below[::-1], alpha, turned) >= -null


def _crossing(capital: Sequence[float], alpha: float, grid: Sequence[float]) -> float:
    """The largest mean up to which all smaller ones are ruled out; the grid rises."""
    enough = math.log(1 / alpha)
    bound = -1.0
    for point, found in zip(grid, capital, strict=True):
        if found < enough:
            break
        bound = point
    return bound
