"""Which of many vectors are near each other: block by block, so that the memory it takes does not grow with their square."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

_BLOCK = 512  # rows: a block of 512 x 512 numbers stays in the cache


def near_pairs(vectors: Vectors, least: float) -> Iterator[tuple[int, int, float]]:
    """Every two rows (the lower one first) whose product is at least so much, in the order of the rows."""
    for start in range(0, len(vectors), _BLOCK):
        rows = vectors[start : start + _BLOCK].astype(np.float32)
        found: list[tuple[int, int, float]] = []
        for other in range(start, len(vectors), _BLOCK):
            likeness = rows @ vectors[other : other + _BLOCK].astype(np.float32).T
            for row, column in zip(*np.nonzero(likeness >= least), strict=True):
                if start + int(row) < other + int(column):
                    found.append((start + int(row), other + int(column), float(likeness[row, column])))
        yield from sorted(found)


def nearest_before(vectors: Vectors, least: float, most: int) -> Iterator[list[int]]:
    """To each row at most so many of the rows before it whose product is at least so much, the nearest first."""
    for start in range(0, len(vectors), _BLOCK):
        rows = vectors[start : start + _BLOCK].astype(np.float32)
        found: list[list[tuple[float, int]]] = [[] for _ in rows]
        for other in range(0, start + 1, _BLOCK):
            likeness = rows @ vectors[other : other + _BLOCK].astype(np.float32).T
            likeness[start + np.arange(len(rows))[:, None] <= other + np.arange(likeness.shape[1])[None, :]] = -np.inf
            few = np.argsort(-likeness, axis=1, kind="stable")[:, :most]
            for row, columns in enumerate(few):
                near = [
                    (-float(likeness[row, column]), other + int(column)) for column in columns if likeness[row, column] >= least
                ]
                found[row] = sorted((*found[row], *near))[:most]
        yield from ([row for _, row in each] for each in found)


def leaders(vectors: Vectors, least: float) -> list[int]:
    """For each row the row that leads its cluster; a leader leads itself.

    A row joins the leader to which it is nearest among those before it, if that is near enough, and leads otherwise. So rows
    that come later change nothing about those before them.
    """
    leads: list[int] = []
    at: list[int] = []  # the row of each leader
    led = np.empty((0, vectors.shape[1]), vectors.dtype)
    for start in range(0, len(vectors), _BLOCK):
        rows = vectors[start : start + _BLOCK].astype(np.float32)
        best, nearest = _nearest(rows, led)
        among = rows @ rows.T
        new: list[int] = []  # rows of this block that lead
        for row in range(len(rows)):
            likeness, leader = float(best[row]), int(nearest[row])
            if new and float(among[row, new].max()) > likeness:
                within = int(among[row, new].argmax())
                likeness, leader = float(among[row, new[within]]), len(led) + within
            if likeness >= least:
                leads.append(at[leader])
            else:
                at.append(start + row)
                new.append(row)
                leads.append(start + row)
        led = np.concatenate((led, rows[new].astype(vectors.dtype)))
    return leads


def sketch(sets: Sequence[Sequence[tuple[int, float]]], size: int) -> Vectors:
    """Sets of numbered and weighed things as vectors: the product of two says how much they share, up to about 1/sqrt(size).

    Each thing has four places with a sign of its own.
    """
    drawn = np.zeros((len(sets), size), np.float32)
    for row, things in enumerate(sets):
        for number, weight in things:
            for turn in range(4):
                part = number >> 16 * turn
                drawn[row, (part & 0x7FFF) % size] += weight if part & 0x8000 else -weight
    lengths = np.sqrt(np.einsum("ij,ij->i", drawn, drawn))[:, None]
    np.divide(drawn, lengths, out=drawn, where=lengths > 0)
    return drawn


def _nearest(rows: Vectors, led: Vectors) -> tuple[Vectors, NDArray[np.intp]]:
    """To each row the likeness of its nearest leader, and which one that is."""
    best = np.full(len(rows), -np.inf, np.float32)
    nearest = np.zeros(len(rows), np.intp)
    for start in range(0, len(led), _BLOCK * 4):
        likeness = rows @ led[start : start + _BLOCK * 4].astype(np.float32).T
        where = likeness.argmax(axis=1)
        value = likeness[np.arange(len(rows)), where]
        better = value > best  # of two that are equally near the earlier one leads
        best[better], nearest[better] = value[better], where[better] + start
    return best, nearest
