"""How a text is counted: in lines, and a very long line in pieces, which have numbers of their own
(`13.5`).

Previews, answers and what a model asks for count in this one way, so that a number means the same
at every call.
"""

from __future__ import annotations

import re

from hotset.nouns.retrieval import END, Pieces

LONG = 2000
"""Characters of a line that is longer than anyone reads: it is counted in pieces."""

PIECE = 500
"""Characters of such a piece: an answer of the usual size holds a few, of minified code and of
base64."""

_TYPED = re.compile(
    r"[Ll]?(?P<line>\d{1,15})(?:\.(?P<piece>\d{1,9}))?"
    r"(?P<to>\s*(?:-|:|\.\.|–|to)\s*(?:[Ll]?(?P<last_line>\d{1,15})(?:\.(?P<last_piece>\d{1,9}))?)?)?"  # noqa: RUF001 - models
)


def lines_of(text: str) -> list[str]:
    """Lines end at a line feed; behind the last one there is no line."""
    lines = text.split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines


def pieces_of(line: str) -> int:
    """How many numbers a line takes."""
    return -(-len(line) // PIECE) if len(line) > LONG else 1


def typed_pieces(typed: str) -> Pieces | None:
    """`13.5`, `13.5-13.9`, `13.5-` and `12-13.4`; None for what names no piece."""
    found = _TYPED.fullmatch(typed.strip())
    if found is None or not (found["piece"] or found["last_piece"]):
        return None
    first = (int(found["line"]), int(found["piece"] or 1))
    if not found["to"]:
        return Pieces(first, first)
    last = (int(found["last_line"] or END), int(found["last_piece"] or END))
    return Pieces(min(first, last), max(first, last))
