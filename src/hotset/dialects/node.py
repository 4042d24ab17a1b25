"""A JSON value at its place in a message's bytes, so that it can be exchanged and everything around it left alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hotset.dialects import wire
from hotset.dialects.splice import elements, fields
from hotset.nouns.message import Span


@dataclass(frozen=True, slots=True)
class Node:
    """`body[span.start:span.end]`. Looks inside one level at a time, and only where it is asked to."""

    body: bytes
    span: Span

    @property
    def raw(self) -> bytes:
        return self.body[self.span.start : self.span.end]

    @property
    def is_text(self) -> bool:
        return self.body.startswith(b'"', self.span.start)

    @property
    def is_null(self) -> bool:
        return self.raw == b"null"

    def members(self) -> dict[str, Node]:
        """An object's values; none where it is no object. Raises `Malformed` for a key that comes twice."""
        if not self.body.startswith(b"{", self.span.start):
            return {}
        shift = self.span.start
        found = fields(self.raw)
        return {name: Node(self.body, Span(shift + at.value.start, shift + at.value.end)) for name, at in found.items()}

    def elements(self) -> tuple[Node, ...]:
        """An array's elements; none where it is no array."""
        if not self.body.startswith(b"[", self.span.start):
            return ()
        return tuple(Node(self.body, span) for span in elements(self.body, self.span, "an array"))

    def value(self) -> Any:
        return wire.decode(self.raw, "a value")


def node(raw: bytes) -> Node:
    """The value that `raw` holds, without the white space around it."""
    start = len(raw) - len(raw.lstrip())
    return Node(raw, Span(start, max(start, len(raw.rstrip()))))


def says(members: dict[str, Node], name: str) -> str:
    """A short text among an object's members; empty where there is none."""
    found = members.get(name)
    return wire.as_text(found.value()) if found is not None and found.is_text else ""


def is_text(members: dict[str, Node], *names: str) -> bool:
    """True where every one of these members is there and is a text."""
    return all(name in members and members[name].is_text for name in names)
