"""Teachers: each proposes few changes of knobs from a project's earlier sessions, and later sessions
decide on them.

A change is chosen by replay on a small grid: every move on a few sessions, the better half on twice
as many, then the best ones together. Mostly nothing is to be gained, and nothing is proposed.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from hotset.errors import HotsetError
from hotset.learn.events import Change, GateVerdict, change_id
from hotset.learn.gate import ALPHA, SessionPair, gate
from hotset.nouns.knobs import Knobs, Limit
from hotset.nouns.page import PageId
from hotset.replay.trials import (
    FormCounts,
    OutOfTime,
    TeachingSession,
    Trials,
    split_sessions,
)
from hotset.store.port import Store

Values = dict[str, Any]
"""Knobs by dotted name."""

_FEWEST = 6
"""Sessions from which something is chosen: of fewer, each is an exception."""
_RUNGS = (0.25, 0.5, 1.0)
"""Of the earlier sessions, that each round of halving replays."""
_FEWEST_ON_RUNG = 6
_SURVIVORS = 0.4  # of the moves, from one round to the next
_LEAST_SURVIVORS = 5
_TOGETHER = 6  # moves that are tried together
_LEAST_GAIN = 0.001  # of the cost, that a further move must add for it to be worth a sentence
_SURE = 1.0  # standard errors that a choice must be above nothing
_MOST_FAULTS = 1.15  # on earlier sessions; the gate allows 1.2 on later ones
_SCALES = (0.005, 0.25)
_SAFE_ALPHA = 0.05
"""The chance that a change passes which only shows more and gains nothing."""
_SPREADS = 0.75  # root mean squares of earlier log ratios, that a later one counts at most


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that a teacher proposes."""

    knobs: Values
    why: str
    """What is changed, and from which evidence."""
    evidence: Mapping[str, float] = field(default_factory=dict)
    is_safe: bool = False
    scale: float = 0.25
    """The most that a session's log ratio counts in the gate."""


@dataclass(frozen=True, slots=True)
class Material:
    """What teachers learn from."""

    sessions: tuple[TeachingSession, ...]
    """The oldest first."""
    trials: Trials
    store: Store | None = None
    share: float = 1 / 3
    """Of the sessions and logs, the earlier ones, that changes are chosen on: choosing needs fewer
    than being sure."""

    @property
    def older(self) -> tuple[TeachingSession, ...]:
        return split_sessions(self.sessions, self.share)[0]

    @property
    def newer(self) -> tuple[TeachingSession, ...]:
        return split_sessions(self.sessions, self.share)[1]


class Teacher(Protocol):
    """Proposes from earlier sessions, and compares on later ones."""

    def propose(self, material: Material, knobs: Knobs) -> Iterable[Proposal]: ...

    def compare(
        self, material: Material, before: Knobs, after: Knobs, proposal: Proposal
    ) -> Sequence[SessionPair]: ...


@dataclass(frozen=True, slots=True)
class Lesson:
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
    material: Material,
    knobs: Knobs,
    *,
    teachers: Mapping[str, Teacher] | None = None,
    pinned: Container[str] = (),
) -> Iterator[Lesson]:
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
        except OutOfTime:
            return


def _lesson(name: str, proposal: Proposal, knobs: Knobs, pairs: Sequence[SessionPair]) -> Lesson:
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
    alpha = _SAFE_ALPHA if proposal.is_safe else ALPHA
    return Lesson(change, gate(touched, id, alpha=alpha, most_gain=proposal.scale))


def _bounds(found: GateVerdict) -> tuple[float, float, float]:
    return found.gain, found.low, found.high


@dataclass(frozen=True, slots=True)
class Gain:
    """What a change gains on some sessions: the mean log ratio of costs."""

    mean: float
    error: float
    """Its standard error."""
    faults: float
    """Faults after, as a multiple of those before."""
    scale: float

    @classmethod
    def of(cls, pairs: Sequence[SessionPair]) -> Gain:
        gains = [math.log(pair.before / pair.after) for pair in pairs]
        moved = [each for each in gains if each] or [0.0]
        many = max(1, len(gains))
        mean = sum(gains) / many
        spread = sum((each - mean) ** 2 for each in gains) / max(1, many - 1)
        faults = [sum(each.faults_before for each in pairs), sum(each.faults_after for each in pairs)]
        rms = math.sqrt(sum(each * each for each in moved) / len(moved))
        return cls(
            mean,
            math.sqrt(spread / many),
            (faults[1] + 1) / (faults[0] + 1),
            min(_SCALES[1], max(_SCALES[0], _SPREADS * rms)),
        )

    @property
    def score(self) -> float:
        """How much is gained for sure; nothing where too much is asked back."""
        return self.mean - _SURE * self.error if self.faults <= _MOST_FAULTS else -math.inf

    @property
    def percent(self) -> float:
        return 100 * (1 - math.exp(-self.mean))


@dataclass(frozen=True, slots=True)
class Choice:
    """Moves that do best together on earlier sessions."""

    knobs: Values
    gain: Gain
    sessions: int


def choose(
    material: Material, knobs: Knobs, moves: Sequence[Values], *, beside: float = 0.0
) -> Choice | None:
    """The best of these moves, then those that add to it; None if nothing is gained for sure.
    `beside`: what a fault costs beside its tokens."""
    older, trials = material.older, material.trials
    if len(older) < _FEWEST or not moves:
        return None

    def gain(values: Values, sessions: Sequence[TeachingSession]) -> Gain:
        after = knobs.with_changes(values)
        return Gain.of(trials.pairs(sessions, knobs, after, beside=beside))

    left = list(moves)
    rungs = sorted({min(len(older), max(_FEWEST_ON_RUNG, round(r * len(older)))) for r in _RUNGS})
    for rung in rungs:
        some = _spread_out(older, rung)
        scored = [(gain(values, some).score, -at, values) for at, values in enumerate(left)]
        ranked = sorted(scored, key=lambda one: one[:2], reverse=True)
        if rung < len(older):
            ranked = ranked[: max(_LEAST_SURVIVORS, math.ceil(_SURVIVORS * len(ranked)))]
        left = [values for score, _, values in ranked if rung < len(older) or score > 0]
    best: Choice | None = None
    for values in left[:_TOGETHER]:
        if best is not None and values.keys() & best.knobs.keys():
            continue
        together = values if best is None else {**best.knobs, **values}
        found = gain(together, older)
        if found.score > (best.gain.score if best else 0.0) + _LEAST_GAIN:
            best = Choice(together, found, len(older))
    return best


def _spread_out(sessions: Sequence[TeachingSession], many: int) -> list[TeachingSession]:
    """So many of the sessions, at even distances in time."""
    return [sessions[round((at + 0.5) * len(sessions) / many - 0.5)] for at in range(many)]


_BESIDE = 2.0
"""What a fault costs beside its tokens, as a multiple of these, where a change only shows more: a
call that the user waits for, and that the model may not think of."""
_MOST_DEARER = 0.005  # in tokens alone, for fewer faults


class ByReplay:
    """A teacher whose changes show in what recorded sessions would have cost."""

    def compare(
        self, material: Material, before: Knobs, after: Knobs, proposal: Proposal
    ) -> Sequence[SessionPair]:
        beside = _BESIDE if proposal.is_safe else 0.0
        return material.trials.pairs(material.newer, before, after, beside=beside)


_LONGER, _SHORTER = (1.5, 2.0, 4.0), (0.7, 0.5, 0.25)
_MANY_BACK, _FEW_BACK = 0.2, 0.08
"""Of the results that were shown short, how many are asked back for longer, or shorter, forms to be
tried; between the two, both."""
_FEWEST_RESULTS = 5
_MOST_KEYS = 8
_LEAST_OVER = 600  # characters: below, an excerpt says no more than its frame


class LimitsTeacher(ByReplay):
    """How much is shown of results, by tool and by a file's ending: what is asked back often is
    shown longer, what is not, shorter."""

    def propose(self, material: Material, knobs: Knobs) -> Iterator[Proposal]:
        older = material.older
        if len(older) < _FEWEST:
            return
        forms = material.trials.forms(older, knobs)
        live = asked_back_live(material.store) if material.store is not None else {}
        keys = [
            key
            for key, counts in sorted(forms.items(), key=lambda one: (-one[1].short, one[0]))
            if counts.short >= _FEWEST_RESULTS and not key.startswith("limits.")
        ][:_MOST_KEYS]
        limits = {key: current_limit(key, knobs, older) for key in keys}
        for factors, is_safe in ((_LONGER, True), (_SHORTER, False)):
            moves = [
                {key: _as_value(limits[key].times(factor))}
                for key in keys
                for factor in factors
                if _is_worth_trying(forms[key], is_longer=is_safe, live=live.get(key, 0))
                and limits[key].over * factor >= _LEAST_OVER
            ]
            best = choose(material, knobs, moves, beside=_BESIDE if is_safe else 0.0)
            if best is not None and _cost_gain(material, knobs, best) > -_MOST_DEARER:
                yield self._proposal(best, limits, forms, is_safe=is_safe)

    def _proposal(
        self,
        best: Choice,
        limits: Mapping[str, Limit],
        forms: Mapping[str, FormCounts],
        *,
        is_safe: bool,
    ) -> Proposal:
        said = [
            f"{name_results(key)} are shown whole up to {value['over']:,} characters instead of "
            f"{limits[key].over:,}: {forms[key].back} of {forms[key].short} shown short were "
            f"asked back"
            for key, value in best.knobs.items()
        ]
        counts = sum((forms[key] for key in best.knobs), FormCounts())
        return Proposal(
            best.knobs,
            "; ".join(said),
            {"short": counts.short, "back": counts.back, "whole": counts.whole}
            | _earlier(best),
            is_safe,
            best.gain.scale,
        )


def _cost_gain(material: Material, knobs: Knobs, best: Choice) -> float:
    after = knobs.with_changes(best.knobs)
    return Gain.of(material.trials.pairs(material.older, knobs, after)).mean


def _is_worth_trying(counts: FormCounts, *, is_longer: bool, live: int) -> bool:
    rate = max(counts.rate, (counts.back + live) / max(1, counts.short + live))
    return rate > _FEW_BACK if is_longer else rate < _MANY_BACK


def _as_value(limit: Limit) -> Values:
    return {"over": limit.over, "room": limit.room}


def current_limit(key: str, knobs: Knobs, sessions: Iterable[TeachingSession]) -> Limit:
    """The limit that most results with this key have, for a window of 128,000 tokens or more."""
    table, _, name = key.partition(".")
    own = {"files": knobs.files, "tools": knobs.tools}.get(table, {}).get(name)
    if own is not None:
        return own
    found: dict[Limit, int] = {}
    for session in sessions:
        for result in session.results.values():
            if key in result.keys:
                tool = "" if table == "tools" else result.tool
                held = knobs.tools.get(tool) or knobs.limits.get(result.kind) or knobs.limit
                found[held] = found.get(held, 0) + 1
    return max(found, key=lambda each: (found[each], each.over), default=knobs.limit)


def name_results(key: str) -> str:
    table, _, name = key.partition(".")
    return f".{name} files" if table == "files" else f"{name} results"


def _earlier(best: Choice) -> dict[str, float]:
    return {"earlier_sessions": best.sessions, "earlier_gain": round(best.gain.mean, 5)}


def asked_back_live(store: Store) -> dict[str, int]:
    """How often results were asked back in sessions that went through hotset, by the knob of their
    limit."""
    ids = [
        id
        for event in store.events(name="Retrieved")
        if event.detail.get("refault")
        for id in str(event.detail.get("ids", "")).split()
    ]
    found: dict[str, int] = {}
    for id in ids:
        with suppress(HotsetError):
            key = f"tools.{store.page(PageId(id)).tool}"
            found[key] = found.get(key, 0) + 1
    return found


_FACTORS: Mapping[str, tuple[float, ...]] = {
    "keep": (0.5, 0.75, 1.5),
    "regret": (0.4, 0.7, 1.5),
    "patience": (0.5, 2.0),
    "rest": (0.5, 2.0),
    "finished": (0.0, 3.0),
    "written": (0.25, 0.5, 2.0),
    "entry": (0.5, 2.0),
    "index": (0.0, 2.0),
    "forms.again": (0.5, 2.0),
    "forms.logs_share": (0.5, 1.5),
}
"""Of each knob's value now."""
_OTHERS: Sequence[Values] = ({"low": 0.1}, {"early": False}, {"early": True})


class WindowTeacher(ByReplay):
    """When steps leave, and what stays of them."""

    def propose(self, material: Material, knobs: Knobs) -> Iterator[Proposal]:
        best = choose(material, knobs, list(_window_moves(knobs)))
        if best is None:
            return
        changed = ", ".join(
            f"`{name}` is {_number(value)} instead of {_number(knobs.value(name))}"
            for name, value in best.knobs.items()
        )
        why = f"{changed}: {best.sessions} earlier sessions cost {best.gain.percent:.1f} % less"
        yield Proposal(best.knobs, why, _earlier(best), scale=best.gain.scale)


def _window_moves(knobs: Knobs) -> Iterator[Values]:
    for name, factors in _FACTORS.items():
        now = knobs.value(name)
        for factor in factors:
            new = max(1, round(now * factor)) if isinstance(now, int) and now else now * factor
            if name == "index" and not factor:
                new = 0
            if new != now:
                yield {name: new}
    for values in _OTHERS:
        if any(knobs.value(name) != value for name, value in values.items()):
            yield dict(values)


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


TEACHERS: Mapping[str, Teacher] = {
    "limits": LimitsTeacher(),
    "window": WindowTeacher(),
}
