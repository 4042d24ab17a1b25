"""SQL queries: those that placement needs inside the transaction that will write; memories, links,
uses and notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import apsw
import msgspec

from hotset.errors import PageDamaged
from hotset.nouns.memory import (
    MemoryId,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    Relation,
    Standing,
    Used,
    Uses,
)
from hotset.nouns.note import Note
from hotset.nouns.page import ROOT, Chain, Digest, Page, PageId, SessionId
from hotset.nouns.turn import Node, Session, Turn, TurnId
from hotset.store.port import CANDIDATES, FEW, LATEST, BranchStart, MemoryRows, SessionUse
from hotset.store.tables import (
    MEMORY,
    MEMORY_LINK,
    NODE,
    NOTE,
    PAGE,
    SESSION,
    TURN,
    Noun,
    RowTable,
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
                SELECT 1 FROM node WHERE node.session = latest.session AND node.parent = latest.tail AND NOT node.aside)
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

    def __init__(self, connection: apsw.Connection) -> None:
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
        sql = "SELECT 1 FROM node WHERE session = ? AND parent = ? AND NOT aside LIMIT 1"
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


_RECENT = """
    SELECT session.id, session.title, session.agent, session.key FROM session
        LEFT JOIN (SELECT session, max(seq) AS seq FROM turn GROUP BY session) AS used
        ON used.session = session.id ORDER BY used.seq DESC, session.seq DESC
"""
_BRANCHES = """
    SELECT start.branch, start.first, coalesce(before.turn, 0) FROM
        (SELECT branch, min(turn) AS first, min(seq) AS seq FROM node
            WHERE session = ?1 AND branch > 0 AND NOT aside GROUP BY branch) AS start
        JOIN node AS this ON this.seq = start.seq
        LEFT JOIN node AS before ON before.chain = this.parent AND before.session = ?1
        ORDER BY start.branch
"""


def recent_ids(connection: apsw.Connection, words: str, agent: str) -> Sequence[SessionId]:
    """By names that are not verified: what is shown of a session is read, and verified, by its
    id."""
    wanted = words.casefold().split()
    rows: Iterable[Any] = connection.execute(_RECENT)
    return [
        SessionId(id)
        for id, *names in rows
        if (not agent or names[1] == agent)
        and (not wanted or holds_words(wanted, (id, *map(str, names))))
    ]


def holds_words(wanted: Sequence[str], names: Iterable[str]) -> bool:
    """True if each of these words, in small letters, is a part of a name."""
    text = "\n".join(names).casefold()
    return all(word in text for word in wanted)


def session_uses(connection: apsw.Connection, ids: Sequence[SessionId]) -> Sequence[SessionUse]:
    look = SqlLookup(connection)
    found = ((look.session(id), look.last_turn(id)) for id in ids)
    count = "SELECT count(*) FROM turn WHERE session = ?"
    return [
        SessionUse(session, int(read_value(connection, count, session.id) or 0), last)
        for session, last in found
        if session is not None
    ]


def agents(connection: apsw.Connection) -> Sequence[str]:
    rows: Iterable[Any] = connection.execute(
        "SELECT agent FROM session GROUP BY agent ORDER BY count(*) DESC, agent"
    )
    return [str(agent) for (agent,) in rows]


def branch_starts(connection: apsw.Connection, session: SessionId) -> Sequence[BranchStart]:
    rows: Iterable[Any] = connection.execute(_BRANCHES, (session,))
    return [BranchStart(int(branch), int(first), int(after)) for branch, first, after in rows]


def read_value(connection: apsw.Connection, sql: str, *given: Any) -> Any:
    """The first value of the first row; None if there is no row."""
    row = connection.execute(sql, given).fetchone()
    return row[0] if row else None


def read_one(
    connection: apsw.Connection, table: RowTable[Noun], where: str, *given: Any
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
            chunk = connection.execute(f"{sql} LIMIT {_CHUNK}", (after, *given)).fetchall()
        for row in chunk:
            yield table.unpack(row[1:])
        if len(chunk) < _CHUNK:
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


Reading = Callable[[], AbstractContextManager[apsw.Connection]]

# rows read at once: a slow reader must not hold a transaction open, which would keep the WAL from
# shrinking
_CHUNK = 256
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
    f"SELECT {MEMORY_LINK.names} FROM memory_link AS link WHERE NOT gone AND seq = (SELECT "
    f"max(seq) FROM memory_link AS other"
    ' WHERE other."of" = link."of" AND other."to" = link."to" AND other.relation = link.relation)'
)
_COUNTS = ", ".join(
    f"sum(how = '{how}')" for how in (Used.SHOWN, Used.READ, Used.HELPED, Used.MISLED)
)
_MEMORY_USES = (
    f"SELECT memory, {_COUNTS}, max(iif(how IN ('{Used.READ}', '{Used.HELPED}'), time, 0.0)), "
    f"count(*) "
    "FROM memory_use {} GROUP BY memory"
)
_MEMORY_RUNS = (
    "SELECT run, count(*), max(time) FROM memory WHERE run <> '' "
    "GROUP BY run ORDER BY max(seq) "
    "DESC"
)


def memory_versions(connection: apsw.Connection, id: MemoryId) -> Sequence[MemoryRecord]:
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
    sql = f"{_NEWEST_MEMORIES}{where} ORDER BY latest.created DESC, latest.id DESC LIMIT {_CHUNK}"
    before: tuple[float, str] = (math.inf if until is None else until, "")
    while True:
        with reading() as connection:
            chunk = [MEMORY.unpack(row) for row in connection.execute(sql, (*before, *given))]
        yield from chunk
        if len(chunk) < _CHUNK:
            return
        last = chunk[-1].created, chunk[-1].id
        if last >= before:
            raise PageDamaged(
                "an index of the store is damaged: it leads back; `hotset repair` makes it again"
            )
        before = last


def memory_links(connection: apsw.Connection, id: MemoryId | None) -> Sequence[MemoryLink]:
    where, given = (' AND ("of" = ?1 OR "to" = ?1)', (id,)) if id is not None else ("", ())
    return [
        MEMORY_LINK.unpack(row)
        for row in connection.execute(f"{_LINKS_THAT_HOLD}{where} ORDER BY seq", given)
    ]


def memory_uses(connection: apsw.Connection, ids: Sequence[MemoryId]) -> Mapping[MemoryId, Uses]:
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


def memory_runs(connection: apsw.Connection) -> Sequence[tuple[str, int, float]]:
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


_LATEST_NOTES = (
    f"SELECT {NOTE.names} FROM note AS this WHERE space = ? AND step <= ? AND version = "
    "(SELECT max(version) FROM note WHERE space = this.space AND key = this.key AND step <= ?)"
)
_NOTE_VERSIONS = f"SELECT {NOTE.names} FROM note WHERE space = ? AND key = ? ORDER BY version"
_MOST_KEYS = 250  # bound in one statement


def latest_notes(
    connection: apsw.Connection, space: str, keys: Sequence[str], step: int
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


def note_versions(connection: apsw.Connection, space: str, key: str) -> Sequence[Note]:
    return [NOTE.unpack(row) for row in connection.execute(_NOTE_VERSIONS, (space, pack_hex(key)))]
