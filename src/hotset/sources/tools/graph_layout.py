"""Where the tools of a picture stand: what belongs together is close, and no label lies over another. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_APART = 120.0  # what two tools that are tied keep between them
_HOLD = 0.05  # the pull of the faintest tie, so that what hangs together stays in one picture
_ROUNDS = 80
_GOLDEN = math.pi * (3 - math.sqrt(5))  # a spiral of this angle never stands two points in line
_GAP = 40.0
_ROW = 1100.0  # about as wide as a page


@dataclass(frozen=True, slots=True)
class Box:
    """The room that a tool takes around its point."""

    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    places: Mapping[str, tuple[float, float]]
    width: float
    height: float


def layout(boxes: Mapping[str, Box], ties: Mapping[tuple[str, str], float]) -> Layout:
    """Each group of tools that hang together by itself, the largest first, in rows."""
    groups = [_spread(_pulled(group, ties), boxes) for group in _groups(sorted(boxes), ties)]
    places: dict[str, tuple[float, float]] = {}
    x = y = tallest = widest = 0.0
    for group in groups:
        left = min(x_ - boxes[name].width / 2 for name, (x_, _) in group.items())
        top = min(y_ - boxes[name].height / 2 for name, (_, y_) in group.items())
        right = max(x_ + boxes[name].width / 2 for name, (x_, _) in group.items())
        bottom = max(y_ + boxes[name].height / 2 for name, (_, y_) in group.items())
        if x and x + right - left > _ROW:
            x, y, tallest = 0.0, y + tallest + _GAP, 0.0
        places |= {name: (x + x_ - left, y + y_ - top) for name, (x_, y_) in group.items()}
        x, tallest = x + right - left + _GAP, max(tallest, bottom - top)
        widest = max(widest, x - _GAP)
    return Layout(places, widest, y + tallest)


def _groups(names: Sequence[str], ties: Mapping[tuple[str, str], float]) -> list[list[str]]:
    mates: dict[str, list[str]] = {name: [] for name in names}
    for one, other in ties:
        mates[one].append(other)
        mates[other].append(one)
    seen: set[str] = set()
    groups = []
    for name in names:
        group, waiting = [], [name]
        while waiting:
            here = waiting.pop()
            if here not in seen:
                seen.add(here)
                group.append(here)
                waiting += mates[here]
        if group:
            groups.append(sorted(group))
    return sorted(groups, key=lambda group: (-len(group), group[0]))


def _pulled(group: Sequence[str], ties: Mapping[tuple[str, str], float]) -> dict[str, tuple[float, float]]:
    """All push each other away, those that are tied pull, in ever shorter steps (Fruchterman and Reingold)."""
    points = [
        [_APART * math.sqrt(at) * math.cos(at * _GOLDEN), _APART * math.sqrt(at) * math.sin(at * _GOLDEN)]
        for at in range(len(group))
    ]
    at = {name: place for place, name in enumerate(group)}
    pulls = [(at[one], at[other], _HOLD + 2 * weight) for (one, other), weight in sorted(ties.items()) if one in at]
    for round_ in range(_ROUNDS if len(group) > 1 else 0):
        moves = _moves(points, pulls)
        longest = _APART * (1 - round_ / _ROUNDS)
        for point, (dx, dy) in zip(points, moves, strict=True):
            length = math.hypot(dx, dy) or 1.0
            point[0] += dx / length * min(length, longest)
            point[1] += dy / length * min(length, longest)
    return {name: (points[place][0], points[place][1]) for name, place in at.items()}


def _moves(points: Sequence[Sequence[float]], pulls: Sequence[tuple[int, int, float]]) -> list[list[float]]:
    moves = [[0.0, 0.0] for _ in points]
    for one, (x, y) in enumerate(points):
        for other in range(one):
            dx, dy = x - points[other][0], y - points[other][1]
            push = _APART * _APART / max(dx * dx + dy * dy, 1.0)
            moves[one][0] += dx * push
            moves[one][1] += dy * push
            moves[other][0] -= dx * push
            moves[other][1] -= dy * push
    for one, other, weight in pulls:
        dx, dy = points[one][0] - points[other][0], points[one][1] - points[other][1]
        pull = weight * math.hypot(dx, dy) / _APART
        moves[one][0] -= dx * pull
        moves[one][1] -= dy * pull
        moves[other][0] += dx * pull
        moves[other][1] += dy * pull
    return moves


def _spread(places: Mapping[str, tuple[float, float]], boxes: Mapping[str, Box]) -> dict[str, tuple[float, float]]:
    """From the top down: each moves down to where it lies over none of those that have their place."""
    free: dict[str, tuple[float, float]] = {}
    for name, (x, top) in sorted(places.items(), key=lambda place: (place[1][1], place[0])):
        y = top
        for other, (x_, y_) in sorted(free.items(), key=lambda place: place[1][1]):
            apart = (boxes[name].height + boxes[other].height) / 2
            if abs(x - x_) < (boxes[name].width + boxes[other].width) / 2 and abs(y - y_) < apart:
                y = y_ + apart
        free[name] = x, y
    return free
