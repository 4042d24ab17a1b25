"""What a tool call does, by the shape of its arguments: whether it reads a file, which one, and the
lines that it names. Tools have many names; their arguments have few shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hotset.text.words import word_set

_LONGEST = 16 * 1024  # characters: a call that reads a file is short
_FRONT = 400  # bytes at the start in which a path precedes its text
_PATH_KEYS = word_set("file files filename paths targetfile uri")
_REMARKS = word_set("explanation description reason purpose instruction instructions encoding")
"""Arguments that say something about the call and change nothing of it."""
_VIEWS = word_set("view read open show cat")
_NAMED_FRONT = re.compile(rb'"(?:\w*[pP]ath|\w*[fF]ile_?[nN]?(?:ame)?)"\s*:')
_HAS_ENDING = re.compile(r"[^/\\]\.[A-Za-z][A-Za-z0-9]{0,9}$")
_OTHERWISE = re.compile(
    r"(?:^|[_\W])(?:list|ls|glob|find|grep|search|delete|remove|move|rename|write|create|make|edit"
    r"|replace|insert|apply|patch|undo|diff|blame|log|test|run|lint|check|diagnos\w*|format)",
    re.IGNORECASE,
)
"""Names of tools that do something else with a file."""
_GOES_TO = re.compile(r"\s*(?:goto|edit|insert|open\s+\S+)\s+[\"']?(\d{1,6})(?:[:,-](\d{1,6}))?")
_MOST_LINES = 40  # of a range that is named: a longer one names a part, not a place


def path_of(arguments: bytes) -> str:
    """The file that a call names in an argument of its own; empty if there is none."""
    return next(_paths(_decoded(arguments)), "")


def file_ending(arguments: bytes) -> str:
    """The ending of the name of the file that a call names: `py`; empty if it has none."""
    found = _HAS_ENDING.search(path_of(arguments))
    return found.group().rpartition(".")[2].lower() if found else ""


def names_path(arguments: bytes) -> bool:
    """True if the call names its file in an argument, as tools for files do and shells do not."""
    return _NAMED_FRONT.search(arguments, 0, _FRONT) is not None


def reads_file(tool: str, arguments: bytes) -> bool:
    """True for a call whose only text is a file's path: the rest of a read are numbers and flags,
    and every other tool for files needs words."""
    given = _decoded(arguments)
    texts = [
        (key, value)
        for key, value in given.items()
        if isinstance(value, str) and key not in _REMARKS and value
    ]
    views = any(key == "command" and value in _VIEWS for key, value in texts)
    paths = list(_paths(given))
    return (
        len(paths) == 1
        and len(texts) == 1 + views
        and not any(isinstance(value, dict) for value in given.values())
        and (views or not _OTHERWISE.search(tool))
        and _HAS_ENDING.search(paths[0]) is not None
    )


def lines_named(arguments: bytes) -> tuple[int, ...]:
    """Numbers of the lines that a call goes to or edits."""
    given = _decoded(arguments)
    found = [value for key, value in given.items() if "line" in key and type(value) is int]
    for key in ("command", "cmd", "range", ""):
        value = given.get(key)
        if isinstance(value, str) and (range_ := _GOES_TO.match(value)):
            found += [int(range_[1]), int(range_[2] or range_[1])]
    if not found:
        return ()
    first, last = min(found), max(found)
    return tuple(range(first, last + 1)) if last - first < _MOST_LINES else (first, last)


def _decoded(arguments: bytes) -> Mapping[str, Any]:
    """The arguments by name, in lower case and without `_`; plain text has the name ``."""
    if len(arguments) > _LONGEST:
        return {}
    try:
        decoded: Any = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {"": arguments.decode("utf-8", "replace")}
    if not isinstance(decoded, dict):
        return {}
    return {str(key).lower().replace("_", ""): value for key, value in decoded.items()}


def _paths(given: Mapping[str, Any]) -> Iterator[str]:
    for key, value in given.items():
        if key.endswith("path") or key in _PATH_KEYS:
            values = value if isinstance(value, list) else [value]
            yield from (each for each in values if isinstance(each, str) and each)
