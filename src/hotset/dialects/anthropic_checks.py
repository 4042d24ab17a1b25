"""Anthropic's rules, applied to a request and to what was changed in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hotset.dialects import envelope, wire
from hotset.dialects.images import size_of_source
from hotset.dialects.invariants import broken
from hotset.dialects.port import Violation
from hotset.nouns.message import Request

_MAX_BODY = 32_000_000
_MAX_MESSAGES = 100_000
_MAX_MARKS = 4
_MAX_IMAGES = 100
_MAX_PIXELS = 8000
_MANY_IMAGES = 20
_MAX_PIXELS_OF_MANY = 2000
_THINKING = ("thinking", "redacted_thinking")
_REPLY_ONLY = ("index", "partial_json", "parsed_output")
_FREE_IN_THREADS = frozenset({"messages", "stream", "max_tokens", "thread", "metadata"})


@dataclass(frozen=True, slots=True)
class _Block:
    where: str
    tree: dict[str, Any]

    @property
    def type(self) -> str:
        return wire.as_text(self.tree.get("type"))

    def text(self, name: str) -> str:
        return wire.as_text(self.tree.get(name))


@dataclass(frozen=True, slots=True)
class _Turn:
    """Messages of one role that follow each other: the provider reads them as one."""

    role: str
    where: str
    blocks: list[_Block]

    def of(self, *types: str) -> list[_Block]:
        return [block for block in self.blocks if block.type in types]

    def ids(self, type: str, name: str) -> list[str]:
        return [block.text(name) for block in self.of(type)]


@dataclass(frozen=True)
class _Conversation:
    request: Request

    @cached_property
    def messages(self) -> list[dict[str, Any]]:
        return envelope.trees(self.request.messages)

    @cached_property
    def outer(self) -> envelope.Envelope:
        return envelope.opened(self.request.raw, "messages")

    @cached_property
    def turns(self) -> list[_Turn]:
        turns: list[_Turn] = []
        for index, tree in enumerate(self.messages):
            role = wire.as_text(tree.get("role"))
            if role not in ("user", "assistant"):
                continue  # a system message does not part a call from its result
            if not turns or turns[-1].role != role:
                turns.append(_Turn(role, f"messages.{index}", []))
            turns[-1].blocks.extend(_blocks(tree.get("content"), f"messages.{index}"))
        return turns

    @cached_property
    def answers(self) -> list[_Turn]:
        return [turn for turn in self.turns if turn.role == "assistant"]

    @property
    def blocks(self) -> Iterator[_Block]:
        return (block for turn in self.turns for block in turn.blocks)

    @property
    def roles(self) -> list[str]:
        return [wire.as_text(tree.get("role")) for tree in self.messages]


def check(request: Request, original: Request | None) -> tuple[Violation, ...]:
    now = _Conversation(request)
    found = [
        *_pairs(now),
        *_unique_ids(now),
        *_server_results(now),
        *_thinking_on(now),
        *_thinking_off(now),
        *_marks(now),
        *_tools(now),
        *_empty(now),
        *_system_first(now),
        *_counts(now),
        *_images(now),
        *_size(request),
    ]
    if original is not None and original is not request:
        found += _changes(now, _Conversation(original))
    return tuple(found)


def _blocks(content: Any, where: str) -> Iterator[_Block]:
    if isinstance(content, str):
        yield _Block(f"{where}.content", {"type": "text", "text": content})
    for index, block in enumerate(wire.as_list(content)):
        yield _Block(f"{where}.content.{index}", wire.as_object(block))


def _pairs(now: _Conversation) -> Iterator[Violation]:
    """Rules 1 to 3."""
    for index, turn in enumerate(now.turns):
        following = now.turns[index + 1] if index + 1 < len(now.turns) else None
        if turn.role == "assistant":
            yield from _calls_answered(turn, following, now.turns[index + 2 :])
        else:
            before = now.turns[index - 1].ids("tool_use", "id") if index else []
            yield from _results_called(turn, set(before))


def _calls_answered(turn: _Turn, following: _Turn | None, later: Sequence[_Turn]) -> Iterator[Violation]:
    answered = set(following.ids("tool_result", "tool_use_id")) if following else set()
    missing = [id for id in turn.ids("tool_use", "id") if id not in answered]
    if not missing:
        return
    elsewhere = {id for each in later for id in each.ids("tool_result", "tool_use_id")}
    apart = bool(answered) and all(id in elsewhere for id in missing)
    yield broken(3 if apart else 1, turn.where, ids=", ".join(missing))


def _results_called(turn: _Turn, called: set[str]) -> Iterator[Violation]:
    other_before = False
    for block in turn.blocks:
        if block.type != "tool_result":
            other_before = True
            continue
        id = block.text("tool_use_id")
        if id not in called:
            yield broken(2, block.where, id=id)
        elif other_before:
            yield broken(3, block.where, ids=id)


def _unique_ids(now: _Conversation) -> Iterator[Violation]:
    seen: set[str] = set()
    for block in now.blocks:
        if block.type == "tool_use":
            if block.text("id") in seen:
                yield broken(4, block.where)
            seen.add(block.text("id"))


def _server_results(now: _Conversation) -> Iterator[Violation]:
    for turn in now.answers:
        called: set[str] = set()
        for block in turn.blocks:
            if block.type in ("server_tool_use", "mcp_tool_use"):
                called.add(block.text("id"))
            elif block.type.endswith("_tool_result"):
                id = block.text("tool_use_id")
                if id not in called and id not in _carried(now, turn):
                    yield broken(5, block.where, type=block.type, id=id)


def _carried(now: _Conversation, turn: _Turn) -> set[str]:
    """Server tools that ran on while the client answered a call of its own: their results come in a later turn."""
    earlier = now.answers[: now.answers.index(turn)]
    called = {id for each in earlier for id in each.ids("server_tool_use", "id")}
    return called - {
        block.text("tool_use_id") for each in earlier for block in each.blocks if block.type.endswith("_tool_result")
    }


def _thinking_on(now: _Conversation) -> Iterator[Violation]:
    """Rule 7. Adaptive thinking asks for nothing; a turn of several calls may have thought only at its start."""
    if wire.as_object(now.outer.tree("thinking")).get("type") != "enabled":
        return
    turns = now.turns
    if len(turns) < 2 or turns[-1].role != "user" or not turns[-1].of("tool_result"):
        return
    first = len(turns) - 2
    while first >= 2 and turns[first - 1].of("tool_result"):
        first -= 2
    openings = [turn.blocks[0] for turn in (turns[first], turns[-2]) if turn.role == "assistant" and turn.blocks]
    if openings and not any(block.type in _THINKING for block in openings):
        yield broken(7, turns[-2].where, type=openings[-1].type)


def _thinking_off(now: _Conversation) -> Iterator[Violation]:
    is_off = wire.as_object(now.outer.tree("thinking")).get("type", "disabled") == "disabled"
    if is_off and now.turns and now.turns[-1].role == "assistant" and now.turns[-1].of(*_THINKING):
        yield broken(8, now.turns[-1].where)


def _marks(now: _Conversation) -> Iterator[Violation]:
    tools = wire.as_list(now.outer.tree("tools"))
    system = wire.as_list(now.outer.tree("system"))
    count = _marked(tools) + _marked(system) + sum(_marked(wire.as_list(tree.get("content"))) for tree in now.messages)
    if count > _MAX_MARKS:
        yield broken(9, "cache_control", count=count)


def _marked(blocks: Sequence[Any]) -> int:
    """Blocks with a mark, and marked blocks inside tool results."""
    return sum(1 for block in _with_inner(blocks) if block.get("cache_control"))


def _with_inner(blocks: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Each block, and those that a tool result holds."""
    for tree in map(wire.as_object, blocks):
        yield tree
        if tree.get("type") == "tool_result":
            yield from map(wire.as_object, wire.as_list(tree.get("content")))


def _tools(now: _Conversation) -> Iterator[Violation]:
    names = Counter(tool.name for tool in now.request.tools if tool.name)
    if any(count > 1 for count in names.values()):
        yield broken(10, "tools", problem="tools: Tool names must be unique.")
    if not names:
        return
    for block in now.blocks:
        for name in _references(block.tree):
            if name not in names:
                yield broken(10, block.where, problem=f"Tool reference '{name}' not found in available tools")


def _references(block: dict[str, Any]) -> Iterator[str]:
    found = block.get("content")
    searched = wire.as_object(found).get("tool_references") if block.get("type") == "tool_search_tool_result" else None
    for tree in (*_with_inner([block]), *map(wire.as_object, wire.as_list(searched))):
        if tree.get("type") == "tool_reference":
            yield wire.as_text(tree.get("tool_name"))


def _empty(now: _Conversation) -> Iterator[Violation]:
    last = len(now.messages) - 1
    for index, tree in enumerate(now.messages):
        role, where = wire.as_text(tree.get("role")), f"messages.{index}"
        if role not in ("user", "assistant") or (role == "assistant" and index == last):
            continue
        content = tree.get("content")
        if not content:
            yield broken(11, where, problem=f"{role} messages must have non-empty content")
        yield from _empty_texts(list(_blocks(content, where)) if isinstance(content, list) else [])
    for block in now.blocks:
        for name in _REPLY_ONLY:
            if name in block.tree and block.type in ("text", "tool_use", "thinking"):
                yield broken(11, f"{block.where}.{block.type}.{name}", problem="Extra inputs are not permitted")


def _empty_texts(blocks: Sequence[_Block]) -> Iterator[Violation]:
    for block in blocks:
        if block.type == "text" and not block.text("text"):
            yield broken(11, block.where, problem="text content blocks must be non-empty")
        elif block.type == "text" and not block.text("text").strip():
            yield broken(11, block.where, problem="text content blocks must contain non-whitespace text")


def _system_first(now: _Conversation) -> Iterator[Violation]:
    if now.roles[:1] == ["system"]:
        yield broken(12, "messages.0")


def _counts(now: _Conversation) -> Iterator[Violation]:
    if len(now.messages) > _MAX_MESSAGES:
        yield broken(13, "messages", problem=f"too many messages: {len(now.messages)} > {_MAX_MESSAGES}")


def _images(now: _Conversation) -> Iterator[Violation]:
    images = [found for block in now.blocks for found in _images_in(block)]
    if len(images) > _MAX_IMAGES:
        yield broken(14, "messages", problem=f"Too many images in request: {len(images)} > {_MAX_IMAGES}")
    many = len(images) > _MANY_IMAGES
    limit = _MAX_PIXELS_OF_MANY if many else _MAX_PIXELS
    for block in images:
        size = size_of_source(block.tree.get("source"))
        if size and max(size) > limit:
            sort = " for many-image requests" if many else ""
            yield broken(
                14, block.where, problem=f"At least one of the image dimensions exceed max allowed size{sort}: {limit} pixels"
            )


def _images_in(block: _Block) -> Iterator[_Block]:
    if block.type == "image":
        yield block
    elif block.type == "tool_result":
        yield from (each for each in _blocks(block.tree.get("content"), block.where) if each.type == "image")


def _size(request: Request) -> Iterator[Violation]:
    size = len(envelope.render(request))
    if size > _MAX_BODY:
        yield broken(15, "body", size=size, limit=_MAX_BODY)


def _changes(now: _Conversation, before: _Conversation) -> Iterator[Violation]:
    """Rules about what may not be changed."""
    yield from _server_blocks_kept(now, before)
    yield from _thinking_kept(now, before)
    yield from _injected_declared(now, before)
    if "system" in now.roles[1:] and now.roles.count("system") > before.roles.count("system"):
        yield broken(12, f"messages.{now.roles.index('system', 1)}")
    yield from _ends_kept(now, before)
    yield from _compaction_kept(now, before)
    yield from _thread_kept(now, before)


def _server_blocks_kept(now: _Conversation, before: _Conversation) -> Iterator[Violation]:
    """A server tool's blocks may leave with their whole turn, never alone and never altered."""
    then = {_server_key(block): block.tree for block in before.blocks if _is_server(block)}
    here = {_server_key(block) for block in now.blocks if _is_server(block)}
    for block in now.blocks:
        if not _is_server(block):
            continue
        was = then.get(_server_key(block))
        if was is not None and _unmarked(was) != _unmarked(block.tree):
            yield broken(5, block.where, type=block.type, id=block.text("tool_use_id") or block.text("id"))
        if block.type == "server_tool_use":
            lost = [key for key in then if key[1] == block.text("id") and key not in here]
            for type, id in lost:
                yield broken(5, block.where, type=type, id=id)


def _is_server(block: _Block) -> bool:
    return block.type == "server_tool_use" or (block.type.endswith("_tool_result") and block.type != "tool_result")


def _server_key(block: _Block) -> tuple[str, str]:
    return block.type, block.text("id") if block.type == "server_tool_use" else block.text("tool_use_id")


def _unmarked(tree: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in tree.items() if key != "cache_control"}


def _thinking_kept(now: _Conversation, before: _Conversation) -> Iterator[Violation]:
    if now.answers and before.answers:
        latest = now.answers[-1]
        if [block.tree for block in latest.of(*_THINKING)] != [block.tree for block in before.answers[-1].of(*_THINKING)]:
            yield broken(6, latest.where)


def _injected_declared(now: _Conversation, before: _Conversation) -> Iterator[Violation]:
    """A client may speak of tools it no longer declares; we may not."""
    declared = {tool.name for tool in now.request.tools}
    known = {block.text("name") for block in before.blocks if block.type == "tool_use"}
    for block in now.blocks:
        name = block.text("name")
        if block.type == "tool_use" and name not in known and name not in declared:
            yield broken(10, block.where, problem=f"Tool reference '{name}' not found in available tools")


def _ends_kept(now: _Conversation, before: _Conversation) -> Iterator[Violation]:
    roles, then = now.roles, before.roles
    if roles[-1:] == ["assistant"] and then[-1:] != ["assistant"]:
        problem = "This model does not support assistant message prefill. The conversation must end with a user message."
        yield broken(13, f"messages.{len(roles) - 1}", problem=problem)
    if roles[:1] == ["assistant"] and then[:1] != ["assistant"]:
        yield broken(13, "messages.0", problem='first message must use the "user" role')


def _compaction_kept(now: _Conversation, before: _Conversation) -> Iterator[Violation]:
    then = [block for block in before.blocks if block.type == "compaction"]
    here = [block for block in now.blocks if block.type == "compaction"]
    for was, block in zip(then, here, strict=False):
        if _unmarked(was.tree) != _unmarked(block.tree):
            yield broken(16, block.where, problem="the `compaction` block differs from what its `signature` recorded")
    opened = next(before.blocks, None)
    if opened is not None and opened.type == "compaction" and (first := next(now.blocks, None)) and first.type != "compaction":
        yield broken(16, first.where, problem="the `compaction` block must be the first block of the conversation")


def _thread_kept(now: _Conversation, before: _Conversation) -> Iterator[Violation]:
    if not now.outer.tree("thread"):
        return
    for name in sorted({*now.outer.fields, *before.outer.fields} - _FREE_IN_THREADS):
        if now.outer.tree(name) != before.outer.tree(name):
            yield broken(17, name)
