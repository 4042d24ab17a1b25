"""Caches: a bounded map that drops the least recently used entries, a remembered function, and the
list of all caches of the process, which memory pressure makes smaller."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import _lru_cache_wrapper, lru_cache
from itertools import islice
from threading import Lock
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast
from weakref import WeakSet

from msgspec import Raw

from hotset.nouns.pressure import RESPONSES, PressureLevel, PressureResponse

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")
_P = ParamSpec("_P")

_SAMPLED = 8  # entries by which the size of a cache without weights is estimated
_MEMO_BYTES = 300  # of a remembered call: a short text, its result, and what the map takes for both
_MOST_OBJECTS = 500  # of an entry: beyond, an estimate is only a lower bound


@dataclass(frozen=True, slots=True)
class CacheSize:
    """How much a cache holds, and how much it may hold now."""

    name: str
    entries: int
    bytes: int
    """By its weights; otherwise estimated by a few of its entries. What two caches share counts in
    both."""
    limit: int
    """Of bytes if `unit` says so, otherwise of entries."""
    unit: str
    shrinks: bool
    """False for what could not be made again: it is bounded, and pressure leaves it alone."""


class Cache(Protocol):
    """What pressure makes smaller. Thread-safe."""

    def respond(self, response: PressureResponse) -> None:
        """Drop what it says, the least recently used first, and hold no more than its share from
        now on."""
        ...

    def cache_size(self) -> CacheSize: ...


class CacheList:
    """The caches of this process, by weak references: each leaves with its owner. Thread-safe."""

    def __init__(self) -> None:
        self.response = RESPONSES[PressureLevel.NORMAL]
        """What memory pressure asks of each of them now."""
        self.room: int | None = None
        """Bytes up to the limit, at the latest look; None without one. Who needs much at once takes
        a part of it."""
        self.latest = 0.0
        """When a call began or ended last, by the monotonic clock: they rest since then."""
        self._caches: WeakSet[Cache] = WeakSet()
        self._lock = Lock()

    def add(self, cache: Cache) -> None:
        with self._lock:
            self._caches.add(cache)
            response = self.response
        if response.share < 1:
            cache.respond(response)

    def respond(self, response: PressureResponse) -> None:
        with self._lock:
            self.response = response
        for each in self._every():
            each.respond(response)

    def sizes(self) -> list[CacheSize]:
        """One row for each name: several caches of one name count together."""
        found: dict[str, CacheSize] = {}
        for each in (cache.cache_size() for cache in self._every()):
            known = found.get(each.name)
            found[each.name] = each if known is None else _sum(known, each)
        return sorted(found.values(), key=lambda each: (-each.bytes, each.name))

    def _every(self) -> list[Cache]:
        with self._lock:
            return list(self._caches)


CACHES = CacheList()
"""Memory belongs to a process, and so does this list."""


class Lru(Generic[_K, _V]):
    """A map bounded by the number of its entries, by their weight, or by both.

    Safe to use from several threads. `in`, `len` and `items` do not count as a use of an entry.
    """

    def __init__(
        self,
        name: str,
        *,
        count: int = sys.maxsize,
        weight: int = sys.maxsize,
        shrinks: bool = True,
    ) -> None:
        """`shrinks` is False for what cannot be made again: pressure leaves it alone."""
        self.name = name
        self._usual = (count, weight)
        self._most = count
        self._heaviest = weight
        self._shrinks = shrinks
        self._entries: OrderedDict[_K, tuple[_V, int]] = OrderedDict()
        self._lock = Lock()
        self.weight = 0
        """The weight of all entries."""
        CACHES.add(self)

    @property
    def most(self) -> int:
        """How many entries it may hold now."""
        return self._most

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
            if len(self._entries) > self._most or self.weight > self._heaviest:
                dropped = self._make_room()
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

    def values(self) -> list[_V]:
        """All values, the least recently used first."""
        return [value for _, value in self.items()]

    def respond(self, response: PressureResponse) -> None:
        if not self._shrinks:
            return
        with self._lock:
            self._most, self._heaviest = (part(each, response.share) for each in self._usual)
            gone = self._make_room()
            left = len(self._entries) - int(response.evicted * len(self._entries))
            weight = self.weight - int(response.evicted * self.weight)
            by_weight = self._usual[1] != sys.maxsize
            while self.weight > weight if by_weight else len(self._entries) > left:
                gone.append(self._pop_oldest())
        del gone  # outside of the lock

    def cache_size(self) -> CacheSize:
        with self._lock:
            some = list(islice(reversed(self._entries.items()), _SAMPLED))
            entries, weighed, most, heaviest = (
                len(self._entries),
                self.weight,
                self._most,
                self._heaviest,
            )
        if self._usual[1] != sys.maxsize:
            return CacheSize(self.name, entries, weighed, heaviest, "bytes", self._shrinks)
        each = sum(estimate_bytes(key) + estimate_bytes(value) for key, (value, _) in some)
        size = each * entries // max(1, len(some))
        return CacheSize(self.name, entries, size, most, "entries", self._shrinks)

    def _make_room(self) -> list[tuple[_K, _V]]:
        gone = []
        while self._entries and (len(self._entries) > self._most or self.weight > self._heaviest):
            gone.append(self._pop_oldest())
        return gone

    def _pop_oldest(self) -> tuple[_K, _V]:
        key, (value, freed) = self._entries.popitem(last=False)
        self.weight -= freed
        return key, value

    def _use(self, key: _K) -> tuple[_V, int] | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry


def memo(
    name: str, count: int, each: int = _MEMO_BYTES
) -> Callable[[Callable[_P, _V]], Callable[_P, _V]]:
    """`functools.lru_cache` of so many entries, as one of the caches of this process.

    An entry takes about `each` bytes. Single entries cannot be dropped: pressure empties it once it
    holds more than its share.
    """

    def decorate(function: Callable[_P, _V]) -> Callable[_P, _V]:
        remembered = lru_cache(count)(function)
        add_memo(name, remembered, each)
        return cast("Callable[_P, _V]", remembered)

    return decorate


def add_memo(name: str, function: Callable[..., object], each: int = _MEMO_BYTES) -> None:
    """Count the results that a function remembers by `functools.lru_cache` among the caches."""
    assert isinstance(function, _lru_cache_wrapper)
    memo = _Memo(name, function, each)
    function.__dict__["memo"] = memo  # it leaves with its function
    CACHES.add(memo)


class _Memo:
    """The results of a function that `functools.lru_cache` remembers."""

    def __init__(self, name: str, function: _lru_cache_wrapper[Any], each: int) -> None:
        self._name = name
        self._each = each
        self._function = function
        self._most = function.cache_parameters()["maxsize"] or sys.maxsize

    def respond(self, response: PressureResponse) -> None:
        held = self._function.cache_info().currsize
        if response.evicted or held > part(self._most, response.share):
            self._function.cache_clear()

    def cache_size(self) -> CacheSize:
        entries, limit = (
            self._function.cache_info().currsize,
            part(self._most, CACHES.response.share),
        )
        return CacheSize(self._name, entries, entries * self._each, limit, "entries", True)


def estimate_bytes(value: object) -> int:
    """The size of a value with what it holds, as far as a few hundred objects tell."""
    waiting, seen, total = [value], {id(value)}, 0
    while waiting:
        each = waiting.pop()
        total += _own_size(each)
        for inner in _held(each):
            if id(inner) not in seen and len(seen) < _MOST_OBJECTS:
                seen.add(id(inner))
                waiting.append(inner)
    return total


def _own_size(value: object) -> int:
    # CPython has no size for msgspec.Raw: what it says is an address
    return len(memoryview(value)) if isinstance(value, Raw) else sys.getsizeof(value)


def _held(value: object) -> Iterator[object]:
    if isinstance(value, str | bytes | int | float | type | None):
        return
    if isinstance(value, Mapping):
        yield from value.keys()
        yield from value.values()
    elif isinstance(value, tuple | list | set | frozenset):
        yield from value
    else:
        names = (name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()))
        yield from (getattr(value, name, None) for name in names)
        yield from getattr(value, "__dict__", {}).values()


def _sum(one: CacheSize, other: CacheSize) -> CacheSize:
    return CacheSize(
        one.name,
        one.entries + other.entries,
        one.bytes + other.bytes,
        one.limit + other.limit,
        one.unit,
        one.shrinks,
    )


def part(limit: int, share: float) -> int:
    """That share of a limit; at least one: a cache of nothing would be no cache."""
    return limit if limit == sys.maxsize or share >= 1 else max(1, int(limit * share))
