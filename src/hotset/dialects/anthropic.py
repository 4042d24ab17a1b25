"""Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from hotset.dialects import anthropic_changes, anthropic_checks, anthropic_view, envelope, parts, rewording, wire
from hotset.dialects.anthropic_reply import document, mark, stream
from hotset.dialects.memo import Memo
from hotset.dialects.parts import Calls
from hotset.dialects.port import Violation
from hotset.dialects.reply import Mark, read
from hotset.dialects.view import View
from hotset.nouns.link import Link
from hotset.nouns.message import Answer, DialectName, Message, Part, Reply, Request, Span, Tool, ToolSpec
from hotset.nouns.page import Chain, Kind, Role
from hotset.nouns.window import Hidden

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
_ERRORS = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class Anthropic:
    name = DialectName.ANTHROPIC

    def __init__(self) -> None:
        self._memo = Memo()

    def parse(self, body: bytes) -> Request:
        outer = envelope.opened(body, "messages", self._memo)
        array, messages = envelope.messages_of(outer, "messages", _message, self._memo)
        return Request(
            dialect=self.name,
            raw=body,
            model=outer.text("model"),
            stream=outer.tree("stream") is True,
            messages=messages,
            array=array,
            system=tuple(_system(outer)),
            tools=outer.tools("tools", _tool_name),
            params=outer.params(without=("messages", "system", "tools")),
            previous=wire.as_text(wire.as_object(outer.tree("thread")).get("previous_message_id")),
            hints=_hints(outer),
        )

    def is_quick(self, body: bytes) -> bool:
        return self._memo.bodies.is_quick(body)

    def render(self, request: Request) -> bytes:
        return envelope.render(request)

    def read(self, body: bytes, *, streamed: bool) -> Reply:
        return read(body, _said, document, stream, streamed=streamed)

    def check(self, request: Request, original: Request | None = None) -> tuple[Violation, ...]:
        return anthropic_checks.check(request, original)

    def refuse(self, status: int, message: str) -> bytes:
        kind = _ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return wire.encode({"type": "error", "error": {"type": kind, "message": wire.encode_text(message).decode()}})

    def mark(self, name: str, data: bytes) -> Mark:
        return mark(name, data)

    def understand(self, raw: bytes) -> Message:
        return _said(raw)

    def reword(self, message: Message, words: Mapping[int, bytes]) -> Message:
        return rewording.reword(message, words, anthropic_changes.slots)

    def offer(self, body: bytes, tools: Sequence[ToolSpec]) -> bytes:
        return anthropic_changes.offer(body, tools)

    def withhold(self, body: bytes, unwanted: Callable[[bytes], bool]) -> bytes:
        return anthropic_changes.withhold(body, unwanted)

    def declared(self, tools: Sequence[ToolSpec]) -> tuple[Tool, ...]:
        return anthropic_changes.declared(tools)

    def injectable(self, request: Request, names: Collection[str]) -> bool:
        return anthropic_changes.injectable(request, names)

    def can_defer(self, request: Request) -> bool:
        return anthropic_changes.can_defer(request)

    def answer(self, results: Sequence[Answer]) -> tuple[bytes, ...]:
        return anthropic_changes.answer(results)

    def referred(self, raw: bytes) -> tuple[str, ...]:
        return anthropic_changes.referred(raw)

    def spelled_out(self, raw: bytes, words: Mapping[str, str]) -> bytes:
        return anthropic_changes.spelled_out(raw, words)

    def say(self, text: str) -> Message:
        return _said(anthropic_changes.say(text))

    def reveal(self, request: Request, links: Sequence[Link], hidden: Mapping[Chain, Hidden]) -> Request:
        return anthropic_changes.reveal(request, links, hidden, _said)

    def view(self, ours: Container[str], *, streamed: bool) -> View:
        return anthropic_view.view(ours, partial(self.read, streamed=streamed), self.refuse, streamed=streamed)


def _tool_name(tool: dict[str, Any]) -> str:
    return wire.as_text(tool.get("name")) or wire.as_text(tool.get("type"))


def _hints(outer: envelope.Envelope) -> tuple[str, ...]:
    user = wire.as_text(wire.as_object(outer.tree("metadata")).get("user_id"))
    return (f"user_id={user}",) if user else ()


def _system(outer: envelope.Envelope) -> Iterator[Part]:
    tree = outer.tree("system")
    if isinstance(tree, str):
        yield parts.text(Role.SYSTEM, tree)
    elif isinstance(tree, list):
        raws = wire.elements(outer.raw("system"), "system")
        for block, raw in zip(tree, raws, strict=True):
            said = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
            yield parts.text(Role.SYSTEM, said) if isinstance(said, str) else parts.opaque(bytes(raw))


def _said(raw: bytes) -> Message:
    """A message of a reply, read as if its client had sent it back."""
    return _message(raw, wire.as_object(wire.lenient(raw)), None, "reply", {})


def _message(raw: bytes, tree: dict[str, Any], span: Span | None, where: str, calls: Calls) -> Message:
    role = _ROLES.get(envelope.role_of(tree, where))
    if role is None:
        return parts.message(Role.USER, raw, [parts.opaque(raw)], span)
    content = tree.get("content")
    if isinstance(content, str):
        return parts.message(role, raw, [parts.text(role, content)], span)
    if content is not None and not isinstance(content, list):
        return parts.message(role, raw, [parts.opaque(raw)], span)
    raws = wire.Elements(raw, "content")
    found = [part for index, block in enumerate(content or []) for part in _block(role, block, index, raws, calls)]
    return parts.message(role, raw, found, span)


def _block(role: Role, block: Any, index: int, raws: wire.Elements, calls: Calls) -> Iterator[Part]:
    match block:
        case {"type": "text", "text": str(said)}:
            yield parts.text(role, said)
        case {"type": "thinking", "thinking": str(said)}:
            yield parts.thinking(said)
        case {"type": "thinking" | "redacted_thinking"}:
            yield Part(Kind.THINKING, raws[index], parts.JSON)
        case {"type": "tool_use", "name": str(name), "id": str(id), "input": _}:
            yield parts.call(name, id, wire.member(raws[index], "input"), calls)
        case {"type": "tool_result", "tool_use_id": str(id)}:
            yield from _result(block.get("content"), id, index, raws, calls)
        case {"type": "image", "source": dict(source)} if found := _image(source):
            yield found
        case _:
            yield parts.opaque(raws[index])


def _result(content: Any, id: str, index: int, raws: wire.Elements, calls: Calls) -> Iterator[Part]:
    if not content:
        yield parts.result("", id, calls)
    elif isinstance(content, str):
        yield parts.result(content, id, calls)
    elif isinstance(content, list):
        inner = wire.Elements(raws[index], "content")
        for number, block in enumerate(content):
            match block:
                case {"type": "text", "text": str(said)}:
                    yield parts.result(said, id, calls)
                case {"type": "image", "source": dict(source)} if found := _image(source):
                    yield parts.of_call(found, id, calls)
                case _:
                    yield parts.of_call(parts.opaque(inner[number]), id, calls)
    else:
        yield parts.of_call(parts.opaque(raws[index]), id, calls)


def _image(source: dict[str, Any]) -> Part | None:
    if source.get("type") == "url":
        return parts.image_at(source.get("url"))
    return parts.image(source.get("data"), source.get("media_type")) if source.get("type") == "base64" else None
