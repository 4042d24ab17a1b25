"""A conversation in steps: what the user said stays by itself; what the model did and what came back belong together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hotset.nouns.page import Kind, Role
from hotset.nouns.window import Line


class Step(NamedTuple):  # hundreds in every plan; made in a third of the time of a dataclass
    """One reply of the model with the results of its calls: lines `first` to `last`, both included."""

    number: int
    """From 1, in the order of the conversation."""
    first: int
    last: int
    sticky: bool
    """A user's own words stand among its results: its messages cannot leave, only the pages in them."""


def steps(lines: Sequence[Line]) -> Iterator[Step]:
    return steps_in(lines, [line.answers for line in lines])


def steps_in(lines: Sequence[Line], answering: Sequence[bool]) -> Iterator[Step]:
    """The same, where it is known already which lines bring results."""
    number, index = 0, 0
    while index < len(lines):
        if lines[index].role is not Role.ASSISTANT:
            index += 1
            continue
        number += 1
        first = index
        while index < len(lines) and lines[index].role is Role.ASSISTANT:
            index += 1
        sticky = False
        while index < len(lines) and answering[index]:
            sticky = sticky or lines[index].speaks
            index += 1
        yield Step(number, first, index - 1, sticky)


def is_prompt(line: Line) -> bool:
    """Did the user speak, and nothing else happen?"""
    return any(piece.kind is Kind.PROMPT for piece in line.pieces) and not line.answers
