"""Logs: every error and warning, lines unlike all others, one line of each other form, and gaps
that count their forms."""

from __future__ import annotations

import re
from collections import Counter

from hotset.window.preview.asking import ToolQuery, closeness
from hotset.window.preview.body import Body
from hotset.window.preview.excerpt import LineSpan, Reading, Worth
from hotset.window.preview.forms import Told, forms
from hotset.window.preview.output import ends
from hotset.window.preview.rarity import odd_lines, shown
from hotset.window.preview.trouble import failures, matters, reported

STAMPED = re.compile(
    r"\W{0,2}(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d(?::\d\d|\])|[A-Z][a-z]{2} +\d{1,2} "
    r"\d\d:\d\d:\d\d"
    r"|\d{4}/\d\d/\d\d \d\d:\d\d|\d{10,13}\b|\S{1,80} \S{1,40} \S{1,40} \[\d\d/[A-Z][a-z]{2}/\d{4}:"
    r"|(?:DEBUG|INFO|WARN|WARNING|ERROR|TRACE|FATAL)\b)"
)
# the share of the room in which gaps say which lines they hold: most of a log is told there
_SAID = 0.28


def read(body: Body, asked: ToolQuery) -> Reading:
    lines = body.lines
    of = forms(lines)
    counts = Counter(of)
    scores = closeness(lines, asked) if len(lines) < 5000 else [0.0] * len(lines)
    seen: set[str] = set()
    spans = [
        *reported(body, of, failures(lines, of)),
        *shown(body, odd_lines(lines)),
        *ends(body, asked.room, of),
    ]
    for index, form in enumerate(of):
        if form not in seen:
            seen.add(form)
            spans.append(
                LineSpan(
                    body.first + index, body.first + index + 1, Worth.OUTLINE + 10 / counts[form]
                )
            )
        elif scores[index] > 0.5:
            spans.append(
                LineSpan(
                    body.first + index,
                    body.first + index + 1,
                    Worth.OUTLINE - 5 + 4 * scores[index],
                )
            )
    return Reading(spans, Told(body.first, of, matters), said=_SAID)


def skim(body: Body, asked: ToolQuery) -> Reading:  # noqa: ARG001 - read like `read`
    """Of a log that would take long to read: its errors and warnings, and what its lines are."""
    of = forms(body.lines)
    return Reading(
        [*reported(body, of, failures(body.lines, of))], Told(body.first, of, matters), said=_SAID
    )
