"""Diffs: the statistics, every file's header, odd changes, hunks near what was asked for, and gaps
that count changed lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotset.window.preview.asking import ToolQuery, closeness
from hotset.window.preview.body import Body
from hotset.window.preview.excerpt import LineSpan, Reading, Worth
from hotset.window.preview.rarity import odd_lines

_FILE = re.compile(
    r"diff --git a/\S+ b/(?P<path>\S+)|\+\+\+ (?:b/)?(?P<new>\S+)|Index: (?P<index>\S+)"
    r"|\*\*\* (?:Update|Add|Delete) File: (?P<patch>\S+)"
)
_HEADER = re.compile(
    r"diff --git |index [0-9a-f]+\.\.|--- |\+\+\+ |Index: |new file|deleted "
    r"file|similarity|rename |\*\*\* "
)
_FIRST_OF_HEADER = ("diff --git ", "Index: ", "*** ")
_HUNK = re.compile(r"@@")
_STAT = re.compile(
    r" \S.{0,200}\| +\d+|\s*\d+ files? changed|commit [0-9a-f]{7,40}|Author: |Date: "
)
_CONTEXT = 15.0  # how much less a whole hunk is worth than its changes
_LONGEST_HUNK = 60  # lines; longer ones are offered in parts


@dataclass(frozen=True, slots=True)
class _Piece:
    first: int
    end: int


def read(body: Body, asked: ToolQuery) -> Reading:
    lines = body.lines
    heads, hunks, stats = _pieces(lines)
    scores = closeness(["\n".join(lines[hunk.first : hunk.end]) for hunk in hunks], asked)
    spans = [
        LineSpan(body.first + head.first, body.first + head.end, Worth.HEAD, least=1)
        for head in heads
    ]
    spans.extend(LineSpan(body.first + at, body.first + at + 1, Worth.HEAD + 2) for at in stats)
    spans.extend(_odd(body, heads))
    for hunk, score in zip(hunks, scores, strict=True):
        worth = Worth.OUTLINE - 10 * hunk.first / len(lines) + 10 * score
        spans.append(
            LineSpan(body.first + hunk.first, body.first + hunk.end, worth - _CONTEXT, least=4)
        )
        spans.extend(
            LineSpan(body.first + first, body.first + end, worth)
            for first, end in _changes(lines, hunk)
        )
    return Reading(spans, _Changes(body))


@dataclass(frozen=True, slots=True)
class _Changes:
    """Says how many lines a gap adds and removes, and in which files."""

    body: Body

    def __call__(self, first: int, end: int) -> Sequence[str]:
        lines = self.body.lines[first - self.body.first : end - self.body.first]
        added = sum(1 for line in lines if line.startswith("+") and not line.startswith("+++"))
        removed = sum(1 for line in lines if line.startswith("-") and not line.startswith("---"))
        files = dict.fromkeys(path for line in lines if (path := _path(line)))
        return [f"+{added} -{removed}", *files]


def _odd(body: Body, heads: Sequence[_Piece]) -> Iterator[LineSpan]:
    """Changes unlike all others, each with the name of its file."""
    lines = body.lines
    changed = [
        index
        for index, line in enumerate(lines)
        if line.startswith(("+", "-")) and not line.startswith(("+++", "---"))
    ]
    for at, oddity in odd_lines([lines[index][1:] for index in changed]).items():
        index, worth = changed[at], Worth.HEAD + 3 + oddity
        head = bisect_right(heads, index, key=lambda piece: piece.first) - 1
        if head >= 0:
            yield LineSpan(
                body.first + heads[head].first, body.first + heads[head].first + 1, worth
            )
        yield LineSpan(body.first + index, body.first + index + 1, worth)


def _pieces(lines: Sequence[str]) -> tuple[list[_Piece], list[_Piece], list[int]]:
    """File headers, hunks, and single lines of statistics."""
    heads: list[_Piece] = []
    hunks: list[_Piece] = []
    stats: list[int] = []
    for first, end in _runs(lines):
        if _HUNK.match(lines[first]):
            hunks.extend(
                _Piece(at, min(end, at + _LONGEST_HUNK)) for at in range(first, end, _LONGEST_HUNK)
            )
        elif _HEADER.match(lines[first]):
            heads.append(_Piece(first, end))
        else:
            stats.extend(index for index in range(first, end) if _STAT.match(lines[index]))
    return heads, hunks, stats


def _runs(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Stretches that begin with a hunk or a file's header; the first one can be anything."""
    start, header = 0, False
    for index, line in enumerate(lines):
        opens = bool(_HEADER.match(line)) and not (header and not line.startswith(_FIRST_OF_HEADER))
        if index > start and (opens or _HUNK.match(line)):
            yield start, index
            start = index
        header = bool(_HEADER.match(line))
    if lines:
        yield start, len(lines)


def _changes(lines: Sequence[str], hunk: _Piece) -> Iterator[tuple[int, int]]:
    """Lines that change together, with one line of what is around them."""
    first = -1
    for index in range(hunk.first, hunk.end + 1):
        changed = index < hunk.end and lines[index].startswith(("+", "-"))
        if changed and first < 0:
            first = index
        elif not changed and first >= 0:
            yield max(hunk.first, first - 1), min(hunk.end, index + 1)
            first = -1


def _path(line: str) -> str:
    found = _FILE.match(line)
    return next((group for group in found.groups() if group), "") if found else ""
