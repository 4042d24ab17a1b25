"""The `Dialect` protocol: bytes to nouns and back, without disk, clock or network."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any, Protocol

from hotset.dialects.hand_over import HandOver
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
"""Listed among the names of our tools if we answer the provider's own tool search. No tool has this
name."""


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call of one of our tools."""

    id: str
    name: str
    arguments: bytes
    """As the model wrote them: not necessarily JSON."""
    searches: bool = False
    """True for a call of the provider's own tool search, which is answered by tools and not by
    text."""


@dataclass(frozen=True, slots=True)
class Round:
    """One upstream reply of a turn, as the model wrote it."""

    calls: tuple[OwnCall, ...] = ()
    foreign: bool = False
    """True if it also calls tools that only the client can run: the turn is the client's."""
    raws: tuple[bytes, ...] = ()
    """The model's messages, whole, in the form in which they are sent back upstream."""
    usage: Usage = field(default_factory=Usage)
    complete: bool = False
    stop: str = ""
    id: str = ""
    """The provider's id of the reply. The last round's id refers to what the provider stored of the
    whole turn."""

    @property
    def asks(self) -> bool:
        """True if the model waits for our answers and for nothing else: the turn can go on."""
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
"""The reply ended before the model was done: its last call may be incomplete, and going on is the
client's decision."""


class TurnView(Protocol):
    """What a client sees of one turn.

    - A turn without a call of ours is relayed byte for byte, each event as soon as it is whole; its
      end waits for `close`.
    - Our calls are hidden, and so is the number of rounds.
    - A reply that breaks off breaks off for the client too: a missing end is never invented.
    """

    @property
    def ended(self) -> bool:
        """True once this round's end mark has arrived; nothing after it matters."""

    @property
    def stopped(self) -> bool:
        """True once this round's stop reason has arrived and no answer of ours is awaited; only
        counts and an end mark may follow."""

    def take(self, chunk: bytes) -> bytes:
        """Pass in bytes of the upstream's reply; returns the bytes for the client now. After
        `round`, they belong to the next round."""

    def round(self) -> Round:
        """End the current round: the upstream's reply ended or broke off. Called once for each."""

    def close(self) -> bytes:
        """End the turn with the latest round. Returns the remaining bytes for the client."""

    def fail(self, status: int, body: bytes) -> bytes:
        """The upstream refused a later round or broke off in it. Returns what the client gets
        instead of the rest."""

    @property
    def pulse(self) -> bytes:
        """Bytes that keep a waiting client connected and carry no content; empty if the form has
        none."""

    def hidden(
        self, answers: Sequence[Sequence[bytes]], links: Sequence[Link]
    ) -> tuple[Hidden, ...]:
        """What later requests need restored, for each message that the client will send again.

        `answers` are the raw messages that answered each round, as far as rounds were answered;
        `links` are the messages that `dialect.read` finds in what the client saw, each at its
        place. Empty if the client saw nothing of the turn.
        """


class Mark(Flag):
    """What an event of a stream reveals about the reply's end."""

    NONE = 0
    """Nothing: a ping, a count of tokens, or not an event of this dialect."""
    MORE = auto()
    """The reply goes on: text, or a call."""
    STOP = auto()
    """The stop reason. Counts and an end mark may follow."""
    LAST = auto()
    """The last event."""


@dataclass(frozen=True, slots=True)
class Invariant:
    """A provider rule that a changed request must never break."""

    number: int
    provider: str
    rule: str
    text: str
    """The provider's error text for a violation, with placeholders."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A provider rule that a request breaks."""

    invariant: int
    """Its number in `dialects.INVARIANTS`."""
    where: str
    """The place in the body, as the provider would write it: `messages.3.content.0`."""
    text: str
    """The provider's own error text, filled in."""
    about: tuple[str, ...] = ()
    """Ids of calls or names of tools that it is about. Unlike places, these do not move."""


@dataclass(frozen=True, slots=True)
class Deferral:
    """The models for which a provider documents deferred tools; we can answer its search for
    them."""

    host: str
    models: re.Pattern[str]
    source: str
    """The provider's documentation, and when it was read."""


@dataclass(frozen=True, slots=True)
class ClientMarks:
    """The cache marks that a client set."""

    fixed: int = 0
    """On its tools and system texts."""
    inside: Mapping[int, int] = field(default_factory=dict)
    """On its messages, by their index; a mark for the whole request counts behind the last one."""
    lasting: frozenset[int] = frozenset()
    """The indexes of those that ask for the longer time to live."""

    @property
    def count(self) -> int:
        return self.fixed + sum(self.inside.values())


class MarkMessage(Protocol):
    def __call__(self, message: Message, *, lasting: bool) -> Message | None: ...


class MarkFixed(Protocol):
    def __call__(self, body: bytes, *, lasting: bool) -> bytes: ...


@dataclass(frozen=True, slots=True)
class CacheMarking:
    """How a provider is told where its cache of a prompt may end."""

    most: int
    """Marks in one request, the client's included."""
    read: Callable[[Request], ClientMarks]
    mark_message: MarkMessage
    """The message with a mark at its end, and nothing else changed; None if it cannot carry
    one."""
    mark_fixed: MarkFixed
    """The body with a mark at the end of what precedes the messages; unchanged if there is no
    place for one."""
    lengthen_fixed: Callable[[bytes], bytes]
    """The body with the longer time to live in the client's marks there."""


class Dialect(Protocol):
    """One wire format: a package whose `__init__` has these names. `hotset.testing.check_dialect()`
    is the contract.

    - `render(parse(body)) == body`, byte for byte, for every body that parses.
    - A message that was not replaced keeps its exact bytes in `render`, even if others were
      replaced.
    - Unknown blocks, fields and item types pass, and become `Kind.OPAQUE` parts if they carry
      content.
    - `read` never raises: it returns what arrived, with `complete=False` if the end is missing.
    - Rewording, offering and revealing break no rule of the provider that the client's own request
      kept.
    - The same change of the same bytes always gives the same bytes.
    """

    name: DialectName
    title: str
    """The API's name in a sentence for people: "Anthropic's Messages"."""
    provider: str
    """The upstream whose own API it is; prices are listed under that name."""
    path: str
    """Path of the endpoint below the version: `/chat/completions`."""
    endpoint: str
    """The same behind the provider's base URL, which may end before the version: `/v1/messages`."""
    models: tuple[str, ...]
    """Words in the names of models that are mostly used through it."""
    invariants: tuple[Invariant, ...]
    """The rules that `check` applies."""
    reply_field: str
    """A document without this field is not a reply."""
    defaults: Mapping[str, Any]
    """Fields of a request that the library composes, unless the program sets them."""
    deferral: Deferral | None
    """Where its provider accepts deferred tools; None if the dialect has no form for them."""
    marking: CacheMarking | None
    """How the provider's cache is marked; None if the provider caches by itself."""
    carries_images: bool
    """True if tool results can contain images."""
    previous_field: str
    """The field by which a request continues a reply that the provider stored under an id; empty if
    there is none."""

    def parse(self, body: bytes) -> Request:
        """Raises `Malformed`, and nothing else, if `body` is not a request of this dialect."""

    def is_quick(self, body: bytes) -> bool:
        """True if `body` extends a cached body by a little: parsing it takes a fraction of a
        millisecond."""

    def render(self, request: Request) -> bytes: ...

    def read(self, body: bytes, *, streamed: bool) -> Reply:
        """The reply in `body`: a JSON document, or the bytes of an event stream."""

    def check(self, request: Request, original: Request | None = None) -> tuple[Violation, ...]:
        """Every provider rule that `request` breaks; `original` is what the client sent, for rules
        about changes."""

    def refuse(self, status: int, message: str) -> bytes:
        """An error body in this dialect's own form."""

    def mark(self, name: str, data: bytes) -> Mark:
        """What an event with this name and data reveals about the reply's end. Cheap: it runs for
        every event."""

    def understand(self, raw: bytes) -> Message:
        """Parse a new message from its bytes, as `answer` returns and `Hidden` stores them."""

    def reword(self, message: Message, words: Mapping[int, bytes]) -> Message:
        """The message with other content for the parts at these positions; all other bytes,
        `essence`, `span` and `role` stay.

        Tool results can be reworded (an image or an unknown block there becomes a text), the
        assistant's texts, and the arguments of its calls, if the new words are a JSON object, or
        free text if the call takes that. Raises `ValueError` for empty words and for every other
        part: prompts, system texts, thinking, a provider's own blocks.
        """

    def offer(self, body: bytes, tools: Sequence[ToolSpec]) -> bytes:
        """The body with these tools added to the client's, and nothing else changed; unchanged if
        the client offers none. Raises `ValueError` for a duplicate name."""

    def withhold(self, body: bytes, unwanted: Callable[[bytes], bool]) -> bytes:
        """The body without those of the client's tools that are `unwanted`, by their JSON, also
        inside namespaces; every other tool keeps its bytes. A cache mark on the last tool moves to
        the last one left."""

    def declare(self, tools: Sequence[ToolSpec]) -> tuple[ClientTool, ...]:
        """These tools as `offer` writes them. Tools that load when found are left out if the
        dialect lists them in its answers."""

    def injectable(self, request: Request, names: Collection[str]) -> bool:
        """True if tools with these names may be offered: the client offers some itself and lets the
        model choose, wants no structured output, is not just probing, and the provider stores no
        part of the conversation."""

    def can_defer(self, request: Request, /) -> bool:
        """True if tools that are found later can be called by name without a change to the
        provider's cached prefix: the dialect has a form for it and nothing in the client's request
        prevents it."""

    def answer(self, results: Sequence[Answer]) -> tuple[bytes, ...]:
        """The raw messages that answer our own calls."""

    def loaded_tools(self, raw: bytes, /) -> tuple[str, ...]:
        """The tools that a message of ours made callable, as `answer` returns and `Hidden` stores
        it."""

    def spell_out(self, raw: bytes, words: Mapping[str, str], /) -> bytes:
        """A message of a turn with us, as `Hidden` stores it, for an upstream that cannot defer
        tools: the tools that it made callable are described in words. Unchanged if there are
        none."""

    def say(self, text: str) -> Message:
        """A new user message. Raises `ValueError` for an empty text."""

    def reveal(
        self, request: Request, links: Sequence[Link], hidden: Mapping[Chain, Hidden]
    ) -> Request:
        """The request with the turns that its client never saw spliced in again.

        `links` are those of the client's own messages, in the order of the request's, which may
        have been reworded since. It is the last change: only before it do positions match the
        client's. Check a changed and revealed request against the client's own, revealed:
        `check(reveal(changed), reveal(own))`.
        """

    def view(
        self, ours: Container[str], *, streamed: bool, hand_over: HandOver | None = None
    ) -> TurnView:
        """What the client sees of a turn in which the model may call these tools of ours; no tool
        of the client's may have one of these names. `streamed` tells how the upstream answers.
        Calls that `hand_over` resolves are the client's, under its own tool's name."""

    def compose(self, system: Any, messages: Sequence[Any]) -> dict[str, Any]:
        """The fields of a body that hold a conversation; no system text if `system` is empty."""

    def length_field(self, upstream: str, /) -> str:
        """The field that limits the length of a reply, as this upstream knows it."""

    def headers(self, key: str) -> Headers:
        """Headers for a call of our own; without credentials if there is no key."""

    def claims(self, message: Mapping[str, Any]) -> bool:
        """True if the fields or blocks of a message identify this dialect."""

    def reply_messages(self, document: Mapping[str, Any]) -> list[Any] | None:
        """The messages in a reply, as a client would send them back; None if the document is not a
        reply of this dialect."""


Dialects = Mapping[DialectName, Dialect]
