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
from hotset.learn.events import DEFAULT_ARM, OFF_ARM
from hotset.learn.ranges import knob_ranges
from hotset.learn.state import (
    ChangeRow,
    LearnState,
    arms,
    changes_in_force,
    freeze_of,
    own_and_groups,
    rows,
    rows_of,
)
from hotset.learn.trials import Tally, compare_figures, unscale
from hotset.nouns.knobs import DEFAULT_PROFILE, LEAN_PROFILE, PROFILES, Knobs
from hotset.runtime.knob_texts import knob_text
from hotset.runtime.learning import DAY, learned_knobs, pinned_knobs, profile_changes
from hotset.runtime.reader import did_you_mean
from hotset.store.port import Store
from hotset.window.price import price_of

_OPEN_SECONDS = 3600.0  # since its last call; then a session counts as open
_MOST_OPEN = 50
_DIGITS = 4  # of what is told
EXPLORE_ARM = "explore"
"""The sessions of the default arm that explore, by this name."""
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
    dollars: float | None
    """For a session; None: no price is known."""
    turns: float
    faults: float
    corrections: float
    rereads: float
    latency_ms: float
    differences: tuple[ArmDifference, ...] = ()
    until: float = 0.0
    """When its trial ended; 0: it has not."""


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
    """Of new sessions, the default first."""
    ended: tuple[ArmView, ...]
    """Trials that are over, the latest first."""
    changes: tuple[ChangeRow, ...]
    """The latest first."""
    frozen: Mapping[str, Any]
    all_frozen: bool
    skipped: int
    """Events that could not be read."""
    explores: float
    """The share of the default arm's sessions that try other values of a few knobs."""
    explorable: tuple[str, ...]
    """These knobs."""
    beliefs: tuple[KnobBelief, ...]
    contexts: int
    """Kinds of prompts that are told apart."""
    habits: UserHabits


@dataclass(frozen=True, slots=True)
class KnobReason:
    """Why a knob has its value."""

    name: str
    what: str
    """What it is, in half a sentence."""
    value: Any
    default: Any
    source: KnobSource
    why: str
    """In a sentence."""
    changes: tuple[ChangeRow, ...]
    undo: str


def why_off(state: LearnState, config: Config) -> str:
    """What switched learning off; empty if it is on."""
    if not config.learns:
        return config.origins.get("learn", "a program")
    return "" if state.is_on else "hotset learn off"


def learning_status(state: LearnState, config: Config, now: float) -> LearningStatus:
    off = why_off(state, config)
    return LearningStatus(
        is_on=not off,
        why_off=off,
        observed=state.observed,
        arms=arm_views(state, config, now),
        ended=ended_views(state),
        changes=tuple(rows(state)),
        frozen=frozen_values(state),
        all_frozen=state.all_frozen,
        skipped=state.skipped_count,
        explores=state.beliefs.share,
        explorable=state.beliefs.explorable,
        beliefs=tuple(knob_beliefs(state)),
        contexts=len(state.clusters),
        habits=UserHabits(
            round(state.profile.is_thorough, _DIGITS),
            round(state.profile.tolerates_searches, _DIGITS),
        ),
    )


def frozen_values(state: LearnState) -> dict[str, Any]:
    """What is frozen, with the values that hold; None: as it is without learning."""
    found: dict[str, Any] = {}
    for name, freeze in sorted(state.frozen.items()):
        found |= {name: None} | freeze.held
    return found


def knob_beliefs(state: LearnState) -> Iterator[KnobBelief]:
    """The beliefs on every knob that was explored, in all contexts and in each."""
    ranges = knob_ranges()
    for block in state.beliefs.blocks:
        for name in block.knobs:
            for context in (None, *map(int, sorted(block.contexts))):
                beta, knob = beta_of(state.beliefs, name, context), ranges[name]
                value, default = knob.value(beta.mean), knob.value(knob.prior)
                alpha, other = round(beta.alpha, _DIGITS), round(beta.beta, _DIGITS)
                yield KnobBelief(name, context, alpha, other, value, default, block.seen)


def arm_views(state: LearnState, config: Config, now: float) -> tuple[ArmView, ...]:
    """The arms of new sessions, the default first; sessions that explore are their own."""
    shares = arms(state, int(now // DAY)) if config.learns else {DEFAULT_ARM: 1.0}
    explores = state.beliefs.share * shares[DEFAULT_ARM] if not why_off(state, config) else 0.0
    found = [_arm_view(DEFAULT_ARM, shares[DEFAULT_ARM] - explores, 0.0, state.default)]
    if explores or state.exploring.sessions:
        found.append(_arm_view(EXPLORE_ARM, explores, 0.0, state.exploring))
    for name, arm in sorted(state.arms.items()):
        differences = compare_figures(arm)
        found.append(
            _arm_view(name, shares.get(name, 0.0), arm.since, arm.tally, differences=differences)
        )
    return tuple(found)


def ended_views(state: LearnState) -> tuple[ArmView, ...]:
    """Trials that are over and had sessions, the latest first."""
    return tuple(
        _arm_view(arm.name, 0.0, arm.since, arm.tally, differences=arm.differences, until=arm.until)
        for arm in reversed(state.ended)
        if arm.tally.sessions
    )


def _arm_view(
    name: str,
    share: float,
    since: float,
    tally: Tally,
    *,
    differences: Mapping[str, tuple[float, float, float, int]] | None = None,
    until: float = 0.0,
) -> ArmView:
    def mean(total: float) -> float:
        return round(total / max(1, tally.sessions), _DIGITS)

    cost = tally.cost_share
    return ArmView(
        name=name,
        share=round(share, _DIGITS),
        since=since,
        sessions=tally.sessions,
        success=round(tally.success_rate, _DIGITS) if tally.outcomes else None,
        cost=round(cost, _DIGITS) if cost is not None else None,
        dollars=round(tally.dollars / tally.priced, _DIGITS + 2) if tally.priced else None,
        turns=mean(tally.turns),
        faults=mean(tally.faults),
        corrections=mean(tally.corrections),
        rereads=mean(tally.rereads),
        latency_ms=mean(tally.latency_ms),
        differences=_differences(differences or {}),
        until=until,
    )


def _differences(
    found: Mapping[str, tuple[float, float, float, int]],
) -> tuple[ArmDifference, ...]:
    told: list[ArmDifference] = []
    for name in _FIGURES:
        if name in found:
            *values, pairs = found[name]
            plain = [unscale(name, each) for each in values]
            shown = plain if name == "success" else [math.expm1(each) for each in plain]
            mean, low, high = (round(each, _DIGITS) for each in shown)
            told.append(ArmDifference(name, mean, low, high, pairs))
    return tuple(told)


def knob_names(config: Config, state: LearnState) -> list[str]:
    """Every knob by its dotted name, with those of mappings that something was learned of."""
    learned = {name for row in rows(state) for name in row.knobs}
    return sorted({*config.knobs_for("").by_name(), *learned, *state.frozen})


def resolve_knob(typed: str, config: Config, state: LearnState) -> str:
    """A knob, group or mapping by its name. Raises `NotFound`."""
    names = knob_names(config, state)
    mappings = {name for name, value in Knobs().by_name().items() if isinstance(value, Mapping)}
    groups = {name.rpartition(".")[0] for name in names} - {""}
    inside = any(name in mappings for name in own_and_groups(typed)[:-1])
    if typed in names or typed in groups or (inside and not typed.endswith(".")):
        return typed
    raise NotFound(f"no knob {typed!r}; {did_you_mean(typed, names)}see: docs/knobs.md")


def knob_reason(knob: str, config: Config, state: LearnState) -> KnobReason:
    """Why a knob, or a group, has the value that a new session gets."""
    learned = changes_in_force(state, pinned=pinned_knobs(config)) if config.learns else {}
    owner = _owner(knob, config, state, learned)
    named = {*learned, *state.frozen, *pinned_knobs(config)}
    inside = sorted(name for name in named if name.startswith(f"{knob}."))
    owners = {name: _owner(name, config, state, learned) for name in inside}
    owned = {name: each for name, each in owners.items() if each.source is not KnobSource.DEFAULT}
    if owned and owner.source is KnobSource.DEFAULT:
        first = min(owned.values(), key=lambda each: _STRENGTHS.index(each.source))
        undos = {each.undo for each in owned.values()}
        owner = _Owner(
            first.source,
            "; ".join(f"{name} ({each.source}): {each.why}" for name, each in owned.items()),
            undos.pop() if len(undos) == 1 else "",
        )
    return KnobReason(
        knob,
        knob_text(knob),
        knob_value(learned_knobs(config, state), knob),
        knob_value(Knobs(), knob),
        owner.source,
        owner.why,
        tuple(rows_of(state, knob)),
        owner.undo,
    )


_STRENGTHS = tuple(KnobSource)


@dataclass(frozen=True, slots=True)
class _Owner:
    """Who decides about a knob."""

    source: KnobSource
    why: str
    undo: str = ""


def _owner(knob: str, config: Config, state: LearnState, learned: Mapping[str, Any]) -> _Owner:
    return _person_owner(knob, config, state) or _learned_owner(knob, state, learned)


def _person_owner(knob: str, config: Config, state: LearnState) -> _Owner | None:
    """A person, where one decided about it."""
    pinned, frozen = pinned_knobs(config), freeze_of(state, knob)
    if any(name in pinned for name in own_and_groups(knob)):
        why = "it is set by a person: in the user's file, or by the chosen profile"
        return _Owner(KnobSource.FILE, why, "remove it there")
    if not config.learns:
        held = "what was frozen or learned does not hold" if _is_known(knob, state) else ""
        why = f"learning is off ({why_off(state, config)})"
        return _Owner(KnobSource.DEFAULT, "; ".join(filter(None, (why, held))))
    if frozen is not None and state.frozen[frozen].is_order:
        why = "a person set it: it holds in every session, also in open ones"
        return _Owner(KnobSource.FROZEN, why, f"hotset learn unfreeze {frozen}")
    if frozen is not None or state.all_frozen:
        what = "every knob" if frozen is None else "it" if frozen == knob else f"all of {frozen}"
        why = f"a person froze {what}: nothing learned changes it"
        return _Owner(KnobSource.FROZEN, why, f"hotset learn unfreeze {frozen or ''}".strip())
    return None


def _learned_owner(knob: str, state: LearnState, learned: Mapping[str, Any]) -> _Owner:
    own = [row for row in rows_of(state, knob) if knob in row.knobs]
    if knob in learned:
        row = next(each for each in own if each.stage == "adopted")
        return _Owner(KnobSource.LEARNED, row.why, row.undo)
    adopted = next((each for each in own if each.stage == "adopted"), None)
    if adopted is not None and not state.is_on:
        why = f"learning is off (hotset learn off), so {adopted.id} does not hold"
        return _Owner(KnobSource.DEFAULT, why, "hotset learn on")
    tried = next((each for each in own if each.stage == "trial"), None)
    if tried is not None:
        share = state.arms[tried.id].share if tried.id in state.arms else 0.0
        why = f"{share:.0%} of new sessions try another value ({tried.id}): {tried.why}"
        return _Owner(KnobSource.DEFAULT, why, tried.undo)
    if knob in state.beliefs.explorable and state.beliefs.share:
        seen = sum(block.seen for block in state.beliefs.blocks if knob in block.knobs)
        why = (
            f"{state.beliefs.share:.0%} of new sessions explore other values, {seen} did so far;"
            " nothing learned changes it yet"
        )
        return _Owner(KnobSource.DEFAULT, why, "hotset learn trial explore=0%")
    return _Owner(KnobSource.DEFAULT, "nothing learned changes it")


def _is_known(knob: str, state: LearnState) -> bool:
    """True if it would be frozen or learned, were learning on."""
    is_adopted = any(row.stage == "adopted" and knob in row.knobs for row in rows_of(state, knob))
    return is_adopted or freeze_of(state, knob) is not None or state.all_frozen


def knob_value(knobs: Knobs, name: str) -> Any:
    """The value of a knob, of an entry of a mapping, or those of a group; None if there is none."""
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


def profile_views(
    config: Config, state: LearnState, now: float, *, everything: bool = True
) -> list[ProfileView]:
    """The profiles with what they change and their share of new sessions. Without `everything`, not
    those of kinds of agents, unless they are on trial."""
    shares = arms(state, int(now // DAY))
    kinds = PROFILES.keys() - {DEFAULT_PROFILE, LEAN_PROFILE, *config.own_profiles}
    found = [
        ProfileView(
            name,
            profile_changes(config, name),
            round(shares.get(name, 0.0), _DIGITS),
            "file" if name in config.own_profiles else "hotset",
        )
        for name in config.trial_profiles
        if everything or name not in kinds or name in shares
    ]
    off = ProfileView(OFF_ARM, {}, round(shares.get(OFF_ARM, 0.0), _DIGITS), "hotset")
    return [*found, off]


def known_arms(config: Config, state: LearnState) -> Sequence[str]:
    """What a trial can be set for."""
    return (
        OFF_ARM,
        *(name for name in config.trial_profiles if name != DEFAULT_PROFILE),
        *state.arms,
    )
