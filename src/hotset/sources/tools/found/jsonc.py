"""JSON as editors write it, with comments and commas before a closing bracket. Pure; its time grows with the text alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_PIECE = re.compile(r'[^"/,}\]]+|.', re.DOTALL)
_STRING_END = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def decoded(text: str) -> Any:
    """Raises `ValueError` for what is none of it, and `RecursionError` for what is nested too deep."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads("".join(_plain(text)))


def blanked(text: str) -> str:
    """The same with as many blanks in the place of comments and of such commas, in UTF-8: every other byte keeps its place."""
    pieces: list[str] = []
    comma = -1
    at = 0
    while match := _PIECE.match(text, at):
        start, at = at, match.end()
        piece = match[0]
        if text.startswith(("//", "/*"), start):
            at = _comment_end(text, start)
            pieces.append(re.sub(r"[^\n]", lambda each: " " * len(each[0].encode()), text[start:at]))
            continue
        if piece == '"':
            at = _string_end(text, at)
        if piece in "}]" and comma >= 0:
            pieces[comma] = " "
        if piece == ",":
            comma = len(pieces)
        elif not piece.isspace():
            comma = -1
        pieces.append(text[start:at])
    return "".join(pieces)


def _plain(text: str) -> Iterator[str]:
    """The same without comments and without the commas that nothing follows."""
    comma = ""
    at = 0
    while match := _PIECE.match(text, at):
        start, at = at, match.end()
        piece = match[0]
        if text.startswith(("//", "/*"), start):
            at = _comment_end(text, start)
        elif piece == ",":
            yield comma
            comma = piece
        elif not piece.isspace():
            if piece == '"':
                at = _string_end(text, at)
            yield "" if piece in "}]" else comma
            yield text[start:at]
            comma = ""


def _comment_end(text: str, start: int) -> int:
    end = text.find("\n" if text[start + 1] == "/" else "*/", start + 2)
    if end < 0:
        return len(text)
    return end if text[start + 1] == "/" else end + 2


def _string_end(text: str, start: int) -> int:
    match = _STRING_END.match(text, start)
    if match is None:
        raise ValueError("a string does not end")
    return match.end()
