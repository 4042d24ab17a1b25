"""What a model sent as a tool's arguments, checked: what cannot be used is told in a sentence that
says what to send."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hotset.errors import Malformed
from hotset.nouns.retrieval import END, MAX_TOKENS, Pieces, Span
from hotset.runtime.model_tools import typed_pieces

LEAST_TOKENS, MOST_TOKENS = 100, 20_000
"""As for the tools of a conversation: room for the lines that say what came and what did not; a
slice, not the window's worth."""

_MOST_CHARS = 2000
_MOST_SPANS = 50
_SPAN = re.compile(r"(\d{1,9})\s*(?:(-|:|\.\.)\s*(\d{1,9})?)?")


class Arguments:
    """Of one call. Names that the tool does not have are refused: a model that misspells one would
    wonder at the answer."""

    def __init__(self, tool: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
        unknown = [name for name in given if name not in known]
        if unknown:
            raise Malformed(f"{tool}: no argument {unknown[0][:80]!r}; it takes {', '.join(known)}")
        self._tool = tool
        self._given = {name: value for name, value in given.items() if value not in (None, "", [])}

    def text(self, name: str) -> str:
        return self._said(name)[:_MOST_CHARS]

    def whole_text(self, name: str, most: int) -> str:
        """A text that is to be kept: one that is too long is refused, not cut."""
        value = self._said(name)
        if len(value) > most:
            raise Malformed(
                f"{self._tool}: {name} has {len(value):,} characters, and {most:,} is the most"
            )
        return value

    def one_of(self, name: str, allowed: Sequence[str]) -> str:
        """One of these, or nothing."""
        value = self.text(name).lower()
        if value and value not in allowed:
            raise Malformed(
                f"{self._tool}: {name} must be one of {', '.join(allowed)}, not {_named(value)}"
            )
        return value

    def words(self, name: str, such_as: str = "retry policy of the uploader") -> str:
        """A text with at least one word."""
        value = self.text(name)
        if not re.search(r"\w", value):
            raise Malformed(
                f'{self._tool}: {name} must have at least one word, such as "{such_as}"'
            )
        return value

    def spans(self, name: str) -> tuple[Span | Pieces, ...]:
        """Lines, as `120-180`, `7`, `300-`, several with commas, or a pair of numbers; pieces of a
        long one as `7.1-7.20`."""
        value = self._given.get(name)
        match value:
            case None:
                return ()
            case bool():
                pieces = [""]
            case int():
                pieces = [str(value)]
            case str():
                pieces = value.split(",")[:_MOST_SPANS]
            case [int(first), int(last)]:
                pieces = [f"{first}-{last}"]
            case _:
                pieces = [""]
        return tuple(self._span(name, piece.strip()) for piece in pieces)

    def max_tokens(self, default: int = MAX_TOKENS) -> int:
        value = self._given.get("max_tokens", default)
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not LEAST_TOKENS <= value < END
        ):
            raise Malformed(
                f"{self._tool}: max_tokens must be a number from {LEAST_TOKENS} to "
                f"{MOST_TOKENS:,}, not {_amount(value)}"
            )
        return min(int(value), MOST_TOKENS)

    def steps(self, name: str) -> int:
        """A number of steps, 0 where it is not said; `true` is one."""
        value = self._given.get(name, 0)
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if not isinstance(value, int) or not 0 <= value < END:
            raise Malformed(f"{self._tool}: {name} must be 1, 2 and so on, not {_amount(value)}")
        return int(value)

    def _said(self, name: str) -> str:
        value = self._given.get(name, "")
        if not isinstance(value, str):
            raise Malformed(f"{self._tool}: {name} must be a string, not {_named(value)}")
        # A lone surrogate is a character in JSON and none in UTF-8.
        return value.encode("utf-8", "replace").decode().strip()

    def _span(self, name: str, piece: str) -> Span | Pieces:
        if (pieces := typed_pieces(piece)) is not None:
            return pieces
        found = _SPAN.fullmatch(piece)
        if found is None:
            raise Malformed(
                f'{self._tool}: {name} must be numbers such as "120-180", or several such as '
                f'"10-20,300-340"'
            )
        first = max(1, int(found[1]))
        last = int(found[3]) if found[3] else (END if found[2] else first)
        return (first, last) if first <= last else (max(1, last), first)


def _amount(value: object) -> str:
    """A number that is out of range is told as it is."""
    return str(value)[:20] if type(value) in (int, float) else _named(value)


def _named(value: object) -> str:
    kinds = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "an object",
    }
    return kinds.get(type(value), repr(value)[:80])
