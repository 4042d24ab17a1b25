"""Every kind of memory that files hold: where it stands in an export, how its fields are written and read. Pure.

An object of loki-mode's files carries the whole memory under `hotset`, so that reading gives back what was written. That
counts only while the fields beside it agree with it: an edit of those is read instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from hotset.errors import BadInput
from hotset.nouns.memory import (
    Memory,
    MemoryId,
    MemoryKind,
    MemoryLink,
    Provenance,
    Relation,
    Standing,
    Task,
    Trust,
    Uses,
)
from hotset.sealing import seal
from hotset.sources.memory.files import loki_items
from hotset.sources.memory.files.loki_items import Item, Reading, iso_time, word, words
from hotset.sources.memory.naming import is_memory_id, kind_of, memory_id
from hotset.store.memory_form import from_fields, refuse_unfit
from hotset.tokens import count

MARK = "hotset"
"""The field in which loki-mode's files have what is hotset's own."""
_BESIDE = frozenset({MARK, "links", "source_episodes", "source", "usage_count", "last_used", "last_accessed", "access_count"})
"""Fields that may differ from the memory under `hotset`: counted elsewhere, or stated by the links."""
_SURROGATES = re.compile("[\ud800-\udfff]")
_MOST_TITLE = 160


@dataclass(frozen=True, slots=True)
class KindFormat:
    """One kind of memory in files."""

    page: str
    """The Markdown page that has its entries; a folder of pages for episodes."""
    folder: str
    """Where loki-mode keeps it."""
    names: str
    """A pattern for the JSON files in that folder that hold it."""
    file: str
    """The file that hotset writes for each of them; empty where they stand in a list."""
    list: str
    """The list in which hotset writes them, or an entry for each."""
    show: Callable[[Memory], Item]
    read: Callable[[Item], Reading]
    is_advice: bool = False
    """It waits as a candidate until a person or an outcome confirms it."""


EPISODE, FACT, LEARNING = MemoryKind.EPISODE, MemoryKind.FACT, MemoryKind.LEARNING
INTERNAL = frozenset({MemoryKind.ARRANGEMENT})
"""Kinds that no file holds."""

KINDS: Mapping[MemoryKind, KindFormat] = {
    MemoryKind.EPISODE: KindFormat(
        page="episodes",
        folder="episodic",
        names="(?!index)",
        file="episodic/{day}/task-{id}.json",
        list="episodes",
        show=loki_items.show_episode,
        read=loki_items.read_episode,
    ),
    MemoryKind.FACT: KindFormat(
        page="facts",
        folder="semantic",
        names="patterns|facts",
        file="",
        list="facts",
        show=loki_items.show_fact,
        read=loki_items.read_fact,
    ),
    MemoryKind.PITFALL: KindFormat(
        page="pitfalls",
        folder="semantic",
        names="anti-patterns",
        file="",
        list="anti_patterns",
        show=loki_items.show_pitfall,
        read=loki_items.read_pitfall,
        is_advice=True,
    ),
    MemoryKind.PROCEDURE: KindFormat(
        page="procedures",
        folder="skills",
        names="",
        file="skills/{name}{id}.md",
        list="",
        show=loki_items.show_procedure,
        read=loki_items.read_procedure,
        is_advice=True,
    ),
    MemoryKind.LEDGER: KindFormat(
        page="ledgers",
        folder="ledgers",
        names="",
        file="ledgers/{id}.json",
        list="",
        show=loki_items.show_ledger,
        read=loki_items.read_ledger,
    ),
    MemoryKind.HANDOFF: KindFormat(
        page="handoffs",
        folder="handoffs",
        names="",
        file="handoffs/{id}.json",
        list="",
        show=loki_items.show_handoff,
        read=loki_items.read_handoff,
    ),
    MemoryKind.LEARNING: KindFormat(
        page="learnings",
        folder="learnings",
        names="",
        file="",
        list="learnings",
        show=loki_items.show_learning,
        read=loki_items.read_learning,
    ),
}
"""In the order in which they are written."""


def item_of(memory: Memory, links: Sequence[MemoryLink] = (), uses: Uses | None = None) -> Item:
    """A memory as an object of loki-mode's files. `links` are those from this memory."""
    form = KINDS[memory.kind]
    beside: Item = {}
    if form.folder == "semantic":
        others = [link for link in links if link.relation is not Relation.DERIVED_FROM]
        beside = {
            "source_episodes": [link.to for link in links if link.relation is Relation.DERIVED_FROM],
            "links": [{"to": link.to, "relation": link.relation.value, "strength": 1.0} for link in others],
            "usage_count": uses.read + uses.helped if uses else 0,
            "last_used": iso_time(uses.last) if uses and uses.last else None,
        }
    return {**form.show(memory), **beside, MARK: msgspec.to_builtins(memory)}


def memory_of(kind: MemoryKind, item: Item, place: str, changed: float) -> Memory | None:
    """The memory that an object of loki-mode's files holds; as it was, if hotset wrote it and it was not edited.

    `place` is the file, and `changed` the time that is taken where the object gives none. None if it is empty.
    """
    own = embedded_memory(kind, item)
    if own is not None and KINDS[kind].show(own) == {name: item[name] for name in item if name not in _BESIDE}:
        return own
    theirs = _read_foreign(kind, item, place, changed)
    if own is None or theirs is None or theirs.kind is not kind:
        return theirs
    return replace(theirs, id=own.id, created=own.created, topics=own.topics, task=own.task, version=own.version, time=own.time)


def embedded_memory(kind: MemoryKind, item: Item) -> Memory | None:
    """The memory under `hotset`, if it is valid and of this kind and id."""
    fields = item.get(MARK)
    if not isinstance(fields, dict):
        return None
    try:
        memory = from_fields(fields)
        refuse_unfit(memory)
    except (msgspec.ValidationError, BadInput):
        return None
    fits = memory.kind is kind and memory.id == item.get("id") and is_memory_id(memory.id) and kind_of(memory.id) is kind
    return memory if fits else None


def foreign_memory(
    kind: MemoryKind,
    title: str,
    text: str,
    *,
    id: object = "",
    created: float,
    place: str,
    agent: str = "",
    topics: Iterable[str] = (),
) -> Memory:
    """A memory in the words of an unknown author: data, and no advice until a person confirms it."""
    title = " ".join((title or text).split())[:_MOST_TITLE]
    text = text.strip()[: loki_items.MOST_TEXT]
    key = f"loki:{id}" if isinstance(id, str) and id else f"loki\0{title}\0{text}"
    is_kept = isinstance(id, str) and is_memory_id(id) and kind_of(MemoryId(id)) is kind
    return Memory(
        id=MemoryId(str(id)) if is_kept else memory_id(kind, key, created),
        kind=kind,
        title=title,
        text=text,
        created=created,
        source=Provenance(by="import", agent=agent, places=(place,)),
        topics=tuple(dict.fromkeys(topic for each in topics if (topic := " ".join(each.lower().split())[:60]))),
        trust=Trust.OUTSIDE,
        standing=Standing.CANDIDATE if KINDS[kind].is_advice else Standing.ACTIVE,
        tokens=count(text),
    )


def sealed(memory: Memory) -> Memory:
    """The memory without secrets, and without halves of characters, which no file can hold."""
    return from_fields(_sealed(msgspec.to_builtins(memory)))


def _read_foreign(kind: MemoryKind, item: Item, place: str, changed: float) -> Memory | None:
    if kind is MemoryKind.FACT and word(item, "category") in ("anti-pattern", "anti_pattern"):
        kind = MemoryKind.PITFALL  # some versions keep them among the patterns
    title, text, detail = KINDS[kind].read(item)
    if not title and not text:
        return None
    memory = foreign_memory(
        kind,
        title,
        text,
        id=item.get("id"),
        created=loki_items.read_created(item, changed),
        place=place,
        agent=word(item, "agent", "agent_id", "from_agent"),
        topics=words(item, "category"),
    )
    task = word(item, "task_type", "task")
    return replace(
        memory,
        detail=detail,
        ending=loki_items.read_ending(item),
        task=Task(task) if task in Task._value2member_map_ else None,
        confidence=min(1.0, max(0.0, loki_items.number(item.get("confidence"), memory.confidence))),
    )


def _sealed(value: Any) -> Any:
    match value:
        case str():
            return seal(_SURROGATES.sub("�", value)).text
        case dict():
            return {name: _sealed(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_sealed(inner) for inner in value]
    return value
