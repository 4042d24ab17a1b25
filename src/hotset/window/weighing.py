"""A conversation with what is shown of it, weighed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hotset.nouns.window import WHOLE, Cause, Form, Line, Shown, Spot
from hotset.window.steps import Step, answers, is_result, steps

_SMALLEST_STUB = 60
"""Tokens below which a page is never exchanged for a stub."""


@dataclass(frozen=True, slots=True)
class Weighed:
    lines: Sequence[Line]
    steps: Sequence[Step]
    shown: Mapping[Spot, Shown]
    weights: Sequence[int]
    """Tokens of each line as it is shown."""
    sent: int
    """The index of the last line that the provider has in its cache; -1 where it has none."""
    lost: Cause | None = None
    """Why the provider's cache is of no use now; None where it is."""

    @property
    def total(self) -> int:
        return sum(self.weights)

    def of(self, step: Step) -> int:
        """Tokens of a step as it is shown."""
        return sum(self.weights[step.first : step.last + 1])

    def inside(self, step: Step) -> Sequence[Line]:
        return self.lines[step.first : step.last + 1]

    def is_resident(self, step: Step) -> bool:
        """Has it not left yet?"""
        if step.sticky:
            return any(True for _ in self.stubbable(step))
        return Spot(self.lines[step.first].chain, WHOLE) not in self.shown

    def stubbable(self, step: Step) -> Iterator[tuple[Spot, int]]:
        """The results in a step that could become stubs, with their tokens as shown."""
        for line in self.inside(step):
            if not answers(line):
                continue
            for position, piece in enumerate(line.pieces):
                if not is_result(piece):
                    continue
                spot = Spot(line.chain, position)
                row = self.shown.get(spot)
                tokens = row.tokens if row is not None else piece.tokens
                if tokens > _SMALLEST_STUB and (row is None or row.form is not Form.STUB):
                    yield spot, tokens

    def after(self, rows: Sequence[Shown]) -> Weighed:
        """The same conversation with these rows."""
        return weigh(self.lines, {**self.shown, **{row.spot: row for row in rows}}, self.sent, self.lost)


def weigh(lines: Sequence[Line], shown: Mapping[Spot, Shown], sent: int, lost: Cause | None = None) -> Weighed:
    return Weighed(lines, tuple(steps(lines)), shown, [weight(line, shown) for line in lines], sent, lost)


def weight(line: Line, shown: Mapping[Spot, Shown]) -> int:
    """Tokens of a line as it is shown."""
    if not shown:
        return whole(line)
    gone = shown.get(Spot(line.chain, WHOLE))
    if gone is not None:
        return gone.tokens
    if not answers(line):  # only results are ever shown in a lesser form by themselves
        return whole(line)
    total = line.extra
    for position, piece in enumerate(line.pieces):
        row = shown.get(Spot(line.chain, position)) if is_result(piece) else None
        total += piece.tokens if row is None else row.tokens
    return total


def whole(line: Line) -> int:
    """Tokens of a line if it is shown whole."""
    total = line.extra
    for piece in line.pieces:
        total += piece.tokens
    return total
