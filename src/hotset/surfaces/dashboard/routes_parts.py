"""What the views of tools, memory, code and health read and do."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta, Struct

from hotset.errors import BadInput
from hotset.nouns.memory import MemoryKind, Standing
from hotset.runtime.audit import EventFilter
from hotset.runtime.views.code import CodeMatches, IndexStatus, read_index_status, search_code
from hotset.runtime.views.events import EventList, read_events
from hotset.runtime.views.health import Finding, HealthView, read_health, run_checks
from hotset.runtime.views.memory import (
    MemoriesView,
    MemoryEconomics,
    MemoryList,
    MemoryTimeline,
    MemoryView,
    ReviewQueue,
    list_memories,
    read_memories,
    read_memory_economics,
    read_memory_graph,
    read_memory_timeline,
    read_memory_view,
    read_review,
)
from hotset.runtime.views.project import ViewedProject
from hotset.runtime.views.tools import (
    GraphView,
    ToolApproval,
    ToolList,
    ToolsView,
    ToolView,
    list_approvals,
    list_tools,
    read_tool,
    read_tool_graph,
    read_tools,
)
from hotset.sources import code
from hotset.sources.memory import REVIEW, ProjectMemories, run_name
from hotset.surfaces.dashboard.api_route import (
    ApiRoute,
    Name,
    NameQuestion,
    NoQuestion,
    Number,
    OrderReply,
    PageSize,
)

_Text = Annotated[str, Meta(max_length=10_000)]
_Moment = Annotated[float, Meta(ge=0, le=1e11)]
_FRESH_SECONDS = 0.1
"""How long the project's files may be looked at for changes."""


class ToolsQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    text: Name = ""
    source: Name = ""
    state: Name = ""
    """A tool's state, `active`, `inactive` or `pinned`."""
    order: Literal["heat", "calls", "failures", "name"] = "heat"
    offset: Number = 0
    limit: PageSize = 50


class PageOfList(Struct, frozen=True, forbid_unknown_fields=True):
    offset: Number = 0
    limit: PageSize = 20


class ToolAct(Struct, frozen=True, forbid_unknown_fields=True):
    """A person's decision about a tool."""

    act: Literal["approve", "deny", "allow", "pin", "unpin", "restore"]
    name: Annotated[str, Meta(min_length=1, max_length=300)]
    seen: Name = ""
    """Of an approval: the hash of what was shown."""


class MemoriesQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    text: Name = ""
    kind: MemoryKind | None = None
    standing: Standing | None = None
    topic: Name = ""
    offset: Number = 0
    limit: PageSize = 50


class MemoryQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    id: Annotated[str, Meta(min_length=1, max_length=300)]
    depth: Annotated[int, Meta(ge=1, le=6)] = 2


class MemoryTimelineQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    days: Annotated[int, Meta(ge=1, le=366)] = 7
    until: _Moment | None = None


class MemoryAct(Struct, frozen=True, forbid_unknown_fields=True):
    """A person's decision about a memory."""

    act: Literal[
        "keep", "correct", "drop", "not_a_person", "holds", "both", "forget", "restore", "undo"
    ]
    id: Annotated[str, Meta(min_length=1, max_length=300)]
    """A memory; for `undo` the name of the run."""
    other: Name = ""
    """Of a contradiction: the other memory, which `holds` puts aside."""
    text: _Text = ""
    """Of a correction: what it should say."""


class CodeQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    text: Name
    path: Name = ""
    limit: Annotated[int, Meta(ge=1, le=100)] = 20


class CodeAct(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the project's files may be read."""

    act: Literal["allow", "withdraw"]


class EventsQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    type: Name = ""
    """Types or names of events, with commas between."""
    session: Name = ""
    text: Name = ""
    since: _Moment | None = None
    until: _Moment | None = None
    before: Number | None = None
    """A number that an earlier answer gave: older events come."""
    limit: PageSize = 50


@dataclass(frozen=True, slots=True)
class ApprovalList:
    rows: tuple[ToolApproval, ...]
    total: int


# Tools


def _tools(project: ViewedProject, _: NoQuestion) -> ToolsView:
    return read_tools(project.opened_toolbox(), project.config, project.store)


def _tool_list(project: ViewedProject, asked: ToolsQuestion) -> ToolList:
    return list_tools(
        project.opened_toolbox(),
        text=asked.text,
        source=asked.source,
        state=asked.state,
        order=asked.order,
        offset=asked.offset,
        limit=asked.limit,
    )


def _approvals(project: ViewedProject, asked: PageOfList) -> ApprovalList:
    return ApprovalList(*list_approvals(project.opened_toolbox(), asked.offset, asked.limit))


def _tool_graph(project: ViewedProject, _: NoQuestion) -> GraphView:
    return read_tool_graph(project.opened_toolbox())


def _tool(project: ViewedProject, asked: NameQuestion) -> ToolView:
    return read_tool(project.opened_toolbox(), asked.name)


def _act_on_tool(project: ViewedProject, asked: ToolAct) -> OrderReply:
    toolbox, name = project.opened_toolbox(), asked.name
    match asked.act:
        case "approve":
            if not asked.seen:
                raise BadInput("say what was looked at: `seen` of api/tools/approvals")
            names = toolbox.catalogue.approve(name, asked.seen)
            return OrderReply(
                f"{', '.join(names)}: allowed",
                "What was approved stays approved until it changes; deny it to forbid it.",
            )
        case "deny":
            toolbox.catalogue.deny(name)
            return OrderReply(f"{name} is denied in this project", "To undo it, allow it again.")
        case "allow":
            toolbox.catalogue.allow(name)
            return OrderReply(f"{name} is no longer denied", "To undo it, deny it again.")
        case "pin":
            return OrderReply(f"{toolbox.pin(name).name} is pinned", "To undo it, unpin it.")
        case "unpin":
            return OrderReply(
                f"{toolbox.unpin(name)} is no longer pinned", "To undo it, pin it again."
            )
        case "restore":
            life = toolbox.restore(name)
            return OrderReply(
                f"{life.name} is back", "It leaves by itself when it is not used; or deny it."
            )


# Memory


def _memories(project: ViewedProject, _: NoQuestion) -> MemoriesView:
    return read_memories(project.opened_memories(), is_on=project.config.memory.enabled)


def _memory_list(project: ViewedProject, asked: MemoriesQuestion) -> MemoryList:
    return list_memories(
        project.opened_memories(),
        text=asked.text,
        kind=asked.kind,
        standing=asked.standing,
        topic=asked.topic,
        offset=asked.offset,
        limit=asked.limit,
    )


def _timeline(project: ViewedProject, asked: MemoryTimelineQuestion) -> MemoryTimeline:
    return read_memory_timeline(project.opened_memories(), project.clock(), asked.days, asked.until)


def _review(project: ViewedProject, asked: PageOfList) -> ReviewQueue:
    return read_review(project.opened_memories(), asked.offset, asked.limit)


def _memory_graph(project: ViewedProject, _: NoQuestion) -> GraphView:
    return read_memory_graph(project.opened_memories())


def _economics(project: ViewedProject, _: NoQuestion) -> MemoryEconomics:
    return read_memory_economics(project.opened_memories())


def _memory(project: ViewedProject, asked: MemoryQuestion) -> MemoryView:
    return read_memory_view(project.opened_memories(), asked.id, asked.depth)


def _act_on_memory(project: ViewedProject, asked: MemoryAct) -> OrderReply:
    memories = project.opened_memories()
    match asked.act:
        case "undo":
            undone = memories.undo(asked.id)
            return OrderReply(
                f"{undone:,} memories are as before", "To undo that, decide about them again."
            )
        case "restore":
            restored = memories.restore([memories.get(asked.id).id])
            says = "restored" if restored else "nothing had to be restored"
            return OrderReply(says, "To undo it, forget it again.")
        case "forget":
            memories.forget(asked.id)
            return OrderReply("forgotten: no search finds it", "To undo it, restore it.")
        case _:
            return _review_memory(memories, asked)


def _review_memory(memories: ProjectMemories, asked: MemoryAct) -> OrderReply:
    run = run_name(REVIEW, time.time())
    undo = f"To undo it, choose {run} among what can be undone."
    if asked.act == "holds":
        kept = memories.settle_conflict(asked.id, asked.other, run)
        return OrderReply(f"{kept.id} holds", undo)
    if asked.act == "both":
        memories.accept_both(asked.id, asked.other)
        cannot = "It cannot be undone; forget one of them."
        return OrderReply("both hold; you are not asked again", cannot)
    judged = memories.judge(asked.id, asked.act, run, asked.text)
    if judged.run != run:
        return OrderReply("noted; it stays as it was", "Nothing has to be undone.")
    return OrderReply(f"{judged.id}: {_VERDICTS[asked.act]}", undo)


_VERDICTS: Mapping[str, str] = {
    "keep": "kept",
    "correct": "corrected",
    "drop": "dropped: no search finds it",
    "not_a_person": "no longer taken as a person's words",
}


# Code


def _code(project: ViewedProject, _: NoQuestion) -> IndexStatus:
    index = project.open_index()
    return read_index_status(
        project.config, index.state() if index is not None else None, _FRESH_SECONDS
    )


def _code_search(project: ViewedProject, asked: CodeQuestion) -> CodeMatches:
    return search_code(project, asked.text, asked.path, asked.limit)


def _act_on_code(project: ViewedProject, asked: CodeAct) -> OrderReply:
    config = project.config
    if asked.act == "allow":
        code.keep_answer(config.folder, config.project, granted=True)
        return OrderReply(
            "allowed: the files are read in the background, or by `hotset index`",
            "To undo it, withdraw it: all that was made from the files is removed.",
        )
    code.take_out(config.folder, config.embedding.of_documents)
    return OrderReply(
        "withdrawn: nothing made from the files is left on disk, and none of them is read",
        "To undo it, allow it again: the files are then read anew.",
    )


# Health


def _health(project: ViewedProject, _: NoQuestion) -> HealthView:
    return read_health(project.config, project.live)


def _checks(project: ViewedProject, _: NoQuestion) -> tuple[Finding, ...]:
    return run_checks(project.config, project.store, project.live, project.clock())


def _events(project: ViewedProject, asked: EventsQuestion) -> EventList:
    types = frozenset(each.strip().lower() for each in asked.type.split(",") if each.strip())
    only = EventFilter(
        session=project.session(asked.session).id if asked.session else None,
        types=types,
        since=asked.since,
        until=asked.until,
    )
    return read_events(project.store, only, asked.text, asked.before, asked.limit)


ROUTES: tuple[ApiRoute, ...] = (
    ApiRoute("tools", "Tools in figures, and what runs.", NoQuestion, ToolsView, _tools),
    ApiRoute("tools/list", "Tools, page by page.", ToolsQuestion, ToolList, _tool_list),
    ApiRoute("tools/approvals", "What waits for a yes.", PageOfList, ApprovalList, _approvals),
    ApiRoute("tools/graph", "Which tools go together.", NoQuestion, GraphView, _tool_graph),
    ApiRoute("tools/tool/{name}", "One tool.", NameQuestion, ToolView, _tool),
    ApiRoute("tools/act", "Decide about a tool.", ToolAct, OrderReply, _act_on_tool, acts=True),
    ApiRoute("memory", "What is remembered, in figures.", NoQuestion, MemoriesView, _memories),
    ApiRoute("memory/list", "Memories, page by page.", MemoriesQuestion, MemoryList, _memory_list),
    ApiRoute("memory/timeline", "Work by day.", MemoryTimelineQuestion, MemoryTimeline, _timeline),
    ApiRoute("memory/review", "Memories to look at.", PageOfList, ReviewQueue, _review),
    ApiRoute("memory/graph", "Links of memories.", NoQuestion, GraphView, _memory_graph),
    ApiRoute(
        "memory/economics",
        "What memory took and saved, by session.",
        NoQuestion,
        MemoryEconomics,
        _economics,
    ),
    ApiRoute("memory/memory/{id}", "One memory.", MemoryQuestion, MemoryView, _memory),
    ApiRoute(
        "memory/act", "Decide about a memory.", MemoryAct, OrderReply, _act_on_memory, acts=True
    ),
    ApiRoute("code", "The index of the project's files.", NoQuestion, IndexStatus, _code),
    ApiRoute("code/search", "A search in the files.", CodeQuestion, CodeMatches, _code_search),
    ApiRoute(
        "code/act",
        "Allow that the files are read, or withdraw it.",
        CodeAct,
        OrderReply,
        _act_on_code,
        acts=True,
    ),
    ApiRoute("health", "What the proxy does.", NoQuestion, HealthView, _health),
    ApiRoute("health/checks", "What is well.", NoQuestion, tuple[Finding, ...], _checks),
    ApiRoute("events", "What happened, filtered.", EventsQuestion, EventList, _events),
)
