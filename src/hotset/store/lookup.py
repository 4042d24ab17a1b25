"""The questions that placing asks, answered by SQL inside the transaction that will write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from hotset.nouns.memory import Memory, MemoryId, MemoryLink, Relation
from hotset.nouns.page import ROOT, Chain, Page, PageId, SessionId
from hotset.nouns.turn import Node, Session, Turn, TurnId
from hotset.store.port import CANDIDATES, MemoryRows
from hotset.store.rows import MEMORY, MEMORY_LINK, NODE, PAGE, SESSION, TURN, Noun, Table, pack_hex


class SqlLookup:
    """A `Lookup` over one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def session(self, id: SessionId) -> Session | None:
        return one(self._connection, SESSION, "id = ?", id)

    def session_by_key(self, key: str) -> Session | None:
        return one(self._connection, SESSION, "key = ? AND key <> '' ORDER BY seq LIMIT 1", key)

    def sessions_with(self, chain: Chain) -> Sequence[SessionId]:
        recent = self._connection.execute(
            "SELECT session FROM node WHERE chain = ? ORDER BY seq DESC LIMIT ?", (pack_hex(chain), CANDIDATES)
        ).fetchall()
        return [SessionId(id) for (id,) in reversed(recent)]

    def node(self, session: SessionId, chain: Chain) -> Node | None:
        return one(self._connection, NODE, "chain = ? AND session = ?", pack_hex(chain), session)

    def continued(self, session: SessionId, chain: Chain) -> bool:
        return self._some("SELECT 1 FROM node WHERE session = ? AND parent = ? AND NOT aside LIMIT 1", session, pack_hex(chain))

    def branches(self, session: SessionId) -> int:
        highest = self._value("SELECT max(branch) FROM node WHERE session = ?", session)
        return 0 if highest is None else int(highest) + 1

    def turn(self, session: SessionId, number: int) -> Turn | None:
        return one(self._connection, TURN, "session = ? AND number = ?", session, number)

    def turn_by_id(self, id: TurnId) -> Turn | None:
        return one(self._connection, TURN, "id = ?", id)

    def last_turn(self, session: SessionId) -> Turn | None:
        return one(self._connection, TURN, "session = ? ORDER BY number DESC LIMIT 1", session)

    def turn_at(self, session: SessionId, head: Chain) -> Turn | None:
        return one(self._connection, TURN, "session = ? AND head = ? ORDER BY number DESC LIMIT 1", session, pack_hex(head))

    def turn_by_response(self, response_id: str) -> Turn | None:
        return one(self._connection, TURN, "response_id = ? AND response_id <> '' ORDER BY seq DESC LIMIT 1", response_id)

    def last_page(self, session: SessionId, chain: Chain) -> PageId | None:
        if chain == ROOT:
            return None
        where = "chain = ? AND chain <> '' AND session = ? ORDER BY position DESC LIMIT 1"
        page = one(self._connection, PAGE, where, pack_hex(chain), session)
        return page.id if page else None

    def page(self, id: PageId) -> Page | None:
        return one(self._connection, PAGE, "id = ?", id)

    def pages_at(self, session: SessionId, chain: Chain) -> Sequence[PageId]:
        rows = self._connection.execute(
            "SELECT id FROM page WHERE chain = ? AND chain <> '' AND session = ? ORDER BY position", (pack_hex(chain), session)
        )
        return [PageId(id) for (id,) in rows]

    def last_step(self) -> int:
        steps = "SELECT max(step) AS step FROM shown UNION ALL SELECT max(step) FROM hidden UNION ALL SELECT max(step) FROM sent"
        return int(self._value(f"SELECT max(step) FROM ({steps})") or 0)  # noqa: S608 - our own names

    def last_memory(self, id: MemoryId) -> Memory | None:
        return one(self._connection, MEMORY, "id = ? ORDER BY version DESC LIMIT 1", id)

    def memory_version(self, id: MemoryId, version: int) -> Memory | None:
        return one(self._connection, MEMORY, "id = ? AND version = ?", id, version)

    def last_link(self, of: MemoryId, to: MemoryId, relation: Relation) -> MemoryLink | None:
        where = '"of" = ? AND "to" = ? AND relation = ? ORDER BY seq DESC LIMIT 1'
        return one(self._connection, MEMORY_LINK, where, of, to, str(relation))

    def memory_rows(self, ids: Sequence[MemoryId]) -> MemoryRows:
        named = msgspec.json.encode(ids).decode()
        these = "(SELECT value FROM json_each(?1))"
        row = self._connection.execute(
            f"SELECT (SELECT count(DISTINCT id) FROM memory WHERE id IN {these}),"  # noqa: S608 - our own names
            f" (SELECT count(*) FROM memory WHERE id IN {these}),"
            f' (SELECT count(*) FROM memory_link WHERE "of" IN {these} OR "to" IN {these}),'
            f" (SELECT count(*) FROM memory_use WHERE memory IN {these})",
            (named,),
        ).fetchone()
        assert row is not None
        return MemoryRows(*(int(count) for count in row))

    def _some(self, sql: str, *given: Any) -> bool:
        return self._connection.execute(sql, given).fetchone() is not None

    def _value(self, sql: str, *given: Any) -> Any:
        row = self._connection.execute(sql, given).fetchone()
        return row[0] if row else None


def one(connection: apsw.Connection, table: Table[Noun], where: str, *given: Any) -> Noun | None:
    """The row, proven by its seal; None where there is no such row."""
    row = connection.execute(f'SELECT {table.names} FROM "{table.name}" WHERE {where}', given).fetchone()  # noqa: S608
    return table.unpack(row) if row is not None else None
