"""Cost against faults as a picture: one panel a set, every policy a point; what lies lower and
further left is better.

    make bench-frontier

draws `docs/frontier.svg` from the table of `docs/numbers.md`, which `make bench-replay` measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
_FIGURES = re.compile(r"\**([\d.]+) / ([\d.]+)\**")
_COSTS_ONLY = ("by cache marks", "tokens sent, hotset / lean")

_COLUMNS = 2
_WIDE, _HIGH = 460, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 16, 40, 44
_DEAREST = 150.0  # percent; a dearer point stands at the edge, with its figure
_TURNED = 120.0  # percent; from here on names stand to the left of their points
_LETTER, _LINE = 6.0, 12.0  # about the size of a letter
_STEP_X, _STEP_Y = 25, 5
_OURS, _OTHERS, _MARK, _INK, _GRID = "#0b7a4b", "#8a8f98", "#0b7a4b", "#24292f", "#e3e6ea"


@dataclass(frozen=True, slots=True)
class Point:
    name: str
    cost: float
    faults: float
    ours: bool
    named: bool


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    cost: float
    """The mark to reach, with `faults`."""
    faults: float
    points: Sequence[Point]


def main() -> None:
    (DOCS / "frontier.svg").write_text(draw(panels((DOCS / "numbers.md").read_text())))
    print(f"drawn: {DOCS / 'frontier.svg'}")


def panels(page: str) -> list[Panel]:
    """The sets of the first table on the page of numbers, with what each policy costs there and
    how often it faults."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.split("\n## ")[1].splitlines()
        if line.startswith("|")
    ]
    heads = rows[0]
    return [
        Panel(
            cells[0],
            0.0,
            0.0,
            [
                Point("everything", 100.0, 0.0, ours=False, named=True),
                *(
                    Point(
                        head.removeprefix("its profile ").strip("`"),
                        float(found[1]),
                        float(found[2]),
                        ours=head == "hotset" or head.startswith("its profile"),
                        named=True,
                    )
                    for head, cell in zip(heads[1:], cells[1:], strict=True)
                    if head not in _COSTS_ONLY and (found := _FIGURES.fullmatch(cell))
                ),
            ],
        )
        for cells in rows[2:]
    ]


def draw(panels: Sequence[Panel]) -> str:
    """An SVG."""
    rows = -(-len(panels) // _COLUMNS)
    body = "\n".join(
        (
            f"<g "
            f'transform="translate({number % _COLUMNS * _WIDE},{number // _COLUMNS * _HIGH})">'
            f"\n{''.join(_panel(panel))}</g>"
        )
        for number, panel in enumerate(panels)
    )
    size = (
        f'width="{_WIDE * _COLUMNS}" height="{_HIGH * rows}" viewBox="0 0 {_WIDE * _COLUMNS} '
        f'{_HIGH * rows}"'
    )
    style = f'font-family="system-ui, sans-serif" font-size="11" fill="{_INK}"'
    paper = '<rect width="100%" height="100%" fill="#fff"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{paper}\n{body}\n</svg>\n'


@dataclass(frozen=True, slots=True)
class _Scale:
    most: float
    """Faults at the upper edge."""

    def x(self, cost: float) -> float:
        return round(_LEFT + min(cost, _DEAREST) / _DEAREST * (_WIDE - _LEFT - _RIGHT), 1)

    def y(self, faults: float) -> float:
        return round(_HIGH - _BOTTOM - faults / self.most * (_HIGH - _TOP - _BOTTOM), 1)


def _panel(panel: Panel) -> Iterator[str]:
    highest = max(point.faults for point in panel.points)
    scale = _Scale(_STEP_Y * (highest // _STEP_Y + 1))
    yield (
        f'<text x="{_LEFT}" y="20" font-size="13" font-weight="600">{escape(panel.title)}</text>\n'
    )
    yield from _grid(scale)
    yield _box(scale, panel)
    yield _line(scale, [point for point in panel.points if point.ours])
    for point in sorted(panel.points, key=lambda point: point.ours):
        yield _dot(scale, point)
    yield from _names(scale, [point for point in panel.points if point.named])


def _grid(scale: _Scale) -> Iterator[str]:
    left, right, low, high = scale.x(0), scale.x(_DEAREST), scale.y(0), scale.y(scale.most)
    for cost in range(0, int(_DEAREST) + 1, _STEP_X):
        x = scale.x(cost)
        yield f'<path d="M{x} {low}V{high}" stroke="{_GRID}"/>'
        yield f'<text x="{x}" y="{low + 14}" text-anchor="middle">{cost}</text>\n'
    for faults in range(0, int(scale.most) + 1, _STEP_Y):
        y = scale.y(faults)
        yield f'<path d="M{left} {y}H{right}" stroke="{_GRID}"/>'
        yield f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{faults}</text>\n'
    middle = (left + right) / 2
    yield (
        f'<text x="{middle}" y="{low + 30}" text-anchor="middle">cost '
        f"with faults paid, % of full "
        f"history</text>\n"
    )
    yield (
        f'<text transform="translate(14 {(low + high) / 2}) rotate(-90)" '
        f'text-anchor="middle">faults in 100 replies</text>\n'
    )


def _box(scale: _Scale, panel: Panel) -> str:
    """What meets the mark."""
    x, y = scale.x(panel.cost), scale.y(panel.faults)
    wide, high = round(x - scale.x(0), 1), round(max(2.0, scale.y(0) - y), 1)
    return (
        f'<rect x="{scale.x(0)}" y="{scale.y(0) - high}" width="{wide}" height="{high}" '
        f'fill="{_MARK}" opacity="0.12"/>\n'
    )


def _line(scale: _Scale, points: Sequence[Point]) -> str:
    """Our frontier: the points that no other of ours beats on both."""
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.cost, point.faults)):
        if not best or point.faults < best[-1].faults:
            best.append(point)
    path = " ".join(f"{scale.x(point.cost)},{scale.y(point.faults)}" for point in best)
    return (
        f'<polyline points="{path}" fill="none" stroke="{_OURS}" stroke-width="1.5" '
        f'opacity="0.6"/>\n'
    )


def _dot(scale: _Scale, point: Point) -> str:
    title = (
        f"<title>{escape(point.name)}: cost {point.cost:.1f} %, {point.faults:.1f} faults in "
        f"100</title>"
    )
    place = f'cx="{scale.x(point.cost)}" cy="{scale.y(point.faults)}" r="{5 if point.named else 3}"'
    return f'<circle {place} fill="{_colour(point)}">{title}</circle>\n'


def _names(scale: _Scale, points: Sequence[Point]) -> Iterator[str]:
    """Each beside its point; one that would stand on another moves up."""
    taken: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda point: (point.faults, -point.cost)):
        told = f"{point.name} ({point.cost:.0f} %)" if point.cost > _DEAREST else point.name
        wide = _LETTER * len(told)
        turned = point.cost > _TURNED
        x, y = scale.x(point.cost) + (-8 if turned else 8), scale.y(point.faults) - 4
        left = x - wide if turned else x
        while any(abs(left - other) < wide and abs(y - height) < _LINE for other, height in taken):
            y -= _LINE
        taken.append((left, y))
        style = (
            f'text-anchor="{"end" if turned else "start"}" '
            f'font-weight="{700 if point.ours else 400}" fill="{_colour(point)}"'
        )
        yield f'<text x="{round(x, 1)}" y="{round(y, 1)}" {style}>{escape(told)}</text>\n'


def _colour(point: Point) -> str:
    return _OURS if point.ours else _OTHERS


if __name__ == "__main__":
    main()
