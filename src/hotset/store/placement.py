"""Turns a deposit into the rows of one commit. Every adapter shares this, so that they cannot
disagree."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hotset.dialects import DEFAULT
from hotset.errors import Conflict, NotFound
from hotset.nouns.bill import Summary
from hotset.nouns.deposit import (
    Billed,
    CommitReceipt,
    Deposit,
    Erased,
    Gisted,
    HiddenKept,
    NoteWritten,
    PageAdded,
    PlanMade,
    Remembered,
    ReplyReceived,
    RequestReceived,
)
from hotset.nouns.link import Link, link
from hotset.nouns.message import Part, Request
from hotset.nouns.note import METADATA, Note, decode_metadata
from hotset.nouns.page import ROOT, Chain, Digest, Page, PageId, Role, SessionId, digest
from hotset.nouns.turn import Event, Node, Reference, Session, ToolSeen, Turn, TurnId, TurnRef
from hotset.nouns.window import WHOLE, Hidden, SentRequest, Shown, Spot, Stub
from hotset.store.kinship import Parent
from hotset.store.lineage import find_parent, fingerprint, recognise_session, session_title
from hotset.store.memory_versions import place_erasure, place_memories
from hotset.store.port import Blob, HiddenRow, Lookup, SentRow, ShownRow, Writing

_TITLE_CHARS = 80


def place(deposit: Deposit, look: Lookup) -> tuple[Writing, CommitReceipt]:
    """The rows to write for a deposit, and the receipt for it."""
    return _PLACE[type(deposit)](deposit, look)


def merge_receipts(kept: CommitReceipt, later: CommitReceipt) -> CommitReceipt:
    """The receipt of a group, from those of its deposits."""
    return CommitReceipt(kept.turn or later.turn, (*kept.pages, *later.pages))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where and when something is written: the fields that rows of one deposit share."""

    session: SessionId
    agent: str
    turn: int
    time: float


def _place_request(asked: RequestReceived, look: Lookup) -> tuple[Writing, CommitReceipt]:
    request = asked.request
    known = recognise_session(asked, look)
    parent = find_parent(asked, look) if known.session is None else None
    session = known.session or _new_session(asked, parent, look)
    last = look.last_turn(session.id) if known.session else None
    place = _Place(session.id, asked.agent, (last.number if last else 0) + 1, asked.time)
    nodes, pages, blobs = _messages(known.links, place, look)
    system_pages, system_blobs = _system(request.system, place, look)
    tools = tuple(
        ToolSeen(tool.name, digest(tool.raw), session.id, asked.time) for tool in request.tools
    )
    system = _blob(whole_system(request)) if request.system else None
    toolbox = _blob(whole_toolbox(request)) if request.tools else None
    params = _blob(request.params)
    turn = Turn(
        id=asked.id or TurnId(f"{session.id}.{place.turn}"),
        session=session.id,
        number=place.turn,
        agent=asked.agent,
        branch=_branch_of(known.head, nodes, session.id, look),
        dialect=request.dialect,
        model=request.model,
        streamed=request.stream,
        started=asked.time,
        fingerprint=fingerprint(asked),
        head=known.head,
        tail=known.head,
        system=system.digest if system else None,
        tools=toolbox.digest if toolbox else None,
        params=params.digest,
    )
    whole = (system, toolbox, params, *(_blob(tool.raw) for tool in request.tools))
    writing = Writing(
        blobs=(*blobs, *system_blobs, *(blob for blob in whole if blob is not None)),
        sessions=() if known.session else (session,),
        nodes=tuple(nodes),
        pages=(*system_pages, *pages),
        turns=(turn,),
        tools=tools,
        events=(parent.event(session.id, turn.number, asked.time),) if parent is not None else (),
        notes=_metadata(session.id, asked.metadata, place, look),
    )
    return writing, _receipt(writing, turn)


def _place_reply(answered: ReplyReceived, look: Lookup) -> tuple[Writing, CommitReceipt]:
    turn = _turn_of(answered.turn, look)
    reply = answered.reply
    place = _Place(turn.session, turn.agent, turn.number, answered.time)
    links = tuple(link(turn.head, reply.messages))
    nodes, pages, blobs = _messages(links, place, look)
    tail = next((each.chain for each in reversed(links) if not each.message.aside), turn.head)
    raw = _blob(answered.raw) if answered.raw else None
    ended = replace(
        turn,
        branch=_branch_of(tail, nodes, turn.session, look),
        tail=tail,
        outcome=answered.outcome,
        finished=answered.time,
        status=answered.status,
        stop=reply.stop,
        response_id=reply.response_id,
        error=reply.error,
        model=turn.model or reply.model,
        usage=reply.usage,
        reply=raw.digest if raw else None,
    )
    writing = Writing(
        blobs=(*blobs, *((raw,) if raw else ())),
        nodes=tuple(nodes),
        pages=tuple(pages),
        turns=(ended,),
    )
    return writing, _receipt(writing, ended)


def whole_system(request: Request) -> bytes:
    return b"\n\n".join(part.content for part in request.system)


def whole_toolbox(request: Request) -> bytes:
    return b"[" + b",".join(tool.raw for tool in request.tools) + b"]"


def _turn_of(named: TurnRef | TurnId, look: Lookup) -> Turn:
    turn = (
        look.turn(named.session, named.number)
        if isinstance(named, TurnRef)
        else look.turn_by_id(named)
    )
    if turn is None:
        raise NotFound(
            f"no turn {named.number} in session {named.session}"
            if isinstance(named, TurnRef)
            else f"no turn {named}"
        )
    return turn


def _place_page(noted: PageAdded, look: Lookup) -> tuple[Writing, CommitReceipt]:
    known = look.session(noted.session) if noted.session else look.session_by_key(noted.key)
    if known is None and (noted.session or not noted.key):
        raise NotFound(f"no session {noted.session}")
    session = known or Session(
        _unused_id(f"key:{noted.key}", look),
        noted.key,
        noted.agent,
        DEFAULT.name,
        noted.time,
        noted.key[:_TITLE_CHARS],
    )
    if noted.parent is not None and look.page(noted.parent) is None:
        raise NotFound(f"no page {noted.parent}")
    last = look.last_turn(session.id)
    place = _Place(session.id, noted.agent, last.number if last else 0, noted.time)
    blob = _blob(noted.content)
    salt = 0
    while (
        look.page(id := _page_id(session.id, f"note:{noted.time!r}:{blob.digest}:{salt}", 0))
        is not None
    ):
        salt += 1
    page = _page(
        Part(noted.kind, noted.content, noted.media, noted.tool, noted.call),
        blob.digest,
        id=id,
        role=Role.ASSISTANT,
        place=place,
        branch=last.branch if last else 0,
        parent=noted.parent,
        chain=ROOT,
        position=0,
    )
    writing = Writing(
        blobs=(blob,),
        sessions=() if known else (session,),
        pages=(page,),
        notes=_metadata(page.id, noted.metadata, place, look),
    )
    return writing, CommitReceipt(pages=(page.id,))


def _metadata(key: str, given: Mapping[str, str], place: _Place, look: Lookup) -> tuple[Note, ...]:
    """The note with what is new about a session or a page; what was said before stays."""
    latest = look.last_note(METADATA.name, key) if given else None
    known = decode_metadata(latest.value) if latest is not None else {}
    if not given or {**known, **given} == known:
        return ()
    return (
        Note(
            space=METADATA.name,
            key=key,
            value=json.dumps({**known, **given}, sort_keys=True).encode(),
            time=place.time,
            session=place.session,
            turn=place.turn,
            scope=METADATA.scope,
            version=latest.version + 1 if latest is not None else 1,
            step=look.last_step() + 1,
        ),
    )


def _place_gists(gisted: Gisted, look: Lookup) -> tuple[Writing, CommitReceipt]:
    for gist in gisted.gists:
        if look.page(gist.page) is None:
            raise NotFound(f"no page {gist.page}")
    return Writing(gists=gisted.gists), CommitReceipt()


def _place_plan(planned: PlanMade, look: Lookup) -> tuple[Writing, CommitReceipt]:
    """Rows of one plan share a step. If a spot was decided twice, the last decision counts."""
    turn = _turn_of(planned.turn, look)
    step = look.last_step() + 1
    decided = {shown.spot: shown for shown in planned.shown}.values()
    writing = Writing(
        blobs=tuple(_blob(shown.text) for shown in decided if shown.text),
        references=tuple(_reference(stub, turn.session, look) for stub in planned.stubs),
        shown=tuple(_shown_row(shown, turn, step) for shown in decided),
        sent=(_sent_row(planned.sent, turn, step),),
    )
    return writing, CommitReceipt(turn.ref)


def _reference(stub: Stub, session: SessionId, look: Lookup) -> Reference:
    return Reference(
        id=stub.id,
        session=session,
        kind=stub.kind,
        pages=tuple(id for spot in stub.spots for id in _pages_at(spot, session, look)),
        turns=stub.turns,
        tokens=stub.tokens,
        time=stub.time,
        topics=stub.topics,
        entities=stub.entities,
        hints=stub.hints,
    )


def _pages_at(spot: Spot, session: SessionId, look: Lookup) -> Sequence[PageId]:
    if spot.position == WHOLE:
        return look.pages_at(session, spot.chain)
    return (_page_id(session, spot.chain, spot.position),)


def _place_hidden(hid: HiddenKept, look: Lookup) -> tuple[Writing, CommitReceipt]:
    turn = _turn_of(hid.turn, look)
    hidden = hid.hidden
    row = _hidden_row(hidden, turn, look.last_step() + 1)
    raws = (*hidden.before, *((hidden.instead,) if hidden.instead else ()), *hidden.after)
    return Writing(blobs=tuple(map(_blob, raws)), hidden=(row,)), CommitReceipt(turn.ref)


def _shown_row(shown: Shown, turn: Turn, step: int) -> ShownRow:
    return ShownRow(
        session=turn.session,
        turn=turn.number,
        step=step,
        chain=shown.spot.chain,
        position=shown.spot.position,
        form=shown.form,
        text=digest(shown.text) if shown.text else None,
        tokens=shown.tokens,
        whole=shown.whole,
        cause=shown.cause,
        time=shown.time,
    )


def _hidden_row(hidden: Hidden, turn: Turn, step: int) -> HiddenRow:
    return HiddenRow(
        session=turn.session,
        turn=turn.number,
        step=step,
        chain=hidden.chain,
        before=tuple(map(digest, hidden.before)),
        instead=digest(hidden.instead) if hidden.instead else None,
        after=tuple(map(digest, hidden.after)),
        asides=hidden.asides,
    )


def _sent_row(sent: SentRequest, turn: Turn, step: int) -> SentRow:
    return SentRow(turn.session, turn.number, step, sent.head, sent.time, sent.tokens)


def _place_bill(billed: Billed, look: Lookup) -> tuple[Writing, CommitReceipt]:
    """A turn has one bill. Its time is that of the reply; if none was kept, that of the request."""
    turn = _turn_of(billed.turn, look)
    bill = replace(
        billed.bill, session=turn.session, turn=turn.number, time=turn.finished or turn.started
    )
    return Writing(bills=(bill,)), CommitReceipt(turn.ref)


def _place_summary(summary: Summary, look: Lookup) -> tuple[Writing, CommitReceipt]:
    if look.session(summary.session) is None:
        raise NotFound(f"no session {summary.session}")
    return Writing(summaries=(summary,)), CommitReceipt()


def _place_event(event: Event, look: Lookup) -> tuple[Writing, CommitReceipt]:
    """An event without a place gets that of the call that its detail names; one of a session
    without a turn belongs to the latest."""
    turn = None
    if event.session is None and "call" in event.detail:
        turn = look.turn_by_id(TurnId(str(event.detail["call"])))
    elif event.session is not None and not event.turn:
        turn = look.last_turn(event.session)
    if turn is not None:
        event = replace(event, session=turn.session, turn=turn.number)
    return Writing(events=(event,)), CommitReceipt()


def _place_note(written: NoteWritten, look: Lookup) -> tuple[Writing, CommitReceipt]:
    space, key = written.space, written.key
    turn = _turn_of(written.turn, look) if written.turn is not None else None
    kept = CommitReceipt(turn.ref if turn is not None else None)
    latest = look.last_note(space.name, key)
    version = latest.version if latest is not None else 0
    if written.expects not in (None, version):
        raise Conflict(
            f"note {space.name} {key} has version {version}, not {written.expects}: read it again"
        )
    if written.value == (latest.value if latest is not None else None):
        return Writing(), kept
    note = Note(
        space=space.name,
        key=key,
        value=written.value,
        time=written.time or (turn.started if turn is not None else 0.0),
        session=turn.session if turn is not None else None,
        turn=turn.number if turn is not None else 0,
        scope=space.scope,
        version=version + 1,
        step=look.last_step() + 1,
    )
    overwritten = (
        (replace(note, version=note.version - space.keeps),)
        if 0 < space.keeps < note.version
        else ()
    )
    return Writing(notes=(note,), overwritten=overwritten), kept


def _messages(
    links: Iterable[Link], place: _Place, look: Lookup
) -> tuple[list[Node], list[Page], list[Blob]]:
    """Rows for the messages that are new in this session; a known past costs one look-up a
    message."""
    nodes: list[Node] = []
    pages: list[Page] = []
    blobs: list[Blob] = []
    fresh: dict[Chain, Node] = {}
    last_page: dict[Chain, PageId] = {}
    for each in _tail_of(tuple(links), place.session, look):
        if each.chain in fresh:
            continue
        parent_page = last_page.get(each.parent) or _page_before(each.parent, place.session, look)
        raw = _blob(each.message.raw)
        contents = [_blob(part.content) for part in each.message.parts]
        node = _node(each, place, _branch(each, fresh, place.session, look), raw.digest)
        blobs += [raw, *contents]
        nodes.append(node)
        fresh[node.chain] = node
        addresses = [content.digest for content in contents]
        for page in _pages_of(node, each.message.parts, addresses, place.agent, parent_page):
            pages.append(page)
            parent_page = page.id
        if parent_page is not None:
            last_page[each.chain] = parent_page
    return nodes, pages, blobs


def pages_of(node: Node, parts: Sequence[Part], agent: str, look: Lookup) -> Iterator[Page]:
    """The pages of a message that was placed before: made again, they equal the first ones."""
    addresses = [digest(part.content) for part in parts]
    return _pages_of(node, parts, addresses, agent, _page_before(node.parent, node.session, look))


def _pages_of(
    node: Node,
    parts: Sequence[Part],
    addresses: Sequence[Digest],
    agent: str,
    parent: PageId | None,
) -> Iterator[Page]:
    for position, (part, address) in enumerate(zip(parts, addresses, strict=True)):
        page = _page(
            part,
            address,
            id=_page_id(node.session, node.chain, position),
            role=node.role,
            place=_Place(node.session, agent, node.turn, node.time),
            branch=node.branch,
            parent=parent,
            chain=node.chain,
            position=position,
        )
        yield page
        parent = page.id


def _tail_of(links: Sequence[Link], session: SessionId, look: Lookup) -> Iterator[Link]:
    """The links whose messages the session does not have yet."""
    known_to = next(
        (
            i
            for i in range(len(links) - 1, -1, -1)
            if not links[i].message.aside and look.node(session, links[i].chain)
        ),
        -1,
    )
    for index, each in enumerate(links):
        if index <= known_to and not each.message.aside:
            continue
        if each.message.aside and look.node(session, each.chain):
            continue
        yield each


def _page_before(chain: Chain, session: SessionId, look: Lookup) -> PageId | None:
    """The last page at or above a message: a message without parts has no page of its own."""
    met: set[Chain] = set()
    while chain != ROOT and chain not in met:
        met.add(chain)
        page = look.last_page(session, chain)
        if page is not None:
            return page
        node = look.node(session, chain)
        if node is None:
            return None
        chain = node.parent
    return None


def _branch(each: Link, fresh: dict[Chain, Node], session: SessionId, look: Lookup) -> int:
    """A message that follows the tip of a line stays on it; one that follows an older message opens
    a new branch."""
    if each.parent in fresh:
        return fresh[each.parent].branch
    if not each.message.aside and look.continued(session, each.parent):
        return look.branches(session)
    parent = look.node(session, each.parent) if each.parent != ROOT else None
    return parent.branch if parent else 0


def _branch_of(here: Chain, nodes: Sequence[Node], session: SessionId, look: Lookup) -> int:
    new = next((node for node in nodes if node.chain == here), None)
    known = new or look.node(session, here)
    return known.branch if known else 0


def _node(each: Link, place: _Place, branch: int, raw: Digest) -> Node:
    message = each.message
    return Node(
        session=place.session,
        chain=each.chain,
        parent=each.parent,
        role=message.role,
        turn=place.turn,
        branch=branch,
        raw=raw,
        essence=message.essence,
        aside=message.aside,
        time=place.time,
    )


def _page(
    part: Part,
    address: Digest,
    *,
    id: PageId,
    role: Role,
    place: _Place,
    branch: int,
    parent: PageId | None,
    chain: Chain,
    position: int,
) -> Page:
    return Page(
        id=id,
        session=place.session,
        agent=place.agent,
        turn=place.turn,
        branch=branch,
        kind=part.kind,
        role=role,
        parent=parent,
        digest=address,
        size=len(part.content),
        media=part.media,
        time=place.time,
        chain=chain,
        position=position,
        tool=part.tool,
        call=part.call,
    )


def _system(parts: Sequence[Part], place: _Place, look: Lookup) -> tuple[list[Page], list[Blob]]:
    """System text outside of the messages: a page whenever it is new in the session."""
    pages: list[Page] = []
    blobs: list[Blob] = []
    for position, part in enumerate(parts):
        blob = _blob(part.content)
        id = _page_id(place.session, f"system:{blob.digest}", position)
        if look.page(id) is not None:
            continue
        pages.append(
            _page(
                part,
                blob.digest,
                id=id,
                role=Role.SYSTEM,
                place=place,
                branch=0,
                parent=None,
                chain=ROOT,
                position=position,
            )
        )
        blobs.append(blob)
    return pages, blobs


def _new_session(asked: RequestReceived, parent: Parent | None, look: Lookup) -> Session:
    """The same key gives the same id everywhere; without a key the id comes from the first moment
    of the session."""
    above = look.session(parent.session) if parent is not None else None
    id = _unused_id(
        f"key:{asked.key}" if asked.key else f"first:{asked.time!r}:{fingerprint(asked)}", look
    )
    return Session(
        id,
        asked.key,
        asked.agent,
        asked.request.dialect,
        asked.time,
        session_title(asked.request.messages, above.title if above else ""),
    )


def _unused_id(seed: str, look: Lookup) -> SessionId:
    id = _session_id(seed)
    salt = 0
    while look.session(id) is not None:
        salt += 1
        id = _session_id(f"{seed}:{salt}")
    return id


def _receipt(writing: Writing, turn: Turn) -> CommitReceipt:
    return CommitReceipt(turn.ref, tuple(page.id for page in writing.pages))


def _blob(content: bytes) -> Blob:
    return Blob(digest(content), content)


def _session_id(seed: str) -> SessionId:
    return SessionId("s" + hashlib.sha256(seed.encode()).hexdigest()[:11])


def _page_id(session: SessionId, chain: str, position: int) -> PageId:
    return PageId("p" + hashlib.sha256(f"{session}:{chain}:{position}".encode()).hexdigest()[:15])


_PLACE: Mapping[type, Callable[[Any, Lookup], tuple[Writing, CommitReceipt]]] = {
    RequestReceived: _place_request,
    ReplyReceived: _place_reply,
    PageAdded: _place_page,
    Gisted: _place_gists,
    Event: _place_event,
    Reference: lambda reference, _: (Writing(references=(reference,)), CommitReceipt()),
    PlanMade: _place_plan,
    HiddenKept: _place_hidden,
    Billed: _place_bill,
    Summary: _place_summary,
    Remembered: lambda deposit, look: (place_memories(deposit, look), CommitReceipt()),
    Erased: lambda deposit, look: (place_erasure(deposit, look), CommitReceipt()),
    NoteWritten: _place_note,
}
