"""Memories: their encoding, the versions and links that a commit adds, and merging with the
versions of another store."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec

from hotset.errors import BadInput, Conflict
from hotset.nouns.memory import (
    DETAILS,
    MemoryId,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    MemoryUse,
    Relation,
)
from hotset.nouns.turn import Event
from hotset.store.port import Lookup, Writing
from hotset.typed import convert, decode, json_decoder

if TYPE_CHECKING:
    from hotset.nouns.deposit import Erased, Remembered


def encode_memory(memory: MemoryRecord) -> bytes:
    return msgspec.json.encode(memory)


def decode_memory(kind: MemoryKind, body: bytes) -> MemoryRecord:
    """Raises `msgspec.ValidationError`, or another `msgspec.DecodeError`."""
    return _memory(_decoder(kind).decode(body))


def memory_from_fields(fields: dict[str, Any]) -> MemoryRecord:
    """The inverse of `msgspec.to_builtins`. Raises `msgspec.ValidationError`."""
    return _memory(convert(fields, _shape(convert(fields.get("kind"), MemoryKind))))


def refuse_unfit(row: MemoryRecord | MemoryLink | MemoryUse) -> None:
    """Raises `BadInput`, with a sentence, for what cannot be kept."""
    ids: tuple[MemoryId, ...]
    match row:
        case MemoryRecord():
            ids, described = (row.id,), f"memory {row.id!r}"
        case MemoryLink():
            ids, described = (row.of, row.to), f"a link of memory {row.of!r}"
        case MemoryUse():
            ids, described = (row.memory,), f"a use of memory {row.memory!r}"
    if not all(ids):
        raise BadInput("a memory without an id cannot be stored")
    if isinstance(row, MemoryRecord) and row.version < 1:
        raise BadInput(f"memory {row.id} has version {row.version}: versions begin with 1")
    if isinstance(row, MemoryRecord) and not 0 <= row.confidence <= 1:
        raise BadInput(
            f"memory {row.id} has confidence {row.confidence}: it must be a number from 0 to 1"
        )
    try:
        body = msgspec.json.encode(row)
        again = (
            decode_memory(row.kind, body)
            if isinstance(row, MemoryRecord)
            else decode(body, type(row))
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"{described} holds what cannot be stored: {_why(error)}") from error
    if again != row:
        raise BadInput(
            f"{described} holds what would come back as something else (a list for a "
            f"tuple, or the detail of another kind)"
        )


def _why(error: Exception) -> str:
    """The reason without NaN and infinity, which JSON lacks: they become null, which is no
    number."""
    text = str(error)
    return f"a number must be finite ({text})" if "got `null`" in text else text


def _memory(shape: msgspec.Struct) -> MemoryRecord:
    return MemoryRecord(*msgspec.structs.astuple(shape))


@cache
def _decoder(kind: MemoryKind) -> msgspec.json.Decoder[Any]:
    return json_decoder(_shape(kind))


@cache
def _shape(kind: MemoryKind) -> type[msgspec.Struct]:
    """The fields of `MemoryRecord` in their order, with the detail of this kind: JSON does not say
    which of several types it is."""
    types = get_type_hints(MemoryRecord)
    detail = DETAILS[kind]
    fields: list[Any] = []
    for field in dataclasses.fields(MemoryRecord):
        hint = (
            types[field.name]
            if field.name != "detail"
            else None
            if detail is None
            else detail | None
        )
        fields.append(
            (field.name, hint)
            if field.default is dataclasses.MISSING
            else (field.name, hint, field.default)
        )
    return msgspec.defstruct(f"{kind.name.title()}Memory", fields)


def place_memories(deposit: Remembered, look: Lookup) -> Writing:
    """The rows for new versions, links and uses. Raises `Conflict` if another writer was first,
    `BadInput` if something cannot be kept."""
    rows: tuple[MemoryRecord | MemoryLink | MemoryUse, ...] = (
        *deposit.memories,
        *deposit.links,
        *deposit.uses,
    )
    for row in rows:
        refuse_unfit(row)
    return Writing(
        memories=tuple(_new_versions(deposit.memories, look)),
        links=tuple(_new_links(deposit.links, look)),
        uses=deposit.uses,
    )


def place_erasure(deposit: Erased, look: Lookup) -> Writing:
    """The rows that erase memories. Raises `BadInput`. A memory that is not there is no error."""
    ids = tuple(dict.fromkeys(deposit.memories))
    if not all(ids):
        raise BadInput("a memory without an id cannot be erased")
    return Writing(
        erased=ids, events=(Event("Erased", deposit.time, detail=asdict(look.memory_rows(ids))),)
    )


def is_same_memory(one: MemoryRecord, other: MemoryRecord) -> bool:
    """True if both are equal except for version, time, run and reason."""
    return _content_of(one) == _content_of(other)


def _content_of(memory: MemoryRecord) -> MemoryRecord:
    return replace(memory, time=0.0, run="", why="", version=0)


def _new_versions(memories: Sequence[MemoryRecord], look: Lookup) -> Iterator[MemoryRecord]:
    latest: dict[MemoryId, MemoryRecord | None] = {}
    fresh: dict[tuple[MemoryId, int], MemoryRecord] = {}
    for memory in memories:
        before = latest[memory.id] if memory.id in latest else look.last_memory(memory.id)
        latest[memory.id] = before
        if before is not None and before.kind is not memory.kind:
            raise BadInput(
                f"memory {memory.id} is a {before.kind} and cannot become a {memory.kind}"
            )
        if memory.version == (before.version if before else 0) + 1:
            latest[memory.id] = fresh[memory.id, memory.version] = memory
            yield memory
            continue
        there = fresh.get((memory.id, memory.version)) or look.memory_version(
            memory.id, memory.version
        )
        if there is None or not is_same_memory(there, memory):
            raise Conflict(f"memory {memory.id} was changed meanwhile; read it again")


def _new_links(links: Sequence[MemoryLink], look: Lookup) -> Iterator[MemoryLink]:
    """Links that change the current state: an existing one is not added again, a missing one is not
    removed."""
    latest: dict[tuple[MemoryId, MemoryId, Relation], MemoryLink | None] = {}
    for link in links:
        ends = link.of, link.to, link.relation
        before = latest[ends] if ends in latest else look.last_link(*ends)
        latest[ends] = before
        if link.gone != (before is None or before.gone):
            latest[ends] = link
            yield link


_WHY = "held here when versions of another store were loaded"


class MemoryMerge:
    """Merges the memories of one load with ours: the changes of both stores are kept.

    A version that we have stays; one that follows ours is taken as it is. From the first difference
    on, their versions are appended to ours under new numbers, and our latest is appended again: a
    load does not change what is current here, and everything that was current there is among the
    versions. Loading it again adds nothing. The result of `take` is written at once, that of
    `ours_again` before each commit.
    """

    def __init__(
        self, look: Lookup, versions: Callable[[MemoryId], Sequence[MemoryRecord]]
    ) -> None:
        """Both return the current state of the store, including everything written since."""
        self._look = look
        self._versions = versions
        self._ours: dict[MemoryId, MemoryRecord] = {}
        self._put_behind: set[MemoryId] = set()

    def take(self, theirs: MemoryRecord) -> MemoryRecord | None:
        """The version to write; None if nothing about it is new. Raises `BadInput`."""
        refuse_unfit(theirs)
        latest = self._look.last_memory(theirs.id)
        if latest is None:
            return theirs
        if latest.kind is not theirs.kind:
            raise BadInput(
                f"memory {theirs.id} is a {latest.kind} here and a {theirs.kind} there; "
                f"nothing was changed"
            )
        if theirs.id not in self._ours:
            same_number = self._look.memory_version(theirs.id, theirs.version)
            if same_number is None:
                return theirs
            if is_same_memory(same_number, theirs):
                return None
            self._ours[theirs.id] = latest
        if any(is_same_memory(ours, theirs) for ours in self._versions(theirs.id)):
            return None
        self._put_behind.add(theirs.id)
        return replace(theirs, version=latest.version + 1)

    def ours_again(self) -> Iterator[MemoryRecord]:
        for id, ours in self._ours.items():
            latest = self._look.last_memory(id) if id in self._put_behind else None
            if latest is not None:
                yield replace(ours, version=latest.version + 1, why=_WHY)
        self._put_behind.clear()
