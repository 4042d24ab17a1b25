"""Tables: the header, the first and last rows, rows that stand out or are near what was asked for,
and rows counted in gaps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from hotset.window.preview.asking import ToolQuery, closeness
from hotset.window.preview.body import Body
from hotset.window.preview.excerpt import LineSpan, Reading, Worth
from hotset.window.preview.rarity import odd_rows, shown

COMMAS, SEMICOLONS, TABS, PIPES, WIDE = (
    re.compile(each) for each in (",", ";", "\t", r"\|", " {2,}")
)
"""What stands between cells; the last one where columns are aligned."""

_HEADER_LINES = 2
_FIRST_ROWS = 5
_ALIKE = 0.9  # of the lines have as many cells as most
_FEWEST_CELLS = 3
_LONGEST_CELL = 200
_SAMPLE = 120  # lines that tell what stands between the cells
_COLUMNS = 40  # that are looked at


def read(body: Body, asked: ToolQuery) -> Reading:
    lines = body.lines
    scores = closeness(lines, asked)
    spans = [
        LineSpan(body.first, body.first + min(len(lines), _HEADER_LINES), Worth.HEAD + 5, least=1)
    ]
    spans.append(
        LineSpan(
            body.first,
            body.first + min(len(lines), _HEADER_LINES + _FIRST_ROWS),
            Worth.HEAD,
            least=1,
        )
    )
    spans.append(LineSpan(max(body.first, body.end - 3), body.end, Worth.HEAD - 1, least=1))
    spans.extend(
        LineSpan(
            body.first + index,
            body.first + index + 1,
            Worth.REST + 10 * (1 - index / len(lines)) + Worth.ASKED * score,
        )
        for index, score in enumerate(scores)
    )
    spans.extend(shown(body, odd_rows(zip(*_cells(lines), strict=True))))
    return Reading(spans, rows)


def rows(first: int, end: int) -> Sequence[str]:
    return [f"{end - first:,} rows"]


def separates(between: re.Pattern[str], lines: Sequence[str]) -> bool:
    """Has nearly every line as many cells as the others, none of them long?"""
    if len(lines) < _FEWEST_CELLS:
        return False
    cells = [between.split(line.strip(" ")) for line in lines]
    count, times = Counter(map(len, cells)).most_common(1)[0]
    short = sum(1 for row in cells if max(map(len, row)) <= _LONGEST_CELL)
    return count >= _FEWEST_CELLS and min(times, short) > _ALIKE * len(lines)


def _cells(lines: Sequence[str]) -> list[list[str]]:
    """All rows, each with as many cells as the widest."""
    sample = lines[:_SAMPLE]
    between = next(
        (each for each in (TABS, PIPES, SEMICOLONS, COMMAS, WIDE) if separates(each, sample)),
        COMMAS,
    )
    cells = [
        [cell.strip() for cell in between.split(line.strip(" "), maxsplit=_COLUMNS)]
        for line in lines
    ]
    widest = max(map(len, cells), default=0)
    return [[*row, *[""] * (widest - len(row))] for row in cells]
