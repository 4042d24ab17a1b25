"""Bounds that hold at any time."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import sqrt

import pytest

from hotset.learn.confidence import Wager, add_value, add_values, bounds, is_above, is_below

ALPHA = 0.05
RUNS = 100

Draw = Callable[[random.Random], float]


def misses(draw: Draw, mean: float, looks: int) -> int:
    """Of `RUNS` sequences, how many leave the mean out at any of the looks."""
    found = 0
    for seed in range(RUNS):
        chance, wager = random.Random(seed), Wager()
        for _ in range(looks):
            wager = add_value(wager, draw(chance))
            low, high = bounds(wager, ALPHA)
            if not low <= mean <= high:
                found += 1
                break
    return found


def z_misses(draw: Draw, mean: float, looks: int) -> int:
    """The same with the usual 95 % interval, from the tenth look on."""
    found = 0
    for seed in range(RUNS):
        chance, values = random.Random(seed), []
        for at in range(looks):
            values.append(draw(chance))
            middle = sum(values) / len(values)
            spread = sum((each - middle) ** 2 for each in values) / len(values)
            if at >= 10 and abs(middle - mean) > 1.96 * sqrt(spread / len(values)):
                found += 1
                break
    return found


@pytest.mark.parametrize(
    ("draw", "mean"),
    [
        pytest.param(lambda chance: chance.choice([-1.0, 1.0]), 0.0, id="coin"),
        pytest.param(lambda chance: 1.0 if chance.random() < 0.9 else -1.0, 0.8, id="mostly one"),
        pytest.param(lambda chance: chance.uniform(-0.2, 0.1), -0.05, id="narrow"),
        pytest.param(lambda chance: -1.0 if chance.random() < 0.05 else 0.1, 0.045, id="skewed"),
    ],
)
def test_looking_after_every_observation_keeps_the_error_below_alpha(draw: Draw, mean: float):
    assert misses(draw, mean, 150) <= ALPHA * RUNS


def test_the_usual_interval_does_not():
    assert z_misses(lambda chance: chance.choice([-1.0, 1.0]), 0.0, 150) > 3 * ALPHA * RUNS


def test_the_bounds_close_in_on_the_mean():
    chance = random.Random(1)
    values = [chance.uniform(-0.5, 0.7) for _ in range(800)]

    (low, high), (lower, higher) = bounds(add_values(values[:40])), bounds(add_values(values))

    assert low <= lower <= 0.1 <= higher <= high
    assert higher - lower < 0.25 < high - low


def test_a_mean_is_shown_to_be_above_or_below_another_and_not_both():
    chance = random.Random(2)
    wager = add_values(chance.uniform(0.0, 0.4) for _ in range(100))

    assert is_above(wager, 0.0)
    assert is_below(wager, 0.5)
    assert not is_above(wager, 0.2)
    assert not is_below(wager, 0.2)


def test_nothing_is_known_before_the_first_observation():
    assert bounds(Wager()) == (-1.0, 1.0)
    assert not is_above(Wager(), -1.0)
    assert not is_below(Wager(), 1.0)


def test_values_beyond_the_range_count_as_its_ends():
    assert add_values([-8.0, 3.0]) == add_values([-1.0, 1.0])
