"""One way to open SQLite: durable, patient, and with its errors told in our words."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import apsw

from hotset.errors import DiskFull, PageDamaged, StoreBusy, StoreFailed
from hotset.store.ballast import BALLAST_BYTES

_OLDEST_SQLITE = (3, 51, 3)  # earlier ones can corrupt a WAL when it is reset
_SHORTEST_WAIT = 0.0002
_LONGEST_WAIT = 0.01  # commits take about a millisecond: whoever waits longer than ten loses its turn again and again
_IDLE_READERS = 4
_ALWAYS = {"temp_store": "MEMORY", "trusted_schema": False, "cell_size_check": True}
_READING = {"query_only": True}
_WRITING = {
    "fullfsync": True,  # macOS: its fsync does not reach the disk by itself
    "checkpoint_fullfsync": True,
    "journal_size_limit": 8 * 1024 * 1024,
    "secure_delete": True,  # what is erased is overwritten, not only let go; little else is ever deleted
}


@dataclass(frozen=True, slots=True)
class Tuning:
    """What tests and special disks may want otherwise."""

    ballast_bytes: int = BALLAST_BYTES
    patience: float = 60.0
    """Seconds to wait for another process before `StoreBusy`."""
    checkpoint_pages: int = 1000
    """WAL pages (4 KiB) after which they are moved into the database, beside the commits."""
    vfs: str | None = None
    synchronous: str = "FULL"
    """NORMAL lost acknowledged records in 63 % of simulated power cuts."""


def connect(database: Path, tuning: Tuning, *, reading: bool = False) -> apsw.Connection:
    refuse_old_sqlite(apsw.sqlite_lib_version())
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
    connection = apsw.Connection(str(database), flags=flags, vfs=tuning.vfs)
    try:
        # Plans that do not depend on the values: else SQLite prepares some statements anew at every call.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.set_busy_handler(_patient(tuning.patience))
        connection.wal_autocheckpoint(0)  # never on the commit path: `wal.Checkpointer` does it
        settings = _READING if reading else {**_WRITING, "synchronous": tuning.synchronous}
        for name, value in {**_ALWAYS, **settings}.items():
            connection.pragma(name, value)
    except BaseException:
        leave(connection)
        raise
    return connection


def refuse_old_sqlite(version: str) -> None:
    if tuple(int(part) for part in version.split(".")[:3]) < _OLDEST_SQLITE:
        oldest = ".".join(map(str, _OLDEST_SQLITE))
        raise StoreFailed(f"SQLite {version} can damage a store; hotset needs {oldest} or newer: `pip install -U apsw`")


def leave(connection: apsw.Connection) -> None:
    """Closes it. The last one to leave also moves the WAL into the database; where that fails, the next to come will."""
    with suppress(apsw.Error):
        connection.close(True)


def is_full(error: BaseException) -> bool:
    return isinstance(error, apsw.FullError | DiskFull)


@contextmanager
def in_our_words(database: Path) -> Iterator[None]:
    """SQLite's errors leave as ours, with what to do next."""
    try:
        yield
    except apsw.Error as error:
        raise translated(error, database) from error
    except UnicodeDecodeError as error:
        raise PageDamaged(f"{database} is damaged (text that is not UTF-8); `hotset repair` saves what is intact") from error


def translated(error: apsw.Error, database: Path) -> StoreFailed:
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(f"another process kept {database} locked for too long; try again")
        case apsw.FullError():
            return DiskFull(f"the disk that holds {database} is full; make room, nothing that was kept is lost")
        case apsw.NotADBError():
            return PageDamaged(f"{database} is not readable as a store; `hotset repair` saves what is intact")
        case apsw.CorruptError() | apsw.SQLError():  # our statements fit our tables, unless the file says that they are others
            return PageDamaged(f"{database} is damaged ({error}); `hotset repair` saves what is intact")
        case apsw.CantOpenError():
            return StoreFailed(f"cannot open {database}: {error}")
        case _:
            return StoreFailed(f"{database} failed: {type(error).__name__}: {error}")


class Readers:
    """Connections for reading, lent to one thread at a time."""

    def __init__(self, open_one: Callable[[], apsw.Connection]) -> None:
        self._open = open_one
        self._idle: deque[apsw.Connection] = deque()
        self._closed = False

    @contextmanager
    def lend(self) -> Iterator[apsw.Connection]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._open()
        try:
            yield connection
        except BaseException:
            leave(connection)
            raise
        if self._closed or len(self._idle) >= _IDLE_READERS:
            leave(connection)
        else:
            self._idle.append(connection)

    def close(self) -> None:
        self._closed = True
        while self._idle:
            leave(self._idle.pop())


def _patient(limit: float) -> Callable[[int], bool]:
    """Waits in short random steps, so that processes that collide do not collide again."""
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
