"""Memories of files into the store: nothing twice, nothing over what is known here, and no more trust than was given.

A file can claim anything of itself, also that hotset wrote it and that a person confirmed it. So what is not in this store
already comes in as `Trust.OUTSIDE`, and its procedures and pitfalls wait for a person or an outcome, unless the person who
imports them vouches for them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain, islice
from typing import IO, TypeVar

import msgspec

from hotset.errors import NotFound
from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import Memory, MemoryId, MemoryLink, Relation, Standing, Trust
from hotset.nouns.progress import Progress, silent
from hotset.sources.memory.files.kinds import KINDS, sealed
from hotset.sources.memory.naming import is_same
from hotset.store.memory_form import from_fields, refuse_unfit
from hotset.store.port import Store

BATCH = 500  # memories a commit
_IMPORT = "import-"
_AGAINST = frozenset({Relation.SUPERSEDES, Relation.CONTRADICTS})
_T = TypeVar("_T", Memory, MemoryLink)


@dataclass(slots=True)
class MergeReport:
    """What became of the memories of an import."""

    run: str
    """The piece of work that `undo` takes back."""
    new: int = 0
    changed: int = 0
    same: int = 0
    """Were here already, now or in an earlier version."""
    links: int = 0
    waiting: int = 0
    """New ones that wait for confirmation."""
    kept: list[MemoryId] = field(default_factory=list)
    """Differ here, and stay as they are here."""


def merge_memories(
    store: Store,
    found: Iterable[Memory | MemoryLink],
    *,
    place: str,
    now: float,
    vouched: bool = False,
    progress: Progress = silent,
) -> MergeReport:
    """All of it is read before anything is written: what cannot be read leaves the store as it was. Done again, it does nothing.

    `place` is what it came from, in a word; `vouched` says that a person stands for it. Raises what `found` raises, and what the
    store does: `Conflict` where the same memories change meanwhile, `StoreFailed`. To do it again is safe then.
    """
    merge = _Merge(store, place, now, vouched, MergeReport(run_of(place, now)))
    with tempfile.TemporaryFile() as spool:  # has no name: only this process can read it
        count, links = _spool(found, spool)
        memories = (from_fields(msgspec.json.decode(line)) for line in spool)
        deposits = chain(
            ((len(batch), Remembered(memories=merge.choose(merge.memory, batch))) for batch in _batches(memories)),
            ((len(batch), Remembered(links=merge.choose(merge.link, batch))) for batch in _batches(links)),
        )
        done = 0
        for size, deposit in deposits:
            if deposit.memories or deposit.links:
                store.keep(deposit).result()
            done += size
            progress("memories", done, count + len(links))
    return merge.report


def run_of(place: str, now: float) -> str:
    """The name of an import."""
    return _IMPORT + blake2b(f"{place}\0{now}".encode("utf-8", "surrogateescape"), digest_size=5).hexdigest()


def _spool(found: Iterable[Memory | MemoryLink], spool: IO[bytes]) -> tuple[int, list[MemoryLink]]:
    """Writes the memories, sealed, one a line, so that any number of them takes no room. Gives how many, and the links."""
    count, links = 0, []
    for each in found:
        if isinstance(each, MemoryLink):
            links.append(each)
            continue
        memory = sealed(each)
        refuse_unfit(memory)
        spool.write(msgspec.json.encode(memory) + b"\n")
        count += 1
    spool.seek(0)
    return count, links


def _batches(rows: Iterable[_T]) -> Iterator[list[_T]]:
    rows = iter(rows)
    while batch := list(islice(rows, BATCH)):
        yield batch


@dataclass(frozen=True, slots=True)
class _Merge:
    """One import: decides what of it is written."""

    store: Store
    place: str
    now: float
    vouched: bool
    report: MergeReport

    @staticmethod
    def choose(decide: Callable[[_T], _T | None], batch: Iterable[_T]) -> tuple[_T, ...]:
        return tuple(row for each in batch if (row := decide(each)) is not None)

    def memory(self, read: Memory) -> Memory | None:
        """The version to write, if any."""
        report = self.report
        meant = _confirmed(read) if self.vouched else _lowered(read)
        versions = self.store.memory_versions(read.id)
        if not versions:
            report.new += 1
            report.waiting += meant.standing is Standing.CANDIDATE
            return self._version(meant, 1)
        latest = versions[-1]
        if any(_has_words(version, read) for version in versions):
            if self.vouched and _has_words(latest, read) and (confirmed := _raised(latest, meant)) != latest:
                report.changed += 1
                return self._version(confirmed, latest.version + 1)
            report.same += 1
            return None
        # an import from the same place that is as it was left, or an edited export of this store that a person vouches for
        is_imported = latest.run.startswith(_IMPORT) and {self.place, *meant.source.places} & set(latest.source.places)
        is_edited = self.vouched and (read.version, read.time) == (latest.version, latest.time)
        if latest.standing is Standing.FORGOTTEN or not (is_imported or is_edited):
            report.kept.append(read.id)
            return None
        report.changed += 1
        return self._version(meant, latest.version + 1)

    def link(self, read: MemoryLink) -> MemoryLink | None:
        """The link to write, if any."""
        try:
            ends = [self.store.memory(read.of), self.store.memory(read.to)]
        except NotFound:
            return None
        if any(end.standing is Standing.FORGOTTEN for end in ends):
            return None
        if not self.vouched and read.relation in _AGAINST and any(end.source.by != "import" for end in ends):
            return None  # a file alone cannot replace what is known here
        known = {(link.of, link.to, link.relation) for link in self.store.memory_links(read.of)}
        if (read.of, read.to, read.relation) in known:
            return None
        self.report.links += 1
        return replace(read, time=self.now, run=self.report.run)

    def _version(self, memory: Memory, version: int) -> Memory:
        places = dict.fromkeys((*memory.source.places, self.place))
        return replace(
            memory,
            source=replace(memory.source, places=tuple(places)),
            version=version,
            time=self.now,
            run=self.report.run,
            why=f"imported from {self.place}",
        )


def _lowered(memory: Memory) -> Memory:
    """As words of an unknown author, whatever they say of themselves."""
    waits = memory.standing is Standing.ACTIVE and KINDS[memory.kind].is_advice
    return replace(
        memory,
        source=replace(memory.source, by="import", session=None, pages=()),
        trust=Trust.OUTSIDE,
        standing=Standing.CANDIDATE if waits else memory.standing,
        pinned=False,
    )


def _confirmed(memory: Memory) -> Memory:
    """What hotset made elsewhere is as it says; what others wrote is now the word of the person who vouches for it."""
    if memory.source.by != "import":
        return memory
    waits = memory.standing is Standing.CANDIDATE
    return replace(memory, trust=Trust.PERSON, standing=Standing.ACTIVE if waits else memory.standing)


def _has_words(known: Memory, read: Memory) -> bool:
    """Are the words the same? Who stands for them, and when a file was written that gives no time, makes no difference."""
    beside = {name: getattr(known, name) for name in ("created", "source", "trust", "standing", "pinned")}
    return is_same(known, replace(read, **beside))


def _raised(known: Memory, meant: Memory) -> Memory:
    """A person stands for it now. What was forgotten or replaced here stays that."""
    if known.standing not in (Standing.ACTIVE, Standing.CANDIDATE):
        return known
    trust = meant.trust if known.trust is Trust.OUTSIDE else known.trust
    standing = meant.standing if known.standing is Standing.CANDIDATE else known.standing
    return replace(known, trust=trust, standing=standing)
