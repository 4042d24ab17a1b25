"""Memories of files into the store: nothing twice, nothing over what is known here, and no more belief than somebody asked for.

A file can say anything of itself, also that hotset wrote it and that a person confirmed it. So what is not in this store already
comes in as `Trust.OUTSIDE`, and what it calls a procedure or a pitfall waits for a person or an outcome, unless the person who
imports it vouches for it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import IO

import msgspec

from hotset.errors import NotFound
from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import Memory, MemoryId, MemoryKind, MemoryLink, Relation, Standing, Trust
from hotset.nouns.progress import Progress, silent
from hotset.sources.memory.files.shapes import sealed
from hotset.sources.memory.naming import is_same
from hotset.store.memory_form import from_fields, refuse_unfit
from hotset.store.port import Store

BATCH = 500  # memories a commit
_IMPORT = "import-"
_ADVICE = frozenset({MemoryKind.PROCEDURE, MemoryKind.PITFALL})
_AGAINST = frozenset({Relation.SUPERSEDES, Relation.CONTRADICTS})


@dataclass(slots=True)
class Taken:
    run: str
    """The piece of work that `undo` takes back."""
    new: int = 0
    changed: int = 0
    same: int = 0
    """Were here already, now or in an earlier version."""
    links: int = 0
    waiting: int = 0
    """New ones that nobody has confirmed."""
    kept: list[MemoryId] = field(default_factory=list)
    """Say something else here, and go on saying it."""


def take(
    store: Store,
    found: Iterable[Memory | MemoryLink],
    *,
    place: str,
    now: float,
    vouched: bool = False,
    progress: Progress = silent,
) -> Taken:
    """All of it is read before anything is written: what cannot be read leaves the store as it was. Done again, it does nothing.

    `place` is what it came from, in a word; `vouched` says that a person stands for it. Raises what `found` raises, and what the
    store does: `Conflict` where somebody changes the same memories meanwhile, `StoreFailed`. To do it again is safe then.
    """
    taken = Taken(run_of(place, now))
    taking = _Taking(store, place, now, taken, vouched=vouched)
    with tempfile.TemporaryFile() as spool:  # has no name: only this process can read it
        total = _spooled(found, spool)
        done = 0
        for batch in _batches(spool):
            memories = tuple(filter(None, (taking.memory(each) for each in batch if isinstance(each, Memory))))
            links = tuple(filter(None, (taking.link(each) for each in batch if isinstance(each, MemoryLink))))
            if memories or links:
                store.keep(Remembered(memories=memories, links=links)).result()
            done += len(batch)
            progress("memories", done, total)
    return taken


def run_of(place: str, now: float) -> str:
    """What an import is called."""
    return _IMPORT + blake2b(f"{place}\0{now}".encode("utf-8", "surrogateescape"), digest_size=5).hexdigest()


def _spooled(found: Iterable[Memory | MemoryLink], spool: IO[bytes]) -> int:
    """Sealed, one a line, so that any number of them takes no memory. Links come after all memories."""
    links: list[MemoryLink] = []
    count = 0
    for each in found:
        if isinstance(each, MemoryLink):
            links.append(each)
            continue
        memory = sealed(each)
        refuse_unfit(memory)
        spool.write(msgspec.json.encode(memory) + b"\n")
        count += 1
    for link in links:
        spool.write(msgspec.json.encode(link) + b"\n")
    spool.seek(0)
    return count + len(links)


def _batches(spool: IO[bytes]) -> Iterator[list[Memory | MemoryLink]]:
    """Never a link in one batch with memories: they are there by then."""
    batch: list[Memory | MemoryLink] = []
    for line in spool:
        fields = msgspec.json.decode(line)
        each = from_fields(fields) if "kind" in fields else msgspec.convert(fields, type=MemoryLink)
        if batch and (len(batch) == BATCH or type(each) is not type(batch[0])):
            yield batch
            batch = []
        batch.append(each)
    if batch:
        yield batch


class _Taking:
    """One import: what of it is written."""

    def __init__(self, store: Store, place: str, now: float, taken: Taken, *, vouched: bool) -> None:
        self._store = store
        self._place = place
        self._now = now
        self._taken = taken
        self._vouched = vouched

    def memory(self, told: Memory) -> Memory | None:
        """The version to write, if any."""
        meant = _confirmed(told) if self._vouched else _lowered(told)
        versions = self._store.memory_versions(told.id)
        if not versions:
            self._taken.new += 1
            self._taken.waiting += meant.standing is Standing.CANDIDATE
            return self._written(meant, 1)
        latest = versions[-1]
        if any(_says(version, told) for version in versions):
            if self._vouched and _says(latest, told) and (confirmed := _raised(latest, meant)) != latest:
                self._taken.changed += 1
                return self._written(confirmed, latest.version + 1)
            self._taken.same += 1
            return None
        if latest.standing is Standing.FORGOTTEN or not (self._imported(latest, meant) or self._edited(told, latest)):
            self._taken.kept.append(told.id)
            return None
        self._taken.changed += 1
        return self._written(meant, latest.version + 1)

    def link(self, told: MemoryLink) -> MemoryLink | None:
        ends = [self._found(told.of), self._found(told.to)]
        if any(end is None or end.standing is Standing.FORGOTTEN for end in ends):
            return None
        if not self._vouched and told.relation in _AGAINST and any(end and end.source.by != "import" for end in ends):
            return None  # nobody stands for it that something replaces what is known here
        holding = self._store.memory_links(told.of)
        if any((link.of, link.to, link.relation) == (told.of, told.to, told.relation) for link in holding):
            return None
        self._taken.links += 1
        return replace(told, time=self._now, run=self._taken.run)

    def _written(self, memory: Memory, version: int) -> Memory:
        places = dict.fromkeys((*memory.source.places, self._place))
        return replace(
            memory,
            source=replace(memory.source, places=tuple(places)),
            version=version,
            time=self._now,
            run=self._taken.run,
            why=f"imported from {self._place}",
        )

    def _imported(self, latest: Memory, meant: Memory) -> bool:
        """It is as an import from the same place left it: nobody here has touched it since."""
        same_place = {self._place, *meant.source.places} & set(latest.source.places)
        return latest.run.startswith(_IMPORT) and bool(same_place)

    def _edited(self, told: Memory, latest: Memory) -> bool:
        """Somebody changed an export of this store, and stands for it."""
        return self._vouched and (told.version, told.time) == (latest.version, latest.time)

    def _found(self, id: MemoryId) -> Memory | None:
        try:
            return self._store.memory(id)
        except NotFound:
            return None


def _lowered(memory: Memory) -> Memory:
    """As somebody's words that nobody here stands for; whose they say they are does not matter."""
    waits = memory.standing is Standing.ACTIVE and memory.kind in _ADVICE
    return replace(
        memory,
        source=replace(memory.source, by="import", session=None, pages=()),
        trust=Trust.OUTSIDE,
        standing=Standing.CANDIDATE if waits else memory.standing,
        pinned=False,
    )


def _confirmed(memory: Memory) -> Memory:
    """What hotset made elsewhere is as it says; what others wrote is now the word of whoever vouches for it."""
    if memory.source.by != "import":
        return memory
    waits = memory.standing is Standing.CANDIDATE
    return replace(memory, trust=Trust.PERSON, standing=Standing.ACTIVE if waits else memory.standing)


def _says(known: Memory, told: Memory) -> bool:
    """Are the words the same? Whoever stands for them, and when a file was written that tells no time, makes no difference."""
    beside = {name: getattr(known, name) for name in ("created", "source", "trust", "standing", "pinned")}
    return is_same(known, replace(told, **beside))


def _raised(known: Memory, meant: Memory) -> Memory:
    """Somebody stands for it now, where nobody did. What was forgotten or replaced here stays that."""
    if known.standing not in (Standing.ACTIVE, Standing.CANDIDATE):
        return known
    trust = meant.trust if known.trust is Trust.OUTSIDE else known.trust
    standing = meant.standing if known.standing is Standing.CANDIDATE else known.standing
    return replace(known, trust=trust, standing=standing)
