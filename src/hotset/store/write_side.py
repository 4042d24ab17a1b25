"""What a store in a file needs to be written: its transactions, the checkpointer, and the
ballast."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw

from hotset.errors import DiskFull, StoreFailed
from hotset.nouns.deposit import CommitReceipt, Deposit
from hotset.store import exchange
from hotset.store.connection import (
    Connection,
    Tuning,
    close_connection,
    is_full,
    translate_error,
    translate_errors,
    write_transaction,
)
from hotset.store.engine import ImportingEngine, SqlConnection
from hotset.store.port import Row
from hotset.store.store_files import DATABASE, Ballast
from hotset.store.team_link import TeamLink, read_team_link
from hotset.store.wal import Checkpointer, commit, save_lost_wal, sync_seal
from hotset.store.writer import Writer

_Answer = TypeVar("_Answer")
_FULL = "the disk is full; make room, nothing that was kept is lost"


class WriteSide:
    """Made when a process first writes: a command that only reads starts no thread for it."""

    def __init__(
        self,
        folder: Path,
        tuning: Tuning,
        connection: Connection,
        open_one: Callable[[], Connection],
    ) -> None:
        self._folder, self._database = folder, folder / DATABASE
        self._open_one = open_one
        self.ballast = Ballast(folder, tuning.ballast_bytes)
        self._checkpointer = Checkpointer(
            open_one, tuning.checkpoint_pages, partial(sync_seal, folder)
        )
        self.local = SqliteEngine(
            connection, open_one, self.ballast, self._checkpointer, self._database
        )
        self.engine: ImportingEngine = self.local
        if (link := read_team_link(folder)) is not None:
            self.engine = _mirrored(self.local, open_one, link, folder)
        self.writer = Writer(self.engine)

    def load(self, rows: Iterable[Row], *, gaps: bool) -> int:
        """Import rows; see `Store.load`."""
        return self.engine.load(rows, self._folder, gaps=gaps)

    def close(self) -> None:
        """Write what still waits."""
        self.writer.close()
        self.engine.close()
        self._checkpointer.close()


def _mirrored(
    engine: SqliteEngine, open_one: Callable[[], Connection], link: TeamLink, folder: Path
) -> ImportingEngine:
    try:
        from hotset.store.postgres.mirror import MirroredEngine  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise StoreFailed(
            f"{link.project} is a project of a team, which needs psycopg: "
            "pip install 'hotset[teams]'"
        ) from error
    return MirroredEngine(engine, open_one, link, folder)


@contextmanager
def committing(connection: Connection) -> Iterator[None]:
    """A transaction that is on disk at the end of the block."""
    with write_transaction(connection):
        yield
        commit(connection)


class SqliteEngine:
    """A `WriteEngine` over one connection, opened anew after a failure."""

    def __init__(
        self,
        connection: Connection,
        open_one: Callable[[], Connection],
        ballast: Ballast,
        checkpointer: Checkpointer,
        database: Path,
    ) -> None:
        self._open = open_one
        self._ballast = ballast
        self._checkpointer = checkpointer
        self._database = database
        self._connection: Connection | None = self._listening(connection)
        self.full = False
        """The disk was full at the last write, and there is no room yet."""

    def run(self, work: Callable[[SqlConnection], _Answer]) -> _Answer:
        try:
            return self._run(work)
        except BaseException:
            self._disconnect()
            raise

    def _run(self, work: Callable[[SqlConnection], _Answer]) -> _Answer:
        if self.full and not self._ballast.room_again():
            raise DiskFull(_FULL)
        self.full = False
        try:
            return self._commit(work)
        except (apsw.FullError, apsw.IOError) as error:
            if not is_full(error) and self._ballast.has_room:
                raise
            self._disconnect()
            self.full = self._ballast.drop()
            if not self.full:
                raise DiskFull(_FULL) from error
        answer = self._commit(work)
        self.full = not self._ballast.room_again()
        return answer

    def _commit(self, work: Callable[[SqlConnection], _Answer]) -> _Answer:
        if self._connection is None:
            self._connection = self._listening(self._open())
        self._connection.refuse_moved()
        with committing(self._connection):
            return work(self._connection)

    def placed(
        self, connection: SqlConnection, deposits: Sequence[Deposit], kept: CommitReceipt
    ) -> None:
        """Nothing else waits for it."""

    def translate(self, error: BaseException) -> BaseException:
        return translate_error(error, self._database) if isinstance(error, apsw.Error) else error

    def concerns_all(self, error: Exception) -> bool:
        return isinstance(error, apsw.FullError | apsw.IOError | apsw.NoMemError | MemoryError)

    def forget(self, tried: Callable[[], None]) -> None:
        """The words leave the WAL; no other deposit waits for that."""
        self._checkpointer.empty(tried)

    def refresh(self) -> bool:
        return True

    def load(self, rows: Iterable[Row], folder: Path, *, gaps: bool) -> int:
        with translate_errors(self._database):
            connection = self._listening(self._open())
        try:
            return exchange.load(
                connection,
                partial(committing, connection),
                rows,
                partial(translate_errors, self._database),
                folder,
                gaps=gaps,
            )
        finally:
            close_connection(connection)

    def _listening(self, connection: Connection) -> Connection:
        connection.set_wal_hook(self._checkpointer.after_commit)
        return connection

    def _disconnect(self) -> None:
        """Drop the connection: after a failure it is not trusted."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            save_lost_wal(connection)
            close_connection(connection)

    def close(self) -> None:
        self._disconnect()
