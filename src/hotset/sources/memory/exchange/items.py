"""Each kind of memory in loki-mode's files: its place in an export, and its fields. Pure.

`show` gives a memory's fields as loki-mode names them. `read` gives title, lines of text and detail
of an object by any version or program: unknown fields are ignored, missing ones are optional, and
no value is trusted to have its type.

An object carries the whole memory under `hotset`, so that reading it is lossless. That counts only
while the fields beside it agree: otherwise the edited fields are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from hotset.errors import BadInput
from hotset.nouns.memory import (
    DETAILS,
    Action,
    Checkpoint,
    Detail,
    Ending,
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
    Task,
    Trouble,
    Trust,
    Uses,
)
from hotset.sealing import seal
from hotset.sources.memory.kinds import ADVICE_KINDS, is_memory_id, kind_of, memory_id
from hotset.store.memory_versions import memory_from_fields, refuse_unfit
from hotset.tokens import count

Item = dict[str, Any]
Reading = tuple[str, Sequence[str], Detail]
"""Title, lines of text and detail."""

MARK = "hotset"
"""The field of hotset's own data in loki-mode's files."""

MOST_TEXT = 20_000  # characters of foreign text; the longest in real files are some hundred
_MOST_ITEMS = 200  # of a foreign list
_MOST_TITLE = 160
_LATEST = 253402300799  # the last second that has a date
_SURROGATES = re.compile("[\ud800-\udfff]")
_ENDINGS = {"failed": Ending.FAILURE, "error": Ending.FAILURE} | {
    each.value: each for each in Ending
}
_FAILED = frozenset({"fail", "failed", "failure", "error"})
_TIMES = ("timestamp", "created_at", "created", "date", "last_checkpoint")
_BESIDE = frozenset(
    f"{MARK} links source_episodes source usage_count last_used last_accessed access_count".split()
)
"""Fields that may differ from the memory under `hotset`: counted elsewhere, or given by the
links."""


def iso_time(time: float) -> str:
    """As loki-mode writes it; empty if it is no date."""
    if not 0 <= time <= _LATEST:
        return ""
    return datetime.fromtimestamp(time, UTC).isoformat().replace("+00:00", "Z")


def iso_day(time: float) -> str:
    return iso_time(time)[:10] or "undated"


# Foreign fields as title, lines of text and detail


def _read_episode(item: Item) -> Reading:
    goal = word(item, "context.goal", "goal", "title", "summary", "task_id", "id")
    log = item.get("action_log")
    actions = tuple(_action(each) for each in _as_list(log) if isinstance(each, dict))
    artifacts = words(item, "artifacts_produced") + words(item, "files_modified")
    detail = Episode(
        goal=goal,
        phase=word(item, "context.phase", "phase"),
        seconds=max(0.0, number(item.get("duration_seconds"))),
        actions=actions,
        more_actions=max(0, len(log) - len(actions)) if isinstance(log, list) else 0,
        troubles=tuple(map(_trouble, _as_list(item.get("errors_encountered")))),
        files=words(item, "files_read", "context.files_involved", "context.files"),
        artifacts=tuple(dict.fromkeys(artifacts)),
        tokens=max(0, int(number(item.get("tokens_used")))),
    )
    errors = ((": ".join(filter(None, (e.kind, e.said))), *e.resolved) for e in detail.troubles)
    return (
        goal,
        (
            word(item, "summary") or goal,
            _line("Outcome", word(item, "outcome")),
            _line("Changed", *detail.artifacts),
            *(_line("Went wrong", *each, between=" → ") for each in errors),
        ),
        detail,
    )


def _action(entry: Item) -> Action:
    result = word(entry, "result", "output", "status").lower()
    return Action(
        max(0.0, number(entry.get("t", entry.get("timestamp")))),
        word(entry, "action", "tool"),
        word(entry, "target", "input", "command")[:300],
        result in _FAILED or bool(entry.get("error")),
    )


def _trouble(entry: object) -> Trouble:
    if not isinstance(entry, dict):
        return Trouble("", _text(entry), "", "")
    resolution = words(entry, "resolution")
    kind, message = word(entry, "type", "error_type"), word(entry, "message")
    return Trouble(kind, message, "", "", resolution, bool(resolution))


def _read_fact(item: Item) -> Reading:
    names = ("pattern", "fact", "text", "content", "statement", "description", "decision", "value")
    fact = word(item, *names)
    lines = (
        fact,
        _line("When", *words(item, "conditions")),
        _line("Do", *words(item, "correct_approach")),
        _line("Not", *words(item, "incorrect_approach")),
        _line("Why", *words(item, "rationale")),
    )
    return word(item, "title") or fact, lines, Fact()


def _read_pitfall(item: Item) -> Reading:
    what = word(item, "what_fails", "what", "incorrect_approach", "pattern", "error", "type")
    why = word(item, "why", "message", "reason")
    instead = word(item, "prevention", "resolution", "fix", "correct_approach", "instead")
    lines = (what, _line("Why", why), _line("Instead", instead))
    return what, lines, Pitfall(what, why, instead)


def _read_procedure(item: Item) -> Reading:
    name, steps = word(item, "name", "title", "id"), words(item, "steps")
    needs, description = words(item, "prerequisites"), word(item, "description")
    errors = (
        (word(each, "error"), word(each, "fix")) if isinstance(each, dict) else (_text(each),)
        for each in _as_list(item.get("common_errors"))
    )
    lines = (
        description,
        _line("Needs", *needs),
        *(f"{place}. {step}" for place, step in enumerate(steps, 1)),
        *(_line("When it fails", *each, between=" → ") for each in errors),
        _line("Done when", *words(item, "exit_criteria")),
    )
    return name, lines if any(lines) else (name,), Procedure("; ".join(needs), steps)


def _read_ledger(item: Item) -> Reading:
    doing = word(item, "current_task")
    goal = word(item, "context.current_goal", "current_task", "title", "agent_id", "id")
    done, upcoming, blockers = (
        words(item, f"state.{name}", name) for name in ("completed", "next", "blockers")
    )
    lines = (
        word(item, "summary") or goal,
        _line("Doing", doing),
        _line("Changed", *words(item, "state.files_modified")),
        _line("Next", *upcoming),
        _line("Blocked by", *blockers),
    )
    return goal, lines, Checkpoint(done, doing, upcoming, blockers)


def _read_handoff(item: Item) -> Reading:
    done = words(item, "context.what_was_done") + words(item, "recent_commits")
    upcoming = words(item, "context.needs_testing") + words(item, "open_questions")
    blockers = words(item, "context.known_issues") + words(item, "blockers")
    title = (done or words(item, "reason") or (word(item, "id") or "handoff",))[0]
    lines = (
        word(item, "summary") or title,
        _line("Done", *done),
        _line("Decided", *words(item, "key_decisions")),
        _line("Changed", *words(item, "context.artifacts"), *words(item, "files_modified")),
        _line("Next", *upcoming),
        _line("Known issues", *blockers),
    )
    return title, lines, Checkpoint(done, "", upcoming, blockers, word(item, "to_agent"))


def _read_learning(item: Item) -> Reading:
    names = (
        "learning",
        "lesson",
        "text",
        "content",
        "description",
        "rootCause",
        "message",
        "title",
    )
    lesson = word(item, *names)
    lines = (
        lesson,
        _line("Fix", *words(item, "fix")),
        _line("From now on", *words(item, "preventInFuture")),
    )
    return word(item, "title") or lesson, lines, None


def read_links(item: Item) -> Iterator[tuple[str, str]]:
    """The relations of an object, each with the other id, as spelled there."""
    for source in (*_as_list(item.get("source_episodes")), item.get("source")):
        if isinstance(source, str):
            yield Relation.DERIVED_FROM, source
    for link in _as_list(item.get("links")):
        if isinstance(link, dict):
            yield word(link, "relation"), word(link, "to", "to_id")


def word(item: Item, *paths: str) -> str:
    """The text of the first non-empty field; `a.b` is field b of the object in field a."""
    return next((text for path in paths if (text := _text(_field(item, path)))), "")


def words(item: Item, *paths: str) -> tuple[str, ...]:
    """The texts of the first field with a non-empty list."""
    lists = (tuple(filter(None, map(_text, _as_list(_field(item, path))))) for path in paths)
    return next((texts for texts in lists if texts), ())


def number(value: object, otherwise: float = 0.0) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e15 else otherwise  # type: ignore[arg-type]


def _field(item: Item, path: str) -> object:
    outer, _, name = path.rpartition(".")
    holder = item.get(outer) if outer else item
    return holder.get(name) if isinstance(holder, dict) else None


def _as_list(value: object) -> list[Any]:
    """A value that should be a list, as one."""
    if isinstance(value, list):
        return value[:_MOST_ITEMS]
    return [] if value in (None, "") else [value]


def _text(value: object) -> str:
    if isinstance(value, dict):
        return word(value, "description", "text", "title", "name", "decision", "action", "message")
    if isinstance(value, str):
        return value.strip()[:MOST_TEXT]
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _time(value: Any) -> float | None:
    """Seconds, from an ISO date or a number of seconds or milliseconds."""
    try:
        if isinstance(value, str):
            date = datetime.fromisoformat(value.strip())
            seconds = date.replace(tzinfo=date.tzinfo or UTC).timestamp()
        else:
            seconds = (
                -1.0 if isinstance(value, bool) else float(value) / (1000 if value > _LATEST else 1)
            )
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds <= _LATEST else None


def _line(label: str, *texts: str, between: str = "; ") -> str:
    text = between.join(filter(None, texts))
    return f"{label}: {text}" if text else ""


@dataclass(frozen=True, slots=True)
class KindFormat:
    """One kind of memory in loki-mode's files."""

    folder: str
    read: Callable[[Item], Reading]
    show: Callable[[MemoryRecord, Any], Item]
    """The fields of a memory and its detail."""
    names: str = ""
    """A pattern for the JSON files in that folder that hold it."""
    file: str = ""
    """The file that hotset writes for each; empty if they are in a list."""
    list: str = ""
    """The list in which hotset writes them, or an entry for each."""


EPISODE, FACT, LEARNING = MemoryKind.EPISODE, MemoryKind.FACT, MemoryKind.LEARNING

FORMATS: Mapping[MemoryKind, KindFormat] = {
    MemoryKind.EPISODE: KindFormat(
        "episodic",
        names="(?!index)",
        file="episodic/{day}/task-{id}.json",
        list="episodes",
        read=_read_episode,
        show=lambda memory, detail: {
            "id": memory.id,
            "task_id": memory.id,
            "timestamp": iso_time(memory.created),
            "duration_seconds": detail.seconds,
            "agent": memory.source.agent,
            "context": {
                "phase": detail.phase,
                "goal": detail.goal,
                "constraints": [],
                "files_involved": list(detail.files),
            },
            "action_log": [
                {
                    "t": each.at,
                    "action": each.tool,
                    "target": each.target,
                    "result": "fail" if each.failed else "pass",
                }
                for each in detail.actions
            ],
            "outcome": memory.ending.value,
            "errors_encountered": [
                {"type": each.kind, "message": each.said, "resolution": "; ".join(each.resolved)}
                for each in detail.troubles
            ],
            "artifacts_produced": list(detail.artifacts),
            "git_commit": None,
            "tokens_used": detail.tokens,
            "files_read": list(detail.files),
            "files_modified": list(detail.artifacts),
            "summary": memory.text,
        },
    ),
    MemoryKind.FACT: KindFormat(
        "semantic",
        names="patterns|facts",
        list="facts",
        read=_read_fact,
        show=lambda memory, _detail: {
            "id": memory.id,
            "pattern": memory.text,
            "category": memory.topics[0] if memory.topics else "general",
            "conditions": [],
            "correct_approach": "",
            "incorrect_approach": "",
            "confidence": memory.confidence,
        },
    ),
    MemoryKind.PITFALL: KindFormat(
        "semantic",
        names="anti-patterns",
        list="anti_patterns",
        read=_read_pitfall,
        show=lambda memory, detail: {
            "id": memory.id,
            "what_fails": detail.what,
            "why": detail.why,
            "prevention": detail.instead,
            "category": memory.topics[0] if memory.topics else "general",
            "confidence": memory.confidence,
        },
    ),
    MemoryKind.PROCEDURE: KindFormat(
        "skills",
        file="skills/{name}{id}.md",
        read=_read_procedure,
        show=lambda memory, detail: {
            "id": memory.id,
            "name": memory.title,
            "description": memory.text,
            "prerequisites": [detail.when] if detail.when else [],
            "steps": list(detail.steps),
            "common_errors": [],
            "exit_criteria": [],
        },
    ),
    MemoryKind.LEDGER: KindFormat(
        "ledgers",
        file="ledgers/{id}.json",
        read=_read_ledger,
        show=lambda memory, detail: {
            "id": memory.id,
            "agent_id": memory.source.agent,
            "last_checkpoint": iso_time(memory.created),
            "tasks_completed": len(detail.done),
            "current_task": detail.doing,
            "state": {
                "completed": list(detail.done),
                "next": list(detail.next),
                "blockers": list(detail.blockers),
            },
            "context": {"current_goal": memory.title},
            "summary": memory.text,
        },
    ),
    MemoryKind.HANDOFF: KindFormat(
        "handoffs",
        file="handoffs/{id}.json",
        read=_read_handoff,
        show=lambda memory, detail: {
            "id": memory.id,
            "from_agent": memory.source.agent,
            "to_agent": detail.to,
            "timestamp": iso_time(memory.created),
            "context": {
                "what_was_done": "; ".join(detail.done) or memory.title,
                "artifacts": [],
                "needs_testing": list(detail.next),
                "known_issues": list(detail.blockers),
            },
            "summary": memory.text,
        },
    ),
    MemoryKind.LEARNING: KindFormat(
        "learnings",
        list="learnings",
        read=_read_learning,
        show=lambda memory, _detail: {
            "id": memory.id,
            "timestamp": iso_time(memory.created),
            "title": memory.title,
            "learning": memory.text,
        },
    ),
}
"""In the order in which they are written. Other kinds are hotset's own and not exported."""


def fields_of(memory: MemoryRecord) -> Item:
    """A memory's fields as loki-mode names them."""
    shape = DETAILS[memory.kind]
    empty: dict[type | None, Detail] = {
        Episode: Episode(goal=memory.title),
        Pitfall: Pitfall(what=memory.text),
        Procedure: Procedure(),
        Checkpoint: Checkpoint(),
    }
    is_fit = shape is not None and isinstance(memory.detail, shape)
    return FORMATS[memory.kind].show(memory, memory.detail if is_fit else empty.get(shape))


def item_of(
    memory: MemoryRecord, links: Sequence[MemoryLink] = (), uses: Uses | None = None
) -> Item:
    """A memory as an object of loki-mode's files. `links` are those from this memory."""
    beside: Item = {}
    if FORMATS[memory.kind].folder == "semantic":
        drawn = [link.to for link in links if link.relation is Relation.DERIVED_FROM]
        others = (link for link in links if link.relation is not Relation.DERIVED_FROM)
        beside = {
            "source_episodes": drawn,
            "links": [
                {"to": link.to, "relation": link.relation.value, "strength": 1.0} for link in others
            ],
            "usage_count": uses.read + uses.helped if uses else 0,
            "last_used": iso_time(uses.last) if uses and uses.last else None,
        }
    return {**fields_of(memory), **beside, MARK: msgspec.to_builtins(memory)}


def memory_of(kind: MemoryKind, item: Item, place: str, changed: float) -> MemoryRecord | None:
    """The memory of an object in loki-mode's files; unchanged if hotset wrote it and it was not
    edited.

    `place` is the file, `changed` the time for objects without one. None if it is empty.
    """
    own = embedded_memory(kind, item)
    if own is not None and fields_of(own) == {
        name: item[name] for name in item if name not in _BESIDE
    }:
        return own
    theirs = _read_foreign(kind, item, place, changed)
    if own is None or theirs is None or theirs.kind is not kind:
        return theirs
    kept = ("id", "created", "topics", "task", "version", "time")
    return replace(theirs, **{name: getattr(own, name) for name in kept})


def embedded_memory(kind: MemoryKind, item: Item) -> MemoryRecord | None:
    """The memory under `hotset`, if it is valid and of this kind and id."""
    if not isinstance(fields := item.get(MARK), dict):
        return None
    try:
        memory = memory_from_fields(fields)
        refuse_unfit(memory)
    except (msgspec.ValidationError, BadInput):
        return None
    is_fit = memory.kind is kind and memory.id == item.get("id") and _is_id_of(kind, memory.id)
    return memory if is_fit else None


def foreign_memory(
    kind: MemoryKind,
    title: str,
    text: str,
    *,
    id: object = "",
    created: float,
    place: str,
    agent: str = "",
    topics: Iterable[str] = (),
) -> MemoryRecord:
    """A memory by an unknown author: data, and no advice until a person confirms it. Its topics are
    those that the file names, or those of its words."""
    from hotset.sources.memory.encode.outcome import topics_of  # noqa: PLC0415 - a tenth of a second

    title = " ".join((title or text).split())[:_MOST_TITLE]
    text = text.strip()[:MOST_TEXT]
    key = f"loki:{id}" if isinstance(id, str) and id else f"loki\0{title}\0{text}"
    named = [name for each in topics if (name := " ".join(each.lower().split())[:60])]
    if not named or named == ["general"]:
        named = list(topics_of(f"{title} {text}"))
    return MemoryRecord(
        id=MemoryId(str(id)) if _is_id_of(kind, id) else memory_id(kind, key, created),
        kind=kind,
        title=title,
        text=text,
        created=created,
        source=Provenance(by="import", agent=agent, places=(place,)),
        topics=tuple(dict.fromkeys(named)),
        trust=Trust.OUTSIDE,
        standing=Standing.CANDIDATE if kind in ADVICE_KINDS else Standing.ACTIVE,
        tokens=count(text),
    )


def _is_id_of(kind: MemoryKind, id: object) -> bool:
    return isinstance(id, str) and is_memory_id(id) and kind_of(MemoryId(id)) is kind


def _read_foreign(kind: MemoryKind, item: Item, place: str, changed: float) -> MemoryRecord | None:
    if kind is FACT and word(item, "category") in ("anti-pattern", "anti_pattern"):
        kind = MemoryKind.PITFALL  # some versions store them among the patterns
    title, lines, detail = FORMATS[kind].read(item)
    text = "\n".join(filter(None, lines))
    if not title and not text:
        return None
    times = (time for name in _TIMES if (time := _time(item.get(name))) is not None)
    memory = foreign_memory(
        kind,
        title,
        text,
        id=item.get("id"),
        created=next(times, changed),
        place=place,
        agent=word(item, "agent", "agent_id", "from_agent"),
        topics=words(item, "category"),
    )
    task = word(item, "task_type", "task")
    return replace(
        memory,
        detail=detail,
        ending=_ENDINGS.get(word(item, "outcome").lower(), Ending.UNKNOWN),
        task=Task(task) if task in Task._value2member_map_ else None,
        confidence=min(1.0, max(0.0, number(item.get("confidence"), memory.confidence))),
    )


def seal_memory(memory: MemoryRecord) -> MemoryRecord:
    """The memory without secrets, and without surrogates, which no file can hold."""
    return memory_from_fields(_seal_value(msgspec.to_builtins(memory)))


def _seal_value(value: Any) -> Any:
    match value:
        case str():
            return seal(_SURROGATES.sub("�", value)).text
        case dict():
            return {name: _seal_value(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_seal_value(inner) for inner in value]
    return value
