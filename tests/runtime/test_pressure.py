"""Memory pressure: levels by an injected reader, what each takes away, and how it comes back."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from msgspec import structs

from hotset import tokens
from hotset.files.lru import CACHES, Lru, memo
from hotset.index.hybrid_search import SearchTier, tier_for
from hotset.nouns.pressure import (
    LEVELS,
    RESPONSES,
    MemoryReading,
    MemoryTier,
    PressureLimits,
)
from hotset.runtime.pressure import PressureMonitor, PressureState, level_of, next_state

NORMAL, ELEVATED, HIGH, CRITICAL = LEVELS
LIMITS = PressureLimits()


class Memory:
    """A reader that says what the test says."""

    def __init__(self):
        self.share = 0.0
        self.broken = False
        self.now = 0.0

    def read(self):
        if self.broken:
            raise OSError("no such file")
        return used(self.share)


def used(share, **more):
    return MemoryReading(used=int(1_000_000 * share), limit=1_000_000, source="test", **more)


@pytest.fixture
def memory():
    return Memory()


@pytest.fixture
def monitor(memory):
    made = PressureMonitor(LIMITS, memory, monotonic=lambda: memory.now)
    yield made
    made.close()


def steps(changes):
    return [(each.before, each.after) for each in changes]


@pytest.mark.row("V14")
@pytest.mark.parametrize(
    ("share", "level"),
    [
        (0.0, NORMAL),
        (0.79, NORMAL),
        (0.8, ELEVATED),
        (0.89, ELEVATED),
        (0.9, HIGH),
        (0.94, HIGH),
        (0.95, CRITICAL),
        (1.2, CRITICAL),
    ],
)
def test_the_level_is_that_of_the_share_that_is_used(share, level):
    assert level_of(used(share), LIMITS) is level


def test_processes_that_wait_for_memory_count_whatever_is_used():
    assert level_of(MemoryReading(stalled=9), LIMITS) is NORMAL
    assert level_of(MemoryReading(stalled=40), LIMITS) is ELEVATED
    assert level_of(MemoryReading(stalled=40, all_stalled=20), LIMITS) is HIGH
    assert level_of(used(0.96, stalled=40), LIMITS) is CRITICAL


def test_without_a_limit_there_is_no_pressure():
    assert level_of(MemoryReading(rss=1 << 40, used=1 << 40), LIMITS) is NORMAL


@pytest.mark.row("V14")
def test_every_step_up_and_down_is_taken_in_order_and_does_what_the_matrix_says(memory, monitor):
    cache = Lru("under test", count=100)
    seen = []
    for share in (0.5, 0.82, 0.92, 0.96):
        memory.share, memory.now = share, memory.now + 1
        for number in range(1000):
            cache.put(number, number)
        seen += steps(monitor.look())
        response = RESPONSES[monitor.level]
        assert CACHES.response == response
        assert cache.most == int(100 * response.share)
        assert len(cache) == cache.most - int(cache.most * response.evicted)
    assert seen == [(NORMAL, ELEVATED), (ELEVATED, HIGH), (HIGH, CRITICAL)]
    assert [number for number, _ in cache.items()] == [*range(987, 1000)], "the latest stay"

    memory.share = 0.1
    down = []
    for _ in range(30):
        memory.now += 1
        down += steps(monitor.look())
    assert down == [(CRITICAL, HIGH), (HIGH, ELEVATED), (ELEVATED, NORMAL)]
    assert (cache.most, len(cache)) == (100, 13), "nothing is lost on the way back"
    assert CACHES.response == RESPONSES[NORMAL]


def test_the_matrix_takes_more_with_every_level():
    rows = [RESPONSES[level] for level in LEVELS]
    assert [each.share for each in rows] == [1.0, 0.75, 0.5, 0.25]
    assert [each.tier for each in rows] == [
        MemoryTier.FULL,
        MemoryTier.WARM,
        MemoryTier.HOT,
        MemoryTier.HOT,
    ]
    assert [each.prefetches for each in rows] == [True, True, False, False]
    assert [each.evicted for each in rows] == [0, 0, 0, 0.5]


@pytest.mark.row("V14")
def test_a_jump_to_the_top_takes_every_step_and_30_seconds_bring_all_back(memory, monitor):
    memory.share = 0.99
    assert steps(monitor.look()) == [(NORMAL, ELEVATED), (ELEVATED, HIGH), (HIGH, CRITICAL)]
    memory.share, seconds = 0.2, 0
    while monitor.level is not NORMAL:
        seconds += 1
        memory.now += LIMITS.seconds
        monitor.look()
    assert seconds <= 30


def test_the_longest_calm_that_can_be_set_still_brings_all_back_in_30_seconds():
    state, now = PressureState(CRITICAL), 0.0
    while state.level is not NORMAL:
        state = next_state(state, used(0.1), structs.replace(LIMITS, calm=9.0), now)
        now += 1.0
    assert now <= 31.0


@pytest.mark.row("V14")
def test_use_around_a_threshold_does_not_move_the_level_up_and_down(memory, monitor):
    changes = []
    for number in range(200):
        memory.share, memory.now = (0.81, 0.77)[number % 2], float(number)
        changes += steps(monitor.look())
    assert changes == [(NORMAL, ELEVATED)]


@given(
    st.lists(st.tuples(st.floats(0, 1.5), st.floats(0, 20), st.floats(0, 5)), max_size=60),
    st.sampled_from(LEVELS),
)
def test_a_level_never_moves_by_more_than_one_and_falls_only_after_a_calm_time(readings, level):
    state, now = PressureState(level), 0.0
    for share, stalled, passed in readings:
        reading = used(share, stalled=stalled)
        now += passed
        after = next_state(state, reading, LIMITS, now)
        assert abs(after.level.rank - state.level.rank) <= 1
        if after.level.rank < state.level.rank:
            assert now - state.calm_since >= LIMITS.calm
            assert level_of(reading, LIMITS).rank < state.level.rank
        if level_of(reading, LIMITS).rank > state.level.rank:
            assert after.level.rank == state.level.rank + 1
        state = after


@pytest.mark.row("V14")
def test_a_reader_that_fails_means_a_normal_level_and_is_logged_once(memory, monitor, caplog):
    memory.share = 0.99
    monitor.look()
    assert monitor.level is CRITICAL
    memory.broken = True
    with caplog.at_level(logging.WARNING, "hotset"):
        first = monitor.look()
        for _ in range(5):
            assert monitor.look() == []
    assert [each.after for each in first] == [HIGH, ELEVATED, NORMAL]
    assert monitor.report()["trouble"] == "OSError"
    assert sum("cannot be read" in each.message for each in caplog.records) == 1
    memory.broken = False
    monitor.look()
    assert monitor.level is CRITICAL


def test_what_cannot_be_made_again_stays(memory, monitor):
    sessions = Lru("sessions", count=10, shrinks=False)
    for number in range(10):
        sessions.put(number, number)
    memory.share = 0.99
    monitor.look()
    assert len(sessions) == 10


def test_a_remembered_function_is_emptied_once_it_holds_more_than_its_share(memory, monitor):
    @memo("squares", 100)
    def square(number):
        return number * number

    for number in range(40):
        square(number)
    held = [each.entries for each in CACHES.sizes() if each.name == "squares"]
    memory.share = 0.92
    monitor.look()
    assert held == [40]
    assert [each.entries for each in CACHES.sizes() if each.name == "squares"] == [40]
    for number in range(60):
        square(number)
    monitor.look()
    assert [each.entries for each in CACHES.sizes() if each.name == "squares"] == [0]


def test_a_cache_that_is_made_under_pressure_is_small_at_once(memory, monitor):
    memory.share = 0.92
    monitor.look()
    assert Lru("late", count=100).most == 50


def test_a_search_takes_no_more_than_the_tier_allows(memory, monitor):
    assert tier_for(1.0) is SearchTier.FULL
    memory.share = 0.82
    monitor.look()
    assert tier_for(1.0) is SearchTier.WARM
    assert tier_for(0.001) is SearchTier.HOT


def test_a_cache_says_how_much_it_holds():
    weighed, counted = Lru("weighed", weight=1000), Lru("counted", count=5)
    weighed.put("a", b"x", 300)
    counted.put("a", b"x" * 5000)
    sizes = {each.name: each for each in CACHES.sizes()}
    assert (sizes["weighed"].bytes, sizes["weighed"].limit) == (300, 1000)
    assert 5000 < sizes["counted"].bytes < 6000
    assert (sizes["counted"].entries, sizes["counted"].limit) == (1, 5)
    assert replace(sizes["counted"], entries=1).unit == "entries"


@pytest.mark.row("V14")
def test_after_a_long_rest_caches_are_emptied_once_at_any_level(memory, monitor):
    cache: Lru[int, int] = Lru("under test", count=8)
    kept: Lru[int, int] = Lru("under test, kept", count=8, shrinks=False)

    def left(rest):
        for number in range(8):
            cache.put(number, number)
            kept.put(number, number)
        monitor.look(rest)
        return len(cache), monitor.dropped

    assert left(LIMITS.idle - 1) == (8, False)
    assert left(LIMITS.idle + 1) == (0, True)
    assert left(LIMITS.idle + 2) == (8, False), "nothing goes again before the next rest"
    assert left(1.0) == (8, False)
    assert left(LIMITS.idle + 1) == (0, True)
    assert len(kept) == 8


def test_where_memory_is_short_a_short_rest_is_enough(memory, monitor):
    cache: Lru[int, int] = Lru("under test", count=8)
    memory.share = 0.82
    monitor.look()
    cache.put(1, 1)
    monitor.look(1.0)
    assert len(cache) == 1
    monitor.look(16.0)
    assert len(cache) == 0
    assert LIMITS.idle > 16.0


def test_a_long_rest_takes_the_tokenizer_and_the_next_count_brings_it_back(memory, monitor):
    few = tokens.count("one two three")
    assert tokens.is_loaded()
    monitor.look(LIMITS.idle + 1)
    assert not tokens.is_loaded()
    assert tokens.count("one two three") == few
    assert tokens.is_loaded()
