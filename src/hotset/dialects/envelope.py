"""The body around the messages: its fields, its array of messages, and rendering a changed request.
Parsed messages and bodies are cached by their bytes: a client resends its history with every call,
and only the tail is new."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any, Generic, TypeVar

from hotset.dialects import json_bytes
from hotset.dialects.json_bytes import Field
from hotset.dialects.parts import UNKNOWN, Calls, EarlierCall
from hotset.errors import Malformed
from hotset.files.lru import CACHES, CacheSize, Lru, part
from hotset.nouns.message import ClientTool, Message, Request, Span
from hotset.nouns.page import Kind
from hotset.nouns.pressure import PressureResponse

Understand = Callable[[bytes, dict[str, Any], Span | None, str, Calls], Message]
"""Parses a message from its bytes, its fields, its span in the body, its place in words, and the
calls before it."""


@dataclass(frozen=True, slots=True)
class Envelope:
    body: bytes
    fields: dict[str, Field]
    front: KnownFront | None = None
    """The part that an earlier body had at the same bytes."""

    def raw(self, name: str) -> bytes:
        """The value's bytes; empty if the field is missing."""
        field = self.fields.get(name)
        return self.body[field.value.start : field.value.end] if field else b""

    def tree(self, name: str) -> Any:
        """The decoded value; None if the field is missing."""
        raw = self.raw(name)
        return json_bytes.decode(raw, name) if raw else None

    def text(self, name: str) -> str:
        return json_bytes.as_text(self.tree(name))

    def array(self, name: str) -> tuple[Span, tuple[Span, ...]]:
        """The spans of the array and of its elements. Raises `Malformed` if there is no such
        array."""
        field = self.fields.get(name)
        if field is None:
            raise Malformed(f"the body has no {name!r}")
        if not self.body.startswith(b"[", field.value.start):
            raise Malformed(f"{name}: expected an array, got {_json_type(self.raw(name))}")
        return field.value, json_bytes.element_spans(self.body, field.value, name)

    def params(self, without: Iterable[str]) -> bytes:
        """The other fields as one object, each with its original bytes."""
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


def open_envelope(body: bytes, messages: str, cache: MessageCache | None = None) -> Envelope:
    """Raises `Malformed` if `body` is not a JSON object in valid UTF-8; `messages` names the field
    that is decoded later."""
    latest = _latest.get(id(body))
    if latest is not None and latest.body is body:
        return latest
    front = cache.bodies.find(body) if cache is not None else None
    if front is not None and (resumed := _resume_envelope(body, messages, front)) is not None:
        return _remember(resumed)
    found = Envelope(body, json_bytes.fields(body))
    for name in found.fields:
        if name != messages:
            _check_utf8(found.raw(name), name)
    return _remember(found)


_latest: Lru[int, Envelope] = Lru("opened bodies", count=4)
"""The rules check the same bytes that were just parsed. By the body's identity, which stays its own
as long as it is here."""

_LARGEST_LATEST = 1 << 20


def _remember(found: Envelope) -> Envelope:
    if len(found.body) <= _LARGEST_LATEST:
        _latest.put(id(found.body), found)
    return found


def messages_of(
    outer: Envelope, name: str, understand: Understand, cache: MessageCache
) -> tuple[Span, tuple[Message, ...]]:
    """The span of the array, and its parsed elements. Raises `Malformed` for an element that is not
    an object."""
    front = outer.front
    array, spans = outer.array(name) if front is None else _unknown_elements(outer, front, name)
    found: list[Message] = list(front.messages) if front is not None else []
    calls: Calls = dict(front.calls) if front is not None else {}
    for index, span in enumerate(spans, len(found)):
        raw = outer.body[span.start : span.end]
        message = cache.recall(raw, span, calls)
        if message is None:
            message = _understand_element(raw, span, f"{name}.{index}", understand, calls)
            cache.keep(message, calls)
        found.append(message)
    before = {each: field for each, field in outer.fields.items() if field.value.end <= array.start}
    read = KnownFront(tuple(found), calls, before, outer.fields[name].key, array.start)
    cache.bodies.keep(outer.body, read, front)
    return array, read.messages


def _resume_envelope(body: bytes, name: str, front: KnownFront) -> Envelope | None:
    """The envelope of a body that is known up to the end of a message; None if it has to be read
    from its start."""
    # After an element of an array in an object JSON continues the same way, whatever the element
    # is.
    rest = b'{"%s":[{}' % name.encode() + body[front.end :]
    shift = len(body) - len(rest)
    try:
        found = json_bytes.fields(rest)
        for each, field in found.items():
            if each != name:
                _check_utf8(rest[field.value.start : field.value.end], each)
    except Malformed:
        return None  # reading it from its start gives the precise error
    if found.keys() & front.fields.keys():
        return None
    own, *behind = found.items()
    joined = {**front.fields, name: Field(front.key, Span(front.start, own[1].value.end + shift))}
    joined.update(
        (
            each,
            Field(
                json_bytes.shift_span(field.key, shift), json_bytes.shift_span(field.value, shift)
            ),
        )
        for each, field in behind
    )
    return Envelope(body, joined, front)


def _unknown_elements(outer: Envelope, front: KnownFront, name: str) -> tuple[Span, list[Span]]:
    """The span of the array, and the spans of its elements that are not known."""
    array = outer.fields[name].value
    rest = b"[{}" + outer.body[front.end : array.end]
    shift = array.end - len(rest)
    return array, [
        json_bytes.shift_span(span, shift)
        for span in json_bytes.element_spans(rest, Span(0, len(rest)), name)[1:]
    ]


@lru_cache(maxsize=16)  # a session's tools stay the same: some 50 KB, sent with every call
def _tools(
    array: bytes, name: str, named: Callable[[dict[str, Any]], str]
) -> tuple[ClientTool, ...]:
    raws = [
        array[span.start : span.end]
        for span in json_bytes.element_spans(array, Span(0, len(array)), name)
    ]
    return tuple(
        ClientTool(named(json_bytes.as_object(json_bytes.decode(raw, f"{name}.{i}"))), raw)
        for i, raw in enumerate(raws)
    )


def _understand_element(
    raw: bytes, span: Span, where: str, understand: Understand, calls: Calls
) -> Message:
    tree = json_bytes.decode(raw, where)
    if not isinstance(tree, dict):
        raise Malformed(f"{where}: expected an object, got {_json_type(raw)}")
    try:
        return understand(raw, tree, span, where, calls)
    except RecursionError:
        raise Malformed(f"{where}: nested too deeply") from None


def tool_name(tool: dict[str, Any]) -> str:
    """A tool's name, or its type if it has none because the provider runs it."""
    return json_bytes.as_text(tool.get("name")) or json_bytes.as_text(tool.get("type"))


def role_of(tree: dict[str, Any], where: str) -> str:
    role = tree.get("role")
    if not isinstance(role, str):
        raise Malformed(
            f"{where}: "
            + ("it has no role" if role is None else f"expected a string as role, got {role!r:.40}")
        )
    return role


def render(request: Request, wrap: Callable[[bytes], bytes] = bytes) -> bytes:
    """The body: unchanged if nothing changed, spliced where messages were replaced; `wrap` makes an
    array element of a message that is not in an array."""
    body, array = request.raw, request.array
    if not _in_place(request):
        return json_bytes.splice(
            body, [(array, json_bytes.array_of(wrap(each.raw) for each in request.messages))]
        )
    placed = ((each.span, each.raw) for each in request.messages if each.span)
    return json_bytes.splice(
        body, [(span, raw) for span, raw in placed if raw != body[span.start : span.end]]
    )


def _in_place(request: Request) -> bool:
    spans = [each.span for each in request.messages if each.span is not None]
    if len(spans) != len(request.messages):
        return False
    if request.array.start == request.array.end:
        return not spans
    return spans == [request.array] or json_bytes.is_all_of(request.array, spans, request.raw)


def _check_utf8(value: bytes, name: str) -> None:
    try:
        value.decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"{name}: not valid UTF-8 ({error.reason})") from None


def _json_type(raw: bytes) -> str:
    names = {
        b'"': "a string",
        b"{": "an object",
        b"[": "an array",
        b"n": "null",
        b"t": "true",
        b"f": "false",
    }
    return names.get(raw[:1], "a number")


MOST_MESSAGE_BYTES = (
    8 << 20
)  # about twenty-five sessions of 300 KB; their parsed form takes as much again
LARGEST_MESSAGE = 1 << 20
_OBJECTS_OF_MESSAGE = 1500  # bytes that the objects of a message take, however short it is

# bytes: a dozen sessions of 300 KB; their messages are shared with `MessageCache`
_MOST_BODY_BYTES = 4 << 20
_MOST_BODIES = 8  # each may have to be compared with a new body: some 20 µs
_SMALLEST_BODY = 8 << 10  # bytes; a smaller body is parsed as fast as it is found
_QUICKLY_READ = 16 << 10  # bytes that are read in 0.2 ms
_MARKS_MOVED = 4
"""Messages at the end that a client may change, for example when it moves a cache mark: still the
same session."""

_T = TypeVar("_T")


class FactCache(Generic[_T]):
    """Facts about a message that a provider's rules need. They depend only on the message's bytes:
    rules that look at several messages are applied anew to the facts of each."""

    def __init__(self, work_out: Callable[[bytes], _T]) -> None:
        self._work_out = work_out
        self._facts: Lru[bytes, _T] = Lru("rules of messages", weight=MOST_MESSAGE_BYTES)

    def of(self, messages: Sequence[Message]) -> list[_T]:
        """The facts of each message, in order."""
        known = self._facts.get_each([each.raw for each in messages])
        return [
            self._new(each.raw) if facts is None else facts
            for each, facts in zip(messages, known, strict=True)
        ]

    def _new(self, raw: bytes) -> _T:
        made = self._work_out(raw)
        if len(raw) <= LARGEST_MESSAGE:
            self._facts.put(raw, made, len(raw))
        return made


@dataclass(frozen=True, slots=True)
class _KnownMessage:
    message: Message
    makes: tuple[tuple[str, EarlierCall], ...]
    """Its own calls."""
    needs: tuple[tuple[str, EarlierCall], ...]
    """The earlier calls that determined how its results were read; with others it would be read
    differently."""


class MessageCache:
    """Messages and bodies parsed before. Thread-safe."""

    def __init__(self) -> None:
        self.messages: Lru[bytes, _KnownMessage] = Lru("parsed messages", weight=MOST_MESSAGE_BYTES)
        self.bodies = BodyCache()

    def recall(self, raw: bytes, span: Span, calls: Calls) -> Message | None:
        """The cached message for these bytes, if it was parsed after the same calls; its own calls
        are then added to `calls`."""
        known = self.messages.get(raw)
        if known is None or any(calls.get(id, UNKNOWN) != call for id, call in known.needs):
            return None
        calls.update(known.makes)
        message = known.message
        return Message(message.role, raw, message.parts, message.essence, message.aside, span)

    def keep(self, message: Message, calls: Calls) -> None:
        if len(message.raw) > LARGEST_MESSAGE:
            return
        made = _calls_made(message)
        needed = {part.call for part in message.parts if part.call}.difference(made)
        known = _KnownMessage(message, _known_calls(made, calls), _known_calls(needed, calls))
        self.messages.put(message.raw, known, len(message.raw) + _OBJECTS_OF_MESSAGE)


@dataclass(frozen=True, slots=True)
class KnownFront:
    """The leading messages of a body that an earlier body had at the same bytes, and the fields
    before them."""

    messages: tuple[Message, ...]
    calls: Calls
    """The calls that these messages make."""
    fields: dict[str, Field]
    """The fields before the messages."""
    key: Span
    """The name of the messages' own field."""
    start: int
    """Start of the array of messages."""

    @property
    def end(self) -> int:
        """End of the last message."""
        return _end(self.messages[-1])


class BodyCache:
    """Fronts of bodies, bounded by bytes, least recently used first out. Thread-safe."""

    def __init__(self) -> None:
        self.fronts: list[tuple[bytes, KnownFront]] = []
        """Bodies up to the end of their last message, the latest first."""
        self._lock = Lock()
        self._most = _MOST_BODY_BYTES
        CACHES.add(self)

    def respond(self, response: PressureResponse) -> None:
        with self._lock:
            self._most = part(_MOST_BODY_BYTES, response.share)
            kept = list(_within_bounds(self.fronts, self._most))
            left = (1 - response.evicted) * sum(len(body) for body, _ in kept)
            self.fronts = list(_within_bounds(kept, int(left)))

    def cache_size(self) -> CacheSize:
        with self._lock:
            held = [len(body) for body, _ in self.fronts]
            return CacheSize(
                "parsed bodies", len(held), sum(held), self._most, "bytes", shrinks=True
            )

    def find(self, body: bytes) -> KnownFront | None:
        """The longest known front of `body`; None if not even its first message is known."""
        if len(body) < _SMALLEST_BODY:
            return None
        with self._lock:
            known = list(self.fronts)
        best, most = None, 0
        for earlier, front in known:
            if not body.startswith(earlier[: front.start + 1]):
                continue
            if body.startswith(earlier):
                return front
            if (many := _count_within(front.messages, _common_bytes(body, earlier))) > most:
                best, most = front, many
        return _up_to(best, most) if best is not None else None

    def is_quick(self, body: bytes) -> bool:
        """True if nearly all of the body is known."""
        front = self.find(body)
        return front is not None and len(body) - front.end <= _QUICKLY_READ

    def keep(self, body: bytes, read: KnownFront, known: KnownFront | None) -> None:
        """Store a body for later ones that extend it, in place of the one it extends; `known` was
        found for it."""
        if not read.messages or not _SMALLEST_BODY <= len(body) <= _MOST_BODY_BYTES:
            return
        old, calls = (len(known.messages), len(known.calls)) if known is not None else (0, 0)
        if calls + sum(len(_calls_made(message)) for message in read.messages[old:]) != len(
            read.calls
        ):
            return  # with a duplicate call id, results of the earlier call would be misread
        with self._lock:
            kept = [(earlier, front) for earlier, front in self.fronts if not _extends(read, front)]
            self.fronts = list(_within_bounds([(body[: read.end], read), *kept], self._most))


def _extends(read: KnownFront, earlier: KnownFront) -> bool:
    """True if it is the same conversation, further on."""
    here = max(0, len(earlier.messages) - _MARKS_MOVED - 1)
    return len(read.messages) > here and read.messages[here] is earlier.messages[here]


def _within_bounds(
    read: list[tuple[bytes, KnownFront]], most: int
) -> Iterator[tuple[bytes, KnownFront]]:
    size = 0
    for earlier, front in read[:_MOST_BODIES]:
        size += len(earlier)
        if size > most:
            return
        yield earlier, front


def _common_bytes(one: bytes, other: bytes) -> int:
    """Length of the common prefix."""
    same, end = 0, min(len(one), len(other))
    if one[:end] == other[:end]:
        return end
    while end - same > 1:
        middle = (same + end) // 2
        same, end = (middle, end) if one[same:middle] == other[same:middle] else (same, middle)
    return same


def _count_within(messages: tuple[Message, ...], size: int) -> int:
    """How many of the messages end within `size` bytes."""
    many = len(messages)
    while many and _end(messages[many - 1]) > size:
        many -= 1
    return many


def _up_to(front: KnownFront, many: int) -> KnownFront:
    gone = {id for message in front.messages[many:] for id in _calls_made(message)}
    calls = {id: call for id, call in front.calls.items() if id not in gone}
    return KnownFront(front.messages[:many], calls, front.fields, front.key, front.start)


def _calls_made(message: Message) -> list[str]:
    """Ids of the calls in a message."""
    return [part.call for part in message.parts if part.call and part.kind.family is Kind.TOOL_CALL]


def _known_calls(ids: Iterable[str], calls: Calls) -> tuple[tuple[str, EarlierCall], ...]:
    return tuple((id, calls.get(id, UNKNOWN)) for id in ids)


def _end(message: Message) -> int:
    assert message.span is not None
    return message.span.end
