"""A store in memory: no SQL, no disk, the same answers. For tests, and as the second voice in the store's own."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from copy import copy
from typing import TypeVar

from hotset.errors import BadInput, HotsetError, NotFound, StoreFailed
from hotset.nouns.deposit import Deposit, Kept
from hotset.nouns.page import ROOT, Chain, Digest, Gist, Page, PageId, SessionId, digest
from hotset.nouns.turn import Event, Node, Reference, Session, ToolSeen, Turn, TurnId
from hotset.store.lineage import derive
from hotset.store.needs import needs, supersedes
from hotset.store.placing import place
from hotset.store.port import CANDIDATES, MATCHES, Blob, Census, Damage, Row, Where, Writing

_Key = TypeVar("_Key")
_Noun = TypeVar("_Noun")


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


class RamStore:
    """A `Store` that forgets everything when the process ends."""

    def __init__(self) -> None:
        self._shelves = _Shelves()
        self._lock = threading.Lock()
        self._closed = False

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
                future.set_result(kept)
        return future

    def content(self, digest: Digest) -> bytes:
        return _found(self._shelves.blobs, digest, "content")

    def page(self, id: PageId) -> Page:
        return _found(self._shelves.pages, id, "page")

    def match(self, prefix: str) -> Sequence[PageId]:
        return sorted(id for id in self._shelves.pages if id.startswith(prefix))[:MATCHES]

    def pages(self, where: Where) -> Iterator[Page]:
        found = [page for page in self._shelves.pages.values() if where.holds(page)]
        return iter(found if where.limit is None else found[: max(0, where.limit)])

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
        return new

    def close(self) -> None:
        self._closed = True


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
    shelves: _Shelves, row: Blob | Session | Node | Page | Turn | ToolSeen | Reference | Gist
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


def _take_event(shelves: _Shelves, event: Event, had: Counter[str]) -> int:
    """Two equal events are two: each that the store had before stands for one of the file's."""
    if had[_fields(event)] > 0:
        had[_fields(event)] -= 1
        return 0
    shelves.events.append(event)
    return 1


def _of_session(rows: Sequence[Row], session: SessionId) -> list[Row]:
    mine = [row for row in rows if not isinstance(row, Blob | Gist) and _session_of(row) == session]
    content = {each for row in mine for each in needs(row).content}
    pages = {row.id for row in mine if isinstance(row, Page)}
    blobs = [row for row in rows if isinstance(row, Blob) and row.digest in content]
    gists = [row for row in rows if isinstance(row, Gist) and row.page in pages]
    return [*blobs, *mine, *gists]


def _session_of(row: Session | Node | Page | Turn | ToolSeen | Event | Reference) -> SessionId | None:
    match row:
        case Session():
            return row.id
        case ToolSeen():
            return row.first_session
        case _:
            return row.session


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
