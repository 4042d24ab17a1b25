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
_OUTPUT_LABELS = 0.1  # the share of the room in which gaps say which lines they hold


def read_output(body: Body, query: ToolQuery) -> Reading:
    lines = body.lines
    units = list(paragraphs(lines, 0, len(lines), _PARAGRAPH))
    scores = closeness(["\n".join(lines[first:end]) for first, end in units], query)
    spans = [
        body.span(
            first,
            end,
            Worth.ASKED * score + 10 * (1 - first / len(lines)),
        )
        for (first, end), score in zip(units, scores, strict=True)
    ]
    line_forms = forms(lines)
    spans.extend(reported(body, line_forms, failures(lines, line_forms)))
    spans.extend(odd_spans(body, odd_lines(lines), Worth.OUTLINE))
    spans.extend(ends(body, query.room))
    return Reading(spans, label_forms(body, line_forms, matters), label_share=_OUTPUT_LABELS)


def ends(body: Body, room: int, line_forms: Sequence[str] = ()) -> list[LineSpan]:
    """The beginning and the end, a fifth of the room each; where forms are known, only while they
    are not all the same."""
    lines, most = body.lines, room // 5
    head = _until(lines, most)
    tail = _until(lines[::-1], most)
    if line_forms:
        head, tail = (
            min(head, first_of_each(line_forms)),
            min(tail, first_of_each(reversed(line_forms))),
        )
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
_LOG_LABELS = 0.28


def read_log(body: Body, query: ToolQuery) -> Reading:
    lines = body.lines
    line_forms = forms(lines)
    counts = Counter(line_forms)
    scores = closeness(lines, query) if len(lines) < 5000 else [0.0] * len(lines)
    seen: set[str] = set()
    spans = [
        *reported(body, line_forms, failures(lines, line_forms)),
        *odd_spans(body, odd_lines(lines)),
        *ends(body, query.room, line_forms),
    ]
    for index, form in enumerate(line_forms):
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
    return Reading(spans, label_forms(body, line_forms, matters), label_share=_LOG_LABELS)


def skim_log(body: Body, query: ToolQuery) -> Reading:  # noqa: ARG001 - read like `read`
    """Of a log that would take long to read: its errors and warnings, and what its lines are."""
    line_forms = forms(body.lines)
    return Reading(
        [*reported(body, line_forms, failures(body.lines, line_forms))],
        label_forms(body, line_forms, matters),
        label_share=_LOG_LABELS,
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
_CHECKS_LABELS = 0.1  # the share of the room in which gaps say what they hold
_FURTHER = Worth.WARNING + 9.5  # every failure is one to mend: more than any warning
_MOST_LOWERED = 9.0


def read_checks(body: Body, query: ToolQuery) -> Reading:
    lines = body.lines
    line_forms = forms(lines)
    passed = [passes(line) for line in lines]
    spans = [
        *_before_passes(body, passed, ends(body, query.room, line_forms)),
        *odd_spans(body, odd_lines(lines)),
    ]
    spans.extend(body.span(index, index + 1, Worth.FAILURE + 4) for index in _summaries(lines))
    return Reading(
        [*spans, *_failed(body, line_forms)],
        _label_passes(body, line_forms, passed),
        label_share=_CHECKS_LABELS,
    )


def skim_checks(body: Body, query: ToolQuery) -> Reading:  # noqa: ARG001 - read like `read`
    """Of a report that would take long to read: its failures, and how many passes there are."""
    line_forms = forms(body.lines)
    return Reading(
        list(_failed(body, line_forms)),
        _label_passes(body, line_forms, [passes(line) for line in body.lines]),
        label_share=_CHECKS_LABELS,
    )


def _failed(body: Body, line_forms: Sequence[str]) -> Iterator[LineSpan]:
    found = list(failures(body.lines, line_forms))
    yield from reported(body, line_forms, found, _FURTHER)
    yield from _points(body, found)


def _label_passes(body: Body, line_forms: Sequence[str], passed: Sequence[int]) -> Label:
    """How many passes stand in a gap, and which other lines."""
    others = ["" if count else form for count, form in zip(passed, line_forms, strict=True)]
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
