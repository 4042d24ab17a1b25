"""Small files that several processes share: read with a limit, written whole or not at all, changed by one at a time."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hotset.errors import NotFound
from hotset.files.folder import private_folder
from hotset.files.lock import hold_to_change

_LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[Path]:
    """The folder, made where it is missing, while nobody else changes what is in it. Raises `StoreBusy` and `StoreFailed`."""
    folder = private_folder(folder)
    with hold_to_change(folder, folder / _LOCK):
        yield folder


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
