"""SQL queries about sessions: lists of them, and where everything of one is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hotset.nouns.page import Chain, SessionId
from hotset.store.engine import SqlConnection
from hotset.store.port import (
    BranchStart,
    OutlinedMessage,
    OutlinedPage,
    SessionOutline,
    SessionUse,
)
from hotset.store.queries import read_one, read_value
from hotset.store.tables import SESSION, TURN, unpack_hex

_RECENT = """
    SELECT session.id, session.title, session.agent, session.key FROM session
        LEFT JOIN (SELECT session, max(seq) AS seq FROM turn GROUP BY session) AS used
        ON used.session = session.id ORDER BY used.seq DESC NULLS LAST, session.seq DESC
"""
_BRANCHES = """
    SELECT start.branch, start.first, coalesce(before.turn, 0) FROM
        (SELECT branch, min(turn) AS first, min(seq) AS seq FROM node
            WHERE session = ?1 AND branch > 0 AND aside = 0 GROUP BY branch) AS start
        JOIN node AS this ON this.seq = start.seq
        LEFT JOIN node AS before ON before.chain = this.parent AND before.session = ?1
        ORDER BY start.branch
"""


def recent_ids(connection: SqlConnection, words: str, agent: str) -> Sequence[SessionId]:
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


def session_uses(connection: SqlConnection, ids: Sequence[SessionId]) -> Sequence[SessionUse]:
    count, last = "SELECT count(*) FROM turn WHERE session = ?", "session = ? ORDER BY number DESC"
    return [
        SessionUse(
            session,
            int(read_value(connection, count, id) or 0),
            read_one(connection, TURN, f"{last} LIMIT 1", id),
        )
        for id in ids
        if (session := read_one(connection, SESSION, "id = ?", id)) is not None
    ]


def agents(connection: SqlConnection) -> Sequence[str]:
    rows: Iterable[Any] = connection.execute(
        "SELECT agent FROM session GROUP BY agent ORDER BY count(*) DESC, agent"
    )
    return [str(agent) for (agent,) in rows]


def branch_starts(connection: SqlConnection, session: SessionId) -> Sequence[BranchStart]:
    rows: Iterable[Any] = connection.execute(_BRANCHES, (session,))
    return [BranchStart(int(branch), int(first), int(after)) for branch, first, after in rows]


def read_outline(connection: SqlConnection, session: SessionId) -> SessionOutline:
    messages: list[Any] = connection.execute(
        "SELECT chain, parent, turn, aside FROM node WHERE session = ? ORDER BY seq", (session,)
    ).fetchall()
    pages: list[Any] = connection.execute(
        "SELECT page.id, page.chain, page.position, page.kind, page.turn, page.tool, page.size, "
        "gist.tokens FROM page LEFT JOIN gist ON gist.seq = page.seq WHERE page.session = ? "
        "ORDER BY page.seq",
        (session,),
    ).fetchall()
    return SessionOutline(
        [
            OutlinedMessage(Chain(unpack_hex(chain)), Chain(unpack_hex(parent)), turn, bool(aside))
            for chain, parent, turn, aside in messages
        ],
        [OutlinedPage(id, Chain(unpack_hex(chain)), *rest) for id, chain, *rest in pages],
    )
