"""Anthropic's rules, applied to a request and to the changes in it.

Facts about a message are computed once for its bytes (`_MessageFacts`). The rules are applied to
the conversation every time; most look only at the few messages that concern them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from hotset.dialects import envelope, json_bytes, parts
from hotset.dialects.anthropic.parse import image
from hotset.dialects.envelope import FactCache
from hotset.dialects.port import Invariant, Violation
from hotset.dialects.rules import broken_rule
from hotset.nouns.message import ClientTool, Request

_MAX_BODY = 32_000_000
_MAX_MESSAGES = 100_000
MAX_MARKS = 4
_MAX_IMAGES = 100
_MAX_PIXELS = 8000
_MANY_IMAGES = 20
_MAX_PIXELS_OF_MANY = 2000
_SPEAKING = ("user", "assistant")
_USUAL = frozenset({"text", "tool_use", "tool_result"})
_THINKING = ("thinking", "redacted_thinking")
_REPLY_ONLY = ("index", "partial_json", "parsed_output")
_FREE_IN_THREADS = frozenset({"messages", "stream", "max_tokens", "thread", "metadata"})

INVARIANTS = (
    Invariant(
        1,
        "anthropic",
        "Every tool_use has its tool_result in the next message.",
        "{where}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}."
        " Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    ),
    Invariant(
        2,
        "anthropic",
        "Every tool_result has its tool_use in the previous message.",
        "{where}: unexpected `tool_use_id` found in `tool_result` blocks: {id}."
        " Each `tool_result` block must have a corresponding `tool_use` block in the previous "
        "message.",
    ),
    Invariant(
        3,
        "anthropic",
        "The results of parallel calls come together in one turn, before any other block.",
        "{where}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}."
        " Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    ),
    Invariant(
        4,
        "anthropic",
        "The ids of tool_use blocks are unique.",
        "{where}: `tool_use` ids must be unique",
    ),
    Invariant(
        5,
        "anthropic",
        "A server tool's result follows its server_tool_use in the same message, untouched.",
        "{where}: unexpected `tool_use_id` found in `{type}` blocks: {id}."
        " Each `{type}` block must have a corresponding `server_tool_use` block before it.",
    ),
    Invariant(
        6,
        "anthropic",
        "Thinking in the latest assistant message stays as it was, in order.",
        "{where}: `thinking` or `redacted_thinking` blocks in the latest assistant message "
        "cannot be modified."
        " These blocks must remain as they were in the original response.",
    ),
    Invariant(
        7,
        "anthropic",
        "With thinking on, the assistant turn that called the last tools starts with thinking.",
        "{where}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
        "`{type}`. When `thinking` is enabled,"
        " a final `assistant` message must start with a thinking block"
        " (preceeding the lastmost set of `tool_use` and `tool_result` blocks).",
    ),
    Invariant(
        8,
        "anthropic",
        "With thinking off, a final assistant message holds no thinking.",
        (
            "{where}: When thinking is disabled, an `assistant` message in the final position "
            "cannot contain `thinking`."
        ),
    ),
    Invariant(
        9,
        "anthropic",
        "At most 4 blocks over tools, system and messages carry cache_control.",
        "A maximum of 4 blocks with cache_control may be provided. Found {count}.",
    ),
    Invariant(
        10,
        "anthropic",
        "Tool names are unique, every tool that is loaded_tools to is declared in this request, "
        "and of those that are deferred"
        " none is marked for the cache, none is a search, and not all are.",
        "{problem}",
    ),
    Invariant(
        11,
        "anthropic",
        "No message and no text block is empty, and no block carries what only replies carry.",
        "{where}: {problem}",
    ),
    Invariant(
        12,
        "anthropic",
        "The system prompt is at the top level; a system message never opens the conversation.",
        "{where}: use the top-level 'system' parameter for the initial system prompt",
    ),
    Invariant(
        13,
        "anthropic",
        (
            "A request has at most 100,000 messages; no assistant message begins or ends it that "
            "its client did not put there."
        ),
        "{where}: {problem}",
    ),
    Invariant(
        14,
        "anthropic",
        (
            "At most 100 images, none beyond 8000 pixels, nor beyond 2000 where there are more "
            "than 20."
        ),
        "{where}: {problem}",
    ),
    Invariant(
        15,
        "anthropic",
        "The body is at most 32 MB, the prompt no longer than the window.",
        "Request exceeds the maximum size: {size} bytes > {limit} maximum",
    ),
    Invariant(
        16,
        "anthropic",
        "A compaction block stays where it was, with its content, signature and tool changes.",
        "{where}: {problem}",
    ),
    Invariant(
        17,
        "anthropic",
        "In a thread, every field but the messages stays what the thread was made with.",
        "{where}: differs from the value stored with the thread",
    ),
)
broken = broken_rule(INVARIANTS)


@dataclass(frozen=True, slots=True)
class _Block:
    place: str
    """Relative to the message: `.content.0`."""
    type: str
    id: str
    answers: str
    """Id of the call whose result it is."""
    name: str
    tree: dict[str, Any]
    """Empty except for blocks that may not be altered: content is not kept here."""

    @property
    def is_server(self) -> bool:
        """True for a call of a tool that the provider runs itself, or its result."""
        return self.type == "server_tool_use" or self.type.endswith("_tool_result")

    @property
    def key(self) -> tuple[str, str]:
        return self.type, self.id if self.type == "server_tool_use" else self.answers

    @property
    def unmarked(self) -> dict[str, Any]:
        return {key: value for key, value in self.tree.items() if key != "cache_control"}


@dataclass(frozen=True, slots=True)
class _MessageFacts:
    """Facts about one message that the rules need. Places are relative to the message."""

    role: str
    blocks: tuple[_Block, ...]
    """Only of user and assistant messages."""
    uses: tuple[str, ...]
    """Ids of the calls that the client answers."""
    names: tuple[str, ...]
    """Names of the tools that these call."""
    results: tuple[str, ...]
    """Ids of the calls that it answers."""
    results_first: bool
    """True if nothing precedes the results."""
    marks: int
    references: tuple[tuple[str, str], ...]
    """Places and names of the tools that it refers to."""
    images: tuple[tuple[str, int], ...]
    """Each image's place and its longer side; 0 if unknown."""
    empty: tuple[tuple[str, str], ...]
    """Places where something is missing, with the provider's error text; allowed in a reply that
    has just begun."""
    extra: tuple[str, ...]
    """Places of fields that only replies have."""
    is_usual: bool
    """True if it has only texts, calls and results, and nothing to report."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """Consecutive messages of one role: the provider reads them as one."""

    role: str
    messages: list[tuple[int, _MessageFacts]]
    """Each with its number."""

    @property
    def where(self) -> str:
        return f"messages.{self.messages[0][0]}"

    @property
    def uses(self) -> Sequence[str]:
        return (
            self.messages[0][1].uses
            if len(self.messages) == 1
            else [id for _, facts in self.messages for id in facts.uses]
        )

    @property
    def results(self) -> Sequence[str]:
        return (
            self.messages[0][1].results
            if len(self.messages) == 1
            else [id for _, facts in self.messages for id in facts.results]
        )

    @property
    def blocks(self) -> Iterator[tuple[str, _Block]]:
        return _blocks_with_places(self.messages)

    @property
    def thinking(self) -> list[dict[str, Any]]:
        return [block.tree for _, block in self.blocks if block.type in _THINKING]


@dataclass(frozen=True)
class _Conversation:
    request: Request
    messages: list[_MessageFacts]

    @cached_property
    def outer(self) -> envelope.Envelope:
        return envelope.open_envelope(self.request.raw, "messages")

    @cached_property
    def turns(self) -> list[_Turn]:
        # A system message does not separate a call from its result.
        speaking = (
            (index, facts) for index, facts in enumerate(self.messages) if facts.role in _SPEAKING
        )
        return [
            _Turn(role, list(run)) for role, run in groupby(speaking, lambda each: each[1].role)
        ]

    @cached_property
    def answers(self) -> list[_Turn]:
        return [turn for turn in self.turns if turn.role == "assistant"]

    @cached_property
    def latest_answer(self) -> _Turn | None:
        """The last of `answers`, found without the others."""
        messages: list[tuple[int, _MessageFacts]] = []
        for index in range(len(self.messages) - 1, -1, -1):
            role = self.messages[index].role
            if role == "assistant":
                messages.append((index, self.messages[index]))
            elif role == "user" and messages:
                break
        return _Turn("assistant", messages[::-1]) if messages else None

    @cached_property
    def unusual(self) -> list[tuple[int, _MessageFacts]]:
        return [(index, facts) for index, facts in enumerate(self.messages) if not facts.is_usual]

    @property
    def blocks(self) -> Iterator[tuple[str, _Block]]:
        return _blocks_with_places(enumerate(self.messages))

    @cached_property
    def server_blocks(self) -> list[tuple[str, _Block]]:
        return [
            (where, block) for where, block in _blocks_with_places(self.unusual) if block.is_server
        ]

    @property
    def compactions(self) -> list[tuple[str, _Block]]:
        return [
            (where, block)
            for where, block in _blocks_with_places(self.unusual)
            if block.type == "compaction"
        ]

    @cached_property
    def roles(self) -> list[str]:
        return [facts.role for facts in self.messages]

    @property
    def names(self) -> set[str]:
        return {name for facts in self.messages for name in facts.names}


def _blocks_with_places(
    messages: Iterable[tuple[int, _MessageFacts]],
) -> Iterator[tuple[str, _Block]]:
    """Every block with its place in the body."""
    for index, facts in messages:
        for block in facts.blocks:
            yield f"messages.{index}{block.place}", block


def _facts(raw: bytes) -> _MessageFacts:
    tree = json_bytes.lenient_object(raw)
    role, content = json_bytes.as_text(tree.get("role")), tree.get("content")
    trees = list(_trees(content)) if role in _SPEAKING else []
    blocks = tuple(_block(place, each) for place, each in trees)
    uses = [block for block in blocks if block.type == "tool_use"]
    references = tuple((place, name) for place, each in trees for name in _references(each))
    images = tuple(image for place, each in trees for image in _images_in(place, each))
    empty = tuple(_missing(role, content)) if role in _SPEAKING else ()
    extra = tuple(f"{place}.{name}" for place, each in trees for name in _of_replies(each))
    is_usual = all(block.type in _USUAL for block in blocks)
    return _MessageFacts(
        role=role,
        blocks=blocks,
        uses=tuple(block.id for block in uses),
        names=tuple(block.name for block in uses),
        results=tuple(block.answers for block in blocks if block.type == "tool_result"),
        results_first=_results_first(blocks),
        marks=count_marks(json_bytes.as_list(content)),
        references=references,
        images=images,
        empty=empty,
        extra=extra,
        is_usual=is_usual and not (references or images or empty or extra),
    )


FACTS = FactCache(_facts)


def check(
    request: Request, original: Request | None = None, facts: FactCache[_MessageFacts] = FACTS
) -> tuple[Violation, ...]:
    """`facts` caches the facts of messages."""
    now = _Conversation(request, facts.of(request.messages))
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
        found += _changes(now, _Conversation(original, facts.of(original.messages)))
    return tuple(found)


def _trees(content: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(content, str):
        yield f"{place}.content", {"type": "text", "text": content}
    for index, block in enumerate(json_bytes.as_list(content)):
        yield f"{place}.content.{index}", json_bytes.as_object(block)


def _block(place: str, tree: dict[str, Any]) -> _Block:
    type, id, answers, name = (
        json_bytes.as_text(tree.get(key)) for key in ("type", "id", "tool_use_id", "name")
    )
    block = _Block(place, type, id, answers, name, tree)
    is_fixed = block.is_server or type in (*_THINKING, "compaction")
    return block if is_fixed else _Block(place, type, id, answers, name, {})


def _results_first(blocks: Sequence[_Block]) -> bool:
    are_results = [block.type == "tool_result" for block in blocks]
    return sorted(are_results, reverse=True) == are_results


def _references(block: dict[str, Any]) -> Iterator[str]:
    found = block.get("content")
    searched = (
        json_bytes.as_object(found).get("tool_references")
        if block.get("type") == "tool_search_tool_result"
        else None
    )
    for tree in (*_with_inner([block]), *map(json_bytes.as_object, json_bytes.as_list(searched))):
        if tree.get("type") == "tool_reference":
            yield json_bytes.as_text(tree.get("tool_name"))


def _with_inner(blocks: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Each block, and the blocks inside tool results."""
    for tree in map(json_bytes.as_object, blocks):
        yield tree
        if tree.get("type") == "tool_result":
            yield from map(json_bytes.as_object, json_bytes.as_list(tree.get("content")))


def _images_in(place: str, block: dict[str, Any]) -> Iterator[tuple[str, int]]:
    if block.get("type") == "image":
        yield place, _longer_side(block)
    elif block.get("type") == "tool_result":
        yield from (
            (at, _longer_side(each))
            for at, each in _trees(block.get("content"), place)
            if each.get("type") == "image"
        )


def _longer_side(block: dict[str, Any]) -> int:
    part = image(json_bytes.as_object(block.get("source")))
    size = parts.size_of(part.content) if part is not None and part.media != parts.URI else None
    return max(size or (0, 0))


def _missing(role: str, content: Any) -> Iterator[tuple[str, str]]:
    if not content:
        yield "", f"{role} messages must have non-empty content"
    for place, block in _trees(content) if isinstance(content, list) else ():
        text = json_bytes.as_text(block.get("text"))
        if block.get("type") == "text" and not text:
            yield place, "text content blocks must be non-empty"
        elif block.get("type") == "text" and not text.strip():
            yield place, "text content blocks must contain non-whitespace text"


def _of_replies(block: dict[str, Any]) -> Iterator[str]:
    type = block.get("type")
    if type in ("text", "tool_use", "thinking"):
        yield from (f"{type}.{name}" for name in _REPLY_ONLY if name in block)


def count_marks(blocks: Sequence[Any]) -> int:
    """Blocks with a mark, and marked blocks inside tool results."""
    return sum(1 for block in _with_inner(blocks) if block.get("cache_control"))


def _pairs(now: _Conversation) -> Iterator[Violation]:
    """Rules 1 to 3."""
    if _is_paired(now.messages):
        return
    turns = now.turns
    for index, turn in enumerate(turns):
        if turn.role == "assistant" and (uses := turn.uses):
            yield from _calls_answered(turn, uses, turns, index + 1)
        elif turn.role == "user" and turn.results:
            yield from _results_called(turn, set(turns[index - 1].uses) if index else set())


def _is_paired(messages: Sequence[_MessageFacts]) -> bool:
    """True if roles alternate and each message answers exactly the calls of the one before, as in
    nearly every conversation."""
    role = ""
    asked: tuple[str, ...] = ()
    for facts in messages:
        if facts.role not in _SPEAKING:
            continue
        if (
            facts.role == role
            or not facts.results_first
            or (facts.results != asked and {*facts.results} != {*asked})
        ):
            return False
        role, asked = facts.role, facts.uses
    return not asked


def _calls_answered(
    turn: _Turn, uses: Sequence[str], turns: Sequence[_Turn], following: int
) -> Iterator[Violation]:
    answered = set(turns[following].results) if following < len(turns) else set()
    missing = [id for id in uses if id not in answered]
    if not missing:
        return
    elsewhere = {id for each in turns[following + 1 :] for id in each.results}
    apart = bool(answered) and all(id in elsewhere for id in missing)
    yield broken(3 if apart else 1, turn.where, *missing, ids=", ".join(missing))


def _results_called(turn: _Turn, called: set[str]) -> Iterator[Violation]:
    other_before = False
    for where, block in turn.blocks:
        if block.type != "tool_result":
            other_before = True
        elif block.answers not in called:
            yield broken(2, where, block.answers, id=block.answers)
        elif other_before:
            yield broken(3, where, block.answers, ids=block.answers)


def _unique_ids(now: _Conversation) -> Iterator[Violation]:
    ids = [id for facts in now.messages for id in facts.uses]
    seen: set[str] = set()
    for where, block in now.blocks if len(set(ids)) < len(ids) else ():
        if block.type == "tool_use":
            if block.id in seen:
                yield broken(4, where, block.id)
            seen.add(block.id)


def _server_results(now: _Conversation) -> Iterator[Violation]:
    if not now.server_blocks:
        return
    for index, turn in enumerate(now.answers):
        called: set[str] = set()
        for where, block in turn.blocks:
            if block.type in ("server_tool_use", "mcp_tool_use"):
                called.add(block.id)
            elif (
                block.is_server
                and block.answers not in called
                and block.answers not in _open_server_calls(now.answers[:index])
            ):
                yield broken(5, where, block.answers, type=block.type, id=block.answers)


def _open_server_calls(earlier: Sequence[_Turn]) -> set[str]:
    """Ids of server tools that ran on while the client answered a call of its own: their results
    are in a later turn."""
    blocks = [block for turn in earlier for _, block in turn.blocks if block.is_server]
    called = {block.id for block in blocks if block.type == "server_tool_use"}
    return called - {block.answers for block in blocks if block.type != "server_tool_use"}


def _thinking_on(now: _Conversation) -> Iterator[Violation]:
    """Rule 7. Adaptive thinking requires nothing; a turn of several calls may have thought only at
    its start."""
    if json_bytes.as_object(now.outer.tree("thinking")).get("type") != "enabled":
        return
    turns = now.turns
    if len(turns) < 2 or turns[-1].role != "user" or not turns[-1].results:
        return
    first = len(turns) - 2
    while first >= 2 and turns[first - 1].results:
        first -= 2
    first_blocks = [
        next(turn.blocks, None) for turn in (turns[first], turns[-2]) if turn.role == "assistant"
    ]
    openings = [opening[1].type for opening in first_blocks if opening]
    if openings and not any(type in _THINKING for type in openings):
        yield broken(7, turns[-2].where, type=openings[-1])


def _thinking_off(now: _Conversation) -> Iterator[Violation]:
    is_off = json_bytes.as_object(now.outer.tree("thinking")).get("type", "disabled") == "disabled"
    last = next((role for role in reversed(now.roles) if role in _SPEAKING), "")
    if is_off and last == "assistant" and now.latest_answer and now.latest_answer.thinking:
        yield broken(8, now.latest_answer.where)


def _marks(now: _Conversation) -> Iterator[Violation]:
    tools = json_bytes.as_list(now.outer.tree("tools"))
    system = json_bytes.as_list(now.outer.tree("system"))
    count = count_marks(tools) + count_marks(system) + sum(facts.marks for facts in now.messages)
    if count > MAX_MARKS:
        yield broken(9, "cache_control", count=count)


def _tools(now: _Conversation) -> Iterator[Violation]:
    names = Counter(tool.name for tool in now.request.tools if tool.name)
    if any(count > 1 for count in names.values()):
        yield broken(10, "tools", problem="tools: Tool names must be unique.")
    if not names:
        return
    yield from _check_deferred(now.request.tools)
    for index, facts in now.unusual:
        for place, name in facts.references:
            if name not in names:
                problem = f"Tool reference '{name}' not found in available tools"
                yield broken(10, f"messages.{index}{place}", name, problem=problem)


def _check_deferred(tools: Sequence[ClientTool]) -> Iterator[Violation]:
    """At least one tool is not deferred, and no deferred tool marks the end of a cached prefix."""
    deferred = [
        (index, tree) for index, tool in enumerate(tools) if (tree := _if_deferred(tool.raw))
    ]
    if deferred and len(deferred) == len(tools):
        yield broken(
            10,
            "tools",
            problem="All tools have defer_loading set. At least one tool must be non-deferred.",
        )
    for index, tree in deferred:
        if tree.get("cache_control"):
            problem = (
                f"Tool '{tree.get('name')}' cannot have both defer_loading=true and "
                f"cache_control set."
                " Tools with defer_loading cannot use prompt caching."
            )
            yield broken(10, f"tools.{index}", problem=problem)
        elif json_bytes.as_text(tree.get("type")).startswith("tool_search_tool_"):
            yield broken(
                10,
                f"tools.{index}",
                problem=f"tools.{index}: a tool search tool cannot have defer_loading set",
            )


def _if_deferred(raw: bytes) -> dict[str, Any]:
    """The tool's fields if it is deferred, else empty."""
    tree = json_bytes.lenient_object(raw) if b"defer_loading" in raw else {}
    return tree if tree.get("defer_loading") is True else {}


def _empty(now: _Conversation) -> Iterator[Violation]:
    last = len(now.messages) - 1
    for index, facts in now.unusual:
        if facts.role == "assistant" and index == last:
            continue
        for place, problem in facts.empty:
            yield broken(11, f"messages.{index}{place}", problem=problem)
    for index, facts in now.unusual:
        for place in facts.extra:
            yield broken(11, f"messages.{index}{place}", problem="Extra inputs are not permitted")


def _system_first(now: _Conversation) -> Iterator[Violation]:
    if now.roles[:1] == ["system"]:
        yield broken(12, "messages.0")


def _counts(now: _Conversation) -> Iterator[Violation]:
    if len(now.messages) > _MAX_MESSAGES:
        yield broken(
            13, "messages", problem=f"too many messages: {len(now.messages)} > {_MAX_MESSAGES}"
        )


def _images(now: _Conversation) -> Iterator[Violation]:
    images = [
        (f"messages.{index}{place}", side)
        for index, facts in now.unusual
        for place, side in facts.images
    ]
    if len(images) > _MAX_IMAGES:
        yield broken(
            14, "messages", problem=f"Too many images in request: {len(images)} > {_MAX_IMAGES}"
        )
    many = len(images) > _MANY_IMAGES
    limit = _MAX_PIXELS_OF_MANY if many else _MAX_PIXELS
    for where, side in images:
        if side > limit:
            sort = " for many-image requests" if many else ""
            yield broken(
                14,
                where,
                problem=(
                    f"At least one of the image dimensions exceed max "
                    f"allowed size{sort}: {limit} "
                    f"pixels"
                ),
            )


def _size(request: Request) -> Iterator[Violation]:
    # Upper bound: the sent body, all messages again, a comma for each. Most need no rendering.
    if len(request.raw) + sum(len(each.raw) + 1 for each in request.messages) + 2 <= _MAX_BODY:
        return
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
    then = {block.key: block for _, block in before.server_blocks}
    here = {block.key for _, block in now.server_blocks}
    for where, block in now.server_blocks:
        was = then.get(block.key)
        if was is not None and was is not block and was.unmarked != block.unmarked:
            yield broken(
                5, where, block.answers or block.id, type=block.type, id=block.answers or block.id
            )
        if block.type == "server_tool_use":
            for type, id in then:
                if id == block.id and (type, id) not in here:
                    yield broken(5, where, id, type=type, id=id)


def _thinking_kept(now: _Conversation, before: _Conversation) -> Iterator[Violation]:
    here, then = now.latest_answer, before.latest_answer
    if here is not None and then is not None and here.thinking != then.thinking:
        yield broken(6, here.where)


def _injected_declared(now: _Conversation, before: _Conversation) -> Iterator[Violation]:
    """A client may refer to tools it no longer declares; we may not."""
    unknown = now.names - before.names - {tool.name for tool in now.request.tools}
    for where, block in now.blocks if unknown else ():
        if block.type == "tool_use" and block.name in unknown:
            yield broken(
                10,
                where,
                block.name,
                problem=f"Tool reference '{block.name}' not found in available tools",
            )


def _ends_kept(now: _Conversation, before: _Conversation) -> Iterator[Violation]:
    roles, then = now.roles, before.roles
    if roles[-1:] == ["assistant"] and then[-1:] != ["assistant"]:
        problem = (
            "This model does not support assistant message prefill. "
            "The conversation must end "
            "with a user message."
        )
        yield broken(13, f"messages.{len(roles) - 1}", problem=problem)
    if roles[:1] == ["assistant"] and then[:1] != ["assistant"]:
        yield broken(13, "messages.0", problem='first message must use the "user" role')


def _compaction_kept(now: _Conversation, before: _Conversation) -> Iterator[Violation]:
    for (_, was), (where, block) in zip(before.compactions, now.compactions, strict=False):
        if was.unmarked != block.unmarked:
            yield broken(
                16,
                where,
                problem="the `compaction` block differs from what its `signature` recorded",
            )
    (_, opened), (where, first) = next(before.blocks, _NOTHING), next(now.blocks, _NOTHING)
    if opened and opened.type == "compaction" and first and first.type != "compaction":
        yield broken(
            16, where, problem="the `compaction` block must be the first block of the conversation"
        )


_NOTHING: tuple[str, None] = ("", None)


def _thread_kept(now: _Conversation, before: _Conversation) -> Iterator[Violation]:
    if not now.outer.tree("thread"):
        return
    for name in sorted({*now.outer.fields, *before.outer.fields} - _FREE_IN_THREADS):
        if now.outer.tree(name) != before.outer.tree(name):
            yield broken(17, name)
