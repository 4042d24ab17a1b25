"""Turns a client's request into the one that goes out: plan, render, check. In any doubt the
client's own bytes go out."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import islice, takewhile
from threading import Lock

import msgspec

from hotset import tokens
from hotset.config import Config
from hotset.dialects.parts import can_see
from hotset.dialects.port import Dialect
from hotset.dialects.rules import beyond
from hotset.errors import Malformed
from hotset.files.lru import Lru
from hotset.nouns.bill import Bill
from hotset.nouns.candidate import Candidate, OfferSlot, OfferVerdict
from hotset.nouns.deposit import Deposit, NoteWritten, RequestReceived
from hotset.nouns.handoff import AnyState, HandoffReason, StateItem, StateSource
from hotset.nouns.knobs import NEVER, Knobs
from hotset.nouns.link import Link
from hotset.nouns.message import Loading, Request, ToolSpec, Usage
from hotset.nouns.order import NO_ORDERS, WindowOrders
from hotset.nouns.page import ROOT, Chain, Kind, Role
from hotset.nouns.price import Price, Prices
from hotset.nouns.tooling import ClientListing
from hotset.nouns.turn import TurnId
from hotset.nouns.window import Hidden, Line, PageTable, Plan, SentRequest
from hotset.runtime.background import check
from hotset.runtime.cache_marks import (
    NO_MARKS,
    CacheMarks,
    FixedLifetimes,
    choose_marks,
    has_marks,
)
from hotset.runtime.decision import SessionKnobs, asked_note, candidates_note
from hotset.runtime.handoffs import is_due, keep_program_note, read_brief
from hotset.runtime.line_weigher import LineageLinker, LineWeigher
from hotset.runtime.offer_round import AskedSource, Offered, OfferRound
from hotset.runtime.renderer import Forbidden, Renderer, Unplanned
from hotset.runtime.session_arm import PLAIN, SessionArm, keys_of_line
from hotset.runtime.session_notes import BroughtTools, Calibrations, Deferrals, Resuming
from hotset.sources.history import LineTurns
from hotset.sources.port import Scene, Source
from hotset.sources.tools import client_tool_name, weigh, weigh_tools
from hotset.store.port import Store, Where
from hotset.text.client_notes import asked_in
from hotset.window.deferred_tools import ANCHOR, with_deferred_tools, without_deferred_tools
from hotset.window.ghosts import not_in_client
from hotset.window.handoff import state_of
from hotset.window.plan import Moment, latest_sent, plan
from hotset.window.price import charge, price_of
from hotset.window.retrieval_tools import (
    OUR_TOOLS,
    SPECS,
    brings_ours,
    has_twin,
    offered_specs,
)
from hotset.window.step_sizes import by_message, weigh as weigh_lines
from hotset.window.successor import has_mark
from hotset.window.toolbox_tools import FIND, TOOLBOX_SPECS
from hotset.window.work.state import program_notes, with_notes

_MOST_TABLES = 256
"""Conversation lines whose page table is held in memory."""

_MOST_LATE = 16
"""Plans that were too late for their call and are used with the next one."""

_FRESH_SECONDS = 30.0
"""A table unused for longer is read from the store again: another process may have continued the
conversation."""

_MOST_MESSAGES = 20_000
"""Longer conversations go out unchanged: planning takes up to 50 µs a message, so this many take a
second."""

_MOST_BYTES = 32 << 20
"""Larger requests go out unchanged. It is the providers' own limit, and takes two seconds to
count."""

_FIRST_TURNS = 3  # of a session, that show whether its client has tools
_SMALL = 4 << 10
"""Opening requests up to this many bytes are planned on the event loop: 0.2 ms for 1 KB, where a
trip to a thread and back takes 0.7."""

_OPENING = frozenset({Kind.PROMPT, Kind.SYSTEM})

_REPLY_ROOM = 8192
"""Tokens left free for the reply if the client does not say how many it wants."""

_TOOL_SOURCE = "tools"
_TOOLBOX = frozenset(spec.name for spec in TOOLBOX_SPECS)

_REPLY_FIELDS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


Summaries = Callable[[Sequence[Line], Store], Mapping[int, str]]
"""Returns the summaries of a line's older steps, each keyed by the number of the last step it
covers."""


def _no_summaries(lines: Sequence[Line], store: Store) -> Mapping[int, str]:  # noqa: ARG001 - one of the `Summaries`
    return {}


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """A request, and what is known about it before anything is decided."""

    request: Request
    dialect: Dialect
    store: Store
    now: float
    upstream: str
    off: bool
    """It goes out unchanged."""
    offered: bool
    """The model may call our tools."""
    brought: bool
    """The model gets our tools from the client, over MCP."""
    opens: bool
    """The model has not replied yet."""
    reopens: bool
    """An earlier conversation began with the same messages."""
    links: tuple[Link, ...]
    """The client's messages with their chains."""
    table: PageTable
    hidden: Mapping[Chain, Hidden]
    """Messages that the client never saw, by chain."""
    price: Price
    ratio: float
    """Provider tokens per token of ours."""
    left_out: Mapping[str, bytes]
    """The client's own tools that are not in the list, by name."""
    own: int
    """Tokens of what the client sends before the messages. Our tools are not counted: sending
    everything would not need them."""
    knobs: Knobs


@dataclass(frozen=True, slots=True)
class PlannedTurn:
    """A request as it goes out, with what is needed when its reply comes."""

    facts: RequestFacts
    scene: Scene
    """The facts as the sources see them."""
    plan: Plan
    body: bytes
    outgoing: Request
    """The parsed `body`, without our tools."""
    hidden: Mapping[Chain, Hidden]
    """Messages that the client never saw, including those offered now."""
    behind: Hidden | None
    """The new text after the last message."""
    specs: tuple[ToolSpec, ...]
    """Our tools, as they are listed beside the client's."""
    deferred: bool
    """Found tools can be called by their own names."""
    marks: CacheMarks
    """Ours, for the provider's cache."""
    sent: SentRequest
    bill: Bill
    cpu: float = 0.0
    """Seconds of computing that planning took."""
    asked: tuple[AskedSource, ...] = ()

    @property
    def request(self) -> Request:
        """The client's own request."""
        return self.facts.request

    @property
    def links(self) -> tuple[Link, ...]:
        return self.facts.links

    @property
    def knobs(self) -> Knobs:
        return self.facts.knobs

    @property
    def offered(self) -> bool:
        return self.facts.offered

    @property
    def estimated(self) -> int:
        """Tokens of the prompt as it goes out, by our own count."""
        return self.sent.tokens

    @property
    def head(self) -> Chain:
        """The message that a reply follows."""
        return self.scene.head

    @property
    def new_results(self) -> list[bytes]:
        """The results that no earlier request of this line had."""
        latest = self.facts.table.sent
        new = takewhile(lambda each: latest is None or each.chain != latest.head, self.links[::-1])
        return [
            part.content
            for each in new
            for part in each.message.parts
            if part.kind.family is Kind.TOOL_RESULT
        ]

    def taken(self, source: Source) -> tuple[Candidate, ...]:
        return tuple(each for each in self.plan.taken if each.source == source.name)


@dataclass(frozen=True, slots=True)
class _ToolList:
    """Our tools, as they are listed beside the client's."""

    specs: tuple[ToolSpec, ...] = ()
    spelled: Mapping[Chain, Hidden] = field(default_factory=dict)
    """Answers of earlier tool searches, in text that this provider understands."""
    deferred: bool = False
    """Found tools can be called by their own names."""

    @property
    def tokens(self) -> int:
        return sum(weigh(spec) for spec in self.specs if spec is not ANCHOR)


@dataclass(frozen=True, slots=True)
class _HeldTable:
    """A page table in memory."""

    table: PageTable
    used: float


class Planner:
    """Plans every request, and holds the page tables of the active lines. Thread-safe."""

    def __init__(
        self,
        config: Config,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        summaries: Summaries = _no_summaries,
        orders: Callable[[], WindowOrders] = lambda: NO_ORDERS,
        sources: Sequence[Source] = (),
        program_decides: bool = False,
    ) -> None:
        """With `program_decides`, windows are handed over when their program says so."""
        self._config = config
        self._program_decides = program_decides
        self.sources = tuple(sources)
        self.deferrals = Deferrals(config)
        self._offers = OfferRound(self.sources)
        self._brought = BroughtTools()
        self._session_knobs = SessionKnobs()
        self._lifetimes = FixedLifetimes()
        self._may_last = config.knobs_for("").cache.fixed != "5m"
        """The first request of a session looks into the store."""
        self._may_follow = config.knobs_for("").successor.clear == "soon"
        """The same, for the conversation before it."""
        self._monotonic = monotonic
        self._summaries = summaries
        self._orders = orders
        self._linked = LineageLinker()
        self._weigher = LineWeigher()
        self._renderer = Renderer()
        self.resuming = Resuming()
        self._tables: Lru[Chain, _HeldTable] = Lru("page tables", count=_MOST_TABLES)
        self._late: Lru[Chain, Plan] = Lru("late plans", count=_MOST_LATE, shrinks=False)
        """Plans that came too late for their call, by its last message."""
        self._handoffs: Lru[Chain, AnyState] = Lru("handed over", count=_MOST_LATE, shrinks=False)
        """States with which programs handed windows over, by the last message; each waits for the
        next request of its line."""
        self._switched_off: Lru[str, bool] = Lru("sessions switched off", count=_MOST_TABLES)
        """Those whose cache was cold since a person switched hotset off for them."""
        self._calibrations = Calibrations()
        self._price = lru_cache(maxsize=64)(partial(_price_in, config.prices))
        self._turned = lru_cache(maxsize=64)(self._turn_knobs)
        self._lock = Lock()

    def close(self) -> None:
        self._offers.close()

    def is_quick(self, request: Request) -> bool:
        """True if planning is fast: no store, no search, no tokenizer to load, little to count."""
        small = len(request.raw) <= _SMALL and _is_opening(request) and not self._may_last
        small = small and not self._may_follow and not has_mark(request.messages)
        encoding = tokens.encoding_of(request.model)
        small = small and tokens.is_loaded(encoding) and self._calibrations.knows(request.model)
        return small and self._is_quiet(request)

    def _is_quiet(self, request: Request) -> bool:
        return all(
            each.is_quiet(opens=True) or (not each.standing and not request.tools)
            for each in self.sources
        )

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
        turn: TurnId | None = None,
        received: RequestReceived | None = None,
        arm: SessionArm = PLAIN,
    ) -> PlannedTurn:
        """Plan a request. Raises `Unplanned` if the request is not ours to plan."""
        if request.previous or not request.messages:
            raise Unplanned("the provider holds the conversation")
        if len(request.messages) > _MOST_MESSAGES or len(request.raw) > _MOST_BYTES:
            raise Unplanned("it is too large to be planned in time")
        began, worked = self._monotonic(), time.thread_time()
        # A provider that stores the conversation would store our version of it.
        held = any(hint.startswith("conversation=") for hint in request.hints)
        off = off or self._config.is_off_for(agent) or held
        off = off or self._is_switched_off(request, received, store, now, upstream)
        facts = self._open(request, dialect, store, now, upstream, off=off, agent=agent, arm=arm)
        lines = self._weigher.lines(facts.links, facts.request.model, facts.hidden)
        scene = self._scene(facts, lines, agent, turn or TurnId(secrets.token_hex(8)), received)
        offered = self._offers.ask(scene) if facts.offered else Offered()
        offers = self._listable(facts, offered.candidates)
        planned = replace(self._decide(facts, lines, scene, offers), asked=offered.asked)
        bill = replace(planned.bill, overhead_ms=1000 * (self._monotonic() - began))
        return replace(planned, bill=bill, cpu=time.thread_time() - worked)

    def _is_switched_off(
        self,
        request: Request,
        received: RequestReceived | None,
        store: Store,
        now: float,
        upstream: str,
    ) -> bool:
        """True if a person switched hotset off for this session: at once, or from the next cold
        cache on."""
        ordered = self._orders().sessions
        if not ordered:
            return False
        links = self._linked.of(request)
        keys = keys_of_line(received.key if received is not None else "", links)
        key = next((key for key in keys.every if key in ordered), None)
        if key is None or ordered[key] or self._switched_off.get(key):
            return key is not None
        sent = self._table(links, store).sent
        is_cold = sent is None or now - sent.time > self._price(request.model, upstream).ttl
        if is_cold:
            self._switched_off.put(key, True)
        return is_cold

    def _decide(
        self,
        facts: RequestFacts,
        lines: Sequence[Line],
        scene: Scene,
        offers: Sequence[Candidate],
    ) -> PlannedTurn:
        """Decide, render the result and check it against the provider's rules."""
        request, links, knobs, store = facts.request, facts.links, facts.knobs, facts.store
        late = self._planned_late(links)
        shown = {**facts.table.shown, **late.shown} if late else facts.table.shown
        table = replace(facts.table, shown=shown)
        written = self._summaries(lines, store) if table.sent and not facts.opens else {}
        found = self._found_tools(facts, offers)
        own = offered_specs(knobs.offers) if facts.offered else ()
        fixed = facts.own + sum(map(weigh, own)) + found.tokens
        moment = self._moment(facts, scene, fixed, written)
        made = (
            _unchanged_plan(lines, table)
            if facts.off
            else plan(lines, table, offers, knobs, moment)
        )
        made, behind = _place_texts(facts, made)
        if late is not None:
            made = _merge_plans(late, made)
        ours = _list_tools(made, found, own) if facts.offered else found
        new = {behind.chain: behind} if behind is not None else {}
        hidden = {**facts.hidden, **new}
        spoken = {**hidden, **ours.spelled}
        try:
            marks = self._choose_marks(facts, lines, made, fixed)
            outgoing, body = self._draw(facts, made, spoken, ours.specs, marks)
        except Forbidden:
            # the rules concern messages: they hold if no message leaves, only content of messages
            stay = replace(moment, messages_stay=True)
            again = plan(lines, facts.table, offers, knobs, stay)
            made = replace(again, choices=made.choices)
            marks = self._choose_marks(facts, lines, made, fixed)
            outgoing, body = self._draw(facts, made, spoken, ours.specs, marks)
        if behind is not None:  # count it as rendered
            extra = self._weigher.lines(links, request.model, hidden)[-1].whole - lines[-1].whole
            made = replace(made, tokens=made.tokens + extra, whole=made.whole + extra)
        fixed = facts.own + ours.tokens
        listed = {spec.name: spec for spec in ours.specs}
        return PlannedTurn(
            facts=facts,
            scene=replace(scene, specs=listed, defers=ours.deferred),
            plan=made,
            body=body,
            outgoing=outgoing,
            hidden=hidden if hidden and facts.offered else {**table.hidden, **hidden},
            behind=behind,
            specs=ours.specs,
            deferred=ours.deferred,
            marks=marks,
            sent=SentRequest(links[-1].chain, facts.now, fixed + made.tokens),
            bill=_estimate(made, lines, facts, fixed, marks),
        )

    def _moment(
        self,
        facts: RequestFacts,
        scene: Scene,
        fixed: int = 0,
        summaries: Mapping[int, str] | None = None,
    ) -> Moment:
        turn_of = LineTurns(facts.store, [each.chain for each in facts.links]).of
        return Moment(
            facts.now,
            facts.price,
            scene.count,
            fixed,
            facts.ratio,
            summaries=summaries or {},
            turn_of=turn_of,
            most_ghosts=self._config.tooling.ghosts,
            hidden_texts=partial(_hidden_texts, facts),
            brief=partial(read_brief, scene, facts.hidden, facts.dialect, turn_of),
            orders=self._orders(),
            asked=self._handed_over(facts.links),
            program_decides=self._program_decides,
            check=check,
        )

    def without_deferred(self, planned: PlannedTurn) -> PlannedTurn:
        """The same request for an upstream that cannot defer tools: found tools are described in
        text. Raises `Unplanned`."""
        facts, specs = planned.facts, without_deferred_tools(planned.specs)
        recalled = self.deferrals.recalled(
            facts.links, planned.hidden, facts.dialect, facts.store, deferred=False
        )
        spoken = {**planned.hidden, **recalled.spelled}
        outgoing, body = self._draw(facts, planned.plan, spoken, specs, planned.marks)
        scene = replace(planned.scene, specs={spec.name: spec for spec in specs}, defers=False)
        return replace(
            planned, scene=scene, body=body, outgoing=outgoing, specs=specs, deferred=False
        )

    def came_late(self, done: Future[PlannedTurn]) -> None:
        """Keep a plan whose call went out without it: it takes effect with the next request of this
        line, which is quick then."""
        if done.exception() is None:
            planned = done.result()
            self._late.put(planned.links[-1].chain, planned.plan)

    def is_handoff_due(
        self,
        request: Request,
        dialect: Dialect,
        store: Store,
        now: float,
        upstream: str,
        *,
        agent: str,
        used: int,
    ) -> bool:
        """True if this conversation is to be handed over; `used` are the tokens of its context as
        the provider counted them."""
        facts = self._open(request, dialect, store, now, upstream, off=False, agent=agent)
        lines = self._weigher.lines(facts.links, request.model, facts.hidden)
        total = weigh_lines(lines, by_message(facts.table.shown.values())).total
        own = sum(map(weigh, offered_specs(facts.knobs.offers)))
        counted = round(facts.ratio * (facts.own + own + total))
        return is_due(max(counted, used), facts.knobs)

    def hand_over(
        self,
        request: Request,
        dialect: Dialect,
        store: Store,
        now: float,
        upstream: str,
        *,
        agent: str,
        key: str,
        metadata: Mapping[str, str],
        note: str,
    ) -> AnyState:
        """The state of a conversation that a program hands over: its next request begins with
        it."""
        facts = self._open(request, dialect, store, now, upstream, off=False, agent=agent)
        lines = self._weigher.lines(facts.links, request.model, facts.hidden)
        received = RequestReceived(request, now, agent, key, metadata=metadata)
        scene = self._scene(facts, lines, agent, TurnId(secrets.token_hex(8)), received)
        weighed = weigh_lines(lines, by_message(facts.table.shown.values()))
        moment, chain = self._moment(facts, scene), _last_chain(facts.links)
        state = state_of(weighed, HandoffReason.ASKED, facts.knobs, moment)
        said = list(program_notes(moment.asked))  # with a handoff that no request followed
        if note.strip():
            said.append(StateItem(note.strip(), state.turns[1], StateSource.PROGRAM))
            keep_program_note(said[-1], chain, scene)
        state = with_notes(state, said)
        self._handoffs.put(chain, state)
        return state

    def _handed_over(self, links: Sequence[Link]) -> AnyState | None:
        for each in _latest(links) if self._handoffs else ():
            if (state := self._handoffs.get(each.chain)) is not None:
                return state
        return None

    def went_out(self, planned: PlannedTurn) -> tuple[Deposit, ...]:
        """Note that a request is sent as planned; returns the deposits to be kept with its plan."""
        self.remember(planned)
        facts = planned.facts
        if facts.off:
            return ()
        kept = [
            deposit
            for each in self.sources
            for deposit in each.took(planned.scene, planned.taken(each))
        ]
        first, asked = _first_chain(facts.links), planned.scene.received
        session = keys_of_line(asked.key if asked is not None else "", facts.links).latest
        notes = [
            self._lifetimes.note(first, planned.marks, opens=facts.opens),
            self._brought.note(facts.links[-1].chain, facts.now) if facts.brought else None,
            self._session_knobs.note(session, facts.knobs),
            candidates_note(planned.scene.turn, planned.plan.choices),
            asked_note(planned.scene.turn, planned.asked),
        ]
        return (*kept, *(note for note in notes if note is not None))

    def remember(self, planned: PlannedTurn, hidden: Sequence[Hidden] = ()) -> None:
        """Remember how a request was sent, and what its client did not see of the reply, for the
        next request on this line."""
        rows = {**planned.hidden, **{each.chain: each for each in hidden}}
        table = PageTable(planned.plan.shown, rows, planned.sent)
        before = planned.facts.table.sent
        with self._lock:
            for each in _latest(planned.links) if self._late or self._handoffs else ():
                self._late.pop(each.chain)
                self._handoffs.pop(each.chain)
            if before is not None:
                self._tables.pop(before.head)
            if planned.facts.reopens:
                # the next message decides which line it is, and the store knows what was sent there
                self._tables.pop(planned.sent.head)
            else:
                self._hold(table, self._monotonic())

    def settled(self, planned: PlannedTurn, reported: Usage) -> NoteWritten | None:
        """Learn from the provider's count of the prompt; returns the note to keep if that changed
        the ratio noticeably."""
        return self._calibrations.observed(planned.request.model, planned.estimated, reported)

    def _open(
        self,
        request: Request,
        dialect: Dialect,
        store: Store,
        now: float,
        upstream: str,
        *,
        off: bool,
        agent: str,
        arm: SessionArm = PLAIN,
    ) -> RequestFacts:
        price = self._price(request.model, upstream)
        links = self._linked.of(request)
        opens = _is_opening(request)
        if (
            not off
            and self._config.inject
            and (one := self._with_one_set(request, dialect, store, links)) is not request
        ):
            request, links = one, self._linked.of(one)
        left_out: Mapping[str, bytes] = {}
        if not off and self._config.tooling.client is ClientListing.AUTO:
            request, left_out = self._without_unused(
                request, dialect, store, links, now=now, ttl=price.ttl
            )
            links = self._linked.of(request) if left_out else links
        brought = brings_ours(request.tools)
        offered = (
            not off
            and not brought
            and self._config.inject
            and dialect.injectable(request, OUR_TOOLS)
            and (bool(request.tools) or self._serves_talk(links, store))
        )
        looks_back = offered and not all(
            each.is_quiet(opens=True) for each in self.sources if not each.standing
        )
        alone = opens and not looks_back and not has_mark(request.messages)
        table = self._table(links, None if alone else store)
        # An opening sent before is no retry if that was so long ago that its outcome is in memory.
        reopens = (
            opens
            and table.sent is not None
            and now - table.sent.time >= self._config.memory.quiet_seconds
        )
        return RequestFacts(
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
            hidden={
                each.chain: found
                for each in links
                if (found := table.hidden.get(each.chain))
                and (offered or (self._program_decides and found.is_text))
            },
            price=price,
            ratio=self._calibrations.ratio(request.model, store),
            left_out=left_out,
            own=self._weigher.fixed(request),
            knobs=self._knobs(request, price, agent, arm, askable=offered or brought),
        )

    def _with_one_set(
        self, request: Request, dialect: Dialect, store: Store, links: tuple[Link, ...]
    ) -> Request:
        """The request without the client's own copies of our tools, if the model has had ours since
        an earlier request.

        Clients start their MCP servers beside their first request. The set that came first stays,
        so that the model always sees the same tools. Copies that are only found by a search leave
        in any case; the model does not see them.
        """
        if not any(has_twin(tool.raw, SPECS) for tool in request.tools):
            return request
        sent = self._table(links, None if _is_opening(request) else store).sent
        if brings_ours(request.tools) and (sent is None or self._brought.came_with(sent, store)):
            return request
        earlier = [spec for source in self.sources for spec in source.earlier_tools(links, store)]
        ours = (*SPECS, *(each for each in earlier if each.name in _TOOLBOX))
        loaded = _referred_tools(request, dialect)
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

    def _serves_talk(self, links: Sequence[Link], store: Store) -> bool:
        """True if a client without tools is offered ours: there are tools to find, and no earlier
        request of its session brought any (then this one is work beside it, such as a summary)."""
        if not any(source.serves_talk() for source in self.sources):
            return False
        chains = [link.chain for link in links[:-1]]
        known = (page for chain in reversed(chains) for page in store.pages(Where(chain=chain)))
        session = next((page.session for page in known), None)
        first = islice(store.turns(session), _FIRST_TURNS) if session is not None else ()
        return all(turn.tools is None for turn in first)

    def _without_unused(
        self,
        request: Request,
        dialect: Dialect,
        store: Store,
        links: tuple[Link, ...],
        *,
        now: float,
        ttl: float,
    ) -> tuple[Request, Mapping[str, bytes]]:
        """The request without the client's tools that its latest sessions did not call, and these
        tools. Unchanged if the client fixes what is called, or would be left without a tool."""
        names = {
            name
            for source in self.sources
            for name in source.leaves_out(request, links, store, now, ttl)
        }
        names -= {msgspec.json.decode(name) for name in _referred_tools(request, dialect)}
        left_out = {tool.name: tool.raw for tool in request.tools if _is_one_of(tool.raw, names)}
        stays = len(left_out) < len(request.tools) and self._config.inject
        if not left_out or not stays or not _is_free(request) or brings_ours(request.tools):
            return request, {}
        one = dialect.parse(dialect.withhold(request.raw, lambda raw: _is_one_of(raw, names)))
        broken = dialect.check(one, request)
        is_broken = bool(broken) and beyond(broken, dialect.check(request)) is not None
        ours = (*OUR_TOOLS, *_TOOLBOX)
        if is_broken or not dialect.injectable(one, ours):
            return request, {}
        return one, left_out

    def _scene(
        self,
        facts: RequestFacts,
        lines: Sequence[Line],
        agent: str,
        turn: TurnId,
        received: RequestReceived | None,
    ) -> Scene:
        """The part of the facts that the sources may see."""
        request, last = facts.request, facts.links[-1]
        known = PageTable() if facts.reopens else facts.table
        may_add = facts.offered and last.chain not in known.hidden
        asks = may_add and is_new_prompt(last, known)
        return Scene(
            turn=turn,
            request=request,
            links=facts.links,
            table=known,
            hidden={} if facts.reopens else facts.hidden,
            price=facts.price,
            knobs=facts.knobs,
            now=facts.now,
            store=facts.store,
            agent=agent,
            received=received,
            opens=facts.opens,
            prompt=_prompt_of(last) if asks else "",
            answered=reply_answered(facts.links) if may_add and not asks else None,
            offers_tools=facts.offered,
            defers=facts.offered and self.deferrals.allowed(request, facts.dialect, facts.upstream),
            sees=can_see(request.model),
            left_out=facts.left_out,
            fixed=facts.own,
            room=_free_tokens(facts, lines) if may_add else 0,
            count=_counter(request.model),
        )

    def _listable(self, facts: RequestFacts, offers: Sequence[Candidate]) -> Sequence[Candidate]:
        """The offers whose tools the client does not have; no tools at all if not all of them
        fit."""
        wanted = facts.knobs.offers
        if wanted and FIND not in wanted:
            offers = [each for each in offers if each.source != _TOOL_SOURCE]
        specs = [each.body for each in offers if isinstance(each.body, ToolSpec)]
        here = {spec.name for spec in not_in_client(specs, facts.request.tools)}
        names = [*OUR_TOOLS, *here]
        if specs and not facts.dialect.injectable(facts.request, names):
            here = set()
        return [
            each for each in offers if not isinstance(each.body, ToolSpec) or each.body.name in here
        ]

    def _found_tools(self, facts: RequestFacts, offers: Sequence[Candidate]) -> _ToolList:
        """The tools found in earlier turns, in the form that this provider accepts."""
        if not facts.offered:
            return _ToolList()
        deferred = any(
            isinstance(each.body, ToolSpec) and each.body.loading is Loading.FINDS
            for each in offers
        )
        recalled = self.deferrals.recalled(
            facts.links, facts.hidden, facts.dialect, facts.store, deferred=deferred
        )
        theirs = {tool.name for tool in facts.request.tools}
        found = [each for each in recalled.tools if each.name not in theirs] if deferred else []
        return _ToolList(tuple(found), recalled.spelled, deferred)

    def _draw(
        self,
        facts: RequestFacts,
        made: Plan,
        hidden: Mapping[Chain, Hidden],
        specs: Sequence[ToolSpec],
        marks: CacheMarks,
    ) -> tuple[Request, bytes]:
        """The request as planned, and its body. Raises `Forbidden`."""
        shown, hidden = ({}, {}) if facts.off else (made.shown, hidden)
        return self._renderer.render(
            facts.request,
            facts.links,
            shown,
            hidden,
            specs=specs,
            marks=marks,
            dialect=facts.dialect,
        )

    def _choose_marks(
        self, facts: RequestFacts, lines: Sequence[Line], made: Plan, fixed: int
    ) -> CacheMarks:
        """Our marks for the provider's cache: none before a line's second request."""
        sent, knobs = facts.table.sent, facts.knobs.cache
        if facts.off or not self._config.inject or facts.dialect.marking is None:
            return NO_MARKS
        marks = NO_MARKS
        if knobs.marks and sent is not None:
            marks = choose_marks(
                facts.request,
                facts.dialect,
                facts.price,
                made,
                tokens=round((fixed + made.tokens) * facts.ratio),
                pause=facts.now - sent.time if latest_sent(lines, facts.table) >= 0 else None,
            )
        if knobs.fixed == "5m":
            return marks
        is_cached = fixed * facts.ratio >= facts.price.minimum
        lasting = self._lifetimes.is_lasting(
            knobs.fixed,
            _first_chain(facts.links),
            facts.price,
            facts.store,
            facts.now,
            opens=facts.opens and is_cached,
        )
        return replace(marks, lasting=lasting)

    def _knobs(
        self, request: Request, price: Price, agent: str, arm: SessionArm, *, askable: bool
    ) -> Knobs:
        room = price.window - min(_reply_room(request), price.longest_reply)
        window = min(self._config.budget_for(agent) or room, room)
        knobs = self._turned(agent, window, arm.knobs, askable)
        whole = self._orders().tools
        return (
            knobs.turned({"tools": {**knobs.tools, **dict.fromkeys(whole, NEVER)}})
            if whole
            else knobs
        )

    def _turn_knobs(self, agent: str, window: int, changes: str, askable: bool) -> Knobs:
        """The knobs of requests: the same object for the same arguments."""
        knobs = self._config.knobs_for(agent)
        if changes != PLAIN.knobs:
            knobs = knobs.with_changes(msgspec.json.decode(changes))
        knobs = knobs.turned({"window": window})
        # Without our tools the model could not ask for what is missing: then pages leave only if
        # the window would overflow.
        blind = {
            "limit": NEVER,
            "limits": {},
            "tools": {},
            "files": {},
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
        self._tables.put(table.sent.head, _HeldTable(table, now))


def _is_one_of(raw: bytes, names: Container[str]) -> bool:
    """True for the definition of a function of the client's with one of these names."""
    return client_tool_name(msgspec.json.decode(raw)) in names


def _is_free(request: Request) -> bool:
    """True if the model chooses which tool it calls, and whether it calls one."""
    chosen = msgspec.json.decode(request.params).get("tool_choice")
    return (chosen.get("type") if isinstance(chosen, dict) else chosen) in (None, "auto")


def _referred_tools(request: Request, dialect: Dialect) -> list[bytes]:
    """The names, as JSON, of deferred tools that the conversation has loaded: the provider requires
    their declarations."""
    if b"tool_reference" not in request.raw:
        return []
    return [
        msgspec.json.encode(name)
        for message in request.messages
        for name in dialect.loaded_tools(message.raw)
    ]


def _first_chain(links: Sequence[Link]) -> Chain:
    return next((each.chain for each in links if not each.message.aside), ROOT)


def _last_chain(links: Sequence[Link]) -> Chain:
    return next((each.chain for each in reversed(links) if not each.message.aside), ROOT)


def _is_opening(request: Request) -> bool:
    """True if the model has not replied yet: prompts and system texts never leave and hide nothing,
    so the store has nothing to add."""
    return all(part.kind in _OPENING for message in request.messages for part in message.parts)


def _latest(links: Sequence[Link]) -> Iterator[Link]:
    """The messages from the last one back to where the previous request may have ended: one reply
    of the model back.

    If the model has replied more often, another process continued the conversation, and the store
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


def _merge_plans(late: Plan, made: Plan) -> Plan:
    """Two plans in one, of which the first never went out."""
    fresh = {row.spot: row for row in (*late.fresh, *made.fresh) if row.spot in made.shown}
    return replace(
        made,
        fresh=tuple(fresh.values()),
        stubs=(*late.stubs, *made.stubs),
        handoff=made.handoff or late.handoff,
    )


def _unchanged_plan(lines: Sequence[Line], table: PageTable) -> Plan:
    """The plan that changes nothing, and so saves nothing."""
    whole = [line.whole for line in lines]
    return Plan(
        dict(table.shown),
        tokens=sum(whole),
        whole=sum(whole),
        kept=sum(whole[: latest_sent(lines, table) + 1]),
    )


def _list_tools(made: Plan, found: _ToolList, own: Sequence[ToolSpec]) -> _ToolList:
    """The tool list of a request: our own tools, those that the plan took, those found earlier."""
    bodies = (each.body for each in made.taken if each.slot is OfferSlot.TOOL_LIST)
    specs = (*own, *(body for body in bodies if isinstance(body, ToolSpec)))
    deferred = found.deferred and any(spec.name == FIND for spec in specs)
    return replace(
        found,
        specs=with_deferred_tools(specs, found.specs)
        if deferred
        else without_deferred_tools(specs),
        deferred=deferred,
    )


def _place_texts(facts: RequestFacts, made: Plan) -> tuple[Plan, Hidden | None]:
    """The texts that the plan took, placed after the last message; none if the provider accepts no
    text there."""
    texts: dict[str, list[str]] = {}
    for each in made.taken:
        if isinstance(each.body, str):
            texts.setdefault(each.source, [each.heading] if each.heading else []).append(each.body)
    if not texts:
        return made, None
    dialect, chain = facts.dialect, facts.links[-1].chain
    said = tuple(dialect.say("\n".join(each)).raw for each in texts.values())
    there = facts.hidden.get(chain, Hidden(chain))
    behind = replace(there, after=(*there.after, *said))
    alone = facts.hidden if not facts.reopens else {}
    before = dialect.reveal(facts.request, facts.links, alone) if alone else facts.request
    both = dialect.reveal(facts.request, facts.links, {**alone, chain: behind})
    if beyond(dialect.check(both), dialect.check(before)) is None:
        return made, behind
    choices = tuple(
        replace(each, verdict=OfferVerdict.REFUSED)
        if each.is_taken and isinstance(each.candidate.body, str)
        else each
        for each in made.choices
    )
    return replace(made, choices=choices), None


def is_new_prompt(last: Link, table: PageTable) -> bool:
    """True if a request ends with a prompt that no earlier request of its line ended with."""
    parts = last.message.parts
    asks = last.message.role is Role.USER and any(part.kind is Kind.PROMPT for part in parts)
    answers = any(part.kind.family is Kind.TOOL_RESULT for part in parts)
    return asks and not answers and (table.sent is None or table.sent.head != last.chain)


def reply_answered(links: Sequence[Link]) -> Link | None:
    """The reply whose tool calls a request answers with its last messages."""
    line = [each for each in links if not each.message.aside]
    if not line or not any(part.kind.family is Kind.TOOL_RESULT for part in line[-1].message.parts):
        return None
    return next((each for each in reversed(line) if each.message.role is Role.ASSISTANT), None)


def _prompt_of(last: Link) -> str:
    parts = (part.content for part in last.message.parts if part.kind is Kind.PROMPT)
    return asked_in("\n".join(each.decode("utf-8", "replace") for each in parts))


def _free_tokens(facts: RequestFacts, lines: Sequence[Line]) -> int:
    """Tokens that the plan will leave free, or a few more: the plan decides what really fits."""
    window = round(facts.knobs.window / facts.ratio)
    here = {line.chain for line in lines}
    saved = sum(
        row.whole - row.tokens for row in facts.table.shown.values() if row.spot.chain in here
    )
    messages = sum(line.whole for line in lines) - saved
    return window - facts.own - min(messages, round(facts.knobs.high * window))


def _hidden_texts(facts: RequestFacts) -> Iterator[str]:
    for row in (facts.hidden if not facts.reopens else {}).values():
        for raw in (*row.before, *row.after):
            try:
                parts = facts.dialect.understand(raw).parts
            except Malformed:  # blocks that join a message
                yield raw.decode("utf-8", "replace")
            else:
                yield from (part.content.decode("utf-8", "replace") for part in parts)


def _estimate(
    made: Plan, lines: Sequence[Line], facts: RequestFacts, fixed: int, marks: CacheMarks
) -> Bill:
    """Estimated cost of the prompt under the provider's cache rules, next to the cost of sending
    everything."""
    latest, price = facts.table.sent, facts.price
    # Where marks are needed and the client sets none, sending everything would use no cache.
    theirs = has_marks(facts.request, facts.dialect)
    first = sum(line.role is Role.ASSISTANT for line in lines) <= 1
    at = latest_sent(lines, facts.table)
    cold = at < 0 or latest is None or facts.now - latest.time > price.ttl
    before = sum(line.whole for line in lines[: at + 1])

    def billed(fixed: int, prompt: int, kept: int, *, caches: bool) -> Usage:
        whole = round((fixed + prompt) * facts.ratio)
        if not caches:
            return Usage(input=whole)
        is_cold = cold or (first and not theirs)  # our marks begin with the second request
        return charge(price, whole, round((fixed + kept) * facts.ratio), cold=is_cold)

    sent = billed(fixed, made.tokens, made.kept, caches=theirs or marks.everywhere)
    listed = facts.own + weigh_tools(list(facts.left_out.values()))
    whole = billed(listed, made.whole, before, caches=theirs)
    return Bill(
        model=facts.request.model,
        upstream=facts.upstream,
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
