"""What can be handed to the store, one or several together: all of a group become durable in one
commit, or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hotset.nouns.bill import Bill, Summary
from hotset.nouns.memory import MemoryId, MemoryLink, MemoryRecord, MemoryUse
from hotset.nouns.message import Reply, Request
from hotset.nouns.note import Space
from hotset.nouns.page import Gist, Kind, PageId, SessionId
from hotset.nouns.turn import Event, Outcome, Reference, TurnId, TurnRef
from hotset.nouns.window import Hidden, SentRequest, Shown, Stub


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A request arrived."""

    request: Request
    time: float
    agent: str
    """Who asks, as far as known: from a header, or the client's own product name."""
    key: str = ""
    """The session's name from a header; it wins over everything that hotset could infer."""
    client: str = ""
    """What distinguishes this client from others besides the body (its user agent)."""
    since: float = 0.0
    """When the process that hands it over started: a turn that was open before that gets no reply
    any more."""
    id: TurnId | None = None
    """The name of its turn, by which its reply can be handed over at any time; None lets the store
    make one."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Free metadata of the session, and its agent's `kind`; see `nouns.note.METADATA`."""
    parents: tuple[str, ...] = ()
    """Names under which the session that this one belongs to may be known, from a header; the
    likeliest first."""


@dataclass(frozen=True, slots=True)
class ReplyReceived:
    """A reply, or the lack of one, ended a turn."""

    turn: TurnRef | TurnId
    time: float
    outcome: Outcome
    status: int
    raw: bytes
    """The reply's exact bytes, decoded from any transfer compression."""
    reply: Reply = field(default_factory=Reply)


@dataclass(frozen=True, slots=True)
class PageAdded:
    """A page that reaches the store by itself: a plan, a finding, a paper, a file."""

    session: SessionId | None
    agent: str
    kind: Kind
    content: bytes
    time: float
    media: str = "text/plain"
    parent: PageId | None = None
    key: str = ""
    """The session's name if `session` is not given; a new session is opened if none has that
    name."""
    tool: str = ""
    """The tool that returned it, if one did."""
    call: str = ""
    """The provider's id of the call that it answers."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Free metadata of the page; see `nouns.note.METADATA`."""


@dataclass(frozen=True, slots=True)
class Gisted:
    """Gists that were worked out."""

    gists: tuple[Gist, ...]


@dataclass(frozen=True, slots=True)
class PlanMade:
    """How a request was sent. Handed over behind its `RequestReceived`: the turn is known by
    then."""

    turn: TurnId
    sent: SentRequest
    shown: tuple[Shown, ...] = ()
    """Rows of the page table that were decided for this request."""
    stubs: tuple[Stub, ...] = ()
    """Each becomes a `Reference`."""


@dataclass(frozen=True, slots=True)
class HiddenKept:
    """What the model saw of a turn and the client did not."""

    turn: TurnId
    hidden: Hidden


@dataclass(frozen=True, slots=True)
class Billed:
    """What a turn cost."""

    turn: TurnId
    bill: Bill


@dataclass(frozen=True, slots=True)
class Remembered:
    """Versions of memories, links between them and uses of them: all of these or none. A version
    follows the latest one of its id, or is the first. An identical version or link that
    exists already is left out; a different one is a `Conflict`.
    """

    memories: tuple[MemoryRecord, ...] = ()
    links: tuple[MemoryLink, ...] = ()
    uses: tuple[MemoryUse, ...] = ()


@dataclass(frozen=True, slots=True)
class Erased:
    """Removes these memories from the store, with every version, link and use. An event `Erased`
    has their number. The pages that they were made from stay.
    """

    memories: tuple[MemoryId, ...]
    time: float


@dataclass(frozen=True, slots=True)
class NoteWritten:
    """A new version of a note. One with the value of the latest version is left out."""

    space: Space
    key: str
    value: bytes | None
    """None removes it."""
    time: float = 0.0
    """0 for that of its turn."""
    turn: TurnId | None = None
    """The turn that it belongs to: handed over behind its `RequestReceived`."""
    expects: int | None = None
    """The version that must be the latest (0: there is none), otherwise this is a `Conflict`."""


Deposit = (
    RequestReceived
    | ReplyReceived
    | PageAdded
    | Gisted
    | Event
    | Reference
    | PlanMade
    | HiddenKept
    | Billed
    | Summary
    | Remembered
    | Erased
    | NoteWritten
)


@dataclass(frozen=True, slots=True)
class CommitReceipt:
    """What a group of deposits became. When you hold this, it is on disk."""

    turn: TurnRef | None = None
    """Of the first deposit that has one."""
    pages: tuple[PageId, ...] = ()
    """The pages that are new."""
