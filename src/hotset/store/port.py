"""The interface of every store. `hotset.testing.check_store()` is the contract; SQL stays behind
it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from hotset.nouns.bill import Bill, Summary
from hotset.nouns.form import Cause, Form
from hotset.nouns.note import Note, Space
from hotset.nouns.page import Chain, Digest, Gist, Kind, Page, PageId, SessionId, including
from hotset.nouns.turn import Event, Node, Reference, Session, ToolSeen, Turn, TurnId, TurnRef

if TYPE_CHECKING:  # only a store that is written needs them
    from hotset.nouns.deposit import CommitReceipt, Deposit, RequestReceived
    from hotset.nouns.memory import (
        MemoryId,
        MemoryKind,
        MemoryLink,
        MemoryRecord,
        MemoryUse,
        Relation,
        Standing,
        Uses,
    )
    from hotset.nouns.window import PageTable


@dataclass(frozen=True, slots=True)
class Where:
    """A filter for pages: every condition that is set must hold."""

    session: SessionId | None = None
    agent: str | None = None
    kinds: frozenset[Kind] = frozenset()
    """Any of these; a kind finds its special cases too (see `nouns.page.including`)."""
    turns: tuple[int, int] | None = None
    """First and last turn, both included."""
    since: float | None = None
    until: float | None = None
    """Before this moment."""
    branch: int | None = None
    parent: PageId | None = None
    """Children of this page."""
    call: str | None = None
    chain: Chain | None = None
    digest: Digest | None = None
    """Every occurrence of this content."""
    limit: int | None = None

    def holds(self, page: Page) -> bool:
        """True if every condition holds for this page. `limit` is not a condition."""
        wanted = (
            (self.session, page.session),
            (self.agent, page.agent),
            (self.branch, page.branch),
            (self.parent, page.parent),
            (self.call, page.call),
            (self.chain, page.chain),
            (self.digest, page.digest),
        )
        return (
            all(want is None or want == have for want, have in wanted)
            and (not self.kinds or page.kind in self.every_kind)
            and (self.turns is None or self.turns[0] <= page.turn <= self.turns[1])
            and (self.since is None or self.since <= page.time)
            and (self.until is None or page.time < self.until)
        )

    @property
    def every_kind(self) -> frozenset[Kind]:
        """The kinds asked for, with their special cases."""
        return frozenset(special for kind in self.kinds for special in including(kind))


@dataclass(frozen=True, slots=True)
class Blob:
    """Content and its address."""

    digest: Digest
    content: bytes


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in the store that differs from what was kept."""

    what: str
    """`content`, `file`, or the kind of row: `page`, `node`, `turn`, `session`, `shown`, `bill` and
    so on."""
    id: str
    why: str


@dataclass(frozen=True, slots=True)
class Census:
    """How much a store holds."""

    sessions: int
    turns: int
    pages: int
    blobs: int
    content_bytes: int
    """Bytes of content, before compression."""
    stored_bytes: int
    """Bytes of content on disk."""


class OutlinedMessage(NamedTuple):
    """A message's place in its session."""

    chain: Chain
    parent: Chain
    turn: int
    aside: bool


class OutlinedPage(NamedTuple):
    """A page's place in its session, and its size."""

    id: PageId
    chain: Chain
    position: int
    kind: str
    turn: int
    tool: str
    size: int
    tokens: int | None
    """None until it has a gist."""


@dataclass(frozen=True, slots=True)
class SessionOutline:
    """Where everything of a session is, for a picture of it. Its rows are not checked by their
    seals, so that 5,000 turns take a few hundredths of a second."""

    messages: Sequence[OutlinedMessage]
    pages: Sequence[OutlinedPage]


@dataclass(frozen=True, slots=True)
class SessionUse:
    """A session, and how much it was used."""

    session: Session
    turns: int
    last: Turn | None
    """Its latest turn; None if it has none."""


@dataclass(frozen=True, slots=True)
class BranchStart:
    """Where a branch of a session leaves an older line."""

    branch: int
    first: int
    """Its first turn."""
    after: int
    """The turn whose messages it follows; 0 if it began anew."""


@dataclass(frozen=True, slots=True)
class SessionOrigin:
    """Where a request would be placed."""

    session: SessionId | None
    """None: it begins a new session."""
    parent: SessionId | None = None
    """The session that a new one belongs to."""
    continues: bool = False
    """The new session continues its parent; otherwise the parent's agent started it."""


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A `Shown` as a row. Its place is the spot alone: sessions that share a past share its
    forms."""

    session: SessionId
    turn: int
    """Session and turn that decided it; no query uses them."""
    step: int
    """Grows with every change of the page table in a store; of two rows for one place the one with
    the higher step counts."""
    chain: Chain
    position: int
    form: Form
    text: Digest | None
    """The address of what is shown in place of the page; None if nothing is."""
    tokens: int
    whole: int
    cause: Cause
    time: float


@dataclass(frozen=True, slots=True)
class HiddenRow:
    """A `Hidden` as a row."""

    session: SessionId
    turn: int
    step: int
    chain: Chain
    before: tuple[Digest, ...]
    instead: Digest | None
    after: tuple[Digest, ...]
    asides: int


@dataclass(frozen=True, slots=True)
class SentRow:
    """A `SentRequest` as a row."""

    session: SessionId
    turn: int
    step: int
    head: Chain
    time: float
    tokens: int


Row: TypeAlias = (
    "Session | Turn | Node | Page | ToolSeen | Event | Reference | Gist | ShownRow | HiddenRow"
    " | SentRow | Bill | Summary | MemoryRecord | MemoryLink | MemoryUse | Note | Blob"
)
"""Any row of a store; `dump` writes them and `load` reads them."""


@dataclass(frozen=True, slots=True)
class MemoryRows:
    """How many rows some memories have."""

    memories: int
    """Number of the requested ones that exist."""
    versions: int
    links: int
    """From or to one of them."""
    uses: int


CANDIDATES = 64
"""How many sessions that share a message are compared: a first prompt that occurs 10,000 times must
not cost 10,000 look-ups."""

LATEST = 256
"""How many turns are searched for the one that started a session."""

FEW = 8
"""How many replies are compared with the beginning of a session, and how many pages of equal
content are read."""

MATCHES = 8
"""How many ids `match` and `contents` return: enough to tell a person that a prefix is not
unique."""


class Lookup(Protocol):
    """The queries that placing a deposit needs, answered inside the transaction that will write
    it."""

    def session(self, id: SessionId) -> Session | None: ...

    def session_by_key(self, key: str) -> Session | None: ...

    def sessions_with(self, chain: Chain) -> Sequence[SessionId]:
        """The sessions in which a message with this chain occurred, the most recent last; at most
        the last `CANDIDATES`."""
        ...

    def node(self, session: SessionId, chain: Chain) -> Node | None: ...

    def continued(self, session: SessionId, chain: Chain) -> bool:
        """True if another message (not an aside) already follows this one in the session. `ROOT`
        asks for any first message."""
        ...

    def branches(self, session: SessionId) -> int:
        """How many branches the session has; 0 while it has no messages."""
        ...

    def turn(self, session: SessionId, number: int) -> Turn | None: ...

    def turn_by_id(self, id: TurnId) -> Turn | None: ...

    def last_turn(self, session: SessionId) -> Turn | None: ...

    def turn_at(self, session: SessionId, head: Chain) -> Turn | None:
        """The latest turn whose request ended with this message."""
        ...

    def turn_by_response(self, response_id: str) -> Turn | None: ...

    def first_with_hint(self, hint: str) -> SessionId | None:
        """The first session among `LATEST` turns whose fingerprint begins with this hint and that
        offered tools."""
        ...

    def waiting_calls(self) -> Sequence[Page]:
        """Calls in the replies of the `LATEST` turns that no message follows yet; those of the
        latest turn first."""
        ...

    def latest_replies(self, least: int) -> Sequence[Page]:
        """Texts of so many bytes or more with which the replies of the last few turns ended, the
        latest first."""
        ...

    def pages_with(self, digest: Digest) -> Sequence[Page]:
        """The last few pages with this content, the latest first."""
        ...

    def content(self, digest: Digest) -> bytes | None: ...

    def last_page(self, session: SessionId, chain: Chain) -> PageId | None:
        """The last page of a message; None for `ROOT`, which is no message."""
        ...

    def page(self, id: PageId) -> Page | None: ...

    def pages_at(self, session: SessionId, chain: Chain) -> Sequence[PageId]:
        """The pages of a message, in their order."""
        ...

    def last_step(self) -> int:
        """The highest step of any row of the page table; 0 while there is none."""
        ...

    def last_memory(self, id: MemoryId) -> MemoryRecord | None:
        """Its latest version."""
        ...

    def memory_version(self, id: MemoryId, version: int) -> MemoryRecord | None: ...

    def last_link(self, of: MemoryId, to: MemoryId, relation: Relation) -> MemoryLink | None:
        """The current row, also if it says that the link is gone."""
        ...

    def memory_rows(self, ids: Sequence[MemoryId]) -> MemoryRows:
        """Row counts of these memories."""
        ...

    def last_note(self, space: str, key: str) -> Note | None:
        """Its latest version, also if that removed it."""
        ...


@dataclass(frozen=True, slots=True)
class Writing:
    """The rows of one commit. An existing row stays as it is; only a turn is replaced by its newer
    state. Erasing comes before anything is written."""

    blobs: tuple[Blob, ...] = ()
    sessions: tuple[Session, ...] = ()
    nodes: tuple[Node, ...] = ()
    pages: tuple[Page, ...] = ()
    turns: tuple[Turn, ...] = ()
    tools: tuple[ToolSeen, ...] = ()
    events: tuple[Event, ...] = ()
    references: tuple[Reference, ...] = ()
    gists: tuple[Gist, ...] = ()
    shown: tuple[ShownRow, ...] = ()
    hidden: tuple[HiddenRow, ...] = ()
    sent: tuple[SentRow, ...] = ()
    bills: tuple[Bill, ...] = ()
    summaries: tuple[Summary, ...] = ()
    memories: tuple[MemoryRecord, ...] = ()
    links: tuple[MemoryLink, ...] = ()
    uses: tuple[MemoryUse, ...] = ()
    erased: tuple[MemoryId, ...] = ()
    notes: tuple[Note, ...] = ()
    overwritten: tuple[Note, ...] = ()
    """Notes that `notes` replace: old versions in a space that keeps only the last few."""


Moved = Callable[[int, int], None]
"""Is told how many rows are done, and of how many; 0 of a number that is not known."""


class Store(Protocol):
    """Keeps everything.

    - What `keep`'s future resolves to is durable: it survives kill -9 and the loss of power.
    - The deposits of one `keep` are written together or not at all; a failed group changes nothing
      and raises a `HotsetError`.
    - Deposits are placed in the order in which they were handed over, each seeing those before it.
    - Content comes back byte for byte, or `PageDamaged` is raised; never other bytes.
    - Rows come back in the order in which they were kept, whatever their times.
    - Safe to use from several threads and several processes at once.
    """

    def keep(self, *deposits: Deposit) -> Future[CommitReceipt]: ...

    def content(self, digest: Digest) -> bytes:
        """Raises `NotFound`, or `PageDamaged`."""
        ...

    def page(self, id: PageId) -> Page:
        """Raises `NotFound`."""
        ...

    def match(self, prefix: str) -> Sequence[PageId]:
        """The first few page ids that begin with `prefix`."""
        ...

    def contents(self, prefix: str) -> Sequence[Digest]:
        """The first few addresses of content that begin with `prefix`; `Where.digest` leads from
        one to its pages."""
        ...

    def pages(self, where: Where) -> Iterator[Page]: ...

    def pages_after(self, number: int, limit: int) -> Sequence[tuple[int, Page]]:
        """The next pages in the order in which they were kept, each with its number in it, which is
        above 0 and never changes.

        For followers of the store. Damaged rows are left out: `verify` reports them.
        """
        ...

    def session(self, id: SessionId) -> Session:
        """Raises `NotFound`."""
        ...

    def sessions(self) -> Iterator[Session]: ...

    def recent_sessions(self) -> Sequence[Session]:
        """The session of the latest turn first, by order, not by clock; sessions without a turn are
        last."""
        ...

    def recent_ids(self, words: str = "", agent: str = "") -> Sequence[SessionId]:
        """The same as ids: those of this agent, if one is named, whose title, agent, key or id
        holds each of these words, in any case."""
        ...

    def session_uses(self, ids: Sequence[SessionId]) -> Sequence[SessionUse]:
        """These sessions in this order, without reading all of their turns; ids of none are left
        out."""
        ...

    def agents(self) -> Sequence[str]:
        """The agents of all sessions, those with most sessions first."""
        ...

    def branch_starts(self, session: SessionId) -> Sequence[BranchStart]:
        """Where each branch but the first begins, by number."""
        ...

    def origin(self, asked: RequestReceived) -> SessionOrigin:
        """Where this request would be placed, by what is kept now. Nothing is written."""
        ...

    def turns(self, session: SessionId, within: tuple[int, int] | None = None) -> Iterator[Turn]:
        """Those of a session, or those `within` a first and a last number, both included; so with
        events and bills."""
        ...

    def turn_of(self, session: SessionId, number: int = 0) -> Turn | None:
        """A turn of a session, the latest without a number; None if there is none."""
        ...

    def nodes(self, session: SessionId) -> Iterator[Node]: ...

    def outline(self, session: SessionId) -> SessionOutline: ...

    def tools(self) -> Iterator[ToolSeen]: ...

    def events(
        self,
        session: SessionId | None = None,
        name: str | None = None,
        within: tuple[int, int] | None = None,
    ) -> Iterator[Event]: ...

    def events_after(
        self, number: int, limit: int, names: frozenset[str] = frozenset()
    ) -> Sequence[tuple[int, Event]]:
        """The next events of these names, or of any, in the order in which they were kept, each
        with its number in it, as `pages_after` gives pages."""
        ...

    def events_before(
        self,
        number: int | None,
        limit: int,
        *,
        names: frozenset[str] = frozenset(),
        session: SessionId | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> Sequence[tuple[int, Event]]:
        """The latest events that fit, the latest first, each with its number; only those in front
        of `number`, if it is given. From `since` on and before `until`."""
        ...

    def reference(self, id: str) -> Reference:
        """Raises `NotFound`."""
        ...

    def references(self, session: SessionId) -> Iterator[Reference]: ...

    def gist(self, id: PageId) -> Gist | None: ...

    def ungisted(self, limit: int) -> Sequence[Page]:
        """Pages that have no gist yet, oldest first."""
        ...

    def table(self, chains: Sequence[Chain], as_of: TurnRef | None = None) -> PageTable:
        """The page table of a line, given by the chains of its messages from the first to the last.

        `shown` and `hidden` hold the latest row of each place, whichever session decided it; `sent`
        is the deepest message of the line with which a request ended. With `as_of`, everything is
        as of that turn's plan, with its decisions: the forms in which its request was sent. A turn
        that was never planned was sent unchanged: its table is empty. Raises `NotFound` if there is
        no such turn.
        """
        ...

    def bills(
        self,
        session: SessionId | None = None,
        since: float | None = None,
        within: tuple[int, int] | None = None,
    ) -> Iterator[Bill]: ...

    def summaries(self, session: SessionId) -> Sequence[Summary]:
        """The latest version of each stretch."""
        ...

    def memory(self, id: MemoryId) -> MemoryRecord:
        """Its latest version. Raises `NotFound`."""
        ...

    def memory_versions(self, id: MemoryId) -> Sequence[MemoryRecord]:
        """Every version of a memory, the oldest first; empty if there is no such memory."""
        ...

    def memories(
        self,
        kinds: frozenset[MemoryKind] = frozenset(),
        standings: frozenset[Standing] = frozenset(),
    ) -> Iterator[MemoryRecord]:
        """The latest version of each memory, in the order in which they were first kept.

        Only those whose latest version is of one of these kinds and standings; an empty set means
        any.
        """
        ...

    def newest_memories(
        self,
        kinds: frozenset[MemoryKind] = frozenset(),
        standings: frozenset[Standing] = frozenset(),
        *,
        since: float | None = None,
        until: float | None = None,
    ) -> Iterator[MemoryRecord]:
        """The same, latest event first, and of equal times the later id; from `since` on and before
        `until`."""
        ...

    def memories_after(self, number: int, limit: int) -> Sequence[tuple[int, MemoryRecord]]:
        """The next versions in the order in which they were kept, each with its number in it, as
        `pages_after` gives pages.

        The number of what was erased is never given again. Damaged rows are left out: `verify`
        reports them.
        """
        ...

    def memory_match(self, prefix: str) -> Sequence[MemoryId]:
        """The first few ids of memories that begin with `prefix`."""
        ...

    def memory_links(self, id: MemoryId | None = None) -> Sequence[MemoryLink]:
        """The current links from or to a memory, or all of them, in the order in which they were
        kept."""
        ...

    def memory_uses(self, ids: Sequence[MemoryId] = ()) -> Mapping[MemoryId, Uses]:
        """Use counts of these memories, or of all if none is named; unused ones are left out."""
        ...

    def memory_runs(self) -> Sequence[tuple[str, int, float]]:
        """The runs that wrote memories: name, number of versions, and time of the last one; the
        latest first. Versions without a run are not counted."""
        ...

    def notes(
        self, space: Space, keys: Sequence[str] = (), as_of: TurnRef | None = None
    ) -> Mapping[str, Note]:
        """The latest version of each of these keys, or of every key of a space; what was removed is
        left out.

        With `as_of`, as it was when that turn was planned; nothing for a turn that never was.
        Raises `NotFound` where there is no such turn.
        """
        ...

    def note_versions(self, space: Space, key: str) -> Sequence[Note]:
        """Every version that is kept, the oldest first."""
        ...

    @property
    def is_shared(self) -> bool:
        """True if other machines write to it too."""
        ...

    def refresh(self) -> bool:
        """Take over what other machines have written; False while that cannot be done. What is
        kept here counts all the same."""
        ...

    def version(self) -> int:
        """A number that changes with any commit of any thread or process; it can also change
        without one.

        Taken before a read, it shows later whether what was read may have changed. Numbers of two
        stores cannot be compared.
        """
        ...

    def census(self) -> Census: ...

    def verify(self, moved: Moved | None = None) -> Iterator[Damage]:
        """Recompute every hash; nothing is changed. `moved` is told how far it has come."""
        ...

    def dump(self, session: SessionId | None = None) -> Iterator[Row]:
        """All rows, or those of one session, such that `load` into an empty store gives an equal
        store."""
        ...

    def load(self, rows: Iterable[Row]) -> int:
        """Import what `dump` wrote; returns the number of new rows. Existing rows stay.

        If a row is invalid, nothing changes. An interrupted load (a kill, a full disk) may leave a
        consistent part; loading again adds the rest.

        If a memory was changed in both stores, no version is lost: theirs are appended to ours, and
        then ours is made the latest again (see `store.memory_versions`).
        """
        ...

    def close(self) -> None: ...
