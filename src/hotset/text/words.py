"""Words and the parts of identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterable

UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Scripts written without spaces between words, as the inside of a character class."""

_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_BORDER = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def word_set(text: str) -> frozenset[str]:
    """The words of a text, separated by white space."""
    return frozenset(text.split())


def once(items: Iterable[str], most: int | None = None) -> tuple[str, ...]:
    """Each item once, in order of first occurrence."""
    return tuple(dict.fromkeys(items))[:most]


def lower_in_place(text: str) -> str:
    """The text in lower case with every character at its index: only U+0130 would become two."""
    return text.replace("\u0130", "i").lower()


def humps(name: str) -> list[str]:
    """The ASCII words in a name: `parseHTTPDate_2` gives `parse`, `HTTP`, `Date`."""
    return _HUMP.findall(name)


def split_humps(text: str) -> str:
    """The text with a space wherever `humps` would cut between letters; everything else is
    unchanged."""
    return _BORDER.sub(" ", text)
