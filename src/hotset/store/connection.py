"""Opens SQLite in one way: durable, patient with other processes, only on the intended files; and
translates its errors."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import apsw

from hotset.errors import DiskFull, PageDamaged, StoreBusy, StoreFailed, StoreMoved
from hotset.files.scope import PROCESS, Budget, ScopedFile
from hotset.store.store_files import BALLAST_BYTES, wal_and_shm

if TYPE_CHECKING:
    from hotset.files.lru import CacheSize
    from hotset.nouns.pressure import PressureResponse

_OLDEST_SQLITE = (3, 51, 3)  # earlier ones can corrupt a WAL when it is reset
_SHORTEST_WAIT = 0.0002
# commits take about a millisecond: a process that waits longer than ten loses its turn
_LONGEST_WAIT = 0.01
_IDLE_READERS = 4
_FILES_OF_ONE = 3  # the database, its WAL and the WAL's index
_ALWAYS = {"temp_store": "MEMORY", "trusted_schema": False, "cell_size_check": True}
_READING = {"query_only": True}
_WRITING = {
    "fullfsync": True,  # macOS: its fsync does not reach the disk by itself
    "checkpoint_fullfsync": True,
    "journal_size_limit": 8 * 1024 * 1024,
    # what is erased is overwritten, not only let go; little else is ever deleted
    "secure_delete": True,
}


@dataclass(frozen=True, slots=True)
class Tuning:
    """Settings that tests and special disks may change."""

    ballast_bytes: int = BALLAST_BYTES
    patience: float = 60.0
    """Seconds to wait for another process before `StoreBusy`."""
    checkpoint_pages: int = 1000
    """WAL pages (4 KiB) after which they are moved into the database, in parallel to commits."""
    vfs: str | None = None
    synchronous: str = "FULL"
    """NORMAL lost acknowledged records in 63 % of simulated power cuts."""


_FileId = tuple[int, int] | None
"""Device and inode; None if there is no such file."""


_SCOPE = PROCESS.child("databases", Budget(files=PROCESS.budget.files / 2))
_open_here: Counter[_FileId] = Counter()
_sizes: dict[_FileId, int] = {}
"""Last known size of each open database: they only grow."""
_counting = threading.Lock()


def is_open_here(database: Path) -> bool:
    """True while this process has the database open. Then it must not be opened and closed in
    another way: that drops all locks of the process on it."""
    return _open_here[_look(database)[0]] > 0


class Connection(apsw.Connection):
    """A connection that knows which files it uses."""

    database: Path
    file: _FileId = None
    beside: tuple[_FileId, _FileId] = (None, None)
    """The WAL and its index, once they exist."""
    held: ScopedFile

    def works_with(self, database: Path, file: _FileId, size: int) -> None:
        self.database, self.file = database, file
        self._path, self._wal, self._index = str(database), *map(str, wal_and_shm(database))
        this = weakref.ref(self)
        self.held = _SCOPE.file(database.name, lambda: _close_this(this), _FILES_OF_ONE)
        weakref.finalize(self, self.held.release)
        with _counting:
            _open_here[file] += 1
            _sizes[file] = max(size, _sizes.get(file, 0))

    def stream(self, sql: str, given: Any = None, /) -> Iterator[Any]:
        """The rows of a statement; SQLite reads each when it is asked for."""
        return iter(self.execute(sql, given))

    def refuse_moved(self) -> None:
        """Raises `StoreMoved` if the database, its WAL or its index is not the file that this
        connection uses.

        SQLite would go on with the files that it has open, and what it commits there would be lost
        with them.
        """
        self.refuse_replaced()
        if self.beside == (None, None):
            # SQLite opens the WAL at the first read. Until then the last one to close the database
            # removes it, and a later WAL would look like one that was put in its place.
            self.pragma("user_version")
        now = _look(self._wal)[0], _look(self._index)[0]
        if now == self.beside:
            return
        for path, was, found in zip((self._wal, self._index), self.beside, now, strict=True):
            if was is not None and was != found:
                raise StoreMoved(f"{path} was removed or replaced while it was in use")
        self.beside = now

    def refuse_replaced(self) -> None:
        """The same for the database alone."""
        found, size = _look(self._path)
        if found is None:
            here = self.database if self.database.parent.exists() else self.database.parent
            raise StoreMoved(
                f"{here} was removed or moved away; put it back. Nothing is kept until then"
            )
        if found != self.file:
            raise StoreMoved(f"{self.database} was replaced by another file while it was in use")
        if size == _sizes[found]:
            return
        with _counting:
            known = _sizes[found]
            if size < known:
                size = _look(self._path)[1]  # another thread may have looked later than we did
            _sizes[found] = max(size, known)
        if size < known:
            raise StoreMoved(
                f"{self.database} was cut off from {known:,} to {size:,} bytes while it was in use"
            )

    @property
    def has_lost_wal(self) -> bool:
        """True if only files beside the database were removed: their content can still be moved
        into it."""
        lost = any(
            was is not None and was != found
            for was, found in zip(self.beside, _beside(self.database), strict=True)
        )
        return lost and _look(self.database)[0] == self.file


def connect(
    database: Path, tuning: Tuning, *, reading: bool = False, file: _FileId = None
) -> Connection:
    """Open a connection. Raises `StoreMoved` if `file` is given and the path leads to another
    one."""
    refuse_old_sqlite(apsw.sqlite_lib_version())
    before, size = _look(database)
    if file is not None and before != file:
        raise StoreMoved(
            f"{database} was removed or replaced while it was in use; it is opened anew when "
            f"it is back"
        )
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
    connection = Connection(str(database), flags=flags, vfs=tuning.vfs)
    connection.works_with(database, before, size)
    with closing_on_error(connection):
        connection.config(
            apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1
        )  # a database that fails here is left as it is
        # Plans that do not depend on the values: else SQLite prepares some statements anew at every
        # call.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.set_busy_handler(_patient(tuning.patience))
        connection.wal_autocheckpoint(0)  # never on the commit path: `wal.Checkpointer` does it
        settings = _READING if reading else {**_WRITING, "synchronous": tuning.synchronous}
        for name, value in {**_ALWAYS, **settings}.items():
            connection.pragma(name, value)
        connection.refuse_replaced()
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    return connection


def connect_to_read(database: Path, tuning: Tuning) -> Connection:
    """A read-only connection, also if the folder is read-only: SQLite alone would need to create
    its index of the WAL there."""
    refuse_old_sqlite(apsw.sqlite_lib_version())
    file, size = _look(database)
    try:
        connection = _open_to_read(str(database), tuning)
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError, apsw.PermissionsError):
        wal, _ = wal_and_shm(database)
        if wal.exists() and wal.stat().st_size:
            connection = _read_copy(
                database, tuning
            )  # a WAL that is not looked into would be content that is missed
        else:
            # Whoever writes makes a WAL first; `refuse_moved` notices that one came.
            connection = _open_to_read(f"file:{quote(str(database))}?immutable=1", tuning)
    connection.works_with(database, file, size)
    connection.beside = _beside(database)
    return connection


def _open_to_read(name: str, tuning: Tuning) -> Connection:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOFOLLOW | apsw.SQLITE_OPEN_URI
    connection = Connection(name, flags=flags, vfs=tuning.vfs)
    with closing_on_error(connection):
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.set_busy_handler(_patient(tuning.patience))
        for setting, value in {**_ALWAYS, **_READING}.items():
            connection.pragma(setting, value)
        connection.pragma("user_version")  # opens the WAL, or fails here
    return connection


def _read_copy(database: Path, tuning: Tuning) -> Connection:
    """A private copy of the files: open files stay until they are closed, whatever happens to their
    names."""
    with tempfile.TemporaryDirectory(prefix="hotset-") as folder:
        for path in (database, wal_and_shm(database)[0]):
            shutil.copyfile(path, Path(folder) / path.name)
        return _open_to_read(f"{folder}/{database.name}", tuning)


def _look(database: Path | str) -> tuple[_FileId, int]:
    try:
        found = os.lstat(database)
    except (FileNotFoundError, NotADirectoryError):
        return None, 0
    return (found.st_dev, found.st_ino), found.st_size


def _beside(database: Path) -> tuple[_FileId, _FileId]:
    wal, index = wal_and_shm(database)
    return _look(wal)[0], _look(index)[0]


def refuse_old_sqlite(version: str) -> None:
    if tuple(int(part) for part in version.split(".")[:3]) < _OLDEST_SQLITE:
        oldest = ".".join(map(str, _OLDEST_SQLITE))
        raise StoreFailed(
            f"SQLite {version} can damage a store; hotset needs {oldest} or newer: `pip "
            f"install -U apsw`"
        )


def close_connection(connection: apsw.Connection) -> None:
    """Close it. The last connection also moves the WAL into the database; if that fails, the next
    to open will."""
    with suppress(apsw.Error):
        if isinstance(connection, Connection) and connection.file is not None:
            found, size = _look(connection.database)
            if found == connection.file and size < _sizes[found]:
                # A file that was cut off would get holes, and look whole.
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close(True)
    if isinstance(connection, Connection) and connection.file is not None:
        with _counting:
            _open_here[connection.file] -= 1
            if not _open_here[connection.file]:
                del _open_here[connection.file], _sizes[connection.file]
            connection.file = None
        connection.held.release()


def _close_this(this: weakref.ref[Connection]) -> None:
    if (connection := this()) is not None:
        close_connection(connection)


@contextmanager
def closing_on_error(connection: Connection) -> Iterator[Connection]:
    """Close the connection only if something fails."""
    try:
        yield connection
    except BaseException:
        close_connection(connection)
        raise


@contextmanager
def write_transaction(connection: apsw.Connection) -> Iterator[None]:
    """A transaction that holds the write lock from its beginning. The caller commits it; on an
    error the rest is rolled back."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def is_full(error: BaseException) -> bool:
    return isinstance(error, apsw.FullError | DiskFull)


@contextmanager
def translate_errors(database: Path) -> Iterator[None]:
    """Raise SQLite's errors as ours, with what to do next."""
    try:
        yield
    except apsw.Error as error:
        raise translate_error(error, database) from error
    except UnicodeDecodeError as error:
        raise PageDamaged(
            f"{database} is damaged (text that is not UTF-8); `hotset repair` saves what is intact"
        ) from error


def translate_error(error: apsw.Error, database: Path) -> StoreFailed:
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(f"another process kept {database} locked for too long; try again")
        case apsw.FullError():
            return DiskFull(
                f"the disk that holds {database} is full; make room, nothing that was kept is lost"
            )
        case apsw.NotADBError():
            return PageDamaged(
                f"{database} is not readable as a store; `hotset repair` saves what is intact"
            )
        case (
            apsw.CorruptError() | apsw.SQLError()
        ):  # our statements fit our tables, unless the file says that they are others
            return PageDamaged(
                f"{database} is damaged ({error}); `hotset repair` saves what is intact"
            )
        case apsw.CantOpenError():
            return StoreFailed(f"cannot open {database}: {error}")
        case _:
            return StoreFailed(f"{database} failed: {type(error).__name__}: {error}")


class Readers:
    """Read connections, lent to one thread at a time."""

    def __init__(self, open_one: Callable[[], Connection]) -> None:
        self._open = open_one
        self._idle: deque[Connection] = deque()
        self._closed = False
        from hotset.files.lru import CACHES  # noqa: PLC0415 - 20 ms that a look at an index does not pay

        CACHES.add(self)

    def respond(self, response: PressureResponse) -> None:
        """Give back the pages that idle connections hold."""
        if response.evicted or response.share < 1:
            for connection in self._each_idle():
                with suppress(apsw.Error):
                    connection.execute("PRAGMA shrink_memory")

    def cache_size(self) -> CacheSize:
        from hotset.files.lru import CacheSize  # noqa: PLC0415 - as above

        held = [
            connection.status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0]
            for connection in self._each_idle()
        ]
        return CacheSize(
            "database pages", len(held), sum(held), _IDLE_READERS, "entries", shrinks=True
        )

    @contextmanager
    def lend(self) -> Iterator[Connection]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._open()
        try:
            yield connection
        except BaseException:
            close_connection(connection)
            raise
        self._take_back(connection)

    def _each_idle(self) -> Iterator[Connection]:
        """Every idle connection, taken out while it is looked at."""
        for _ in range(len(self._idle)):
            try:
                connection = self._idle.popleft()
            except IndexError:
                return
            try:
                yield connection
            finally:
                self._take_back(connection)

    def _take_back(self, connection: Connection) -> None:
        if self._closed or len(self._idle) >= _IDLE_READERS:
            close_connection(connection)
        else:
            self._idle.append(connection)

    def close(self) -> None:
        self._closed = True
        while self._idle:
            close_connection(self._idle.pop())


def _patient(limit: float) -> Callable[[int], bool]:
    """Wait in short random steps, so that colliding processes do not collide again."""
    began = 0.0

    def wait(tries: int) -> bool:
        nonlocal began
        now = time.monotonic()
        if tries == 0:
            began = now
        if now - began > limit:
            return False
        ceiling = min(_LONGEST_WAIT, _SHORTEST_WAIT * 2 ** min(tries + 1, 8))
        time.sleep(random.uniform(_SHORTEST_WAIT, ceiling))  # noqa: S311 - spreads waiting processes, no secret
        return True

    return wait


_VERSIONS_OF_ONE = 2**32  # SQLite counts in 32 bits, anew for each connection


class DataVersion:
    """A connection that only asks for SQLite's count of other connections' commits."""

    def __init__(self, open_one: Callable[[], Connection]) -> None:
        self._open = open_one
        self._connection: Connection | None = None
        self._rounds = 0
        self._lock = threading.Lock()

    def version(self) -> int:
        with self._lock:
            if self._connection is None:
                self._connection = self._open()
                self._rounds += 1
            try:
                self._connection.refuse_moved()
                count = self._connection.execute("PRAGMA data_version").fetchone()
            except BaseException:
                self._close()
                raise
        assert count is not None
        return self._rounds * _VERSIONS_OF_ONE + int(count[0])

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            close_connection(self._connection)
            self._connection = None
