"""Files of a project, opened so that no path, link or trick leads out of it: one folder after
another, never through a link."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Self

from hotset.errors import BadInput

MOST_BYTES = 1_000_000  # of a file: the largest that people wrote by hand are half as long
_LONGEST_PATH = 4096
_TRIES = 3  # to read a file that is being written
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | getattr(os, "O_NOCTTY", 0)
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e0fff]"
)


class Why(StrEnum):
    """Why a file is not taken. The words are what a person reads."""

    EXCLUDED = "excluded by name"
    IGNORED = "ignored by the project"
    SECRET = "a file of secrets"  # noqa: S105 - a reason, no secret
    LINK = "a symbolic link"
    SPECIAL = "no regular file"
    HARD_LINK = "has other names (hard link)"
    ELSEWHERE = "on another file system"
    STRANGE_NAME = "a name that cannot be shown"
    STRANGE_IGNORE = "an ignore file that is no ordinary file: nothing is indexed while it is there"
    TOO_LARGE = "too large"
    TOO_MANY = "more files than the limit"
    BINARY = "binary"
    GENERATED = "generated"
    MINIFIED = "minified"
    EMPTY = "empty"
    UNREADABLE = "cannot be read"
    CHANGING = "changed while it was read"
    GONE = "gone"


class NotTaken(BadInput):
    """A file that is not read, and why."""

    def __init__(self, path: str, why: Why) -> None:
        super().__init__(f"{shown(path)}: {why}")
        self.path = path
        self.why = why


class Stat(NamedTuple):
    """Metadata by which an unchanged file is recognised without reading it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, found: os.stat_result) -> Stat:
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


@dataclass(frozen=True, slots=True)
class Content:
    data: bytes
    stat: Stat


class Root:
    """A project's folder, held open: what is put in its place later is not looked at."""

    def __init__(self, folder: Path) -> None:
        """Raises `BadInput` where it is no folder."""
        self.folder = folder.expanduser().resolve()
        try:
            self._file = os.open(self.folder, _FOLDER)
        except OSError as error:
            raise BadInput(f"{folder} cannot be opened as a folder: {error.strerror}") from error
        self.device = os.fstat(self._file).st_dev

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def read(self, path: str, most: int = MOST_BYTES, *, hard_links: bool = False) -> Content:
        """A file's bytes, all of one moment. Raises `NotTaken`."""
        parts = parts_of(path)
        if not parts:
            raise NotTaken(path, Why.SPECIAL)
        with self._parent(path, parts) as parent:
            for _ in range(_TRIES):
                if (
                    content := self._read_once(path, parts[-1], parent, most, hard_links=hard_links)
                ) is not None:
                    return content
        raise NotTaken(path, Why.CHANGING)

    def is_folder(self, path: str) -> bool:
        """Is there such a folder, reached through no link?"""
        try:
            with self._parent(path, (*parts_of(path), ".")):
                return True
        except NotTaken:
            return False

    def names(self, path: str) -> list[str]:
        """The names in a folder, those of folders with a trailing slash. Raises `NotTaken`."""
        with self._parent(path, (*parts_of(path), ".")) as here, os.scandir(here) as entries:
            return sorted(
                each.name + ("/" if each.is_dir(follow_symlinks=False) else "")
                for each in entries
                if not each.is_symlink()
            )

    @contextmanager
    def _parent(self, path: str, parts: tuple[str, ...]) -> Iterator[int]:
        """The folder of the last part, opened step by step."""
        here = os.dup(self._file)
        try:
            for part in parts[:-1]:
                try:
                    below = os.open(part, _FOLDER, dir_fd=here)
                except OSError as error:
                    raise NotTaken(path, _why(error)) from error
                os.close(here)
                here = below
            yield here
        finally:
            with suppress(OSError):
                os.close(here)

    def _read_once(
        self, path: str, name: str, parent: int, most: int, *, hard_links: bool
    ) -> Content | None:
        """None where it changed in the meantime."""
        try:
            file = os.open(name, _FILE, dir_fd=parent)
        except OSError as error:
            raise NotTaken(path, _why(error)) from error
        try:
            before = os.fstat(file)
            if why := refused(before, self.device, most, hard_links=hard_links):
                raise NotTaken(path, why)
            data = _whole(file, before.st_size)
            after = os.fstat(file)
        except OSError as error:
            raise NotTaken(path, Why.UNREADABLE) from error
        finally:
            os.close(file)
        if len(data) != before.st_size or Stat.of(before) != Stat.of(after):
            return None
        return Content(data, Stat.of(after))


def refused(
    found: os.stat_result, device: int, most: int, *, hard_links: bool = False
) -> Why | None:
    """Why a file is not read, judged by its metadata alone."""
    if stat.S_ISLNK(found.st_mode):
        return Why.LINK
    if not stat.S_ISREG(found.st_mode):
        return Why.SPECIAL
    if found.st_dev != device:
        return Why.ELSEWHERE
    if found.st_nlink > 1 and not hard_links:
        return Why.HARD_LINK
    return Why.TOO_LARGE if found.st_size > most else None


def parts_of(path: str) -> tuple[str, ...]:
    """The folders and the name in a path below the root; empty for the root itself. Raises
    `NotTaken` for any other path."""
    if (
        len(path) > _LONGEST_PATH
        or _UNPRINTABLE.search(path)
        or path.startswith(("/", "\\", "~"))
        or "\\" in path
    ):
        raise NotTaken(path, Why.STRANGE_NAME)
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts or (parts and re.match(r"[A-Za-z]:", parts[0])):
        raise NotTaken(path, Why.STRANGE_NAME)
    return parts


def below(folder: Path, path: str) -> str:
    """A path as agents write it, which may have the project's folder in front. Any other one comes
    back as it is."""
    folder = folder.expanduser()
    for own in (f"{folder.absolute()}".rstrip("/"), f"{folder.resolve()}".rstrip("/")):
        if path.rstrip("/") == own or path.startswith(f"{own}/"):
            return path[len(own) :].lstrip("/")
    return path


def can_be_shown(name: str) -> bool:
    """No character in it that a reader, a terminal or a database would take for something else."""
    return _UNPRINTABLE.search(name) is None and "\\" not in name


def shown(path: str) -> str:
    """A path for people, whatever is in it."""
    return _UNPRINTABLE.sub("�", path[:_LONGEST_PATH])


def _whole(file: int, size: int) -> bytes:
    pieces = []
    left = size + 1  # one more: a file that grew is not what was asked for
    while left > 0 and (piece := os.read(file, left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _why(error: OSError) -> Why:
    match error.errno:
        case errno.ELOOP | errno.EMLINK:
            return Why.LINK
        case errno.ENOTDIR:
            return Why.LINK  # O_NOFOLLOW with O_DIRECTORY says so of links too
        case errno.ENOENT:
            return Why.GONE
        case errno.ENXIO | errno.ENODEV:
            return Why.SPECIAL
        case errno.ENAMETOOLONG | errno.EILSEQ | errno.EINVAL:
            return Why.STRANGE_NAME
        case _:
            return Why.UNREADABLE
