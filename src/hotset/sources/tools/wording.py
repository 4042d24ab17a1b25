"""A tool in words, as it is indexed: readable text without secrets, never JSON. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hotset.index.analysis import split
from hotset.nouns.tool import Origin, Tool
from hotset.sealing import seal

VERSION = 1
"""Another number when the same tool gives other words: all tools are worded anew then."""

_MOST_DESCRIPTION = 2000  # characters; the table's vectors read some 512 tokens of all that is here
_MOST_ARGUMENTS = 64
_MOST_OF_ARGUMENT = 300
_MOST_CHOICES = 16
_MOST_OF_CHOICE = 40
_DEEPEST = 4  # objects in objects: what lies below is about the form of the call, not about the tool
_JOINTS = re.compile(r"[_\-./:|]+")
_NAMELESS = frozenset({Origin.CREATED, Origin.CALLABLE})  # their sources are all called alike and tell nothing


@dataclass(frozen=True, slots=True)
class Wording:
    title: str
    """Its name, in words."""
    text: str
    """Where it comes from, what it does, what it takes."""


def wording(tool: Tool) -> Wording:
    name = _readable(tool.own_name or tool.name)
    shown = "" if _same(tool.title, name) else tool.title
    source = "" if tool.origin in _NAMELESS or _same(tool.source, name) else _readable(tool.source)
    description = tool.description[:_MOST_DESCRIPTION]
    arguments = "; ".join(_arguments(tool.parameters))
    text = "\n".join(part for part in (source, shown, description, arguments) if part)
    return Wording(seal(name).text, seal(text).text)


def _readable(name: str) -> str:
    """`getUserByID` is `get User By ID`, and `create_pull-request` is `create pull request`."""
    return " ".join(_JOINTS.sub(" ", split([name])[0]).split())


def _same(title: str, name: str) -> bool:
    return _readable(title).casefold() == name.casefold()


def _arguments(schema: bytes) -> list[str]:
    try:
        decoded = msgspec.json.decode(schema)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []  # whoever listed it says what is wrong with it; here it is found by its other words
    found = (_argument(name, told) for name, told in _properties(decoded, 0))
    return [each for each, _ in zip(found, range(_MOST_ARGUMENTS), strict=False)]


def _argument(name: str, told: Any) -> str:
    description, choices = "", []
    if isinstance(told, Mapping):
        if isinstance(told.get("description"), str):
            description = told["description"][:_MOST_OF_ARGUMENT]
        if isinstance(told.get("enum"), list):
            choices = [each[:_MOST_OF_CHOICE] for each in told["enum"][:_MOST_CHOICES] if isinstance(each, str)]
    said = ", ".join(part for part in (description, *choices) if part)
    return f"{_readable(name)}: {said}" if said else _readable(name)


def _properties(schema: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Each argument with its schema, and those inside it: behind it, in the schema's own order."""
    if depth > _DEEPEST:
        return
    if isinstance(schema, list):
        for each in schema:
            yield from _properties(each, depth + 1)
    if not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    for name, told in properties.items() if isinstance(properties, Mapping) else ():
        yield name, told
        yield from _properties(told, depth + 1)
    for inside in ("items", "anyOf", "oneOf", "allOf"):
        yield from _properties(schema.get(inside), depth + 1)
    for named in ("$defs", "definitions"):
        told = schema.get(named)
        yield from _properties(list(told.values()) if isinstance(told, Mapping) else None, depth + 1)
