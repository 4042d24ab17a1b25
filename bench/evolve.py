"""Whether `hotset evolve` finds knobs that are better on sessions which it did not see, and nothing
where there is nothing to find.

    python -m bench.evolve                              (make bench-evolve)
    HOTSET_BENCH_PARTS=shuffled python -m bench.evolve  only one of: sets, window, shuffled, peers

Reads the sets of HOTSET_BENCH_DATA (default: ../shared/data).

sets      Each set that is one user's history, and LongMemEval's questions: searched on the earlier
          half, told on the later half; how much of what was missing it gains, whether it is
          adopted, and in how many minutes. `window` is the window's part of it, up to ten minutes
          a set.
shuffled  The same where something else is needed at each place, chosen at random: how many of 20
          searches adopt something. The window's on the 16 shortest sessions, to be done in minutes.
peers     Optuna's TPE and nevergrad's NGOpt, in an environment of their own, with 300 points on
          every session that is searched, and hotset's search with as many measurements: the gain on
          these sessions, less its error, and the gain on the later ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from bench.peer_environment import peer_program
from bench.results import tell
from hotset.config import load
from hotset.nouns.knobs import Knobs
from hotset.replay.evolve import Evolution, PartResult, PointCache, evolved_parts, share_less
from hotset.replay.evolve_fitness import EvolvedPart, FitnessWeights, WindowPart, knob_changes
from hotset.replay.evolve_recall import question_recalls
from hotset.replay.evolve_search import Point, SearchResult, Trial, measure_gain, search, simplify
from hotset.replay.formats import read
from hotset.replay.report import Ruling

HERE = Path(__file__).parent
DATA = Path(os.environ.get("HOTSET_BENCH_DATA", HERE.parent.parent / "shared" / "data"))
RESULTS = HERE / "results" / "evolve.json"
SETS = ("cc-cipherbox", "cc-packmind", "codex-agentv", "mini-gemini3-150")
QUESTIONS = "longmemeval_oracle"
PARTS = "HOTSET_BENCH_PARTS"
POINTS = {"memory": 1500, "history": 1000, "window": 320}
MINUTES = 10
SEEDS = 20
SHUFFLED_POINTS = {"memory": 400, "history": 200, "window": 16}
SHUFFLED_WINDOWS = ("cc-cipherbox", "cc-packmind")
"""A replay of the others takes ten times as long."""
PEERS = {"optuna": "optuna==5.0.0", "nevergrad": "nevergrad==1.0.12"}
PEER_POINTS = 300
PEER_SEEDS = 3

Figures = dict[str, float]
Sets = dict[str, dict[str, Figures]]


def main() -> None:
    chosen = os.environ.get(PARTS, "sets,window,shuffled,peers").split(",")
    parts = list(_all_parts(with_questions=chosen != ["window"]))
    windows = [(name, part) for name, part in parts if part.name == "window"]
    found: Sets = {}
    if "sets" in chosen:
        found |= sets_part([each for each in parts if each not in windows])
    if "window" in chosen:
        found |= sets_part(windows)
    if "shuffled" in chosen:
        found |= shuffled_part(parts)
    if "peers" in chosen:
        found |= peers_part(parts)
    known: Sets = json.loads(RESULTS.read_text())["sets"] if RESULTS.exists() else {}
    tell("evolve", known | found)


def _all_parts(*, with_questions: bool) -> Iterator[tuple[str, EvolvedPart]]:
    """Every part of every set, with the set's name."""
    ruling, knobs = Ruling(load().prices), Knobs()
    for name in SETS:
        path = DATA / "trajectories" / f"{name}.jsonl.gz"
        if not path.exists():
            raise SystemExit(
                f"{path} does not exist: say where the sets are with "
                f"HOTSET_BENCH_DATA=/path/to/data"
            )
        for part in evolved_parts(read([path]), [], knobs, ruling):
            yield name, part
    if not with_questions:
        return
    began = time.perf_counter()
    recalls = question_recalls(DATA / "memory" / f"{QUESTIONS}.json.gz")
    print(f"{QUESTIONS}: kept, remembered and asked in {time.perf_counter() - began:.0f} s")
    for part in evolved_parts([], recalls, knobs, ruling):
        yield QUESTIONS, part


def sets_part(parts: Sequence[tuple[str, EvolvedPart]]) -> Sets:
    found: Sets = {}
    for name, part in parts:
        cpu = time.process_time()
        until = time.monotonic() + MINUTES * 60
        result = Evolution(Knobs(), budget=POINTS[part.name]).run(part, until)
        cpu = time.process_time() - cpu
        print(f"{name}, {part.name}: {result.why}")
        if result.change is not None:
            print(f"  {result.change.knobs}")
        found[f"{name}, {part.name}"] = {"hotset": _figures(result, cpu)}
    return found


def _figures(result: PartResult, cpu: float) -> Figures:
    figures = {
        "points": float(result.tried),
        "sessions": float(result.searched + result.held_out),
        "minutes": result.seconds / 60,
        "cpu minutes": cpu / 60,
        "adopted": float(result.passed),
    }
    if result.verdict and result.before and result.after:
        figures |= {
            "less missing %": 100 * share_less(result.verdict.gain),
            "low %": 100 * share_less(result.verdict.low),
            "high %": 100 * share_less(result.verdict.high),
            "task %": 100 * result.before.task,
            "task then %": 100 * result.after.task,
            "spent %": 100 * result.before.spent,
            "spent then %": 100 * result.after.spent,
        }
    return figures


def shuffled_part(parts: Sequence[tuple[str, EvolvedPart]]) -> Sets:
    found: Sets = {}
    for name, part in parts:
        if part.name == "window" and name not in SHUFFLED_WINDOWS:
            continue
        small = _shortest(part) if isinstance(part, WindowPart) else part
        results = [
            Evolution(Knobs(), seed=seed, budget=SHUFFLED_POINTS[part.name]).run(
                small.shuffled(10_000 + seed)
            )
            for seed in range(SEEDS)
        ]
        title = f"{name}, {part.name}, shuffled relevance"
        found[title] = {
            "hotset": {
                "searches": float(SEEDS),
                "adopted": float(sum(each.passed for each in results)),
                "best %": max(
                    100 * share_less(each.verdict.low) for each in results if each.verdict
                )
                if any(each.verdict for each in results)
                else 0.0,
            }
        }
        print(title, found[title]["hotset"])
    return found


def _shortest(part: WindowPart, many: int = 16) -> WindowPart:
    size = {
        each.name: sum(len(studied.calls) for studied, _ in each.stretches) for each in part.studied
    }
    names = sorted(size, key=lambda name: (size[name], name))[:many]
    return replace(part, studied=[each for each in part.studied if each.name in names])


# Optimisers of others


def peers_part(parts: Sequence[tuple[str, EvolvedPart]]) -> Sets:
    programs = {
        name: peer_program(name, package.partition("==")[2], "python", [package])
        for name, package in PEERS.items()
    }
    found: Sets = {}
    for name, part in parts:
        if part.name == "window":  # a point costs seconds, and the peers have no halving there
            continue
        trial = _PeerTrial(part)
        rows = {"hotset": [trial.own(seed) for seed in range(PEER_SEEDS)]}
        for peer, program in programs.items():
            if program is not None:
                rows[peer] = [trial.of(peer, program, seed) for seed in range(PEER_SEEDS)]
        title = f"{name}, {part.name}, optimisers"
        found[title] = {
            peer: {key: fmean(row[key] for row in each) for key in each[0]}
            for peer, each in rows.items()
        }
        print(title, found[title])
    return found


class _PeerTrial:
    """A part on which optimisers are compared. Sessions that were read are read once for all."""

    def __init__(self, part: EvolvedPart) -> None:
        self.part = part
        many = len(part.sessions) // 2
        self.searched, self.held_out = range(many), range(many, len(part.sessions))

    def own(self, seed: int) -> Figures:
        cache, began = PointCache(), time.process_time()
        most = PEER_POINTS * len(self.searched)
        result = search(
            self.part.genes,
            self._judge(cache),
            self.searched,
            seed=seed,
            budget=100 * PEER_POINTS,
            is_late=lambda: cache.measured >= most,
        )
        return self._told(result, cache, time.process_time() - began)

    def of(self, peer: str, program: Path, seed: int) -> Figures:
        cache, began = PointCache(), time.process_time()
        judge, result = self._judge(cache), SearchResult()
        genes = [
            {
                "name": gene.name,
                "start": gene.start,
                "low": gene.low,
                "high": gene.high,
                "log": gene.log,
                "choices": gene.choices,
            }
            for gene in self.part.genes
        ]
        asked = {"peer": peer, "genes": genes, "points": PEER_POINTS, "seed": seed}
        # -P: `bench/code.py` would stand for Python's own `code` otherwise
        with subprocess.Popen(
            [str(program), "-P", str(HERE / "evolve_peers.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                proposed = json.loads(line)
                point = {
                    gene.name: proposed[gene.name]
                    for gene in self.part.genes
                    if proposed[gene.name] != gene.start
                }
                trial = measure_gain(point, judge, self.searched)
                result.trials[json.dumps(point, sort_keys=True)] = trial
                # without what counts the changed knobs: theirs change them all
                process.stdin.write(f"{trial.gain - trial.error}\n")
                process.stdin.flush()
        if process.returncode != 0:
            raise SystemExit(f"{peer} failed; see above")
        return self._told(result, cache, time.process_time() - began)

    def _judge(self, cache: PointCache):  # type: ignore[no-untyped-def]
        weights, knobs = FitnessWeights(), Knobs()

        def judge(point: Point, sessions: Sequence[int]) -> list[float]:
            turned = knobs.with_changes(knob_changes(point, knobs)) if point else knobs
            return [weights.fitness(each) for each in cache.scores(self.part, turned, sessions)]

        return judge

    def _told(self, result: SearchResult, cache: PointCache, cpu: float) -> Figures:
        measured, judge = cache.measured, self._judge(cache)
        every = [Trial({}, len(self.searched), 0.0, 0.0), *result.whole(len(self.searched))]
        best = max(every, key=lambda each: each.gain - each.error)
        best = simplify(best, judge, self.searched)
        later = measure_gain(best.point, judge, self.held_out)
        return {
            "measured": float(measured),
            "cpu s": cpu,
            "gain": best.gain,
            "less error": best.gain - best.error,
            "later gain": later.gain,
            "knobs": float(len(best.point)),
        }


if __name__ == "__main__":
    main()
