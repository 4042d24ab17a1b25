"""What the plan of one turn decided and changed, read from the store: forms of pages, candidates,
knobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from hotset.dialects.port import Dialects
from hotset.errors import Malformed, NotFound
from hotset.files.lru import Lru
from hotset.nouns.bill import Bill
from hotset.nouns.candidate import Choice, OfferKind
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.knobs import Knobs
from hotset.nouns.message import Request
from hotset.nouns.note import Space
from hotset.nouns.page import ROOT, Chain, Page
from hotset.nouns.turn import Event, Node, Reference, Turn, TurnId
from hotset.nouns.window import WHOLE, Cause, Form, Hidden, PageTable, Shown, Spot
from hotset.runtime.audit import RETRIEVED
from hotset.runtime.offer_round import AskedSource
from hotset.runtime.session_arm import SessionArm, arm_of_session, keys_of_turn
from hotset.runtime.session_notes import found_by, has_brought, ratio_at
from hotset.sources.tools import USED, beginning, kept_offer
from hotset.store.port import OutlinedMessage, Store, Where
from hotset.typed import decode
from hotset.window.ghosts import not_in_client
from hotset.window.handoff import HANDOFF_NOTE
from hotset.window.retrieval_tools import OUR_TOOLS, SEARCH, offered_specs

_REFERENCE = re.compile(rb'retrieve_context\(id="(r[0-9a-f]{4,40})"\)')


@dataclass(frozen=True, slots=True)
class PageChange:
    """A page that was not sent whole, or a run of messages that was not sent at all."""

    form: Form
    cause: Cause
    fresh: bool
    """Decided for this turn; otherwise the form is from an earlier one."""
    whole: int
    """Tokens of the original, in the provider's count as known when the turn was planned: the
    bill's unit."""
    tokens: int
    """Tokens of what was sent, in the same unit."""
    pages: tuple[Page, ...]
    sent: bytes
    """What was sent in their place."""
    reference: Reference | None = None
    """The target of the line that stayed."""


@dataclass(frozen=True, slots=True)
class HiddenAround:
    """Messages around or in place of a client's message that the model saw and the client did
    not."""

    turn: int
    """The turn that brought the client's message."""
    hidden: Hidden


@dataclass(frozen=True, slots=True)
class Difference:
    """What one turn's request changed against the client's own."""

    turn: Turn
    planned: bool
    """False if the request went out unchanged, byte for byte."""
    changes: tuple[PageChange, ...]
    spliced: tuple[HiddenAround, ...]
    tools: tuple[str, ...]
    """Our tools, listed beside the client's."""
    retrievals: tuple[Event, ...]
    """What the model retrieved in this turn, with its tokens in the same unit."""
    uses: tuple[Event, ...]
    """What it used of the toolbox."""
    bill: Bill | None


def difference(store: Store, turn: Turn, dialects: Dialects, *, inject: bool) -> Difference:
    """The difference that the plan of a turn made. `inject` says whether our tools are offered
    where possible: a setting that no turn records."""
    nodes = {node.chain: node for node in store.nodes(turn.session)}
    line = lineage(nodes.values(), turn)
    table = store.table(line, turn.ref)
    planned = table != PageTable()
    is_open = planned and inject and not has_brought(turn, store)
    asked = _open_request(store, turn, dialects) if is_open else None
    ratio = ratio_at(turn.model, store, turn.ref)
    return Difference(
        turn=turn,
        planned=planned,
        changes=tuple(
            _scale_change(change, ratio) for change in _changes(store, turn, line, table)
        ),
        spliced=tuple(_find_spliced(line, nodes, table)) if asked is not None else (),
        tools=tuple(_our_tools(store, turn, [nodes[chain] for chain in line], asked))
        if asked
        else (),
        retrievals=tuple(
            _scale_event(event, ratio) for event in _turn_events(store, turn, RETRIEVED)
        ),
        uses=tuple(_turn_events(store, turn, USED)),
        bill=next(store.bills(turn.session, within=(turn.number, turn.number)), None),
    )


def lineage(nodes: Iterable[Node | OutlinedMessage], turn: Turn) -> list[Chain]:
    """The messages of a turn's request in order, each aside after the message it follows."""
    known: dict[Chain, Node | OutlinedMessage] = {}
    asides: dict[Chain, list[Chain]] = {}
    for node in nodes:
        known[node.chain] = node
        if node.aside and node.turn <= turn.number:
            asides.setdefault(node.parent, []).append(node.chain)
    line: dict[Chain, None] = {}
    chain = turn.head
    while chain in known and chain not in line:
        line[chain] = None
        chain = known[chain].parent
    return [
        each
        for chain in (ROOT, *reversed(line))
        for each in (chain, *asides.get(chain, ()))
        if each != ROOT
    ]


def _changes(store: Store, turn: Turn, line: list[Chain], table: PageTable) -> Iterator[PageChange]:
    pages: dict[Chain, list[Page]] = {}
    for page in store.pages(Where(session=turn.session)) if table.shown else ():
        pages.setdefault(page.chain, []).append(page)
    run: list[Shown] = []
    for chain in line:
        gone = _gone_row(table, chain)
        if run and (gone is None or gone.text):
            yield _change(store, turn, run, pages)
            run = []
        if gone is not None:
            run.append(gone)
            continue
        for page in pages.get(chain, ()):
            row = table.shown.get(Spot(chain, page.position))
            if row is not None and row.form is not Form.FULL:
                yield _change(store, turn, [row], {chain: [page]})
    if run:
        yield _change(store, turn, run, pages)


def _gone_row(table: PageTable, chain: Chain) -> Shown | None:
    """The row that replaces a message that left and did not come back."""
    row = table.shown.get(Spot(chain, WHOLE))
    return row if row is not None and not row.is_back else None


def _change(
    store: Store, turn: Turn, rows: list[Shown], pages: Mapping[Chain, list[Page]]
) -> PageChange:
    """Rows of messages that left together as one change: the first row holds the text that replaces
    them all."""
    first = rows[0]
    return PageChange(
        form=first.form,
        cause=first.cause,
        fresh=first.time == turn.started,
        whole=sum(row.whole for row in rows),
        tokens=sum(row.tokens for row in rows),
        pages=tuple(page for row in rows for page in pages.get(row.spot.chain, ())),
        sent=first.text,
        reference=_reference(store, first.text),
    )


def _scale_change(change: PageChange, ratio: float) -> PageChange:
    return replace(change, whole=round(change.whole * ratio), tokens=round(change.tokens * ratio))


def _scale_event(event: Event, ratio: float) -> Event:
    tokens = event.detail.get("tokens", 0)
    return replace(event, detail={**event.detail, "tokens": round(float(tokens) * ratio)})


def reference_in(text: bytes) -> str:
    """The id of the reference that a stub holds; empty if it holds none."""
    named = _REFERENCE.search(text)
    return named[1].decode() if named else ""


def _reference(store: Store, text: bytes) -> Reference | None:
    id = reference_in(text)
    try:
        return store.reference(id) if id else None
    except NotFound:
        return None


def _find_spliced(
    line: list[Chain], nodes: Mapping[Chain, Node], table: PageTable
) -> Iterator[HiddenAround]:
    """The hidden messages that were sent: if a message left, what was hidden around it left too."""
    for chain in line:
        if chain in table.hidden and _gone_row(table, chain) is None:
            yield HiddenAround(nodes[chain].turn, table.hidden[chain])


def _turn_events(store: Store, turn: Turn, name: str) -> Iterator[Event]:
    return store.events(turn.session, name, (turn.number, turn.number))


def _our_tools(store: Store, turn: Turn, line: Sequence[Node], asked: Request) -> Iterator[str]:
    """The tools that the session was offered when this turn was planned, and those it had found by
    then."""
    knobs = _knobs_at(store, turn, [node.chain for node in line if not node.aside]) or {}
    yield from sorted(spec.name for spec in offered_specs(knobs.get("offers", ())))
    if knobs.get("handoff.at"):
        yield HANDOFF_NOTE
    chains = beginning((node.chain, node.role, node.aside) for node in line)
    _, offer = kept_offer(chains, store, turn.ref) if chains else (ROOT, None)
    yield from (spec.name for spec in not_in_client(offer.tools if offer else (), asked.tools))
    yield from found_by(turn.ref, [node.chain for node in line], store)


def _open_request(store: Store, turn: Turn, dialects: Dialects) -> Request | None:
    """A minimal request with the turn's own fields; None if our tools could not be listed beside
    the client's."""
    if turn.tools is None:
        return None
    dialect = dialects[turn.dialect]
    body = {
        **decode(store.content(turn.params), dict[str, msgspec.Raw]),
        "model": turn.model,
        **dialect.compose("", [{"role": "user", "content": "-"}]),
        "tools": msgspec.Raw(store.content(turn.tools)),
    }
    try:
        request = dialect.parse(msgspec.json.encode(body))
    except Malformed:
        return None
    return request if dialect.injectable(request, OUR_TOOLS) else None


_CANDIDATES = Space("candidates")
"""Keyed by the turn's name."""

_ASKED = Space("asked")
"""Sources that looked for candidates: how many each had, and its milliseconds. Keyed by the turn's
name."""

_KNOBS = Space("knobs")
"""Keyed as the session's arm is: what differs from the default profile."""

_MOST_KNOWN = 2048
_LOADED, _HEEDED = "MemoryLoaded", "Heeded"

_KNOBS_OF = {
    Cause.OVERFLOW: "high",
    Cause.COLD: "early",
    Cause.REWOUND: "early",
    Cause.PAYS: "regret",
    Cause.GROWN: "most",
    Cause.HANDOFF: "handoff.at",
    Cause.PERSON: "",
}
"""The knob by which pages leave, by cause."""


class DecidedCandidate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A candidate and its verdict."""

    source: str
    kind: str
    key: str
    slot: str
    tokens: int
    worth: float
    verdict: str
    is_taken: bool = False
    probability: float = 1.0


@dataclass(frozen=True, slots=True)
class FormDecision:
    """The form that one page got."""

    row: Shown
    page: Page | None
    """None if a whole message left."""
    knob: str
    """The one that decided."""


@dataclass(frozen=True, slots=True)
class AskedBack:
    """A call of the model for something that it was not shown."""

    tool: str
    ids: tuple[str, ...]
    """Pages, memories or files that it got."""
    is_refault: bool
    """It had left, or was shown shorter."""

    @property
    def is_search(self) -> bool:
        return self.tool == SEARCH


@dataclass(frozen=True, slots=True)
class TurnDecision:
    """The decisions of one turn, and what the model did with them."""

    candidates: tuple[DecidedCandidate, ...]
    forms: tuple[FormDecision, ...]
    """Forms that this turn gave to pages."""
    knobs: dict[str, Any] | None
    """What differed from the default profile; None if it went out unchanged."""
    arm: SessionArm
    """Of its session."""
    asked_back: tuple[AskedBack, ...]
    used: tuple[str, ...]
    """Tools of the toolbox that were called, and memories that were read or heeded."""

    @property
    def offered(self) -> tuple[str, ...]:
        """Keys of the candidates that were shown."""
        return tuple(each.key for each in self.candidates if each.is_taken)


class SessionKnobs:
    """The knobs of the active sessions. Thread-safe."""

    def __init__(self) -> None:
        self._kept: Lru[str, bytes] = Lru("knobs of sessions", count=_MOST_KNOWN)
        self._latest: tuple[Knobs | None, bytes] = None, b""
        """What the latest knobs changed: mostly those of the next request too."""

    def note(self, session: str, knobs: Knobs) -> NoteWritten | None:
        """The note to keep with a session's plan; None if it is kept already."""
        latest, changed = self._latest
        if latest is not knobs:
            changed = msgspec.json.encode(knobs.changed(Knobs()), order="sorted")
            self._latest = knobs, changed
        if self._kept.get(session) == changed:
            return None
        self._kept.put(session, changed)
        return NoteWritten(_KNOBS, session, changed)


def candidates_note(turn: str, choices: tuple[Choice, ...]) -> NoteWritten | None:
    """A note with every candidate of a plan; None if there was none."""
    logged = [_log_candidate(each) for each in choices if each.candidate.kind is not OfferKind.TOOL]
    return NoteWritten(_CANDIDATES, turn, msgspec.json.encode(logged)) if logged else None


def asked_note(turn: str, asked: Sequence[AskedSource]) -> NoteWritten | None:
    """A note with the sources that looked for something; None if none did."""
    rows = {each.name: (each.results, round(each.ms, 1)) for each in asked}
    return NoteWritten(_ASKED, turn, msgspec.json.encode(rows)) if rows else None


def asked_sources(store: Store, turns: Sequence[TurnId]) -> dict[str, tuple[AskedSource, ...]]:
    """The sources that looked for something, by turn."""
    notes = store.notes(_ASKED, turns) if turns else {}
    return {
        turn: tuple(
            AskedSource(name, results, ms)
            for name, (results, ms) in decode(
                note.value or b"{}", dict[str, tuple[int, float]]
            ).items()
        )
        for turn, note in notes.items()
    }


def logged_candidates(
    store: Store, turns: Sequence[TurnId]
) -> dict[str, tuple[DecidedCandidate, ...]]:
    """The candidates of these turns, by turn."""
    notes = store.notes(_CANDIDATES, turns) if turns else {}
    return {
        turn: tuple(decode(note.value or b"[]", list[DecidedCandidate]))
        for turn, note in notes.items()
    }


def read_decision(store: Store, turn: Turn) -> TurnDecision:
    """The decisions of a stored turn."""
    line = lineage(store.nodes(turn.session), turn)
    table = store.table(line, turn.ref)
    logged = logged_candidates(store, [turn.id]).get(turn.id, ())
    changed = _knobs_at(store, turn, line) if table.sent else None
    pages = {
        Spot(page.chain, page.position): page for page in store.pages(Where(session=turn.session))
    }
    ran_with = Knobs().with_changes(changed or {})
    return TurnDecision(
        logged,
        tuple(
            FormDecision(row, page := pages.get(row.spot), _deciding_knob(row, page, ran_with))
            for row in table.shown.values()
            if row.time == turn.started
        ),
        changed,
        arm_of_session(store, turn.session),
        tuple(_asked_back(event) for event in _turn_events(store, turn, RETRIEVED)),
        tuple(_used(store, turn)),
    )


def _knobs_at(store: Store, turn: Turn, line: Sequence[Chain]) -> dict[str, Any] | None:
    """What differed from the default profile when a turn was planned; None if that is unknown."""
    keys = keys_of_turn(store, turn.session, set(line)).every
    notes = store.notes(_KNOBS, keys, turn.ref)
    note = next((notes[key] for key in keys if key in notes), None)
    return decode(note.value or b"{}", dict[str, Any]) if note else None


def _deciding_knob(row: Shown, page: Page | None, knobs: Knobs) -> str:
    if row.cause is not Cause.BIRTH:
        return _KNOBS_OF[row.cause]
    if row.form in (Form.ECHO, Form.OVERLAP, Form.CHANGE):
        return "echo"
    if page is not None and page.tool in knobs.tools:
        return f"tools.{page.tool}"
    return f"limits.{page.kind}" if page is not None and page.kind in knobs.limits else "limit"


def _asked_back(event: Event) -> AskedBack:
    detail = event.detail
    ids = dict.fromkeys((str(detail.get("id", "")), *str(detail.get("ids", "")).split()))
    found = tuple(id for id in ids if id)
    return AskedBack(str(detail.get("tool", "")), found, bool(detail.get("refault")))


def _used(store: Store, turn: Turn) -> Iterator[str]:
    for event in store.events(turn.session):
        if event.turn == turn.number:
            yield from used_ids(event)


def used_ids(event: Event) -> tuple[str, ...]:
    """What an event says was used: a tool of the toolbox, memories that the model asked for or
    followed."""
    detail = event.detail
    if event.name == USED:
        return (str(detail.get("tool", "")),)
    if event.name == _HEEDED:
        return (str(detail.get("memory", "")),)
    if event.name == _LOADED and detail.get("asked"):
        return tuple(str(detail.get("ids", "")).split())
    return ()


def _log_candidate(choice: Choice) -> DecidedCandidate:
    each = choice.candidate
    return DecidedCandidate(
        each.source,
        each.kind,
        each.key,
        each.slot,
        each.tokens,
        round(each.worth, 4),
        choice.verdict,
        choice.is_taken,
        choice.probability,
    )
