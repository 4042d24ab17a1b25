"""The database of an index: its tables, its connections, its generations of folded files, a summary
that loads nothing else, and what becomes of it when it is damaged.

Derived data: commits do not wait for the disk. kill -9 loses nothing, a loss of power perhaps the
last moments, which the sources add again. What cannot be read is thrown away, and the sources begin
anew.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import apsw

from hotset.errors import DiskFull, StoreBusy, StoreFailed
from hotset.files.lock import FileLock
from hotset.files.open import open_private
from hotset.store.connection import (
    DataVersion,
    Readers,
    Tuning,
    close_connection,
    closing_on_error,
    connect,
    write_transaction,
)
from hotset.store.store_files import opening_lock, refuse_links, wal_and_shm

DATABASE = "entries.db"
FORMAT = 1
"""Version of the tables below. If it differs, everything is discarded and added again by its
sources."""

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
    """The rows of an index cannot be read: they are discarded and added again."""


class EntryRows:
    """The open database. Every process of a project may write here: that is how additions are
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
        """One snapshot of the rows for all queries inside."""
        with translate_errors(self.database), self._readers.lend() as connection, connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """A transaction: all or nothing."""
        with self._lock, translate_errors(self.database):
            connection = self._connection
            with write_transaction(connection):
                yield connection
                connection.execute("COMMIT")

    def shorten(self) -> None:
        """Remove deleted data from the file and its WAL, unless another process is reading."""
        with self.writing() as connection:
            connection.execute("INSERT INTO tail (tail) VALUES ('optimize')")
        with self._lock, translate_errors(self.database):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def version(self) -> int:
        """Changes after any commit by any process."""
        with translate_errors(self.database):
            return (self.renewals << _VERSION_BITS) + self._changes.version()

    def moved(self) -> bool:
        """True if another process discarded the rows: our open file is no longer the current
        one."""
        try:
            return self.database.stat().st_ino != self._inode
        except OSError:
            return True

    def renew(self) -> None:
        """Open the current file, or create it anew if it cannot be used."""
        with self._lock:
            self.close()
            self._open()
            self.renewals += 1

    def _open(self) -> None:
        with opening_lock(self._folder, _TUNING.patience), translate_errors(self.database):
            try:
                self._connection = _prepare_connection(self.database)
            except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, _OtherFormat):
                _throw_away(self.database)
                self.renewals += 1
                self._connection = _prepare_connection(self.database)
        self._inode = self.database.stat().st_ino
        open_one = partial(connect, self.database, _TUNING, reading=True)
        self._readers = Readers(open_one)
        self._changes = DataVersion(open_one)


def writer_lock(folder: Path) -> FileLock:
    """The lock of the one process that folds an index; the others read it."""
    return FileLock(folder / "writer")


def discard_rows(folder: Path) -> None:
    """Delete the rows of an index, with all files beside them."""
    with opening_lock(folder, _TUNING.patience):
        _throw_away(folder / DATABASE)


def read_number(connection: apsw.Connection, sql: str, given: Any = ()) -> int:
    """The number that a statement returns; 0 if it returns none."""
    row = connection.execute(sql, given).fetchone()
    return int(row[0]) if row and row[0] else 0


def to_column(text: str) -> str | bytes:
    """Text as a column takes it: a path may contain invalid UTF-8."""
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
        raise _translate_error(error, database) from error


def _translate_error(error: apsw.Error, database: Path) -> StoreFailed:
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


def _prepare_connection(database: Path) -> apsw.Connection:
    os.close(open_private(database))
    refuse_links(database)
    with closing_on_error(connect(database, _TUNING)) as connection:
        connection.wal_autocheckpoint(_CHECKPOINT_PAGES)
        connection.pragma("secure_delete", 1)  # what is removed is gone from the file, too
        if not read_number(connection, "SELECT count(*) FROM sqlite_schema"):
            connection.pragma("journal_mode", "WAL")
            with connection:
                connection.execute(_SCHEMA)
                # Numbers go on from the time: those of rows that were thrown away are not given
                # again.
                connection.execute(
                    "INSERT INTO sqlite_sequence (name, seq) VALUES ('entry', ?)",
                    (time.time_ns() // 1_000_000,),
                )
        _refuse_other_format(connection)
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


FOLDERS = "generation-"
"""Prefix of a generation's folder, before its number."""


class FilesDamaged(StoreFailed):
    """Files of a generation are missing or cannot be read: another one is made."""


@dataclass(frozen=True, slots=True)
class Generation:
    """One set of folded structures, in its own folder."""

    number: int
    identity: str
    """What made it: see `local.identity`. A damaged generation has an identity that matches no
    process."""
    folded: int
    """Entries with numbers up to this one are in it."""
    rows: int
    """Valid vectors in it; anything beyond them in a file is an unfinished fold."""
    serving: bool


class Generations:
    """The sets of folded files: which one serves, how far it was folded, and the one being
    built."""

    def __init__(self, rows: EntryRows) -> None:
        self._rows = rows

    def every(self) -> list[Generation]:
        with self._rows.reading() as connection:
            return [
                _generation(row)
                for row in connection.execute("SELECT * FROM generation ORDER BY number")
            ]

    def new(self, identity: str) -> Generation:
        """Its number is the time: no folder or open file ever had it before."""
        with self._rows.writing() as connection:
            called = max(
                time.time_ns(), 1 + read_number(connection, "SELECT max(number) FROM generation")
            )
            connection.execute("INSERT INTO generation VALUES (?, ?, 0, 0, 0)", (called, identity))
            return Generation(called, identity, 0, 0, serving=False)

    def folded(self, generation: Generation, forgotten: Sequence[int]) -> None:
        """Commit a fold: what it holds, what it forgot, and what the tail no longer needs."""
        with self._rows.writing() as connection:
            connection.execute(
                "UPDATE generation SET folded = ?, rows = ?, serving = ? WHERE number = ?",
                (generation.folded, generation.rows, generation.serving, generation.number),
            )
            if generation.serving:
                connection.execute("DELETE FROM generation WHERE number < ?", (generation.number,))
                connection.executemany(
                    "DELETE FROM gone WHERE doc = ?", ((doc,) for doc in forgotten)
                )
                _shorten_tail(connection, generation.folded)

    def drop_abandoned(self, identity: str) -> bool:
        """While one of this identity serves, drop what others began and did not finish. True if
        there was any."""
        every = self.every()
        if not any(each.serving and each.identity == identity for each in every):
            return False
        left = [(each.number,) for each in every if not each.serving and each.identity != identity]
        if left:
            with self._rows.writing() as connection:
                connection.executemany(
                    "DELETE FROM generation WHERE number = ? AND NOT serving", left
                )
        return bool(left)

    def condemn(self, generation: int) -> bool:
        """Mark its files as damaged: one that serves goes on as far as it can while another is
        built. True if it was still there."""
        with self._rows.writing() as connection:
            connection.execute(
                "DELETE FROM generation WHERE number = ? AND NOT serving", (generation,)
            )
            gone = connection.changes()
            sql = (
                "UPDATE generation SET identity = json_set(identity, "
                "'$.damaged', 1) WHERE number "
                "= ?"
            )
            connection.execute(sql, (generation,))
            return bool(gone or connection.changes())

    def removed(self) -> list[int]:
        """Entries that were removed and may still be folded somewhere."""
        with self._rows.reading() as connection:
            return removed_docs(connection)

    def behind(self, generation: Generation) -> bool:
        """True if there is something to fold into it."""
        sql = "SELECT EXISTS (SELECT 1 FROM entry WHERE doc > ?) OR EXISTS (SELECT 1 FROM gone)"
        with self._rows.reading() as connection:
            return bool(read_number(connection, sql, (generation.folded,)))

    def lag(self, generation: Generation | None) -> int:
        """How many entries are not folded into it."""
        with self._rows.reading() as connection:
            return read_number(
                connection,
                "SELECT count(*) FROM entry WHERE doc > ?",
                (generation.folded if generation else 0,),
            )

    def done(self, generation: Generation) -> float:
        """The share of all entries that is folded into it."""
        sql = "SELECT count(*) FROM entry WHERE doc <= ?"
        with self._rows.reading() as connection:
            every = read_number(connection, "SELECT count(*) FROM entry")
            return read_number(connection, sql, (generation.folded,)) / max(1, every)


@lru_cache(maxsize=8)
def made_by(identity: str) -> Mapping[str, Any]:
    try:
        return dict(json.loads(identity))
    except (ValueError, TypeError):
        return {}


def embedder_of(identity: str) -> str:
    return str(made_by(identity).get("embedder", ""))


def serving_generation(connection: apsw.Connection) -> Generation | None:
    row = connection.execute("SELECT * FROM generation WHERE serving").fetchone()
    return None if row is None else _generation(row)


def removed_docs(connection: apsw.Connection) -> list[int]:
    """Entries that the folded structures may still hold and must not show."""
    rows: Any = connection.execute("SELECT doc FROM gone")
    return [doc for (doc,) in rows]


def _shorten_tail(connection: apsw.Connection, folded: int) -> None:
    if read_number(connection, "SELECT EXISTS (SELECT 1 FROM entry WHERE doc > ?)", (folded,)):
        connection.execute("DELETE FROM tail WHERE rowid <= ?", (folded,))
    else:
        connection.execute("INSERT INTO tail (tail) VALUES ('delete-all')")


def _generation(row: Any) -> Generation:
    number, identity, folded, rows, serving = row
    return Generation(number, identity, folded, rows, serving=bool(serving))


_LOOK_TUNING = Tuning(ballast_bytes=0, patience=1.0)


@dataclass(frozen=True, slots=True)
class IndexSummary:
    entries: int = 0
    waiting: int = 0
    """Of these, the ones found by words already and not yet folded."""
    embedder: str = ""
    """The one that made the vectors; empty if there are none."""
    writer: int | None = None
    """The process that folds, if any does."""
    building: bool = False
    """True while a new generation is built beside the one that serves."""
    watermarks: Mapping[str, int] = field(default_factory=dict)
    """How far each source was followed."""
    trouble: str = ""


def summarise_index(folder: Path, sealing: int) -> IndexSummary | None:
    """State of an index, from its database alone: nothing is created, repaired or loaded. None if
    there is no index.

    `sealing` is the current version of the sealing rules.
    """
    database = folder / DATABASE
    if not database.exists():
        return None
    writer = writer_lock(folder).holder()
    try:
        with _looking_into(database) as connection:
            return _read_summary(connection, sealing, writer)
    except StoreFailed as error:
        return IndexSummary(writer=writer, trouble=str(error))


@dataclass(frozen=True, slots=True)
class SettledIndex:
    """An index in which nothing waits."""

    watermark: int
    """How far the source was followed."""
    made_by: str
    """Rules and engines, as far as the rows have them."""


def read_settled(folder: Path, source: str) -> SettledIndex | None:
    """None if anything waits to be folded, sealed again or rebuilt, if rows cannot be read, or a
    folder is missing."""
    database = folder / DATABASE
    if not database.exists():
        return None
    try:
        with _looking_into(database) as connection:
            generation = serving_generation(connection)
            if generation is None or any(read_number(connection, sql) for sql in _UNREST):
                return None
            if read_number(
                connection,
                "SELECT EXISTS (SELECT 1 FROM entry WHERE doc > ?)",
                (generation.folded,),
            ):
                return None
            reached: Any = connection.execute(
                "SELECT number, sealing FROM watermark WHERE name = ?", (source,)
            ).fetchall()
            written = read_number(connection, "PRAGMA user_version")
    except StoreFailed:
        return None
    if (
        written != FORMAT
        or len(reached) != 1
        or not (folder / f"{FOLDERS}{generation.number}").is_dir()
    ):
        return None
    (watermark, sealing), *_ = reached
    return SettledIndex(watermark, f"{generation.identity} {sealing}")


_UNREST = (
    "SELECT EXISTS (SELECT 1 FROM generation WHERE NOT serving)",
    "SELECT EXISTS (SELECT 1 FROM gone)",
    "SELECT count(DISTINCT sealing) > 1 FROM watermark",
)


@contextmanager
def _looking_into(database: Path) -> Iterator[apsw.Connection]:
    with translate_errors(database):
        connection = connect(database, _LOOK_TUNING, reading=True)
        try:
            with connection:  # one state of the rows for all questions
                yield connection
        finally:
            close_connection(connection)


def _read_summary(connection: apsw.Connection, sealing: int, writer: int | None) -> IndexSummary:
    generation = serving_generation(connection)
    rows: Any = connection.execute(
        "SELECT name, number FROM watermark WHERE sealing = ?", (sealing,)
    )
    folded = generation.folded if generation else 0
    return IndexSummary(
        entries=read_number(connection, "SELECT count(*) FROM entry"),
        waiting=read_number(connection, "SELECT count(*) FROM entry WHERE doc > ?", (folded,)),
        embedder=embedder_of(generation.identity) if generation else "",
        writer=writer,
        building=bool(
            read_number(connection, "SELECT EXISTS (SELECT 1 FROM generation WHERE NOT serving)")
        ),
        watermarks={from_column(name): reached for name, reached in rows},
    )


_SEEN_SECONDS = 5.0  # the process that folds looks every second
_POLL_SECONDS = 0.05


def discard_index(folder: Path) -> int | None:
    """Remove an index from the disk, also while other processes have it open: they notice and begin
    anew. Returns the process that did not release it in time."""
    discard_rows(folder)
    for generation in folder.glob(f"{FOLDERS}*"):
        shutil.rmtree(generation, ignore_errors=True)
    until = time.monotonic() + _SEEN_SECONDS
    while (holder := writer_lock(folder).holder()) is not None and not (folder / DATABASE).exists():
        if time.monotonic() > until:
            return holder
        time.sleep(_POLL_SECONDS)
    return None


def folder_of(folder: Path, generation: Generation) -> Path:
    return folder / f"{FOLDERS}{generation.number}"
