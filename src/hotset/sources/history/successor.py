"""What was before a conversation that its client compacted or cleared: found in the store, and
offered as one reference with the successor's first request.

It goes out behind the last message of that request, and with every later one; a note there lets
questions about this line reach what it covers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice

from hotset.errors import HotsetError
from hotset.nouns.candidate import Candidate, OfferKind, OfferSlot
from hotset.nouns.deposit import Deposit, NoteWritten
from hotset.nouns.knobs import SuccessorKnobs
from hotset.nouns.page import ROOT, Chain, Kind, Page, Role, SessionId, digest
from hotset.nouns.turn import CLEARED, COMPACTED, Event, Outcome, Reference, Turn
from hotset.nouns.window import WHOLE, Line, Piece, Spot, Stub
from hotset.sealing import seal
from hotset.sources.history.earlier import EARLIER
from hotset.sources.port import Scene
from hotset.store.kinship import Kinship, Parent, parents_in
from hotset.store.lineage import is_same_client
from hotset.store.port import SessionOrigin, Store, Where
from hotset.text.client_marks import ContextChange
from hotset.window.leave import stub_of
from hotset.window.moment import Moment
from hotset.window.successor import ContextCut, earlier_text, find_cut
from hotset.window.work.worklog import WorkSummary, read_work, work_lines

_EVENTS = {ContextChange.COMPACTED: COMPACTED, ContextChange.CLEARED: CLEARED}
_CHARS_PER_TOKEN = 4
_MOST_PAGES = 20_000  # of one reference
_MOST_READ = 600  # of the latest pages are read for what the reference says
_MOST_TOLD = 150  # of the latest messages are read for its topics
_MOST_BYTES = 4 << 20  # of them
_ENDS = {Kind.PROMPT: (8_000, 2_000), Kind.RESPONSE: (8_000, 4_000), Kind.TOOL_CALL: (16_000, 0)}
_RESULT_ENDS = (2_000, 2_000)
_MOST_SESSIONS = 32  # of the latest are looked at for the one that was cleared
_MOST_NAMED = 3  # of the sessions that the reference covers, the latest
_MOST_ABOVE = 64  # sessions that continue one another
_OPEN_SECONDS = 600.0  # a reply that began longer ago and has no end will have none
_BESIDE_SECONDS = 1800.0  # one that is quiet for longer is not the one that was cleared
_SILENT = frozenset({Kind.SYSTEM, Kind.THINKING})
_FIRST = ("Changed: ", "Open: ")


@dataclass(frozen=True, slots=True)
class _Offer:
    """What a candidate was made of."""

    cut: ContextCut
    session: SessionId
    """The latest before it."""
    linked: bool
    """The store finds by itself that the one continues the other, or it is the same."""
    reference: Reference


def offer_reference(scene: Scene) -> tuple[Candidate, ...]:
    """The reference to all that was before this request, if its client has cut that off and it is
    kept."""
    knobs = scene.knobs.successor
    cut = _find_cut(scene, knobs)
    if cut is None or scene.received is None or scene.last.chain in scene.table.hidden:
        return ()
    store = scene.store
    origin = store.origin(scene.received)
    here = frozenset(each.chain for each in scene.links)
    for sessions in _earlier_sessions(cut, origin, scene):
        pages = [page for each in sessions for page in _work_pages(store, each, here)]
        if any(page.kind is Kind.RESPONSE or page.kind.family is Kind.TOOL_CALL for page in pages):
            return (_make(cut, sessions[-1], origin, pages[-_MOST_PAGES:], scene),)
    return ()


def note_reference(scene: Scene, taken: Sequence[Candidate]) -> list[Deposit]:
    """The deposits of a request that goes out with a reference of `offer_reference`."""
    kept: list[Deposit] = []
    for each in taken:
        if isinstance(each.origin, _Offer):
            cut, reference, session = each.origin.cut, each.origin.reference, each.origin.session
            detail: dict[str, str | int | float] = {
                "client": cut.client,
                "from": session,
                "turns": f"{reference.turns[0]}-{reference.turns[1]}",
                "tokens": reference.tokens,
                "pages": len(reference.pages),
                "ids": reference.id,
                "agent": scene.agent,
            }
            kept += [
                reference,
                NoteWritten(EARLIER, scene.head, f"{reference.id} {cut.change}".encode()),
                Event(_EVENTS[cut.change], scene.now, None, 0, detail),
            ]
            if not each.origin.linked and cut.change is ContextChange.COMPACTED:
                parent = Parent(session, Kinship.CONTINUATION, "mark")
                kept.append(replace(parent.event(session, 0, scene.now), session=None))
    return kept


def work_chains(store: Store, session: SessionId) -> frozenset[Chain]:
    """The messages of a session's own work, without its client's side requests."""
    return frozenset(page.chain for page in _work_pages(store, session, frozenset()))


def _find_cut(scene: Scene, knobs: SuccessorKnobs) -> ContextCut | None:
    cut = find_cut(scene.links, scene.table)
    if cut is not None and cut.change is ContextChange.COMPACTED:
        return cut if knobs.compaction else None
    if cut is not None:
        return cut if knobs.clear != "off" else None
    begins = scene.opens and scene.table.sent is None and knobs.clear == "soon"
    return ContextCut(ContextChange.CLEARED, scene.head) if begins else None


def _earlier_sessions(
    cut: ContextCut, origin: SessionOrigin, scene: Scene
) -> Iterator[tuple[SessionId, ...]]:
    """The sessions that this one may continue, the likeliest first; each with those that it
    continues itself, the oldest first."""
    if origin.session is not None:
        yield _with_ancestors(origin.session, scene.store)
    if scene.table.sent is not None:  # the line goes on: what it says was pasted
        return
    if origin.continues and origin.parent is not None and cut.change is ContextChange.COMPACTED:
        yield _with_ancestors(origin.parent, scene.store)
    if origin.parent is not None and not origin.continues:  # a subagent
        return
    latest = _latest_of_client(cut, origin, scene)
    if latest is not None and _knows_replies(latest, cut, scene):
        yield _with_ancestors(latest, scene.store)


def _with_ancestors(session: SessionId, store: Store) -> tuple[SessionId, ...]:
    above = parents_in(store)
    line = [session]
    while (parent := above.get(line[-1])) is not None and len(line) < _MOST_ABOVE:
        if parent.kinship is not Kinship.CONTINUATION or parent.session in line:
            break
        line.append(parent.session)
    return tuple(reversed(line))


def _latest_of_client(cut: ContextCut, origin: SessionOrigin, scene: Scene) -> SessionId | None:
    """The latest session of the same client that worked with tools; None if that was too long ago,
    still runs, or if another one ran beside it."""
    assert scene.received is not None
    knobs, store = scene.knobs.successor, scene.store
    above = parents_in(store)
    agent = scene.received.agent
    recent = (
        each
        for each in store.recent_sessions()[:_MOST_SESSIONS]
        if each.id != origin.session
        and each.agent == agent
        and (each.id not in above or above[each.id].kinship is not Kinship.SUBAGENT)
    )
    worked = ((each, turns) for each in recent if (turns := _working_turns(store, each.id)))
    same = ((each, turns) for each, turns in worked if is_same_client(scene.received, turns[-1]))
    candidates = list(islice(same, 2))
    if not candidates:
        return None
    latest, turns = candidates[0]
    if scene.now - _ended(turns[-1]) > (knobs.within if cut.client else knobs.soon):
        return None
    if turns[-1].outcome is Outcome.OPEN and scene.now - turns[-1].started < _OPEN_SECONDS:
        return None
    other = _ended(candidates[1][1][-1]) if len(candidates) > 1 else 0.0
    if other > turns[0].started and _ended(turns[-1]) - other < _BESIDE_SECONDS:
        return None
    if not cut.client and _waits(store, latest.id, turns[-1]):
        return None
    return latest.id


def _knows_replies(session: SessionId, cut: ContextCut, scene: Scene) -> bool:
    """True if this session has every reply behind the cut: a conversation that went on elsewhere
    since then is not its successor. A client may write the reply to its own summary."""
    at = next(at for at, each in enumerate(scene.links) if each.chain == cut.chain)
    texts = (
        part.content
        for each in scene.links[at + 2 :]
        if each.message.role is Role.ASSISTANT
        for part in each.message.parts
        if part.kind is Kind.RESPONSE
    )
    wanted = (Where(session=session, digest=digest(text), limit=1) for text in texts)
    return all(next(scene.store.pages(each), None) is not None for each in wanted)


def _working_turns(store: Store, session: SessionId) -> list[Turn]:
    """The turns whose model had tools: a client's side requests, for titles and summaries, have
    none."""
    return [turn for turn in store.turns(session) if turn.tools is not None]


def _ended(turn: Turn) -> float:
    return turn.finished or turn.started


def _waits(store: Store, session: SessionId, turn: Turn) -> bool:
    """True if the reply of a session's last turn calls tools: its client is at work."""
    pages = store.pages(Where(session=session, turns=(turn.number, turn.number)))
    last = [page for page in pages if page.chain == turn.tail]
    return any(page.kind.family is Kind.TOOL_CALL for page in last)


def _work_pages(store: Store, session: SessionId, here: frozenset[Chain]) -> list[Page]:
    """The pages of a session's own work that are not among the messages of this request. The last
    results may have come with the side request for the summary."""
    working = {turn.number for turn in _working_turns(store, session)}
    calls: set[str] = set()
    pages: list[Page] = []
    for page in store.pages(Where(session=session)):
        if page.kind in _SILENT or page.chain == ROOT:
            continue
        if page.turn in working:
            calls.add(page.call)
        elif not page.call or page.call not in calls:
            continue
        if page.chain not in here:
            pages.append(page)
    return pages


def _make(
    cut: ContextCut,
    session: SessionId,
    origin: SessionOrigin,
    pages: Sequence[Page],
    scene: Scene,
) -> Candidate:
    knobs = scene.knobs
    lines = _read(pages, scene.store)
    spans = _spans(pages)
    span = spans.get(session, (1, 1))
    spots = list(dict.fromkeys(Spot(page.chain, WHOLE) for page in pages))
    moment = Moment(scene.now, scene.price, scene.count)
    latest = lines[-_MOST_TOLD:]
    stub = stub_of(spots, latest, span, (), forms=knobs.forms, moment=moment)
    stub = _sealed(stub, sum(page.size for page in pages) // _CHARS_PER_TOKEN)
    calls = [
        f'get_turn_range(first={first}, last={last}, session="{each}")'
        for each, (first, last) in list(spans.items())[-_MOST_NAMED:]
        if each != origin.session
    ]
    text = earlier_text(
        cut.change,
        stub,
        [seal(line).text for line in _work_lines(read_work(lines), cut.change)],
        knobs.successor.lines,
        ", ".join(calls),
    )
    reference = Reference(
        id=stub.id,
        session=session,
        kind=stub.kind,
        pages=tuple(page.id for page in pages),
        turns=span,
        tokens=stub.tokens,
        time=scene.now,
        topics=stub.topics,
        entities=stub.entities,
        hints=stub.hints,
    )
    return Candidate(
        "history",
        OfferKind.REFERENCE,
        stub.id,
        OfferSlot.BEHIND_PROMPT,
        text,
        scene.count(text.encode()),
        1.0,
        origin=_Offer(cut, session, session in (origin.session, origin.parent), reference),
    )


def _spans(pages: Sequence[Page]) -> dict[SessionId, tuple[int, int]]:
    """The first and last turn of each session."""
    spans: dict[SessionId, tuple[int, int]] = {}
    for page in pages:
        if not _is_result(page):
            first, last = spans.get(page.session, (page.turn, page.turn))
            spans[page.session] = (min(first, page.turn), max(last, page.turn))
    return spans


def _is_result(page: Page) -> bool:
    """True for what a call brought: it came with the turn after the call's."""
    return bool(page.call) and page.kind.family is not Kind.TOOL_CALL


def _sealed(stub: Stub, tokens: int) -> Stub:
    """The stub without secrets: the successor may be another session."""
    names = (stub.topics, stub.entities, stub.hints)
    topics, entities, hints = (tuple(seal(name).text for name in each) for each in names)
    return Stub(
        stub.id,
        stub.kind,
        stub.spots,
        stub.turns,
        tokens,
        stub.time,
        topics,
        entities,
        hints,
        seal(stub.summary).text,
    )


def _work_lines(work: WorkSummary, change: ContextChange) -> list[str]:
    """Changed files and open items; then, of what goes on, what was run and decided."""
    lines = work_lines(work)
    first = [line for line in lines if line.startswith(_FIRST)]
    goes_on = change is ContextChange.COMPACTED
    return [*first, *(line for line in lines if goes_on and line not in first)]


def _read(pages: Sequence[Page], store: Store) -> list[Line]:
    """The latest of these pages as lines, long ones as their ends."""
    read: dict[str, bytes] = {}
    left = _MOST_BYTES
    for page in reversed(pages[-_MOST_READ:]):
        left -= page.size
        if left < 0:
            break
        try:
            read[page.id] = (
                b"" if page.kind is Kind.IMAGE else _ends(store.content(page.digest), page)
            )
        except HotsetError:  # damaged: the rest says enough
            continue
    kept = (page for page in pages if page.id in read)
    return [
        Line(
            chain,
            group[0].role,
            tuple(
                Piece(
                    page.kind,
                    read[page.id],
                    page.size // _CHARS_PER_TOKEN,
                    page.tool,
                    page.call,
                    page.media,
                )
                for page in group
            ),
            turn=group[0].turn,
        )
        for chain, group in ((chain, list(each)) for chain, each in groupby(kept, _chain_of))
    ]


def _chain_of(page: Page) -> Chain:
    return page.chain


def _ends(content: bytes, page: Page) -> bytes:
    head, tail = _ENDS.get(page.kind.family, _RESULT_ENDS)
    if len(content) <= head + tail:
        return content
    return content[:head] + (b"\n" + content[-tail:] if tail else b"")
