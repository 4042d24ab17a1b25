"""What was learned, for people: the state in numbers and sentences, who decides about a knob, and
what an order costs. Surfaces read it from here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hotset.config import Config
from hotset.errors import NotFound
from hotset.learn.beliefs import beta_of
from hotset.learn.confidence import bounds
from hotset.learn.events import DEFAULT_ARM, OFF_ARM
from hotset.learn.ranges import knob_ranges
from hotset.learn.state import ChangeRow, LearnState, arms, changes_in_force, rows, rows_of
from hotset.learn.trials import Arm, Tally, unscale
from hotset.nouns.knobs import DEFAULT_PROFILE, Knobs
from hotset.runtime.learned_state import observed_sessions
from hotset.runtime.learning import DAY, pinned_knobs, profile_changes
from hotset.runtime.reader import did_you_mean
from hotset.store.port import Store
from hotset.window.price import price_of

_OPEN_SECONDS = 3600.0  # since its last call; then a session counts as open
_MOST_OPEN = 50
_FIGURES = ("success", "cost", "turns", "corrections", "rereads")


class KnobSource(StrEnum):
    """Who decides about a knob, the strongest first. A client's header is stronger still, for its
    own session."""

    FILE = "file"
    FROZEN = "frozen"
    LEARNED = "learned"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class ArmDifference:
    """A figure of an arm against the default's, with an interval that holds at any time."""

    figure: str
    """Success differs by points; cost, turns, corrections and re-reads by a share."""
    mean: float
    low: float
    high: float
    pairs: int
    """Comparisons that it rests on."""


@dataclass(frozen=True, slots=True)
class ArmView:
    """An arm: its share of new sessions, and how its sessions went."""

    name: str
    share: float
    since: float
    sessions: int
    success: float | None
    cost: float | None
    """As a share of what full history would have cost."""
    turns: float
    faults: float
    corrections: float
    rereads: float
    latency_ms: float
    differences: tuple[ArmDifference, ...] = ()


@dataclass(frozen=True, slots=True)
class KnobBelief:
    """What exploring sessions say of a knob: a Beta distribution over its range."""

    name: str
    context: int | None
    """None: in all contexts."""
    alpha: float
    beta: float
    value: float
    """The value at its mean."""
    default: float
    sessions: int


@dataclass(frozen=True, slots=True)
class UserHabits:
    """The user's habits, from -1 to 1; 0 until enough was observed."""

    thorough: float
    tolerates_searches: float


@dataclass(frozen=True, slots=True)
class LearningStatus:
    is_on: bool
    why_off: str
    observed: int
    """Sessions."""
    arms: tuple[ArmView, ...]
    changes: tuple[ChangeRow, ...]
    """The latest first."""
    frozen: Mapping[str, Any]
    all_frozen: bool
    skipped: int
    """Events that could not be read."""
    explores: float
    """The share of sessions that try other values of a few knobs."""
    beliefs: tuple[KnobBelief, ...]
    contexts: int
    """Kinds of prompts that are told apart."""
    habits: UserHabits


@dataclass(frozen=True, slots=True)
class KnobReason:
    """Why a knob has its value."""

    name: str
    value: Any
    default: Any
    source: KnobSource
    why: str
    """In a sentence."""
    changes: tuple[ChangeRow, ...]
    undo: str


def learning_status(state: LearnState, config: Config, now: float) -> LearningStatus:
    off = "" if config.learns else f"learn ({config.origins.get('learn', 'default')})"
    if not state.is_on:
        off = "`hotset learn off`"
    return LearningStatus(
        is_on=not off,
        why_off=off,
        observed=observed_sessions(state),
        arms=arm_views(state, now),
        changes=tuple(rows(state)),
        frozen=dict(state.frozen),
        all_frozen=state.all_frozen,
        skipped=state.skipped_count,
        explores=state.beliefs.share,
        beliefs=tuple(knob_beliefs(state)),
        contexts=len(state.clusters),
        habits=UserHabits(state.profile.is_thorough, state.profile.tolerates_searches),
    )


def knob_beliefs(state: LearnState) -> Iterator[KnobBelief]:
    """The beliefs on every knob that was explored, in all contexts and in each."""
    ranges = knob_ranges()
    for block in state.beliefs.blocks:
        for name in block.knobs:
            for context in (None, *map(int, sorted(block.contexts))):
                beta, knob = beta_of(state.beliefs, name, context), ranges[name]
                value, default = knob.value(beta.mean), knob.value(knob.prior)
                yield KnobBelief(name, context, beta.alpha, beta.beta, value, default, block.seen)


def arm_views(state: LearnState, now: float) -> tuple[ArmView, ...]:
    """The arms of new sessions, the default first."""
    shares = arms(state, int(now // DAY))
    default = _arm_view(DEFAULT_ARM, shares[DEFAULT_ARM], 0.0, state.default)
    return (
        default,
        *(
            _arm_view(name, shares.get(name, 0.0), arm.since, arm.tally, arm)
            for name, arm in sorted(state.arms.items())
        ),
    )


def _arm_view(
    name: str, share: float, since: float, tally: Tally, arm: Arm | None = None
) -> ArmView:
    sessions = max(1, tally.sessions)
    return ArmView(
        name=name,
        share=share,
        since=since,
        sessions=tally.sessions,
        success=tally.success_rate if tally.outcomes else None,
        cost=tally.cost / tally.whole if tally.whole else None,
        turns=tally.turns / sessions,
        faults=tally.faults / sessions,
        corrections=tally.corrections / sessions,
        rereads=tally.rereads / sessions,
        latency_ms=tally.latency_ms / sessions,
        differences=_differences(arm) if arm is not None else (),
    )


def _differences(arm: Arm) -> tuple[ArmDifference, ...]:
    found: list[ArmDifference] = []
    for name in _FIGURES:
        wager = arm.wager(name)
        if wager.count:
            values = (unscale(name, each) for each in (wager.mean, *bounds(wager)))
            mean, low, high = values if name == "success" else map(math.expm1, values)
            found.append(ArmDifference(name, mean, low, high, wager.count))
    return tuple(found)


def knob_names(config: Config, state: LearnState) -> list[str]:
    """Every knob by its dotted name, with those of mappings that something was learned of."""
    learned = {name for row in rows(state) for name in row.knobs}
    return sorted({*config.knobs_for("").by_name(), *learned, *state.frozen})


def resolve_knob(typed: str, config: Config, state: LearnState) -> str:
    """A knob, group or mapping by its name. Raises `NotFound`."""
    names = knob_names(config, state)
    mappings = {name for name, value in Knobs().by_name().items() if isinstance(value, Mapping)}
    groups = {name.rpartition(".")[0] for name in names} - {""}
    inside = typed.partition(".")[0] in mappings and typed.partition(".")[2]
    if typed in names or typed in groups or inside:
        return typed
    raise NotFound(f"no knob {typed!r}; {did_you_mean(typed, names)}see: docs/knobs.md")


def knob_reason(knob: str, config: Config, state: LearnState) -> KnobReason:
    """Why a knob has the value that a new session gets."""
    pinned = pinned_knobs(config)
    learned = changes_in_force(state, pinned=pinned)
    base = config.knobs_for("")
    default = _value_of(Knobs(), knob)
    changes = tuple(rows_of(state, knob))
    if any(part in pinned for part in (knob, knob.partition(".")[0])):
        value = _value_of(base, knob)
        why = "it is set by a person: in the user's file, or by the chosen profile"
        return KnobReason(knob, value, default, KnobSource.FILE, why, changes, "remove it there")
    if knob in state.frozen or state.all_frozen:
        value = learned.get(knob, _value_of(base, knob))
        why = "a person froze it: nothing learned changes it"
        undo = f"hotset learn unfreeze {knob if knob in state.frozen else ''}".strip()
        return KnobReason(knob, value, default, KnobSource.FROZEN, why, changes, undo)
    if knob in learned:
        row = next(each for each in changes if each.stage == "adopted" and knob in each.knobs)
        return KnobReason(
            knob, learned[knob], default, KnobSource.LEARNED, row.why, changes, row.undo
        )
    tried = next((each for each in changes if each.stage == "trial"), None)
    why = "nothing learned changes it" if tried is None else f"{tried.id} is on trial: {tried.why}"
    return KnobReason(knob, _value_of(base, knob), default, KnobSource.DEFAULT, why, changes, "")


def _value_of(knobs: Knobs, name: str) -> Any:
    values = knobs.by_name()
    if name in values:
        return values[name]
    mapping, _, key = name.partition(".")
    inside = values.get(mapping)
    if isinstance(inside, Mapping):
        return inside.get(key)
    return {each: value for each, value in values.items() if each.startswith(f"{name}.")} or None


@dataclass(frozen=True, slots=True)
class OrderPrice:
    """What an order that holds at once may cost in the sessions that are open."""

    sessions: int
    tokens: int
    """That are rewritten if pages leave them because of it."""
    dollars: float | None


def order_price(store: Store, config: Config, now: float) -> OrderPrice:
    """The price of rewriting the prefix of every open session, once."""
    sessions = tokens = 0
    cost, is_known = 0.0, True
    for session in store.recent_sessions()[:_MOST_OPEN]:
        turns = list(store.turns(session.id))
        if not turns or now - (turns[-1].finished or turns[-1].started) > _OPEN_SECONDS:
            continue
        bill = next(reversed(list(store.bills(session.id))), None)
        sessions += 1
        if bill is not None:
            price = price_of(bill.model, config.prices, bill.upstream)
            tokens += bill.sent.prompt
            cost += price.input * bill.sent.prompt * max(0.0, price.write - price.read) / 1e6
            is_known = is_known and price.listed
    return OrderPrice(sessions, tokens, cost if is_known else None)


@dataclass(frozen=True, slots=True)
class ProfileView:
    """A named set of knobs that sessions can be tried with."""

    name: str
    changes: Mapping[str, Any]
    share: float
    by: str
    """`hotset` or `file`."""


def profile_views(config: Config, state: LearnState, now: float) -> list[ProfileView]:
    """Every profile, with what it changes and its share of new sessions."""
    shares = arms(state, int(now // DAY))
    found = [
        ProfileView(
            name,
            profile_changes(config, name),
            shares.get(name, 0.0),
            "file" if name in config.own_profiles else "hotset",
        )
        for name in config.trial_profiles
    ]
    return [*found, ProfileView(OFF_ARM, {}, shares.get(OFF_ARM, 0.0), "hotset")]


def known_arms(config: Config, state: LearnState) -> Sequence[str]:
    """What a trial can be set for."""
    return (
        OFF_ARM,
        *(name for name in config.trial_profiles if name != DEFAULT_PROFILE),
        *state.arms,
    )
