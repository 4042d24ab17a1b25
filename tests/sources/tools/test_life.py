"""How alive a tool is, and who goes first."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from hotset.nouns.tool import Life, OriginKind, ToolStatus, ToolTier
from hotset.nouns.tooling import Tooling
from hotset.sources.tools.registry import (
    DEFAULTS,
    after_use,
    decay,
    evictable,
    expired,
    pinned,
    reborn,
    step,
    tier,
    time_left,
)

NOW = 1_800_000_000.0
TTL = DEFAULTS.ttl_seconds
MINUTE, HOUR, DAY, YEAR = 60.0, 3600.0, 86_400.0, 31_557_600.0

times = st.floats(0, 4e9, allow_nan=False)
spans = st.floats(0, 1e9, allow_nan=False)


@st.composite
def any_life(draw: st.DrawFn, name: str = "t") -> Life:
    calls = draw(st.integers(0, 500))
    status = draw(st.sampled_from(ToolStatus))
    return Life(
        name,
        born=draw(times),
        origin=draw(st.sampled_from(OriginKind)),
        calls=calls,
        last_used=draw(times) if calls else None,
        status=status,
        inactive_since=draw(st.none() | times) if status is ToolStatus.INACTIVE else None,
        pinned=draw(st.booleans()),
    )


lives = st.integers(0, 12).flatmap(
    lambda many: st.tuples(*(any_life(f"t{at}") for at in range(many)))
)


def used(calls: int, ago: float, name: str = "t") -> Life:
    return Life(name, born=NOW - 30 * DAY, calls=calls, last_used=NOW - ago)


def asleep(name: str, left: float) -> Life:
    return replace(used(1, DAY, name), status=ToolStatus.INACTIVE, inactive_since=NOW - TTL + left)


# The score


@pytest.mark.row("D2")
@pytest.mark.parametrize(
    ("calls", "ago", "score"),
    [(120, 10 * MINUTE, 0.97), (50, HOUR, 0.77), (10, 12 * HOUR, 0.02), (1, 0, 1.0)],
    ids=["a calculator", "a search", "a reader", "just now"],
)
def test_the_score_of_a_used_tool_falls_with_the_time_since_its_last_use(calls, ago, score):
    assert decay(used(calls, ago), NOW) == pytest.approx(score, abs=0.006)


@pytest.mark.row("D2")
@pytest.mark.parametrize(
    ("age", "score"),
    [
        (0, 1.0),
        (59 * MINUTE, 1.0),
        (HOUR, 0.5),
        (6 * HOUR - 1, 0.5),
        (6 * HOUR, 0.05),
        (3 * DAY, 0.05),
    ],
)
def test_a_tool_that_was_never_used_has_its_time_and_then_little(age, score):
    assert decay(Life("t", born=NOW - age), NOW) == score


@pytest.mark.parametrize(
    ("calls", "lifetime"), [(1, 9494), (100, 18_800), (200, 28_200), (10_000, 28_200)]
)
def test_each_call_makes_it_last_longer_up_to_three_times(calls, lifetime):
    assert decay(used(calls, lifetime), NOW) == pytest.approx(1 / math.e)


@pytest.mark.row("D2")
@given(any_life(), times, spans)
def test_a_score_never_rises_by_itself(life, now, later):
    assert 0 <= decay(life, now + later) <= decay(life, now) <= 1


@given(st.integers(1, 500), st.integers(0, 500), spans)
def test_more_calls_never_lower_the_score(calls, more, ago):
    assert decay(used(calls + more, ago), NOW) >= decay(used(calls, ago), NOW)


@given(any_life(), times)
@pytest.mark.slow
def test_a_clock_that_went_back_makes_nothing_older(life, now):
    future = max(life.born, life.last_used or 0)

    assert decay(life, min(now, future)) == 1.0


# The tier


@pytest.mark.row("D1")
@pytest.mark.parametrize(
    ("life", "expected"),
    [
        (used(1, 0), ToolTier.HOT),
        (used(1, 2 * HOUR), ToolTier.WARM),
        (used(300, 2 * HOUR), ToolTier.HOT),
        (used(1, 5 * HOUR), ToolTier.COLD),
        (Life("t", born=NOW), ToolTier.PROBATION),
        (Life("t", born=NOW - YEAR), ToolTier.PROBATION),
        (replace(used(1, 5 * HOUR), pinned=True), ToolTier.PROTECTED),
        (Life("t", born=NOW, pinned=True), ToolTier.PROTECTED),
    ],
)
def test_the_tier_tells_how_a_tool_is_used(life, expected):
    assert tier(life, NOW) is expected


# The states


@pytest.mark.row("D3")
def test_a_tool_falls_asleep_when_its_score_has_fallen_and_expires_a_day_later():
    life = used(1, 0)
    sleepy = NOW + 9494 * math.log(10)

    assert step(life, sleepy - 1) == life
    inactive = step(life, sleepy + 1)
    assert (inactive.status, inactive.inactive_since) == (ToolStatus.INACTIVE, sleepy + 1)
    assert not expired(inactive, sleepy + 1 + TTL - 1)
    assert expired(inactive, sleepy + 1 + TTL)
    assert time_left(inactive, sleepy + 1 + HOUR) == TTL - HOUR


@pytest.mark.row("D3")
@given(any_life(), times, st.floats(0, 100), st.booleans())
def test_a_use_rescues_at_once_and_is_counted(life, now, seconds, failed):
    rescued = after_use(life, now, seconds, failed=failed)

    assert (rescued.status, rescued.inactive_since, rescued.last_used) == (
        ToolStatus.ACTIVE,
        None,
        now,
    )
    assert (rescued.calls, rescued.failures) == (life.calls + 1, life.failures + failed)
    assert rescued.seconds == life.seconds + seconds
    assert not expired(rescued, now + TTL)
    assert step(rescued, now) == rescued


@given(any_life(), times)
def test_a_step_taken_twice_is_one_step(life, now):
    once = step(life, now)

    assert step(once, now) == once
    assert replace(once, status=life.status, inactive_since=life.inactive_since) == life


@given(any_life(), times, spans)
def test_nothing_expires_less_than_a_day_after_it_was_seen_active(life, now, later):
    seen = step(replace(life, status=ToolStatus.ACTIVE, inactive_since=None), now)

    assert not expired(step(seen, now + min(later, TTL * 0.999)), now + min(later, TTL * 0.999))


@given(any_life(), times)
def test_a_pinned_tool_never_sleeps_and_never_expires(life, now):
    kept = step(pinned(life, pin=True), now)

    assert kept.status is ToolStatus.ACTIVE
    assert not expired(kept, now + YEAR)
    assert not expired(replace(life, pinned=True), now + YEAR)


def test_a_tool_that_a_clock_ahead_of_time_put_to_sleep_wakes_when_the_clock_is_right_again():
    life = used(3, MINUTE)
    wrong = step(life, NOW + 10 * YEAR)

    assert wrong.status is ToolStatus.INACTIVE
    assert step(wrong, NOW) == life


def test_a_tool_that_a_person_calls_inactive_sleeps_from_then_on():
    told = replace(used(3, MINUTE), status=ToolStatus.INACTIVE)

    assert time_left(told, NOW) == TTL
    assert step(told, NOW) == replace(told, inactive_since=NOW)


def test_a_tool_that_is_reborn_has_its_record_and_a_new_life():
    old = asleep("t", 0)
    new = reborn(old, NOW)

    assert decay(new, NOW) == 1.0
    assert (new.status, new.calls, new.last_used) == (ToolStatus.ACTIVE, old.calls, old.last_used)


# Who goes


@pytest.mark.row("D4")
def test_of_three_tools_the_inactive_one_with_the_least_time_left_goes_first():
    a, b, c = used(5, HOUR, "a"), asleep("b", 2 * HOUR), asleep("c", 23 * HOUR)

    assert evictable([a, b, c], NOW) == (b, c, a)


def test_active_tools_go_by_score_and_of_equal_score_those_never_used_first():
    hot, warm, cold = used(1, 0, "hot"), used(1, 2 * HOUR, "warm"), used(1, 5 * HOUR, "cold")
    new, young = Life("new", born=NOW), Life("young", born=NOW - 2 * HOUR)

    assert evictable([hot, new, warm, young, cold], NOW) == (cold, young, warm, new, hot)


def test_of_tools_that_are_as_new_the_oldest_goes_first_and_what_was_just_used_last():
    older, newer = Life("b", born=NOW - 2 * MINUTE), Life("a", born=NOW - MINUTE)
    just_used = replace(used(1, MINUTE, "c"), born=NOW - 3 * MINUTE)

    assert evictable([newer, just_used, older], NOW) == (older, newer, just_used)


def test_life_threshold_and_time_are_those_of_the_settings():
    rules = Tooling(life_seconds=60.0, inactive_at=0.5, ttl_seconds=120.0)
    life = used(1, MINUTE)

    assert decay(life, NOW, rules) == pytest.approx(math.exp(-1 / 1.01))
    inactive = step(life, NOW, rules)
    assert inactive.status is ToolStatus.INACTIVE
    assert time_left(inactive, NOW + MINUTE, rules) == 60.0
    assert expired(inactive, NOW + 2 * MINUTE, rules)
    assert not expired(inactive, NOW + 2 * MINUTE)


@pytest.mark.row("D4")
@given(lives, times)
@pytest.mark.slow
def test_who_goes_is_one_order_of_all_that_may_go(given_lives, now):
    order = evictable(given_lives, now)

    assert sorted(life.name for life in order) == sorted(
        life.name for life in given_lives if not life.pinned
    )
    assert evictable(reversed(given_lives), now) == order
    assert evictable(order[1:], now) == order[1:]
    sleeping = [life for life in order if life.status is ToolStatus.INACTIVE]
    awake = [life for life in order if life.status is ToolStatus.ACTIVE]
    assert list(order) == sleeping + awake
    assert [time_left(life, now) for life in sleeping] == sorted(
        time_left(life, now) for life in sleeping
    )
    tenths = [round(decay(life, now), 1) for life in awake]
    assert tenths == sorted(tenths)


def test_the_numbers_of_the_row_are_the_defaults():
    assert (DEFAULTS.inactive_at, DEFAULTS.ttl_seconds) == (0.1, 86_400.0)
    assert (DEFAULTS.life_seconds, DEFAULTS.capacity) == (9400.0, 50)
