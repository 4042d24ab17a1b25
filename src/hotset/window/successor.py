"""The successor of a conversation: a request whose client no longer sends what was before, because
it was compacted or cleared. One reference stands for all of that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from hotset.nouns.link import Link
from hotset.nouns.message import Message
from hotset.nouns.page import Chain, Kind, Role
from hotset.nouns.window import PageTable, Stub
from hotset.text.client_marks import (
    COMPACTION_ITEMS,
    ClientMark,
    ContextChange,
    MarkPlace,
    mark_at,
)
from hotset.text.clip import clip
from hotset.typed import decode
from hotset.window.leave import reference

_PLACES = {
    Role.USER: (MarkPlace.USER, Kind.PROMPT),
    Role.ASSISTANT: (MarkPlace.ASSISTANT, Kind.RESPONSE),
}
_HEADINGS = {
    ContextChange.COMPACTED: "[hotset: the client compacted this conversation; all of it is kept]",
    ContextChange.CLEARED: (
        "[hotset: the user began anew; what was before is kept, for when they refer to it]"
    ),
}
_OTHERS = "Whole turns: "


@dataclass(frozen=True, slots=True)
class ContextCut:
    """A place in a request before which messages are missing that its model has seen."""

    change: ContextChange
    chain: Chain
    """The message that shows it."""
    client: str = ""
    """Who writes such a mark; empty where the provider does, or where there is none."""


class _Item(msgspec.Struct):
    type: str = ""


def find_cut(links: Sequence[Link], table: PageTable) -> ContextCut | None:
    """The latest mark of a client in the messages that are new on this line; None if there is
    none.

    The user's command to begin anew counts only before the model's first reply: it is the first
    thing in what it began.
    """
    first = 0
    if table.sent is not None:
        heads = (at for at in range(len(links) - 1, -1, -1) if links[at].chain == table.sent.head)
        first = next(heads, -1) + 1
    replies = (at for at, each in enumerate(links) if each.message.role is Role.ASSISTANT)
    reply = next(replies, len(links))
    for at in range(len(links) - 1, first - 1, -1):
        message, chain = links[at].message, links[at].chain
        if _is_compaction_item(message):
            return ContextCut(ContextChange.COMPACTED, chain)
        mark = _mark_in(message)
        if mark is not None and (mark.change is ContextChange.COMPACTED or at < reply):
            return ContextCut(mark.change, chain, mark.client)
    return _first_question(links, reply) if first == 0 else None


def has_mark(messages: Iterable[Message]) -> bool:
    """True if a message has a client's mark; one that the model has to answer first is no mark."""
    return any(_is_compaction_item(each) or _mark_in(each) is not None for each in messages)


def _mark_in(message: Message) -> ClientMark | None:
    place, kind = _PLACES.get(message.role, (None, None))
    if place is None:
        return None
    marks = (mark_at(part.content, place) for part in message.parts if part.kind is kind)
    return next((mark for mark in marks if mark is not None), None)


def _is_compaction_item(message: Message) -> bool:
    return any(part.kind is Kind.OPAQUE and _item_type(part.content) for part in message.parts)


def _item_type(content: bytes) -> str:
    if b"compaction" not in content:
        return ""
    try:
        found = decode(content, _Item).type
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    return found if found in COMPACTION_ITEMS else ""


def _first_question(links: Sequence[Link], reply: int) -> ContextCut | None:
    """The client's own first question, if the model's answer to it comes with it."""
    asked = [each for each in links[:reply] if each.message.role is Role.USER]
    if len(asked) != 1 or reply == len(links):
        return None
    parts = [part for part in asked[0].message.parts if part.kind is Kind.PROMPT]
    mark = mark_at(parts[0].content, MarkPlace.FIRST_QUESTION) if len(parts) == 1 else None
    return ContextCut(mark.change, asked[0].chain, mark.client) if mark is not None else None


def earlier_text(
    change: ContextChange, stub: Stub, lines: Sequence[str], room: int, turns: str = ""
) -> str:
    """What stands in a successor's first request: the reference to all that was before, and as many
    of `lines` as fit into `room` characters. `turns` are the calls that bring the turns of other
    sessions."""
    kept: list[str] = []
    for line in lines:
        if len(shown := clip(line, room)) <= room and room > _SHORTEST_LINE:
            kept.append(shown)
            room -= len(shown) + 1
    ways = [f"{_OTHERS}{turns}"] if turns else []
    return "\n".join([_HEADINGS[change], reference(stub), *kept, *ways])


_SHORTEST_LINE = 24  # characters; less says nothing
