"""The embedded store: one SQLite file in a private folder, shared by every process of a project."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import apsw

from hotset.errors import HotsetError, NotFound, PageDamaged, StoreBusy, StoreFailed, StoreTooNew
from hotset.files.open import open_private, open_regular, refuse_special
from hotset.files.private_folder import private_folder
from hotset.nouns.bill import Bill, Summary
from hotset.nouns.note import Note, Space
from hotset.nouns.page import Chain, Digest, Gist, Page, PageId, SessionId
from hotset.nouns.turn import Event, Node, Reference, Session, ToolSeen, Turn, TurnRef
from hotset.store import queries, session_queries
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
    MATCHES,
    BranchStart,
    Census,
    Damage,
    Moved,
    Row,
    SessionOrigin,
    SessionOutline,
    SessionUse,
    Where,
)
from hotset.store.queries import next_seq, read_one
from hotset.store.store_files import (
    DATABASE,
    SEAL,
    closing_file,
    mark_in_use,
    opening_lock,
    refuse_links,
    wal_and_shm,
)
from hotset.store.tables import (
    BILL,
    EVENT,
    GIST,
    NODE,
    PAGE,
    REFERENCE,
    SESSION,
    SUMMARY,
    TOOL,
    TURN,
    Noun,
    RowTable,
    is_blank,
    latest_versions,
    pack_hex,
    read_content,
    unpack_hex,
)
from hotset.store.wal import (
    committed_in,
    read_seal,
    refuse_foreign_wal,
    refuse_torn,
    what_is_missing,
)

if TYPE_CHECKING:
    from hotset.nouns.deposit import CommitReceipt, Deposit, RequestReceived
    from hotset.nouns.memory import (
        MemoryId,
        MemoryKind,
        MemoryLink,
        MemoryRecord,
        Standing,
        Uses,
    )
    from hotset.nouns.window import PageTable
    from hotset.store.page_table import PageTables
    from hotset.store.write_side import WriteSide

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")

_DIGEST_CHARS = 64
_MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Health:
    """What a person may have to act on."""

    ballast_out: bool
    """The reserve on the disk is gone: the disk is full, or nearly."""
    full: bool
    """Nothing is being kept because the disk is full."""
    wal_bytes: int


class SqliteStore:
    """A `Store` in a folder of its own. Use it from any thread; open it anew after a fork."""

    def __init__(
        self, folder: Path, tuning: Tuning, in_use: int, connection: Connection, only_read: str = ""
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
        self._all_gisted_to: Any = 0
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
    def open(cls, folder: Path, tuning: Tuning = Tuning(), *, makes_folder: bool = True) -> Self:  # noqa: B008 - frozen
        """Open the store in a folder; creates both if they are missing."""
        store = cls._open(folder, tuning, makes_folder=makes_folder)
        store._writing()  # noqa: SLF001 - this class's own
        return store

    @classmethod
    def _open(cls, folder: Path, tuning: Tuning, *, makes_folder: bool = True) -> Self:
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
                return cls(folder, tuning, in_use, connection, why)
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

    def keep(self, *deposits: Deposit) -> Future[CommitReceipt]:
        return self._writing().writer.keep(deposits)

    def content(self, digest: Digest) -> bytes:
        with self._reading() as connection:
            row = connection.execute(
                "SELECT codec, size, body FROM blob WHERE digest = ?", (pack_hex(digest),)
            ).fetchone()
        if row is None:
            raise NotFound(f"no content {digest}")
        return read_content(digest, *row)

    def page(self, id: PageId) -> Page:
        return self._by_id(PAGE, id)

    def match(self, prefix: str) -> Sequence[PageId]:
        return [PageId(id) for id in self._ids(PAGE, prefix)]

    def contents(self, prefix: str) -> Sequence[Digest]:
        first = pack_hex(prefix.ljust(_DIGEST_CHARS, "0"))
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT digest FROM blob WHERE digest >= ? ORDER BY digest LIMIT ?",
                (first, MATCHES),
            ).fetchall()
        found = (unpack_hex(packed) for (packed,) in rows)
        return [Digest(address) for address in found if address.startswith(prefix)]

    def pages(self, where: Where) -> Iterator[Page]:
        conditions, given = _conditions(where)
        left = where.limit
        for page in self._stream(PAGE, conditions, given):
            if left is not None and left <= 0:
                return
            yield _as_asked(page, where.holds(page))
            left = None if left is None else left - 1

    def pages_after(self, number: int, limit: int) -> Sequence[tuple[int, Page]]:
        return self._after(PAGE, number, limit)

    def session(self, id: SessionId) -> Session:
        return self._by_id(SESSION, id)

    def sessions(self) -> Iterator[Session]:
        return self._stream(SESSION)

    def recent_sessions(self) -> Sequence[Session]:
        with self._reading() as connection, connection:
            used = "SELECT session, max(seq) AS seq FROM turn GROUP BY session"
            rows: list[Any] = connection.execute(
                f"SELECT {SESSION.qualified('session.')} FROM session "
                f"LEFT JOIN ({used}) AS used ON used.session = session.id "
                "ORDER BY used.seq DESC, session.seq DESC"
            ).fetchall()
        return [SESSION.unpack(row) for row in rows]

    def recent_ids(self, words: str = "", agent: str = "") -> Sequence[SessionId]:
        return self._read(session_queries.recent_ids, words, agent)

    def session_uses(self, ids: Sequence[SessionId]) -> Sequence[SessionUse]:
        with self._reading() as connection, connection:
            found = session_queries.session_uses(connection, ids)
        return found  # noqa: RET504 - apsw's types say that a transaction may swallow an error

    def agents(self) -> Sequence[str]:
        return self._read(session_queries.agents)

    def branch_starts(self, session: SessionId) -> Sequence[BranchStart]:
        return self._read(session_queries.branch_starts, session)

    def origin(self, asked: RequestReceived) -> SessionOrigin:
        from hotset.store.lineage import find_origin  # noqa: PLC0415 - loads what reads messages
        from hotset.store.sql_lookup import SqlLookup  # noqa: PLC0415

        with self._reading() as connection, connection:
            found = find_origin(asked, SqlLookup(connection))
        return found  # noqa: RET504 - apsw's types say that a transaction may swallow an error

    def turns(self, session: SessionId, within: tuple[int, int] | None = None) -> Iterator[Turn]:
        which = _set_conditions(("session = ?", (session,)), ("number BETWEEN ? AND ?", within))
        for turn in self._stream(TURN, *which):
            yield _as_asked(turn, turn.session == session and _is_within(turn.number, within))

    def turn_of(self, session: SessionId, number: int = 0) -> Turn | None:
        last = "session = ? ORDER BY number DESC LIMIT 1"
        where, given = ("session = ? AND number = ?", [number]) if number else (last, [])
        with self._reading() as connection:
            return read_one(connection, TURN, where, session, *given)

    def nodes(self, session: SessionId) -> Iterator[Node]:
        return self._of_session(NODE, session)

    def outline(self, session: SessionId) -> SessionOutline:
        return self._read(session_queries.read_outline, session)

    def tools(self) -> Iterator[ToolSeen]:
        return self._stream(TOOL)

    def events(
        self,
        session: SessionId | None = None,
        name: str | None = None,
        within: tuple[int, int] | None = None,
    ) -> Iterator[Event]:
        which = _set_conditions(
            ("session = ?", _one_tuple(session)),
            ("name = ?", _one_tuple(name)),
            ("turn BETWEEN ? AND ?", within),
        )
        for event in self._stream(EVENT, *which):
            yield _as_asked(event, session in (None, event.session) and name in (None, event.name))

    def events_after(
        self, number: int, limit: int, names: frozenset[str] = frozenset()
    ) -> Sequence[tuple[int, Event]]:
        found = self._after(EVENT, number, limit, "name", sorted(names))
        return [(seq, _as_asked(event, not names or event.name in names)) for seq, event in found]

    def events_before(
        self,
        number: int | None,
        limit: int,
        *,
        names: frozenset[str] = frozenset(),
        session: SessionId | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> Sequence[tuple[int, Event]]:
        conditions, given = _set_conditions(
            ("seq < ?", _one_tuple(number)),
            (f"name IN ({', '.join('?' * len(names))})", tuple(sorted(names)) or None),
            ("session = ?", _one_tuple(session)),
            ("time >= ?", _one_tuple(since)),
            ("time < ?", _one_tuple(until)),
        )
        where = " AND ".join(("TRUE", *conditions))
        sql = f"SELECT seq, {EVENT.names} FROM event WHERE {where} ORDER BY seq DESC LIMIT ?"
        with self._reading() as connection:
            rows: list[Any] = connection.execute(sql, (*given, max(0, limit))).fetchall()
        found: list[tuple[int, Event]] = []
        for seq, *row in rows:
            with suppress(PageDamaged):  # `verify` reports it
                if not is_blank(row):
                    found.append((seq, EVENT.unpack(row)))
        return found

    def reference(self, id: str) -> Reference:
        return self._by_id(REFERENCE, id)

    def references(self, session: SessionId) -> Iterator[Reference]:
        return self._of_session(REFERENCE, session)

    def gist(self, id: PageId) -> Gist | None:
        with self._reading() as connection:
            gist = read_one(connection, GIST, "seq = (SELECT seq FROM page WHERE id = ?)", id)
        return None if gist is None else _as_asked(gist, gist.page == id)

    def ungisted(self, limit: int) -> Sequence[Page]:
        wanting = (
            "seq > ? AND NOT EXISTS (SELECT 1 FROM gist WHERE gist.seq "
            "= page.seq) ORDER BY seq "
            "LIMIT ?"
        )
        with self._reading() as connection, connection:
            last = connection.execute("SELECT max(seq) FROM page").fetchone()
            rows: list[Any] = connection.execute(
                f"SELECT seq, {PAGE.names} FROM page WHERE {wanting}",
                (self._all_gisted_to, limit),
            ).fetchall()
        if limit > 0:
            # Remembered, so that a store of a million pages is not searched from its beginning each
            # time.
            self._all_gisted_to = rows[0][0] - 1 if rows else (last[0] if last else None) or 0
        return [PAGE.unpack(row[1:]) for row in rows]

    def table(self, chains: Sequence[Chain], as_of: TurnRef | None = None) -> PageTable:
        with self._reading() as connection, connection:
            table = self._page_tables.table(connection, chains, as_of)
        return table  # noqa: RET504 - apsw's types say that a transaction may swallow an error

    def bills(
        self,
        session: SessionId | None = None,
        since: float | None = None,
        within: tuple[int, int] | None = None,
    ) -> Iterator[Bill]:
        which = _set_conditions(
            ("session = ?", _one_tuple(session)),
            ("time >= ?", _one_tuple(since)),
            ("turn BETWEEN ? AND ?", within),
        )
        for bill in self._stream(BILL, *which):
            yield _as_asked(bill, session in (None, bill.session))

    def summaries(self, session: SessionId) -> Sequence[Summary]:
        return latest_versions(self._of_session(SUMMARY, session))

    def memory(self, id: MemoryId) -> MemoryRecord:
        found: MemoryRecord = self._by_id(
            self._memories.MEMORY, id, "ORDER BY version DESC LIMIT 1"
        )
        return found

    def memory_versions(self, id: MemoryId) -> Sequence[MemoryRecord]:
        return self._read(self._memories.memory_versions, id)

    def memories(
        self,
        kinds: frozenset[MemoryKind] = frozenset(),
        standings: frozenset[Standing] = frozenset(),
    ) -> Iterator[MemoryRecord]:
        found: Iterator[MemoryRecord] = self._memories.latest_memories(
            self._reading, kinds, standings
        )
        return found

    def newest_memories(
        self,
        kinds: frozenset[MemoryKind] = frozenset(),
        standings: frozenset[Standing] = frozenset(),
        *,
        since: float | None = None,
        until: float | None = None,
    ) -> Iterator[MemoryRecord]:
        found: Iterator[MemoryRecord] = self._memories.newest_memories(
            self._reading, kinds, standings, since, until
        )
        return found

    def memories_after(self, number: int, limit: int) -> Sequence[tuple[int, MemoryRecord]]:
        return self._after(self._memories.MEMORY, number, limit)

    def memory_match(self, prefix: str) -> Sequence[MemoryId]:
        from hotset.nouns.memory import MemoryId  # noqa: PLC0415

        return [MemoryId(id) for id in self._ids(self._memories.MEMORY, prefix)]

    def memory_links(self, id: MemoryId | None = None) -> Sequence[MemoryLink]:
        return self._read(self._memories.memory_links, id)

    def memory_uses(self, ids: Sequence[MemoryId] = ()) -> Mapping[MemoryId, Uses]:
        return self._read(self._memories.memory_uses, ids)

    def memory_runs(self) -> Sequence[tuple[str, int, float]]:
        return self._read(self._memories.memory_runs)

    def notes(
        self, space: Space, keys: Sequence[str] = (), as_of: TurnRef | None = None
    ) -> Mapping[str, Note]:
        with self._reading() as connection, connection:
            step = queries.ANY_STEP if as_of is None else self._step_of(connection, as_of)
            found = (
                queries.latest_notes(connection, space.name, keys, step) if step is not None else {}
            )
        return found  # noqa: RET504 - apsw's types say that a transaction may swallow an error

    def note_versions(self, space: Space, key: str) -> Sequence[Note]:
        return self._read(queries.note_versions, space.name, key)

    def version(self) -> int:
        self._alive()
        with translate_errors(self.database):
            return self._changes.version()

    def census(self) -> Census:
        with self._reading() as connection:
            row = connection.execute(
                "SELECT (SELECT count(*) FROM session), (SELECT count(*) FROM turn), (SELECT "
                "count(*) FROM page),"
                " count(*), total(size), total(length(body)) FROM blob"
            ).fetchone()
        assert row is not None
        return Census(*(int(number) for number in row))

    def health(self) -> Health:
        wal, _ = wal_and_shm(self.database)
        writing = self._writing()
        size = wal.stat().st_size if wal.exists() else 0
        return Health(writing.ballast.out, writing.writer.full, size)

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
        from hotset.store import repair  # noqa: PLC0415 - seldom, and with all that writes

        yield from repair.verify(self._reading, self.database, moved)

    def dump(self, session: SessionId | None = None) -> Iterator[Row]:
        from hotset.store import exchange  # noqa: PLC0415 - seldom, and with all that writes

        self._alive()
        return exchange.dump(self._reading, session)

    def load(self, rows: Iterable[Row], *, gaps: bool = False) -> int:
        """Import rows. With `gaps`, messages and pages may follow others that are missing, as in an
        export of a repaired store."""
        return self._writing().load(rows, gaps=gaps)

    @property
    def _memories(self) -> ModuleType:
        """The queries for memories; a command that asks for none does not load them."""
        from hotset.store import memory_queries  # noqa: PLC0415

        return memory_queries

    @cached_property
    def _page_tables(self) -> PageTables:
        from hotset.store.page_table import PageTables  # noqa: PLC0415 - lists of rows do without

        return PageTables()

    @staticmethod
    def _step_of(connection: Connection, turn: TurnRef) -> int | None:
        from hotset.store.page_table import planned_at  # noqa: PLC0415

        return planned_at(connection, turn)

    def _read(
        self,
        query: Callable[Concatenate[apsw.Connection, _Given], _Answer],
        *given: _Given.args,
        **named: _Given.kwargs,
    ) -> _Answer:
        with self._reading() as connection:
            return query(connection, *given, **named)

    def _ids(self, table: RowTable[Any], prefix: str) -> list[str]:
        """The first few different ids that begin with `prefix`."""
        sql = f"SELECT DISTINCT id FROM {table.name} WHERE id >= ? ORDER BY id LIMIT ?"
        with self._reading() as connection:
            rows = connection.execute(sql, (prefix, MATCHES)).fetchall()
        return [id for (id,) in rows if isinstance(id, str) and id.startswith(prefix)]

    def _by_id(self, table: RowTable[Noun], id: str, order: str = "") -> Noun:
        with self._reading() as connection:
            row = read_one(connection, table, f"id = ? {order}", id)
        if row is None:
            raise NotFound(f"no {table.name} {id}")
        return _as_asked(row, getattr(row, "id", None) == id)

    def _of_session(self, table: RowTable[Noun], session: SessionId) -> Iterator[Noun]:
        for row in self._stream(table, ["session = ?"], [session]):
            yield _as_asked(row, getattr(row, "session", None) == session)

    def _after(
        self,
        table: RowTable[Noun],
        number: int,
        limit: int,
        column: str = "",
        among: Sequence[str] = (),
    ) -> list[tuple[int, Noun]]:
        """The next rows; only those whose `column` is `among` these, if any are given."""
        these = f" AND {column} IN ({', '.join('?' * len(among))})" if among else ""
        sql = (
            f'SELECT seq, {table.names} FROM "{table.name}" WHERE seq > ?{these} '
            "ORDER BY seq LIMIT ?"
        )
        found: list[tuple[int, Noun]] = []
        while len(found) < limit:
            with self._reading() as connection:
                given = (number, *among, limit - len(found))
                rows: list[Any] = connection.execute(sql, given).fetchall()
            if not rows:
                break
            number = next_seq(number, rows[-1][0])
            for seq, *row in rows:
                with suppress(PageDamaged):
                    if not is_blank(row):
                        found.append((seq, table.unpack(row)))
        return found

    def _stream(
        self, table: RowTable[Noun], conditions: Sequence[str] = (), given: Sequence[Any] = ()
    ) -> Iterator[Noun]:
        where = " AND ".join(("seq > ?", *conditions))
        sql = f'SELECT seq, {table.names} FROM "{table.name}" WHERE {where} ORDER BY seq'
        return queries.stream_rows(self._reading, table, sql, given)

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


def _conditions(where: Where) -> tuple[list[str], list[Any]]:
    """`holds` in SQL. Some columns are indexed only if non-empty; a query must say so too, to use
    that index."""
    kinds = sorted(where.every_kind)
    return _set_conditions(
        ("session = ?", _one_tuple(where.session)),
        ("agent = ?", _one_tuple(where.agent)),
        (f"kind IN ({', '.join('?' * len(kinds))})", tuple(str(kind) for kind in kinds) or None),
        ("turn BETWEEN ? AND ?", where.turns),
        ("time >= ?", _one_tuple(where.since)),
        ("time < ?", _one_tuple(where.until)),
        ("branch = ?", _one_tuple(where.branch)),
        ("parent = ? AND parent IS NOT NULL", _one_tuple(where.parent)),
        ("call = ? AND call <> ''" if where.call else "call = ?", _one_tuple(where.call)),
        (
            "chain = ? AND chain <> ''" if where.chain else "chain = ?",
            _one_tuple(where.chain and pack_hex(where.chain)),
        ),
        ("digest = ?", _one_tuple(where.digest and pack_hex(where.digest))),
    )


def _set_conditions(*every: tuple[str, tuple[Any, ...] | None]) -> tuple[list[str], list[Any]]:
    """The conditions that are set, and their values."""
    given = [(condition, values) for condition, values in every if values is not None]
    return [condition for condition, _ in given], [value for _, some in given for value in some]


def _is_within(number: int, within: tuple[int, int] | None) -> bool:
    return within is None or within[0] <= number <= within[1]


def _one_tuple(value: Any) -> tuple[Any, ...] | None:
    return None if value is None else (value,)


def _as_asked(row: Noun, fits: bool) -> Noun:
    """Filter again: a damaged index can lead to an intact row that does not match."""
    if not fits:
        raise PageDamaged(
            f"an index of the store is damaged: it led to {row}; `hotset repair` makes it again"
        )
    return row
