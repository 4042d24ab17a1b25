"""What holds while a plan is made and is not part of the conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from hotset.nouns.knobs import Knobs
from hotset.nouns.page import Chain
from hotset.nouns.price import Price

_SLICE = 2000
"""Tokens that a retrieval brings back."""

_ASKING = 60
"""Tokens that a model writes to ask for it."""

_OUTPUT = 5.0
"""What a token of a reply costs, in tokens of a prompt, where no price is known: the ratio of most
lists."""


def no_bound() -> None:
    """A check that never raises."""


@dataclass(frozen=True, slots=True)
class Moment:
    now: float
    price: Price
    count: Callable[[bytes], int]
    """Tokens of a text."""
    fixed: int = 0
    """Tokens of what stands before the messages: system text and tools."""
    scale: float = 1.0
    """How many tokens the provider counts for one of ours."""
    pinned: frozenset[Chain] = frozenset()
    """Messages whose steps never leave."""
    messages_stay: bool = False
    """No message leaves, only pages in them: what a provider's rules always allow."""
    summaries: Mapping[int, str] = field(default_factory=dict)
    """What was written about the steps up to a number, by that number."""
    most_ghosts: int = 5
    """Ghosts that a session's tool list may hold."""
    hidden_texts: Callable[[], Iterable[str]] = tuple
    """What the model saw and the client did not, for offers that may stand there already."""

    check: Callable[[], None] = no_bound
    """Called in every loop over messages: raises where the plan takes too long."""

    def room(self, knobs: Knobs) -> float:
        """Tokens, as we count them, that messages may take before pages have to leave."""
        return knobs.high * knobs.window / self.scale - self.fixed

    def retrieval(self, prompt: int) -> float:
        """What one retrieval costs beside a prompt of so many tokens, in uncached input tokens."""
        price = self.price
        output = price.output / price.input if price.input else _OUTPUT
        return price.read * prompt + price.write * _SLICE + output * _ASKING
