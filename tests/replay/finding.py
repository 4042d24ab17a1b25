"""What a search would have found and kept."""

from __future__ import annotations

from pathlib import Path

from hotset.learn.events import BY_EVOLUTION, Change, GateVerdict, change_id
from hotset.nouns.knobs import Knobs
from hotset.replay.evolve import EvolveResult, FrontPoint, PartResult, base_of, keep_result
from hotset.replay.evolve_fitness import FitnessWeights, SessionScore


def keep_found(folder: Path, values: dict[str, object], on: Knobs, *, passed: bool = True) -> str:
    """A search found these values of history's knobs, on sessions with those; the change's id."""
    base = base_of("history", on)
    change = Change(
        id=change_id({"knobs": values, "base": base}, BY_EVOLUTION),
        knobs=values,
        before={name: on.value(name) for name in values},
        by=BY_EVOLUTION,
        why="it was better",
    )
    verdict = GateVerdict(change.id, passed=passed, gain=0.2, low=0.1, high=0.3, sessions=12)
    score = SessionScore(0.5, 0.5)
    part = PartResult(
        part="history",
        searched=12,
        held_out=12,
        tried=40,
        seconds=1.0,
        is_complete=True,
        base=base,
        why="passed" if passed else "refused: not shown to be better",
        change=change,
        verdict=verdict,
        before=score,
        after=score,
        front=(FrontPoint(0.5, 0.5), FrontPoint(0.6, 0.52, values)),
        points=((0.5, 0.5), (0.6, 0.52), (0.45, 0.55)),
    )
    keep_result(folder / "evolve", EvolveResult(1.0, 0, FitnessWeights(), (part,)))
    return change.id
