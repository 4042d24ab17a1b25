"""Which tools belong together: used one after the other, alike, or one needing the other. In `graph.json`.

All of it but the declared needs is learned, and can be thrown away.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import msgspec

from hotset.errors import StoreFailed
from hotset.sources.tools.documents import Checked, Document
from hotset.sources.tools.net import Edge, Neighbour, Net, Why, combined, net_from
from hotset.sources.tools.soon import Soon

FILE = "graph.json"
MOST_ALIKE = 8
"""Tools that one is said to resemble."""

_FORMAT = 1
_GATHER = 1.0  # seconds; nobody waits for it
_MOST_WAITING = 1000  # uses that are remembered while they cannot be written
_ALIKE_FROM = 0.3  # below that, two texts share little more than the words of their trade
_WORD = re.compile(r"[a-z0-9]+|[A-Z][a-z0-9]*")

Nearest = Callable[[str], Iterable[tuple[str, float]]]
"""The tools that resemble one, each with a likeness from 0 to 1."""


class Graph:
    """One project's. Any thread may use it, and several processes may have one each."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._document = Document(folder / FILE, _check)
        self._clock = clock
        self._lock = threading.Lock()
        self._uses: list[tuple[str, ...]] = []
        self._soon = Soon(self._try_to_write, _GATHER)
        self._read: tuple[dict[str, Any], Net] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._soon.close()

    def used_together(self, names: Sequence[str]) -> None:
        """The last of these was used just now, in a session that had used the others before it, the latest next to it.

        Also for one alone: how often a tool is used without another tells how much they belong together. Written soon."""
        if names:
            with self._lock:
                self._uses.append(tuple(dict.fromkeys(reversed(names)))[::-1])
                del self._uses[:-_MOST_WAITING]
            self._soon.ask()

    def alike(self, names: Iterable[str], nearest: Nearest) -> None:
        """Looks up, for each of these, what resembles it now. Raises `StoreFailed`."""
        found = {name: dict(_best_alike(name, nearest)) for name in names}
        with self._changing() as net:
            for name, others in found.items():
                net.say_alike(name, others)

    def depends(self, name: str, on: Iterable[str]) -> None:
        """What a tool says it needs, in place of what it said before. Raises `StoreFailed`."""
        with self._changing() as net:
            net.say_needs(name, on)

    def without(self, *names: str) -> None:
        """These tools leave, with all their edges. Raises `StoreFailed`."""
        with self._changing() as net:
            for name in names:
                net.drop(name)

    def neighbours(self, name: str, most: int = 5) -> tuple[Neighbour, ...]:
        """The closest first."""
        return self._net().neighbours(name)[:most]

    def boost(self, used: Iterable[str]) -> Mapping[str, float]:
        """Tools that go with those that a session used, from 0 to 1. What resembles one of them is its like, not its mate."""
        net, here = self._net(), set(used)
        missing: dict[str, float] = defaultdict(lambda: 1.0)
        for name in sorted(here):
            for neighbour in net.neighbours(name):
                weight = combined(value for why, value in neighbour.why.items() if why is not Why.ALIKE)
                if weight and neighbour.name not in here:
                    missing[neighbour.name] *= 1 - weight
        return {name: 1 - left for name, left in missing.items()}

    def edges(self) -> tuple[Edge, ...]:
        """All of them, the strongest first."""
        return self._net().edges()

    def tools(self) -> Mapping[str, float]:
        """How often each was used lately."""
        net = self._net()
        return {name: net.uses.get(name, 0.0) for name in sorted(net.names())}

    def flush(self) -> None:
        """Writes the uses that wait. Raises `StoreFailed`."""
        with self._lock:
            waiting = bool(self._uses)
        if waiting:
            with self._changing():
                pass

    def troubles(self) -> Sequence[str]:
        return self._document.troubles()

    @contextmanager
    def _changing(self) -> Iterator[Net]:
        taken: list[tuple[str, ...]] = []
        try:
            with self._document.changing() as document:
                with self._lock:
                    taken, self._uses = self._uses, []
                net = net_from(document)
                net.age(self._clock())
                for names in taken:
                    net.add(names)
                yield net
                net.prune()
                document.clear()
                document.update({"format": _FORMAT, **net.as_json()})
        except BaseException:
            with self._lock:
                self._uses = taken + self._uses
            raise

    def _try_to_write(self) -> None:
        try:
            self.flush()
        except StoreFailed as error:  # the uses wait for the next attempt
            self._document.trouble(str(error))

    def _net(self) -> Net:
        """What is written, with the uses that wait; nothing that is given out may be changed."""
        try:
            document = self._document.read()
        except StoreFailed as error:
            self._document.trouble(str(error))
            return Net() if self._read is None else self._read[1]
        with self._lock:
            if self._read is None or self._read[0] is not document:
                self._read = document, net_from(document)
            if not self._uses:
                return self._read[1]
            net = net_from(document)
            for names in self._uses:
                net.add(names)
            return net


def word_overlap(texts: Mapping[str, str]) -> Nearest:
    """Likeness by the words that two texts share, of all words in either; a word that half of the texts have says nothing."""
    words = {name: frozenset(word.lower() for word in _WORD.findall(text)) for name, text in texts.items()}
    having = Counter(word for said in words.values() for word in said)
    telling = {name: frozenset(word for word in said if having[word] * 2 <= max(len(words), 4)) for name, said in words.items()}
    where: dict[str, list[str]] = defaultdict(list)
    for name, said in telling.items():
        for word in said:
            where[word].append(name)

    def nearest(name: str) -> Iterator[tuple[str, float]]:
        said = telling.get(name, frozenset())
        shared = Counter(other for word in said for other in where[word] if other != name)
        for other, number in shared.items():
            yield other, number / (len(said) + len(telling[other]) - number)

    return nearest


def _check(found: dict[str, Any] | None, copy: dict[str, Any] | None) -> Checked:
    if found is None:
        return Checked({"format": _FORMAT, "tools": {}}) if copy is None else _check(copy, None)
    try:
        net_from(found)
    except msgspec.ValidationError as error:
        return replace(_check(None, copy), wrong=(str(error),))
    return Checked(found)


def _best_alike(name: str, nearest: Nearest) -> Iterator[tuple[str, float]]:
    found = ((min(likeness, 1.0), other) for other, likeness in nearest(name) if other != name and likeness >= _ALIKE_FROM)
    for likeness, other in sorted(found, key=lambda each: (-each[0], each[1]))[:MOST_ALIKE]:
        yield other, likeness
