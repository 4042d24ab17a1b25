"""The port of a source: history, code, tools and memory reach a conversation through these doors.

A source knows nothing of the other sources, of the proxy or of the plan. What it offers are
candidates; the plan decides. Adding a source touches its own folder and one line in
`runtime/machine.py`; `hotset.testing.check_source` holds it to this contract:

- `offer` never raises for what a conversation holds, returns by `until`, and changes nothing that
  lasts: the plan may take none of its candidates, or come too late to be used.
- `took` and `heard` are quick: they run while a call waits. They are given every turn, also one
  for which nothing was offered.
- A candidate that is taken is sent again with every later request of its session, byte for byte.
- Every door can be used from any thread; `answer` runs on the event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hotset.dialects.port import OwnCall
from hotset.index.port import Index
from hotset.nouns.candidate import Candidate
from hotset.nouns.deposit import Deposit
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
"""Makes something durable; False where that failed, or took too long."""


async def keep_nothing(_: Deposit) -> bool:
    """For a scene without a store."""
    return False


def log_nothing(_: Event) -> None:
    """For a scene without an audit."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a source may know of a request."""

    turn: TurnId
    """The turn's name, before the store has given it a place."""
    request: Request
    links: Sequence[Link]
    """The client's messages at their places."""
    table: PageTable
    """What the window held before; empty for a conversation that begins anew."""
    hidden: Mapping[Chain, Hidden]
    """What the client never saw of it."""
    price: Price
    knobs: Knobs
    now: float
    store: Store
    agent: str = ""
    opens: bool = False
    """Nobody has replied yet."""
    prompt: str = ""
    """What a new prompt asks, in the user's own words; empty where the request brings none."""
    answered: Link | None = None
    """The reply whose calls this request answers with its last messages."""
    offers_tools: bool = True
    """The model may be given tools of ours."""
    defers: bool = False
    """The upstream can defer tools."""
    sees: bool = False
    """The model can look at images."""
    fixed: int = 0
    """Tokens of what the client has in front of the messages."""
    room: int = 0
    """Tokens that are free, as far as it is known: for an offer, or for the answer to a call."""
    count: Callable[[bytes], int] = len
    specs: Mapping[str, ToolSpec] = field(default_factory=dict)
    """Our tools in this request, by name."""
    here: Place = field(default_factory=lambda: Place(None))
    """Where a call of our tools is made."""
    keep: Keep = keep_nothing
    log: Callable[[Event], None] = log_nothing
    """Tells the audit of something at once."""

    @property
    def last(self) -> Link:
        return self.links[-1]

    @property
    def head(self) -> Chain:
        """The message that a reply follows."""
        return next((each.chain for each in reversed(self.links) if not each.message.aside), ROOT)


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """A turn came to its end, or broke off."""

    scene: Scene
    taken: Sequence[Candidate]
    """Of this source's candidates."""
    ref: TurnRef | None
    """The turn's place in the store; None where it has none."""
    reply: Reply
    said: Sequence[Link]
    """The reply's messages at their places; empty where it did not come whole."""
    heard: bool
    """The client got the reply's end."""


class Source(Protocol):
    """A place that things come from. A door that a source does not have does nothing."""

    name: str
    tools: tuple[ToolSpec, ...] = ()
    """Tools that a model reaches it by, always the same."""
    standing: bool = False
    """What it offered to a session stands there for good, so it is asked with every request and
    waited for; it bounds its own searches. Other sources are asked only for new prompts, and what
    comes too late is left out."""

    every: float = 0.0
    """Seconds between two upkeeps; 0 where it needs none."""

    def warm(self) -> None:
        """Begins to make ready what the first request needs. Quick: the work is done elsewhere."""
        return

    async def upkeep(self) -> None:
        """Consolidates, decays and sweeps in the background. Long work belongs in a thread."""
        return

    def is_quiet(self, *, opens: bool) -> bool:
        """True if `offer` has nothing to look for now, so that it need not be waited for."""
        del opens
        return True

    def seconds(self, scene: Scene) -> float:
        """How long a request may wait for `offer`."""
        del scene
        return 0.0

    def offer(self, scene: Scene, until: float) -> Sequence[Candidate]:
        """What would help with this request, best first. `until` is a time of the monotonic
        clock."""
        del scene, until
        return ()

    def stands(self, links: Sequence[Link], store: Store) -> Sequence[ToolSpec]:
        """Its tools that the model of this line has had since an earlier request."""
        del links, store
        return ()

    def took(self, scene: Scene, taken: Sequence[Candidate]) -> Sequence[Deposit]:
        """The request goes out with these of its candidates; what is to be kept with the plan."""
        del scene, taken
        return ()

    def owns(self, name: str) -> bool:
        """True for a tool that it answers although no list names it."""
        del name
        return False

    async def answer(self, call: OwnCall, scene: Scene) -> Answer:
        """Answers a model's call of one of its tools, in `scene.room` tokens."""
        raise LookupError(f"{self.name} has no tool {call.name!r} for {scene.turn}")

    def heard(self, end: TurnEnd) -> Sequence[Deposit]:
        """The reply came or broke off; what is to be kept with it."""
        del end
        return ()

    def find(self, query: Query) -> SourceHits:
        """What it has on a question, for a person, a program or a model; `query.deadline` bounds
        it."""
        del query
        return SourceHits()

    def read(self, id: str, store: Store) -> SourceText | None:
        """What a model or a person asks for by its id; None where it is not this source's."""
        del id, store
        return None

    def was_read(self, id: str, tokens: int, scene: Scene) -> Sequence[Deposit]:
        """A model read what has this id; what is to be kept of that where it is this source's."""
        del id, tokens, scene
        return ()

    def follow(self, store: Store, index: Index, until: float) -> int:
        """Brings what is new into the index; how much that was."""
        del store, index, until
        return 0

    async def close(self) -> None:
        """Ends what it has started. The store and the index are still open."""
        return
