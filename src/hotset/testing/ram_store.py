"""A store in memory: no SQL, no disk, the same answers. For tests, and to compare with the real
store."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from copy import copy
from dataclasses import replace
from itertools import chain, islice, pairwise
from typing import Any, TypeVar

from hotset.errors import BadInput, HotsetError, NotFound, StoreFailed
from hotset.nouns.bill import Bill, Summary
from hotset.nouns.deposit import CommitReceipt, Deposit, RequestReceived
from hotset.nouns.link import derive
from hotset.nouns.memory import (
    MemoryId,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    MemoryUse,
    Relation,
    Standing,
    Used,
    Uses,
)
from hotset.nouns.note import Note, Scope, Space
from hotset.nouns.page import ROOT, Chain, Digest, Gist, Kind, Page, PageId, SessionId, digest
from hotset.nouns.turn import Event, Node, Reference, Session, ToolSeen, Turn, TurnId, TurnRef
from hotset.nouns.window import Hidden, PageTable, SentRequest, Shown, Spot
from hotset.store.lineage import find_origin
from hotset.store.memory_tables import needs
from hotset.store.memory_versions import MemoryMerge, refuse_unfit
from hotset.store.migrations import old_note
from hotset.store.page_table import read_hidden, read_sent, read_shown
from hotset.store.placement import merge_receipts, place
from hotset.store.port import (
    CANDIDATES,
    FEW,
    LATEST,
    MATCHES,
    Blob,
    BranchStart,
    Census,
    Damage,
    HiddenRow,
    MemoryRows,
    Moved,
    OutlinedMessage,
    OutlinedPage,
    Row,
    SentRow,
    SessionOrigin,
    SessionOutline,
    SessionUse,
    ShownRow,
    Where,
    Writing,
)
from hotset.store.session_queries import holds_words
from hotset.store.tables import latest_versions, supersedes

_Key = TypeVar("_Key")
_Noun = TypeVar("_Noun")
_Decided = ShownRow | HiddenRow | SentRow | Bill | Summary | Note
_Keyed = Session | Node | Page | Turn | ToolSeen | Reference | Gist | _Decided
_Repeating = Event | MemoryLink | MemoryUse

_SHELF_AND_KEY: Mapping[type[_Keyed], tuple[str, Callable[[Any], Hashable]]] = {
    Session: ("sessions", lambda row: row.id),
    Node: ("nodes", lambda row: (row.session, row.chain)),
    Page: ("pages", lambda row: row.id),
    Turn: ("turns", lambda row: (row.session, row.number)),
    ToolSeen: ("tools", lambda row: (row.name, row.digest)),
    Reference: ("references", lambda row: row.id),
    Gist: ("gists", lambda row: row.page),
    ShownRow: ("shown", lambda row: (row.chain, row.position, row.step, row.session)),
    HiddenRow: ("hidden", lambda row: (row.chain, row.step, row.session)),
    SentRow: ("sent", lambda row: (row.head, row.step, row.session)),
    Bill: ("bills", lambda row: (row.session, row.turn)),
    Summary: ("summaries", lambda row: (row.session, row.branch, row.turns, row.version)),
    Note: ("notes", lambda row: (row.space, row.key, row.version)),
}
"""The collection of each kind of row, and the key that identifies a row in it."""


class _Shelves:
    """All rows, each kind in its order; answers the queries of placing."""

    def __init__(self) -> None:
        self.blobs: dict[Digest, bytes] = {}
        self.sessions: dict[SessionId, Session] = {}
        self.nodes: dict[tuple[SessionId, Chain], Node] = {}
        self.pages: dict[PageId, Page] = {}
        self.turns: dict[tuple[SessionId, int], Turn] = {}
        self.tools: dict[tuple[str, Digest], ToolSeen] = {}
        self.events: list[Event] = []
        self.references: dict[str, Reference] = {}
        self.gists: dict[PageId, Gist] = {}
        self.shown: dict[tuple[Chain, int, int, SessionId], ShownRow] = {}
        self.hidden: dict[tuple[Chain, int, SessionId], HiddenRow] = {}
        self.sent: dict[tuple[Chain, int, SessionId], SentRow] = {}
        self.bills: dict[tuple[SessionId | None, int], Bill] = {}
        self.summaries: dict[tuple[SessionId, int, tuple[int, int], int], Summary] = {}
        self.versions: dict[MemoryId, tuple[MemoryRecord, ...]] = {}
        self.memories: dict[int, MemoryRecord] = {}
        self.last_number = 0
        self.links: list[MemoryLink] = []
        self.holding: dict[tuple[MemoryId, MemoryId, Relation], MemoryLink] = {}
        self.uses: list[MemoryUse] = []
        self.notes: dict[tuple[str, str, int], Note] = {}

    def copied(self) -> _Shelves:
        other = _Shelves()
        for name, shelf in vars(self).items():
            setattr(other, name, copy(shelf))
        return other

    def session(self, id: SessionId) -> Session | None:
        return self.sessions.get(id)

    def session_by_key(self, key: str) -> Session | None:
        return next(
            (session for session in self.sessions.values() if key and session.key == key), None
        )

    def sessions_with(self, chain: Chain) -> Sequence[SessionId]:
        return [node.session for node in self.nodes.values() if node.chain == chain][-CANDIDATES:]

    def node(self, session: SessionId, chain: Chain) -> Node | None:
        return self.nodes.get((session, chain))

    def continued(self, session: SessionId, chain: Chain) -> bool:
        return any(
            node.session == session and node.parent == chain and not node.aside
            for node in self.nodes.values()
        )

    def branches(self, session: SessionId) -> int:
        return max(
            (node.branch + 1 for node in self.nodes.values() if node.session == session), default=0
        )

    def turn(self, session: SessionId, number: int) -> Turn | None:
        return self.turns.get((session, number))

    def turn_by_id(self, id: TurnId) -> Turn | None:
        return next((turn for turn in self.turns.values() if turn.id == id), None)

    def last_turn(self, session: SessionId) -> Turn | None:
        mine = (turn for turn in self.turns.values() if turn.session == session)
        return max(mine, key=lambda turn: turn.number, default=None)

    def turn_at(self, session: SessionId, head: Chain) -> Turn | None:
        mine = (
            turn for turn in self.turns.values() if turn.session == session and turn.head == head
        )
        return max(mine, key=lambda turn: turn.number, default=None)

    def turn_by_response(self, response_id: str) -> Turn | None:
        return next(
            (
                turn
                for turn in reversed(self.turns.values())
                if response_id and turn.response_id == response_id
            ),
            None,
        )

    def first_with_hint(self, hint: str) -> SessionId | None:
        latest = list(self.turns.values())[-LATEST:]
        return next(
            (
                each.session
                for each in latest
                if each.tools and each.fingerprint.startswith(f"{hint}.")
            ),
            None,
        )

    def waiting_calls(self) -> Sequence[Page]:
        waiting: list[Page] = []
        for turn in reversed(list(self.turns.values())[-LATEST:]):
            if (
                turn.tail == turn.head
                or turn.tools is None
                or self.continued(turn.session, turn.tail)
            ):
                continue
            replied = set(self._reply(turn))
            calls = (
                page
                for page in self.pages.values()
                if page.session == turn.session and page.chain in replied
            )
            waiting += [page for page in calls if page.kind is Kind.TOOL_CALL]
        return waiting[:LATEST]

    def latest_replies(self, least: int) -> Sequence[Page]:
        latest = reversed(list(self.turns.values())[-FEW:])
        ended = [(each.session, each.tail) for each in latest if each.tail != each.head]
        pages = [
            page
            for page in reversed(self.pages.values())
            if page.kind is Kind.RESPONSE and page.size >= least
        ]
        return [page for end in ended for page in pages if (page.session, page.chain) == end]

    def pages_with(self, digest: Digest) -> Sequence[Page]:
        return [page for page in reversed(self.pages.values()) if page.digest == digest][:FEW]

    def content(self, digest: Digest) -> bytes | None:
        return self.blobs.get(digest)

    def _reply(self, turn: Turn) -> Iterator[Chain]:
        chain = turn.tail
        while chain != turn.head and (node := self.node(turn.session, chain)) is not None:
            yield chain
            chain = node.parent

    def last_page(self, session: SessionId, chain: Chain) -> PageId | None:
        return next(reversed(self.pages_at(session, chain)), None)

    def page(self, id: PageId) -> Page | None:
        return self.pages.get(id)

    def pages_at(self, session: SessionId, chain: Chain) -> Sequence[PageId]:
        if chain == ROOT:
            return ()
        mine = (
            page for page in self.pages.values() if page.session == session and page.chain == chain
        )
        return [page.id for page in sorted(mine, key=lambda page: page.position)]

    def last_step(self) -> int:
        return max((row.step for row in (*self.decided(), *self.notes.values())), default=0)

    def note_versions(self, space: str, key: str) -> list[Note]:
        mine = (note for note in self.notes.values() if (note.space, note.key) == (space, key))
        return sorted(mine, key=lambda note: note.version)

    def last_note(self, space: str, key: str) -> Note | None:
        return next(reversed(self.note_versions(space, key)), None)

    def versions_of(self, id: MemoryId) -> Sequence[MemoryRecord]:
        return self.versions.get(id, ())

    def last_memory(self, id: MemoryId) -> MemoryRecord | None:
        return self.versions[id][-1] if id in self.versions else None

    def memory_version(self, id: MemoryId, version: int) -> MemoryRecord | None:
        return next(
            (memory for memory in self.versions.get(id, ()) if memory.version == version), None
        )

    def last_link(self, of: MemoryId, to: MemoryId, relation: Relation) -> MemoryLink | None:
        return self.holding.get((of, to, relation))

    def memory_rows(self, ids: Sequence[MemoryId]) -> MemoryRows:
        these = {*ids}
        return MemoryRows(
            memories=len(these & self.versions.keys()),
            versions=sum(len(self.versions.get(id, ())) for id in these),
            links=sum(bool(these & {link.of, link.to}) for link in self.links),
            uses=sum(use.memory in these for use in self.uses),
        )

    def decided(self) -> Iterator[ShownRow | HiddenRow | SentRow]:
        """The page table, each kind of row in the order of decisions."""
        yield from sorted(self.shown.values(), key=lambda row: row.step)
        yield from sorted(self.hidden.values(), key=lambda row: row.step)
        yield from sorted(self.sent.values(), key=lambda row: row.step)

    def add(self, row: _Keyed) -> bool:
        """Add a new row; of those with one key the first wins."""
        if (
            isinstance(row, HiddenRow)
            and (note := old_note(row, self.blobs.__getitem__)) is not None
        ):
            return self._add_old_note(note)
        name, key = _SHELF_AND_KEY[type(row)]
        shelf: dict[Hashable, _Keyed] = getattr(self, name)
        before = len(shelf)
        shelf.setdefault(key(row), row)
        return len(shelf) > before

    def _add_old_note(self, note: Note) -> bool:
        """A note in the form of earlier versions: it gets the next version."""
        every = self.note_versions(note.space, note.key)
        if any((each.step, each.session) == (note.step, note.session) for each in every):
            return False
        return self.add(replace(note, version=every[-1].version + 1 if every else 1))

    def write(self, writing: Writing) -> None:
        for blob in writing.blobs:
            self.blobs.setdefault(blob.digest, blob.content)
        for turn in writing.turns:
            self.turns[turn.session, turn.number] = turn
        for row in chain[_Keyed](
            writing.sessions,
            writing.nodes,
            writing.pages,
            writing.tools,
            writing.references,
            writing.gists,
            writing.shown,
            writing.hidden,
            writing.sent,
            writing.bills,
            writing.summaries,
            writing.notes,
        ):
            self.add(row)
        self.events.extend(writing.events)
        for note in writing.overwritten:
            self.notes.pop((note.space, note.key, note.version), None)
        if writing.erased:
            self._erase({*writing.erased})
        for memory in writing.memories:
            self.add_memory(memory)
        for link in writing.links:
            self.add_link(link)
        self.uses.extend(writing.uses)

    def add_memory(self, memory: MemoryRecord) -> None:
        every = (*self.versions.get(memory.id, ()), memory)
        self.versions[memory.id] = tuple(sorted(every, key=lambda each: each.version))
        self.last_number += 1
        self.memories[self.last_number] = memory

    def add_link(self, link: MemoryLink) -> None:
        self.links.append(link)
        ends = link.of, link.to, link.relation
        self.holding.pop(ends, None)  # its place is that of the row that holds
        self.holding[ends] = link

    def _erase(self, ids: set[MemoryId]) -> None:
        self.versions = {id: versions for id, versions in self.versions.items() if id not in ids}
        self.memories = {
            number: memory for number, memory in self.memories.items() if memory.id not in ids
        }
        self.links = [link for link in self.links if not ids & {link.of, link.to}]
        self.holding = {
            ends: link for ends, link in self.holding.items() if not ids & {link.of, link.to}
        }
        self.uses = [use for use in self.uses if use.memory not in ids]

    def rows(self) -> Iterator[Row]:
        return chain[Row](
            (Blob(*pair) for pair in self.blobs.items()),
            self.sessions.values(),
            self.nodes.values(),
            self.pages.values(),
            self.turns.values(),
            self.tools.values(),
            self.events,
            self.references.values(),
            (self.gists[id] for id in self.pages if id in self.gists),
            self.decided(),
            self.bills.values(),
            self.summaries.values(),
            self.memories.values(),
            self.links,
            self.uses,
            (note for note in self.notes.values() if note.scope is not Scope.MACHINE),
        )


class RamStore:
    """A `Store` that forgets everything when the process ends."""

    def __init__(self) -> None:
        self._shelves = _Shelves()
        self._lock = threading.Lock()
        self._closed = False
        self._version = 0

    @property
    def is_shared(self) -> bool:
        return False

    def refresh(self) -> bool:
        return True

    def keep(self, *deposits: Deposit) -> Future[CommitReceipt]:
        future: Future[CommitReceipt] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            if self._closed:
                raise StoreFailed("the store is closed")
            shelves = self._shelves if len(deposits) == 1 else self._shelves.copied()
            kept = CommitReceipt()
            try:
                for deposit in deposits:
                    writing, each = place(deposit, shelves)
                    shelves.write(writing)
                    kept = merge_receipts(kept, each)
            except HotsetError as error:
                future.set_exception(error)
            else:
                self._shelves = shelves
                self._version += 1
                future.set_result(kept)
        return future

    def content(self, digest: Digest) -> bytes:
        return _get_row(self._shelves.blobs, digest, "content")

    def page(self, id: PageId) -> Page:
        return _get_row(self._shelves.pages, id, "page")

    def match(self, prefix: str) -> Sequence[PageId]:
        return sorted(id for id in self._shelves.pages if id.startswith(prefix))[:MATCHES]

    def contents(self, prefix: str) -> Sequence[Digest]:
        return sorted(address for address in self._shelves.blobs if address.startswith(prefix))[
            :MATCHES
        ]

    def pages(self, where: Where) -> Iterator[Page]:
        found = [page for page in self._shelves.pages.values() if where.holds(page)]
        return iter(found if where.limit is None else found[: max(0, where.limit)])

    def pages_after(self, number: int, limit: int) -> Sequence[tuple[int, Page]]:
        first = max(0, number)
        with self._lock:
            return list(
                islice(enumerate(self._shelves.pages.values(), 1), first, first + max(0, limit))
            )

    def session(self, id: SessionId) -> Session:
        return _get_row(self._shelves.sessions, id, "session")

    def sessions(self) -> Iterator[Session]:
        return iter(tuple(self._shelves.sessions.values()))

    def recent_sessions(self) -> Sequence[Session]:
        used = {turn.session: place for place, turn in enumerate(self._shelves.turns.values(), 1)}
        places = {id: (used.get(id, 0), place) for place, id in enumerate(self._shelves.sessions)}
        return sorted(
            self._shelves.sessions.values(), key=lambda each: places[each.id], reverse=True
        )

    def recent_ids(self, words: str = "", agent: str = "") -> Sequence[SessionId]:
        wanted = words.casefold().split()
        return [
            each.id
            for each in self.recent_sessions()
            if agent in ("", each.agent)
            and holds_words(wanted, (each.id, each.title, each.agent, each.key))
        ]

    def session_uses(self, ids: Sequence[SessionId]) -> Sequence[SessionUse]:
        known = [self._shelves.sessions[id] for id in ids if id in self._shelves.sessions]
        return [
            SessionUse(each, len(list(self.turns(each.id))), self._shelves.last_turn(each.id))
            for each in known
        ]

    def agents(self) -> Sequence[str]:
        counts = Counter(each.agent for each in self._shelves.sessions.values())
        return sorted(counts, key=lambda agent: (-counts[agent], agent))

    def branch_starts(self, session: SessionId) -> Sequence[BranchStart]:
        nodes = list(self.nodes(session))
        turn_of = {node.chain: node.turn for node in nodes}
        firsts: dict[int, Node] = {}
        for node in nodes:
            if node.branch and not node.aside:
                firsts.setdefault(node.branch, node)
        return [
            BranchStart(branch, node.turn, turn_of.get(node.parent, 0))
            for branch, node in sorted(firsts.items())
        ]

    def origin(self, asked: RequestReceived) -> SessionOrigin:
        with self._lock:
            return find_origin(asked, self._shelves)

    def turns(self, session: SessionId, within: tuple[int, int] | None = None) -> Iterator[Turn]:
        mine = (turn for turn in self._shelves.turns.values() if turn.session == session)
        return iter([turn for turn in mine if _is_within(turn.number, within)])

    def turn_of(self, session: SessionId, number: int = 0) -> Turn | None:
        if number:
            return self._shelves.turn(session, number)
        return self._shelves.last_turn(session)

    def outline(self, session: SessionId) -> SessionOutline:
        gists = self._shelves.gists
        pages = [each for each in self._shelves.pages.values() if each.session == session]
        return SessionOutline(
            [
                OutlinedMessage(each.chain, each.parent, each.turn, each.aside)
                for each in self.nodes(session)
            ],
            [
                OutlinedPage(
                    *(each.id, each.chain, each.position, each.kind.value, each.turn, each.tool),
                    each.size,
                    gists[each.id].tokens if each.id in gists else None,
                )
                for each in pages
            ],
        )

    def nodes(self, session: SessionId) -> Iterator[Node]:
        return iter([node for node in self._shelves.nodes.values() if node.session == session])

    def tools(self) -> Iterator[ToolSeen]:
        return iter(tuple(self._shelves.tools.values()))

    def events(
        self,
        session: SessionId | None = None,
        name: str | None = None,
        within: tuple[int, int] | None = None,
    ) -> Iterator[Event]:
        return iter(
            [
                event
                for event in self._shelves.events
                if session in (None, event.session)
                and name in (None, event.name)
                and _is_within(event.turn, within)
            ]
        )

    def events_after(
        self, number: int, limit: int, names: frozenset[str] = frozenset()
    ) -> Sequence[tuple[int, Event]]:
        with self._lock:
            every = list(enumerate(self._shelves.events, 1))[max(0, number) :]
        return [each for each in every if not names or each[1].name in names][: max(0, limit)]

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
        with self._lock:
            every = list(enumerate(self._shelves.events, 1))
        return [
            (at, event)
            for at, event in reversed(every)
            if (number is None or at < number)
            and (not names or event.name in names)
            and session in (None, event.session)
            and (since is None or since <= event.time)
            and (until is None or event.time < until)
        ][: max(0, limit)]

    def reference(self, id: str) -> Reference:
        return _get_row(self._shelves.references, id, "reference")

    def references(self, session: SessionId) -> Iterator[Reference]:
        return iter(
            [
                reference
                for reference in self._shelves.references.values()
                if reference.session == session
            ]
        )

    def gist(self, id: PageId) -> Gist | None:
        return self._shelves.gists.get(id)

    def ungisted(self, limit: int) -> Sequence[Page]:
        return [
            page for page in self._shelves.pages.values() if page.id not in self._shelves.gists
        ][:limit]

    def table(self, chains: Sequence[Chain], as_of: TurnRef | None = None) -> PageTable:
        with self._lock:
            return _table(self._shelves, chains, as_of)

    def bills(
        self,
        session: SessionId | None = None,
        since: float | None = None,
        within: tuple[int, int] | None = None,
    ) -> Iterator[Bill]:
        every = [bill for bill in self._shelves.bills.values() if session in (None, bill.session)]
        newer = (bill for bill in every if since is None or bill.time >= since)
        return iter([bill for bill in newer if _is_within(bill.turn, within)])

    def summaries(self, session: SessionId) -> Sequence[Summary]:
        return latest_versions(
            [summary for summary in self._shelves.summaries.values() if summary.session == session]
        )

    def memory(self, id: MemoryId) -> MemoryRecord:
        return _get_row(self._shelves.versions, id, "memory")[-1]

    def memory_versions(self, id: MemoryId) -> Sequence[MemoryRecord]:
        return self._shelves.versions_of(id)

    def memories(
        self,
        kinds: frozenset[MemoryKind] = frozenset(),
        standings: frozenset[Standing] = frozenset(),
    ) -> Iterator[MemoryRecord]:
        with self._lock:
            latest = [versions[-1] for versions in self._shelves.versions.values()]
        return iter(
            [
                memory
                for memory in latest
                if (not kinds or memory.kind in kinds)
                and (not standings or memory.standing in standings)
            ]
        )

    def newest_memories(
        self,
        kinds: frozenset[MemoryKind] = frozenset(),
        standings: frozenset[Standing] = frozenset(),
        *,
        since: float | None = None,
        until: float | None = None,
    ) -> Iterator[MemoryRecord]:
        among = [
            memory
            for memory in self.memories(kinds, standings)
            if (since is None or memory.created >= since)
            and (until is None or memory.created < until)
        ]
        return iter(sorted(among, key=lambda memory: (memory.created, memory.id), reverse=True))

    def memories_after(self, number: int, limit: int) -> Sequence[tuple[int, MemoryRecord]]:
        with self._lock:
            later = (
                (each, memory) for each, memory in self._shelves.memories.items() if each > number
            )
            return list(islice(later, max(0, limit)))

    def memory_match(self, prefix: str) -> Sequence[MemoryId]:
        with self._lock:
            return sorted(id for id in self._shelves.versions if id.startswith(prefix))[:MATCHES]

    def memory_links(self, id: MemoryId | None = None) -> Sequence[MemoryLink]:
        with self._lock:
            links = [link for link in self._shelves.holding.values() if not link.gone]
        return [link for link in links if id in (None, link.of, link.to)]

    def memory_uses(self, ids: Sequence[MemoryId] = ()) -> Mapping[MemoryId, Uses]:
        with self._lock:
            uses = [use for use in self._shelves.uses if not ids or use.memory in {*ids}]
        counted: dict[MemoryId, Uses] = {}
        for use in uses:
            counted[use.memory] = _with(counted.get(use.memory, Uses()), use)
        return counted

    def memory_runs(self) -> Sequence[tuple[str, int, float]]:
        with self._lock:
            written = [
                (memory.run, memory.time)
                for memory in self._shelves.memories.values()
                if memory.run
            ]
        newest = dict.fromkeys(run for run, _ in reversed(written))
        times = {name: [time for run, time in written if run == name] for name in newest}
        return [(name, len(times[name]), max(times[name])) for name in newest]

    def notes(
        self, space: Space, keys: Sequence[str] = (), as_of: TurnRef | None = None
    ) -> Mapping[str, Note]:
        with self._lock:
            step = _step_of(self._shelves, as_of)
            every = [
                note
                for note in self._shelves.notes.values()
                if note.space == space.name and note.step <= step
            ]
        held = {
            note.key: note
            for note in sorted(every, key=lambda note: note.version)
            if not keys or note.key in keys
        }
        return {key: note for key, note in held.items() if note.value is not None}

    def note_versions(self, space: Space, key: str) -> Sequence[Note]:
        with self._lock:
            return self._shelves.note_versions(space.name, key)

    def version(self) -> int:
        return self._version

    def census(self) -> Census:
        shelves = self._shelves
        size = sum(map(len, shelves.blobs.values()))
        return Census(
            len(shelves.sessions),
            len(shelves.turns),
            len(shelves.pages),
            len(shelves.blobs),
            size,
            size,
        )

    def verify(self, moved: Moved | None = None) -> Iterator[Damage]:
        for done, (address, content) in enumerate(self._shelves.blobs.items(), 1):
            if moved is not None:
                moved(done, len(self._shelves.blobs))
            if digest(content) != address:
                yield Damage("content", address, "its bytes do not have that hash")
        for node in self._shelves.nodes.values():
            if node.chain != derive(node.parent, node.essence, aside=node.aside):
                yield Damage(
                    "node", node.chain, "its chain does not follow from its parent and what it says"
                )

    def dump(self, session: SessionId | None = None) -> Iterator[Row]:
        with self._lock:
            rows = list(self._shelves.rows())
        if session is not None:
            rows = _of_session(rows, session)
        return iter(rows)

    def load(self, rows: Iterable[Row]) -> int:
        """Fill a copy and replace the original with it: all or nothing."""
        with self._lock:
            shelves = self._shelves.copied()
            new = _take_all(shelves, rows)
            self._shelves = shelves
            self._version += 1
        return new

    def close(self) -> None:
        self._closed = True


def _is_within(number: int, within: tuple[int, int] | None) -> bool:
    return within is None or within[0] <= number <= within[1]


def _table(shelves: _Shelves, chains: Sequence[Chain], as_of: TurnRef | None) -> PageTable:
    step = _step_of(shelves, as_of)
    depth = {chain: number for number, chain in enumerate(chains)}
    behind = dict(pairwise(chains))
    read = shelves.blobs.__getitem__
    all_shown: dict[Spot, Shown] = {}
    all_hidden: dict[Chain, Hidden] = {}
    latest: tuple[int, SentRequest] | None = None
    for row in sorted(shelves.decided(), key=lambda row: (row.step, row.session)):
        if row.step > step:
            break
        match row:
            case ShownRow() if row.chain in depth:
                all_shown[Spot(row.chain, row.position)] = read_shown(row, read)
            case HiddenRow() if row.chain in depth and _holds(shelves, row, behind.get(row.chain)):
                all_hidden[row.chain] = read_hidden(row, read)
            case SentRow() if row.head in depth and (
                latest is None or depth[row.head] >= latest[0]
            ):
                latest = (depth[row.head], read_sent(row))
    return PageTable(all_shown, all_hidden, latest[1] if latest else None)


def _step_of(shelves: _Shelves, as_of: TurnRef | None) -> int:
    if as_of is None:
        return shelves.last_step()
    if (as_of.session, as_of.number) not in shelves.turns:
        raise NotFound(f"no turn {as_of.number} in session {as_of.session}")
    mine = (
        row.step
        for row in shelves.sent.values()
        if (row.session, row.turn) == (as_of.session, as_of.number)
    )
    return max(mine, default=0)


def _holds(shelves: _Shelves, row: HiddenRow, next: Chain | None) -> bool:
    """True if it was there when the next message was made in reply; a message that is not a reply
    proves nothing."""
    turns = {(node.session, node.turn) for node in shelves.nodes.values() if node.chain == next}
    replies = [
        sent
        for sent in shelves.sent.values()
        if sent.head == row.chain and (sent.session, sent.turn) in turns
    ]
    last = max(replies, key=lambda sent: sent.step, default=None)
    return (
        last is None
        or row.step <= last.step
        or (row.session, row.turn) == (last.session, last.turn)
    )


def _with(uses: Uses, use: MemoryUse) -> Uses:
    counted = replace(uses, **{str(use.how): getattr(uses, use.how) + 1})
    return (
        replace(counted, last=max(uses.last, use.time))
        if use.how in (Used.READ, Used.HELPED)
        else counted
    )


def _take_all(shelves: _Shelves, rows: Iterable[Row]) -> int:
    repeating: tuple[_Repeating, ...] = (*shelves.events, *shelves.links, *shelves.uses)
    had = Counter(map(_fields, repeating))
    meeting = MemoryMerge(shelves, shelves.versions_of)
    content: set[Digest] = set()
    sessions: set[SessionId] = set()
    new = 0
    for row in rows:
        needed = needs(row)
        content.update(needed.content)
        sessions.update(needed.sessions)
        match row:
            case MemoryRecord():
                if (memory := meeting.take(row)) is not None:
                    shelves.add_memory(memory)
                    new += 1
            case Event() | MemoryLink() | MemoryUse():
                new += _take_nth(shelves, row, had)
            case _:
                new += _take(shelves, row)
    for memory in meeting.ours_again():
        shelves.add_memory(memory)
        new += 1
    if missing := content - shelves.blobs.keys():
        raise BadInput(
            f"a row points to content {min(missing)}, which is not there; nothing was changed"
        )
    if unknown := sessions - shelves.sessions.keys():
        raise BadInput(
            f"a row belongs to session {min(unknown)}, which is not there; nothing was changed"
        )
    return new


def _take(shelves: _Shelves, row: Blob | _Keyed) -> bool:
    match row:
        case Blob():
            is_new = row.digest not in shelves.blobs
            shelves.blobs.setdefault(row.digest, row.content)
            return is_new
        case Turn() if (there := shelves.turn(row.session, row.number)) and supersedes(row, there):
            shelves.turns[row.session, row.number] = row
            return True
        case Gist() if row.page not in shelves.pages:
            raise BadInput(f"a gist of page {row.page}, which is not there")
        case Note() if row.scope is Scope.MACHINE:
            return False  # of another machine
        case _:
            return shelves.add(row)


def _take_nth(shelves: _Shelves, row: _Repeating, had: Counter[str]) -> bool:
    """Equal rows are distinct: each one that the store already had accounts for one of the
    file's."""
    if had[_fields(row)] > 0:
        had[_fields(row)] -= 1
        return False
    match row:
        case Event():
            shelves.events.append(row)
        case MemoryLink():
            refuse_unfit(row)
            shelves.add_link(row)
        case MemoryUse():
            refuse_unfit(row)
            shelves.uses.append(row)
    return True


def _of_session(rows: Sequence[Row], session: SessionId) -> list[Row]:
    """Forms belong to messages: they leave with their message's session, whichever session decided
    them."""
    chains = {row.chain for row in rows if isinstance(row, Node) and row.session == session}
    memories = {
        row.id for row in rows if isinstance(row, MemoryRecord) and row.source.session == session
    }
    mine = [
        row
        for row in rows
        if not isinstance(row, Blob | Gist) and _belongs(row, session, chains, memories)
    ]
    content = {each for row in mine for each in needs(row).content}
    pages = {row.id for row in mine if isinstance(row, Page)}
    blobs = [row for row in rows if isinstance(row, Blob) and row.digest in content]
    gists = [row for row in rows if isinstance(row, Gist) and row.page in pages]
    return [*blobs, *mine, *gists]


def _belongs(  # noqa: PLR0911 - one case a kind of row
    row: Session | Node | Page | Turn | ToolSeen | Reference | _Decided | MemoryRecord | _Repeating,
    session: SessionId,
    chains: set[Chain],
    memories: set[MemoryId],
) -> bool:
    match row:
        case Session():
            return row.id == session
        case ToolSeen():
            return row.first_session == session
        case ShownRow() | HiddenRow():
            return row.chain in chains
        case SentRow():
            return row.head in chains or row.session == session
        case MemoryRecord():
            return row.id in memories
        case MemoryLink():
            return {row.of, row.to} <= memories
        case MemoryUse():
            return row.session == session and row.memory in memories
        case _:
            return row.session == session


def _fields(row: _Repeating) -> str:
    if not isinstance(row, Event):
        return repr(row)
    return repr((row.name, float(row.time), row.session, row.turn, sorted(row.detail.items())))


def _get_row(shelf: dict[_Key, _Noun], key: _Key, what: str) -> _Noun:
    try:
        return shelf[key]
    except KeyError:
        raise NotFound(f"no {what} {key}") from None
