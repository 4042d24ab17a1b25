"""Our default policy and our leanest one beside what others do, on recorded sessions, under
Anthropic's cache rules.

    make bench-replay

Reads the six sets of HOTSET_BENCH_DATA (default: ../shared/data). Prints a table for each, says
which marks are met, replays all sessions of three sets in a window of a million tokens, and draws
`bench/results/frontier.svg`: what each policy costs against how often the model has to fetch
something back. `docs/replay.md` defines the figures. Behind them, what leaving the recorded pauses
out of account changes, and how many tokens the first 16 and the first 40 calls of sessions take
that are so long.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path

from msgspec import structs

from bench.frontier import Panel, Point, draw
from bench.results import tell
from hotset.config import listed_prices
from hotset.nouns.knobs import PROFILES, Knobs, Limit
from hotset.nouns.price import Prices
from hotset.replay.conversation import RecordedConversation
from hotset.replay.formats import read
from hotset.replay.policies import (
    BASELINES,
    FULL,
    LEAN,
    Maker,
    Policy,
    Rules,
    ShownBlock,
    ours,
)
from hotset.replay.report import Report, Row, Ruling, gather, replay

HERE = Path(__file__).parent
DATA = (
    Path(os.environ.get("HOTSET_BENCH_DATA", HERE.parent.parent / "shared" / "data"))
    / "trajectories"
)
OURS = "hotset"
LONG_RUNS = (16, 40)
HALF = 50
"""Percent of the tokens of full history that a long run of the lean profile may take."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What is to be reached on a set."""

    window: int
    cost: float
    """With faults, in percent of full history."""
    faults: float
    """In 100 replies that act."""


MARKS = {
    "codex-agentv": Mark(128_000, 40, 6),
    "cc-packmind": Mark(64_000, 60, 8),
    "cc-cipherbox": Mark(64_000, 70, 7),
    "mini-gemini3-150": Mark(16_000, 69, 6),
    "pi-mono": Mark(100_000, 45, 7),
    "tau-airline-gpt4o": Mark(128_000, 102, 0),
}
MILLION = 1_000_000
LARGE_MARKS = {
    "cc-packmind": Mark(MILLION, 71, 4),
    "codex-agentv": Mark(MILLION, 46, 5),
    "pi-mono": Mark(MILLION, 58, 5),
}
"""All sessions, none under pressure: the window that most people have."""


def scaled(knobs: Knobs, factor: float) -> Knobs:
    """The same knobs, with results shown at so many times the length."""

    def times(limit: Limit) -> Limit:
        return Limit(round(limit.over * factor), round(limit.room * factor))

    return structs.replace(
        knobs,
        limit=times(knobs.limit),
        limits={kind: times(limit) for kind, limit in knobs.limits.items()},
        tools={tool: times(limit) for tool, limit in knobs.tools.items()},
    )


_LEFT_ALONE = "tau-airline-gpt4o"
"""Short sessions, where turning knobs changes nothing."""

SWEEP = {
    "half as much shown": scaled(Knobs(), 0.5),
    "twice as much shown": scaled(Knobs(), 2),
    "four times as much shown": scaled(Knobs(), 4),
    "low water at 10 %": structs.replace(Knobs(), low=0.1),
    "only when it overflows": structs.replace(Knobs(), early=False),
}
"""Turns of our own knobs, for the frontier."""


def main() -> None:
    missing = [str(_file(name)) for name in MARKS if not _file(name).exists()]
    if missing:
        sys.exit(
            f"there is no {missing[0]}; say where the recorded sessions are: "
            f"HOTSET_BENCH_DATA=/path/to/data"
        )
    began = time.perf_counter()
    found: dict[str, Found] = {}
    with get_context("fork").Pool(2) as pool:
        large = dict(pool.imap_unordered(_replayed_large, LARGE_MARKS))
        for name, each in pool.imap_unordered(_replayed, MARKS):
            found[name] = each
            print(
                (
                    f"{name}: {each.report.sessions} sessions, after "
                    f"{time.perf_counter() - began:.0f} s"
                ),
                file=sys.stderr,
            )
    sets = {name: dict(_methods(found[name])) for name in MARKS}
    sets |= {f"{name}-1m": {OURS: asdict(row)} for name, row in large.items()}
    tell("replay", sets)
    drawn = HERE / "results" / "frontier.svg"
    drawn.write_text(draw([_panel(name, found[name].report) for name in MARKS]))
    print(f"\nfrontier: {drawn}\n")
    for name in MARKS:
        print("\n".join(_judged(name, found[name])))
    for name, row in large.items():
        print("\n".join(_lines(f"{name} at 1M", _cost_and_faults(row, LARGE_MARKS[name]))))


@dataclass(frozen=True, slots=True)
class Found:
    report: Report
    long_runs: Mapping[str, Mapping[int, float]]
    """Of each policy of ours: calls to the tokens that it showed in so many first ones, in percent
    of full history."""
    without_pauses: Row
    """The default policy where no cache ever grows cold."""


def _replayed(name: str) -> tuple[str, Found]:
    ruling = Ruling(Prices(listed_prices()), "anthropic", MARKS[name].window)
    (gathered,) = gather(read([_file(name)]), ruling)
    sums = {
        OURS: Prompts(ours(Knobs())),
        LEAN: Prompts(ours(PROFILES[LEAN])),
        FULL: Prompts(BASELINES[FULL]),
    }
    turned = {title: ours(knobs) for title, knobs in SWEEP.items()} if name != _LEFT_ALONE else {}
    makers: dict[str, Maker] = {
        OURS: sums[OURS].make,
        LEAN: sums[LEAN].make,
        **BASELINES,
        FULL: sums[FULL].make,
        **turned,
    }
    report = replay(gathered, makers, ruling, time.perf_counter)
    warm = replay(gathered, {OURS: ours(Knobs())}, replace(ruling, ttl=0), time.perf_counter)
    long_runs = {policy: dict(_long_runs(sums[policy], sums[FULL])) for policy in (OURS, LEAN)}
    return name, Found(report, long_runs, warm.policies[OURS])


def _replayed_large(name: str) -> tuple[str, Row]:
    ruling = Ruling(Prices(listed_prices()), "anthropic", MILLION)
    (gathered,) = gather(read([_file(name)]), ruling, everything=True)
    return name, replay(gathered, {OURS: ours(Knobs())}, ruling, time.perf_counter).policies[OURS]


@dataclass(slots=True)
class Prompts:
    """A policy that remembers how long each prompt was."""

    maker: Maker
    sizes: list[list[int]] = field(default_factory=list)
    """Of each conversation."""

    def make(self, conversation: RecordedConversation, rules: Rules) -> Policy:
        self.sizes.append([])
        return Watched(self.maker(conversation, rules), conversation.fixed, self.sizes[-1])


@dataclass(slots=True)
class Watched:
    policy: Policy
    fixed: int
    sizes: list[int]

    def show(self, upto: int, now: float, held: int) -> Sequence[ShownBlock]:
        blocks = self.policy.show(upto, now, held)
        self.sizes.append(self.fixed + sum(block.tokens for block in blocks[:upto]))
        return blocks

    @property
    def extra(self) -> float:
        return self.policy.extra

    @property
    def tools(self) -> int:
        return self.policy.tools

    @property
    def departures(self) -> int:
        return getattr(self.policy, "departures", 0)


def _long_runs(shown: Prompts, whole: Prompts) -> Iterator[tuple[int, float]]:
    for calls in LONG_RUNS:
        pairs = [
            (some[:calls], all_[:calls])
            for some, all_ in zip(shown.sizes, whole.sizes, strict=True)
            if len(all_) >= calls
        ]
        if pairs:
            yield (
                calls,
                round(
                    100 * sum(sum(some) for some, _ in pairs) / sum(sum(all_) for _, all_ in pairs),
                    2,
                ),
            )


def _methods(found: Found) -> Iterator[tuple[str, dict[str, float]]]:
    for method, row in found.report.policies.items():
        if method not in SWEEP:
            yield method, asdict(row) | dict(_more(found, method))


def _more(found: Found, method: str) -> Iterator[tuple[str, float]]:
    if method == OURS:
        yield "cost_without_pauses_pct", found.without_pauses.cost_with_faults_pct
        yield "faults_without_pauses_per_100", found.without_pauses.faults_per_100
    for calls, share in found.long_runs.get(method, {}).items():
        yield f"tokens_{calls}_pct", share


def _panel(name: str, report: Report) -> Panel:
    mark = MARKS[name]
    points = [
        Point(
            method,
            row.cost_with_faults_pct,
            row.faults_per_100_replies,
            ours=method in {OURS, LEAN} or method in SWEEP,
            named=method not in SWEEP,
        )
        for method, row in report.policies.items()
    ]
    return Panel(f"{name}, window {mark.window:,}", mark.cost, mark.faults, points)


def _judged(name: str, found: Found) -> Iterator[str]:
    mark, row = MARKS[name], found.report.policies[OURS]
    marks = [
        *_cost_and_faults(row, mark),
        ("dearest session p95", row.dearest_session_p95, 100, row.dearest_session_p95 <= 100),
        ("prefix kept", row.prefix_kept_pct, 98, row.prefix_kept_pct >= 98),
        ("over the window", row.over_window_pct, 0, row.over_window_pct <= 0),
    ]
    if name != _LEFT_ALONE:
        marks += [
            (f"lean, first {calls}", share, HALF, share <= HALF)
            for calls, share in found.long_runs[LEAN].items()
        ]
    yield from _lines(name, marks)
    yield f"      {name:<18} {'by cache marks':<22} {row.cost_marked_pct:7.2f}"
    warm = found.without_pauses
    yield (
        f"      {name:<18} {'without pauses':<22} {warm.cost_with_faults_pct:7.2f}   faults "
        f"{warm.faults_per_100:.2f}"
    )
    for calls, share in found.long_runs[OURS].items():
        yield f"      {name:<18} {f'tokens, first {calls}':<22} {share:7.2f}"


_Judgement = tuple[str, float, float, bool]
"""What is judged, the figure, its mark, and whether it is met."""


def _cost_and_faults(row: Row, mark: Mark) -> list[_Judgement]:
    cost, faults = row.cost_with_faults_pct, row.faults_per_100_replies
    return [
        ("cost with faults", cost, mark.cost, cost <= mark.cost),
        ("faults in 100 replies", faults, mark.faults, faults <= mark.faults),
    ]


def _lines(name: str, judged: Sequence[_Judgement]) -> Iterator[str]:
    for title, reached, wanted, met in judged:
        yield (
            f"{'pass' if met else 'FAIL'}  {name:<18} {title:<22} {reached:7.2f}   mark {wanted:g}"
        )


def _file(name: str) -> Path:
    return DATA / f"{name}.jsonl.gz"


if __name__ == "__main__":
    main()
