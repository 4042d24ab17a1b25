"""The arm of a session: the profile, or the learned changes, that it runs with from its first
request to its last, also after a restart and in another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hotset.learn.events import OFF_ARM
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.knobs import DEFAULT_PROFILE
from hotset.nouns.link import link
from hotset.nouns.message import Request
from hotset.nouns.note import Note, Space
from hotset.nouns.page import ROOT, Chain, Role, SessionId
from hotset.nouns.turn import TurnId
from hotset.store.port import Store

_ARMS = Space("arms")
"""Keyed by the client's name of the session; without one, by its first message and, from the second
request on, by its first reply."""


class SessionArm(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a session runs with for good. Hashable."""

    name: str = DEFAULT_PROFILE
    """`default`, `off`, a profile's name, or the id of a change on trial."""
    changes: tuple[str, ...] = ()
    """Ids of the learned changes in force."""
    knobs: str = "{}"
    """What it changes, by the names of knobs, as JSON."""
    is_random: bool = True
    """It was assigned by chance; otherwise the client or a setting chose it."""

    @property
    def is_off(self) -> bool:
        return self.name == OFF_ARM

    @property
    def values(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.knobs)
        return found


PLAIN = SessionArm(is_random=False)
"""A session that began before there was anything to assign."""


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """The names under which a session's arm is kept."""

    first: str
    """From the client, or the chain of its first message."""
    reply: Chain | None = None
    """The chain of its first reply, if the client gives no name and there is one."""
    opens: bool = False
    """The model has not replied yet."""

    @property
    def every(self) -> tuple[str, ...]:
        return (self.first,) if self.reply is None else (self.reply, self.first)


def session_keys(request: Request, name: str) -> SessionKeys:
    """The keys of a request's session; `name` is the client's own."""
    opens = not any(each.role is Role.ASSISTANT for each in request.messages)
    if name:
        return SessionKeys(name, opens=opens)
    line = (each for each in link(ROOT, request.messages) if not each.message.aside)
    first = next(line, None)
    if first is None:
        return SessionKeys("", opens=opens)
    replies = (each.chain for each in line if each.message.role is Role.ASSISTANT)
    return SessionKeys(first.chain, next(replies, None), opens)


def arm_changes(values: Mapping[str, Any]) -> str:
    """Values of knobs as an arm holds them."""
    return msgspec.json.encode(values, order="sorted").decode()


def arm_note(key: str, arm: SessionArm, turn: TurnId) -> NoteWritten:
    return NoteWritten(_ARMS, key, msgspec.json.encode(arm), turn=turn)


def read_arm(store: Store, keys: SessionKeys) -> SessionArm | None:
    """The arm that a session was given; None if it has none."""
    notes = store.notes(_ARMS, keys.every)
    return next((_decoded(notes[key]) for key in keys.every if key in notes), None)


def arm_of_session(store: Store, id: SessionId) -> SessionArm:
    """The arm of a stored session."""
    session = store.session(id)
    line = [node for node in store.nodes(id) if not node.aside]
    reply = next((node.chain for node in line if node.role is Role.ASSISTANT), None)
    first = session.key or (line[0].chain if line else "")
    found = read_arm(store, SessionKeys(first, None if session.key else reply)) if first else None
    return found or PLAIN


def _decoded(note: Note) -> SessionArm:
    try:
        return msgspec.json.decode(note.value or b"{}", type=SessionArm)
    except msgspec.DecodeError:
        return PLAIN
