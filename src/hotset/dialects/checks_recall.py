"""What a provider's rules ask of a message, worked out once: a client resends its history, and only the tail of it is new."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Generic, TypeVar

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
        self._known: OrderedDict[bytes, _T] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def of(self, messages: Sequence[Message]) -> list[_T]:
        """For each message, in order, what the rules ask of it."""
        known = self._known
        with self._lock:
            found = [known.get(each.raw) for each in messages]
            for each, had in zip(messages, found, strict=True):
                if had is not None:
                    known.move_to_end(each.raw)
        return [self._new(each.raw) if had is None else had for each, had in zip(messages, found, strict=True)]

    def _new(self, raw: bytes) -> _T:
        made = self._work_out(raw)
        if len(raw) <= _LARGEST:
            with self._lock:
                if raw not in self._known:
                    self._size += len(raw)
                self._known[raw] = made
                while self._size > _MOST_BYTES:
                    self._size -= len(self._known.popitem(last=False)[0])
        return made
