"""What teachers learn from, and how they choose: by replay on a small grid.

Every move is tried on a few sessions, the better ones on more, then the best together. Mostly
nothing is to be gained, and nothing is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hotset.learn.gate import SessionPair
from hotset.nouns.knobs import Knobs
from hotset.replay.trials import TeachingSession, Trials, split_sessions
from hotset.store.port import Store

Values = dict[str, Any]
"""Knobs by dotted name."""

Logged = TypeVar("Logged")

FEWEST = 6
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
_SPREADS = 0.75  # root mean squares of earlier log ratios, that a later one counts at most


@dataclass(frozen=True, slots=True)
class Quality:
    """A figure beside the cost, for people."""

    name: str
    read: Callable[[float], float]
    """The figure from a session's loss."""


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
    quality: Quality | None = None
    """What it makes better, where that is not the cost."""


@dataclass(frozen=True, slots=True)
class TeachingMaterial:
    """What teachers learn from."""

    sessions: tuple[TeachingSession, ...]
    """The oldest first."""
    trials: Trials
    store: Store | None = None
    share: float = 1 / 3
    """Of the sessions and logs, the earlier ones, that changes are chosen on: choosing needs fewer
    than being sure."""

    def earlier(self, logged: Sequence[Logged]) -> Sequence[Logged]:
        """Of what a store logged, in order of time, the part to choose on."""
        return logged[: round(len(logged) * self.share)]

    def later(self, logged: Sequence[Logged]) -> Sequence[Logged]:
        return logged[round(len(logged) * self.share) :]

    @property
    def older(self) -> tuple[TeachingSession, ...]:
        return split_sessions(self.sessions, self.share)[0]

    @property
    def newer(self) -> tuple[TeachingSession, ...]:
        return split_sessions(self.sessions, self.share)[1]


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
        faults = [
            sum(each.faults_before for each in pairs),
            sum(each.faults_after for each in pairs),
        ]
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
class ChosenMoves:
    """Moves that do best together on earlier sessions."""

    knobs: Values
    gain: Gain
    sessions: int


def choose(
    material: TeachingMaterial, knobs: Knobs, moves: Sequence[Values], *, beside: float = 0.0
) -> ChosenMoves | None:
    """The best of these moves, then those that add to it; None if nothing is gained for sure.
    `beside`: what a fault costs beside its tokens."""
    older, trials = material.older, material.trials
    if len(older) < FEWEST or not moves:
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
    best: ChosenMoves | None = None
    for values in left[:_TOGETHER]:
        if best is not None and values.keys() & best.knobs.keys():
            continue
        together = values if best is None else {**best.knobs, **values}
        found = gain(together, older)
        if found.score > (best.gain.score if best else 0.0) + _LEAST_GAIN:
            best = ChosenMoves(together, found, len(older))
    return best


def _spread_out(sessions: Sequence[TeachingSession], many: int) -> list[TeachingSession]:
    """So many of the sessions, at even distances in time."""
    return [sessions[round((at + 0.5) * len(sessions) / many - 0.5)] for at in range(many)]
