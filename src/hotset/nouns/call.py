"""One HTTP exchange: what a client asked for, and what an upstream answered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from hotset.nouns.message import DialectName

Headers = tuple[tuple[bytes, bytes], ...]
"""In the order and with the bytes in which they came."""


def header(headers: Headers, name: bytes) -> str:
    """The first value of a header, or nothing; `name` in lower case."""
    for key, value in headers:
        if key == name or key.lower() == name:
            return value.decode("latin-1")
    return ""


@dataclass(frozen=True, slots=True)
class ClientCall:
    method: str
    path: str
    """Below the upstream's URL, still percent-encoded, with its query."""
    headers: Headers
    body: bytes | AsyncIterator[bytes]
    """Bytes where we hold it whole; otherwise it streams through."""
    upstream: str
    dialect: DialectName | None
    """Set where the call is a turn of a conversation; None passes through unread."""
    unread: str = ""
    """Why a call that could have been read is passed through unread."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Headers
    chunks: AsyncIterator[bytes]
    """As they come; raises `UpstreamFailed` where the upstream broke off."""
