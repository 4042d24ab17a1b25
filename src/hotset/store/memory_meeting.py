"""Memories of another store meet ours: what both changed is kept from both.

A version that we have stays; one that follows ours is taken as it is. From the first version on in
which the two say something else, theirs are put behind ours under new numbers, and our latest is
put behind them again: whoever loads an export changes nothing about what holds here, and finds
everything that held there among the versions. Loading it again brings nothing new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from hotset.errors import BadInput
from hotset.nouns.memory import MemoryId, MemoryRecord
from hotset.store.memory_form import refuse_unfit
from hotset.store.memory_placing import is_same_memory
from hotset.store.port import Lookup

_WHY = "held here when versions of another store were loaded"


class MemoryMerge:
    """The memories of one load. What `take` gives is written at once, and what `ours_again` gives
    before each commit."""

    def __init__(
        self, look: Lookup, versions: Callable[[MemoryId], Sequence[MemoryRecord]]
    ) -> None:
        """Both tell what the store holds at the moment, with all that was written since."""
        self._look = look
        self._versions = versions
        self._ours: dict[MemoryId, MemoryRecord] = {}
        self._put_behind: set[MemoryId] = set()

    def take(self, theirs: MemoryRecord) -> MemoryRecord | None:
        """The version to write; None where there is nothing new about it. Raises `BadInput`."""
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
