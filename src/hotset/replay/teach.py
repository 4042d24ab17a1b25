"""Teachers: each proposes few changes of knobs from a project's earlier sessions, and later
sessions decide on them."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hotset.learn.events import Change, GateVerdict, change_id
from hotset.learn.gate import ALPHA, SessionPair, gate
from hotset.nouns.knobs import Knobs
from hotset.replay.teach_memory import RecallTeacher, TellingTeacher
from hotset.replay.teach_window import LimitsTeacher, MovesTeacher, line_moves, window_moves
from hotset.replay.teaching import Proposal, TeachingMaterial
from hotset.replay.trials import TeachingTimeUp

SAFE_ALPHA = 0.05
"""The chance that a change passes which only shows more and gains nothing."""


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
        found = self.verdict
        saved, low, high = (100 * (1 - math.exp(-each)) for each in _bounds(found))
        what = "it saved" if found.passed else "not adopted, it would have saved"
        return (
            f"{self.change.why}; on {found.sessions} later sessions {what} "
            f"{saved:.1f} % [{low:.1f}, {high:.1f}]"
        )


def teach(
    material: TeachingMaterial,
    knobs: Knobs,
    *,
    teachers: Mapping[str, Teacher] | None = None,
    pinned: Container[str] = (),
) -> Iterator[TaughtChange]:
    """The lessons of every teacher in turn; one that passes holds for those after it. `pinned` are
    knobs that a person set. Ends early when the time of `material.trials` is up."""
    for name, teacher in (TEACHERS if teachers is None else teachers).items():
        try:
            for proposal in teacher.propose(material, knobs):
                if any(each in pinned for each in proposal.knobs):
                    continue
                after = knobs.with_changes(proposal.knobs)
                pairs = teacher.compare(material, knobs, after, proposal)
                lesson = _lesson(name, proposal, knobs, pairs)
                if lesson.verdict.passed:
                    knobs = after
                yield lesson
        except TeachingTimeUp:
            return


def _lesson(
    name: str, proposal: Proposal, knobs: Knobs, pairs: Sequence[SessionPair]
) -> TaughtChange:
    id = change_id(proposal.knobs, name)
    change = Change(
        id=id,
        knobs=proposal.knobs,
        before={each: knobs.value(each) for each in proposal.knobs},
        by=name,
        why=proposal.why,
        evidence=dict(proposal.evidence),
        is_safe=proposal.is_safe,
    )
    touched = [
        pair
        for pair in pairs
        if (pair.before, pair.faults_before) != (pair.after, pair.faults_after)
    ]
    alpha = SAFE_ALPHA if proposal.is_safe else ALPHA
    return TaughtChange(change, gate(touched, id, alpha=alpha, most_gain=proposal.scale))


def _bounds(found: GateVerdict) -> tuple[float, float, float]:
    return found.gain, found.low, found.high


TEACHERS: Mapping[str, Teacher] = {
    "limits": LimitsTeacher(),
    "window": MovesTeacher(window_moves),
    "lines": MovesTeacher(line_moves),
    "recall": RecallTeacher(),
    "telling": TellingTeacher(),
}
