"""The parts of a message that look alike in every dialect: texts, images, calls, results, and what is not known."""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hotset.dialects import wire
from hotset.dialects.essence import essence
from hotset.dialects.kinds import kind_of_call, kind_of_result
from hotset.nouns.message import Message, Part, Span
from hotset.nouns.page import Kind, Role

JSON = "application/json"
URI = "text/uri-list"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that came earlier in the same request: its result is told by it."""

    tool: str
    arguments: bytes


Calls = dict[str, Call]

UNKNOWN = Call("", b"")

_TEXT_KINDS = {Role.SYSTEM: Kind.SYSTEM, Role.USER: Kind.PROMPT, Role.ASSISTANT: Kind.RESPONSE, Role.TOOL: Kind.TOOL_RESULT}


def message(role: Role, raw: bytes, parts: Sequence[Part], span: Span | None, *, aside: bool = False) -> Message:
    return Message(role, raw, tuple(parts), essence(role, parts), aside or role is Role.SYSTEM, span)


def text(role: Role, said: str) -> Part:
    return Part(_TEXT_KINDS[role], wire.encode_text(said))


def thinking(said: str) -> Part:
    return Part(Kind.THINKING, wire.encode_text(said))


def opaque(raw: bytes, call: str = "") -> Part:
    return Part(Kind.OPAQUE, raw, JSON, call=call)


def call(tool: str, id: str, arguments: bytes, calls: Calls, media: str = JSON) -> Part:
    if id:
        calls[id] = Call(tool, arguments)
    return Part(kind_of_call(tool), arguments, media, tool, id)


def result(said: str, id: str, calls: Calls, tool: str = "") -> Part:
    known = calls.get(id, UNKNOWN)
    tool = tool or known.tool
    return Part(kind_of_result(tool, known.arguments), wire.encode_text(said), tool=tool, call=id)


def of_call(part: Part, id: str, calls: Calls) -> Part:
    """The same part, as something that the call `id` brought."""
    return Part(part.kind, part.content, part.media, calls.get(id, UNKNOWN).tool, id)


def image(data: Any, media: Any) -> Part | None:
    """An image from its base64, or None where it is none."""
    if not isinstance(data, str) or not isinstance(media, str):
        return None
    try:
        return Part(Kind.IMAGE, binascii.a2b_base64(data), media)
    except ValueError:
        return None


def image_at(url: Any) -> Part | None:
    """An image from its URL; a `data:` URL carries it inside."""
    if not isinstance(url, str) or not url:
        return None
    if not url.startswith("data:"):
        return Part(Kind.IMAGE, wire.encode_text(url), URI)
    head, comma, data = url[5:].partition(",")
    media, *traits = head.split(";")
    return image(data, media or "application/octet-stream") if comma and "base64" in traits else None
