"""Evolution of a project's knobs: searched on the earlier half of its sessions, told on the later
half, refused where sessions with shuffled relevance gain as much.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import msgspec
from msgspec import Struct, structs

from hotset.files.private_folder import private_folder
from hotset.files.write import write_atomically
from hotset.learn.events import Change, GateVerdict, change_id
from hotset.learn.gate import MOST_FAULTS
from hotset.nouns.knobs import Knobs
from hotset.replay.conversation import RecordedConversation, RecordedSession
from hotset.replay.evolve_fitness import (
    EvolvedPart,
    FitnessWeights,
    SessionScore,
    WindowPart,
    knob_changes,
    rounded,
    window_genes,
)
from hotset.replay.evolve_history import HistoryPart, history_genes
from hotset.replay.evolve_recall import RecallPart, recall_genes
from hotset.replay.evolve_search import (
    Gene,
    Point,
    SearchResult,
    front,
    search,
    simplify,
)
from hotset.replay.report import Ruling, gather
from hotset.sources.memory.recall_signals import RecallLog
from hotset.typed import decode

FOLDER = "evolve"
"""In a project's data folder: every point that was measured, and the last result. It can be deleted
at any time."""

BY = "evolve"
LEAST_SESSIONS = 16
"""Half of them for the search, and half for the gate."""

MOST_SESSIONS = 120
"""The latest ones count."""

_RESULT = "result.json"
_POINTS = ".points.jsonl"
_KEPT = 8  # files of points: one for each part and version
_MOST_BYTES = 64 << 20  # of such a file; then it begins anew
_SHORTEST = 24  # calls: a shorter session hardly says anything about a window
_SHUFFLES = {"window": 1, "history": 5, "memory": 5}
_LEAST_LOSS = 0.01
_SURE = 2.326  # standard deviations: 1 in 100 changes that are no better would pass
_RELEVANT = 2.054  # 1 in 50 that gain no more than with shuffled relevance
_FEWEST = 8  # sessions held out
_WORSE_TASK = 0.005
"""What the task score may lose in the mean: success is a condition, and no price buys it."""


class FrontPoint(Struct, frozen=True, omit_defaults=True):
    """A configuration on the Pareto front of the earlier sessions."""

    task: float
    spent: float
    knobs: dict[str, Any] = {}
    """Against those in force; empty for these."""


class PartResult(Struct, frozen=True, omit_defaults=True):
    """What was found for one part."""

    part: str
    searched: int
    """Sessions that it was searched on."""
    held_out: int
    tried: int
    seconds: float
    is_complete: bool
    """False if time ended it."""
    why: str
    change: Change | None = None
    """The best that was found, gated or not."""
    verdict: GateVerdict | None = None
    before: SessionScore | None = None
    """On the sessions that were held out."""
    after: SessionScore | None = None
    front: tuple[FrontPoint, ...] = ()
    points: tuple[tuple[float, float], ...] = ()
    """Task score and share spent of everything that was tried on all sessions."""

    @property
    def passed(self) -> bool:
        return self.verdict is not None and self.verdict.passed


class EvolveResult(Struct, frozen=True):
    time: float
    seed: int
    weights: FitnessWeights
    parts: tuple[PartResult, ...]

    @property
    def changes(self) -> dict[str, PartResult]:
        """By the id of the change."""
        return {each.change.id: each for each in self.parts if each.change is not None}


@dataclass(slots=True)
class PointCache:
    """What points were worth on sessions, in memory and in a file that can be deleted at any time.
    A line that a killed process left half written is ignored."""

    file: Path | None = None
    known: dict[tuple[str, str], SessionScore] = field(default_factory=dict)
    measured: int = 0
    """How many were not known before."""

    @classmethod
    def open(cls, folder: Path, name: str) -> PointCache:
        file = private_folder(folder) / f"{name}{_POINTS}"
        cache = cls(file)
        with suppress(FileNotFoundError):
            if file.stat().st_size > _MOST_BYTES:
                file.unlink()
            for line in file.read_bytes().split(b"\n"):
                with suppress(msgspec.MsgspecError):
                    key, scores = decode(line, _CachedLine)
                    cache.known |= {(key, name): score for name, score in scores.items()}
        old = sorted(folder.glob(f"*{_POINTS}"), key=lambda each: -each.stat().st_mtime)
        for other in old[_KEPT:]:
            other.unlink(missing_ok=True)
        return cache

    def scores(
        self, part: EvolvedPart, knobs: Knobs, sessions: Iterable[int]
    ) -> list[SessionScore]:
        """Measured where they are not known."""
        key = sha256(msgspec.json.encode(knobs, order="deterministic")).hexdigest()[:20]
        names = part.sessions
        found: list[SessionScore] = []
        new: dict[str, SessionScore] = {}
        for session in sessions:
            score = self.known.get((key, names[session]))
            if score is None:
                score = new[names[session]] = part.judge(knobs, session)
                self.known[key, names[session]] = score
            found.append(score)
        if new:
            self.measured += len(new)
            self._append(key, new)
        return found

    def _append(self, key: str, scores: Mapping[str, SessionScore]) -> None:
        if self.file is not None:
            line = msgspec.json.encode((key, scores)) + b"\n"
            with self.file.open("ab") as file:
                file.write(line)


_CachedLine = tuple[str, dict[str, SessionScore]]


def evolved_parts(
    recorded: Iterable[RecordedSession],
    recalls: Sequence[RecallLog],
    knobs: Knobs,
    ruling: Ruling,
    *,
    held: Container[str] = (),
) -> list[EvolvedPart]:
    """The parts that these sessions and recalls can tell something about, quickest first. `held`:
    knobs that a person set or froze."""

    def free(genes: Sequence[Gene]) -> list[Gene]:
        return [gene for gene in genes if not any(name in held for name in _with_groups(gene.name))]

    sessions = _by_time(recorded, ruling)
    long = [each for each in sessions if sum(len(part.calls) for part in each) >= _SHORTEST]
    parts: list[EvolvedPart] = [
        RecallPart.of(recalls, free(recall_genes(knobs))),
        HistoryPart.of(sessions, free(history_genes(knobs))),
        WindowPart.of(long, ruling.rules, free(window_genes(knobs))),
    ]
    return [part for part in parts if part.genes and len(part.sessions) >= LEAST_SESSIONS]


def _with_groups(name: str) -> Iterator[str]:
    """A knob's name, and those of the groups that it is in."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _by_time(
    recorded: Iterable[RecordedSession], ruling: Ruling
) -> list[list[RecordedConversation]]:
    """Each session's stretches, the latest sessions of all sets, oldest first."""
    found: dict[tuple[str, int], list[RecordedConversation]] = {}
    own = (each for each in recorded if not each.is_subagent)
    for gathered in gather(own, ruling, everything=True):
        for number, stretch in gathered.counted:
            found.setdefault((gathered.set, number), []).append(stretch)
    sessions = sorted(found.values(), key=_began)
    return sessions[-MOST_SESSIONS:]


def _began(stretches: Sequence[RecordedConversation]) -> float:
    times = (line.time for each in stretches for line in each.lines if line.time)
    return next(times, 0.0)


@dataclass(frozen=True, slots=True)
class Evolution:
    """How a search is run."""

    knobs: Knobs
    """In force."""
    weights: FitnessWeights = field(default_factory=FitnessWeights)
    seed: int = 0
    budget: int = 400
    """Points of each part."""
    folder: Path | None = None
    """Where points are kept; None keeps them in memory alone."""
    clock: Callable[[], float] = time.monotonic
    step: Callable[[], None] = lambda: None

    def run(self, part: EvolvedPart, until: float = math.inf) -> PartResult:
        """Search the earlier half of the sessions until that time, and gate the best on the later
        half."""
        began = self.clock()
        many = len(part.sessions) // 2
        searched, held_out = range(many), range(many, len(part.sessions))
        name = f"{part.name}-{version('hotset')}"
        cache = PointCache() if self.folder is None else PointCache.open(self.folder, name)
        judged = _Judged(part, self, cache)
        result = search(
            part.genes,
            judged.fitness,
            searched,
            seed=self.seed,
            budget=self.budget,
            is_late=lambda: self.clock() >= until,
            step=self.step,
        )
        found = PartResult(
            part=part.name,
            searched=many,
            held_out=len(held_out),
            tried=len(result.trials),
            seconds=0.0,
            is_complete=result.is_complete,
            why="nothing better was found on the earlier sessions",
        )
        found = _with_front(found, judged, result, searched)
        best = next((each for each in result.whole(many) if each.worth > 0), None)
        if best is not None:
            best = simplify(best, judged.fitness, searched)
            found = judged.gated(found, best.point, held_out)
        return structs.replace(found, seconds=round(self.clock() - began, 1))


@dataclass(frozen=True, slots=True)
class _Judged:
    """A part under the weights of a search."""

    part: EvolvedPart
    evolution: Evolution
    cache: PointCache

    def fitness(self, point: Point, sessions: Sequence[int]) -> list[float]:
        fitness = self.evolution.weights.fitness
        return [fitness(score) for score in self.scores(point, sessions)]

    def scores(self, point: Point, sessions: Iterable[int]) -> list[SessionScore]:
        return self.cache.scores(self.part, self.knobs(point), sessions)

    def knobs(self, point: Point) -> Knobs:
        knobs = self.evolution.knobs
        return knobs.with_changes(knob_changes(point, knobs)) if point else knobs

    def gains(self, part: EvolvedPart, point: Point, sessions: Sequence[int]) -> list[float]:
        """For each session the logarithm of what is missing now by what is missing with the
        point."""
        fitness = self.evolution.weights.fitness
        best = self.evolution.weights.task + self.evolution.weights.tokens
        now, then = (
            [
                max(_LEAST_LOSS, best - fitness(score))
                for score in self.cache.scores(part, self.knobs(each), sessions)
            ]
            for each in ({}, point)
        )
        return [math.log(before / after) for before, after in zip(now, then, strict=True)]

    def gated(self, found: PartResult, point: Point, held_out: Sequence[int]) -> PartResult:
        """With the verdict on the best point."""
        knobs = self.evolution.knobs
        changes = knob_changes(point, knobs)
        id = change_id(changes, BY)
        before, after = (_mean(self.scores(each, held_out)) for each in ({}, point))
        gains = self.gains(self.part, point, held_out)
        chance = self._shuffled_gains(point, held_out)
        beyond = [gain - other for gain, other in zip(gains, chance, strict=True)]
        verdict = _verdict(id, gains, beyond, before, after)
        change = Change(
            id=id,
            knobs=changes,
            before={name: knobs.value(name) for name in changes},
            by=BY,
            why=_describe(before, after, len(held_out)),
            evidence={
                "gain": rounded(verdict.gain),
                "low": rounded(verdict.low),
                "task_before": before.task,
                "task_after": after.task,
                "spent_before": before.spent,
                "spent_after": after.spent,
                "tried": float(found.tried),
            },
        )
        return structs.replace(
            found, change=change, verdict=verdict, before=before, after=after, why=verdict.why
        )

    def _shuffled_gains(self, point: Point, sessions: Sequence[int]) -> list[float]:
        """The same where relevance is shuffled: the mean of a few shuffles."""
        each = [
            self.gains(self.part.shuffled(self.evolution.seed + seed + 1), point, sessions)
            for seed in range(_SHUFFLES.get(self.part.name, 1))
        ]
        return [fmean(of_one) for of_one in zip(*each, strict=True)]


def _verdict(
    id: str,
    gains: Sequence[float],
    beyond: Sequence[float],
    before: SessionScore,
    after: SessionScore,
) -> GateVerdict:
    """The verdict by the gain of each session that was held out. `beyond`: what it exceeds the gain
    with shuffled relevance by."""
    gain, low, high = mean_bounds(gains, _SURE)
    faults = (after.faults + 1) / (before.faults + 1)
    found = (
        f"{gain:+.1%} [{low:+.1%}, {high:+.1%}] of what was missing, per session, on {len(gains)} "
        "later sessions"
    )
    why = ""
    if len(gains) < _FEWEST:
        why = f"refused: {len(gains)} later sessions can tell; {_FEWEST} are needed"
    elif low <= 0:
        why = f"refused: not shown to be better: {found}"
    elif after.task < before.task - _WORSE_TASK:
        why = f"refused: the task score falls by {before.task - after.task:.1%}; {found}"
    elif faults > MOST_FAULTS:
        why = f"refused: {faults:.2f} times the faults; {MOST_FAULTS:g} are allowed; {found}"
    elif mean_bounds(beyond, _RELEVANT)[1] <= 0:
        why = f"refused: sessions with shuffled relevance gain as much; {found}"
    return GateVerdict(
        change=id,
        passed=not why,
        gain=rounded(gain),
        low=rounded(low),
        high=rounded(high),
        sessions=len(gains),
        faults=round(faults, 3),
        why=why or f"passed: {found}",
    )


def mean_bounds(values: Sequence[float], z: float) -> tuple[float, float, float]:
    """The mean, and the bounds that Student's t gives it; `z`: of the normal distribution."""
    if len(values) < 2:
        return (fmean(values) if values else 0.0), -math.inf, math.inf
    free = len(values) - 1
    # Cornish and Fisher; for 7 degrees of freedom and more it is right to a hundredth
    t = z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
    mean, around = fmean(values), t * stdev(values) / math.sqrt(len(values))
    return mean, mean - around, mean + around


def _describe(before: SessionScore, after: SessionScore, sessions: int) -> str:
    return (
        f"task score {before.task:.1%} -> {after.task:.1%}, spent {before.spent:.1%} -> "
        f"{after.spent:.1%} on {sessions} later sessions"
    )


def _mean(scores: Sequence[SessionScore]) -> SessionScore:
    return SessionScore(
        rounded(fmean(each.task for each in scores)),
        rounded(fmean(each.spent for each in scores)),
        round(fmean(each.ms for each in scores), 1),
        sum(each.faults for each in scores),
        sum(each.actions for each in scores),
    )


def _with_front(
    found: PartResult, judged: _Judged, result: SearchResult, searched: Sequence[int]
) -> PartResult:
    tried: list[Point] = [{}, *(each.point for each in result.whole(len(searched)))]
    means = [_mean(judged.scores(point, searched)) for point in tried]
    points = [(each.task, each.spent) for each in means]
    return structs.replace(
        found,
        front=tuple(
            FrontPoint(*points[at], knob_changes(tried[at], judged.evolution.knobs))
            for at in front(points)
        ),
        points=tuple(points),
    )


def keep_result(folder: Path, result: EvolveResult) -> None:
    write_atomically(private_folder(folder) / _RESULT, msgspec.json.encode(result))


def read_result(folder: Path) -> EvolveResult | None:
    """The last result; None if there is none, or it was deleted."""
    with suppress(OSError, msgspec.MsgspecError):
        return decode((folder / _RESULT).read_bytes(), EvolveResult)
    return None


def event_verdict(part: PartResult) -> GateVerdict:
    """The verdict for the log of learning, where a gain is of cost: the window's alone is."""
    if part.verdict is None or part.before is None or part.after is None:
        raise ValueError("it was not gated")
    is_cost = part.part == "window"
    gain = math.log(part.before.spent / part.after.spent) if is_cost else 0.0
    return structs.replace(part.verdict, gain=rounded(gain))


def is_stale(change: Change, knobs: Knobs) -> bool:
    """True if the knobs in force are others than those that it was measured against."""
    now = {name: knobs.value(name) for name in change.knobs}
    return now != change.before
