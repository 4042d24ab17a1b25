"""How long an unused process is kept, and which ones make room: pure decisions."""

from dataclasses import dataclass

from hypothesis import given, settings, strategies as st

from hotset.sources.tools.running.server_pool import UsageRate, count_use, patience, to_make_room

TIMES = st.floats(0, 1e7)


@dataclass(frozen=True)
class Process:
    last_used: float
    is_idle: bool


PROCESSES = st.lists(st.builds(Process, TIMES, st.booleans()), max_size=30)


@settings(deadline=None)
@given(st.lists(st.floats(0, 7200), max_size=60), st.floats(0.001, 1000))
def test_a_process_is_kept_for_once_to_five_times_the_idle_time(gaps, idle):
    use, now = UsageRate(), 0.0
    for gap in gaps:
        now += gap
        use = count_use(use, now)
    assert idle <= patience(use, idle) <= 5 * idle * 1.000001


@settings(deadline=None)
@given(st.floats(1, 3600), st.floats(1, 3600), st.integers(1, 50))
def test_who_is_called_more_often_is_kept_at_least_as_long(gap, other, many):
    def after(gap):
        use = UsageRate()
        for number in range(many):
            use = count_use(use, number * gap)
        return patience(use, 60)

    assert (after(gap) >= after(other)) or gap > other


def test_twenty_calls_in_an_hour_earn_the_longest_time_and_they_fade():
    use = UsageRate()
    for _ in range(20):
        use = count_use(use, 0.0)
    assert patience(use, 60) == 300
    assert patience(count_use(use, 24 * 3600), 60) < 60 * 1.5


def test_a_clock_that_goes_backwards_does_no_harm():
    assert count_use(UsageRate(5, 1000.0), 10.0).rate == 6


@settings(deadline=None)
@given(PROCESSES, st.integers(0, 30))
def test_those_in_the_way_are_idle_the_least_recently_used_and_no_more_than_it_takes(
    processes, limit
):
    going = to_make_room(processes, limit)
    staying = list(processes)
    for each in going:
        staying.remove(each)
    assert all(each.is_idle for each in going)
    assert len(going) <= max(0, len(processes) - limit)
    assert len(staying) <= limit or not any(each.is_idle for each in staying)
    longest = max((each.last_used for each in going), default=0)
    assert all(each.last_used >= longest for each in staying if each.is_idle)
