"""What happened, the latest first, filtered where it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hotset.nouns.turn import Event
from hotset.runtime.audit import TYPES, EventFilter, sentence, type_of
from hotset.store.port import Store

_PORTION = 500
_MOST_LOOKED_AT = 5_000  # events for one page: a text that is rare costs a quarter of a second


@dataclass(frozen=True, slots=True)
class EventRow:
    number: int
    """Its place among all events."""
    type: str
    name: str
    time: float
    session: str
    turn: int
    says: str
    """What happened, in a sentence."""
    detail: Mapping[str, str | int | float]


@dataclass(frozen=True, slots=True)
class EventList:
    rows: tuple[EventRow, ...]
    """The latest first."""
    following: int | None
    """Asked for `before` this number, older ones come; None if there are none."""
    types: tuple[str, ...]
    """What can be asked for."""


def read_events(
    store: Store, only: EventFilter, text: str = "", before: int | None = None, limit: int = 50
) -> EventList:
    """So many events that fit and whose sentence has the text, in front of the number `before`."""
    known = [TYPES[each] for each in only.types if each in TYPES]
    names = frozenset[str]().union(*known) if len(known) == len(only.types) else frozenset[str]()
    wanted, rows = text.lower(), list[EventRow]()
    for _ in range(_MOST_LOOKED_AT // _PORTION):
        some = store.events_before(
            before,
            _PORTION if wanted else limit + 1,
            names=names,
            session=only.session,
            since=only.since,
            until=only.until,
        )
        for number, event in some:
            row = _row(number, event)
            if only.holds(event) and wanted in f"{row.says} {event.name}".lower():
                if len(rows) == limit:
                    return EventList(tuple(rows), rows[-1].number, tuple(TYPES))
                rows.append(row)
        if not some:
            return EventList(tuple(rows), None, tuple(TYPES))
        before = some[-1][0]
    return EventList(tuple(rows), before, tuple(TYPES))


def _row(number: int, event: Event) -> EventRow:
    return EventRow(
        number,
        type_of(event),
        event.name,
        event.time,
        event.session or "",
        event.turn,
        sentence(event),
        event.detail,
    )
