"""The two tools with which a model reaches any number of others: their schemas, and the parsers of
their calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hotset.errors import Malformed
from hotset.nouns.tool import FIND_TOOLS
from hotset.window.retrieval_tools import DESCRIPTIONS, NUMBER, TEXT, Fields, decode_arguments, spec

FIND, USE = FIND_TOOLS, "use_tool"
FOUND = 5
"""Number of tools returned if the model gives no limit."""

TOOLBOX_SPECS = (
    spec(
        FIND,
        DESCRIPTIONS[FIND][0],
        ["query"],
        query=TEXT,
        limit={**NUMBER, "default": FOUND},
        source={**TEXT, "description": "only this server or skill"},
    ),
    spec(
        USE,
        DESCRIPTIONS[USE][0],
        ["name", "arguments"],
        name=TEXT,
        arguments={"type": "object"},
    ),
)
"""In the order in which they are offered, after the three of `window.retrieval_tools`."""

_MOST_FOUND = 20
_MOST_WORDS = 1000  # characters read of a question
_MOST_NAME = 200
_MOST_BYTES = 16 << 20  # a file's content may be an argument
_FIND_EXAMPLE = 'send {"query": "create a GitHub issue"}'
_USE_EXAMPLE = 'send {"name": "github__create_issue", "arguments": {"title": "..."}}'


@dataclass(frozen=True, slots=True)
class FindCall:
    """The request in a call of `find_tools`."""

    query: str
    limit: int = FOUND
    only: tuple[str, ...] = ()
    """Names of sources."""


@dataclass(frozen=True, slots=True)
class UseCall:
    """A tool to call, with its arguments."""

    name: str
    arguments: Mapping[str, Any] | str
    """A text if they are not a JSON object: the tool can report what is wrong."""


def parse_find(arguments: bytes) -> FindCall:
    """The request in a `find_tools` call. Raises `Malformed` with a message that tells the model
    what to send instead."""
    fields = Fields(FIND, decode_arguments(FIND, arguments[:_MOST_BYTES], _FIND_EXAMPLE))
    query = fields.text("query", "q", "question", "task", "description", "intent", "text")[
        :_MOST_WORDS
    ]
    if not re.search(r"\w", query):
        raise Malformed(f"{FIND}: describe what the tool should do; {_FIND_EXAMPLE}")
    limit = fields.number("limit", "most", "max_results", "top_k", "k", "n")
    source = fields.text("source", "server", "only", "group")[:_MOST_NAME]
    return FindCall(query, max(1, min(limit or FOUND, _MOST_FOUND)), (source,) if source else ())


def parse_use(arguments: bytes) -> UseCall:
    """The request in a `use_tool` call. Raises `Malformed` with a message that tells the model what
    to send instead.

    Models put a tool's arguments beside its name, or send them as JSON encoded twice.
    """
    _check_size(USE, arguments)
    given = dict(decode_arguments(USE, arguments, _USE_EXAMPLE))
    name = next(
        (
            given.pop(key)
            for key in ("name", "tool", "tool_name")
            if isinstance(given.get(key), str)
        ),
        "",
    )
    if not name.strip():
        raise Malformed(f"{USE}: give a name from {FIND}; {_USE_EXAMPLE}")
    key = next(
        (key for key in ("arguments", "args", "parameters", "params", "input") if key in given), ""
    )
    inner = given[key] if key else given
    return UseCall(name.strip()[:_MOST_NAME], _parse_object(inner))


def parse_direct(name: str, arguments: bytes) -> UseCall:
    """A call of a tool by its own name. Raises `Malformed`."""
    _check_size(name, arguments)
    return UseCall(name, _parse_object(arguments.decode("utf-8", "replace")))


def _check_size(name: str, arguments: bytes) -> None:
    if len(arguments) > _MOST_BYTES:
        raise Malformed(f"{name}: arguments have {len(arguments):,} bytes; at most {_MOST_BYTES:,}")


def _parse_object(given: Any) -> Mapping[str, Any] | str:
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given.strip() or "{}")
        except (ValueError, RecursionError):
            return str(given)
        if isinstance(given, str):  # written as JSON twice
            return _parse_object(given)
    if given is None:
        return {}
    return given if isinstance(given, dict) else msgspec.json.encode(given).decode()
