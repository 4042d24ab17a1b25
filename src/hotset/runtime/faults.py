"""Page faults: the model asks for what left its window, or for a tool of ours, and goes on. The
client sees none of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from hotset import tokens
from hotset.dialects.parts import can_see
from hotset.dialects.port import Dialect, OwnCall, Round
from hotset.errors import Malformed
from hotset.nouns.deposit import Deposit
from hotset.nouns.memory import MemoryId
from hotset.nouns.message import Answer, Reply, Request, ToolSpec, Usage
from hotset.nouns.price import Price
from hotset.nouns.retrieval import Place, Retrieval, Retrieve, Retrieved
from hotset.nouns.turn import Event
from hotset.nouns.window import WHOLE, Form, Spot
from hotset.runtime import recall
from hotset.runtime.bounded import SessionQueue
from hotset.runtime.follower import Follower
from hotset.runtime.lines import weigh
from hotset.runtime.planning import Prepared
from hotset.sources.memory import is_memory_id, read_deposits
from hotset.sources.tools import OwnToolNames, PendingCall, ToolCalls, own_tool_names
from hotset.store.port import Store
from hotset.window.deferring import words_for
from hotset.window.price import charge
from hotset.window.toolbox_tools import FIND
from hotset.window.tools import OUR_TOOLS, parse_call

MOST_ROUNDS = 4
"""How often a turn is given back what left: a model that still asks then would ask for ever."""

MOST_USES = 12
"""How often it may find and use tools of the toolbox: what is done with several takes several
rounds."""

_LEAST = 100
"""Tokens that an answer may have in any case: room to say what there is, and how to ask for
less."""

_LAST = "\n[hotset: this was the last {} of this turn; go on with what you have]"
_SORRY = "[hotset: it cannot be brought back now; get it again from where it came]"
_LOST = (
    "[hotset: the answer was lost by a fault of ours; the tool may "
    "have run: look before you call "
    "it again]"
)


@dataclass(slots=True)
class Faults:
    """The rounds of one turn."""

    prepared: Prepared
    dialect: Dialect
    store: Store
    bounded: SessionQueue
    follower: Follower | None = None
    """Has the index, once there is one."""
    using: ToolCalls | None = None
    """The toolbox, where there is one."""
    patience: float = 1.0
    ours: OwnToolNames = field(init=False)
    """The tools that we answer."""
    outgoing: Request = field(init=False)
    """The request of the latest round."""
    answers: list[tuple[bytes, ...]] = field(default_factory=list)
    """For each round that was answered, the messages that answered it."""
    grown: list[bytes] = field(default_factory=list)
    """What was said and answered in the rounds of this turn."""
    in_words: bool = False
    """The turn began with deferred tools, and its upstream did not take them."""
    usages: list[Usage] = field(default_factory=list)
    last: str = ""
    """The provider's own name for the latest round."""
    faults: int = 0
    refaults: int = 0
    retrieved: int = 0
    """Rounds that brought something back."""
    used: int = 0
    """Rounds that used the toolbox."""
    said: list[tuple[bytes, ...]] = field(default_factory=list)
    """For each round, the model's messages."""
    work: list[int] = field(default_factory=list)
    """Which rounds read a tool's result: a client that has the tool without us pays for them,
    too."""
    worked: bool = False
    """The latest round called a tool."""
    events: list[Deposit] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.outgoing = self.prepared.outgoing
        self.ours = own_tool_names(
            self.prepared.specs, self.prepared.request, self.using.tools if self.using else None
        )

    async def next_body(self, asked: Round, here: Place, now: float) -> bytes | None:
        """The request that answers a round; None where the turn is over with it."""
        if self.worked:
            self.work.append(len(self.usages))
        self.usages.append(asked.usage)
        self.said.append(asked.raws)
        self.worked = any(call.name not in OUR_TOOLS and call.name != FIND for call in asked.calls)
        self.last = asked.id
        if not asked.calls or not asked.complete:
            return None
        if not asked.asks:
            # The client answers its own calls; ours are answered beside them when it does.
            if asked.foreign:
                await self._answer(asked, here, now)
            return None
        if self.used >= MOST_USES if _uses(asked) else self.retrieved >= MOST_ROUNDS:
            return None
        raws = await self._answer(asked, here, now)
        self.grown += (*asked.raws, *raws)
        return self._body()

    @property
    def found(self) -> tuple[ToolSpec, ...]:
        """What the answers of this turn made callable."""
        return tuple(self.using.found.values()) if self.using is not None else ()

    def without_deferred(self, prepared: Prepared) -> bytes:
        """The latest request again, as `prepared` now has it: for an upstream that cannot defer
        tools."""
        self.prepared, self.in_words = prepared, True
        if self.using is not None:
            self.using.deferred = False
        return self._body()

    def _body(self) -> bytes:
        """The request of this round: the turn's own, with everything that was said since."""
        prepared, dialect = self.prepared, self.dialect
        words = {each.name: words_for(each) for each in self.found}
        raws = (
            [dialect.spelled_out(raw, words) for raw in self.grown] if self.in_words else self.grown
        )
        said = tuple(dialect.understand(raw) for raw in raws)
        self.outgoing = replace(prepared.outgoing, messages=(*prepared.outgoing.messages, *said))
        names = {spec.name for spec in prepared.specs}
        new = [each for each in self.found if each.name not in names] if prepared.deferred else []
        return dialect.offer(dialect.render(self.outgoing), (*prepared.specs, *new))

    @property
    def unheard(self) -> tuple[bytes, ...]:
        """Our answers to the latest round, where the client has to answer it as well: the provider
        does not have them yet."""
        return self.answers[-1] if len(self.answers) == len(self.usages) else ()

    def billed(self, reply: Reply, price: Callable[[], Price]) -> list[Usage]:
        """What each round came to: as the provider counted it, and where it reported nothing as we
        do."""
        usages, said = self.usages, self.said
        if not usages:  # a turn that had no rounds to look into
            usages, said = [reply.usage], [tuple(message.raw for message in reply.messages)]
        if Usage() not in usages:
            return usages
        counted = list[Usage]()
        sent = self.prepared.bill.sent
        before, prompt = 0, sent.prompt
        for number, reported in enumerate(usages):
            parts = [part for raw in said[number] for part in self.dialect.understand(raw).parts]
            output = round(self._scale * sum(tokens.count(part.content) for part in parts))
            own = charge(price(), prompt, before) if number else sent
            counted.append(
                reported if reported != Usage() else replace(own, output=output, estimated=True)
            )
            answers = self.answers[number] if number < len(self.answers) else ()
            before, prompt = (
                prompt,
                prompt + round(self._scale * sum(map(weigh, (*said[number], *answers)))),
            )
        return counted

    def happened(self) -> tuple[Deposit, ...]:
        """What is to be told since this was asked last."""
        told, self.events = tuple(self.events), []
        return told

    async def _answer(self, asked: Round, here: Place, now: float) -> tuple[bytes, ...]:
        room = max(_LEAST, self._room(asked) // len(asked.calls))
        given = await asyncio.gather(*(self._result(call, room, here, now) for call in asked.calls))
        results = [
            replace(each, searched=call.searches)
            for each, call in zip(given, asked.calls, strict=True)
        ]
        self.ours.also(each.name for each in self.found)
        if last := self._count(asked):
            words = results[-1].text + _LAST.format(last)  # which only words can tell
            results[-1] = replace(
                results[-1], text=words, tools=results[-1].tools if results[-1].searched else ()
            )
        raws = self.dialect.answer(results)
        self.answers.append(raws)
        return raws

    def _count(self, asked: Round) -> str:
        """Counts the round, and names what it was the last of."""
        if _uses(asked):
            self.used += 1
            return "use of the toolbox" if self.used == MOST_USES else ""
        self.retrieved += 1
        return "retrieval" if self.retrieved == MOST_ROUNDS else ""

    @property
    def _scale(self) -> float:
        """The provider's tokens for one of ours."""
        return (
            self.prepared.bill.sent.prompt / self.prepared.estimated
            if self.prepared.estimated
            else 1.0
        )

    def _room(self, asked: Round) -> int:
        """Tokens by which the prompt may still grow in this turn."""
        prepared = self.prepared
        grown = (
            message.raw for message in self.outgoing.messages[len(prepared.outgoing.messages) :]
        )
        return (
            round(prepared.window / self._scale)
            - prepared.estimated
            - sum(map(weigh, (*grown, *asked.raws)))
        )

    async def _result(self, call: OwnCall, room: int, here: Place, now: float) -> Answer:
        try:
            if call.name not in OUR_TOOLS and self.using is not None:
                return await self.using.answer(PendingCall(call, room, here, now))
            self.faults += 1
            wanted, got = await self.bounded.run(self._bring_back, call, room, here)
        except Malformed as error:
            self._tell(call, None, None, here, now)
            return Answer(call.id, f"[hotset: {error}]", failed=True)
        except Exception as error:  # fail open: the model is told, and goes on without
            doing = "bringing back" if call.name in OUR_TOOLS else "using a tool"
            detail: dict[str, str | int | float] = {
                "reason": f"{doing} failed: {type(error).__name__}"
            }
            self.events.append(Event("Bypassed", now, here.session, here.turn, detail))
            return Answer(call.id, _SORRY if call.name in OUR_TOOLS else _LOST, failed=True)
        self._tell(call, wanted, got, here, now)
        return Answer(call.id, got.text, failed=not got.found, images=got.images)

    def _bring_back(self, call: OwnCall, room: int, here: Place) -> tuple[Retrieval, Retrieved]:
        wanted = parse_call(call.name, call.arguments)
        index = self.follower.index if self.follower else None
        asked = replace(wanted, max_tokens=min(wanted.max_tokens, room))
        sees_images = can_see(self.outgoing.model) and self.dialect.carries_images
        return wanted, recall.answer(
            asked, self.store, here, index=index, sees=sees_images, patience=self.patience
        )

    def _tell(
        self,
        call: OwnCall,
        wanted: Retrieval | None,
        got: Retrieved | None,
        here: Place,
        now: float,
    ) -> None:
        again = got is not None and any(self._had_left(spot) for spot in got.spots)
        self.refaults += again
        self.events.append(recall.event_of(call.name, wanted, got, here, now, refault=again))
        if (
            isinstance(wanted, Retrieve)
            and got is not None
            and got.found
            and is_memory_id(wanted.id)
        ):
            self.events += read_deposits(MemoryId(wanted.id), got.tokens, here, now)

    def _had_left(self, spot: Spot) -> bool:
        shown = self.prepared.plan.shown
        row = shown.get(spot) or shown.get(Spot(spot.chain, WHOLE))
        return row is not None and row.form is not Form.FULL


def _uses(asked: Round) -> bool:
    return any(call.name not in OUR_TOOLS for call in asked.calls)


def summed(usages: Sequence[Usage]) -> Usage:
    return Usage(
        input=sum(each.input for each in usages),
        cache_read=sum(each.cache_read for each in usages),
        cache_write=sum(each.cache_write for each in usages),
        output=sum(each.output for each in usages),
        estimated=any(each.estimated for each in usages),
    )
