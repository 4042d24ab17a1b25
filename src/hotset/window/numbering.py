"""Line numbers that a tool printed before each line: more than a third of the tokens of a file that
was read with them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBERED = re.compile(r" {0,8}(\d{1,7})(?:→|\t)")
_LEAST = 5  # lines: of fewer, the note would take what it saves
_MOST_OTHERS = 12
"""Lines without a number, such as a reminder that a client added; with more of them it is no
listing of a file."""


@dataclass(frozen=True, slots=True)
class Bare:
    """A text without its line numbers. Each line stands where it stood."""

    text: str
    first: int
    last: int

    @property
    def note(self) -> str:
        return f"[hotset: lines {self.first}-{self.last}, shown without their numbers]"


def bare(text: str) -> Bare | None:
    """A text whose lines are numbered one by one, without the numbers; None where they are not."""
    if not _NUMBERED.match(text):
        return None
    lines: list[str] = []
    first = expected = others = 0
    for line in text.split("\n"):
        found = _NUMBERED.match(line)
        number = int(found[1]) if found else 0
        if found and (not expected or number == expected):
            first = first or number
            expected = number + 1
            lines.append(line[found.end() :])
        else:
            others += 1
            lines.append(line)
    if others > _MOST_OTHERS or len(lines) - others < _LEAST:
        return None
    return Bare("\n".join(lines), first, expected - 1)
