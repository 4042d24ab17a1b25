"""A request that continues a reply which its provider remembers, where that reply had rounds that the client did not see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hotset.dialects import wire
from hotset.dialects.port import Dialect
from hotset.dialects.splice import fields, splice
from hotset.nouns.message import Request

_FIELD = "previous_response_id"


def resumed(request: Request, dialect: Dialect, previous: str, before: Sequence[bytes]) -> bytes:
    """The body with another reply to continue, and with these items before the client's own. Nothing else changes."""
    said = tuple(dialect.understand(raw) for raw in before)
    body = dialect.render(replace(request, messages=(*said, *request.messages))) if said else request.raw
    return splice(body, [(fields(body)[_FIELD].value, wire.encode(previous))])
