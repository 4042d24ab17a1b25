"""Page faults: the model asks for something that left its window, or calls a tool of ours, and
continues in another round of the same turn. The client sees none of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from hotset import tokens
from hotset.dialects.port import OwnCall, Round
from hotset.errors import HotsetError, Malformed
from hotset.nouns.deposit import Deposit
from hotset.nouns.message import Answer, Reply, ToolSpec, Usage
from hotset.nouns.price import Price
from hotset.nouns.retrieval import Place, Retrieval, Retrieve, Retrieved
from hotset.nouns.turn import Event, TurnRef
from hotset.nouns.window import WHOLE, Form, Spot
from hotset.runtime import retrieval
from hotset.runtime.audit import retrieved_event
from hotset.runtime.filters import read_call
from hotset.runtime.line_weigher import weigh
from hotset.runtime.machine import Machine
from hotset.runtime.planner import PlannedTurn
from hotset.runtime.renderer import draw_body
from hotset.runtime.turn import AnsweredRound, SentPlan, SentRounds, uses_tools
from hotset.sources.port import Scene, Source
from hotset.window.deferred_tools import describe_tool
from hotset.window.handoff import HANDOFF_NOTE
from hotset.window.price import charge
from hotset.window.retrieval_tools import OUR_TOOLS
from hotset.window.toolbox_tools import FIND

MOST_ROUNDS = 4
"""How many rounds of retrieval a turn gets: a model that still asks then would ask forever."""

MOST_USES = 12
"""How many rounds a turn may find and use tools of the toolbox: work with several tools takes
several rounds."""

_LIMITS = {True: (MOST_USES, "use of the toolbox"), False: (MOST_ROUNDS, "retrieval")}

_UNSEEN = OUR_TOOLS | {FIND, HANDOFF_NOTE}
"""Tools that a client would not have without us."""

_LEAST = 100
"""Tokens that an answer may have in any case: enough to say what there is, and how to ask for
less."""

_KEEP_SECONDS = 2.0
"""How long a tool's result may take to reach the disk before a part of it is shown."""

_LAST = "\n[hotset: last {} of this turn; go on with what you have]"
_SORRY = "[hotset: not available; run the original tool call again]"
_LOST = "[hotset: answer lost; the tool may have run: check before you call it again]"


@dataclass(frozen=True, slots=True)
class _Result:
    """The answer to one call, with its deposits and counts."""

    answer: Answer
    owner: Source | None = None
    deposits: tuple[Deposit, ...] = ()
    fault: bool = False
    refault: bool = False


async def answer_round(
    sent: SentRounds,
    asked: Round,
    ref: TurnRef | None,
    log: Callable[..., None],
    machine: Machine,
) -> SentRounds:
    """The turn with the round that has just come, and with our answers if it calls our tools. If
    the latest round `goes_on`, `call` is the follow-up with those answers.

    `log` keeps deposits at once.
    """
    over = replace(sent, rounds=(*sent.rounds, AnsweredRound(asked)))
    if not asked.calls or not asked.complete or (not asked.asks and not asked.foreign):
        return over
    before = [each for each in sent.rounds if each.goes_on and each.uses_tools == uses_tools(asked)]
    most, what = _LIMITS[uses_tools(asked)]
    if asked.asks and len(before) >= most:
        return over
    room = max(_LEAST, _room(sent, asked) // len(asked.calls))
    scene = _scene(sent.planned, ref, room, log, machine)
    results = await asyncio.gather(*(_result(sent, call, scene, machine) for call in asked.calls))
    log(*(deposit for each in results for deposit in each.deposits))
    answers = [
        replace(each.answer, searched=call.searches)
        for each, call in zip(results, asked.calls, strict=True)
    ]
    found = list[ToolSpec]()
    for each in results:
        if each.owner is not None and each.answer.tools:
            found += each.answer.tools
            sent.own.also(each.answer.tools, each.owner)
    if len(before) + 1 == most:  # only text can tell the model
        last = answers[-1]
        text = last.text + _LAST.format(what)
        answers[-1] = replace(last, text=text, tools=last.tools if last.searched else ())
    answered = AnsweredRound(
        asked,
        sent.opened.dialect.answer(answers),
        # Otherwise the client answers its own calls first; our answers join its next request.
        goes_on=asked.asks,
        faults=sum(each.fault for each in results),
        refaults=sum(each.refault for each in results),
        found=tuple(found),
    )
    going = replace(sent, rounds=(*sent.rounds, answered))
    return replace(going, call=replace(sent.call, body=body_of(going))) if asked.asks else going


def body_of(sent: SentRounds) -> bytes:
    """The request body of the latest round: the turn's own messages, and all that were added
    since."""
    planned, dialect = sent.planned, sent.opened.dialect
    words = {name: describe_tool(each) for name, each in sent.found.items()}
    raws = (dialect.spell_out(raw, words) if sent.in_words else raw for raw in sent.grown)
    names = {spec.name for spec in planned.specs}
    new = [each for each in sent.found.values() if each.name not in names]
    specs = (*planned.specs, *new) if planned.deferred else planned.specs
    own = planned.outgoing
    messages = (*own.messages, *(dialect.understand(raw) for raw in raws))
    return draw_body(replace(own, messages=messages), specs, planned.marks, dialect)[1]


def usages_of(sent: SentPlan, reply: Reply, price: Callable[[], Price]) -> list[Usage]:
    """The usage of each round: as the provider counted it, or our estimate where it reported
    none."""
    usages = [each.round.usage for each in sent.rounds]
    raws = [each.round.raws for each in sent.rounds]
    if not usages:  # a turn that had no rounds to look into
        usages, raws = [reply.usage], [tuple(message.raw for message in reply.messages)]
    if Usage() not in usages:
        return usages
    counted, estimate, scale = list[Usage](), sent.planned.bill.sent, _scale(sent.planned)
    before, prompt = 0, estimate.prompt
    for number, reported in enumerate(usages):
        parts = [part for raw in raws[number] for part in sent.opened.dialect.understand(raw).parts]
        output = round(scale * sum(tokens.count(part.content) for part in parts))
        own = charge(price(), prompt, before) if number else estimate
        counted.append(
            reported if reported != Usage() else replace(own, output=output, estimated=True)
        )
        answers = (sent.rounds[number].answers or ()) if sent.rounds else ()
        grown = sum(map(weigh, (*raws[number], *answers)))
        before, prompt = prompt, prompt + round(scale * grown)
    return counted


def working_rounds(sent: SentPlan) -> list[int]:
    """The rounds that read a tool's result: a client that has the tool without us pays for them,
    too."""
    return [
        number
        for number, each in enumerate(sent.rounds[:-1], 1)
        if any(call.name not in _UNSEEN for call in each.round.calls)
    ]


def sum_usages(usages: Sequence[Usage]) -> Usage:
    return Usage(
        input=sum(each.input for each in usages),
        cache_read=sum(each.cache_read for each in usages),
        cache_write=sum(each.cache_write for each in usages),
        output=sum(each.output for each in usages),
        lasting=sum(each.lasting for each in usages),
        estimated=any(each.estimated for each in usages),
    )


def _scale(planned: PlannedTurn) -> float:
    """Provider tokens per token of ours."""
    return planned.bill.sent.prompt / planned.estimated if planned.estimated else 1.0


def _room(sent: SentRounds, asked: Round) -> int:
    """Tokens by which the prompt may still grow in this turn."""
    planned = sent.planned
    grown = sum(map(weigh, (*sent.grown, *asked.raws)))
    return round(planned.knobs.window / _scale(planned)) - planned.estimated - grown


def _scene(
    planned: PlannedTurn,
    ref: TurnRef | None,
    room: int,
    log: Callable[..., None],
    machine: Machine,
) -> Scene:
    chains = tuple(each.chain for each in planned.links)
    session, turn = (ref.session, ref.number) if ref is not None else (None, 0)
    knobs = planned.knobs
    here = Place(session, turn, chains, knobs.history, knobs.memory, planned.plan.shown)
    scene = replace(planned.scene, here=here, room=room, now=machine.clock(), log=log)
    return replace(scene, keep=_keep_with(machine))


def _keep_with(machine: Machine) -> Callable[[Deposit], Awaitable[bool]]:
    async def keep(deposit: Deposit) -> bool:
        try:
            keeping = machine.keeper.hand_over(deposit)
            await asyncio.wait({keeping}, timeout=_KEEP_SECONDS * machine.config.patience)
        except HotsetError:
            return False
        return keeping.done() and not keeping.cancelled() and keeping.exception() is None

    return keep


async def _result(sent: SentRounds, call: OwnCall, scene: Scene, machine: Machine) -> _Result:
    owner, begun = sent.own.owners.get(call.name), time.monotonic()
    try:
        if owner is not None:
            return _Result(await owner.answer(call, scene), owner)
        queue = machine.bounded.of(sent.opened.queue)
        wanted, got = await queue.run(_bring_back, sent, call, scene, machine)
    except Malformed as error:
        event = retrieved_event(call.name, None, None, scene.here, scene.now, agent=scene.agent)
        answer = Answer(call.id, f"[hotset: {error}]", failed=True)
        return _Result(answer, deposits=(event,), fault=True)
    except Exception as error:
        # fail open: the model reads that it failed, and continues
        doing = "using a tool" if owner is not None else "bringing back"
        reason: dict[str, str | int | float] = {"reason": f"{doing} failed: {type(error).__name__}"}
        event = Event("Bypassed", scene.now, scene.here.session, scene.here.turn, reason)
        answer = Answer(call.id, _LOST if owner is not None else _SORRY, failed=True)
        return _Result(answer, deposits=(event,), fault=owner is None)
    again = any(_had_left(sent.planned, spot) for spot in got.spots)
    deposits: list[Deposit] = [
        retrieved_event(
            call.name,
            wanted,
            got,
            scene.here,
            scene.now,
            agent=scene.agent,
            refault=again,
            ms=1000 * (time.monotonic() - begun),
        )
    ]
    if isinstance(wanted, Retrieve) and wanted.id and got.found:
        for source in machine.sources:
            deposits += source.was_read(wanted.id, got.tokens, scene)
    answer = Answer(call.id, got.text, failed=not got.found, images=got.images)
    return _Result(answer, None, tuple(deposits), fault=True, refault=again)


def _bring_back(
    sent: SentRounds, call: OwnCall, scene: Scene, machine: Machine
) -> tuple[Retrieval, Retrieved]:
    wanted = read_call(call.name, call.arguments, scene.now)
    asked = replace(wanted, max_tokens=min(wanted.max_tokens, scene.room))
    sees = scene.sees and sent.opened.dialect.carries_images
    index, patience = machine.follower.index, machine.config.patience
    got = retrieval.answer(
        asked,
        scene.store,
        scene.here,
        readers=[source.read for source in machine.sources],
        abouts=[source.about for source in machine.sources],
        index=index,
        sees=sees,
        patience=patience,
    )
    if index is not None and got.found:
        own = [wanted.id] if isinstance(wanted, Retrieve) and not got.pages else []
        with suppress(HotsetError):  # an index that is gone or damaged is made again
            index.touch([*got.pages, *own], scene.here.turn, scene.here.session or "")
    return wanted, got


def _had_left(planned: PlannedTurn, spot: Spot) -> bool:
    shown = planned.plan.shown
    row = shown.get(spot) or shown.get(Spot(spot.chain, WHOLE))
    return row is not None and row.form is not Form.FULL
