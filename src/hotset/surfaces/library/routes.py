"""Which dialect a client speaks at a URL, as data."""

from __future__ import annotations

from collections.abc import Mapping

from hotset.config import Upstream
from hotset.nouns.message import DialectName

UPSTREAMS = {
    DialectName.OPENAI_CHAT: "openai",
    DialectName.OPENAI_RESPONSES: "openai",
    DialectName.ANTHROPIC: "anthropic",
}
"""Whose dialect it is: the name under which its prices are known."""

PATHS = {
    DialectName.OPENAI_CHAT: "/v1/chat/completions",
    DialectName.OPENAI_RESPONSES: "/v1/responses",
    DialectName.ANTHROPIC: "/v1/messages",
}

_ENDINGS = {
    "/chat/completions": DialectName.OPENAI_CHAT,
    "/responses": DialectName.OPENAI_RESPONSES,
    "/v1/messages": DialectName.ANTHROPIC,  # with its version: `/threads/ID/messages` is another thing
}
"""Gateways put all kinds of things before these."""


def dialect_of(method: str, path: str) -> DialectName | None:
    """None where the call is not a turn of a conversation."""
    spoken = (name for ending, name in _ENDINGS.items() if path.endswith(ending))
    return next(spoken, None) if method == "POST" else None


def upstream_of(url: str, dialect: DialectName, upstreams: Mapping[str, Upstream]) -> str:
    """The name of the upstream that the configuration has for a URL; otherwise that of the dialect's own provider."""
    named = (name for name, upstream in upstreams.items() if url.startswith(f"{upstream.url}/"))
    return next(named, UPSTREAMS[dialect])
