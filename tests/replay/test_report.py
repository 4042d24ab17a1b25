"""Which sessions count, under which rules, and how figures become a report."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, strategies as st

from hotset.config import listed_prices
from hotset.nouns.price import Prices
from hotset.replay.measure import Figures
from hotset.replay.policies import BASELINES, FULL, ROSTER
from hotset.replay.report import (
    PROVIDERS,
    Report,
    Row,
    Ruling,
    describe_pauses,
    describe_row,
    gather,
    replay,
    row,
)
from tests.replay.talk import long_result, talk

_PRICES = Prices(listed_prices())
_RULING = Ruling(_PRICES, "anthropic", 8_000)
_LONG = [long_result(number) for number in range(40)]
_FULL = Figures(
    calls=10,
    prompt=1000,
    read=900,
    cost=200.0,
    marked_cost=300.0,
    by_length={0: 100.0, 32_000: 100.0},
    actions=8,
    each={"a": 150.0, "b": 50.0},
    peak=300,
    over=2,
)
_HALF = Figures(
    calls=10,
    prompt=500,
    read=400,
    cost=80.0,
    fault_cost=40.0,
    marked_cost=150.0,
    actions=8,
    replies=5,
    faults=2,
    faulted=1,
    needs=16,
    misses=4,
    hinted=2,
    peak=90,
    breaks=3,
    departures=2,
    by_length={0: 90.0, 32_000: 30.0},
    distances=[1, 2, 30],
    seconds=[0.001] * 19 + [0.5],
    each={"a": 60.0, "b": 60.0},
    tools_cost=10.0,
)


def _clock():
    ticks = count()
    return lambda: next(ticks) / 1000


def test_a_row_is_in_percent_of_full_history():
    told = row(_HALF, _FULL)

    assert (told.tokens_pct, told.cost_pct, told.cost_with_faults_pct) == (50.0, 40.0, 60.0)
    assert (told.faults_per_100, told.miss_pct, told.hit_pct) == (25.0, 25.0, 80.0)
    assert (told.mean_prompt, told.peak_prompt, told.over_window_pct) == (50, 90, 0.0)
    assert (told.prefix_breaks, told.prefix_kept_pct, told.evictions) == (3, 70.0, 2)
    assert (told.plan_ms_p95, told.miss_distance_p50, told.miss_distance_p90) == (1.0, 2, 30)
    assert (told.faults_per_100_replies, told.hinted_pct, told.cost_marked_pct) == (
        20.0,
        12.5,
        50.0,
    )
    assert told.by_length == {0: 90.0, 32_000: 30.0}
    assert told.tools_pct == 5.0


def test_the_dearest_session_is_judged_by_its_own_full_history():
    assert row(_HALF, _FULL).dearest_session_p95 == 120.0


def test_a_row_of_nothing_is_zeros():
    empty = row(Figures(), Figures())

    assert empty.by_length == {}
    assert set(vars_of(replace(empty, by_length=0))) == {0}


def vars_of(told: Row) -> list[float]:
    return [getattr(told, name) for name in told.__dataclass_fields__]


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=60))
def test_the_95th_percentile_is_a_time_that_few_exceed(seconds: list[float]):
    told = row(replace(_HALF, seconds=seconds), _FULL).plan_ms_p95 / 1000

    assert sum(each > told + 1e-4 for each in seconds) <= 0.05 * len(seconds)
    assert min(seconds) - 1e-4 <= told <= max(seconds) + 1e-4


def test_full_history_is_its_own_yardstick_and_misses_nothing():
    (gathered,) = gather([talk(_LONG)], _RULING)
    told = replay(gathered, {FULL: ROSTER[FULL]}, _RULING, _clock()).policies[FULL]

    assert (told.tokens_pct, told.cost_pct, told.cost_with_faults_pct, told.faults_per_100) == (
        100.0,
        100.0,
        100.0,
        0.0,
    )
    assert (told.prefix_breaks, told.prefix_kept_pct) == (0, 100.0)
    assert told.over_window_pct > 0


def test_what_is_asked_for_is_told_in_that_order_and_each_round_is_heard_of():
    (gathered,) = gather([talk(_LONG), talk(_LONG, name="two")], _RULING)
    makers = {name: ROSTER[name] for name in ("evict25", "default")}
    heard: list[int] = []
    report = replay(gathered, makers, _RULING, _clock(), lambda: heard.append(1))

    assert list(report.policies) == ["evict25", "default"]
    assert len(heard) == gathered.rounds(makers) == 6
    assert (report.sessions, report.sessions_read, report.stretches, report.windows) == (
        2,
        2,
        2,
        (8_000,),
    )
    assert report.calls == 2 * 41
    assert report.policies["default"].plan_ms_p95 == 1.0


def test_two_sessions_of_one_name_are_two_sessions():
    (gathered,) = gather([talk(_LONG), talk(_LONG)], _RULING)

    assert len({conversation.id for _, conversation in gathered.counted}) == 2


def test_sessions_count_that_are_long_and_overflow_the_window():
    many_small = talk(["ok"] * 40, name="fits")
    few_large = talk([long_result(number, 40_000) for number in range(3)], name="short")
    (gathered,) = gather([many_small, talk(_LONG, name="long"), few_large], _RULING)

    assert [conversation.id for _, conversation in gathered.counted] == ["1:long#0"]
    assert gathered.sessions == 3


def test_all_sessions_count_where_none_overflows_or_everything_is_asked_for():
    fits, long = talk(["ok"] * 40, name="fits"), talk(_LONG, name="long")
    (none_overflows,) = gather([fits, fits], _RULING)
    (everything,) = gather([fits, long], _RULING, everything=True)

    assert len(none_overflows.counted) == 2
    assert len(everything.counted) == 2


def test_sets_stay_apart_and_a_session_without_a_reply_is_none():
    silent = replace(talk([], set="silent"), messages=talk([]).messages[:2])
    sets = gather([talk(_LONG, set="a"), silent, talk(["ok"], set="b")], _RULING)

    assert [(each.set, len(each.counted)) for each in sets] == [("a", 1), ("b", 1)]


def test_each_provider_s_cache_rules_come_from_the_list_of_prices():
    anthropic = Ruling(_PRICES, "anthropic").rules("gpt-4o").price
    openai = Ruling(_PRICES, "openai").rules("claude-sonnet-4").price

    assert (
        anthropic.write,
        anthropic.read,
        anthropic.minimum,
        anthropic.output / anthropic.input,
    ) == (1.25, 0.1, 1024, 5)
    assert (openai.write, openai.read, openai.step) == (1.0, 0.1, 128)
    assert all(Ruling(_PRICES, name).rules("").price.listed for name in PROVIDERS)


def test_the_recorded_model_gives_the_price_and_the_window_where_nothing_else_is_said():
    rules = Ruling(_PRICES).rules("gpt-4o")

    assert (rules.price.read, rules.window, rules.ttl) == (0.5, 128_000, rules.price.ttl)
    assert Ruling(_PRICES, "anthropic", 5_000).rules("gpt-4o").window == 5_000


def test_caches_go_cold_by_the_provider_s_rule_unless_another_is_said():
    told = [Ruling(_PRICES, "anthropic", ttl=ttl).rules("gpt-4o") for ttl in (None, 50, 0)]

    assert [rules.ttl for rules in told] == [300, 50, None]
    assert [rules.price.ttl for rules in told] == [300, 50, 300]


def test_a_cache_that_goes_cold_costs_more():
    (gathered,) = gather([talk(_LONG)], _RULING)
    warm, cold = (
        replay(gathered, {FULL: ROSTER[FULL]}, replace(_RULING, ttl=ttl), _clock())
        .policies[FULL]
        .hit_pct
        for ttl in (0, 50)
    )

    assert (warm > 80, cold) == (True, 0.0)


def test_what_pauses_cost_and_what_keeping_caches_warm_would_save_is_told():
    """The talk has a call every 100 seconds: a cache of 59 seconds wants two calls to live on, one
    of 36 (a call every 6 seconds) eleven, and of 31 (every second) more than a rewrite costs."""
    (gathered,) = gather([talk(_LONG)], _RULING)
    never, few, many, in_vain = (
        replay(gathered, {FULL: ROSTER[FULL]}, replace(_RULING, ttl=ttl), _clock())
        for ttl in (0, 59, 36, 31)
    )

    assert (never.policies[FULL].pauses_pct, describe_pauses(never, FULL)) == (0.0, "")
    saved = [each.policies[FULL].warming_saves_pct for each in (few, many, in_vain)]
    lost = few.policies[FULL].pauses_pct
    assert 0 < lost < 100
    assert lost > saved[0] > saved[1] > 0 > saved[2] > -lost
    assert describe_pauses(few, FULL).endswith(f"would have saved {saved[0]:.1f}")
    assert describe_pauses(in_vain, FULL).endswith(f"would have cost {-saved[2]:.1f}")


def test_what_changes_while_the_cache_is_cold_breaks_no_prefix():
    (gathered,) = gather([talk(_LONG)], _RULING)
    mask = {"mask": ROSTER["mask"]}
    warm, cold = (
        replay(gathered, mask, replace(_RULING, ttl=ttl), _clock()).policies["mask"]
        for ttl in (0, 50)
    )

    assert (warm.prefix_breaks > 20, cold.prefix_breaks) == (True, 0)


@pytest.mark.slow
def test_ours_is_cheaper_than_full_history_on_a_long_session_and_stays_in_the_window():
    (gathered,) = gather([talk(_LONG)], _RULING)
    told = replay(gathered, ROSTER, _RULING, _clock()).policies

    assert told["default"].cost_with_faults_pct < 100
    assert told["default"].peak_prompt <= 8_000
    assert told["iterations"].evictions > 0
    assert {name: told[name].evictions > 0 for name in BASELINES} == {
        name: name != FULL for name in BASELINES
    }


def _report(sessions: int, ours: Row, over: float = 0.0) -> Report:
    whole = replace(row(_FULL, _FULL), over_window_pct=over)
    return Report("s", sessions, 10, {"default": ours, FULL: whole}, sessions, sessions, (1000,))


@pytest.mark.parametrize(
    ("cost", "faults", "told"),
    [
        (
            55.0,
            8.4,
            (
                "cost 45 % less than sending everything, its own tools included; 8 of 100 actions "
                "would have had to fetch"
            ),
        ),
        (
            98.0,
            0.3,
            (
                "cost 2 % less than sending everything, its own tools included; fewer than 1 of "
                "100 actions"
            ),
        ),
        (
            99.8,
            0.0,
            (
                "cost as much as sending everything, its own tools included; no action would have "
                "had to fetch anything back."
            ),
        ),
    ],
)
def test_the_sentence_under_the_table_says_what_it_means_for_the_user(
    cost: float, faults: float, told: str
):
    ours = replace(row(_HALF, _FULL), cost_with_faults_pct=cost, faults_per_100=faults)

    assert told in describe_row(_report(24, ours), "default", FULL)


def test_the_sentence_speaks_of_one_session_and_of_prompts_that_do_not_fit():
    ours = row(_HALF, _FULL)

    assert describe_row(_report(1, ours), "default", FULL).startswith(
        "On this session hotset would have cost"
    )
    assert describe_row(_report(24, ours), "default", FULL).startswith(
        "On these 24 sessions hotset"
    )
    assert "fitted" not in describe_row(_report(24, ours), "default", FULL)
    assert describe_row(_report(2, ours, over=42.4), "default", FULL).endswith(
        "Of 100 whole prompts 42 would not have fitted the window."
    )
