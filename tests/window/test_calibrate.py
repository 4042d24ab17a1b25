"""Our count becomes the provider's: priors, learning from reports, and no report that can spoil
it."""

from __future__ import annotations

import json
from functools import reduce

import pytest
from hypothesis import given, strategies as st

from hotset.window.calibrate import Calibration, from_numbers, prior

counts = st.integers(-10, 3_000_000)
reports = st.lists(st.tuples(counts, counts), max_size=60)


def after(calibration: Calibration, seen: list[tuple[int, int]]) -> Calibration:
    return reduce(lambda known, report: known.after_report(*report), seen, calibration)


@pytest.mark.parametrize(
    ("model", "ratio"),
    [
        ("claude-opus-5", 1.3),
        ("us.anthropic.claude-sonnet-4-5-v1:0", 1.3),
        ("gpt-5.6", 1.01),
        ("openai/o3", 1.01),
        ("gemini-3-pro", 1.17),
        ("qwen3-max", 1.1),
        ("", 1.1),
    ],
)
def test_a_family_starts_with_what_is_known_of_it(model, ratio):
    assert prior(model).ratio == ratio
    assert prior(model).scale(10_000) == round(10_000 * ratio)


@given(
    true=st.floats(0.6, 2.8),
    estimated=st.lists(st.integers(2_000, 200_000), min_size=60, max_size=80),
)
@pytest.mark.slow
def test_steady_reports_are_learned_however_far_they_are_from_the_prior(true, estimated):
    learned = after(
        prior("claude-opus-5"),
        [(tokens, round(tokens * true)) for tokens in [*estimated, *[50_000] * 60]],
    )
    assert learned.ratio == pytest.approx(true, rel=0.03)


def test_one_long_prompt_already_outweighs_the_prior():
    learned = prior("claude-opus-5").after_report(60_000, 72_000)
    assert abs(learned.ratio - 1.2) < abs(learned.ratio - 1.3)


@pytest.mark.parametrize(
    "report",
    [(0, 100), (-5, 5), (399, 700), (10_000, 0), (10_000, -1), (10_000, 100_000), (100_000, 2_000)],
)
def test_reports_that_do_not_count_the_same_thing_are_not_looked_at(report):
    assert prior("claude-opus-5").after_report(*report) == prior("claude-opus-5")


@given(estimated=st.integers(400, 2_000_000), factor=st.floats(0.5, 3.0))
def test_one_strange_report_hardly_moves_what_many_have_said(estimated, factor):
    steady = after(prior("claude-opus-5"), [(40_000, 52_000)] * 20)
    assert steady.after_report(estimated, round(estimated * factor)).ratio == pytest.approx(
        1.3, rel=0.04
    )


@given(seen=reports)
def test_whatever_is_reported_the_ratio_stays_in_bounds(seen):
    learned = after(prior("gpt-5"), seen)
    assert 0.5 <= learned.ratio <= 3.0
    assert 0 < learned.weight <= 400_000


@given(seen=reports)
def test_what_was_learned_survives_being_stored(seen):
    learned = after(prior("gpt-5"), seen)
    assert from_numbers(json.loads(json.dumps(learned.as_numbers())), "gpt-5") == learned


@pytest.mark.parametrize(
    "numbers",
    [{}, {"ratio": 1.2}, {"ratio": 99.0, "weight": 1.0}, {"ratio": float("nan"), "weight": 1.0}],
)
def test_numbers_that_are_none_of_ours_give_the_prior(numbers):
    assert from_numbers(numbers, "claude-opus-5") == prior("claude-opus-5")
