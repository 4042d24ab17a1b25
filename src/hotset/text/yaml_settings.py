"""One setting in a YAML text, put in and taken out; every other character stays as it is.

Only block mappings are changed: the style in which programs write their settings. `BadConfig` for
anything else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from hotset.errors import BadConfig

_INDENT = "  "


def read_yaml(text: str) -> dict[str, Any]:
    """The settings of a text; empty if it has none."""
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise BadConfig("it is not YAML") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise BadConfig("it is no list of settings like `name: value`")
    return found


def put_yaml(text: str, keys: tuple[str, ...], value: Any) -> str:
    """The text with a setting of the first or second level; one that is there is replaced."""
    old = _pair(text, keys)
    if old is not None and _is_on_one_line(old) and not isinstance(value, Mapping):
        start, end = old[1].start_mark.index, old[1].end_mark.index
        return text[:start] + json.dumps(value) + text[end:]
    text = take_yaml(text, keys)
    holder = _pair(text, keys[:1]) if len(keys) > 1 else None
    if holder is None:
        gap = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{gap}{_block(keys, value, '')}"
    if not _mapping(holder[1]):
        raise BadConfig(f"{keys[0]} is empty in it")
    first = holder[1].start_mark
    at = first.index - first.column
    return text[:at] + _block(keys[1:], value, " " * first.column) + text[at:]


def take_yaml(text: str, keys: tuple[str, ...]) -> str:
    """The text without a setting; its mapping goes with it if nothing else is in that."""
    pair = _pair(text, keys)
    if pair is None:
        return text
    if len(keys) > 1:
        holder = _pair(text, keys[:1])
        if holder is not None and len(_mapping(holder[1])) == 1:
            pair = holder
    lines = text.splitlines(keepends=True)
    last = max(each.end_mark.line for each in _leaves(pair[1]))
    return "".join(lines[: pair[0].start_mark.line] + lines[last + 1 :])


def _pair(text: str, keys: tuple[str, ...]) -> tuple[Any, Any] | None:
    """The nodes of a setting's name and value."""
    try:
        node = yaml.compose(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise BadConfig("it is not YAML") from error
    if node is None:
        return None
    pair = None
    for key in keys:
        found = [each for each in _mapping(node) if each[0].value == key]
        if not found:
            return None
        pair = found[-1]
        node = pair[1]
    return pair


def _mapping(node: Any) -> list[tuple[Any, Any]]:
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        raise BadConfig("its settings are not one to a line")
    pairs: list[tuple[Any, Any]] = node.value
    return pairs


def _is_on_one_line(pair: tuple[Any, Any]) -> bool:
    value = pair[1]
    plain = isinstance(value, yaml.ScalarNode) and value.style not in ("|", ">")
    return plain and value.start_mark.line == value.end_mark.line


def _leaves(node: Any) -> Iterator[Any]:
    """The nodes whose end is the end of their own text."""
    inner: list[Any] = node.value if isinstance(node.value, list) else []
    if not inner or getattr(node, "flow_style", False):
        yield node
        return
    for each in inner:
        for part in each if isinstance(each, tuple) else (each,):
            yield from _leaves(part)


def _block(keys: tuple[str, ...], value: Any, indent: str) -> str:
    if len(keys) > 1:
        return f"{indent}{keys[0]}:\n{_block(keys[1:], value, indent + _INDENT)}"
    if not isinstance(value, Mapping):
        return f"{indent}{keys[0]}: {json.dumps(value)}\n"
    inside = "".join(_block((key,), each, indent + _INDENT) for key, each in value.items())
    return f"{indent}{keys[0]}:\n{inside}"
