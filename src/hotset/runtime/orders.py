"""A person's orders about the window: kept as notes, followed by a running proxy, priced, and
undone."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

import msgspec

from hotset.config import Config
from hotset.errors import BadInput
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.note import Space
from hotset.nouns.order import NO_ORDERS, OrderAct, WindowOrders
from hotset.nouns.page import Chain, Kind, Page, SessionId
from hotset.nouns.turn import Event, Session, Turn
from hotset.nouns.window import Spot
from hotset.runtime.decision import lineage
from hotset.runtime.session_arm import keys_of_turn
from hotset.runtime.views.window import WindowSegment, WindowView, read_window
from hotset.store.port import Store
from hotset.typed import decode

ORDERED = "Ordered"
"""Event name of an order."""

_ORDERS = Space("orders")
"""Keyed by what an order is about: `page:CHAIN:POSITION`, `tool:NAME`, `session:KEY`."""

_PAGE, _TOOL, _SESSION = "page", "tool", "session"
_PINNED_SHARE = 0.5  # of the window, that pinned pages may take
_PAGE_ACTS = frozenset({OrderAct.PIN, OrderAct.RESTORE, OrderAct.EVICT})


class KeptOrder(msgspec.Struct, frozen=True, omit_defaults=True):
    """An order that holds."""

    act: OrderAct
    about: str
    """A page's id, a tool's name, or a session's id."""
    at_once: bool = False
    """With the next request; otherwise when the provider's cache is lost anyway."""
    time: float = 0.0


@dataclass(frozen=True, slots=True)
class PrefixPrice:
    """The price of carrying out an order with the next request."""

    tokens: int
    """That are written again, because they stand behind what changes."""
    dollars: float
    """More than reading them from the cache; at list prices."""


@dataclass(frozen=True, slots=True)
class OrderQuote:
    """What an order would cost, asked before it is given."""

    act: OrderAct
    price: PrefixPrice | None
    """Of carrying it out with the next request; None where that changes nothing that was sent."""
    refused: str
    """Why it cannot be given; empty if it can."""


def read_orders(store: Store) -> WindowOrders:
    """The orders that hold."""
    pages: dict[Spot, tuple[OrderAct, bool]] = {}
    tools: set[str] = set()
    sessions: dict[str, bool] = {}
    for key, order in _kept(store).items():
        kind, _, rest = key.partition(":")
        if kind == _PAGE:
            chain, _, position = rest.rpartition(":")
            pages[Spot(Chain(chain), int(position))] = (order.act, order.at_once)
        elif kind == _TOOL:
            tools.add(rest)
        elif kind == _SESSION:
            sessions[rest] = order.at_once
    return (
        WindowOrders(pages, frozenset(tools), sessions) if pages or tools or sessions else NO_ORDERS
    )


def list_orders(store: Store) -> tuple[KeptOrder, ...]:
    """The orders that hold, the latest first."""
    return tuple(sorted(_kept(store).values(), key=lambda each: -each.time))


def _kept(store: Store) -> dict[str, KeptOrder]:
    found: dict[str, KeptOrder] = {}
    for key, note in store.notes(_ORDERS).items():
        with suppress(msgspec.MsgspecError):  # one that a newer version gave
            found[key] = decode(note.value or b"{}", KeptOrder)
    return found


class OrderFollower:
    """The orders that hold, as a running proxy knows them. Thread-safe."""

    def __init__(self) -> None:
        self.latest = NO_ORDERS
        self._version = -1
        self._lock = Lock()

    def refresh(self, store: Store) -> None:
        """Read what changed since the last look. Blocks."""
        with self._lock:
            version = store.version()
            if version != self._version:
                self.latest = read_orders(store)
                self._version = version


def order_page(
    store: Store, config: Config, page: Page, act: OrderAct, *, at_once: bool, now: float
) -> PrefixPrice:
    """Pin, restore or evict a page. Returns what it costs to do it at once. Raises `BadInput` where
    it cannot be done."""
    view = _latest_view(store, config, page.session)
    segment = _segment_of(view, page)
    if act not in _PAGE_ACTS:
        raise BadInput(f"a page can be pinned, restored or evicted, not {act}")
    if why := _why_unfit(page, act, segment, view):
        raise BadInput(why)
    price = price_of_change(view, segment)
    _keep(
        store,
        f"{_PAGE}:{page.chain}:{page.position}",
        KeptOrder(act, page.id, at_once, now),
        session=page.session,
        turn=view.turn,
        price=price,
    )
    return price


def order_tool(store: Store, tool: str, now: float) -> None:
    """New results of a tool are shown whole from now on."""
    if not tool.strip():
        raise BadInput("name a tool: `hotset window whole Bash`")
    _keep(store, f"{_TOOL}:{tool}", KeptOrder(OrderAct.WHOLE, tool, True, now))


def quote_page(store: Store, config: Config, page: Page) -> tuple[OrderQuote, ...]:
    """What can be ordered about a page, and at what price. Raises `BadInput` if it is not a part of
    its session's latest request."""
    view = _latest_view(store, config, page.session)
    segment = _segment_of(view, page)
    price = price_of_change(view, segment)
    acts = (OrderAct.PIN, OrderAct.RESTORE, OrderAct.EVICT)
    return tuple(
        OrderQuote(
            act, None if act is OrderAct.PIN else price, _why_unfit(page, act, segment, view)
        )
        for act in acts
    )


def quote_off(store: Store, config: Config, session: Session) -> OrderQuote:
    """What it costs to switch hotset off for a session at once."""
    view = _latest_view(store, config, session.id)
    return OrderQuote(OrderAct.OFF, _price_of_off(view), _why_not_off(view))


def order_off(
    store: Store, config: Config, session: Session, *, at_once: bool, now: float
) -> PrefixPrice:
    """Send a session's requests unchanged. Raises `BadInput` if its history does not fit any
    more."""
    view = _latest_view(store, config, session.id)
    if why := _why_not_off(view):
        raise BadInput(why)
    price = _price_of_off(view)
    turn = store.turn_of(session.id)
    assert turn is not None, "a view without a turn"
    key = _key_of_session(store, session, turn)
    order = KeptOrder(OrderAct.OFF, session.id, at_once, now)
    _keep(store, f"{_SESSION}:{key}", order, session=session.id, turn=view.turn, price=price)
    return price


def undo_order(store: Store, about: str, now: float) -> KeptOrder:
    """Take an order back: about a page, a tool or a session. Raises `BadInput` if there is none."""
    for key, order in _kept(store).items():
        if about in (order.about, f"{order.act}:{order.about}"):
            event = Event(ORDERED, now, detail={"act": "undo", "about": about, "was": order.act})
            store.keep(NoteWritten(_ORDERS, key, None, now), event).result()
            return order
    raise BadInput(f"nobody ordered anything about {about}; see: hotset window")


def price_of_change(view: WindowView, changed: WindowSegment) -> PrefixPrice:
    """The price of changing the window from this segment on with the next request: what stands
    behind it is written again."""
    behind = sum(each.tokens for each in view.segments[view.segments.index(changed) :])
    more = max(0.0, view.boundary.write_price - view.boundary.read_price)
    return PrefixPrice(behind, behind * more / 1e6)


def _segment_of(view: WindowView, page: Page) -> WindowSegment:
    segment = next((each for each in view.segments if page.id in each.pages), None)
    if segment is None:
        raise BadInput(f"{page.id} is not a part of the latest request of {page.session}")
    return segment


def _why_unfit(page: Page, act: OrderAct, segment: WindowSegment, view: WindowView) -> str:
    """Why this cannot be ordered about a page; empty if it can."""
    if act is OrderAct.EVICT and page.kind.family not in (
        *(Kind.TOOL_RESULT, Kind.TOOL_CALL, Kind.RESPONSE, Kind.THINKING),
    ):
        return "the user's words and the system text never leave the window"
    if act is OrderAct.EVICT and page.turn == view.turns:
        return "the model has not answered that yet; evict it after the next turn"
    if act is OrderAct.RESTORE and segment.cause == "handoff":
        return (
            "it was handed over with the state of the work; the model gets it back with "
            f'retrieve_context(id="{segment.reference or page.id}")'
        )
    grows = max(0, segment.whole - segment.tokens) if act is OrderAct.RESTORE else 0
    if view.sent + grows > view.window:
        return f"it does not fit: {segment.whole:,} tokens more than the window has left"
    stays = [each for each in view.segments if each.order in ("pin", "restore")]
    pinned = sum(each.tokens for each in stays) + max(segment.tokens, grows)
    if act is not OrderAct.EVICT and pinned > _PINNED_SHARE * view.window:
        return (
            f"pinned pages would take {pinned:,} tokens, more than half of the window; undo others "
            "first: hotset window"
        )
    return ""


def _why_not_off(view: WindowView) -> str:
    if view.whole <= view.window:
        return ""
    return (
        f"the full history of {view.session} no longer fits: {view.whole:,} tokens, the window "
        f"has {view.window:,}; start a new session with `hotset wrap --off`"
    )


def _price_of_off(view: WindowView) -> PrefixPrice:
    first = next((each for each in view.segments if each.tokens != each.whole), view.segments[-1])
    return price_of_change(view, first)


def _latest_view(store: Store, config: Config, session: SessionId) -> WindowView:
    view = read_window(store, config, store.session(session), orders=read_orders(store))
    if view is None:
        raise BadInput(f"{session} has no turn yet")
    return view


def _key_of_session(store: Store, session: Session, turn: Turn) -> str:
    nodes = store.outline(session.id).messages
    return keys_of_turn(store, session.id, set(lineage(nodes, turn))).latest


def _keep(
    store: Store,
    key: str,
    order: KeptOrder,
    *,
    session: SessionId | None = None,
    turn: int = 0,
    price: PrefixPrice | None = None,
) -> None:
    detail: dict[str, str | int | float] = {
        "act": order.act,
        "about": order.about,
        "at_once": int(order.at_once),
    }
    if price is not None:
        detail |= {"tokens": price.tokens, "dollars": round(price.dollars, 6)}
    event = Event(ORDERED, order.time, session, turn, detail)
    value = msgspec.json.encode(order)
    store.keep(NoteWritten(_ORDERS, key, value, order.time), event).result()
