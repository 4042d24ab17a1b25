"""What every dialect can do: bytes to nouns and back, without disk, clock or network."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hotset.dialects.reply import Mark
from hotset.dialects.view import View
from hotset.nouns.link import Link
from hotset.nouns.message import Answer, DialectName, Message, Reply, Request, Tool, ToolSpec
from hotset.nouns.page import Chain
from hotset.nouns.window import Hidden


@dataclass(frozen=True, slots=True)
class Violation:
    """A provider rule that a request breaks."""

    invariant: int
    """Its number in `dialects.invariants.INVARIANTS`."""
    where: str
    """The place in the body, as the provider would write it: `messages.3.content.0`."""
    text: str
    """The provider's own error text, with its gaps filled."""
    about: tuple[str, ...] = ()
    """What it is about, where that has a name: calls by their id, tools by name. It holds where places move."""


class Dialect(Protocol):
    """One wire format. `hotset.testing.check_dialect()` is the contract.

    - `render(parse(body)) == body`, byte for byte, for every body that parses.
    - A message that was not replaced keeps its exact bytes in `render`, wherever others were replaced.
    - Blocks, fields and item types that are not known pass, and become `Kind.OPAQUE` parts where they carry content.
    - `read` never raises: it gives back what came, with `complete=False` where the end is missing.
    - What was reworded, offered or revealed breaks no rule of the provider that the client's own request kept.
    - The same change of the same bytes gives the same bytes, always.
    """

    name: DialectName

    def parse(self, body: bytes) -> Request:
        """Raises `Malformed` for what is not a request of this dialect; nothing else."""
        ...

    def is_quick(self, body: bytes) -> bool:
        """It goes on, by a little, from a body that was read before: to parse it takes a fraction of a millisecond."""
        ...

    def render(self, request: Request) -> bytes: ...

    def read(self, body: bytes, *, streamed: bool) -> Reply:
        """The reply in `body`: a JSON document, or the bytes of an event stream."""
        ...

    def check(self, request: Request, original: Request | None = None) -> tuple[Violation, ...]:
        """Every provider rule that `request` breaks; `original` is what the client sent, for rules about changes."""
        ...

    def refuse(self, status: int, message: str) -> bytes:
        """An error body in this dialect's own form."""
        ...

    def mark(self, name: str, data: bytes) -> Mark:
        """What an event of this name, with these data lines, says about the reply's end. Cheap: it runs for every event."""
        ...

    def understand(self, raw: bytes) -> Message:
        """A message that is new, from its bytes: as `answer` gives them and `Hidden` holds them."""
        ...

    def reword(self, message: Message, words: Mapping[int, bytes]) -> Message:
        """The message with the parts at these positions saying something else; every other byte of it stays, and so does
        whose it is: `essence`, `span`, `role`.

        What tools said can be reworded (an image or an unknown block there becomes a text), what the assistant said, and the
        arguments of its calls, where the new words are a JSON object, or free text where the call takes that. Raises
        `ValueError` for empty words and for every other part: prompts, system texts, thinking, a provider's own blocks.
        """
        ...

    def offer(self, body: bytes, tools: Sequence[ToolSpec]) -> bytes:
        """The body with these tools beside the client's, and nothing else changed; unchanged where the client offers none.
        Raises `ValueError` where a name would come twice."""
        ...

    def withhold(self, body: bytes, unwanted: Callable[[bytes], bool]) -> bytes:
        """The body without those of the client's tools that are `unwanted`, by their JSON, also inside of namespaces; every other
        tool keeps its bytes. A cache mark on the last tool stays on the last one that is left."""
        ...

    def declared(self, tools: Sequence[ToolSpec]) -> tuple[Tool, ...]:
        """These tools as `offer` writes them. Those that load when they are found are among them where the dialect wants that:
        one that has them in its answers leaves them out."""
        ...

    def injectable(self, request: Request, names: Collection[str]) -> bool:
        """True where tools of these names may be offered: the client offers some itself and lets the model choose, wants no
        structured output, is not just probing, and the provider holds no part of the conversation."""
        ...

    def can_defer(self, request: Request) -> bool:
        """True where tools that are found later can be called by their own names, without a change to what the provider has
        cached: the dialect has a form for it, and nothing in the client's request stands in its way."""
        ...

    def answer(self, results: Sequence[Answer]) -> tuple[bytes, ...]:
        """The messages, raw, that answer our own calls."""
        ...

    def referred(self, raw: bytes) -> tuple[str, ...]:
        """The tools that a message of ours made callable, as `answer` gives it and `Hidden` holds it."""
        ...

    def spelled_out(self, raw: bytes, words: Mapping[str, str]) -> bytes:
        """A message of a turn with us, as `Hidden` holds it, for an upstream that cannot defer tools: it says in words what it
        made callable, by the name of each tool. Unchanged where it made nothing callable."""
        ...

    def say(self, text: str) -> Message:
        """A new message of the user's. Raises `ValueError` where there is nothing to say."""
        ...

    def reveal(self, request: Request, links: Sequence[Link], hidden: Mapping[Chain, Hidden]) -> Request:
        """The request with what its client never saw spliced in again.

        `links` are those of the client's own messages, in the order of the request's, which may have been reworded since. It is
        the last change of all: only before it are positions the client's. A request that was changed and revealed is to be held
        against the client's own, revealed: `check(reveal(changed), reveal(own))`.
        """
        ...

    def view(self, ours: Container[str], *, streamed: bool) -> View:
        """What the client sees of a turn in which the model may call these tools of ours; no tool of the client's may bear such
        a name. `streamed` says how the upstream answers."""
        ...


Dialects = Mapping[DialectName, Dialect]
