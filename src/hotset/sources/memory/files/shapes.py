"""A memory as a JSON object with the field names that loki-mode's files have, and back. Pure.

Under `hotset` stands the whole memory, so that reading gives back what was written. It counts only while the fields beside it say
what it says: whoever edits those is heard.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from hotset.errors import BadInput
from hotset.nouns.memory import Checkpoint, Episode, Memory, MemoryKind, MemoryLink, Pitfall, Procedure, Relation, Uses
from hotset.sealing import seal
from hotset.sources.memory.files.theirs import LATEST, Item, read_theirs
from hotset.sources.memory.naming import is_memory_id, kind_of
from hotset.store.memory_form import from_fields, refuse_unfit

_KEY = "hotset"
_BESIDE = frozenset({_KEY, "links", "source_episodes", "source", "usage_count", "last_used", "last_accessed", "access_count"})
"""What may differ from the memory under `hotset`: counted elsewhere, or told by the links."""
_SURROGATES = re.compile("[\ud800-\udfff]")


def item_of(memory: Memory, links: Sequence[MemoryLink] = (), uses: Uses | None = None) -> Item:
    """`links` are those from this memory."""
    beside: Item = {}
    if memory.kind in (MemoryKind.FACT, MemoryKind.PITFALL):
        sources = [link.to for link in links if link.relation is Relation.DERIVED_FROM]
        others = [link for link in links if link.relation is not Relation.DERIVED_FROM]
        beside = {
            "source_episodes": sources,
            "links": [{"to": link.to, "relation": link.relation.value, "strength": 1.0} for link in others],
            "usage_count": uses.read + uses.helped if uses else 0,
            "last_used": told_time(uses.last) if uses and uses.last else None,
        }
    return {**_SHOWN[memory.kind](memory), **beside, _KEY: msgspec.to_builtins(memory)}


def memory_of(kind: MemoryKind, item: Item, place: str, changed: float) -> Memory | None:
    """As `read_theirs`, but what hotset wrote is as it was."""
    own = own_of(kind, item)
    visible = {name: value for name, value in item.items() if name not in _BESIDE}
    if own is not None and _SHOWN[kind](own) == visible:
        return own
    theirs = read_theirs(kind, item, place, changed)
    if own is None or theirs is None or theirs.kind is not kind:
        return theirs
    return replace(theirs, id=own.id, created=own.created, topics=own.topics, task=own.task, version=own.version, time=own.time)


def own_of(kind: MemoryKind, item: Item) -> Memory | None:
    """What stands under `hotset`, where it can be used."""
    fields = item.get(_KEY)
    if not isinstance(fields, dict):
        return None
    try:
        memory = from_fields(fields)
        refuse_unfit(memory)
    except (msgspec.ValidationError, BadInput):
        return None
    fits = memory.kind is kind and memory.id == item.get("id") and is_memory_id(memory.id) and kind_of(memory.id) is kind
    return memory if fits else None


def sealed(memory: Memory) -> Memory:
    """Without secrets, and without halves of characters, which no file can hold."""
    return from_fields(_sealed(msgspec.to_builtins(memory)))


def told_time(time: float) -> str:
    """As loki-mode writes it; empty where it is no date."""
    if not math.isfinite(time) or not 0 <= time <= LATEST:
        return ""
    return datetime.fromtimestamp(time, UTC).isoformat().replace("+00:00", "Z")


def told_day(time: float) -> str:
    return told_time(time)[:10] or "undated"


def _sealed(value: Any) -> Any:
    match value:
        case str():
            return seal(_SURROGATES.sub("�", value)).text
        case dict():
            return {name: _sealed(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_sealed(inner) for inner in value]
        case _:
            return value


def _shown_episode(memory: Memory) -> Item:
    detail = memory.detail if isinstance(memory.detail, Episode) else Episode(goal=memory.title)
    return {
        "id": memory.id,
        "task_id": memory.id,
        "timestamp": told_time(memory.created),
        "duration_seconds": detail.seconds,
        "agent": memory.source.agent,
        "context": {
            "phase": detail.phase,
            "goal": detail.goal,
            "constraints": [],
            "files_involved": list(detail.files),
        },
        "action_log": [
            {"t": each.at, "action": each.tool, "target": each.target, "result": "fail" if each.failed else "pass"}
            for each in detail.actions
        ],
        "outcome": memory.ending.value,
        "errors_encountered": [
            {"type": each.kind, "message": each.said, "resolution": "; ".join(each.resolved)} for each in detail.troubles
        ],
        "artifacts_produced": list(detail.artifacts),
        "git_commit": None,
        "tokens_used": detail.tokens,
        "files_read": list(detail.files),
        "files_modified": list(detail.artifacts),
        "summary": memory.text,
    }


def _shown_fact(memory: Memory) -> Item:
    return {
        "id": memory.id,
        "pattern": memory.text,
        "category": memory.topics[0] if memory.topics else "general",
        "conditions": [],
        "correct_approach": "",
        "incorrect_approach": "",
        "confidence": memory.confidence,
    }


def _shown_pitfall(memory: Memory) -> Item:
    detail = memory.detail if isinstance(memory.detail, Pitfall) else Pitfall(what=memory.text)
    return {
        "id": memory.id,
        "what_fails": detail.what,
        "why": detail.why,
        "prevention": detail.instead,
        "category": memory.topics[0] if memory.topics else "general",
        "confidence": memory.confidence,
    }


def _shown_procedure(memory: Memory) -> Item:
    detail = memory.detail if isinstance(memory.detail, Procedure) else Procedure()
    return {
        "id": memory.id,
        "name": memory.title,
        "description": memory.text,
        "prerequisites": [detail.when] if detail.when else [],
        "steps": list(detail.steps),
        "common_errors": [],
        "exit_criteria": [],
    }


def _shown_ledger(memory: Memory) -> Item:
    detail = memory.detail if isinstance(memory.detail, Checkpoint) else Checkpoint()
    return {
        "id": memory.id,
        "agent_id": memory.source.agent,
        "last_checkpoint": told_time(memory.created),
        "tasks_completed": len(detail.done),
        "current_task": detail.doing,
        "state": {"completed": list(detail.done), "next": list(detail.next), "blockers": list(detail.blockers)},
        "context": {"current_goal": memory.title},
        "summary": memory.text,
    }


def _shown_handoff(memory: Memory) -> Item:
    detail = memory.detail if isinstance(memory.detail, Checkpoint) else Checkpoint()
    return {
        "id": memory.id,
        "from_agent": memory.source.agent,
        "to_agent": detail.to,
        "timestamp": told_time(memory.created),
        "context": {
            "what_was_done": "; ".join(detail.done) or memory.title,
            "artifacts": [],
            "needs_testing": list(detail.next),
            "known_issues": list(detail.blockers),
        },
        "summary": memory.text,
    }


def _shown_learning(memory: Memory) -> Item:
    return {"id": memory.id, "timestamp": told_time(memory.created), "title": memory.title, "learning": memory.text}


_SHOWN = {
    MemoryKind.EPISODE: _shown_episode,
    MemoryKind.FACT: _shown_fact,
    MemoryKind.PITFALL: _shown_pitfall,
    MemoryKind.PROCEDURE: _shown_procedure,
    MemoryKind.LEDGER: _shown_ledger,
    MemoryKind.HANDOFF: _shown_handoff,
    MemoryKind.LEARNING: _shown_learning,
}
