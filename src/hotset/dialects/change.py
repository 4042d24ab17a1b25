"""Changes that work alike in every dialect: reword a part, offer or withhold tools, splice hidden
turns in again.

All bytes around a change stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import msgspec

from hotset.dialects import json_bytes, parts
from hotset.dialects.envelope import Envelope
from hotset.dialects.json_bytes import JsonNode
from hotset.dialects.port import Dialect
from hotset.errors import Malformed
from hotset.nouns.link import Link
from hotset.nouns.message import ClientTool, Message, Part, Request, Span, ToolSpec
from hotset.nouns.page import Chain, Kind, Role
from hotset.nouns.window import Hidden

_MARKS = ("cache_control", "prompt_cache_breakpoint")
"""Members that stay when a block becomes a text: they mark where the client wants the provider's
cache to end."""

_IN_RESULTS = frozenset({Kind.TOOL_RESULT, Kind.IMAGE, Kind.OPAQUE})
_KEPT = frozenset({Kind.SYSTEM, Kind.PROMPT, Kind.THINKING})
"""A person's text and a model's thinking are never reworded."""

_PROBE = 16  # tokens; a client that asks for so few is only testing whether the model answers


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a part's content in a message, and how other content is written there."""

    span: Span
    write: Callable[[bytes], bytes]
    tool: str = ""
    """For a tool's result, the tool's name as the message gives it."""


Slots = Callable[[JsonNode], Iterator[Slot | None]]
"""Yields a slot for each part of a message, in order; None, or no more, if a part cannot be
reworded."""


def reword(message: Message, words: Mapping[int, bytes], slots: Slots) -> Message:
    """The message with other words at these positions. Raises `ValueError` if a part cannot be
    reworded."""
    if not words:
        return message
    new_parts, edits = list(message.parts), []
    try:
        found = _find_slots(message, words, slots)
        for position, new in words.items():
            part, slot = message.parts[position], found[position]
            is_json = part.kind.family is Kind.TOOL_CALL and part.media == parts.JSON
            # White space around a JSON document is not a part of it.
            trimmed = new.strip() if is_json else new
            edits.append((slot.span, slot.write(trimmed)))
            new_parts[position] = _reworded_part(message, part, trimmed, slot.tool)
    except Malformed as error:
        raise ValueError(f"it cannot be reworded: {error}") from None
    return replace(message, raw=json_bytes.splice(message.raw, edits), parts=tuple(new_parts))


def text(value: JsonNode) -> Slot:
    """Slot for a value that is, or becomes, one text."""
    return Slot(value.span, _encode_text)


def text_block(block: JsonNode, kind: str = "text") -> Slot:
    """Slot for a block of any type that becomes a text in its place."""
    members = block.members()
    marks = b"".join(
        b',"%s":%s' % (name.encode(), members[name].raw) for name in _MARKS if name in members
    )
    return Slot(
        block.span,
        lambda words: b'{"type":"%s","text":%s%s}' % (kind.encode(), _encode_text(words), marks),
    )


def text_member(owner: JsonNode, name: str, value: JsonNode | None) -> Slot:
    """Slot for a member of `owner`, which has others, that is or becomes one text."""
    front = owner.span.start + 1
    return (
        text(value)
        if value
        else Slot(
            Span(front, front), lambda words: b'"%s":%s,' % (name.encode(), _encode_text(words))
        )
    )


def arguments(value: JsonNode) -> Slot:
    """Slot for a call's arguments: an object, or the text of one."""
    return (
        Slot(value.span, lambda words: _encode_text(_object(words)))
        if value.is_text
        else given_object(value)
    )


def given_object(value: JsonNode) -> Slot:
    """Slot for a call's arguments that must be an object."""
    return Slot(value.span, _object)


def _find_slots(message: Message, words: Mapping[int, bytes], slots: Slots) -> dict[int, Slot]:
    up_to_the_last = message.parts[: max(words) + 1]
    found = {
        position: slot
        for position, (part, slot) in enumerate(
            zip(up_to_the_last, slots(json_bytes.node(message.raw)), strict=False)
        )
        if slot is not None and position in words and part.kind not in _KEPT
    }
    if missing := sorted(words.keys() - found.keys()):
        raise ValueError(f"these parts of the message cannot be reworded: {missing}")
    return found


def _reworded_part(message: Message, part: Part, words: bytes, tool: str) -> Part:
    if part.kind.family not in _IN_RESULTS or part.media == "text/plain":
        return replace(part, content=words)
    tool = tool or part.tool
    # It gets the kind of a text of the same result: its call's arguments are in another message.
    others = (each for each in message.parts if each is not part and each.call == part.call)
    beside = (each.kind for each in others if each.kind.family is Kind.TOOL_RESULT)
    return Part(next(beside, parts.kind_of_result(tool, b"")), words, tool=tool, call=part.call)


def _encode_text(words: bytes) -> bytes:
    text = words.decode()
    if not text.strip():
        raise ValueError("a part cannot be reworded with nothing: providers refuse empty texts")
    return json_bytes.encode(text)


def _object(words: bytes) -> bytes:
    if not isinstance(json_bytes.decode(words, "a call's arguments"), dict):
        raise ValueError("a call's arguments must be a JSON object")  # noqa: TRY004 - the value is at fault, not its type
    return words


def declare(
    tools: Iterable[ToolSpec], form: Callable[[ToolSpec], dict[str, Any]]
) -> tuple[ClientTool, ...]:
    """The tools as `form` writes them in the dialect."""
    return tuple(ClientTool(tool.name, json_bytes.encode(form(tool))) for tool in tools)


def offer(
    outer: Envelope,
    tools: Sequence[ClientTool],
    declared: Iterable[str],
    *,
    before_last: bool = False,
) -> bytes:
    """The body with these tools added to the client's, last or before its last; as its only ones
    if it has none.

    Raises `ValueError` if a name, `declared` by the client or among ours, would occur twice.
    """
    if not tools:
        return outer.body
    theirs = outer.array("tools")[1] if outer.raw("tools").startswith(b"[") else ()
    names = [*declared, *(tool.name for tool in tools)]
    if twice := {tool.name for tool in tools if names.count(tool.name) > 1}:
        raise ValueError(f"these tools would be offered twice: {', '.join(sorted(twice))}")
    ours = b",".join(tool.raw for tool in tools)
    if not theirs:
        return _with_field(outer, "tools", b"[" + ours + b"]")
    here, new = (theirs[-1].start, ours + b",") if before_last else (theirs[-1].end, b"," + ours)
    return json_bytes.splice(outer.body, [(Span(here, here), new)])


def _with_field(outer: Envelope, name: str, value: bytes) -> bytes:
    """The body with this field: with another value, or added behind all others."""
    if (field := outer.fields.get(name)) is not None:
        return json_bytes.splice(outer.body, [(field.value, value)])
    end = outer.body.rstrip().rfind(b"}")
    new = b"," + json_bytes.encode(name) + b":" + value
    return json_bytes.splice(outer.body, [(Span(end, end), new)])


def withhold(
    outer: Envelope,
    unwanted: Callable[[bytes], bool],
    finish: Callable[[list[bytes]], list[bytes]] = list,
) -> bytes:
    """The body without the client's unwanted tools, also inside namespaces. `finish` post-processes
    the tools that are left."""
    if not outer.raw("tools").startswith(b"["):
        return outer.body
    raws = [outer.body[span.start : span.end] for span in outer.array("tools")[1]]
    kept = [_filter_tool(raw, unwanted) for raw in raws]
    if kept == raws:
        return outer.body
    return json_bytes.splice(
        outer.body,
        [(outer.fields["tools"].value, json_bytes.array_of(finish(list(filter(None, kept)))))],
    )


def _filter_tool(raw: bytes, unwanted: Callable[[bytes], bool]) -> bytes:
    """The tool, or the namespace without its unwanted tools; empty if nothing is left."""
    if not unwanted(raw):
        return raw
    inner = json_bytes.fields(raw).get("tools")
    if inner is None or not raw.startswith(b"[", inner.value.start):
        return b""
    spans = json_bytes.element_spans(raw, inner.value, "tools")
    kept = [each for span in spans if not unwanted(each := raw[span.start : span.end])]
    return json_bytes.splice(raw, [(inner.value, json_bytes.array_of(kept))]) if kept else b""


def schema(tool: ToolSpec) -> msgspec.Raw:
    """The tool's parameters, byte for byte."""
    return msgspec.Raw(tool.parameters)


def reveal(
    request: Request,
    links: Sequence[Link],
    hidden: Mapping[Chain, Hidden],
    understand: Callable[[bytes], Message],
    slots: Slots,
) -> Request:
    """The request as the model saw it, with hidden messages restored before, instead of and after
    the client's."""
    if not any(link.chain in hidden for link in links):
        return request
    seen: list[Message] = []
    for link, message in zip(links, request.messages, strict=True):
        kept = hidden.get(link.chain)
        if kept is None:
            seen.append(message)
            continue
        place = len(seen) - min(kept.asides, _reasoning_at_the_end(seen))
        seen[place:place] = map(understand, kept.before)
        seen.append(
            _restore_message(message, link.message, understand(kept.instead), slots)
            if kept.instead
            else message
        )
        seen += map(understand, kept.after)
    return replace(request, messages=tuple(seen))


def resume(request: Request, dialect: Dialect, previous: str, before: Sequence[bytes]) -> bytes:
    """The body of a request that continues another reply, with these messages before the client's
    own. Nothing else changes."""
    messages = tuple(dialect.understand(raw) for raw in before)
    body = (
        dialect.render(replace(request, messages=(*messages, *request.messages)))
        if messages
        else request.raw
    )
    return json_bytes.splice(
        body, [(json_bytes.fields(body)[dialect.previous_field].value, json_bytes.encode(previous))]
    )


def is_open(request: Request, names: Collection[str], limits: Sequence[str]) -> bool:
    """True if tools with these names can be added to the client's and its request is not a probe;
    `limits` are the fields that limit the length of its reply.

    A request without tools takes them if it is a conversation: one prompt alone may be a program's,
    whose answer must stay what it is.
    """
    fields = params(request)
    bounds = [bound for name in limits if isinstance(bound := fields.get(name), int)]
    can_call = bool(request.tools) or is_talk(request)
    has_room = can_call and not request.previous and all(bound > _PROBE for bound in bounds)
    return has_room and {tool.name for tool in request.tools}.isdisjoint(names)


def is_talk(request: Request) -> bool:
    """True for a conversation whose client has no tools and says nothing about any."""
    has_reply = any(message.role is Role.ASSISTANT for message in request.messages)
    named = params(request).keys() & {"tools", "functions", "tool_choice", "function_call"}
    return has_reply and not request.tools and not named


def params(request: Request) -> dict[str, Any]:
    return json_bytes.as_object(json_bytes.decode(request.params, "the parameters"))


def is_structured(form: Any) -> bool:
    """True if the reply is requested in a form that a program reads."""
    return bool(json_bytes.as_object(form).get("type", "text") != "text")


def plain(text: str) -> str:
    """The text with invalid characters replaced."""
    return json_bytes.encode_text(text).decode()


def user_message(text: str) -> bytes:
    """A user message, which every dialect writes alike. Raises `ValueError` for an empty text."""
    if not text.strip():
        raise ValueError("a message that says nothing is refused by providers")
    return json_bytes.encode({"role": "user", "content": plain(text)})


def _restore_message(message: Message, was: Message, seen: Message, slots: Slots) -> Message:
    """The message that the model saw in place of the client's, with the client's rewordings since;
    identity stays the client's."""
    words: dict[int, bytes] = {}
    for before, now in zip(was.parts, message.parts, strict=True):
        if now.content != before.content:
            place = next(
                (place for place, part in enumerate(seen.parts) if _is_same(part, before)), None
            )
            words |= {place: now.content} if place is not None else {}
    reworded = reword(seen, words, slots)
    return replace(message, raw=reworded.raw, parts=reworded.parts)


def _is_same(part: Part, other: Part) -> bool:
    if part.kind.family is Kind.TOOL_CALL and part.call:
        return (other.kind.family, other.call) == (
            Kind.TOOL_CALL,
            part.call,
        )  # a client may spell its arguments differently
    return part == other


def _reasoning_at_the_end(messages: Sequence[Message]) -> int:
    is_reasoning = (
        message.aside and message.role is Role.ASSISTANT for message in reversed(messages)
    )
    return sum(1 for _ in takewhile(bool, is_reasoning))
