"""The catalogue's files, one for each source of tools, and which of them has a tool of a given
name.

They stay files: with a source of 1,000 tools (1.2 MB, mostly texts that the source can list again),
finding out after a turn whether anything changed takes 5 us with a file and 2 ms with a note, and
every call of a tool asks. A file is written whole or not at all, by one process at a time. Only
names are held in memory: 100,000 take about 40 MB. One stat of the folder shows whether anything
changed: every change of ours renames a file into it.
"""

from __future__ import annotations

import difflib
import heapq
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from hotset.errors import StoreTooNew
from hotset.files.lock import hold_to_change
from hotset.files.private_folder import private_folder
from hotset.files.root import Stat
from hotset.files.write import write_atomically
from hotset.nouns.tool import OriginKind
from hotset.sources.tools.approval import CatalogueEntry
from hotset.sources.tools.found.folders import lstat_of
from hotset.sources.tools.tool_names import short_hash, slug
from hotset.text.characters import skeleton
from hotset.typed import decode, json_decoder

FORMAT = 1
_LOCK = ".lock"
_ENDING = ".json"
_DAMAGED = ".damaged"

# clocks of file systems tick every 10 ms at worst: a folder changed again within that may look
# unchanged
_SETTLED_NS = 50_000_000
_MOST_COMPARED = (
    64  # names that are compared letter by letter, of those that share most pairs of letters
)
_ALIKE_ENOUGH = 0.6


class SourceLabel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A source without its tools."""

    name: str
    origin: OriginKind
    format: int = FORMAT
    head: str = ""
    """The prefix of its tools' names."""
    stamp: str = ""
    trusted: bool = True
    listed_at: float = 0.0
    away: bool = False
    """It is not configured any more. What was accepted of it is kept for the day it comes back."""
    approved: str = ""
    """For a source that lies in the project's folder: the stamp under which a person let it run."""
    follow: bool = False
    """It may run under other stamps too."""
    words: CatalogueEntry | None = None
    """Its instructions to models, kept like a tool's description."""

    @property
    def may_run(self) -> bool:
        """True if the source may run under the stamp that it was listed with."""
        return self.trusted or (
            bool(self.approved) and (self.follow or self.approved == self.stamp)
        )


class SourceFile(SourceLabel, frozen=True, omit_defaults=True):
    """A source with its tools, by the names that models call."""

    tools: dict[str, CatalogueEntry] = msgspec.field(default_factory=dict)


class UndecodedFile(SourceLabel, frozen=True, omit_defaults=True):
    """A source's file whose tools are not decoded yet."""

    tools: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict)


_Kind = TypeVar("_Kind", bound=SourceLabel)


class ToolFiles:
    """The folder with all of them. Reading needs no lock: a file is always whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = private_folder(folder)
        self._troubles: dict[str, str] = {}

    def file_of(self, source: str) -> str:
        return f"{slug(source)}-{short_hash(source, 8)}{_ENDING}"

    def scan(self) -> dict[str, Stat]:
        if not self.folder.is_dir():
            return {}
        with os.scandir(self.folder) as found:
            return {
                each.name: Stat.of(each.stat())
                for each in found
                if each.name.endswith(_ENDING) and each.is_file(follow_symlinks=False)
            }

    def stamp(self, file: str) -> Stat | None:
        return lstat_of(self.folder / file)

    def changed_ns(self) -> int:
        """When a name in the folder last changed; 0 where the folder is gone."""
        try:
            return self.folder.stat().st_mtime_ns
        except OSError:
            return 0

    def troubles(self) -> list[str]:
        """Files that could not be read, and what became of them, until they are removed."""
        aside = sorted(self.folder.glob(f"*{_ENDING}{_DAMAGED}"))
        damaged = [
            (
                f"{path} was damaged and set aside: what was accepted of its source is forgotten; "
                f"look at it, and remove it"
            )
            for path in aside
        ]
        return [*damaged, *self._troubles.values()]

    def read(self, file: str, kind: msgspec.json.Decoder[_Kind]) -> _Kind | None:
        """None where there is none, or none that can be read: such a file is set aside, and a
        trouble says so."""
        path = self.folder / file
        try:
            record = kind.decode(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            self._troubles[file] = f"{path} cannot be read: {error.strerror}"
            return None
        except (msgspec.MsgspecError, ValueError, RecursionError):
            self._set_aside(path)
            return None
        if record.format > FORMAT:
            self._troubles[file] = (
                f"{path} was written by a newer hotset; update this one, or remove the file"
            )
            return None
        self._troubles.pop(file, None)
        return record

    def write(self, file: str, record: SourceFile) -> None:
        """Write a source's file; only under `alone`."""
        _refuse_newer(self, file)
        write_atomically(self.folder / file, msgspec.json.encode(record))

    def alone(self) -> AbstractContextManager[None]:
        """The lock for changes: one thread of one process at a time."""
        return hold_to_change(self.folder, self.folder / _LOCK)

    def _set_aside(self, path: Path) -> None:
        try:
            path.replace(path.with_name(path.name + _DAMAGED))
            self._troubles.pop(path.name, None)
        except FileNotFoundError:  # another process was faster
            pass
        except OSError as error:
            self._troubles[path.name] = (
                f"{path} is damaged and cannot be moved away: {error.strerror}"
            )


def _refuse_newer(files: ToolFiles, file: str) -> None:
    try:
        newest = decode((files.folder / file).read_bytes(), SourceLabel).format
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return
    if newest > FORMAT:
        raise StoreTooNew(f"{files.folder / file} was written by a newer hotset; update this one")


class SourceRow(SourceLabel, frozen=True):
    """What is in memory of a source's file."""

    names: tuple[tuple[str, str], ...] = ()
    """Of its tools: as models call them, and as it does itself."""
    tools: int = 0
    """Tools that are not gone."""
    pending: int = 0
    """Of these, those for which a person's word is needed."""


class _Glance(msgspec.Struct, frozen=True):
    own_name: str
    digest: str
    flags: msgspec.Raw = msgspec.Raw(b"")


class _NamedEntry(msgspec.Struct, frozen=True):
    pin: _Glance
    waits: _Glance | None = None
    approved: str = ""
    gone: bool = False


class _NamedFile(SourceLabel, frozen=True, omit_defaults=True):
    tools: dict[str, _NamedEntry] = msgspec.field(default_factory=dict)


_DECODER = json_decoder(_NamedFile)


class NameIndex:
    """Which source has a tool of a name. Not for two threads at once."""

    def __init__(self, files: ToolFiles, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._files = files
        self._clock_ns = clock_ns
        self._looked: tuple[int, bool] | None = None
        self._stamps: dict[str, Stat] = {}
        self._rows: dict[str, SourceRow] = {}
        self._full: dict[str, str] = {}
        self._own: dict[str, str | tuple[str, ...]] = {}
        self._alike: tuple[dict[str, str], dict[str, str]] | None = None

    def glance(self) -> None:
        """Reads what changed, at the price of one stat where nothing did."""
        changed = self._files.changed_ns()
        if self._looked != (changed, True):
            self.follow()

    def follow(self) -> dict[str, Stat]:
        """Reads what changed, also files that were written in place. Returns all files with their
        stamps."""
        changed = self._files.changed_ns()
        found = self._files.scan()
        for file in self._stamps.keys() - found.keys():
            self._forget(file)
        for file, stamp in found.items():
            if self._stamps.get(file) != stamp:
                self._forget(file)
                self._learn(file, stamp)
        self._looked = changed, self._clock_ns() - changed > _SETTLED_NS
        return found

    def rows(self) -> Iterator[tuple[str, SourceRow]]:
        """All rows in the order of their files, with the file of each."""
        yield from ((file, self._rows[file]) for file in sorted(self._rows))

    def row(self, file: str) -> SourceRow | None:
        return self._rows.get(file)

    def file_of(self, name: str) -> str | None:
        """The file of the source that has a tool of this name."""
        return self._full.get(name)

    def files_of_own(self, own_name: str) -> tuple[str, ...]:
        """The files of the sources that have a tool of this own name."""
        found = self._own.get(own_name, ())
        return (found,) if isinstance(found, str) else found

    def names_of_own(self, own_name: str) -> tuple[str, ...]:
        files = self.files_of_own(own_name)
        return tuple(
            name for file in files for name, own in self._rows[file].names if own == own_name
        )

    def spelt_otherwise(self, name: str) -> tuple[str, ...]:
        """Full and own names that differ from it in case and separators only."""
        plain = _plain(name)
        ends = (plain[-1:], plain[-1:].upper(), "_", "-")
        maybe = (full for full in self._full if len(full) >= len(plain) and full.endswith(ends))
        return (
            tuple(
                full for full in maybe if plain in (_plain(full), _plain(full.partition("__")[2]))
            )
            if plain
            else ()
        )

    def near(self, name: str, most: int = 3) -> tuple[str, ...]:
        """The names that are most like it, best first."""
        wanted = name.lower()[:80]
        pairs = {wanted[at : at + 2] for at in range(0, len(wanted) - 1, 2)}
        counted = (
            (sum(pair in low for pair in pairs), full)
            for full in self._full
            for low in (full.lower(),)
        )
        nearest = heapq.nlargest(_MOST_COMPARED, counted)
        rated = (
            (
                max(_ratio(wanted, full.lower()), _ratio(wanted, full.lower().partition("__")[2])),
                full,
            )
            for _, full in nearest
        )
        return tuple(
            full
            for ratio, full in sorted(rated, key=lambda each: (-each[0], each[1]))
            if ratio >= _ALIKE_ENOUGH
        )[:most]

    def _learn(self, file: str, stamp: Stat) -> None:
        self._stamps[file] = stamp
        record = self._files.read(file, _DECODER)
        if record is None:
            return
        names = tuple((name, entry.pin.own_name) for name, entry in record.tools.items())
        entries = [entry for entry in record.tools.values() if not entry.gone]
        pending = sum(map(_is_pending, entries)) if record.may_run else len(entries)
        label = {each: getattr(record, each) for each in SourceLabel.__struct_fields__}
        self._rows[file] = SourceRow(
            **{**label, "words": None}, names=names, tools=len(entries), pending=pending
        )
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

    def skeletons(self) -> tuple[dict[str, str], dict[str, str]]:
        """Of full and of own names; made when a list first brings something new."""
        if self._alike is None:
            self._alike = (
                {skeleton(each): each for each in self._full},
                {skeleton(each): each for each in self._own},
            )
        return self._alike


@dataclass(frozen=True, slots=True)
class OtherNames:
    """The names of all sources but one."""

    names: NameIndex
    file: str
    """The file of that one."""

    def have(self, name: str) -> bool:
        return self.names.file_of(name) not in (None, self.file)

    def have_head(self, head: str) -> bool:
        return any(row.head == head for file, row in self.names.rows() if file != self.file)

    def have_own(self, own_name: str) -> bool:
        """True if another source has a tool of this own name, and that one has not."""
        files = self.names.files_of_own(own_name)
        return bool(files) and self.file not in files

    def alike(self, name: str) -> str:
        """A full name of theirs that looks the same as this one; empty where there is none."""
        found = self.names.skeletons()[0].get(skeleton(name), "")
        return found if found not in ("", name) and self.have(found) else ""

    def alike_own(self, own_name: str) -> str:
        """The same for names as sources have them. A difference in case alone disguises nothing:
        `Search` and `search` are both honest."""
        found = self.names.skeletons()[1].get(skeleton(own_name), "")
        is_other = found.casefold() != own_name.casefold()
        return found if found and is_other and self.have_own(found) else ""


def _is_pending(entry: _NamedEntry) -> bool:
    seen = entry.waits or entry.pin
    return entry.waits is not None or (bool(bytes(seen.flags)) and entry.approved != seen.digest)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").replace(".", "").replace("/", "").lower()


def _ratio(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio() if other else 0.0
