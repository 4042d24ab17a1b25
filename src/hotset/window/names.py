"""The strings that actions copy: paths, identifiers, ids, numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

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


def spoken(arguments: bytes) -> str:
    """A call's arguments as plain text: the strings and numbers of its JSON, one a line; other text as it is."""
    return "\n".join(leaves(arguments))


def leaves(arguments: bytes) -> Iterator[str]:
    """The strings and numbers of a call's arguments, in their order; other text than JSON as it is."""
    try:
        todo = [msgspec.json.decode(arguments)]
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        todo = [arguments.decode("utf-8", "replace")]
    while todo:
        here = todo.pop()
        if isinstance(here, str):
            yield here
        elif isinstance(here, dict):
            todo.extend(reversed(here.values()))
        elif isinstance(here, list):
            todo.extend(reversed(here))
        elif here is not None and not isinstance(here, bool):
            yield str(here)
