"""Cache marks of an Anthropic request: which ones the client set, and how ours are written.

A mark is only inserted: every byte of the client's stays, in its order. A text that is a string is
wrapped as the one text block that the provider takes it for.
"""

from __future__ import annotations

from dataclasses import replace

from hotset.dialects import change, envelope, json_bytes
from hotset.dialects.anthropic import rules
from hotset.dialects.json_bytes import JsonNode
from hotset.dialects.port import CacheMarking, ClientMarks
from hotset.errors import Malformed
from hotset.nouns.message import Message, Request, Span

_FIELD = "cache_control"
_MARKABLE = frozenset({"text", "image", "document", "tool_use", "tool_result"})
"""Blocks that may carry a mark: thinking may not, and a provider's own blocks stay as they are."""

_LASTING = b'"1h"'
_WRITTEN = {False: b'{"type":"ephemeral"}', True: b'{"type":"ephemeral","ttl":"1h"}'}

Edit = tuple[Span, bytes]


def read_marks(request: Request) -> ClientMarks:
    """The marks in a request as it goes out, without our tools."""
    if _FIELD.encode() not in request.raw:
        return ClientMarks()
    outer = envelope.open_envelope(request.raw, "messages")
    tools, system = (
        rules.count_marks(json_bytes.as_list(outer.tree(name)))
        if _FIELD.encode() in outer.raw(name)
        else 0
        for name in ("tools", "system")
    )
    inside = {
        index: facts.marks
        for index, facts in enumerate(rules.FACTS.of(request.messages))
        if facts.marks
    }
    automatic = json_bytes.as_object(change.params(request).get(_FIELD))
    lasting = {index: True for index in inside if _LASTING in request.messages[index].raw}
    if automatic:  # the provider moves it to the last block
        inside[len(request.messages)] = 1
        lasting |= {len(request.messages): True} if automatic.get("ttl") == "1h" else {}
    return ClientMarks(tools + system, inside, frozenset(lasting))


def mark_message(message: Message, *, lasting: bool) -> Message | None:
    """The message with a mark at its end; None if it cannot carry one."""
    try:
        content = json_bytes.node(message.raw).members().get("content")
        edits = _mark_content(content, lasting=lasting) if content is not None else None
    except Malformed:
        return None
    return replace(message, raw=json_bytes.splice(message.raw, edits)) if edits else None


def mark_fixed(body: bytes, *, lasting: bool) -> bytes:
    """The body with a mark behind its system text; without one, behind its last tool."""
    outer = envelope.open_envelope(body, "messages")
    fields = outer.fields
    try:
        system = JsonNode(body, fields["system"].value) if "system" in fields else None
        edits = _mark_content(system, lasting=lasting) if system is not None else None
        if edits is None and "tools" in fields:
            tools = JsonNode(body, fields["tools"].value).elements()
            edits = next(
                (_insert(each, lasting) for each in reversed(tools) if _is_tool(each)), None
            )
    except Malformed:
        return body
    return json_bytes.splice(body, edits) if edits else body


def lengthen_fixed(body: bytes) -> bytes:
    """The body with the longer time to live in the client's marks on its tools and system texts.
    All of them: a lasting mark may not come behind one that is not."""
    fields = envelope.open_envelope(body, "messages").fields
    try:
        blocks = [
            block
            for name in ("tools", "system")
            if name in fields
            for block in JsonNode(body, fields[name].value).elements()
        ]
        marks = [mark for block in blocks if (mark := block.members().get(_FIELD)) is not None]
    except Malformed:
        return body
    return json_bytes.splice(
        body, [(mark.span, _WRITTEN[True]) for mark in marks if mark.raw.startswith(b"{")]
    )


def _mark_content(content: JsonNode, *, lasting: bool) -> list[Edit] | None:
    """A mark on the last block that may carry one; the whole of a text."""
    if content.is_text:
        if not json_bytes.as_text(content.value()).strip():
            return None
        start, end = content.span.start, content.span.end
        behind = b',"%s":%s}]' % (_FIELD.encode(), _WRITTEN[lasting])
        return [(Span(start, start), b'[{"type":"text","text":'), (Span(end, end), behind)]
    blocks = content.elements()
    return _insert(blocks[-1], lasting) if blocks and _is_markable(blocks[-1]) else None


def _insert(block: JsonNode, lasting: bool) -> list[Edit]:
    end = block.span.end - 1
    return [(Span(end, end), b',"%s":%s' % (_FIELD.encode(), _WRITTEN[lasting]))]


def _is_markable(block: JsonNode) -> bool:
    members = block.members()
    kind = json_bytes.text_of(members, "type")
    if kind == "text" and not json_bytes.text_of(members, "text").strip():
        return False  # the provider refuses a mark on an empty text
    return kind in _MARKABLE and _FIELD not in members


def _is_tool(block: JsonNode) -> bool:
    members = block.members()
    is_own = json_bytes.text_of(members, "type") in ("", "custom")
    return bool(members) and is_own and not members.keys() & {_FIELD, "defer_loading"}


marking: CacheMarking | None = CacheMarking(
    rules.MAX_MARKS, read_marks, mark_message, mark_fixed, lengthen_fixed
)
