"""What the model of a session may call from the toolbox: decided with the session's first request,
kept, and never changed.

A tool that is added, taken away or worded otherwise breaks the provider's cache from the first byte
on. So what was offered once is said again byte for byte with every later request: after a restart,
in another process, and whatever became of the toolbox. It is kept as notes at the places by which a
line is known again: the prompts that it began with, and its first reply.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from hotset import tokens
from hotset.dialects.port import OWN_SEARCH
from hotset.files.lru import Lru
from hotset.files.threads import DeadlinePool
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.knobs import Knobs
from hotset.nouns.link import Link
from hotset.nouns.message import Loading, Request, ToolSpec
from hotset.nouns.note import Note, Space
from hotset.nouns.page import ROOT, Chain, Kind, Role
from hotset.nouns.price import Price
from hotset.nouns.tool import UNLIKELY, Ghost
from hotset.nouns.turn import TurnRef
from hotset.nouns.window import SentRequest
from hotset.store.port import Store
from hotset.window.ghosts import beside, defers, ghost_spec, speaks_of
from hotset.window.prefetch import asked_in
from hotset.window.toolbox_tools import TOOLBOX_SPECS, USE
from hotset.window.tools import SPECS

if TYPE_CHECKING:
    from hotset.sources.tools.toolbox import ToolLibrary


_OFFER = Space("offer")
"""By the message at which a session is known again."""

_BROUGHT = Space("brought")
"""By the last message of a request with which the client brought our tools."""

_ASKED = 2000  # characters of a prompt that are looked at
_FIND_SECONDS = 0.25
"""How long a first request waits for its ghosts. A search takes ten milliseconds; an index that is
being opened takes longer."""

_MOST_KNOWN = 2048
_RESERVED = frozenset(spec.name for spec in (*SPECS, *TOOLBOX_SPECS))


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """Tools beside the three that every session has."""

    tools: tuple[ToolSpec, ...] = ()
    time: float = 0.0
    """Of the request that opened its session."""
    deferred: bool = False
    """What its session finds later is called by its own name (`deferring`): that, too, is decided
    once."""


NOTHING = ToolOffer()


@dataclass(frozen=True, slots=True)
class SessionOpening:
    """A request that may be the first of its session."""

    request: Request
    links: Sequence[Link]
    opens: bool
    """Nobody has replied yet."""
    sent: float | None
    """When the latest request of its line went out; None where this is the first."""
    now: float
    price: Price
    fixed: int
    """Tokens of what stands before its messages."""
    knobs: Knobs
    deferred: bool = False
    """Its upstream can defer tools."""


@dataclass(frozen=True, slots=True)
class OfferDecision:
    offer: ToolOffer = NOTHING
    at: Chain = ROOT
    """The message at which it is known again; `ROOT` where there is nothing to know."""
    lead: bytes = b""
    """What the provider's cache has in front of it; empty where that is too little to be cached."""
    opens: bool = False
    """The session's first reply has still to come."""
    notes: tuple[NoteWritten, ...] = ()
    """To be kept in front of the request's own plan, so that one is never found without the
    other."""
    trouble: str = ""
    """Why there are no ghosts, where that is a fault."""


class ToolOffers:
    """Safe to use from several threads."""

    def __init__(self, tools: ToolLibrary | None, ghosts: int, patience: float = 1.0) -> None:
        """`ghosts` is how many tools of the library may stand in a session's list."""
        self.tools = tools
        self._ghosts = ghosts
        self._seconds = _FIND_SECONDS * patience
        self._known: Lru[Chain, ToolOffer] = Lru(count=_MOST_KNOWN)
        """By the message at which it is kept; nothing for lines that began without."""
        self._warm: Lru[bytes, tuple[ToolOffer, float]] = Lru(count=_MOST_KNOWN)
        """What stands behind a client's tools in the provider's cache, and since when."""
        self._brought: Lru[Chain, float] = Lru(count=_MOST_KNOWN)
        """By its last message, the time of a request with which the client brought our tools."""
        self._searches = DeadlinePool(1, "hotset-ghosts")

    @property
    def is_quick(self) -> bool:
        """Nothing is to be decided for a session that opens now."""
        return self.tools is None or self.tools.empty

    def of(self, opening: SessionOpening, store: Store) -> OfferDecision:
        """What the model of this request may call."""
        tools = self.tools
        if tools is None or (opening.opens and tools.empty):
            return OfferDecision()
        chains = beginning(
            (each.chain, each.message.role, each.message.aside) for each in opening.links
        )
        if not chains:
            return OfferDecision()
        here, lead = chains[-1], _lead(opening)
        place, found = self._kept(chains, store)
        if found is not None and _is_its_own(found, opening, at_end=place == here):
            offer, trouble = found, ""
        elif (not opening.opens and opening.sent is not None) or tools.empty:
            return OfferDecision(NOTHING, here)
        elif (shared := self._shared(lead, opening)) is not None:
            offer, trouble = shared, ""
        else:
            offer, trouble = self._decided(opening, tools)
        if opening.opens:
            offer = replace(offer, time=opening.now)
        is_kept = offer is found and place == here
        return OfferDecision(
            offer, here, lead, opening.opens, () if is_kept else (_note(here, offer),), trouble
        )

    def went_out(self, decided: OfferDecision, now: float) -> None:
        """A request was sent with this, and what has to be kept of it was handed over."""
        if not decided.at:
            return
        self._known.put(decided.at, decided.offer)
        if decided.lead and decided.offer.tools:
            self._warm.put(decided.lead, (decided.offer, now))

    def kept(self, links: Sequence[Link], store: Store) -> ToolOffer:
        """What was offered to the session of these messages; nothing where it was not decided
        yet."""
        chains = beginning((each.chain, each.message.role, each.message.aside) for each in links)
        return (
            self._kept(chains, store)[1] if self.tools is not None and chains else None
        ) or NOTHING

    def brought(self, head: Chain, now: float) -> NoteWritten:
        """The note that says of a request that the model got our tools from its client, over
        MCP."""
        self._brought.put(head, now)
        return NoteWritten(_BROUGHT, head, msgspec.json.encode(now))

    def was_brought(self, sent: SentRequest, store: Store) -> bool:
        """True if the model got our tools from its client with this request."""
        known = self._brought.get(sent.head)
        if (
            known is None
            and (note := store.notes(_BROUGHT, [sent.head]).get(sent.head)) is not None
        ):
            known = msgspec.json.decode(note.value or b"", type=float)
        return known == sent.time

    def replied(
        self, links: Sequence[Link], reply: Sequence[Link], offer: ToolOffer
    ) -> NoteWritten | None:
        """A session's first reply has come. From now on the session is known by that, whoever began
        with the same words."""
        line = [(each.chain, each.message.role, each.message.aside) for each in (*links, *reply)]
        before, now = beginning(line[: len(links)]), beginning(line)
        if not offer.tools or len(now) <= len(before):
            return None
        self._known.put(now[-1], offer)
        return _note(now[-1], offer)

    def _kept(self, chains: Sequence[Chain], store: Store) -> tuple[Chain, ToolOffer | None]:
        """The offer at the deepest of these places, and which that is."""
        if (known := self._known.get(chains[-1])) is not None:
            return chains[-1], known
        return kept_offer(chains, store)

    def _shared(self, lead: bytes, opening: SessionOpening) -> ToolOffer | None:
        """The offer of another session whose client has the same tools, while the provider still
        has both in its cache.

        Other ghosts would fit better and cost more: all that stands behind them would be paid for
        as new.
        """
        offer, used = (self._warm.get(lead) if lead else None) or (None, 0.0)
        is_alike = offer is not None and offer.deferred == opening.deferred
        return offer if is_alike and opening.now - used <= opening.price.ttl else None

    def _decided(self, opening: SessionOpening, tools: ToolLibrary) -> tuple[ToolOffer, str]:
        found, trouble = self._found(opening, tools)
        theirs = opening.request.tools
        asked, knobs = prompt_in(opening.links), opening.knobs.toolbox
        least = max(UNLIKELY, knobs.ghost_fit * max((each.score for each in found), default=0.0))
        fit = (each for each in found if each.score >= least and speaks_of(asked, each.tool, knobs))
        fitting = {made.name: made for each in fit if (made := ghost_spec(each))}
        room = round(knobs.ghost_share * opening.knobs.window)
        ghosts: list[ToolSpec] = []
        for made in beside(
            [made for name, made in fitting.items() if name not in _RESERVED], theirs
        )[: self._ghosts]:
            room -= weigh(made)
            if room < 0:
                break
            ghosts.append(made)
        return ToolOffer(
            (*beside(TOOLBOX_SPECS, theirs), *ghosts), opening.now, opening.deferred
        ), trouble

    def _found(self, opening: SessionOpening, tools: ToolLibrary) -> tuple[Sequence[Ghost], str]:
        query = prompt_in(opening.links)
        if not self._ghosts or not tools.ready or not query or defers(opening.request.tools):
            return (), ""
        finding = self._searches.submit_if_free(lambda: tools.find(query, 2 * self._ghosts))
        if finding is None:
            return (), ""
        try:
            return finding.result(self._seconds), ""
        except TimeoutError:
            return (), "looking for tools took too long"
        except Exception as error:
            # fail open: the session begins without ghosts, and can search for tools itself
            return (), f"a fault of ours in finding tools: {type(error).__name__}"


@dataclass(slots=True)
class OwnToolNames:
    """The names of tools that we answer: those that were offered, and any of the toolbox where the
    client has none of that name.

    Some models call by its name what they have only read about. What a name was once, it stays for
    the turn.
    """

    listed: frozenset[str]
    theirs: frozenset[str]
    tools: ToolLibrary | None
    """None where the session may not use the toolbox."""
    _seen: dict[str, bool] = field(default_factory=dict)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        if name not in self._seen:
            hidden = (
                self.tools is not None
                and "__" in name
                and name not in self.theirs
                and self.tools.knows(name)
            )
            self._seen[name] = name in self.listed or hidden
        return self._seen[name]

    def also(self, names: Iterable[str]) -> None:
        """These were found, and can be called."""
        self._seen |= dict.fromkeys(names, True)


def own_tool_names(
    specs: Sequence[ToolSpec], request: Request, tools: ToolLibrary | None
) -> OwnToolNames:
    listed = frozenset(spec.name for spec in specs)
    searches = frozenset(
        {OWN_SEARCH} if any(spec.loading is Loading.FINDS for spec in specs) else ()
    )
    return OwnToolNames(
        listed | searches,
        frozenset(tool.name for tool in request.tools),
        tools if USE in listed else None,
    )


def beginning(line: Iterable[tuple[Chain, Role, bool]]) -> list[Chain]:
    """The messages by which a line is known again, of messages with their role, and whether they
    are asides: up to its first reply."""
    chains: list[Chain] = []
    replied = False
    for chain, role, aside in line:
        if aside:
            continue
        if replied and role is not Role.ASSISTANT:
            break
        replied = role is Role.ASSISTANT
        chains.append(chain)
    return chains


def kept_offer(
    chains: Sequence[Chain], store: Store, as_of: TurnRef | None = None
) -> tuple[Chain, ToolOffer | None]:
    """The offer at the deepest of these places, and which that is."""
    notes = store.notes(_OFFER, chains, as_of)
    chain = next((chain for chain in reversed(chains) if chain in notes), None)
    return (chain, _read(notes[chain])) if chain is not None else (chains[-1], None)


@lru_cache(maxsize=1024)
def weigh(spec: ToolSpec) -> int:
    """Tokens."""
    return tokens.count(spec.parameters) + tokens.count(spec.description) + tokens.count(spec.name)


def prompt_in(links: Sequence[Link]) -> str:
    """What the user asked last, in its own words."""
    for each in reversed(links):
        said = [
            part.content.decode("utf-8", "replace")
            for part in each.message.parts
            if part.kind is Kind.PROMPT
        ]
        if text := asked_in("\n".join(said)).strip():
            return text[:_ASKED]
    return ""


class _Kept(msgspec.Struct, omit_defaults=True):
    time: float
    tools: list[tuple[str, str, str]]
    deferred: bool = False


def _note(chain: Chain, offer: ToolOffer) -> NoteWritten:
    told = [(each.name, each.description, each.parameters.decode()) for each in offer.tools]
    return NoteWritten(_OFFER, chain, msgspec.json.encode(_Kept(offer.time, told, offer.deferred)))


def _read(note: Note) -> ToolOffer | None:
    try:
        kept = msgspec.json.decode(note.value or b"", type=_Kept)
    except msgspec.DecodeError:
        return None
    specs = (
        ToolSpec(name, description, parameters.encode())
        for name, description, parameters in kept.tools
    )
    return ToolOffer(tuple(specs), kept.time, kept.deferred)


def _is_its_own(found: ToolOffer, opening: SessionOpening, *, at_end: bool) -> bool:
    """Was it made for this session? Another one may have begun with the same words.

    Before the first reply two sessions cannot be told apart, and share an offer as long as the
    provider's cache has it. Behind a reply at which nothing is kept, an offer is this session's
    where it went out with the latest request of this line.
    """
    if opening.opens:
        return not at_end or opening.now - found.time <= opening.price.ttl
    return at_end or opening.sent in (None, found.time)


def _lead(opening: SessionOpening) -> bytes:
    if opening.fixed < opening.price.minimum:
        return b""
    told = blake2b(opening.request.model.encode("utf-8", "replace"), digest_size=16)
    for tool in opening.request.tools:
        told.update(tool.raw)
    return told.digest()
