"""The two tools by which a model reaches any number of others: their schema, and what a call of
them asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hotset.errors import Malformed
from hotset.nouns.tool import FIND_TOOLS
from hotset.window.retrieval_tools import DESCRIPTIONS, NUMBER, TEXT, Fields, decoded, spec

FIND, USE = FIND_TOOLS, "use_tool"
FOUND = 5
"""How many tools are told of where the model does not say."""

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
"""Behind the three of `window.tools`, in the order in which they are offered."""

_MOST_FOUND = 20
_MOST_WORDS = 1000  # characters of a question that are looked at
_MOST_NAME = 200
_MOST_BYTES = 16 << 20  # a file that is written by a tool may be an argument
_FIND_EXAMPLE = 'send {"query": "create a GitHub issue"}'
_USE_EXAMPLE = 'send {"name": "github__create_issue", "arguments": {"title": "..."}}'


@dataclass(frozen=True, slots=True)
class FindCall:
    """What a call of `find_tools` asks for."""

    query: str
    limit: int = FOUND
    only: tuple[str, ...] = ()
    """Names of sources."""


@dataclass(frozen=True, slots=True)
class UseCall:
    """A tool that is to be called."""

    name: str
    arguments: Mapping[str, Any] | str
    """A text where they are no JSON object: whoever knows the tool can say what is wrong."""


def parse_find(arguments: bytes) -> FindCall:
    """Raises `Malformed` with a sentence that tells the model what to send instead."""
    fields = Fields(FIND, decoded(FIND, arguments[:_MOST_BYTES], _FIND_EXAMPLE))
    query = fields.text("query", "q", "question", "task", "description", "intent", "text")[
        :_MOST_WORDS
    ]
    if not re.search(r"\w", query):
        raise Malformed(f"{FIND}: describe what the tool should do; {_FIND_EXAMPLE}")
    limit = fields.number("limit", "most", "max_results", "top_k", "k", "n")
    source = fields.text("source", "server", "only", "group")[:_MOST_NAME]
    return FindCall(query, max(1, min(limit or FOUND, _MOST_FOUND)), (source,) if source else ())


def parse_use(arguments: bytes) -> UseCall:
    """Raises `Malformed` with a sentence that tells the model what to send instead.

    Models put a tool's arguments beside its name, or send them as JSON written twice.
    """
    _bounded(USE, arguments)
    given = dict(decoded(USE, arguments, _USE_EXAMPLE))
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
    return UseCall(name.strip()[:_MOST_NAME], _object(inner))


def parse_direct(name: str, arguments: bytes) -> UseCall:
    """A tool that was called by its own name. Raises `Malformed`."""
    _bounded(name, arguments)
    return UseCall(name, _object(arguments.decode("utf-8", "replace")))


def _bounded(name: str, arguments: bytes) -> None:
    if len(arguments) > _MOST_BYTES:
        raise Malformed(f"{name}: arguments have {len(arguments):,} bytes; at most {_MOST_BYTES:,}")


def _object(given: Any) -> Mapping[str, Any] | str:
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given.strip() or "{}")
        except (ValueError, RecursionError):
            return str(given)
        if isinstance(given, str):  # written as JSON twice
            return _object(given)
    if given is None:
        return {}
    return given if isinstance(given, dict) else msgspec.json.encode(given).decode()
