"""One turn on its way out: the client's call, or what the plan made of it. Every method fails
open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce

from hotset.dialects.parts import can_see
from hotset.dialects.port import Dialect, Round, TurnView
from hotset.errors import HotsetError
from hotset.nouns.bill import Bill
from hotset.nouns.call import ClientCall, header
from hotset.nouns.deposit import Billed, Deposit, HiddenKept, NoteWritten, PlanMade, Remembered
from hotset.nouns.link import link
from hotset.nouns.memory import Ending
from hotset.nouns.message import Reply, Request, Usage
from hotset.nouns.page import ROOT
from hotset.nouns.retrieval import Place
from hotset.nouns.turn import Event, TurnRef
from hotset.nouns.window import Hidden
from hotset.runtime import clients
from hotset.runtime.bounded import Crowded, Late, SessionQueue
from hotset.runtime.checkpoints import note_checkpoints
from hotset.runtime.faults import Faults, summed
from hotset.runtime.machine import Machine
from hotset.runtime.planning import Forbidden, Prepared, Unplanned
from hotset.runtime.prefetching import Prefetches, judged_event, offered_event
from hotset.runtime.record import KEEPING, Record
from hotset.sources.memory import PlacedReminder
from hotset.sources.tools import ToolCalls, prompt_in
from hotset.store.port import Store
from hotset.window.birth import NO_REPEATS, Repeats, repeats
from hotset.window.price import price_of

_SWITCH = b"x-hotset-window"
"""A client that sends `off` in this header gets its requests through as they are."""

_OUTCOME = b"x-hotset-outcome"
"""In which a client can tell how the work before this request came out: success, partial,
failure."""

_ENDINGS = frozenset(Ending)

_PLACE_SECONDS = 2.0
"""How long an answer to the model waits for its own turn to be on disk."""


@dataclass(slots=True)
class Sending:
    call: ClientCall
    """What goes to the upstream."""
    record: Record
    machine: Machine
    prepared: Prepared | None = None
    faults: Faults | None = None
    hidden: tuple[Hidden, ...] = ()
    heard: bool = False
    """The turn came to its end."""
    ref: TurnRef | None = None
    """The turn's place in the store, once it has hidden rounds and a place."""
    bill: Bill | None = None
    """What the turn cost, once that is known."""

    @classmethod
    async def of(cls, call: ClientCall, record: Record, machine: Machine) -> Sending:
        """The call as it is to be sent; the client's own where there is nothing to plan, or where
        planning fails."""
        sending = cls(call, record, machine)
        record.closing = sending._closing
        try:
            request = await record.request()
            store = machine.keeper.store
            if (outcome := header(call.headers, _OUTCOME).strip().lower()) in _ENDINGS:
                machine.background.spawn(sending._came_out(outcome), "keep an outcome")
            if request is not None and store is not None and not machine.keeper.trouble:
                await sending._prepare(request, store)
        finally:
            record.goes_out()
        return sending

    @property
    def offered(self) -> bool:
        """Our tools are among those that the model may call."""
        return self.prepared is not None and self.prepared.offered

    @property
    def deferred(self) -> bool:
        """It says something that not every upstream knows: tools that are declared, and shown when
        they are found."""
        return self.prepared is not None and self.prepared.deferred

    def view(self, *, streamed: bool) -> TurnView:
        assert self.faults is not None
        return self.faults.dialect.view(self.faults.ours, streamed=streamed)

    def refusal(self, reason: str) -> bytes:
        """An error body in the dialect's own form, for an upstream that gave none."""
        return self._dialect.refuse(502, f"hotset: {reason}")

    async def answered(self, round: Round) -> ClientCall | None:
        """The call that answers what the model asked us for; None where the turn is over."""
        assert self.prepared is not None
        assert self.faults is not None
        try:
            self.ref = ref = await self.record.ref(_PLACE_SECONDS) if round.calls else None
            body = await self.faults.next_body(round, self._place(ref), self.machine.clock())
            happened = self.faults.happened()
            self.record.at_once(*happened)
            if ref is not None and any(isinstance(each, Remembered) for each in happened):
                self.machine.rememberer.read(ref.session)
        except Exception as error:  # fail open: the turn ends with what the client has seen of it
            self.record.bypassed(f"a fault of ours in bringing back: {type(error).__name__}")
            return None
        return replace(self.call, body=body) if body is not None else None

    async def without_deferred(self) -> ClientCall | None:
        """The latest call again, for an upstream that refused it because it knows no deferred
        tools; None where that fails."""
        assert self.prepared is not None
        assert self.faults is not None
        planner, store = self.machine.planner, self.faults.store
        try:
            self.prepared = await self._queue(self.prepared.request).run(
                planner.without_deferred, self.prepared, self._dialect, store
            )
            body = self.faults.without_deferred(self.prepared)
        except Exception as error:  # fail open: the client gets what the upstream said
            self.record.bypassed(f"a fault of ours in spelling out tools: {type(error).__name__}")
            return None
        self.call = replace(self.call, body=body)
        return self.call

    def tries_again(self, number: int, status: int, seconds: float) -> None:
        """A follow-up was refused with this status, or got no reply (0): it is sent for the
        `number`th time after so long."""
        self.machine.tally.retried += 1
        detail: dict[str, str | int | float] = {
            "try": number,
            "status": status,
            "seconds": seconds,
            "call": self.record.id,
        }
        session, turn = (self.ref.session, self.ref.number) if self.ref is not None else (None, 0)
        self.record.also(Event("FollowUpRetried", self.machine.clock(), session, turn, detail))

    def was_taken(self) -> None:
        """The upstream took without deferred tools what it had refused with them: it gets no more
        of them."""
        assert self.prepared is not None
        upstream, model = self.call.upstream, self.prepared.request.model
        self.machine.planner.deferrals.refused(upstream, model)
        detail: dict[str, str | int | float] = {
            "upstream": upstream,
            "model": model,
            "call": self.record.id,
        }
        self.record.also(Event("DeferringRefused", self.record.asked_at, detail=detail))

    def hide(self, view: TurnView) -> None:
        """Keeps what the client did not see of this turn, for all its later requests. Only we hold
        it: it is handed over before the reply, and is on disk when that is."""
        assert self.prepared is not None
        assert self.faults is not None
        self.heard = True
        if not self.faults.answers and not self.prepared.decided.opens:
            return
        try:
            seen = self.record.seen()
            links = tuple(link(self.prepared.head, seen.messages))
            self.hidden = view.hidden(self.faults.answers, links) if self.faults.answers else ()
            offer = self.machine.planner.offering.replied(
                self.prepared.links, links, self.prepared.decided.offer
            )
            found = self.machine.planner.deferrals.keep(self.hidden, self.faults.found)
        except Exception as error:
            # fail open: later requests say what the client saw, which is a conversation too
            self.record.bypassed(f"a fault of ours in hiding: {type(error).__name__}")
            return
        self.machine.planner.went_out(self.prepared, self.hidden)
        notes = (*self._continued(seen), *((offer,) if offer is not None else ()))
        self.record.also(
            *self._of_turn(found),
            *(HiddenKept(self.record.id, each) for each in self.hidden),
            *self._of_turn(notes),
        )

    def _of_turn(self, notes: Iterable[NoteWritten]) -> Iterator[NoteWritten]:
        return (replace(note, turn=self.record.id) for note in notes)

    def _continued(self, seen: Reply) -> tuple[NoteWritten, ...]:
        """What stands behind the reply's id, where a client may continue it by that."""
        assert self.prepared is not None
        assert self.faults is not None
        mine = self._dialect.previous_field and seen.response_id and self.faults.last
        if not mine or (seen.response_id == self.faults.last and not self.faults.unheard):
            return ()
        return (
            self.machine.planner.resuming.remember(
                seen.response_id, self.faults.last, self.faults.unheard
            ),
        )

    def close(self) -> None:
        """Nothing more comes of this call. What was done for a reply that nobody got is not done
        again for the next try."""
        using = self.faults.using if self.faults is not None else None
        if using is not None and not self.heard and (done := using.unheard):
            assert self.prepared is not None
            self.machine.unheard.leave(self.prepared.head, done, self.machine.clock())

    def settle(self) -> None:
        """The turn is over: what it cost goes into the ledger, and what it was about may be summed
        up later."""
        if self.prepared is None or self.faults is None:
            return
        self.machine.summariser.turn_ended(self.prepared.links, self.record.ref)
        reply = self.record.reply
        if not reply.complete:
            return
        self.machine.planner.replied(
            self.prepared, reply, self.machine.clock(), clients.agent(self.call.headers)
        )
        if billed := self._bill(reply):
            self.record.also(*billed)

    def _closing(self, reply: Reply) -> tuple[Deposit, ...]:
        """The bill, in the commit of the reply. Where the reply has no usage yet, some may still
        come: then it follows later."""
        return self._bill(reply) if reply.usage != Usage() else ()

    def _bill(self, reply: Reply) -> tuple[Deposit, ...]:
        """What a whole reply cost, and what was learned of how its provider counts; nothing where
        that is known already."""
        if (
            self.prepared is None
            or self.faults is None
            or self.bill is not None
            or not reply.complete
        ):
            return ()
        bill = self.prepared.bill
        rounds = self.faults.billed(
            reply, partial(price_of, bill.model, self.machine.config.prices, bill.upstream)
        )
        usage = summed(rounds)
        learned = (
            self.machine.planner.settled(self.prepared, rounds[0])
            if not rounds[0].estimated
            else None
        )
        whole = summed([bill.whole, *(rounds[number] for number in self.faults.work)])
        self.bill = replace(
            bill,
            sent=replace(bill.sent, output=usage.output),
            whole=replace(whole, output=usage.output, estimated=False),
            usage=usage,
            calls=len(rounds),
            faults=self.faults.faults,
            refaults=self.faults.refaults,
        )
        again = (
            repeats(self.prepared.links, self.prepared.plan.fresh)
            if self.prepared.knobs.echo
            else NO_REPEATS
        )
        self.machine.background.spawn(self._billed(self.bill, self.prepared.window, again), KEEPING)
        return (
            *self._of_turn([learned] if learned is not None else ()),
            Billed(self.record.id, self.bill),
        )

    async def _billed(self, bill: Bill, window: int, again: Repeats) -> None:
        """Under its session: each is set right by its own provider's reports."""
        ref = await self.record.ref(_PLACE_SECONDS)
        self.machine.billed(
            replace(bill, session=ref.session) if ref is not None else bill, window, again
        )

    async def _prepare(self, request: Request, store: Store) -> None:
        off = self.machine.config.off or header(self.call.headers, _SWITCH).strip().lower() == "off"
        if request.previous:
            await self._or_as_it_came(self._resume(request, store))
        elif off:
            # It goes out as it came: only the ledger wants a plan, and that can be made while the
            # provider thinks.
            counting = self._or_as_it_came(self._plan(request, store, off=True))
            self.record.beside(self.machine.background.spawn(counting, "count what a call costs"))
        else:
            await self._or_as_it_came(self._plan(request, store, off=False))

    async def _or_as_it_came(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Forbidden as reason:
            self.record.bypassed(f"a plan that the provider would have refused: {reason}")
        except Unplanned:
            pass
        except Crowded as error:
            self.record.bypassed(f"planning took too long: {error}")
        except TimeoutError:
            self.record.bypassed("planning took too long")
        except Exception as error:
            # fail open: nothing of ours was sent, so the client's bytes go through as they are
            self.record.bypassed(f"a fault of ours in planning: {type(error).__name__}")

    async def _resume(self, request: Request, store: Store) -> None:
        body = await self._queue(request).run(
            self.machine.planner.resuming.body, request, self._dialect, store
        )
        self.call = _with_body(self.call, body)

    async def _plan(self, request: Request, store: Store, *, off: bool) -> None:
        call, record, machine, dialect = self.call, self.record, self.machine, self._dialect
        agent = clients.agent(call.headers)
        planning = partial(
            machine.planner.prepare,
            request,
            dialect,
            store,
            record.asked_at,
            call.upstream,
            off=off,
            agent=agent,
        )
        quick = not off and machine.planner.is_quick(request)
        queue = self._queue(request)
        try:
            prepared = planning() if quick else await queue.run(planning)
        except Late as late:
            if not off:  # what it decides holds from the next request on
                late.work.add_done_callback(machine.planner.came_late)
            raise
        outgoing = _outgoing(call, prepared)
        machine.planner.went_out(prepared)
        note_checkpoints(prepared, record, machine)
        self.call, self.prepared = outgoing, prepared
        self.faults = Faults(
            prepared,
            dialect,
            store,
            queue,
            machine.follower,
            self._using(prepared, agent),
            machine.config.patience,
        )
        if not off:  # what went out as it came has no forms: its turn stays without a plan
            made = prepared.plan
            offered = self._of_turn(prepared.decided.notes)
            fetched = (
                [HiddenKept(record.id, prepared.behind)] if prepared.behind is not None else []
            )
            events = _events(prepared, record)
            record.also(
                *offered,
                PlanMade(record.id, prepared.sent, made.fresh, made.stubs),
                *fetched,
                *events,
            )
            machine.tally.prefetches = reduce(Prefetches.after, events, machine.tally.prefetches)
            machine.tally.born(made.fresh)
            if prepared.reminded is not None:
                machine.background.spawn(
                    self._remembered(prepared.reminded), "keep what was told of memories"
                )

    def _queue(self, request: Request) -> SessionQueue:
        """By the session's name, or by its first message: the store places it only later."""
        first = next(
            (each.chain for each in link(ROOT, request.messages) if not each.message.aside), ""
        )
        return self.machine.bounded.of(
            clients.session_key(self.call.headers) or request.previous or first
        )

    def _using(self, prepared: Prepared, agent: str) -> ToolCalls | None:
        tools = self.machine.planner.offering.tools
        if tools is None or not prepared.decided.offer.tools:
            return None
        return ToolCalls(
            tools,
            self._kept,
            self.record.at_once,
            prepared.knobs,
            agent,
            prompt_in(prepared.links),
            can_see(prepared.request.model),
            frozenset(tool.name for tool in prepared.request.tools),
            deferred=prepared.deferred,
            offered={spec.name: spec for spec in prepared.specs},
            session=prepared.links[0].chain,
            again=self.machine.unheard.take(prepared.head, self.machine.clock()),
            patience=self.machine.config.patience,
        )

    async def _remembered(self, reminded: PlacedReminder) -> None:
        """Which memories were told, and what that cost, under the session that they were told
        to."""
        ref = await self.record.ref(_PLACE_SECONDS)
        if ref is not None:
            self.record.at_once(*reminded.reminder.deposits(ref, self.record.asked_at))
            self.machine.rememberer.prompted(ref.session)

    async def _came_out(self, outcome: str) -> None:
        from hotset.sources.memory import OUTCOME  # noqa: PLC0415 - only where a client tells

        ref = await self.record.ref(_PLACE_SECONDS)
        if ref is not None and ref.number > 1:
            self.record.at_once(
                Event(
                    OUTCOME, self.record.asked_at, ref.session, ref.number - 1, {"outcome": outcome}
                )
            )

    async def _kept(self, deposit: Deposit) -> bool:
        try:
            keeping = self.machine.keeper.hand_over(deposit)
            await asyncio.wait({keeping}, timeout=_PLACE_SECONDS * self.machine.config.patience)
        except HotsetError:
            return False
        return keeping.done() and not keeping.cancelled() and keeping.exception() is None

    @property
    def _dialect(self) -> Dialect:
        assert self.call.dialect is not None
        return self.machine.dialects[self.call.dialect]

    def _place(self, ref: TurnRef | None) -> Place:
        assert self.prepared is not None
        chains = tuple(each.chain for each in self.prepared.links)
        return Place(
            ref.session if ref else None,
            ref.number if ref else 0,
            chains,
            self.prepared.knobs.history,
        )


def _outgoing(call: ClientCall, prepared: Prepared) -> ClientCall:
    if prepared.body == prepared.request.raw and not prepared.offered:
        return call
    outgoing = _with_body(call, prepared.body)
    if not prepared.offered:
        return outgoing
    # A reply that we look into must not be compressed.
    headers = tuple(
        (name, value) for name, value in outgoing.headers if name.lower() != b"accept-encoding"
    )
    return replace(outgoing, headers=(*headers, (b"accept-encoding", b"identity")))


def _with_body(call: ClientCall, body: bytes | None) -> ClientCall:
    """The call with a body of ours, which is not compressed; the client's own where there is
    none."""
    if body is None:
        return call
    headers = tuple(
        (name, value) for name, value in call.headers if name.lower() != b"content-encoding"
    )
    return replace(call, body=body, headers=headers)


def _events(prepared: Prepared, record: Record) -> list[Event]:
    """What is worth knowing of a plan: what was offered and what became of it, that pages left,
    that the prefix changed."""
    told = [judged_event(each, record.asked_at) for each in prepared.judged]
    if prepared.prefetched is not None:
        told.append(offered_event(prepared.prefetched, record.asked_at))
    if prepared.decided.trouble:
        told.append(
            Event(
                "Bypassed",
                record.asked_at,
                detail={"reason": prepared.decided.trouble, "call": record.id},
            )
        )
    made = prepared.plan
    if not made.stubs and made.broke is None:
        return told
    left = sum(stub.tokens for stub in made.stubs)
    detail: dict[str, str | int | float] = {
        "cause": str(made.broke or (made.fresh[-1].cause if made.fresh else "")),
        "stubs": len(made.stubs),
        "tokens": left,
        "prompt": prepared.estimated,
    }
    return [*told, Event("Evicted", record.asked_at, None, 0, {**detail, "call": record.id})]
