"""How what was learned came about over time, for curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hotset.learn.beliefs import beta_of
from hotset.learn.events import LEARN_EVENTS, OBSERVED
from hotset.learn.ranges import knob_ranges
from hotset.learn.state import EMPTY, LearnState, arms, changes_in_force
from hotset.runtime.learned_state import states_over_time
from hotset.runtime.learning import DAY
from hotset.store.port import Store

_DIGITS = 4  # of a share
_NINETY = 1.645  # standard deviations on each side


DECISIONS = LEARN_EVENTS - {OBSERVED}
"""Events that change values and shares. Observations do neither: only beliefs need them, and there
are many of them."""


@dataclass(frozen=True, slots=True)
class KnobStep:
    """A moment at which new sessions began to have another value of a knob."""

    knob: str
    time: float
    value: Any
    """None: as it is without learning."""
    change: str
    """The id of the change that did it; empty for a person's order."""
    what: str
    """What became of that change: adopted, rolled back, reset; or `order`."""


@dataclass(frozen=True, slots=True)
class DayShares:
    """The share of each arm among new sessions at the end of a day."""

    day: float
    """When it began. A day without events has the shares of the one before."""
    shares: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class BeliefPoint:
    """What exploring sessions said of a knob at the end of a day, in its own unit."""

    knob: str
    day: float
    mean: float
    low: float
    """Of the interval that has its best value with a probability of 90 %."""
    high: float
    sessions: int


@dataclass(frozen=True, slots=True)
class LearningHistory:
    """How what is learned came about, the earliest first."""

    knobs: tuple[KnobStep, ...] = ()
    shares: tuple[DayShares, ...] = ()
    beliefs: tuple[BeliefPoint, ...] = ()
    explored: bool = False
    """Sessions were ever to explore: without that there are no beliefs."""
    state: LearnState = field(default=EMPTY, repr=False)
    """As of its last event."""


NO_HISTORY = LearningHistory()


def learning_history(
    store: Store, before: LearningHistory = NO_HISTORY, names: frozenset[str] = LEARN_EVENTS
) -> LearningHistory:
    """From the events of a store; `before`, its history up to one of them, goes on from there. Of
    `DECISIONS` alone it has no beliefs, and fewer days. Blocks."""
    steps = list(before.knobs)
    days: dict[int, LearnState] = {}
    values: Mapping[str, Any] = changes_in_force(before.state)
    latest = int(before.shares[-1].day // DAY) if before.shares else 0
    state, explored = before.state, before.explored
    for time, state in states_over_time(store, before.state, names):
        explored = explored or state.beliefs.share > 0
        latest = max(latest, int(time // DAY))  # a session is observed after it ended
        days[latest] = state
        now = changes_in_force(state)
        changed = sorted(
            name for name in now.keys() | values.keys() if now.get(name) != values.get(name)
        )
        steps += [_step(name, time, now.get(name), state) for name in changed]
        values = now
    shares = {each.day: each for each in before.shares} | {
        day * DAY: _shares(day, each) for day, each in days.items()
    }
    beliefs = {(each.knob, each.day): each for each in before.beliefs} | {
        (each.knob, each.day): each for each in _belief_points(days, before.state)
    }
    return LearningHistory(
        tuple(steps), tuple(shares.values()), tuple(beliefs.values()), explored, state
    )


def _shares(day: int, state: LearnState) -> DayShares:
    found = {name: round(share, _DIGITS) for name, share in arms(state, day).items()}
    return DayShares(day * DAY, found)


def _step(knob: str, time: float, value: Any, state: LearnState) -> KnobStep:
    for record in state.changes.values():
        if record.number == state.number and knob in record.change.knobs:
            return KnobStep(knob, time, value, record.change.id, str(record.stage))
    return KnobStep(knob, time, value, "", "order")


def _belief_points(days: Mapping[int, LearnState], before: LearnState) -> Iterator[BeliefPoint]:
    """One for each day and knob on which a session explored it."""
    ranges, seen = knob_ranges(), {each.knobs: each.seen for each in before.beliefs.blocks}
    for day, state in days.items():
        for block in state.beliefs.blocks:
            if seen.get(block.knobs) == block.seen:
                continue
            seen[block.knobs] = block.seen
            for name in block.knobs:
                beta, knob = beta_of(state.beliefs, name), ranges[name]
                low, mean, high = (
                    knob.value(beta.mean + times * beta.deviation)
                    for times in (-_NINETY, 0, _NINETY)
                )
                yield BeliefPoint(name, day * DAY, mean, low, high, block.seen)
