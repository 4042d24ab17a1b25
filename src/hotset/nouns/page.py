"""A page: one piece of content with an identity, and the place where it occurred."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

PageId = NewType("PageId", str)
"""`p` and 15 hex digits, made from the session, the chain and the position: the same page gets the
same id on any machine."""

SessionId = NewType("SessionId", str)

Digest = NewType("Digest", str)
"""SHA-256 of content, in hex: the address of a blob."""

Chain = NewType("Chain", str)
"""A message's identity: the hash of its essence and its parent's chain. `ROOT` is the parent of a
first message."""

ROOT = Chain("")


def digest(content: bytes) -> Digest:
    return Digest(hashlib.sha256(content).hexdigest())


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Kind(StrEnum):
    """What a page is. Some kinds are a special case of another: see `family`."""

    SYSTEM = "system"
    PROMPT = "prompt"
    RESPONSE = "response"
    THINKING = "thinking"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    FILE = "file"
    WEB_FETCH = "web_fetch"
    PAPER = "paper"
    TEST_RESULT = "test_result"
    AGENT_MESSAGE = "agent_message"
    PLAN = "plan"
    FINDING = "finding"
    IMAGE = "image"
    OPAQUE = "opaque"
    """A block of a type that hotset does not know; it passes and is kept as it is."""

    @property
    def family(self) -> Kind:
        """The wire-level kind this one is a special case of (a file that a tool read is a tool
        result)."""
        return _FAMILY.get(self, self)


_FAMILY = {
    Kind.FILE: Kind.TOOL_RESULT,
    Kind.WEB_FETCH: Kind.TOOL_RESULT,
    Kind.PAPER: Kind.TOOL_RESULT,
    Kind.TEST_RESULT: Kind.TOOL_RESULT,
    Kind.AGENT_MESSAGE: Kind.TOOL_RESULT,
    Kind.PLAN: Kind.TOOL_CALL,
}


def including(kind: Kind) -> frozenset[Kind]:
    """The kind itself and every special case of it: what a filter by `kind` finds."""
    return frozenset({kind, *(special for special, family in _FAMILY.items() if family is kind)})


@dataclass(frozen=True, slots=True)
class Page:
    """One occurrence of a piece of content. The same text in two places is two pages of one
    blob."""

    id: PageId
    session: SessionId
    agent: str
    turn: int
    """The number of the turn, from 1, with which the page first arrived."""
    branch: int
    """0 is the line a session began with; each edit, rewind or fork opens the next."""
    kind: Kind
    role: Role
    parent: PageId | None
    """The page right before it in its lineage."""
    digest: Digest
    """The address of its content."""
    size: int
    """Bytes of content."""
    media: str
    time: float
    """Unix seconds at which it arrived. Order comes from the store's sequence, never from this."""
    chain: Chain
    """The message it is a part of; `ROOT` for pages that came outside of any message."""
    position: int
    """Its place among the parts of that message."""
    tool: str = ""
    call: str = ""
    """The provider's tool call id, on calls and their results."""


@dataclass(frozen=True, slots=True)
class Gist:
    """What a page is about, by rules alone: derived from its content, can be made again at any
    time."""

    page: PageId
    tokens: int
    """An estimate; providers count differently."""
    keywords: tuple[str, ...]
    entities: tuple[str, ...]
    files: tuple[str, ...]
