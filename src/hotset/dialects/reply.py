"""What the replies of every dialect have in common: errors, usage, and the choice between a document and a stream."""

from __future__ import annotations

from collections.abc import Callable
from enum import Flag, auto
from typing import Any

from hotset.dialects import wire
from hotset.errors import Malformed
from hotset.nouns.message import Message, Reply, Usage

Understand = Callable[[bytes], Message]
"""A message from its bytes, as the dialect reads those that a client sends."""


Reader = Callable[[bytes, Understand], Reply]


class Mark(Flag):
    """What an event of a stream says about the reply's end."""

    NONE = 0
    """Nothing: a ping, a count of tokens, or not an event of this dialect."""
    MORE = auto()
    """The reply goes on: text, or a call."""
    STOP = auto()
    """How the reply ended. Counts and an end mark may follow."""
    LAST = auto()
    """Nothing follows."""


def read(body: bytes, understand: Understand, document: Reader, stream: Reader, *, streamed: bool) -> Reply:
    """Never raises. An error answers a streaming request with a JSON document."""
    reader = stream if streamed and not body.lstrip().startswith(b"{") else document
    try:
        return reader(body, understand)
    except (RecursionError, Malformed):
        return Reply()  # nested as deep as Python can go: nothing a provider says


def error_of(tree: dict[str, Any]) -> str:
    """The most precise name a provider gives to its error: a code, else a type. Empty where there is no error."""
    error = tree.get("error")
    if isinstance(error, str):
        return error
    if not isinstance(error, dict):
        return ""
    details = wire.as_object(error.get("details"))
    named = (details.get("error_code"), error.get("code"), error.get("type"), error.get("status"))
    return next((str(name) for name in named if isinstance(name, str | int) and name), "error")


def openai_usage(tree: Any, total: str, details: str, output: str) -> Usage:
    """OpenAI counts cached tokens into its total; Anthropic and we do not."""
    usage = wire.as_object(tree)
    inside = wire.as_object(usage.get(details))
    read = wire.as_count(inside.get("cached_tokens"))
    write = wire.as_count(inside.get("cache_write_tokens"))
    fresh = max(0, wire.as_count(usage.get(total)) - read - write)
    return Usage(fresh, read, write, wire.as_count(usage.get(output)))


def openai_refusal(status: int, message: str) -> bytes:
    kind = _OPENAI_ERRORS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    said = wire.encode_text(message).decode()
    return wire.encode({"error": {"message": said, "type": kind, "param": None, "code": None}})


_OPENAI_ERRORS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
