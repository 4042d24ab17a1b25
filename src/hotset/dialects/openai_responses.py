"""OpenAI's Responses API: the conversation is a list of items."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from hotset.dialects import (
    changes,
    envelope,
    openai_checks,
    openai_responses_changes,
    openai_responses_view,
    parts,
    rewording,
    wire,
)
from hotset.dialects.memo import Memo
from hotset.dialects.openai_responses_changes import CALLS
from hotset.dialects.openai_responses_reply import document, mark, stream
from hotset.dialects.parts import Calls
from hotset.dialects.port import Violation
from hotset.dialects.reply import Mark, openai_refusal, read
from hotset.dialects.splice import splice
from hotset.dialects.view import View
from hotset.errors import Malformed
from hotset.nouns.link import Link
from hotset.nouns.message import Answer, DialectName, Message, Part, Reply, Request, Span, Tool, ToolSpec
from hotset.nouns.page import Chain, Kind, Role
from hotset.nouns.window import Hidden

_ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT}
_CONTINUES = ("previous_response_id", "conversation", "prompt")
"""A request may leave `input` out where one of these says what to go on from."""


class OpenAIResponses:
    name = DialectName.OPENAI_RESPONSES

    def __init__(self) -> None:
        self._memo = Memo()

    def parse(self, body: bytes) -> Request:
        outer = envelope.opened(body, "input", self._memo)
        array, messages = _input(outer, self._memo)
        return Request(
            dialect=self.name,
            raw=body,
            model=outer.text("model"),
            stream=outer.tree("stream") is True,
            messages=messages,
            array=array,
            system=tuple(_instructions(outer)),
            tools=outer.tools("tools", _tool_name),
            params=outer.params(without=("input", "instructions", "tools")),
            previous=outer.text("previous_response_id"),
            hints=(*outer.hints("prompt_cache_key", "safety_identifier", "user"), *_conversation(outer)),
        )

    def is_quick(self, body: bytes) -> bool:
        return self._memo.bodies.is_quick(body)

    def render(self, request: Request) -> bytes:
        if request.array.start == request.array.end and request.messages:
            # There was no `input`: it becomes the first field.
            comma = b"" if request.raw[request.array.end :].lstrip().startswith(b"}") else b","
            items = b",".join(_element(each.raw) for each in request.messages)
            return splice(request.raw, [(request.array, b'"input":[' + items + b"]" + comma)])
        return envelope.render(request, _element)

    def read(self, body: bytes, *, streamed: bool) -> Reply:
        return read(body, _said, document, stream, streamed=streamed)

    def check(self, request: Request, original: Request | None = None) -> tuple[Violation, ...]:
        return openai_checks.check_responses(request, original)

    def refuse(self, status: int, message: str) -> bytes:
        return openai_refusal(status, message)

    def mark(self, name: str, data: bytes) -> Mark:
        return mark(name, data)

    def understand(self, raw: bytes) -> Message:
        return _said(raw)

    def reword(self, message: Message, words: Mapping[int, bytes]) -> Message:
        return rewording.reword(message, words, openai_responses_changes.slots)

    def offer(self, body: bytes, tools: Sequence[ToolSpec]) -> bytes:
        return openai_responses_changes.offer(body, tools)

    def withhold(self, body: bytes, unwanted: Callable[[bytes], bool]) -> bytes:
        return openai_responses_changes.withhold(body, unwanted)

    def declared(self, tools: Sequence[ToolSpec]) -> tuple[Tool, ...]:
        return openai_responses_changes.declared(tools)

    def injectable(self, request: Request, names: Collection[str]) -> bool:
        return openai_responses_changes.injectable(request, names)

    def can_defer(self, request: Request) -> bool:
        return openai_responses_changes.can_defer(request)

    def answer(self, results: Sequence[Answer]) -> tuple[bytes, ...]:
        return openai_responses_changes.answer(results)

    def referred(self, raw: bytes) -> tuple[str, ...]:
        return openai_responses_changes.referred(raw)

    def spelled_out(self, raw: bytes, words: Mapping[str, str]) -> bytes:
        return openai_responses_changes.spelled_out(raw, words)

    def say(self, text: str) -> Message:
        return _said(openai_responses_changes.say(text))

    def reveal(self, request: Request, links: Sequence[Link], hidden: Mapping[Chain, Hidden]) -> Request:
        return changes.reveal(request, links, hidden, _said, openai_responses_changes.slots)

    def view(self, ours: Container[str], *, streamed: bool) -> View:
        return openai_responses_view.view(ours, partial(self.read, streamed=streamed), self.refuse, streamed=streamed)


def _tool_name(tool: dict[str, Any]) -> str:
    return wire.as_text(tool.get("name")) or wire.as_text(tool.get("type"))


def _input(outer: envelope.Envelope, memo: Memo) -> tuple[Span, tuple[Message, ...]]:
    field = outer.fields.get("input")
    if field is None:
        if not any(outer.tree(name) for name in _CONTINUES):
            raise Malformed("the body has no 'input'")
        start = outer.body.index(b"{") + 1
        return Span(start, start), ()
    if outer.body.startswith(b'"', field.value.start):
        raw = outer.raw("input")
        said = parts.text(Role.USER, wire.as_text(wire.decode(raw, "input")))
        return field.value, (parts.message(Role.USER, raw, [said], field.value),)
    return envelope.messages_of(outer, "input", _item, memo)


def _element(raw: bytes) -> bytes:
    """A whole input that is one string, as an element of a list."""
    return b'{"role":"user","content":' + raw + b"}" if raw.startswith(b'"') else raw


def _instructions(outer: envelope.Envelope) -> Iterator[Part]:
    tree = outer.tree("instructions")
    if isinstance(tree, str):
        yield parts.text(Role.SYSTEM, tree)
    elif tree is not None:
        yield parts.opaque(outer.raw("instructions"))


def _conversation(outer: envelope.Envelope) -> tuple[str, ...]:
    tree = outer.tree("conversation")
    id = tree if isinstance(tree, str) else wire.as_text(wire.as_object(tree).get("id"))
    return (f"conversation={id}",) if id else ()


def _said(raw: bytes) -> Message:
    """A message of a reply, read as if its client had sent it back."""
    return _item(raw, wire.as_object(wire.lenient(raw)), None, "reply", {})


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
    role = _ROLES.get(wire.as_text(tree.get("role")), Role.ASSISTANT)
    return parts.message(role, raw, [parts.opaque(raw, wire.as_text(tree.get("call_id")))], span)


def _message(raw: bytes, tree: dict[str, Any], span: Span | None, where: str) -> Message:
    role = _ROLES.get(envelope.role_of(tree, where))
    content = tree.get("content")
    if role is None or not isinstance(content, str | list | None):
        return parts.message(role or Role.USER, raw, [parts.opaque(raw)], span)
    if isinstance(content, str):
        return parts.message(role, raw, [parts.text(role, content)], span)
    raws = wire.Elements(raw, "content")
    return parts.message(role, raw, [_block(role, block, index, raws) for index, block in enumerate(content or [])], span)


def _block(role: Role, block: Any, index: int, raws: wire.Elements) -> Part:
    match block:
        case {"type": "input_text" | "output_text" | "text", "text": str(said)} | {"type": "refusal", "refusal": str(said)}:
            return parts.text(role, said)
        case {"type": "input_image", "image_url": str(url)} if found := parts.image_at(url):
            return found
        case _:
            return parts.opaque(raws[index])


def _reasoning(raw: bytes, tree: dict[str, Any]) -> Iterator[Part]:
    """Its summary and text; where there are none, the item as it is: encrypted."""
    said = [
        text
        for name in ("summary", "content")
        for each in wire.as_list(tree.get(name))
        if (text := wire.as_text(wire.as_object(each).get("text")))
    ]
    if said:
        yield from map(parts.thinking, said)
    else:
        yield Part(Kind.THINKING, raw, parts.JSON)


def _call(raw: bytes, tree: dict[str, Any], kind: str, calls: Calls) -> Part:
    given = tree.get(CALLS[kind])
    if given is None:
        return parts.opaque(raw)
    name = wire.as_text(tree.get("name")) or kind.removesuffix("_call")
    id = wire.as_text(tree.get("call_id"))
    if isinstance(given, str):
        media = "text/plain" if kind == "custom_tool_call" else parts.JSON
        return parts.call(name, id, wire.encode_text(given), calls, media)
    return parts.call(name, id, wire.member(raw, CALLS[kind]), calls)


def _output(raw: bytes, tree: dict[str, Any], calls: Calls) -> Iterator[Part]:
    id = wire.as_text(tree.get("call_id")) or wire.as_text(tree.get("id"))
    output = tree.get("output")
    if isinstance(output, str) or not output:
        yield parts.result(wire.as_text(output), id, calls)
    elif isinstance(output, list):
        raws = wire.Elements(raw, "output")
        for index, block in enumerate(output):
            part = _block(Role.TOOL, block, index, raws)
            is_text = part.kind is Kind.TOOL_RESULT
            yield parts.result(part.content.decode(), id, calls) if is_text else parts.of_call(part, id, calls)
    else:
        yield parts.of_call(parts.opaque(raw), id, calls)
