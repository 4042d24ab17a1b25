"""A person's orders about what is learned: each is an event, and each can be taken back by
another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from hotset.config import Config
from hotset.errors import BadInput
from hotset.learn.events import KnobsSetting, TrialSetting
from hotset.learn.ranges import knob_ranges
from hotset.learn.state import LearnState, fold
from hotset.learn.trials import FLOOR
from hotset.runtime.learned_state import learn_event, read_state
from hotset.runtime.learning_view import known_arms, resolve_knob
from hotset.store.port import Store

EXPLORE = "explore"
"""The name by which a trial gives the share of sessions that try other values of a few knobs."""

EXPLORED = ("regret", "patience", "rest", "memory.tell", "prefetch.excerpt", "toolbox.ghost")
"""Knobs that sessions explore where none is named: none of them hides what the model works with."""


def freeze_knobs(
    store: Store, config: Config, names: Sequence[str], values: Mapping[str, Any], now: float
) -> LearnState:
    """Keeps knobs as they are, or all of them without a name; `values` hold from now on."""

    def make(state: LearnState) -> KnobsSetting:
        return KnobsSetting(_knobs(names, config, state), dict(values))

    return _order(store, "KnobsFrozen", make, now)


def unfreeze_knobs(store: Store, config: Config, names: Sequence[str], now: float) -> LearnState:
    """Undoes `freeze_knobs`, for all knobs without a name."""

    def make(state: LearnState) -> KnobsSetting:
        return KnobsSetting(_knobs(names, config, state))

    return _order(store, "KnobsThawed", make, now)


def reset_knobs(store: Store, config: Config, names: Sequence[str], now: float) -> LearnState:
    """Takes back what was learned about knobs, or everything without a name. What is taken back
    can be learned again; it does not come back by an order."""

    def make(state: LearnState) -> KnobsSetting:
        return KnobsSetting(_knobs(names, config, state))

    return _order(store, "LearningReset", make, now)


def switch_learning(store: Store, now: float, *, is_on: bool) -> LearnState:
    return _order(store, "LearningSwitched", lambda _: KnobsSetting(is_on=is_on), now)


def order_trial(
    store: Store,
    config: Config,
    shares: Mapping[str, float],
    now: float,
    knobs: Sequence[str] = (),
) -> LearnState:
    """Gives shares of new sessions to arms; 0 ends an arm's trial. Raises `BadInput`."""

    def make(state: LearnState) -> TrialSetting:
        for name, share in shares.items():
            if name not in (*known_arms(config, state), EXPLORE):
                raise BadInput(f"no profile {name!r}; see: hotset learn profiles")
            if share and not FLOOR <= share <= 1 - FLOOR:
                raise BadInput(f"{name}: a share is between {FLOOR:.0%} and {1 - FLOOR:.0%}, or 0%")
        given = dict(shares)
        explore = given.pop(EXPLORE, None)
        if explore is None:
            return TrialSetting(given)
        for name in knobs:
            if name not in knob_ranges():
                raise BadInput(f"{name} is no knob with a range; see: docs/knobs.md")
        return TrialSetting(given, explore=explore, explorable=tuple(knobs) or EXPLORED)

    return _order(store, "TrialChanged", make, now)


def _knobs(names: Sequence[str], config: Config, state: LearnState) -> tuple[str, ...]:
    return tuple(resolve_knob(each, config, state) for each in names)


def _order(store: Store, name: str, make: Callable[[LearnState], Struct], now: float) -> LearnState:
    """Writes a person's order; returns the state with it. Raises `BadInput` where it cannot be
    followed."""
    state = read_state(store)
    event = learn_event(name, make(state), now)
    tried = fold(state, state.number + 1, name, str(event.detail["data"]), now)
    if tried.skipped_count > state.skipped_count:
        raise BadInput(
            "that is more than there is: every arm, the default included, needs 10 %; see: "
            "hotset learn trial"
        )
    store.keep(event).result()
    return read_state(store)
