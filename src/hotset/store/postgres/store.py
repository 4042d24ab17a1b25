"""A store in PostgreSQL, shared by every gateway of a team: one desk of it."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import psycopg
from psycopg import errors

from hotset.errors import StoreFailed
from hotset.store.engine import SqlConnection
from hotset.store.port import Damage, Moved, Row
from hotset.store.postgres.connection import (
    DeskReaders,
    PostgresConnection,
    ReaderLimits,
    translate_error,
    translate_errors,
)
from hotset.store.postgres.schema import address
from hotset.store.sql_store import SqlStore

if TYPE_CHECKING:
    from hotset.nouns.deposit import CommitReceipt, Deposit
    from hotset.store.writer import Writer

_Answer = TypeVar("_Answer")


class PostgresStore(SqlStore):
    """A `Store` of one desk. Use it from any thread; open it anew after a fork."""

    def __init__(self, dsn: str, token: str, limits: ReaderLimits = ReaderLimits()) -> None:  # noqa: B008 - frozen
        """`token` says whose desk it is."""
        self.where = address(dsn)
        self._open_one = partial(PostgresConnection, dsn, token)
        self._pool = DeskReaders(self._open_one, limits)
        self._starting = threading.Lock()
        self._started: Writer | None = None
        self._engine: PostgresEngine | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what still waits."""
        if self._closed:
            return
        self._closed = True
        if self._started is not None and self._engine is not None:
            self._started.close()
            self._engine.close()
        self._pool.close()

    @property
    def is_shared(self) -> bool:
        return True

    def refresh(self) -> bool:
        return True

    def keep(self, *deposits: Deposit) -> Future[CommitReceipt]:
        return self._writer().keep(deposits)

    def version(self) -> int:
        self._alive()
        with translate_errors(self.where), self._pool.lend() as connection:
            return connection.version()

    def verify(self, moved: Moved | None = None) -> Iterator[Damage]:
        from hotset.store.verify import verify_rows  # noqa: PLC0415 - seldom

        return verify_rows(self._reading, moved)

    def load(self, rows: Iterable[Row], *, gaps: bool = False) -> int:
        """Import rows. With `gaps`, messages and pages may follow others that are missing."""
        from hotset.store import exchange  # noqa: PLC0415 - seldom

        self._alive()
        translating = partial(translate_errors, self.where)
        with tempfile.TemporaryDirectory(prefix="hotset-") as folder:
            with translating():
                connection = self._open_one()
            try:
                return exchange.load(
                    connection,
                    connection.committing,
                    rows,
                    translating,
                    Path(folder),
                    gaps=gaps,
                )
            finally:
                connection.close()

    @contextmanager
    def _reading(self) -> Iterator[SqlConnection]:
        self._alive()
        with translate_errors(self.where), self._pool.lend() as connection:
            yield connection

    def _writer(self) -> Writer:
        """What writes; loaded and started at the first call."""
        self._alive()
        with self._starting:
            if self._started is None:
                from hotset.store.writer import Writer  # noqa: PLC0415 - a reader does without

                self._engine = PostgresEngine(self._open_one, self.where)
                self._started = Writer(self._engine)
            return self._started

    def _alive(self) -> None:
        if self._closed:
            raise StoreFailed("the store is closed")


class PostgresEngine:
    """A `WriteEngine` over one connection, opened anew after a failure."""

    def __init__(self, open_one: Callable[[], PostgresConnection], where: str) -> None:
        self._open = open_one
        self._where = where
        self._connection: PostgresConnection | None = None

    def run(self, work: Callable[[SqlConnection], _Answer]) -> _Answer:
        try:
            connection = self._begun()
            with connection.ending():
                return work(connection)
        except BaseException:
            self.close()
            raise

    def _begun(self) -> PostgresConnection:
        """A connection that has begun to write. The one used last may have been cut off since."""
        if self._connection is not None:
            try:
                self._connection.begin_to_write()
            except psycopg.OperationalError:
                self.close()
            else:
                return self._connection
        self._connection = self._open()
        self._connection.begin_to_write()
        return self._connection

    def placed(
        self, connection: SqlConnection, deposits: Sequence[Deposit], kept: CommitReceipt
    ) -> None:
        """Nothing else waits for it."""

    def translate(self, error: BaseException) -> BaseException:
        return translate_error(error, self._where) if isinstance(error, psycopg.Error) else error

    def concerns_all(self, error: Exception) -> bool:
        own = isinstance(error, errors.ProgramLimitExceeded)
        return not own and isinstance(error, psycopg.OperationalError | MemoryError)

    def forget(self, tried: Callable[[], None]) -> None:
        tried()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
