"""Saying something else in place of a part: the words change inside the message's bytes, and nothing around them does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec

from hotset.dialects import parts, wire
from hotset.dialects.kinds import kind_of_result
from hotset.dialects.node import Node, node
from hotset.dialects.splice import splice
from hotset.errors import Malformed
from hotset.nouns.message import Message, Part, Span
from hotset.nouns.page import Kind

_MARKS = ("cache_control", "prompt_cache_breakpoint")
"""What stays of a block that becomes a text: the client's word on where the provider's cache ends."""

_IN_RESULTS = frozenset({Kind.TOOL_RESULT, Kind.IMAGE, Kind.OPAQUE})
_KEPT = frozenset({Kind.SYSTEM, Kind.PROMPT, Kind.THINKING})
"""What a person said and what a model thought is never said otherwise."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a part's words stand in a message, and how other words are written there."""

    span: Span
    write: Callable[[bytes], bytes]
    before: bytes = b""
    after: bytes = b""
    """What comes with the words where the value around them has to be written too."""
    tool: str = ""
    """The name that the message itself gives to the tool whose result it is."""

    def edit(self, words: bytes) -> tuple[Span, bytes]:
        return self.span, self.before + self.write(words) + self.after


Slots = Callable[[Node], Iterator[Slot | None]]
"""A slot for each part of a message, in the order of its parts; None, or no more, where a part cannot be reworded."""


def reword(message: Message, words: Mapping[int, bytes], slots: Slots) -> Message:
    """The message with other words at these positions. Raises `ValueError` where a part cannot be reworded so."""
    if not words:
        return message
    try:
        found = _found(message, words, slots)
        edits = [found[position].edit(_trimmed(message.parts[position], new)) for position, new in words.items()]
    except Malformed as error:
        raise ValueError(f"it cannot be reworded: {error}") from None
    said = list(message.parts)
    for position, new in words.items():
        said[position] = _said(message, position, _trimmed(message.parts[position], new), found[position])
    return replace(message, raw=splice(message.raw, edits), parts=tuple(said))


def text(value: Node) -> Slot:
    """A value that is, or becomes, one text."""
    return Slot(value.span, _quoted)


def text_block(block: Node, kind: str = "text") -> Slot:
    """A block of any type that becomes a text in its place."""
    members = block.members()
    marks = b"".join(b',"%s":%s' % (name.encode(), members[name].raw) for name in _MARKS if name in members)
    return Slot(block.span, _quoted, b'{"type":"%s","text":' % kind.encode(), marks + b"}")


def text_member(owner: Node, name: str, value: Node | None) -> Slot:
    """A member of `owner`, which has others, that is or becomes one text."""
    if value is not None:
        return text(value)
    front = owner.span.start + 1
    return Slot(Span(front, front), _quoted, b'"%s":' % name.encode(), b",")


def arguments(value: Node) -> Slot:
    """A call's arguments: an object, or the text of one."""
    return Slot(value.span, _quoted_object if value.is_text else _object)


def given_object(value: Node) -> Slot:
    """A call's arguments where they must be an object, whatever stood there."""
    return Slot(value.span, _object)


def _found(message: Message, words: Mapping[int, bytes], slots: Slots) -> dict[int, Slot]:
    up_to_the_last = message.parts[: max(words) + 1]
    found = {
        position: slot
        for position, (part, slot) in enumerate(zip(up_to_the_last, slots(node(message.raw)), strict=False))
        if slot is not None and position in words and part.kind not in _KEPT
    }
    if missing := sorted(words.keys() - found.keys()):
        raise ValueError(f"these parts of the message cannot be reworded: {missing}")
    return found


def _trimmed(part: Part, words: bytes) -> bytes:
    """White space around a JSON document is not a part of it."""
    return words.strip() if part.kind.family is Kind.TOOL_CALL and part.media == parts.JSON else words


def _said(message: Message, position: int, words: bytes, slot: Slot) -> Part:
    part = message.parts[position]
    if part.kind.family not in _IN_RESULTS or part.media == "text/plain":
        return replace(part, content=words)
    tool = slot.tool or part.tool
    return Part(_kind_of_text(message, part, tool), words, tool=tool, call=part.call)


def _kind_of_text(message: Message, part: Part, tool: str) -> Kind:
    """What a text of the same result is called; its call's arguments, which could say more, stand in another message."""
    beside = (
        each.kind
        for each in message.parts
        if each.call == part.call and each.kind.family is Kind.TOOL_RESULT and each is not part
    )
    return next(beside, kind_of_result(tool, b""))


def _quoted(words: bytes) -> bytes:
    said = words.decode()
    if not said.strip():
        raise ValueError("a part cannot be reworded with nothing: providers refuse empty texts")
    return msgspec.json.encode(said)


def _object(words: bytes) -> bytes:
    if not isinstance(wire.decode(words, "a call's arguments"), dict):
        raise ValueError("a call's arguments must be a JSON object")  # noqa: TRY004 - the value is at fault, not its type
    return words


def _quoted_object(words: bytes) -> bytes:
    return _quoted(_object(words))
