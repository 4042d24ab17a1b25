"""Test and build output: failures with their tracebacks whole, the summary, and passes only
counted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotset.window.preview.asking import ToolQuery
from hotset.window.preview.body import Body
from hotset.window.preview.excerpt import LineSpan, Reading, Worth
from hotset.window.preview.forms import Told, forms
from hotset.window.preview.output import ends
from hotset.window.preview.rarity import odd_lines, shown
from hotset.window.preview.trouble import FailureLines, failures, matters, passes, reported

_SUMMARY = re.compile(
    r"=+ .{1,200} =+|(?:Tests?|Test Suites|Test Files|Ran|FAILED|Found|Finished|Snapshots|error:"
    r"|\s*\d+ (?:pass|fail|error|problem|warning|example))\b"
)
_POINT = re.compile(
    r"E {2,}\S|>  +\S|\S+\.\w+:\d+: "
    r"\w*(?:Error|Exception|Failure)|\s*(?:Expected|Received|expected|actual|Actual|got):? "
)
_POINT_LENGTH = 300
_SAID = 0.1  # the share of the room in which gaps say what they hold
_FURTHER = Worth.WARNING + 9.5  # every failure is one to mend: more than any warning
_MOST_LESS = 9.0


def read(body: Body, asked: ToolQuery) -> Reading:
    lines = body.lines
    of = forms(lines)
    passed = [passes(line) for line in lines]
    spans = [
        *_before_passes(body, passed, ends(body, asked.room, of)),
        *shown(body, odd_lines(lines)),
    ]
    spans.extend(
        LineSpan(body.first + index, body.first + index + 1, Worth.FAILURE + 4)
        for index in _summaries(lines)
    )
    return Reading([*spans, *_failed(body, of)], _passes(body, of, passed), said=_SAID)


def skim(body: Body, asked: ToolQuery) -> Reading:  # noqa: ARG001 - read like `read`
    """Of a report that would take long to read: its failures, and how many passes there are."""
    of = forms(body.lines)
    return Reading(
        list(_failed(body, of)),
        _passes(body, of, [passes(line) for line in body.lines]),
        said=_SAID,
    )


def _failed(body: Body, of: Sequence[str]) -> Iterator[LineSpan]:
    found = list(failures(body.lines, of))
    yield from reported(body, of, found, _FURTHER)
    yield from _points(body, found)


def _passes(body: Body, of: Sequence[str], passed: Sequence[int]) -> _Passes:
    others = ["" if count else form for count, form in zip(passed, of, strict=True)]
    return _Passes(body.first, passed, Told(body.first, others, matters))


def _before_passes(
    body: Body, passed: Sequence[int], spans: Sequence[LineSpan]
) -> Iterator[LineSpan]:
    """The beginning tells what is run, the end how it ended; the passes between them are only
    counted."""
    first = next((index for index, count in enumerate(passed) if count), len(passed))
    last = next((index for index in range(len(passed), 0, -1) if passed[index - 1]), 0)
    for span in spans:
        if span.first == body.first:
            cut = span._replace(end=min(span.end, body.first + first))
        else:
            cut = span._replace(first=max(span.first, body.first + last))
        if cut.first < cut.end:
            yield cut


@dataclass(frozen=True, slots=True)
class _Passes:
    """Says how many passes stand in a gap, and what else does."""

    offset: int
    passed: Sequence[int]
    others: Told

    def __call__(self, first: int, end: int) -> Sequence[str]:
        passed = sum(self.passed[first - self.offset : end - self.offset])
        return [*([f"{passed:,} passes"] if passed else ()), *self.others(first, end)]


def _points(body: Body, found: Sequence[FailureLines]) -> Iterator[LineSpan]:
    """Where a test says what it expected, and where it stands: of every failure, before the rest of
    any."""
    reports = [failure for failure in found if failure.worth == Worth.FAILURE]
    inside = {
        index: rank
        for rank, failure in enumerate(reports)
        for index in range(failure.first, failure.end)
    }
    for index, line in enumerate(body.lines):
        if _POINT.match(line, 0, _POINT_LENGTH):
            less = min(_MOST_LESS, 0.5 * inside.get(index, 0))
            yield LineSpan(
                body.first + max(0, index - 2), body.first + index + 1, Worth.FAILURE + 2 - less
            )


def _summaries(lines: Sequence[str]) -> list[int]:
    low = max(0, len(lines) - 20)
    return [index for index in range(low, len(lines)) if _SUMMARY.match(lines[index][:400])]
