"""The strings that actions copy: paths, identifiers, ids, numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{3,}[A-Za-z0-9_]")
_TELLING = re.compile(r"[0-9_/.]|(?<=.)[A-Z]")
_LONGEST = 120
_REMEMBERED = 8192  # a long session's pages; each entry is a small set


def names(text: str) -> Iterator[str]:
    """Every name in the order of the text, with repetitions."""
    for match in _NAME.finditer(text):
        name = match.group()
        if len(name) <= _LONGEST and _TELLING.search(name):
            yield name


@lru_cache(maxsize=_REMEMBERED)
def names_in(content: bytes) -> frozenset[str]:
    """The names of a page."""
    return frozenset(names(content.decode("utf-8", "replace")))


def spoken(arguments: bytes) -> str:
    """A call's arguments as plain text: the strings and numbers of its JSON, one a line; other text as it is."""
    try:
        tree = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return arguments.decode("utf-8", "replace")
    return "\n".join(_leaves(tree))


def _leaves(tree: object) -> Iterator[str]:
    todo = [tree]
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
