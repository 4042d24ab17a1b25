"""What a new fact does to those that are there: it confirms, replaces or contradicts them. Whatever it does, both stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from hotset.errors import NotFound
from hotset.nouns.memory import Fact, Memory, MemoryId, MemoryKind, MemoryLink, Relation, Standing, Trust
from hotset.sources.memory.managing.versions import following, heard_in, joined, rank
from hotset.sources.memory.managing.wording import (
    Wording,
    alike,
    conflict,
    in_order,
    of_two_things,
    shared,
    telling_words,
    wording,
)
from hotset.sources.memory.naming import is_same
from hotset.store.port import Store
from hotset.text.stems import root

Similar = Callable[[Memory], Sequence[Memory]]
"""Memories that speak of the same, the nearest first."""

DOUBT = 0.6
"""What confidence is left of a fact that a more trusted one contradicts."""

_SAME = 0.85  # of all words shared, one text within the other: what is more is a filler
_CLOSE = 0.7  # of all words shared: nothing but the value differs
_AMENDED = 0.4  # of the shorter one's words in an amendment that names no subject; decisions on other things share up to 0.32
_NEAREST_AMENDED = 0.3  # the same, where nothing else is nearer to the amendment
_FEWEST_SHARED = 5  # words, in such an amendment
_SUBJECT_AMENDED = 0.25  # the same, where both name one subject
_SUBJECT_CLOSE = 0.5  # of all words beside the subject's; a decision told again in other words shares a third
_VALUE = 4  # words that a value has at most
_ASIDE = frozenset({Standing.FORGOTTEN, Standing.SUPERSEDED, Standing.MERGED})


class Verdict(Enum):
    """What a later fact is to an earlier one."""

    UNRELATED = auto()
    SAME = auto()
    CHANGED = auto()
    """Both cannot hold at once."""


@dataclass(frozen=True, slots=True)
class Settled:
    memories: tuple[Memory, ...] = ()
    """All that is to be written: the new ones, as they stand now, and new versions of older ones."""
    links: tuple[MemoryLink, ...] = ()
    absorbed: Mapping[MemoryId, MemoryId] = field(default_factory=dict)
    """New ones that say what is there already, and what carries their sources now: links go there, and they are not written."""


def settle(new: Sequence[Memory], store: Store, similar: Similar, now: float, run: str = "") -> Settled:
    """What is to be written so that the new memories stand in their place among the others.

    Only facts confirm, replace and contradict each other; memories of other kinds are given back as they came. The same, in
    whatever order the new ones are given; with what it gave written, it gives nothing more to write.
    """
    table = _Table(store, now, run)
    for memory in sorted(new, key=lambda each: (each.created, each.id)):
        if memory.kind is MemoryKind.FACT and memory.standing is Standing.ACTIVE:
            table.place(memory, [each.id for each in similar(memory) if each.kind is MemoryKind.FACT])
        else:
            table.put(memory)
    return table.settled()


def settle_among(fact: MemoryId, near: Sequence[MemoryId], store: Store, now: float, run: str = "") -> Settled:
    """What a fact of the store does to others that it is near to, the nearest first; those that say the same stay apart."""
    table = _Table(store, now, run)
    table.weigh(fact, near)
    return table.settled()


def judge(earlier: Memory, later: Memory, *, nearest: bool = False) -> Verdict:
    """What the later one of two facts is to the earlier one, by what they say; `nearest` where no third one is nearer."""
    one, other = wording(earlier.text), wording(later.text)
    if in_order(one, other) and not conflict(one, other):
        within = one.words <= other.words or other.words <= one.words
        if one.words == other.words or (within and alike(one, other) >= _SAME and not other.amends):
            return Verdict.SAME
    if of_two_things(earlier.text, later.text) and not other.amends:
        return Verdict.UNRELATED
    subject = subject_of(earlier)
    if subject and subject == subject_of(later):
        return Verdict.CHANGED if _another_value(one, other, subject) else Verdict.UNRELATED
    least = _NEAREST_AMENDED if nearest else _AMENDED
    if other.amends and shared(one, other) >= least and len(one.words & other.words) >= _FEWEST_SHARED:
        return Verdict.CHANGED
    return Verdict.CHANGED if alike(one, other) >= _CLOSE and conflict(one, other) else Verdict.UNRELATED


def subject_of(memory: Memory) -> frozenset[str]:
    """The words of what it is about; empty where it does not say."""
    named = memory.detail.subject if isinstance(memory.detail, Fact) else ""
    return frozenset(root(word) for word in telling_words(named))


class _Table:
    """The new facts and those that they touch, as they stand while one after another is settled."""

    def __init__(self, store: Store, now: float, run: str) -> None:
        self._store, self._now, self._run = store, now, run
        self._latest: dict[MemoryId, Memory] = {}
        self._written: dict[MemoryId, Memory] = {}
        self._links: dict[tuple[MemoryId, MemoryId, Relation], MemoryLink] = {}
        self._absorbed: dict[MemoryId, MemoryId] = {}
        self._new: list[MemoryId] = []

    def put(self, memory: Memory) -> None:
        self._latest[memory.id] = self._written[memory.id] = memory

    def place(self, new: Memory, near: Sequence[MemoryId]) -> None:
        """Where one that is there says the same, it carries the sources of both; otherwise the new one is weighed."""
        self.put(new)
        others = tuple(dict.fromkeys((*near, *self._new)))
        if new.version == 1:
            for old in self._known(new.id, others):
                if self._takes(old, new) and judge(*_in_time(old, new)) is Verdict.SAME and _speaks_for(old, new):
                    self._absorb(new, old)
                    return
        self.weigh(new.id, others)
        self._new.append(new.id)

    def weigh(self, id: MemoryId, near: Sequence[MemoryId]) -> None:
        """Against those that stand, the nearest first: an amendment that names no subject replaces only one."""
        memory = self._read(id)
        if memory is None or memory.standing is not Standing.ACTIVE:
            return
        links = [link for link in self._store.memory_links(id) if link.relation in (Relation.SUPERSEDES, Relation.CONTRADICTS)]
        decided = frozenset(link.to if link.of == id else link.of for link in links)  # what became of it since is for good
        amended = any(link.of == id and link.relation is Relation.SUPERSEDES for link in links)
        for old in self._standing(id, near):
            now = self._latest[id]
            if old.id in decided or now.standing is not Standing.ACTIVE:
                continue
            earlier, later = _in_time(old, now)
            loose = not subject_of(old) or subject_of(old) != subject_of(now)
            if judge(earlier, later, nearest=old.id == near[0]) is Verdict.CHANGED and not (loose and amended):
                amended = amended or loose
                self._decide(earlier, later)

    def settled(self) -> Settled:
        return Settled(tuple(self._written.values()), tuple(self._links.values()), dict(self._absorbed))

    def _standing(self, id: MemoryId, near: Sequence[MemoryId]) -> Iterator[Memory]:
        return (old for old in self._known(id, near) if old.standing is Standing.ACTIVE)

    def _known(self, id: MemoryId, near: Sequence[MemoryId]) -> Iterator[Memory]:
        return (old for other in near if other != id and (old := self._read(other)) is not None)

    def _takes(self, old: Memory, new: Memory) -> bool:
        """May it carry what says the same? What was put aside takes what its own session says again: that is no news."""
        return old.standing is Standing.ACTIVE or (old.standing in _ASIDE and heard_in(old.source, new.source.session))

    def _read(self, id: MemoryId) -> Memory | None:
        """Its latest version: what a search gave may be older."""
        if id not in self._latest:
            try:
                self._latest[id] = self._store.memory(id)
            except NotFound:
                return None
        return self._latest[id]

    def _absorb(self, new: Memory, old: Memory) -> None:
        both = joined(old, new)
        if old.standing is Standing.ACTIVE and not is_same(both, old):
            self._change(old, "it was said again", source=both.source, confidence=both.confidence, trust=both.trust)
        del self._written[new.id]
        self._absorbed[new.id] = old.id

    def _decide(self, earlier: Memory, later: Memory) -> None:
        """The later one holds, unless it is less trusted or was not later after all."""
        if rank(later.trust) >= rank(earlier.trust) and later.created > earlier.created and not _is_held(earlier, later):
            self._change(earlier, f"replaced by {later.id}", standing=Standing.SUPERSEDED, valid_until=later.created)
            self._link(later, earlier, Relation.SUPERSEDES)
            return
        self._link(later, earlier, Relation.CONTRADICTS)
        if rank(later.trust) != rank(earlier.trust):
            less, more = sorted((earlier, later), key=lambda each: rank(each.trust))
            self._change(less, f"{more.id} says otherwise", confidence=round(less.confidence * DOUBT, 4))

    def _change(self, memory: Memory, why: str, **changes: object) -> None:
        """A version that was not written yet takes the change itself."""
        latest = self._latest[memory.id]
        is_new = memory.id in self._written
        changed = following(latest, self._now, (is_new and latest.run) or self._run, why, **changes)
        self.put(replace(changed, version=latest.version) if is_new else changed)

    def _link(self, of: Memory, to: Memory, relation: Relation) -> None:
        self._links[of.id, to.id, relation] = MemoryLink(of.id, to.id, relation, self._now, self._run)


def _in_time(one: Memory, other: Memory) -> tuple[Memory, Memory]:
    """The earlier one, and the later one."""
    return (one, other) if (one.created, one.id) <= (other.created, other.id) else (other, one)


def _speaks_for(old: Memory, new: Memory) -> bool:
    """A word more in somebody's text is a filler where nobody more trusted would have to stand for it."""
    return rank(old.trust) >= rank(new.trust) or wording(old.text).words == wording(new.text).words


def _is_held(earlier: Memory, later: Memory) -> bool:
    """A person pinned it, and no person says otherwise."""
    return earlier.pinned and later.trust is not Trust.PERSON


def _another_value(one: Wording, other: Wording, subject: frozenset[str]) -> bool:
    """Do two facts on one subject give it another value, or do they say different things about it?"""
    mine, theirs = one.words - subject, other.words - subject
    if not mine - theirs or not theirs - mine:  # one only says more, or a number, a name or a no makes the difference
        return conflict(one, other)
    if len(mine) <= _VALUE and len(theirs) <= _VALUE:
        return True
    if other.amends or other.hints:
        return shared(one, other) >= _SUBJECT_AMENDED
    return len(mine & theirs) / len(mine | theirs) >= _SUBJECT_CLOSE
