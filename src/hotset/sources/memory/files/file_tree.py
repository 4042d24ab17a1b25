"""A folder of files: written beside its place and put there whole, and read without following a link."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from hotset.errors import BadInput, HotsetError
from hotset.files.folder import sync_folder
from hotset.files.root import NotTaken, Root, can_be_shown, parts_of, shown
from hotset.files.write import write_error

_MOST_BYTES = 16 * 1024 * 1024  # of a file that is read; what JSON of that size can become in memory is half a gigabyte at worst
_FILE_MODE = 0o600
_FOLDER_MODE = 0o700
_BOM = b"\xef\xbb\xbf"
_T = TypeVar("_T")


@contextmanager
def whole_folder(folder: Path, refuse_foreign: Callable[[Path], None]) -> Iterator[Path]:
    """A new folder that takes the place of this one when the block ends without an error; until then, this one is as it was.

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
            yield draft
            _swap(draft, folder, aside, refuse_foreign)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise write_error(folder, error, "it is as it was") from error


def write_file(folder: Path, path: str, data: bytes) -> None:
    """Writes a new file below a folder, for its owner alone."""
    *folders, name = parts_of(path)
    for each in folders:
        folder = folder / each
        folder.mkdir(_FOLDER_MODE, exist_ok=True)
    with os.fdopen(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE), "wb") as file:
        file.write(data)


def files_of_export(folder: Path, ours: re.Pattern[str]) -> list[Path]:
    """What is in a folder. Raises `BadInput` where something is not named as `ours`, or is a link."""
    paths = sorted(Path(where) / name for where, folders, files in os.walk(folder) for name in (*folders, *files))
    for path in paths:
        if path.is_symlink() or (not path.is_dir() and not ours.fullmatch(path.relative_to(folder).as_posix())):
            raise BadInput(f"{folder} has something else in it ({path.relative_to(folder)}); choose an empty folder")
    return paths


class Shards(Generic[_T]):
    """A list that may be long: what is too much for one file goes on in `NAME-2.json`, and so on."""

    def __init__(self, draft: Path, path: str, most_bytes: int, render: Callable[[list[_T]], bytes]) -> None:
        self.count = 0
        self._draft = draft
        self._path = path
        self._most_bytes = most_bytes
        self._render = render
        self._pieces: list[_T] = []
        self._bytes = 0
        self._files = 0

    def add(self, piece: _T, size: int) -> None:
        if self._pieces and self._bytes + size > self._most_bytes:
            self._write()
        self._pieces.append(piece)
        self._bytes += size
        self.count += 1

    def close(self) -> None:
        """Write what is left; an empty list is one file."""
        if self._pieces or not self._files:
            self._write()

    def _write(self) -> None:
        self._files += 1
        stem, _, suffix = self._path.rpartition(".")
        path = self._path if self._files == 1 else f"{stem}-{self._files}.{suffix}"
        write_file(self._draft, path, self._render(self._pieces))
        self._pieces, self._bytes = [], 0


def as_json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file of a folder and its bytes."""

    place: str
    """The folder's name and the path in it."""
    data: bytes
    changed: float
    """When it was last written."""

    def decode_json(self) -> Any:
        """Raises `BadInput`, which names the file."""
        try:
            return msgspec.json.decode(self.data.removeprefix(_BOM))
        except RecursionError as error:
            raise BadInput(f"{self.place} is nested too deeply to be read") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            why = "it is empty" if not self.data.strip() else f"it is not JSON, or not all of it: {error}"
            raise BadInput(f"{self.place} cannot be read: {why}") from error

    def decode_text(self) -> str:
        """Raises `BadInput`, which names the file."""
        try:
            return self.data.removeprefix(_BOM).decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            raise BadInput(f"{self.place} is not UTF-8 (byte {error.start})") from error


class FileTree(Root):
    """A folder that another program may have made, to read."""

    def file(self, path: str) -> TreeFile:
        """Raises `BadInput`, which names the file."""
        try:
            content = self.read(path, _MOST_BYTES, hard_links=True)
        except NotTaken as error:
            raise BadInput(f"{shown(str(self.folder / path))} cannot be read: {error.why}") from error
        return TreeFile(f"{self.folder.name}/{path}", content.data, content.stat.mtime_ns / 1e9)

    def file_names(self, path: str, suffix: str) -> list[str]:
        """Files in a folder whose names end like that, in order; none where there is no such folder. Raises `BadInput`."""
        return [name for name, is_folder in self._entries(path) if not is_folder and name.endswith(suffix)]

    def folder_names(self, path: str) -> list[str]:
        return [name for name, is_folder in self._entries(path) if is_folder]

    def _entries(self, path: str) -> list[tuple[str, bool]]:
        folder = self.folder / path
        try:
            with os.scandir(folder) as entries:
                found = [entry for entry in entries if not entry.name.startswith(".")]
                for entry in found:
                    if entry.is_symlink() or not can_be_shown(entry.name):
                        raise BadInput(f"{shown(entry.path)} is a symbolic link, or has a name that cannot be shown: remove it")
                return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in found)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BadInput(f"{folder} cannot be read: {error.strerror}") from error


def _swap(draft: Path, folder: Path, aside: Path, refuse_foreign: Callable[[Path], None]) -> None:
    try:
        if folder.exists():
            folder.rename(aside)
            refuse_foreign(aside)  # again: nothing can be put into it any more
        draft.rename(folder)
    except (OSError, HotsetError):
        if aside.exists():
            aside.rename(folder)
        raise
    sync_folder(folder.parent)
    shutil.rmtree(aside, ignore_errors=True)
