"""The files of a store in its data folder, and the locks under which it is opened, used and
repaired."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hotset.errors import StoreBusy, StoreFailed
from hotset.files.lock import hold_lock, lock_file
from hotset.files.open import open_private, open_regular

DATABASE = "store.db"
SEAL = "store.seal"
_OPENING = "store.opening"
_IN_USE = "store.in-use"


def refuse_links(database: Path) -> None:
    """SQLite opens `-wal` and `-shm` by name; nobody may have put a link there."""
    for path in (*wal_and_shm(database), database.with_name(SEAL)):
        if path.is_symlink():
            raise StoreFailed(f"{path} is a symbolic link; somebody planted it: remove it")
        if path.exists():
            os.close(open_private(path))


def has_store(folder: Path) -> bool:
    """Something is kept there, or was: also where of a store only its WAL or its seal is left."""
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
    """One process at a time makes, migrates or repairs a store."""
    busy = f"another process has been opening {folder} for {patience:.0f} s"
    with hold_lock(folder / _OPENING, busy, patience):
        yield


def mark_in_use(folder: Path, *, writes: bool = True) -> int:
    """Says that this process works with the store, until the descriptor that it gives is closed."""
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
    """Refuses with `StoreBusy` while any process works with the store."""
    busy = f"{folder} is in use; stop every hotset that works with it and try again"
    with hold_lock(folder / _IN_USE, busy):
        yield
