"""A folder of files: written beside its place and put there whole, and looked into without following a link."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec

from hotset.errors import BadInput, HotsetError
from hotset.files.folder import sync_folder
from hotset.files.root import NotTaken, Root, can_be_shown, parts_of, shown
from hotset.files.write import write_error

MOST_BYTES = 16 * 1024 * 1024  # of a file that is read; what JSON of that size can become in memory is half a gigabyte at worst
_SHARD_BYTES = 4 * 1024 * 1024  # of a list that is written: a person's editor opens it, and it is far from the limit above
_FILE_MODE = 0o600
_FOLDER_MODE = 0o700
_BOM = b"\xef\xbb\xbf"


class Draft:
    """A folder that nobody looks at yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, path: str, data: bytes) -> None:
        *folders, name = parts_of(path)
        here = self.folder
        for each in folders:
            here = here / each
            here.mkdir(_FOLDER_MODE, exist_ok=True)
        with os.fdopen(os.open(here / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE), "wb") as file:
            file.write(data)


@contextmanager
def whole_folder(folder: Path, refuse_foreign: Callable[[Path], None]) -> Iterator[Draft]:
    """A draft that takes the folder's place when the block ends without an error; until then, that one is as it was.

    `refuse_foreign` is given the folder that is there, and raises `BadInput` where something in it would be lost.
    Raises `BadInput` and `StoreFailed`.
    """
    folder = folder.expanduser().absolute()
    if folder.is_symlink():
        raise BadInput(f"{folder} is a symbolic link; give the folder it points to instead")
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; give a folder")
    if folder.exists():
        refuse_foreign(folder)
    aside = folder.with_name(f".{folder.name[:100]}.{secrets.token_hex(6)}")
    draft = aside.with_name(f"{aside.name}.draft")
    try:
        folder.parent.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
        draft.mkdir(_FOLDER_MODE)
        try:
            yield Draft(draft)
            _swap(draft, folder, aside, refuse_foreign)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise write_error(folder, error, "it is as it was") from error


class Listed:
    """A JSON document whose one list may be long: what is too much for one file goes on in `NAME-2.json`, and so on."""

    def __init__(self, draft: Draft, path: str, name: str, head: Mapping[str, Any]) -> None:
        self._draft = draft
        self._path = path
        self._name = name
        self._head = dict(head)
        self._items: list[dict[str, Any]] = []
        self._bytes = 0
        self._files = 0

    def add(self, item: dict[str, Any]) -> None:
        size = len(msgspec.json.encode(item))
        if self._items and self._bytes + size > _SHARD_BYTES:
            self._put()
        self._items.append(item)
        self._bytes += size

    def close(self) -> None:
        if self._items or not self._files:
            self._put()

    def _put(self) -> None:
        self._files += 1
        path = self._path if self._files == 1 else self._path.replace(".json", f"-{self._files}.json")
        self._draft.write(path, as_json({**self._head, self._name: self._items}))
        self._items, self._bytes = [], 0


def as_json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


@dataclass(frozen=True, slots=True)
class Read:
    """What a file says."""

    place: str
    """The folder's name and the path in it."""
    data: bytes
    changed: float
    """When it was last written."""


class Tree:
    """A folder that somebody else may have made."""

    def __init__(self, folder: Path) -> None:
        self._root = Root(folder)
        self.folder = self._root.folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._root.close()

    def read(self, path: str) -> Read:
        """Raises `BadInput`, which names the file."""
        try:
            content = self._root.read(path, MOST_BYTES, hard_links=True)
        except NotTaken as error:
            raise BadInput(f"{shown(str(self.folder / path))} cannot be read: {error.why}") from error
        return Read(f"{self.folder.name}/{path}", content.data, content.stat.mtime_ns / 1e9)

    def names(self, path: str, ends: tuple[str, ...]) -> list[str]:
        """Files in a folder whose names end like that, in order; none where there is no such folder. Raises `BadInput`."""
        return [name for name, is_folder in self._entries(path) if not is_folder and name.endswith(ends)]

    def folders(self, path: str) -> list[str]:
        return [name for name, is_folder in self._entries(path) if is_folder]

    def _entries(self, path: str) -> list[tuple[str, bool]]:
        folder = self.folder / path
        found: list[tuple[str, bool]] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if entry.is_symlink() or not can_be_shown(entry.name):
                        raise BadInput(f"{shown(entry.path)} is a symbolic link, or has a name that cannot be shown: remove it")
                    found.append((entry.name, entry.is_dir(follow_symlinks=False)))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BadInput(f"{folder} cannot be read: {error.strerror}") from error
        return sorted(found)


def decoded(read: Read) -> Any:
    """Raises `BadInput`, which names the file."""
    try:
        return msgspec.json.decode(read.data.removeprefix(_BOM))
    except RecursionError as error:
        raise BadInput(f"{read.place} is nested too deeply to be read") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = "it is empty" if not read.data.strip() else f"it is not JSON, or not all of it: {error}"
        raise BadInput(f"{read.place} cannot be read: {why}") from error


def as_text(read: Read) -> str:
    """Raises `BadInput`, which names the file."""
    try:
        return read.data.removeprefix(_BOM).decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise BadInput(f"{read.place} is not UTF-8 (byte {error.start})") from error


def _swap(draft: Path, folder: Path, aside: Path, refuse_foreign: Callable[[Path], None]) -> None:
    if not folder.exists():
        draft.rename(folder)
        sync_folder(folder.parent)
        return
    folder.rename(aside)
    try:
        refuse_foreign(aside)  # again: nobody can put something into it any more
        draft.rename(folder)
    except (OSError, HotsetError):
        aside.rename(folder)
        raise
    sync_folder(folder.parent)
    with suppress(OSError):
        shutil.rmtree(aside)
