"""Logs: every error and warning, lines unlike all others, one line of each other form, and gaps that count their forms."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hotset.window.preview.asking import Asked, closeness
from hotset.window.preview.body import Body
from hotset.window.preview.excerpt import Reading, Span, Worth
from hotset.window.preview.output import ends, trouble
from hotset.window.preview.rarity import odd_lines, shown

STAMPED = re.compile(
    r"\W{0,2}(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d(?::\d\d|\])|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d"
    r"|\d{4}/\d\d/\d\d \d\d:\d\d|\d{10,13}\b|\S{1,80} \S{1,40} \S{1,40} \[\d\d/[A-Z][a-z]{2}/\d{4}:"
    r"|(?:DEBUG|INFO|WARN|WARNING|ERROR|TRACE|FATAL)\b)"
)
_VARIES = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{20,30}|0x[0-9a-fA-F]+|\b[0-9a-f]{12,64}\b|\d+|\"[^\"]{0,120}\"|'[^']{0,120}'")
_FORM_LENGTH = 100


def read(body: Body, asked: Asked) -> Reading:
    lines = body.lines
    forms = [_VARIES.sub("#", line[:400])[:_FORM_LENGTH] for line in lines]
    counts = Counter(forms)
    scores = closeness(lines, asked) if len(lines) < 5000 else [0.0] * len(lines)
    seen: Counter[str] = Counter()
    spans = [*trouble(body), *shown(body, odd_lines(lines)), *ends(body, asked.room)]
    for index, form in enumerate(forms):
        seen[form] += 1
        if seen[form] == 1:
            spans.append(Span(body.first + index, body.first + index + 1, Worth.OUTLINE + 10 / counts[form]))
        elif scores[index] > 0.5:
            spans.append(Span(body.first + index, body.first + index + 1, Worth.OUTLINE - 5 + 4 * scores[index]))
    return Reading(spans, _Forms(body.first, forms))


@dataclass(frozen=True, slots=True)
class _Forms:
    """Says which forms of line stand in a gap, and how often."""

    offset: int
    forms: Sequence[str]

    def __call__(self, first: int, end: int) -> Sequence[str]:
        counts = Counter(self.forms[first - self.offset : end - self.offset])
        return [f"{count:,} x {form.strip()[:80]}" for form, count in counts.most_common(8)]
