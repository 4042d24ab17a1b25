"""A conversation in steps, with the tokens of each line, whole and as shown.

A step is one reply of the model with the results of its calls; the user's messages are in no step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from hotset.nouns.page import Chain, Role
from hotset.nouns.window import WHOLE, Cause, Form, Line, Shown, Spot

_SMALLEST_STUB = 60
"""Tokens below which a page is never replaced by a stub."""

Rows = Mapping[Chain, Mapping[int, Shown]]
"""The rows of a page table by message and position: one look-up per line instead of one per
page."""


@dataclass(frozen=True, slots=True)
class WeighedConversation:
    """The lines and steps of a conversation with their token counts."""

    lines: Sequence[Line]
    answering: Sequence[bool]
    """For each line, whether it contains results of calls."""
    steps: Sequence[Step]
    wholes: Sequence[int]
    """Tokens of each line shown whole."""
    rows: Rows
    weights: Sequence[int]
    """Tokens of each line as shown."""
    sums: Sequence[int]
    """Tokens of the lines before each one, as shown, and of all lines."""
    sent: int = -1
    """Index of the last line of the latest request; -1 if there was none."""
    lost: Cause | None = None
    """Why the provider's cache holds nothing of it any more; None if it does."""
    departed: frozenset[Chain] = frozenset()
    """The messages that left."""

    @property
    def total(self) -> int:
        return self.sums[-1]

    def of(self, step: Step) -> int:
        """Tokens of a step as shown."""
        return self.sums[step.last + 1] - self.sums[step.first]

    def inside(self, step: Step) -> Sequence[Line]:
        return self.lines[step.first : step.last + 1]

    def gone(self, line: Line) -> Shown | None:
        """The row that replaces a message which left."""
        return self.rows[line.chain][WHOLE] if line.chain in self.departed else None

    def is_resident(self, step: Step) -> bool:
        """True if something in the step has not left and could."""
        if self.departed and all(line.chain in self.departed for line in self.inside(step)):
            return False
        return not step.sticky or any(True for _ in self.stubbable(step))

    def stubbable(self, step: Step) -> Iterator[tuple[Spot, int]]:
        """The results in a step that could become stubs, with their tokens as shown."""
        for index in range(step.first, step.last + 1):
            if not self.answering[index]:
                continue
            line = self.lines[index]
            own = self.rows.get(line.chain, {})
            if WHOLE in own:
                continue
            for position, piece in enumerate(line.pieces):
                row = own.get(position)
                tokens = piece.tokens if row is None else row.tokens
                if (
                    piece.is_result
                    and tokens > _SMALLEST_STUB
                    and (row is None or row.form is not Form.STUB)
                ):
                    yield Spot(line.chain, position), tokens

    def after(self, fresh: Iterable[Shown]) -> WeighedConversation:
        """The same conversation with these rows added."""
        rows = by_message(fresh)
        if not rows:
            return self
        together = {
            **self.rows,
            **{chain: {**self.rows.get(chain, {}), **own} for chain, own in rows.items()},
        }
        weights = [
            _weight(line, together, whole) if line.chain in rows else weight
            for line, whole, weight in zip(self.lines, self.wholes, self.weights, strict=True)
        ]
        departed = self.departed | _departed(rows)
        return replace(self, rows=together, weights=weights, sums=_sums(weights), departed=departed)

    def with_back(self, chains: Iterable[Chain]) -> WeighedConversation:
        """The same conversation with these messages back in it, if they had left."""
        return self.without_rows({Spot(chain, WHOLE) for chain in chains})

    def without_rows(self, spots: Collection[Spot]) -> WeighedConversation:
        """The same conversation with what these rows replace shown whole."""
        chains = {spot.chain for spot in spots}
        rows = {
            chain: {at: row for at, row in own.items() if row.spot not in spots}
            if chain in chains
            else own
            for chain, own in self.rows.items()
        }
        weights = [
            _weight(line, rows, whole) for line, whole in zip(self.lines, self.wholes, strict=True)
        ]
        departed = _departed(rows)
        return replace(self, rows=rows, weights=weights, sums=_sums(weights), departed=departed)


def weigh(
    lines: Sequence[Line], rows: Rows, sent: int = -1, lost: Cause | None = None
) -> WeighedConversation:
    answering = [line.answers for line in lines]
    wholes = [line.whole for line in lines]
    weights = [_weight(line, rows, each) for line, each in zip(lines, wholes, strict=True)]
    return WeighedConversation(
        lines,
        answering,
        tuple(steps_in(lines, answering)),
        wholes,
        rows,
        weights,
        _sums(weights),
        sent,
        lost,
        _departed(rows),
    )


def by_message(rows: Iterable[Shown]) -> dict[Chain, dict[int, Shown]]:
    """Rows by chain and position; the latest row of a spot wins."""
    found: dict[Chain, dict[int, Shown]] = {}
    for row in rows:
        found.setdefault(row.spot.chain, {})[row.spot.position] = row
    return found


def _weight(line: Line, rows: Rows, whole: int) -> int:
    own = rows.get(line.chain)
    if own is None:
        return whole
    gone = own.get(WHOLE)
    if gone is not None:
        return gone.tokens
    for position, row in own.items():
        whole += row.tokens - line.pieces[position].tokens
    return whole


def _departed(rows: Rows) -> frozenset[Chain]:
    return frozenset(chain for chain, own in rows.items() if WHOLE in own)


def _sums(weights: Sequence[int]) -> list[int]:
    return list(accumulate(weights, initial=0))


class Step(NamedTuple):  # hundreds per plan, made in a third of a dataclass's time
    """One reply of the model with the results of its calls: lines `first` to `last`, inclusive."""

    number: int
    """From 1, in conversation order."""
    first: int
    last: int
    sticky: bool
    """Its messages cannot leave, only the pages in them: user or system text is among its results,
    or one of its calls is answered elsewhere."""


def steps(lines: Sequence[Line]) -> Sequence[Step]:
    """The steps of these lines."""
    return steps_in(lines, [line.answers for line in lines])


def steps_in(lines: Sequence[Line], answering: Sequence[bool]) -> Sequence[Step]:
    """The same, if it is already known which lines contain results."""
    found: list[Step] = []
    assistant, system = Role.ASSISTANT, Role.SYSTEM  # thousands of look-ups
    index, scattered, count = 0, False, len(lines)
    while index < count:
        line = lines[index]
        if line.role is not assistant:
            scattered = scattered or answering[index]
            index += 1
            continue
        first, made = index, line.ids
        index += 1
        while index < count and (line := lines[index]).role is assistant:
            made += line.ids
            index += 1
        sticky, end = False, index
        while end < count and (answering[end] or lines[end].role is system):
            if answering[end]:
                line = lines[end]
                # `end > index`: a system text comes before it.
                sticky = sticky or line.speaks or end > index
                if line.ids != made:  # it answers all calls, mostly
                    scattered = scattered or not all(id in made for id in line.ids)
                index = end + 1
            end += 1
        found.append(Step(len(found) + 1, first, index - 1, sticky))
    return _hold_together(lines, answering, found) if scattered else found


def _hold_together(
    lines: Sequence[Line], answering: Sequence[bool], found: Sequence[Step]
) -> list[Step]:
    """Marks steps sticky whose call and result are in different steps or outside of any: neither
    may leave without the other."""
    step_at = {index: step for step in found for index in range(step.first, step.last + 1)}
    called: dict[str, Step] = {}
    stay: set[int] = set()
    latest: Step | None = None
    for index, line in enumerate(lines):
        here = step_at.get(index)
        latest = here or latest
        for id in line.ids:
            if line.role is Role.ASSISTANT and here is not None:
                called[id] = here
            elif answering[index]:
                # A call whose content the provider holds has another id.
                home = called.get(id, latest)
                stay.update(
                    step.number for step in (home, here) if step is not None and home is not here
                )
    return [step._replace(sticky=True) if step.number in stay else step for step in found]
