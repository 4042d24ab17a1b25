"""Writes what a piece of work made of memories, where it differs from what is there, and never over what somebody decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from hotset.errors import Conflict, NotFound
from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import Memory, MemoryId, MemoryKind, MemoryLink, Relation, Standing
from hotset.sources.memory.managing.versions import RULES, STANDS, following
from hotset.sources.memory.naming import is_same
from hotset.store.port import Store

_T = TypeVar("_T")

CONSOLIDATE = "consolidate-"
"""How the names of its runs begin."""

_KEEP_SECONDS = 30.0
_TRIES = 3  # when others write the same memories meanwhile
_BY_HAND = ("undo-", "restore-")  # work after which a memory stays as it was left: what somebody took back is not done again
_DRAWN = (Relation.DERIVED_FROM, Relation.RELATED_TO)


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory as it should be, and what it hangs on."""

    memory: Memory
    derived_from: tuple[MemoryId, ...] = ()
    related_to: tuple[MemoryId, ...] = ()


def is_derived(memory: Memory) -> bool:
    """Was it drawn from other memories, and from nothing else?"""
    return memory.source.by == RULES and memory.source.session is None and not memory.source.pages


def is_by_hand(memory: Memory) -> bool:
    """Did somebody take back, or bring back, what was done to it?"""
    return memory.run.startswith(_BY_HAND)


def batched(items: Iterable[_T], many: int) -> Iterator[list[_T]]:
    stream = iter(items)
    while some := list(islice(stream, many)):
        yield some


class Drafting:
    """One run's way into the store: each call of `write` and `keep` is one commit."""

    def __init__(self, store: Store, now: float, run: str) -> None:
        self._store, self._now, self._run = store, now, run
        self.links = 0
        """That were written."""

    def write(self, drafts: Sequence[Draft]) -> int:
        """Gives the number of memories that are new or other than they were."""
        for left in reversed(range(_TRIES)):
            news = [news for draft in drafts if (news := self._news(draft)) is not None]
            memories = [memory for memory, _ in news if memory is not None]
            try:
                self._put(memories, [link for _, links in news for link in links])
            except Conflict:
                if not left:
                    raise
            else:
                return len(memories)
        return 0

    def keep(self, memories: Sequence[Memory], links: Sequence[MemoryLink]) -> bool:
        """Whether it was written: not where somebody else changed one of these meanwhile. The next run looks at it again."""
        try:
            self._put(memories, links)
        except Conflict:
            return False
        return bool(memories or links)

    def retire(self, kind: MemoryKind, wanted: set[MemoryId], many: int) -> None:
        """What was drawn from memories that no longer agree holds no longer; `wanted` is all that still does."""
        why = "what it was drawn from no longer agrees"
        stale = (
            following(each, self._now, self._run, why, standing=Standing.SUPERSEDED, valid_until=self._now)
            for each in self._store.memories(frozenset({kind}), frozenset({Standing.ACTIVE}))
            if is_derived(each) and each.id not in wanted and not each.pinned and not is_by_hand(each)
        )
        for some in batched(stale, many):
            self.keep(some, ())

    def _news(self, draft: Draft) -> tuple[Memory | None, list[MemoryLink]] | None:
        """What differs from what is there; None where somebody had the last word."""
        made = replace(draft.memory, time=self._now, run=self._run, why="drawn from what memories share")
        try:
            latest = self._store.memory(made.id)
        except NotFound:
            return made, self._new_links(draft)
        retired = latest.standing is Standing.SUPERSEDED and latest.run.startswith(CONSOLIDATE)
        if not is_derived(latest) or not (latest.standing in STANDS or retired):
            return None
        made = replace(made, version=latest.version + 1, pinned=latest.pinned, why="more is known")
        if is_same(made, latest):
            return None, self._new_links(draft)
        if is_by_hand(latest) and any(is_same(made, before) for before in self._store.memory_versions(made.id)):
            return None
        return made, self._new_links(draft)

    def _new_links(self, draft: Draft) -> list[MemoryLink]:
        """Those that are missing, and an end to those that hold no longer."""
        id = draft.memory.id
        wanted = {(to, Relation.DERIVED_FROM) for to in draft.derived_from} | {
            (to, Relation.RELATED_TO) for to in draft.related_to
        }
        held = {(link.to, link.relation) for link in self._store.memory_links(id) if link.of == id and link.relation in _DRAWN}
        return [
            MemoryLink(id, to, relation, self._now, self._run, gone=(to, relation) in held)
            for to, relation in sorted(wanted ^ held)
        ]

    def _put(self, memories: Sequence[Memory], links: Sequence[MemoryLink]) -> None:
        if memories or links:
            self._store.keep(Remembered(tuple(memories), tuple(links))).result(_KEEP_SECONDS)
            self.links += sum(not link.gone for link in links)
