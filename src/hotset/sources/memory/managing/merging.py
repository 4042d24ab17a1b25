"""Memories that say the same become one: the best of them carries the sources of all, and the others say where it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hotset.nouns.memory import Memory, MemoryId, MemoryKind, MemoryLink, Relation, Standing, Trust
from hotset.sources.memory.managing.versions import following, joined, rank
from hotset.sources.memory.managing.wording import alike, conflict, in_order, wording

MERGED_KINDS = frozenset({MemoryKind.FACT, MemoryKind.PROCEDURE, MemoryKind.PITFALL, MemoryKind.LEARNING})
"""What can be said twice. Episodes are never merged: what happened twice happened twice."""

_LEAST_ALIKE = 0.6  # of all words shared: vectors alone take two texts about one thing for the same


@dataclass(frozen=True, slots=True)
class Merger:
    kept: MemoryId
    lost: tuple[MemoryId, ...]


def say_the_same(one: str, other: str) -> bool:
    """As far as words can tell: no other number, name or value, and not one yes and the other no."""
    first, second = wording(one), wording(other)
    mine, theirs = first.words - second.words, second.words - first.words
    another_value = len(mine) == 1 and len(theirs) == 1
    close = alike(first, second) >= _LEAST_ALIKE and in_order(first, second)
    return close and not another_value and not conflict(first, second)


def mergers(memories: Iterable[Memory], same: Mapping[str, Sequence[str]]) -> list[Merger]:
    """Groups of which each is one memory, the best of it kept; `same` tells which texts say the same as another.

    Only what says the same as the kept one goes into it: no chain leads to something else. Each memory is in one group at most.
    """
    saying: dict[str, list[Memory]] = {}
    for memory in sorted(memories, key=_worth, reverse=True):
        saying.setdefault(memory.text, []).append(memory)
    taken: set[str] = set()
    found: list[Merger] = []
    for text, best in sorted(((text, said[0]) for text, said in saying.items()), key=lambda each: _worth(each[1]), reverse=True):
        if text in taken:
            continue
        texts = [text, *(other for other in sorted(set(same.get(text, ()))) if other in saying and other not in taken)]
        taken.update(texts)
        lost = [memory.id for each in texts for memory in saying[each] if memory.id != best.id]
        if lost:
            found.append(Merger(best.id, tuple(sorted(lost))))
    return found


def merged(kept: Memory, lost: Sequence[Memory], now: float, run: str) -> tuple[tuple[Memory, ...], tuple[MemoryLink, ...]]:
    """What is to be written."""
    whole = kept
    for each in lost:
        whole = joined(whole, each)
    changed = following(
        kept, now, run, f"says the same as {len(lost)} more", source=whole.source, confidence=whole.confidence, trust=kept.trust
    )
    gone = (following(each, now, run, f"{kept.id} says the same", standing=Standing.MERGED) for each in lost)
    links = (MemoryLink(kept.id, each.id, Relation.DERIVED_FROM, now, run) for each in lost)
    return (changed, *gone), tuple(links)


def _worth(memory: Memory) -> tuple[bool, int, float, float, str]:
    """What a person said or pinned, then the more trusted, the surer, the older one: nobody stands for the words of others."""
    return memory.pinned or memory.trust is Trust.PERSON, rank(memory.trust), memory.confidence, -memory.created, memory.id
