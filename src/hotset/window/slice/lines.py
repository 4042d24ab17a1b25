"""Lines of a text, verbatim, with their numbers: what every other way but JSON comes down to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from hotset.nouns.retrieval import Span
from hotset.window.slice.fit import MOST_CHARS, Count, Cut, clipped, fits, fitting
from hotset.window.slice.numbering import Numbering, own_numbers

_GAP = "...\n"
_SPANS_TOLD = 6
_HEADING = 12  # lines that a tool may put above a file


class Text:
    """A text by its lines. Lines end at a line feed; everything else is part of them."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        if len(self.lines) > 1 and not self.lines[-1]:
            self.lines.pop()

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def own(self) -> Numbering | None:
        return own_numbers(self.lines)

    @property
    def bare(self) -> Sequence[str]:
        """Without the numbers that the text carries itself."""
        return self.own.bare if self.own else self.lines

    def numbered(self, at: int) -> str:
        """The line, from 1, with a number: its own where the text has numbers."""
        line = self.lines[at - 1]
        return f"{line}\n" if self.own or len(self.lines) == 1 else f"{at}\t{line}\n"

    def found(self, first: int, last: int) -> Span | None:
        """The lines that are meant by these numbers.

        Numbers count the lines, as the marks of an excerpt do. Where a text carries numbers of its own, a reader may mean those:
        both are shown where they are a few lines apart (a heading above a file), and its own where nothing else can be meant.
        """
        counted = (first, min(last, len(self))) if first <= len(self) else None
        own = self.own.places(first, last) if self.own else None
        if counted is None or own is None:
            return counted or own
        near = abs(counted[0] - own[0]) <= _HEADING
        return (min(counted[0], own[0]), max(counted[1], own[1])) if near else counted


def from_the_start(text: str, room: int, count: Count) -> Cut:
    """All of it, byte for byte; otherwise its first lines."""
    if fits(text, room, count):
        return Cut(text, whole=True, note="")
    total = text.count("\n") + (not text.endswith("\n"))
    first = [f"{line}\n" for line in text[: room * MOST_CHARS + 1].split("\n")[:total]]
    shown = fitting(first, room, count)
    if shown == 0 or (shown == len(first) < total):
        return _part_of_line(Text(text), 1, room, count)
    after = told(shown + 1, min(total, 2 * shown))
    note = f'lines {told(1, shown)} of {total:,}; lines="{after}" for more, or symbol, regex or question'
    return Cut("".join(first[:shown]).removesuffix("\n"), whole=False, note=note)


def by_lines(text: str, spans: Sequence[Span], room: int, count: Count) -> Cut:
    """The lines with these numbers."""
    by_line = Text(text)
    found = merged(span for asked in spans if (span := by_line.found(*asked)))
    if not found:
        return Cut("", whole=False, note=f"no such lines; it has lines {told(1, len(by_line))}")
    return show(by_line, found, room, count)


def show(text: Text, spans: Sequence[Span], room: int, count: Count, *, what: str = "") -> Cut:
    """These lines, in this order, as many as fit. `what` tells in the note what they are; spans do not overlap."""
    pieces = list(_pieces(text, spans, room * MOST_CHARS))
    kept = fitting(pieces, room, count)
    if kept == 0:
        return _part_of_line(text, spans[0][0], room, count)
    left = _left(spans, kept)
    note = f"{what}lines {_told(_kept(spans, kept))} of {len(text):,}"
    if left:
        note += f'; lines="{_asked(left)}" for more'
    return Cut("".join(pieces[:kept]).removesuffix("\n"), whole=not left, note=note)


def told(first: int, last: int) -> str:
    return f"{first}-{last}" if first < last else f"{first}"


def merged(spans: Iterable[Span], within: int = 1) -> list[Span]:
    """In order, those that touch (or stand `within` lines of each other) made one."""
    together: list[Span] = []
    for first, last in sorted(spans):
        if together and first <= together[-1][1] + within:
            together[-1] = (together[-1][0], max(together[-1][1], last))
        else:
            together.append((first, last))
    return together


def _pieces(text: Text, spans: Sequence[Span], most: int) -> Iterator[str]:
    """Each line, with a mark before it where lines were left out; `most` characters and no more could fit."""
    before = 0
    for first, last in spans:
        for at in range(first, last + 1):
            piece = (_GAP if before and at > before + 1 else "") + text.numbered(at)
            yield piece
            before = at
            most -= len(piece)
            if most < 0:
                return


def _kept(spans: Sequence[Span], kept: int) -> list[Span]:
    """The part of the spans that the first `kept` lines are."""
    shown = []
    for first, last in spans:
        if kept <= 0:
            break
        shown.append((first, min(last, first + kept - 1)))
        kept -= last - first + 1
    return shown


def _left(spans: Sequence[Span], kept: int) -> list[Span]:
    left = []
    for first, last in spans:
        if first + kept <= last:
            left.append((first + max(0, kept), last))
        kept -= last - first + 1
    return left


def _told(spans: Sequence[Span]) -> str:
    some = ",".join(told(*span) for span in spans[:_SPANS_TOLD])
    more = len(spans) - _SPANS_TOLD
    return f"{some} and {more} more places" if more > 0 else some


def _asked(spans: Sequence[Span]) -> str:
    """What to ask with for all of them; the last ones together, where they are many."""
    some = spans if len(spans) <= _SPANS_TOLD else [*spans[: _SPANS_TOLD - 1], (spans[_SPANS_TOLD - 1][0], spans[-1][1])]
    return ",".join(told(*span) for span in some)


def _part_of_line(text: Text, at: int, room: int, count: Count) -> Cut:
    line = text.numbered(at).removesuffix("\n")
    part = clipped(line, room, count)
    note = f"the first {len(part):,} of {len(line):,} characters of line {at} of {len(text):,}; regex or question for other parts"
    return Cut(part, whole=False, note=note)
