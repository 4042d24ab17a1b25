"""Everything that is learned: a fold over events, and what follows from it for a new session.

Nothing here knows a clock, a store or chance. The same events give the same state, to the last bit,
folded in one go or from a snapshot on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hotset.learn.beliefs import (
    Beliefs,
    Block,
    block_for,
    forget_knobs,
    learn_session,
    propose_positions,
)
from hotset.learn.chance import uniform
from hotset.learn.contexts import PromptCluster, UserProfile, add_habits, add_prompt, nearest
from hotset.learn.events import (
    BY_BANDIT,
    BY_EVOLUTION,
    DEFAULT_ARM,
    LEARN_EVENTS,
    OFF_ARM,
    Change,
    ChangeDecision,
    GateVerdict,
    KnobsSetting,
    SessionFigures,
    TrialSetting,
    change_id,
    decode_payload,
)
from hotset.learn.ranges import knob_ranges
from hotset.learn.trials import (
    DAY,
    FLOOR,
    Arm,
    Tally,
    enter,
    guard,
    has_fallen,
    has_room,
    is_no_worse,
    shift,
    why_worse,
)
from hotset.typed import decode

__all__ = ["EMPTY", "LEARN_EVENTS", "LearnState", "fold"]

BY_BELIEFS = "beliefs"

_LEAST_MOVE = 0.05  # of a knob's range, to be worth a proposal
_MOST_TRIALS = 3  # changes with a share at once
_MOST_ENDED = 40  # changes that are over, for people to read; all of them stay in the events
_MOST_SKIPPED = 20  # that are named; all are counted


class Stage(StrEnum):
    """How far a change has come."""

    PROPOSED = "proposed"
    REFUSED = "refused"
    """By the gate."""
    PASSED = "passed"
    """The gate; it waits for a share of sessions."""
    TRIAL = "trial"
    ADOPTED = "adopted"
    ROLLED_BACK = "rolled back"
    RESET = "reset"
    """A person took it back."""


_OVER = frozenset({Stage.REFUSED, Stage.ROLLED_BACK, Stage.RESET})


class ChangeRecord(Struct, frozen=True):
    """A change, and what became of it."""

    change: Change
    stage: Stage
    since: float
    """When it came to this stage."""
    number: int
    """Of the event that brought it there: changes act in this order."""
    verdict: GateVerdict | None = None
    why: str = ""
    """Of the decision."""
    tally: Tally = Tally()
    """Sessions with it in force."""
    before: Tally = Tally()
    """Sessions of the default arm up to its adoption."""

    @property
    def saved(self) -> float:
        """What it saved so far, in units of an uncached input token: by the gate's gain."""
        return self.tally.cost * math.expm1(self.verdict.gain) if self.verdict else 0.0


class LearnState(Struct, frozen=True):
    """What the events up to `number` come to."""

    number: int = 0
    is_on: bool = True
    changes: dict[str, ChangeRecord] = {}
    arms: dict[str, Arm] = {}
    """Under trial, beside the default."""
    default: Tally = Tally()
    frozen: dict[str, Any] = {}
    """Names of knobs with their values; None: what it would be without learning."""
    all_frozen: bool = False
    beliefs: Beliefs = Beliefs()
    clusters: tuple[PromptCluster, ...] = ()
    """Of prompts; a session's context is the number of its cluster."""
    profile: UserProfile = UserProfile()
    skipped: dict[str, str] = {}
    """Numbers and names of the latest events that could not be read."""
    skipped_count: int = 0


EMPTY = LearnState()


def encode_state(state: LearnState) -> bytes:
    """A snapshot: the same state gives the same bytes."""
    return msgspec.json.encode(state, order="sorted")


def decode_state(snapshot: bytes) -> LearnState:
    """Raises `msgspec.MsgspecError`."""
    return decode(snapshot, LearnState)


def fold(state: LearnState, number: int, name: str, data: str, time: float) -> LearnState:
    """The state with one more event. Never raises: what cannot be read is skipped and counted; what
    was folded before changes nothing."""
    if name not in LEARN_EVENTS or number <= state.number:
        return state
    try:
        payload = decode_payload(name, data)
        return _FOLDS[name](replace(state, number=number), payload, time)
    except (msgspec.MsgspecError, UnicodeError, ArithmeticError, ValueError, LookupError):
        named = {**state.skipped, str(number): name}
        while len(named) > _MOST_SKIPPED:
            del named[min(named, key=int)]
        return replace(state, number=number, skipped=named, skipped_count=state.skipped_count + 1)


def _observe(state: LearnState, figures: SessionFigures, _: float) -> LearnState:
    context = context_of(state, figures.vector) if figures.vector else figures.context
    state = replace(
        state,
        clusters=add_prompt(state.clusters, figures.vector),
        profile=add_habits(state.profile, figures),
    )
    if figures.explored and figures.reward is not None:
        learned = learn_session(state.beliefs, figures.explored, figures.reward, context)
        state = replace(state, beliefs=learned)
    changes = dict(state.changes)
    for id in figures.changes:
        if id in changes:
            record = changes[id]
            changes[id] = replace(record, tally=record.tally.plus(figures))
    if figures.arm == DEFAULT_ARM:
        return replace(
            state,
            changes=changes,
            default=state.default.plus(figures),
            arms={name: arm.plus(figures, is_own=False) for name, arm in state.arms.items()},
        )
    arms = dict(state.arms)
    if figures.arm in arms:
        arms[figures.arm] = arms[figures.arm].plus(figures, is_own=True)
    return replace(state, changes=changes, arms=arms)


def _propose(state: LearnState, change: Change, time: float) -> LearnState:
    known = state.changes.get(change.id)
    if known is not None and known.stage not in _OVER:
        return state
    return _with_record(state, ChangeRecord(change, Stage.PROPOSED, time, state.number))


def _gate(state: LearnState, verdict: GateVerdict, time: float) -> LearnState:
    record = state.changes[verdict.change]
    if record.stage is not Stage.PROPOSED:
        return state
    stage = Stage.PASSED if verdict.passed else Stage.REFUSED
    return _with_record(
        state,
        replace(
            record, stage=stage, since=time, number=state.number, verdict=verdict, why=verdict.why
        ),
    )


def _adopt(state: LearnState, decision: ChangeDecision, time: float) -> LearnState:
    record = replace(
        state.changes[decision.change],
        stage=Stage.ADOPTED,
        since=time,
        number=state.number,
        why=decision.why,
        tally=Tally(),
        before=state.default,
    )
    return _with_record(_without_arm(state, decision.change), record)


def _roll_back(state: LearnState, decision: ChangeDecision, time: float) -> LearnState:
    ended = _without_arm(state, decision.change)
    record = state.changes.get(decision.change)
    if record is None:  # a profile
        return ended
    return _with_record(
        ended,
        replace(record, stage=Stage.ROLLED_BACK, since=time, number=state.number, why=decision.why),
    )


def _set_trial(state: LearnState, setting: TrialSetting, time: float) -> LearnState:
    if setting.by == BY_BANDIT:
        return _shift_shares(state, setting, time)
    beliefs = state.beliefs
    if setting.explore is not None:
        beliefs = replace(beliefs, share=setting.explore)
    if setting.explorable is not None:
        known = knob_ranges()
        beliefs = replace(
            beliefs, explorable=tuple(name for name in setting.explorable if name in known)
        )
    arms = dict(state.arms)
    for name, share in sorted(setting.shares.items()):
        if share == 0:
            arms.pop(name, None)
        elif name != DEFAULT_ARM:
            arms[name] = enter(arms, name, max(FLOOR, share), time, fixed=True)
    room = 1 - FLOOR - sum(arm.share for arm in arms.values() if arm.is_fixed)
    free = [name for name, arm in arms.items() if not arm.is_fixed]
    if room < len(free) * FLOOR - 1e-9:
        raise ValueError("more is asked for than there is")
    if sum(arms[name].share for name in free) > room:
        arms |= {name: enter(arms, name, FLOOR, time, fixed=False) for name in free}
    return replace(state, arms=arms, beliefs=beliefs)


def _shift_shares(state: LearnState, setting: TrialSetting, time: float) -> LearnState:
    arms = guard(state.arms, setting.shares, int(time // DAY))
    for name in sorted(setting.shares):
        record = state.changes.get(name)
        if name in arms or record is None or record.stage is not Stage.PASSED:
            continue
        if has_room(arms) and not _is_held(state, record.change):
            arms[name] = enter(arms, name, FLOOR, time, fixed=False)
            started = replace(record, stage=Stage.TRIAL, since=time, number=state.number)
            state = _with_record(state, started)
    return replace(state, arms=arms)


def _freeze(state: LearnState, setting: KnobsSetting, time: float) -> LearnState:
    current = changes_in_force(state)
    if not setting.knobs:
        state = replace(state, all_frozen=True)
    frozen = dict(state.frozen)
    for name in setting.knobs:
        held = {each: value for each, value in current.items() if _is_part(each, name)}
        frozen |= {name: setting.values.get(name)} | held
        if name in setting.values:
            frozen[name] = setting.values[name]
    return _pause_held(replace(state, frozen=frozen), time)


def _thaw(state: LearnState, setting: KnobsSetting, _: float) -> LearnState:
    if not setting.knobs:
        return replace(state, frozen={}, all_frozen=False)
    kept = {
        name: value
        for name, value in state.frozen.items()
        if not any(_is_part(name, each) for each in setting.knobs)
    }
    return replace(state, frozen=kept)


def _reset(state: LearnState, setting: KnobsSetting, time: float) -> LearnState:
    for id, record in list(state.changes.items()):
        if record.stage not in _OVER and _touches(record.change, setting.knobs):
            undone = replace(record, stage=Stage.RESET, since=time, number=state.number)
            state = _with_record(_without_arm(state, id), undone)
    explored = {name for block in state.beliefs.blocks for name in block.knobs}
    explored |= state.beliefs.known.keys()
    gone = [name for name in explored if _is_any(name, setting.knobs)]
    return replace(state, beliefs=forget_knobs(state.beliefs, gone))


def _switch(state: LearnState, setting: KnobsSetting, _: float) -> LearnState:
    return replace(state, is_on=setting.is_on)


_FOLDS: Mapping[str, Callable[[LearnState, Any, float], LearnState]] = {
    "SessionObserved": _observe,
    "ChangeProposed": _propose,
    "ChangeGated": _gate,
    "ChangeAdopted": _adopt,
    "ChangeRolledBack": _roll_back,
    "TrialChanged": _set_trial,
    "KnobsFrozen": _freeze,
    "KnobsThawed": _thaw,
    "LearningReset": _reset,
    "LearningSwitched": _switch,
}


def changes_in_force(state: LearnState, *, pinned: Container[str] = ()) -> dict[str, Any]:
    """The learned knobs of a new session, by dotted name, in the order of adoption. `pinned`: those
    that a person's file sets; they are left out, and so are all in a group or mapping that it
    sets."""
    found: dict[str, Any] = {}
    for record in _adopted(state):
        found |= {
            name: value
            for name, value in record.change.knobs.items()
            if not _is_frozen(state, name)
        }
    found |= {name: value for name, value in state.frozen.items() if value is not None}
    return {
        name: value
        for name, value in found.items()
        if not any(each in pinned for each in _own_and_groups(name))
    }


class Assignment(Struct, frozen=True):
    """What a new session runs with, for good."""

    arm: str = DEFAULT_ARM
    changes: tuple[str, ...] = ()
    """Ids of the learned changes in force, that of the arm included."""
    knobs: dict[str, Any] = {}
    """Their values, by dotted name."""
    explored: dict[str, float] = {}
    """Positions of knobs in their ranges that this session tries."""


def arms(state: LearnState, day: int) -> dict[str, float]:  # noqa: ARG001 - see `decide`
    """The share of each arm among new sessions; they sum to 1."""
    if not state.is_on:
        return {DEFAULT_ARM: 1.0}
    shares = {name: arm.share for name, arm in sorted(state.arms.items())}
    return {DEFAULT_ARM: 1 - sum(shares.values()), **shares}


def context_of(state: LearnState, vector: Sequence[float]) -> int:
    """The context of a prompt, from its small vector."""
    return nearest(state.clusters, vector)


def assign(
    state: LearnState, key: str, day: int, *, context: int = 0, pinned: Container[str] = ()
) -> Assignment:
    """What the session of this key runs with: at random, but always the same for a state."""
    draw = uniform(f"arm:{key}")
    arm = DEFAULT_ARM
    for name, share in reversed(arms(state, day).items()):
        if draw < share:
            arm = name
            break
        draw -= share
    if not state.is_on or arm == OFF_ARM:
        frozen = changes_in_force(state, pinned=pinned) if arm != OFF_ARM else {}
        return Assignment(arm, knobs=frozen)
    knobs = changes_in_force(state, pinned=pinned)
    ids = tuple(record.change.id for record in _adopted(state))
    own = state.changes.get(arm)
    if own is not None:
        ids += (arm,)
        knobs |= {
            name: value
            for name, value in own.change.knobs.items()
            if not any(each in pinned for each in _own_and_groups(name))
        }
    explored = _explore(state, key, context, pinned) if arm == DEFAULT_ARM else {}
    ranges = knob_ranges()
    knobs |= {name: ranges[name].value(position) for name, position in explored.items()}
    return Assignment(arm, ids, knobs, explored)


def _explore(state: LearnState, key: str, context: int, pinned: Container[str]) -> dict[str, float]:
    """The positions that a session tries; none for most, or where a person set one of the knobs."""
    if state.all_frozen or uniform(f"explore:{key}") >= state.beliefs.share:
        return {}
    block = block_for(state.beliefs, key)
    if block is None or any(
        _is_frozen(state, name) or any(each in pinned for each in _own_and_groups(name))
        for name in block.knobs
    ):
        return {}
    return dict(zip(block.knobs, propose_positions(block, key, context), strict=True))


def decide(state: LearnState, now: float) -> list[tuple[str, Struct]]:
    """Events to write now: what to adopt, to roll back, to try, and where shares move."""
    if not state.is_on:
        return []
    found = list(_endings(state))
    ended = {decision.change for _, decision in found}
    day = int(now // DAY)
    started: dict[str, float] = {}
    left = {name: arm for name, arm in state.arms.items() if name not in ended}
    trials = [each for each in state.changes.values() if each.stage is Stage.TRIAL]
    places = _MOST_TRIALS - sum(each.change.id not in ended for each in trials)
    busy = {knob for each in trials for knob in each.change.knobs}
    for record in _in_order(state, Stage.PASSED):
        change = record.change
        if _is_held(state, change) or change.is_safe or busy & change.knobs.keys():
            continue
        if places > 0 and has_room(left):
            started[change.id] = FLOOR
            left = {**left, change.id: Arm(FLOOR, now)}
            busy |= change.knobs.keys()
            places -= 1
    moved = shift(state.arms, day) if all(arm.day < day for arm in state.arms.values()) else {}
    shares = {name: share for name, share in {**moved, **started}.items() if name not in ended}
    if shares:
        found.append(("TrialChanged", TrialSetting(shares, by=BY_BANDIT)))
    found += [("ChangeProposed", change) for change in _believed_changes(state)]
    return found


def _believed_changes(state: LearnState) -> Iterator[Change]:
    """What is settled in a block that was explored to its end, for the gate."""
    ranges = knob_ranges()
    live = {
        knob
        for record in state.changes.values()
        if record.stage not in _OVER
        for knob in record.change.knobs
    }
    for block in state.beliefs.blocks:
        knobs = {
            name: ranges[name].value(round(settled / _LEAST_MOVE) * _LEAST_MOVE)
            for name, settled, prior in zip(block.knobs, block.settled, block.priors, strict=True)
            if abs(settled - prior) > _LEAST_MOVE
        }
        before = {name: ranges[name].value(ranges[name].prior) for name in knobs}
        if block.left or not knobs or live & knobs.keys() or knobs == before:
            continue
        change = Change(change_id(knobs, BY_BELIEFS), knobs, before, BY_BELIEFS, _why(block))
        if change.id not in state.changes and not _is_held(state, change):
            yield change


def _why(block: Block) -> str:
    moved = ", ".join(
        f"{name} from {prior:.2f} to {settled:.2f} of its range"
        for name, settled, prior in zip(block.knobs, block.settled, block.priors, strict=True)
        if abs(settled - prior) > _LEAST_MOVE
    )
    return f"{block.seen} sessions explored {len(block.knobs)} knobs: {moved}"


def _endings(state: LearnState) -> Iterator[tuple[str, Any]]:
    """Trials and adopted changes that a decision is due on."""
    for name, arm in sorted(state.arms.items()):
        record = state.changes.get(name)
        if name == OFF_ARM:
            continue
        if why := why_worse(arm):
            saved = record.saved if record else 0.0
            yield "ChangeRolledBack", ChangeDecision(name, why, saved)
        elif record is not None and is_no_worse(arm) and not _is_held(state, record.change):
            own = arm.tally
            why = (
                f"success {own.success_rate:.0%} in {own.outcomes} sessions is shown to be"
                f" no worse; {record.why}"
            )
            yield "ChangeAdopted", ChangeDecision(name, why, record.saved)
    for record in _adopted(state):
        if has_fallen(record.tally, record.before):
            rate, usual = record.tally.success_rate, record.before.success_rate
            why = f"success fell from {usual:.0%} to {rate:.0%} since it was adopted"
            yield "ChangeRolledBack", ChangeDecision(record.change.id, why, record.saved)
    for record in _in_order(state, Stage.PASSED):
        if record.change.is_safe and not _is_held(state, record.change):
            yield "ChangeAdopted", ChangeDecision(record.change.id, record.why)


class ChangeRow(Struct, frozen=True):
    """A change as a person reads it."""

    id: str
    knobs: dict[str, Any]
    before: dict[str, Any]
    by: str
    why: str
    """Of the proposal."""
    stage: str
    since: float
    evidence: str
    """Of the latest verdict or decision."""
    sessions: int
    """That ran with it."""
    saved: float
    """In units of an uncached input token."""
    undo: str
    """The command that takes it back; empty if there is nothing to take back."""


def rows(state: LearnState) -> list[ChangeRow]:
    """Every change, the latest first."""
    ordered = sorted(state.changes.values(), key=lambda record: -record.number)
    return [_row(record) for record in ordered]


def rows_of(state: LearnState, knob: str) -> list[ChangeRow]:
    """The changes of a knob, a group or a mapping, the latest first."""
    return [row for row in rows(state) if any(_is_part(name, knob) for name in row.knobs)]


def _row(record: ChangeRecord) -> ChangeRow:
    change = record.change
    is_live = record.stage in {Stage.ADOPTED, Stage.TRIAL}
    arm_tally = record.tally
    undo = f"hotset learn reset {' '.join(sorted(change.knobs))}"
    if change.by == BY_EVOLUTION:
        undo = f"hotset evolve revert {change.id}"
    return ChangeRow(
        id=change.id,
        knobs=change.knobs,
        before=change.before,
        by=change.by,
        why=change.why,
        stage=str(record.stage),
        since=record.since,
        evidence=record.why,
        sessions=arm_tally.sessions,
        saved=record.saved,
        undo=undo if is_live else "",
    )


def _adopted(state: LearnState) -> list[ChangeRecord]:
    return _in_order(state, Stage.ADOPTED) if state.is_on else []


def _in_order(state: LearnState, stage: Stage) -> list[ChangeRecord]:
    found = [record for record in state.changes.values() if record.stage is stage]
    return sorted(found, key=lambda record: record.number)


def _with_record(state: LearnState, record: ChangeRecord) -> LearnState:
    changes = {**state.changes, record.change.id: record}
    over = sorted((each.number, id) for id, each in changes.items() if each.stage in _OVER)
    for _, id in over[: max(0, len(over) - _MOST_ENDED)]:
        del changes[id]
    return replace(state, changes=changes)


def _without_arm(state: LearnState, name: str) -> LearnState:
    return replace(state, arms={each: arm for each, arm in state.arms.items() if each != name})


def _pause_held(state: LearnState, time: float) -> LearnState:
    """Without trials of changes that touch a frozen knob; they wait."""
    for record in _in_order(state, Stage.TRIAL):
        if _is_held(state, record.change):
            waiting = replace(record, stage=Stage.PASSED, since=time)
            state = _with_record(_without_arm(state, record.change.id), waiting)
    return state


def _is_held(state: LearnState, change: Change) -> bool:
    return state.all_frozen or any(_is_frozen(state, name) for name in change.knobs)


def _is_frozen(state: LearnState, knob: str) -> bool:
    return bool(frozen_names(state, knob))


def frozen_names(state: LearnState, knob: str) -> list[str]:
    """The names under which a person froze this knob: its own, groups around it, parts of it."""
    return sorted(name for name in state.frozen if _is_part(knob, name) or _is_part(name, knob))


def _touches(change: Change, names: tuple[str, ...]) -> bool:
    return any(_is_any(knob, names) for knob in change.knobs)


def _is_any(knob: str, names: tuple[str, ...]) -> bool:
    """True if a knob is one of these, in one or around one; no names mean all knobs."""
    return not names or any(_is_part(knob, name) or _is_part(name, knob) for name in names)


def _is_part(knob: str, name: str) -> bool:
    """True for a knob and for what is in a group or mapping of that name."""
    return knob == name or knob.startswith(f"{name}.")


def _own_and_groups(knob: str) -> list[str]:
    parts = knob.split(".")
    return [".".join(parts[: at + 1]) for at in range(len(parts))]
