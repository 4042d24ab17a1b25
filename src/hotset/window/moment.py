"""Inputs of a plan that are not part of the conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from hotset.nouns.handoff import AnyState, HandoffBrief
from hotset.nouns.knobs import Knobs
from hotset.nouns.order import NO_ORDERS, WindowOrders
from hotset.nouns.page import Chain
from hotset.nouns.price import Price
from hotset.window.preview import ContentOrigin, Preview, preview

_SLICE = 2000
"""Tokens that one retrieval returns, about."""

_ASKING = 60
"""Tokens of the call with which a model requests it."""

_OUTPUT = 5.0
"""Price of an output token in input tokens if no price is known: the ratio of most price lists."""


def no_bound() -> None:
    """A check that never raises."""


def unnumbered(_: Chain) -> int:
    """The turn of a message where no store numbers turns."""
    return 0


@dataclass(frozen=True, slots=True)
class Moment:
    now: float
    price: Price
    count: Callable[[bytes], int]
    """Tokens of a text."""
    fixed: int = 0
    """Tokens before the messages: system text and tools."""
    scale: float = 1.0
    """Provider tokens per token of our own count."""
    orders: WindowOrders = NO_ORDERS
    """What a person ordered."""
    messages_stay: bool = False
    """No message leaves, only pages inside messages: every provider's rules allow that."""
    summaries: Mapping[int, str] = field(default_factory=dict)
    """Summaries by the number of the last step they cover."""
    turn_of: Callable[[Chain], int] = unnumbered
    """The turn with which a message arrived, as the store numbers turns; 0 if unknown."""
    most_ghosts: int = 5
    """Limit on ghosts in a session's tool list."""
    hidden_texts: Callable[[], Iterable[str]] = tuple
    """Texts that the model saw and the client did not: an offer may already be in them."""

    brief: Callable[[], HandoffBrief] = HandoffBrief
    """What a state for a successor needs beside the conversation; called if there is one."""
    asked: AnyState | None = None
    """The state with which the program hands this window over; None if it does not."""
    program_decides: bool = False
    """A program is told when to hand over: by itself the window is only if it would overflow."""
    preview: Callable[[str, ContentOrigin, int], Preview | None] = preview
    """Makes the excerpt of a text; whoever plans the same conversation often may remember them."""
    check: Callable[[], None] = no_bound
    """Called in every loop over messages; raises when the plan takes too long."""

    def room(self, knobs: Knobs) -> float:
        """Tokens, by our count, that messages may take before pages have to leave."""
        return knobs.high * knobs.window / self.scale - self.fixed

    def retrieval(self, prompt: int) -> float:
        """Cost of one retrieval with a prompt of `prompt` tokens, in uncached input tokens."""
        price = self.price
        output = price.output / price.input if price.input else _OUTPUT
        return price.read * prompt + price.write * _SLICE + output * _ASKING
