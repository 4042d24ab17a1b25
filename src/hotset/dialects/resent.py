"""Bodies that were read before: a client resends its history, and what stands at the same bytes need not be read again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock

from hotset.dialects.parts import Calls
from hotset.dialects.splice import Field
from hotset.nouns.message import Message, Span
from hotset.nouns.page import Kind

_MOST_BYTES = 4 << 20  # a dozen sessions of 300 KB; their messages are the very objects that `Memo` holds
_MOST = 8  # each may have to be compared with a body that comes: some 20 µs
_WORTH = 8 << 10  # bytes of a body below which it is read anew as fast
_LITTLE = 16 << 10  # bytes that are read in 0.2 ms
_MARKS_MOVED = 4
"""Messages at its end that a client may send otherwise, as those do that move a cache mark along: still the same session."""


@dataclass(frozen=True, slots=True)
class Again:
    """The messages at the front of a body that an earlier one had at the same bytes, and what stood before them."""

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


class Resent:
    """Bounded by bytes, the longest unused leaves first. Safe from any thread."""

    def __init__(self) -> None:
        self._read: list[tuple[bytes, Again]] = []
        """Bodies up to the end of their last message, the latest first."""
        self._lock = Lock()

    def find(self, body: bytes) -> Again | None:
        """The longest of what is known of it; None where not even its first message is."""
        if len(body) < _WORTH:
            return None
        with self._lock:
            known = list(self._read)
        best, most = None, 0
        for earlier, again in known:
            if not body.startswith(earlier[: again.start + 1]):
                continue
            if body.startswith(earlier):
                return again
            if (many := _whole(again.messages, _common(body, earlier))) > most:
                best, most = again, many
        return _up_to(best, most) if best is not None else None

    def is_quick(self, body: bytes) -> bool:
        """Nearly all of it is known."""
        again = self.find(body)
        return again is not None and len(body) - again.end <= _LITTLE

    def keep(self, body: bytes, read: Again, known: Again | None) -> None:
        """Remembers a body for those that go on from it. It takes the place of the one that it went on from.

        `known` is what was found for it.
        """
        if not read.messages or not _WORTH <= len(body) <= _MOST_BYTES:
            return
        old, calls = (len(known.messages), len(known.calls)) if known is not None else (0, 0)
        if calls + sum(len(_made(message)) for message in read.messages[old:]) != len(read.calls):
            return  # of two calls with one id, the later would tell the results of the earlier
        with self._lock:
            kept = [(earlier, again) for earlier, again in self._read if not _goes_on(read, again)]
            self._read = list(_within([(body[: read.end], read), *kept]))


def _goes_on(read: Again, earlier: Again) -> bool:
    """Is it the same conversation, further on?"""
    shared = len(earlier.messages) - _MARKS_MOVED
    here = max(0, shared - 1)
    return len(read.messages) > here and read.messages[here] is earlier.messages[here]


def _within(read: list[tuple[bytes, Again]]) -> Iterator[tuple[bytes, Again]]:
    size = 0
    for earlier, again in read[:_MOST]:
        size += len(earlier)
        if size > _MOST_BYTES:
            return
        yield earlier, again


def _common(one: bytes, other: bytes) -> int:
    """How many bytes at the front are the same."""
    same, end = 0, min(len(one), len(other))
    if one[:end] == other[:end]:
        return end
    while end - same > 1:
        middle = (same + end) // 2
        if one[same:middle] == other[same:middle]:
            same = middle
        else:
            end = middle
    return same


def _whole(messages: tuple[Message, ...], size: int) -> int:
    """How many of the messages stand in so many bytes."""
    many = len(messages)
    while many and _end(messages[many - 1]) > size:
        many -= 1
    return many


def _up_to(again: Again, many: int) -> Again:
    calls = dict(again.calls)
    for message in again.messages[many:]:
        for id in _made(message):
            del calls[id]
    return Again(again.messages[:many], calls, again.fields, again.key, again.start)


def _made(message: Message) -> list[str]:
    """The ids of the calls that it makes."""
    return [part.call for part in message.parts if part.call and part.kind.family is Kind.TOOL_CALL]


def _end(message: Message) -> int:
    assert message.span is not None
    return message.span.end
