"""Parses an Anthropic request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hotset.dialects import envelope, json_bytes, parts
from hotset.dialects.envelope import MessageCache
from hotset.dialects.json_bytes import Elements
from hotset.dialects.parts import Calls
from hotset.nouns.message import DialectName, Message, Part, Request, Span
from hotset.nouns.page import Kind, Role

CACHE = MessageCache()

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}


def parse(body: bytes, cache: MessageCache = CACHE) -> Request:
    outer = envelope.open_envelope(body, "messages", cache)
    array, messages = envelope.messages_of(outer, "messages", _message, cache)
    return Request(
        dialect=DialectName.ANTHROPIC,
        raw=body,
        model=outer.text("model"),
        stream=outer.tree("stream") is True,
        messages=messages,
        array=array,
        system=tuple(_system(outer)),
        tools=outer.tools("tools", envelope.tool_name),
        params=outer.params(without=("messages", "system", "tools")),
        previous=json_bytes.as_text(
            json_bytes.as_object(outer.tree("thread")).get("previous_message_id")
        ),
        hints=_hints(outer),
    )


def understand(raw: bytes) -> Message:
    """Parse a message of a reply as if its client had sent it back."""
    return _message(raw, json_bytes.lenient_object(raw), None, "reply", {})


def _hints(outer: envelope.Envelope) -> tuple[str, ...]:
    user = json_bytes.as_text(json_bytes.as_object(outer.tree("metadata")).get("user_id"))
    return (f"user_id={user}",) if user else ()


def _system(outer: envelope.Envelope) -> Iterator[Part]:
    tree = outer.tree("system")
    if isinstance(tree, str):
        yield parts.text(Role.SYSTEM, tree)
    elif isinstance(tree, list):
        raws = json_bytes.elements(outer.raw("system"), "system")
        for block, raw in zip(tree, raws, strict=True):
            text = (
                block.get("text")
                if isinstance(block, dict) and block.get("type") == "text"
                else None
            )
            yield (
                parts.text(Role.SYSTEM, text) if isinstance(text, str) else parts.opaque(bytes(raw))
            )


def _message(
    raw: bytes, tree: dict[str, Any], span: Span | None, where: str, calls: Calls
) -> Message:
    role = _ROLES.get(envelope.role_of(tree, where))
    if role is None:
        return parts.message(Role.USER, raw, [parts.opaque(raw)], span)
    content = tree.get("content")
    if isinstance(content, str):
        return parts.message(role, raw, [parts.text(role, content)], span)
    if content is not None and not isinstance(content, list):
        return parts.message(role, raw, [parts.opaque(raw)], span)
    raws = Elements(raw, "content")
    found = [
        part
        for index, block in enumerate(content or [])
        for part in _block(role, block, index, raws, calls)
    ]
    return parts.message(role, raw, found, span)


def _block(role: Role, block: Any, index: int, raws: Elements, calls: Calls) -> Iterator[Part]:
    match block:
        case {"type": "text", "text": str(text)}:
            yield parts.text(role, text)
        case {"type": "thinking", "thinking": str(text)}:
            yield parts.thinking(text)
        case {"type": "thinking" | "redacted_thinking"}:
            yield Part(Kind.THINKING, raws[index], parts.JSON)
        case {"type": "tool_use", "name": str(name), "id": str(id), "input": _}:
            yield parts.call(name, id, json_bytes.member(raws[index], "input"), calls)
        case {"type": "tool_result", "tool_use_id": str(id)}:
            yield from _result(block.get("content"), id, index, raws, calls)
        case {"type": "image", "source": dict(source)} if found := image(source):
            yield found
        case _:
            yield parts.opaque(raws[index])


def _result(content: Any, id: str, index: int, raws: Elements, calls: Calls) -> Iterator[Part]:
    if not content:
        yield parts.result("", id, calls)
    elif isinstance(content, str):
        yield parts.result(content, id, calls)
    elif isinstance(content, list):
        inner = Elements(raws[index], "content")
        for number, block in enumerate(content):
            match block:
                case {"type": "text", "text": str(text)}:
                    yield parts.result(text, id, calls)
                case {"type": "image", "source": dict(source)} if found := image(source):
                    yield parts.of_call(found, id, calls)
                case _:
                    yield parts.of_call(parts.opaque(inner[number]), id, calls)
    else:
        yield parts.of_call(parts.opaque(raws[index]), id, calls)


def image(source: dict[str, Any]) -> Part | None:
    """The image of a block's `source`; None if it is not one."""
    if source.get("type") == "url":
        return parts.image_at(source.get("url"))
    return (
        parts.image(source.get("data"), source.get("media_type"))
        if source.get("type") == "base64"
        else None
    )
