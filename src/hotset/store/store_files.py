"""The files of a store in its data folder: their names, the locks under which it is opened, used
and repaired, and the ballast that is dropped when the disk is full."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hotset.errors import StoreBusy, StoreFailed
from hotset.files.lock import hold_lock, lock_file
from hotset.files.open import open_private, open_regular
from hotset.files.write import is_full

DATABASE = "store.db"
SEAL = "store.seal"
_OPENING = "store.opening"
_IN_USE = "store.in-use"


def refuse_links(database: Path) -> None:
    """Raises `StoreFailed` if a symbolic link is beside the database: SQLite opens `-wal` and
    `-shm` by name."""
    for path in (*wal_and_shm(database), database.with_name(SEAL)):
        if path.is_symlink():
            raise StoreFailed(f"{path} is a symbolic link; somebody planted it: remove it")
        if path.exists():
            os.close(open_private(path))


@contextmanager
def closing_file(file: int) -> Iterator[int]:
    """A file descriptor, closed at the end."""
    try:
        yield file
    finally:
        os.close(file)


def has_store(folder: Path) -> bool:
    """True if a store is or was there: also if only its WAL or its seal is left."""
    wal, _ = wal_and_shm(folder / DATABASE)
    return (
        (folder / DATABASE).exists()
        or (folder / SEAL).exists()
        or (wal.exists() and wal.stat().st_size > 0)
    )


def wal_and_shm(database: Path) -> tuple[Path, Path]:
    """The files that SQLite keeps beside a database."""
    return database.with_name(database.name + "-wal"), database.with_name(database.name + "-shm")


@contextmanager
def opening_lock(folder: Path, patience: float) -> Iterator[None]:
    """Lets one process at a time create, migrate or repair a store."""
    busy = f"another process has been opening {folder} for {patience:.0f} s"
    with hold_lock(folder / _OPENING, busy, patience):
        yield


def mark_in_use(folder: Path, *, writes: bool = True) -> int:
    """Mark the store as in use by this process, until the returned descriptor is closed."""
    path = folder / _IN_USE
    if not writes and not path.exists():  # a copy that no hotset works with
        return os.open(os.devnull, os.O_RDONLY)
    file = open_private(path) if writes else open_regular(path)
    if not lock_file(file, shared=True):
        os.close(file)
        raise StoreBusy(f"{folder} is being repaired; try again when that is done")
    return file


@contextmanager
def exclusive_use(folder: Path) -> Iterator[None]:
    """Raises `StoreBusy` while any process uses the store."""
    busy = f"{folder} is in use; stop every hotset that works with it and try again"
    with hold_lock(folder / _IN_USE, busy):
        yield


BALLAST_BYTES = 16 * 1024 * 1024
_BALLAST = "ballast"
_LOOK_EVERY_SECONDS = 2.0  # seconds between looks at a full disk
_FEW_COMMITS = 1024 * 1024
_CHUNK = b"\xa5" * 65536


class Ballast:
    """A file that only takes up room, dropped when the disk is full.

    Without it a full disk also stops what could help: SQLite needs room for a checkpoint and even
    for deleting. `out` is true while the file is not there: the disk was full, or is too full to
    take it.
    """

    def __init__(self, folder: Path, size: int) -> None:
        self._folder = folder
        self._path = folder / _BALLAST
        self._size = size
        self._looked = float("-inf")
        self.out = size > 0
        if self.out:
            self.take_in()

    def drop(self) -> bool:
        """Free the room. True if there was something to drop."""
        self._looked = float("-inf")
        self.out = self._size > 0
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        return True

    def room_again(self) -> bool:
        """True once the ballast is back. Checks at most every few seconds."""
        if self.out and time.monotonic() - self._looked >= _LOOK_EVERY_SECONDS:
            self.take_in()
        return not self.out

    def take_in(self) -> None:
        """Take up the room again, if at least as much stays free for the store itself."""
        self._looked = time.monotonic()
        with suppress(FileNotFoundError):
            if self._path.stat(follow_symlinks=False).st_size == self._size:
                self.out = False
                return
        if self._free() < 2 * self._size:
            return
        with closing_file(open_private(self._path)) as file:
            try:
                _allocate(file, self._size)
            except OSError as error:
                self._path.unlink(missing_ok=True)
                if not is_full(error):
                    raise StoreFailed(f"cannot make {self._path}: {error.strerror}") from error
            else:
                self.out = False

    @property
    def has_room(self) -> bool:
        """True if there is room for a few commits. A full disk also shows as an I/O error without a
        reason."""
        return self._free() >= _FEW_COMMITS

    def _free(self) -> int:
        disk = os.statvfs(self._folder)
        return disk.f_bavail * disk.f_frsize


def _allocate(file: int, size: int) -> None:
    """Allocate the blocks: a sparse file would reserve no room at all."""
    if hasattr(os, "posix_fallocate"):
        if size:
            os.posix_fallocate(file, 0, size)
        return
    for offset in range(0, size, len(_CHUNK)):
        os.pwrite(file, _CHUNK[: size - offset], offset)
