"""Rows that another store gave out, taken in: all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

import apsw

from hotset.errors import BadInput
from hotset.nouns.page import Digest, SessionId
from hotset.store.inserting import Intake, has_blob
from hotset.store.needs import needs
from hotset.store.port import Row


def load(connection: apsw.Connection, rows: Iterable[Row], in_our_words: Callable[[], AbstractContextManager[None]]) -> int:
    """The number of rows that were new. Raises `BadInput`, and changes nothing, where a row points to what is not there."""
    with in_our_words():
        connection.execute("BEGIN IMMEDIATE")
    try:
        new = _take_all(connection, rows, in_our_words)
        with in_our_words():
            connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return new


def _take_all(connection: apsw.Connection, rows: Iterable[Row], in_our_words: Callable[[], AbstractContextManager[None]]) -> int:
    intake = Intake(connection)
    new = 0
    content: set[Digest] = set()
    sessions: set[SessionId] = set()
    for row in rows:  # an error of their source stays what it is
        needed = needs(row)
        sessions.update(needed.sessions)
        with in_our_words():
            content.update(digest for digest in needed.content if not has_blob(connection, digest))
            new += intake.take(row)
    with in_our_words():
        new += intake.finish()
        _refuse_loose_ends(connection, content, sessions)
    return new


def _refuse_loose_ends(connection: apsw.Connection, content: set[Digest], sessions: set[SessionId]) -> None:
    for digest in content:
        if not has_blob(connection, digest):
            raise BadInput(f"a row points to content {digest}, which is not there; nothing was changed")
    for session in sessions:
        if connection.execute("SELECT 1 FROM session WHERE id = ?", (session,)).fetchone() is None:
            raise BadInput(f"a row belongs to session {session}, which is not there; nothing was changed")
