"""A stored value to which many small items are added, written seldom."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from hotset.errors import HotsetError
from hotset.files.threads import Debouncer
from hotset.store.values import StoredValue

_GATHER = 1.0  # seconds, in the background
_MOST_WAITING = 1000  # items that are remembered while they cannot be written

_Value = TypeVar("_Value", bound=msgspec.Struct)
_Item = TypeVar("_Item")


class GatheredValue(Generic[_Value, _Item]):
    """A stored value to which items are added about once a second, off the caller's path. Any
    thread may use it."""

    def __init__(
        self,
        value: StoredValue[_Value],
        add: Callable[[_Value, Sequence[_Item]], _Value],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.trouble = ""
        """Why the items that wait could not be written."""
        self._value = value
        self._add = add
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: list[_Item] = []
        self._debouncer = Debouncer(self._try_to_write, _GATHER)

    def put(self, item: _Item) -> None:
        with self._lock:
            self._waiting.append(item)
            del self._waiting[:-_MOST_WAITING]
        self._debouncer.ask()

    def read(self) -> tuple[_Value, tuple[_Item, ...]]:
        """What is written, the same object while it is unchanged, and the items that wait. Raises a
        `HotsetError`."""
        with self._lock:
            waiting = tuple(self._waiting)
        return self._value.read(), waiting

    def change(self, change: Callable[[_Value], _Value] = lambda value: value) -> None:
        """Adds the items that wait, then applies `change`. Durable when it returns; raises a
        `HotsetError`."""
        with self._lock:
            taken, self._waiting = self._waiting, []
        try:
            self._value.change(lambda value: change(self._add(value, taken)), self._clock())
        except BaseException:
            with self._lock:
                self._waiting = taken + self._waiting
            raise
        self.trouble = ""

    def flush(self) -> None:
        """Writes the items that wait. Raises a `HotsetError`."""
        if self._waiting:
            self.change()

    def close(self) -> None:
        self._debouncer.close()

    def _try_to_write(self) -> None:
        try:
            self.flush()
        except HotsetError as error:  # the items wait for the next attempt
            self.trouble = str(error)
