"""The arm of a session: the profile, or the learned changes, that it runs with from its first
request to its last, also after a restart and in another process."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from hotset.learn.events import OFF_ARM
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.knobs import DEFAULT_PROFILE
from hotset.nouns.link import Link, link
from hotset.nouns.message import Request
from hotset.nouns.note import Note, Space
from hotset.nouns.page import ROOT, Chain, Kind, Role, SessionId
from hotset.nouns.turn import TurnId
from hotset.store.port import Store
from hotset.typed import decode
from hotset.window.work.prompts import prompt_words

_MOST_BYTES = 4000  # of a first prompt
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
    explored: tuple[tuple[str, float], ...] = ()
    """Knobs whose positions in their ranges this session tries."""
    is_random: bool = True
    """It was assigned by chance; otherwise the client or a setting chose it."""
    since: float = 0.0
    """When it was assigned."""

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
    is_named: bool = False
    """By the client."""
    prompt: str = ""
    """The user's first words, while it opens."""

    @property
    def latest(self) -> str:
        """The one that is the session's own for sure, where there is one."""
        return self.first if self.reply is None else self.reply

    @property
    def every(self) -> tuple[str, ...]:
        return (self.first,) if self.reply is None else (self.reply, self.first)


def session_keys(request: Request, name: str) -> SessionKeys:
    """The keys of a request's session; `name` is the client's own."""
    opens = not any(each.role is Role.ASSISTANT for each in request.messages)
    prompt = _prompt_of(request) if opens else ""
    return replace(keys_of_line(name, link(ROOT, request.messages)), opens=opens, prompt=prompt)


def _prompt_of(request: Request) -> str:
    """The words with which a session opens."""
    parts = (part for each in request.messages if each.role is Role.USER for part in each.parts)
    texts = (part.content[:_MOST_BYTES] for part in parts if part.kind is Kind.PROMPT)
    return prompt_words(next(texts, b"").decode("utf-8", "replace")).text


def keys_of_line(name: str, links: Iterable[Link]) -> SessionKeys:
    """The keys of the session that these messages belong to."""
    if name:
        return SessionKeys(name, is_named=True)
    line = ((each.chain, each.message.role) for each in links if not each.message.aside)
    return _line_keys(line)


def keys_of_turn(store: Store, session: SessionId, line: Container[Chain]) -> SessionKeys:
    """The keys of a stored session, as one of its turns had them; `line` has its messages."""
    if name := store.session(session).key:
        return SessionKeys(name, is_named=True)
    nodes = (node for node in store.nodes(session) if node.chain in line and not node.aside)
    return _line_keys((node.chain, node.role) for node in nodes)


def _line_keys(line: Iterable[tuple[Chain, Role]]) -> SessionKeys:
    chains = iter(line)
    first, _ = next(chains, ("", None))
    return SessionKeys(
        first, next((chain for chain, role in chains if role is Role.ASSISTANT), None)
    )


def arm_changes(values: Mapping[str, Any]) -> str:
    """Values of knobs as an arm holds them."""
    return msgspec.json.encode(values, order="sorted").decode()


def arm_note(key: str, arm: SessionArm, turn: TurnId) -> NoteWritten:
    return NoteWritten(_ARMS, key, msgspec.json.encode(arm), turn=turn)


def read_arm(store: Store, key: str) -> SessionArm | None:
    """The arm that is kept under a key."""
    note = store.notes(_ARMS, [key]).get(key)
    return _decoded(note) if note is not None else None


def arm_of_session(store: Store, id: SessionId) -> SessionArm:
    """The arm of a stored session: as written with it, else as it was when it began."""
    keys = keys_of_turn(store, id, {node.chain for node in store.nodes(id)}).every
    versions = [list(store.note_versions(_ARMS, key)) for key in keys if key]
    own = (note for each in versions for note in each if note.session == id)
    begun = next((turn.started for turn in store.turns(id)), 0.0)
    earlier = (note for each in versions for note in reversed(each) if note.time <= begun)
    found = next(own, None) or next(earlier, None)
    return _decoded(found) if found is not None else PLAIN


def _decoded(note: Note) -> SessionArm:
    try:
        return decode(note.value or b"{}", SessionArm)
    except msgspec.DecodeError:
        return PLAIN
