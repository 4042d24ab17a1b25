"""Which shelf a tool's name is on: names only, in memory, brought up to the files when one of them changed.

100,000 names take about 40 MB; the texts stay on disk. A look whether anything changed is one stat of the folder: every change of
ours renames a file into it.
"""

from __future__ import annotations

import difflib
import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from hotset.nouns.tool import Origin
from hotset.sources.tools.shelves import Label, Shelves, Stamp
from hotset.text.characters import skeleton

_SETTLED_NS = (
    50_000_000  # clocks of file systems tick every 10 ms at worst: a folder changed again within that may look unchanged
)
_MOST_COMPARED = 64  # names that are compared letter by letter, of those that share most pairs of letters
_ALIKE_ENOUGH = 0.6


@dataclass(frozen=True, slots=True)
class Row:
    """What is in memory of a shelf."""

    name: str
    origin: Origin
    head: str
    stamp: str
    listed_at: float
    away: bool
    names: tuple[tuple[str, str], ...]
    """Of its tools: as models call them, and as it does itself."""
    offered: int
    """Tools that are not gone."""
    pending: int
    """Of these, those for which a person's word is needed."""
    may_run: bool
    approved: str
    follow: bool


class _Glance(msgspec.Struct, frozen=True):
    own_name: str
    digest: str
    flags: msgspec.Raw = msgspec.Raw(b"")


class _Entry(msgspec.Struct, frozen=True):
    pin: _Glance
    waits: _Glance | None = None
    approved: str = ""
    gone: bool = False


class _Names(Label, frozen=True, omit_defaults=True):
    tools: dict[str, _Entry] = msgspec.field(default_factory=dict)


_DECODER = msgspec.json.Decoder(_Names)


class Names:
    """Not for two threads at once."""

    def __init__(self, shelves: Shelves, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._shelves = shelves
        self._clock_ns = clock_ns
        self._looked: tuple[int, bool] | None = None
        self._stamps: dict[str, Stamp] = {}
        self._rows: dict[str, Row] = {}
        self._full: dict[str, str] = {}
        self._own: dict[str, str | tuple[str, ...]] = {}
        self._alike: tuple[dict[str, str], dict[str, str]] | None = None

    def glance(self) -> None:
        """Follows what changed, at the price of one stat where nothing did."""
        changed = self._shelves.changed_ns()
        if self._looked != (changed, True):
            self.follow()

    def follow(self) -> dict[str, Stamp]:
        """Follows what changed, also in a file that somebody wrote in place. All files with their stamps."""
        changed = self._shelves.changed_ns()
        found = self._shelves.scan()
        for file in self._stamps.keys() - found.keys():
            self._forget(file)
        for file, stamp in found.items():
            if self._stamps.get(file) != stamp:
                self._forget(file)
                self._learn(file, stamp)
        self._looked = changed, self._clock_ns() - changed > _SETTLED_NS
        return found

    def rows(self) -> Iterator[tuple[str, Row]]:
        """All shelves in the order of their files, with the file of each."""
        yield from ((file, self._rows[file]) for file in sorted(self._rows))

    def row(self, file: str) -> Row | None:
        return self._rows.get(file)

    def file_of(self, name: str) -> str | None:
        """The shelf that has a tool of this name."""
        return self._full.get(name)

    def files_of_own(self, own_name: str) -> tuple[str, ...]:
        """The shelves whose sources call a tool so."""
        found = self._own.get(own_name, ())
        return (found,) if isinstance(found, str) else found

    def names_of_own(self, own_name: str) -> tuple[str, ...]:
        files = self.files_of_own(own_name)
        return tuple(name for file in files for name, own in self._rows[file].names if own == own_name)

    def alike(self, name: str) -> str:
        """The full name, of those that are known, which nobody could tell from this one; empty where there is none."""
        found = self._skeletons()[0].get(skeleton(name), "")
        return found if found != name else ""

    def alike_own(self, own_name: str) -> str:
        """The same of names as sources say them. Case alone disguises nothing: `Search` and `search` are both honest."""
        found = self._skeletons()[1].get(skeleton(own_name), "")
        return found if found.casefold() != own_name.casefold() else ""

    def spelt_otherwise(self, name: str) -> tuple[str, ...]:
        """Full and own names that differ from it in case and separators only."""
        plain = _plain(name)
        ends = (plain[-1:], plain[-1:].upper(), "_", "-")
        maybe = (full for full in self._full if len(full) >= len(plain) and full.endswith(ends))
        return tuple(full for full in maybe if plain in (_plain(full), _plain(full.partition("__")[2]))) if plain else ()

    def near(self, name: str, most: int = 3) -> tuple[str, ...]:
        """The names that are most like it, best first."""
        wanted = name.lower()[:80]
        pairs = {wanted[at : at + 2] for at in range(0, len(wanted) - 1, 2)}
        counted = ((sum(pair in low for pair in pairs), full) for full in self._full for low in (full.lower(),))
        nearest = heapq.nlargest(_MOST_COMPARED, counted)
        rated = (
            (max(_ratio(wanted, full.lower()), _ratio(wanted, full.lower().partition("__")[2])), full) for _, full in nearest
        )
        return tuple(full for ratio, full in sorted(rated, key=lambda each: (-each[0], each[1])) if ratio >= _ALIKE_ENOUGH)[:most]

    def _learn(self, file: str, stamp: Stamp) -> None:
        self._stamps[file] = stamp
        shelf = self._shelves.read(file, _DECODER)
        if shelf is None:
            return
        names = tuple((name, entry.pin.own_name) for name, entry in shelf.tools.items())
        entries = [entry for entry in shelf.tools.values() if not entry.gone]
        pending = sum(map(_is_pending, entries)) if shelf.may_run else len(entries)
        label = shelf.name, shelf.origin, shelf.head, shelf.stamp, shelf.listed_at, shelf.away
        self._rows[file] = Row(*label, names, len(entries), pending, shelf.may_run, shelf.approved, shelf.follow)
        for name, own in names:
            self._full[name] = file
            before = self._own.get(own)
            self._own[own] = file if before is None else (*self.files_of_own(own), file)
            if self._alike is not None:
                self._alike[0].setdefault(skeleton(name), name)
                self._alike[1].setdefault(skeleton(own), own)

    def _forget(self, file: str) -> None:
        self._stamps.pop(file, None)
        row = self._rows.pop(file, None)
        for name, own in row.names if row else ():
            if self._full.get(name) == file:
                del self._full[name]
                if self._alike is not None and self._alike[0].get(mark := skeleton(name)) == name:
                    del self._alike[0][mark]
            left = tuple(each for each in self.files_of_own(own) if each != file)
            if left:
                self._own[own] = left[0] if len(left) == 1 else left
            else:
                self._own.pop(own, None)
                if self._alike is not None and self._alike[1].get(mark := skeleton(own)) == own:
                    del self._alike[1][mark]

    def _skeletons(self) -> tuple[dict[str, str], dict[str, str]]:
        """Of full and of own names; made when a list first brings something new."""
        if self._alike is None:
            self._alike = {skeleton(each): each for each in self._full}, {skeleton(each): each for each in self._own}
        return self._alike


@dataclass(frozen=True, slots=True)
class Others:
    """The names of all shelves but one."""

    names: Names
    file: str
    """Of the one."""

    def have(self, name: str) -> bool:
        return self.names.file_of(name) not in (None, self.file)

    def have_head(self, head: str) -> bool:
        return any(row.head == head for file, row in self.names.rows() if file != self.file)

    def have_own(self, own_name: str) -> bool:
        """And the one has not."""
        files = self.names.files_of_own(own_name)
        return bool(files) and self.file not in files

    def alike(self, name: str) -> str:
        found = self.names.alike(name)
        return found if found and self.have(found) else ""

    def alike_own(self, own_name: str) -> str:
        found = self.names.alike_own(own_name)
        return found if found and self.have_own(found) else ""


def _is_pending(entry: _Entry) -> bool:
    seen = entry.waits or entry.pin
    return entry.waits is not None or (bool(bytes(seen.flags)) and entry.approved != seen.digest)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").replace(".", "").replace("/", "").lower()


def _ratio(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio() if other else 0.0
