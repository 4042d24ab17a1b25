"""What a text is counted in: its lines, and the pieces of its very long ones, by number from 1 and
by name (`12`, `13.5`)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from hotset.nouns.retrieval import Pieces, Span
from hotset.window.pieces import PIECE, pieces_of


class Units:
    """Each line is a unit, or several where it is long."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._ends = list(accumulate(map(pieces_of, lines), initial=0))
        """The last unit of each line, behind a 0."""

    def of_lines(self, span: Span) -> Span:
        return self._ends[span[0] - 1] + 1, self._ends[span[1]]

    def of_pieces(self, asked: Pieces) -> Span | None:
        """None where it begins behind the end."""
        (line, piece), (last_line, last) = asked.first, asked.last
        if not 1 <= line < len(self._ends) or piece > self._count(line):
            return None
        first = self._ends[line - 1] + max(1, piece)
        if last_line >= len(self._ends):
            return first, self._ends[-1]
        return first, max(first, self._ends[last_line - 1] + min(last, self._count(last_line)))

    def text(self, unit: int) -> str:
        """Verbatim; with the line's end behind the last of a line."""
        line, piece = self.place(unit)
        if self._count(line) == 1:
            return f"{self._lines[line - 1]}\n"
        return self._lines[line - 1][(piece - 1) * PIECE : piece * PIECE] + (
            "\n" if self.ends_line(unit) else ""
        )

    def place(self, unit: int) -> Span:
        """Its line, and which of the line's pieces it is."""
        line = bisect_right(self._ends, unit - 1)
        return line, unit - self._ends[line - 1]

    def ends_line(self, unit: int) -> bool:
        return self._ends[self.place(unit)[0]] == unit

    def name(self, unit: int) -> str:
        line, piece = self.place(unit)
        return f"{line}.{piece}" if self._count(line) > 1 else f"{line}"

    def told(self, span: Span) -> str:
        """By name, whole lines by their numbers alone: `12-14`, `13.5-13.9`, `12-13.4`."""
        (line, piece), (last_line, _) = map(self.place, span)
        if line == last_line and span != self.of_lines((line, line)):
            return told(self.name(span[0]), self.name(span[1]))
        first = f"{line}" if piece == 1 else self.name(span[0])
        return told(first, f"{last_line}" if self.ends_line(span[1]) else self.name(span[1]))

    def counting(self, spans: Sequence[Span]) -> str:
        """How long lines are counted, where a part of one stands at an end of these."""
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
        """The unit in which this character of the text stands."""
        line = min(bisect_right(self._offsets, offset), len(self._lines))
        piece = (offset - self._offsets[line - 1]) // PIECE + 1
        return self._ends[line - 1] + min(piece, self._count(line))

    @cached_property
    def _offsets(self) -> list[int]:
        """Where each line begins."""
        return list(accumulate((len(line) + 1 for line in self._lines), initial=0))

    def _count(self, line: int) -> int:
        return self._ends[line] - self._ends[line - 1]


def told(first: object, last: object) -> str:
    return f"{first}-{last}" if first != last else f"{first}"
