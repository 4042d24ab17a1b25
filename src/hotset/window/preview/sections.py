"""Output of several commands at once: cut where the kind of its lines changes, each section read as
what it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hotset.window.preview.body import Body
from hotset.window.preview.content import ContentType
from hotset.window.preview.hits import HIT
from hotset.window.preview.listing import LONG_ENTRY

_SHORTEST = 6  # lines: a run that is shorter stays with what is around it
_DIFF_START = re.compile(r"diff --git |--- a/|@@ -\d")
_DIFF_LINE = re.compile(
    r"[ +@\\-]|diff --git |index |new file|deleted file|rename |similarity |old mode|new "
    r"mode|Binary |$"
)
_NUMBERED_HIT = re.compile(r"[\w./@+~$()\[\]-]{3,240}:\d{1,7}:")


def sections(body: Body) -> list[tuple[Body, ContentType]]:
    """Runs of search hits, diffs and long listings; what is between them is just output."""
    merged: list[tuple[int, int, ContentType]] = []
    for first, end, kind in _runs(body.lines):
        kind_ = kind if end - first >= _SHORTEST else ContentType.OUTPUT
        if merged and merged[-1][2] is kind_:
            merged[-1] = (merged[-1][0], end, kind_)
        else:
            merged.append((first, end, kind_))
    return [(body.part(first, end), kind) for first, end, kind in merged]


def _runs(lines: Sequence[str]) -> Iterator[tuple[int, int, ContentType]]:
    start = 0
    current = ContentType.OUTPUT
    for index, line in enumerate(lines):
        kind = _line_kind(line, current)
        if kind is not current:
            if index > start:
                yield start, index, current
            start, current = index, kind
    if lines:
        yield start, len(lines), current


def _line_kind(line: str, current: ContentType) -> ContentType:
    if _DIFF_START.match(line) or (current is ContentType.DIFF and _DIFF_LINE.match(line)):
        return ContentType.DIFF
    if _NUMBERED_HIT.match(line) or (
        current is ContentType.SEARCH and (line == "--" or (HIT.match(line) and "-" in line))
    ):
        return ContentType.SEARCH
    return ContentType.LISTING if LONG_ENTRY.match(line) else ContentType.OUTPUT
