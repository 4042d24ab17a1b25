"""Rows of a table or elements of an array, numbered from 1, with the table's header."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hotset.nouns.retrieval import Span
from hotset.window.slice import lines
from hotset.window.slice.fit import Count, Cut, clipped, fitting, tokens
from hotset.window.slice.json_text import document, elements, fields

_RULE = re.compile(r"(?=.*(?:--|==))[\s|+:=-]+")
"""The line below a header: of Markdown, of psql, of a box of dashes."""

_HEADER = 6  # lines in which a header ends
_LONGEST_ROW = 50  # lines: beyond that a quote was only a quote
_CELLS = re.compile(r"[,\t;|]")


def by_rows(text: str, spans: Sequence[Span], room: int, count: Count) -> Cut:
    table = _array(text) or _table(text)
    if table is None:
        return lines.by_lines(text, spans, room, count)
    header, rows = table
    wanted = [
        at for first, last in lines.merged(spans) for at in range(first, min(last, len(rows)) + 1)
    ]
    if not wanted:
        return Cut("", whole=False, note=f"no such rows; it has rows 1-{len(rows):,}")
    return _shown(header, rows, wanted, room, count, text=text)


def _shown(
    header: str, rows: Sequence[str], wanted: Sequence[int], room: int, count: Count, *, text: str
) -> Cut:
    left = room - tokens(header, count)
    pieces = [f"{rows[at - 1]}\n" for at in wanted]
    kept = fitting(pieces, left, count) if left > 0 else 0
    while kept and tokens(header + "".join(pieces[:kept]), count) > room:
        kept -= 1
    total = f"of {len(rows):,}"
    if kept == 0:
        row = rows[wanted[0] - 1]
        part = clipped(row, room, count)
        note = f"the first {len(part):,} of {len(row):,} characters of row {wanted[0]} {total}"
        return Cut(
            part, whole=False, note=f"{note}; {lines.rest_of(text, row, len(part))} for its rest"
        )
    note = f"row{'' if kept == 1 else 's'} {_told(wanted[:kept])} {total}"
    if kept < len(wanted):
        note += f'; rows="{_told(wanted[kept:])}" for more'
    return Cut(
        (header + "".join(pieces[:kept])).removesuffix("\n"), whole=kept == len(wanted), note=note
    )


def _told(rows: Sequence[int]) -> str:
    spans = lines.merged((at, at) for at in rows)
    return ",".join(f"{first}-{last}" if first < last else f"{first}" for first, last in spans)


def _array(text: str) -> tuple[str, list[str]] | None:
    """The elements of an array, or of the only array in an object: results come wrapped."""
    whole = document(text)
    if whole is None:
        return None
    found = elements(whole)
    if found is None:
        inside = [elements(value) for value in (fields(whole) or {}).values()]
        arrays = [each for each in inside if each]
        found = arrays[0] if len(arrays) == 1 else None
    return None if found is None else ("", [each.decode("utf-8", "replace") for each in found])


def _table(text: str) -> tuple[str, list[str]] | None:
    """Rows below a header of as many cells; a row whose quotes are open goes on in the next
    line."""
    every = text.split("\n")
    rule = next(
        (at for at, line in enumerate(every[:_HEADER]) if at and _RULE.fullmatch(line)), None
    )
    if rule is not None:
        rows = [row for row in every[rule + 1 :] if row.strip() and not _RULE.fullmatch(row)]
        return ("\n".join(every[: rule + 1]) + "\n", rows) if rows else None
    first = [row for row in _joined(every[: _HEADER + _LONGEST_ROW]) if row.strip()][:_HEADER]
    cells = len(_CELLS.findall(first[0])) if first else 0
    if (
        not cells
        or len(first) < 2
        or not all(len(_CELLS.findall(row)) >= cells for row in first[1:])
    ):
        return None
    rows = [row for row in _joined(every) if row.strip()]
    return rows[0] + "\n", rows[1:]


def _joined(every: Sequence[str]) -> Iterator[str]:
    row: list[str] = []
    quotes = 0
    for line in every:
        row.append(line)
        quotes += line.count('"')
        if quotes % 2 == 0 or len(row) > _LONGEST_ROW:
            yield "\n".join(row)
            row, quotes = [], 0
    if row:
        yield "\n".join(row)
