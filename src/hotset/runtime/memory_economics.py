"""What memories cost and saved in a session, and what is done about it.

Looked at when a task or a session ends, and on the third full load of a task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from hotset.errors import Conflict, NotFound
from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import Arrangement, Memory, MemoryId, MemoryKind, Provenance, Trust
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event
from hotset.runtime.memory_telling import ARRANGEMENT, Telling, arrangement
from hotset.sources.memory.disclosing.actions import ARRANGED, arranged_event, carry_out, uses_by_topic
from hotset.sources.memory.disclosing.economics import LOADED, Breach, Economics, Occasion, Topics, by_task, check, economics_of
from hotset.sources.memory.managing.versions import RULES
from hotset.store.port import Store

_KEEP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class SessionEconomics:
    session: SessionId | None
    """None for what was asked outside of a conversation."""
    time: float
    """Of the last loading."""
    whole: Economics
    tasks: tuple[Economics, ...] = ()
    breaches: tuple[Breach, ...] = ()
    actions: tuple[Event, ...] = ()
    """What was done about them, each with its effect."""


def economics(store: Store, session: SessionId | None = None) -> Sequence[SessionEconomics]:
    """Of every session in which memories were told, the newest first; or of one."""
    loads: dict[SessionId | None, list[Event]] = {}
    actions: dict[SessionId | None, list[Event]] = {}
    for event in store.events(session):
        if event.name in (LOADED, ARRANGED):
            (loads if event.name == LOADED else actions).setdefault(event.session, []).append(event)
    found = [_of(store, each, events, actions.get(each, ())) for each, events in loads.items()]
    return sorted(found, key=lambda each: -each.time)


def settle_up(store: Store, telling: Telling, session: SessionId, occasion: Occasion, now: float) -> tuple[Event, ...]:
    """Looks at what a session cost so far; where a limit is crossed, the next ones are shown memories in another way.

    Gives what was done. A breach that was acted upon in this session is not acted upon again.
    """
    events = list(store.events(session))
    loads = [event for event in events if event.name == LOADED]
    if not loads:
        return ()
    done = {event.detail.get("remedy") for event in events if event.name == ARRANGED}
    tasks = list(by_task(loads).values())
    judged = loads if occasion == "session" else tasks[-1]
    spent = economics_of(judged, _topics(store))
    breaches = [each for each in check(occasion, spent) if str(each.remedy) not in done]
    if not breaches:
        return ()
    uses = uses_by_topic(store.memory_uses(), _topics(store))
    before = after = arrangement(store)
    told = []
    for breach in breaches:
        after, effect = carry_out(breach, after, telling.overview(store), uses, spent, now)
        told.append(arranged_event(breach, effect, now, session))
    if after != before:
        rearrange(store, after, now, ", ".join(str(breach.remedy) for breach in breaches))
    for event in told:
        store.keep(event).result(_KEEP_SECONDS)
    return tuple(told)


def _of(store: Store, session: SessionId | None, loads: Sequence[Event], actions: Iterable[Event]) -> SessionEconomics:
    whole = economics_of(loads, _topics(store))
    tasks = tuple(economics_of(each) for each in by_task(loads).values())
    last = max(event.time for event in loads)
    return SessionEconomics(session, last, whole, tasks, check("session", whole), tuple(actions))


def rearrange(store: Store, wanted: Arrangement, now: float, why: str) -> None:
    try:
        latest = store.memory(ARRANGEMENT)
    except NotFound:
        source = Provenance(RULES)
        first = Memory(ARRANGEMENT, MemoryKind.ARRANGEMENT, "How memories are shown", "", now, source, trust=Trust.OUTCOME)
        version = replace(first, detail=wanted, time=now, why=why)
    else:
        version = replace(latest, detail=wanted, version=latest.version + 1, time=now, why=why, run="")
    try:
        store.keep(Remembered((version,))).result(_KEEP_SECONDS)
    except Conflict:
        return  # somebody else did as much a moment ago; the next session is judged anew


def _topics(store: Store) -> Topics:
    """The topics of memories, each read once; none where it was erased since."""

    @cache
    def topics(id: MemoryId) -> Sequence[str]:
        try:
            return store.memory(id).topics
        except NotFound:
            return ()

    return topics
