"""Line numbers that a text carries itself, as the tools that read files write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

_STYLES = (
    re.compile(r"\s{0,8}(\d{1,7})\t"),  # cat -n
    re.compile(r"\s{0,8}(\d{1,7})→"),
    re.compile(r"\s{0,8}L?(\d{1,7}): ?"),
    re.compile(r"\s{0,8}(\d{1,7}) ?[|│] ?"),
)
_LOOKED_AT = 60  # lines from which the style is told
_ENOUGH = 0.8  # of them must fit: a heading above and a remark below carry no number


class Numbering:
    """Where each line number stands, and each line without it."""

    def __init__(self, lines: Sequence[str], style: re.Pattern[str]) -> None:
        self.numbers: list[int | None] = []
        self.bare: list[str] = []
        for line in lines:
            found = style.match(line)
            self.numbers.append(int(found[1]) if found else None)
            self.bare.append(line[found.end() :] if found else line)

    def places(self, first: int, last: int) -> tuple[int, int] | None:
        """The lines, from 1, that carry the numbers `first` to `last`; None where there are
        none."""
        inside = [
            at
            for at, number in enumerate(self.numbers, 1)
            if number is not None and first <= number <= last
        ]
        return (inside[0], inside[-1]) if inside else None


def own_numbers(lines: Sequence[str]) -> Numbering | None:
    """The numbering of a text that has one: most lines carry a number, and each is one more than
    that before it."""
    head = [line for line in lines[:_LOOKED_AT] if line.strip()]
    for style in _STYLES:
        found = [int(match[1]) for match in map(style.match, head) if match]
        steps = sum(after == before + 1 for before, after in pairwise(found))
        if (
            len(found) >= 2
            and len(found) >= _ENOUGH * len(head) - 2
            and steps >= _ENOUGH * (len(found) - 1)
        ):
            return Numbering(lines, style)
    return None
