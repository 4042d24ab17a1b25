"""What was worked out before, by bytes: a client resends its history with every call, and only the
tail of it is new."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from hotset.dialects.parts import UNKNOWN, Calls, EarlierCall
from hotset.dialects.wire import Field
from hotset.files.lru import Lru
from hotset.nouns.message import Message, Span
from hotset.nouns.page import Kind

MOST_BYTES = (
    8 << 20
)  # about twenty-five sessions of 300 KB; what is understood of them takes as much again
LARGEST = 1 << 20
_AROUND = 1500  # bytes that the objects of a message take, however short it is

# bytes: a dozen sessions of 300 KB; their messages are the very objects that `MessageCache` holds
_MOST_OF_BODIES = 4 << 20
_MOST_BODIES = 8  # each may have to be compared with a body that comes: some 20 µs
_WORTH = 8 << 10  # bytes of a body below which it is read anew as fast
_LITTLE = 16 << 10  # bytes that are read in 0.2 ms
_MARKS_MOVED = 4
"""Messages at its end that a client may send otherwise, as those do that move a cache mark along:
still the same session."""

_T = TypeVar("_T")


class FactCache(Generic[_T]):
    """What a provider's rules ask of a message. It depends on the message's bytes and on nothing
    else: rules that look at several messages are applied anew to the facts of each."""

    def __init__(self, work_out: Callable[[bytes], _T]) -> None:
        self._work_out = work_out
        self._facts: Lru[bytes, _T] = Lru(weight=MOST_BYTES)

    def of(self, messages: Sequence[Message]) -> list[_T]:
        """For each message, in order, what the rules ask of it."""
        known = self._facts.get_many(each.raw for each in messages)
        return [known[each.raw] if each.raw in known else self._new(each.raw) for each in messages]

    def _new(self, raw: bytes) -> _T:
        made = self._work_out(raw)
        if len(raw) <= LARGEST:
            self._facts.put(raw, made, len(raw))
        return made


@dataclass(frozen=True, slots=True)
class _Understood:
    message: Message
    makes: tuple[tuple[str, EarlierCall], ...]
    """The calls that it makes."""
    needs: tuple[tuple[str, EarlierCall], ...]
    """The earlier calls by which its results were told; with other ones it would be read
    differently."""


class MessageCache:
    """Messages and bodies that were parsed before. Safe from any thread."""

    def __init__(self) -> None:
        self.messages: Lru[bytes, _Understood] = Lru(weight=MOST_BYTES)
        self.bodies = BodyCache()

    def recall(self, raw: bytes, span: Span, calls: Calls) -> Message | None:
        """The message in these bytes, if it was understood before after the same calls; `calls`
        then has its own as well."""
        known = self.messages.get(raw)
        if known is None or any(calls.get(id, UNKNOWN) != call for id, call in known.needs):
            return None
        calls.update(known.makes)
        message = known.message
        return Message(message.role, raw, message.parts, message.essence, message.aside, span)

    def keep(self, message: Message, calls: Calls) -> None:
        if len(message.raw) > LARGEST:
            return
        made = _made(message)
        needed = {part.call for part in message.parts if part.call}.difference(made)
        known = _Understood(message, _with(made, calls), _with(needed, calls))
        self.messages.put(message.raw, known, len(message.raw) + _AROUND)


@dataclass(frozen=True, slots=True)
class KnownFront:
    """The messages at the front of a body that an earlier one had at the same bytes, and what stood
    before them."""

    messages: tuple[Message, ...]
    calls: Calls
    """Those that they make."""
    fields: dict[str, Field]
    """The fields before the messages."""
    key: Span
    """The name of the messages' own field."""
    start: int
    """Where the array of the messages begins."""

    @property
    def end(self) -> int:
        """Where the last of the messages ends."""
        return _end(self.messages[-1])


class BodyCache:
    """Fronts of bodies. Bounded by bytes, the longest unused leaves first; safe from any thread."""

    def __init__(self) -> None:
        self.fronts: list[tuple[bytes, KnownFront]] = []
        """Bodies up to the end of their last message, the latest first."""
        self._lock = Lock()

    def find(self, body: bytes) -> KnownFront | None:
        """The longest front that is known of it; None where not even its first message is."""
        if len(body) < _WORTH:
            return None
        with self._lock:
            known = list(self.fronts)
        best, most = None, 0
        for earlier, front in known:
            if not body.startswith(earlier[: front.start + 1]):
                continue
            if body.startswith(earlier):
                return front
            if (many := _whole(front.messages, _common(body, earlier))) > most:
                best, most = front, many
        return _up_to(best, most) if best is not None else None

    def is_quick(self, body: bytes) -> bool:
        """Nearly all of it is known."""
        front = self.find(body)
        return front is not None and len(body) - front.end <= _LITTLE

    def keep(self, body: bytes, read: KnownFront, known: KnownFront | None) -> None:
        """Remembers a body for those that go on from it, in place of the one that it went on from;
        `known` was found for it."""
        if not read.messages or not _WORTH <= len(body) <= _MOST_OF_BODIES:
            return
        old, calls = (len(known.messages), len(known.calls)) if known is not None else (0, 0)
        if calls + sum(len(_made(message)) for message in read.messages[old:]) != len(read.calls):
            return  # of two calls with one id, the later would tell the results of the earlier
        with self._lock:
            kept = [(earlier, front) for earlier, front in self.fronts if not _goes_on(read, front)]
            self.fronts = list(_within([(body[: read.end], read), *kept]))


def _goes_on(read: KnownFront, earlier: KnownFront) -> bool:
    """True where it is the same conversation, further on."""
    here = max(0, len(earlier.messages) - _MARKS_MOVED - 1)
    return len(read.messages) > here and read.messages[here] is earlier.messages[here]


def _within(read: list[tuple[bytes, KnownFront]]) -> Iterator[tuple[bytes, KnownFront]]:
    size = 0
    for earlier, front in read[:_MOST_BODIES]:
        size += len(earlier)
        if size > _MOST_OF_BODIES:
            return
        yield earlier, front


def _common(one: bytes, other: bytes) -> int:
    """How many bytes at the front are the same."""
    same, end = 0, min(len(one), len(other))
    if one[:end] == other[:end]:
        return end
    while end - same > 1:
        middle = (same + end) // 2
        same, end = (middle, end) if one[same:middle] == other[same:middle] else (same, middle)
    return same


def _whole(messages: tuple[Message, ...], size: int) -> int:
    """How many of the messages stand in so many bytes."""
    many = len(messages)
    while many and _end(messages[many - 1]) > size:
        many -= 1
    return many


def _up_to(front: KnownFront, many: int) -> KnownFront:
    gone = {id for message in front.messages[many:] for id in _made(message)}
    calls = {id: call for id, call in front.calls.items() if id not in gone}
    return KnownFront(front.messages[:many], calls, front.fields, front.key, front.start)


def _made(message: Message) -> list[str]:
    """The ids of the calls that it makes."""
    return [part.call for part in message.parts if part.call and part.kind.family is Kind.TOOL_CALL]


def _with(ids: Iterable[str], calls: Calls) -> tuple[tuple[str, EarlierCall], ...]:
    return tuple((id, calls.get(id, UNKNOWN)) for id in ids)


def _end(message: Message) -> int:
    assert message.span is not None
    return message.span.end
