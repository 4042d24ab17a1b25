"""Memories of earlier sessions over MCP: five tools that an agent uses step by step, the cheapest
first.

A model reads their descriptions with each request, so they are as short as they can be; names,
order and schemas never change.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hotset.config import Config
from hotset.errors import Malformed, NotFound
from hotset.nouns.memory import Task, Trust
from hotset.nouns.retrieval import MAX_TOKENS
from hotset.sources.memory import DEFAULT_KIND, WORDED_KINDS, describe_commit, is_memory_id
from hotset.surfaces.mcp.mcp_tools import Arguments, object_schema
from hotset.surfaces.mcp.protocol import McpTool, ToolReply

if TYPE_CHECKING:
    from hotset.sources.memory import ProjectMemories
    from hotset.surfaces.mcp.project import Project

INDEX, TIMELINE, RECALL, REMEMBER, FORGET = (
    "memory_index",
    "memory_timeline",
    "recall_memory",
    "remember",
    "forget",
)
AGENT = "agent"
"""The author of memories that a model adds: the protocol does not name the model."""

_INDEX_TOKENS, _TIMELINE_TOKENS = 100, 500
_MOST_CHARS = 8000  # characters of one memory: a page; more is a file
_MOST_RECALLED = 10
_PAGE = re.compile(r"p[0-9a-f]{15}")
_NOTHING = f"[hotset: nothing remembered yet; for later sessions: {REMEMBER}(text)]"
_HOW = f'open one: {RECALL}(id="top-..."); lately: {TIMELINE}()'

_TEXT: dict[str, Any] = {"type": "string"}
_Call = Callable[["ProjectMemories", Arguments, str], ToolReply]


def memory_tools(project: Project, config: Config) -> tuple[McpTool, ...]:
    """The memory tools, in the order in which they are listed, also where memory is switched off:
    then they reply so."""
    own_session = f"mcp-{secrets.token_hex(4)}"
    """The session of a client without one: it has this process for itself, or shares it with others
    like it."""

    def tool(
        name: str,
        title: str,
        description: str,
        call: _Call,
        /,
        *,
        required: tuple[str, ...] = (),
        **properties: dict[str, Any],
    ) -> McpTool:
        def reply_to(given: Mapping[str, Any], session: str) -> ToolReply:
            arguments = Arguments(name, given, properties)
            if not config.memory.enabled:
                return ToolReply(_switched_off(config), failed=True)
            memories = project.memories(makes=name == REMEMBER)
            return call(memories, arguments, session or own_session)

        schema = object_schema(properties, required)
        keeps = name in (REMEMBER, FORGET)
        return McpTool(
            name, title, description, schema, reply_to, reads=not keeps, keeps=keeps, asks=not keeps
        )

    return (
        tool(
            INDEX,
            "What is remembered",
            ("List what is remembered of earlier sessions: topics and sizes. Call it first."),
            _index,
            query={**_TEXT, "description": "your task"},
            max_tokens=_budget(_INDEX_TOKENS),
        ),
        tool(
            TIMELINE,
            "What was done lately",
            "List what earlier sessions did, decided and left open, with ids.",
            _timeline,
            query=_TEXT,
            topic=_TEXT,
            max_tokens=_budget(_TIMELINE_TOKENS),
        ),
        tool(
            RECALL,
            "Recall memories",
            (
                "Recall memories for a question, best first: facts, procedures, what "
                'failed and what helped. Understands "last week". Or read one by id.'
            ),
            _recall,
            query=_TEXT,
            id=_TEXT,
            task={**_TEXT, "enum": list(map(str, Task))},
            max_tokens=_budget(MAX_TOKENS),
            more={
                "type": "integer",
                "description": "1, 2, ...: what earlier answers left out",
            },
        ),
        tool(
            REMEMBER,
            "Remember something",
            (
                "Keep one thing for later sessions that is not in the code: a decision, "
                "a preference, what failed and why, where the work stands."
            ),
            _remember,
            required=("text",),
            text=_TEXT,
            kind={**_TEXT, "enum": list(map(str, WORDED_KINDS)), "default": str(DEFAULT_KIND)},
            title=_TEXT,
        ),
        tool(
            FORGET,
            "Forget a memory",
            "Forget a wrong memory. A person can restore it.",
            _forget,
            required=("id",),
            id=_TEXT,
            why=_TEXT,
        ),
    )


def _budget(default: int) -> dict[str, Any]:
    return {"type": "integer", "default": default}


def _switched_off(config: Config) -> str:
    return (
        f"[hotset: memory is switched off ({config.origins['memory']}); go "
        "on without it, or ask the user to set HOTSET_MEMORY=1, or enabled "
        "= true under [memory] in config.toml]"
    )


def _index(memories: ProjectMemories, given: Arguments, session: str) -> ToolReply:
    listing = memories.index(
        given.text("query"), max_tokens=given.max_tokens(_INDEX_TOKENS), session=session, how=_HOW
    )
    return _reply(listing.text)


def _timeline(memories: ProjectMemories, given: Arguments, session: str) -> ToolReply:
    topics = tuple(filter(None, (given.text("topic"),)))
    most = given.max_tokens(_TIMELINE_TOKENS)
    return _reply(
        memories.timeline(given.text("query"), topics=topics, max_tokens=most, session=session).text
    )


def _recall(memories: ProjectMemories, given: Arguments, session: str) -> ToolReply:
    id, most = given.text("id").strip("[]"), given.max_tokens()
    task = given.one_of("task", tuple(map(str, Task)))
    query = given.text("query")
    if not id and (is_memory_id(query.strip("[]")) or query.startswith("top-")):
        id = query.strip("[]")
    if id:
        return _read(memories, id, most, session)
    if not query:
        raise Malformed(f"{RECALL}: give query or id")
    given.words("query")
    more = given.steps("more")
    answer = memories.recall(
        query, task=task, most=_MOST_RECALLED, max_tokens=most, session=session, more=more
    )
    if more and not answer.text:
        return ToolReply(f"[hotset: that was all; other topics: {INDEX}()]")
    if not answer.recall.items and not answer.text:
        return ToolReply(f"[hotset: nothing remembered of that; try other words, or {INDEX}()]")
    return _reply(answer.text)


def _read(memories: ProjectMemories, id: str, most: int, session: str) -> ToolReply:
    try:
        return _reply(memories.read(id, max_tokens=most, session=session).text)
    except NotFound:
        if _PAGE.fullmatch(id):  # pages are among the recalled items, by their ids
            raise Malformed(
                f'{RECALL}: {id} is a page; read it: retrieve_context(id="{id}")'
            ) from None
        raise NotFound(f"no memory {id[:80]!r}; find ids: {RECALL}(query)") from None


def _remember(memories: ProjectMemories, given: Arguments, session: str) -> ToolReply:
    given.words("text", "we pin dependencies in constraints.txt")
    text = given.whole_text("text", _MOST_CHARS)
    kind = given.one_of("kind", tuple(map(str, WORDED_KINDS))) or str(DEFAULT_KIND)
    begun = time.time()
    memory = memories.remember(
        text, kind=kind, title=given.text("title"), by=AGENT, trust=Trust.AGENT, session=session
    )
    return ToolReply(
        f"[hotset: {describe_commit(memory, memories.details(memory.id).links, begun)}]"
    )


def _forget(memories: ProjectMemories, given: Arguments, _session: str) -> ToolReply:
    id = given.text("id").strip("[]")
    if not id:
        raise Malformed(f"{FORGET}: give an id from {RECALL}")
    memory = memories.get(id)
    if memory.trust is Trust.PERSON:
        raise Malformed(
            f"{FORGET}: a person said it; ask the user to run: hotset memory forget {memory.id}"
        )
    memories.forget(memory.id, why=given.text("why") or "an agent asked for it")
    return ToolReply(
        f"[hotset: [{memory.id}] is forgotten; a person can restore it: hotset "
        f"memory restore {memory.id}]"
    )


def _reply(text: str) -> ToolReply:
    """The reply with a text that marks itself as data."""
    return ToolReply(text or _NOTHING)
