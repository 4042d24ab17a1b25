"""The body around the messages: its fields, its array, and how a changed request becomes bytes
again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hotset.dialects import wire
from hotset.dialects.cache import KnownFront, MessageCache
from hotset.dialects.parts import Calls
from hotset.dialects.wire import Field
from hotset.errors import Malformed
from hotset.nouns.message import ClientTool, Message, Request, Span

Understand = Callable[[bytes, dict[str, Any], Span | None, str, Calls], Message]
"""A message from its bytes, its fields, its place in the body, its place in words, and the calls
that came before it."""


@dataclass(frozen=True, slots=True)
class Envelope:
    body: bytes
    fields: dict[str, Field]
    front: KnownFront | None = None
    """What an earlier body said at the same bytes."""

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
        """Where the array stands and where its elements do. Raises `Malformed` where there is no
        such array."""
        field = self.fields.get(name)
        if field is None:
            raise Malformed(f"the body has no {name!r}")
        if not self.body.startswith(b"[", field.value.start):
            raise Malformed(f"{name}: expected an array, got {_what(self.raw(name))}")
        return field.value, wire.element_spans(self.body, field.value, name)

    def params(self, without: Iterable[str]) -> bytes:
        """The other fields as one object, each with the bytes it came with."""
        skip = frozenset(without)
        kept = (field for name, field in self.fields.items() if name not in skip)
        return (
            b"{"
            + b",".join(self._slice(each.key) + b":" + self._slice(each.value) for each in kept)
            + b"}"
        )

    def tools(self, name: str, named: Callable[[dict[str, Any]], str]) -> tuple[ClientTool, ...]:
        field = self.fields.get(name)
        if field is None or not self.body.startswith(b"[", field.value.start):
            return ()
        return _tools(self._slice(field.value), name, named)

    def hints(self, *names: str) -> tuple[str, ...]:
        return tuple(f"{name}={text}" for name in names if (text := self.text(name)))

    def _slice(self, span: Span) -> bytes:
        return self.body[span.start : span.end]


def opened(body: bytes, messages: str, cache: MessageCache | None = None) -> Envelope:
    """Raises `Malformed` for what is not a JSON object in valid UTF-8; `messages` names the field
    that is decoded later."""
    for latest in tuple(_latest):
        if latest.body is body:
            return latest
    front = cache.bodies.find(body) if cache is not None else None
    if front is not None and (resumed := _resumed(body, messages, front)) is not None:
        return _remembered(resumed)
    found = Envelope(body, wire.fields(body))
    for name in found.fields:
        if name != messages:
            _check_utf8(found.raw(name), name)
    return _remembered(found)


_latest: deque[Envelope] = deque(maxlen=4)
"""Bodies that were opened a moment ago: the rules are held against the very bytes that were
parsed."""

_LARGEST_LATEST = 1 << 20


def _remembered(found: Envelope) -> Envelope:
    if len(found.body) <= _LARGEST_LATEST:
        _latest.append(found)
    return found


def messages_of(
    outer: Envelope, name: str, understand: Understand, cache: MessageCache
) -> tuple[Span, tuple[Message, ...]]:
    """Where the array stands, and each of its elements understood. Raises `Malformed` for one that
    is not an object."""
    front = outer.front
    array, spans = outer.array(name) if front is None else _behind(outer, front, name)
    found: list[Message] = list(front.messages) if front is not None else []
    calls: Calls = dict(front.calls) if front is not None else {}
    for index, span in enumerate(spans, len(found)):
        raw = outer.body[span.start : span.end]
        message = cache.recall(raw, span, calls)
        if message is None:
            message = _understood(raw, span, f"{name}.{index}", understand, calls)
            cache.keep(message, calls)
        found.append(message)
    before = {each: field for each, field in outer.fields.items() if field.value.end <= array.start}
    read = KnownFront(tuple(found), calls, before, outer.fields[name].key, array.start)
    cache.bodies.keep(outer.body, read, front)
    return array, read.messages


def _resumed(body: bytes, name: str, front: KnownFront) -> Envelope | None:
    """The envelope of a body that is known up to the end of a message; None where it has to be read
    from its start."""
    # Behind an element of an array that stands in an object all JSON goes on alike, whatever that
    # element is.
    rest = b'{"%s":[{}' % name.encode() + body[front.end :]
    shift = len(body) - len(rest)
    try:
        found = wire.fields(rest)
        for each, field in found.items():
            if each != name:
                _check_utf8(rest[field.value.start : field.value.end], each)
    except Malformed:
        return None  # read from its start, it is said what is wrong with it, and where
    if found.keys() & front.fields.keys():
        return None
    own, *behind = found.items()
    joined = {**front.fields, name: Field(front.key, Span(front.start, own[1].value.end + shift))}
    joined.update(
        (each, Field(wire.moved(field.key, shift), wire.moved(field.value, shift)))
        for each, field in behind
    )
    return Envelope(body, joined, front)


def _behind(outer: Envelope, front: KnownFront, name: str) -> tuple[Span, list[Span]]:
    """Where the array stands, and those of its elements that are not known."""
    array = outer.fields[name].value
    rest = b"[{}" + outer.body[front.end : array.end]
    shift = array.end - len(rest)
    return array, [
        wire.moved(span, shift) for span in wire.element_spans(rest, Span(0, len(rest)), name)[1:]
    ]


@lru_cache(maxsize=16)  # a session's tools stay the same: some 50 KB, told with every call
def _tools(
    array: bytes, name: str, named: Callable[[dict[str, Any]], str]
) -> tuple[ClientTool, ...]:
    raws = [
        array[span.start : span.end]
        for span in wire.element_spans(array, Span(0, len(array)), name)
    ]
    return tuple(
        ClientTool(named(wire.as_object(wire.decode(raw, f"{name}.{i}"))), raw)
        for i, raw in enumerate(raws)
    )


def _understood(
    raw: bytes, span: Span, where: str, understand: Understand, calls: Calls
) -> Message:
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
        raise Malformed(
            f"{where}: "
            + ("it has no role" if role is None else f"expected a string as role, got {role!r:.40}")
        )
    return role


def render(request: Request, wrap: Callable[[bytes], bytes] = bytes) -> bytes:
    """The body again: the same bytes where nothing changed, spliced where messages were replaced;
    `wrap` makes an element of a message that does not stand in an array."""
    body, array = request.raw, request.array
    if not _in_place(request):
        return wire.splice(
            body, [(array, wire.array_of(wrap(each.raw) for each in request.messages))]
        )
    placed = ((each.span, each.raw) for each in request.messages if each.span)
    return wire.splice(
        body, [(span, raw) for span, raw in placed if raw != body[span.start : span.end]]
    )


def _in_place(request: Request) -> bool:
    spans = [each.span for each in request.messages if each.span is not None]
    if len(spans) != len(request.messages):
        return False
    if request.array.start == request.array.end:
        return not spans
    return spans == [request.array] or wire.is_all_of(request.array, spans, request.raw)


def _check_utf8(value: bytes, name: str) -> None:
    try:
        value.decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"{name}: not valid UTF-8 ({error.reason})") from None


def _what(raw: bytes) -> str:
    names = {
        b'"': "a string",
        b"{": "an object",
        b"[": "an array",
        b"n": "null",
        b"t": "true",
        b"f": "false",
    }
    return names.get(raw[:1], "a number")
