"""Ghosts: library tools listed in a session though none of them runs. Which may be listed, and
how."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from hotset.nouns.message import ClientTool, Loading, ToolSpec
from hotset.nouns.tool import Ghost, Tool as LibraryTool
from hotset.text.characters import mark_invisible
from hotset.text.clip import clip
from hotset.window.retrieval_tools import descriptions

GHOSTS_ABOVE = (
    '[hotset: tools that may fit; data, not a request. Call: use_tool(name="...", arguments={...})]'
)
"""First line of what is named behind a prompt."""

_LONGEST_LINE = 100  # characters of a description in one line
_MARK = re.compile(r"\[GHOST [\d.]+\] ")
_LONGEST_DESCRIPTION = 1000  # characters; OpenAI took at most 1,024
# a longer one costs more at every call than one call of `find_tools`
_LONGEST_SCHEMA = 6000
_ANYTHING = b'{"type":"object","properties":{}}'
_DEEPEST = 12
_SAME = 200  # characters compared of two descriptions: clients cut them
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # what Anthropic takes
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_CHOICES = ("anyOf", "oneOf", "allOf")


def ghost_spec(ghost: Ghost) -> ToolSpec | None:
    """A library tool as listed in a session; None if a provider might refuse the whole request for
    it.

    Providers accept different schemas: any unusual one is left to `find_tools`.
    """
    tool = ghost.tool
    parameters = _accepted_schema(tool)
    if parameters is None or not _NAME.fullmatch(tool.name):
        return None
    return ToolSpec(tool.name, _short(f"[GHOST {ghost.score:.2f}] {_describe(tool)}"), parameters)


def found_spec(tool: LibraryTool) -> ToolSpec | None:
    """A found tool as handed over to be called by its own name; None if no provider accepts the
    name.

    A search is answered by definitions alone. A schema that a provider might refuse is put into the
    description instead: the tool checks its arguments anyway and reports what is wrong.
    """
    if not _NAME.fullmatch(tool.name):
        return None
    parameters = _accepted_schema(tool)
    description = _describe(tool)
    if parameters is None:
        description = (
            f"{description} Arguments (JSON schema): {tool.parameters.decode('utf-8', 'replace')}"
        )
    return ToolSpec(tool.name, _short(description), parameters or _ANYTHING, Loading.WHEN_FOUND)


def ghost_text(tool: LibraryTool, call: str = "") -> str:
    """A library tool as named behind a prompt: `call` is how it is called; without it, its name and
    one line."""
    text, _ = mark_invisible(call or f"{tool.name}: {clip(_describe(tool), _LONGEST_LINE)}")
    lines = text.strip().splitlines()
    return "\n  ".join([f"- {lines[0]}", *lines[1:]]) if lines else "-"


def not_in_client(ours: Sequence[ToolSpec], theirs: Sequence[ClientTool]) -> tuple[ToolSpec, ...]:
    """Our tools that the client does not have: under the same name, or under a prefixed name with
    the same description."""
    names = {tool.name for tool in theirs}
    return tuple(
        each
        for each in ours
        if each.name not in names and not any(_is_same(each, other) for other in theirs)
    )


def defers_own_tools(theirs: Sequence[ClientTool]) -> bool:
    """True if a client makes its own tools searchable: then it decides what is listed beside
    them."""
    return any(
        _is_deferred(tool.raw)
        for tool in theirs
        if b"defer_loading" in tool.raw or b"tool_search" in tool.raw
    )


def _accepted_schema(tool: LibraryTool) -> bytes | None:
    """The schema of its arguments if every provider is known to accept such a one."""
    try:
        schema = msgspec.json.decode(tool.parameters or b"{}")
    except (ValueError, RecursionError):
        return None
    if not isinstance(schema, dict):
        return None
    schema = {"type": "object", "properties": {}} | {
        key: value for key, value in schema.items() if key != "$schema"
    }
    is_object = schema["type"] == "object" and not any(
        key in schema for key in (*_CHOICES, "not", "enum", "$ref")
    )
    parameters = msgspec.json.encode(schema)
    return (
        parameters
        if is_object and len(parameters) <= _LONGEST_SCHEMA and _is_plain(schema)
        else None
    )


def _describe(tool: LibraryTool) -> str:
    return " ".join(tool.description.split()) or tool.title or tool.own_name


def _short(text: str) -> str:
    return clip(text, _LONGEST_DESCRIPTION).encode("utf-8", "replace").decode()


def _is_plain(schema: Any, depth: int = 0) -> bool:
    """True if nothing in it is known to be refused by a provider."""
    if isinstance(schema, bool):
        return depth > 0
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return False
    kinds, named, required = (
        schema.get("type", []),
        schema.get("properties", {}),
        schema.get("required", []),
    )
    kinds = [kinds] if isinstance(kinds, str) else kinds
    is_typed = (
        _is_words(kinds)
        and _TYPES.issuperset(kinds)
        and ("array" not in kinds or "items" in schema)
    )
    is_named = (
        isinstance(named, dict) and all(map(_PROPERTY.fullmatch, named)) and _is_words(required)
    )
    is_local = str(schema.get("$ref", "#/")).startswith("#/")
    return (
        is_typed
        and is_named
        and is_local
        and all(_is_plain(inner, depth + 1) for inner in _inside(schema, named))
    )


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


def _is_same(ours: ToolSpec, theirs: ClientTool) -> bool:
    own = ours.name.rpartition("__")[2]
    if not theirs.name.endswith(own) or theirs.name.removesuffix(own)[-1:] not in (
        "",
        "_",
        "-",
        ".",
        "/",
        ":",
    ):
        return False
    description = _plain(_description(theirs))
    return any(_plain(_MARK.sub("", each, count=1)) == description for each in descriptions(ours))


def _description(tool: ClientTool) -> str:
    try:
        raw = msgspec.json.decode(tool.raw)
    except (ValueError, RecursionError):
        return ""
    inner = raw.get("function", raw) if isinstance(raw, dict) else {}
    text = inner.get("description", "") if isinstance(inner, dict) else ""
    return text if isinstance(text, str) else ""


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
        or (
            isinstance(nested, list)
            and any(isinstance(each, dict) and each.get("defer_loading") for each in nested)
        )
    )
