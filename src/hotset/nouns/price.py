"""What a model costs, and the rules by which its provider caches a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

Amount = Annotated[float, Meta(ge=0)]
Factor = Annotated[float, Meta(ge=1)]
Whole = Annotated[int, Meta(ge=0)]
WholeFromOne = Annotated[int, Meta(ge=1)]


@dataclass(frozen=True, slots=True)
class Price:
    """One model's list price. Factors are in units of its price for an uncached input token."""

    input: Amount
    """Dollars for a million uncached input tokens."""
    output: Amount
    """Dollars for a million output tokens."""
    read: Annotated[float, Meta(ge=0, le=1, extra={"unit": "a share of the input price"})] = 0.1
    """Factor for tokens that the provider had cached; 1 where it caches nothing."""
    write: Factor = 1.25
    """Factor for tokens that the provider caches now; 1 where that costs nothing extra."""
    ttl: Whole = 300
    """Seconds after its last use for which a cached prefix is sure to be there, or may be: behind
    them the cache is cold."""
    write_lasting: Amount = 0.0
    """Factor for tokens cached for longer; 0 where a provider does not sell that."""
    ttl_lasting: Whole = 0
    minimum: Whole = 1024
    """A shorter prefix is not cached at all."""
    step: WholeFromOne = 1
    """A prefix is found in whole steps of so many tokens."""
    lookback: Whole = 0
    """How many blocks before a breakpoint an earlier entry is sought; 0 is any number."""
    window: WholeFromOne = 128_000
    """Tokens of prompt and reply together."""
    longest_reply: WholeFromOne = 16_384
    long_prompt: Whole = 0
    """A prompt of more tokens is dearer as a whole; 0 where none is."""
    long_input: Factor = 1.0
    """What a long prompt multiplies the price of input by, cached or not."""
    long_output: Factor = 1.0
    listed: bool = True
    """True for a published list price; False for a guess, because none is known."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Every price that is known, by patterns of model names: the first that matches wins."""

    listed: tuple[tuple[str, Price], ...]
    """What hotset brings along. The last pattern matches any model."""
    own: tuple[tuple[str, Mapping[str, float]], ...] = ()
    """The user's own values, which override those of the listed price."""
