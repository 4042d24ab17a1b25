"""Whether a change passes on later sessions."""

from __future__ import annotations

import math
import random

from hotset.learn.gate import SessionPair, gate, split_by_time


def pairs(
    count: int, gain: float, spread: float, seed: int = 0, faults: tuple[float, float] = (4, 4)
) -> list[SessionPair]:
    """Sessions whose cost falls by about a share `gain`."""
    chance = random.Random(seed)
    costs = [chance.lognormvariate(10, 1) for _ in range(count)]
    return [
        SessionPair(f"s{at}", at, cost, cost * math.exp(-chance.gauss(gain, spread)), *faults)
        for at, cost in enumerate(costs)
    ]


def test_a_change_that_is_cheaper_in_most_sessions_passes():
    found = gate(pairs(60, 0.06, 0.05), "c-1")

    assert found.passed
    assert found.change == "c-1"
    assert 0 < found.low < 0.06 < found.high
    assert abs(found.gain - 0.06) < 0.03
    assert "60 later sessions" in found.why


def test_a_change_that_changes_nothing_is_refused_in_every_store():
    assert [seed for seed in range(60) if gate(pairs(60, 0.0, 0.1, seed)).passed] == []


def test_shuffled_labels_pass_in_at_most_two_of_a_hundred_stores():
    passed = 0
    for seed in range(100):
        chance = random.Random(seed)
        shuffled = [
            pair
            if chance.random() < 0.5
            else SessionPair(pair.session, pair.time, pair.after, pair.before)
            for pair in pairs(60, 0.08, 0.05, seed)
        ]
        passed += gate(shuffled).passed

    assert passed <= 2


def test_a_cheaper_change_with_more_faults_is_refused():
    found = gate(pairs(60, 0.06, 0.05, faults=(4, 5)))

    assert not found.passed
    assert found.faults > 1.2
    assert "faults" in found.why


def test_a_change_that_makes_the_dearest_session_dearer_than_all_others_save_is_refused():
    found = gate([*pairs(60, 0.06, 0.05), SessionPair("dear", 99, 1e7, 2e7)])

    assert not found.passed
    assert "not in sum" in found.why


def test_a_few_sessions_are_not_enough():
    found = gate(pairs(5, 0.2, 0.01))

    assert not found.passed
    assert "8 are needed" in found.why


def test_the_order_in_which_sessions_are_given_does_not_matter():
    some = pairs(40, 0.05, 0.1)

    assert gate(some) == gate(some[::-1])


def test_sessions_are_split_by_time():
    earlier, later = split_by_time(pairs(9, 0.0, 0.1)[::-1])

    assert [pair.time for pair in earlier] == [0, 1, 2, 3]
    assert [pair.time for pair in later] == [4, 5, 6, 7, 8]
