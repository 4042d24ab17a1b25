"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hotset.errors import DiskFull, StoreFailed
from hotset.files.open import PRIVATE
from hotset.files.private_folder import sync_folder


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a private file: whatever happens, it has the old content or the new one.

    Raises `StoreFailed`.
    """
    try:
        with replace_file(path) as file:
            file.write(data)
    except OSError as error:
        raise write_error(path, error, "it is as it was") from error


def write_output(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a private file that a user named. Raises `OSError`.

    A device or a pipe is written to; anything else is replaced, whole or not at all.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            device.writelines(pieces)
        return
    with replace_file(path) as file:
        file.writelines(pieces)


@contextmanager
def replace_file(path: Path, draft: str = "", mode: int = PRIVATE) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path`, durably, when the block ends without an error.

    `draft` names it until then, where a lock keeps others from doing the same: so what a killed
    process left is overwritten. Raises `OSError`.
    """
    new = path.with_name(draft or f".{path.name[:100]}.{secrets.token_hex(6)}")
    if draft:
        new.unlink(missing_ok=True)
    try:
        with create_file(new, mode) as file:
            yield file
        new.replace(path)
        sync_folder(path.parent)
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def create_file(path: Path, mode: int = PRIVATE) -> Iterator[BinaryIO]:
    """A file that must not be there yet, on disk when the block ends. Raises `OSError`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, mode), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_error(path: Path, error: OSError, outcome: str) -> StoreFailed:
    """The error to raise where a file could not be written; `outcome` says how it is left."""
    if is_full(error):
        return DiskFull(f"no room is left to write {path}; {outcome}")
    return StoreFailed(f"{path} could not be written: {error.strerror}; {outcome}")


def is_full(error: OSError) -> bool:
    """True if no room was left, on the disk or within the user's quota."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
