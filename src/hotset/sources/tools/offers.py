"""What the model of a session may call from the toolbox: decided with the session's first request,
kept, and never changed.

A tool that is added, taken away or worded otherwise breaks the provider's cache from the first byte
on. So what was offered once is said again byte for byte with every later request: after a restart,
in another process, and whatever became of the toolbox. It is kept as notes at the places by which a
line is known again: the prompts that it began with, and its first reply.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b

import msgspec

from hotset import tokens
from hotset.files.lru import Lru
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.link import Link
from hotset.nouns.message import ToolSpec
from hotset.nouns.note import Note, Space
from hotset.nouns.page import ROOT, Chain, Kind, Role
from hotset.nouns.turn import TurnRef
from hotset.sources.port import Scene
from hotset.store.port import Store
from hotset.window.prefetch import asked_in

_OFFER = Space("offer")
"""By the message at which a session is known again."""

_ASKED = 2000  # characters of a prompt that are looked at
_MOST_KNOWN = 2048


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


class ToolOffers:
    """What sessions were offered, in memory and as notes. Safe to use from several threads."""

    def __init__(self) -> None:
        self._known: Lru[Chain, ToolOffer] = Lru(count=_MOST_KNOWN)
        """By the message at which it is kept; nothing for lines that began without."""
        self._warm: Lru[bytes, tuple[ToolOffer, float]] = Lru(count=_MOST_KNOWN)
        """What stands behind a client's tools in the provider's cache, and since when."""

    def decided(self, scene: Scene, *, empty: bool) -> OfferDecision | None:
        """What the model of this request may call; None where that is to be decided now.

        `empty` says that there are no tools to offer.
        """
        chains = beginning(
            (each.chain, each.message.role, each.message.aside) for each in scene.links
        )
        if not chains or (scene.opens and empty):
            return OfferDecision()
        here, lead = chains[-1], _lead(scene)
        sent = scene.table.sent.time if scene.table.sent is not None else None
        place, found = self._kept(chains, scene.store)
        if found is not None and _is_its_own(found, scene, at_end=place == here):
            return _decision(scene, found, here, lead, is_kept=place == here)
        if (not scene.opens and sent is not None) or empty:
            return OfferDecision(NOTHING, here)
        if (shared := self._shared(lead, scene)) is not None:
            return _decision(scene, shared, here, lead)
        return None

    def decide(self, scene: Scene, specs: Sequence[ToolSpec]) -> OfferDecision:
        """The offer of a session that opens, from now on."""
        chains = beginning(
            (each.chain, each.message.role, each.message.aside) for each in scene.links
        )
        offer = ToolOffer(tuple(specs), scene.now, scene.defers)
        return _decision(scene, offer, chains[-1], _lead(scene))

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
        return (self._kept(chains, store)[1] if chains else None) or NOTHING

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

    def _shared(self, lead: bytes, scene: Scene) -> ToolOffer | None:
        """The offer of another session whose client has the same tools, while the provider still
        has both in its cache.

        Other ghosts would fit better and cost more: all that stands behind them would be paid for
        as new.
        """
        offer, used = (self._warm.get(lead) if lead else None) or (None, 0.0)
        is_alike = offer is not None and offer.deferred == scene.defers
        return offer if is_alike and scene.now - used <= scene.price.ttl else None


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


def _decision(
    scene: Scene, offer: ToolOffer, at: Chain, lead: bytes, *, is_kept: bool = False
) -> OfferDecision:
    now = replace(offer, time=scene.now) if scene.opens else offer
    notes = () if is_kept and now is offer else (_note(at, now),)
    return OfferDecision(now, at, lead, scene.opens, notes)


def _is_its_own(found: ToolOffer, scene: Scene, *, at_end: bool) -> bool:
    """Was it made for this session? Another one may have begun with the same words.

    Before the first reply two sessions cannot be told apart, and share an offer as long as the
    provider's cache has it. Behind a reply at which nothing is kept, an offer is this session's
    where it went out with the latest request of this line.
    """
    if scene.opens:
        return not at_end or scene.now - found.time <= scene.price.ttl
    sent = scene.table.sent.time if scene.table.sent is not None else None
    return at_end or sent in (None, found.time)


def _lead(scene: Scene) -> bytes:
    if scene.fixed < scene.price.minimum:
        return b""
    told = blake2b(scene.request.model.encode("utf-8", "replace"), digest_size=16)
    for tool in scene.request.tools:
        told.update(tool.raw)
    return told.digest()
