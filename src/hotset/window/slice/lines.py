"""Lines of a text, verbatim, with their numbers: the basis of every slice except JSON.

What fits is chosen line by line, and within a very long line piece by piece, so that a cut can
continue where it ended. Lines and pieces are counted together as units, named `12` and `13.5`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate

from hotset.nouns.retrieval import Pieces, Span
from hotset.window.line_numbers import Numbering, own_numbers
from hotset.window.pieces import LONG, PIECE, lines_of, pieces_of
from hotset.window.slice.fit import (
    MOST_CHARS,
    Count,
    Cut,
    clip_to_tokens,
    count_fitting,
    fits,
    tokens,
)

_GAP = "...\n"
_SPANS_LISTED = 6
_HEADING = 12  # lines that a tool may put above a file
_BESIDES = 200  # tokens of an answer beside its content


class Text:
    """A text by its lines. Lines end at a line feed only."""

    def __init__(self, text: str) -> None:
        self.lines = lines_of(text)

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def units(self) -> Units:
        return Units(self.lines)

    @cached_property
    def own(self) -> Numbering | None:
        return own_numbers(self.lines)

    @property
    def bare(self) -> Sequence[str]:
        """The lines without the numbers that the text itself carries."""
        return self.own.bare if self.own else self.lines

    def number_line(self, at: int) -> str:
        """The line, from 1, with a number: its own if the text has numbers."""
        line = self.lines[at - 1]
        return f"{line}\n" if self.own or len(self.lines) == 1 else f"{at}\t{line}\n"

    def resolve_lines(self, first: int, last: int) -> Span | None:
        """The lines that these numbers refer to.

        Numbers are the text's own if it carries one count of them, as in the marks of its excerpt;
        otherwise they count lines. Both are shown if they are a few lines apart (a heading above a
        file).
        """
        counted = (first, min(last, len(self))) if first <= len(self) else None
        own = self.own.places(first, last) if self.own else None
        if counted is None or own is None:
            return counted or own
        near = abs(counted[0] - own[0]) <= _HEADING
        if near:
            return min(counted[0], own[0]), max(counted[1], own[1])
        return counted if self.own is None or self.own.shift is None else own


def from_the_start(text: str, room: int, count: Count) -> Cut:
    """The whole text, byte for byte, if it fits; otherwise its first lines."""
    if fits(text, room, count):
        return Cut(text, whole=True, note="")
    by_line = Text(text)
    units = by_line.units
    _, last = units.of_lines((1, len(by_line)))
    first = list(_take_chars(map(units.text, range(1, last + 1)), room * MOST_CHARS))
    shown = count_fitting(first, room, count)
    if shown == 0:
        return _part_of_unit(by_line, 1, room, count)
    more = (
        f'; more: lines="{units.span_name((shown + 1, min(last, 2 * shown)))}"'
        if shown < last
        else ""
    )
    return Cut(
        "".join(first[:shown]).removesuffix("\n"),
        whole=shown == last,
        note=_what_is_here(by_line, [(1, shown)]) + more,
    )


def by_lines(text: str, spans: Sequence[Span | Pieces], room: int, count: Count) -> Cut:
    """The lines, or pieces of lines, with these numbers."""
    by_line = Text(text)
    found = merge_spans(span for asked in spans if (span := _resolve_units(by_line, asked)))
    if not found:
        return Cut("", whole=False, note=f"no such lines; {_what_there_is(by_line)}")
    return _cut_units(by_line, found, room, count)


def show(text: Text, spans: Sequence[Span], room: int, count: Count, *, what: str = "") -> Cut:
    """As many of these lines as fit, in this order. `what` describes them in the note; spans do not
    overlap."""
    return _cut_units(text, [text.units.of_lines(span) for span in spans], room, count, what=what)


def show_parts(text: str, spans: Sequence[Span], room: int, count: Count, *, what: str = "") -> Cut:
    """Parts of a text by character span: their whole lines, or the parts alone if one of the lines
    is long."""
    by_line = Text(text)
    units = by_line.units
    lines = [
        (units.place(units.at(start))[0], units.place(units.at(end - 1))[0]) for start, end in spans
    ]
    if all(
        len(by_line.lines[at - 1]) <= LONG for first, last in lines for at in range(first, last + 1)
    ):
        return show(by_line, merge_spans(lines, within=0), room, count, what=what)
    parts = [f"{text[start:end]}\n" for start, end in spans]
    kept = count_fitting(parts, room, count)
    shown = [(units.at(start), units.at(end - 1)) for start, end in spans]
    if kept:
        note = what + _what_is_here(by_line, merge_spans(shown[:kept], within=0))
        note += (
            f'; more: lines="{_spans_to_ask(units, merge_spans(shown[kept:]))}"'
            if kept < len(spans)
            else ""
        )
        return Cut("".join(parts[:kept]).removesuffix("\n"), whole=kept == len(spans), note=note)
    part = clip_to_tokens(parts[0], room, count)
    note = (
        f"{what}first {len(part):,} of {len(parts[0]) - 1:,} characters; rest: "
        f"{_rest(text, spans[0], len(part))}"
    )
    return Cut(part, whole=False, note=note)


def rest_of(text: str, value: str, shown: int) -> str:
    """The argument that requests what follows the first `shown` characters of a part of the
    text."""
    at = text.find(value)
    return "regex" if at < 0 else _rest(text, (at, at + len(value)), shown)


def _rest(text: str, span: Span, shown: int) -> str:
    units = Text(text).units
    return f'lines="{units.span_name((units.at(span[0] + shown), units.at(span[1] - 1)))}"'


def merge_spans(spans: Iterable[Span], within: int = 1) -> list[Span]:
    """The spans in order, those that touch (or are `within` lines of each other) joined."""
    together: list[Span] = []
    for first, last in sorted(spans):
        if together and first <= together[-1][1] + within:
            together[-1] = (together[-1][0], max(together[-1][1], last))
        else:
            together.append((first, last))
    return together


def _resolve_units(text: Text, asked: Span | Pieces) -> Span | None:
    """The requested lines or pieces as units; None if there are none."""
    if isinstance(asked, Pieces):
        return text.units.of_pieces(asked)
    found = text.resolve_lines(*asked)
    return None if found is None else text.units.of_lines(found)


def _cut_units(
    text: Text, spans: Sequence[Span], room: int, count: Count, *, what: str = ""
) -> Cut:
    """As many of these units as fit."""
    pieces = list(_take_chars(_pieces(text, spans), room * MOST_CHARS))
    kept = count_fitting(pieces, room, count)
    if kept == 0:
        return _part_of_unit(text, spans[0][0], room, count)
    left = _spans_left(spans, kept)
    note = what + _what_is_here(text, _spans_kept(spans, kept))
    if left:
        note += f'; more: lines="{_spans_to_ask(text.units, left)}"'
    return Cut("".join(pieces[:kept]).removesuffix("\n"), whole=not left, note=note)


def _pieces(text: Text, spans: Sequence[Span]) -> Iterator[str]:
    """Each unit, with a number where a line or a span begins, and a mark before it after a gap."""
    units = text.units
    before = 0
    for first, last in spans:
        for unit in range(first, last + 1):
            apart = before and unit > before + 1
            gap = ("" if units.ends_line(before) else "\n") + _GAP if apart else ""
            yield gap + _number_unit(text, unit, begins=unit == first)
            before = unit


def _number_unit(text: Text, unit: int, *, begins: bool) -> str:
    line, piece = text.units.place(unit)
    if piece == 1 and text.units.ends_line(unit):
        return text.number_line(line)
    unnumbered = len(text) == 1 or not (begins or piece == 1) or (piece == 1 and text.own)
    return (
        text.units.text(unit) if unnumbered else f"{text.units.name(unit)}\t{text.units.text(unit)}"
    )


def _take_chars(pieces: Iterable[str], most: int) -> Iterator[str]:
    """The pieces up to `most` characters: no more could fit."""
    for piece in pieces:
        yield piece
        most -= len(piece)
        if most < 0:
            return


def _spans_kept(spans: Sequence[Span], kept: int) -> list[Span]:
    """The spans covered by the first `kept` lines."""
    shown = []
    for first, last in spans:
        if kept <= 0:
            break
        shown.append((first, min(last, first + kept - 1)))
        kept -= last - first + 1
    return shown


def _spans_left(spans: Sequence[Span], kept: int) -> list[Span]:
    left = []
    for first, last in spans:
        if first + kept <= last:
            left.append((first + max(0, kept), last))
        kept -= last - first + 1
    return left


def _what_is_here(text: Text, spans: Sequence[Span]) -> str:
    """`lines 5-6,400-401 of 412`, with the numbering of a long line if only part of it is there."""
    counting = text.units.counting(spans)
    one = len(spans) == 1 and spans[0][0] == spans[0][1]
    return (
        f"line{'' if one else 's'} {_span_names(text.units, spans)} of "
        f"{len(text):,}{counting and f' ({counting})'}"
    )


def _what_there_is(text: Text) -> str:
    if len(text) > 1:
        return f"it has lines {span_name(1, len(text))}"
    first, last = text.units.of_lines((1, 1))
    return (
        "it has one line"
        if first == last
        else f"it has one line, in pieces {text.units.name(first)}-{text.units.name(last)}"
    )


def _span_names(units: Units, spans: Sequence[Span]) -> str:
    some = ",".join(units.span_name(span) for span in spans[:_SPANS_LISTED])
    more = len(spans) - _SPANS_LISTED
    return f"{some} and {more} more place{'s' if more > 1 else ''}" if more > 0 else some


def _spans_to_ask(units: Units, spans: Sequence[Span]) -> str:
    """The argument that requests all these spans; the last ones are joined if there are many."""
    some = (
        spans
        if len(spans) <= _SPANS_LISTED
        else [*spans[: _SPANS_LISTED - 1], (spans[_SPANS_LISTED - 1][0], spans[-1][1])]
    )
    return ",".join(units.span_name(span) for span in some)


def _part_of_unit(text: Text, unit: int, room: int, count: Count) -> Cut:
    """The beginning of a unit too large for this answer, with the size that would hold all of
    it."""
    shown = _number_unit(text, unit, begins=True).removesuffix("\n")
    part = clip_to_tokens(shown, room, count)
    name = text.units.name(unit)
    enough = tokens(shown, count) + _BESIDES
    note = f"first {len(part):,} of {len(shown):,} characters of line {name} of {len(text):,}"
    return Cut(part, whole=False, note=f'{note}; all: lines="{name}", max_tokens={enough}')


class Units:
    """The units of a text: one per line, several for a long line."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._ends = list(accumulate(map(pieces_of, lines), initial=0))
        """The last unit of each line, after a leading 0."""

    def of_lines(self, span: Span) -> Span:
        return self._ends[span[0] - 1] + 1, self._ends[span[1]]

    def of_pieces(self, asked: Pieces) -> Span | None:
        """None if it begins after the end."""
        (line, piece), (last_line, last) = asked.first, asked.last
        if not 1 <= line < len(self._ends) or piece > self._count(line):
            return None
        first = self._ends[line - 1] + max(1, piece)
        if last_line >= len(self._ends):
            return first, self._ends[-1]
        return first, max(first, self._ends[last_line - 1] + min(last, self._count(last_line)))

    def text(self, unit: int) -> str:
        """Verbatim; the last unit of a line includes the line feed."""
        line, piece = self.place(unit)
        if self._count(line) == 1:
            return f"{self._lines[line - 1]}\n"
        return self._lines[line - 1][(piece - 1) * PIECE : piece * PIECE] + (
            "\n" if self.ends_line(unit) else ""
        )

    def place(self, unit: int) -> Span:
        """Its line, and its piece number in that line."""
        line = bisect_right(self._ends, unit - 1)
        return line, unit - self._ends[line - 1]

    def ends_line(self, unit: int) -> bool:
        return self._ends[self.place(unit)[0]] == unit

    def name(self, unit: int) -> str:
        line, piece = self.place(unit)
        return f"{line}.{piece}" if self._count(line) > 1 else f"{line}"

    def span_name(self, span: Span) -> str:
        """The name of a span, whole lines by number alone: `12-14`, `13.5-13.9`, `12-13.4`."""
        (line, piece), (last_line, _) = map(self.place, span)
        if line == last_line and span != self.of_lines((line, line)):
            return span_name(self.name(span[0]), self.name(span[1]))
        first = f"{line}" if piece == 1 else self.name(span[0])
        return span_name(first, f"{last_line}" if self.ends_line(span[1]) else self.name(span[1]))

    def counting(self, spans: Sequence[Span]) -> str:
        """Describes the pieces of a long line if these spans begin or end inside it."""
        ends = {unit for span in spans for unit in span}
        parted = [
            line
            for unit in ends
            if (line := self.place(unit)[0]) and self.of_lines((line, line)) not in spans
        ]
        long = next((line for line in sorted(parted) if self._count(line) > 1), 0)
        return (
            f"line {long} has pieces {long}.1-{long}.{self._count(long)} of {PIECE} characters"
            if long
            else ""
        )

    def at(self, offset: int) -> int:
        """The unit that contains this character of the text."""
        line = min(bisect_right(self._offsets, offset), len(self._lines))
        piece = (offset - self._offsets[line - 1]) // PIECE + 1
        return self._ends[line - 1] + min(piece, self._count(line))

    @cached_property
    def _offsets(self) -> list[int]:
        """The offset of each line."""
        return list(accumulate((len(line) + 1 for line in self._lines), initial=0))

    def _count(self, line: int) -> int:
        return self._ends[line] - self._ends[line - 1]


def span_name(first: object, last: object) -> str:
    return f"{first}-{last}" if first != last else f"{first}"
