"""Fits the weights of `hotset.sources.memory.relevance` to hand-made cases, and prints them.

Logistic, with a penalty; what it says of a project is also measured with that project left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.telling import CASES, keep, project
from hotset.index.embed.table import WordVectors
from hotset.nouns.memory import Standing
from hotset.sources.memory.relevance import RelevanceSigns, Tellable, is_idle, tellable, weigh_signs

_PENALTY = 20.0
_FOLDS = 10
_TOLD_AT = (0.4, 0.5, 0.6)
_MOST = 2

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Case:
    project: str
    signs: Floats
    """A row for each memory."""
    labels: Floats
    """1: right, 0: wrong, -1: it would do no harm."""


def fit(projects: Sequence[Mapping[str, Any]]) -> tuple[float, ...]:
    cases = [case for given in projects for case in read(given)]
    names = sorted({case.project for case in cases})
    folds = {name: at % _FOLDS for at, name in enumerate(names)}
    worths: list[Floats] = [np.zeros(0)] * len(cases)
    for fold in range(_FOLDS):
        weights = fitted([case for case in cases if folds[case.project] != fold])
        for at, case in enumerate(cases):
            if folds[case.project] == fold:
                worths[at] = 1 / (1 + np.exp(-case.signs @ weights))
    for at in _TOLD_AT:
        print(f"left out, told at {at}: {judged(cases, worths, at)}")
    weights = fitted(cases)
    for name, weight in zip(RelevanceSigns._fields, weights, strict=True):
        print(f"{name:12} {weight:8.3f}")
    print(tuple(round(float(weight), 2) for weight in weights))
    return tuple(map(float, weights))


def read(given: Mapping[str, Any]) -> Iterable[Case]:
    table = WordVectors()
    with project() as (memories, store, _, _):
        names = {keep(memories, each): each["id"] for each in given["memories"]}
        known = [
            each
            for memory in store.memories(standings=frozenset({Standing.ACTIVE}))
            if (each := tellable(memory)) is not None
        ]
        vectors = (
            table.embed([each.memory.text for each in known]),
            table.embed([each.condition for each in known]),
        )
        often = Counter(word for each in known for word in each.words)
        for task in given["tasks"]:
            if is_idle(task["prompt"]):
                continue
            places, signs = weigh_signs(table, task["prompt"], known, vectors, often)
            labels = [_label(task, names[known[at].memory.id], known[at]) for at in places]
            yield Case(given["project"], signs, np.array(labels))


def _label(task: Mapping[str, Any], id: str, each: Tellable) -> float:
    if id in task["right"]:
        return 1.0
    return -1.0 if id in task["ok"] or each.is_routine else 0.0


def fitted(cases: Sequence[Case]) -> Floats:
    """Weights of the signs as they are."""
    signs = np.concatenate([case.signs for case in cases])
    labels = np.concatenate([case.labels for case in cases])
    signs, labels = signs[labels >= 0], labels[labels >= 0]
    mean, spread = signs.mean(0), signs.std(0)
    mean[0], spread[0] = 0.0, 1.0
    rows = (signs - mean) / np.maximum(spread, 1e-9)
    weights = np.zeros(rows.shape[1])
    penalty = _PENALTY * np.eye(len(weights))
    penalty[0, 0] = 1e-6
    for _ in range(60):
        likely = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (likely - labels) + penalty @ weights
        bend = (rows * (likely * (1 - likely))[:, None]).T @ rows + penalty
        weights -= np.linalg.solve(bend, slope)
    plain = weights / np.maximum(spread, 1e-9)
    plain[0] = weights[0] - float((weights[1:] * mean[1:] / np.maximum(spread[1:], 1e-9)).sum())
    return plain


def judged(cases: Sequence[Case], worths: Sequence[Floats], least: float) -> str:
    right = wrong = needed = silent = kept_silent = 0
    for case, worth in zip(cases, worths, strict=True):
        told = [at for at in np.argsort(-worth)[:_MOST] if worth[at] >= least]
        right += sum(case.labels[at] == 1 for at in told)
        wrong += sum(case.labels[at] == 0 for at in told)
        needed += int((case.labels == 1).sum())
        if not (case.labels == 1).any():
            silent += 1
            kept_silent += not any(case.labels[at] == 0 for at in told)
    return (
        f"precision {right / max(1, right + wrong):.0%}, recall {right / max(1, needed):.0%}, "
        f"silence {kept_silent / max(1, silent):.0%}"
    )


if __name__ == "__main__":
    fit([each for each in json.loads(CASES.read_text()) if each["split"] != "held out"])
