"""A curve of second degree through rewards, from sums alone: a level, and for each knob a slope, a
curvature and a product with each other knob."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from hotset.learn.chance import normal

_SLOPE = 0.7  # standard deviation of slopes and products before anything is known
_CURVATURE = 0.7
_CONCAVE = -0.5  # the curvature before anything is known: a knob has a best place, its default
_LEVEL_PRECISION = 1e-3
_DIGITS = 9  # of a sum: the state stays small, and the fold the same
_ROUNDS = 12
_NEAR = 1e-4


class Sums(Struct, frozen=True, array_like=True):
    """Decayed sums over sessions."""

    count: float = 0.0
    products: tuple[float, ...] = ()
    """Of the curve's terms with each other, the lower triangle by rows."""
    rewards: tuple[float, ...] = ()
    """Of the terms with the reward."""

    def plus(self, offsets: Sequence[float], reward: float, keep: float) -> Sums:
        """With one more session; `keep` is what stays of the others."""
        here = terms(offsets)
        pairs = [one * other for at, one in enumerate(here) for other in here[: at + 1]]
        before = self.products or (0.0,) * len(pairs)
        earned = self.rewards or (0.0,) * len(here)
        return Sums(
            round(keep * self.count + 1, _DIGITS),
            tuple(round(keep * b + p, _DIGITS) for b, p in zip(before, pairs, strict=True)),
            tuple(round(keep * e + reward * h, _DIGITS) for e, h in zip(earned, here, strict=True)),
        )

    def with_share(self, other: Sums, share: float) -> Sums:
        """These and a share of others."""
        if not self.count:
            return Sums(
                share * other.count,
                tuple(share * each for each in other.products),
                tuple(share * each for each in other.rewards),
            )
        return Sums(
            self.count + share * other.count,
            tuple(a + share * b for a, b in zip(self.products, other.products, strict=True)),
            tuple(a + share * b for a, b in zip(self.rewards, other.rewards, strict=True)),
        )


class Curve(Struct, frozen=True):
    """What the terms' weights may be: their means, and the lower factor of their precision."""

    means: list[float]
    factor: list[list[float]]

    def predict(self, there: Sequence[float]) -> tuple[float, float]:
        """A sum of terms by their weights, with its standard error."""
        mean = _dot(self.means, there)
        half = _solve_lower(self.factor, there)
        return mean, math.sqrt(_dot(half, half))

    def gain(self, there: Sequence[float], here: Sequence[float]) -> tuple[float, float]:
        """How much higher the curve is at some offsets than at others, with its standard error."""
        return self.predict([a - b for a, b in zip(terms(there), terms(here), strict=True)])

    def draw(self, key: str) -> list[float]:
        """Weights as they may be."""
        chance = [normal(f"{key}:{at}") for at in range(len(self.means))]
        off = _solve_upper(self.factor, chance)
        return [mean + each for mean, each in zip(self.means, off, strict=True)]


def terms(offsets: Sequence[float]) -> list[float]:
    """The curve's terms at offsets from the defaults."""
    found = [1.0, *offsets, *(each * each for each in offsets)]
    found += [one * other for at, one in enumerate(offsets) for other in offsets[at + 1 :]]
    return found


def fit(sums: Sums, knobs: int, noise: float) -> Curve:
    """The curve through the rewards of some knobs; `noise`: a reward's standard deviation."""
    size = 1 + 2 * knobs + knobs * (knobs - 1) // 2
    first = [_LEVEL_PRECISION] + [_SLOPE**-2] * knobs + [_CURVATURE**-2] * knobs
    first += [_SLOPE**-2] * (size - len(first))
    weight = noise**-2
    products = iter(sums.products or (0.0,) * (size * (size + 1) // 2))
    precision = [[weight * next(products) for _ in range(row + 1)] for row in range(size)]
    right = [weight * each for each in sums.rewards] or [0.0] * size
    for row in range(size):
        precision[row][row] += first[row]
        if knobs < row <= 2 * knobs:
            right[row] += first[row] * _CONCAVE
    factor = _cholesky(precision)
    return Curve(_solve_upper(factor, _solve_lower(factor, right)), factor)


def height(weights: Sequence[float], offsets: Sequence[float]) -> float:
    return _dot(weights, terms(offsets))


def highest(
    weights: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    starts: Sequence[Sequence[float]],
) -> list[float]:
    """The offsets where a curve is highest: one knob after the other, from several starts."""
    ends = []
    for start in starts:
        here = list(start)
        for _ in range(_ROUNDS):
            before = list(here)
            for knob in range(len(here)):
                here[knob] = best_along(weights, here, knob, lows[knob], highs[knob])
            if max(abs(a - b) for a, b in zip(here, before, strict=True)) < _NEAR:
                break
        ends.append(here)
    return max(ends, key=lambda end: height(weights, end))


def best_along(
    weights: Sequence[float], here: Sequence[float], knob: int, low: float, high: float
) -> float:
    """The best offset of one knob, with the others as they are."""
    knobs = len(here)
    slope, curvature = weights[1 + knob], weights[1 + knobs + knob]
    at = 1 + 2 * knobs
    for one in range(knobs):
        for other in range(one + 1, knobs):
            if knob in (one, other):
                slope += weights[at] * here[other if knob == one else one]
            at += 1
    if curvature < 0 and low < (top := -slope / (2 * curvature)) < high:
        return top
    at_low, at_high = (end * (slope + end * curvature) for end in (low, high))
    return high if at_high > at_low else low


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def _cholesky(lower: list[list[float]]) -> list[list[float]]:
    """The lower factor of a symmetric matrix, of which the lower triangle is given."""
    factor: list[list[float]] = []
    for row, given in enumerate(lower):
        own: list[float] = []
        for column in range(row):
            other = factor[column]
            rest = given[column] - sum(a * b for a, b in zip(own, other, strict=False))
            own.append(rest / other[column])
        own.append(math.sqrt(max(given[row] - sum(each * each for each in own), 1e-12)))
        factor.append(own)
    return factor


def _solve_lower(factor: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    found: list[float] = []
    for row, value in zip(factor, right, strict=True):
        rest = value - sum(a * b for a, b in zip(row, found, strict=False))
        found.append(rest / row[len(found)])
    return found


def _solve_upper(factor: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """With the factor transposed."""
    found = list(right)
    for row in range(len(factor) - 1, -1, -1):
        rest = found[row] - sum(
            factor[below][row] * found[below] for below in range(row + 1, len(factor))
        )
        found[row] = rest / factor[row][row]
    return found
