"""What teachers learn from one user's recorded sessions, against the default knobs.

    make bench-teach

Reads three sets of HOTSET_BENCH_DATA (default: ../shared/data), each one user's history. The first
half by time proposes; the second half tells what that gains per session in cost with faults, in
percent, with a 95 % bootstrap interval, whether the gate adopts it or not (`adopted`). `oracle` has
the best single move for each later session. Then what is planted, by 20 seeds each: one tool's
limit four times too small, in made-up sessions and in recorded ones (30 of them, or all but one of
each three), and one kind of memory that is told wrongly, in logs written through a store. `mended`
is the share of seeds in which it was found, adopted and explained.
"""

from __future__ import annotations

import math
import os
import random
import sys
import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

from bench.results import tell
from bench.teach_made_up import TOLD, TOOLS, made_up_session, made_up_tellings
from bench.telling import keep, project
from hotset.config import listed_prices
from hotset.learn.gate import SessionPair
from hotset.nouns.knobs import Knobs, Limit
from hotset.nouns.page import Kind
from hotset.nouns.price import Prices
from hotset.replay.formats import read
from hotset.replay.report import Ruling
from hotset.replay.teach import TEACHERS, teach
from hotset.replay.teach_window import window_moves
from hotset.replay.teaching import TeachingMaterial, Values
from hotset.replay.trials import TeachingSession, Trials, teaching_sessions

HERE = Path(__file__).parent
DATA = (
    Path(os.environ.get("HOTSET_BENCH_DATA", HERE.parent.parent / "shared" / "data"))
    / "trajectories"
)
WINDOWS = {"cc-packmind": 64_000, "cc-cipherbox": 64_000, "codex-agentv": 128_000}
PLANTED = {
    "cc-packmind": ("Read", Knobs().limits[Kind.FILE]),
    "cc-cipherbox": ("Read", Knobs().limits[Kind.FILE]),
    "codex-agentv": ("exec_command", Knobs().limit),
}
"""The tool of each set that is asked back most."""
MADE_UP, TELLING = "planted, made up", "planted, telling"
SEEDS = range(100, 120)
"""Settings of the teachers were chosen while looking at seeds below 100."""
SESSIONS = 30
_RESAMPLES = 2000


def main() -> None:
    missing = [str(_file(name)) for name in WINDOWS if not _file(name).exists()]
    if missing:
        sys.exit(
            f"there is no {missing[0]}; say where the recorded sessions are: "
            f"HOTSET_BENCH_DATA=/path/to/data"
        )
    chosen = sys.argv[1:] or [*WINDOWS, *(f"planted, {name}" for name in PLANTED), MADE_UP, TELLING]
    with get_context("fork").Pool(2) as pool:
        found = dict(zip(chosen, pool.map(_measured, chosen, chunksize=1), strict=True))
    tell("teach", found)


def _measured(name: str) -> dict[str, dict[str, float]]:
    began = time.perf_counter()
    if name in WINDOWS:
        rows = _history(name)
    elif name == MADE_UP:
        rows = {"hotset": _share([_mends_made_up(seed) for seed in SEEDS])}
    elif name == TELLING:
        rows = {"hotset": _share([_mends_telling(seed) for seed in SEEDS])}
    else:
        rows = {"hotset": _share(_mends_recorded(name.partition(", ")[2]))}
    rows["hotset"]["seconds"] = time.perf_counter() - began
    print(f"{name}: {rows['hotset']}", file=sys.stderr)
    return rows


def _history(name: str) -> dict[str, dict[str, float]]:
    ruling = _ruling(WINDOWS[name])
    sessions = teaching_sessions(read([_file(name)]), ruling)
    material = TeachingMaterial(sessions, Trials(ruling), share=0.5)
    knobs = Knobs()
    proposed, adopted = knobs, knobs
    for lesson in teach(material, knobs):
        print(f"{name}: {lesson.sentence}\n    {lesson.verdict.why}", file=sys.stderr)
        proposed = proposed.with_changes(lesson.change.knobs)
        if lesson.verdict.passed:
            adopted = adopted.with_changes(lesson.change.knobs)
    pairs = {
        "hotset": material.trials.pairs(material.newer, knobs, adopted),
        "proposed": material.trials.pairs(material.newer, knobs, proposed),
    }
    rows = {method: _figures(found) for method, found in pairs.items()}
    rows["hotset"]["adopted"] = float(adopted != knobs)
    rows["oracle"] = {"gain": _oracle(material, knobs)}
    return rows


def _figures(pairs: Sequence[SessionPair]) -> dict[str, float]:
    gains = [math.log(pair.before / pair.after) for pair in pairs]
    rng = random.Random(0)
    means = sorted(sum(rng.choices(gains, k=len(gains))) / len(gains) for _ in range(_RESAMPLES))
    before = sum(pair.faults_before for pair in pairs)
    return {
        "sessions": len(pairs),
        "gain": _percent(sum(gains) / len(gains)),
        "low": _percent(means[round(0.025 * _RESAMPLES)]),
        "high": _percent(means[round(0.975 * _RESAMPLES) - 1]),
        "faults": (sum(pair.faults_after for pair in pairs) + 1) / (before + 1),
        "total": 100 * (1 - sum(p.after for p in pairs) / sum(p.before for p in pairs)),
    }


def _oracle(material: TeachingMaterial, knobs: Knobs) -> float:
    best = {session.id: 0.0 for session in material.newer}
    for values in (*window_moves(knobs), *_limit_moves(knobs)):
        for pair in material.trials.pairs(material.newer, knobs, knobs.with_changes(values)):
            best[pair.session] = max(best[pair.session], math.log(pair.before / pair.after))
    return _percent(sum(best.values()) / len(best))


def _limit_moves(knobs: Knobs) -> list[Values]:
    return [
        {name: _limit(limit.times(factor))}
        for name, limit in (("limit", knobs.limit), ("limits.file", knobs.limits[Kind.FILE]))
        for factor in (0.5, 2.0)
    ]


def _limit(limit: Limit) -> dict[str, int]:
    return {"over": limit.over, "room": limit.room}


def _percent(gain: float) -> float:
    return 100 * (1 - math.exp(-gain))


def _share(mended: Sequence[bool]) -> dict[str, float]:
    return {"mended": sum(mended) / len(mended), "seeds": len(mended)}


def _mends_recorded(name: str) -> list[bool]:
    tool, limit = PLANTED[name]
    ruling = _ruling(WINDOWS[name])
    sessions = teaching_sessions(read([_file(name)]), ruling)
    trials, many = Trials(ruling), min(SESSIONS, 2 * len(sessions) // 3)
    return [
        _is_mended(random.Random(seed).sample(sessions, many), tool, limit, trials)
        for seed in SEEDS
    ]


def _mends_made_up(seed: int) -> bool:
    rng, ruling = random.Random(seed), _ruling(128_000)
    tool = rng.choice(TOOLS)
    recorded = [made_up_session(number, tool, rng) for number in range(SESSIONS)]
    sessions = teaching_sessions(recorded, ruling)
    return _is_mended(sessions, tool, Knobs().limit, Trials(ruling))


def _is_mended(
    sessions: Sequence[TeachingSession], tool: str, limit: Limit, trials: Trials
) -> bool:
    """True if the limit is adopted at twice its length or more, with a sentence that names it."""
    name = f"tools.{tool}"
    small = limit.times(0.25)
    ordered = tuple(sorted(sessions, key=lambda each: each.time))
    knobs = Knobs().with_changes({name: _limit(small)})
    only = {"limits": TEACHERS["limits"]}
    return any(
        lesson.verdict.passed
        and lesson.change.knobs.get(name, {}).get("over", 0) >= 2 * small.over
        and tool in lesson.sentence
        for lesson in teach(TeachingMaterial(ordered, trials), knobs, teachers=only)
    )


def _mends_telling(seed: int) -> bool:
    """True if only the kind that is told wrongly is told less, with a sentence that names it."""
    rng = random.Random(seed)
    wrong = rng.choice(TOLD)
    with project() as (memories, store, _, _):
        ids = {kind: keep(memories, _memory(kind)) for kind in TOLD}
        for number in range(SESSIONS):
            for deposit in made_up_tellings(number, wrong, ids, rng):
                store.keep(deposit).result()
        material = TeachingMaterial((), Trials(_ruling(128_000)), store)
        lessons = [
            lesson
            for lesson in teach(material, Knobs(), teachers={"telling": TEACHERS["telling"]})
            if lesson.verdict.passed
        ]
    changed = {name for lesson in lessons for name in lesson.change.knobs}
    return changed == {f"memory.tells.{wrong}"} and wrong in lessons[0].sentence


def _memory(kind: str) -> dict[str, object]:
    return {
        "kind": kind,
        "text": "The gateway listens on port 8123.",
        "when": "after a change of the gateway",
        "steps": ["edit gateway.toml", "run `make gateway`"],
        "what": "`make gateway` fails",
        "why": "port in use",
        "instead": "run `make stop` first",
    }


def _ruling(window: int) -> Ruling:
    return Ruling(Prices(listed_prices()), "anthropic", window)


def _file(name: str) -> Path:
    return DATA / f"{name}.jsonl.gz"


if __name__ == "__main__":
    main()
