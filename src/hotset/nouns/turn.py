"""Sessions, turns and the nodes of their lineage: the rows that say when, where and by whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

from hotset.nouns.page import Chain, Digest, PageId, Role, SessionId
from hotset.nouns.usage import DialectName, Usage


class Outcome(StrEnum):
    OPEN = "open"
    """Sent; no reply kept yet."""
    DONE = "done"
    """The provider marked its reply as complete."""
    REFUSED = "refused"
    """The provider answered with an error status."""
    BROKEN = "broken"
    """The reply broke off, or the provider could not be reached."""
    LEFT = "left"
    """The client went away before the end."""


TurnId = NewType("TurnId", str)
"""A turn's own name, made by the process that hands its request over, so that the reply can be
handed over before the request is on disk."""


@dataclass(frozen=True, slots=True)
class TurnRef:
    """A turn by its place: the number that the store gave it."""

    session: SessionId
    number: int


@dataclass(frozen=True, slots=True)
class Session:
    id: SessionId
    key: str
    """The name the client gave it in a header; empty where it gave none."""
    agent: str
    dialect: DialectName
    started: float
    title: str = ""
    """The first words of its first prompt."""


@dataclass(frozen=True, slots=True)
class Node:
    """A message at its place in a session's lineage."""

    session: SessionId
    chain: Chain
    parent: Chain
    role: Role
    turn: int
    branch: int
    raw: Digest
    """The address of the message's exact bytes."""
    essence: Digest
    aside: bool
    time: float


@dataclass(frozen=True, slots=True)
class Turn:
    """One request and its reply."""

    id: TurnId
    session: SessionId
    number: int
    agent: str
    branch: int
    dialect: DialectName
    model: str
    streamed: bool
    started: float
    fingerprint: str
    """A hash of what distinguishes clients; see `store.lineage`."""
    head: Chain
    """The last message of the request."""
    tail: Chain
    """The last message of the reply; equal to `head` while there is none."""
    system: Digest | None
    tools: Digest | None
    params: Digest
    outcome: Outcome = Outcome.OPEN
    finished: float = 0.0
    status: int = 0
    stop: str = ""
    response_id: str = ""
    error: str = ""
    usage: Usage = field(default_factory=Usage)
    """The usage that the client got: of several calls the last one's, whose prompt is the size of
    the context. The sum of all calls is in the bill."""
    reply: Digest | None = None
    """The address of the reply's exact bytes."""

    @property
    def ref(self) -> TurnRef:
        return TurnRef(self.session, self.number)


@dataclass(frozen=True, slots=True)
class ToolSeen:
    """A tool definition that a client offered to its model."""

    name: str
    digest: Digest
    first_session: SessionId
    time: float


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened and is worth knowing later. Holds no content but the words of a
    query, sealed and clipped (`runtime/audit`)."""

    name: str
    time: float
    session: SessionId | None = None
    turn: int = 0
    detail: dict[str, str | int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reference:
    """What stays in the window for pages that left it."""

    id: str
    session: SessionId
    kind: str
    pages: tuple[PageId, ...]
    turns: tuple[int, int]
    tokens: int
    time: float
    topics: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


COMPACTED, CLEARED = "Compacted", "Cleared"
"""Names of the events that a client cut its conversation."""
