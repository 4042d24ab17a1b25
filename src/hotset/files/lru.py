"""A bounded map that drops the least recently used entries."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from threading import Lock
from typing import Generic, TypeVar

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class Lru(Generic[_K, _V]):
    """A map bounded by the number of its entries, by their weight, or by both.

    Safe to use from several threads. `in`, `len` and `items` do not count as a use of an entry.
    """

    def __init__(self, *, count: int = sys.maxsize, weight: int = sys.maxsize) -> None:
        self._most = count
        self._heaviest = weight
        self._entries: OrderedDict[_K, tuple[_V, int]] = OrderedDict()
        self._lock = Lock()
        self.weight = 0
        """The weight of all entries."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def get(self, key: _K) -> _V | None:
        with self._lock:
            entry = self._use(key)
        return entry[0] if entry is not None else None

    def get_many(self, keys: Iterable[_K]) -> dict[_K, _V]:
        """The entries of those keys that are there."""
        entries = self._entries
        with self._lock:
            found = {key: entry[0] for key in keys if (entry := entries.get(key)) is not None}
            for key in found:
                entries.move_to_end(key)
        return found

    def get_each(self, keys: Iterable[_K]) -> list[_V | None]:
        """The value of each key, in order; None where there is none."""
        find, move = self._entries.get, self._entries.move_to_end
        found: list[_V | None] = []
        with self._lock:
            for key in keys:
                if (entry := find(key)) is None:
                    found.append(None)
                else:
                    move(key)
                    found.append(entry[0])
        return found

    def get_or_make(self, key: _K, make: Callable[[], _V]) -> _V:
        """The value of a key, made where it is missing.

        Two threads may make it at once. Nothing is kept where `make` raises.
        """
        with self._lock:
            entry = self._use(key)
        if entry is not None:
            return entry[0]
        value = make()
        self.put(key, value)
        return value

    def put(self, key: _K, value: _V, weight: int = 1) -> list[tuple[_K, _V]]:
        """Keep a value and return the entries that were dropped to make room for it.

        A value heavier than the whole map is not kept.
        """
        dropped: list[tuple[_K, _V]] = []
        with self._lock:
            before = self._entries.pop(key, None)
            self.weight -= before[1] if before is not None else 0
            if weight > self._heaviest:
                return dropped
            self._entries[key] = value, weight
            self.weight += weight
            while len(self._entries) > self._most or self.weight > self._heaviest:
                old, (gone, freed) = self._entries.popitem(last=False)
                self.weight -= freed
                dropped.append((old, gone))
        return dropped

    def pop(self, key: _K) -> _V | None:
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is None:
                return None
            self.weight -= entry[1]
            return entry[0]

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self.weight = 0

    def items(self) -> list[tuple[_K, _V]]:
        """All entries, the least recently used first."""
        with self._lock:
            return [(key, value) for key, (value, _) in self._entries.items()]

    def _use(self, key: _K) -> tuple[_V, int] | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry
