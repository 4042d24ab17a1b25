"""The state of one call as a chain of values: `OpenedTurn`, `PlannedTurn` (in `planner`), then
`SentTurn`, `SentPlan` (with the plan) or `SentRounds` (with the rounds that we answer).

Each value holds the one before it, and no field is filled in later. `walk` makes the transitions;
`record` keeps them.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hotset.dialects.hand_over import HandOver
from hotset.dialects.port import OWN_SEARCH, Dialect, Round
from hotset.errors import Malformed
from hotset.nouns.call import ClientCall, header
from hotset.nouns.deposit import RequestReceived
from hotset.nouns.link import link
from hotset.nouns.message import Loading, Request, ToolSpec
from hotset.nouns.page import ROOT
from hotset.nouns.turn import TurnId
from hotset.runtime import clients
from hotset.runtime.machine import Machine
from hotset.runtime.planner import PlannedTurn
from hotset.runtime.reply_bytes import decode
from hotset.sources.port import Source
from hotset.sources.tools import hand_over
from hotset.window.retrieval_tools import OUR_TOOLS

_T = TypeVar("_T")

_SMALL = 16 << 10  # below this, reading on the event loop is faster than a trip to a thread


@dataclass(frozen=True, slots=True)
class OpenedTurn:
    """A call whose body was parsed."""

    call: ClientCall
    dialect: Dialect
    id: TurnId
    time: float
    request: Request | None
    """None if the body cannot be parsed: `unread` says why."""
    unread: str = ""
    cpu: float = 0.0
    """Seconds of computing that parsing took."""

    @property
    def agent(self) -> str:
        return clients.agent(self.call.headers)

    @property
    def queue(self) -> str:
        """Key of its session before the store has placed the turn: from a header, or from its first
        message."""
        request = self.request
        named = clients.session_key(self.call.headers) or (request.previous if request else "")
        if named or request is None:
            return named
        links = link(ROOT, request.messages)
        return next((each.chain for each in links if not each.message.aside), "")

    def received(self, since: float) -> RequestReceived | None:
        """The deposit for the store; None if the request cannot be parsed."""
        headers = self.call.headers
        if self.request is None:
            return None
        return RequestReceived(
            request=self.request,
            time=self.time,
            agent=self.agent,
            key=clients.session_key(headers),
            client=clients.client(headers),
            since=since,
            id=self.id,
            parents=clients.parent_keys(headers),
            metadata=clients.metadata(headers),
        )


async def open_turn(call: ClientCall, machine: Machine) -> OpenedTurn:
    """Parse a call. One that cannot be parsed goes upstream as it is: the upstream says what is
    wrong with it."""
    assert call.dialect is not None
    assert isinstance(call.body, bytes)
    machine.call_came()
    dialect, packing = machine.dialects[call.dialect], header(call.headers, b"content-encoding")
    # A compressed body may unpack to any size.
    is_quick = not packing and (len(call.body) <= _SMALL or dialect.is_quick(call.body))
    turn = OpenedTurn(call, dialect, TurnId(secrets.token_hex(8)), machine.clock(), None)
    try:
        size = 0 if is_quick else _SMALL + 1
        request, cpu = await off_loop(size, _parse, dialect, call.body, packing)
    except Malformed as error:
        return replace(turn, unread=str(error))
    return replace(turn, request=request, cpu=cpu)


def _parse(dialect: Dialect, body: bytes, packing: str) -> tuple[Request, float]:
    """The request, and the seconds of computing that it took."""
    began = time.thread_time()
    return dialect.parse(decode(body, packing)), time.thread_time() - began


async def off_loop(size: int, work: Callable[..., _T], *arguments: object) -> _T:
    """Run work on `size` bytes: inline if they are few, otherwise in a thread."""
    if size <= _SMALL:
        return work(*arguments)
    return await asyncio.to_thread(work, *arguments)


@dataclass(frozen=True, slots=True)
class AnsweredRound:
    """One reply of the model in a turn that may have several, and our answers to it."""

    round: Round
    answers: tuple[bytes, ...] | None = None
    """The messages that answer the calls of our tools; None if there were none."""
    goes_on: bool = False
    """The turn continues with these answers; otherwise the client answers the other calls first."""
    faults: int = 0
    refaults: int = 0
    found: tuple[ToolSpec, ...] = ()
    """Tools that the answers made callable."""

    @property
    def uses_tools(self) -> bool:
        return uses_tools(self.round)


def uses_tools(round: Round) -> bool:
    """True if the round calls a tool other than the retrieval tools."""
    return any(call.name not in OUR_TOOLS for call in round.calls)


@dataclass(slots=True)
class OwnTools:
    """The tools that we answer, with their owners: the listed ones, the found ones, and any that a
    source owns under a name the client does not use.

    Some models call a tool that they have only read about by its name. A name keeps its owner for
    the whole turn.
    """

    owners: dict[str, Source | None]
    """None for the retrieval tools."""
    theirs: frozenset[str]
    sources: tuple[Source, ...]
    """The sources that this session may call by any of their tool names."""
    hand_over: HandOver | None = None
    """How the client's tools that are not in the list are called."""
    _others: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, planned: PlannedTurn, sources: Iterable[Source]) -> OwnTools:
        by_name = {each.name: each for each in sources}
        owners: dict[str, Source | None] = dict.fromkeys(OUR_TOOLS)
        for each in planned.plan.taken:
            if isinstance(each.body, ToolSpec):
                owners[each.key] = by_name[each.source]
        used = tuple(
            each
            for each in by_name.values()
            if any(owners.get(spec.name) is each for spec in each.tools)
        )
        for finder in used[:1]:  # it also owns the tools that were found earlier
            for spec in planned.specs:
                owners.setdefault(spec.name, finder)
            if any(spec.loading is Loading.FINDS for spec in planned.specs):
                owners[OWN_SEARCH] = finder
        left_out = planned.facts.left_out
        theirs = frozenset(tool.name for tool in planned.request.tools) | left_out.keys()
        return cls(owners, theirs, used, hand_over(left_out))

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or name in self._others:
            return False
        if name not in self.owners:
            owner = next((each for each in self.sources if each.owns(name)), None)
            if owner is None or name in self.theirs:
                self._others.add(name)
                return False
            self.owners[name] = owner
        return True

    def also(self, found: Iterable[ToolSpec], owner: Source) -> None:
        """Add found tools, which can be called from now on."""
        self.owners |= {spec.name: owner for spec in found}
        self._others -= {spec.name for spec in found}


@dataclass(frozen=True, slots=True)
class SentTurn:
    """A turn under way, with the call as it goes upstream: the client's own bytes if nothing was
    planned."""

    opened: OpenedTurn
    call: ClientCall

    @property
    def cpu(self) -> float:
        """Seconds of computing before it went out."""
        return self.opened.cpu


@dataclass(frozen=True, slots=True)
class SentPlan(SentTurn):
    """A turn that was planned, so that its cost is known when it ends."""

    planned: PlannedTurn
    rounds: tuple[AnsweredRound, ...] = ()

    @property
    def cpu(self) -> float:
        return self.opened.cpu + self.planned.cpu


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRounds(SentPlan):
    """A turn in which the model may call our tools: we read its replies, and answer."""

    own: OwnTools
    in_words: bool = False
    """It began with deferred tools, which its upstream refused: found tools are described in
    text."""

    @property
    def answers(self) -> list[tuple[bytes, ...]]:
        """The messages that answered each answered round."""
        return [each.answers for each in self.rounds if each.answers is not None]

    @property
    def unheard(self) -> tuple[bytes, ...]:
        """Our answers to the latest round while the client still has to answer the rest of it: the
        provider does not have them yet."""
        return (self.rounds[-1].answers or ()) if self.rounds else ()

    @property
    def found(self) -> Mapping[str, ToolSpec]:
        """The tools that the answers of this turn made callable, by name."""
        return {spec.name: spec for each in self.rounds for spec in each.found}

    @property
    def grown(self) -> Iterator[bytes]:
        """The messages that were added since the request itself."""
        for each in self.rounds:
            if each.goes_on:
                yield from (*each.round.raws, *(each.answers or ()))
