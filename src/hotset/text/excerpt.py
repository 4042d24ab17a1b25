"""The part of what was found that shows why: the lines around the words that were asked for, with
their places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotset.nouns.finding import Entry
from hotset.text.terms import Term, first_hits, hits
from hotset.text.words import lowered

_LONGEST_LINE = 200  # characters; of a longer one the part around the first word is shown


@dataclass(frozen=True, slots=True)
class ExcerptLine:
    number: int
    """In its whole, from 1; 0 where the whole has no lines."""
    text: str
    marks: tuple[tuple[int, int], ...]
    """Where the words stand in the text: first character, and the one behind the last."""


def excerpt(entry: Entry, wanted: Sequence[Term], most: int) -> list[ExcerptLine]:
    """At most so many lines; the first ones where none of the words stand in it: it was found by
    its meaning."""
    lines = entry.text.rstrip().split("\n")
    first = max(0, _best(lines, wanted, most))
    while first < len(lines) - 1 and not lines[first].strip():
        first += 1
    begin = entry.lines[0]
    return [
        _line(text, begin + at if begin else 0, wanted)
        for at, text in enumerate(lines[first : first + most], first)
    ]


def _best(lines: Sequence[str], wanted: Sequence[Term], most: int) -> int:
    """Where the window starts in which the weightiest words stand, with a line before the first of
    them."""
    if len(lines) <= most:
        return 0
    spoken = [frozenset(term for _, term in first_hits(line, wanted)) for line in lines]
    starts = [at for at, terms in enumerate(spoken) if terms]
    if not starts:
        return 0

    def weight(start: int) -> tuple[float, float]:
        window = spoken[start : start + most - 1]
        return sum(term.weight for term in frozenset().union(*window)), sum(
            term.weight for terms in window for term in terms
        )

    return min(max(starts, key=lambda start: (weight(start), -start)) - 1, len(lines) - most)


def _line(text: str, number: int, wanted: Sequence[Term]) -> ExcerptLine:
    text = text.rstrip().expandtabs(4)
    marks = _marks(text, wanted)
    if len(text) > _LONGEST_LINE:
        start = max(
            0, min((marks[0][0] if marks else 0) - _LONGEST_LINE // 3, len(text) - _LONGEST_LINE)
        )
        text = f"…{text[start : start + _LONGEST_LINE]}…"
        marks = _marks(text, wanted)
    return ExcerptLine(number, text, marks)


def _marks(text: str, wanted: Sequence[Term]) -> tuple[tuple[int, int], ...]:
    """Whole words that begin as a term does, apart from each other."""
    low = lowered(text)
    found = sorted(
        (at, _end(text, at + len(term.text))) for term in wanted for at in hits(text, low, term)
    )
    apart: list[tuple[int, int]] = []
    for start, end in found:
        if apart and start <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(apart[-1][1], end))
        else:
            apart.append((start, end))
    return tuple(apart)


def _end(text: str, end: int) -> int:
    while end < len(text) and (text[end].islower() or text[end].isdigit()):
        end += 1
    return end
