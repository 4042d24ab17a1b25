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
from statistics import NormalDist, fmean, stdev
from typing import Any

import msgspec
from msgspec import Struct, structs

from hotset.files.private_folder import private_folder
from hotset.files.write import write_atomically
from hotset.learn.events import BY_EVOLUTION, Change, GateVerdict, change_id
from hotset.learn.gate import MOST_FAULTS
from hotset.learn.state import ChangeRow, Stage
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
"""In a project's data folder: every point that was measured, the last results, and how often the
later sessions were looked at. It can be deleted at any time."""

LEAST_SESSIONS = 16
"""Half of them for the search, and half for the gate."""

MOST_SESSIONS = 120
"""The latest ones count."""

_RESULT = "result.json"
_POINTS = ".points.jsonl"
_LOOKS = "looks.jsonl"
_KEPT = 8  # files of points: one for each part and version
_MOST_BYTES = 64 << 20  # of such a file; then it begins anew
_SHORTEST = 24  # calls: a shorter session hardly says anything about a window
_SHUFFLES = {"window": 1, "history": 5, "memory": 5}
_LEAST_LOSS = 0.01
_NO_BETTER = 0.01  # of changes that are no better pass at the first look
_NO_MORE = 0.02  # of changes that gain no more than with shuffled relevance
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
    base: dict[str, Any]
    """The knobs that its scores depend on, by name, as they were."""
    why: str
    change: Change | None = None
    """The best that was found, gated or not."""
    verdict: GateVerdict | None = None
    looks: int = 0
    """How many results were compared on these later sessions, this one included."""
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
    earlier: tuple[PartResult, ...] = ()
    """What passed in earlier searches, of parts of which nothing passed in this one."""

    @property
    def changes(self) -> dict[str, PartResult]:
        """By the id of the change, those of this search first."""
        every = (*self.parts, *self.earlier)
        return {each.change.id: each for each in every if each.change is not None}


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
    return [part for part in every_part(recorded, recalls, knobs, ruling, held) if is_told(part)]


def is_told(part: EvolvedPart) -> bool:
    """True if there is something to search, and enough to tell what it is worth."""
    return bool(part.genes) and len(part.sessions) >= LEAST_SESSIONS


def every_part(
    recorded: Iterable[RecordedSession],
    recalls: Sequence[RecallLog],
    knobs: Knobs,
    ruling: Ruling,
    held: Container[str],
) -> list[EvolvedPart]:
    """The same, with those that too little is recorded for."""

    def free(genes: Sequence[Gene]) -> list[Gene]:
        return [gene for gene in genes if not any(name in held for name in _with_groups(gene.name))]

    sessions = _by_time(recorded, ruling)
    long = [each for each in sessions if sum(len(part.calls) for part in each) >= _SHORTEST]
    return [
        RecallPart.of(recalls, free(recall_genes(knobs))),
        HistoryPart.of(sessions, free(history_genes(knobs))),
        WindowPart.of(long, ruling.rules, free(window_genes(knobs))),
    ]


def _part_of(knob: str) -> str:
    """The part whose scores depend on a knob; empty for those that no replay asks."""
    groups = set(_with_groups(knob))
    if "memory.signals" in groups:
        return "memory"
    if "history" in groups:
        return "history"
    return "" if groups & {"memory", "toolbox", "prefetch"} else "window"


def base_of(part: str, knobs: Knobs) -> dict[str, Any]:
    """The knobs that a part's scores depend on, as JSON holds them."""
    own = {name: value for name, value in knobs.by_name().items() if _part_of(name) == part}
    encoded = msgspec.json.encode(own, order="sorted")
    return decode(encoded, dict[str, Any])


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
            base=base_of(part.name, self.knobs),
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
        id = change_id({"knobs": changes, "base": found.base}, BY_EVOLUTION)
        before, after = (_mean(self.scores(each, held_out)) for each in ({}, point))
        gains = self.gains(self.part, point, held_out)
        chance = self._shuffled_gains(point, held_out)
        beyond = [gain - other for gain, other in zip(gains, chance, strict=True)]
        looks = self._count_looks(id, [self.part.sessions[each] for each in held_out])
        verdict = _verdict(id, gains, beyond, before, after, looks=looks)
        change = Change(
            id=id,
            knobs=changes,
            before={name: knobs.value(name) for name in changes},
            by=BY_EVOLUTION,
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
            found,
            change=change,
            verdict=verdict,
            looks=looks,
            before=before,
            after=after,
            why=verdict.why,
        )

    def _count_looks(self, id: str, sessions: list[str]) -> int:
        evolution = self.evolution
        if evolution.folder is None:
            return 1
        name = f"{id} {structs.astuple(evolution.weights)}"
        return _looks_up_to(evolution.folder, _Look(self.part.name, name, sessions))

    def _shuffled_gains(self, point: Point, sessions: Sequence[int]) -> list[float]:
        """The same where relevance is shuffled: the mean of a few shuffles, the same for every
        search, so that searching again does not draw them anew."""
        each = [
            self.gains(self.part.shuffled(seed + 1), point, sessions)
            for seed in range(_SHUFFLES.get(self.part.name, 1))
        ]
        return [fmean(of_one) for of_one in zip(*each, strict=True)]


class _Look(Struct, frozen=True, array_like=True):
    """A result that was compared on sessions which were held out."""

    part: str
    result: str
    sessions: list[str]


def _looks_up_to(folder: Path, look: _Look) -> int:
    """How many results were compared on these sessions or on some of them, up to this look, which
    is written down. The same result on the same sessions is the same look."""
    file = private_folder(folder) / _LOOKS
    known: list[_Look] = []
    with suppress(FileNotFoundError):
        for line in file.read_bytes().split(b"\n"):
            with suppress(msgspec.MsgspecError):
                known.append(decode(line, _Look))
    if look not in known:
        with file.open("ab") as lines:  # what a killed process left half written ends here
            lines.write(b"\n" + msgspec.json.encode(look) + b"\n")
        known.append(look)
    before = known[: known.index(look)]
    return 1 + sum(
        each.part == look.part and not set(each.sessions).isdisjoint(look.sessions)
        for each in before
    )


def _spent(chance: float, looks: int) -> float:
    """The chance that a look has to let through what is no better. The first has `chance`; however
    many follow, all of them together have twice that."""
    return 2 * chance / (looks * (looks + 1))


def _verdict(
    id: str,
    gains: Sequence[float],
    beyond: Sequence[float],
    before: SessionScore,
    after: SessionScore,
    *,
    looks: int,
) -> GateVerdict:
    """The verdict by the gain of each session that was held out. `beyond`: what it exceeds the gain
    with shuffled relevance by."""
    chance = _spent(_NO_BETTER, looks)
    gain, low, high = mean_bounds(gains, chance)
    faults = (after.faults + 1) / (before.faults + 1)
    mean, least, most = (share_less(each) for each in (gain, low, high))
    found = (
        f"{mean:.1%} less is missing per session [{least:.1%}, {most:.1%}], on {len(gains)} later "
        "sessions"
    )
    if looks > 1:
        found += f"; it is look {looks} at them, so the bound is one of {1 - chance:.2%}"
    why = ""
    if len(gains) < _FEWEST:
        why = f"refused: {len(gains)} later sessions can tell; {_FEWEST} are needed"
    elif low <= 0:
        why = f"refused: not shown to be better: {found}"
    elif after.task < before.task - _WORSE_TASK:
        why = f"refused: the task score falls by {before.task - after.task:.1%}; {found}"
    elif faults > MOST_FAULTS:
        why = f"refused: {faults:.2f} times the faults; {MOST_FAULTS:g} are allowed; {found}"
    elif mean_bounds(beyond, _spent(_NO_MORE, looks))[1] <= 0:
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


def share_less(gain: float) -> float:
    """The share by which what is missing shrinks, of the logarithm of how many times it shrinks."""
    return -math.expm1(-gain)


def mean_bounds(values: Sequence[float], chance: float) -> tuple[float, float, float]:
    """The mean, and the bounds that Student's t gives it; `chance`: that it lies beyond one of
    them."""
    if len(values) < 2:
        return (fmean(values) if values else 0.0), -math.inf, math.inf
    free, z = len(values) - 1, NormalDist().inv_cdf(1 - chance)
    # Cornish and Fisher; with 7 degrees of freedom the chance is right to 3 % of itself at 1:20,000
    t = (
        z
        + (z**3 + z) / (4 * free)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * free**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92_160 * free**4)
    )
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


def keep_result(folder: Path, result: EvolveResult) -> EvolveResult:
    """Write it down, and return it with what passed earlier: a search that found nothing does not
    discard what another found."""
    before = read_result(folder)
    if before is not None:
        passed = {each.part for each in result.parts if each.passed}
        known = {each.part: each for each in (*before.earlier, *before.parts) if each.passed}
        earlier = tuple(each for part, each in known.items() if part not in passed)
        result = structs.replace(result, earlier=earlier)
    write_atomically(private_folder(folder) / _RESULT, msgspec.json.encode(result))
    return result


def read_result(folder: Path) -> EvolveResult | None:
    """The last result; None if there is none, it was deleted, or another version wrote it."""
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


def moved_knobs(result: PartResult, knobs: Knobs) -> dict[str, tuple[Any, Any]]:
    """The knobs that its scores depend on and that have other values now: what they were when it
    was measured, and what they are."""
    now = base_of(result.part, knobs)
    return {
        name: (result.base.get(name), now.get(name))
        for name in sorted(now.keys() | result.base.keys())
        if result.base.get(name) != now.get(name)
    }


def changes_on_top(row: ChangeRow, every: Sequence[ChangeRow]) -> list[ChangeRow]:
    """Of the changes, the latest first, those in force that came after this one and rest on it:
    they turn one of its knobs again, or evolution measured them with it."""
    parts = {_part_of(name) for name in row.knobs}
    found: list[ChangeRow] = []
    for each in every:
        if each.id == row.id:
            break
        is_measured_with = each.by == BY_EVOLUTION and parts & {_part_of(n) for n in each.knobs}
        if each.stage == Stage.ADOPTED and (
            is_measured_with or each.knobs.keys() & row.knobs.keys()
        ):
            found.append(each)
    return found
