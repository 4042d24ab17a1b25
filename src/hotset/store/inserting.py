"""Rows into tables, inside a transaction that somebody else began. What is there already is left as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import Any

import apsw

from hotset.errors import BadInput
from hotset.nouns.bill import Bill, Summary
from hotset.nouns.page import Digest, Gist, Page
from hotset.nouns.turn import Event, Node, Reference, Session, ToolSeen, Turn
from hotset.store.blobs import Pressed, press
from hotset.store.lookup import SqlLookup
from hotset.store.needs import supersedes
from hotset.store.port import Blob, Row, Writing
from hotset.store.rows import (
    BILL,
    EVENT,
    GIST,
    HIDDEN,
    NODE,
    PAGE,
    REFERENCE,
    SENT,
    SESSION,
    SHOWN,
    SUMMARY,
    TOOL,
    TURN,
    Table,
    pack_hex,
)
from hotset.store.showing import Hiding, Sending, Showing

_PLAIN: tuple[Table[Any], ...] = (SESSION, NODE, PAGE, TOOL, REFERENCE, SHOWN, HIDDEN, SENT, BILL, SUMMARY)
_INSERT = {
    table.name: f'INSERT OR IGNORE INTO "{table.name}" ({table.names}) VALUES ({table.marks})'  # noqa: S608 - our own names
    for table in _PLAIN
}
_PUT_TURN = (
    f"INSERT INTO turn ({TURN.names}) VALUES ({TURN.marks}) "  # noqa: S608
    f"ON CONFLICT (session, number) DO UPDATE SET ({TURN.names}) = ({', '.join(f'excluded.{n}' for n in TURN.names.split(', '))})"
)
_INSERT_EVENT = f"INSERT OR IGNORE INTO event ({EVENT.names}, nth) VALUES ({EVENT.marks}, ?)"  # noqa: S608
_INSERT_GIST = f"INSERT OR IGNORE INTO gist (seq, {GIST.names}) SELECT seq, {GIST.marks} FROM page WHERE id = ?"  # noqa: S608
_Plain = Session | Node | Page | ToolSeen | Reference | Showing | Hiding | Sending | Bill | Summary
_TABLE_OF: dict[type, Table[Any]] = {table.noun: table for table in _PLAIN}


def write(connection: apsw.Connection, writing: Writing, pressed: Mapping[Digest, Pressed]) -> None:
    """The rows of one deposit. `pressed` holds content that was compressed beforehand."""
    for blob in writing.blobs:
        insert_blob(connection, blob, pressed.get(blob.digest))
    rows: tuple[tuple[_Plain, ...], ...] = (
        writing.sessions,
        writing.nodes,
        writing.pages,
        writing.tools,
        writing.references,
        writing.shown,
        writing.hidden,
        writing.sent,
        writing.bills,
        writing.summaries,
    )
    for row in chain.from_iterable(rows):
        _insert(connection, row)
    for turn in writing.turns:
        _put_turn(connection, turn)
    for event in writing.events:
        _insert_event(connection, event, _equal_events(connection, event))
    for gist in writing.gists:
        _insert_gist(connection, gist)


class Intake:
    """Takes in rows that another store gave out."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._events: Counter[bytes] = Counter()

    def take(self, row: Row) -> bool:
        """True where the row is new."""
        match row:
            case Blob():
                return insert_blob(self._connection, row)
            case Turn():
                return self._take_turn(row)
            case Event():
                # Two equal events are two: the n-th of the file is the n-th of the store.
                seal = EVENT.pack(row)[-1]
                assert isinstance(seal, bytes)
                self._events[seal] += 1
                return _insert_event(self._connection, row, self._events[seal] - 1)
            case Gist():
                return _insert_gist(self._connection, row)
            case _:
                return _insert(self._connection, row)

    def _take_turn(self, turn: Turn) -> bool:
        there = SqlLookup(self._connection).turn(turn.session, turn.number)
        if there is not None and not supersedes(turn, there):
            return False
        _put_turn(self._connection, turn)
        return True


def has_blob(connection: apsw.Connection, digest: Digest) -> bool:
    return connection.execute("SELECT 1 FROM blob WHERE digest = ?", (pack_hex(digest),)).fetchone() is not None


def insert_blob(connection: apsw.Connection, blob: Blob, pressed: Pressed | None = None) -> bool:
    if has_blob(connection, blob.digest):
        return False
    form = pressed or press(blob.content)
    connection.execute(
        "INSERT INTO blob (digest, codec, size, body) VALUES (?, ?, ?, ?)",
        (pack_hex(blob.digest), int(form.codec), form.size, form.body),
    )
    return True


def _insert(connection: apsw.Connection, row: _Plain) -> bool:
    table = _TABLE_OF[type(row)]
    connection.execute(_INSERT[table.name], table.pack(row))
    return connection.changes() == 1


def _put_turn(connection: apsw.Connection, turn: Turn) -> None:
    connection.execute(_PUT_TURN, TURN.pack(turn))


def _equal_events(connection: apsw.Connection, event: Event) -> int:
    row = connection.execute("SELECT count(*) FROM event WHERE seal = ?", (EVENT.pack(event)[-1],)).fetchone()
    return int(row[0]) if row else 0


def _insert_event(connection: apsw.Connection, event: Event, nth: int) -> bool:
    connection.execute(_INSERT_EVENT, (*EVENT.pack(event), nth))
    return connection.changes() == 1


def _insert_gist(connection: apsw.Connection, gist: Gist) -> bool:
    connection.execute(_INSERT_GIST, (*GIST.pack(gist), gist.page))
    if connection.changes() == 1:
        return True
    if connection.execute("SELECT 1 FROM page WHERE id = ?", (gist.page,)).fetchone() is None:
        raise BadInput(f"a gist of page {gist.page}, which is not there")
    return False
