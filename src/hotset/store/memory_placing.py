"""From what was remembered or erased to the rows of one commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

from hotset.errors import BadInput, Conflict
from hotset.nouns.deposit import Erased, Remembered
from hotset.nouns.memory import MemoryId, MemoryLink, MemoryRecord, MemoryUse, Relation
from hotset.nouns.turn import Event
from hotset.store.memory_form import refuse_unfit
from hotset.store.port import Lookup, Writing


def place_memories(deposit: Remembered, look: Lookup) -> Writing:
    """Raises `Conflict` where somebody else wrote a version first, `BadInput` where something
    cannot be kept."""
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
    """Raises `BadInput`. What is not there is no error: whoever erases twice wants it gone."""
    ids = tuple(dict.fromkeys(deposit.memories))
    if not all(ids):
        raise BadInput("a memory without an id cannot be erased")
    return Writing(
        erased=ids, events=(Event("Erased", deposit.time, detail=asdict(look.memory_rows(ids))),)
    )


def is_same_memory(one: MemoryRecord, other: MemoryRecord) -> bool:
    """Whichever work wrote it, when, why, and as which version."""
    return _said(one) == _said(other)


def _said(memory: MemoryRecord) -> MemoryRecord:
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
    """Those that change which links hold: one that is there is not made again, one that is not
    there is not taken back."""
    latest: dict[tuple[MemoryId, MemoryId, Relation], MemoryLink | None] = {}
    for link in links:
        ends = link.of, link.to, link.relation
        before = latest[ends] if ends in latest else look.last_link(*ends)
        latest[ends] = before
        if link.gone != (before is None or before.gone):
            latest[ends] = link
            yield link
