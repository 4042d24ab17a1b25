"""A message at its place in a lineage: what it says, and what it follows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hotset.nouns.message import Message
from hotset.nouns.page import Chain, Digest


@dataclass(frozen=True, slots=True)
class Link:
    """A message with its place in the lineage."""

    message: Message
    parent: Chain
    chain: Chain


def chain(parent: Chain, message: Message) -> Chain:
    """A message's identity. An aside never has the identity of a message that is built upon."""
    return derive(parent, message.essence, aside=message.aside)


@lru_cache(maxsize=1 << 14)  # a client sends its whole history with every call
def derive(parent: Chain, essence: Digest, *, aside: bool) -> Chain:
    """The same from the fields of a node's row: this is how a store checks its lineage."""
    mark = "aside" if aside else "message"
    return Chain(hashlib.sha256(f"{parent}\0{mark}\0{essence}".encode()).hexdigest())


def link(base: Chain, messages: Sequence[Message]) -> Iterator[Link]:
    parent = base
    for message in messages:
        here = chain(parent, message)
        yield Link(message, parent, here)
        if not message.aside:
            parent = here
