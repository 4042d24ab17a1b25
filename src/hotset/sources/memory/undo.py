"""Takes back what one run wrote, or all that came from one place, and brings back what was put
aside. Nothing is removed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import pairwise
from typing import Any, Self

from hotset.errors import BadInput
from hotset.nouns.memory import (
    MemoryId,
    MemoryLink,
    MemoryRecord,
    Provenance,
    Relation,
    Standing,
    Trust,
)
from hotset.nouns.page import PageId, SessionId
from hotset.sources.memory.keep import (
    AGENT,
    SESSION,
    STANDS,
    batched,
    commit,
    heard_in,
    is_derived,
    joined_sources,
    known_memories,
    next_version,
    run_name,
    sessions_of,
)
from hotset.sources.memory.kinds import is_same
from hotset.sources.memory.patterns import LEAST_SURE
from hotset.store.port import Store

UNDO, RESTORE = "undo-", "restore-"
"""How the names of their runs begin; `undo` takes back these, too."""

_READ = 512  # versions at once
_AT_ONCE = 256  # that are written in one commit
_ASIDE = frozenset({Standing.FORGOTTEN, Standing.MERGED, Standing.SUPERSEDED})
_OF_A_VERSION = frozenset({"id", "kind", "version", "time", "run", "why"})
_SAID = tuple(field.name for field in fields(MemoryRecord) if field.name not in _OF_A_VERSION)


def undo(store: Store, run: str, now: float) -> int:
    """Takes back what a run did, and gives the number of memories that it changed.

    What the run made is forgotten. In what it changed, each thing is as before, unless somebody
    changed it again since then. Ended at any moment it can be done again; done twice it changes
    nothing more.
    """
    back = f"{UNDO}{run}"
    versions = (
        _before(store.memory_versions(id), run, now, back) for id in _written_by(store, run)
    )
    changed = [each for each in versions if each is not None]
    gone = [
        replace(link, gone=True, time=now, run=back)
        for link in store.memory_links()
        if link.run == run
    ]
    keep_all(store, changed, gone)
    return len(changed)


def restore(store: Store, ids: Sequence[MemoryId], now: float) -> int:
    """Brings back what was forgotten, merged or replaced, as it stood before; gives how many that
    were. Raises `NotFound`."""
    run = run_name(RESTORE, sorted(ids), now)
    versions = (
        _back(store.memory(id), store.memory_versions(id), now, run) for id in dict.fromkeys(ids)
    )
    changed = [each for each in versions if each is not None]
    keep_all(store, changed)
    return len(changed)


def keep_all(
    store: Store, memories: Sequence[MemoryRecord], links: Sequence[MemoryLink] = ()
) -> None:
    """In as many commits as it takes, the links last."""
    for some in batched(memories, _AT_ONCE):
        commit(store, some)
    for few in batched(links, _AT_ONCE):
        commit(store, links=few)


def _written_by(store: Store, run: str) -> Iterable[MemoryId]:
    found: dict[MemoryId, None] = {}
    number = 0
    while versions := store.memories_after(number, _READ):
        found.update((memory.id, None) for _, memory in versions if memory.run == run)
        number = versions[-1][0]
    return found


def _before(
    versions: Sequence[MemoryRecord], run: str, now: float, back: str
) -> MemoryRecord | None:
    """The version without what the run changed; None where nothing of that is left."""
    latest = versions[-1]
    changes: dict[str, Any] = {}
    for before, after in reversed(list(pairwise(versions))):
        if after.run == run:
            for name in _SAID:
                was, became = getattr(before, name), getattr(after, name)
                if was != became and changes.get(name, getattr(latest, name)) == became:
                    changes[name] = was
    if versions[0].run == run and not _is_taken_over(versions, run):
        changes["standing"] = Standing.FORGOTTEN
    undone = next_version(latest, now, back, f"{run} was taken back", **changes)
    return None if is_same(undone, latest) else undone


def _is_taken_over(versions: Sequence[MemoryRecord], run: str) -> bool:
    """Did a person make it theirs since: pinned it, edited it, confirmed it?"""
    latest = versions[-1]
    return latest.pinned or (
        latest.trust is Trust.PERSON
        and any(each.trust is not Trust.PERSON for each in versions if each.run == run)
    )


def _back(
    latest: MemoryRecord, versions: Sequence[MemoryRecord], now: float, run: str
) -> MemoryRecord | None:
    if latest.standing not in _ASIDE:
        return None
    wanted = (
        frozenset(Standing) - {Standing.FORGOTTEN}
        if latest.standing is Standing.FORGOTTEN
        else STANDS
    )
    before = next((each for each in reversed(versions) if each.standing in wanted), None)
    standing, until = (
        (before.standing, before.valid_until) if before is not None else (Standing.ACTIVE, None)
    )
    return next_version(latest, now, run, "brought back", standing=standing, valid_until=until)


ROLLBACK = "rollback-"
"""How the names of its runs begin: `undo` takes a rollback back."""


@dataclass(frozen=True, slots=True)
class RollbackOrigin:
    """What is taken back: whatever has all of these; an empty one is not asked for."""

    place: str = ""
    """A tool, an address or a file, or the folder or site that it is in."""
    session: str = ""
    agent: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """What a rollback does, as versions that are not written yet."""

    forgotten: tuple[MemoryRecord, ...] = ()
    lessened: tuple[MemoryRecord, ...] = ()
    """Others said it, too: it stays, without these sources and less sure."""
    revived: tuple[MemoryRecord, ...] = ()
    """What was replaced by, or merged into, something that is forgotten now."""


def rollback(
    store: Store, now: float, *, place: str = "", session: str = "", agent: str = "", by: str = ""
) -> tuple[MemoryId, ...]:
    """Gives the memories that are forgotten now. Done twice it forgets nothing more. Raises
    `BadInput` where nothing is named."""
    origin = RollbackOrigin(place, session, agent, by)
    taken = plan_rollback(store, origin, now)
    keep_all(store, (*taken.forgotten, *taken.lessened, *taken.revived))
    return tuple(memory.id for memory in taken.forgotten)


def plan_rollback(store: Store, origin: RollbackOrigin, now: float) -> RollbackPlan:
    """What `rollback` would write; nothing is written yet."""
    if origin == RollbackOrigin():
        raise BadInput(
            "say what to take back: a place, a session, an agent, or who put it into words"
        )
    trace = _Trace(store, _Links.of(store.memory_links()))
    run = run_name(ROLLBACK, origin, now)
    for memory in store.memories():
        if _touches(memory.source, origin):
            trace.look(memory, origin)
    trace.follow()
    forgotten = (
        next_version(memory, now, run, f"taken back: {_told(origin)}", standing=Standing.FORGOTTEN)
        for memory in known_memories(store, trace.gone)
        if memory.standing is not Standing.FORGOTTEN
    )
    lessened = (
        next_version(memory, now, run, f"without {_told(origin)}", **trace.left[memory.id])
        for memory in known_memories(store, trace.left)
        if memory.id not in trace.gone and memory.standing is not Standing.FORGOTTEN
    )
    revived = (
        next_version(
            memory,
            now,
            run,
            "what stood in its place was taken back",
            standing=Standing.ACTIVE,
            valid_until=None,
        )
        for memory in known_memories(store, trace.freed())
    )
    return RollbackPlan(tuple(forgotten), tuple(lessened), tuple(revived))


@dataclass(frozen=True, slots=True)
class _Share:
    """What one source added to a memory when it said it."""

    source: Provenance
    confidence: float
    """Of the memory, after that."""

    def is_of(self, origin: RollbackOrigin) -> bool:
        """A share has one session and one agent, and those of others are not among its places."""
        return _touches(self.source, origin)


@dataclass(frozen=True, slots=True)
class _Links:
    """What hangs on what, both ways."""

    origins: Mapping[MemoryId, Sequence[MemoryId]]
    """What a memory was derived from."""
    derived: Mapping[MemoryId, Sequence[MemoryId]]
    replaced: Mapping[MemoryId, Sequence[MemoryId]]
    """What a memory replaced."""
    replacing: Mapping[MemoryId, Sequence[MemoryId]]

    @classmethod
    def of(cls, links: Iterable[MemoryLink]) -> Self:
        found: tuple[defaultdict[MemoryId, list[MemoryId]], ...] = tuple(
            defaultdict(list) for _ in range(4)
        )
        origins, derived, replaced, replacing = found
        for link in links:
            if link.relation is Relation.DERIVED_FROM:
                origins[link.of].append(link.to)
                derived[link.to].append(link.of)
            elif link.relation is Relation.SUPERSEDES:
                replaced[link.of].append(link.to)
                replacing[link.to].append(link.of)
        return cls(*(dict(each) for each in found))


class _Trace:
    """Follows what came from somewhere to all that hangs on it."""

    def __init__(self, store: Store, links: _Links) -> None:
        self._store, self._links = store, links
        self.gone: dict[MemoryId, None] = {}
        self.left: dict[MemoryId, dict[str, Any]] = {}
        """What changes about memories that stay."""

    def look(self, memory: MemoryRecord, origin: RollbackOrigin) -> None:
        """Nobody else said it, or somebody did."""
        shares = _shares(self._store.memory_versions(memory.id))
        others = [share for share in shares if not share.is_of(origin)]
        if not others:
            self.gone[memory.id] = None
        elif len(others) < len(shares):
            is_first = others == shares[: len(others)]
            sure = (
                others[-1].confidence
                if is_first
                else _less(memory.confidence, len(others), len(shares))
            )
            self.left[memory.id] = {
                "source": _whole(others),
                "confidence": min(memory.confidence, sure),
            }

    def follow(self) -> None:
        """Whatever was derived from what is gone, and from that in turn."""
        waiting = list(self.gone)
        while waiting:
            for id in self._links.derived.get(waiting.pop(), ()):
                if id not in self.gone:
                    for memory in known_memories(self._store, (id,)):
                        if self._falls(memory):
                            self.gone[id] = None
                            waiting.append(id)

    def freed(self) -> list[MemoryId]:
        """What nothing stands in the place of any more."""
        candidates = dict.fromkeys(
            id
            for gone in self.gone
            for id in (*self._links.replaced.get(gone, ()), *self._links.origins.get(gone, ()))
        )
        return [
            memory.id
            for memory in known_memories(self._store, candidates)
            if memory.id not in self.gone and self._is_free(memory)
        ]

    def _falls(self, memory: MemoryRecord) -> bool:
        """Does nothing carry it any more? What a person said carries itself."""
        origins = list(known_memories(self._store, self._links.origins.get(memory.id, ())))
        if is_derived(memory):
            live = sum(self._is_live(origin) for origin in origins)
            sure = _less(memory.confidence, live, len(origins))
            self.left[memory.id] = {"confidence": sure}
            return sure < LEAST_SURE
        if memory.trust is Trust.PERSON:
            return False
        grounds = [origin for origin in origins if origin.kind is not memory.kind]
        if grounds and not any(self._is_live(origin) for origin in grounds):
            return True
        proofs = [
            origin
            for origin in origins
            if origin.kind is memory.kind and origin.standing is not Standing.MERGED
        ]
        if proofs and not any(self._is_live(proof) for proof in proofs):
            self._unproven(memory)
        return False

    def _unproven(self, memory: MemoryRecord) -> None:
        """Advice that was confirmed by what is gone waits again."""
        waited = [
            each
            for each in self._store.memory_versions(memory.id)
            if each.standing is Standing.CANDIDATE
        ]
        if waited and memory.standing is Standing.ACTIVE:
            self.left.setdefault(memory.id, {}).update(
                standing=Standing.CANDIDATE, trust=waited[-1].trust
            )

    def _is_live(self, memory: MemoryRecord) -> bool:
        return memory.id not in self.gone and memory.standing is not Standing.FORGOTTEN

    def _is_free(self, memory: MemoryRecord) -> bool:
        if memory.standing is Standing.SUPERSEDED:
            instead = self._links.replacing.get(memory.id, ())
        elif memory.standing is Standing.MERGED:
            instead = [
                each.id
                for each in known_memories(self._store, self._links.derived.get(memory.id, ()))
                if each.kind is memory.kind
            ]
        else:
            return False
        return bool(instead) and not any(
            self._is_live(each) for each in known_memories(self._store, instead)
        )


def _touches(source: Provenance, origin: RollbackOrigin) -> bool:
    """May a part of it be of this origin? Several that said it stand among the places."""
    return (
        (not origin.by or source.by == origin.by)
        and (not origin.session or origin.session in sessions_of(source))
        and (
            not origin.agent
            or source.agent == origin.agent
            or f"{AGENT}{origin.agent}" in source.places
        )
        and (not origin.place or any(_is_in(place, origin.place) for place in source.places))
    )


def _shares(versions: Sequence[MemoryRecord]) -> list[_Share]:
    """Who said it, one after the other: what each version has that the one before had not, and that
    was not taken back since."""
    found: list[_Share] = []
    pages: set[PageId] = set()
    places: set[str] = set()
    for version in versions:
        source = version.source
        new_pages = tuple(page for page in source.pages if page not in pages)
        new_places = [place for place in source.places if place not in places]
        pages.update(new_pages)
        places.update(new_places)
        if not found or new_pages or new_places:
            session = next(
                (place.removeprefix(SESSION) for place in new_places if place.startswith(SESSION)),
                source.session,
            )
            agent = next(
                (place.removeprefix(AGENT) for place in new_places if place.startswith(AGENT)),
                source.agent,
            )
            plain = tuple(place for place in new_places if not place.startswith((SESSION, AGENT)))
            named = SessionId(session) if session is not None else None
            found.append(
                _Share(Provenance(source.by, named, agent, new_pages, plain), version.confidence)
            )
    return [share for share in found if _is_still(share.source, versions[-1].source)]


def _is_still(part: Provenance, whole: Provenance) -> bool:
    heard = part.session is None or heard_in(whole, part.session)
    return (
        heard
        and frozenset(part.pages) <= frozenset(whole.pages)
        and frozenset(part.places) <= frozenset(whole.places)
    )


def _whole(shares: Sequence[_Share]) -> Provenance:
    return reduce(joined_sources, (share.source for share in shares))


def _less(confidence: float, left: int, of: int) -> float:
    """As sure as so many of its sources make it, each of which counts as much as the others."""
    return round(1 - (1 - confidence) ** (left / of), 4) if of else 0.0


def _is_in(place: str, wanted: str) -> bool:
    """Is it that place, or one within it? `docs.example` has `https://docs.example/a` in it."""
    bare, sought = (each.split("://", 1)[-1].rstrip("/") for each in (place, wanted))
    return bare == sought or bare.startswith(f"{sought}/")


def _told(origin: RollbackOrigin) -> str:
    named = {field.name: getattr(origin, field.name) for field in fields(origin)}
    return ", ".join(f"{what} {name}" for what, name in named.items() if name)
