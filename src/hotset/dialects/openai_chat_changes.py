"""What can be changed in a Chat Completions request, in the forms of that dialect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from hotset.dialects import changes, envelope, rewording, wire
from hotset.dialects.node import Node, is_text, says
from hotset.dialects.rewording import Slot
from hotset.nouns.message import Answer, Request, Tool, ToolSpec

THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
"""Where providers that speak this dialect put what a model thought; the first that is there is read."""


def slots(message: Node) -> Iterator[Slot | None]:
    members = message.members()
    match says(members, "role"):
        case "assistant":
            yield from _thought_slots(members)
            yield from _content_slots(members)
            yield from _call_slots(members)
        case "tool" | "function":
            tool = says(members, "name")
            yield from (slot and replace(slot, tool=tool) for slot in _result_slots(message, members.get("content")))


def offer(body: bytes, tools: Sequence[ToolSpec]) -> bytes:
    outer = envelope.opened(body, "messages")
    names = [tool.name for key in ("tools", "functions") for tool in outer.tools(key, _name)]
    return changes.offer(outer, declared(tools), names)


def withhold(body: bytes, unwanted: Callable[[bytes], bool]) -> bytes:
    outer = envelope.opened(body, "messages")
    kept = changes.withhold(outer, unwanted)
    return body if kept is None else changes.with_tools(outer, kept)


def declared(tools: Sequence[ToolSpec]) -> tuple[Tool, ...]:
    return changes.declared(tools, _tool)


def answer(results: Sequence[Answer]) -> tuple[bytes, ...]:
    return tuple(
        wire.encode({"role": "tool", "tool_call_id": each.call, "content": changes.plain(each.text)}) for each in results
    )


def say(text: str) -> bytes:
    return wire.encode({"role": "user", "content": changes.spoken(text)})


def injectable(request: Request, names: Collection[str]) -> bool:
    fields = changes.params(request)
    has_tools = bool(request.tools) and "type" in wire.as_object(wire.lenient(request.tools[0].raw))
    if not has_tools or fields.get("n") not in (None, 1):  # `functions` alone are no tools; several replies cannot go on as one
        return False
    if changes.is_structured(fields.get("response_format")):
        return False
    return changes.openai_is_open(request, names, ("max_tokens", "max_completion_tokens"))


def _thought_slots(members: dict[str, Node]) -> Iterator[None]:
    if any(name in members and members[name].value() for name in THOUGHTS):
        yield None


def _content_slots(members: dict[str, Node]) -> Iterator[Slot | None]:
    content = members.get("content")
    if content is not None and content.is_text:
        yield rewording.text(content)
    elif content is not None and content.raw.startswith(b"["):
        yield from map(_text_slot, content.elements())
    elif content is not None and not content.is_null:
        yield None
    if is_text(members, "refusal"):
        yield rewording.text(members["refusal"])
    if "audio" in members and members["audio"].raw.startswith(b"{"):
        yield None


def _text_slot(block: Node) -> Slot | None:
    """Where a block says its text; None where it is another kind of block."""
    if block.is_text:
        return rewording.text(block)
    members = block.members()
    kind = says(members, "type")
    return rewording.text(members[kind]) if kind in ("text", "refusal") and is_text(members, kind) else None


def _call_slots(members: dict[str, Node]) -> Iterator[Slot | None]:
    calls = members.get("tool_calls")
    for call in calls.elements() if calls else ():
        inside = call.members()
        function, custom = (inside[name].members() if name in inside else {} for name in ("function", "custom"))
        if is_text(function, "name", "arguments"):
            yield rewording.arguments(function["arguments"])
        else:
            yield rewording.text(custom["input"]) if is_text(custom, "name", "input") else None
    legacy = members["function_call"].members() if "function_call" in members else {}
    if is_text(legacy, "name", "arguments"):
        yield rewording.arguments(legacy["arguments"])


def _result_slots(message: Node, content: Node | None) -> Iterator[Slot | None]:
    blocks = content.elements() if content else ()
    if not blocks:
        yield rewording.text_member(message, "content", content)
    for block in blocks:
        yield _text_slot(block) or rewording.text_block(block)


def _name(tool: dict[str, Any]) -> str:
    inner = wire.as_object(tool.get("function") or tool.get("custom") or tool)
    return wire.as_text(inner.get("name"))


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": changes.schema(tool)}
    return {"type": "function", "function": function}
