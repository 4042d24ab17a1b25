"""What others wrote, as memories: unknown fields are passed over, missing ones done without. Pure.

All of it is data. Nobody here knows who wrote it, so a procedure or a pitfall is a candidate until somebody confirms it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hotset.nouns.memory import (
    Action,
    Checkpoint,
    Ending,
    Episode,
    Fact,
    Memory,
    MemoryId,
    MemoryKind,
    Pitfall,
    Procedure,
    Provenance,
    Relation,
    Standing,
    Task,
    Trouble,
    Trust,
)
from hotset.sources.memory.naming import is_memory_id, kind_of, memory_id
from hotset.tokens import count

Item = dict[str, Any]

RELATIONS: Mapping[str, Relation] = {each.value: each for each in Relation} | {
    "elaborates": Relation.RELATED_TO,
    "example_of": Relation.RELATED_TO,
    "supports": Relation.RELATED_TO,
}
SUPERSEDED_BY = "superseded_by"
"""The one relation that they have and that points the other way."""

_MOST_TEXT = 20_000  # characters of what others wrote; the longest of real files are some hundred
_MOST_TITLE = 160
_MOST_ITEMS = 200  # of a list in what others wrote
LATEST = 253402300799  # the last second that has a date
_ENDINGS = {"failed": Ending.FAILURE, "error": Ending.FAILURE} | {each.value: each for each in Ending}
_FAILED = frozenset({"fail", "failed", "failure", "error"})
_ADVICE = frozenset({MemoryKind.PROCEDURE, MemoryKind.PITFALL})


def read_theirs(kind: MemoryKind, item: Item, place: str, changed: float) -> Memory | None:
    """`place` is where it stands, and `changed` what is taken for its time where it tells none. None where it says nothing."""
    if kind is MemoryKind.FACT and _word(item, "category") in ("anti-pattern", "anti_pattern"):
        kind = MemoryKind.PITFALL  # some versions keep them among the patterns
    title, text, detail = _READ[kind](item)
    if not title and not text:
        return None
    memory = foreign(
        kind,
        title,
        text,
        id=item.get("id"),
        created=_created(item, changed),
        place=place,
        agent=_word(item, "agent", "agent_id", "from_agent"),
        topics=words(item.get("category")),
    )
    task = _word(item, "task_type", "task")
    confidence = _number(item.get("confidence"), memory.confidence)
    return replace(
        memory,
        detail=detail,
        ending=_ENDINGS.get(_word(item, "outcome").lower(), Ending.UNKNOWN),
        task=Task(task) if task in Task._value2member_map_ else None,
        confidence=min(1.0, max(0.0, confidence)),
    )


def raw_links(item: Item) -> Iterable[tuple[str, str]]:
    """The relations that it says it has, and to what, in its own words."""
    for each in listed(item.get("source_episodes")):
        if isinstance(each, str):
            yield Relation.DERIVED_FROM, each
    if isinstance(source := item.get("source"), str):
        yield Relation.DERIVED_FROM, source
    for link in listed(item.get("links")):
        if isinstance(link, dict):
            yield _word(link, "relation"), _word(link, "to", "to_id")


def foreign(
    kind: MemoryKind,
    title: str,
    text: str,
    *,
    id: object = "",
    created: float,
    place: str,
    agent: str = "",
    topics: Iterable[str] = (),
) -> Memory:
    """A memory in somebody's words that we know nothing about: data, and no advice before somebody confirms it."""
    title = " ".join((title or text).split())[:_MOST_TITLE]
    text = text.strip()[:_MOST_TEXT]
    key = f"loki:{id}" if isinstance(id, str) and id else f"loki\0{title}\0{text}"
    kept = isinstance(id, str) and is_memory_id(id) and kind_of(MemoryId(id)) is kind
    return Memory(
        id=MemoryId(str(id)) if kept else memory_id(kind, key, created),
        kind=kind,
        title=title,
        text=text,
        created=created,
        source=Provenance(by="import", agent=agent, places=(place,)),
        topics=tuple(dict.fromkeys(topic for each in topics if (topic := " ".join(each.lower().split())[:60]))),
        trust=Trust.OUTSIDE,
        standing=Standing.CANDIDATE if kind in _ADVICE else Standing.ACTIVE,
        tokens=count(text),
    )


_Told = tuple[str, str, Any]


def _read_episode(item: Item) -> _Told:
    context = _inner(item, "context")
    goal = _word(context, "goal") or _word(item, "goal", "title", "summary", "task_id", "id")
    actions = [_action(each) for each in listed(item.get("action_log")) if isinstance(each, dict)]
    troubles = [_trouble(each) for each in listed(item.get("errors_encountered"))]
    made = (*words(item.get("artifacts_produced")), *words(item.get("files_modified")))
    log = item.get("action_log")
    detail = Episode(
        goal=goal,
        phase=_word(context, "phase") or _word(item, "phase"),
        seconds=max(0.0, _number(item.get("duration_seconds"))),
        actions=tuple(actions),
        more_actions=max(0, len(log) - len(actions)) if isinstance(log, list) else 0,
        troubles=tuple(troubles),
        files=words(item.get("files_read") or context.get("files_involved") or context.get("files")),
        artifacts=tuple(dict.fromkeys(made)),
        tokens=max(0, int(_number(item.get("tokens_used")))),
    )
    told = [
        _word(item, "summary") or goal,
        _line("Outcome", (_word(item, "outcome"),)),
        _line("Changed", detail.artifacts),
        *(_line("Went wrong", (": ".join(filter(None, (each.kind, each.said))), *each.resolved), " → ") for each in troubles),
    ]
    return goal, "\n".join(filter(None, told)), detail


def _action(entry: Item) -> Action:
    failed = _word(entry, "result", "output", "status").lower() in _FAILED or bool(entry.get("error"))
    at = max(0.0, _number(entry.get("t", entry.get("timestamp"))))
    return Action(at, _word(entry, "action", "tool"), _word(entry, "target", "input", "command")[:300], failed)


def _trouble(entry: object) -> Trouble:
    if not isinstance(entry, dict):
        return Trouble("", _said(entry), "", "")
    resolution = words(entry.get("resolution"))
    return Trouble(_word(entry, "type", "error_type"), _word(entry, "message"), "", "", resolution, bool(resolution))


def _read_fact(item: Item) -> _Told:
    said = _word(item, "pattern", "fact", "text", "content", "statement", "description", "decision", "value")
    told = [
        said,
        _line("When", words(item.get("conditions"))),
        _line("Do", words(item.get("correct_approach"))),
        _line("Not", words(item.get("incorrect_approach"))),
        _line("Why", words(item.get("rationale"))),
    ]
    return _word(item, "title") or said, "\n".join(filter(None, told)), Fact()


def _read_pitfall(item: Item) -> _Told:
    what = _word(item, "what_fails", "what", "incorrect_approach", "pattern", "error", "type")
    why = _word(item, "why", "message", "reason")
    instead = _word(item, "prevention", "resolution", "fix", "correct_approach", "instead")
    told = (what, _line("Why", (why,)), _line("Instead", (instead,)))
    return what, "\n".join(filter(None, told)), Pitfall(what, why, instead)


def _read_procedure(item: Item) -> _Told:
    name = _word(item, "name", "title", "id")
    steps = words(item.get("steps"))
    errors = [
        _line("When it fails", (_word(each, "error"), _word(each, "fix")) if isinstance(each, dict) else (_said(each),), " → ")
        for each in listed(item.get("common_errors"))
    ]
    told = [
        _word(item, "description"),
        _line("Needs", words(item.get("prerequisites"))),
        *(f"{number}. {step}" for number, step in enumerate(steps, 1)),
        *errors,
        _line("Done when", words(item.get("exit_criteria"))),
    ]
    text = "\n".join(filter(None, told)) or name
    return name, text, Procedure("; ".join(words(item.get("prerequisites"))), steps)


def _read_ledger(item: Item) -> _Told:
    context, state = _inner(item, "context"), _inner(item, "state")
    doing = _word(item, "current_task")
    goal = _word(context, "current_goal") or doing or _word(item, "title", "agent_id", "id")
    done = words(state.get("completed")) or words(item.get("completed"))
    detail = Checkpoint(
        done, doing, words(state.get("next") or item.get("next")), words(state.get("blockers") or item.get("blockers"))
    )
    told = [
        _word(item, "summary") or goal,
        _line("Doing", (doing,)),
        _line("Changed", words(state.get("files_modified"))),
        _line("Next", detail.next),
        _line("Blocked by", detail.blockers),
    ]
    return goal, "\n".join(filter(None, told)), detail


def _read_handoff(item: Item) -> _Told:
    context = _inner(item, "context")
    done = words(context.get("what_was_done")) + words(item.get("recent_commits"))
    upcoming = words(context.get("needs_testing")) + words(item.get("open_questions"))
    blockers = words(context.get("known_issues")) + words(item.get("blockers"))
    title = (done or words(item.get("reason")) or (_word(item, "id") or "handoff",))[0]
    told = [
        _word(item, "summary") or title,
        _line("Done", done),
        _line("Decided", words(item.get("key_decisions"))),
        _line("Changed", words(context.get("artifacts")) + words(item.get("files_modified"))),
        _line("Next", upcoming),
        _line("Known issues", blockers),
    ]
    return title, "\n".join(filter(None, told)), Checkpoint(done, "", upcoming, blockers, _word(item, "to_agent"))


def _read_learning(item: Item) -> _Told:
    said = _word(item, "learning", "lesson", "text", "content", "description", "rootCause", "message", "title")
    told = [said, _line("Fix", words(item.get("fix"))), _line("From now on", words(item.get("preventInFuture")))]
    return _word(item, "title") or said, "\n".join(filter(None, told)), None


_READ = {
    MemoryKind.EPISODE: _read_episode,
    MemoryKind.FACT: _read_fact,
    MemoryKind.PITFALL: _read_pitfall,
    MemoryKind.PROCEDURE: _read_procedure,
    MemoryKind.LEDGER: _read_ledger,
    MemoryKind.HANDOFF: _read_handoff,
    MemoryKind.LEARNING: _read_learning,
}


def listed(value: object) -> list[Any]:
    """What should be a list, and is not always one."""
    match value:
        case list():
            return value[:_MOST_ITEMS]
        case None | "":
            return []
        case _:
            return [value]


def words(value: object) -> tuple[str, ...]:
    return tuple(text for each in listed(value) if (text := _said(each)))


def _created(item: Item, changed: float) -> float:
    for name in ("timestamp", "created_at", "created", "date", "last_checkpoint"):
        if (time := _time(item.get(name))) is not None:
            return time
    return changed


def _time(value: object) -> float | None:
    match value:
        case bool() | None:
            return None
        case int() | float():
            seconds = value / 1000 if value > LATEST else value  # some count milliseconds
            return float(seconds) if math.isfinite(seconds) and 0 <= seconds <= LATEST else None
        case str():
            try:
                found = datetime.fromisoformat(value.strip())
            except ValueError:
                return None
            try:
                time = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
            except OverflowError:
                return None
            return time if 0 <= time <= LATEST else None
        case _:
            return None


def _inner(item: Item, name: str) -> Item:
    value = item.get(name)
    return value if isinstance(value, dict) else {}


def _word(item: Item, *names: str) -> str:
    """The first of these fields that says something."""
    return next((said for name in names if (said := _said(item.get(name)))), "")


def _said(value: object) -> str:
    match value:
        case str():
            return value.strip()[:_MOST_TEXT]
        case bool() | None:
            return ""
        case int() | float():
            return str(value)
        case dict():
            return _word(value, "description", "text", "title", "name", "decision", "action", "message")
        case _:
            return ""


def _number(value: object, otherwise: float = 0.0) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return otherwise
    try:
        return float(value) if math.isfinite(value) and abs(value) < 1e15 else otherwise
    except OverflowError:
        return otherwise


def _line(name: str, said: Iterable[str], between: str = "; ") -> str:
    text = between.join(each for each in said if each)
    return f"{name}: {text}" if text else ""
