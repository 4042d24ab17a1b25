"""Reads the page table of a line from SQL. A row never changes, so it is verified only once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from hotset.errors import NotFound, PageDamaged
from hotset.files.lru import Lru
from hotset.nouns.page import Chain, Digest
from hotset.nouns.turn import TurnRef
from hotset.nouns.window import Hidden, PageTable, SentRequest, Shown, Spot
from hotset.store.engine import SqlConnection
from hotset.store.port import HiddenRow, SentRow, ShownRow
from hotset.store.queries import ANY_STEP, read_one
from hotset.store.sql_lookup import SqlLookup
from hotset.store.tables import HIDDEN, SENT, SHOWN, Value, pack_hex, read_content

# one statement, prepared once, serves lines of any length; longer ones are asked for in several
# portions
_AT_ONCE = 250
_MARKS = ", ".join("?" * _AT_ONCE)
_ROOM = 16 * 1024 * 1024  # a dozen long conversations
_ROW_BYTES = 700  # what a row takes in memory beside its text

_SPOTS = (
    f"SELECT chain, position, seq FROM shown WHERE chain IN "
    f"({_MARKS}) AND step <= ? ORDER BY "
    f"chain, position, step, session"
)
_SHOWN = (
    f"SELECT chain, position, shown.seq, {SHOWN.names}, codec, size, body "
    f"FROM shown LEFT JOIN blob ON blob.digest = shown.text WHERE shown.seq IN ({_MARKS})"
)
_HIDDEN = (
    f"SELECT chain, seq, step, session, turn FROM hidden WHERE chain "
    f"IN ({_MARKS}) AND step <= ? "
    f"ORDER BY chain, step, session"
)
_ANSWERED = (
    "SELECT sent.head, node.chain, sent.step, sent.session, sent.turn FROM node "
    "JOIN sent ON sent.session = node.session AND sent.turn = node.turn AND sent.head = "
    "node.parent "
    f"WHERE node.chain IN ({_MARKS}) ORDER BY sent.step"
)
_SENT = f"SELECT head, seq FROM sent WHERE head IN ({_MARKS}) AND step <= ? ORDER BY step, session"
_BAD_INDEX = (
    "an index of the page table is damaged: it led to no such row; `hotset repair` makes it again"
)
_BLOB = "SELECT codec, size, body FROM blob WHERE digest = ?"

_Noun = TypeVar("_Noun", Shown, Hidden)
_Place = tuple[Any, ...]
"""Where an index finds a row, with its number: the cache key."""


class _Hidden(NamedTuple):
    chain: Value
    seq: int
    step: int
    session: str
    turn: int


class _ReplyTurn(NamedTuple):
    """The turn in which a message was the reply to the one before it."""

    step: int
    session: str
    turn: int


class PageTables:
    """Assembles page tables, and caches the verified rows."""

    def __init__(self, room: int = _ROOM) -> None:
        """`room` is how many bytes of either kind of row may be cached."""
        self._shown: Lru[_Place, Shown] = Lru("shown rows", weight=room)
        self._hidden: Lru[_Place, Hidden] = Lru("hidden rows", weight=room)

    def table(
        self, connection: SqlConnection, chains: Sequence[Chain], as_of: TurnRef | None
    ) -> PageTable:
        """Call it inside a transaction: the parts of a table belong to one state of the store."""
        step = ANY_STEP if as_of is None else planned_at(connection, as_of)
        if step is None:
            return PageTable()
        keys = [pack_hex(chain) for chain in chains]
        return PageTable(
            shown={row.spot: row for row in self._all_shown(connection, keys, step)},
            hidden={row.chain: row for row in self._all_hidden(connection, keys, step)},
            sent=_deepest_sent(connection, keys, step),
        )

    def _all_shown(
        self, connection: SqlConnection, keys: Sequence[Value], step: int
    ) -> Iterable[Shown]:
        places = [
            place for some in _portions(keys) for place in connection.execute(_SPOTS, (*some, step))
        ]
        latest = {place[:2]: place for place in places}.values()
        rows = self._shown.get_many(latest)
        missing = [place[-1] for place in latest if place not in rows]
        for some in _portions(missing):
            for chain, position, seq, *values in connection.execute(_SHOWN, some):
                row = _read_shown(values)
                rows[chain, position, seq] = row
                self._shown.put((chain, position, seq), row, len(row.text) + _ROW_BYTES)
        return _every(latest, rows)

    def _all_hidden(
        self, connection: SqlConnection, keys: Sequence[Value], step: int
    ) -> Iterable[Hidden]:
        found = [
            _Hidden(*row)
            for some in _portions(keys)
            for row in connection.execute(_HIDDEN, (*some, step))
        ]
        latest = _in_force(connection, keys, found)
        rows = self._hidden.get_many(latest)
        for place in latest:
            if place not in rows and (row := _read_hidden(connection, place)):
                rows[place] = row
                size = sum(map(len, (*row.before, row.instead, *row.after)))
                self._hidden.put(place, row, size + _ROW_BYTES)
        return _every(latest, rows)


def planned_at(connection: SqlConnection, turn: TurnRef) -> int | None:
    """The step of a turn's last plan; None if it was never planned."""
    row = read_one(
        connection,
        SENT,
        "session = ? AND turn = ? ORDER BY step DESC LIMIT 1",
        turn.session,
        turn.number,
    )
    if row is None and SqlLookup(connection).turn(turn.session, turn.number) is None:
        raise NotFound(f"no turn {turn.number} in session {turn.session}")
    return row.step if row is not None else None


def _in_force(
    connection: SqlConnection, keys: Sequence[Value], found: Sequence[_Hidden]
) -> list[_Place]:
    """The places of the current rows of this line: those of the time when the reply after it was
    made, or else the latest.

    Two conversations that open with the same words share their first messages, and may have been
    sent different forms of them.
    """
    behind = dict(pairwise(keys))
    wanted = [
        next
        for chain in dict.fromkeys(row.chain for row in found)
        if (next := behind.get(chain)) is not None
    ]
    answered = {
        (head, chain): _ReplyTurn(*rest)
        for some in _portions(wanted)
        for head, chain, *rest in connection.execute(_ANSWERED, some)
    }
    latest: dict[Value, _Hidden] = {}
    for row in found:
        reply = answered.get((row.chain, behind.get(row.chain)))
        if (
            reply is None
            or row.step <= reply.step
            or (row.session, row.turn) == (reply.session, reply.turn)
        ):
            latest[row.chain] = row
    return [(row.chain, row.seq) for row in latest.values()]


def _read_shown(values: Sequence[Any]) -> Shown:
    *fields, codec, size, body = values
    row = SHOWN.unpack(fields)
    return read_shown(
        row, lambda address: _read_blob(address, (codec, size, body) if body is not None else None)
    )


def _read_hidden(connection: SqlConnection, place: _Place) -> Hidden | None:
    def read(address: Digest) -> bytes:
        return _read_blob(address, connection.execute(_BLOB, (pack_hex(address),)).fetchone())

    row = read_one(connection, HIDDEN, "chain = ? AND seq = ?", *place)
    return read_hidden(row, read) if row is not None else None


def _read_blob(address: Digest, form: Sequence[Any] | None) -> bytes:
    if form is None:
        raise PageDamaged(
            f"content {address} is not there; `hotset repair` lets go of the forms that need it"
        )
    return read_content(address, *form)


def _deepest_sent(
    connection: SqlConnection, keys: Sequence[Value], step: int
) -> SentRequest | None:
    """The deepest message with which a request ended, searched from the end: it is mostly a few
    messages back."""
    depth = {key: number for number, key in enumerate(keys)}
    for end in range(len(keys), 0, -_AT_ONCE):
        some = next(_portions(keys[max(0, end - _AT_ONCE) : end]))
        places = connection.execute(_SENT, (*some, step)).fetchall()
        if places:
            head, seq = max(reversed(places), key=lambda place: depth[place[0]])
            row = read_one(connection, SENT, "head = ? AND seq = ?", head, seq)
            if row is None:
                raise PageDamaged(_BAD_INDEX)
            return read_sent(row)
    return None


def _portions(values: Sequence[Value]) -> Iterator[tuple[Value, ...]]:
    """Equal portions: the last one is padded with a value that is never found."""
    for start in range(0, len(values), _AT_ONCE):
        some = values[start : start + _AT_ONCE]
        yield (*some, *(None,) * (_AT_ONCE - len(some)))


def _every(places: Iterable[_Place], rows: dict[_Place, _Noun]) -> Iterator[_Noun]:
    for place in places:
        row = rows.get(place)
        if row is None:
            raise PageDamaged(_BAD_INDEX)
        yield row


ReadContent = Callable[[Digest], bytes]
"""The content at an address."""


def read_shown(row: ShownRow, read: ReadContent) -> Shown:
    text = read(row.text) if row.text is not None else b""
    return Shown(
        Spot(row.chain, row.position), row.form, text, row.tokens, row.whole, row.cause, row.time
    )


def read_hidden(row: HiddenRow, read: ReadContent) -> Hidden:
    instead = read(row.instead) if row.instead is not None else b""
    return Hidden(
        row.chain, tuple(map(read, row.before)), instead, tuple(map(read, row.after)), row.asides
    )


def read_sent(row: SentRow) -> SentRequest:
    return SentRequest(row.head, row.time, row.tokens)
