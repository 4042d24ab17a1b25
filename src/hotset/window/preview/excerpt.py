"""Chooses lines within a room: spans by worth, shown verbatim and in order, with every gap marked
by its line range."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from hotset.window.names import coined_names, distinct_names, joined_within, line_names

Label = Callable[[int, int], Sequence[str]]
"""Describes the lines of a gap in short pieces, the most informative first."""


class Worth:
    """The common scale on which all content competes for room. Values between two steps are
    allowed."""

    FRAME = 100.0
    FAILURE = 90.0
    WARNING = 80.0
    HEAD = 70.0
    ODD = 60.0
    """Lines unlike the rest of the page; see `rarity`."""
    ASKED = 50.0
    TAIL = 46.0
    OUTLINE = 40.0
    REST = 0.0


class LineSpan(NamedTuple):
    """Lines shown together, or as many of the first of them as fit."""

    first: int
    end: int
    worth: float
    least: int = 0
    """The fewest of its first lines that are still useful; 0: it is shown whole or not at all."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A content type's reading of a body: the spans worth showing, and labels for the rest."""

    spans: Sequence[LineSpan]
    label: Label
    preface: str = ""
    """A line of ours above everything: what there is, counted."""
    above: tuple[str, ...] = ()
    """More lines of ours below the preface; all of them, or none if they do not fit."""
    label_share: float = 0.06
    """Share of the room for gap labels."""
    mentions_share: float = 0.05
    """Share of the room for names that occur only in the gaps."""
    widest: int = 600
    """A longer line is shown by its two ends."""
    points: Mapping[int, str] = field(default_factory=dict)
    """Parts of longer lines that are shown instead of their ends."""
    scores: Mapping[int, float] = field(default_factory=dict)
    """How likely lines are needed; see `line_scores`. They are chosen behind the spans worth
    `before_scores`, and before all others."""
    before_scores: float = Worth.ODD - 2
    above_of: Mapping[int, int] = field(default_factory=dict)
    """The line without which another says little: the file of a search hit."""


Mark = Callable[[int, int], str]
"""Names the place of a gap."""


@dataclass(frozen=True, slots=True)
class ExcerptView:
    """A text not made of lines, laid out in lines of ours."""

    lines: Sequence[str]
    reading: Reading
    mark: Mark
    """The mark of a gap."""
    margin: int
    """Length of the longest mark."""
    slice: Mark
    """The argument that brings a gap back."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The chosen text, and its gaps."""

    text: str
    gaps: tuple[tuple[int, int], ...]
    left: int
    """Characters left out."""


_SHORTEST_PREFACE = 40
_MOST_ABOVE = 0.9
_LONGEST_LINE = 600
_FEW_LINES = 0.7  # of the room that a few lines may take together, however long they are
_LOOKED_AT = 48 * 1024  # characters of gaps searched for names
_KNOWN_NAMES = 0.1  # of its likelihood, that a line keeps whose names are all shown
_PER_GAP = 20  # characters of the mark of a gap that a line opens or leaves
_LENGTH_POWER = 0.3  # of its length, by which a line's likelihood is divided
_DULL = re.compile(r"[\d.,:/-]+")


def mark_lines(first: int, end: int, shift: int = 0) -> str:
    """The mark of a gap between lines; `shift` leads from a line's place to its number."""
    low, high = max(1, first + 1 + shift), max(1, end + shift)
    return f"… line {high} …" if low == high else f"… lines {low}-{high} …"


def no_slice(first: int, end: int) -> str:  # noqa: ARG001 - a `Mark`
    """For gaps that no argument brings back."""
    return ""


def no_label(first: int, end: int) -> Sequence[str]:  # noqa: ARG001 - a `Label`
    """For gaps of which only the size is known."""
    return ()


def longest_line(room: int) -> int:
    return max(80, min(_LONGEST_LINE, room // 4))


def room_above(room: int, preface: str, margin: int) -> int:
    """Characters for lines of ours between a preface and the text."""
    return int(_MOST_ABOVE * (room - len(_short(preface, room // 4)) - margin))


def compose(
    lines: Sequence[str],
    reading: Reading,
    room: int,
    mark: Mark | None = None,
    margin: int = 0,
    *,
    shift: int = 0,
) -> Excerpt:
    """An excerpt of at most `room` characters. No mark is longer than `margin`."""
    mark = mark or partial(mark_lines, shift=shift)
    margin = (margin or len(mark_lines(len(lines), 2 * len(lines), max(0, shift)))) + 1
    if room <= margin:
        return Excerpt("…"[: max(0, room)], ((0, len(lines)),), _size(lines))
    preface = _short(reading.preface, room // 4)
    above = [preface] if preface else []
    if _size(reading.above) <= room_above(room, reading.preface, margin):
        above += reading.above
    free = room - _size(above) - 1 if above else room
    widest = max(min(reading.widest, longest_line(room)), int(_FEW_LINES * free) // len(lines))
    excerpt = _compose_lines(
        lines, replace(reading, widest=widest), free, mark, margin, shift=shift
    )
    text = "\n".join([*above, excerpt.text])
    mentions = _mentions(
        lines, excerpt.gaps, text, min(room - len(text) - 1, int(free * reading.mentions_share))
    )
    return replace(excerpt, text=f"{text}\n{mentions}" if mentions else text)


def _compose_lines(
    lines: Sequence[str], reading: Reading, room: int, mark: Mark, margin: int, *, shift: int
) -> Excerpt:
    longest = reading.widest
    fitted = [
        line
        if len(line) <= longest
        else _fit(line, index + 1 + shift, longest, reading.points.get(index, ""))
        for index, line in enumerate(lines)
    ]
    sizes = [len(line) + 1 for line in fitted]
    taken = _choose(
        fitted,
        sizes,
        reading,
        int(room * (1 - reading.label_share - reading.mentions_share)),
        margin,
    )
    _close_small_gaps(taken, sizes, margin)
    gaps = tuple(_gaps(taken))
    shown = {index: fitted[index] for index, chosen in enumerate(taken) if chosen}
    left = _size(lines) - sum(
        len(line) + 1 - _added(line, lines[index], index + 1 + shift)
        for index, line in shown.items()
    )
    used = sum(len(line) + 1 for line in shown.values())
    labels = _labels(
        [mark(*gap) for gap in gaps],
        gaps,
        reading.label,
        room - used - int(room * reading.mentions_share),
    )
    return Excerpt("\n".join(_weave(shown, gaps, labels)), gaps, max(0, left))


def _size(lines: Sequence[str]) -> int:
    return sum(map(len, lines)) + len(lines) - 1


def _short(text: str, most: int) -> str:
    """The preface, cut if it is too long; empty if hardly anything would be left."""
    if len(text) <= most:
        return text
    return f"{text[: most - 2]}…]" if most > _SHORTEST_PREFACE else ""


def _choose(
    lines: Sequence[str], sizes: Sequence[int], reading: Reading, room: int, margin: int
) -> bytearray:
    """The chosen lines: spans greedy by worth, the earlier one among equals, and among them the
    lines that are likely needed. A span that does not fit is skipped."""
    taken = bytearray(len(sizes))
    free = room - margin  # at first there is one gap
    spans = sorted(reading.spans, key=lambda span: (-span.worth, span.first))
    least = reading.before_scores if reading.scores else -math.inf
    first = bisect_right(spans, -least, key=lambda span: -span.worth)
    free = _take_spans(taken, sizes, spans[:first], free, margin)
    free = _take_likely(taken, lines, sizes, reading, free, margin)
    _take_spans(taken, sizes, spans[first:], free, margin)
    return taken


def _take_spans(
    taken: bytearray, sizes: Sequence[int], spans: Sequence[LineSpan], free: int, margin: int
) -> int:
    """Takes the spans that fit, in order; returns what is left of the room."""
    for span in spans:
        end, cost = _reach(taken, sizes, span, free, margin)
        if end == span.end or (span.least and end - span.first >= span.least):
            taken[span.first : end] = b"\1" * (end - span.first)
            free -= cost
    return free


def _take_likely(  # noqa: PLR0917 - the state of the choice
    taken: bytearray,
    lines: Sequence[str],
    sizes: Sequence[int],
    reading: Reading,
    free: int,
    margin: int,
) -> int:
    """Takes the lines that are most likely needed for their length, each with the line above it
    that it belongs to. Names that are shown already count little, neighbours of shown lines cost
    less. Returns what is left of the room."""
    names = {index: line_names(lines[index]) for index in reading.scores}
    shown = {name for index, own in names.items() if taken[index] for name in own}

    def rank(index: int) -> float:
        own = names[index]
        new = len(own - shown) / len(own) if own else 1.0
        beside = taken[max(0, index - 1)] + taken[min(index + 1, len(taken) - 1)]
        size = float(sizes[index] + _PER_GAP * (2 - beside))
        worth = reading.scores[index] * (_KNOWN_NAMES + (1 - _KNOWN_NAMES) * new)
        return -worth / math.pow(size, _LENGTH_POWER)

    waiting = [(rank(index), index) for index in names if not taken[index]]
    heapify(waiting)
    while waiting and free > margin:
        before, index = heappop(waiting)
        now = rank(index)
        if taken[index]:
            continue
        if now > before and waiting and now > waiting[0][0]:  # its names were shown meanwhile
            heappush(waiting, (now, index))
            continue
        for at in {reading.above_of.get(index, index): 0, index: 0}:
            if taken[at]:
                continue
            end, cost = _reach(taken, sizes, LineSpan(at, at + 1, 0.0), free, margin)
            if end == at:
                break
            taken[at] = 1
            free -= cost
            shown |= names.get(at, frozenset())
            for next_to in (at - 1, at + 1):
                if next_to in names and not taken[next_to]:
                    heappush(waiting, (rank(next_to), next_to))
    return free


def _reach(
    taken: bytearray, sizes: Sequence[int], span: LineSpan, free: int, margin: int
) -> tuple[int, int]:
    """How far the lines of a span fit, and the cost: new lines, and marks added or saved."""
    first = span.first
    # The gap around it continues before it.
    opens = first > 0 and not taken[first - 1] and not taken[first]
    cost = margin if opens else 0
    end, closed = first, 0
    while end < span.end:
        if not taken[end]:
            if cost + sizes[end] > free:
                break
            cost += sizes[end]
            closed += end == first or bool(taken[end - 1])
        end += 1
    goes_on = end > first and end < len(sizes) and not taken[end] and not taken[end - 1]
    return end, cost - margin * (closed - goes_on)


def _close_small_gaps(taken: bytearray, sizes: Sequence[int], margin: int) -> None:
    """Shows the lines of a gap that are no longer than its mark."""
    for first, end in list(_gaps(taken)):
        if end - first <= margin and sum(sizes[first:end]) <= margin:
            taken[first:end] = b"\1" * (end - first)


def _gaps(taken: bytearray) -> Iterator[tuple[int, int]]:
    first = taken.find(0)
    while first != -1:
        end = taken.find(1, first)
        if end == -1:
            end = len(taken)
        yield first, end
        first = taken.find(0, end)


def _fit(line: str, number: int, longest: int, point: str) -> str:
    """The point of a line that is too long, or its two ends."""
    mark = _cut_mark(line, number)
    free = longest - len(mark) - 3
    if 0 < len(point) <= free:
        return f"{mark}{point} …"
    tail = free // 4
    return f"{mark}{line[: free - tail]} … {line[len(line) - tail :]}"


def _cut_mark(line: str, number: int) -> str:
    return f"… line {number} ({len(line):,} characters): "


def _added(shown: str, line: str, number: int) -> int:
    """Characters of ours in a shown line."""
    return 0 if shown is line else len(_cut_mark(line, number)) + 3


def _labels(
    marks: Sequence[str], gaps: Sequence[tuple[int, int]], label: Label, free: int
) -> list[str]:
    """The marks of all gaps with labels. Each gap gets its first piece before any gets more; longer
    gaps get more."""
    spare = free - sum(len(mark) + 1 for mark in marks)
    total = sum(end - first for first, end in gaps) or 1
    pieces = [label(*gap) for gap in gaps]
    texts = [""] * len(gaps)
    order = sorted(range(len(gaps)), key=lambda at: gaps[at][0] - gaps[at][1])
    for at in order:
        texts[at] = joined_within(pieces[at][:1], spare - 2)
        spare -= len(texts[at]) + 2 if texts[at] else 0
    unused = 0
    for at in reversed(order):
        first, end = gaps[at]
        share = unused + max(0, spare) * (end - first) // total
        more = joined_within(pieces[at], share + len(texts[at])) if texts[at] else ""
        unused = share - max(0, len(more) - len(texts[at]))
        texts[at] = more or texts[at]
    return [
        f"{mark[:-2]}: {own} …" if own else mark for mark, own in zip(marks, texts, strict=True)
    ]


def _weave(
    shown: dict[int, str], gaps: Sequence[tuple[int, int]], labels: Sequence[str]
) -> list[str]:
    placed = {first: mark for (first, _), mark in zip(gaps, labels, strict=True)}
    return [
        shown[index] if index in shown else placed[index] for index in sorted({*shown, *placed})
    ]


def _searched_lines(lines: Sequence[str], gaps: Sequence[tuple[int, int]]) -> Iterator[str]:
    """The lines of gaps, up to the characters that are searched."""
    looked = 0
    for first, end in gaps:
        for line in lines[first:end]:
            if looked > _LOOKED_AT:
                return
            looked += len(line)
            yield line[: _LONGEST_LINE * 4]


def _mentions(lines: Sequence[str], gaps: Sequence[tuple[int, int]], text: str, room: int) -> str:
    """A last line with the most frequent names that occur only in the gaps."""
    if room < 60:
        return ""
    counts = Counter(coined_names("\n".join(_searched_lines(lines, gaps))))
    new = {
        name: count
        for name, count in counts.items()
        if name not in text and not _DULL.fullmatch(name)
    }
    found = distinct_names(new, "")  # those that are alike, counted
    ranked = sorted((-count, order, name) for order, (name, count) in enumerate(found.items()))
    listed = joined_within([name for *_, name in ranked[:200]], room - len("… also mentions:  …"))
    return f"… also mentions: {listed} …" if listed else ""
