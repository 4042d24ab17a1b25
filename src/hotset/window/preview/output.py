"""What programs print: shell output, logs, and reports of tests and builds. Errors and warnings,
lines unlike all others, both ends, and gaps that count the forms of their lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from hotset.text.outline import paragraphs
from hotset.window.preview.content import Body, ToolQuery, closeness
from hotset.window.preview.excerpt import Label, LineSpan, Reading, Worth
from hotset.window.preview.rarity import first_of_each, forms, label_forms, odd_lines, odd_spans
from hotset.window.preview.trouble import FailureLines, failures, matters, passes, reported

_PARAGRAPH = 400
_OUTPUT_SAID = 0.1  # the share of the room in which gaps say which lines they hold


def read_output(body: Body, asked: ToolQuery) -> Reading:
    lines = body.lines
    units = list(paragraphs(lines, 0, len(lines), _PARAGRAPH))
    scores = closeness(["\n".join(lines[first:end]) for first, end in units], asked)
    spans = [
        body.span(
            first,
            end,
            Worth.ASKED * score + 10 * (1 - first / len(lines)),
        )
        for (first, end), score in zip(units, scores, strict=True)
    ]
    of = forms(lines)
    spans.extend(reported(body, of, failures(lines, of)))
    spans.extend(odd_spans(body, odd_lines(lines), Worth.OUTLINE))
    spans.extend(ends(body, asked.room))
    return Reading(spans, label_forms(body, of, matters), said=_OUTPUT_SAID)


def ends(body: Body, room: int, of: Sequence[str] = ()) -> list[LineSpan]:
    """The beginning and the end, a fifth of the room each; where forms are known, only while they
    are not all the same."""
    lines, most = body.lines, room // 5
    head = _until(lines, most)
    tail = _until(lines[::-1], most)
    if of:
        head, tail = min(head, first_of_each(of)), min(tail, first_of_each(reversed(of)))
    spans = [body.span(0, head, Worth.HEAD, least=1)] if head else []
    return [*spans, body.span(len(lines) - tail, len(lines), Worth.TAIL)] if tail else spans


def _until(lines: Sequence[str], most: int) -> int:
    size = 0
    for index, line in enumerate(lines):
        size += len(line) + 1
        if size > most:
            return index
    return len(lines)


STAMPED = re.compile(
    r"\W{0,2}(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d(?::\d\d|\])|[A-Z][a-z]{2} +\d{1,2} "
    r"\d\d:\d\d:\d\d"
    r"|\d{4}/\d\d/\d\d \d\d:\d\d|\d{10,13}\b|\S{1,80} \S{1,40} \S{1,40} \[\d\d/[A-Z][a-z]{2}/\d{4}:"
    r"|(?:DEBUG|INFO|WARN|WARNING|ERROR|TRACE|FATAL)\b)"
)
# the share of the room in which gaps say which lines they hold: most of a log is told there
_LOG_SAID = 0.28


def read_log(body: Body, asked: ToolQuery) -> Reading:
    lines = body.lines
    of = forms(lines)
    counts = Counter(of)
    scores = closeness(lines, asked) if len(lines) < 5000 else [0.0] * len(lines)
    seen: set[str] = set()
    spans = [
        *reported(body, of, failures(lines, of)),
        *odd_spans(body, odd_lines(lines)),
        *ends(body, asked.room, of),
    ]
    for index, form in enumerate(of):
        if form not in seen:
            seen.add(form)
            spans.append(body.span(index, index + 1, Worth.OUTLINE + 10 / counts[form]))
        elif scores[index] > 0.5:
            spans.append(
                body.span(
                    index,
                    index + 1,
                    Worth.OUTLINE - 5 + 4 * scores[index],
                )
            )
    return Reading(spans, label_forms(body, of, matters), said=_LOG_SAID)


def skim_log(body: Body, asked: ToolQuery) -> Reading:  # noqa: ARG001 - read like `read`
    """Of a log that would take long to read: its errors and warnings, and what its lines are."""
    of = forms(body.lines)
    return Reading(
        [*reported(body, of, failures(body.lines, of))],
        label_forms(body, of, matters),
        said=_LOG_SAID,
    )


_SUMMARY = re.compile(
    r"=+ .{1,200} =+|(?:Tests?|Test Suites|Test Files|Ran|FAILED|Found|Finished|Snapshots|error:"
    r"|\s*\d+ (?:pass|fail|error|problem|warning|example))\b"
)
_POINT = re.compile(
    r"E {2,}\S|>  +\S|\S+\.\w+:\d+: "
    r"\w*(?:Error|Exception|Failure)|\s*(?:Expected|Received|expected|actual|Actual|got):? "
)
_POINT_LENGTH = 300
_CHECKS_SAID = 0.1  # the share of the room in which gaps say what they hold
_FURTHER = Worth.WARNING + 9.5  # every failure is one to mend: more than any warning
_MOST_LOWERED = 9.0


def read_checks(body: Body, asked: ToolQuery) -> Reading:
    lines = body.lines
    of = forms(lines)
    passed = [passes(line) for line in lines]
    spans = [
        *_before_passes(body, passed, ends(body, asked.room, of)),
        *odd_spans(body, odd_lines(lines)),
    ]
    spans.extend(body.span(index, index + 1, Worth.FAILURE + 4) for index in _summaries(lines))
    return Reading([*spans, *_failed(body, of)], _label_passes(body, of, passed), said=_CHECKS_SAID)


def skim_checks(body: Body, asked: ToolQuery) -> Reading:  # noqa: ARG001 - read like `read`
    """Of a report that would take long to read: its failures, and how many passes there are."""
    of = forms(body.lines)
    return Reading(
        list(_failed(body, of)),
        _label_passes(body, of, [passes(line) for line in body.lines]),
        said=_CHECKS_SAID,
    )


def _failed(body: Body, of: Sequence[str]) -> Iterator[LineSpan]:
    found = list(failures(body.lines, of))
    yield from reported(body, of, found, _FURTHER)
    yield from _points(body, found)


def _label_passes(body: Body, of: Sequence[str], passed: Sequence[int]) -> Label:
    """How many passes stand in a gap, and which other lines."""
    others = ["" if count else form for count, form in zip(passed, of, strict=True)]
    other_lines = label_forms(body, others, matters)

    def label(first: int, end: int) -> Sequence[str]:
        count = sum(passed[first - body.first : end - body.first])
        return [*([f"{count:,} passes"] if count else ()), *other_lines(first, end)]

    return label


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
            less = min(_MOST_LOWERED, 0.5 * inside.get(index, 0))
            yield body.span(max(0, index - 2), index + 1, Worth.FAILURE + 2 - less)


def _summaries(lines: Sequence[str]) -> list[int]:
    low = max(0, len(lines) - 20)
    return [index for index in range(low, len(lines)) if _SUMMARY.match(lines[index][:400])]
