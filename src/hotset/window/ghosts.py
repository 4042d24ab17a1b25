"""Ghosts: tools of the library that stand in a session's list, though nothing of them runs. Which
may, and how."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from hotset.nouns.knobs import ToolboxKnobs
from hotset.nouns.message import ClientTool, Loading, ToolSpec
from hotset.nouns.tool import Ghost, Tool as LibraryTool
from hotset.text.clip import clip
from hotset.text.stems import light_stem
from hotset.text.stops import TOOL_PROMPT
from hotset.text.words import split_humps, word_set
from hotset.window.retrieval_tools import descriptions

_MARK = re.compile(r"\[GHOST [\d.]+\] ")
_LONGEST_DESCRIPTION = 1000  # characters; OpenAI took at most 1,024
# what is longer costs more at every call than the one call by which `find_tools` tells of it
_LONGEST_SCHEMA = 6000
_ANYTHING = b'{"type":"object","properties":{}}'
_DEEPEST = 12
_SAME = 200  # characters by which two descriptions are the same: clients cut them
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # what Anthropic takes
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_CHOICES = ("anyOf", "oneOf", "allOf")
_LOOKED_AT = 400  # characters of a description: what it does comes first
_WORD = re.compile(r"[^\W\d_]+")
_WEAK = word_set("""
    add based check code create creat data delete delet file first following info information list
    name new number one other result return run set string test two type update updat user value
    work
    """)
"""They tell something only together with the rest of a name: everybody creates, lists and tests."""


def ghost_spec(ghost: Ghost) -> ToolSpec | None:
    """A tool of the library as it stands in a session's list; None where a provider might refuse
    the whole request for it.

    What one provider takes another does not: schemas with anything unusual are left to
    `find_tools`.
    """
    tool = ghost.tool
    parameters = _accepted(tool)
    if parameters is None or not _NAME.fullmatch(tool.name):
        return None
    return ToolSpec(tool.name, _short(f"[GHOST {ghost.score:.2f}] {_told(tool)}"), parameters)


def found_spec(tool: LibraryTool) -> ToolSpec | None:
    """A tool that the model found, as it is handed over to be called by its own name; None where no
    provider takes the name.

    Its search is answered by definitions alone. Where a provider might refuse the schema, it stands
    in the description instead: whoever runs the tool checks what it is given anyway, and says what
    is wrong with it.
    """
    if not _NAME.fullmatch(tool.name):
        return None
    parameters = _accepted(tool)
    told = _told(tool)
    if parameters is None:
        told = f"{told} Arguments (JSON schema): {tool.parameters.decode('utf-8', 'replace')}"
    return ToolSpec(tool.name, _short(told), parameters or _ANYTHING, Loading.WHEN_FOUND)


def speaks_of(prompt: str, tool: LibraryTool, knobs: ToolboxKnobs) -> bool:
    """Does the prompt name what the tool does? A search always finds something, and mostly nobody
    asked for a tool.

    They share two telling words, one of them in the tool's name, or all of its name; and that is a
    tenth of what the prompt says. Of the questions of Seal-Tools and StableToolBench 91 and 82 in
    100 then have the right tool among their ghosts (99 and 91 without this test), of MetaTool's,
    which hardly ever name what they want, 17 (73). Of 100 short prompts of recorded coding sessions
    3 to 16 get a ghost out of these libraries, which have nothing for them; of the long ones none
    does.
    """
    asked, name = _words(prompt), _words(tool.own_name)
    telling = asked - _WEAK
    shared = telling & (name | _words(f"{tool.source} {tool.description[:_LOOKED_AT]}"))
    named = telling & name
    is_whole = len(name) >= knobs.ghost_words and name <= asked
    is_enough = len(shared) >= knobs.ghost_words_share * len(telling)
    return bool(named) and (len(shared) >= knobs.ghost_words or is_whole) and is_enough


def beside(ours: Sequence[ToolSpec], theirs: Sequence[ClientTool]) -> tuple[ToolSpec, ...]:
    """Those of our tools that the client does not have already: under the same name, or under the
    same name with something in front of it and the same description."""
    names = {tool.name for tool in theirs}
    return tuple(
        each
        for each in ours
        if each.name not in names and not any(_is_same(each, other) for other in theirs)
    )


def defers(theirs: Sequence[ClientTool]) -> bool:
    """True where a client lets its own tools be searched: what is listed beside them is its
    business."""
    return any(
        _is_deferred(tool.raw)
        for tool in theirs
        if b"defer_loading" in tool.raw or b"tool_search" in tool.raw
    )


def _accepted(tool: LibraryTool) -> bytes | None:
    """The schema of its arguments, where every provider is known to take such a one."""
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


def _told(tool: LibraryTool) -> str:
    return " ".join(tool.description.split()) or tool.title or tool.own_name


def _short(said: str) -> str:
    return clip(said, _LONGEST_DESCRIPTION).encode("utf-8", "replace").decode()


def _is_plain(schema: Any, depth: int = 0) -> bool:
    """Nothing in it that any provider is known to refuse."""
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


def _words(text: str) -> frozenset[str]:
    words = (word.lower() for word in _WORD.findall(split_humps(text)))
    return frozenset(
        light_stem(word) for word in words if len(word) > 2 and word not in TOOL_PROMPT
    )


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
    told = _plain(_description(theirs))
    return any(_plain(_MARK.sub("", each, count=1)) == told for each in descriptions(ours))


def _description(tool: ClientTool) -> str:
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
        or (
            isinstance(nested, list)
            and any(isinstance(each, dict) and each.get("defer_loading") for each in nested)
        )
    )
