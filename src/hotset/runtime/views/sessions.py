"""Sessions as a list: families (subagents and continuations below their parent) with the one used
last first, found by words and agent; and what sessions cost. Surfaces read it from here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hotset.config import Config
from hotset.nouns.handoff import HANDOFF
from hotset.nouns.page import SessionId
from hotset.runtime.metrics import Account, empty_ledger
from hotset.store.kinship import Parent, parents_in
from hotset.store.port import SessionUse, Store

_MOST_FAMILY = 60  # sessions of one family that are listed
_DEEPEST = 8  # levels below the first session of a family


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session in a list."""

    id: str
    title: str
    agent: str
    dialect: str
    model: str
    turns: int
    started: float
    last: float
    """When its last turn began or ended."""
    outcome: str
    """Of its last turn; empty if it has none."""
    depth: int = 0
    """Levels below the first session of its family."""
    parent: str = ""
    kinship: str = ""
    """`subagent` or `continuation` of its parent."""
    handoffs: int = 0
    """How often its agent handed over to a successor."""
    left_out: int = 0
    """Sessions of its family that are not listed: it has too many."""


@dataclass(frozen=True, slots=True)
class SessionList:
    """A page of the list."""

    rows: tuple[SessionRow, ...]
    total: int
    """Families, or sessions where words or an agent are asked for."""
    is_tree: bool
    agents: tuple[str, ...]
    """All that there are, those with most sessions first."""


@dataclass(frozen=True, slots=True)
class ListedCost:
    """What a session cost and would have cost."""

    session: str
    turns: int
    """With a bill."""
    spent: float
    """Dollars at list prices, by the provider's count."""
    everything: float
    """Estimated dollars of sending everything."""
    saved: float
    saved_pct: float
    cache_read_pct: float
    is_measured: bool
    """False if the provider reported no usage for some turns."""
    is_listed: bool
    """False if a model has no list price."""


def list_sessions(
    store: Store, words: str = "", agent: str = "", offset: int = 0, limit: int = 30
) -> SessionList:
    """A page of the sessions. Reads the ids of all, and the rows of those on the page alone."""
    ids, above = store.recent_ids(words, agent), parents_in(store)
    if words or agent:
        placed = [_Place(id, 0) for id in ids[offset : offset + limit]]
        total = len(ids)
    else:
        families = _families(ids, above)
        placed = [each for family in families[offset : offset + limit] for each in family]
        total = len(families)
    uses = {each.session.id: each for each in store.session_uses([each.id for each in placed])}
    rows = [_row(store, uses[each.id], each, above) for each in placed if each.id in uses]
    return SessionList(tuple(rows), total, not (words or agent), tuple(store.agents()))


def list_family(store: Store, session: SessionId) -> tuple[SessionRow, ...]:
    """The family of a session: the first one of it and everything below."""
    above = parents_in(store)
    top = session
    while (parent := above.get(top)) is not None:
        top = parent.session
    ids = [top, *(id for id, parent in above.items())]
    family = next(each for each in _families(ids, above) if each[0].id == top)
    uses = {each.session.id: each for each in store.session_uses([each.id for each in family])}
    return tuple(_row(store, uses[each.id], each, above) for each in family if each.id in uses)


def cost_sessions(store: Store, config: Config, ids: Sequence[SessionId]) -> tuple[ListedCost, ...]:
    """What these sessions cost. Reads all their bills."""
    ledger = empty_ledger(config)
    for id in ids:
        for bill in store.bills(id):
            ledger.add(bill)
    return tuple(_cost(id, ledger.of(id)) for id in ids if id in ledger.sessions)


@dataclass(frozen=True, slots=True)
class _Place:
    id: SessionId
    depth: int
    left_out: int = 0


def _families(
    ids: Sequence[SessionId], above: Mapping[SessionId, Parent]
) -> list[tuple[_Place, ...]]:
    """Families in the order of the member that comes first, each with its first session first."""
    known = frozenset(ids)
    below: dict[SessionId, list[SessionId]] = {}
    tops: dict[SessionId, None] = {}
    for id in ids:
        top = id
        while (parent := above.get(top)) is not None and parent.session in known:
            top = parent.session
        tops.setdefault(top)
        if top != id:
            below.setdefault(above[id].session, []).append(id)
    return [_family(top, below) for top in tops]


def _family(top: SessionId, below: Mapping[SessionId, Sequence[SessionId]]) -> tuple[_Place, ...]:
    every = list(_descend(top, below))
    first = _Place(top, 0, max(0, len(every) - _MOST_FAMILY))
    return (first, *every[1:_MOST_FAMILY])


def _descend(top: SessionId, below: Mapping[SessionId, Sequence[SessionId]]) -> Iterator[_Place]:
    waiting = [_Place(top, 0)]
    while waiting:
        here = waiting.pop()
        yield here
        deeper = min(here.depth + 1, _DEEPEST)
        waiting += [_Place(each, deeper) for each in reversed(below.get(here.id, ()))]


def _row(
    store: Store, use: SessionUse, place: _Place, above: Mapping[SessionId, Parent]
) -> SessionRow:
    session, last, parent = use.session, use.last, above.get(place.id)
    return SessionRow(
        id=session.id,
        title=session.title or session.key.partition(":")[2],
        agent=session.agent,
        dialect=session.dialect,
        model=last.model if last else "",
        turns=use.turns,
        started=session.started,
        last=max(last.started, last.finished) if last else session.started,
        outcome=last.outcome if last else "",
        depth=place.depth,
        parent=parent.session if parent else "",
        kinship=parent.kinship if parent else "",
        handoffs=sum(1 for _ in store.events(session.id, HANDOFF)),
        left_out=place.left_out,
    )


def _cost(id: SessionId, account: Account) -> ListedCost:
    return ListedCost(
        session=id,
        turns=account.turns,
        spent=account.measured.dollars,
        everything=account.estimated.dollars,
        saved=account.saved.dollars,
        saved_pct=account.saved.dollars_pct,
        cache_read_pct=account.measured.cache_read_pct,
        is_measured=not account.estimated_turns,
        is_listed=not account.unlisted,
    )
