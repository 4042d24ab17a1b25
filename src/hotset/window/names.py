"""The strings that actions copy: paths, identifiers, ids, numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{3,}[A-Za-z0-9_]")
_TELLING = re.compile(r"[0-9_/.]|(?<=.)[A-Z]")
_LONGEST = 120


def names(text: str) -> Iterator[str]:
    """Every name in the order of the text, with repetitions."""
    for match in _NAME.finditer(text):
        name = match.group()
        if len(name) <= _LONGEST and _TELLING.search(name):
            yield name


def names_of(content: bytes) -> frozenset[str]:
    """The names of a page."""
    return frozenset(names(content.decode("utf-8", "replace")))


def within(words: Iterable[str], room: int) -> list[str]:
    """As many of the words, from the first on, as so many characters hold."""
    kept: list[str] = []
    for word in words:
        room -= len(word) + 1
        if room < 0:
            break
        kept.append(word)
    return kept
