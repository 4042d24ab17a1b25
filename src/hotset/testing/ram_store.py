"""A store in memory: no SQL, no disk, the same answers. For tests, and as the second voice in the store's own."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from copy import copy
from itertools import chain, islice
from typing import TypeVar

from hotset.errors import BadInput, HotsetError, NotFound, StoreFailed
from hotset.nouns.bill import Bill, Summary
from hotset.nouns.deposit import Deposit, Kept
from hotset.nouns.link import derive
from hotset.nouns.page import ROOT, Chain, Digest, Gist, Page, PageId, SessionId, digest
from hotset.nouns.turn import Event, Node, Reference, Session, ToolSeen, Turn, TurnId, TurnRef
from hotset.nouns.window import Hidden, Sent, Shown, Spot, Table
from hotset.store.needs import latest_versions, needs, supersedes
from hotset.store.placing import place
from hotset.store.port import CANDIDATES, MATCHES, Blob, Census, Damage, Row, Where, Writing
from hotset.store.showing import Hiding, Sending, Showing, hidden, sent, shown

_Key = TypeVar("_Key")
_Noun = TypeVar("_Noun")
_Decided = Showing | Hiding | Sending | Bill | Summary


class _Shelves:
    """Everything that is kept, each kind in its order; answers what placing asks."""

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
        self.shown: dict[tuple[Chain, int, int, SessionId], Showing] = {}
        self.hidden: dict[tuple[Chain, int, SessionId], Hiding] = {}
        self.sent: dict[tuple[Chain, int, SessionId], Sending] = {}
        self.bills: dict[tuple[SessionId | None, int], Bill] = {}
        self.summaries: dict[tuple[SessionId, int, tuple[int, int], int], Summary] = {}

    def copied(self) -> _Shelves:
        other = _Shelves()
        for name, shelf in vars(self).items():
            setattr(other, name, copy(shelf))
        return other

    def session(self, id: SessionId) -> Session | None:
        return self.sessions.get(id)

    def session_by_key(self, key: str) -> Session | None:
        return next((session for session in self.sessions.values() if key and session.key == key), None)

    def sessions_with(self, chain: Chain) -> Sequence[SessionId]:
        return [node.session for node in self.nodes.values() if node.chain == chain][-CANDIDATES:]

    def node(self, session: SessionId, chain: Chain) -> Node | None:
        return self.nodes.get((session, chain))

    def continued(self, session: SessionId, chain: Chain) -> bool:
        return any(node.session == session and node.parent == chain and not node.aside for node in self.nodes.values())

    def branches(self, session: SessionId) -> int:
        return max((node.branch + 1 for node in self.nodes.values() if node.session == session), default=0)

    def turn(self, session: SessionId, number: int) -> Turn | None:
        return self.turns.get((session, number))

    def turn_by_id(self, id: TurnId) -> Turn | None:
        return next((turn for turn in self.turns.values() if turn.id == id), None)

    def last_turn(self, session: SessionId) -> Turn | None:
        mine = (turn for turn in self.turns.values() if turn.session == session)
        return max(mine, key=lambda turn: turn.number, default=None)

    def turn_at(self, session: SessionId, head: Chain) -> Turn | None:
        mine = (turn for turn in self.turns.values() if turn.session == session and turn.head == head)
        return max(mine, key=lambda turn: turn.number, default=None)

    def turn_by_response(self, response_id: str) -> Turn | None:
        return next((turn for turn in reversed(self.turns.values()) if response_id and turn.response_id == response_id), None)

    def last_page(self, session: SessionId, chain: Chain) -> PageId | None:
        if chain == ROOT:
            return None
        mine = (page for page in self.pages.values() if page.session == session and page.chain == chain)
        last = max(mine, key=lambda page: page.position, default=None)
        return last.id if last else None

    def page(self, id: PageId) -> Page | None:
        return self.pages.get(id)

    def pages_at(self, session: SessionId, chain: Chain) -> Sequence[PageId]:
        if chain == ROOT:
            return ()
        mine = (page for page in self.pages.values() if page.session == session and page.chain == chain)
        return [page.id for page in sorted(mine, key=lambda page: page.position)]

    def last_step(self) -> int:
        return max((row.step for row in self.decided()), default=0)

    def decided(self) -> Iterator[Showing | Hiding | Sending]:
        """The page table, each kind of row in the order in which it was decided."""
        yield from sorted(self.shown.values(), key=lambda row: row.step)
        yield from sorted(self.hidden.values(), key=lambda row: row.step)
        yield from sorted(self.sent.values(), key=lambda row: row.step)

    def write(self, writing: Writing) -> None:
        for blob in writing.blobs:
            self.blobs.setdefault(blob.digest, blob.content)
        for session in writing.sessions:
            self.sessions.setdefault(session.id, session)
        for node in writing.nodes:
            self.nodes.setdefault((node.session, node.chain), node)
        for page in writing.pages:
            self.pages.setdefault(page.id, page)
        for turn in writing.turns:
            self.turns[turn.session, turn.number] = turn
        for tool in writing.tools:
            self.tools.setdefault((tool.name, tool.digest), tool)
        self.events.extend(writing.events)
        for reference in writing.references:
            self.references.setdefault(reference.id, reference)
        for gist in writing.gists:
            self.gists.setdefault(gist.page, gist)
        decided: tuple[tuple[_Decided, ...], ...] = (
            writing.shown,
            writing.hidden,
            writing.sent,
            writing.bills,
            writing.summaries,
        )
        for row in chain.from_iterable(decided):
            _take_decided(self, row)

    def rows(self) -> Iterator[Row]:
        yield from (Blob(*pair) for pair in self.blobs.items())
        yield from self.sessions.values()
        yield from self.nodes.values()
        yield from self.pages.values()
        yield from self.turns.values()
        yield from self.tools.values()
        yield from self.events
        yield from self.references.values()
        yield from (self.gists[id] for id in self.pages if id in self.gists)
        yield from self.decided()
        yield from self.bills.values()
        yield from self.summaries.values()


class RamStore:
    """A `Store` that forgets everything when the process ends."""

    def __init__(self) -> None:
        self._shelves = _Shelves()
        self._lock = threading.Lock()
        self._closed = False
        self._version = 0

    def keep(self, deposit: Deposit) -> Future[Kept]:
        future: Future[Kept] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            if self._closed:
                raise StoreFailed("the store is closed")
            try:
                writing, kept = place(deposit, self._shelves)
                self._shelves.write(writing)
            except HotsetError as error:
                future.set_exception(error)
            else:
                self._version += 1
                future.set_result(kept)
        return future

    def content(self, digest: Digest) -> bytes:
        return _found(self._shelves.blobs, digest, "content")

    def page(self, id: PageId) -> Page:
        return _found(self._shelves.pages, id, "page")

    def match(self, prefix: str) -> Sequence[PageId]:
        return sorted(id for id in self._shelves.pages if id.startswith(prefix))[:MATCHES]

    def contents(self, prefix: str) -> Sequence[Digest]:
        return sorted(address for address in self._shelves.blobs if address.startswith(prefix))[:MATCHES]

    def pages(self, where: Where) -> Iterator[Page]:
        found = [page for page in self._shelves.pages.values() if where.holds(page)]
        return iter(found if where.limit is None else found[: max(0, where.limit)])

    def pages_after(self, number: int, limit: int) -> Sequence[tuple[int, Page]]:
        first = max(0, number)
        with self._lock:
            return list(islice(enumerate(self._shelves.pages.values(), 1), first, first + max(0, limit)))

    def session(self, id: SessionId) -> Session:
        return _found(self._shelves.sessions, id, "session")

    def sessions(self) -> Iterator[Session]:
        return iter(tuple(self._shelves.sessions.values()))

    def turns(self, session: SessionId) -> Iterator[Turn]:
        return iter([turn for turn in self._shelves.turns.values() if turn.session == session])

    def nodes(self, session: SessionId) -> Iterator[Node]:
        return iter([node for node in self._shelves.nodes.values() if node.session == session])

    def tools(self) -> Iterator[ToolSeen]:
        return iter(tuple(self._shelves.tools.values()))

    def events(self, session: SessionId | None = None) -> Iterator[Event]:
        return iter([event for event in self._shelves.events if session in (None, event.session)])

    def reference(self, id: str) -> Reference:
        return _found(self._shelves.references, id, "reference")

    def references(self, session: SessionId) -> Iterator[Reference]:
        return iter([reference for reference in self._shelves.references.values() if reference.session == session])

    def gist(self, id: PageId) -> Gist | None:
        return self._shelves.gists.get(id)

    def ungisted(self, limit: int) -> Sequence[Page]:
        return [page for page in self._shelves.pages.values() if page.id not in self._shelves.gists][:limit]

    def table(self, chains: Sequence[Chain], as_of: TurnRef | None = None) -> Table:
        with self._lock:
            return _table(self._shelves, chains, as_of)

    def bills(self, session: SessionId | None = None, since: float | None = None) -> Iterator[Bill]:
        every = [bill for bill in self._shelves.bills.values() if session in (None, bill.session)]
        return iter([bill for bill in every if since is None or bill.time >= since])

    def summaries(self, session: SessionId) -> Sequence[Summary]:
        return latest_versions([summary for summary in self._shelves.summaries.values() if summary.session == session])

    def version(self) -> int:
        return self._version

    def census(self) -> Census:
        shelves = self._shelves
        size = sum(map(len, shelves.blobs.values()))
        return Census(len(shelves.sessions), len(shelves.turns), len(shelves.pages), len(shelves.blobs), size, size)

    def verify(self) -> Iterator[Damage]:
        for address, content in self._shelves.blobs.items():
            if digest(content) != address:
                yield Damage("content", address, "its bytes do not have that hash")
        for node in self._shelves.nodes.values():
            if node.chain != derive(node.parent, node.essence, aside=node.aside):
                yield Damage("node", node.chain, "its chain does not follow from its parent and what it says")

    def dump(self, session: SessionId | None = None) -> Iterator[Row]:
        with self._lock:
            rows = list(self._shelves.rows())
        if session is not None:
            rows = _of_session(rows, session)
        return iter(rows)

    def load(self, rows: Iterable[Row]) -> int:
        """Fills a copy and puts it in place of the original: all or nothing."""
        with self._lock:
            shelves = self._shelves.copied()
            new = _take_all(shelves, rows)
            self._shelves = shelves
            self._version += 1
        return new

    def close(self) -> None:
        self._closed = True


def _table(shelves: _Shelves, chains: Sequence[Chain], as_of: TurnRef | None) -> Table:
    step = shelves.last_step()
    if as_of is not None:
        if (as_of.session, as_of.number) not in shelves.turns:
            raise NotFound(f"no turn {as_of.number} in session {as_of.session}")
        step = max(
            (row.step for row in shelves.sent.values() if (row.session, row.turn) == (as_of.session, as_of.number)), default=0
        )
    depth = {chain: number for number, chain in enumerate(chains)}
    read = shelves.blobs.__getitem__
    all_shown: dict[Spot, Shown] = {}
    all_hidden: dict[Chain, Hidden] = {}
    latest: tuple[int, Sent] | None = None
    for row in sorted(shelves.decided(), key=lambda row: (row.step, row.session)):
        if row.step > step:
            break
        match row:
            case Showing() if row.chain in depth:
                all_shown[Spot(row.chain, row.position)] = shown(row, read)
            case Hiding() if row.chain in depth:
                all_hidden[row.chain] = hidden(row, read)
            case Sending() if row.head in depth and (latest is None or depth[row.head] >= latest[0]):
                latest = (depth[row.head], sent(row))
    return Table(all_shown, all_hidden, latest[1] if latest else None)


def _take_all(shelves: _Shelves, rows: Iterable[Row]) -> int:
    had_events = Counter(map(_fields, shelves.events))
    content: set[Digest] = set()
    sessions: set[SessionId] = set()
    new = 0
    for row in rows:
        needed = needs(row)
        content.update(needed.content)
        sessions.update(needed.sessions)
        new += _take_event(shelves, row, had_events) if isinstance(row, Event) else _take(shelves, row)
    if missing := content - shelves.blobs.keys():
        raise BadInput(f"a row points to content {min(missing)}, which is not there; nothing was changed")
    if unknown := sessions - shelves.sessions.keys():
        raise BadInput(f"a row belongs to session {min(unknown)}, which is not there; nothing was changed")
    return new


def _take(  # noqa: C901, PLR0911 - one case a kind of row
    shelves: _Shelves,
    row: Blob | Session | Node | Page | Turn | ToolSeen | Reference | Gist | _Decided,
) -> int:
    match row:
        case Blob():
            return _add(shelves.blobs, row.digest, row.content)
        case Session():
            return _add(shelves.sessions, row.id, row)
        case Node():
            return _add(shelves.nodes, (row.session, row.chain), row)
        case Page():
            return _add(shelves.pages, row.id, row)
        case Turn():
            there = shelves.turn(row.session, row.number)
            if there is not None and supersedes(row, there):
                shelves.turns[there.session, there.number] = row
                return 1
            return _add(shelves.turns, (row.session, row.number), row)
        case ToolSeen():
            return _add(shelves.tools, (row.name, row.digest), row)
        case Reference():
            return _add(shelves.references, row.id, row)
        case Gist():
            if row.page not in shelves.pages:
                raise BadInput(f"a gist of page {row.page}, which is not there")
            return _add(shelves.gists, row.page, row)
        case _:
            return _take_decided(shelves, row)


def _take_decided(shelves: _Shelves, row: _Decided) -> int:
    match row:
        case Showing():
            return _add(shelves.shown, (row.chain, row.position, row.step, row.session), row)
        case Hiding():
            return _add(shelves.hidden, (row.chain, row.step, row.session), row)
        case Sending():
            return _add(shelves.sent, (row.head, row.step, row.session), row)
        case Bill():
            return _add(shelves.bills, (row.session, row.turn), row)
        case Summary():
            return _add(shelves.summaries, (row.session, row.branch, row.turns, row.version), row)


def _take_event(shelves: _Shelves, event: Event, had: Counter[str]) -> int:
    """Two equal events are two: each that the store had before stands for one of the file's."""
    if had[_fields(event)] > 0:
        had[_fields(event)] -= 1
        return 0
    shelves.events.append(event)
    return 1


def _of_session(rows: Sequence[Row], session: SessionId) -> list[Row]:
    """Forms belong to messages: those of a session's messages go with it, whichever session decided them."""
    chains = {row.chain for row in rows if isinstance(row, Node) and row.session == session}
    mine = [row for row in rows if not isinstance(row, Blob | Gist) and _belongs(row, session, chains)]
    content = {each for row in mine for each in needs(row).content}
    pages = {row.id for row in mine if isinstance(row, Page)}
    blobs = [row for row in rows if isinstance(row, Blob) and row.digest in content]
    gists = [row for row in rows if isinstance(row, Gist) and row.page in pages]
    return [*blobs, *mine, *gists]


def _belongs(
    row: Session | Node | Page | Turn | ToolSeen | Event | Reference | _Decided,
    session: SessionId,
    chains: set[Chain],
) -> bool:
    match row:
        case Session():
            return row.id == session
        case ToolSeen():
            return row.first_session == session
        case Showing() | Hiding():
            return row.chain in chains
        case Sending():
            return row.head in chains or row.session == session
        case _:
            return row.session == session


def _fields(event: Event) -> str:
    return repr((event.name, float(event.time), event.session, event.turn, sorted(event.detail.items())))


def _add(shelf: dict[_Key, _Noun], key: _Key, row: _Noun) -> int:
    if key in shelf:
        return 0
    shelf[key] = row
    return 1


def _found(shelf: dict[_Key, _Noun], key: _Key, what: str) -> _Noun:
    try:
        return shelf[key]
    except KeyError:
        raise NotFound(f"no {what} {key}") from None
