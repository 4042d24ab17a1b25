"""The embedded store: one SQLite file in a private folder, shared by every process of a project."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import apsw

from hotset.errors import HotsetError, PageDamaged, StoreBusy, StoreFailed, StoreTooNew
from hotset.files.open import open_private, open_regular, refuse_special
from hotset.files.private_folder import private_folder
from hotset.store.connection import (
    Connection,
    DataVersion,
    Readers,
    Tuning,
    close_connection,
    closing_on_error,
    connect,
    connect_to_read,
    is_open_here,
    translate_errors,
)
from hotset.store.migrations import migrate, refuse_unreadable
from hotset.store.port import (
    Damage,
    Moved,
    Row,
)
from hotset.store.sql_store import SqlStore
from hotset.store.store_files import (
    DATABASE,
    SEAL,
    closing_file,
    mark_in_use,
    opening_lock,
    refuse_links,
    wal_and_shm,
)
from hotset.store.wal import (
    committed_in,
    read_seal,
    refuse_foreign_wal,
    refuse_torn,
    what_is_missing,
)

if TYPE_CHECKING:
    from hotset.nouns.deposit import CommitReceipt, Deposit
    from hotset.store.write_side import WriteSide


_MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Health:
    """What a person may have to act on."""

    ballast_out: bool
    """The reserve on the disk is gone: the disk is full, or nearly."""
    full: bool
    """Nothing is being kept because the disk is full."""
    wal_bytes: int


class SqliteStore(SqlStore):
    """A `Store` in a folder of its own. Use it from any thread; open it anew after a fork."""

    def __init__(
        self,
        folder: Path,
        tuning: Tuning,
        in_use: int,
        connection: Connection,
        *,
        only_read: str = "",
    ) -> None:
        """Use `SqliteStore.open`, or `open_to_look`."""
        self.folder = folder
        self.database = folder / DATABASE
        self.only_read = only_read
        """Why nothing can be added; empty if it can."""
        self._tuning = tuning
        self._in_use = in_use
        self._process = os.getpid()
        self._closed = False
        open_one = partial(connect, self.database, tuning, file=connection.file)
        reads = (
            partial(connect_to_read, self.database, tuning)
            if only_read
            else partial(open_one, reading=True)
        )
        self._readers = Readers(reads)
        self._changes = DataVersion(reads)
        self._first: Connection | None = None if only_read else connection
        """Open until the writer takes it over, or until the end."""
        self._open_one = open_one
        self._starting = threading.Lock()
        self._started: WriteSide | None = None
        if only_read:
            close_connection(connection)

    @classmethod
    def open(
        cls,
        folder: Path,
        tuning: Tuning = Tuning(),  # noqa: B008 - frozen
        *,
        makes_folder: bool = True,
    ) -> Self:
        """Open the store in a folder; creates both if they are missing. One that joined a team
        is kept like a desk of its database."""
        store = cls._open(folder, tuning, makes_folder=makes_folder)
        store._writing()  # noqa: SLF001 - this class's own
        return store

    @classmethod
    def _open(
        cls,
        folder: Path,
        tuning: Tuning,
        *,
        makes_folder: bool = True,
    ) -> Self:
        folder = private_folder(Path(folder), makes=makes_folder)
        in_use = mark_in_use(folder)
        try:
            with opening_lock(folder, tuning.patience), translate_errors(folder / DATABASE):
                connection = _prepare(folder / DATABASE, tuning)
            with closing_on_error(connection):
                return cls(folder, tuning, in_use, connection)
        except BaseException:
            os.close(in_use)
            raise

    @classmethod
    def open_to_look(cls, folder: Path, tuning: Tuning = Tuning()) -> Self:  # noqa: B008 - frozen
        """For commands: a store that cannot be written (a read-only folder, a lost end) can still
        be read. What writes is loaded and started when something is first kept."""
        try:
            return cls._open(folder, tuning)
        except (StoreBusy, StoreTooNew):
            raise
        except StoreFailed as error:
            try:
                return cls._open_to_read(Path(folder), tuning, str(error))
            except (HotsetError, OSError):
                raise error from None

    @classmethod
    def _open_to_read(cls, folder: Path, tuning: Tuning, why: str) -> Self:
        folder = folder.expanduser().absolute()
        database = folder / DATABASE
        for path in (folder, database, *wal_and_shm(database)):
            if path.is_symlink():
                raise StoreFailed(f"{path} is a symbolic link; somebody planted it: remove it")
            if path != folder and path.exists():
                refuse_special(path, path.stat())
        in_use = mark_in_use(folder, writes=False)
        try:
            if not is_open_here(database):
                _refuse_damaged(database)
            with translate_errors(database):
                with closing_on_error(connect_to_read(database, tuning)) as connection:
                    refuse_unreadable(connection, database)
                return cls(folder, tuning, in_use, connection, only_read=why)
        except BaseException:
            os.close(in_use)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what still waits, and leave one file in the folder if no other process uses it."""
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True
        if self._started is not None:
            self._started.close()
        elif self._first is not None:
            close_connection(self._first)
        self._readers.close()
        self._changes.close()
        os.close(self._in_use)

    @cached_property
    def is_shared(self) -> bool:
        from hotset.store.team_link import read_team_link  # noqa: PLC0415 - a reader does without

        return not self.only_read and read_team_link(self.folder) is not None

    def refresh(self) -> bool:
        return not self.is_shared or self._writing().engine.refresh()

    def keep(self, *deposits: Deposit) -> Future[CommitReceipt]:
        return self._writing().writer.keep(deposits)

    def version(self) -> int:
        self._alive()
        with translate_errors(self.database):
            return self._changes.version()

    def waiting(self) -> int:
        """How many groups of deposits still have to go to the team's database."""
        from hotset.store.outbox import count_items  # noqa: PLC0415 - with all that writes

        return self._read(count_items)

    def health(self) -> Health:
        wal, _ = wal_and_shm(self.database)
        writing = self._writing()
        size = wal.stat().st_size if wal.exists() else 0
        return Health(writing.ballast.out, writing.local.full, size)

    def missing(self) -> str:
        """What was committed, by the seal, and is lost; empty if nothing is."""
        sealed = read_seal(
            self.folder
        )  # before the store: a commit made meanwhile must not seem lost
        with self._reading() as connection:
            return what_is_missing(sealed, committed_in(connection))

    def verify(self, moved: Moved | None = None) -> Iterator[Damage]:
        self._alive()
        if missing := self.missing():
            yield Damage(
                "file",
                self.database.name,
                f"{missing}; `hotset repair` saves what is left and lets go of the rest",
            )
        seal = self.folder / SEAL
        with self._reading() as connection:
            commits = committed_in(connection).commits
        # A process that was killed right behind its first commit leaves an empty one.
        begun = seal.exists() and (seal.stat().st_size or commits > 1)
        if begun and read_seal(self.folder) is None:
            yield Damage(
                "file",
                SEAL,
                (
                    "the seal cannot be read, so that a missing end would not be noticed; the "
                    "next commit mends it"
                ),
            )
        from hotset.store.verify import verify_rows  # noqa: PLC0415 - seldom

        yield from self._verify_file()
        yield from verify_rows(self._reading, moved)

    def _verify_file(self) -> Iterator[Damage]:
        try:
            with self._reading() as connection:
                found = [str(text) for (text,) in connection.execute("PRAGMA integrity_check")]
        except PageDamaged as error:
            found = [str(error)]
        for text in found:
            if text != "ok":
                yield Damage("file", self.database.name, text)

    def load(self, rows: Iterable[Row], *, gaps: bool = False) -> int:
        """Import rows. With `gaps`, messages and pages may follow others that are missing, as in an
        export of a repaired store."""
        return self._writing().load(rows, gaps=gaps)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        self._alive()
        with translate_errors(self.database), self._readers.lend() as connection:
            connection.refuse_moved()
            yield connection

    def _writing(self) -> WriteSide:
        """What writes; loaded and started at the first call."""
        self._alive()
        if self._started is None:
            from hotset.store.write_side import WriteSide  # noqa: PLC0415 - a reader does without

            with self._starting:
                if self._first is not None:
                    self._started = WriteSide(
                        self.folder, self._tuning, self._first, self._open_one
                    )
                    self._first = None
        if self._started is None:
            raise StoreFailed(f"nothing can be added: {self.only_read}")
        return self._started

    def _alive(self) -> None:
        if os.getpid() != self._process:
            raise StoreFailed("this store was opened before a fork; open it again in this process")
        if self._closed:
            raise StoreFailed("the store is closed")


def _prepare(database: Path, tuning: Tuning) -> Connection:
    """Create the file with its mode before SQLite sees it: `-wal` and `-shm` inherit it."""
    if not is_open_here(database):  # what is open here was looked at already
        if os.path.lexists(database):
            os.close(open_private(database))
        refuse_links(database)
        _refuse_damaged(database)
        os.close(open_private(database))
    with closing_on_error(connect(database, tuning)) as connection:
        # Where its end is missing it is left as it is: what a repair could save may lie in the WAL
        # behind a damaged place.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        _refuse_missing(connection, database)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        migrate(connection, database)
        connection.refuse_moved()
    return connection


def _refuse_missing(connection: Connection, database: Path) -> None:
    if missing := what_is_missing(read_seal(database.parent), committed_in(connection)):
        raise PageDamaged(
            f"{database} is not whole: {missing}. Put back what is missing, or save what is "
            f"left with: hotset repair"
        )


def _refuse_damaged(database: Path) -> None:
    """Cheap checks, before SQLite touches anything."""
    sealed = read_seal(database.parent)
    refuse_torn(
        database,
        str(sealed)
        if sealed
        else "something that cannot be read"
        if database.with_name(SEAL).exists()
        else "",
    )
    if not database.exists():
        return
    with closing_file(open_regular(database)) as file:
        magic = os.pread(file, len(_MAGIC), 0)
    if magic and magic != _MAGIC:
        raise PageDamaged(
            f"{database} is damaged: it does not begin as a store does. `hotset repair` saves "
            f"what is intact;"
            " if it was never a store, choose another data folder"
        )
    refuse_foreign_wal(database)
