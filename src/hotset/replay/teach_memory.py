"""Teachers that learn from what a store logged of memories: which were told unasked and used, and
which of those found by a recall were read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hotset.learn.gate import SessionPair
from hotset.nouns.knobs import Knobs
from hotset.nouns.memory import Layer, MemoryId, MemoryKind, Used
from hotset.replay.teaching import FEWEST, Gain, Proposal, Quality, TeachingMaterial
from hotset.sources.memory.economics import LOADED
from hotset.sources.memory.memory_writer import known_memory
from hotset.sources.memory.recall_signals import (
    DEFAULT,
    RecallLog,
    learn_weights,
    rank_logged,
    recall_log,
)
from hotset.sources.memory.usefulness import HEEDED
from hotset.store.port import Store

_STEPS = (0.6, 0.7, 0.8, 0.9, 1.0)
_FEWEST_TOLD = 5
_UNUSED, _MISLED, _LOST = 1.0, 3.0, 4.0
"""What a telling loses that was not used, that misled, and one that would have helped and was not
made: most that help leave no trace, so those that do count for others."""
_SESSION = 1.0  # what every session loses, so that ratios are of something
TOLD = Quality(
    f"points lost by tellings a session ({_UNUSED:g} unused, {_MISLED:g} misled, {_LOST:g} missed)",
    lambda loss: loss - _SESSION,
)
_FARTHEST = 2.0  # a recall's loss is this less its NDCG@10
_RANKED = Quality("NDCG@10 of recalls", lambda loss: _FARTHEST - loss)


@dataclass(frozen=True, slots=True)
class Telling:
    """A memory that was told unasked."""

    kind: MemoryKind
    worth: float
    """How likely it was to be used, as far as was known."""
    how: Used | None
    """Helped, misled, or neither."""


@dataclass(frozen=True, slots=True)
class ToldSession:
    session: str
    time: float
    tellings: tuple[Telling, ...]

    def loss(self, knobs: Knobs) -> float:
        """What its tellings lose with these knobs."""
        return _SESSION + sum(_loss(each, knobs) for each in self.tellings)


def _loss(telling: Telling, knobs: Knobs) -> float:
    if telling.worth < least_to_tell(telling.kind, knobs):
        return _LOST if telling.how is Used.HELPED else 0.0
    return {Used.HELPED: 0.0, Used.MISLED: _MISLED}.get(telling.how or Used.SHOWN, _UNUSED)


def least_to_tell(kind: MemoryKind, knobs: Knobs) -> float:
    return knobs.memory.tells.get(kind, knobs.memory.tell)


def told_sessions(store: Store) -> list[ToldSession]:
    """The sessions in which memories were told unasked, the oldest first."""
    found: dict[str, list[tuple[float, str, float]]] = {}
    heeded: dict[tuple[str, str], Used] = {}
    for event in store.events(name=HEEDED):
        key = str(event.session), str(event.detail.get("memory"))
        heeded[key] = Used(str(event.detail.get("how")))
    for event in store.events(name=LOADED):
        detail = event.detail
        if detail.get("layer") == Layer.FULL and not detail.get("asked") and "worth" in detail:
            found.setdefault(str(event.session), []).extend(
                (event.time, id, float(detail["worth"])) for id in str(detail["ids"]).split()
            )
    kinds: dict[str, MemoryKind | None] = {}
    for id in {id for told in found.values() for _, id, _ in told}:
        memory = known_memory(store, MemoryId(id))
        kinds[id] = memory.kind if memory is not None else None
    sessions = [
        ToldSession(
            session,
            min(time for time, _, _ in told),
            tuple(
                Telling(kind, worth, heeded.get((session, id)))
                for _, id, worth in told
                if (kind := kinds[id]) is not None
            ),
        )
        for session, told in found.items()
    ]
    return sorted(sessions, key=lambda each: (each.time, each.session))


class TellingTeacher:
    """How likely a memory of a kind must be to be told unasked: a kind that is told and hardly ever
    used needs more."""

    def propose(self, material: TeachingMaterial, knobs: Knobs) -> Iterator[Proposal]:
        older = material.earlier(_told(material))
        if len(older) < FEWEST:
            return
        best: tuple[float, Gain, MemoryKind, float] | None = None
        told = [telling for session in older for telling in session.tellings]
        for kind in sorted({each.kind for each in told}):
            if sum(each.kind is kind for each in told) < _FEWEST_TOLD:
                continue
            for step in _STEPS:
                if step <= least_to_tell(kind, knobs):
                    continue
                after = knobs.with_changes({f"memory.tells.{kind}": step})
                gain = Gain.of(_pairs(older, knobs, after))
                if gain.score > (best[0] if best else 0.0):
                    best = gain.score, gain, kind, step
        if best is None:
            return
        _, gain, kind, step = best
        own = [each for each in told if each.kind is kind]
        helped = sum(each.how is Used.HELPED for each in own)
        misled = sum(each.how is Used.MISLED for each in own)
        before = least_to_tell(kind, knobs)
        yield Proposal(
            {f"memory.tells.{kind}": step},
            f"a {kind} is told from a likelihood of {step:g} instead of {before:g}: of "
            f"{len(own)} told {helped} helped and {misled} misled",
            {"told": len(own), "helped": helped, "misled": misled},
            scale=gain.scale,
            quality=TOLD,
        )

    def compare(
        self, material: TeachingMaterial, before: Knobs, after: Knobs, proposal: Proposal
    ) -> Sequence[SessionPair]:
        del proposal
        return _pairs(material.later(_told(material)), before, after)


def told_pairs(material: TeachingMaterial, before: Knobs, after: Knobs) -> list[SessionPair]:
    """Every session in which memories were told unasked, with both knobs."""
    return _pairs(_told(material), before, after)


def _told(material: TeachingMaterial) -> Sequence[ToldSession]:
    return told_sessions(material.store) if material.store is not None else ()


def _pairs(sessions: Iterable[ToldSession], before: Knobs, after: Knobs) -> list[SessionPair]:
    return [
        SessionPair(each.session, each.time, each.loss(before), each.loss(after))
        for each in sessions
    ]


class RecallTeacher:
    """How much each signal counts in the order of a recall: what was read should have been
    first."""

    def propose(self, material: TeachingMaterial, knobs: Knobs) -> Iterator[Proposal]:
        older = material.earlier(_recalls(material))
        before = _weights(knobs)
        learned = learn_weights(older, before)
        moved = {
            f"memory.signals.{name}": round(weight, 4)
            for name, weight in learned.weights.items()
            if weight != before[name]
        }
        if not moved:
            return
        after = knobs.with_changes(moved)
        gain = Gain.of(_ranked(older, knobs, after))
        told = ", ".join(
            f"`{name}` weighs {value:g} instead of {before[name.rpartition('.')[2]]:g}"
            for name, value in moved.items()
        )
        yield Proposal(
            moved,
            f"{told} in a recall: {learned.gain:+.3f} NDCG@10 on {learned.used} earlier recalls",
            {"recalls": learned.used, "ndcg": round(learned.gain, 4)},
            scale=gain.scale,
            quality=_RANKED,
        )

    def compare(
        self, material: TeachingMaterial, before: Knobs, after: Knobs, proposal: Proposal
    ) -> Sequence[SessionPair]:
        del proposal
        return _ranked(material.later(_recalls(material)), before, after)


def _recalls(material: TeachingMaterial) -> list[RecallLog]:
    if material.store is None:
        return []
    return sorted(recall_log(material.store.events()), key=lambda each: each.time)


def _weights(knobs: Knobs) -> dict[str, float]:
    return {**DEFAULT.as_dict(), **knobs.memory.signals}


def _ranked(log: Sequence[RecallLog], before: Knobs, after: Knobs) -> list[SessionPair]:
    """Each session by how far its recalls are from the best order."""
    if not log:
        return []
    worths = zip(
        log, rank_logged(log, _weights(before)), rank_logged(log, _weights(after)), strict=True
    )
    sessions: dict[str, list[tuple[float, float, float]]] = {}
    for each, old, new in worths:
        sessions.setdefault(each.session, []).append((each.time, old, new))
    return [_far(session, found) for session, found in sessions.items()]


def _far(session: str, found: Sequence[tuple[float, float, float]]) -> SessionPair:
    old, new = (math.fsum(_FARTHEST - each[at] for each in found) / len(found) for at in (1, 2))
    return SessionPair(session, min(each[0] for each in found), old, new)
