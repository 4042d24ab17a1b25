"""A desk of the team's database and the store of this machine, kept alike.

What is written here goes to the database in the same transaction, and what other gateways of the
desk wrote comes here first. So everything is read from this machine alone. While the database is
away, deposits are placed here and wait in the outbox; then they are placed there, in their order.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import apsw
import msgspec
import psycopg

from hotset.errors import HotsetError, StoreFailed
from hotset.files.breaker import Breaker
from hotset.files.lock import hold_lock
from hotset.files.scope import PROCESS
from hotset.nouns.deposit import CommitReceipt, Deposit
from hotset.nouns.note import Scope
from hotset.nouns.turn import Event, TurnRef
from hotset.store import exchange, outbox
from hotset.store.connection import Connection, close_connection
from hotset.store.engine import SqlConnection, SqlCursor
from hotset.store.memory_tables import TABLES
from hotset.store.outbox import OutboxItem
from hotset.store.placement import merge_receipts, place
from hotset.store.port import Row, Writing
from hotset.store.postgres.connection import PostgresConnection, translate_errors
from hotset.store.postgres.schema import address
from hotset.store.sql_lookup import SqlLookup
from hotset.store.tables import GIST, NOTE, is_blank
from hotset.store.team_link import TeamLink
from hotset.store.write_side import SqliteEngine, committing
from hotset.store.writer import ERASE, write

_Answer = TypeVar("_Answer")

_LOOK_EVERY = 5.0  # seconds, for what other gateways wrote
_TRY_EVERY = 0.5  # seconds, while the database is away
_DRAINING = "team.draining"
_PORTION = 32  # commits fetched at once
_DRAINED_AT_ONCE = 16  # groups of deposits in one transaction
_SCOPE_AT = [name for name, _ in NOTE.columns].index("scope")


class _Refused(Exception):
    """The database does not let us write: a token that has ended, or a reader's."""


class _OthersWait(Exception):
    """Another process of this machine has put something into the outbox: it goes first."""


class MirroredEngine:
    """A `WriteEngine` that writes to this machine and to the team's database."""

    def __init__(
        self,
        local: SqliteEngine,
        open_local: Callable[[], Connection],
        link: TeamLink,
        folder: Path,
    ) -> None:
        self._local = local
        self._folder = folder
        self._open_local = open_local
        self._open_remote = link.connect
        self._where = address(link.dsn)
        self._remote: PostgresConnection | None = None
        self._door = threading.Lock()
        """One transaction at a time: the writer's, or what the background fetches."""
        self._batch = ""
        """The transaction that was tried with what is written now; its end may not be known."""
        connection = open_local()
        self._known = outbox.known_commit(connection)
        self.is_alone = outbox.count_items(connection) > 0
        """Deposits go to the outbox: the database is away, or does not have all of them yet."""
        close_connection(connection)
        self._breaker = Breaker("the team's database", after=1, rest=_TRY_EVERY, longest=_TRY_EVERY)
        """For people to see: who tries, and when, is decided here."""
        self._wake = threading.Event()
        self._closing = False
        self._scope = PROCESS.child("team")
        self._thread = self._scope.thread(self._tend, "hotset-team")

    def run(self, work: Callable[[SqlConnection], _Answer]) -> _Answer:
        with self._door:
            self._batch = ""
            if not self.is_alone:
                try:
                    return self._together(work)
                except (psycopg.Error, _Refused) as error:
                    self._go_alone(error)
                except _OthersWait:
                    self._go_alone()
            return self._local.run(work)

    def _together(self, work: Callable[[SqlConnection], _Answer]) -> _Answer:
        """Write to both, in the order of the database."""
        self._batch = str(uuid.uuid4())
        remote, number = self._begun(self._batch)
        has_ended = False

        def write_to_both(connection: SqlConnection) -> _Answer:
            nonlocal has_ended
            if outbox.count_items(connection):
                raise _OthersWait
            recording = RecordingConnection(connection)
            answer = work(recording)
            if not has_ended:  # the disk may have been full the first time
                remote.commit(recording.written)
                has_ended = True
            outbox.set_known_commit(connection, number)
            return answer

        try:
            if number - 1 != self._known:
                self._fetch(remote, self._known, number - 1)
            answer = self._local.run(write_to_both)
        except BaseException:
            if not has_ended:
                remote.close()
                self._remote = None
            raise
        self._known = number
        return answer

    def _begun(self, batch: str) -> tuple[PostgresConnection, int]:
        """A connection that has begun to write. The one used last may have been cut off since."""
        if self._remote is not None:
            with suppress(psycopg.Error, StoreFailed):
                return self._remote, self._remote.begin_to_write(batch)
            self._disconnect()
        try:
            self._remote = self._open_remote()
            return self._remote, self._remote.begin_to_write(batch)
        except StoreFailed as error:
            raise _Refused(str(error)) from error

    def _fetch(self, remote: PostgresConnection, after: int, to: int) -> None:
        """Bring here what other gateways wrote in these commits."""
        for start in range(after, to, _PORTION):
            end = min(to, start + _PORTION)
            found = remote.read_all([(sql, (start, end)) for _, sql in _CHANGED])
            rows = {name: some for (name, _), some in zip(_CHANGED, found, strict=True)}
            self._local.run(partial(_take_rows, rows, end))
            self._known = end
            if rows[_ERASED]:
                self._local.forget(lambda: None)

    def placed(
        self, connection: SqlConnection, deposits: Sequence[Deposit], kept: CommitReceipt
    ) -> None:
        if self.is_alone:
            outbox.append_item(connection, self._batch, deposits, kept.turn)

    def translate(self, error: BaseException) -> BaseException:
        return self._local.translate(error)

    def concerns_all(self, error: Exception) -> bool:
        return isinstance(error, psycopg.Error) or self._local.concerns_all(error)

    def forget(self, tried: Callable[[], None]) -> None:
        self._local.forget(tried)

    def refresh(self) -> bool:
        with self._door:
            if self.is_alone:
                return False
            try:
                self._remote = self._remote or self._open_remote()
                newest = self._remote.version()
                if newest > self._known:
                    self._fetch(self._remote, self._known, newest)
            except (psycopg.Error, StoreFailed) as error:
                self._go_alone(error)
        return not self.is_alone

    def _go_alone(self, error: Exception | None = None) -> None:
        """Write here alone until everything that waits is there."""
        if error is not None:
            self._breaker.failed(type(error).__name__)
        self._disconnect()
        self.is_alone = True
        self._wake.set()

    def load(self, rows: Iterable[Row], folder: Path, *, gaps: bool) -> int:
        """Import rows into the database, and from there to this machine."""
        translating = partial(translate_errors, self._where)
        with translating():
            remote = self._open_remote()
        try:
            new = exchange.load(remote, remote.committing, rows, translating, folder, gaps=gaps)
            with translating(), self._door:
                self._fetch(remote, self._known, remote.version())
        finally:
            remote.close()
        return new

    def close(self) -> None:
        """What waits in the outbox goes out with the next start."""
        self._closing = True
        self._wake.set()
        self._thread.join()
        self._disconnect()
        self._local.close()

    def _disconnect(self) -> None:
        if self._remote is not None:
            self._remote.close()
            self._remote = None

    def _tend(self) -> None:
        """In the background: send what waits, and fetch what others wrote."""
        connection = self._open_local()
        remote: PostgresConnection | None = None
        while not self._closing:
            try:
                remote = remote or self._open_remote()
                if self.is_alone:
                    with hold_lock(self._folder / _DRAINING, "another process sends what waits"):
                        self._drain(connection, remote)
                self._look(remote)
            except (psycopg.Error, apsw.Error, HotsetError) as error:
                self._breaker.failed(type(error).__name__)
                if remote is not None:
                    remote.close()
                    remote = None
            self._wake.wait(_TRY_EVERY if self.is_alone else _LOOK_EVERY)
            self._wake.clear()
        if remote is not None:
            remote.close()
        close_connection(connection)

    def _look(self, remote: PostgresConnection) -> None:
        newest = remote.version()
        if newest > self._known:
            with self._door:
                self._fetch(remote, self._known, newest)

    def _drain(self, connection: Connection, remote: PostgresConnection) -> None:
        while self.is_alone and not self._closing:
            items = outbox.oldest_items(connection, _DRAINED_AT_ONCE)
            if not items:
                with self._door:
                    self._fetch(remote, self._known, remote.version())
                    if outbox.count_items(connection) == 0:
                        self.is_alone = False
                        self._breaker.succeeded()
                return
            arrived = {batch for batch in {item.batch for item in items} if remote.has_batch(batch)}
            self._send(connection, remote, [each for each in items if each.batch not in arrived])
            with committing(connection):
                outbox.remove_items(connection, items)

    def _send(
        self, connection: Connection, remote: PostgresConnection, items: Sequence[OutboxItem]
    ) -> None:
        if not items:
            return
        batch = str(uuid.uuid4())
        with committing(connection):
            outbox.mark_items(connection, items, batch)
        remote.begin_to_write(batch)
        for item in items:
            remote.execute("SAVEPOINT item")
            try:
                kept = CommitReceipt()
                for deposit in item.deposits:
                    writing, each = place(deposit, SqlLookup(remote))
                    write(remote, writing, {})
                    kept = merge_receipts(kept, each)
                if met := _met(item.turn, kept.turn, time.time()):
                    write(remote, Writing(events=(met,)), {})
            except (HotsetError, psycopg.Error) as error:
                if remote.is_lost:
                    raise
                # It was decided here by what was known here, or a row is too long for an index.
                remote.execute("ROLLBACK TO item")
                refused = Event("TeamRefused", time.time(), detail={"reason": type(error).__name__})
                write(remote, Writing(events=(refused,)), {})
            remote.execute("RELEASE item")
        remote.end("COMMIT")


def _met(here: TurnRef | None, there: TurnRef | None, time: float) -> Event | None:
    """What tells that a session met another gateway while the database was away, if it did."""
    if here is None or there is None or here == there:
        return None
    detail: dict[str, str | int | float] = {"session_here": here.session, "turn_here": here.number}
    return Event("GatewaysMet", time, there.session, there.number, detail)


class RecordingConnection:
    """Passes statements on, and notes those that changed something."""

    def __init__(self, connection: SqlConnection) -> None:
        self._connection = connection
        self.written: list[tuple[str, Any]] = []
        self._savepoint = 0

    def execute(self, sql: str, given: Any = None, /) -> SqlCursor:
        cursor = self._connection.execute(sql, given)
        match sql.split(None, 1)[0]:
            case "INSERT" | "UPDATE" if self._connection.changes() and not _is_local(sql, given):
                self.written.append((sql, given))
            case "SAVEPOINT":
                self._savepoint = len(self.written)
            case "ROLLBACK":
                del self.written[self._savepoint :]
        return cursor

    def stream(self, sql: str, given: Any = None, /) -> Any:
        return self._connection.stream(sql, given)

    def changes(self) -> int:
        return self._connection.changes()

    def __enter__(self) -> object:
        return self._connection.__enter__()

    def __exit__(
        self,
        error: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return self._connection.__exit__(error, value, trace)


def _is_local(sql: str, given: Any) -> bool:
    """True for a note that must not leave the machine."""
    return " note " in sql and given[_SCOPE_AT] == Scope.MACHINE


def _columns(name: str, columns: str) -> str:
    return f'SELECT {columns} FROM "{name}" WHERE changed > ? AND changed <= ? ORDER BY seq'


_ERASED = "erasure"
_LEAST = (
    "(SELECT min(version) FROM note AS other"
    " WHERE other.space = note.space AND other.key = note.key) AS least"
)
_CHANGED: tuple[tuple[str, str], ...] = (
    ("blob", _columns("blob", "digest, codec, size, body")),
    *(
        (table.name, _columns(table.name, ", ".join(table.stored)))
        for table in TABLES
        if table is not NOTE
    ),
    (NOTE.name, _columns(NOTE.name, f"{NOTE.names}, {_LEAST}")),
    (_ERASED, "SELECT id FROM erasure WHERE changed > ? AND changed <= ?"),
)
"""By table, what reads the rows that some commits wrote."""


def _upsert(name: str, columns: Sequence[str], rows: str, *, replaces: bool) -> str:
    these = ", ".join(columns)
    theirs = ", ".join(f"excluded.{column}" for column in columns)
    conflict = f"UPDATE SET ({these}) = ({theirs})" if replaces else "NOTHING"
    return f'INSERT INTO "{name}" ({these}) {rows} ON CONFLICT DO {conflict}'


def _marks(columns: Sequence[str]) -> str:
    return f"VALUES ({', '.join('?' * len(columns))})"


_BLOB = ("digest", "codec", "size", "body")
_TAKE: dict[str, str] = {
    "blob": _upsert("blob", _BLOB, _marks(_BLOB), replaces=False),
    **{
        table.name: _upsert(
            table.name, table.stored, _marks(table.stored), replaces=not table.repeats
        )
        for table in TABLES
    },
    GIST.name: _upsert(
        GIST.name,
        ("seq", *GIST.stored),
        f"SELECT seq, {GIST.marks} FROM page WHERE id = ?",
        replaces=True,
    ),
}
_OVERWRITE = (
    f"UPDATE note SET ({NOTE.names}) = ({NOTE.marks}) WHERE seq = (SELECT seq FROM note"
    " WHERE space = ? AND key = ? AND version < ? ORDER BY version LIMIT 1)"
)


def _take_rows(
    rows: Mapping[str, Sequence[Sequence[Any]]], to: int, connection: SqlConnection
) -> None:
    """Take rows as the database has them, and note up to which commit they are here."""
    erased = [id for (id,) in rows[_ERASED]]
    for name, some in rows.items():
        for row in some if name != _ERASED else ():
            if not is_blank(row[: len(row) - (name == NOTE.name)]):
                _take_row(name, row, connection)
    if erased:
        for sql in ERASE:
            connection.execute(sql, (msgspec.json.encode(erased).decode(),))
    outbox.set_known_commit(connection, to)


def _take_row(name: str, row: Sequence[Any], connection: SqlConnection) -> None:
    if name == GIST.name:
        row = (*row, row[0])
    elif name == NOTE.name:
        *row, least = row
        space, key, *_ = row
        connection.execute(_OVERWRITE, (*row, space, key, least))
        if connection.changes():
            return
    connection.execute(_TAKE[name], row)
