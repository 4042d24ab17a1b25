"""SQL queries: one row, the rows of a table in portions, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hotset.errors import PageDamaged
from hotset.nouns.note import Note
from hotset.store.engine import Reading, SqlConnection
from hotset.store.tables import NOTE, Noun, RowTable, pack_hex

ANY_STEP = 2**63 - 1  # SQLite's largest number: no step is behind it


def read_value(connection: SqlConnection, sql: str, *given: Any) -> Any:
    """The first value of the first row; None if there is no row."""
    row = connection.execute(sql, given).fetchone()
    return row[0] if row else None


def read_one(
    connection: SqlConnection, table: RowTable[Noun], where: str, *given: Any
) -> Noun | None:
    """The row, verified by its seal; None if there is no such row."""
    row = connection.execute(
        f'SELECT {table.names} FROM "{table.name}" WHERE {where}', given
    ).fetchone()
    return table.unpack(row) if row is not None else None


def stream_rows(
    reading: Reading, table: RowTable[Noun], sql: str, given: Sequence[Any]
) -> Iterator[Noun]:
    """The rows of a statement that selects `seq` first, after the number given as its first value,
    in order: in portions, so that a slow reader holds no transaction open."""
    after: Any = 0
    while True:
        with reading() as connection:
            chunk = connection.execute(f"{sql} LIMIT {CHUNK}", (after, *given)).fetchall()
        for row in chunk:
            yield table.unpack(row[1:])
        if len(chunk) < CHUNK:
            return
        after = next_seq(after, chunk[-1][0])


def next_seq(after: Any, last: Any) -> Any:
    """Where a walk over rows continues. In a damaged file numbers may lead back, and the walk would
    never end."""
    if not isinstance(last, int) or last <= after:
        raise PageDamaged(
            f"the rows of a table are out of order (behind {after} comes {last}); `hotset "
            f"repair` makes it again"
        )
    return last


# rows read at once: a slow reader must not hold a transaction open, which would keep the WAL from
# shrinking
CHUNK = 256
_LATEST_NOTES = (
    f"SELECT {NOTE.names} FROM note AS this WHERE space = ? AND step <= ? AND version = "
    "(SELECT max(version) FROM note WHERE space = this.space AND key = this.key AND step <= ?)"
)
_NOTE_VERSIONS = f"SELECT {NOTE.names} FROM note WHERE space = ? AND key = ? ORDER BY version"
_MOST_KEYS = 250  # bound in one statement


def latest_notes(
    connection: SqlConnection, space: str, keys: Sequence[str], step: int
) -> Mapping[str, Note]:
    """The version of each key that was current at this step; of every key if none is named. Removed
    notes are left out."""
    rows: list[Any] = []
    for some in [keys[start : start + _MOST_KEYS] for start in range(0, len(keys), _MOST_KEYS)] or [
        ()
    ]:
        which = f" AND key IN ({', '.join('?' * len(some))})" if some else ""
        rows += connection.execute(
            f"{_LATEST_NOTES}{which} ORDER BY seq", (space, step, step, *map(pack_hex, some))
        )
    found = (NOTE.unpack(row) for row in rows)
    return {note.key: note for note in found if note.value is not None}


def note_versions(connection: SqlConnection, space: str, key: str) -> Sequence[Note]:
    return [NOTE.unpack(row) for row in connection.execute(_NOTE_VERSIONS, (space, pack_hex(key)))]
