"""Rows into tables, inside a transaction that somebody else began. What is there already is left as
it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import Any

import apsw
import msgspec

from hotset.errors import BadInput
from hotset.nouns.bill import Bill, Summary
from hotset.nouns.memory import MemoryId, MemoryLink, MemoryRecord, MemoryUse
from hotset.nouns.note import Note, Scope
from hotset.nouns.page import Digest, Gist, Page
from hotset.nouns.turn import Event, Node, Reference, Session, ToolSeen, Turn
from hotset.store.blobs import Compressed, compress
from hotset.store.lookup import SqlLookup
from hotset.store.memory_form import refuse_unfit
from hotset.store.memory_meeting import MemoryMerge
from hotset.store.memory_reading import versions_of
from hotset.store.needs import supersedes
from hotset.store.notes import note_of
from hotset.store.port import Blob, Row, Writing
from hotset.store.rows import (
    BILL,
    ERASABLE,
    EVENT,
    GIST,
    HIDDEN,
    MEMORY,
    MEMORY_LINK,
    MEMORY_USE,
    NODE,
    NOTE,
    PAGE,
    REFERENCE,
    SENT,
    SESSION,
    SHOWN,
    SUMMARY,
    TOOL,
    TURN,
    RowTable,
    Value,
    pack_hex,
)
from hotset.store.showing import HiddenRow, SentRow, ShownRow

_PLAIN: tuple[RowTable[Any], ...] = (
    SESSION,
    NODE,
    PAGE,
    TOOL,
    REFERENCE,
    SHOWN,
    HIDDEN,
    SENT,
    BILL,
    SUMMARY,
    MEMORY,
    NOTE,
)
_INSERT = {
    table.name: (f'INSERT OR IGNORE INTO "{table.name}" ({table.names}) VALUES ({table.marks})')
    for table in _PLAIN
}
_PUT_TURN = (
    f"INSERT INTO turn ({TURN.names}) VALUES ({TURN.marks}) "
    f"ON CONFLICT (session, number) DO UPDATE SET ({TURN.names}) = "
    f"({', '.join(f'excluded.{n}' for n in TURN.names.split(', '))})"
)
_REPEATING: tuple[RowTable[Any], ...] = (EVENT, MEMORY_LINK, MEMORY_USE)
_INSERT_NTH = {
    table.name: (
        f'INSERT OR IGNORE INTO "{table.name}" ({table.names}, nth) VALUES ({table.marks}, ?)'
    )
    for table in _REPEATING
}
_COUNT_EQUAL = {
    table.name: f'SELECT count(*) FROM "{table.name}" WHERE seal = ?' for table in _REPEATING
}
_INSERT_GIST = (
    f"INSERT OR IGNORE INTO gist (seq, {GIST.names}) SELECT seq, "
    f"{GIST.marks} FROM page WHERE id "
    f"= ?"
)
_BLANK = {
    table.name: ", ".join(
        f"{name} = NULL" for name in (*table.names.split(", "), *(["nth"] if table.repeats else ()))
    )
    for table in ERASABLE
}
_ERASE = tuple(
    (f"UPDATE {name} SET {_BLANK[name]} WHERE {column} IN (SELECT value FROM json_each(?))")
    for name, column in (
        ("memory", "id"),
        ("memory_link", '"of"'),
        ("memory_link", '"to"'),
        ("memory_use", "memory"),
    )
)
_OVERWRITE_NOTE = (
    f"UPDATE note SET ({NOTE.names}) = ({NOTE.marks}) WHERE space = ? AND key = ? AND version = ?"
)
_Plain = (
    Session
    | Node
    | Page
    | ToolSeen
    | Reference
    | ShownRow
    | HiddenRow
    | SentRow
    | Bill
    | Summary
    | MemoryRecord
    | Note
)
_Repeating = Event | MemoryLink | MemoryUse
_TABLE_OF: dict[type, RowTable[Any]] = {table.noun: table for table in (*_PLAIN, *_REPEATING)}


def write(
    connection: apsw.Connection, writing: Writing, pressed: Mapping[Digest, Compressed]
) -> None:
    """The rows of one deposit. `pressed` holds content that was compressed beforehand."""
    if writing.erased:
        _erase(connection, writing.erased)
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
        writing.memories,
        () if writing.overwritten else writing.notes,
    )
    for row in chain.from_iterable(rows):
        _insert(connection, row)
    for (
        old
    ) in writing.overwritten:  # rows are numbered without gaps, so none is deleted: see `repair`
        [note] = writing.notes
        connection.execute(
            _OVERWRITE_NOTE, (*NOTE.pack(note), old.space, pack_hex(old.key), old.version)
        )
    for turn in writing.turns:
        _put_turn(connection, turn)
    repeating: tuple[tuple[_Repeating, ...], ...] = (writing.events, writing.links, writing.uses)
    for each in chain.from_iterable(repeating):
        _insert_another(connection, each)
    for gist in writing.gists:
        _insert_gist(connection, gist)


class RowImport:
    """Takes in rows that another store gave out."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._seen: Counter[bytes] = Counter()
        self._meeting = MemoryMerge(SqlLookup(connection), partial(versions_of, connection))

    def take(self, row: Row, pressed: Compressed | None = None) -> bool:  # noqa: PLR0911 - one case a kind of row
        """True where the row is new. `pressed` is content that was compressed beforehand."""
        match row:
            case Blob():
                return insert_blob(self._connection, row, pressed)
            case Turn():
                return self._take_turn(row)
            case MemoryRecord():
                version = self._meeting.take(row)
                return version is not None and _insert(self._connection, version)
            case MemoryLink() | MemoryUse():
                refuse_unfit(row)
                return self._take_nth(row)
            case Event():
                return self._take_nth(row)
            case Gist():
                return _insert_gist(self._connection, row)
            case HiddenRow() if (note := note_of(self._connection, row)) is not None:
                return _insert(self._connection, note)
            case Note() if row.scope is Scope.MACHINE:
                return False
            case _:
                return _insert(self._connection, row)

    def finish(self) -> int:
        """To be called before each commit. Gives how many rows it added."""
        return sum(_insert(self._connection, memory) for memory in self._meeting.ours_again())

    def _take_nth(self, row: _Repeating) -> bool:
        """Two equal rows are two: the n-th of the file is the n-th of the store."""
        table = _TABLE_OF[type(row)]
        values = table.pack(row)
        seal = values[-1]
        assert isinstance(seal, bytes)
        self._seen[seal] += 1
        return _insert_nth(self._connection, table, values, self._seen[seal] - 1)

    def _take_turn(self, turn: Turn) -> bool:
        there = SqlLookup(self._connection).turn(turn.session, turn.number)
        if there is not None and not supersedes(turn, there):
            return False
        _put_turn(self._connection, turn)
        return True


def has_blob(connection: apsw.Connection, digest: Digest) -> bool:
    return (
        connection.execute("SELECT 1 FROM blob WHERE digest = ?", (pack_hex(digest),)).fetchone()
        is not None
    )


def insert_blob(connection: apsw.Connection, blob: Blob, pressed: Compressed | None = None) -> bool:
    if has_blob(connection, blob.digest):
        return False
    form = pressed or compress(blob.content)
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


def _insert_another(connection: apsw.Connection, row: _Repeating) -> None:
    table = _TABLE_OF[type(row)]
    values = table.pack(row)
    _insert_nth(connection, table, values, _equal_rows(connection, table, values[-1]))


def _equal_rows(connection: apsw.Connection, table: RowTable[Any], seal: Value) -> int:
    row = connection.execute(_COUNT_EQUAL[table.name], (seal,)).fetchone()
    return int(row[0]) if row else 0


def _insert_nth(
    connection: apsw.Connection, table: RowTable[Any], values: tuple[Value, ...], nth: int
) -> bool:
    connection.execute(_INSERT_NTH[table.name], (*values, nth))
    return connection.changes() == 1


def _erase(connection: apsw.Connection, memories: tuple[MemoryId, ...]) -> None:
    """Their numbers stay: see `migrations`."""
    named = msgspec.json.encode(memories).decode()
    for sql in _ERASE:
        connection.execute(sql, (named,))


def _insert_gist(connection: apsw.Connection, gist: Gist) -> bool:
    connection.execute(_INSERT_GIST, (*GIST.pack(gist), gist.page))
    if connection.changes() == 1:
        return True
    if connection.execute("SELECT 1 FROM page WHERE id = ?", (gist.page,)).fetchone() is None:
        raise BadInput(f"a gist of page {gist.page}, which is not there")
    return False
