"""Memories that speak of the same as a new one: by the index where there is one, otherwise among the latest by their words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import nlargest

from hotset.errors import HotsetError, NotFound
from hotset.index.port import Index
from hotset.nouns.finding import Filter, Query, Sort
from hotset.nouns.memory import Memory, MemoryId, Standing
from hotset.sources.memory.following import memories_indexed
from hotset.store.port import Store
from hotset.text.terms import terms

_FOUND = 10
_SECONDS = 0.5
_TAIL = 200
"""Versions beyond what the index has that are looked at."""

_STANDING = frozenset({Standing.ACTIVE, Standing.CANDIDATE, Standing.SUPERSEDED})


def near(store: Store, index: Index | None, memory: Memory) -> Sequence[Memory]:
    """Of the same kind, the nearest first; never the memory itself."""
    found = (
        _by_words(store.memories(frozenset({memory.kind}), _STANDING), memory)
        if index is None
        else [*_by_words(_tail(store, index), memory), *_indexed(store, index, memory)]
    )
    return list({each.id: each for each in found if each.id != memory.id and each.standing in _STANDING}.values())[: 2 * _FOUND]


def _indexed(store: Store, index: Index, memory: Memory) -> Iterator[Memory]:
    only = Filter(sorts=frozenset({Sort.MEMORY}), kinds=frozenset({str(memory.kind)}))
    words = f"{memory.title} {memory.text}"[:1000].replace('"', " ")
    for hit in index.search(Query(words, only, _FOUND, _SECONDS)).hits:
        with suppress(NotFound):  # erased since
            yield store.memory(MemoryId(hit.entry.whole))


def _tail(store: Store, index: Index) -> Iterator[Memory]:
    """What was kept a moment ago and is not indexed yet, as it stands now; nothing where an index cannot even say that."""
    with suppress(HotsetError, OSError):
        latest = {each.id: each for _, each in store.memories_after(memories_indexed(store, index), _TAIL)}
        return iter(latest.values())
    return iter(())


def _by_words(every: Iterable[Memory], memory: Memory) -> Sequence[Memory]:
    wanted = _words(memory)
    scored = ((len(wanted & _words(each)), each.id, each) for each in every if each.kind is memory.kind)
    return [each for shared, _, each in nlargest(_FOUND, scored, key=lambda found: found[:2]) if shared]


def _words(memory: Memory) -> frozenset[str]:
    return frozenset(term.text for term in terms(f"{memory.title} {memory.text}"))
