"""SQL queries for memories, their links and uses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from hotset.errors import PageDamaged
from hotset.nouns.memory import (
    MemoryId,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    Standing,
    Used,
    Uses,
)
from hotset.store.engine import Reading, SqlConnection
from hotset.store.memory_tables import MEMORY, MEMORY_LINK
from hotset.store.queries import CHUNK, stream_rows

_LATEST_COLUMNS = MEMORY.qualified("latest.")
_LATEST_MEMORIES = (
    f"SELECT first.seq, {_LATEST_COLUMNS} FROM memory AS first "
    "CROSS JOIN memory AS latest ON latest.id = first.id"
    " AND latest.version = (SELECT max(version) FROM memory WHERE id = first.id) "
    "WHERE first.seq > ? AND first.version = (SELECT min(version) FROM memory WHERE id = first.id)"
)
_NEWEST_MEMORIES = (
    f"SELECT {_LATEST_COLUMNS} FROM memory AS latest INDEXED BY memory_created "
    "WHERE (latest.created, latest.id) < (?, ?) AND latest.version = (SELECT max(version) "
    "FROM memory WHERE id = latest.id)"
)
_LINKS_THAT_HOLD = (
    f"SELECT {MEMORY_LINK.names} FROM memory_link AS link WHERE gone = 0 AND seq = (SELECT "
    f"max(seq) FROM memory_link AS other"
    ' WHERE other."of" = link."of" AND other."to" = link."to" AND other.relation = link.relation)'
)
_COUNTS = ", ".join(
    f"count(*) FILTER (WHERE how = '{how}')"
    for how in (Used.SHOWN, Used.READ, Used.HELPED, Used.MISLED)
)
_MEMORY_USES = (
    f"SELECT memory, {_COUNTS}, "
    f"max(CASE WHEN how IN ('{Used.READ}', '{Used.HELPED}') THEN time ELSE 0.0 END), count(*) "
    "FROM memory_use {} GROUP BY memory"
)
_MEMORY_RUNS = (
    "SELECT run, count(*), max(time) FROM memory WHERE run <> '' "
    "GROUP BY run ORDER BY max(seq) "
    "DESC"
)


def memory_versions(connection: SqlConnection, id: MemoryId) -> Sequence[MemoryRecord]:
    rows = connection.execute(
        f"SELECT {MEMORY.names} FROM memory WHERE id = ? ORDER BY version", (id,)
    ).fetchall()
    versions = [MEMORY.unpack(row) for row in rows]
    if any(memory.id != id for memory in versions):
        raise PageDamaged(
            f"an index of the store is damaged: it does not lead to memory {id}; `hotset "
            f"repair` makes it again"
        )
    return versions


def latest_memories(
    reading: Reading, kinds: frozenset[MemoryKind], standings: frozenset[Standing]
) -> Iterator[MemoryRecord]:
    """The latest version of each memory, in the order in which they were first kept."""
    # A memory keeps its kind: with one kind alone its own index leads from version to version, in
    # their order.
    where, given = _among_memories("first.kind", kinds, standings)
    return stream_rows(reading, MEMORY, f"{_LATEST_MEMORIES}{where} ORDER BY first.seq", given)


def newest_memories(
    reading: Reading,
    kinds: frozenset[MemoryKind],
    standings: frozenset[Standing],
    since: float | None,
    until: float | None,
) -> Iterator[MemoryRecord]:
    """The latest version of each memory, latest event first: by the index alone, so that the first
    few cost little."""
    where, given = _among_memories("latest.kind", kinds, standings)
    if since is not None:
        where, given = f"{where} AND latest.created >= ?", [*given, since]
    sql = f"{_NEWEST_MEMORIES}{where} ORDER BY latest.created DESC, latest.id DESC LIMIT {CHUNK}"
    before: tuple[float, str] = (math.inf if until is None else until, "")
    while True:
        with reading() as connection:
            chunk = [MEMORY.unpack(row) for row in connection.execute(sql, (*before, *given))]
        yield from chunk
        if len(chunk) < CHUNK:
            return
        last = chunk[-1].created, chunk[-1].id
        if last >= before:
            raise PageDamaged(
                "an index of the store is damaged: it leads back; `hotset repair` makes it again"
            )
        before = last


def memory_links(connection: SqlConnection, id: MemoryId | None) -> Sequence[MemoryLink]:
    where, given = (' AND ("of" = ?1 OR "to" = ?1)', (id,)) if id is not None else ("", ())
    return [
        MEMORY_LINK.unpack(row)
        for row in connection.execute(f"{_LINKS_THAT_HOLD}{where} ORDER BY seq", given)
    ]


def memory_uses(connection: SqlConnection, ids: Sequence[MemoryId]) -> Mapping[MemoryId, Uses]:
    """From an index alone: rows are not verified one by one, `verify` does that."""
    named = (msgspec.json.encode(ids).decode(),) if ids else ()
    which = (
        "WHERE memory IN (SELECT value FROM json_each(?))" if ids else "WHERE memory IS NOT NULL"
    )
    found: dict[MemoryId, Uses] = {}
    with _telling_damage("the uses of memories are"):
        rows: Iterable[Any] = connection.execute(_MEMORY_USES.format(which), named)
        for memory, shown, read, helped, misled, last, every in rows:
            if shown + read + helped + misled != every:
                raise ValueError(f"{memory} was used in a way that is not known")
            found[MemoryId(memory)] = Uses(shown, read, helped, misled, max(0.0, float(last)))
    return found


def memory_runs(connection: SqlConnection) -> Sequence[tuple[str, int, float]]:
    with _telling_damage("a memory is"):
        return [
            (str(run), int(count), float(last))
            for run, count, last in connection.execute(_MEMORY_RUNS)
        ]


@contextmanager
def _telling_damage(what: str) -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError) as error:
        raise PageDamaged(f"{what} damaged: {error}; `hotset verify` names the row") from error


def _among_memories(
    kind: str, kinds: frozenset[MemoryKind], standings: frozenset[Standing]
) -> tuple[str, list[Any]]:
    conditions: list[str] = []
    if kinds:
        conditions.append(
            f"{kind} = ?" if len(kinds) == 1 else f"+{kind} IN ({', '.join('?' * len(kinds))})"
        )
    if standings:
        conditions.append(f"+latest.standing IN ({', '.join('?' * len(standings))})")
    given = [*sorted(map(str, kinds)), *sorted(map(str, standings))]
    return "".join(f" AND {condition}" for condition in conditions), given
