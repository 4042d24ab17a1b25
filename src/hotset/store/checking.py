"""Is everything as it was kept? Every hash, seal and chain is worked out again; nothing is
changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import apsw

from hotset.errors import PageDamaged
from hotset.nouns.link import derive
from hotset.nouns.page import ROOT, Digest
from hotset.nouns.turn import Node
from hotset.store.blobs import read_content
from hotset.store.needs import needs
from hotset.store.port import Damage, Row
from hotset.store.rows import TABLES, is_blank, pack_hex, unpack_hex

Reading = Callable[[], AbstractContextManager[apsw.Connection]]

_WITHOUT = {
    "shown": "; a repair lets it go, and its page is shown as it was before, or full",
    "hidden": "; a repair lets it go, and only what the client saw of that turn is sent",
}
"""What becomes of a conversation without the row that is damaged."""

_CHUNK = 64  # rows at once; after a damaged page each row of its chunk is tried by itself


def verify(reading: Reading, database: Path) -> Iterator[Damage]:
    yield from _file(reading, database)
    for row in _sift(reading, "blob", "digest, codec, size, body"):
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
            if isinstance(row, Damage):
                yield row
                continue
            if is_blank(row):
                continue
            try:
                noun = table.unpack(row)
            except PageDamaged as error:
                yield Damage(
                    table.name, table.describe(row), str(error) + _WITHOUT.get(table.name, "")
                )
                continue
            for why in _wrongs(reading, noun):
                yield Damage(table.name, table.describe(row), why + _WITHOUT.get(table.name, ""))


def _file(reading: Reading, database: Path) -> Iterator[Damage]:
    try:
        with reading() as connection:
            found = [str(text) for (text,) in connection.execute("PRAGMA integrity_check")]
    except PageDamaged as error:
        found = [str(error)]
    for text in found:
        if text != "ok":
            yield Damage("file", database.name, text)


def _wrongs(reading: Reading, row: Row) -> Iterator[str]:
    """What an intact row says that the rest of the store does not bear out."""
    for digest in needs(row).content:
        if not _there(reading, "SELECT 1 FROM blob WHERE digest = ?", pack_hex(digest)):
            yield f"its content {digest} is not there"
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
    """Every row that can be reached; what cannot is reported and stepped over."""
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
