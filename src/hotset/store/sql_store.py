"""Reads a store's tables: what every engine that speaks SQL has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from hotset.errors import NotFound, PageDamaged
from hotset.nouns.bill import Bill, Summary
from hotset.nouns.note import Note, Space
from hotset.nouns.page import Chain, Digest, Gist, Page, PageId, SessionId
from hotset.nouns.turn import Event, Node, Reference, Session, ToolSeen, Turn, TurnRef
from hotset.store import queries, session_queries
from hotset.store.engine import SqlConnection
from hotset.store.port import (
    MATCHES,
    BranchStart,
    Census,
    Row,
    SessionOrigin,
    SessionOutline,
    SessionUse,
    Where,
)
from hotset.store.queries import next_seq, read_one
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

if TYPE_CHECKING:
    from hotset.nouns.deposit import RequestReceived
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

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")

_DIGEST_CHARS = 64


class SqlStore(ABC):
    """The reading half of a `Store`. An engine lends connections, writes, and says what changed."""

    _all_gisted_to: Any = 0

    @abstractmethod
    def _reading(self) -> AbstractContextManager[SqlConnection]:
        """A connection for single statements. Raises a `StoreFailed` if there is none."""

    @contextmanager
    def _snapshot(self) -> Iterator[SqlConnection]:
        """A connection that sees one state of the store."""
        with self._reading() as connection, connection:
            yield connection

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
        with self._snapshot() as connection:
            used = "SELECT session, max(seq) AS seq FROM turn GROUP BY session"
            rows: list[Any] = connection.execute(
                f"SELECT {SESSION.qualified('session.')} FROM session "
                f"LEFT JOIN ({used}) AS used ON used.session = session.id "
                "ORDER BY used.seq DESC NULLS LAST, session.seq DESC"
            ).fetchall()
        return [SESSION.unpack(row) for row in rows]

    def recent_ids(self, words: str = "", agent: str = "") -> Sequence[SessionId]:
        return self._read(session_queries.recent_ids, words, agent)

    def session_uses(self, ids: Sequence[SessionId]) -> Sequence[SessionUse]:
        with self._snapshot() as connection:
            return session_queries.session_uses(connection, ids)

    def agents(self) -> Sequence[str]:
        return self._read(session_queries.agents)

    def branch_starts(self, session: SessionId) -> Sequence[BranchStart]:
        return self._read(session_queries.branch_starts, session)

    def origin(self, asked: RequestReceived) -> SessionOrigin:
        from hotset.store.lineage import find_origin  # noqa: PLC0415 - loads what reads messages
        from hotset.store.sql_lookup import SqlLookup  # noqa: PLC0415

        with self._snapshot() as connection:
            return find_origin(asked, SqlLookup(connection))

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
        with self._snapshot() as connection:
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
        with self._snapshot() as connection:
            return self._page_tables.table(connection, chains, as_of)

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
        with self._snapshot() as connection:
            step = queries.ANY_STEP if as_of is None else self._step_of(connection, as_of)
            return (
                queries.latest_notes(connection, space.name, keys, step) if step is not None else {}
            )

    def note_versions(self, space: Space, key: str) -> Sequence[Note]:
        return self._read(queries.note_versions, space.name, key)

    def census(self) -> Census:
        with self._reading() as connection:
            row = connection.execute(
                "SELECT (SELECT count(*) FROM session), (SELECT count(*) FROM turn), (SELECT "
                "count(*) FROM page),"
                " count(*), coalesce(sum(size), 0), coalesce(sum(length(body)), 0) FROM blob"
            ).fetchone()
        assert row is not None
        return Census(*(int(number) for number in row))

    def dump(self, session: SessionId | None = None) -> Iterator[Row]:
        from hotset.store import exchange  # noqa: PLC0415 - seldom, and with all that writes

        return exchange.dump(self._snapshot, session)

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
    def _step_of(connection: SqlConnection, turn: TurnRef) -> int | None:
        from hotset.store.page_table import planned_at  # noqa: PLC0415

        return planned_at(connection, turn)

    def _read(
        self,
        query: Callable[Concatenate[SqlConnection, _Given], _Answer],
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
