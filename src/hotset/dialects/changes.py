"""What is changed in a request alike in every dialect: tools offered, hidden turns spliced in again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from hotset.dialects import wire
from hotset.dialects.envelope import Envelope
from hotset.dialects.reply import Understand
from hotset.dialects.rewording import Slots, reword
from hotset.dialects.splice import elements, fields, splice
from hotset.nouns.link import Link
from hotset.nouns.message import Message, Part, Request, Span, Tool, ToolSpec
from hotset.nouns.page import Chain, Kind, Role
from hotset.nouns.window import Hidden

Form = Callable[[ToolSpec], dict[str, Any]]
"""A tool as the dialect writes it."""

_MOST_OF_OPENAI = 128  # tools; its own limit
_PROBE = 16  # tokens; a client that asks for so few wants to know whether the model answers, not what


def declared(tools: Iterable[ToolSpec], form: Form) -> tuple[Tool, ...]:
    return tuple(Tool(tool.name, wire.encode(form(tool))) for tool in tools)


def offer(outer: Envelope, tools: Sequence[Tool], declared: Iterable[str], *, before_last: bool = False) -> bytes:
    """The body with these tools among the client's, last or before its last. Unchanged where the client offers none.

    Raises `ValueError` where a name, `declared` by the client or among ours, would come twice.
    """
    if not tools or not outer.raw("tools").startswith(b"["):
        return outer.body
    _, theirs = outer.array("tools")
    if not theirs:
        return outer.body
    names = [*declared, *(tool.name for tool in tools)]
    if twice := {tool.name for tool in tools if names.count(tool.name) > 1}:
        raise ValueError(f"these tools would be offered twice: {', '.join(sorted(twice))}")
    ours = b",".join(tool.raw for tool in tools)
    last = theirs[-1]
    here, new = (last.start, ours + b",") if before_last else (last.end, b"," + ours)
    return splice(outer.body, [(Span(here, here), new)])


def withhold(outer: Envelope, unwanted: Callable[[bytes], bool]) -> tuple[bytes, ...] | None:
    """The client's tools without those that are unwanted, also in a namespace; None where none is."""
    if not outer.raw("tools").startswith(b"["):
        return None
    _, theirs = outer.array("tools")
    raws = [outer.body[span.start : span.end] for span in theirs]
    kept = [_wanted(raw, unwanted) for raw in raws]
    return tuple(filter(None, kept)) if kept != raws else None


def with_tools(outer: Envelope, raws: Iterable[bytes]) -> bytes:
    """The body with these tools in place of the client's list."""
    return splice(outer.body, [(outer.fields["tools"].value, b"[" + b",".join(raws) + b"]")])


def _wanted(raw: bytes, unwanted: Callable[[bytes], bool]) -> bytes:
    """The tool, or the namespace without the unwanted ones in it; empty where nothing stays."""
    if not unwanted(raw):
        return raw
    inner = fields(raw).get("tools")
    if inner is None or not raw.startswith(b"[", inner.value.start):
        return b""
    spans = elements(raw, inner.value, "tools")
    kept = [each for span in spans if not unwanted(each := raw[span.start : span.end])]
    return splice(raw, [(inner.value, b"[" + b",".join(kept) + b"]")]) if kept else b""


def schema(tool: ToolSpec) -> msgspec.Raw:
    """Its parameters, byte for byte."""
    return msgspec.Raw(tool.parameters)


def reveal(
    request: Request, links: Sequence[Link], hidden: Mapping[Chain, Hidden], understand: Understand, slots: Slots
) -> Request:
    """The request as the model saw it: what its client never saw stands again before, instead of and behind its messages."""
    if not any(link.chain in hidden for link in links):
        return request
    seen: list[Message] = []
    for link, message in zip(links, request.messages, strict=True):
        told = hidden.get(link.chain)
        if told is None:
            seen.append(message)
            continue
        place = len(seen) - min(told.asides, _reasoning_at_the_end(seen))
        seen[place:place] = map(understand, told.before)
        seen.append(_instead(message, link.message, understand(told.instead), slots) if told.instead else message)
        seen += map(understand, told.after)
    return replace(request, messages=tuple(seen))


def is_open(request: Request, names: Collection[str], limits: Sequence[str]) -> bool:
    """True where tools of these names can stand beside the client's, and its request is no probe; `limits` name the
    fields that bound the length of its reply."""
    if not request.tools or request.previous:
        return False
    fields = params(request)
    bounds = [bound for name in limits if isinstance(bound := fields.get(name), int)]
    theirs = {tool.name for tool in request.tools}
    return theirs.isdisjoint(names) and all(bound > _PROBE for bound in bounds)


def openai_is_open(request: Request, names: Collection[str], limits: Sequence[str]) -> bool:
    choice = params(request).get("tool_choice")
    if choice == "none" or isinstance(choice, dict):  # an object names the tools that may be called, and ours are not among them
        return False
    return len(request.tools) + len(names) <= _MOST_OF_OPENAI and is_open(request, names, limits)


def params(request: Request) -> dict[str, Any]:
    return wire.as_object(wire.decode(request.params, "the parameters"))


def is_structured(form: Any) -> bool:
    """True where the reply is asked for in a form that a program will read."""
    return bool(wire.as_object(form).get("type", "text") != "text")


def plain(text: str) -> str:
    """The text, with a mark in place of what is no character."""
    return wire.encode_text(text).decode()


def spoken(text: str) -> str:
    """The same, for a message of its own. Raises `ValueError` where there is nothing to say."""
    if not text.strip():
        raise ValueError("a message that says nothing is refused by providers")
    return plain(text)


def _instead(message: Message, was: Message, seen: Message, slots: Slots) -> Message:
    """What the model saw at a message's place, with the words that the message got meanwhile; whose it is stays the client's."""
    words: dict[int, bytes] = {}
    for before, now in zip(was.parts, message.parts, strict=True):
        if now.content != before.content:
            place = next((place for place, part in enumerate(seen.parts) if _is_same(part, before)), None)
            words |= {place: now.content} if place is not None else {}
    said = reword(seen, words, slots)
    return replace(message, raw=said.raw, parts=said.parts)


def _is_same(part: Part, other: Part) -> bool:
    if part.kind.family is Kind.TOOL_CALL and part.call:
        return (other.kind.family, other.call) == (Kind.TOOL_CALL, part.call)  # a client may spell its arguments otherwise
    return part == other


def _reasoning_at_the_end(messages: Sequence[Message]) -> int:
    count = 0
    for message in reversed(messages):
        if not message.aside or message.role is not Role.ASSISTANT:
            break
        count += 1
    return count
