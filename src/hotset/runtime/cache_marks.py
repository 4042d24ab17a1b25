"""Marks for the provider's cache: whether a request gets any of ours, and where.

A provider that caches up to marks reads back only what ended at a mark, at most some blocks before
another one. So the ends of what will be read again are marked: the fixed part, what has left and
stays as it is, and the conversation itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hotset.dialects.port import CacheMarking, ClientMarks, Dialect
from hotset.nouns.message import Message, Request
from hotset.nouns.page import Kind, Role
from hotset.nouns.price import Price
from hotset.nouns.window import WHOLE, Plan


@dataclass(frozen=True, slots=True)
class CacheMarks:
    """The marks that a turn's requests get from us."""

    everywhere: bool = False
    """The client sets none: the fixed part and the end of the conversation are marked, too."""
    stubs: frozenset[bytes] = frozenset()
    """The texts that stay of what left: the prefix is stable up to the last one."""
    lookback: int = 20


NO_MARKS = CacheMarks()


def choose_marks(
    request: Request,
    dialect: Dialect,
    price: Price,
    made: Plan,
    *,
    tokens: int,
    pause: float | None,
) -> CacheMarks:
    """The marks for a request. `pause` is the time since the line's latest request; None if there
    was none that this one extends: most conversations have one request."""
    if dialect.marking is None or not price.lookback or pause is None:
        return NO_MARKS
    rows = made.shown.items()
    stubs = frozenset(row.text for spot, row in rows if spot.position == WHOLE and row.text)
    marked = has_marks(request, dialect)
    pays = not marked and tokens >= price.minimum and _pays(request, price, pause)
    return CacheMarks(pays, stubs, price.lookback) if pays or marked else NO_MARKS


def has_marks(request: Request, dialect: Dialect) -> bool:
    """True if the client has set marks, or its provider needs none."""
    return dialect.marking is None or dialect.marking.read(request).count > 0


def _pays(request: Request, price: Price, pause: float) -> bool:
    """True if what is written now is likely to be read.

    Behind a pause the cache is cold. Then another call is expected as often as the model's replies
    called tools: the results come within seconds, a person's answer may not.
    """
    if price.read >= 1 or price.write <= 1 or pause <= price.ttl:
        return price.read < 1 < price.write
    replies = [each for each in request.messages if each.role is Role.ASSISTANT]
    calls = sum(any(part.kind.family is Kind.TOOL_CALL for part in each.parts) for each in replies)
    # not to mark saves (write - 1) if nothing follows, and costs (write - read) if something does
    return calls * (price.write - price.read) > len(replies) * (price.write - 1)


def mark_messages(outgoing: Request, marks: CacheMarks, dialect: Dialect) -> Request:
    """The request with our marks in its messages; unchanged if there is no place for one."""
    marking = dialect.marking
    if marking is None or marks is NO_MARKS:
        return outgoing
    messages = list(outgoing.messages)
    if marks.everywhere:
        last = len(messages) - 1
        if messages[last].role is not Role.USER:
            return outgoing
        places = [last, _settled(messages, marks.stubs), _previous_end(messages, marks.lookback)]
        wanted = {place: False for place in places if place >= 0}
    else:
        wanted = _beside_theirs(messages, marks, marking.read(outgoing), marking)
    for place, lasting in wanted.items():
        marked = marking.mark_message(messages[place], lasting=lasting)
        messages[place] = marked or messages[place]
    return replace(outgoing, messages=tuple(messages)) if wanted else outgoing


def _beside_theirs(
    messages: Sequence[Message], marks: CacheMarks, theirs: ClientMarks, marking: CacheMarking
) -> dict[int, bool]:
    """One mark beside the client's, where what is in front of it stays when more leaves.

    It is free: all up to the client's last mark is written anyway.
    """
    if theirs.count >= marking.most or not (marks.stubs or not theirs.fixed):
        return {}
    place = _settled(messages, marks.stubs)
    behind = [index for index in theirs.inside if index > place]
    if place < 0 or not behind or place in theirs.inside:
        return {}
    # a lasting mark may not come behind one that is not
    return {place: any(index in theirs.lasting for index in behind)}


def _settled(messages: Sequence[Message], stubs: Iterable[bytes]) -> int:
    """Index of the last message that will not leave: the last stub, or the one before the first
    reply; -1 if there is none."""
    texts = frozenset(stubs)
    first = next((at for at, each in enumerate(messages) if each.role is Role.ASSISTANT), 0)
    if not texts:
        return first - 1
    ours = (
        at
        for at in range(len(messages) - 1, -1, -1)
        if len(messages[at].parts) == 1 and messages[at].parts[0].content in texts
    )
    return next(ours, first - 1)


def _previous_end(messages: Sequence[Message], lookback: int) -> int:
    """Index of the message that the latest reply followed, if it is out of reach of a mark at the
    end; else -1."""
    at, blocks = len(messages) - 1, 0
    while at >= 0 and messages[at].role is not Role.ASSISTANT:
        blocks += max(1, len(messages[at].parts))
        at -= 1
    while at >= 0 and messages[at].role is Role.ASSISTANT:
        blocks += max(1, len(messages[at].parts))
        at -= 1
    return at if blocks >= lookback else -1
