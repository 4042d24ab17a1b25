"""Which session is the parent of which: the links, written as events and read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from hotset.errors import PageDamaged
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event
from hotset.store.port import Store

LINKED = "SessionLinked"
"""Event name."""

_DEEPEST = 256  # sessions above one another; a store that was tampered with may hold a circle


class Kinship(StrEnum):
    SUBAGENT = "subagent"
    """Its agent was started by one of the parent's."""
    CONTINUATION = "continuation"
    """It continues what the parent's client summarised or cut."""


@dataclass(frozen=True, slots=True)
class Parent:
    """The parent of a session: its agent started the session as a subagent, or the session
    continues where the parent was cut.

    A link is an event of the child's, written with its first turn: it survives as the session does,
    and is exported with it.
    """

    session: SessionId
    kinship: Kinship
    evidence: str
    """`header`, `call`, `reply`, `summary`, `metadata` or `mark`."""

    def event(self, child: SessionId, turn: int, time: float) -> Event:
        return Event(
            LINKED,
            time,
            child,
            turn,
            {"parent": self.session, "kinship": self.kinship, "told_by": self.evidence},
        )


def parents_in(store: Store) -> Mapping[SessionId, Parent]:
    """The parents of all sessions of a store, by child. A damaged event costs the links after it,
    not the whole list."""
    events: list[Event] = []
    with suppress(PageDamaged):
        for event in store.events(name=LINKED):
            events.append(event)  # noqa: PERF402 - what came before the damage counts
    return parents(events)


def parents(events: Iterable[Event]) -> Mapping[SessionId, Parent]:
    """Parents by child. The first link of a session counts; one that would close a cycle is left
    out."""
    found: dict[SessionId, Parent] = {}
    for event in events:
        child, parent = event.session, event.detail.get("parent")
        if event.name != LINKED or child is None or child in found or not isinstance(parent, str):
            continue
        if child not in islice(_upwards(SessionId(parent), found), _DEEPEST):
            kinship = event.detail.get("kinship")
            found[child] = Parent(
                SessionId(parent),
                Kinship(kinship) if kinship in set(Kinship) else Kinship.CONTINUATION,
                str(event.detail.get("told_by", "")),
            )
    return found


def _upwards(session: SessionId, found: Mapping[SessionId, Parent]) -> Iterator[SessionId]:
    yield session
    while (above := found.get(session)) is not None:
        session = above.session
        yield session
