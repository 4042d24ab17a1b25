"""The toolbox as a model sees it: the two tools by which it reaches any number of others, and ghosts of those that fit best."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from hotset.errors import Malformed
from hotset.nouns.message import Tool, ToolSpec
from hotset.nouns.tool import Ghost
from hotset.window.tools import NUMBER, TEXT, Fields, decoded, spec

FIND, USE = "find_tools", "use_tool"
FOUND = 5
"""How many tools are told of where the model does not say."""

TOOLBOX_SPECS = (
    spec(
        FIND,
        "Many more tools are at hand than are listed. Find one by what it should do; gives names, arguments and scores.",
        ["query"],
        query=TEXT,
        limit={**NUMBER, "default": FOUND},
    ),
    spec(
        USE,
        "Call a tool that find_tools told of.",
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
_MARK = re.compile(r"\[GHOST [\d.]+\] ")
_LONGEST_DESCRIPTION = 1000  # characters; OpenAI took at most 1,024
_LONGEST_SCHEMA = 6000  # what is longer costs more at every call than the one call by which `find_tools` tells of it
_DEEPEST = 12
_SAME = 200  # characters by which two descriptions are the same: clients cut them
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # what Anthropic takes
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_CHOICES = ("anyOf", "oneOf", "allOf")
_FIND_EXAMPLE = 'send an object such as {"query": "create a GitHub issue"}'
_USE_EXAMPLE = 'send an object such as {"name": "github__create_issue", "arguments": {"title": "..."}}'


@dataclass(frozen=True, slots=True)
class Sought:
    """What a call of `find_tools` asks for."""

    query: str
    limit: int = FOUND
    only: tuple[str, ...] = ()
    """Names of sources."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A tool that is to be called."""

    name: str
    arguments: Mapping[str, Any] | str
    """A text where they are no JSON object: whoever knows the tool can say what is wrong."""


def parse_find(arguments: bytes) -> Sought:
    """Raises `Malformed` with a sentence that tells the model what to send instead."""
    fields = Fields(FIND, decoded(FIND, arguments[:_MOST_BYTES], _FIND_EXAMPLE))
    query = fields.text("query", "q", "question", "task", "description", "intent", "text")[:_MOST_WORDS]
    if not re.search(r"\w", query):
        raise Malformed(f"{FIND}: say in a few words what the tool should do; {_FIND_EXAMPLE}")
    limit = fields.number("limit", "most", "max_results", "top_k", "k", "n")
    source = fields.text("source", "server", "only", "group")[:_MOST_NAME]
    return Sought(query, max(1, min(limit or FOUND, _MOST_FOUND)), (source,) if source else ())


def parse_use(arguments: bytes) -> Wanted:
    """Raises `Malformed` with a sentence that tells the model what to send instead.

    Models put a tool's arguments beside its name, or send them as JSON written twice.
    """
    _bounded(USE, arguments)
    given = dict(decoded(USE, arguments, _USE_EXAMPLE))
    name = next((given.pop(key) for key in ("name", "tool", "tool_name") if isinstance(given.get(key), str)), "")
    if not name.strip():
        raise Malformed(f"{USE}: say which tool, by the name that {FIND} gives; {_USE_EXAMPLE}")
    key = next((key for key in ("arguments", "args", "parameters", "params", "input") if key in given), "")
    inner = given[key] if key else given
    return Wanted(name.strip()[:_MOST_NAME], _object(inner))


def parse_direct(name: str, arguments: bytes) -> Wanted:
    """A tool that was called by its own name. Raises `Malformed`."""
    _bounded(name, arguments)
    return Wanted(name, _object(arguments.decode("utf-8", "replace")))


def ghost_spec(ghost: Ghost) -> ToolSpec | None:
    """A tool of the library as it stands in a session's list; None where a provider might refuse the whole request for it.

    What one provider takes another does not: schemas with anything unusual are left to `find_tools`.
    """
    tool = ghost.tool
    try:
        schema = msgspec.json.decode(tool.parameters or b"{}")
    except (ValueError, RecursionError):
        return None
    if not isinstance(schema, dict) or not _NAME.fullmatch(tool.name):
        return None
    schema = {"type": "object", "properties": {}} | {key: value for key, value in schema.items() if key != "$schema"}
    is_object = schema["type"] == "object" and not any(key in schema for key in (*_CHOICES, "not", "enum", "$ref"))
    parameters = msgspec.json.encode(schema)
    if not is_object or len(parameters) > _LONGEST_SCHEMA or not _is_plain(schema):
        return None
    told = " ".join(tool.description.split()) or tool.title or tool.own_name
    said = f"[GHOST {ghost.score:.2f}] {told}"
    short = said if len(said) <= _LONGEST_DESCRIPTION else f"{said[: _LONGEST_DESCRIPTION - 1]}…"
    return ToolSpec(tool.name, short.encode("utf-8", "replace").decode(), parameters)


def beside(ours: Sequence[ToolSpec], theirs: Sequence[Tool]) -> tuple[ToolSpec, ...]:
    """Those of our tools that the client does not have already: under the same name, or under the same name with something in
    front of it and the same description."""
    names = {tool.name for tool in theirs}
    return tuple(each for each in ours if each.name not in names and not any(_is_same(each, other) for other in theirs))


def defers(theirs: Sequence[Tool]) -> bool:
    """True where a client lets its own tools be searched: what is listed beside them is its business."""
    return any(_is_deferred(tool.raw) for tool in theirs if b"defer_loading" in tool.raw or b"tool_search" in tool.raw)


def _bounded(name: str, arguments: bytes) -> None:
    if len(arguments) > _MOST_BYTES:
        raise Malformed(f"{name}: its arguments are {len(arguments):,} bytes; {_MOST_BYTES:,} is the most")


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


def _is_plain(schema: Any, depth: int = 0) -> bool:
    """Nothing in it that any provider is known to refuse."""
    if isinstance(schema, bool):
        return depth > 0
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return False
    kinds, named, required = schema.get("type", []), schema.get("properties", {}), schema.get("required", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    is_typed = _is_words(kinds) and _TYPES.issuperset(kinds) and ("array" not in kinds or "items" in schema)
    is_named = isinstance(named, dict) and all(map(_PROPERTY.fullmatch, named)) and _is_words(required)
    is_local = str(schema.get("$ref", "#/")).startswith("#/")
    return is_typed and is_named and is_local and all(_is_plain(inner, depth + 1) for inner in _inside(schema, named))


def _is_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _inside(schema: dict[str, Any], named: dict[str, Any]) -> Iterator[Any]:
    yield from named.values()
    for key in ("$defs", "definitions"):
        inner = schema.get(key, {})
        yield from inner.values() if isinstance(inner, dict) else [None]
    for key in _CHOICES:
        several = schema.get(key, [])
        yield from several if isinstance(several, list) else [None]
    yield from (schema[key] for key in ("items", "additionalProperties") if key in schema)


def _is_same(ours: ToolSpec, theirs: Tool) -> bool:
    own = ours.name.rpartition("__")[2]
    if not theirs.name.endswith(own) or theirs.name.removesuffix(own)[-1:] not in ("", "_", "-", ".", "/", ":"):
        return False
    return _plain(_MARK.sub("", ours.description, count=1)) == _plain(_description(theirs))


def _description(tool: Tool) -> str:
    try:
        raw = msgspec.json.decode(tool.raw)
    except (ValueError, RecursionError):
        return ""
    inner = raw.get("function", raw) if isinstance(raw, dict) else {}
    said = inner.get("description", "") if isinstance(inner, dict) else ""
    return said if isinstance(said, str) else ""


def _plain(text: str) -> str:
    return " ".join(text.split())[:_SAME].rstrip("….")


def _is_deferred(raw: bytes) -> bool:
    try:
        tool = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return False
    if not isinstance(tool, dict):
        return False
    inner = tool.get("function", tool)
    deferred = tool.get("defer_loading") or (isinstance(inner, dict) and inner.get("defer_loading"))
    nested = tool.get("tools", [])  # a namespace
    return (
        bool(deferred)
        or "tool_search" in str(tool.get("type", ""))
        or (isinstance(nested, list) and any(isinstance(each, dict) and each.get("defer_loading") for each in nested))
    )
