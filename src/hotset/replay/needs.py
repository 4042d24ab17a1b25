"""What an action copies from the messages before it: the strings and lines without which it could
not have been written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotset.nouns.page import Kind
from hotset.nouns.window import Line
from hotset.window.arguments import spoken
from hotset.window.names import names

_SHORTEST_LINE = 24
_NUMBERED = re.compile(r"^\s*\d+(?:→|\t|:|\||-)\s?")


@dataclass(frozen=True, slots=True)
class TextUnits:
    """What a text says, in the units that actions copy."""

    names: frozenset[str]
    lines: frozenset[str]

    @classmethod
    def of(cls, text: str) -> TextUnits:
        """A line that a difference adds is told by it, mark or no mark."""
        lines = frozenset(_lines(text))
        return cls(
            frozenset(names(text)), lines | {line[1:].strip() for line in lines if line[0] == "+"}
        )

    def holds(self, need: str) -> bool:
        return need in self.names or need in self.lines


@dataclass(frozen=True, slots=True)
class NeededAction:
    """A tool call, and where each string that it copies stood before."""

    message: int
    """The index of the message that carries it."""
    needs: dict[str, tuple[int, ...]]
    """Each name or line to the messages that it stands in, in order."""


def actions(lines: Sequence[Line], said: Sequence[TextUnits]) -> Iterator[NeededAction]:
    """Every call, with what it copies from earlier messages."""
    where: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        for piece in line.pieces:
            if piece.kind.family is Kind.TOOL_CALL:
                words = spoken(piece.content)
                needs = {
                    need: tuple(where[need])
                    for need in sorted({*names(words), *_lines(words)})
                    if need in where
                }
                yield NeededAction(index, needs)
        for need in said[index].names | said[index].lines:
            where.setdefault(need, []).append(index)


def _lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        bare = _NUMBERED.sub("", line).strip()
        if len(bare) >= _SHORTEST_LINE:
            yield bare
