"""Draws how often something came true against how likely it was said to be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

_SIZE, _LEFT, _TOP, _GAP = 300, 56, 40, 84
_COLOURS = ("#0b7a4b", "#b4541a", "#3a5fbf", "#8a4fa0")
_INK, _GRID = "#24292f", "#e3e6ea"


@dataclass(frozen=True, slots=True)
class Bin:
    said: float
    came: float
    many: int


def bins(pairs: Sequence[tuple[float, bool]], borders: Sequence[float]) -> list[Bin]:
    """Pairs of what was said and whether it came true, gathered between the borders."""
    made = []
    for low, high in pairwise(borders):
        here = [pair for pair in pairs if low <= pair[0] < high]
        if here:
            made.append(
                Bin(
                    sum(said for said, _ in here) / len(here),
                    sum(came for _, came in here) / len(here),
                    len(here),
                )
            )
    return made


def draw(panels: Mapping[str, Mapping[str, Sequence[Bin]]]) -> str:
    """An SVG: a panel for each title, a line in it for each set."""
    wide, high = len(panels) * (_SIZE + _GAP) + _LEFT, _SIZE + _TOP + 64
    body = "\n".join(
        (
            f'<g transform="translate({_LEFT + number * (_SIZE + _GAP)},{_TOP})">\n'
            f"{''.join(_panel(title, lines))}</g>"
        )
        for number, (title, lines) in enumerate(panels.items())
    )
    style = f'font-family="system-ui, sans-serif" font-size="11" fill="{_INK}"'
    frame = f'width="{wide}" height="{high}" viewBox="0 0 {wide} {high}"'
    paper = '<rect width="100%" height="100%" fill="#fff"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {frame} {style}>\n{paper}\n{body}\n</svg>\n'


def _panel(title: str, lines: Mapping[str, Sequence[Bin]]) -> Iterator[str]:
    yield f'<text x="0" y="-18" font-size="13" font-weight="600">{escape(title)}</text>\n'
    for step in range(0, 11, 2):
        at = step / 10
        yield f'<path d="M{_x(at)} {_y(0)}V{_y(1)}M{_x(0)} {_y(at)}H{_x(1)}" stroke="{_GRID}"/>'
        yield f'<text x="{_x(at)}" y="{_y(0) + 15}" text-anchor="middle">{at:g}</text>'
        yield f'<text x="-8" y="{_y(at) + 4}" text-anchor="end">{at:g}</text>\n'
    yield (
        f'<path d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}" stroke="{_INK}" stroke-dasharray="4 4" '
        f'opacity="0.5"/>\n'
    )
    yield f'<text x="{_SIZE / 2}" y="{_SIZE + 32}" text-anchor="middle">confidence</text>\n'
    yield (
        f'<text transform="translate(-38 {_SIZE / 2}) rotate(-90)" text-anchor="middle">came to '
        f"be used</text>\n"
    )
    for number, (name, found) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(f"{_x(each.said)},{_y(each.came)}" for each in found)
        yield (
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5" '
            f'opacity="0.7"/>\n'
        )
        for each in found:
            told = (
                f"<title>{escape(name)}: said {each.said:.2f}, came "
                f"{each.came:.2f}, {each.many} "
                f"finds</title>"
            )
            radius = round(2 + min(6.0, each.many**0.5 / 3), 1)
            yield (
                f'<circle cx="{_x(each.said)}" cy="{_y(each.came)}" r="{radius}" '
                f'fill="{colour}">{told}</circle>\n'
            )
        yield (
            f'<text x="10" y="{14 + 15 * number}" fill="{colour}" '
            f'font-weight="600">{escape(name)}</text>\n'
        )


def _x(share: float) -> float:
    return round(share * _SIZE, 1)


def _y(share: float) -> float:
    return round((1 - share) * _SIZE, 1)
