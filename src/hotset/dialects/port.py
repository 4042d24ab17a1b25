"""What every dialect can do: bytes to nouns and back, without disk, clock or network."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any, Protocol

from hotset.nouns.call import Headers
from hotset.nouns.link import Link
from hotset.nouns.message import (
    Answer,
    ClientTool,
    DialectName,
    Message,
    Reply,
    Request,
    ToolSpec,
    Usage,
)
from hotset.nouns.page import Chain
from hotset.nouns.window import Hidden

OWN_SEARCH = ":tool_search"
"""Stands among the names of our tools where the provider's own search for tools is ours to answer.
No tool is called so."""


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call of one of our tools."""

    id: str
    name: str
    arguments: bytes
    """As the model wrote them: not necessarily JSON."""
    searches: bool = False
    """It is a call of the provider's own search for tools, which is answered by tools and not by
    words."""


@dataclass(frozen=True, slots=True)
class Round:
    """One upstream reply of a turn, as the model said it."""

    calls: tuple[OwnCall, ...] = ()
    foreign: bool = False
    """It also calls tools that only the client can run: the turn is the client's."""
    raws: tuple[bytes, ...] = ()
    """The model's messages, whole, in the form in which they are sent back upstream."""
    usage: Usage = field(default_factory=Usage)
    complete: bool = False
    stop: str = ""
    id: str = ""
    """The provider's own name for it. Of the last round it names what the provider remembers of the
    whole turn."""

    @property
    def asks(self) -> bool:
        """The model waits for our answers, and for nothing else: the turn can go on."""
        return (
            self.complete and bool(self.calls) and not self.foreign and self.stop not in _CUT_SHORT
        )


_CUT_SHORT = frozenset(
    {
        "max_tokens",
        "model_context_window_exceeded",
        "pause_turn",
        "refusal",
        "length",
        "content_filter",
        "max_output_tokens",
    }
)
"""The reply ended before the model was done: its last call may be half a call, and to go on is the
client's decision."""


class TurnView(Protocol):
    """What a client sees of one turn.

    - A turn without a call of ours is relayed byte for byte, each event as soon as it is whole; its
      end waits for `close`.
    - Nothing is shown of our calls, nor that there was more than one round.
    - What breaks off breaks off for the client too: an end that did not come is never made up.
    """

    @property
    def ended(self) -> bool:
        """The mark that ends this round's stream has come; what may come behind it says nothing
        more."""

    @property
    def stopped(self) -> bool:
        """How this round ended has come, and no answer of ours is awaited; only counts and an end
        mark may follow."""

    def take(self, chunk: bytes) -> bytes:
        """Bytes of the upstream's reply as they come, to bytes for the client now. After `round`:
        of the next round."""

    def round(self) -> Round:
        """The upstream's reply has ended, or broke off. Called once for each."""

    def close(self) -> bytes:
        """The turn is over with the latest round: the rest of what the client gets of it."""

    def fail(self, status: int, body: bytes) -> bytes:
        """The upstream refused a later round, or broke off in it: what the client gets instead of
        the rest."""

    @property
    def pulse(self) -> bytes:
        """What shows a waiting client that the turn goes on and says nothing; empty where the form
        has no such thing."""

    def hidden(
        self, answers: Sequence[Sequence[bytes]], links: Sequence[Link]
    ) -> tuple[Hidden, ...]:
        """What later requests must be given back, for each message that the client will send again.

        `answers` are the raw messages that answered each round, as far as rounds were answered;
        `links` the messages that `dialect.read` finds in what the client saw, each at its place.
        Nothing where the client saw nothing of the turn.
        """


class Mark(Flag):
    """What an event of a stream says about the reply's end."""

    NONE = 0
    """Nothing: a ping, a count of tokens, or not an event of this dialect."""
    MORE = auto()
    """The reply goes on: text, or a call."""
    STOP = auto()
    """How the reply ended. Counts and an end mark may follow."""
    LAST = auto()
    """Nothing follows."""


@dataclass(frozen=True, slots=True)
class Invariant:
    """A provider rule that a changed request must never break."""

    number: int
    provider: str
    rule: str
    text: str
    """The provider's error text when it is broken, with gaps."""
    codes: tuple[str, ...] = ()
    """Error codes that mean this rule and no other."""
    pattern: str = ""
    """What its error text looks like; the wording may change, so codes come first."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A provider rule that a request breaks."""

    invariant: int
    """Its number in `dialects.INVARIANTS`."""
    where: str
    """The place in the body, as the provider would write it: `messages.3.content.0`."""
    text: str
    """The provider's own error text, with its gaps filled."""
    about: tuple[str, ...] = ()
    """What it is about, where that has a name: calls by their id, tools by name. It holds where
    places move."""


@dataclass(frozen=True, slots=True)
class Deferral:
    """What a provider takes deferred tools for, by its own word; its search for them can be
    ours."""

    host: str
    models: re.Pattern[str]
    source: str
    """Where that is written, and when it was read."""


class Dialect(Protocol):
    """One wire format: a package whose `__init__` has these names. `hotset.testing.check_dialect()`
    is the contract.

    - `render(parse(body)) == body`, byte for byte, for every body that parses.
    - A message that was not replaced keeps its exact bytes in `render`, wherever others were
      replaced.
    - Blocks, fields and item types that are not known pass, and become `Kind.OPAQUE` parts where
      they carry content.
    - `read` never raises: it gives back what came, with `complete=False` where the end is missing.
    - What was reworded, offered or revealed breaks no rule of the provider that the client's own
      request kept.
    - The same change of the same bytes gives the same bytes, always.
    """

    name: DialectName
    title: str
    """The API's name in a sentence for people: "Anthropic's Messages"."""
    provider: str
    """The upstream whose own API it is; its prices are known by that name."""
    path: str
    """Where a conversation is sent, below the version: `/chat/completions`."""
    endpoint: str
    """The same behind the provider's base URL, which may end before the version: `/v1/messages`."""
    models: tuple[str, ...]
    """Words in the names of models that are most often spoken to in it."""
    invariants: tuple[Invariant, ...]
    """The rules that `check` applies."""
    reply_field: str
    """The field without which a document is no reply."""
    defaults: Mapping[str, Any]
    """Fields of a request that the library composes, where the program says nothing else."""
    deferral: Deferral | None
    """Where its provider takes deferred tools; None where the dialect has no form for them."""
    carries_images: bool
    """Its results of tools can have images."""
    previous_field: str
    """The field by which a request continues a reply that the provider remembers by an id; empty
    where it has none."""

    def parse(self, body: bytes) -> Request:
        """Raises `Malformed` for what is not a request of this dialect; nothing else."""

    def is_quick(self, body: bytes) -> bool:
        """It goes on, by a little, from a body that was read before: to parse it takes a fraction
        of a millisecond."""

    def render(self, request: Request) -> bytes: ...

    def read(self, body: bytes, *, streamed: bool) -> Reply:
        """The reply in `body`: a JSON document, or the bytes of an event stream."""

    def check(self, request: Request, original: Request | None = None) -> tuple[Violation, ...]:
        """Every provider rule that `request` breaks; `original` is what the client sent, for rules
        about changes."""

    def refuse(self, status: int, message: str) -> bytes:
        """An error body in this dialect's own form."""

    def mark(self, name: str, data: bytes) -> Mark:
        """What an event of this name, with these data lines, says about the reply's end. Cheap: it
        runs for every event."""

    def understand(self, raw: bytes) -> Message:
        """A message that is new, from its bytes: as `answer` gives them and `Hidden` holds them."""

    def reword(self, message: Message, words: Mapping[int, bytes]) -> Message:
        """The message with the parts at these positions saying something else; every other byte of
        it stays, and so does whose it is: `essence`, `span`, `role`.

        What tools said can be reworded (an image or an unknown block there becomes a text), what
        the assistant said, and the arguments of its calls, where the new words are a JSON object,
        or free text where the call takes that. Raises `ValueError` for empty words and for every
        other part: prompts, system texts, thinking, a provider's own blocks.
        """

    def offer(self, body: bytes, tools: Sequence[ToolSpec]) -> bytes:
        """The body with these tools beside the client's, and nothing else changed; unchanged where
        the client offers none. Raises `ValueError` where a name would come twice."""

    def withhold(self, body: bytes, unwanted: Callable[[bytes], bool]) -> bytes:
        """The body without those of the client's tools that are `unwanted`, by their JSON, also
        inside of namespaces; every other tool keeps its bytes. A cache mark on the last tool stays
        on the last one that is left."""

    def declared(self, tools: Sequence[ToolSpec]) -> tuple[ClientTool, ...]:
        """These tools as `offer` writes them. Those that load when they are found are among them
        where the dialect wants that: one that has them in its answers leaves them out."""

    def injectable(self, request: Request, names: Collection[str]) -> bool:
        """True where tools of these names may be offered: the client offers some itself and lets
        the model choose, wants no structured output, is not just probing, and the provider holds no
        part of the conversation."""

    def can_defer(self, request: Request, /) -> bool:
        """True where tools that are found later can be called by their own names, without a change
        to what the provider has cached: the dialect has a form for it, and nothing in the client's
        request stands in its way."""

    def answer(self, results: Sequence[Answer]) -> tuple[bytes, ...]:
        """The messages, raw, that answer our own calls."""

    def referred(self, raw: bytes, /) -> tuple[str, ...]:
        """The tools that a message of ours made callable, as `answer` gives it and `Hidden` holds
        it."""

    def spelled_out(self, raw: bytes, words: Mapping[str, str], /) -> bytes:
        """A message of a turn with us, as `Hidden` holds it, for an upstream that cannot defer
        tools: it says in words what it made callable, by the name of each tool. Unchanged where it
        made nothing callable."""

    def say(self, text: str) -> Message:
        """A new message of the user's. Raises `ValueError` where there is nothing to say."""

    def reveal(
        self, request: Request, links: Sequence[Link], hidden: Mapping[Chain, Hidden]
    ) -> Request:
        """The request with what its client never saw spliced in again.

        `links` are those of the client's own messages, in the order of the request's, which may
        have been reworded since. It is the last change of all: only before it are positions the
        client's. A request that was changed and revealed is to be held against the client's own,
        revealed: `check(reveal(changed), reveal(own))`.
        """

    def view(self, ours: Container[str], *, streamed: bool) -> TurnView:
        """What the client sees of a turn in which the model may call these tools of ours; no tool
        of the client's may bear such a name. `streamed` says how the upstream answers."""

    def compose(self, system: Any, messages: Sequence[Any]) -> dict[str, Any]:
        """The fields of a body that hold a conversation; no system text where `system` is empty."""

    def length_field(self, upstream: str, /) -> str:
        """The field that bounds the length of a reply, as this upstream knows it."""

    def headers(self, key: str) -> Headers:
        """What a call of our own carries; without credentials where there is no key."""

    def claims(self, message: Mapping[str, Any]) -> bool:
        """True for a message that tells by its fields or blocks that it is of this dialect."""

    def said_in(self, document: Mapping[str, Any]) -> list[Any] | None:
        """The messages in a reply, as a client would send them back; None where the document is no
        reply of this dialect."""


Dialects = Mapping[DialectName, Dialect]
