"""The line numbers that a tool prints before the lines of a file, in the ways that tools have:
`1→x`, `1\tx`, `1: x`, `1:x`, `L1: x`, `1|x`, `00001| x`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

_STYLES = (
    re.compile(r" {0,8}(\d{1,7})\t"),  # cat -n
    re.compile(r" {0,8}(\d{1,7})→"),
    re.compile(r" {0,8}L?(\d{1,7}):"),
    re.compile(r" {0,8}(\d{1,7}) ?[|│]"),
)
_ANY = re.compile(r" {0,8}(?:\d{1,7}(?:[\t→:]| ?[|│])|L\d{1,7}:)")  # one of the styles
_SAMPLE = 60  # lines examined for the style
_SHARE = 0.8  # of them must match: a heading above and a remark below have no number
_ONE_COUNT = 0.95  # of the numbers must belong to one count, or they count several things
_LEAD = 16  # lines without a number before the first: a client's frame, no more


class Numbering:
    """The numbers of a text, and its lines without them."""

    def __init__(self, lines: Sequence[str], style: re.Pattern[str]) -> None:
        found = [style.match(line) for line in lines]
        self.numbers = [int(match[1]) if match else None for match in found]
        after = [
            line[match.end() :] if match else line for line, match in zip(lines, found, strict=True)
        ]
        numbered = [text for text, match in zip(after, found, strict=True) if match]
        self._space = _space_behind(numbered) if style in _STYLES[2:] else False
        self.bare = [
            text[1:] if match and self._space and text[:1] == " " else text
            for text, match in zip(after, found, strict=True)
        ]

    @property
    def is_exact(self) -> bool:
        """True if the lines without their numbers are those of the file, byte for byte: not where
        a space may belong to the number or to the line."""
        return self._space is not None

    @cached_property
    def shift(self) -> int | None:
        """What is added to a line's place, from 1, to get its number; None if there is no one
        count."""
        shifts = Counter(
            number - at for at, number in enumerate(self.numbers, 1) if number is not None
        )
        shift, times = shifts.most_common(1)[0]
        return shift if times >= _ONE_COUNT * shifts.total() else None

    def places(self, first: int, last: int) -> tuple[int, int] | None:
        """The lines, from 1, that carry the numbers `first` to `last`; None if there are none."""
        inside = [
            at
            for at, number in enumerate(self.numbers, 1)
            if number is not None and first <= number <= last
        ]
        return (inside[0], inside[-1]) if inside else None


def own_numbers(lines: Sequence[str]) -> Numbering | None:
    """The numbering of a text whose lines mostly carry consecutive numbers; None for other
    texts."""
    head = list(_sample(lines))
    fewest = max(2, _SHARE * len(head) - 2)
    if sum(1 for line in head if _ANY.match(line)) < fewest:  # true of most texts
        return None
    for style in _STYLES:
        found = [int(match[1]) for match in map(style.match, head) if match]
        steps = sum(after == before + 1 for before, after in pairwise(found))
        if len(found) >= fewest and steps >= _SHARE * (len(found) - 1):
            return Numbering(lines, style)
    return None


def _sample(lines: Sequence[str]) -> Iterator[str]:
    """The first lines with text, from the first that may carry a number."""
    first = next(
        (at for at, line in enumerate(lines[:_LEAD]) if _ANY.match(line)),
        0,
    )
    return (line for line in lines[first : first + _SAMPLE] if line.strip())


def _space_behind(texts: Sequence[str]) -> bool | None:
    """True if a space belongs to the number's mark; None if that cannot be told.

    Tools differ, and a part of a file may be indented in every line. One space more than a file
    can be indented by, or behind the number of an empty line, belongs to the mark.
    """
    indents = {len(text) - len(text.lstrip(" ")) for text in texts if text.strip()}
    if not indents or 0 in indents:
        return False
    if 1 in indents:
        return True
    empty = {text for text in texts if not text.strip()}
    return empty == {" "} if len(empty) == 1 and empty <= {"", " "} else None
