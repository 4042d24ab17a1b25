"""Arguments as models give them: objects, JSON in texts, wrapped once more, with the tool's name among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hotset.errors import Malformed
from hotset.nouns.tool import Tool
from hotset.sources.tools.compact import decoded

_WRAPPERS = ("arguments", "parameters", "args", "input", "params", "tool_input")
_NAMES = ("name", "tool_name", "tool")
_SHOWN = 60  # characters of a value that is told back


def read_arguments(value: object, tool: Tool | None = None) -> Mapping[str, Any]:
    """Arguments as models give them: an object, the same as JSON text, or either wrapped once more.

    With the tool at hand, a wrapper that the tool knows as an argument of its own is left alone. Raises `Malformed`.
    """
    given = _object(value)
    own = decoded(tool).get("properties") if tool else {}
    own = own if isinstance(own, dict) else {}
    wrappers = [each for each in (_WRAPPERS if tool else _WRAPPERS[:1]) if each in given and each not in own]
    if len(wrappers) == 1 and all(each in _NAMES and each not in own for each in given if each != wrappers[0]):
        inner = given[wrappers[0]]
        if inner is None or isinstance(inner, Mapping) or (isinstance(inner, str) and inner.lstrip()[:1] == "{"):
            return read_arguments(inner, tool)
    if tool and own and "tool_name" in given and "tool_name" not in own:
        return {key: each for key, each in given.items() if key != "tool_name"}
    return given


def read_call(given: Mapping[str, Any]) -> tuple[str, object]:
    """The tool's name and its arguments out of what a model gave to `use_tool`, also where it put one into the other."""
    name = next((given[each] for each in _NAMES if isinstance(given.get(each), str)), "")
    wrapper = next((each for each in _WRAPPERS if each in given), "")
    arguments = given[wrapper] if wrapper else {key: each for key, each in given.items() if key not in _NAMES}
    if not name:
        inner = _object(arguments)
        name = next((inner[each] for each in _NAMES[1:] if isinstance(inner.get(each), str)), "")
        if not name and isinstance(inner.get("name"), str) and any(each in inner for each in _WRAPPERS):
            name = inner["name"]
        arguments = {key: each for key, each in inner.items() if inner.get(key) != name or key not in _NAMES}
    return name, arguments


def shown(value: object) -> str:
    """A value in a few words of JSON."""
    try:
        text = msgspec.json.encode(value, enc_hook=lambda each: type(each).__name__).decode()
    except (msgspec.MsgspecError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _object(value: object) -> Mapping[str, Any]:
    for _ in range(3):  # models write JSON into JSON
        if not isinstance(value, str | bytes):
            break
        if not value.strip():
            return {}
        try:
            value = msgspec.json.decode(value)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Malformed(f'arguments must be a JSON object, such as {{"path": "a.txt"}}; this is no JSON: {error}') from error
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Malformed(f'arguments must be a JSON object, such as {{"path": "a.txt"}}, not {shown(value)}')
    return value
