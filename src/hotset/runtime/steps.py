"""The steps of a call that decide or keep something: plan, answer, spell out tools, hide, bill.
Each of them fails open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import replace
from functools import partial, reduce

from hotset.dialects.port import Round, TurnView
from hotset.files.lru import CACHES
from hotset.nouns.bill import Bill
from hotset.nouns.call import ClientCall, header
from hotset.nouns.deposit import Billed, Deposit, HiddenKept, NoteWritten, PlanMade
from hotset.nouns.link import Link, link
from hotset.nouns.memory import Ending
from hotset.nouns.message import Reply, Request, Usage
from hotset.nouns.page import Role
from hotset.nouns.turn import Event, TurnId
from hotset.runtime.background import Late, TooManyThreads
from hotset.runtime.checkpoints import note_checkpoints
from hotset.runtime.clients import session_key
from hotset.runtime.handoffs import due_events, handoff_deposits
from hotset.runtime.machine import Machine
from hotset.runtime.planner import PlannedTurn
from hotset.runtime.record import KEEPING, Record
from hotset.runtime.renderer import Forbidden, Unplanned
from hotset.runtime.rounds import answer_round, body_of, sum_usages, usages_of, working_rounds
from hotset.runtime.session_arm import PLAIN, SessionArm, arm_note, session_keys
from hotset.runtime.turn import OwnTools, SentPlan, SentRounds, SentTurn
from hotset.sources.code import Prefetches
from hotset.sources.port import TurnEnd
from hotset.store.port import Store
from hotset.window.leave import read_ahead
from hotset.window.price import price_of
from hotset.window.repeats import NO_REPEATS, Repeats, repeats

_SWITCH = b"x-hotset-window"
"""A client that sends `off` in this header gets its requests through as they are."""

_OUTCOME = b"x-hotset-outcome"
"""Header in which a client reports how the work before this request ended: success, partial,
failure."""

_ENDINGS = frozenset(Ending)

PLACE_SECONDS = 2.0
"""How long an answer to the model waits until its own turn is on disk."""


async def plan_turn(record: Record, machine: Machine) -> None:
    """Plan the call and make its plan the call that goes out; it stays the client's own if there is
    nothing to plan or planning fails."""
    opened = record.sent.opened
    request, store, headers = opened.request, machine.keeper.store, opened.call.headers
    if (outcome := header(headers, _OUTCOME).strip().lower()) in _ENDINGS:
        machine.background.spawn(_keep_outcome(outcome, record), "keep an outcome")
    if request is None or store is None or machine.keeper.trouble:
        return
    if store.is_shared and (reason := await _refresh(request, record, store, machine)):
        record.bypassed(reason)
        return
    if request.previous:
        await _fail_open(_resume(request, record, store, machine), record)
        return
    off = machine.config.is_off_for(opened.agent)
    off = off or header(headers, _SWITCH).strip().lower() == "off"
    arm = PLAIN if off else await _find_arm(request, record, store, machine)
    planning = _plan(request, record, store, machine, arm, off=off or arm.is_off)
    if off or arm.is_off:
        # It goes out unchanged: only the ledger needs a plan, which is made while the provider
        # works.
        counting = _fail_open(planning, record)
        record.beside(machine.background.spawn(counting, "count what a call costs"))
    else:
        await _fail_open(planning, record)


async def _refresh(request: Request, record: Record, store: Store, machine: Machine) -> str:
    """Take over what other machines wrote. Why the call cannot be planned, if it cannot: a session
    that only they know must not be sent in other forms than there."""
    opened = record.sent.opened
    queue = machine.bounded.of(opened.queue)
    try:
        if await queue.run(store.refresh):
            return ""
        asked = opened.received(machine.began)
        begins = all(message.role is not Role.ASSISTANT for message in request.messages)
        known = begins or asked is None or (await queue.run(store.origin, asked)).session
    except Exception as error:
        # fail open: the client's bytes go through unchanged
        return f"the team's store could not be asked: {type(error).__name__}"
    return "" if known else "the team's store is away, and this session is not known here"


async def _find_arm(request: Request, record: Record, store: Store, machine: Machine) -> SessionArm:
    """The arm that the session runs with; kept with its first request, and once more under its
    first reply."""
    opened, learning = record.sent.opened, machine.learning
    try:
        keys = session_keys(request, session_key(opened.call.headers))
        found = learning.arm(keys, opened.call.headers, opened.time)
        if found is None:  # it began in another process
            queue = machine.bounded.of(opened.queue)
            found = await queue.run(learning.read_arm, keys, store, opened.time)
        record.also(*(arm_note(key, found, opened.id) for key in learning.unkept(keys, found)))
        return learning.with_orders(found)
    except Exception as error:
        # fail open: the session runs with the defaults
        record.bypassed(f"a fault of ours in learning: {type(error).__name__}")
        return PLAIN


async def _fail_open(work: Awaitable[None], record: Record) -> None:
    """Await planning; on any failure the call stays as the client sent it."""
    try:
        await work
    except Forbidden as reason:
        record.bypassed(f"a plan that the provider would have refused: {reason}")
    except Unplanned:
        pass
    except TooManyThreads as error:
        record.bypassed(f"planning took too long: {error}")
    except TimeoutError:
        record.bypassed("planning took too long")
    except Exception as error:
        # fail open: nothing of ours was sent, so the client's bytes go through unchanged
        record.bypassed(f"a fault of ours in planning: {type(error).__name__}")


async def _resume(request: Request, record: Record, store: Store, machine: Machine) -> None:
    opened = record.sent.opened
    queue = machine.bounded.of(opened.queue)
    body = await queue.run(machine.planner.resuming.body, request, opened.dialect, store)
    record.sent = SentTurn(opened, _with_body(opened.call, body))


async def _plan(
    request: Request,
    record: Record,
    store: Store,
    machine: Machine,
    arm: SessionArm,
    *,
    off: bool,
) -> None:
    opened, planner = record.sent.opened, machine.planner
    upstream = opened.call.upstream
    planning = partial(planner.prepare, request, opened.dialect, store, opened.time, upstream)
    planning = partial(planning, off=off, agent=opened.agent, turn=opened.id)
    planning = partial(planning, received=opened.received(machine.began), arm=arm)
    try:
        quick = not off and planner.is_quick(request)
        planned = planning() if quick else await machine.bounded.of(opened.queue).run(planning)
    except Late as late:
        if not off:  # the plan takes effect with the next request
            late.work.add_done_callback(planner.came_late)
        raise
    outgoing = _outgoing(opened.call, planned)
    kept = planner.went_out(planned)
    note_checkpoints(planned, record, machine)
    if planned.offered:
        own = OwnTools.of(planned, machine.sources)
        record.sent = SentRounds(opened, outgoing, planned, own=own)
    else:
        record.sent = SentPlan(opened, outgoing, planned)
    if planned.facts.off:  # a request that went out unchanged has no forms: its turn has no plan
        return
    made = planned.plan
    handed = handoff_deposits(made, planned.scene, planned.facts.ratio, planned.bill.sent.prompt)
    placed = list(_with_turn((*kept, *_eviction_events(planned), *handed), opened.id))
    events = [each for each in placed if isinstance(each, Event)]
    notes = (each for each in placed if not isinstance(each, Event))
    behind = [HiddenKept(opened.id, planned.behind)] if planned.behind is not None else []
    # What is behind the prompt comes first: it belongs to the table as of this plan.
    record.also(*notes, *behind, PlanMade(opened.id, planned.sent, made.fresh, made.stubs), *events)
    machine.tally.prefetches = reduce(Prefetches.after, events, machine.tally.prefetches)
    machine.tally.born(made.fresh)
    if (results := planned.new_results) and CACHES.response.prefetches:  # while the provider works
        machine.background.spawn(asyncio.to_thread(read_ahead, results), "read ahead")


async def answer_turn(record: Record, asked: Round, machine: Machine) -> bool:
    """Answer the calls of our tools; True if the turn continues with another upstream call."""
    sent = record.sent
    if not isinstance(sent, SentRounds):
        return False
    try:
        ref = await record.ref(PLACE_SECONDS) if asked.calls else None
        record.sent = sent = await answer_round(sent, asked, ref, record.at_once, machine)
    except Exception as error:
        # fail open: the turn ends with what the client has seen
        record.bypassed(f"a fault of ours in bringing back: {type(error).__name__}")
        return False
    return sent.rounds[-1].goes_on


async def spell_out_tools(record: Record, machine: Machine) -> ClientCall | None:
    """The latest call again, for an upstream that refused it because it does not support deferred
    tools; None if that fails."""
    sent = record.sent
    if not isinstance(sent, SentRounds):
        return None
    try:
        queue = machine.bounded.of(sent.opened.queue)
        planned = await queue.run(machine.planner.without_deferred, sent.planned)
        sent = replace(sent, planned=planned, in_words=True)
        record.sent = replace(sent, call=replace(sent.call, body=body_of(sent)))
    except Exception as error:
        # fail open: the client gets the upstream's refusal
        record.bypassed(f"a fault of ours in spelling out tools: {type(error).__name__}")
        return None
    return record.sent.call


def deferring_refused(record: Record, machine: Machine) -> None:
    """Note that the upstream accepted without deferred tools a call that it had refused with them:
    it gets no more of them."""
    opened = record.sent.opened
    upstream, model = opened.call.upstream, opened.request.model if opened.request else ""
    machine.planner.deferrals.refused(upstream, model)
    detail: dict[str, str | int | float] = {"upstream": upstream, "model": model, "call": opened.id}
    record.also(Event("DeferringRefused", opened.time, detail=detail))


def log_retry(record: Record, machine: Machine, number: int, status: int, seconds: float) -> None:
    """Log that a follow-up is sent for the `number`th time after `seconds`, because it was refused
    with `status` or got no reply (0)."""
    machine.tally.retried += 1
    detail: dict[str, str | int | float] = {
        "try": number,
        "status": status,
        "seconds": seconds,
        "call": record.sent.opened.id,
    }
    ref = record.place
    session, turn = (ref.session, ref.number) if ref is not None else (None, 0)
    record.also(Event("FollowUpRetried", machine.clock(), session, turn, detail))


def hide_rounds(record: Record, view: TurnView, machine: Machine) -> None:
    """Keep what the client did not see of this turn for all its later requests, and report the
    turn's end to the sources. Only we have these messages: they are handed over before the reply,
    in the same commit."""
    sent = record.sent
    if not isinstance(sent, SentRounds):
        return
    id, planned, planner = sent.opened.id, sent.planned, machine.planner
    try:
        seen = record.seen()
        links = tuple(link(planned.head, seen.messages))
        hidden = view.hidden(sent.answers, links) if sent.answers else ()
        found = planner.deferrals.keep(hidden, tuple(sent.found.values()))
        continued = _continuation_notes(sent, seen, machine)
        record.is_heard = True
        kept = _report_end(record, seen, links, machine)
    except Exception as error:
        # fail open: later requests contain what the client saw, which is a valid conversation too
        record.bypassed(f"a fault of ours in hiding: {type(error).__name__}")
        return
    if hidden:
        planner.remember(planned, hidden)
    record.also(
        *_with_turn(found, id),
        *(HiddenKept(id, each) for each in hidden),
        *_with_turn((*continued, *kept), id),
    )


def _continuation_notes(sent: SentRounds, seen: Reply, machine: Machine) -> tuple[NoteWritten, ...]:
    """The note that maps the reply's id to the provider's latest one, if a client may continue by
    that id."""
    last = sent.rounds[-1].round.id if sent.rounds else ""
    if not sent.opened.dialect.previous_field or not seen.response_id or not last:
        return ()
    if seen.response_id == last and not sent.unheard:
        return ()
    return (machine.planner.resuming.remember(seen.response_id, last, sent.unheard),)


def _report_end(
    record: Record, reply: Reply, links: tuple[Link, ...], machine: Machine
) -> list[Deposit]:
    """Report to the sources that the turn ended, or that its reply reached no client."""
    if not isinstance(record.sent, SentRounds):
        return []
    planned = record.sent.planned
    scene = replace(planned.scene, now=machine.clock()) if not record.is_heard else planned.scene
    return [
        deposit
        for each in machine.sources
        for deposit in each.heard(
            TurnEnd(scene, planned.taken(each), record.place, reply, links, record.is_heard)
        )
    ]


def close_turn(record: Record, machine: Machine) -> None:
    """End the call. If its reply reached no client, the sources learn that, so that the retry does
    not repeat the work done for it."""
    CACHES.latest = time.monotonic()
    if not record.is_heard:
        try:
            _report_end(record, Reply(), (), machine)
        except Exception as error:
            # fail open: the call is over
            record.bypassed(f"a fault of ours in closing a turn: {type(error).__name__}")


def settle_turn(record: Record, machine: Machine) -> None:
    """Close a finished turn: its cost goes into the ledger, and it becomes a candidate for a
    summary."""
    if not isinstance(record.sent, SentPlan):
        return
    planned = record.sent.planned
    machine.summariser.turn_ended(planned.links, record.ref)
    if record.reply.complete and (billed := bill_turn(record, record.reply, machine)):
        record.also(*billed)


def bill_turn(record: Record, reply: Reply, machine: Machine) -> tuple[Deposit, ...]:
    """The bill of a complete reply, with what was learned about its provider's token counts; empty
    if the turn is billed already."""
    sent = record.sent
    if not isinstance(sent, SentPlan) or record.is_billed or not reply.complete:
        return ()
    record.is_billed, planned = True, sent.planned
    bill, config = planned.bill, machine.config
    rounds = usages_of(sent, reply, partial(price_of, bill.model, config.prices, bill.upstream))
    usage = sum_usages(rounds)
    learned = machine.planner.settled(planned, rounds[0]) if not rounds[0].estimated else None
    whole = sum_usages([bill.whole, *(rounds[number] for number in working_rounds(sent))])
    bill = replace(
        bill,
        sent=replace(bill.sent, output=usage.output),
        whole=replace(whole, output=usage.output, estimated=False),
        usage=usage,
        calls=len(rounds),
        faults=sum(each.faults for each in sent.rounds),
        refaults=sum(each.refaults for each in sent.rounds),
    )
    again = repeats(planned.links, planned.plan.fresh) if planned.knobs.echo else NO_REPEATS
    counting = _count_bill(bill, planned.knobs.window, again, record, machine)
    machine.background.spawn(counting, KEEPING)
    latest = planned.facts.table.sent
    before = round(latest.tokens * planned.facts.ratio) if latest is not None else 0
    filled = max(rounds[-1].prompt, bill.sent.prompt) + rounds[-1].output
    due = due_events(before, filled, planned.knobs, sent.opened.time)
    notes = _with_turn([*([learned] if learned is not None else ()), *due], sent.opened.id)
    return (*notes, Billed(sent.opened.id, bill))


def bill_with_reply(record: Record, reply: Reply, machine: Machine) -> tuple[Deposit, ...]:
    """The bill, to go into the reply's commit. If the reply has no usage yet, some may still come:
    then the bill follows later."""
    return bill_turn(record, reply, machine) if reply.usage != Usage() else ()


async def _count_bill(
    bill: Bill, window: int, again: Repeats, record: Record, machine: Machine
) -> None:
    """Count the bill under its session: each session is calibrated by its own provider's
    reports."""
    ref = await record.ref(PLACE_SECONDS)
    if ref is not None:
        bill = replace(bill, session=ref.session, turn=ref.number)
    machine.billed(bill, window, again)


async def _keep_outcome(outcome: str, record: Record) -> None:
    from hotset.sources.memory import OUTCOME  # noqa: PLC0415 - only if a client reports it

    ref, time = await record.ref(PLACE_SECONDS), record.sent.opened.time
    if ref is not None and ref.number > 1:
        detail: dict[str, str | int | float] = {"outcome": outcome}
        record.at_once(Event(OUTCOME, time, ref.session, ref.number - 1, detail))


def _with_turn(deposits: Iterable[Deposit], turn: TurnId) -> Iterator[Deposit]:
    """The deposits, with notes and events assigned to the turn they were written in."""
    for each in deposits:
        if isinstance(each, NoteWritten):
            yield replace(each, turn=turn)
        elif isinstance(each, Event) and each.session is None:
            yield replace(each, detail={**each.detail, "call": turn})
        else:
            yield each


def _outgoing(call: ClientCall, planned: PlannedTurn) -> ClientCall:
    if planned.body == planned.request.raw and not planned.offered:
        return call
    outgoing = _with_body(call, planned.body)
    if not planned.offered:
        return outgoing
    # A reply that we read must not be compressed.
    headers = tuple(each for each in outgoing.headers if each[0].lower() != b"accept-encoding")
    return replace(outgoing, headers=(*headers, (b"accept-encoding", b"identity")))


def _with_body(call: ClientCall, body: bytes | None) -> ClientCall:
    """The call with an uncompressed body of ours; unchanged if `body` is None."""
    if body is None:
        return call
    headers = tuple(each for each in call.headers if each[0].lower() != b"content-encoding")
    return replace(call, body=body, headers=headers)


def _eviction_events(planned: PlannedTurn) -> list[Event]:
    """The event that pages left the window or that the prefix changed."""
    made = planned.plan
    if not made.stubs and made.broke is None:
        return []
    detail: dict[str, str | int | float] = {
        "cause": str(made.broke or (made.fresh[-1].cause if made.fresh else "")),
        "stubs": len(made.stubs),
        "tokens": sum(stub.tokens for stub in made.stubs),
        "prompt": planned.estimated,
        "ids": " ".join(stub.id for stub in made.stubs),
    }
    return [Event("Evicted", planned.sent.time, None, 0, detail)]
