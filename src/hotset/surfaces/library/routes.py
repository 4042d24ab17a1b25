"""Which dialect a client speaks at a URL."""

from __future__ import annotations

from collections.abc import Mapping

from hotset.config import Upstream
from hotset.nouns.message import DialectName
from hotset.runtime.wire import DIALECTS


def dialect_of(method: str, path: str) -> DialectName | None:
    """None where the call is not a turn of a conversation. Gateways put all kinds of things before
    an endpoint."""
    spoken = (name for name, each in DIALECTS.items() if path.endswith(each.endpoint))
    return next(spoken, None) if method == "POST" else None


def upstream_of(url: str, dialect: DialectName, upstreams: Mapping[str, Upstream]) -> str:
    """The name of the upstream that the configuration has for a URL; otherwise that of the
    dialect's own provider."""
    named = (name for name, upstream in upstreams.items() if url.startswith(f"{upstream.url}/"))
    return next(named, DIALECTS[dialect].provider)
