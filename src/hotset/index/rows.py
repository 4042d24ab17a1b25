"""The database of an index: its tables, its connections, and what becomes of it when it is damaged.

Derived data: commits do not wait for the disk. kill -9 loses nothing, a loss of power perhaps the
last moments, which the sources add again. What cannot be read is thrown away, and the sources begin
anew.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from hotset.errors import DiskFull, StoreBusy, StoreFailed
from hotset.files.lock import FileLock
from hotset.files.open import open_private
from hotset.store.connection import DataVersion, Readers, Tuning, close_connection, connect
from hotset.store.folder import opening_lock, refuse_links, wal_and_shm

DATABASE = "entries.db"
FORMAT = 1
"""Of the tables below. Another number: everything is thrown away and added again by its sources."""

_TUNING = Tuning(ballast_bytes=0, patience=10.0, synchronous="NORMAL")
_CHECKPOINT_PAGES = (
    4000  # 16 MB of WAL: a batch of additions fits into it, so that few commits pay for moving it
)
_VERSION_BITS = 64  # more than SQLite counts
_APPLICATION = 0x68735831  # in the file's header: what it is

_SCHEMA = f"""
CREATE TABLE entry (
    doc INTEGER PRIMARY KEY AUTOINCREMENT, id NOT NULL UNIQUE, whole INTEGER NOT NULL, sort INTEGER NOT NULL,
    kind INTEGER NOT NULL, title NOT NULL, session INTEGER NOT NULL, agent INTEGER NOT NULL, turn INTEGER NOT NULL,
    time REAL NOT NULL, path INTEGER NOT NULL, sealing INTEGER NOT NULL, text NOT NULL, first INTEGER NOT NULL,
    last INTEGER NOT NULL
);
CREATE INDEX entry_whole ON entry (whole, sort);
CREATE TABLE name (number INTEGER PRIMARY KEY, text NOT NULL UNIQUE);
CREATE TABLE path (number INTEGER PRIMARY KEY, text NOT NULL UNIQUE);
CREATE TABLE gone (doc INTEGER PRIMARY KEY);
CREATE TABLE watermark (name NOT NULL, sealing INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (name, sealing));
CREATE TABLE generation (
    number INTEGER PRIMARY KEY AUTOINCREMENT, identity TEXT NOT NULL, folded INTEGER NOT NULL, rows INTEGER NOT NULL,
    serving INTEGER NOT NULL
);
CREATE VIRTUAL TABLE tail USING fts5(
    title, body, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2'
);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {FORMAT};
"""  # noqa: E501


class RowsDamaged(StoreFailed):
    """The rows of an index cannot be read: they are thrown away and added again."""


class EntryRows:
    """The database, open. Every process of a project may write here: that is how additions are
    handed over."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / DATABASE
        self.renewals = 0
        """How often the rows were unusable and thrown away, here or by another process, while this
        one had them open."""
        self._folder = folder
        self._lock = threading.RLock()
        self._open()

    def close(self) -> None:
        with self._lock:
            self._readers.close()
            self._changes.close()
            close_connection(self._connection)

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """One state of the rows for everything that is asked inside."""
        with translate_errors(self.database), self._readers.lend() as connection, connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """All that is done inside, or nothing of it."""
        with self._lock, translate_errors(self.database):
            connection = self._connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def shorten(self) -> None:
        """Nothing that was removed stays in the file or its WAL, as far as nobody else reads there
        right now."""
        with self.writing() as connection:
            connection.execute("INSERT INTO tail (tail) VALUES ('optimize')")
        with self._lock, translate_errors(self.database):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def version(self) -> int:
        """Another number after any commit, by whichever process."""
        with translate_errors(self.database):
            return (self.renewals << _VERSION_BITS) + self._changes.version()

    def moved(self) -> bool:
        """Somebody threw the rows away: what we hold open is no longer what is there."""
        try:
            return self.database.stat().st_ino != self._inode
        except OSError:
            return True

    def renew(self) -> None:
        """Opens what is there now, or makes it anew where that cannot be used."""
        with self._lock:
            self.close()
            self._open()
            self.renewals += 1

    def _open(self) -> None:
        with opening_lock(self._folder, _TUNING.patience), translate_errors(self.database):
            try:
                self._connection = _prepared(self.database)
            except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, _OtherFormat):
                _throw_away(self.database)
                self.renewals += 1
                self._connection = _prepared(self.database)
        self._inode = self.database.stat().st_ino
        open_one = partial(connect, self.database, _TUNING, reading=True)
        self._readers = Readers(open_one)
        self._changes = DataVersion(open_one)


def writer_lock(folder: Path) -> FileLock:
    """The lock of the one process that folds an index; the others read it."""
    return FileLock(folder / "writer")


def discard_rows(folder: Path) -> None:
    """The rows of an index, with all that is beside them."""
    with opening_lock(folder, _TUNING.patience):
        _throw_away(folder / DATABASE)


def read_number(connection: apsw.Connection, sql: str, given: Any = ()) -> int:
    """The one number that a statement gives; 0 where it gives none."""
    row = connection.execute(sql, given).fetchone()
    return int(row[0]) if row and row[0] else 0


def to_column(text: str) -> str | bytes:
    """Text as a column takes it: a path may hold what is no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def from_column(column: object) -> str:
    return column.decode("utf-8", "surrogatepass") if isinstance(column, bytes) else str(column)


@contextmanager
def translate_errors(database: Path) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise _translated(error, database) from error


def _translated(error: apsw.Error, database: Path) -> StoreFailed:
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(f"another process kept {database} locked for too long; try again")
        case apsw.FullError():
            return DiskFull(
                f"the disk that holds {database} is full; make room: the index goes on from "
                f"where it is"
            )
        case apsw.CorruptError() | apsw.NotADBError() | apsw.SQLError():
            return RowsDamaged(
                f"{database} is damaged; it is made again from what is kept elsewhere"
            )
        case _:
            return StoreFailed(f"{database} failed: {type(error).__name__}: {error}")


class _OtherFormat(Exception):
    """Written by another version of these tables."""


def _prepared(database: Path) -> apsw.Connection:
    os.close(open_private(database))
    refuse_links(database)
    connection = connect(database, _TUNING)
    try:
        connection.wal_autocheckpoint(_CHECKPOINT_PAGES)
        connection.pragma("secure_delete", 1)  # what is removed is gone from the file, too
        if not read_number(connection, "SELECT count(*) FROM sqlite_schema"):
            connection.pragma("journal_mode", "WAL")
            with connection:
                connection.execute(_SCHEMA)
                # Numbers go on from the time: those of rows that were thrown away are not given
                # again, whoever remembers them.
                connection.execute(
                    "INSERT INTO sqlite_sequence (name, seq) VALUES ('entry', ?)",
                    (time.time_ns() // 1_000_000,),
                )
        _refuse_other_format(connection)
    except BaseException:
        close_connection(connection)
        raise
    return connection


def _refuse_other_format(connection: apsw.Connection) -> None:
    if (connection.pragma("application_id"), connection.pragma("user_version")) != (
        _APPLICATION,
        FORMAT,
    ):
        raise _OtherFormat


def _throw_away(database: Path) -> None:
    for path in (database, *wal_and_shm(database)):
        path.unlink(missing_ok=True)
