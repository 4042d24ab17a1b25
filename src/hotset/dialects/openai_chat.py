"""OpenAI's Chat Completions API, which many providers speak."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from hotset.dialects import changes, envelope, openai_chat_changes, openai_chat_view, openai_checks, parts, rewording, wire
from hotset.dialects.memo import Memo
from hotset.dialects.openai_chat_reply import document, mark, stream
from hotset.dialects.parts import Calls
from hotset.dialects.port import Violation
from hotset.dialects.reply import Mark, openai_refusal, read
from hotset.dialects.view import View
from hotset.nouns.link import Link
from hotset.nouns.message import Answer, DialectName, Message, Part, Reply, Request, Span, Tool, ToolSpec
from hotset.nouns.page import Chain, Kind, Role
from hotset.nouns.window import Hidden

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}


class OpenAIChat:
    name = DialectName.OPENAI_CHAT

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
            tools=(*outer.tools("tools", _tool_name), *outer.tools("functions", _tool_name)),
            params=outer.params(without=("messages", "tools", "functions")),
            hints=outer.hints("prompt_cache_key", "safety_identifier", "user"),
        )

    def is_quick(self, body: bytes) -> bool:
        return self._memo.bodies.is_quick(body)

    def render(self, request: Request) -> bytes:
        return envelope.render(request)

    def read(self, body: bytes, *, streamed: bool) -> Reply:
        return read(body, _said, document, stream, streamed=streamed)

    def check(self, request: Request, original: Request | None = None) -> tuple[Violation, ...]:
        return openai_checks.check_chat(request, original)

    def refuse(self, status: int, message: str) -> bytes:
        return openai_refusal(status, message)

    def mark(self, name: str, data: bytes) -> Mark:
        return mark(name, data)

    def understand(self, raw: bytes) -> Message:
        return _said(raw)

    def reword(self, message: Message, words: Mapping[int, bytes]) -> Message:
        return rewording.reword(message, words, openai_chat_changes.slots)

    def offer(self, body: bytes, tools: Sequence[ToolSpec]) -> bytes:
        return openai_chat_changes.offer(body, tools)

    def withhold(self, body: bytes, unwanted: Callable[[bytes], bool]) -> bytes:
        return openai_chat_changes.withhold(body, unwanted)

    def declared(self, tools: Sequence[ToolSpec]) -> tuple[Tool, ...]:
        return openai_chat_changes.declared(tools)

    def injectable(self, request: Request, names: Collection[str]) -> bool:
        return openai_chat_changes.injectable(request, names)

    def can_defer(self, request: Request) -> bool:
        del request
        return False  # the dialect has no form for it

    def answer(self, results: Sequence[Answer]) -> tuple[bytes, ...]:
        return openai_chat_changes.answer(results)

    def referred(self, raw: bytes) -> tuple[str, ...]:
        del raw
        return ()

    def spelled_out(self, raw: bytes, words: Mapping[str, str]) -> bytes:
        del words
        return raw

    def say(self, text: str) -> Message:
        return _said(openai_chat_changes.say(text))

    def reveal(self, request: Request, links: Sequence[Link], hidden: Mapping[Chain, Hidden]) -> Request:
        return changes.reveal(request, links, hidden, _said, openai_chat_changes.slots)

    def view(self, ours: Container[str], *, streamed: bool) -> View:
        return openai_chat_view.view(ours, partial(self.read, streamed=streamed), self.refuse, streamed=streamed)


def _tool_name(tool: dict[str, Any]) -> str:
    inner = tool.get("function") or tool.get("custom") or tool
    return wire.as_text(wire.as_object(inner).get("name")) or wire.as_text(tool.get("type"))


def _said(raw: bytes) -> Message:
    """A message of a reply, read as if its client had sent it back."""
    return _message(raw, wire.as_object(wire.lenient(raw)), None, "reply", {})


def _message(raw: bytes, tree: dict[str, Any], span: Span | None, where: str, calls: Calls) -> Message:
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
        raws = wire.Elements(raw, "content")
        for index, block in enumerate(content):
            yield _block(role, block, index, raws)
    elif content is not None:
        yield parts.opaque(wire.member(raw, "content"))
    refusal = tree.get("refusal")
    if isinstance(refusal, str):
        yield parts.text(role, refusal)
    if isinstance(tree.get("audio"), dict):
        yield parts.opaque(wire.member(raw, "audio"))


def _block(role: Role, block: Any, index: int, raws: wire.Elements) -> Part:
    match block:
        case str(said) | {"type": "text", "text": str(said)} | {"type": "refusal", "refusal": str(said)}:
            return parts.text(role, said)
        case {"type": "thinking", "thinking": str(said)}:
            return parts.thinking(said)
        case {"type": "image_url", "image_url": {"url": str(url)} | str(url)} if found := parts.image_at(url):
            return found
        case _:
            return parts.opaque(raws[index])


def _thoughts(raw: bytes, tree: dict[str, Any]) -> Iterator[Part]:
    name = next((name for name in openai_chat_changes.THOUGHTS if tree.get(name)), "")
    if not name:
        return
    said = tree[name]
    yield parts.thinking(said) if isinstance(said, str) else Part(Kind.THINKING, wire.member(raw, name), parts.JSON)


def _calls(raw: bytes, tree: dict[str, Any], calls: Calls) -> Iterator[Part]:
    raws = wire.Elements(raw, "tool_calls")
    for index, call in enumerate(wire.as_list(tree.get("tool_calls"))):
        match call:
            case {"function": {"name": str(name), "arguments": str(arguments)}}:
                yield parts.call(name, wire.as_text(call.get("id")), wire.encode_text(arguments), calls)
            case {"custom": {"name": str(name), "input": str(given)}}:
                yield parts.call(name, wire.as_text(call.get("id")), wire.encode_text(given), calls, "text/plain")
            case _:
                yield parts.opaque(raws[index])
    match tree.get("function_call"):
        case {"name": str(name), "arguments": str(arguments)}:
            # A legacy call has no id: its result names the function.
            part = parts.call(name, name, wire.encode_text(arguments), calls)
            yield Part(part.kind, part.content, part.media, part.tool)
        case dict():
            yield parts.opaque(wire.member(raw, "function_call"))


def _result(raw: bytes, tree: dict[str, Any], calls: Calls) -> Iterator[Part]:
    tool = wire.as_text(tree.get("name"))
    id = wire.as_text(tree.get("tool_call_id"))
    content = tree.get("content")
    known = calls if id else {"": calls[tool]} if tool in calls else calls
    if content is None or isinstance(content, str):
        yield parts.result(content or "", id, known, tool)
    elif isinstance(content, list):
        raws = wire.Elements(raw, "content")
        for index, block in enumerate(content):
            part = _block(Role.TOOL, block, index, raws)
            is_text = part.kind is Kind.TOOL_RESULT
            yield parts.result(part.content.decode(), id, known, tool) if is_text else parts.of_call(part, id, known)
        if not content:
            yield parts.result("", id, known, tool)
    else:
        yield parts.of_call(parts.opaque(wire.member(raw, "content")), id, known)
