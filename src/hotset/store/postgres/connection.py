"""Connections to PostgreSQL, each for one desk, and what their errors mean."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import errors
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Format, TransactionStatus

from hotset.errors import (
    BadInput,
    DiskFull,
    HotsetError,
    PageDamaged,
    StoreBusy,
    StoreFailed,
)
from hotset.store.engine import SqlCursor
from hotset.store.postgres.dialect import Desk, translate

_AT_ONCE = 256  # rows of a stream in memory
# Nobody waits for long: not for another gateway that holds the desk, nor for one that went silent.
_SHOW = """
    SELECT set_config('hotset.token', $1, true), set_config('lock_timeout', '5s', true),
        set_config('idle_in_transaction_session_timeout', '10s', true)
"""
_PATIENCE: dict[str, Any] = {
    "connect_timeout": 3,  # seconds
    "tcp_user_timeout": 5000,  # milliseconds without an answer, until a connection counts as lost
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}
_OWN_DESK = "SELECT project::text, desk::text FROM own_desk()"
_VERSION = "SELECT commits FROM own_desk()"
_COUNT = "SELECT count_commit($1)"
_HASH_BYTES = 32
_TEXT, _VARCHAR = 25, 1043
_HASH = re.compile(r"\\x[0-9a-f]{64}")
_ESCAPE = "\x01"
_ESCAPED = re.compile(_ESCAPE + "(.)", re.DOTALL)
_MEANS = {_ESCAPE: _ESCAPE, "0": "\0", "x": "\\x"}


def escape(text: str) -> str:
    """A text that PostgreSQL can hold, which has no NUL, and that is not taken for a hash."""
    if "\0" in text or _ESCAPE in text:
        text = text.replace(_ESCAPE, _ESCAPE * 2).replace("\0", f"{_ESCAPE}0")
    return f"{_ESCAPE}x{text[2:]}" if _HASH.fullmatch(text) else text


def unescape(text: str) -> str:
    return _ESCAPED.sub(lambda found: _MEANS[found[1]], text) if _ESCAPE in text else text


class _TextDumper(Dumper):
    format = Format.TEXT

    def dump(self, obj: str) -> bytes:
        return escape(obj).encode()


class _HashDumper(Dumper):
    """A hash goes untyped, as a text that a column of hashes takes as well as one of bytes."""

    format = Format.TEXT

    def dump(self, obj: bytes) -> bytes:
        return b"\\x" + obj.hex().encode()


class _BytesDumper(Dumper):
    """Bytes, told from hashes by their length."""

    format = Format.BINARY
    oid = 17

    def get_key(self, obj: bytes, format: Any) -> Any:  # noqa: ARG002 - psycopg's
        return (bytes, _HashDumper) if len(obj) == _HASH_BYTES else bytes

    def upgrade(self, obj: bytes, format: Any) -> Dumper:  # noqa: ARG002 - psycopg's
        return _HashDumper(bytes, self.connection) if len(obj) == _HASH_BYTES else self

    def dump(self, obj: bytes) -> bytes:
        return obj


class _TextLoader(Loader):
    format = Format.BINARY

    def load(self, data: Any) -> str:
        return unescape(bytes(data).decode())


class _HashLoader(Loader):
    format = Format.BINARY

    def load(self, data: Any) -> str | bytes:
        text = bytes(data).decode()
        return bytes.fromhex(text[2:]) if _HASH.fullmatch(text) else unescape(text)


class PostgresConnection:
    """A connection of one desk: every statement sees and writes its rows alone."""

    def __init__(self, dsn: str, token: str) -> None:
        self._token = token
        self._changes = 0
        self._depth = 0
        self._native = psycopg.connect(
            make_conninfo(dsn, **{**_PATIENCE, **conninfo_to_dict(dsn)}),
            autocommit=True,
            # Behind a pooler of transactions a prepared statement may be on another connection.
            prepare_threshold=None,
            cursor_factory=psycopg.RawCursor,
            application_name="hotset",
        )
        adapters = self._native.adapters
        adapters.register_dumper(str, _TextDumper)
        adapters.register_dumper(bytes, _BytesDumper)
        adapters.register_loader(_TEXT, _TextLoader)
        adapters.register_loader(_VARCHAR, _HashLoader)
        if (row := self._ask(_OWN_DESK)) is None:
            self.close()
            raise StoreFailed(
                "the token for the team's store is not good any more; ask an owner of the project "
                "for another invitation, then: hotset team join"
            )
        self._desk = Desk(*row)

    def _ask(self, sql: str) -> Any:
        """The row of a statement that names no table."""
        with self._native.pipeline():
            self._begin("READ ONLY")
            cursor = self._native.execute(sql)
            self._native.execute("COMMIT")
        return cursor.fetchone()

    def execute(self, sql: str, given: Any = None, /) -> SqlCursor:
        if self._depth:
            cursor = self._send(sql, given)
        else:  # a statement of its own is one trip to the server
            with self._native.pipeline():
                self._begin("READ ONLY")
                cursor = self._send(sql, given)
                self._native.execute("COMMIT")
        self._changes = max(0, cursor.rowcount)
        return cursor

    def _send(self, sql: str, given: Any) -> psycopg.RawCursor[Any]:
        statement = translate(sql)
        cursor = psycopg.RawCursor(self._native)
        return cursor.execute(statement.sql, statement.values(self._desk, given), binary=True)

    def stream(self, sql: str, given: Any = None, /) -> Iterator[Any]:
        statement = translate(sql)
        with psycopg.RawServerCursor(self._native, "stream") as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute(statement.sql, statement.values(self._desk, given), binary=True)
            yield from cursor

    def changes(self) -> int:
        return self._changes

    def begin(self, how: str) -> None:
        """Begin a transaction of this desk."""
        with self._native.pipeline():
            self._begin(how)
        self._depth = 1

    def begin_to_write(self, batch: str = "") -> int:
        """The same, and count it: the desk is ours until its end. Returns the commit's number.
        `batch` is a name by which it can be found whether it was committed."""
        with self._native.pipeline():
            self._begin("")
            counted = self._native.execute(_COUNT, [batch])
        self._depth = 1
        [number] = counted.fetchone() or (None,)
        if number is None:
            self.end("ROLLBACK")
            raise StoreFailed("you may read this project but not write to it; ask an owner")
        return int(number)

    def _begin(self, how: str) -> None:
        self._native.execute(f"BEGIN {how}")
        self._native.execute(_SHOW, [self._token])

    def has_batch(self, batch: str) -> bool:
        """True if a transaction with this name was committed."""
        found = self.execute("SELECT 1 FROM batch WHERE id = ?", (batch,)) if batch else None
        return found is not None and found.fetchone() is not None

    def commit(self, statements: Sequence[tuple[str, Any]]) -> None:
        """Run these and commit, in one trip to the server. Raises if it was not committed."""
        with self._native.pipeline():
            for sql, given in statements:
                self._send(sql, given)
            done = self._native.execute("COMMIT")
        self._depth = 0
        _refuse_undone(done, "COMMIT")

    def read_all(self, statements: Sequence[tuple[str, Any]]) -> list[list[Any]]:
        """The rows of each of these, in one trip to the server and as of one moment."""
        with self._native.pipeline():
            if not self._depth:
                self._begin("ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursors = [self._send(sql, given) for sql, given in statements]
            if not self._depth:
                self._native.execute("COMMIT")
        return [cursor.fetchall() for cursor in cursors]

    def version(self) -> int:
        """How many transactions were counted."""
        [number] = self._ask(_VERSION) or (0,)
        return int(number)

    def end(self, how: str) -> None:
        """End the transaction. Raises if it was not committed."""
        self._depth = 0
        if how == "ROLLBACK" and self._native.closed:
            return
        _refuse_undone(self._native.execute(how), how)

    @contextmanager
    def committing(self) -> Iterator[None]:
        """A transaction that is durable at the end of the block, and that no other of its desk runs
        beside."""
        self.begin_to_write()
        with self.ending():
            yield

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Commits at the end of the block what was begun; on an error nothing of it stays."""
        try:
            yield
        except BaseException:
            self.end("ROLLBACK")
            raise
        self.end("COMMIT")

    def __enter__(self) -> Self:
        if self._depth:
            self._depth += 1
        else:
            self.begin("ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return self

    def __exit__(
        self,
        error: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._depth > 1:
            self._depth -= 1
        elif self._native.info.transaction_status is not TransactionStatus.UNKNOWN:
            self.end("COMMIT" if error is None else "ROLLBACK")

    @property
    def is_lost(self) -> bool:
        """True if the server is no longer there."""
        return self._native.closed

    @property
    def is_usable(self) -> bool:
        return (
            not self._native.closed
            and self._native.info.transaction_status is TransactionStatus.IDLE
        )

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._native.close()


def _refuse_undone(ended: psycopg.Cursor[Any], how: str) -> None:
    """A transaction that failed answers COMMIT with ROLLBACK, and no error."""
    if ended.statusmessage != how:
        raise StoreFailed("a transaction was not committed; nothing of it is kept")


@contextmanager
def translate_errors(where: str) -> Iterator[None]:
    """Raise PostgreSQL's errors as ours, with what to do next."""
    try:
        yield
    except psycopg.Error as error:
        raise translate_error(error, where) from error


_MEANING: tuple[tuple[tuple[type[psycopg.Error], ...], type[HotsetError], str], ...] = (
    (
        (errors.DiskFull,),
        DiskFull,
        "the disk of {where} is full; make room, nothing that was kept is lost",
    ),
    (
        (errors.DataCorrupted, errors.IndexCorrupted),
        PageDamaged,
        "{where} is damaged ({said}); bring back a backup",
    ),
    (
        (errors.ProgramLimitExceeded, errors.UntranslatableCharacter),
        BadInput,
        "a row that {where} cannot hold: {said}",
    ),
    (
        (errors.LockNotAvailable, errors.QueryCanceled, errors.TooManyConnections),
        StoreBusy,
        "{where} took too long, or has no room for another connection: {said}; try again",
    ),
    (
        (errors.UndefinedTable,),
        StoreFailed,
        "{where} has no store of hotset; make one: hotset team create",
    ),
    (
        (errors.InvalidPassword, errors.InvalidAuthorizationSpecification),
        StoreFailed,
        "{where} lets nobody in with this name and password",
    ),
    ((psycopg.OperationalError,), StoreFailed, "{where} does not answer: {said}"),
    ((psycopg.Error,), StoreFailed, "{where} failed: {said}"),
)


def translate_error(error: psycopg.Error, where: str) -> HotsetError:
    """The first meaning that fits."""
    kind, sentence = next(
        (kind, sentence) for kinds, kind, sentence in _MEANING if isinstance(error, kinds)
    )
    return kind(sentence.format(where=where, said=_first_line(error)))


def _first_line(error: psycopg.Error) -> str:
    """What the server said, without the row that it concerned: that is content."""
    return (error.diag.message_primary or str(error)).splitlines()[0]


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    connections: int = 4
    """At once: a reader more waits."""
    patience: float = 10.0
    """Seconds that it waits."""


class DeskReaders:
    """Connections of one desk, lent to one thread at a time."""

    def __init__(self, open_one: Callable[[], PostgresConnection], limits: ReaderLimits) -> None:
        self._open = open_one
        self._patience = limits.patience
        self._idle: deque[PostgresConnection] = deque()
        self._free = threading.BoundedSemaphore(limits.connections)
        self._closed = False

    @contextmanager
    def lend(self) -> Iterator[PostgresConnection]:
        if not self._free.acquire(timeout=self._patience):
            raise StoreBusy("all connections to the store are in use; try again")
        try:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._open()
            try:
                yield connection
            finally:
                if self._closed or not connection.is_usable:
                    connection.close()
                else:
                    self._idle.append(connection)
        finally:
            self._free.release()

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()
