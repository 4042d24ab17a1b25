"""Checks what a store holds: recomputes every hash, seal and chain, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count as numbers
from typing import Any

from hotset.errors import HotsetError, PageDamaged
from hotset.nouns.link import derive
from hotset.nouns.page import ROOT, Digest
from hotset.nouns.turn import Node
from hotset.store.engine import Reading
from hotset.store.memory_tables import TABLES
from hotset.store.port import Damage, Moved, Row
from hotset.store.queries import read_value
from hotset.store.tables import RowTable, is_blank, pack_hex, read_content, unpack_hex

_CHUNK = 64  # rows at once; after a damaged page each row of its chunk is tried by itself


def verify_rows(reading: Reading, moved: Moved | None = None) -> Iterator[Damage]:
    """Everything that differs from what was kept; every hash, seal and chain is recomputed."""
    tell = _teller(reading, moved)
    for row in _sift(reading, "blob", "digest, codec, size, body"):
        tell()
        if isinstance(row, Damage):
            yield row
            continue
        digest = Digest(unpack_hex(row[0]))
        try:
            read_content(digest, *row[1:])
        except PageDamaged as error:
            yield Damage("content", digest, str(error))
    for table in TABLES:
        for row in _sift(reading, table.name, table.names):
            tell()
            if isinstance(row, Damage):
                yield row
                continue
            if is_blank(row):
                continue
            try:
                noun = table.unpack(row)
            except PageDamaged as error:
                yield Damage(table.name, table.describe(row), str(error) + table.when_lost)
                continue
            for why in _wrongs(reading, table, noun):
                yield Damage(table.name, table.describe(row), why + table.when_lost)


def _teller(reading: Reading, moved: Moved | None) -> Callable[[], None]:
    """Tells that one more row is done, of as many as the tables say that they have."""
    if moved is None:
        return lambda: None
    total = 0
    with suppress(HotsetError), reading() as connection:  # a damaged file is reported
        names = ("blob", *(table.name for table in TABLES))
        counts = (f'SELECT count(*) AS rows FROM "{name}"' for name in names)
        total = int(read_value(connection, f"SELECT sum(rows) FROM ({' UNION ALL '.join(counts)})"))
    done = numbers(1)
    return lambda: moved(next(done), total)


def _wrongs(reading: Reading, table: RowTable[Any], row: Row) -> Iterator[str]:
    """Statements of an intact row that the rest of the store contradicts."""
    for address in table.addresses(row):
        if not _there(reading, "SELECT 1 FROM blob WHERE digest = ?", pack_hex(address)):
            yield f"its content {address} is not there"
    if isinstance(row, Node):
        if row.chain != derive(row.parent, row.essence, aside=row.aside):
            yield "its chain does not follow from its parent and what it says"
        parent_known = row.parent == ROOT or _there(
            reading,
            "SELECT 1 FROM node WHERE chain = ? AND session = ?",
            pack_hex(row.parent),
            row.session,
        )
        if not parent_known:
            yield "the message before it is not there"


def _there(reading: Reading, sql: str, *given: Any) -> bool:
    try:
        with reading() as connection:
            return connection.execute(sql, given).fetchone() is not None
    except PageDamaged:
        return False


def _sift(reading: Reading, table: str, columns: str) -> Iterator[Sequence[Any] | Damage]:
    """Every readable row; unreadable ones are reported and skipped."""
    try:
        with reading() as connection:
            last = connection.execute(f'SELECT max(seq) FROM "{table}"').fetchone()
    except PageDamaged as error:
        yield Damage("file", table, f"its rows cannot be reached: {error}")
        return
    end = last[0] if last and isinstance(last[0], int) else 0
    after: Any = 0
    while after < end:
        try:
            with reading() as connection:
                rows = connection.execute(
                    (
                        f'SELECT seq, {columns} FROM "{table}" WHERE seq > ? AND seq <= ? ORDER '
                        f"BY seq LIMIT {_CHUNK}"
                    ),
                    (after, end),
                ).fetchall()
        except PageDamaged:
            yield from _one_by_one(
                reading, table, columns, range(after + 1, min(end, after + _CHUNK) + 1)
            )
            after += _CHUNK
            continue
        for row in rows:
            yield row[1:]
        last = rows[-1][0] if len(rows) == _CHUNK else end
        if last <= after:
            yield Damage("file", table, f"its rows are out of order: behind {after} comes {last}")
            return
        after = last


def _one_by_one(
    reading: Reading, table: str, columns: str, seqs: range
) -> Iterator[Sequence[Any] | Damage]:
    for seq in seqs:
        try:
            with reading() as connection:
                row = connection.execute(
                    f'SELECT {columns} FROM "{table}" WHERE seq = ?', (seq,)
                ).fetchone()
        except PageDamaged as error:
            yield Damage("file", f"{table} {seq}", str(error))
        else:
            if row is not None:
                yield row
