"""Weights that suit one store, learned from what was of use."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from hotset.sources.memory.recall_signals import LoggedCandidate, RecallLog, learn_weights

DEFAULTS = {"words": 1.0, "meaning": 0.6, "recent": 0.3, "outdated": -0.5}


def recalls(
    seed: int, count: int, truth: Mapping[str, float] | None, candidates: int = 12
) -> list[RecallLog]:
    """A store in which the best by `truth` is read; without one, anything is."""
    rng = random.Random(seed)
    log = []
    for _ in range(count):
        served = tuple(
            LoggedCandidate(str(at), {name: rng.random() for name in DEFAULTS})
            for at in range(candidates)
        )
        best = (
            rng.choice(served)
            if truth is None
            else max(served, key=lambda one: _score(one, truth) + rng.gauss(0, 0.15))
        )
        log.append(RecallLog(served, frozenset({best.id})))
    return log


def _score(one: LoggedCandidate, weights: Mapping[str, float]) -> float:
    return sum(weights[name] * value for name, value in one.signals.items())


def _first_is_good(log: list[RecallLog], weights: Mapping[str, float]) -> float:
    return sum(
        max(one.candidates, key=lambda each: _score(each, weights)).id in one.good for one in log
    ) / len(log)


def test_weights_move_to_what_is_of_use_in_this_store_and_serve_recalls_that_nobody_adapted_to():
    truth = {"words": 0.3, "meaning": 0.6, "recent": 1.2, "outdated": -0.5}

    found = learn_weights(recalls(1, 300, truth), DEFAULTS)

    assert found.weights["recent"] > 2 * DEFAULTS["recent"]
    assert found.weights["words"] < DEFAULTS["words"]
    assert 0 < found.low <= found.gain <= found.high
    assert found.used == 300
    assert found.why.startswith("adapted: ")
    others = recalls(2, 300, truth)
    assert _first_is_good(others, found.weights) > _first_is_good(others, DEFAULTS) + 0.1


@pytest.mark.slow
def test_where_anything_is_read_the_weights_stay_in_at_least_95_of_100_stores():
    kept = sum(
        learn_weights(recalls(seed, 60, None, candidates=8), DEFAULTS, seed).weights == DEFAULTS
        for seed in range(100)
    )

    assert kept >= 95


@pytest.mark.slow
def test_where_the_defaults_are_right_they_stay():
    kept = sum(
        learn_weights(recalls(seed, 80, DEFAULTS, candidates=8), DEFAULTS, seed).weights == DEFAULTS
        for seed in range(40)
    )

    assert kept >= 38


def test_with_few_recalls_nothing_is_learned_and_it_says_why():
    found = learn_weights(recalls(1, 20, {**DEFAULTS, "recent": 3.0}), DEFAULTS)

    assert found.weights == DEFAULTS
    assert found.used == 20
    assert found.why == "20 recalls can tell something; 40 are needed"


def test_recalls_that_cannot_tell_anything_do_not_count():
    log = recalls(1, 60, DEFAULTS)
    silent = [replace(one, good=frozenset()) for one in log]
    elsewhere = [replace(one, good=frozenset({"gone"})) for one in log]
    all_good = [replace(one, good=frozenset(each.id for each in one.candidates)) for one in log]

    assert learn_weights([*silent, *elsewhere, *all_good], DEFAULTS).used == 0
    assert learn_weights([], DEFAULTS).weights == DEFAULTS


def test_what_misled_is_ranked_lower_afterwards():
    rng = random.Random(3)
    log = []
    for one in recalls(3, 300, DEFAULTS):
        trap = max(one.candidates, key=lambda each: each.signals["recent"] + rng.gauss(0, 0.05))
        log.append(replace(one, good=one.good - {trap.id}, bad=frozenset({trap.id})))

    found = learn_weights(log, {**DEFAULTS, "recent": 1.0})

    assert found.weights["recent"] <= 0.5


def test_the_order_of_candidates_cannot_be_learned():
    """All candidates are alike and the first one is always the good one: no weights can tell,
    whatever ties do."""
    alike = tuple(LoggedCandidate(str(at), dict.fromkeys(DEFAULTS, 0.5)) for at in range(10))
    log = [RecallLog(alike, frozenset({"0"}))] * 200

    found = learn_weights(log, DEFAULTS)

    assert found.weights == DEFAULTS
    assert found.gain == 0


def test_a_signal_that_is_off_or_unknown_stays_as_it_is():
    log = recalls(1, 200, {"words": 0.2, "meaning": 0.6, "recent": 1.2, "outdated": -0.5})

    found = learn_weights(log, {**DEFAULTS, "meaning": 0.0, "kind": 0.7})

    assert found.weights["meaning"] == 0
    assert found.weights["kind"] == 0.7
    assert found.weights["recent"] > DEFAULTS["recent"]


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 10_000),
    st.fixed_dictionaries({name: st.floats(-3, 3) for name in DEFAULTS}),
    st.integers(0, 90),
)
def test_every_weight_stays_between_a_quarter_and_four_times_its_default_and_the_same_log_gives_the_same(  # noqa: E501
    seed, truth, count
):
    log = recalls(seed, count, truth, candidates=5)

    found = learn_weights(log, DEFAULTS, seed)

    assert found == learn_weights(log, DEFAULTS, seed)
    assert found.weights.keys() == DEFAULTS.keys()
    for name, weight in found.weights.items():
        assert 0.25 <= weight / DEFAULTS[name] <= 4
    assert found.low <= found.gain + 1e-9
    assert found.gain <= found.high + 1e-9


@pytest.mark.parametrize("size", [1, 2])
def test_a_recall_of_one_candidate_tells_nothing_and_of_two_it_does(size):
    log = recalls(1, 50, DEFAULTS, candidates=size)

    assert learn_weights(log, DEFAULTS).used == (50 if size == 2 else 0)
