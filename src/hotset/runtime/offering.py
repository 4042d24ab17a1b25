"""What the model of a session may call from the toolbox: decided with the session's first request, kept, and never changed.

A tool that is added, taken away or worded otherwise breaks the provider's cache from the first byte on. So what was offered once
is said again byte for byte with every later request: after a restart, in another process, and whatever became of the toolbox.
It is kept as rows of the page table under names of their own, at the places by which a line is known again: the prompts that it
began with, and its first reply.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from hotset import tokens
from hotset.dialects.view import OWN_SEARCH
from hotset.nouns.link import Link
from hotset.nouns.message import Loading, Request, ToolSpec
from hotset.nouns.page import ROOT, Chain, Kind, Role
from hotset.nouns.price import Price
from hotset.nouns.tool import Ghost, Returned, Tool
from hotset.nouns.window import Hidden, Sent
from hotset.sources.tools.likelihood import UNLIKELY
from hotset.store.port import Store
from hotset.window.ghosts import beside, defers, ghost_spec, speaks_of
from hotset.window.prefetch import asked_in
from hotset.window.toolbox_tools import TOOLBOX_SPECS, USE
from hotset.window.tools import SPECS

if TYPE_CHECKING:
    from hotset.runtime.toolbox import Fitting
    from hotset.sources.tools.catalogue import Known

_K = TypeVar("_K")
_V = TypeVar("_V")

_FITS = 0.5
"""How likely a tool must fit a prompt, beside the likeliest, to stand in the list; none that is unlikely does."""

_SHARE = 0.05
"""Of the window that the ghosts of a session may take."""

_ASKED = 2000  # characters of a prompt that are looked at
_FIND_SECONDS = 0.25
"""How long a first request waits for its ghosts. A search takes ten milliseconds; an index that is being opened takes longer."""

_MOST_KNOWN = 2048
_RESERVED = frozenset(spec.name for spec in (*SPECS, *TOOLBOX_SPECS))


class Used(Protocol):
    """A call of a tool that was made, or one that was not because its arguments were wrong."""

    @property
    def tool(self) -> Tool: ...

    @property
    def returned(self) -> Returned: ...

    @property
    def seconds(self) -> float: ...

    @property
    def ran(self) -> bool: ...

    @property
    def text(self) -> str:
        """What it gave, for a model; what is no text is told by kind and size."""
        ...


class Tools(Protocol):
    """The toolbox, as far as a conversation needs it. Safe to use from any thread."""

    @property
    def empty(self) -> bool:
        """Nothing is in it, and nothing has to be offered. Cheap."""
        ...

    @property
    def ready(self) -> bool:
        """A search takes milliseconds."""
        ...

    def knows(self, name: str) -> bool:
        """Is this the whole name of a tool that could be used? Cheap."""
        ...

    def find(self, query: str, limit: int = 5, only: Sequence[str] = (), *, session: str = "") -> Sequence[Ghost]:
        """The best first. Raises a `HotsetError` for the model to read."""
        ...

    def look_for(self, query: str, limit: int = 5, only: Sequence[str] = (), *, session: str = "") -> Fitting:
        """The same, with what would fit if a person allowed it."""
        ...

    def told(self, ghosts: Sequence[Ghost], max_tokens: int, waiting: Sequence[Known] = ()) -> str:
        """What a model is told of them, and of what waits for a person."""
        ...

    async def use_async(self, name: str, arguments: object, *, session: str = "", query: str = "") -> Used:
        """Raises a `HotsetError` for the model to read."""
        ...


@dataclass(frozen=True, slots=True)
class Offer:
    """Tools beside the three that every session has."""

    tools: tuple[ToolSpec, ...] = ()
    time: float = 0.0
    """Of the request that opened its session."""
    deferred: bool = False
    """What its session finds later is called by its own name (`deferring`): that, too, is decided once."""


NOTHING = Offer()


@dataclass(frozen=True, slots=True)
class Opening:
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
    window: int
    """Tokens that its prompt may have."""
    deferred: bool = False
    """Its upstream can defer tools."""


@dataclass(frozen=True, slots=True)
class Decided:
    offer: Offer = NOTHING
    at: Chain = ROOT
    """The message at which it is known again; `ROOT` where there is nothing to know."""
    lead: bytes = b""
    """What the provider's cache has in front of it; empty where that is too little to be cached."""
    opens: bool = False
    """The session's first reply has still to come."""
    rows: tuple[Hidden, ...] = ()
    """To be kept before the request's own plan is: then whoever finds that finds them too."""
    trouble: str = ""
    """Why there are no ghosts, where that is a fault."""


class Offering:
    """Safe to use from several threads."""

    def __init__(self, tools: Tools | None, ghosts: int, patience: float = 1.0) -> None:
        """`ghosts` is how many tools of the library may stand in a session's list."""
        self.tools = tools
        self._ghosts = ghosts
        self._seconds = _FIND_SECONDS * patience
        self._known: OrderedDict[Chain, Offer] = OrderedDict()
        """By the message at which it is kept; nothing for lines that began without."""
        self._warm: OrderedDict[bytes, tuple[Offer, float]] = OrderedDict()
        """What stands behind a client's tools in the provider's cache, and since when."""
        self._brought: OrderedDict[Chain, float] = OrderedDict()
        """By its last message, the time of a request with which the client brought our tools."""
        self._finding = _Finding()
        self._lock = threading.Lock()

    @property
    def is_quick(self) -> bool:
        """Nothing is to be decided for a session that opens now."""
        return self.tools is None or self.tools.empty

    def of(self, opening: Opening, store: Store) -> Decided:
        """What the model of this request may call."""
        tools = self.tools
        if tools is None or (opening.opens and tools.empty):
            return Decided()
        chains = beginning((each.chain, each.message.role, each.message.aside) for each in opening.links)
        if not chains:
            return Decided()
        here, lead = chains[-1], _lead(opening)
        place, found = self._kept(chains, store)
        if found is not None and _is_its_own(found, opening, at_end=place == here):
            offer, trouble = found, ""
        elif (not opening.opens and opening.sent is not None) or tools.empty:
            return Decided(NOTHING, here)
        elif (shared := self._shared(lead, opening)) is not None:
            offer, trouble = shared, ""
        else:
            offer, trouble = self._decided(opening, tools)
        if opening.opens:
            offer = replace(offer, time=opening.now)
        is_kept = offer is found and place == here
        return Decided(offer, here, lead, opening.opens, () if is_kept else (_row(here, offer),), trouble)

    def went_out(self, decided: Decided, now: float) -> None:
        """A request was sent with this, and what has to be kept of it was handed over."""
        if not decided.at:
            return
        with self._lock:
            _put(self._known, decided.at, decided.offer)
            if decided.lead and decided.offer.tools:
                _put(self._warm, decided.lead, (decided.offer, now))

    def kept(self, links: Sequence[Link], store: Store) -> Offer:
        """What was offered to the session of these messages; nothing where it was not decided yet."""
        chains = beginning((each.chain, each.message.role, each.message.aside) for each in links)
        return (self._kept(chains, store)[1] if self.tools is not None and chains else None) or NOTHING

    def brought(self, head: Chain, now: float) -> Hidden:
        """The row that says of a request that the model got our tools from its client, over MCP."""
        with self._lock:
            _put(self._brought, head, now)
        return Hidden(_brought_name(head), instead=msgspec.json.encode(now))

    def was_brought(self, sent: Sent, store: Store) -> bool:
        """True if the model got our tools from its client with this request."""
        with self._lock:
            known = self._brought.get(sent.head)
        name = _brought_name(sent.head)
        if known is None and (row := store.table([name]).hidden.get(name)) is not None:
            known = msgspec.json.decode(row.instead, type=float)
        return known == sent.time

    def replied(self, links: Sequence[Link], reply: Sequence[Link], offer: Offer) -> Hidden | None:
        """A session's first reply has come. From now on the session is known by that, whoever began with the same words."""
        line = [(each.chain, each.message.role, each.message.aside) for each in (*links, *reply)]
        before, now = beginning(line[: len(links)]), beginning(line)
        if not offer.tools or len(now) <= len(before):
            return None
        with self._lock:
            _put(self._known, now[-1], offer)
        return _row(now[-1], offer)

    def _kept(self, chains: Sequence[Chain], store: Store) -> tuple[Chain, Offer | None]:
        """The offer at the deepest of these places, and which that is."""
        with self._lock:
            if (known := self._known.get(chains[-1])) is not None:
                return chains[-1], known
        return kept_offer(chains, store.table(names(chains)).hidden)

    def _shared(self, lead: bytes, opening: Opening) -> Offer | None:
        """The offer of another session whose client has the same tools, while the provider still has both in its cache.

        Other ghosts would fit better and cost more: all that stands behind them would be paid for as new.
        """
        with self._lock:
            offer, used = self._warm.get(lead, (None, 0.0)) if lead else (None, 0.0)
        is_alike = offer is not None and offer.deferred == opening.deferred
        return offer if is_alike and opening.now - used <= opening.price.ttl else None

    def _decided(self, opening: Opening, tools: Tools) -> tuple[Offer, str]:
        found, trouble = self._found(opening, tools)
        theirs = opening.request.tools
        asked = prompt_in(opening.links)
        least = max(UNLIKELY, _FITS * max((each.score for each in found), default=0.0))
        fit = (each for each in found if each.score >= least and speaks_of(asked, each.tool))
        fitting = {made.name: made for each in fit if (made := ghost_spec(each))}
        room = round(_SHARE * opening.window)
        ghosts: list[ToolSpec] = []
        for made in beside([made for name, made in fitting.items() if name not in _RESERVED], theirs)[: self._ghosts]:
            room -= weigh(made)
            if room < 0:
                break
            ghosts.append(made)
        return Offer((*beside(TOOLBOX_SPECS, theirs), *ghosts), opening.now, opening.deferred), trouble

    def _found(self, opening: Opening, tools: Tools) -> tuple[Sequence[Ghost], str]:
        query = prompt_in(opening.links)
        if not self._ghosts or not tools.ready or not query or defers(opening.request.tools):
            return (), ""
        return self._finding.run(lambda: tools.find(query, 2 * self._ghosts), self._seconds)


@dataclass(slots=True)
class Ours:
    """The names of tools that we answer: those that were offered, and any of the toolbox where the client has none of that name.

    Some models call by its name what they have only read about. What a name was once, it stays for the turn.
    """

    listed: frozenset[str]
    theirs: frozenset[str]
    tools: Tools | None
    """None where the session may not use the toolbox."""
    _seen: dict[str, bool] = field(default_factory=dict)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        if name not in self._seen:
            hidden = self.tools is not None and "__" in name and name not in self.theirs and self.tools.knows(name)
            self._seen[name] = name in self.listed or hidden
        return self._seen[name]

    def also(self, names: Iterable[str]) -> None:
        """These were found, and can be called."""
        self._seen |= dict.fromkeys(names, True)


def ours(specs: Sequence[ToolSpec], request: Request, tools: Tools | None) -> Ours:
    listed = frozenset(spec.name for spec in specs)
    searches = frozenset({OWN_SEARCH} if any(spec.loading is Loading.FINDS for spec in specs) else ())
    return Ours(listed | searches, frozenset(tool.name for tool in request.tools), tools if USE in listed else None)


def beginning(line: Iterable[tuple[Chain, Role, bool]]) -> list[Chain]:
    """The messages by which a line is known again, of messages with their role, and whether they are asides: up to its first
    reply."""
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


def names(chains: Sequence[Chain]) -> list[Chain]:
    """Where offers are kept in the page table."""
    return [_name(chain) for chain in chains]


def kept_offer(chains: Sequence[Chain], rows: Mapping[Chain, Hidden]) -> tuple[Chain, Offer | None]:
    """The offer at the deepest of these places, and which that is; `rows` are those under their `names`."""
    row = next(((chain, rows[name]) for chain in reversed(chains) if (name := _name(chain)) in rows), None)
    return (row[0], _read(row[1])) if row is not None else (chains[-1], None)


@lru_cache(maxsize=1024)
def weigh(spec: ToolSpec) -> int:
    """Tokens."""
    return tokens.count(spec.parameters) + tokens.count(spec.description) + tokens.count(spec.name)


def prompt_in(links: Sequence[Link]) -> str:
    """What the user asked last, in its own words."""
    for each in reversed(links):
        said = [part.content.decode("utf-8", "replace") for part in each.message.parts if part.kind is Kind.PROMPT]
        if text := asked_in("\n".join(said)).strip():
            return text[:_ASKED]
    return ""


class _Kept(msgspec.Struct, omit_defaults=True):
    time: float
    tools: list[tuple[str, str, str]]
    deferred: bool = False


def _row(chain: Chain, offer: Offer) -> Hidden:
    told = [(each.name, each.description, each.parameters.decode()) for each in offer.tools]
    return Hidden(_name(chain), instead=msgspec.json.encode(_Kept(offer.time, told, offer.deferred)))


def _read(row: Hidden) -> Offer | None:
    try:
        kept = msgspec.json.decode(row.instead, type=_Kept)
    except msgspec.DecodeError:
        return None
    specs = (ToolSpec(name, description, parameters.encode()) for name, description, parameters in kept.tools)
    return Offer(tuple(specs), kept.time, kept.deferred)


def _name(chain: Chain) -> Chain:
    return Chain(f"offer:{chain}")


def _brought_name(chain: Chain) -> Chain:
    return Chain(f"brought:{chain}")


def _is_its_own(found: Offer, opening: Opening, *, at_end: bool) -> bool:
    """Was it made for this session? Another one may have begun with the same words.

    Before the first reply two sessions cannot be told apart, and share an offer as long as the provider's cache has it. Behind a
    reply at which nothing is kept, an offer is this session's where it went out with the latest request of this line.
    """
    if opening.opens:
        return not at_end or opening.now - found.time <= opening.price.ttl
    return at_end or opening.sent in (None, found.time)


def _lead(opening: Opening) -> bytes:
    if opening.fixed < opening.price.minimum:
        return b""
    told = blake2b(opening.request.model.encode("utf-8", "replace"), digest_size=16)
    for tool in opening.request.tools:
        told.update(tool.raw)
    return told.digest()


def _put(memory: OrderedDict[_K, _V], key: _K, value: _V) -> None:
    memory[key] = value
    memory.move_to_end(key)
    while len(memory) > _MOST_KNOWN:
        memory.popitem(last=False)


class _Finding:
    """One search at a time, that a request waits for a moment and no longer."""

    def __init__(self) -> None:
        self._busy = threading.Lock()

    def run(self, find: Callable[[], Sequence[Ghost]], seconds: float) -> tuple[Sequence[Ghost], str]:
        """What was found, and why nothing could be."""
        if not self._busy.acquire(blocking=False):
            return (), ""  # an earlier one hangs: this one would only wait behind it
        came: SimpleQueue[Any] = SimpleQueue()

        def work() -> None:
            try:
                came.put(find())
            except Exception as error:  # fail open: the session begins without ghosts, and can search for tools itself
                came.put(error)
            finally:
                self._busy.release()

        threading.Thread(target=work, name="hotset-ghosts", daemon=True).start()
        try:
            found = came.get(timeout=seconds)
        except Empty:
            return (), "looking for tools took too long"
        return ((), f"a fault of ours in finding tools: {type(found).__name__}") if isinstance(found, Exception) else (found, "")
