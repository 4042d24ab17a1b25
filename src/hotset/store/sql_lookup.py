"""A `Lookup` over one connection: what placement needs inside the transaction that will write."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hotset.nouns.memory import (
    MemoryId,
    MemoryLink,
    MemoryRecord,
    Relation,
)
from hotset.nouns.note import Note
from hotset.nouns.page import ROOT, Chain, Digest, Page, PageId, SessionId
from hotset.nouns.turn import Node, Session, Turn, TurnId
from hotset.store.engine import SqlConnection
from hotset.store.memory_tables import MEMORY, MEMORY_LINK
from hotset.store.port import CANDIDATES, FEW, LATEST, MemoryRows
from hotset.store.queries import read_one, read_value
from hotset.store.tables import (
    NODE,
    NOTE,
    PAGE,
    SESSION,
    TURN,
    pack_hex,
    read_content,
)

_STEPPED = ("shown", "hidden", "sent", "note")
_MOST_STEPS = 32  # messages of one reply
_LATEST_TURNS = f"SELECT * FROM turn ORDER BY seq DESC LIMIT {LATEST}"
_PAGE_NAMES = PAGE.qualified("page.")
_WAITING_CALLS = f"""
    WITH RECURSIVE line(turn_seq, session, number, head, chain, depth) AS (
        SELECT seq, session, number, head, tail, 0 FROM ({_LATEST_TURNS}) AS latest
            WHERE tail <> head AND tools IS NOT NULL AND NOT EXISTS (
                SELECT 1 FROM node WHERE node.session = latest.session AND node.parent = latest.tail AND node.aside = 0)
        UNION ALL
        SELECT turn_seq, line.session, number, head, node.parent, depth + 1
            FROM line JOIN node ON node.chain = line.chain AND node.session = line.session
            WHERE node.parent <> head AND depth < ?)
    SELECT {_PAGE_NAMES} FROM line JOIN page ON page.chain = line.chain AND page.chain <> '' AND page.session = line.session
        WHERE page.kind = 'tool_call' ORDER BY turn_seq DESC, page.seq LIMIT ?
"""  # noqa: E501
_LATEST_REPLIES = f"""
    SELECT {_PAGE_NAMES} FROM (SELECT seq AS turn_seq, session, head, tail FROM turn ORDER BY seq DESC LIMIT ?) AS latest
        JOIN page ON page.chain = latest.tail AND page.chain <> '' AND page.session = latest.session
        WHERE latest.tail <> latest.head AND page.kind = 'response' AND page.size >= ? ORDER BY turn_seq DESC, page.seq DESC
"""  # noqa: E501


class SqlLookup:
    """A `Lookup` over one connection."""

    def __init__(self, connection: SqlConnection) -> None:
        self._connection = connection

    def session(self, id: SessionId) -> Session | None:
        return read_one(self._connection, SESSION, "id = ?", id)

    def session_by_key(self, key: str) -> Session | None:
        return read_one(
            self._connection, SESSION, "key = ? AND key <> '' ORDER BY seq LIMIT 1", key
        )

    def sessions_with(self, chain: Chain) -> Sequence[SessionId]:
        recent = self._connection.execute(
            "SELECT session FROM node WHERE chain = ? ORDER BY seq DESC LIMIT ?",
            (pack_hex(chain), CANDIDATES),
        ).fetchall()
        return [SessionId(id) for (id,) in reversed(recent)]

    def node(self, session: SessionId, chain: Chain) -> Node | None:
        return read_one(
            self._connection, NODE, "chain = ? AND session = ?", pack_hex(chain), session
        )

    def continued(self, session: SessionId, chain: Chain) -> bool:
        sql = "SELECT 1 FROM node WHERE session = ? AND parent = ? AND aside = 0 LIMIT 1"
        return read_value(self._connection, sql, session, pack_hex(chain)) is not None

    def branches(self, session: SessionId) -> int:
        highest = read_value(
            self._connection, "SELECT max(branch) FROM node WHERE session = ?", session
        )
        return 0 if highest is None else int(highest) + 1

    def turn(self, session: SessionId, number: int) -> Turn | None:
        return read_one(self._connection, TURN, "session = ? AND number = ?", session, number)

    def turn_by_id(self, id: TurnId) -> Turn | None:
        return read_one(self._connection, TURN, "id = ?", id)

    def last_turn(self, session: SessionId) -> Turn | None:
        return read_one(self._connection, TURN, "session = ? ORDER BY number DESC LIMIT 1", session)

    def turn_at(self, session: SessionId, head: Chain) -> Turn | None:
        return read_one(
            self._connection,
            TURN,
            "session = ? AND head = ? ORDER BY number DESC LIMIT 1",
            session,
            pack_hex(head),
        )

    def turn_by_response(self, response_id: str) -> Turn | None:
        return read_one(
            self._connection,
            TURN,
            "response_id = ? AND response_id <> '' ORDER BY seq DESC LIMIT 1",
            response_id,
        )

    def first_with_hint(self, hint: str) -> SessionId | None:
        found = read_value(
            self._connection,
            f"SELECT session FROM ({_LATEST_TURNS}) WHERE tools IS NOT NULL AND fingerprint "
            f">= ? AND fingerprint < ?"
            " ORDER BY seq LIMIT 1",
            f"{hint}.",
            f"{hint}/",
        )
        return None if found is None else SessionId(found)

    def waiting_calls(self) -> Sequence[Page]:
        rows = self._connection.execute(_WAITING_CALLS, (_MOST_STEPS, LATEST)).fetchall()
        return [PAGE.unpack(row) for row in rows]

    def latest_replies(self, least: int) -> Sequence[Page]:
        rows = self._connection.execute(_LATEST_REPLIES, (FEW, least)).fetchall()
        return [PAGE.unpack(row) for row in rows]

    def pages_with(self, digest: Digest) -> Sequence[Page]:
        rows = self._connection.execute(
            (f"SELECT {PAGE.names} FROM page WHERE digest = ? ORDER BY seq DESC LIMIT ?"),
            (pack_hex(digest), FEW),
        ).fetchall()
        return [PAGE.unpack(row) for row in rows]

    def content(self, digest: Digest) -> bytes | None:
        row = self._connection.execute(
            "SELECT codec, size, body FROM blob WHERE digest = ?", (pack_hex(digest),)
        ).fetchone()
        return None if row is None else read_content(digest, *row)

    def last_page(self, session: SessionId, chain: Chain) -> PageId | None:
        if chain == ROOT:
            return None
        where = "chain = ? AND chain <> '' AND session = ? ORDER BY position DESC LIMIT 1"
        page = read_one(self._connection, PAGE, where, pack_hex(chain), session)
        return page.id if page else None

    def page(self, id: PageId) -> Page | None:
        return read_one(self._connection, PAGE, "id = ?", id)

    def pages_at(self, session: SessionId, chain: Chain) -> Sequence[PageId]:
        rows = self._connection.execute(
            "SELECT id FROM page WHERE chain = ? AND chain <> '' AND session = ? ORDER BY position",
            (pack_hex(chain), session),
        )
        return [PageId(id) for (id,) in rows]

    def last_step(self) -> int:
        steps = " UNION ALL ".join((f"SELECT max(step) AS step FROM {table}") for table in _STEPPED)
        return int(read_value(self._connection, f"SELECT max(step) FROM ({steps})") or 0)

    def last_note(self, space: str, key: str) -> Note | None:
        return read_one(
            self._connection,
            NOTE,
            "space = ? AND key = ? ORDER BY version DESC LIMIT 1",
            space,
            pack_hex(key),
        )

    def last_memory(self, id: MemoryId) -> MemoryRecord | None:
        return read_one(self._connection, MEMORY, "id = ? ORDER BY version DESC LIMIT 1", id)

    def memory_version(self, id: MemoryId, version: int) -> MemoryRecord | None:
        return read_one(self._connection, MEMORY, "id = ? AND version = ?", id, version)

    def last_link(self, of: MemoryId, to: MemoryId, relation: Relation) -> MemoryLink | None:
        where = '"of" = ? AND "to" = ? AND relation = ? ORDER BY seq DESC LIMIT 1'
        return read_one(self._connection, MEMORY_LINK, where, of, to, str(relation))

    def memory_rows(self, ids: Sequence[MemoryId]) -> MemoryRows:
        named = msgspec.json.encode(ids).decode()
        these = "(SELECT value FROM json_each(?1))"
        row = self._connection.execute(
            f"SELECT (SELECT count(DISTINCT id) FROM memory "
            f"WHERE id IN {these}),"
            f" (SELECT count(*) FROM memory WHERE id IN {these}),"
            f' (SELECT count(*) FROM memory_link WHERE "of" IN {these} OR "to" IN {these}),'
            f" (SELECT count(*) FROM memory_use WHERE memory IN {these})",
            (named,),
        ).fetchone()
        assert row is not None
        return MemoryRows(*(int(count) for count in row))
