"""Changes to a Chat Completions request."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hotset.dialects import change, envelope, json_bytes
from hotset.dialects.change import Slot
from hotset.dialects.chat.parse import THOUGHTS, understand
from hotset.dialects.json_bytes import JsonNode
from hotset.nouns.link import Link
from hotset.nouns.message import Answer, ClientTool, Message, Request, ToolSpec
from hotset.nouns.page import Chain
from hotset.nouns.window import Hidden

_MOST_TOOLS = 128  # OpenAI's own limit


def reword(message: Message, words: Mapping[int, bytes]) -> Message:
    return change.reword(message, words, slots)


def reveal(request: Request, links: Sequence[Link], hidden: Mapping[Chain, Hidden]) -> Request:
    return change.reveal(request, links, hidden, understand, slots)


def slots(message: JsonNode) -> Iterator[Slot | None]:
    members = message.members()
    match json_bytes.text_of(members, "role"):
        case "assistant":
            yield from _thought_slots(members)
            yield from _content_slots(members)
            yield from _call_slots(members)
        case "tool" | "function":
            tool = json_bytes.text_of(members, "name")
            yield from (
                slot and replace(slot, tool=tool)
                for slot in _result_slots(message, members.get("content"))
            )


def offer(body: bytes, tools: Sequence[ToolSpec]) -> bytes:
    outer = envelope.open_envelope(body, "messages")
    names = [tool.name for key in ("tools", "functions") for tool in outer.tools(key, _name)]
    return change.offer(outer, declare(tools), names)


def withhold(body: bytes, unwanted: Callable[[bytes], bool]) -> bytes:
    return change.withhold(envelope.open_envelope(body, "messages"), unwanted)


def declare(tools: Sequence[ToolSpec]) -> tuple[ClientTool, ...]:
    return change.declare(tools, _tool)


def answer(results: Sequence[Answer]) -> tuple[bytes, ...]:
    return tuple(
        json_bytes.encode(
            {"role": "tool", "tool_call_id": each.call, "content": change.plain(each.text)}
        )
        for each in results
    )


def say(text: str) -> Message:
    return understand(change.user_message(text))


def can_defer(_request: Request) -> bool:
    """Never: the dialect has no form for it."""
    return False


def loaded_tools(_raw: bytes) -> tuple[str, ...]:
    """None: without deferred tools no message makes one callable."""
    return ()


def spell_out(raw: bytes, _words: Mapping[str, str]) -> bytes:
    """Unchanged, as no message makes a tool callable."""
    return raw


def injectable(request: Request, names: Collection[str]) -> bool:
    fields = change.params(request)
    has_tools = (
        "type" in json_bytes.lenient_object(request.tools[0].raw)
        if request.tools
        else change.is_talk(request)
    )
    # `functions` alone are not tools; several replies cannot continue as one.
    if not has_tools or fields.get("n") not in (None, 1):
        return False
    if change.is_structured(fields.get("response_format")):
        return False
    return is_open(request, names, ("max_tokens", "max_completion_tokens"))


def is_open(request: Request, names: Collection[str], limits: Sequence[str]) -> bool:
    """`change.is_open` plus OpenAI's own conditions."""
    choice = change.params(request).get("tool_choice")
    # An object names the tools that may be called, and ours are not among them.
    if choice == "none" or isinstance(choice, dict):
        return False
    return len(request.tools) + len(names) <= _MOST_TOOLS and change.is_open(request, names, limits)


def _thought_slots(members: dict[str, JsonNode]) -> Iterator[None]:
    if any(name in members and members[name].value() for name in THOUGHTS):
        yield None


def _content_slots(members: dict[str, JsonNode]) -> Iterator[Slot | None]:
    content = members.get("content")
    if content is not None and content.is_text:
        yield change.text(content)
    elif content is not None and content.raw.startswith(b"["):
        yield from map(_text_slot, content.elements())
    elif content is not None and content.raw != b"null":
        yield None
    if json_bytes.are_texts(members, "refusal"):
        yield change.text(members["refusal"])
    if "audio" in members and members["audio"].raw.startswith(b"{"):
        yield None


def _text_slot(block: JsonNode) -> Slot | None:
    """Slot for a block's text; None for another kind of block."""
    if block.is_text:
        return change.text(block)
    members = block.members()
    kind = json_bytes.text_of(members, "type")
    return (
        change.text(members[kind])
        if kind in ("text", "refusal") and json_bytes.are_texts(members, kind)
        else None
    )


def _call_slots(members: dict[str, JsonNode]) -> Iterator[Slot | None]:
    calls = members.get("tool_calls")
    for call in calls.elements() if calls else ():
        inside = call.members()
        function, custom = (
            inside[name].members() if name in inside else {} for name in ("function", "custom")
        )
        if json_bytes.are_texts(function, "name", "arguments"):
            yield change.arguments(function["arguments"])
        else:
            yield (
                change.text(custom["input"])
                if json_bytes.are_texts(custom, "name", "input")
                else None
            )
    legacy = members["function_call"].members() if "function_call" in members else {}
    if json_bytes.are_texts(legacy, "name", "arguments"):
        yield change.arguments(legacy["arguments"])


def _result_slots(message: JsonNode, content: JsonNode | None) -> Iterator[Slot | None]:
    blocks = content.elements() if content else ()
    if not blocks:
        yield change.text_member(message, "content", content)
    for block in blocks:
        yield _text_slot(block) or change.text_block(block)


def _name(tool: dict[str, Any]) -> str:
    inner = json_bytes.as_object(tool.get("function") or tool.get("custom") or tool)
    return json_bytes.as_text(inner.get("name"))


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": change.schema(tool),
    }
    return {"type": "function", "function": function}
