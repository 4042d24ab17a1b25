"""Sessions become memories: made by rules, compared with what is there, and written only where they say something new."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hotset.errors import Conflict, NotFound
from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import Memory, MemoryId, MemoryKind, MemoryLink, Standing
from hotset.nouns.page import SessionId
from hotset.sources.memory.disclosing.economics import LOADED
from hotset.sources.memory.managing.versions import RULES, joined
from hotset.sources.memory.naming import is_same
from hotset.store.port import Store

if TYPE_CHECKING:
    from hotset.sources.memory.encoding.reading import Material
    from hotset.sources.memory.managing.superseding import Settled

PERSON = "person"
"""Who put a memory into words, where it was a person."""

_KEEP_SECONDS = 30.0
_TRIES = 3  # when others write the same memories
_TOLD_ANEW = frozenset({MemoryKind.EPISODE, MemoryKind.LEDGER})  # what a session that went on says in other words

Similar = Callable[[Memory], Sequence[Memory]]
"""Memories that speak of the same, the nearest first."""


@dataclass(frozen=True, slots=True)
class Made:
    versions: tuple[Memory, ...] = ()
    """What was written."""
    absorbed: Mapping[MemoryId, MemoryId] = field(default_factory=dict)
    """What says no more than another that was there, and which."""


def remember_session(store: Store, session: SessionId, now: float, similar: Similar) -> Made:
    """What a session came to, as far as it went. Said again, it writes nothing."""
    from hotset.sources.memory.encoding.encode import encode  # noqa: PLC0415 - a tenth of a second that no start pays
    from hotset.sources.memory.encoding.reading import read_session  # noqa: PLC0415

    material = read_session(store, session, now)
    encoded = encode(material)
    made = keep_memories(store, encoded.memories, encoded.links, now, similar)
    _leave_behind(store, session, encoded.memories, now)
    _count_heeded(store, material, encoded.memories, now)
    return made


def keep_memories(store: Store, made: Sequence[Memory], links: Iterable[MemoryLink], now: float, similar: Similar) -> Made:
    """Keeps what is new about these, with all that it means for older ones, in one commit."""
    from hotset.sources.memory.managing.superseding import settle  # noqa: PLC0415 - as above

    given = tuple(links)
    for left in reversed(range(_TRIES)):
        fresh = [version for memory in made if (version := _version(memory, store, now)) is not None]
        settled = settle(fresh, store, similar, now)
        moved = [replace(link, of=_at(link.of, settled), to=_at(link.to, settled)) for link in given]
        new_links = _new_links((*moved, *settled.links), store, now)
        if not settled.memories and not new_links:
            return Made((), settled.absorbed)
        try:
            store.keep(Remembered(settled.memories, new_links)).result(_KEEP_SECONDS)
        except Conflict:
            if not left:
                raise
        else:
            return Made(settled.memories, settled.absorbed)
    raise AssertionError("unreachable")


def _leave_behind(store: Store, session: SessionId, made: Sequence[Memory], now: float) -> None:
    """Ledgers of work that this session went on with, or that came to its end in it."""
    from hotset.sources.memory.managing.going_on import overtaken  # noqa: PLC0415 - as above

    ledgers = store.memories(frozenset({MemoryKind.LEDGER}), frozenset({Standing.ACTIVE}))
    versions, links = overtaken(ledgers, session, made, now)
    if versions:
        with suppress(Conflict):  # somebody else decided about it meanwhile
            store.keep(Remembered(versions, links)).result(_KEEP_SECONDS)


def _count_heeded(store: Store, material: Material, made: Sequence[Memory], now: float) -> None:
    """Which of the memories that the session was told helped or misled it, by what it did then."""
    from hotset.sources.memory.heeding import counted, heeded, told_in  # noqa: PLC0415 - as above

    session = material.session.id
    events = list(store.events(session))
    told = [(memory, turn) for id, turn in told_in(events, LOADED).items() if (memory := _known(store, id)) is not None]
    episodes = [each for each in made if each.kind is MemoryKind.EPISODE]
    uses, why = counted(heeded(material, episodes, told), session, events, now)
    for event in why:  # first: what is counted twice would be worse than what is not
        store.keep(event).result(_KEEP_SECONDS)
    if uses:
        store.keep(Remembered(uses=uses)).result(_KEEP_SECONDS)


def _known(store: Store, id: MemoryId) -> Memory | None:
    try:
        return store.memory(id)
    except NotFound:
        return None


def next_version(latest: Memory, changed: Memory, now: float, why: str, run: str = "") -> Memory:
    """The version that follows."""
    return replace(changed, version=latest.version + 1, time=now, why=why, run=run)


def _at(id: MemoryId, settled: Settled) -> MemoryId:
    return settled.absorbed.get(id, id)


def _version(made: Memory, store: Store, now: float) -> Memory | None:
    """The version to be written; None where nothing is new, or where somebody has had the last word."""
    versions = store.memory_versions(made.id)
    if not versions:
        return replace(made, version=1, time=now)
    latest = versions[-1]
    if latest.standing in (Standing.FORGOTTEN, Standing.MERGED) or latest.source.by == PERSON:
        return None
    if made.kind in _TOLD_ANEW and made.source.by == RULES:
        by_rules = next((each for each in reversed(versions) if each.source.by == RULES), None)
        if by_rules is not None and is_same(_bare(by_rules), _bare(made)):
            return None
        kept = replace(made, pinned=latest.pinned)
        if made.kind is MemoryKind.EPISODE:
            kept = replace(kept, standing=latest.standing, valid_until=latest.valid_until)
        return next_version(latest, kept, now, "its session went on")
    again = joined(latest, made)
    if latest.standing is Standing.CANDIDATE and made.standing is Standing.ACTIVE:
        again = replace(again, standing=made.standing, trust=made.trust)  # an outcome confirms it
    return None if is_same(again, latest) else next_version(latest, again, now, "it came up again")


def _bare(memory: Memory) -> Memory:
    """Without what others decide about it."""
    return replace(memory, pinned=False, standing=Standing.ACTIVE, valid_until=None)


def _new_links(links: Iterable[MemoryLink], store: Store, now: float) -> tuple[MemoryLink, ...]:
    new: dict[tuple[MemoryId, MemoryId, str], MemoryLink] = {}
    held: dict[MemoryId, frozenset[tuple[MemoryId, MemoryId, str]]] = {}
    for link in links:
        if link.of not in held:
            held[link.of] = frozenset((each.of, each.to, str(each.relation)) for each in store.memory_links(link.of))
        named = (link.of, link.to, str(link.relation))
        if named not in held[link.of]:
            new[named] = replace(link, time=link.time or now)
    return tuple(new.values())
