"""Tables: the header, the first and last rows, rows near what was asked for, and rows counted in the gaps."""

from __future__ import annotations

from collections.abc import Sequence

from hotset.window.preview.asking import Asked, closeness
from hotset.window.preview.body import Body
from hotset.window.preview.excerpt import Reading, Span, Worth

_HEADER_LINES = 2
_FIRST_ROWS = 5


def read(body: Body, asked: Asked) -> Reading:
    lines = body.lines
    scores = closeness(lines, asked)
    spans = [Span(body.first, body.first + min(len(lines), _HEADER_LINES), Worth.HEAD + 5, least=1)]
    spans.append(Span(body.first, body.first + min(len(lines), _HEADER_LINES + _FIRST_ROWS), Worth.HEAD, least=1))
    spans.append(Span(max(body.first, body.end - 3), body.end, Worth.HEAD - 1, least=1))
    spans.extend(
        Span(body.first + index, body.first + index + 1, Worth.REST + 10 * (1 - index / len(lines)) + Worth.ASKED * score)
        for index, score in enumerate(scores)
    )
    return Reading(spans, rows)


def rows(first: int, end: int) -> Sequence[str]:
    return [f"{end - first:,} rows"]
