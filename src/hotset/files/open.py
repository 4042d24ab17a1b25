"""Opening files so that no planted link is followed and no pipe or device is waited for."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from hotset.errors import NotFound, StoreFailed

PRIVATE = 0o600
"""The mode of a file that only its owner can read and write."""

_SAFELY = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class NotRegular(StoreFailed):
    """A link, a folder, a pipe or a device is where a regular file should be."""


def open_private(path: Path) -> int:
    """Open a file of ours for reading and writing, made where it is missing, closed to others.

    Raises `StoreFailed`.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | _SAFELY, PRIVATE)
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        found = os.fstat(file)
        refuse_special(path, found)
        refuse_foreign(path, found)
        if stat.S_IMODE(found.st_mode) != PRIVATE:
            os.fchmod(file, PRIVATE)
    except BaseException:
        os.close(file)
        raise
    return file


def open_regular(path: Path) -> int:
    """Open a regular file for reading. Raises `OSError`, or `NotRegular` where it is something
    else."""
    try:
        file = os.open(path, os.O_RDONLY | _SAFELY)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
            raise _unusable(path, error) from error
        raise
    try:
        refuse_special(path, os.fstat(file))
    except BaseException:
        os.close(file)
        raise
    return file


def read_regular(path: Path, most: int) -> bytes:
    """The bytes of a regular file, links followed.

    Raises `NotFound` with a sentence where it is something else, is longer, or cannot be read.
    """
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
        with os.fdopen(file, "rb", closefd=False) as stream:
            return stream.read(most)
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror}") from error
    finally:
        os.close(file)


def refuse_special(path: Path, found: os.stat_result) -> None:
    """Raises `NotRegular` for anything but a regular file."""
    if not stat.S_ISREG(found.st_mode):
        raise NotRegular(f"{path} is not a regular file; move it away")


def refuse_foreign(path: Path, found: os.stat_result) -> None:
    """Raises `StoreFailed` for what another user owns."""
    if found.st_uid != os.geteuid():
        raise StoreFailed(
            f"{path} belongs to another user (uid {found.st_uid}); choose a folder of your own"
        )


def _unusable(path: Path, error: OSError) -> StoreFailed:
    if error.errno in (errno.EISDIR, errno.ENXIO):  # a folder, a socket
        return NotRegular(f"cannot open {path}: it is not a regular file; move it away")
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return NotRegular(f"{path} is a symbolic link; somebody planted it: remove it")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreFailed(
            f"{path.parent} cannot be written ({path.name}: {error.strerror}); what is there "
            f"can be read, nothing can be added"
        )
    return StoreFailed(f"cannot open {path}: {error.strerror}")
