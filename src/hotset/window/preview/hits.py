"""Search results: the first hits of every file, hits unlike the others or near what was asked for,
and gaps that count them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hotset.window.preview.asking import ToolQuery, closeness
from hotset.window.preview.body import Body
from hotset.window.preview.excerpt import LineSpan, Reading, Worth
from hotset.window.preview.rarity import odd_lines, shown

HIT = re.compile(
    r"(?P<path>(?:[A-Za-z]:)?[\w./@+~$()\[\]-]{1,240}?)(?::(?P<line>\d{1,7}):|-\d{1,7}-|:(?=\s*\S))"
)
UNDER_HEADING = re.compile(r"\s{0,6}\d{1,7}[:-]")
HEADING = re.compile(r"(?:[A-Za-z]:)?[\w./@+~$()\[\]-]{1,240}\.\w{1,10}")
_RUN = 12  # lines of one file that are shown together at most: a hit with its context
_SAID = 0.2  # which files have hits matters more than any single hit
_WIDEST = 240
_PER_RANK = 3.0  # how much less each further hit of the same file is worth


@dataclass(frozen=True, slots=True)
class _Group:
    """Hits of one file that stand together."""

    path: str
    first: int
    end: int
    rank: int
    """How many groups of the same file stand before it."""


def read(body: Body, asked: ToolQuery) -> Reading:
    lines = body.lines
    files = _files(lines)
    groups = list(_groups(lines, files))
    scores = closeness(["\n".join(lines[group.first : group.end]) for group in groups], asked)
    spans = [
        LineSpan(
            body.first + group.first,
            body.first + group.end,
            Worth.ASKED - _PER_RANK * min(group.rank, 12) + 12 * score,
            least=1,
        )
        for group, score in zip(groups, scores, strict=True)
    ]
    spans.extend(
        shown(
            body,
            odd_lines(
                [UNDER_HEADING.sub("", HIT.sub("", line, count=1), count=1) for line in lines]
            ),
        )
    )
    return Reading(spans, _Counts(body.first, files), said=_SAID, widest=_WIDEST)


@dataclass(frozen=True, slots=True)
class _Counts:
    """Says how many hits of which files stand in a gap."""

    offset: int
    files: Sequence[str]

    def __call__(self, first: int, end: int) -> Sequence[str]:
        counts = Counter(
            path for path in self.files[first - self.offset : end - self.offset] if path
        )
        return [f"{path} ({count})" for path, count in counts.items()]


def _files(lines: Sequence[str]) -> list[str]:
    """The file that each line is a hit of; empty where it is of none."""
    files = []
    heading = ""
    for line in lines:
        if heading and UNDER_HEADING.match(line):
            files.append(heading)
        elif len(line) < 250 and HEADING.fullmatch(line):
            heading = line
            files.append(line)
        else:
            found = HIT.match(line)
            files.append(found["path"] if found else "")
    return files


def _groups(lines: Sequence[str], files: Sequence[str]) -> list[_Group]:
    """Single hits, or, where hits come with context, what belongs together."""
    groups: list[_Group] = []
    seen: Counter[str] = Counter()
    start = 0
    together = "--" in lines[:200]
    for index in range(1, len(lines) + 1):
        apart = (
            index == len(lines)
            or files[index] != files[start]
            or lines[index] == "--"
            or index - start >= _RUN
        )
        if apart or not together:
            groups.append(_Group(files[start], start, index, seen[files[start]]))
            seen[files[start]] += 1
            start = index
    return groups
