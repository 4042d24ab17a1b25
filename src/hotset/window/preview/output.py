"""Previews of program output: shell output, logs, and reports of tests and builds. Shows errors and
warnings, odd lines and both ends; gaps count the forms of their lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from hotset.text.outline import paragraphs
from hotset.window.preview.content import Body, ToolQuery, closeness
from hotset.window.preview.excerpt import Label, LineSpan, Reading, Worth
from hotset.window.preview.rarity import first_of_each, forms, label_forms, odd_lines, odd_spans
from hotset.window.preview.trouble import FailureLines, failure_spans, failures, matters, passes

_PARAGRAPH = 400
_OUTPUT_LABELS = 0.1  # share of the room for gap labels


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
    spans.extend(failure_spans(body, line_forms, failures(lines, line_forms)))
    spans.extend(odd_spans(body, odd_lines(lines), Worth.OUTLINE))
    spans.extend(ends(body, query.room))
    return Reading(spans, label_forms(body, line_forms, matters), label_share=_OUTPUT_LABELS)


def ends(body: Body, room: int, line_forms: Sequence[str] = ()) -> list[LineSpan]:
    """The beginning and the end, a fifth of the room each; if forms are given, only until they
    repeat."""
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
# share of the room for gap labels: they describe most of a log
_LOG_LABELS = 0.28


def read_log(body: Body, query: ToolQuery) -> Reading:
    lines = body.lines
    line_forms = forms(lines)
    counts = Counter(line_forms)
    scores = closeness(lines, query) if len(lines) < 5000 else [0.0] * len(lines)
    seen: set[str] = set()
    spans = [
        *failure_spans(body, line_forms, failures(lines, line_forms)),
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
    """The reading of a very long log: its errors and warnings, and the forms of its lines."""
    line_forms = forms(body.lines)
    return Reading(
        [*failure_spans(body, line_forms, failures(body.lines, line_forms))],
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
_CHECKS_LABELS = 0.1  # share of the room for gap labels
_FURTHER = Worth.WARNING + 9.5  # every failure needs a fix: worth more than any warning
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
        [*spans, *_failure_spans(body, line_forms)],
        _label_passes(body, line_forms, passed),
        label_share=_CHECKS_LABELS,
    )


def skim_checks(body: Body, query: ToolQuery) -> Reading:  # noqa: ARG001 - read like `read`
    """The reading of a very long report: its failures, and the number of passes."""
    line_forms = forms(body.lines)
    return Reading(
        list(_failure_spans(body, line_forms)),
        _label_passes(body, line_forms, [passes(line) for line in body.lines]),
        label_share=_CHECKS_LABELS,
    )


def _failure_spans(body: Body, line_forms: Sequence[str]) -> Iterator[LineSpan]:
    found = list(failures(body.lines, line_forms))
    yield from failure_spans(body, line_forms, found, _FURTHER)
    yield from _points(body, found)


def _label_passes(body: Body, line_forms: Sequence[str], passed: Sequence[int]) -> Label:
    """A label with the number of passes in a gap and the forms of its other lines."""
    others = ["" if count else form for count, form in zip(passed, line_forms, strict=True)]
    other_lines = label_forms(body, others, matters)

    def label(first: int, end: int) -> Sequence[str]:
        count = sum(passed[first - body.first : end - body.first])
        return [*([f"{count:,} passes"] if count else ()), *other_lines(first, end)]

    return label


def _before_passes(
    body: Body, passed: Sequence[int], spans: Sequence[LineSpan]
) -> Iterator[LineSpan]:
    """The spans cut to the lines before the first and after the last pass; passes are only
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
    """The line with the expectation and location of every failure, worth more than the rest of
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
