"""What says the same is shown once. Nothing is removed: the others are found by their ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

SAME = 0.9
"""Of the words of both, those that both have: the likeness from which on memories are merged, too."""

_WORD = re.compile(r"\w+")
_TURNS = frozenset({"not", "no", "never", "without", "don", "doesn", "isn", "won", "cannot", "nicht", "kein"})

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Collapsed(Generic[_T]):
    item: _T
    """The first of them."""
    others: tuple[_T, ...] = ()


def collapsed(items: Sequence[_T], text: Callable[[_T], str]) -> list[Collapsed[_T]]:
    """In the order of the first of each. One that differs in a number or in a "not" says something else."""
    groups: list[tuple[_Said, list[_T]]] = []
    for item in items:
        said = _said(text(item))
        for other, group in groups:
            if _same(said, other):
                group.append(item)
                break
        else:
            groups.append((said, [item]))
    return [Collapsed(group[0], tuple(group[1:])) for _, group in groups]


def fresh(items: Iterable[_T], known: Iterable[_T], text: Callable[[_T], str]) -> Iterator[_T]:
    """Those that say what neither the known ones nor those before them say, one by one as they come."""
    told = [_said(text(item)) for item in known]
    for item in items:
        said = _said(text(item))
        if not any(_same(said, other) for other in told):
            told.append(said)
            yield item


@dataclass(frozen=True, slots=True)
class _Said:
    words: frozenset[str]
    exact: frozenset[str]
    """Words with digits, and those that turn a sentence into its contrary."""


def _said(text: str) -> _Said:
    words = frozenset(_WORD.findall(text.lower()))
    return _Said(words, frozenset(word for word in words if word in _TURNS or any(map(str.isdigit, word))))


def _same(one: _Said, other: _Said) -> bool:
    if one.exact != other.exact:
        return False
    both = len(one.words & other.words)
    return both >= SAME * (len(one.words) + len(other.words) - both) and bool(both)
