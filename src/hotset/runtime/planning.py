"""From a client's request to the one that goes out: plan, render, check. Any doubt ends in the
client's own bytes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from threading import Lock

import msgspec

from hotset import tokens
from hotset.config import Config
from hotset.dialects.port import Dialect
from hotset.dialects.rules import beyond
from hotset.errors import HotsetError
from hotset.files.lru import Lru
from hotset.nouns.bill import Bill
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.knobs import NEVER, Knobs, Prefetch, Prefetching
from hotset.nouns.link import Link, link
from hotset.nouns.message import Message, Reply, Request, ToolSpec, Usage
from hotset.nouns.page import ROOT, Chain, Kind, Role
from hotset.nouns.price import Price, Prices
from hotset.nouns.window import WHOLE, Hidden, Line, PageTable, Plan, SentRequest, Spot
from hotset.runtime.bounded import check
from hotset.runtime.calibrating import Calibrations
from hotset.runtime.lines import LineageLinker, LineWeigher
from hotset.runtime.prefetching import (
    Prefetched,
    Prefetcher,
    Scene,
    is_new_prompt,
    place_behind,
    reply_answered,
)
from hotset.runtime.resuming import Resuming
from hotset.runtime.words import MessageRewriter
from hotset.sources.memory import PlacedReminder, Reminders
from hotset.sources.tools import (
    NOTHING,
    Deferrals,
    OfferDecision,
    SessionOpening,
    ToolLibrary,
    ToolOffer,
    ToolOffers,
    weigh,
)
from hotset.store.port import Store
from hotset.window.arguments import spoken
from hotset.window.deferring import ANCHOR, at_once, deferring
from hotset.window.ghosts import beside
from hotset.window.plan import Moment, latest_sent, plan
from hotset.window.prefetch import Judged
from hotset.window.price import charge, price_of
from hotset.window.toolbox_tools import FIND, TOOLBOX_SPECS
from hotset.window.tools import OUR_TOOLS, SPECS, brings_ours, has_twin

_MOST_TABLES = 256
"""Lines of conversations whose page table is held in memory."""

_MOST_LATE = 16
"""Plans that came too late for their call and wait for the next one."""

_FRESH_SECONDS = 30.0
"""A table in memory that was not used for longer is read again: another process may have gone on
with the conversation."""

_MOST_MESSAGES = 20_000
"""Longer conversations go out as they came: a plan takes up to 50 µs a message, so this many take a
second."""

_MOST_BYTES = 32 << 20
"""Larger requests go out as they came. It is the providers' own bound, and what is counted in two
seconds."""

_SMALL = 4 << 10
"""Bytes of an opening request up to which it is planned at once: 0.2 ms for 1 KB, where a trip to a
thread and back takes 0.7."""

_OPENING = frozenset({Kind.PROMPT, Kind.SYSTEM})

_REPLY_ROOM = 8192
"""Tokens that stay free for the reply where the client does not say how many it wants."""

_STANDS_IN = Chain("stands in")
"""The chain of a message that is ours: nothing is hidden around it."""

_TOOLBOX = frozenset(spec.name for spec in TOOLBOX_SPECS)

_REPLY_FIELDS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


Summaries = Callable[[Sequence[Line], Store], Mapping[int, str]]
"""What was written about a line's older steps, by the number of the last step that each text speaks
of."""


def _no_summaries(lines: Sequence[Line], store: Store) -> Mapping[int, str]:  # noqa: ARG001 - one of the `Summaries`
    return {}


class Unplanned(HotsetError):
    """The request goes out as it came."""


class Forbidden(Unplanned):
    """The plan would have broken a rule of the provider's: a fault of ours."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request as it goes out, and what has to be known when its reply comes."""

    body: bytes
    request: Request
    """The client's own."""
    outgoing: Request
    """What `body` says, without our tools."""
    links: tuple[Link, ...]
    """The client's messages at their places."""
    plan: Plan
    hidden: Mapping[Chain, Hidden]
    offered: bool
    """The model may call our tools."""
    estimated: int
    """Tokens of the prompt as it goes out, by our own count."""
    sent: SentRequest
    before: SentRequest | None
    """The latest request on this line."""
    bill: Bill
    window: int = 0
    """Tokens that its prompt may have, as the provider counts them."""
    prefetched: Prefetched | None = None
    """What is offered with its prompt for the first time."""
    judged: tuple[Judged, ...] = ()
    """What became of earlier offers."""
    reminded: PlacedReminder | None = None
    """What is told of earlier work with its prompt, for the first time."""
    specs: tuple[ToolSpec, ...] = ()
    """Our tools, as they stand beside the client's."""
    decided: OfferDecision = field(default_factory=OfferDecision)
    """What its session may call from the toolbox."""
    knobs: Knobs = field(default_factory=Knobs)
    deferred: bool = False
    """Tools that are found can be called by their own names."""
    reopens: bool = False
    """An earlier conversation began with the same words."""

    @property
    def behind(self) -> Hidden | None:
        """What stands behind its prompt and is said for the first time."""
        new = self.prefetched or self.reminded
        return self.hidden[new.hidden.chain] if new is not None else None

    @property
    def head(self) -> Chain:
        """The message that a reply follows."""
        return next((each.chain for each in reversed(self.links) if not each.message.aside), ROOT)


@dataclass(frozen=True, slots=True)
class _Held:
    """A page table in memory."""

    table: PageTable
    used: float


@dataclass(frozen=True, slots=True)
class _Case:
    """A request, and what is known of it before anything is decided."""

    request: Request
    dialect: Dialect
    store: Store
    now: float
    upstream: str
    off: bool
    """It goes out as it came."""
    offered: bool
    """The model may call our tools."""
    brought: bool
    """The model gets our tools from the client, over MCP."""
    opens: bool
    """Nobody has replied yet."""
    reopens: bool
    """An earlier conversation began with the same words."""
    links: tuple[Link, ...]
    table: PageTable
    hidden: Mapping[Chain, Hidden]
    """What the client never saw of it."""
    price: Price
    ratio: float
    """The provider's tokens to one of ours."""
    own: int
    """Tokens of what the client has before the messages: nobody would send our tools along with
    everything."""
    knobs: Knobs


@dataclass(frozen=True, slots=True)
class _Toolset:
    """Our tools, as they stand beside the client's."""

    specs: tuple[ToolSpec, ...] = ()
    spelled: Mapping[Chain, Hidden] = field(default_factory=dict)
    """Answers of earlier searches for tools, in words that this provider understands."""
    decided: OfferDecision = field(default_factory=OfferDecision)
    deferred: bool = False
    """Tools that are found can be called by their own names."""

    @property
    def tokens(self) -> int:
        return sum(weigh(spec) for spec in self.specs if spec is not ANCHOR)


class Planner:
    """Makes every request's plan, and holds the page tables of the lines that are under way. Safe
    to use from threads."""

    def __init__(
        self,
        config: Config,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        summaries: Summaries = _no_summaries,
        prefetcher: Prefetcher | None = None,
        tools: ToolLibrary | None = None,
        reminding: Reminders | None = None,
    ) -> None:
        self._config = config
        self.offering = ToolOffers(tools, config.tooling.ghosts, config.patience)
        self.deferrals = Deferrals(config)
        self._prefetcher = (
            prefetcher if config.knobs_for("").prefetch.mode is not Prefetching.OFF else None
        )
        self._reminding = reminding
        self._monotonic = monotonic
        self._summaries = summaries
        self._linked = LineageLinker()
        self._scales = LineWeigher()
        self._words = MessageRewriter()
        self.resuming = Resuming()
        self._tables: Lru[Chain, _Held] = Lru(count=_MOST_TABLES)
        self._late: Lru[Chain, Plan] = Lru(count=_MOST_LATE)
        """Plans that came too late for their call, by its last message."""
        self._calibrations = Calibrations()
        self._price = lru_cache(maxsize=64)(partial(_price_in, config.prices))
        self._lock = Lock()

    def is_quick(self, request: Request) -> bool:
        """True where a plan needs nothing that takes time: no store, no search, no tokenizer to
        load, little to count."""
        small = (
            self._prefetcher is None
            and len(request.raw) <= _SMALL
            and (self._reminds_nothing or not request.tools)
        )
        return (
            small
            and _opens(request)
            and self._calibrations.knows(request.model)
            and self.offering.is_quick
        )

    @property
    def _reminds_nothing(self) -> bool:
        return self._reminding is None or self._reminding.is_quick

    def prepare(
        self,
        request: Request,
        dialect: Dialect,
        store: Store,
        now: float,
        upstream: str,
        *,
        off: bool,
        agent: str = "",
    ) -> Prepared:
        """Raises `Unplanned` where the request is not ours to plan."""
        if request.previous or not request.messages:
            raise Unplanned("the provider holds the conversation")
        if len(request.messages) > _MOST_MESSAGES or len(request.raw) > _MOST_BYTES:
            raise Unplanned("it is too large to be planned in time")
        began = self._monotonic()
        held = any(
            hint.startswith("conversation=") for hint in request.hints
        )  # the provider would keep what we made of it
        case = self._case(
            request, dialect, store, now, upstream, off=off or self._config.off or held, agent=agent
        )
        request, links, knobs, late = (
            case.request,
            case.links,
            case.knobs,
            self._planned_late(case.links),
        )
        table = (
            replace(case.table, shown={**case.table.shown, **late.shown}) if late else case.table
        )
        ours = self._toolset(case)
        fixed = case.own + ours.tokens
        lines = self._scales.lines(links, request.model, case.hidden)
        written = self._summaries(lines, store) if table.sent and not case.opens else {}
        moment = Moment(
            now,
            case.price,
            _counter(request.model),
            fixed,
            case.ratio,
            summaries=written,
            check=check,
        )
        made = _as_it_came(lines, table) if case.off else plan(lines, table, knobs, moment)
        reminded, prefetched = self._behind(case, made, moment)
        hidden = {
            **case.hidden,
            **{new.hidden.chain: new.hidden for new in (reminded, prefetched) if new is not None},
        }
        if reminded is not None or prefetched is not None:
            lines = self._scales.lines(links, request.model, hidden)
            made = plan(lines, table, knobs, moment)
        if late is not None:
            made = _together(late, made)
        said = {**hidden, **ours.spelled}
        try:
            outgoing, body = self._drawn(case, made, said, ours.specs)
        except Forbidden:
            # the rules are about messages: where none leaves, only what stands in them, they are
            # kept
            made = plan(lines, case.table, knobs, replace(moment, messages_stay=True))
            outgoing, body = self._drawn(case, made, said, ours.specs)
        estimated = fixed + made.tokens
        bill = _estimate(made, lines, case, fixed)
        return Prepared(
            body=body,
            request=request,
            outgoing=outgoing,
            links=links,
            plan=made,
            hidden=hidden or table.hidden,
            offered=case.offered,
            estimated=estimated,
            sent=SentRequest(links[-1].chain, now, estimated),
            before=table.sent,
            bill=replace(bill, overhead_ms=1000 * (self._monotonic() - began)),
            window=knobs.window,
            prefetched=prefetched,
            judged=self._prefetcher.judged(links, hidden) if self._prefetcher is not None else (),
            reminded=reminded,
            specs=ours.specs,
            decided=ours.decided,
            knobs=knobs,
            deferred=ours.deferred,
            reopens=case.reopens,
        )

    def without_deferred(self, prepared: Prepared, dialect: Dialect, store: Store) -> Prepared:
        """The same request for an upstream that cannot defer tools: what was found is told in
        words. Raises `Unplanned`."""
        request, links, specs = prepared.request, prepared.links, at_once(prepared.specs)
        recalled = self.deferrals.recalled(links, prepared.hidden, dialect, store, deferred=False)
        said = {**prepared.hidden, **recalled.spelled}
        outgoing = self._as_planned(request, links, prepared.plan, said, dialect)
        body = _rendered(outgoing, request, links, said, dialect, specs=specs)
        return replace(prepared, body=body, outgoing=outgoing, specs=specs, deferred=False)

    def came_late(self, done: Future[Prepared]) -> None:
        """A plan whose call went out without it: its rows hold from the next request of this line
        on, which is quick then."""
        if done.exception() is not None:
            return
        prepared = done.result()
        self._late.put(prepared.links[-1].chain, prepared.plan)

    def went_out(self, prepared: Prepared, hidden: Sequence[Hidden] = ()) -> None:
        """Remembers how a request was sent, and what its client did not see of the reply, for the
        next one on this line."""
        self.offering.went_out(prepared.decided, prepared.sent.time)
        table = PageTable(
            prepared.plan.shown,
            {**prepared.hidden, **{each.chain: each for each in hidden}},
            prepared.sent,
        )
        with self._lock:
            for each in _latest(prepared.links) if self._late else ():
                self._late.pop(each.chain)
            if prepared.before is not None:
                self._tables.pop(prepared.before.head)
            if (
                prepared.reopens
            ):  # the next message tells whose line it is, and the store what was told there
                self._tables.pop(prepared.sent.head)
            else:
                self._hold(table, self._monotonic())

    def replied(self, prepared: Prepared, reply: Reply, now: float, agent: str = "") -> None:
        """A reply has left: what its calls will want next is looked for while its client runs
        them."""
        if self._prefetcher is None or not prepared.offered:
            return
        knobs = self._config.knobs_for(agent).prefetch
        said = [part for message in reply.messages for part in message.parts]
        calls = [part for part in said if part.kind.family is Kind.TOOL_CALL]
        if not knobs.racing or not calls:
            return
        said_at = [
            each.chain for each in link(prepared.head, reply.messages) if not each.message.aside
        ]
        told = [part.content for part in said if part.kind is Kind.RESPONSE]
        words = [
            *(each.decode("utf-8", "replace") for each in told),
            *(spoken(call.content) for call in calls),
        ]
        self._prefetcher.race(said_at[-1], "\n".join(words), now, knobs)

    def settled(self, prepared: Prepared, reported: Usage) -> NoteWritten | None:
        """Learns from what the provider counted for the prompt; gives the note to be kept where
        that made a difference."""
        return self._calibrations.observed(prepared.request.model, prepared.estimated, reported)

    def _case(
        self,
        request: Request,
        dialect: Dialect,
        store: Store,
        now: float,
        upstream: str,
        *,
        off: bool,
        agent: str,
    ) -> _Case:
        price = self._price(request.model, upstream)
        links = self._linked.of(request)
        opens = _opens(request)
        if (
            not off
            and self._config.inject
            and (one := self._with_one_set(request, dialect, store, links)) is not request
        ):
            request, links = one, self._linked.of(one)
        brought = brings_ours(request.tools)
        offered = (
            not off
            and not brought
            and self._config.inject
            and dialect.injectable(request, OUR_TOOLS)
        )
        alone = opens and self._prefetcher is None and (self._reminds_nothing or not offered)
        table = self._table(links, None if alone else store)
        # An opening that went out before, so long ago that what came of it is remembered, is no
        # retry.
        reopens = (
            opens
            and table.sent is not None
            and now - table.sent.time >= self._config.memory.quiet_seconds
        )
        return _Case(
            request=request,
            dialect=dialect,
            store=store,
            now=now,
            upstream=upstream,
            off=off,
            offered=offered,
            brought=brought,
            opens=opens,
            reopens=reopens,
            links=links,
            table=table,
            hidden={each.chain: found for each in links if (found := table.hidden.get(each.chain))}
            if offered
            else {},
            price=price,
            ratio=self._calibrations.ratio(request.model, store),
            own=self._scales.fixed(request),
            knobs=self._knobs(request, price, agent, askable=offered or brought),
        )

    def _with_one_set(
        self, request: Request, dialect: Dialect, store: Store, links: tuple[Link, ...]
    ) -> Request:
        """The request without the client's own copies of our tools, where the model has had ours
        since an earlier request.

        Clients start their MCP servers beside their first request. The set that came first stays:
        whatever came later, the tools that the model sees are the same. Copies that are found by a
        search leave in any case; the model does not see them.
        """
        if not any(has_twin(tool.raw, SPECS) for tool in request.tools):
            return request
        sent = self._table(links, None if _opens(request) else store).sent
        if brings_ours(request.tools) and (sent is None or self.offering.was_brought(sent, store)):
            return request
        ours = (
            *SPECS,
            *(each for each in self.offering.kept(links, store).tools if each.name in _TOOLBOX),
        )
        loaded = _referred(request, dialect)
        one = dialect.parse(
            dialect.withhold(
                request.raw,
                lambda raw: has_twin(raw, ours) and not any(name in raw for name in loaded),
            )
        )
        broken = dialect.check(one, request)
        if broken and beyond(broken, dialect.check(request)) is not None:
            return request
        return one if dialect.injectable(one, OUR_TOOLS) else request

    def _toolset(self, case: _Case) -> _Toolset:
        """Our tools for this request, and what was found with them earlier as this provider can be
        told of it."""
        request, dialect, store = case.request, case.dialect, case.store
        if not case.offered:
            note = self.offering.brought(case.links[-1].chain, case.now) if case.brought else None
            return _Toolset(decided=OfferDecision(notes=(note,) if note is not None else ()))
        sent = case.table.sent.time if case.table.sent else None
        allowed = self.deferrals.allowed(request, dialect, case.upstream)
        opening = SessionOpening(
            request,
            case.links,
            case.opens,
            sent,
            case.now,
            case.price,
            case.own,
            case.knobs,
            allowed,
        )
        decided = self.offering.of(opening, store)
        specs = _offered(request, dialect, decided.offer)
        deferred = decided.offer.deferred and allowed and any(spec.name == FIND for spec in specs)
        recalled = self.deferrals.recalled(
            case.links, case.hidden, dialect, store, deferred=deferred
        )
        if deferred:
            theirs = {tool.name for tool in request.tools}
            specs = deferring(specs, [each for each in recalled.tools if each.name not in theirs])
        return _Toolset(specs, recalled.spelled, decided, deferred)

    def _behind(
        self, case: _Case, made: Plan, moment: Moment
    ) -> tuple[PlacedReminder | None, Prefetched | None]:
        """What is told of earlier work with a new prompt, and what it will need next."""
        known, hidden = (PageTable(), {}) if case.reopens else (case.table, case.hidden)
        last, reminded = case.links[-1], None
        if not case.offered or last.chain in known.hidden:
            return None, None
        free = round(case.knobs.window / case.ratio) - moment.fixed - made.tokens
        scene = Scene(
            last,
            case.dialect,
            case.request,
            case.links,
            made.shown,
            hidden,
            free,
            moment.count,
            case.now,
        )
        if self._reminding is not None and is_new_prompt(last, known):
            reminded = self._reminding.offer(scene, partial(place_behind, scene), opens=case.opens)
        if reminded is not None:
            told = {**hidden, reminded.hidden.chain: reminded.hidden}
            scene = replace(scene, hidden=told, free=free - reminded.reminder.tokens)
        prefetcher = self._prefetcher
        return reminded, _ahead(
            prefetcher, scene, known, case.knobs.prefetch
        ) if prefetcher is not None else None

    def _drawn(
        self, case: _Case, made: Plan, said: Mapping[Chain, Hidden], specs: Sequence[ToolSpec]
    ) -> tuple[Request, bytes]:
        """The request as planned, and its body. Raises `Forbidden`."""
        own, links, dialect = case.request, case.links, case.dialect
        outgoing = own if case.off else self._as_planned(own, links, made, said, dialect)
        return outgoing, _rendered(outgoing, own, links, said, dialect, specs=specs)

    def _as_planned(
        self,
        own: Request,
        links: Sequence[Link],
        made: Plan,
        hidden: Mapping[Chain, Hidden],
        dialect: Dialect,
    ) -> Request:
        """The request with every page in its form, and with what the client never saw."""
        touched = {
            spot.chain for spot, row in made.shown.items() if row.text or spot.position == WHOLE
        }
        if not touched and not hidden:
            return own
        kept: list[Link] = []
        messages: list[Message] = []
        told: set[Chain] = set()
        for each in links:
            gone = made.shown.get(Spot(each.chain, WHOLE)) if each.chain in touched else None
            if gone is None:
                kept.append(each)
                messages.append(
                    self._words.reworded(each, made, dialect)
                    if each.chain in touched
                    else each.message
                )
            elif gone.text and each.chain not in told:
                told.add(each.chain)  # two reasoning items that say the same have one chain
                said = self._words.said(gone.text, dialect)
                kept.append(Link(said, each.parent, _STANDS_IN))
                messages.append(said)
        changed = replace(own, messages=tuple(messages))
        return dialect.reveal(changed, kept, hidden) if hidden else changed

    def _knobs(self, request: Request, price: Price, agent: str, *, askable: bool) -> Knobs:
        room = price.window - min(_reply_room(request), price.longest_reply)
        knobs = self._config.knobs_for(agent).turned(
            {"window": min(self._config.budget or room, room)}
        )
        # Without our tools the model could not ask for what is missing: then pages leave only where
        # the window would overflow.
        blind = {
            "limit": NEVER,
            "limits": {},
            "tools": {},
            "echo": False,
            "early": False,
            "most": 0,
        }
        return knobs if askable else knobs.turned(blind)

    def _table(self, links: Sequence[Link], store: Store | None) -> PageTable:
        now = self._monotonic()
        with self._lock:
            for each in _latest(links):
                held = self._tables.get(each.chain)
                if held is not None and now - held.used <= _FRESH_SECONDS:
                    return held.table
        if store is None:
            return PageTable()
        found = store.table([each.chain for each in links])
        if found.sent is not None:
            self._hold(found, now)
        return found

    def _planned_late(self, links: Sequence[Link]) -> Plan | None:
        late = (self._late.get(each.chain) for each in _latest(links)) if self._late else ()
        return next(filter(None, late), None)

    def _hold(self, table: PageTable, now: float) -> None:
        assert table.sent is not None
        self._tables.put(table.sent.head, _Held(table, now))


def _referred(request: Request, dialect: Dialect) -> list[bytes]:
    """The names, as in JSON, of deferred tools that the conversation has loaded: the provider wants
    them declared."""
    if b"tool_reference" not in request.raw:
        return []
    return [
        msgspec.json.encode(name)
        for message in request.messages
        for name in dialect.referred(message.raw)
    ]


def _opens(request: Request) -> bool:
    """Nobody has replied yet: of prompts and system texts nothing leaves and nothing is hidden, so
    the store knows no more."""
    return all(part.kind in _OPENING for message in request.messages for part in message.parts)


def _latest(links: Sequence[Link]) -> Iterator[Link]:
    """From the last message back to where the request before this one may have ended: the model has
    replied once since.

    Where it has replied more often, another process went on with the conversation, and the store
    knows how.
    """
    replies, was_reply = 0, False
    for each in reversed(links):
        is_reply = each.message.role is Role.ASSISTANT
        replies += is_reply and not was_reply
        was_reply = is_reply
        if replies > 1:
            return
        yield each


def _together(late: Plan, made: Plan) -> Plan:
    """What two plans decided, of which the first never went out."""
    fresh = {row.spot: row for row in (*late.fresh, *made.fresh) if row.spot in made.shown}
    return replace(made, fresh=tuple(fresh.values()), stubs=(*late.stubs, *made.stubs))


def _as_it_came(lines: Sequence[Line], table: PageTable) -> Plan:
    """The plan that changes nothing, and so saves nothing."""
    whole = [line.whole for line in lines]
    return Plan(
        dict(table.shown),
        tokens=sum(whole),
        whole=sum(whole),
        kept=sum(whole[: latest_sent(lines, table) + 1]),
    )


def _ahead(
    prefetcher: Prefetcher, scene: Scene, table: PageTable, knobs: Prefetch
) -> Prefetched | None:
    """What is offered with a new prompt, or with results of calls while which it was found."""
    if is_new_prompt(scene.last, table):
        return prefetcher.ahead(scene, knobs)
    answered = reply_answered(scene.links)
    return prefetcher.raced(answered.chain, scene, knobs) if answered is not None else None


def _offered(request: Request, dialect: Dialect, offer: ToolOffer) -> tuple[ToolSpec, ...]:
    """Our tools for this request; those of the toolbox only where there is room for all of them."""
    specs = (*SPECS, *beside(offer.tools, request.tools))
    return (
        specs
        if offer is NOTHING or dialect.injectable(request, [spec.name for spec in specs])
        else SPECS
    )


def _rendered(
    outgoing: Request,
    own: Request,
    links: Sequence[Link],
    hidden: Mapping[Chain, Hidden],
    dialect: Dialect,
    *,
    specs: Sequence[ToolSpec],
) -> bytes:
    """The body of a request, with our tools. Raises `Forbidden`."""
    body = own.raw if outgoing is own else dialect.render(outgoing)
    if specs:
        body = dialect.offer(body, specs)
    if body != own.raw:
        _hold_to_the_rules(outgoing, own, links, hidden, dialect, specs=specs)
    return body


def _hold_to_the_rules(
    outgoing: Request,
    own: Request,
    links: Sequence[Link],
    hidden: Mapping[Chain, Hidden],
    dialect: Dialect,
    *,
    specs: Sequence[ToolSpec],
) -> None:
    """Raises `Forbidden` where the provider would refuse what we made of the client's request."""
    original = dialect.reveal(own, links, hidden) if hidden else own
    ours = dialect.declared(specs)
    broken = dialect.check(
        replace(outgoing, tools=(*outgoing.tools, *ours)),
        replace(original, tools=(*original.tools, *ours)),
    )
    # A rule that the client's own request breaks as well is between it and the provider.
    if broken and (first := beyond(broken, dialect.check(own))) is not None:
        raise Forbidden(f"rule {first.invariant} at {first.where}")


def _estimate(made: Plan, lines: Sequence[Line], case: _Case, fixed: int) -> Bill:
    """What the prompt costs under the provider's cache rules, beside what sending everything would
    have."""
    latest, price = case.table.sent, case.price
    at = latest_sent(lines, case.table)
    cold = at < 0 or latest is None or case.now - latest.time > price.ttl
    before = sum(line.whole for line in lines[: at + 1])

    def billed(fixed: int, prompt: int, kept: int) -> Usage:
        return charge(
            price,
            round((fixed + prompt) * case.ratio),
            round((fixed + kept) * case.ratio),
            cold=cold,
        )

    sent, whole = billed(fixed, made.tokens, made.kept), billed(case.own, made.whole, before)
    return Bill(
        model=case.request.model,
        upstream=case.upstream,
        sent=sent,
        whole=whole,
        broke=made.broke or "",
    )


def _reply_room(request: Request) -> int:
    params = msgspec.json.decode(request.params)
    wanted = [
        value
        for name in _REPLY_FIELDS
        if isinstance(value := params.get(name), int) and not isinstance(value, bool)
    ]
    return max(1, *wanted) if wanted else _REPLY_ROOM


def _price_in(prices: Prices, model: str, upstream: str) -> Price:
    return price_of(model, prices, upstream)


@lru_cache(maxsize=64)
def _counter(model: str) -> Callable[[bytes], int]:
    encoding = tokens.encoding_of(model)
    return lambda text: tokens.count(text, encoding)
