"""What a provider's rules ask of a message, worked out once: a client resends its history, and only the tail of it is new."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from hotset.files.lru import Lru
from hotset.nouns.message import Message

_MOST_BYTES = 8 << 20
"""Of the messages' bytes. They are the very objects that the parser's memory holds, so they hardly take room a second time."""

_LARGEST = 1 << 20

_T = TypeVar("_T")


class Recall(Generic[_T]):
    """Bounded by bytes, the longest unused leaves first. Safe from any thread.

    What is remembered depends on a message's bytes and on nothing else: rules that look at several messages are applied anew to
    what is remembered of each.
    """

    def __init__(self, work_out: Callable[[bytes], _T]) -> None:
        self._work_out = work_out
        self._known: Lru[bytes, _T] = Lru(weight=_MOST_BYTES)

    def of(self, messages: Sequence[Message]) -> list[_T]:
        """For each message, in order, what the rules ask of it."""
        known = self._known.get_many(each.raw for each in messages)
        return [known[each.raw] if each.raw in known else self._new(each.raw) for each in messages]

    def _new(self, raw: bytes) -> _T:
        made = self._work_out(raw)
        if len(raw) <= _LARGEST:
            self._known.put(raw, made, len(raw))
        return made
