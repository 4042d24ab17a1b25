"""The writer's role: one process of a project folds, the others read.

The role is a lock on a file: it ends with its process, however that ends.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from hotset.store.folder import private_file

_ROLE = "writer"


class Role:
    """The right to fold, held by one process at a time."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _ROLE
        self._file: int | None = None

    @property
    def held(self) -> bool:
        return self._file is not None

    def take(self) -> bool:
        if self._file is not None:
            return True
        file = private_file(self._path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
        except BlockingIOError:
            os.close(file)
            return False
        except OSError:  # a full disk takes no number; the lock counts
            pass
        self._file = file
        return True

    def give_up(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def holder(self) -> int | None:
        """Who holds it, as far as one can tell."""
        if self._file is not None:
            return os.getpid()
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            told = os.pread(file, 20, 0)
            return int(told) if told.isdigit() else 0
        else:
            return None
        finally:
            os.close(file)
