"""A conversation in steps: what the user said stays by itself; what the model did and what came
back belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hotset.nouns.page import Kind, Role
from hotset.nouns.window import Line


class Step(NamedTuple):  # hundreds in every plan; made in a third of the time of a dataclass
    """One reply of the model with the results of its calls: lines `first` to `last`, both
    included."""

    number: int
    """From 1, in the order of the conversation."""
    first: int
    last: int
    sticky: bool
    """Its messages cannot leave, only the pages in them: words of the user or of the system stand
    among its results, or one of its calls is answered in another place."""


def steps(lines: Sequence[Line]) -> Sequence[Step]:
    return steps_in(lines, [line.answers for line in lines])


def steps_in(lines: Sequence[Line], answering: Sequence[bool]) -> Sequence[Step]:
    """The same, where it is known already which lines bring results."""
    found: list[Step] = []
    index, scattered = 0, False
    while index < len(lines):
        if lines[index].role is not Role.ASSISTANT:
            scattered = scattered or answering[index]
            index += 1
            continue
        first = index
        made: list[str] = []
        while index < len(lines) and lines[index].role is Role.ASSISTANT:
            made += lines[index].ids
            index += 1
        sticky, end = False, index
        while end < len(lines) and (answering[end] or lines[end].role is Role.SYSTEM):
            if answering[end]:
                sticky = (
                    sticky or lines[end].speaks or end > index
                )  # a system text stands before it
                scattered = scattered or not all(id in made for id in lines[end].ids)
                index = end + 1
            end += 1
        found.append(Step(len(found) + 1, first, index - 1, sticky))
    return _held_together(lines, answering, found) if scattered else found


def _held_together(
    lines: Sequence[Line], answering: Sequence[bool], found: Sequence[Step]
) -> list[Step]:
    """A call and its result in two steps, or outside of any: neither may leave without the other,
    so both stay."""
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
                home = called.get(
                    id, latest
                )  # a call of which the provider holds the content stands under another id
                stay.update(
                    step.number for step in (home, here) if step is not None and home is not here
                )
    return [step._replace(sticky=True) if step.number in stay else step for step in found]


def is_prompt(line: Line) -> bool:
    """Did the user speak, and nothing else happen?"""
    return any(piece.kind is Kind.PROMPT for piece in line.pieces) and not line.answers
