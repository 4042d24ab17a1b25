"""The window as a strip of cells, in the order in which it was sent: laid out here, drawn by those
who have a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotset.runtime.views.window import WindowSegment


@dataclass(frozen=True, slots=True)
class StripCell:
    """A cell's width of the window: what most of it is."""

    kind: str
    form: str


def lay_out(
    segments: Sequence[WindowSegment], cells: int, scale: int, *, is_client: bool = False
) -> tuple[StripCell, ...]:
    """Segments as cells, where `scale` tokens fill all of them: as they were sent, or, for the
    client, as they came. Fewer cells where the segments take less."""
    edges: list[tuple[float, StripCell]] = []
    here = 0.0
    for each in segments:
        tokens = each.whole if is_client else each.tokens
        if tokens > 0:
            here += tokens * cells / max(1, scale)
            edges.append((here, StripCell(each.kind, "full" if is_client else each.form)))
    laid: list[StripCell] = []
    at = 0
    for number in range(min(cells, round(here))):
        while edges[at][0] <= number and at < len(edges) - 1:
            at += 1
        laid.append(_widest(edges, at, number))
    return tuple(laid)


def _widest(edges: Sequence[tuple[float, StripCell]], at: int, number: int) -> StripCell:
    """What takes most of the cell `number`, of the segments from `at` on."""
    widths: dict[StripCell, float] = {}
    left = float(number)
    for end, cell in edges[at:]:
        right = min(end, number + 1.0)
        widths[cell] = widths.get(cell, 0.0) + max(0.0, right - left)
        left = max(left, right)
        if end >= number + 1:
            break
    return max(widths, key=lambda cell: widths[cell])
