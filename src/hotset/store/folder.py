"""The data folder: private to its owner, never reached through a planted link, locked while it is made or repaired."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hotset.errors import DiskFull, StoreBusy, StoreFailed

DATABASE = "store.db"
SEAL = "store.seal"
_OPENING = "store.opening"
_IN_USE = "store.in-use"
_FILE_MODE = 0o600
_FOLDER_MODE = 0o700
_CHANGE_SECONDS = 10.0  # whoever changes a small file takes milliseconds
_POLL_SECONDS = 0.005  # opening takes a few milliseconds; a waiting process should not wait much longer than that


def private_folder(folder: Path, *, makes: bool = True) -> Path:
    """Makes the folder or checks it, and gives its real path. Only its owner may be able to look inside."""
    folder = folder.expanduser().absolute()
    if makes:
        _make_parents(folder.parent)
    folder = folder.parent.resolve() / folder.name
    made = _make(folder) if makes else False
    try:
        here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if folder.is_symlink():
            raise StoreFailed(f"{folder} is a symbolic link; give the folder it points to instead") from error
        if not makes and isinstance(error, FileNotFoundError):
            raise StoreFailed(f"the data folder {folder} is gone; put it back, or start again to make a new one") from error
        raise StoreFailed(f"cannot open the folder {folder}: {error.strerror}") from error
    try:
        found = os.fstat(here)
        _refuse_foreign(folder, found)
        mode = stat.S_IMODE(found.st_mode)
        wanted = _FOLDER_MODE if made else mode & _FOLDER_MODE  # a folder that was made read-only stays so
        if mode != wanted:
            os.fchmod(here, wanted)
    except OSError as error:
        raise StoreFailed(f"{folder} is open to others, and its mode cannot be changed: {error.strerror}") from error
    finally:
        os.close(here)
    return folder


def private_file(path: Path) -> int:
    """Opens a file of ours for reading and writing, makes it where it is missing, and takes everybody else's rights away."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        file = os.open(path, flags, _FILE_MODE)
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        found = os.fstat(file)
        refuse_special(path, found)
        _refuse_foreign(path, found)
        if stat.S_IMODE(found.st_mode) != _FILE_MODE:
            os.fchmod(file, _FILE_MODE)
    except BaseException:
        os.close(file)
        raise
    return file


def open_to_read(path: Path) -> int:
    """Opens a file of ours without changing anything. Raises `OSError`, or `StoreFailed` where it is no regular file."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        refuse_special(path, os.fstat(file))
    except BaseException:
        os.close(file)
        raise
    return file


def refuse_links(database: Path) -> None:
    """SQLite opens `-wal` and `-shm` by name; nobody may have put a link there."""
    for path in (*beside(database), database.with_name(SEAL)):
        if path.is_symlink():
            raise StoreFailed(f"{path} is a symbolic link; somebody planted it: remove it")
        if path.exists():
            os.close(private_file(path))


def has_store(folder: Path) -> bool:
    """Something is kept there, or was: also where of a store only its WAL or its seal is left."""
    wal, _ = beside(folder / DATABASE)
    return (folder / DATABASE).exists() or (folder / SEAL).exists() or (wal.exists() and wal.stat().st_size > 0)


def beside(database: Path) -> tuple[Path, Path]:
    """The files that SQLite keeps beside a database."""
    return database.with_name(database.name + "-wal"), database.with_name(database.name + "-shm")


@contextmanager
def opening(folder: Path, patience: float) -> Iterator[None]:
    """One process at a time makes, migrates or repairs a store."""
    file = private_file(folder / _OPENING)
    try:
        _lock(file, fcntl.LOCK_EX, patience, f"another process has been opening {folder} for {patience:.0f} s")
        yield
    finally:
        os.close(file)


def mark_in_use(folder: Path, *, writes: bool = True) -> int:
    """Says that this process works with the store, until the descriptor that it gives is closed."""
    path = folder / _IN_USE
    if not writes and not path.exists():  # a copy that no hotset works with
        return os.open(os.devnull, os.O_RDONLY)
    file = private_file(path) if writes else open_to_read(path)
    try:
        _lock(file, fcntl.LOCK_SH, 0, f"{folder} is being repaired; try again when that is done")
    except BaseException:
        os.close(file)
        raise
    return file


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Refuses with `StoreBusy` while any process works with the store."""
    file = private_file(folder / _IN_USE)
    try:
        _lock(file, fcntl.LOCK_EX, 0, f"{folder} is in use; stop every hotset that works with it and try again")
        yield
    finally:
        os.close(file)


@contextmanager
def held(lock: Path, what: Path) -> Iterator[None]:
    """One at a time, over all threads and processes, changes `what`. Raises `StoreBusy` after a while, and `StoreFailed`."""
    file = private_file(lock)
    try:
        busy = f"another process has been changing {what} for {_CHANGE_SECONDS:.0f} s; try again later"
        _lock(file, fcntl.LOCK_EX, _CHANGE_SECONDS, busy)
        yield
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
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"no room is left to write {path}; it is as it was") from error
        raise StoreFailed(f"{path} could not be written: {error.strerror}; it is as it was") from error
    finally:
        draft.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(here)
    finally:
        os.close(here)


def _make_parents(folder: Path) -> None:
    try:
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreFailed(f"cannot make the folder {folder}: {error.strerror}") from error


def _make(folder: Path) -> bool:
    """True where it was not there before."""
    try:
        folder.mkdir(mode=_FOLDER_MODE)
    except FileExistsError:
        return False
    except OSError as error:
        if folder.is_dir():  # a read-only disk says that first
            return False
        raise StoreFailed(f"cannot make the folder {folder}: {error.strerror}") from error
    return True


def refuse_special(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise StoreFailed(f"{path} is not a regular file; move it away")


def _refuse_foreign(path: Path, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise StoreFailed(f"{path} belongs to another user (uid {found.st_uid}); choose a folder of your own")


def _unusable(path: Path, error: OSError) -> StoreFailed:
    if error.errno in (errno.EISDIR, errno.ENXIO):  # a folder, a socket
        return StoreFailed(f"cannot open {path}: it is not a regular file; move it away")
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return StoreFailed(f"{path} is a symbolic link; somebody planted it: remove it")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreFailed(
            f"{path.parent} cannot be written ({path.name}: {error.strerror}); what is there can be read, nothing can be added"
        )
    return StoreFailed(f"cannot open {path}: {error.strerror}")


def _lock(file: int, how: int, patience: float, otherwise: str) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StoreBusy(otherwise) from None
            time.sleep(_POLL_SECONDS)
        else:
            return
