"""The Pareto front as a picture: one panel a part, every configuration a point; what lies lower and
further left is better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from hotset.replay.evolve import EvolveResult, PartResult

_WIDE, _HIGH = 460, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 16, 48, 48
_OURS, _OTHERS, _INK, _GRID = "#0b7a4b", "#b6bbc2", "#24292f", "#e3e6ea"
_STEPS = 4
_AROUND = 0.08  # of the span, free at each side
_LEAST_SPAN = 0.01
_AXES = {
    "window": ("cost, % of full history's", "actions with a fault, %"),
    "history": ("room read until it is found, %", "needs that one search misses, %"),
    "memory": ("places read until it is found, %", "100 - NDCG@10"),
}


def draw_front(result: EvolveResult) -> str:
    """An SVG."""
    parts = [part for part in result.parts if part.points]
    body = "\n".join(
        f'<g transform="translate({number * _WIDE},0)">{"".join(_panel(part))}</g>'
        for number, part in enumerate(parts)
    )
    wide = _WIDE * max(1, len(parts))
    size = f'width="{wide}" height="{_HIGH}" viewBox="0 0 {wide} {_HIGH}"'
    style = f'font-family="system-ui, sans-serif" font-size="11" fill="{_INK}"'
    paper = '<rect width="100%" height="100%" fill="#fff"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{paper}\n{body}\n</svg>\n'


def axes_of(part: str) -> tuple[str, str]:
    """What a part's share spent is, and what it lacks of its task score."""
    return _AXES.get(part, ("spent, %", "missed, %"))


class _Scale:
    """From a share to a place on the paper."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        low, high = min(values), max(values)
        around = max(high - low, _LEAST_SPAN) * _AROUND
        self._low, self._high = low - around, max(high, low + _LEAST_SPAN) + around
        self._begin, self._end = begin, end

    def at(self, value: float) -> float:
        share = (value - self._low) / (self._high - self._low)
        return round(self._begin + share * (self._end - self._begin), 1)

    def steps(self) -> list[float]:
        return [self._low + step * (self._high - self._low) / _STEPS for step in range(_STEPS + 1)]


def _panel(part: PartResult) -> Iterator[str]:
    points = [(spent, 1 - task) for task, spent in part.points]
    across = _Scale([x for x, _ in points], _LEFT, _WIDE - _RIGHT)
    up = _Scale([y for _, y in points], _HIGH - _BOTTOM, _TOP)
    title = f"{part.part}: {part.tried} configurations, {part.searched} sessions"
    yield f'<text x="{_LEFT}" y="20" font-size="13" font-weight="600">{escape(title)}</text>'
    for x in across.steps():
        at = across.at(x)
        yield f'<path d="M{at} {_TOP}V{_HIGH - _BOTTOM}" stroke="{_GRID}"/>'
        yield f'<text x="{at}" y="{_HIGH - 30}" text-anchor="middle">{100 * x:.1f}</text>'
    for y in up.steps():
        at = up.at(y)
        yield f'<path d="M{_LEFT} {at}H{_WIDE - _RIGHT}" stroke="{_GRID}"/>'
        yield f'<text x="{_LEFT - 6}" y="{at + 4}" text-anchor="end">{100 * y:.1f}</text>'
    below, beside = axes_of(part.part)
    middle = (_LEFT + _WIDE - _RIGHT) // 2
    yield f'<text x="{middle}" y="{_HIGH - 10}" text-anchor="middle">{escape(below)}</text>'
    yield f'<text x="{_LEFT}" y="38">{escape(beside)}</text>'
    for x, y in points[1:]:
        yield f'<circle cx="{across.at(x)}" cy="{up.at(y)}" r="2.5" fill="{_OTHERS}"/>'
    line = " ".join(f"{across.at(each.spent)},{up.at(1 - each.task)}" for each in part.front)
    yield f'<polyline points="{line}" fill="none" stroke="{_OURS}" stroke-width="1.5"/>'
    for each in part.front:
        x, y = across.at(each.spent), up.at(1 - each.task)
        yield f'<circle cx="{x}" cy="{y}" r="3.5" fill="{_OURS}"/>'
    x, y = across.at(points[0][0]), up.at(points[0][1])
    yield f'<circle cx="{x}" cy="{y}" r="5" fill="none" stroke="{_INK}" stroke-width="2"/>'
    yield f'<text x="{x + 8}" y="{y - 6}" font-weight="600">in force</text>'
