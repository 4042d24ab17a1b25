"""What sending a prompt costs, and when rewriting a cached prefix pays. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import fnmatchcase
from math import inf

from hotset.nouns.message import Usage
from hotset.nouns.price import Price, Prices

__all__ = [
    "Price",
    "Prices",
    "break_even",
    "charge",
    "dollars",
    "lasting",
    "pays",
    "price_of",
    "units",
]

_MILLION = 1_000_000
_WILD = re.compile(r"[*?\[]")
"""Where the part of a pattern ends that stands for itself."""


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


def lasting(price: Price) -> Price:
    """The same model with the longer-lived cache, where its provider sells one."""
    return (
        replace(price, write=price.write_lasting, ttl=price.ttl_lasting)
        if price.ttl_lasting
        else price
    )


def break_even(price: Price, behind: int, evicted: int, *, cold: bool = False) -> float:
    """Calls left, the present one included, above which it pays to evict so many tokens with so
    many behind them.

    Evicting saves `read` for each evicted token at every call, and makes each token behind them
    cost `write` instead of `read` once: it pays for n > (write - read) / read x behind / evicted.
    """
    if evicted <= 0:
        return inf
    extra = (price.write - price.read) * behind
    if cold or extra <= 0:
        return 0.0
    saved = price.read * evicted
    return extra / saved if saved else inf


def pays(price: Price, behind: int, evicted: int, calls_left: float, *, cold: bool = False) -> bool:
    """Whether evicting costs less than reading it on."""
    return calls_left > break_even(price, behind, evicted, cold=cold)


def charge(price: Price, prompt: int, kept: int, *, cold: bool = False) -> Usage:
    """How a prompt is billed whose first `kept` tokens are as they were at the last call, cached up
    to its end."""
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
    """What the tokens of so many calls cost."""
    long_input, long_output = _long(price, usage, calls)
    return (
        _weighed(price, usage) * price.input * long_input
        + usage.output * price.output * long_output
    ) / _MILLION


def units(price: Price, usage: Usage, calls: int = 1) -> float:
    """The same, where 1 is one uncached input token of a prompt that is not long."""
    long_input, long_output = _long(price, usage, calls)
    output = price.output / price.input if price.input else 0.0
    return _weighed(price, usage) * long_input + usage.output * output * long_output


def _weighed(price: Price, usage: Usage) -> float:
    return usage.input + usage.cache_read * price.read + usage.cache_write * price.write


def _long(price: Price, usage: Usage, calls: int) -> tuple[float, float]:
    """The factors of a long prompt. A turn of several calls is as long as its calls are on
    average."""
    prompt = usage.prompt / max(1, calls)
    return (
        (price.long_input, price.long_output)
        if price.long_prompt and prompt > price.long_prompt
        else (1.0, 1.0)
    )


def _spellings(model: str, upstream: str) -> tuple[str, ...]:
    """The names under which a model may be listed: `anthropic/claude-opus-4.5` and Bedrock's dots
    are `claude-opus-4-5` too."""
    name = model.lower()
    bare = name.rpartition("/")[2]
    if (at := bare.find("claude")) >= 0:
        bare = bare[at:].replace(".", "-")
    return f"{upstream}/{name}", name, bare


def _matches(pattern: str, names: tuple[str, ...]) -> bool:
    # Nearly every pattern is ruled out by how it begins: to make an expression of each would take a
    # first call 30 ms.
    lead = _WILD.split(pattern, maxsplit=1)[0]
    return any(name.startswith(lead) and fnmatchcase(name, pattern) for name in names)
