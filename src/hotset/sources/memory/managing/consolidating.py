"""Draws memories together: what episodes share, what recurs, what says the same, and what no longer holds.

Everything is worked out anew from what is in the store, named so that the same work gives the same memories, and written only
where it differs. So it can be ended at any moment and begun again, and done twice it writes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from hotset.errors import NotFound
from hotset.nouns.knobs import MemoryKnobs
from hotset.nouns.memory import Memory, MemoryId, MemoryKind, MemoryLink, Relation, Standing, Trust
from hotset.nouns.progress import Progress, silent
from hotset.sources.memory.managing.drafting import CONSOLIDATE, Draft, Drafting, batched, is_by_hand, is_derived
from hotset.sources.memory.managing.merging import MERGED_KINDS, merged, mergers, say_the_same
from hotset.sources.memory.managing.patterns import FEWEST_SESSIONS, Common, borrowed_steps, is_ground, pattern_of
from hotset.sources.memory.managing.recurring import Met, advice_words, lasting_pitfall, meet, proves, shared_procedure
from hotset.sources.memory.managing.superseding import settle_among, subject_of
from hotset.sources.memory.managing.versions import following, run_name
from hotset.store.port import Store

if TYPE_CHECKING:
    from hotset.sources.memory.managing.clusters import Cluster, Embed
    from hotset.sources.memory.managing.nearness import Vectors

BATCH = 32
"""Memories and what hangs on them that are written in one commit."""

_READ = 512  # memories at once
_SAME_SUBJECT = 8  # facts before it on one subject with which a fact is compared
_MOST_RELATED = 4
_MOST_PROOFS = 16  # that are looked at for one piece of advice, those first that share most words with it
_ACTIVE = frozenset({Standing.ACTIVE})
_USUAL = MemoryKnobs()


@dataclass(frozen=True, slots=True)
class Consolidated:
    """What a run wrote; nothing of it where everything was drawn together before."""

    run: str
    clusters: int = 0
    """Of three episodes or more; whether or not a pattern came of it."""
    facts: int = 0
    procedures: int = 0
    pitfalls: int = 0
    confirmed: int = 0
    """Advice that waited, and that another session proved right."""
    superseded: int = 0
    contradicted: int = 0
    merged: int = 0
    links: int = 0


def consolidate(
    store: Store,
    embed: Embed,
    now: float,
    *,
    knobs: MemoryKnobs = _USUAL,
    progress: Progress = silent,
    batch: int = BATCH,
) -> Consolidated:
    """One run over the whole store, in commits of at most `batch` memories each. Raises a `HotsetError` of the store."""
    run = run_of(store)
    work = _Work(store, embed, now, run, knobs, progress, batch, Drafting(store, now, run))
    ground = _gather(work)
    done = Consolidated(run, clusters=len(ground.large))
    done, facts = _patterns(work, ground, done)
    done = _procedures(work, ground, done)
    done = _pitfalls(work, ground, facts, done)
    del ground
    done = _confirm(work, done)
    done = _merge(work, done)
    done = _settle(work, done)
    return replace(done, links=work.drafting.links)


def run_of(store: Store) -> str:
    """The name of the run over what is there: the same until something else than a consolidation is written."""
    told = blake2b(digest_size=16)
    number = 0
    while versions := store.memories_after(number, _READ):
        for _, memory in versions:
            if not memory.run.startswith(CONSOLIDATE):
                told.update(f"{memory.id}@{memory.version}\n".encode("utf-8", "surrogatepass"))
        number = versions[-1][0]
    return run_name(CONSOLIDATE, told.hexdigest())


@dataclass(frozen=True, slots=True)
class _Work:
    """What every step of a run needs."""

    store: Store
    embed: Embed
    now: float
    run: str
    knobs: MemoryKnobs
    progress: Progress
    batch: int
    drafting: Drafting

    def read(self, ids: Iterable[MemoryId]) -> Iterator[Memory]:
        """Those that are still there."""
        for id in ids:
            try:
                yield self.store.memory(id)
            except NotFound:
                continue

    def write(self, what: str, kind: MemoryKind, drafts: Iterable[Draft]) -> int:
        """Gives the number of memories that were written. What no draft asks for any more is retired."""
        written, wanted = 0, set[MemoryId]()
        for some in batched(drafts, self.batch):
            wanted.update(draft.memory.id for draft in some)
            written += self.drafting.write(some)
        self.drafting.retire(kind, wanted, self.batch)
        self.progress(what, 1, 1)
        return written

    def told(self, kind: MemoryKind, standings: frozenset[Standing]) -> dict[str, list[MemoryId]]:
        """Each text once, with the memories that say it; both in the order of their time.

        Without what was drawn from others, and what somebody has just set right.
        """
        found = self.store.memories(frozenset({kind}), standings)
        dated = sorted((each.created, each.id, each.text) for each in found if not is_derived(each) and not is_by_hand(each))
        texts: dict[str, list[MemoryId]] = {}
        for _, id, text in dated:
            texts.setdefault(text, []).append(id)
        return texts

    def vectors(self, texts: Iterable[str]) -> Vectors:
        import numpy as np  # noqa: PLC0415 - heavy

        parts = [self.embed(some).astype(np.float16) for some in batched(texts, _READ)]
        return np.concatenate(parts) if parts else np.zeros((0, 1), np.float16)


@dataclass(slots=True)
class _Ground:
    """Of all episodes what patterns and pitfalls are made of."""

    clusters: list[Cluster] = field(default_factory=list)
    common: Common = field(default_factory=Common)
    met: dict[str, Met] = field(default_factory=dict)

    @property
    def large(self) -> list[Cluster]:
        return [cluster for cluster in self.clusters if len(cluster.members) >= FEWEST_SESSIONS]


def _gather(work: _Work) -> _Ground:
    """Reads every episode once, and keeps a vector and a few counts of it."""
    from hotset.sources.memory.managing.clusters import clusters_of  # noqa: PLC0415 - numpy

    advice = work.store.memories(frozenset({MemoryKind.PITFALL, MemoryKind.PROCEDURE}), frozenset({Standing.CANDIDATE}))
    waiting = (memory for memory in advice if memory.trust is Trust.OUTSIDE)
    ground = _Ground(common=Common(frozenset(borrowed_steps(waiting))))

    def passing() -> Iterator[Memory]:
        for number, episode in enumerate(work.store.memories(frozenset({MemoryKind.EPISODE}), _ACTIVE)):
            if is_ground(episode):
                ground.common.count(episode)
                meet(episode, ground.met)
                yield episode
            if number % _READ == 0:
                work.progress("reading episodes", number, 0)

    ground.clusters = clusters_of(passing(), work.embed, work.knobs.cluster_alike)
    return ground


def _patterns(work: _Work, ground: _Ground, done: Consolidated) -> tuple[Consolidated, dict[MemoryId, MemoryId]]:
    """Gives to each episode of a cluster the fact that says what the cluster shares, too."""
    facts: dict[MemoryId, MemoryId] = {}

    def drafts() -> Iterator[Draft]:
        for number, cluster in enumerate(ground.large):
            work.progress("patterns", number, len(ground.large))
            pattern = pattern_of(cluster.leader, work.read(cluster.members), ground.common)
            if pattern is not None:
                facts.update(dict.fromkeys(cluster.members, pattern.fact.id))
                yield Draft(pattern.fact, pattern.episodes)

    return replace(done, facts=work.write("patterns", MemoryKind.FACT, drafts())), facts


def _procedures(work: _Work, ground: _Ground, done: Consolidated) -> Consolidated:
    """Of each cluster the steps that its procedures share. Those that were merged count: they were gone through, too."""
    leader_of = {member: cluster.leader for cluster in ground.large for member in cluster.members}
    found: dict[MemoryId, list[MemoryId]] = {}
    for procedure in work.store.memories(frozenset({MemoryKind.PROCEDURE}), frozenset({Standing.ACTIVE, Standing.MERGED})):
        if not is_derived(procedure):
            links = work.store.memory_links(procedure.id)
            origins = (link.to for link in links if link.of == procedure.id and link.relation is Relation.DERIVED_FROM)
            for leader in {leader_of[origin] for origin in origins if origin in leader_of}:
                found.setdefault(leader, []).append(procedure.id)

    def drafts() -> Iterator[Draft]:
        for number, leader in enumerate(sorted(found)):
            work.progress("procedures", number, len(found))
            procedures = sorted(work.read(found[leader]), key=lambda each: (each.created, each.id))
            made = shared_procedure(leader, procedures)
            if made is not None:
                yield Draft(made, tuple(each.id for each in procedures))

    return replace(done, procedures=work.write("procedures", MemoryKind.PROCEDURE, drafts()))


def _pitfalls(work: _Work, ground: _Ground, facts: Mapping[MemoryId, MemoryId], done: Consolidated) -> Consolidated:
    """What failed again and again, related to what is known of the work in which it did."""

    def drafts() -> Iterator[Draft]:
        for number, key in enumerate(sorted(ground.met)):
            work.progress("pitfalls", number, len(ground.met))
            met = ground.met[key]
            pitfall = lasting_pitfall(key, met, ground.common)
            if pitfall is not None:
                episodes = tuple(sorted(met.episodes))
                related = dict.fromkeys(facts[id] for id in episodes if id in facts)
                yield Draft(pitfall, episodes, tuple(related)[:_MOST_RELATED])

    return replace(done, pitfalls=work.write("pitfalls", MemoryKind.PITFALL, drafts()))


def _confirm(work: _Work, done: Consolidated) -> Consolidated:
    """Advice that waits becomes advice where another session came to the same by an outcome."""
    kinds = frozenset({MemoryKind.PITFALL, MemoryKind.PROCEDURE})
    waiting = [each for each in work.store.memories(kinds, frozenset({Standing.CANDIDATE})) if not is_by_hand(each)]
    proofs: dict[str, list[MemoryId]] = {}
    for proof in work.store.memories(kinds, _ACTIVE) if waiting else ():
        for word in advice_words(proof):
            proofs.setdefault(word, []).append(proof.id)
    confirmed = 0
    for number, candidate in enumerate(waiting):
        work.progress("confirming", number, len(waiting))
        sharing = Counter(id for word in advice_words(candidate) for id in proofs.get(word, ()))
        likely = sorted(sharing, key=lambda proof: (-sharing[proof], proof))[:_MOST_PROOFS]
        found = next((each for each in work.read(likely) if proves(each, candidate)), None)
        if found is not None:
            why = f"{found.id} came to the same"
            version = following(candidate, work.now, work.run, why, standing=Standing.ACTIVE, trust=Trust.OUTCOME)
            link = MemoryLink(candidate.id, found.id, Relation.DERIVED_FROM, work.now, work.run)
            confirmed += work.drafting.keep((version,), (link,))
    return replace(done, confirmed=confirmed)


def _merge(work: _Work, done: Consolidated) -> Consolidated:
    """Near-duplicates of each kind. What says the same word for word is compared with others once."""
    from hotset.sources.memory.managing.nearness import near_pairs  # noqa: PLC0415 - numpy

    total = 0
    for kind in sorted(MERGED_KINDS):
        texts = work.told(kind, _ACTIVE)
        said = list(texts)
        same: dict[str, list[str]] = {}
        for one, other, _ in near_pairs(work.vectors(said), work.knobs.merge_alike):
            if say_the_same(said[one], said[other]):
                same.setdefault(said[one], []).append(said[other])
                same.setdefault(said[other], []).append(said[one])
        touched = [text for text in said if text in same or len(texts[text]) > 1]
        memories = [memory for text in touched for memory in work.read(texts[text])]
        groups = mergers(memories, same)
        for number, group in enumerate(groups):
            work.progress(f"merging {kind}s", number, len(groups))
            kept, *lost = work.read((group.kept, *group.lost))
            total += len(lost) if work.drafting.keep(*merged(kept, lost, work.now, work.run)) else 0
    return replace(done, merged=total)


def _settle(work: _Work, done: Consolidated) -> Consolidated:
    """Facts that came in without being compared: imported, or made when others were not there yet."""
    near = _near_facts(work)
    counted: Counter[Relation] = Counter()
    for number, (id, others) in enumerate(near.items()):
        work.progress("facts", number, len(near))
        settled = settle_among(id, others, work.store, work.now, work.run)
        if work.drafting.keep(settled.memories, settled.links):
            counted.update(link.relation for link in settled.links)
    return replace(done, superseded=counted[Relation.SUPERSEDES], contradicted=counted[Relation.CONTRADICTS])


def _near_facts(work: _Work) -> dict[MemoryId, tuple[MemoryId, ...]]:
    """To each fact those that were said before it and that it may touch, the nearest first.

    What was replaced or merged keeps its place among them: otherwise each run would look further than the one before.
    """
    from hotset.sources.memory.managing.nearness import nearest_before  # noqa: PLC0415 - numpy

    texts = work.told(MemoryKind.FACT, frozenset({Standing.ACTIVE, Standing.SUPERSEDED, Standing.MERGED}))
    said = list(texts)
    subjects: dict[frozenset[str], list[str]] = {}
    found: dict[MemoryId, tuple[MemoryId, ...]] = {}
    nearest = nearest_before(work.vectors(said), work.knobs.conflict_alike, work.knobs.conflict_facts)
    for text, rows in zip(said, nearest, strict=True):
        facts = list(work.read(texts[text]))
        others = dict.fromkeys(said[row] for row in rows)
        for subject in dict.fromkeys(subject for fact in facts if (subject := subject_of(fact))):
            before = subjects.setdefault(subject, [])
            others.update(dict.fromkeys(reversed(before[-_SAME_SUBJECT:])))
            before.append(text)
        near = tuple(id for other in others for id in texts[other])
        found.update((fact.id, near) for fact in facts if near and fact.standing is Standing.ACTIVE)
    return found
