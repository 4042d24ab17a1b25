"""Locks between processes (flock): they end with the process that holds them, however it ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hotset.errors import StoreBusy, StoreFailed
from hotset.files.open import open_private, open_regular
from hotset.files.private_folder import private_folder
from hotset.files.scope import PROCESS, ScopedFile

_POLL_SECONDS = 0.005  # most holders need milliseconds; waiting should not take much longer
_CHANGE_SECONDS = 10.0  # changing a small file takes milliseconds


def lock_file(file: int, *, shared: bool = False, patience: float = 0.0) -> bool:
    """Lock an open file or folder until it is closed; False if it stays locked for `patience`
    seconds."""
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        else:
            return True


@contextmanager
def hold_lock(path: Path, busy: str, patience: float = 0.0) -> Iterator[None]:
    """Hold the exclusive lock of a file, which is made. Raises `StoreBusy` with the sentence
    `busy`."""
    file = open_private(path)
    try:
        if not lock_file(file, patience=patience):
            raise StoreBusy(busy)
        yield
    finally:
        os.close(file)


@contextmanager
def hold_to_change(what: Path, lock: Path) -> Iterator[None]:
    """Let one thread of one process at a time change `what`. Raises `StoreBusy` after 10
    seconds."""
    busy = f"another process has been changing {what} for {_CHANGE_SECONDS:.0f} s; try again later"
    with hold_lock(lock, busy, _CHANGE_SECONDS):
        yield


@contextmanager
def hold_folder(folder: Path) -> Iterator[Path]:
    """A private folder, made where it is missing, that one thread of one process at a time changes.

    Raises `StoreBusy` after 10 seconds, and `StoreFailed`.
    """
    folder = private_folder(folder)
    with hold_to_change(folder, folder / ".lock"):
        yield folder


class FileLock:
    """An exclusive lock that can be kept for long and names the process that holds it.

    For one thread at a time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._held: ScopedFile | None = None

    def take(self, patience: float = 0.0) -> bool:
        """True if it is held now."""
        if self._file is not None:
            return True
        file = open_private(self._path)
        try:
            if not lock_file(file, patience=patience):
                return False
            with suppress(OSError):  # a full disk takes no number; the lock counts
                os.ftruncate(file, 0)
                os.pwrite(file, str(os.getpid()).encode(), 0)
            self._file = file
            self._held = PROCESS.file(self._path.name, self.release)
        finally:
            if self._file is None:
                os.close(file)
        return True

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._held is not None:
            self._held.release()

    def holder(self) -> int | None:
        """The process that holds it, 0 where it cannot be named; None while it is free."""
        if self._file is not None:
            return os.getpid()
        try:
            file = open_regular(self._path)
        except (OSError, StoreFailed):
            return None
        try:
            if lock_file(file, shared=True):
                return None
            number = os.pread(file, 20, 0)
            return int(number) if number.isdigit() else 0
        finally:
            os.close(file)
