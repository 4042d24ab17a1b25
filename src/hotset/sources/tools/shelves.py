"""The catalogue's files: one shelf for each source, written whole or not at all, by one process at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec

from hotset.errors import StoreTooNew
from hotset.files.folder import private_folder
from hotset.files.lock import hold_to_change
from hotset.files.write import write_atomically
from hotset.nouns.tool import Origin
from hotset.sources.tools.naming import slug
from hotset.sources.tools.pinning import Entry

Stamp = tuple[int, int, int]
"""Of a file: when it changed, its size, its inode. Another stamp, maybe another content."""

FORMAT = 1
_LOCK = ".lock"
_ENDING = ".json"
_DAMAGED = ".damaged"


class Label(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of a source itself."""

    name: str
    origin: Origin
    format: int = FORMAT
    head: str = ""
    """What stands in front of its tools' names."""
    stamp: str = ""
    trusted: bool = True
    listed_at: float = 0.0
    away: bool = False
    """It is not configured any more. What was accepted of it is kept for the day it comes back."""
    approved: str = ""
    """For a source that lies in the project's folder: the stamp under which a person let it run."""
    follow: bool = False
    """It may run under other stamps too."""
    words: Entry | None = None
    """Its instructions to models, kept like a tool's description."""

    @property
    def may_run(self) -> bool:
        """Under the stamp that it was listed with."""
        return self.trusted or (bool(self.approved) and (self.follow or self.approved == self.stamp))


class Stored(Label, frozen=True, omit_defaults=True):
    """A source with its tools, by the names that models call."""

    tools: dict[str, Entry] = msgspec.field(default_factory=dict)


class Unread(Label, frozen=True, omit_defaults=True):
    """A shelf whose tools are not decoded yet."""

    tools: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict)


_Kind = TypeVar("_Kind", bound=Label)


class Shelves:
    """The folder with all of them. Reading needs no lock: a file is always whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = private_folder(folder)
        self._troubles: dict[str, str] = {}

    def file_of(self, source: str) -> str:
        return f"{slug(source)}-{sha256(source.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}{_ENDING}"

    def scan(self) -> dict[str, Stamp]:
        if not self.folder.is_dir():
            return {}
        with os.scandir(self.folder) as found:
            return {
                each.name: _stamp(each.stat())
                for each in found
                if each.name.endswith(_ENDING) and each.is_file(follow_symlinks=False)
            }

    def stamp(self, file: str) -> Stamp | None:
        try:
            return _stamp((self.folder / file).lstat())
        except OSError:
            return None

    def changed_ns(self) -> int:
        """When a name in the folder last changed; 0 where somebody removed it."""
        try:
            return self.folder.stat().st_mtime_ns
        except OSError:
            return 0

    def troubles(self) -> list[str]:
        """Files that could not be read, and what became of them, until somebody removes them."""
        aside = sorted(self.folder.glob(f"*{_ENDING}{_DAMAGED}"))
        told = [
            f"{path} was damaged and set aside: what was accepted of its source is forgotten; look at it, and remove it"
            for path in aside
        ]
        return [*told, *self._troubles.values()]

    def read(self, file: str, kind: msgspec.json.Decoder[_Kind]) -> _Kind | None:
        """None where there is none, or none that can be read: such a file is set aside, and told of."""
        path = self.folder / file
        try:
            shelf = kind.decode(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            self._troubles[file] = f"{path} cannot be read: {error.strerror}"
            return None
        except (msgspec.MsgspecError, ValueError, RecursionError):
            self._set_aside(path)
            return None
        if shelf.format > FORMAT:
            self._troubles[file] = f"{path} was written by a newer hotset; update this one, or remove the file"
            return None
        self._troubles.pop(file, None)
        return shelf

    def write(self, file: str, shelf: Stored) -> None:
        """Under `alone` only."""
        _refuse_newer(self, file)
        write_atomically(self.folder / file, msgspec.json.encode(shelf))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One at a time changes something, over all threads and processes."""
        with hold_to_change(self.folder, self.folder / _LOCK):
            yield

    def _set_aside(self, path: Path) -> None:
        try:
            path.replace(path.with_name(path.name + _DAMAGED))
            self._troubles.pop(path.name, None)
        except FileNotFoundError:  # another process was faster
            pass
        except OSError as error:
            self._troubles[path.name] = f"{path} is damaged and cannot be moved away: {error.strerror}"


def _refuse_newer(shelves: Shelves, file: str) -> None:
    try:
        told = msgspec.json.decode((shelves.folder / file).read_bytes(), type=Label).format
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return
    if told > FORMAT:
        raise StoreTooNew(f"{shelves.folder / file} was written by a newer hotset; update this one")


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_mtime_ns, found.st_size, found.st_ino
