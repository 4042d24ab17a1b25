"""Marks for the provider's cache: whether a request gets any of ours, and where.

A provider that caches up to marks reads back only what ended at a mark, at most some blocks before
another one. So the ends of what will be read again are marked: the fixed part, what has left and
stays as it is, and the conversation itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from hotset.dialects.port import CacheMarking, ClientMarks, Dialect
from hotset.files.lru import Lru
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.knobs import FixedLifetime
from hotset.nouns.message import Message, Request
from hotset.nouns.note import Space
from hotset.nouns.page import Chain, Kind, Role
from hotset.nouns.price import Price
from hotset.nouns.window import WHOLE, Plan
from hotset.store.port import Store

_LASTING = Space("lasting")
"""Sessions whose fixed part is cached for the longer time, keyed by their first message."""

_MOST_SESSIONS = 2048
_MOST_RECENT = 20
"""Sessions whose pauses are looked at."""

_FRESH_SECONDS = 600.0
"""How long the pauses that were read hold."""


@dataclass(frozen=True, slots=True)
class CacheMarks:
    """The marks that a turn's requests get from us."""

    everywhere: bool = False
    """The client sets none: the fixed part and the end of the conversation are marked, too."""
    stubs: frozenset[bytes] = frozenset()
    """The texts that stay of what left: the prefix is stable up to the last one."""
    lookback: int = 20
    lasting: bool = False
    """The fixed part is kept for the longer time."""


NO_MARKS = CacheMarks()


class FixedLifetimes:
    """Whether a session's fixed part is cached for the longer time. Thread-safe.

    Decided with a session's first request: the provider keeps what was written for the time that
    it was written for.
    """

    def __init__(self) -> None:
        self._known: Lru[Chain, bool] = Lru("cache lifetimes", count=_MOST_SESSIONS)
        self._latest: tuple[float, tuple[float, ...]] = (0.0, ())
        """When the project's pauses were read, and the pauses."""

    def is_lasting(
        self,
        mode: FixedLifetime,
        first: Chain,
        price: Price,
        store: Store,
        now: float,
        *,
        opens: bool,
    ) -> bool:
        """True if the session that begins with `first` has it for the longer time."""
        if not price.write_lasting:
            return False
        known = self._known.get(first)
        if known is None:
            kept = first in store.notes(_LASTING, [first])
            known = kept or (opens and (mode == "1h" or self._pays(price, store, now)))
            self._known.put(first, known)
        return known

    def note(self, first: Chain, marks: CacheMarks, *, opens: bool) -> NoteWritten | None:
        """The note to keep with a session's first plan."""
        return NoteWritten(_LASTING, first, b"true") if marks.lasting and opens else None

    def _pays(self, price: Price, store: Store, now: float) -> bool:
        read, pauses = self._latest
        if not read or now - read > _FRESH_SECONDS:
            pauses = tuple(recent_pauses(store))
            self._latest = now, pauses
        return lasting_pays(pauses, price)


def lasting_pays(pauses: Iterable[float], price: Price) -> bool:
    """True if these pauses between requests make the longer time cheaper: a pause that outlives the
    short time saves a rewrite, one that outlives both costs the higher price of writing once
    more."""
    lengths = list(pauses)
    saved = sum(price.ttl < each <= price.ttl_lasting for each in lengths)
    rewritten = 1 + sum(each > price.ttl_lasting for each in lengths)
    return saved * (price.write - price.read) > rewritten * (price.write_lasting - price.write)


def recent_pauses(store: Store) -> Iterator[float]:
    """Seconds between the project's latest requests that offered tools, whatever their session: the
    fixed part is mostly the same."""
    sessions = islice(store.recent_sessions(), _MOST_RECENT)
    turns = (turn for each in sessions for turn in store.turns(each.id))
    times = sorted(turn.started for turn in turns if turn.tools is not None)
    return (after - before for before, after in pairwise(times))


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
