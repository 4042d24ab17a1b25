"""Parses a Chat Completions request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hotset.dialects import envelope, json_bytes, parts
from hotset.dialects.envelope import MessageCache
from hotset.dialects.parts import Calls
from hotset.nouns.message import DialectName, Message, Part, Request, Span
from hotset.nouns.page import Kind, Role

CACHE = MessageCache()

THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
"""Fields in which providers put a model's thinking; the first one present is read."""

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}


def parse(body: bytes, cache: MessageCache = CACHE) -> Request:
    outer = envelope.open_envelope(body, "messages", cache)
    array, messages = envelope.messages_of(outer, "messages", _message, cache)
    return Request(
        dialect=DialectName.OPENAI_CHAT,
        raw=body,
        model=outer.text("model"),
        stream=outer.tree("stream") is True,
        messages=messages,
        array=array,
        tools=(*outer.tools("tools", _tool_name), *outer.tools("functions", _tool_name)),
        params=outer.params(without=("messages", "tools", "functions")),
        hints=outer.hints("prompt_cache_key", "safety_identifier", "user"),
    )


def understand(raw: bytes) -> Message:
    """Parse a message of a reply as if its client had sent it back."""
    return _message(raw, json_bytes.lenient_object(raw), None, "reply", {})


def _tool_name(tool: dict[str, Any]) -> str:
    inner = tool.get("function") or tool.get("custom") or tool
    return json_bytes.as_text(json_bytes.as_object(inner).get("name")) or json_bytes.as_text(
        tool.get("type")
    )


def _message(
    raw: bytes, tree: dict[str, Any], span: Span | None, where: str, calls: Calls
) -> Message:
    role = _ROLES.get(envelope.role_of(tree, where))
    if role is None:
        return parts.message(Role.USER, raw, [parts.opaque(raw)], span)
    found = list(_result(raw, tree, calls) if role is Role.TOOL else _content(role, raw, tree))
    if role is Role.ASSISTANT:
        found = [*_thoughts(raw, tree), *found, *_calls(raw, tree, calls)]
    return parts.message(role, raw, found, span)


def _content(role: Role, raw: bytes, tree: dict[str, Any]) -> Iterator[Part]:
    content = tree.get("content")
    if isinstance(content, str):
        yield parts.text(role, content)
    elif isinstance(content, list):
        raws = json_bytes.Elements(raw, "content")
        for index, block in enumerate(content):
            yield _block(role, block, index, raws)
    elif content is not None:
        yield parts.opaque(json_bytes.member(raw, "content"))
    refusal = tree.get("refusal")
    if isinstance(refusal, str):
        yield parts.text(role, refusal)
    if isinstance(tree.get("audio"), dict):
        yield parts.opaque(json_bytes.member(raw, "audio"))


def _block(role: Role, block: Any, index: int, raws: json_bytes.Elements) -> Part:
    match block:
        case (
            str(text)
            | {"type": "text", "text": str(text)}
            | {"type": "refusal", "refusal": str(text)}
        ):
            return parts.text(role, text)
        case {"type": "thinking", "thinking": str(text)}:
            return parts.thinking(text)
        case {"type": "image_url", "image_url": {"url": str(url)} | str(url)} if (
            found := parts.image_at(url)
        ):
            return found
        case _:
            return parts.opaque(raws[index])


def _thoughts(raw: bytes, tree: dict[str, Any]) -> Iterator[Part]:
    name = next((name for name in THOUGHTS if tree.get(name)), "")
    if not name:
        return
    thinking = tree[name]
    yield (
        parts.thinking(thinking)
        if isinstance(thinking, str)
        else Part(Kind.THINKING, json_bytes.member(raw, name), parts.JSON)
    )


def _calls(raw: bytes, tree: dict[str, Any], calls: Calls) -> Iterator[Part]:
    raws = json_bytes.Elements(raw, "tool_calls")
    for index, call in enumerate(json_bytes.as_list(tree.get("tool_calls"))):
        match call:
            case {"function": {"name": str(name), "arguments": str(arguments)}}:
                yield parts.call(
                    name,
                    json_bytes.as_text(call.get("id")),
                    json_bytes.encode_text(arguments),
                    calls,
                )
            case {"custom": {"name": str(name), "input": str(given)}}:
                yield parts.call(
                    name,
                    json_bytes.as_text(call.get("id")),
                    json_bytes.encode_text(given),
                    calls,
                    "text/plain",
                )
            case _:
                yield parts.opaque(raws[index])
    match tree.get("function_call"):
        case {"name": str(name), "arguments": str(arguments)}:
            # A legacy call has no id: its result names the function.
            part = parts.call(name, name, json_bytes.encode_text(arguments), calls)
            yield Part(part.kind, part.content, part.media, part.tool)
        case dict():
            yield parts.opaque(json_bytes.member(raw, "function_call"))


def _result(raw: bytes, tree: dict[str, Any], calls: Calls) -> Iterator[Part]:
    tool = json_bytes.as_text(tree.get("name"))
    id = json_bytes.as_text(tree.get("tool_call_id"))
    content = tree.get("content")
    known = calls if id else {"": calls[tool]} if tool in calls else calls
    if content is None or isinstance(content, str):
        yield parts.result(content or "", id, known, tool)
    elif isinstance(content, list):
        raws = json_bytes.Elements(raw, "content")
        for index, block in enumerate(content):
            part = _block(Role.TOOL, block, index, raws)
            is_text = part.kind is Kind.TOOL_RESULT
            yield (
                parts.result(part.content.decode(), id, known, tool)
                if is_text
                else parts.of_call(part, id, known)
            )
        if not content:
            yield parts.result("", id, known, tool)
    else:
        yield parts.of_call(parts.opaque(json_bytes.member(raw, "content")), id, known)
