"""A file that only takes up room, to be thrown overboard when the disk is full.

Without it a full disk also stops what could help: SQLite needs room for a checkpoint and even for
deleting.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from hotset.errors import StoreFailed
from hotset.files.open import open_private
from hotset.files.write import is_full

BALLAST_BYTES = 16 * 1024 * 1024
_NAME = "ballast"
_LOOK_EVERY = 2.0  # seconds between looks at a full disk
_FEW_COMMITS = 1024 * 1024
_CHUNK = b"\xa5" * 65536


class Ballast:
    """`out` is true while the file is not there: the disk was full, or is too full to take it."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder = folder
        self._path = folder / _NAME
        self._size = size
        self._looked = float("-inf")
        self.out = size > 0
        if self.out:
            self.take_in()

    def drop(self) -> bool:
        """Makes room. True where there was something to drop."""
        self._looked = float("-inf")
        self.out = self._size > 0
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        return True

    def room_again(self) -> bool:
        """True once the ballast is aboard again. Looks at most every few seconds."""
        if self.out and time.monotonic() - self._looked >= _LOOK_EVERY:
            self.take_in()
        return not self.out

    def take_in(self) -> None:
        """Takes the room up again, where at least as much stays free for the store itself."""
        self._looked = time.monotonic()
        with suppress(FileNotFoundError):
            if self._path.stat(follow_symlinks=False).st_size == self._size:
                self.out = False
                return
        if self._free() < 2 * self._size:
            return
        file = open_private(self._path)
        try:
            _allocate(file, self._size)
        except OSError as error:
            self._path.unlink(missing_ok=True)
            if not is_full(error):
                raise StoreFailed(f"cannot make {self._path}: {error.strerror}") from error
        else:
            self.out = False
        finally:
            os.close(file)

    @property
    def has_room(self) -> bool:
        """Is there room for a few commits? A full disk also shows as an I/O error without a
        reason."""
        return self._free() >= _FEW_COMMITS

    def _free(self) -> int:
        disk = os.statvfs(self._folder)
        return disk.f_bavail * disk.f_frsize


def _allocate(file: int, size: int) -> None:
    """Really takes the blocks: a sparse file would keep no room at all."""
    if hasattr(os, "posix_fallocate"):
        if size:
            os.posix_fallocate(file, 0, size)
        return
    for offset in range(0, size, len(_CHUNK)):
        os.pwrite(file, _CHUNK[: size - offset], offset)
