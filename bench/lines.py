"""How much of what the model needs later is shown of a result that is too long to be shown whole.

    make bench-lines

Reads the recorded sessions of HOTSET_BENCH_DATA (default: ../shared/data). A case is a result that
the default knobs shorten in the set's window; its needs are the names and lines that later calls
copy and that only shortened results have. The scorer of lines is fitted to all other sets, then
tested on one: `hotset` never saw the set that it is measured on. `by type` chooses by content type
and names alone. The other methods get as many characters as hotset's form takes. `served` is the
share of calls whose needs are all shown, `recall` the mean share of a call's needs, `tokens` the
mean size of a form, `ms` the time to make it. Last come the weights fitted to all sets, which are
those of `hotset.window.preview.line_scores`.
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from bench.results import tell
from hotset.config import listed_prices
from hotset.nouns.knobs import Knobs
from hotset.nouns.price import Prices
from hotset.replay.conversation import RecordedConversation, TextUnits
from hotset.replay.formats import read
from hotset.replay.measure import StudiedConversation
from hotset.replay.report import Ruling, gather
from hotset.tokens import count
from hotset.window.birth import LongResult, long_results
from hotset.window.preview import line_scores
from hotset.window.preview.content import ToolQuery
from hotset.window.preview.preview import preview
from hotset.window.step_sizes import weigh

HERE = Path(__file__).parent
DATA = (
    Path(os.environ.get("HOTSET_BENCH_DATA", HERE.parent.parent / "shared" / "data"))
    / "trajectories"
)
WINDOWS = {
    "codex-agentv": 128_000,
    "cc-packmind": 64_000,
    "cc-cipherbox": 64_000,
    "mini-gemini3-150": 16_000,
    "pi-mono": 100_000,
}
_RIDGE = 3.0
_STEPS = 25
_MOST_WEIGHT = 5.0  # of one result in a fit, in calls that it serves
_AGAINST = 3.0  # weight of the lines that are not needed, relative to those that are
_MARK = 20  # characters of a gap's mark
_WIDEST = 600

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Case:
    """A shortened result, and what later calls need of it."""

    set: str
    long: LongResult
    calls: tuple[tuple[str, ...], ...]
    """The needs of each call."""
    sources: Mapping[str, int]
    """Shortened results that have a need."""

    @property
    def text(self) -> str:
        return self.long.result.piece.content.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Sample:
    """Lines as the scorer sees them, and how much of the later calls each serves."""

    set: str
    signs: Numbers
    needed: Numbers


def main() -> None:
    missing = [str(_file(name)) for name in WINDOWS if not _file(name).exists()]
    if missing:
        sys.exit(
            f"there is no {missing[0]}; say where the recorded sessions are: "
            f"HOTSET_BENCH_DATA=/path/to/data"
        )
    with get_context("spawn").Pool(2) as pool:
        found = dict(zip(WINDOWS, pool.map(cases, WINDOWS, chunksize=1), strict=True))
        samples = [
            each for own in pool.map(samples_of, found.values(), chunksize=1) for each in own
        ]
        held_out = [fit([each for each in samples if each.set != name]) for name in WINDOWS]
        rows = pool.starmap(figures, zip(found.values(), held_out, strict=True), chunksize=1)
        tell("lines", dict(zip(WINDOWS, rows, strict=True)))
    print("\nweights fitted to all sets, and shipped")
    for sign, fitted, shipped in zip(
        line_scores.SIGNS, fit(samples), line_scores.WEIGHTS, strict=True
    ):
        print(f"{sign:<14}{fitted:+8.2f}{shipped:+8.2f}")


def cases(name: str) -> list[Case]:
    ruling = Ruling(Prices(listed_prices()), "anthropic", WINDOWS[name])
    (gathered,) = gather(read([_file(name)]), ruling, everything=True)
    return [case for _, each in gathered.counted for case in _cases(name, each)]


def _cases(name: str, conversation: RecordedConversation) -> Iterator[Case]:
    studied = StudiedConversation.of(conversation)
    longs = {each.at: each for each in long_results(weigh(conversation.lines, {}), knobs(name))}
    calls: dict[int, list[tuple[str, ...]]] = defaultdict(list)
    sources: dict[int, dict[str, int]] = defaultdict(dict)
    for actions in studied.actions.values():
        for action in actions:
            needs = {need: at for need, at in action.needs.items() if longs.keys() >= set(at)}
            for at in {at for where in needs.values() for at in where}:
                own = tuple(need for need, where in needs.items() if at in where)
                calls[at].append(own)
                sources[at].update((need, len(needs[need])) for need in own)
    for at, long in longs.items():
        yield Case(name, long, tuple(calls[at]), sources[at])


def knobs(name: str) -> Knobs:
    return msgspec.structs.replace(Knobs(), window=WINDOWS[name])


@dataclass
class _Recorder:
    """Stands in for `line_signs`, and keeps what it was asked and answered."""

    seen: list[tuple[Sequence[str], list[tuple[float, ...]]]] = field(default_factory=list)
    signs: Callable[..., list[tuple[float, ...]]] = line_scores.line_signs

    def __call__(self, lines: Sequence[str], query: ToolQuery) -> list[tuple[float, ...]]:
        made = self.signs(lines, query)
        self.seen.append((lines, made))
        return made


def samples_of(found: Sequence[Case]) -> list[Sample]:
    """The samples of a set's cases that are needed later."""
    recorder = _Recorder()
    line_scores.line_signs = recorder
    made = []
    for case in found:
        if not case.calls:
            continue
        recorder.seen.clear()
        case.long.excerpt(knobs(case.set))
        for lines, signs in recorder.seen:
            needed = _needed(lines, case)
            if needed.any():
                made.append(Sample(case.set, np.array(signs), needed))
    line_scores.line_signs = recorder.signs
    return made


def _needed(lines: Sequence[str], case: Case) -> Numbers:
    where = _places(lines, case)
    needed = np.zeros(len(lines))
    for needs in case.calls:
        for need in needs:
            for at in where.get(need, ()):
                needed[at] += 1 / (len(needs) * len(where[need]) * case.sources[need])
    return needed


def _places(lines: Sequence[str], case: Case) -> dict[str, list[int]]:
    """The lines that have each need."""
    where: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        units = TextUnits.of(line)
        for need in case.sources.keys() & (units.names | units.lines):
            where.setdefault(need, []).append(at)
    return where


def fit(samples: Sequence[Sample]) -> tuple[float, ...]:
    """Logistic regression by Newton's method. A result counts by the calls that it serves."""
    signs = np.concatenate([each.signs for each in samples])
    true, weights = [], []
    for each in samples:
        needed = each.needed > 0
        total = min(each.needed.sum(), _MOST_WEIGHT)
        share = each.needed / each.needed.sum()
        true.append(needed)
        weights.append(total * (share + _AGAINST * ~needed / max(1, (~needed).sum())))
    y, w = np.concatenate(true).astype(float), np.concatenate(weights)
    held = np.diag([1e-6, *[_RIDGE] * (signs.shape[1] - 1)])
    found = np.zeros(signs.shape[1])
    for _ in range(_STEPS):
        said = 1 / (1 + np.exp(-np.clip(signs @ found, -30, 30)))
        slope = signs.T @ (w * (said - y)) + held @ found
        found -= np.linalg.solve((signs * (w * said * (1 - said))[:, None]).T @ signs + held, slope)
    return tuple(round(float(weight), 2) for weight in found)


def figures(found: Sequence[Case], weights: tuple[float, ...]) -> dict[str, dict[str, float]]:
    """The methods on one set, with weights of the others."""
    line_scores.WEIGHTS = weights
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * 4)
    module = sys.modules[preview.__module__]  # its package has a function of the same name
    scored = module.SCORED
    random = np.random.default_rng(0)
    for case in found:
        began = time.perf_counter()
        ours = case.long.excerpt(knobs(case.set))
        took = time.perf_counter() - began
        _add(sums["hotset"], case, ours or case.text, took)
        module.SCORED = frozenset()
        _add(sums["by type"], case, case.long.excerpt(knobs(case.set)) or case.text, 0.0)
        module.SCORED = scored
        if not case.calls:
            continue
        lines, room = case.text.split("\n"), len(ours or case.text)
        orders = {
            "head and tail": [min(at, 3 * (len(lines) - at)) for at in range(len(lines))],
            "random": list(random.random(len(lines))),
            "oracle": list(-_needed(lines, case)),
        }
        for method, order in orders.items():
            _add(sums[method], case, _lines_by(lines, order, room), 0.0)
    calls = sum(len(case.calls) for case in found)
    return {
        method: {
            "served": served / calls,
            "recall": recall / calls,
            **({"tokens": tokens / len(found)} if method in ("hotset", "by type") else {}),
            **({"ms": 1000 * seconds / len(found)} if seconds else {}),
        }
        for method, (served, recall, tokens, seconds) in sums.items()
    }


def _add(sums: list[float], case: Case, shown: str, seconds: float) -> None:
    units = TextUnits.of_shown(shown)
    held = {need for need in case.sources if units.holds(need)}
    sums[0] += sum(held.issuperset(needs) for needs in case.calls)
    sums[1] += sum(len(held.intersection(needs)) / len(needs) for needs in case.calls)
    sums[2] += count(shown)
    sums[3] += seconds


def _lines_by(lines: Sequence[str], order: Sequence[float], room: int) -> str:
    """The lines with the lowest values that fit, each stretch of them behind a mark."""
    taken = bytearray(len(lines) + 1)
    for at in sorted(range(len(lines)), key=lambda at: order[at]):
        beside = taken[at - 1] + taken[at + 1]
        cost = min(len(lines[at]), _WIDEST) + 1 + _MARK * (1 - beside)
        if cost <= room:
            taken[at] = 1
            room -= cost
    return "\n".join(line[:_WIDEST] for line, shown in zip(lines, taken, strict=False) if shown)


def _file(name: str) -> Path:
    return DATA / f"{name}.jsonl.gz"


if __name__ == "__main__":
    main()
