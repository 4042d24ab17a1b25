"""Changes to an Anthropic request."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hotset.dialects import change, envelope, json_bytes
from hotset.dialects.anthropic.parse import understand
from hotset.dialects.change import Slot
from hotset.dialects.json_bytes import JsonNode
from hotset.nouns.link import Link
from hotset.nouns.message import Answer, ClientTool, Loading, Message, Request, Span, ToolSpec
from hotset.nouns.page import Chain, Role
from hotset.nouns.window import Hidden

_REFERENCE = "tool_reference"
_SEARCHES = "tool_search_tool_"
"""Prefix of the types of the provider's own tool searches."""


def reword(message: Message, words: Mapping[int, bytes]) -> Message:
    return change.reword(message, words, slots)


def slots(message: JsonNode) -> Iterator[Slot | None]:
    members = message.members()
    role, content = json_bytes.text_of(members, "role"), members.get("content")
    if role not in ("user", "assistant") or content is None:
        return
    if content.is_text:
        yield change.text(content) if role == "assistant" else None
    for block in content.elements():
        yield from _block_slots(block, role)


def offer(body: bytes, tools: Sequence[ToolSpec]) -> bytes:
    outer = envelope.open_envelope(body, "messages")
    theirs = json_bytes.as_list(outer.tree("tools"))
    names = [json_bytes.as_text(json_bytes.as_object(tool).get("name")) for tool in theirs]
    # The client marked its last tool as the end of what the provider caches: it must stay the last.
    is_marked = bool(theirs and json_bytes.as_object(theirs[-1]).get("cache_control"))
    return change.offer(outer, declare(tools), names, before_last=is_marked)


def withhold(body: bytes, unwanted: Callable[[bytes], bool]) -> bytes:
    outer = envelope.open_envelope(body, "messages")

    def with_mark(kept: list[bytes]) -> list[bytes]:
        """Keep the client's cache mark on the last tool that is left."""
        last = outer.tools("tools", envelope.tool_name)[-1]
        mark = json_bytes.node(last.raw).members().get("cache_control")
        if not kept or mark is None or "cache_control" in json_bytes.node(kept[-1]).members():
            return kept
        return [*kept[:-1], kept[-1].rstrip()[:-1] + b',"cache_control":' + mark.raw + b"}"]

    return change.withhold(outer, unwanted, with_mark)


def declare(tools: Sequence[ToolSpec]) -> tuple[ClientTool, ...]:
    return change.declare(tools, _tool)


def can_defer(request: Request) -> bool:
    """False if the provider searches the client's tools: it would find ours, and the client's
    history would name them."""
    return not any(
        json_bytes.as_text(json_bytes.lenient_object(tool.raw).get("type")).startswith(_SEARCHES)
        for tool in request.tools
    )


def answer(results: Sequence[Answer]) -> tuple[bytes, ...]:
    return (
        (json_bytes.encode({"role": "user", "content": [_result(each) for each in results]}),)
        if results
        else ()
    )


def loaded_tools(raw: bytes) -> tuple[str, ...]:
    return tuple(name for _, names in _referring(raw) for name in names)


def spell_out(raw: bytes, words: Mapping[str, str]) -> bytes:
    edits = [
        (content.span, json_bytes.encode("\n".join(words.get(name, name) for name in names)))
        for content, names in _referring(raw)
    ]
    return json_bytes.splice(raw, edits)


def say(text: str) -> Message:
    return understand(change.user_message(text))


def reveal(request: Request, links: Sequence[Link], hidden: Mapping[Chain, Hidden]) -> Request:
    """As in every dialect, but results join the user's message after the calls: the provider wants
    them all in one.

    A message that `say` wrote answers nothing and stays separate.
    """
    messages, still = list(request.messages), dict(hidden)
    for index, link in enumerate(links):
        row = hidden.get(link.chain)
        if row is None or all(map(_is_text_message, row.after)):
            continue
        blocks = [block for raw in row.after for block in _blocks(raw)]
        behind = next(
            (
                here
                for here in range(index + 1, len(messages))
                if messages[here].role is not Role.SYSTEM
            ),
            None,
        )
        if behind is not None and messages[behind].role is Role.USER:
            messages[behind] = _add_results(messages[behind], blocks)
            still[link.chain] = replace(row, after=())
        else:
            still[link.chain] = replace(row, after=(_message_of(blocks),))
    answered = replace(request, messages=tuple(messages)) if still != hidden else request
    return change.reveal(answered, links, still, understand, slots)


def injectable(request: Request, names: Collection[str]) -> bool:
    fields = change.params(request)
    chosen = json_bytes.as_object(fields.get("tool_choice")).get("type", "auto")
    format = fields.get("output_format") or json_bytes.as_object(fields.get("output_config")).get(
        "format"
    )
    is_fixed = (
        bool(fields.get("thread")) or chosen not in ("auto", "any") or change.is_structured(format)
    )
    return not is_fixed and change.is_open(request, names, ("max_tokens",))


def _block_slots(block: JsonNode, role: str) -> Iterator[Slot | None]:
    members = block.members()
    match json_bytes.text_of(members, "type"):
        case "text" if role == "assistant" and json_bytes.are_texts(members, "text"):
            yield change.text(members["text"])
        case "tool_use" if json_bytes.are_texts(members, "name", "id") and "input" in members:
            yield change.given_object(members["input"])
        case "tool_result" if json_bytes.are_texts(members, "tool_use_id"):
            yield from _result_slots(block, members.get("content"))
        case _:
            yield None


def _result_slots(block: JsonNode, content: JsonNode | None) -> Iterator[Slot | None]:
    inner = content.elements() if content else ()
    if not inner:
        yield change.text_member(block, "content", content)
    for each in inner:
        members = each.members()
        kind = json_bytes.text_of(members, "type")
        if kind == "text" and json_bytes.are_texts(members, "text"):
            yield change.text(members["text"])
        elif kind == _REFERENCE:
            yield None  # it makes a deferred tool callable: as a text it would not
        else:
            yield change.text_block(each)


def _referring(raw: bytes) -> Iterator[tuple[JsonNode, list[str]]]:
    """The contents of the results in a message or block that refer to tools, and the tools'
    names."""
    if _REFERENCE.encode() not in raw:
        return
    for block in _block_nodes(json_bytes.node(raw)):
        content = block.members().get("content")
        inner = [each.members() for each in content.elements()] if content is not None else []
        names = [
            json_bytes.text_of(each, "tool_name")
            for each in inner
            if json_bytes.text_of(each, "type") == _REFERENCE
        ]
        if content is not None and names:
            yield content, names


def _block_nodes(message: JsonNode) -> Sequence[JsonNode]:
    """The blocks of a message at their places, or the block itself."""
    members = message.members()
    return (
        members["content"].elements() if "role" in members and "content" in members else (message,)
    )


def _tool(tool: ToolSpec) -> dict[str, Any]:
    declared = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": change.schema(tool),
    }
    return declared | {"defer_loading": True} if tool.loading is Loading.WHEN_FOUND else declared


def _result(given: Answer) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": given.call, "content": change.plain(given.text)}
    if given.failed:  # then only text is allowed
        return block | {"is_error": True}
    if given.tools:  # the provider inserts each definition here; only references are allowed
        return block | {
            "content": [{"type": _REFERENCE, "tool_name": each.name} for each in given.tools]
        }
    if not given.images:
        return block
    sources = [
        {"type": "base64", "media_type": each.media, "data": each.data} for each in given.images
    ]
    text = {"type": "text", "text": change.plain(given.text)}
    return block | {"content": [text, *({"type": "image", "source": source} for source in sources)]}


def _is_text_message(raw: bytes) -> bool:
    members = json_bytes.node(raw).members()
    return "role" in members and json_bytes.are_texts(members, "content")


def _blocks(raw: bytes) -> list[bytes]:
    """The raw blocks of a message as `answer` makes it, or the block itself."""
    members = json_bytes.node(raw).members()
    return [block.raw for block in members["content"].elements()] if "role" in members else [raw]


def _message_of(blocks: Sequence[bytes]) -> bytes:
    return b'{"role":"user","content":[%s]}' % b",".join(blocks)


def _add_results(message: Message, blocks: Sequence[bytes]) -> Message:
    # An empty text is dropped in favor of the results.
    parts = (part for part in message.parts if part.content or part.call)
    return replace(
        message,
        raw=_prepend_blocks(message.raw, blocks),
        parts=(*understand(_message_of(blocks)).parts, *parts),
    )


def _prepend_blocks(raw: bytes, blocks: Sequence[bytes]) -> bytes:
    """The message with these blocks before its own content."""
    message = json_bytes.node(raw)
    content = message.members().get("content")
    front = b",".join(blocks)
    if content is None:
        here = message.span.start + 1
        return json_bytes.splice(raw, [(Span(here, here), b'"content":[%s],' % front)])
    if content.elements():
        here = content.span.start + 1
        return json_bytes.splice(raw, [(Span(here, here), front + b",")])
    text = (
        b',{"type":"text","text":%s}' % content.raw if content.is_text and content.value() else b""
    )
    return json_bytes.splice(raw, [(content.span, b"[" + front + text + b"]")])
