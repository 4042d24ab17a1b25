"""What sending a prompt costs. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import fnmatchcase

from hotset.files.lru import memo
from hotset.nouns.price import Price, Prices
from hotset.nouns.usage import Usage

__all__ = ["Price", "Prices", "charge", "dollars", "price_of", "units"]

_MILLION = 1_000_000
_WILD = re.compile(r"[*?\[]")
"""Ends the literal beginning of a pattern."""


def price_of(model: str, prices: Prices, upstream: str = "") -> Price:
    """The price of a model: the user's own values over the listed ones. A pattern may also name an
    upstream: `groq/*`."""
    names = _spellings(model, upstream)
    price = next(price for pattern, price in prices.listed if _matches(pattern, names))
    own = next((values for pattern, values in prices.own if _matches(pattern, names)), None)
    if own is None:
        return price
    known = price.listed or "input" in own
    return replace(price, listed=known, **own)  # type: ignore[arg-type]  # the values were checked where they were read


def charge(price: Price, prompt: int, kept: int, *, cold: bool = False) -> Usage:
    """The usage of a prompt whose first `kept` tokens are those of the last call, cached up to its
    end."""
    if prompt < price.minimum or price.read >= 1:
        return Usage(input=prompt)
    read = 0 if cold else min(kept, prompt) // price.step * price.step
    if read < price.minimum:
        read = 0
    rest = prompt - read
    return (
        Usage(cache_read=read, input=rest)
        if price.write == 1
        else Usage(cache_read=read, cache_write=rest)
    )


def dollars(price: Price, usage: Usage, calls: int = 1) -> float:
    """The cost of the tokens of `calls` calls."""
    long_input, long_output = _long(price, usage, calls)
    return (
        _weighed(price, usage) * price.input * long_input
        + usage.output * price.output * long_output
    ) / _MILLION


def units(price: Price, usage: Usage, calls: int = 1) -> float:
    """The cost in uncached input tokens of a prompt that is not long."""
    long_input, long_output = _long(price, usage, calls)
    output = price.output / price.input if price.input else 0.0
    return _weighed(price, usage) * long_input + usage.output * output * long_output


def _weighed(price: Price, usage: Usage) -> float:
    more = max(0.0, price.write_lasting - price.write) if price.write_lasting else 0.0
    written = usage.cache_write * price.write + usage.lasting * more
    return usage.input + usage.cache_read * price.read + written


def _long(price: Price, usage: Usage, calls: int) -> tuple[float, float]:
    """The factors for a long prompt. The length of a turn with several calls is their average."""
    prompt = usage.prompt / max(1, calls)
    return (
        (price.long_input, price.long_output)
        if price.long_prompt and prompt > price.long_prompt
        else (1.0, 1.0)
    )


def _spellings(model: str, upstream: str) -> tuple[str, ...]:
    """Names under which a model may be listed: `anthropic/claude-opus-4.5` and Bedrock's dots are
    also `claude-opus-4-5`."""
    name = model.lower()
    bare = name.rpartition("/")[2]
    if (at := bare.find("claude")) >= 0:
        bare = bare[at:].replace(".", "-")
    return f"{upstream}/{name}", name, bare


@memo("price patterns", 512)
def _lead(pattern: str) -> str:
    return _WILD.split(pattern, maxsplit=1)[0]


def _matches(pattern: str, names: tuple[str, ...]) -> bool:
    # The literal beginning rules out nearly every pattern: compiling each would take the first call
    # 30 ms.
    lead = _lead(pattern)
    return any(name.startswith(lead) and fnmatchcase(name, pattern) for name in names)
