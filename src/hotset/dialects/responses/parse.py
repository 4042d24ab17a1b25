"""Parses and renders a Responses request: the conversation is a list of items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hotset.dialects import envelope, json_bytes, parts
from hotset.dialects.envelope import MessageCache
from hotset.dialects.parts import Calls
from hotset.errors import Malformed
from hotset.nouns.message import DialectName, Message, Part, Request, Span
from hotset.nouns.page import Kind, Role

CACHE = MessageCache()

CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
}
"""Item types of calls of the client's tools, and the field that holds the arguments."""

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
}
_CONTINUES = ("previous_response_id", "conversation", "prompt")
"""A request may omit `input` if one of these names what to continue."""


def parse(body: bytes, cache: MessageCache = CACHE) -> Request:
    outer = envelope.open_envelope(body, "input", cache)
    array, messages = _input(outer, cache)
    return Request(
        dialect=DialectName.OPENAI_RESPONSES,
        raw=body,
        model=outer.text("model"),
        stream=outer.tree("stream") is True,
        messages=messages,
        array=array,
        system=tuple(_instructions(outer)),
        tools=outer.tools("tools", envelope.tool_name),
        params=outer.params(without=("input", "instructions", "tools")),
        previous=outer.text("previous_response_id"),
        hints=(
            *outer.hints("prompt_cache_key", "safety_identifier", "user"),
            *_conversation(outer),
        ),
    )


def render(request: Request) -> bytes:
    if request.array.start == request.array.end and request.messages:
        # There was no `input`: it becomes the first field.
        comma = b"" if request.raw[request.array.end :].lstrip().startswith(b"}") else b","
        items = json_bytes.array_of(_element(each.raw) for each in request.messages)
        return json_bytes.splice(request.raw, [(request.array, b'"input":' + items + comma)])
    return envelope.render(request, _element)


def understand(raw: bytes) -> Message:
    """Parse a message of a reply as if its client had sent it back."""
    return _item(raw, json_bytes.lenient_object(raw), None, "reply", {})


def _input(outer: envelope.Envelope, cache: MessageCache) -> tuple[Span, tuple[Message, ...]]:
    field = outer.fields.get("input")
    if field is None:
        if not any(outer.tree(name) for name in _CONTINUES):
            raise Malformed("the body has no 'input'")
        start = outer.body.index(b"{") + 1
        return Span(start, start), ()
    if outer.body.startswith(b'"', field.value.start):
        raw = outer.raw("input")
        text = parts.text(Role.USER, json_bytes.as_text(json_bytes.decode(raw, "input")))
        return field.value, (parts.message(Role.USER, raw, [text], field.value),)
    return envelope.messages_of(outer, "input", _item, cache)


def _element(raw: bytes) -> bytes:
    """An array element; an input that is only a string becomes a message."""
    return b'{"role":"user","content":' + raw + b"}" if raw.startswith(b'"') else raw


def _instructions(outer: envelope.Envelope) -> Iterator[Part]:
    tree = outer.tree("instructions")
    if isinstance(tree, str):
        yield parts.text(Role.SYSTEM, tree)
    elif tree is not None:
        yield parts.opaque(outer.raw("instructions"))


def _conversation(outer: envelope.Envelope) -> tuple[str, ...]:
    tree = outer.tree("conversation")
    id = tree if isinstance(tree, str) else json_bytes.as_text(json_bytes.as_object(tree).get("id"))
    return (f"conversation={id}",) if id else ()


def _item(raw: bytes, tree: dict[str, Any], span: Span | None, where: str, calls: Calls) -> Message:
    kind = tree.get("type", "message")
    if not isinstance(kind, str):
        raise Malformed(f"{where}: expected a string as type, got {kind!r:.40}")
    if kind == "message":
        return _message(raw, tree, span, where)
    if kind == "reasoning":
        return parts.message(Role.ASSISTANT, raw, list(_reasoning(raw, tree)), span, aside=True)
    if kind in CALLS:
        return parts.message(Role.ASSISTANT, raw, [_call(raw, tree, kind, calls)], span)
    if kind.endswith("_output"):
        return parts.message(Role.TOOL, raw, list(_output(raw, tree, calls)), span)
    role = _ROLES.get(json_bytes.as_text(tree.get("role")), Role.ASSISTANT)
    return parts.message(
        role, raw, [parts.opaque(raw, json_bytes.as_text(tree.get("call_id")))], span
    )


def _message(raw: bytes, tree: dict[str, Any], span: Span | None, where: str) -> Message:
    role = _ROLES.get(envelope.role_of(tree, where))
    content = tree.get("content")
    if role is None or not isinstance(content, str | list | None):
        return parts.message(role or Role.USER, raw, [parts.opaque(raw)], span)
    if isinstance(content, str):
        return parts.message(role, raw, [parts.text(role, content)], span)
    raws = json_bytes.Elements(raw, "content")
    return parts.message(
        role,
        raw,
        [_block(role, block, index, raws) for index, block in enumerate(content or [])],
        span,
    )


def _block(role: Role, block: Any, index: int, raws: json_bytes.Elements) -> Part:
    match block:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)} | {
            "type": "refusal",
            "refusal": str(text),
        }:
            return parts.text(role, text)
        case {"type": "input_image", "image_url": str(url)} if found := parts.image_at(url):
            return found
        case _:
            return parts.opaque(raws[index])


def _reasoning(raw: bytes, tree: dict[str, Any]) -> Iterator[Part]:
    """Its summary and text; if there are none, the encrypted item unchanged."""
    texts = [
        text
        for name in ("summary", "content")
        for each in json_bytes.as_list(tree.get(name))
        if (text := json_bytes.as_text(json_bytes.as_object(each).get("text")))
    ]
    if texts:
        yield from map(parts.thinking, texts)
    else:
        yield Part(Kind.THINKING, raw, parts.JSON)


def _call(raw: bytes, tree: dict[str, Any], kind: str, calls: Calls) -> Part:
    given = tree.get(CALLS[kind])
    if given is None:
        return parts.opaque(raw)
    name = json_bytes.as_text(tree.get("name")) or kind.removesuffix("_call")
    id = json_bytes.as_text(tree.get("call_id"))
    if isinstance(given, str):
        media = "text/plain" if kind == "custom_tool_call" else parts.JSON
        return parts.call(name, id, json_bytes.encode_text(given), calls, media)
    return parts.call(name, id, json_bytes.member(raw, CALLS[kind]), calls)


def _output(raw: bytes, tree: dict[str, Any], calls: Calls) -> Iterator[Part]:
    id = json_bytes.as_text(tree.get("call_id")) or json_bytes.as_text(tree.get("id"))
    output = tree.get("output")
    if isinstance(output, str) or not output:
        yield parts.result(json_bytes.as_text(output), id, calls)
    elif isinstance(output, list):
        raws = json_bytes.Elements(raw, "output")
        for index, block in enumerate(output):
            part = _block(Role.TOOL, block, index, raws)
            is_text = part.kind is Kind.TOOL_RESULT
            yield (
                parts.result(part.content.decode(), id, calls)
                if is_text
                else parts.of_call(part, id, calls)
            )
    else:
        yield parts.of_call(parts.opaque(raw), id, calls)
