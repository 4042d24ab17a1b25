"""The window as a person sees it: what a turn's request held beside what the client sent; the turns
as a timeline; one page with what became of it. Surfaces read it from here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import fmean

from hotset.config import Config
from hotset.errors import NotFound
from hotset.nouns.bill import Bill
from hotset.nouns.order import NO_ORDERS, WindowOrders
from hotset.nouns.page import Chain, Kind, Page, PageId, SessionId
from hotset.nouns.turn import Event, Session, Turn, TurnRef
from hotset.nouns.window import WHOLE, Form, PageTable, Shown, Spot
from hotset.runtime.audit import RETRIEVED, sentence, type_of
from hotset.runtime.decision import DecidedCandidate, lineage, logged_candidates, reference_in
from hotset.runtime.metrics import empty_ledger, known_prices
from hotset.runtime.reader import gist_of
from hotset.runtime.session_notes import ratio_at
from hotset.store.port import OutlinedPage, Store
from hotset.window.ledger import turn_costs
from hotset.window.price import Price, price_of

_CHARS_PER_TOKEN = 4
_GROWTH_TURNS = 8  # latest turns by which the window's growth is judged
_MOST_TEXT = 200_000  # bytes of a page that are shown at once
_TOOLS = "tools"
_HIDDEN = "hidden"
_MARKS = {"Evicted": "evicted", RETRIEVED: "retrieved", "Bypassed": "bypassed"}
_MOMENTS = {**_MARKS, "Ordered": "ordered", "Handoff": "handoff"}


@dataclass(frozen=True, slots=True)
class WindowSegment:
    """A stretch of the window: a page, several that left together, a schema or a text of ours."""

    kind: str
    """A kind of page, `tools` (the client's schemas), `ghost`, `reminder`, `excerpt`, `hint`,
    `reference`, or `hidden`: what the model saw and the client did not."""
    form: str
    """A form of the page table; `full` where nothing is left out."""
    tokens: int
    """As sent, in the provider's tokens."""
    whole: int
    """Of what the client sent here; 0 for what hotset added."""
    turn: int = 0
    """The turn that brought it."""
    pages: tuple[str, ...] = ()
    tool: str = ""
    cause: str = ""
    """Why it got its form."""
    reference: str = ""
    """What brings it back."""
    order: str = ""
    """A person's order about it."""


@dataclass(frozen=True, slots=True)
class CacheBoundary:
    """Where the part ends that the provider read from its cache."""

    tokens: int
    is_measured: bool
    read_price: float
    """Dollars for a million tokens in front of it."""
    write_price: float
    """Dollars for a million tokens behind it."""


@dataclass(frozen=True, slots=True)
class WindowView:
    """One turn's window."""

    session: str
    turn: int
    turns: int
    """The latest turn's number."""
    model: str
    started: float
    window: int
    """Tokens that the model's window has."""
    sent: int
    whole: int
    is_changed: bool
    """False if the request went out as it came."""
    segments: tuple[WindowSegment, ...]
    boundary: CacheBoundary
    spent: float
    """Dollars of the session up to this turn."""
    everything: float
    """What it would have been, estimated."""
    turns_left: int | None
    """Turns until the window is full, as it grew lately; None if it does not grow."""
    next_pages: tuple[str, ...]
    """What leaves next."""
    next_when: str
    """When it does, in a sentence."""


@dataclass(frozen=True, slots=True)
class TurnPoint:
    """A turn on the timeline."""

    number: int
    started: float
    branch: int
    outcome: str
    model: str
    sent: int
    whole: int
    cache_read: int
    output: int
    dollars: float
    whole_dollars: float
    broke: str
    calls: int
    faults: int
    marks: Mapping[str, int] = field(default_factory=dict)
    """How much was evicted, retrieved, bypassed in it."""


@dataclass(frozen=True, slots=True)
class TurnMark:
    """Something that happened in a turn."""

    turn: int
    name: str
    """`evicted`, `retrieved`, `bypassed`, `ordered`, `handoff`, or `broke`: the prefix was not
    extended."""
    tokens: int
    cause: str


@dataclass(frozen=True, slots=True)
class SessionTimeline:
    """All turns of a session in short, as columns."""

    session: str
    last: int
    """The latest turn's number."""
    turns: tuple[int, ...]
    sent: tuple[int, ...]
    whole: tuple[int, ...]
    spent: tuple[float, ...]
    """Dollars of each turn."""
    everything: tuple[float, ...]
    marks: tuple[TurnMark, ...]


@dataclass(frozen=True, slots=True)
class PageLine:
    """A page in one line."""

    id: str
    kind: str
    tool: str
    turn: int
    tokens: int


@dataclass(frozen=True, slots=True)
class PageHistory:
    """A page, the form that it has, and what happened to it."""

    page: Page
    text: str
    """Its own, as far as it is text; the first part of a long one."""
    is_cut: bool
    tokens: int
    form: str
    shown: str
    """What the model sees of it; empty if it sees all, or nothing."""
    cause: str
    reference: str
    asked_back: tuple[str, ...]
    """Who asked for it, in sentences, the latest last."""
    cost: float
    """Dollars that it has cost so far, estimated: written once, then read with every turn."""
    order: str


def read_window(
    store: Store,
    config: Config,
    session: Session,
    number: int = 0,
    orders: WindowOrders = NO_ORDERS,
) -> WindowView | None:
    """The window of a turn, the latest without a number; None if there is no such turn."""
    latest = store.turn_of(session.id)
    turn = store.turn_of(session.id, number) if number else latest
    if turn is None or latest is None:
        return None
    bills = [each for each in store.bills(session.id) if each.turn <= turn.number]
    bill = next((each for each in reversed(bills) if each.turn == turn.number), None)
    segments, table = _read_segments(store, turn, bill, orders)
    price = price_of(turn.model, config.prices, bill.upstream if bill else "")
    sent = bill.sent.prompt if bill else sum(each.tokens for each in segments)
    window = min(config.budget or price.window, price.window)
    left = _turns_left(bills, config.knobs_for(turn.agent).high * window)
    ledger = empty_ledger(config)  # reconciled with what the provider counted, as all sums are
    for each in bills:
        ledger.add(each)
    account = ledger.total()
    following = _next_to_leave(segments, turn.number)
    return WindowView(
        session=session.id,
        turn=turn.number,
        turns=latest.number,
        model=turn.model,
        started=turn.started,
        window=window,
        sent=sent,
        whole=bill.whole.prompt if bill else sum(each.whole for each in segments),
        is_changed=table != PageTable() and any(each.form != Form.FULL for each in segments),
        segments=segments,
        boundary=_boundary(bill, price),
        spent=account.measured.dollars,
        everything=account.estimated.dollars,
        turns_left=left,
        next_pages=following.pages if following else (),
        next_when=_say_when(left, following),
    )


def read_timeline(
    store: Store, config: Config, session: SessionId, first: int = 1, limit: int = 500
) -> tuple[TurnPoint, ...]:
    """So many turns of a session from the turn `first` on."""
    last = first + limit - 1
    bills = {each.turn: each for each in store.bills(session)}
    costs = turn_costs(bills.values(), known_prices(config))
    marks: dict[int, dict[str, int]] = {}
    for event in store.events(session):
        name = _MARKS.get(event.name)
        if first <= event.turn <= last and name is not None and not _left_nothing(event):
            own = marks.setdefault(event.turn, {})
            own[name] = own.get(name, 0) + int(event.detail.get("tokens", 0) or 1)
    return tuple(
        _point(
            turn,
            bills.get(turn.number),
            costs.get(turn.number, (0.0, 0.0)),
            marks.get(turn.number, {}),
        )
        for turn in store.turns(session)
        if first <= turn.number <= last
    )


def read_session_timeline(
    store: Store, config: Config, session: SessionId, first: int = 1
) -> SessionTimeline:
    """Every turn from `first` on; one without a bill has zeros."""
    latest = store.turn_of(session)
    last = latest.number if latest is not None else 0
    shown = range(first, last + 1)
    bills = {each.turn: each for each in store.bills(session) if each.turn >= first}
    costs = turn_costs(store.bills(session), known_prices(config))
    dollars = [costs.get(each, (0.0, 0.0)) for each in shown]
    events = (_mark_of(each) for each in store.events(session) if each.turn >= first)
    broke = (TurnMark(each.turn, "broke", 0, each.broke) for each in bills.values() if each.broke)
    return SessionTimeline(
        session=session,
        last=last,
        turns=tuple(shown),
        sent=tuple(bills[each].sent.prompt if each in bills else 0 for each in shown),
        whole=tuple(bills[each].whole.prompt if each in bills else 0 for each in shown),
        spent=tuple(spent for spent, _ in dollars),
        everything=tuple(whole for _, whole in dollars),
        marks=(*filter(None, events), *broke),
    )


def _mark_of(event: Event) -> TurnMark | None:
    name = _MOMENTS.get(event.name)
    if name is None or _left_nothing(event):
        return None
    detail = event.detail
    cause = str(detail.get("cause") or detail.get("reason") or detail.get("act") or "")
    return TurnMark(event.turn, name, int(detail.get("tokens", 0) or 0), cause)


def _left_nothing(event: Event) -> bool:
    """The event says that the prefix changed, and nothing left with it."""
    return event.detail.get("stubs") == 0


def read_page_lines(store: Store, ids: Sequence[str]) -> tuple[PageLine, ...]:
    """These pages. Raises `NotFound`."""
    pages = [store.page(PageId(each)) for each in ids]
    return tuple(
        PageLine(each.id, each.kind, each.tool, each.turn, _tokens_of(store, each))
        for each in pages
    )


def read_page(
    store: Store, config: Config, page: Page, orders: WindowOrders = NO_ORDERS, until: int = 0
) -> PageHistory:
    """A page with the form that it has in its session's latest turn, or had in the turn `until`."""
    content = store.content(page.digest)
    gist = gist_of(store, page, content)
    is_text = page.media.startswith("text/") or page.media == "application/json"
    row, own, reference = _latest_rows(store, page, until)
    has_left = row is not None and row.form in (Form.GONE, Form.STUB)
    before = _left_with(store, page) if has_left else until + 1 if until else None
    ids = {page.id, reference} - {""}
    asked = [
        sentence(event)
        for event in store.events(page.session)
        if type_of(event) == "retrieval"
        and not ids.isdisjoint((str(event.detail.get("id")), *str(event.detail.get("ids")).split()))
    ]
    text = content[:_MOST_TEXT].decode("utf-8", "replace") if is_text else ""
    return PageHistory(
        page=page,
        text=text or f"[{page.media}, {page.size:,} bytes]",
        is_cut=len(content) > _MOST_TEXT,
        tokens=gist.tokens,
        form=Form.FULL if row is None else row.form,
        shown=row.text.decode("utf-8", "replace") if row is not None else "",
        cause=row.cause if row is not None else "",
        reference=reference,
        asked_back=tuple(asked),
        cost=_page_cost(store, config, page, _size_before(own, gist.tokens), before),
        order=_order_of(orders, Spot(page.chain, page.position)),
    )


def _read_segments(
    store: Store, turn: Turn, bill: Bill | None, orders: WindowOrders
) -> tuple[tuple[WindowSegment, ...], PageTable]:
    """The segments in the order of the window, and the page table behind them."""
    outline = store.outline(turn.session)
    line = lineage(outline.messages, turn)
    table = store.table(line, turn.ref)
    ratio = ratio_at(turn.model, store, turn.ref)
    pages: dict[Chain, list[OutlinedPage]] = {}
    here = frozenset(line)
    for page in outline.pages:
        if page.chain in here:
            pages.setdefault(page.chain, []).append(page)
    taken = [each for each in logged_candidates(store, [turn.id]).get(turn.id, ()) if each.is_taken]
    messages = list(_message_segments(turn, line, pages, table=table, orders=orders))
    offers = [_offer_segment(each) for each in taken]
    scaled = [
        replace(each, tokens=round(each.tokens * ratio), whole=round(each.whole * ratio))
        for each in (*offers, *messages)
    ]
    known = sum(each.tokens for each in scaled)
    rest = max(0, bill.sent.prompt - known) if bill else 0
    client = max(0, bill.whole.prompt - sum(each.whole for each in scaled)) if bill else 0
    tools = WindowSegment(_TOOLS, Form.FULL, rest, min(rest, client))
    ghosts, texts = scaled[: len(offers)], scaled[len(offers) :]
    listed = [each for each in ghosts if each.kind == "ghost"]
    behind = [each for each in ghosts if each.kind != "ghost"]
    front = [tools] if rest else []
    return (*front, *listed, *texts, *behind), table


def _message_segments(
    turn: Turn,
    line: Sequence[Chain],
    pages: Mapping[Chain, Sequence[OutlinedPage]],
    *,
    table: PageTable,
    orders: WindowOrders,
) -> Iterator[WindowSegment]:
    gone: list[tuple[Shown, Sequence[OutlinedPage]]] = []
    for chain in line:
        row = table.shown.get(Spot(chain, WHOLE))
        left = row is not None and not row.is_back
        if gone and (not left or (row is not None and row.text)):
            yield _gone_segment(gone, orders)
            gone = []
        if left and row is not None:
            gone.append((row, pages.get(chain, ())))
            continue
        for page in pages.get(chain, ()):
            shown = table.shown.get(Spot(chain, page.position))
            yield _page_segment(page, shown, orders)
        hidden = table.hidden.get(chain)
        if hidden is not None and chain != turn.head:
            size = sum(map(len, (*hidden.before, *hidden.after)))
            if size:
                yield WindowSegment(_HIDDEN, Form.FULL, size // _CHARS_PER_TOKEN, 0)
    if gone:
        yield _gone_segment(gone, orders)


def _page_segment(page: OutlinedPage, row: Shown | None, orders: WindowOrders) -> WindowSegment:
    plain = row is None or row.form is Form.FULL
    known = page.size // _CHARS_PER_TOKEN if page.tokens is None else page.tokens
    tokens = row.whole if row is not None else known
    return WindowSegment(
        page.kind,
        Form.FULL if row is None else row.form,
        tokens if row is None or plain else row.tokens,
        tokens,
        page.turn,
        (page.id,),
        page.tool,
        "" if row is None else row.cause,
        "" if row is None or plain else reference_in(row.text),
        _order_of(orders, Spot(page.chain, page.position)),
    )


def _gone_segment(
    rows: Sequence[tuple[Shown, Sequence[OutlinedPage]]], orders: WindowOrders
) -> WindowSegment:
    """The stub of messages that left together."""
    first = rows[0][0]
    every = [page for _, pages in rows for page in pages]
    kinds = {Kind(kind).family for kind in {page.kind for page in every}}
    orders_here = (_order_of(orders, Spot(page.chain, page.position)) for page in every)
    return WindowSegment(
        Kind.TOOL_RESULT if Kind.TOOL_RESULT in kinds else Kind.RESPONSE,
        Form.GONE,
        sum(row.tokens for row, _ in rows),
        sum(row.whole for row, _ in rows),
        every[0].turn if every else 0,
        tuple(page.id for page in every),
        "",
        first.cause,
        reference_in(first.text),
        next(filter(None, orders_here), ""),
    )


def _offer_segment(each: DecidedCandidate) -> WindowSegment:
    return WindowSegment(each.kind, Form.FULL, each.tokens, 0, tool=each.key)


def _tokens_of(store: Store, page: Page) -> int:
    gist = store.gist(page.id)
    return gist.tokens if gist is not None else page.size // _CHARS_PER_TOKEN


def _boundary(bill: Bill | None, price: Price) -> CacheBoundary:
    measured = bill is not None and bill.calls == 1 and not bill.usage.estimated
    usage = (bill.usage if measured else bill.sent) if bill is not None else None
    return CacheBoundary(
        usage.cache_read if usage else 0,
        measured,
        price.input * price.read,
        price.input * price.write,
    )


def _point(
    turn: Turn, bill: Bill | None, cost: tuple[float, float], marks: Mapping[str, int]
) -> TurnPoint:
    spent, whole = cost
    return TurnPoint(
        number=turn.number,
        started=turn.started,
        branch=turn.branch,
        outcome=turn.outcome,
        model=turn.model,
        sent=bill.sent.prompt if bill else 0,
        whole=bill.whole.prompt if bill else 0,
        cache_read=bill.usage.cache_read if bill else turn.usage.cache_read,
        output=bill.usage.output if bill else turn.usage.output,
        dollars=spent,
        whole_dollars=whole,
        broke=bill.broke if bill else "",
        calls=bill.calls if bill else 1,
        faults=bill.faults if bill else 0,
        marks=marks,
    )


def _turns_left(bills: Sequence[Bill], room: float) -> int | None:
    latest = [bill.sent.prompt for bill in bills[-_GROWTH_TURNS - 1 :]]
    steps = [after - before for before, after in pairwise(latest)]
    growth = fmean(grown) if (grown := [step for step in steps if step > 0]) else 0.0
    if growth <= 0 or not latest:
        return None
    return max(0, int((room - latest[-1]) / growth))


def _next_to_leave(segments: Sequence[WindowSegment], turn: int) -> WindowSegment | None:
    """The oldest result that is still shown and that nobody pinned."""
    return next(
        (
            each
            for each in segments
            if each.pages
            and each.turn < turn
            and each.form not in (Form.GONE, Form.STUB)
            and Kind(each.kind).family is Kind.TOOL_RESULT
            and each.order not in ("pin", "restore")
        ),
        None,
    )


def _say_when(left: int | None, following: WindowSegment | None) -> str:
    if following is None:
        return "nothing can leave"
    if left is None:
        return "the window does not grow; it leaves when that is cheaper"
    turns = "this turn" if not left else f"{left:,} {'turn' if left == 1 else 'turns'}"
    return f"in about {turns} at the latest; sooner when that is cheaper"


def _latest_rows(store: Store, page: Page, until: int) -> tuple[Shown | None, Shown | None, str]:
    """The row that says how the page was shown in the latest turn that had it, the row of the page
    itself, and the reference that stands for it."""
    outline = store.outline(page.session)
    for turn in _turns_back(store, page.session, until):
        line = lineage(outline.messages, turn)
        if page.chain not in line:
            continue
        table = store.table(line, TurnRef(turn.session, turn.number))
        own = table.shown.get(Spot(page.chain, page.position))
        row = table.shown.get(Spot(page.chain, WHOLE))
        if row is None or row.is_back:
            return own, own, reference_in(own.text) if own is not None else ""
        index = line.index(page.chain)
        above = (table.shown.get(Spot(chain, WHOLE)) for chain in reversed(line[: index + 1]))
        text = next((each.text for each in above if each is not None and each.text), b"")
        return replace(row, text=text), own, reference_in(text)
    return None, None, ""


def _turns_back(store: Store, session: SessionId, until: int) -> Iterator[Turn]:
    """The turns of a session, the latest first. That one mostly suffices."""
    latest = store.turn_of(session, until) or store.turn_of(session)
    if latest is not None:
        yield latest
        before = [each for each in store.turns(session) if each.number < latest.number]
        yield from reversed(before)


def _page_cost(store: Store, config: Config, page: Page, tokens: int, before: int | None) -> float:
    """Dollars of so many tokens, written once and read with every turn before that one."""
    cost, price_of = 0.0, known_prices(config)
    for bill in store.bills(page.session):
        if bill.turn >= page.turn and (before is None or bill.turn < before):
            price = price_of(bill.model, bill.upstream)
            factor = price.write if bill.turn == page.turn else price.read
            cost += tokens * price.input * factor / 1e6
    return cost


def _size_before(own: Shown | None, tokens: int) -> int:
    """A page's tokens while it was in the window."""
    if own is None:
        return tokens
    return own.whole if own.form is Form.STUB else own.tokens


def _left_with(store: Store, page: Page) -> int | None:
    """The turn with which a page left; None if that is not known."""
    for event in store.events(page.session, "Evicted"):
        for id in str(event.detail.get("ids", "")).split():
            with suppress(NotFound):
                if page.id in store.reference(id).pages:
                    return event.turn
    return None


def _order_of(orders: WindowOrders, spot: Spot) -> str:
    order = orders.pages.get(spot)
    return order[0] if order is not None else ""
