"""How much work a schema can make, told before it is used: schemas come from servers, and some are made to be endless. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hotset.sources.tools.compact import resolved

MOST_WORK = 5_000_000
"""Parts of a schema that a value may be held against: about half a second."""
DEEPEST = 64
"""Levels of a value."""

_NESTED = 2 * DEEPEST  # levels of a schema, references followed: what checks it recurses, and a thread's stack is small
_TEXT_UNIT = 64  # characters of a text that count as one more part: a pattern reads them all
_BELOW = frozenset({"items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contains"})
_BELOW_EACH = frozenset({"properties", "patternProperties", "prefixItems"})
_APART = frozenset({"$defs", "definitions"})
_ELSEWHERE = frozenset({"$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor"})


class Unbounded(Exception):
    """Nobody can say beforehand how long this takes."""


def work(schema: dict[str, Any], depth: int) -> int:
    """The parts of a schema that are held against one place of a value, at most, and against what lies below it on a way so deep.

    References multiply: thirty that each name the next one twice are a billion. Raises `Unbounded`, also for references that lead
    out of the schema or in circles.
    """
    return _Counting(schema).visit(schema, depth, 0)


def extent(value: Any) -> tuple[int, int]:
    """How many parts a value has, and how deep it goes. Raises `Unbounded`."""
    parts, deepest, waiting = 0, 0, [(value, 0)]
    while waiting:
        value, depth = waiting.pop()
        parts += 1
        deepest = max(deepest, depth)
        if deepest > DEEPEST:
            raise Unbounded
        if isinstance(value, str):
            parts += len(value) // _TEXT_UNIT
        elif isinstance(value, Mapping):
            waiting += [(each, depth + 1) for each in value.values()]
        elif isinstance(value, list | tuple):
            waiting += [(each, depth + 1) for each in value]
    return parts, deepest


class _Counting:
    """One count over a schema."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._known: dict[tuple[int, int], int] = {}
        self._open: set[tuple[int, int]] = set()

    def visit(self, node: Any, left: int, nested: int) -> int:
        """`left` are the levels that the value still has below this place."""
        if not isinstance(node, dict | list) or left < 0:
            return 1
        key = id(node), left
        if (known := self._known.get(key)) is not None:
            return known
        if key in self._open or nested > _NESTED:
            raise Unbounded
        self._open.add(key)
        total = 1 + sum(self._parts(node, left, nested + 1))
        self._open.discard(key)
        self._known[key] = total
        return total

    def _parts(self, node: dict[str, Any] | list[Any], left: int, nested: int) -> Iterator[int]:
        if isinstance(node, list):
            yield from (self.visit(each, left, nested) for each in node)
            return
        if node is not self._root and isinstance(node.get("$id", node.get("id")), str):
            raise Unbounded  # references below it start there
        for word, value in node.items():
            if word in _ELSEWHERE:
                raise Unbounded
            if word == "$ref":
                yield self._referred(value, left, nested)
            elif word in _BELOW_EACH and isinstance(value, dict | list):
                yield from (self.visit(each, left - 1, nested) for each in (value.values() if isinstance(value, dict) else value))
            elif word not in _APART:
                yield self.visit(value, left - 1 if word in _BELOW else left, nested)

    def _referred(self, reference: object, left: int, nested: int) -> int:
        target = resolved(self._root, reference)
        if target is None:
            raise Unbounded
        return self.visit(target, left, nested)
