"""Everything a store holds, in one snapshot: the content first, then the rows in the order in which
they were kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import apsw

from hotset.nouns.note import Scope
from hotset.nouns.page import Digest, SessionId
from hotset.store.blobs import read_content
from hotset.store.port import Blob, Row
from hotset.store.rows import TABLES, is_blank, unpack_hex

_MEMORIES = "(SELECT id FROM memory WHERE session = :session AND session IS NOT NULL)"
"""Those that come from a session."""

_TRAVELS = f"scope <> '{Scope.MACHINE}'"

_OF_SESSION = {
    "session": "id = :session",
    "node": "session = :session",
    "page": "session = :session",
    "turn": "session = :session",
    "tool": "first_session = :session",
    "event": "session = :session",
    "reference": "session = :session",
    "gist": "seq IN (SELECT seq FROM page WHERE session = :session)",
    "shown": "chain IN (SELECT chain FROM node WHERE session = :session)",
    "hidden": "chain IN (SELECT chain FROM node WHERE session = :session)",
    "sent": "(session = :session OR head IN (SELECT chain FROM node WHERE session = :session))",
    "bill": "session = :session",
    "summary": "session = :session",
    "memory": f"id IN {_MEMORIES}",
    "memory_link": f'"of" IN {_MEMORIES} AND "to" IN {_MEMORIES}',
    "memory_use": f"session = :session AND memory IN {_MEMORIES}",
    "note": f"session = :session AND {_TRAVELS}",
}
"""Forms belong to messages: those of a session's messages go with it, whichever session decided
them. A memory goes with all of its versions, or an older one would hold where it is loaded.
"""

_OF_STORE = {"note": _TRAVELS}

_ORDER = {"shown": "step, seq", "hidden": "step, seq", "sent": "step, seq"}
"""What two stores hold of one page table is in the same order, whichever of them it was loaded into
first."""

_CONTENT_OF_SESSION = """
    digest IN (
        SELECT raw FROM node WHERE session = :session
        UNION ALL SELECT digest FROM page WHERE session = :session
        UNION ALL SELECT digest FROM tool WHERE first_session = :session
        UNION ALL SELECT system FROM turn WHERE session = :session
        UNION ALL SELECT tools FROM turn WHERE session = :session
        UNION ALL SELECT params FROM turn WHERE session = :session
        UNION ALL SELECT reply FROM turn WHERE session = :session
        UNION ALL SELECT text FROM shown WHERE chain IN (SELECT chain FROM node WHERE session = :session)
        UNION ALL SELECT instead FROM hidden WHERE chain IN (SELECT chain FROM node WHERE session = :session)
        UNION ALL SELECT unhex(value) FROM hidden, json_each(before)
            WHERE chain IN (SELECT chain FROM node WHERE session = :session)
        UNION ALL SELECT unhex(value) FROM hidden, json_each(after)
            WHERE chain IN (SELECT chain FROM node WHERE session = :session))
"""  # noqa: E501


def dump(
    reading: Callable[[], AbstractContextManager[apsw.Connection]], session: SessionId | None
) -> Iterator[Row]:
    """One read transaction for the whole of it: a row must not point to content that was kept after
    we looked."""
    of_session = {"session": session}
    with reading() as connection, connection:
        which = _CONTENT_OF_SESSION if session is not None else "1"
        for packed, *form in connection.execute(
            f"SELECT digest, codec, size, body FROM blob WHERE {which} ORDER BY seq",
            of_session if session is not None else None,
        ):
            digest = Digest(unpack_hex(packed))
            yield Blob(digest, read_content(digest, *form))
        for table in TABLES:
            which = (
                _OF_SESSION[table.name] if session is not None else _OF_STORE.get(table.name, "1")
            )
            for row in connection.execute(
                (
                    f'SELECT {table.names} FROM "{table.name}" WHERE {which} ORDER BY '
                    f"{_ORDER.get(table.name, 'seq')}"
                ),
                of_session if session is not None else None,
            ):
                if not is_blank(row):
                    yield table.unpack(row)
