"""Page faults: the model asks for something that left its window, gets it, and goes on. The client sees none of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hotset import tokens
from hotset.dialects.port import Dialect
from hotset.dialects.view import OwnCall, Round
from hotset.errors import Malformed
from hotset.nouns.message import Answer, Request, Usage
from hotset.nouns.retrieval import Place, Retrieval, Retrieved
from hotset.nouns.turn import Event
from hotset.nouns.window import WHOLE, Form, Spot
from hotset.runtime import retrieval
from hotset.runtime.bounded import Bounded
from hotset.runtime.following import Follower
from hotset.runtime.planning import Prepared
from hotset.store.port import Store
from hotset.window.ledger import prompt_of
from hotset.window.tools import SPECS, parse_call

MOST_ROUNDS = 4
"""How often a turn is answered by us: a model that still asks then would ask for ever."""

_LEAST = 100
"""Tokens that an answer may have in any case: room to say what there is, and how to ask for less."""

_LAST = "\n[hotset: this was the last retrieval of this turn; go on with what you have]"


@dataclass(slots=True)
class Faults:
    """The rounds of one turn."""

    prepared: Prepared
    dialect: Dialect
    store: Store
    bounded: Bounded
    follower: Follower | None = None
    """Has the index, once there is one."""
    outgoing: Request = field(init=False)
    """The request of the latest round."""
    answers: list[tuple[bytes, ...]] = field(default_factory=list)
    """For each round that was answered, the messages that answered it."""
    usages: list[Usage] = field(default_factory=list)
    last: str = ""
    """The provider's own name for the latest round."""
    faults: int = 0
    refaults: int = 0
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.outgoing = self.prepared.outgoing

    async def next_body(self, asked: Round, here: Place, now: float) -> bytes | None:
        """The request that answers a round; None where the turn is over with it."""
        self.usages.append(asked.usage)
        self.last = asked.id
        if not asked.calls or not asked.complete:
            return None
        if not asked.asks:
            # The client answers its own calls; ours are answered beside them when it does.
            if asked.foreign:
                await self._answer(asked, here, now)
            return None
        if len(self.answers) >= MOST_ROUNDS:
            return None
        raws = await self._answer(asked, here, now)
        said = tuple(self.dialect.understand(raw) for raw in (*asked.raws, *raws))
        self.outgoing = replace(self.outgoing, messages=(*self.outgoing.messages, *said))
        return self.dialect.offer(self.dialect.render(self.outgoing), SPECS)

    @property
    def unheard(self) -> tuple[bytes, ...]:
        """Our answers to the latest round, where the client has to answer it as well: the provider does not have them yet."""
        return self.answers[-1] if len(self.answers) == len(self.usages) else ()

    def happened(self) -> tuple[Event, ...]:
        """What is to be told since this was asked last."""
        told, self.events = tuple(self.events), []
        return told

    async def _answer(self, asked: Round, here: Place, now: float) -> tuple[bytes, ...]:
        room = max(_LEAST, self._room(asked) // len(asked.calls))
        results = [await self._result(call, room, here, now) for call in asked.calls]
        if len(self.answers) == MOST_ROUNDS - 1:
            results[-1] = replace(results[-1], text=results[-1].text + _LAST)
        raws = self.dialect.answer(results)
        self.answers.append(raws)
        return raws

    def _room(self, asked: Round) -> int:
        """Tokens by which the prompt may still grow in this turn."""
        prepared = self.prepared
        scale = prompt_of(prepared.bill.sent) / prepared.estimated if prepared.estimated else 1.0
        grown = (message.raw for message in self.outgoing.messages[len(prepared.outgoing.messages) :])
        return round(prepared.window / scale) - prepared.estimated - sum(map(tokens.count, (*grown, *asked.raws)))

    async def _result(self, call: OwnCall, room: int, here: Place, now: float) -> Answer:
        try:
            return await self.bounded.run(self._bring_back, call, room, here, now)
        except Exception as error:  # fail open: the model is told, and goes on without
            detail: dict[str, str | int | float] = {"reason": f"bringing back failed: {type(error).__name__}"}
            self.events.append(Event("Bypassed", now, here.session, here.turn, detail))
            return Answer(call.id, "[hotset: it cannot be brought back now; get it again from where it came]", failed=True)

    def _bring_back(self, call: OwnCall, room: int, here: Place, now: float) -> Answer:
        self.faults += 1
        try:
            wanted = parse_call(call.name, call.arguments)
        except Malformed as error:
            self._tell(call, None, None, here, now)
            return Answer(call.id, f"[hotset: {error}]", failed=True)
        index = self.follower.index if self.follower else None
        got = retrieval.answer(replace(wanted, max_tokens=min(wanted.max_tokens, room)), self.store, here, index=index)
        self._tell(call, wanted, got, here, now)
        return Answer(call.id, got.text, failed=not got.found)

    def _tell(self, call: OwnCall, wanted: Retrieval | None, got: Retrieved | None, here: Place, now: float) -> None:
        again = got is not None and any(self._had_left(spot) for spot in got.spots)
        self.refaults += again
        self.events.append(retrieval.event_of(call.name, wanted, got, here, now, refault=again))

    def _had_left(self, spot: Spot) -> bool:
        shown = self.prepared.plan.shown
        row = shown.get(spot) or shown.get(Spot(spot.chain, WHOLE))
        return row is not None and row.form is not Form.FULL


def summed(usages: Sequence[Usage]) -> Usage:
    return Usage(
        input=sum(each.input for each in usages),
        cache_read=sum(each.cache_read for each in usages),
        cache_write=sum(each.cache_write for each in usages),
        output=sum(each.output for each in usages),
    )
