"""What a shell printed: its beginning and end, lines that report trouble, and paragraphs near what
was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from hotset.text.outline import paragraphs
from hotset.window.preview.asking import ToolQuery, closeness
from hotset.window.preview.body import Body
from hotset.window.preview.excerpt import LineSpan, Reading, Worth
from hotset.window.preview.forms import Told, first_of_each, forms
from hotset.window.preview.rarity import odd_lines, shown
from hotset.window.preview.trouble import failures, matters, reported

_PARAGRAPH = 400
_SAID = 0.1  # the share of the room in which gaps say which lines they hold


def read(body: Body, asked: ToolQuery) -> Reading:
    lines = body.lines
    units = list(paragraphs(lines, 0, len(lines), _PARAGRAPH))
    scores = closeness(["\n".join(lines[first:end]) for first, end in units], asked)
    spans = [
        LineSpan(
            body.first + first,
            body.first + end,
            Worth.ASKED * score + 10 * (1 - first / len(lines)),
        )
        for (first, end), score in zip(units, scores, strict=True)
    ]
    of = forms(lines)
    spans.extend(reported(body, of, failures(lines, of)))
    spans.extend(shown(body, odd_lines(lines), Worth.OUTLINE))
    spans.extend(ends(body, asked.room))
    return Reading(spans, Told(body.first, of, matters), said=_SAID)


def ends(body: Body, room: int, of: Sequence[str] = ()) -> list[LineSpan]:
    """The beginning and the end, a fifth of the room each; where forms are known, only while they
    are not all the same."""
    lines, most = body.lines, room // 5
    head = _until(lines, most)
    tail = _until(lines[::-1], most)
    if of:
        head, tail = min(head, first_of_each(of)), min(tail, first_of_each(reversed(of)))
    spans = [LineSpan(body.first, body.first + head, Worth.HEAD, least=1)] if head else []
    return [*spans, LineSpan(body.end - tail, body.end, Worth.TAIL)] if tail else spans


def nothing(first: int, end: int) -> Sequence[str]:  # noqa: ARG001 - a `Label`
    """A gap about which there is nothing to say but its size."""
    return ()


def _until(lines: Sequence[str], most: int) -> int:
    size = 0
    for index, line in enumerate(lines):
        size += len(line) + 1
        if size > most:
            return index
    return len(lines)
