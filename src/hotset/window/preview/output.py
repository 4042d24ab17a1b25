"""What a shell printed: its beginning and end, lines that report trouble, and paragraphs near what was asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hotset.window.preview.asking import Asked, closeness
from hotset.window.preview.body import Body
from hotset.window.preview.code import paragraphs
from hotset.window.preview.excerpt import Reading, Span, Worth
from hotset.window.preview.rarity import odd_lines, shown

_TROUBLE = re.compile(
    r"\b(?:errors?|exception|traceback|fatal|panic(?:ked)?|failed|failures?|fail|denied|refused|cannot|undefined|not found"
    r"|no such|unexpected|segfault|abort(?:ed)?|critical)\b|[a-z](?:error|exception)\b|[✗✘\u00d7❌]"
)
_CAUTION = re.compile(r"\bwarn(?:ing|ings)?\b|deprecat|⚠")
_NO_TROUBLE = re.compile(r"\b(?:0|no|without) (?:errors?|failures?|failed|warnings?)\b")
# What every match of the patterns above contains: looking for these first is ten times as fast.
_SIGNS = (
    *(
        "error",
        "exception",
        "traceback",
        "fatal",
        "panic",
        "fail",
        "denied",
        "refused",
        "cannot",
        "undefined",
        "not found",
        "no such",
    ),
    *("unexpected", "segfault", "abort", "critical", "✗", "✘", "\u00d7", "❌", "warn", "deprecat", "⚠"),
)
_PARAGRAPH = 400
_LOOKED_AT = 600  # characters of a line


def read(body: Body, asked: Asked) -> Reading:
    lines = body.lines
    units = list(paragraphs(lines, 0, len(lines), _PARAGRAPH))
    scores = closeness(["\n".join(lines[first:end]) for first, end in units], asked)
    spans = [
        Span(body.first + first, body.first + end, Worth.ASKED * score + 10 * (1 - first / len(lines)))
        for (first, end), score in zip(units, scores, strict=True)
    ]
    spans.extend(trouble(body))
    spans.extend(shown(body, odd_lines(lines), Worth.OUTLINE))
    spans.extend(ends(body, asked.room))
    return Reading(spans, nothing)


def ends(body: Body, room: int) -> list[Span]:
    """The beginning and the end, a fifth of the room each."""
    lines, most = body.lines, room // 5
    head = _until(lines, most)
    tail = _until(lines[::-1], most)
    spans = [Span(body.first, body.first + head, Worth.HEAD, least=1)] if head else []
    return [*spans, Span(body.end - tail, body.end, Worth.TAIL)] if tail else spans


def trouble(body: Body) -> list[Span]:
    """Each line that reports an error or a warning."""
    found = alarms(body.lines)
    return [Span(body.first + index, body.first + index + 1, worth) for index, worth in found.items()]


def alarms(lines: Sequence[str]) -> dict[int, float]:
    """Lines that report that something went wrong, or might, with how bad it is."""
    lowered = [line[:_LOOKED_AT].lower() for line in lines]
    whole = "\n".join(lowered)
    signs = [sign for sign in _SIGNS if sign in whole]
    return {index: worth for index, line in enumerate(lowered) for sign in signs if sign in line if (worth := _alarm(line))}


def is_trouble(line: str) -> bool:
    return _alarm(line[:_LOOKED_AT].lower()) == Worth.FAILURE


def _alarm(line: str) -> float:
    if _NO_TROUBLE.search(line):
        return 0.0
    if _TROUBLE.search(line):
        return Worth.FAILURE
    return Worth.WARNING if _CAUTION.search(line) else 0.0


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
