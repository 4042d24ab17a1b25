"""Numbering of a text: by lines, and a very long line by pieces with numbers of their own (`13.5`).

Previews, answers and requests of a model share this numbering, so that a number means the same at
every call.
"""

from __future__ import annotations

import re

from hotset.nouns.retrieval import END, Pieces

LONG = 2000
"""Characters above which a line is numbered in pieces."""

PIECE = 500
"""Characters of such a piece: an answer of the usual size holds a few, also of minified code and
base64."""

_TYPED = re.compile(
    r"[Ll]?(?P<line>\d{1,15})(?:\.(?P<piece>\d{1,9}))?"
    r"(?P<to>\s*(?:-|:|\.\.|–|to)\s*(?:[Ll]?(?P<last_line>\d{1,15})(?:\.(?P<last_piece>\d{1,9}))?)?)?"  # noqa: RUF001 - models
)


def lines_of(text: str) -> list[str]:
    """The lines, split at line feeds; a final line feed starts no line."""
    lines = text.split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines


def pieces_of(line: str) -> int:
    """Number of pieces in a line; 1 if it is not long."""
    return -(-len(line) // PIECE) if len(line) > LONG else 1


def typed_pieces(typed: str) -> Pieces | None:
    """Parses `13.5`, `13.5-13.9`, `13.5-` and `12-13.4`; None if no piece is named."""
    found = _TYPED.fullmatch(typed.strip())
    if found is None or not (found["piece"] or found["last_piece"]):
        return None
    first = (int(found["line"]), int(found["piece"] or 1))
    if not found["to"]:
        return Pieces(first, first)
    last = (int(found["last_line"] or END), int(found["last_piece"] or END))
    return Pieces(min(first, last), max(first, last))
