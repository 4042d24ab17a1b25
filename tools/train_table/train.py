"""Trains the table: one vector a token, so that the sum of a text's vectors points where MiniLM
points, and pairs point alike.

    python train.py MODEL.safetensors PAIRS.jsonl.gz OUT_FOLDER TEACHER.npz...

The start is MiniLM's vector of each token alone, weighed by how rare the token is. Then, in
batches: texts against their teacher vectors (the batch's teacher vectors as choices, and the cosine
itself), pairs against each other (the batch's other halves as choices). A batch of pairs is of one
kind, and half of them of one package, because a search asks within a project. numpy and scipy only.
Prints how well pairs and texts that were put aside are found, and writes table.npy and weights.npy.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, vstack

from hotset.index.embed.minilm import _forward, read_weights
from hotset.index.embed.wordpiece import SPECIAL, tokens_of

VOCABULARY = 30522
MOST_TOKENS = 192
ASIDE = 1000  # texts, and pairs of each kind, that are not learned from
RARE = 1e-3  # a token this frequent weighs half


@dataclass
class Options:
    epochs: int = 3
    batch: int = 512
    rate: float = 2e-3
    sharp: float = 20.0  # one over the temperature of choices among pairs
    sharp_teacher: float = 20.0
    cosine: float = 5.0  # how much the cosine to the teacher counts beside the choice
    most_pairs: int = 360_000
    teacher_passes: int = 2  # over the teacher's texts in each epoch
    # the share of batches in which the second halves stand among one to four others, as in a long
    # document
    diluted: float = 0.3


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("model", "pairs", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("teacher", type=Path, nargs="+")
    for name, value in vars(Options()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    given = vars(parser.parse_args())
    model, pairs, out, teacher = (given.pop(name) for name in ("model", "pairs", "out", "teacher"))
    train(model, pairs, out, teacher, Options(**given))


def train(model: Path, pairs: Path, out: Path, teacher: list[Path], options: Options) -> None:
    rng = np.random.default_rng(0)
    taught = [np.load(file) for file in teacher]
    texts = vstack([matrix(some["ids"], some["ends"]) for some in taught], "csr")
    goal = np.concatenate([some["vectors"] for some in taught]).astype(np.float32)
    kinds, packages, left, right = load_pairs(pairs, options.most_pairs)
    print(f"{texts.shape[0]} texts, {len(kinds)} pairs", flush=True)
    table = weighed(start(model, out / "start.npy"), [texts, left, right])
    adam = Adam(table, options.rate)
    groups, aside = split(kinds, rng)
    learn = np.arange(ASIDE, texts.shape[0])
    report(table, (texts, goal), (left, right), aside, "start")
    steps = (
        options.epochs
        * (options.teacher_passes * len(learn) + sum(map(len, groups.values())))
        // options.batch
    )
    begun = time.process_time()
    done = 0
    for epoch in range(options.epochs):
        for what, rows in schedule(learn, groups, packages, options, rng):
            adam.rate = options.rate * max(0.02, 0.5 * (1 + np.cos(np.pi * min(1, done / steps))))
            done += 1
            if what == "teacher":
                teach(adam, texts[rows], goal[rows], options)
            else:
                found = right[rows]
                if rng.random() < options.diluted:
                    for _ in range(rng.integers(1, 5)):
                        found = found + right[rng.choice(groups[what], len(rows))]
                pair(adam, left[rows], found, options.sharp)
        report(
            table,
            (texts, goal),
            (left, right),
            aside,
            f"epoch {epoch + 1}, {time.process_time() - begun:.0f} cpu-s",
        )
        save(table, out)


# Reading


def load_pairs(path: Path, most: int) -> tuple[np.ndarray, np.ndarray, csr_matrix, csr_matrix]:
    """Shuffled already; kinds that are many give way to those that are few."""
    with gzip.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    by_kind = defaultdict(list)
    for row in rows:
        by_kind[row[0]].append(row)
    share = most
    for rank, kind in enumerate(sorted(by_kind, key=lambda kind: len(by_kind[kind]))):
        by_kind[kind] = by_kind[kind][: share // (len(by_kind) - rank)]
        share -= len(by_kind[kind])
    rows = [row for some in by_kind.values() for row in some]
    print({kind: len(some) for kind, some in by_kind.items()})
    sides = []
    for side in (2, 3):
        tokens = tokens_of([row[side] for row in rows], MOST_TOKENS)
        sides.append(matrix(np.concatenate(tokens), np.cumsum([len(t) for t in tokens])))
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows]), *sides


def matrix(ids: np.ndarray, ends: np.ndarray) -> csr_matrix:
    """A row for each text, a column for each token: how often."""
    starts = np.concatenate([[0], ends]).astype(np.int64)
    texts = csr_matrix(
        (np.ones(len(ids), np.float32), ids.astype(np.int32), starts), (len(ends), VOCABULARY)
    )
    texts.sum_duplicates()
    return texts


def start(model: Path, memo: Path) -> np.ndarray:
    """MiniLM's vector of each token alone: a minute, so it is kept."""
    if memo.exists():
        return np.load(memo)
    weights = read_weights(model)
    table = np.zeros((VOCABULARY, 384), np.float32)
    for first in range(0, VOCABULARY, 256):
        ids = np.arange(first, min(first + 256, VOCABULARY))
        table[ids] = _forward(
            weights, np.stack([np.full_like(ids, 101), ids, np.full_like(ids, 102)], 1)
        ).mean(1)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    table[list(SPECIAL)] = 0
    memo.parent.mkdir(parents=True, exist_ok=True)
    np.save(memo, table)
    return table


def weighed(table: np.ndarray, texts: list[csr_matrix]) -> np.ndarray:
    counts = sum(np.bincount(some.indices, minlength=VOCABULARY) for some in texts)
    common = table[counts > 0].mean(0)  # what all tokens share says nothing
    return (
        (table - 0.7 * common * (np.linalg.norm(table, axis=1, keepdims=True) > 0))
        * (RARE / (RARE + counts / counts.sum()))[:, None]
    ).astype(np.float32)


def split(
    kinds: np.ndarray, rng: np.random.Generator
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    groups, aside = {}, {}
    for kind in np.unique(kinds):
        rows = rng.permutation(np.flatnonzero(kinds == kind))
        groups[kind], aside[kind] = rows[ASIDE:], rows[:ASIDE]
    return groups, aside


def schedule(
    learn: np.ndarray,
    groups: dict[str, np.ndarray],
    packages: np.ndarray,
    options: Options,
    rng: np.random.Generator,
) -> Iterator:
    batches = []
    for _ in range(options.teacher_passes):
        order = rng.permutation(learn)
        batches += [
            ("teacher", order[i : i + options.batch])
            for i in range(0, len(order) - options.batch, options.batch)
        ]
    for kind, rows in groups.items():
        mixed, ours = np.array_split(rng.permutation(rows), 2)
        ours = ours[np.argsort(packages[ours], kind="stable")]
        for order in (mixed, ours):
            batches += [
                (kind, order[i : i + options.batch])
                for i in range(0, len(order) - options.batch + 1, options.batch)
            ]
    rng.shuffle(batches)
    return iter(batches)


# Learning


class Adam:
    """Of the rows that a batch touches, and only of those."""

    def __init__(self, table: np.ndarray, rate: float) -> None:
        self.table, self.rate = table, rate
        self._mean, self._square = np.zeros_like(table), np.zeros_like(table)
        self._steps = np.zeros((len(table), 1), np.float32)

    def step(self, rows: np.ndarray, slope: np.ndarray) -> None:
        mean = self._mean[rows] * np.float32(0.9) + slope * np.float32(0.1)
        square = self._square[rows] * np.float32(0.99) + slope * slope * np.float32(0.01)
        self._mean[rows], self._square[rows] = mean, square
        self._steps[rows] += 1
        many = self._steps[rows]
        square /= 1 - np.float32(0.99) ** many
        np.sqrt(square, out=square)
        square += np.float32(1e-8)
        mean /= square * (1 - np.float32(0.9) ** many)
        self.table[rows] -= np.float32(self.rate) * mean


class Batch:
    """Texts as sums of the rows they touch; a token that comes four times counts twice, as in
    `hotset.index.embed.table`."""

    def __init__(self, table: np.ndarray, texts: csr_matrix) -> None:
        self.rows, columns = np.unique(texts.indices, return_inverse=True)
        self._counts = csr_matrix(
            (np.sqrt(texts.data), columns, texts.indptr), (texts.shape[0], len(self.rows))
        )
        sums = self._counts @ table[self.rows]
        self._lengths = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6)
        self.vectors = sums / self._lengths

    def slope(self, of_vectors: np.ndarray) -> np.ndarray:
        inward = of_vectors - (of_vectors * self.vectors).sum(1, keepdims=True) * self.vectors
        slope = self._counts.T @ (inward / self._lengths)
        slope[np.isin(self.rows, SPECIAL)] = 0
        return slope


def teach(adam: Adam, texts: csr_matrix, goal: np.ndarray, options: Options) -> None:
    batch = Batch(adam.table, texts)
    slope = (
        choice(batch.vectors, goal, options.sharp_teacher)[0]
        - np.float32(options.cosine / len(goal)) * goal
    )
    adam.step(batch.rows, batch.slope(slope))


def pair(adam: Adam, left: csr_matrix, right: csr_matrix, sharp: float) -> None:
    one, other = Batch(adam.table, left), Batch(adam.table, right)
    forth, of_other = choice(one.vectors, other.vectors, sharp)
    back, of_one = choice(other.vectors, one.vectors, sharp)
    rows = np.union1d(one.rows, other.rows)
    slope = np.zeros((len(rows), adam.table.shape[1]), np.float32)
    slope[np.searchsorted(rows, one.rows)] += one.slope(forth + of_one) / 2
    slope[np.searchsorted(rows, other.rows)] += other.slope(back + of_other) / 2
    adam.step(rows, slope)


def choice(asked: np.ndarray, choices: np.ndarray, sharp: float) -> tuple[np.ndarray, np.ndarray]:
    """Slopes of the cross entropy of finding one's own among all, for the asked and for the
    choices."""
    scores = np.float32(sharp) * (asked @ choices.T)
    scores -= scores.max(1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(1, keepdims=True)
    scores[np.diag_indices(len(scores))] -= 1
    scores *= np.float32(sharp / len(scores))
    return scores @ choices, scores.T @ asked


# Telling and keeping


def report(
    table: np.ndarray, taught: tuple, pairs: tuple, aside: dict[str, np.ndarray], when: str
) -> None:
    (texts, goal), (left, right) = taught, pairs
    told = [
        (
            f"cosine to the teacher "
            f"{(Batch(table, texts[:ASIDE]).vectors * goal[:ASIDE]).sum(1).mean():.3f}"
        )
    ]
    for kind, rows in aside.items():
        scores = Batch(table, left[rows]).vectors @ Batch(table, right[rows]).vectors.T
        places = (scores > np.diag(scores)[:, None]).sum(1)
        told.append(f"{kind} {(1 / (1 + places)).mean():.3f}")
    print(f"{when}: " + ", ".join(told), flush=True)


def save(table: np.ndarray, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    scale = np.abs(table).max(1) / 127
    np.save(out / "table.npy", np.rint(table / np.where(scale, scale, 1)[:, None]).astype(np.int8))
    np.save(out / "weights.npy", scale.astype(np.float32))


if __name__ == "__main__":
    main()
