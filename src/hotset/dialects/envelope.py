"""The body around the messages: its fields, its array, and how a changed request becomes bytes again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hotset.dialects import wire
from hotset.dialects.memo import Memo
from hotset.dialects.parts import Calls
from hotset.dialects.splice import Field, adjoin, elements, fields, splice
from hotset.errors import Malformed
from hotset.nouns.message import Message, Request, Span, Tool

Understand = Callable[[bytes, dict[str, Any], Span | None, str, Calls], Message]
"""A message from its bytes, its fields, its place in the body, its place in words, and the calls that came before it."""


@dataclass(frozen=True, slots=True)
class Envelope:
    body: bytes
    fields: dict[str, Field]

    def raw(self, name: str) -> bytes:
        """The value's bytes; empty where the field is missing."""
        field = self.fields.get(name)
        return self.body[field.value.start : field.value.end] if field else b""

    def tree(self, name: str) -> Any:
        """The value, decoded; None where the field is missing."""
        raw = self.raw(name)
        return wire.decode(raw, name) if raw else None

    def text(self, name: str) -> str:
        return wire.as_text(self.tree(name))

    def array(self, name: str) -> tuple[Span, tuple[Span, ...]]:
        """Where the array stands and where its elements do. Raises `Malformed` where there is no such array."""
        field = self.fields.get(name)
        if field is None:
            raise Malformed(f"the body has no {name!r}")
        if not self.body.startswith(b"[", field.value.start):
            raise Malformed(f"{name}: expected an array, got {_what(self.raw(name))}")
        return field.value, elements(self.body, field.value, name)

    def params(self, without: Iterable[str]) -> bytes:
        """The other fields as one object, each with the bytes it came with."""
        skip = frozenset(without)
        kept = (field for name, field in self.fields.items() if name not in skip)
        return b"{" + b",".join(self._slice(each.key) + b":" + self._slice(each.value) for each in kept) + b"}"

    def tools(self, name: str, named: Callable[[dict[str, Any]], str]) -> tuple[Tool, ...]:
        field = self.fields.get(name)
        if field is None or not self.body.startswith(b"[", field.value.start):
            return ()
        raws = [self._slice(span) for span in elements(self.body, field.value, name)]
        return tuple(Tool(named(wire.as_object(wire.decode(raw, f"{name}.{i}"))), raw) for i, raw in enumerate(raws))

    def hints(self, *names: str) -> tuple[str, ...]:
        return tuple(f"{name}={text}" for name in names if (text := self.text(name)))

    def _slice(self, span: Span) -> bytes:
        return self.body[span.start : span.end]


def opened(body: bytes, messages: str) -> Envelope:
    """Raises `Malformed` for what is not a JSON object in valid UTF-8; `messages` names the field that is decoded later."""
    found = Envelope(body, fields(body))
    for name in found.fields:
        if name != messages:
            _check_utf8(found.raw(name), name)
    return found


def messages_of(outer: Envelope, name: str, understand: Understand, memo: Memo) -> tuple[Span, tuple[Message, ...]]:
    """Where the array stands, and each of its elements understood. Raises `Malformed` for one that is not an object."""
    array, spans = outer.array(name)
    found: list[Message] = []
    calls: Calls = {}
    for index, span in enumerate(spans):
        raw = outer.body[span.start : span.end]
        message = memo.recall(raw, span, calls)
        if message is None:
            message = _understood(raw, span, f"{name}.{index}", understand, calls)
            memo.keep(message, calls)
        found.append(message)
    return array, tuple(found)


def _understood(raw: bytes, span: Span, where: str, understand: Understand, calls: Calls) -> Message:
    tree = wire.decode(raw, where)
    if not isinstance(tree, dict):
        raise Malformed(f"{where}: expected an object, got {_what(raw)}")
    try:
        return understand(raw, tree, span, where, calls)
    except RecursionError:
        raise Malformed(f"{where}: nested too deeply") from None


def role_of(tree: dict[str, Any], where: str) -> str:
    role = tree.get("role")
    if not isinstance(role, str):
        raise Malformed(f"{where}: " + ("it has no role" if role is None else f"expected a string as role, got {role!r:.40}"))
    return role


def render(request: Request, wrap: Callable[[bytes], bytes] = bytes) -> bytes:
    """The body again: the same bytes where nothing changed, spliced where messages were replaced; `wrap` makes an element of
    a message that does not stand in an array."""
    body, array = request.raw, request.array
    if _in_place(request):
        edits = [
            (each.span, each.raw) for each in request.messages if each.span and each.raw != body[each.span.start : each.span.end]
        ]
        return splice(body, edits) if edits else body
    return splice(body, [(array, b"[" + b",".join(wrap(each.raw) for each in request.messages) + b"]")])


def _in_place(request: Request) -> bool:
    spans = [each.span for each in request.messages if each.span is not None]
    if len(spans) != len(request.messages):
        return False
    if request.array.start == request.array.end:
        return not spans
    return spans == [request.array] or adjoin(request.raw, request.array, spans)


def _check_utf8(value: bytes, name: str) -> None:
    try:
        value.decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"{name}: not valid UTF-8 ({error.reason})") from None


def _what(raw: bytes) -> str:
    names = {b'"': "a string", b"{": "an object", b"[": "an array", b"n": "null", b"t": "true", b"f": "false"}
    return names.get(raw[:1], "a number")
