"""Folders that only their owner can look into."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hotset.errors import StoreFailed
from hotset.files.open import refuse_foreign

_PRIVATE = 0o700


def private_folder(folder: Path, *, makes: bool = True) -> Path:
    """Make or check a folder that only its owner can look into; its real path.

    Raises `StoreFailed`.
    """
    folder = folder.expanduser().absolute()
    if makes:
        _make_parents(folder.parent)
    folder = folder.parent.resolve() / folder.name
    made = _make(folder) if makes else False
    try:
        here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if folder.is_symlink():
            raise StoreFailed(
                f"{folder} is a symbolic link; give the folder it points to instead"
            ) from error
        if not makes and isinstance(error, FileNotFoundError):
            raise StoreFailed(
                f"the data folder {folder} is gone; put it back, or start again to make a new one"
            ) from error
        raise StoreFailed(f"cannot open the folder {folder}: {error.strerror}") from error
    try:
        found = os.fstat(here)
        refuse_foreign(folder, found)
        mode = stat.S_IMODE(found.st_mode)
        wanted = _PRIVATE if made else mode & _PRIVATE  # a folder that was made read-only stays so
        if mode != wanted:
            os.fchmod(here, wanted)
    except OSError as error:
        raise StoreFailed(
            f"{folder} is open to others, and its mode cannot be changed: {error.strerror}"
        ) from error
    finally:
        os.close(here)
    return folder


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable. Raises `OSError`."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(here)
    finally:
        os.close(here)


def _make_parents(folder: Path) -> None:
    try:
        folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreFailed(f"cannot make the folder {folder}: {error.strerror}") from error


def _make(folder: Path) -> bool:
    """True where it was not there before."""
    try:
        folder.mkdir(mode=_PRIVATE)
    except FileExistsError:
        return False
    except OSError as error:
        if folder.is_dir():  # a read-only disk says that first
            return False
        raise StoreFailed(f"cannot make the folder {folder}: {error.strerror}") from error
    return True
