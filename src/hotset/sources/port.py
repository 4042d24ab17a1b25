"""The interface of a source: history, code, tools and memory reach a conversation through it.

A source knows nothing of the other sources, of the proxy or of the plan. It offers candidates; the
plan decides. A new source needs its own folder and one line in `runtime/machine.py`;
`hotset.testing.check_source` checks it against this contract:

- `offer` never raises because of a conversation's content, returns by `until`, and changes no
  lasting state: the plan may take none of its candidates, or come too late to be used.
- `took` and `heard` are quick: they run while a call waits. They are called for every turn, also if
  nothing was offered.
- A candidate that is taken is sent again with every later request of its session, byte for byte.
- Every method can be called from any thread; `answer` runs on the event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hotset.dialects.port import OwnCall
from hotset.index.port import Index
from hotset.nouns.candidate import Candidate
from hotset.nouns.deposit import Deposit, RequestReceived
from hotset.nouns.knobs import Knobs
from hotset.nouns.link import Link
from hotset.nouns.message import Answer, Reply, Request, ToolSpec
from hotset.nouns.page import ROOT, Chain
from hotset.nouns.price import Price
from hotset.nouns.retrieval import Place, SourceText
from hotset.nouns.search import Query, SourceHits
from hotset.nouns.turn import Event, TurnId, TurnRef
from hotset.nouns.window import Hidden, PageTable
from hotset.store.port import Store

Keep = Callable[[Deposit], Awaitable[bool]]
"""Makes a deposit durable; False if that failed or took too long."""


async def keep_nothing(_: Deposit) -> bool:
    """For a scene without a store."""
    return False


def log_nothing(_: Event) -> None:
    """For a scene without an audit."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a source may know about a request."""

    turn: TurnId
    """The turn's id, before the store has given it a place."""
    request: Request
    links: Sequence[Link]
    """The client's messages with their chains."""
    table: PageTable
    """What the window held before; empty for a conversation that begins anew."""
    hidden: Mapping[Chain, Hidden]
    """Messages that the client never saw, by chain."""
    price: Price
    knobs: Knobs
    now: float
    store: Store
    agent: str = ""
    received: RequestReceived | None = None
    """The request as the store will get it, with what its headers say; None outside of a call."""
    opens: bool = False
    """The model has not replied yet."""
    prompt: str = ""
    """The text of a new prompt, as the user wrote it; empty if the request has none."""
    answered: Link | None = None
    """The reply whose tool calls this request answers with its last messages."""
    offers_tools: bool = True
    """The model may get tools of ours."""
    defers: bool = False
    """The upstream can defer tools."""
    sees: bool = False
    """The model can look at images."""
    left_out: Mapping[str, bytes] = field(default_factory=dict)
    """The client's own tools that its model does not see in the list, by name."""
    fixed: int = 0
    """Tokens of what the client sends before the messages."""
    room: int = 0
    """Tokens that are free, as far as known: for an offer, or for the answer to a call."""
    count: Callable[[bytes], int] = len
    specs: Mapping[str, ToolSpec] = field(default_factory=dict)
    """Our tools in this request, by name."""
    here: Place = field(default_factory=lambda: Place(None))
    """Where a call of our tools is made."""
    keep: Keep = keep_nothing
    log: Callable[[Event], None] = log_nothing
    """Writes an event to the audit at once."""

    @property
    def last(self) -> Link:
        return self.links[-1]

    @property
    def head(self) -> Chain:
        """The message that a reply follows."""
        return next((each.chain for each in reversed(self.links) if not each.message.aside), ROOT)


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The end of a turn, complete or broken off."""

    scene: Scene
    taken: Sequence[Candidate]
    """This source's candidates that were taken."""
    ref: TurnRef | None
    """The turn's place in the store; None if it has none."""
    reply: Reply
    reply_links: Sequence[Link]
    """The reply's messages with their chains; empty if it did not come complete."""
    heard: bool
    """The client got the reply's end."""


class Source(Protocol):
    """A source of candidates, tools and hits. By default a method does nothing."""

    name: str
    tools: tuple[ToolSpec, ...] = ()
    """The tools through which a model reaches it, always the same."""
    standing: bool = False
    """Its offers stay in a session for good, so it is asked with every request and waited for; it
    limits its own searches. Other sources are asked only for new prompts, and late results are
    dropped."""

    every: float = 0.0
    """Seconds between two upkeeps; 0 if it needs none."""

    def warm(self) -> None:
        """Start preparing what the first request needs. Quick: the work is done in the
        background."""
        return

    async def upkeep(self) -> None:
        """Consolidate, decay and sweep in the background. Long work belongs in a thread."""
        return

    def serves_talk(self) -> bool:
        """True if our tools are worth listing in a conversation whose client has none."""
        return False

    def is_quiet(self, *, opens: bool) -> bool:
        """True if `offer` has nothing to look for now, so that it need not be waited for."""
        del opens
        return True

    def seconds(self, scene: Scene) -> float:
        """How long a request may wait for `offer`; 0 if it need not be asked."""
        del scene
        return 0.0

    def offer(self, scene: Scene, until: float) -> Sequence[Candidate]:
        """Candidates that would help with this request, best first. `until` is a time of the
        monotonic clock."""
        del scene, until
        return ()

    def leaves_out(
        self, request: Request, links: Sequence[Link], store: Store, now: float, ttl: float
    ) -> Collection[str]:
        """Names of the client's own tools that this session's model does not see in the list. `ttl`
        is how long the provider's cache has a request's prefix."""
        del request, links, store, now, ttl
        return ()

    def earlier_tools(self, links: Sequence[Link], store: Store) -> Sequence[ToolSpec]:
        """Its tools that the model of this line has had since an earlier request."""
        del links, store
        return ()

    def took(self, scene: Scene, taken: Sequence[Candidate]) -> Sequence[Deposit]:
        """Note that the request goes out with these candidates; returns the deposits to keep with
        the plan."""
        del scene, taken
        return ()

    def owns(self, name: str) -> bool:
        """True for a tool that it answers although no list contains it."""
        del name
        return False

    async def answer(self, call: OwnCall, scene: Scene) -> Answer:
        """Answer a model's call of one of its tools, in `scene.room` tokens."""
        raise LookupError(f"{self.name} has no tool {call.name!r} for {scene.turn}")

    def heard(self, end: TurnEnd) -> Sequence[Deposit]:
        """Note that the reply came or broke off; returns the deposits to keep with it."""
        del end
        return ()

    def find(self, query: Query) -> SourceHits:
        """Hits for a query of a person, a program or a model; `query.deadline` limits it."""
        del query
        return SourceHits()

    def read(self, id: str, store: Store) -> SourceText | None:
        """The text that a model or a person asks for by its id; None if the id is not this
        source's."""
        del id, store
        return None

    def about(self, words: str, here: Place, max_tokens: int) -> SourceText | None:
        """What it knows on a question or a topic beyond the pages of conversations, for a model;
        None if nothing fits."""
        del words, here, max_tokens
        return None

    def was_read(self, id: str, tokens: int, scene: Scene) -> Sequence[Deposit]:
        """Note that a model read this id; returns the deposits to keep if the id is this
        source's."""
        del id, tokens, scene
        return ()

    def follow(self, store: Store, index: Index, until: float) -> int:
        """Index new content; returns how much that was."""
        del store, index, until
        return 0

    async def close(self) -> None:
        """End what it has started. The store and the index are still open."""
        return
