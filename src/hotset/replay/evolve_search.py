"""A search over knobs of mixed types: a population with crossover and mutation, and successive
halving over sessions. What a point is worth comes from the caller, chance from a seed: the same
seed and the same worths give the same search, so one that was cut short goes on where it was as
soon as its worths are known again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import fmean, stdev
from typing import Any

Point = Mapping[str, Any]
"""The knobs that differ from those in force, by name; empty for those in force."""

_DIGITS = 3  # of a number: more would say nothing, and two points would hardly ever be the same
_STEP = 0.25  # of a gene's range, in the mean: how far a mutation goes
_FRESH = 0.15  # of mutations that draw a value anew
_PARENTS = 12
_BROOD = 12
_TOURNAMENT = 3
_ALONE = 0.3  # of children that have one parent only
_PROMOTED = 1 / 3  # of the points of a rung that go on to the next
_DOUBT, _DOUBT_OF_EACH = 1.0, 0.3
"""Standard errors that a gain has to exceed, and how many more for each changed knob: the more are
chosen, the more of the gain is chance. Chosen on the later halves of four sets (docs/evolve.md)."""

_PULL = 0.0002
"""Worth that each changed knob has to bring: what moves nothing is left alone."""


@dataclass(frozen=True, slots=True)
class Gene:
    """One knob: its value in force, and the values that it may take."""

    name: str
    start: Any
    part: str
    """What it belongs to: encode, store, retrieve, manage, forms or eviction."""
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    """Steps multiply instead of add."""
    choices: tuple[Any, ...] = ()
    """Of a category or a switch, instead of a range."""

    @property
    def is_whole(self) -> bool:
        return isinstance(self.start, int)

    def draw(self, rng: Random) -> Any:
        """Any of its values."""
        if self.choices:
            return rng.choice(self.choices)
        return self._at(rng.random())

    def move(self, value: Any, rng: Random) -> Any:
        """Another value, mostly a near one."""
        if self.choices:
            return rng.choice([each for each in self.choices if each != value] or [value])
        if rng.random() < _FRESH:
            return self.draw(rng)
        return self._at(self._place(value) + rng.gauss(0.0, _STEP))

    def sides(self) -> list[Any]:
        """The values to try first: every other choice, or a step down and a step up."""
        if self.choices:
            return [each for each in self.choices if each != self.start]
        here = self._place(self.start)
        both = (self._at(here - _STEP), self._at(here + _STEP))
        return [value for value in dict.fromkeys(both) if value != self.start]

    def _place(self, value: float) -> float:
        """Where a value is in the range, from 0 to 1."""
        low, high, at = (self._scaled(each) for each in (self.low, self.high, value))
        return min(1.0, max(0.0, (at - low) / (high - low)))

    def _at(self, place: float) -> float | int:
        low, high = self._scaled(self.low), self._scaled(self.high)
        scaled = low + min(1.0, max(0.0, place)) * (high - low)
        value = float(f"{math.exp(scaled) if self.log else scaled:.{_DIGITS}g}")
        value = min(self.high, max(self.low, value))
        return round(value) if self.is_whole else value

    def _scaled(self, value: float) -> float:
        return math.log(value) if self.log else float(value)


@dataclass(frozen=True, slots=True)
class Trial:
    """A point that was tried."""

    point: Point
    sessions: int
    """How many of the sessions it was tried on."""
    gain: float
    """The mean difference to the knobs in force on these."""
    error: float
    """The standard error of that mean."""

    @property
    def worth(self) -> float:
        """What it gains for all that is known: of two equal gains the surer one, of two equally
        sure the one that changes less."""
        doubt = _DOUBT * (1 + _DOUBT_OF_EACH * len(self.point)) * self.error
        return self.gain - doubt - _PULL * len(self.point)


@dataclass(slots=True)
class SearchResult:
    trials: dict[str, Trial] = field(default_factory=dict)
    """By the point's key."""
    is_complete: bool = True
    """False if time ended it before its budget."""

    def whole(self, sessions: int) -> list[Trial]:
        """What was tried on every session, the best first."""
        every = [each for each in self.trials.values() if each.sessions == sessions]
        return sorted(every, key=lambda each: (-round(each.worth, 9), key_of(each.point)))


Judge = Callable[[Point, Sequence[int]], Sequence[float]]
"""What a point is worth on each of these sessions, by their numbers."""


def key_of(point: Point) -> str:
    return json.dumps(point, sort_keys=True, separators=(",", ":"))


def rungs_of(sessions: int) -> tuple[int, ...]:
    """How many sessions a point is tried on, step by step."""
    steps = (max(3, sessions // 8), max(3, sessions // 3), sessions)
    return tuple(sorted({min(sessions, step) for step in steps}))


def search(
    genes: Sequence[Gene],
    judge: Judge,
    sessions: Sequence[int],
    *,
    seed: int,
    budget: int,
    is_late: Callable[[], bool] = lambda: False,
    step: Callable[[], None] = lambda: None,
) -> SearchResult:
    """Try `budget` points. `step` is called after each; `is_late` ends the search early.

    It begins with the steps of each knob alone; each further generation crosses and mutates the
    best. A point goes on to more sessions only among the best third of its generation.
    """
    rng = Random(seed)  # noqa: S311 - no secret
    order = list(sessions)
    rng.shuffle(order)
    rungs = rungs_of(len(order))
    run = _Run(judge, order, SearchResult())
    parents: list[Point] = [{}]
    brood: Iterator[Point] = iter([{gene.name: value} for gene in genes for value in gene.sides()])
    tried = 0
    known: set[str] = {key_of({})}
    while tried < budget:
        children = _take_new(brood, known, budget - tried)
        if not children:
            return run.result
        for point in children:
            run.try_on(point, rungs[0])
            tried += 1
            step()
            if is_late():
                run.result.is_complete = False
                return run.result
        if not run.promote(children, rungs, is_late):
            return run.result
        best = run.result.whole(len(order))[:_PARENTS]
        parents = [each.point for each in best] or parents
        brood = _children(genes, [*parents, {}], rng)
    return run.result


@dataclass(slots=True)
class _Run:
    judge: Judge
    order: Sequence[int]
    result: SearchResult

    def try_on(self, point: Point, many: int) -> Trial:
        trial = measure_gain(point, self.judge, self.order[:many])
        self.result.trials[key_of(point)] = trial
        return trial

    def promote(
        self, points: Sequence[Point], rungs: Sequence[int], is_late: Callable[[], bool]
    ) -> bool:
        """Try the best of these on more sessions; only what gains something. False if it is
        late."""
        left = [self.result.trials[key_of(point)] for point in points]
        for many in rungs[1:]:
            ranked = sorted(left, key=lambda each: (-each.worth, key_of(each.point)))
            going = ranked[: max(2, math.ceil(len(ranked) * _PROMOTED))]
            left = []
            for each in going:
                if is_late():
                    self.result.is_complete = False
                    return False
                if each.gain > 0:
                    left.append(self.try_on(each.point, many))
        return True


def measure_gain(point: Point, judge: Judge, sessions: Sequence[int]) -> Trial:
    """The gain of a point on these sessions."""
    pairs = zip(judge(point, sessions), judge({}, sessions), strict=True)
    gains = [now - before for now, before in pairs]
    error = stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return Trial(point, len(sessions), fmean(gains), error)


def _take_new(brood: Iterator[Point], known: set[str], most: int) -> list[Point]:
    """The next points that were not tried; the steps of single knobs all at once."""
    found: list[Point] = []
    for point in brood:
        key = key_of(point)
        if key not in known:
            known.add(key)
            found.append(point)
        if len(found) >= most:
            break
    return found


def _children(
    genes: Sequence[Gene], parents: Sequence[Point], rng: Random, most: int = _BROOD
) -> Iterator[Point]:
    """Children of these parents, the best first; a few more than are wanted, for the twins."""
    made = 0
    for _ in range(20 * most):
        mother, father = (_choose(parents, rng) for _ in range(2))
        child = dict(mother) if rng.random() < _ALONE else _cross(genes, mother, father, rng)
        child = _mutate(genes, child, rng)
        if child:
            yield child
            made += 1
        if made >= 2 * most:
            return


def _choose(parents: Sequence[Point], rng: Random) -> Point:
    """A tournament: the best of a few by chance."""
    return parents[min(rng.randrange(len(parents)) for _ in range(_TOURNAMENT))]


def _cross(genes: Sequence[Gene], mother: Point, father: Point, rng: Random) -> dict[str, Any]:
    child: dict[str, Any] = {}
    for gene in genes:
        value = (mother if rng.random() < 0.5 else father).get(gene.name, gene.start)
        if value != gene.start:
            child[gene.name] = value
    return child


def _mutate(genes: Sequence[Gene], point: dict[str, Any], rng: Random) -> dict[str, Any]:
    """One or two knobs moved; one of those that were moved may go back."""
    child = dict(point)
    for gene in rng.sample(list(genes), min(len(genes), rng.choice((1, 1, 2)))):
        value = gene.move(child.get(gene.name, gene.start), rng)
        child.pop(gene.name, None)
        if value != gene.start:
            child[gene.name] = value
    if len(child) > 1 and rng.random() < _FRESH:
        child.pop(rng.choice(sorted(child)))
    return child


def simplify(trial: Trial, judge: Judge, sessions: Sequence[int]) -> Trial:
    """The point without the knobs that bring nothing on these sessions."""
    best = trial
    for name in sorted(trial.point):
        point = {each: value for each, value in best.point.items() if each != name}
        less = measure_gain(point, judge, sessions)
        if less.worth >= best.worth:
            best = less
    return best


def front(trials: Sequence[tuple[float, float]]) -> list[int]:
    """The Pareto front of points (task score, share spent): numbers of those that no other beats in
    both, cheapest first."""
    order = sorted(range(len(trials)), key=lambda at: (trials[at][1], -trials[at][0]))
    found: list[int] = []
    best = -math.inf
    for at in order:
        if trials[at][0] > best:
            best = trials[at][0]
            found.append(at)
    return found
