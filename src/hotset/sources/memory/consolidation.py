"""Consolidate memories: derive patterns, procedures and pitfalls, confirm advice, merge duplicates,
settle conflicts. Also undo a run, and roll back an origin.

A run works everything out from the store with deterministic ids and writes only differences. So it
can be stopped and started again at any moment, and a second run writes nothing. Undo and rollback
delete nothing: they bring back what was put aside.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hotset.errors import BadInput
from hotset.nouns.knobs import MemoryKnobs
from hotset.nouns.memory import (
    Episode,
    Fact,
    MemoryId,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    Pitfall,
    Procedure,
    Provenance,
    Relation,
    Standing,
    Trust,
)
from hotset.nouns.page import PageId, SessionId
from hotset.nouns.progress import Progress, silent
from hotset.sources.memory.duplicates import (
    GoalIndex,
    SameGroup,
    contained_procedures,
    goal_words,
    pitfall_key,
    same_episodes,
    same_errors,
    with_resolutions,
    with_sources,
)
from hotset.sources.memory.kinds import ADVICE_KINDS, LASTING_KINDS, is_same, kinds_of
from hotset.sources.memory.memory_writer import (
    AGENT,
    CONSOLIDATE,
    NOT_PUT_ASIDE,
    SESSION,
    Draft,
    DraftWriter,
    batched,
    commit,
    is_by_hand,
    is_derived,
    is_from_session,
    join_memories,
    join_sources,
    known_memories,
    next_version,
    run_name,
    sessions_of,
)
from hotset.sources.memory.patterns import (
    FEWEST_SESSIONS,
    LEAST_SURE,
    ThingCounts,
    TroubleHistory,
    advice_words,
    borrowed_steps,
    can_derive_from,
    count_troubles,
    lasting_pitfall,
    normal_steps,
    pattern_of,
    proves,
    shared_procedure,
    trouble_key,
)
from hotset.sources.memory.supersede import (
    StatementWords,
    merge_group,
    mergers,
    say_the_same,
    settle_among,
    subject_of,
)
from hotset.store.port import Store

Vectors = NDArray[np.float32]

_BLOCK = 512  # rows: a block of 512 x 512 numbers fits the cache

UNDO, RESTORE = "undo-", "restore-"
"""Prefixes of their run names; `undo` undoes these, too."""

_AT_ONCE = 256  # written in one commit
_ASIDE = frozenset({Standing.FORGOTTEN, Standing.MERGED, Standing.SUPERSEDED})
_OF_A_VERSION = frozenset({"id", "kind", "version", "time", "run", "why"})
_CONTENT_FIELDS = tuple(
    field.name for field in fields(MemoryRecord) if field.name not in _OF_A_VERSION
)


def near_pairs(vectors: Vectors, least: float) -> Iterator[tuple[int, int, float]]:
    """All pairs of rows (the lower one first) with a product of at least `least`, in order of
    rows."""
    for start in range(0, len(vectors), _BLOCK):
        rows = vectors[start : start + _BLOCK].astype(np.float32)
        found: list[tuple[int, int, float]] = []
        for other in range(start, len(vectors), _BLOCK):
            likeness = rows @ vectors[other : other + _BLOCK].astype(np.float32).T
            for row, column in zip(*np.nonzero(likeness >= least), strict=True):
                if start + int(row) < other + int(column):
                    found.append(
                        (start + int(row), other + int(column), float(likeness[row, column]))
                    )
        yield from sorted(found)


def nearest_before(vectors: Vectors, least: float, most: int) -> Iterator[list[int]]:
    """For each row the nearest rows before it with a product of at least `least`, at most
    `most`."""
    for start in range(0, len(vectors), _BLOCK):
        rows = vectors[start : start + _BLOCK].astype(np.float32)
        found: list[list[tuple[float, int]]] = [[] for _ in rows]
        for other in range(0, start + 1, _BLOCK):
            likeness = rows @ vectors[other : other + _BLOCK].astype(np.float32).T
            likeness[
                start + np.arange(len(rows))[:, None]
                <= other + np.arange(likeness.shape[1])[None, :]
            ] = -np.inf
            few = np.argsort(-likeness, axis=1, kind="stable")[:, :most]
            for row, columns in enumerate(few):
                near = [
                    (-float(likeness[row, column]), other + int(column))
                    for column in columns
                    if likeness[row, column] >= least
                ]
                found[row] = sorted((*found[row], *near))[:most]
        yield from ([row for _, row in each] for each in found)


def leaders(vectors: Vectors, least: float) -> list[int]:
    """For each row the row that leads its cluster; a leader leads itself.

    A row joins the nearest leader before it if that is near enough, and leads otherwise. So later
    rows do not change earlier ones.
    """
    leads: list[int] = []
    at: list[int] = []  # the row of each leader
    led = np.empty((0, vectors.shape[1]), vectors.dtype)
    for start in range(0, len(vectors), _BLOCK):
        rows = vectors[start : start + _BLOCK].astype(np.float32)
        best, nearest = _nearest(rows, led)
        among = rows @ rows.T
        new: list[int] = []  # rows of this block that lead
        for row in range(len(rows)):
            likeness, leader = float(best[row]), int(nearest[row])
            if new and float(among[row, new].max()) > likeness:
                within = int(among[row, new].argmax())
                likeness, leader = float(among[row, new[within]]), len(led) + within
            if likeness >= least:
                leads.append(at[leader])
            else:
                at.append(start + row)
                new.append(row)
                leads.append(start + row)
        led = np.concatenate((led, rows[new].astype(vectors.dtype)))
    return leads


def sketch(sets: Sequence[Sequence[tuple[int, float]]], size: int) -> Vectors:
    """Hash sets of weighted features into vectors whose product estimates their overlap, up to
    about 1/sqrt(size).

    Each feature is added at four places, each with a sign.
    """
    drawn = np.zeros((len(sets), size), np.float32)
    for row, things in enumerate(sets):
        for number, weight in things:
            for turn in range(4):
                part = number >> 16 * turn
                drawn[row, (part & 0x7FFF) % size] += weight if part & 0x8000 else -weight
    return _normalise(drawn)


def _normalise(vectors: Vectors) -> Vectors:
    """Scale to length 1, in place; zero vectors stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return vectors


def _nearest(rows: Vectors, led: Vectors) -> tuple[Vectors, NDArray[np.intp]]:
    """For each row the similarity of its nearest leader, and which one that is."""
    best = np.full(len(rows), -np.inf, np.float32)
    nearest = np.zeros(len(rows), np.intp)
    for start in range(0, len(led), _BLOCK * 4):
        likeness = rows @ led[start : start + _BLOCK * 4].astype(np.float32).T
        where = likeness.argmax(axis=1)
        value = likeness[np.arange(len(rows)), where]
        better = value > best  # of two equally near leaders the earlier one wins
        best[better], nearest[better] = value[better], where[better] + start
    return best, nearest


Embed = Callable[[Sequence[str]], Vectors]
"""Texts to vectors of length 1 (or 0): an `Embedder`'s `embed`."""

# shares of the goal and of the traits in the similarity of two episodes
_GOAL, _TRAITS = 0.65, 0.35
_SKETCH = 128
_LONGEST_GOAL = 600  # characters of a goal: what follows is material
_BATCH = 256
_TOPIC, _FILE, _ARTIFACT, _TROUBLE = 1.0, 1.0, 2.0, 2.0
_MOST_FILES = 24


@dataclass(frozen=True, slots=True)
class Cluster:
    leader: MemoryId
    """The earliest member; later episodes do not change it."""
    members: tuple[MemoryId, ...]
    """Ordered by time, including the leader."""


def clusters_of(episodes: Iterable[MemoryRecord], embed: Embed, least: float) -> list[Cluster]:
    """Cluster episodes by similarity; most are alone. Independent of the order they come in.

    Needs the memory of the vectors (1 KB an episode) and of one batch of episodes.
    """
    ids: list[tuple[float, MemoryId]] = []
    parts: list[Vectors] = []
    for batch in batched(episodes, _BATCH):
        ids.extend((memory.created, memory.id) for memory in batch)
        parts.append(vectors_of(batch, embed).astype(np.float16))
    if not ids:
        return []
    order = sorted(range(len(ids)), key=ids.__getitem__)
    vectors = np.concatenate(parts)[order]
    del parts
    grouped: dict[int, list[MemoryId]] = {}
    for row, leader in enumerate(leaders(vectors, least)):
        grouped.setdefault(leader, []).append(ids[order[row]][1])
    return [Cluster(members[0], tuple(members)) for members in grouped.values()]


def vectors_of(episodes: Sequence[MemoryRecord], embed: Embed) -> Vectors:
    """One vector an episode, of length 1 (or 0): its goal beside its topics, files and troubles."""
    goals = embed([_goal(memory)[:_LONGEST_GOAL] for memory in episodes])
    traits = sketch([_traits(memory) for memory in episodes], _SKETCH)
    both = np.concatenate(
        (goals * np.sqrt(_GOAL), traits * np.sqrt(_TRAITS)), axis=1, dtype=np.float32
    )
    return _normalise(both)


def _goal(memory: MemoryRecord) -> str:
    goal = memory.detail.goal if isinstance(memory.detail, Episode) else ""
    return goal or memory.title


def _traits(memory: MemoryRecord) -> list[tuple[int, float]]:
    named = [(f"topic {topic}", _TOPIC) for topic in memory.topics]
    if isinstance(memory.detail, Episode):
        named += [(f"file {path}", _FILE) for path in memory.detail.files[:_MOST_FILES]]
        named += [(f"file {path}", _ARTIFACT) for path in memory.detail.artifacts[:_MOST_FILES]]
        named += [
            (f"trouble {trouble_key(trouble)}", _TROUBLE) for trouble in memory.detail.troubles
        ]
    return [
        (
            int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()),
            weight,
        )
        for name, weight in named
    ]


BATCH = 32
"""Memories, with their links, that are written in one commit."""

_READ = 512  # memories at once
_SAME_SUBJECT = 8  # earlier facts on one subject that a fact is compared with
_MOST_RELATED = 4
_MOST_PROOFS = 16  # compared for one piece of advice: those that share most words with it
_ACTIVE = frozenset({Standing.ACTIVE})
_WITH_MERGED = frozenset({Standing.ACTIVE, Standing.MERGED})
_USUAL = MemoryKnobs()


@dataclass(frozen=True, slots=True)
class ConsolidationReport:
    """The number of things a run wrote; all zero if there was nothing to do."""

    run: str
    clusters: int = 0
    """Of three episodes or more, with or without a pattern."""
    facts: int = 0
    procedures: int = 0
    pitfalls: int = 0
    confirmed: int = 0
    """Candidate advice that another session proved right."""
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
) -> ConsolidationReport:
    """One run over the whole store, in commits of at most `batch` memories. Raises a `HotsetError`
    of the store."""
    run = run_of(store)
    work = _Work(store, embed, now, run, knobs, progress, batch, DraftWriter(store, now, run))
    ground = _gather(work)
    done = ConsolidationReport(run, clusters=len(ground.large))
    done, facts = _patterns(work, ground, done)
    done = _procedures(work, ground, done)
    done = _pitfalls(work, ground, facts, done)
    done = _merge_episodes(work, ground, done)
    del ground
    done = _confirm(work, done)
    done = _merge(work, done)
    done = _merge_advice(work, done)
    done = _settle(work, done)
    return replace(done, links=work.drafting.links)


def run_of(store: Store) -> str:
    """The name of a run over the store's current content, ignoring what consolidations wrote."""
    digest = blake2b(digest_size=16)
    number = 0
    while versions := store.memories_after(number, _READ):
        for _, memory in versions:
            if not memory.run.startswith(CONSOLIDATE):
                digest.update(f"{memory.id}@{memory.version}\n".encode("utf-8", "surrogatepass"))
        number = versions[-1][0]
    return run_name(CONSOLIDATE, digest.hexdigest())


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
    drafting: DraftWriter

    def write(self, what: str, kinds: frozenset[MemoryKind], drafts: Iterable[Draft]) -> int:
        """Write the drafts and retire derived memories without a draft; return how many were
        written."""
        written, wanted = 0, set[MemoryId]()
        for some in batched(drafts, self.batch):
            wanted.update(draft.memory.id for draft in some)
            written += self.drafting.write(some)
        self.drafting.retire(kinds, wanted, self.batch)
        self.progress(what, 1, 1)
        return written

    def ids_by_text(
        self, kinds: frozenset[MemoryKind], standings: frozenset[Standing]
    ) -> dict[str, list[MemoryId]]:
        """Memory ids by text, both ordered by time; without derived memories and manual
        corrections."""
        found = self.store.memories(kinds, standings)
        dated = sorted(
            (each.created, each.id, each.text)
            for each in found
            if not is_derived(each) and not is_by_hand(each)
        )
        texts: dict[str, list[MemoryId]] = {}
        for _, id, text in dated:
            texts.setdefault(text, []).append(id)
        return texts

    def vectors(self, texts: Iterable[str]) -> Vectors:
        parts = [self.embed(some).astype(np.float16) for some in batched(texts, _READ)]
        return np.concatenate(parts) if parts else np.zeros((0, 1), np.float16)


@dataclass(slots=True)
class _Ground:
    """Clusters and counts of all episodes, from which patterns and pitfalls are made."""

    clusters: list[Cluster] = field(default_factory=list)
    common: ThingCounts = field(default_factory=ThingCounts)
    met: dict[str, TroubleHistory] = field(default_factory=dict)
    goals: dict[tuple[float, MemoryId], StatementWords] = field(default_factory=dict)
    """The words of each goal, by time."""

    @property
    def large(self) -> list[Cluster]:
        return [cluster for cluster in self.clusters if len(cluster.members) >= FEWEST_SESSIONS]


def _gather(work: _Work) -> _Ground:
    """Read every episode once, keeping a vector and a few counts of each."""

    advice = work.store.memories(ADVICE_KINDS, frozenset({Standing.CANDIDATE}))
    waiting = (memory for memory in advice if memory.trust is Trust.OUTSIDE)
    ground = _Ground(common=ThingCounts(frozenset(borrowed_steps(waiting))))

    def passing() -> Iterator[MemoryRecord]:
        for number, episode in enumerate(work.store.memories(kinds_of(Episode), _WITH_MERGED)):
            if can_derive_from(episode):
                ground.common.count(episode)
                count_troubles(episode, ground.met)
                ground.goals[episode.created, episode.id] = goal_words(episode)
                yield episode
            if number % _READ == 0:
                work.progress("reading episodes", number, 0)

    ground.clusters = clusters_of(passing(), work.embed, work.knobs.cluster_alike)
    return ground


def _patterns(
    work: _Work, ground: _Ground, done: ConsolidationReport
) -> tuple[ConsolidationReport, dict[MemoryId, MemoryId]]:
    """Write a fact for what a cluster shares; also return the fact of each episode in a cluster."""
    facts: dict[MemoryId, MemoryId] = {}

    def drafts() -> Iterator[Draft]:
        for number, cluster in enumerate(ground.large):
            work.progress("patterns", number, len(ground.large))
            members = known_memories(work.store, cluster.members)
            if (found := pattern_of(cluster.leader, members, ground.common)) is not None:
                facts.update(dict.fromkeys(cluster.members, found.fact.id))
                yield Draft(found.fact, found.episodes)

    return replace(done, facts=work.write("patterns", kinds_of(Fact), drafts())), facts


def _procedures(work: _Work, ground: _Ground, done: ConsolidationReport) -> ConsolidationReport:
    """Write the steps that the procedures of a cluster share. Merged procedures count, too."""
    leader_of = {member: cluster.leader for cluster in ground.large for member in cluster.members}
    found: dict[MemoryId, list[MemoryId]] = {}
    known: set[tuple[str, ...]] = set()
    for procedure in work.store.memories(kinds_of(Procedure), _WITH_MERGED):
        if not is_derived(procedure):
            known.add(_step_keys(procedure))
            links = work.store.memory_links(procedure.id)
            origins = (
                link.to
                for link in links
                if link.of == procedure.id and link.relation is Relation.DERIVED_FROM
            )
            for leader in {leader_of[origin] for origin in origins if origin in leader_of}:
                found.setdefault(leader, []).append(procedure.id)

    def drafts() -> Iterator[Draft]:
        for number, leader in enumerate(sorted(found)):
            work.progress("procedures", number, len(found))
            procedures = sorted(
                known_memories(work.store, found[leader]), key=lambda each: (each.created, each.id)
            )
            made = shared_procedure(leader, procedures)
            if made is not None and _step_keys(made) not in known:
                yield Draft(made, tuple(each.id for each in procedures))

    return replace(done, procedures=work.write("procedures", kinds_of(Procedure), drafts()))


def _step_keys(memory: MemoryRecord) -> tuple[str, ...]:
    return tuple(normal_steps(memory.detail.steps)) if isinstance(memory.detail, Procedure) else ()


def _pitfalls(
    work: _Work, ground: _Ground, facts: Mapping[MemoryId, MemoryId], done: ConsolidationReport
) -> ConsolidationReport:
    """Write pitfalls for repeated failures, related to the facts about the same work; none for an
    error that a session's own pitfall is about."""
    known = {
        pitfall_key(each)
        for each in work.store.memories(kinds_of(Pitfall), _WITH_MERGED)
        if not is_derived(each)
    }

    def drafts() -> Iterator[Draft]:
        for number, key in enumerate(sorted(ground.met)):
            work.progress("pitfalls", number, len(ground.met))
            met = ground.met[key]
            pitfall = lasting_pitfall(key, met, ground.common)
            if pitfall is not None and pitfall_key(pitfall) not in known:
                episodes = tuple(sorted(met.episodes))
                related = dict.fromkeys(facts[id] for id in episodes if id in facts)
                yield Draft(pitfall, episodes, tuple(related)[:_MOST_RELATED])

    return replace(done, pitfalls=work.write("pitfalls", kinds_of(Pitfall), drafts()))


def _confirm(work: _Work, done: ConsolidationReport) -> ConsolidationReport:
    """Activate candidate advice if another session came to the same by an outcome."""
    waiting = [
        each
        for each in work.store.memories(ADVICE_KINDS, frozenset({Standing.CANDIDATE}))
        if not is_by_hand(each)
    ]
    proofs: dict[str, list[MemoryId]] = {}
    for proof in work.store.memories(ADVICE_KINDS, _ACTIVE) if waiting else ():
        for word in advice_words(proof):
            proofs.setdefault(word, []).append(proof.id)
    confirmed = 0
    for number, candidate in enumerate(waiting):
        work.progress("confirming", number, len(waiting))
        sharing = Counter(id for word in advice_words(candidate) for id in proofs.get(word, ()))
        likely = sorted(sharing, key=lambda proof: (-sharing[proof], proof))[:_MOST_PROOFS]
        found = next(
            (each for each in known_memories(work.store, likely) if proves(each, candidate)), None
        )
        if found is not None:
            why = f"{found.id} came to the same"
            version = next_version(
                candidate, work.now, work.run, why, standing=Standing.ACTIVE, trust=Trust.OUTCOME
            )
            link = MemoryLink(candidate.id, found.id, Relation.DERIVED_FROM, work.now, work.run)
            confirmed += work.drafting.keep((version,), (link,))
    return replace(done, confirmed=confirmed)


def _merge(work: _Work, done: ConsolidationReport) -> ConsolidationReport:
    """Merge near-duplicates of each kind. Each distinct text is compared once."""

    total = 0
    for kind in sorted(LASTING_KINDS):
        texts = work.ids_by_text(frozenset({kind}), _ACTIVE)
        distinct = list(texts)
        same: dict[str, list[str]] = {}
        for one, other, _ in near_pairs(work.vectors(distinct), work.knobs.merge_alike):
            if say_the_same(distinct[one], distinct[other]):
                same.setdefault(distinct[one], []).append(distinct[other])
                same.setdefault(distinct[other], []).append(distinct[one])
        touched = [text for text in distinct if text in same or len(texts[text]) > 1]
        memories = [
            memory for text in touched for memory in known_memories(work.store, texts[text])
        ]
        groups = mergers(memories, same)
        for number, group in enumerate(groups):
            work.progress(f"merging {kind}s", number, len(groups))
            kept, *lost = known_memories(work.store, (group.kept, *group.lost))
            lost = [each for each in lost if _step_keys(each) == _step_keys(kept)]
            if not lost:
                continue
            total += (
                len(lost) if work.drafting.keep(*merge_group(kept, lost, work.now, work.run)) else 0
            )
    return replace(done, merged=done.merged + total)


def _merge_episodes(work: _Work, ground: _Ground, done: ConsolidationReport) -> ConsolidationReport:
    """Merge episodes that were the same piece of work into the newest."""
    total = 0
    newest_first = sorted(ground.goals, reverse=True)
    goals = GoalIndex({id: ground.goals[created, id] for created, id in newest_first})
    taken: set[MemoryId] = set()
    for number, (_, id) in enumerate(newest_first):
        work.progress("merging episodes", number, len(newest_first))
        near = [other for other in goals.near(id) if other not in taken] if id not in taken else []
        if len(near) + 1 < FEWEST_SESSIONS:
            continue
        group = same_episodes(known_memories(work.store, (id, *near)))
        if group is not None:
            taken.update((id, *(each.id for each in group.lost)))
            why = f"the same work as {len(group.lost)} more"
            total += _write_group(work, group, with_sources(group), why)
    return replace(done, merged=done.merged + total)


def _merge_advice(work: _Work, done: ConsolidationReport) -> ConsolidationReport:
    """Merge procedures into those that contain them, and pitfalls of one error."""
    total = 0
    procedures, pitfalls = (
        [
            each
            for each in work.store.memories(kinds_of(detail), _ACTIVE)
            if not is_derived(each) and not is_by_hand(each)
        ]
        for detail in (Procedure, Pitfall)
    )
    for group in contained_procedures(procedures):
        # its sessions did not follow the longer one, so they are no proof of it
        total += _write_group(work, group, group.kept, "")
    for group in same_errors(pitfalls):
        whole = with_resolutions(group)
        for each in group.lost:
            whole = join_memories(whole, each)
        whole = replace(whole, trust=group.kept.trust)
        total += _write_group(work, group, whole, f"the same error as {len(group.lost)} more")
    return replace(done, merged=done.merged + total)


def _write_group(work: _Work, group: SameGroup, whole: MemoryRecord, why: str) -> int:
    """Write what differs; return how many memories were put aside."""
    kept = group.kept
    held = {
        link.to
        for link in work.store.memory_links(kept.id)
        if link.of == kept.id and link.relation is Relation.DERIVED_FROM
    }
    fresh = [each for each in group.lost if each.standing is not Standing.MERGED]
    versions = [
        next_version(each, work.now, work.run, f"{kept.id} has it", standing=Standing.MERGED)
        for each in fresh
    ]
    if not is_same(whole, kept):
        versions.append(next_version(whole, work.now, work.run, why))
    links = [
        MemoryLink(kept.id, each.id, Relation.DERIVED_FROM, work.now, work.run)
        for each in group.lost
        if each.id not in held
    ]
    return len(fresh) if work.drafting.keep(versions, links) else 0


def _settle(work: _Work, done: ConsolidationReport) -> ConsolidationReport:
    """Compare facts that were not compared when they came in: imported, or older than their
    rivals."""
    near = _near_facts(work)
    counted: Counter[Relation] = Counter()
    for number, (id, others) in enumerate(near.items()):
        work.progress("facts", number, len(near))
        settled = settle_among(id, others, work.store, work.now, work.run)
        if work.drafting.keep(settled.memories, settled.links):
            counted.update(link.relation for link in settled.links)
    return replace(
        done, superseded=counted[Relation.SUPERSEDES], contradicted=counted[Relation.CONTRADICTS]
    )


def _near_facts(work: _Work) -> dict[MemoryId, tuple[MemoryId, ...]]:
    """For each fact the earlier facts that it may conflict with, the nearest first.

    Replaced and merged facts keep their place among them: otherwise each run would look further
    than the one before.
    """

    texts = work.ids_by_text(
        kinds_of(Fact), frozenset({Standing.ACTIVE, Standing.SUPERSEDED, Standing.MERGED})
    )
    distinct = list(texts)
    subjects: dict[frozenset[str], list[str]] = {}
    found: dict[MemoryId, tuple[MemoryId, ...]] = {}
    nearest = nearest_before(
        work.vectors(distinct), work.knobs.conflict_alike, work.knobs.conflict_facts
    )
    for text, rows in zip(distinct, nearest, strict=True):
        facts = list(known_memories(work.store, texts[text]))
        others = dict.fromkeys(distinct[row] for row in rows)
        for subject in dict.fromkeys(subject for fact in facts if (subject := subject_of(fact))):
            before = subjects.setdefault(subject, [])
            others.update(dict.fromkeys(reversed(before[-_SAME_SUBJECT:])))
            before.append(text)
        near = tuple(id for other in others for id in texts[other])
        found.update((fact.id, near) for fact in facts if near and fact.standing is Standing.ACTIVE)
    return found


def undo(store: Store, run: str, now: float) -> int:
    """Undo a run; return the number of memories changed.

    What the run made is forgotten. What it changed is as before, unless it was changed again since.
    Can be repeated at any moment; a second time changes nothing.
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
    """Restore forgotten, merged or replaced memories to their previous standing; return how many.
    Raises `NotFound`."""
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
    """Write in as many commits as needed, the links last."""
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
    """The version without what the run changed; None if nothing of that is left."""
    latest = versions[-1]
    changes: dict[str, Any] = {}
    for before, after in reversed(list(pairwise(versions))):
        if after.run == run:
            for name in _CONTENT_FIELDS:
                was, became = getattr(before, name), getattr(after, name)
                if was != became and changes.get(name, getattr(latest, name)) == became:
                    changes[name] = was
    if versions[0].run == run and not _is_taken_over(versions, run):
        changes["standing"] = Standing.FORGOTTEN
    undone = next_version(latest, now, back, f"{run} was taken back", **changes)
    return None if is_same(undone, latest) else undone


def _is_taken_over(versions: Sequence[MemoryRecord], run: str) -> bool:
    """True if a person pinned, edited or confirmed it since."""
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
        else NOT_PUT_ASIDE
    )
    before = next((each for each in reversed(versions) if each.standing in wanted), None)
    standing, until = (
        (before.standing, before.valid_until) if before is not None else (Standing.ACTIVE, None)
    )
    return next_version(latest, now, run, "brought back", standing=standing, valid_until=until)


ROLLBACK = "rollback-"
"""Prefix of its run names; `undo` undoes a rollback, too."""


@dataclass(frozen=True, slots=True)
class RollbackOrigin:
    """The origin to roll back: memories that match all fields; an empty field matches any."""

    place: str = ""
    """A tool, address or file, or the folder or site that contains it."""
    session: str = ""
    agent: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """What a rollback would do, as versions that are not written yet."""

    forgotten: tuple[MemoryRecord, ...] = ()
    lessened: tuple[MemoryRecord, ...] = ()
    """Memories with other sources, too: they stay without these sources, and less sure."""
    revived: tuple[MemoryRecord, ...] = ()
    """Memories that were replaced by, or merged into, a forgotten one."""


def rollback(
    store: Store, now: float, *, place: str = "", session: str = "", agent: str = "", by: str = ""
) -> tuple[MemoryId, ...]:
    """Forget what came from an origin; return those memories. A second time forgets nothing more.
    Raises `BadInput` if no origin is named."""
    origin = RollbackOrigin(place, session, agent, by)
    taken = plan_rollback(store, origin, now)
    keep_all(store, (*taken.forgotten, *taken.lessened, *taken.revived))
    return tuple(memory.id for memory in taken.forgotten)


def plan_rollback(store: Store, origin: RollbackOrigin, now: float) -> RollbackPlan:
    """What `rollback` would write."""
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
        next_version(
            memory, now, run, f"taken back: {_describe_origin(origin)}", standing=Standing.FORGOTTEN
        )
        for memory in known_memories(store, trace.gone)
        if memory.standing is not Standing.FORGOTTEN
    )
    lessened = (
        next_version(
            memory, now, run, f"without {_describe_origin(origin)}", **trace.left[memory.id]
        )
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
        for memory in known_memories(store, trace.find_revived())
    )
    return RollbackPlan(tuple(forgotten), tuple(lessened), tuple(revived))


@dataclass(frozen=True, slots=True)
class _Share:
    """What one source contributed to a memory."""

    source: Provenance
    confidence: float
    """Confidence of the memory after this source."""

    def is_of(self, origin: RollbackOrigin) -> bool:
        """True if this source matches the origin. A share has one session and one agent."""
        return _touches(self.source, origin)


@dataclass(frozen=True, slots=True)
class _Links:
    """Links between memories, in both directions."""

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
    """Follow an origin to all memories that depend on it."""

    def __init__(self, store: Store, links: _Links) -> None:
        self._store, self._links = store, links
        self.gone: dict[MemoryId, None] = {}
        self.left: dict[MemoryId, dict[str, Any]] = {}
        """What changes about memories that stay."""

    def look(self, memory: MemoryRecord, origin: RollbackOrigin) -> None:
        """Drop a memory that only this origin supports; lessen one that has other sources."""
        shares = _shares(self._store.memory_versions(memory.id))
        others = [share for share in shares if not share.is_of(origin)]
        # an episode tells what its own session did, whatever else was merged into it
        is_own = isinstance(memory.detail, Episode) and shares and shares[0].is_of(origin)
        if not others or is_own:
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
        """Drop what was derived from dropped memories, transitively."""
        waiting = list(self.gone)
        while waiting:
            for id in self._links.derived.get(waiting.pop(), ()):
                if id not in self.gone:
                    for memory in known_memories(self._store, (id,)):
                        if self._loses_support(memory):
                            self.gone[id] = None
                            waiting.append(id)

    def find_revived(self) -> list[MemoryId]:
        """Memories whose replacement is gone."""
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

    def _loses_support(self, memory: MemoryRecord) -> bool:
        """True if no support is left. A person's statement needs none."""
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
            self._withdraw_proof(memory)
        return False

    def _withdraw_proof(self, memory: MemoryRecord) -> None:
        """Advice whose proofs are gone becomes a candidate again."""
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
    """True if a part of the source may be of this origin; a joined source lists sessions and agents
    as places."""
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
    """The contributions of each source: what each version added that is still there."""
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
    is_in_session = part.session is None or is_from_session(whole, part.session)
    return (
        is_in_session
        and frozenset(part.pages) <= frozenset(whole.pages)
        and frozenset(part.places) <= frozenset(whole.places)
    )


def _whole(shares: Sequence[_Share]) -> Provenance:
    return reduce(join_sources, (share.source for share in shares))


def _less(confidence: float, left: int, of: int) -> float:
    """The confidence that `left` of its `of` equal sources give a memory."""
    return round(1 - (1 - confidence) ** (left / of), 4) if of else 0.0


def _is_in(place: str, wanted: str) -> bool:
    """True if a place is, or is within, the wanted one: `docs.example` contains
    `https://docs.example/a`."""
    bare, sought = (each.split("://", 1)[-1].rstrip("/") for each in (place, wanted))
    return bare == sought or bare.startswith(f"{sought}/")


def _describe_origin(origin: RollbackOrigin) -> str:
    named = {field.name: getattr(origin, field.name) for field in fields(origin)}
    return ", ".join(f"{what} {name}" for what, name in named.items() if name)
