"""Everything that is learned: a fold over events, and what follows from it for a new session.

Nothing here knows a clock, a store or chance. The same events give the same state, to the last bit,
folded in one go or from a snapshot on.
"""

from __future__ import annotations

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
    BY_PERSON,
    DEFAULT_ARM,
    LEARN_EVENTS,
    OFF_ARM,
    Change,
    ChangeDecision,
    GateVerdict,
    KnobsSetting,
    Measured,
    SessionFigures,
    TrialSetting,
    change_id,
    decode_payload,
)
from hotset.learn.ranges import knob_ranges
from hotset.learn.trials import (
    DAILY_SHIFT,
    DAY,
    FLOOR,
    Arm,
    EndedArm,
    Tally,
    begin,
    can_enter,
    end_arm,
    enter,
    guard,
    has_fallen,
    is_cheaper,
    is_no_worse,
    lower,
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
_MOST_ENDED_ARMS = 20
_MOST_UNDONE = 8  # values of a knob


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
    """Sessions with it in force, but not those of another arm."""
    before: Tally = Tally()
    """Sessions of the default arm up to its adoption."""
    needs_trial: bool = False
    """It was taken back before, or one of its knobs was: replay alone is not enough to adopt it."""

    @property
    def starts_trial(self) -> bool:
        """The gate alone does not adopt it."""
        return self.needs_trial or not self.change.is_safe

    @property
    def is_gated(self) -> bool:
        """Recorded sessions could tell something of it."""
        return self.verdict is not None and self.verdict.sessions > 0


class Freeze(Struct, frozen=True):
    """A frozen knob, group or mapping."""

    held: dict[str, Any] = {}
    """Values that hold for it and for what is in it; others are as without learning."""
    is_order: bool = False
    """A person gave the value: it holds in open sessions, too."""


class Undone(Struct, frozen=True):
    """A value of a knob that was taken back."""

    time: float
    by_person: bool


class LearnState(Struct, frozen=True):
    """What the events up to `number` come to."""

    number: int = 0
    is_on: bool = True
    changes: dict[str, ChangeRecord] = {}
    arms: dict[str, Arm] = {}
    """Under trial, beside the default."""
    ended: tuple[EndedArm, ...] = ()
    """Trials that are over, the latest last."""
    default: Tally = Tally()
    """Sessions of the default arm that did not explore."""
    exploring: Tally = Tally()
    """Those that did: with other knobs, so they are no baseline."""
    observed: int = 0
    """Sessions of every arm."""
    frozen: dict[str, Freeze] = {}
    frozen_at: int = 0
    """The number of the event that froze every knob; 0: not all are frozen."""
    undone: dict[str, dict[str, Undone]] = {}
    """By knob, and by value as JSON: what was taken back."""
    beliefs: Beliefs = Beliefs()
    clusters: tuple[PromptCluster, ...] = ()
    """Of prompts; a session's context is the number of its cluster."""
    profile: UserProfile = UserProfile()
    skipped: dict[str, str] = {}
    """Numbers and names of the latest events that could not be read."""
    skipped_count: int = 0

    @property
    def all_frozen(self) -> bool:
        return self.frozen_at > 0

    @property
    def orders(self) -> dict[str, Any]:
        """Values that a person gave: they hold at once, in every session."""
        return {
            name: value
            for _, freeze in sorted(self.frozen.items())
            if freeze.is_order
            for name, value in freeze.held.items()
        }


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
    if figures.earlier is not None:
        return _observe_more(state, figures, figures.earlier)
    context = context_of(state, figures.vector) if figures.vector else figures.context
    state = replace(
        state,
        observed=state.observed + 1,
        clusters=add_prompt(state.clusters, figures.vector),
        profile=add_habits(state.profile, figures),
    )
    if figures.explored and figures.reward is not None:
        learned = learn_session(state.beliefs, figures.explored, figures.reward, context)
        state = replace(state, beliefs=learned)
    state = _count(state, figures, lambda tally: tally.plus(figures))
    if figures.arm == DEFAULT_ARM and not figures.explored:
        beside = {name: arm.plus(figures, is_own=False) for name, arm in state.arms.items()}
        return replace(state, arms=beside)
    if figures.arm in state.arms:
        own = state.arms[figures.arm].plus(figures, is_own=True)
        return replace(state, arms={**state.arms, figures.arm: own})
    return state


def _observe_more(
    state: LearnState, figures: SessionFigures, earlier: SessionFigures
) -> LearnState:
    """With the figures of a session that went on in place of its earlier ones. What was concluded
    from those stays: comparisons and beliefs have each session once."""
    arms = dict(state.arms)
    if figures.arm in arms:
        arm = arms[figures.arm]
        arms[figures.arm] = replace(arm, tally=arm.tally.with_more(earlier, figures))
    elif figures.arm == DEFAULT_ARM and not figures.explored:
        arms = {
            name: replace(arm, default=arm.default.with_more(earlier, figures))
            for name, arm in arms.items()
        }
    state = replace(state, arms=arms)
    return _count(state, figures, lambda tally: tally.with_more(earlier, figures))


def _count(
    state: LearnState, figures: SessionFigures, count: Callable[[Tally], Tally]
) -> LearnState:
    """With the tallies of the session's arm, unless it is on trial, and of its changes."""
    if figures.arm == DEFAULT_ARM and figures.explored:
        return replace(state, exploring=count(state.exploring))
    if figures.arm == DEFAULT_ARM:
        state = replace(state, default=count(state.default))
    elif figures.arm not in state.arms:
        state = _count_late(state, figures.arm, count)
    changes = dict(state.changes)
    for id in figures.changes:
        if id in changes and figures.arm in (DEFAULT_ARM, id):
            record = changes[id]
            changes[id] = replace(record, tally=count(record.tally))
    return replace(state, changes=changes)


def _count_late(state: LearnState, arm: str, count: Callable[[Tally], Tally]) -> LearnState:
    """With a session that ended after the trial of its arm."""
    ended = list(state.ended)
    for at in reversed(range(len(ended))):
        if ended[at].name == arm:
            ended[at] = replace(ended[at], tally=count(ended[at].tally))
            break
    return replace(state, ended=tuple(ended))


def _propose(state: LearnState, change: Change, time: float) -> LearnState:
    known = state.changes.get(change.id)
    if known is not None and known.stage not in _OVER:
        return state
    if is_taken_back(state, change.knobs):
        reset = ChangeRecord(change, Stage.RESET, time, state.number, why="a person took it back")
        return state if known is not None else _with_record(state, reset)
    needs_trial = any(name in state.undone for name in change.knobs)
    record = ChangeRecord(change, Stage.PROPOSED, time, state.number, needs_trial=needs_trial)
    return _with_record(state, record)


def _gate(state: LearnState, verdict: GateVerdict, time: float) -> LearnState:
    record = state.changes[verdict.change]
    if record.stage is Stage.RESET:
        return _with_record(state, replace(record, verdict=verdict))
    if record.stage is not Stage.PROPOSED:
        return state
    stage, why = Stage.PASSED if verdict.passed else Stage.REFUSED, verdict.why
    fell = rolled_back_at(state, record.change.knobs)
    if verdict.passed and fell and verdict.since <= fell:
        stage = Stage.REFUSED
        why = f"refused: it was rolled back, and only later sessions count for it now; {why}"
    return _with_record(
        state,
        replace(record, stage=stage, since=time, number=state.number, verdict=verdict, why=why),
    )


def _adopt(state: LearnState, decision: ChangeDecision, time: float) -> LearnState:
    record = state.changes[decision.change]
    by_person = decision.by == BY_PERSON
    if not by_person and (
        record.stage in _OVER or (record.needs_trial and record.stage is not Stage.TRIAL)
    ):
        return state
    record = replace(
        record,
        stage=Stage.ADOPTED,
        since=time,
        number=state.number,
        why=decision.why,
        tally=Tally(),
        before=state.default,
    )
    if by_person:
        state = _with_undone(state, record.change.knobs, None)
    return _with_record(_without_arm(state, decision.change, time), record)


def _roll_back(state: LearnState, decision: ChangeDecision, time: float) -> LearnState:
    state = _without_arm(state, decision.change, time)
    record = state.changes.get(decision.change)
    if record is None:  # a profile
        return state
    if record.stage in {Stage.TRIAL, Stage.ADOPTED}:
        mark = Undone(time, decision.by == BY_PERSON)
        state = _with_undone(state, record.change.knobs, mark)
    return _with_record(
        state,
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
    for name in (name for name, share in setting.shares.items() if share == 0):
        state = _without_arm(state, name, time)
    arms = dict(state.arms)
    for name, share in sorted(setting.shares.items()):
        if share and name != DEFAULT_ARM:
            arms[name] = enter(arms, name, max(FLOOR, share), time)
    room = 1 - FLOOR - sum(arm.share for arm in arms.values() if arm.is_fixed)
    free = [name for name, arm in arms.items() if not arm.is_fixed]
    if room < len(free) * FLOOR - 1e-9:
        raise ValueError("more is asked for than there is")
    if sum(arms[name].share for name in free) > room:
        arms |= {name: lower(arms[name], time) for name in free}
    return replace(state, arms=arms, beliefs=beliefs)


def _shift_shares(state: LearnState, setting: TrialSetting, time: float) -> LearnState:
    day = int(time // DAY)
    arms = guard(state.arms, setting.shares, day)
    for name in sorted(setting.shares):
        record = state.changes.get(name)
        if name in arms or record is None or record.stage is not Stage.PASSED:
            continue
        if can_enter(arms, day) and not _is_held(state, record.change):
            arms[name] = begin(time)
            started = replace(record, stage=Stage.TRIAL, since=time, number=state.number)
            state = _with_record(state, started)
    return replace(state, arms=arms)


def _freeze(state: LearnState, setting: KnobsSetting, time: float) -> LearnState:
    current = changes_in_force(state)
    if not setting.knobs:
        state = replace(state, frozen_at=state.frozen_at or state.number)
    frozen = dict(state.frozen)
    for name in setting.knobs:
        known = frozen.get(name)
        if name in setting.values:
            frozen[name] = Freeze({name: setting.values[name]}, is_order=True)
        elif known is None or not known.is_order:
            held = {each: value for each, value in current.items() if _is_part(each, name)}
            frozen[name] = Freeze(
                {each: value for each, value in held.items() if each not in state.orders}
            )
    return _pause_held(replace(state, frozen=frozen), time)


def _thaw(state: LearnState, setting: KnobsSetting, _: float) -> LearnState:
    if not setting.knobs:
        return replace(state, frozen={}, frozen_at=0)
    kept = {
        name: freeze
        for name, freeze in state.frozen.items()
        if not any(_is_part(name, each) for each in setting.knobs)
    }
    return replace(state, frozen=kept)


def _reset(state: LearnState, setting: KnobsSetting, time: float) -> LearnState:
    for id, record in list(state.changes.items()):
        if record.stage not in _OVER and _is_meant(record.change, setting):
            undone = replace(record, stage=Stage.RESET, since=time, number=state.number)
            state = _with_undone(state, record.change.knobs, Undone(time, by_person=True))
            state = _with_record(_without_arm(state, id, time), undone)
    if setting.changes:
        return state
    if not setting.knobs:
        state = replace(state, beliefs=replace(state.beliefs, share=0.0))
    explored = {name for block in state.beliefs.blocks for name in block.knobs}
    explored |= state.beliefs.known.keys()
    gone = [name for name in explored if _is_any(name, setting.knobs)]
    return replace(state, beliefs=forget_knobs(state.beliefs, gone))


def _lift_reset(state: LearnState, setting: KnobsSetting, _: float) -> LearnState:
    meant = [state.changes[id].change.knobs for id in setting.changes if id in state.changes]
    undone: dict[str, dict[str, Undone]] = {}
    for name, values in state.undone.items():
        given = {_value_text(knobs[name]) for knobs in meant if name in knobs}
        is_meant = not setting.changes and _is_any(name, setting.knobs)
        kept = {
            text: mark
            for text, mark in values.items()
            if not mark.by_person or not (is_meant or text in given)
        }
        if kept:
            undone[name] = kept
    return replace(state, undone=undone)


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
    "ResetLifted": _lift_reset,
    "LearningSwitched": _switch,
}


def changes_in_force(state: LearnState, *, pinned: Container[str] = ()) -> dict[str, Any]:
    """The learned knobs of a new session, by dotted name, in the order of adoption. `pinned`: those
    that a person's file sets; they are left out, and so are all in a group or mapping that it
    sets."""
    found: dict[str, Any] = {}
    for record in _adopted(state):
        if state.frozen_at and record.number > state.frozen_at:
            continue
        found |= {
            name: value
            for name, value in record.change.knobs.items()
            if not _is_frozen(state, name)
        }
    for _, freeze in sorted(state.frozen.items()):
        if state.is_on or freeze.is_order:
            found |= freeze.held
    return {
        name: value
        for name, value in found.items()
        if not any(each in pinned for each in own_and_groups(name))
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
            if not any(each in pinned for each in own_and_groups(name))
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
        _is_frozen(state, name) or any(each in pinned for each in own_and_groups(name))
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
    left = {name: arm for name, arm in state.arms.items() if name not in ended}
    waiting = [each for each in _in_order(state, Stage.PASSED) if each.change.id not in ended]
    if (started := _next_trial(state, waiting, left, day)) is not None:
        shares = {started: DAILY_SHIFT}
    elif all(arm.day < day for arm in state.arms.values()):
        shares = {name: share for name, share in shift(state.arms, day).items() if name in left}
    else:
        shares = {}
    if shares:
        found.append(("TrialChanged", TrialSetting(shares, by=BY_BANDIT)))
    found += [("ChangeProposed", change) for change in _believed_changes(state)]
    return found


def _next_trial(
    state: LearnState, waiting: Sequence[ChangeRecord], arms: Mapping[str, Arm], day: int
) -> str | None:
    """The change whose trial begins now: one at a time, and not of a knob that is on trial."""
    trials = [each for each in state.changes.values() if each.change.id in arms]
    if len(trials) >= _MOST_TRIALS or not can_enter(arms, day):
        return None
    busy = {knob for each in trials for knob in each.change.knobs}
    for record in waiting:
        change = record.change
        if record.starts_trial and not _is_held(state, change) and not busy & change.knobs.keys():
            return change.id
    return None


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
        if (
            change.id not in state.changes
            and not _is_held(state, change)
            and not is_taken_back(state, knobs)
        ):
            yield change


def explored_changes(state: LearnState) -> list[tuple[Change, float]]:
    """What exploring sessions settled on and the gate has not seen yet, each with the time of its
    proposal."""
    waiting = _in_order(state, Stage.PROPOSED)
    return [(each.change, each.since) for each in waiting if each.change.by == BY_BELIEFS]


def may_propose(state: LearnState, change: Change, *, passed: bool) -> bool:
    """True if it is news: no such change is under way, none was taken back by a person, and none
    that the gate refused is refused again."""
    known = state.changes.get(change.id)
    if is_taken_back(state, change.knobs):
        return False
    return known is None or (known.stage in _OVER and (passed or known.stage is not Stage.REFUSED))


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
            yield "ChangeRolledBack", ChangeDecision(name, why)
        elif (
            record is not None
            and is_no_worse(arm)
            and (record.is_gated or is_cheaper(arm))
            and not _is_held(state, record.change)
        ):
            own = arm.tally
            why = (
                f"success {own.success_rate:.0%} in {own.outcomes} sessions is shown to be"
                f" no worse; {record.why}"
            )
            yield "ChangeAdopted", ChangeDecision(name, why)
    for record in _adopted(state):
        if has_fallen(record.tally, record.before):
            now, before = record.tally, record.before
            usual = f"{before.success_rate:.0%} in {before.outcomes}" if before.outcomes else "none"
            why = (
                f"success is {now.success_rate:.0%} in {now.outcomes} sessions since it was"
                f" adopted; before: {usual}"
            )
            yield "ChangeRolledBack", ChangeDecision(record.change.id, why)
    for record in _in_order(state, Stage.PASSED):
        if not record.starts_trial and not _is_held(state, record.change):
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
    """That ran with it since then."""
    success: float | None
    """Theirs, where it is known; `before`: of the sessions before its adoption."""
    success_before: float | None
    cost: float | None
    """As a share of what full history would have cost."""
    cost_before: float | None
    sessions_before: int
    measured: Measured | None
    """In replay, on later sessions that it touches."""
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
    change, tally, before = record.change, record.tally, record.before
    is_live = record.stage in {Stage.ADOPTED, Stage.TRIAL}
    undo = f"hotset learn reset {change.id}"
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
        sessions=tally.sessions,
        success=_rounded(tally.success_rate if tally.outcomes else None),
        success_before=_rounded(before.success_rate if before.outcomes else None),
        cost=_rounded(tally.cost_share),
        cost_before=_rounded(before.cost_share),
        sessions_before=before.sessions,
        measured=record.verdict.measured if record.verdict is not None else None,
        undo=undo if is_live else "",
    )


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


def freeze_of(state: LearnState, knob: str) -> str | None:
    """The name under which a knob is frozen: its own, or that of a group around it."""
    return next((name for name in reversed(own_and_groups(knob)) if name in state.frozen), None)


def is_taken_back(state: LearnState, knobs: Mapping[str, Any]) -> bool:
    """True if a person took one of these values back: it is not learned again."""
    return any(mark.by_person for mark in _marks(state, knobs))


def rolled_back_at(state: LearnState, knobs: Mapping[str, Any]) -> float:
    """When one of these values was last rolled back; 0: never."""
    return max((mark.time for mark in _marks(state, knobs)), default=0.0)


def _marks(state: LearnState, knobs: Mapping[str, Any]) -> list[Undone]:
    found = (state.undone.get(name, {}).get(_value_text(value)) for name, value in knobs.items())
    return [mark for mark in found if mark is not None]


def _with_undone(state: LearnState, knobs: Mapping[str, Any], mark: Undone | None) -> LearnState:
    """With a mark at each of these values, or without one."""
    undone = dict(state.undone)
    for name, value in knobs.items():
        values = {
            text: old for text, old in undone.pop(name, {}).items() if text != _value_text(value)
        }
        if mark is not None:
            values[_value_text(value)] = mark
        while len(values) > _MOST_UNDONE:
            del values[min(values, key=lambda text: (values[text].time, text))]
        if values:
            undone[name] = values
    return replace(state, undone=undone)


def _value_text(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


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


def _without_arm(state: LearnState, name: str, time: float) -> LearnState:
    """Without a trial; what it showed stays."""
    if name not in state.arms:
        return state
    arms = {each: arm for each, arm in state.arms.items() if each != name}
    ended = (*state.ended, end_arm(name, state.arms[name], time))
    return replace(state, arms=arms, ended=ended[-_MOST_ENDED_ARMS:])


def _pause_held(state: LearnState, time: float) -> LearnState:
    """Without trials of changes that touch a frozen knob; they wait."""
    for record in _in_order(state, Stage.TRIAL):
        if _is_held(state, record.change):
            waiting = replace(record, stage=Stage.PASSED, since=time)
            state = _with_record(_without_arm(state, record.change.id, time), waiting)
    return state


def _is_held(state: LearnState, change: Change) -> bool:
    return state.all_frozen or any(_is_frozen(state, name) for name in change.knobs)


def _is_frozen(state: LearnState, knob: str) -> bool:
    return bool(frozen_names(state, knob))


def frozen_names(state: LearnState, knob: str) -> list[str]:
    """The names under which a person froze this knob: its own, groups around it, parts of it."""
    return sorted(name for name in state.frozen if _is_part(knob, name) or _is_part(name, knob))


def _is_meant(change: Change, setting: KnobsSetting) -> bool:
    if setting.changes:
        return change.id in setting.changes
    return any(_is_any(knob, setting.knobs) for knob in change.knobs)


def _is_any(knob: str, names: tuple[str, ...]) -> bool:
    """True if a knob is one of these, in one or around one; no names mean all knobs."""
    return not names or any(_is_part(knob, name) or _is_part(name, knob) for name in names)


def _is_part(knob: str, name: str) -> bool:
    """True for a knob and for what is in a group or mapping of that name."""
    return knob == name or knob.startswith(f"{name}.")


def own_and_groups(knob: str) -> list[str]:
    """A knob's name and those of the groups and mappings around it, the widest first."""
    parts = knob.split(".")
    return [".".join(parts[: at + 1]) for at in range(len(parts))]
