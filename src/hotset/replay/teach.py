"""Teachers: each proposes few changes of knobs from a project's earlier sessions, and later
sessions decide on them."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from msgspec.structs import replace

from hotset.learn.events import Change, GateVerdict, Measured, change_id
from hotset.learn.gate import ALPHA, LEAST_SESSIONS, SessionPair, describe_measured, gate
from hotset.learn.state import (
    EMPTY,
    LearnState,
    explored_changes,
    is_taken_back,
    own_and_groups,
    rolled_back_at,
)
from hotset.nouns.knobs import Knobs
from hotset.replay.teach_memory import TOLD, RecallTeacher, TellingTeacher, told_pairs
from hotset.replay.teach_window import LimitsTeacher, MovesTeacher, line_moves, window_moves
from hotset.replay.teaching import Gain, Proposal, Quality, TeachingMaterial
from hotset.replay.trials import TeachingTimeUp

SAFE_ALPHA = 0.05
"""The chance that a change passes which only shows more and gains nothing."""

_FEW = 12  # earlier sessions that tell on which scale a change counts
_SCALE = 0.1  # where none does


class Teacher(Protocol):
    """Proposes from earlier sessions, and compares on later ones."""

    def propose(self, material: TeachingMaterial, knobs: Knobs) -> Iterable[Proposal]: ...

    def compare(
        self, material: TeachingMaterial, before: Knobs, after: Knobs, proposal: Proposal
    ) -> Sequence[SessionPair]: ...


@dataclass(frozen=True, slots=True)
class TaughtChange:
    """A proposed change, and what later sessions say of it."""

    change: Change
    verdict: GateVerdict

    @property
    def sentence(self) -> str:
        measured = self.verdict.measured
        told = f"{describe_measured(measured)}; " if measured is not None else ""
        return f"{self.change.why}; {told}{self.verdict.why}"


def teach(
    material: TeachingMaterial,
    knobs: Knobs,
    *,
    teachers: Mapping[str, Teacher] | None = None,
    pinned: Container[str] = (),
    state: LearnState = EMPTY,
) -> Iterator[TaughtChange]:
    """The lessons of every teacher in turn; one that passes holds for those after it. `pinned` are
    knobs that a person set; what a person took back by `state` is not proposed, and what was rolled
    back waits for enough later sessions, and is compared on these only. Ends early when the time of
    `material.trials` is up."""
    for name, teacher in (TEACHERS if teachers is None else teachers).items():
        try:
            for proposal in teacher.propose(material, knobs):
                is_set = any(
                    each in pinned for knob in proposal.knobs for each in own_and_groups(knob)
                )
                if is_set or is_taken_back(state, proposal.knobs):
                    continue
                after = knobs.with_changes(proposal.knobs)
                since = rolled_back_at(state, proposal.knobs)
                pairs = [
                    pair
                    for pair in teacher.compare(material, knobs, after, proposal)
                    if pair.time > since or not since
                ]
                if since and sum(pair.is_touched for pair in pairs) < LEAST_SESSIONS:
                    continue  # it stays "rolled back", with the reason
                lesson = _lesson(name, proposal, knobs, pairs)
                if lesson.verdict.passed:
                    knobs = after
                yield lesson
        except TeachingTimeUp:
            return


def _lesson(
    name: str, proposal: Proposal, knobs: Knobs, pairs: Sequence[SessionPair]
) -> TaughtChange:
    change = Change(
        id=change_id(proposal.knobs, name),
        knobs=proposal.knobs,
        before={each: knobs.value(each) for each in proposal.knobs},
        by=name,
        why=proposal.why,
        evidence=dict(proposal.evidence),
        is_safe=proposal.is_safe,
    )
    return TaughtChange(change, _verdict(change, pairs, proposal.scale, proposal.quality))


def _verdict(
    change: Change, pairs: Sequence[SessionPair], scale: float, quality: Quality | None = None
) -> GateVerdict:
    touched = [pair for pair in pairs if pair.is_touched]
    alpha = SAFE_ALPHA if change.is_safe else ALPHA
    counts = f" of {quality.name}" if quality is not None else ""
    counts = " with faults at three times their tokens" if change.is_safe else counts
    verdict = gate(touched, change.id, alpha=alpha, most_gain=scale, counts=counts)
    return replace(verdict, measured=_measured(pairs, touched, quality))


def _measured(
    pairs: Sequence[SessionPair], touched: Sequence[SessionPair], quality: Quality | None
) -> Measured:
    count = Measured(len(pairs), len(touched), 0.0, 0.0)
    if quality is not None:
        many = max(1, len(touched))
        return replace(
            count,
            figure=quality.name,
            before=round(math.fsum(quality.read(pair.before) for pair in touched) / many, 4),
            after=round(math.fsum(quality.read(pair.after) for pair in touched) / many, 4),
        )
    return replace(
        count,
        before=round(math.fsum(pair.cost_before for pair in touched), 2),
        after=round(math.fsum(pair.cost_after for pair in touched), 2),
        replies=sum(pair.replies for pair in touched),
        faults_before=sum(pair.faults_before for pair in touched),
        faults_after=sum(pair.faults_after for pair in touched),
    )


def gate_explored(
    material: TeachingMaterial, knobs: Knobs, state: LearnState
) -> Iterator[TaughtChange]:
    """What exploring sessions settled on, replayed on the sessions that came after it was proposed;
    it waits until there are enough. What no replay shows is passed on to a trial. Ends early when
    the time of `material.trials` is up."""
    for change, proposed in explored_changes(state):
        since = max(proposed, rolled_back_at(state, change.knobs))
        if is_taken_back(state, change.knobs):
            continue
        try:
            verdict = _judge_explored(material, knobs, change, since)
        except TeachingTimeUp:
            return
        if verdict is not None:
            yield TaughtChange(change, verdict)


def _judge_explored(
    material: TeachingMaterial, knobs: Knobs, change: Change, since: float
) -> GateVerdict | None:
    """None: more sessions are needed."""
    trials, after = material.trials, knobs.with_changes(change.knobs)
    later = [session for session in material.sessions if session.time > since]
    if len(later) < LEAST_SESSIONS:
        return None
    pairs = trials.pairs(later, knobs, after)
    if (touched := sum(pair.is_touched for pair in pairs)) >= LEAST_SESSIONS:
        earlier = [session for session in material.sessions if session.time <= since]
        return _verdict(change, pairs, _scale(trials.pairs(earlier[-_FEW:], knobs, after)))
    if touched:
        return None
    every = told_pairs(material, knobs, after)
    told = [pair for pair in every if pair.time > since]
    if sum(pair.is_touched for pair in told) >= LEAST_SESSIONS:
        return _verdict(change, told, _scale([pair for pair in every if pair.time <= since]), TOLD)
    why = (
        f"passed on: no replay of {len(later)} later sessions shows it, so a trial has to show"
        " that it is cheaper and no worse"
    )
    return GateVerdict(change.id, True, 0.0, 0.0, 0.0, 0, why=why, since=since)


def _scale(earlier: Sequence[SessionPair]) -> float:
    is_known = any(pair.is_touched for pair in earlier)
    return Gain.of(earlier).scale if is_known else _SCALE


TEACHERS: Mapping[str, Teacher] = {
    "limits": LimitsTeacher(),
    "window": MovesTeacher(window_moves),
    "lines": MovesTeacher(line_moves),
    "recall": RecallTeacher(),
    "telling": TellingTeacher(),
}
