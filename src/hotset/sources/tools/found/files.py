"""Small files that several processes share: read with a limit, written whole or not at all, changed by one at a time."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hotset.errors import NotFound, StoreBusy, StoreFailed
from hotset.store.folder import private_file, private_folder, sync_folder

_LOCK = ".lock"
_PATIENCE = 10.0  # seconds; whoever holds it writes one small file
_POLL_SECONDS = 0.005


@contextmanager
def locked(folder: Path) -> Iterator[Path]:
    """The folder, made where it is missing, while nobody else changes what is in it. Raises `StoreBusy` and `StoreFailed`."""
    folder = private_folder(folder)
    file = private_file(folder / _LOCK)
    try:
        deadline = time.monotonic() + _PATIENCE
        while not _got(file):
            if time.monotonic() >= deadline:
                raise StoreBusy(f"another process has been changing {folder} for {_PATIENCE:.0f} s: try again when it is done")
            time.sleep(_POLL_SECONDS)
        yield folder
    finally:
        os.close(file)


def write_whole(path: Path, data: bytes) -> None:
    """The file has the old content or the new one, whatever happens, and only its owner can read it. Raises `StoreFailed`."""
    draft = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}")
    try:
        with os.fdopen(private_file(draft), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise StoreFailed(f"{path} could not be written: {error.strerror}; it is as it was") from error
    finally:
        draft.unlink(missing_ok=True)


def read_whole(path: Path, most: int) -> bytes:
    """A regular file's bytes. Raises `NotFound` with a sentence where it is none, is longer, or cannot be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror}") from error
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise NotFound(f"{path} is no regular file")
        if found.st_size > most:
            raise NotFound(f"{path} has {found.st_size:,} bytes; at most {most:,} are read")
        with os.fdopen(os.dup(file), "rb") as stream:
            return stream.read(most)
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror}") from error
    finally:
        os.close(file)


def _got(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
