"""A person's orders about what is learned: each is an event, and each can be taken back by
another."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from hotset.config import Config
from hotset.errors import BadInput
from hotset.learn.events import KnobsSetting, TrialSetting
from hotset.learn.ranges import knob_ranges
from hotset.learn.state import LearnState, fold, freeze_of, own_and_groups
from hotset.learn.trials import FLOOR
from hotset.runtime.learned_state import learn_event, read_state
from hotset.runtime.learning import pinned_knobs
from hotset.runtime.learning_view import known_arms, resolve_knob
from hotset.runtime.reader import did_you_mean
from hotset.store.port import Store

EXPLORE = "explore"
"""The name by which a trial gives the share of sessions that try other values of a few knobs."""

EXPLORED = ("regret", "patience", "rest", "memory.tell", "prefetch.excerpt", "toolbox.ghost")
"""Knobs that sessions explore where none is named: none of them hides what the model works with."""

_CHANGE_ID = re.compile(r"c-[0-9a-f]{8}")

BeforeAndAfter = tuple[LearnState, LearnState]
"""The states without and with an order."""


def freeze_knobs(
    store: Store, config: Config, names: Sequence[str], values: Mapping[str, Any], now: float
) -> BeforeAndAfter:
    """Keep knobs as they are, or all of them without a name; `values` hold from now on."""

    def make(state: LearnState) -> KnobsSetting:
        return KnobsSetting(_resolved(names, config, state), dict(values))

    return _order(store, "KnobsFrozen", make, now)


def unfreeze_knobs(
    store: Store, config: Config, names: Sequence[str], now: float
) -> BeforeAndAfter:
    """Undo `freeze_knobs`, for all knobs without a name. Raises `BadInput` for a part of what is
    frozen as a whole."""

    def make(state: LearnState) -> KnobsSetting:
        found = _resolved(names, config, state)
        for name in found:
            around = freeze_of(state, name)
            if around not in (None, name):
                raise BadInput(
                    f"{name} is frozen with all of {around}; to thaw that: "
                    f"hotset learn unfreeze {around}"
                )
            if around is None and state.all_frozen:
                raise BadInput(
                    f"every knob is frozen, {name} too; to thaw them: hotset learn unfreeze"
                )
        return KnobsSetting(found)

    return _order(store, "KnobsThawed", make, now)


def reset_knobs(store: Store, config: Config, names: Sequence[str], now: float) -> BeforeAndAfter:
    """Take back what was learned about knobs, changes by their ids, or everything without a name.
    It stays away until it is allowed again."""
    return _order_about(store, config, "LearningReset", names, now)


def allow_again(store: Store, config: Config, names: Sequence[str], now: float) -> BeforeAndAfter:
    """Let what `reset_knobs` took back be learned again."""
    return _order_about(store, config, "ResetLifted", names, now)


def switch_learning(store: Store, now: float, *, is_on: bool) -> BeforeAndAfter:
    return _order(store, "LearningSwitched", lambda _: KnobsSetting(is_on=is_on), now)


def order_trial(
    store: Store,
    config: Config,
    shares: Mapping[str, float],
    now: float,
    knobs: Sequence[str] = (),
) -> BeforeAndAfter:
    """Give shares of new sessions to arms; 0 ends an arm's trial. Raises `BadInput`."""

    def make(state: LearnState) -> TrialSetting:
        names = (*known_arms(config, state), EXPLORE)
        for name, share in shares.items():
            if name not in names:
                near = did_you_mean(name, names)
                raise BadInput(f"no profile {name!r}; {near}see: hotset learn profiles --all")
            if share and not FLOOR <= share <= 1 - FLOOR:
                least, most = f"{FLOOR:.0%}", f"{1 - FLOOR:.0%}"
                raise BadInput(f"{name}={share:.0%}: a share is between {least} and {most}, or 0%")
        given = dict(shares)
        explore = given.pop(EXPLORE, None)
        if explore is None and knobs:
            raise BadInput(
                "--knob says what `explore` tries: hotset learn trial explore=20% --knob ..."
            )
        if explore is None:
            return TrialSetting(given)
        for name in knobs:
            _check_explorable(name, config)
        return TrialSetting(given, explore=explore, explorable=tuple(knobs) or EXPLORED)

    return _order(store, "TrialChanged", make, now)


def _check_explorable(name: str, config: Config) -> None:
    ranges = knob_ranges()
    if name not in ranges:
        near = did_you_mean(name, list(ranges))
        raise BadInput(f"{name} is no knob with a range; {near}see: docs/knobs.md")
    if any(each in pinned_knobs(config) for each in own_and_groups(name)):
        raise BadInput(f"{name} is set in your file or profile: no session can try another value")


def _resolved(names: Sequence[str], config: Config, state: LearnState) -> tuple[str, ...]:
    return tuple(resolve_knob(each, config, state) for each in names)


def _order_about(
    store: Store, config: Config, name: str, typed: Sequence[str], now: float
) -> BeforeAndAfter:
    """An order about knobs, or about changes by their ids."""

    def make(state: LearnState) -> KnobsSetting:
        ids = tuple(each for each in typed if _CHANGE_ID.fullmatch(each))
        if ids and len(ids) < len(typed):
            raise BadInput("say either knobs or ids of changes, not both")
        if unknown := [each for each in ids if each not in state.changes]:
            raise BadInput(f"no change {unknown[0]}; see: hotset learn status --json")
        knobs = () if ids else _resolved(typed, config, state)
        return KnobsSetting(knobs, changes=ids)

    return _order(store, name, make, now)


def _order(
    store: Store, name: str, make: Callable[[LearnState], Struct], now: float
) -> BeforeAndAfter:
    """Writes a person's order. Raises `BadInput` where it cannot be followed."""
    state = read_state(store)
    event = learn_event(name, make(state), now)
    tried = fold(state, state.number + 1, name, str(event.detail["data"]), now)
    if tried.skipped_count > state.skipped_count:
        raise BadInput(
            "that is more than there is: every arm, the default included, needs 10 %; see: "
            "hotset learn trial"
        )
    store.keep(event).result()
    return state, read_state(store)
