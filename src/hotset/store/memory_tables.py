"""The tables of memories, their links and their uses; and every table in the order of a dump."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hotset.errors import BadInput, PageDamaged
from hotset.nouns.memory import (
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    MemoryUse,
    Relation,
    Standing,
    Task,
    Used,
)
from hotset.nouns.page import Digest, SessionId, digest
from hotset.store.memory_versions import decode_memory, encode_memory
from hotset.store.port import Blob, Row
from hotset.store.tables import (
    BILL,
    EVENT,
    FLAG,
    GIST,
    HIDDEN,
    INT,
    NODE,
    NOTE,
    PAGE,
    REFERENCE,
    SENT,
    SESSION,
    SHOWN,
    SUMMARY,
    TEXT,
    TIME,
    TOOL,
    TURN,
    ColumnCodec,
    RowTable,
    Value,
    compress,
    decompress,
    optional,
    pack_moment,
    pack_number,
)

_OF_MEMORIES = "(SELECT id FROM memory WHERE session = :session AND session IS NOT NULL)"


class MemoryTable(RowTable[MemoryRecord]):
    """Stores the whole noun as one body, so that a new field needs no new column; columns repeat
    what is queried."""

    def _values(self, noun: MemoryRecord) -> tuple[Value, ...]:
        form = compress(encode_memory(noun))
        return (
            noun.id,
            pack_number(noun.version),
            str(noun.kind),
            str(noun.standing),
            noun.source.session,
            noun.run,
            pack_moment(noun.created),
            pack_moment(noun.time),
            int(form.codec),
            form.size,
            form.body,
        )

    def _noun(self, fields: tuple[Any, ...]) -> MemoryRecord:
        id, _, kind, *_, codec, size, body = fields
        try:
            return decode_memory(MemoryKind(kind), decompress(f"memory {id}", codec, size, body))
        except ValueError as error:
            raise PageDamaged(f"memory {id} cannot be read: {error}") from error


MEMORY = MemoryTable(
    "memory",
    MemoryRecord,
    (
        ("id", TEXT),
        ("version", INT),
        ("kind", ColumnCodec(str, MemoryKind)),
        ("standing", ColumnCodec(str, Standing)),
        ("session", optional(TEXT)),
        ("run", TEXT),
        ("created", TIME),
        ("time", TIME),
        ("codec", INT),
        ("size", INT),
        ("body", ColumnCodec(bytes, bytes)),
    ),
    identity=("id", "version"),
    texts=("title", "text", "topics", "source", "detail", "why"),
    of_session=f"id IN {_OF_MEMORIES}",
    erased_by=("id",),
)
MEMORY_LINK: RowTable[MemoryLink] = RowTable(
    "memory_link",
    MemoryLink,
    (
        ("of", TEXT),
        ("to", TEXT),
        ("relation", ColumnCodec(str, Relation)),
        ("time", TIME),
        ("run", TEXT),
        ("gone", FLAG),
    ),
    identity=("of", "to", "relation"),
    repeats=True,
    of_session=f'"of" IN {_OF_MEMORIES} AND "to" IN {_OF_MEMORIES}',
    erased_by=('"of"', '"to"'),
)
MEMORY_USE: RowTable[MemoryUse] = RowTable(
    "memory_use",
    MemoryUse,
    (
        ("memory", TEXT),
        ("how", ColumnCodec(str, Used)),
        ("time", TIME),
        ("session", optional(TEXT)),
        ("task", optional(ColumnCodec(str, Task))),
    ),
    identity=("memory", "how", "time"),
    repeats=True,
    of_session=f"session = :session AND memory IN {_OF_MEMORIES}",
    erased_by=("memory",),
)

TABLES: tuple[RowTable[Any], ...] = (
    SESSION,
    NODE,
    PAGE,
    TURN,
    TOOL,
    EVENT,
    REFERENCE,
    GIST,
    SHOWN,
    HIDDEN,
    SENT,
    BILL,
    SUMMARY,
    MEMORY,
    MEMORY_LINK,
    MEMORY_USE,
    NOTE,
)
"""Every table of rows, in the order of a dump (after the content)."""

ERASABLE: tuple[RowTable[Any], ...] = tuple(table for table in TABLES if table.erased_by)
"""Tables that can have blank rows."""

TABLE_OF: dict[type, RowTable[Any]] = {table.noun: table for table in TABLES}


@dataclass(frozen=True, slots=True)
class Needs:
    """The content and the sessions that a row depends on."""

    content: tuple[Digest, ...] = ()
    sessions: tuple[SessionId, ...] = ()


def needs(row: Row) -> Needs:
    """What a row depends on. Raises `BadInput` for content that does not match its hash.

    Rows of the page table apply wherever their message occurs: they do not depend on the session
    that decided them.
    """
    if isinstance(row, Blob):
        if digest(row.content) != row.digest:
            raise BadInput(f"content {row.digest} does not have that hash; nothing was changed")
        return Needs()
    table = TABLE_OF[type(row)]
    owners = (getattr(row, table.owner),) if table.owner else ()
    if None in owners:
        raise BadInput(f"a {table.name} that belongs to no session; nothing was changed")
    return Needs(table.addresses(row), owners)
