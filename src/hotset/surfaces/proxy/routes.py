"""Which upstream and which dialect a path means, as data."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hotset.nouns.call import Headers, header
from hotset.nouns.message import DialectName
from hotset.runtime.wire import DIALECTS

_CONVERSATIONS = {each.path: (each.provider, name) for name, each in DIALECTS.items()}
"""Below the version prefix; everything else passes through unread."""

_ANTHROPIC_ONLY = ("/messages", "/complete", "/organizations", "/skills")
_NAMED = "/to/"
"""`/to/NAME/v1/...` goes to the upstream of that name."""


@dataclass(frozen=True, slots=True)
class Route:
    upstream: str
    path: str
    """What is appended to the upstream's URL."""
    dialect: DialectName | None


def route(method: str, path: str, headers: Headers, upstreams: Collection[str]) -> Route | None:
    """Where a call goes; None where it names an upstream that there is not."""
    named = ""
    if path.startswith(_NAMED):
        named, _, rest = path.removeprefix(_NAMED).partition("/")
        path = "/" + rest
        if named not in upstreams:
            return None
    below = path.removeprefix("/v1") if path == "/v1" or path.startswith("/v1/") else path
    upstream, dialect = _CONVERSATIONS.get(below) or ("", None)
    upstream = named or upstream or ("anthropic" if _speaks_anthropic(below, headers) else "openai")
    # The Anthropic base URL ends before the version, every other one behind it.
    target = f"/v1{below}" if upstream == "anthropic" and below != path else below
    return Route(upstream, target, dialect if method == "POST" else None)


def _speaks_anthropic(below: str, headers: Headers) -> bool:
    return below.startswith(_ANTHROPIC_ONLY) or bool(
        header(headers, b"anthropic-version") or header(headers, b"x-api-key")
    )
