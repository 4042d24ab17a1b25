"""Arguments that a server wants to see in headers, too: which of them its schema marks, and what the headers say. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

_MARK = "x-mcp-header"
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PLAIN = re.compile(r"[\x20-\x7e]*")
_WRAPPED = re.compile(r"=\?base64\?.*\?=")
_TYPES = ("string", "integer", "boolean")  # the protocol forbids numbers: no two languages write one alike
_WIDEST = 4096  # bits; Python refuses to write out numbers far beyond that

Mirrors = Mapping[tuple[str, ...], str]
"""The way to an argument through the schema's properties -> the end of its header's name."""


def mirrors(schema: Any) -> Mirrors | None:
    """What a schema marks. None where a mark stands where none may: such a tool must not be used."""
    found: dict[tuple[str, ...], str] = {}
    for path, marked in _marked(schema):
        name = marked[_MARK]
        sound = path and isinstance(name, str) and _TOKEN.fullmatch(name) and marked.get("type") in _TYPES
        if not path or not sound or name.lower() in (other.lower() for other in found.values()):
            return None
        found[path] = name
    return found


def mirrored(marks: Mirrors, arguments: Mapping[str, Any]) -> dict[str, str]:
    """The headers of one call. An argument that is missing, or null, has none."""
    headers: dict[str, str] = {}
    for path, name in marks.items():
        value = _at(arguments, path)
        if isinstance(value, bool):
            headers[f"Mcp-Param-{name}"] = "true" if value else "false"
        elif isinstance(value, str) or (isinstance(value, int) and value.bit_length() <= _WIDEST):
            headers[f"Mcp-Param-{name}"] = header_value(str(value))
    return headers


def header_value(text: str) -> str:
    """As it is where a header can carry it; otherwise wrapped so that the other side can tell."""
    if _PLAIN.fullmatch(text) and text == text.strip() and not _WRAPPED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode()}?="


def _marked(schema: Any) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """Every schema that carries a mark, with the way to it where that leads through nothing but properties.

    Not by recursion: a schema may be nested deeper than our stack.
    """
    left: list[tuple[tuple[str, ...] | None, Any]] = [((), schema)]
    while left:
        path, node = left.pop()
        if isinstance(node, list):
            left += ((None, each) for each in node)
        if not isinstance(node, dict):
            continue
        if _MARK in node:
            yield path, node
        for key, value in node.items():
            if key == "properties" and isinstance(value, dict):
                left += ((None if path is None else (*path, name), each) for name, each in value.items())
            elif key in _PLACES:
                left.append((None, value))
            elif key in _NAMED_PLACES and isinstance(value, dict):
                left += ((None, each) for each in value.values())


_PLACES = frozenset(
    (
        *(
            "items",
            "prefixItems",
            "contains",
            "unevaluatedItems",
            "additionalProperties",
            "unevaluatedProperties",
            "propertyNames",
        ),
        *("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "contentSchema"),
    )
)
"""Where JSON Schema 2020-12 expects schemas. In `default`, `examples`, `const` and `enum` stands data that looks like one."""
_NAMED_PLACES = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if not isinstance(arguments, Mapping):
            return None
        arguments = arguments.get(key)
    return arguments
