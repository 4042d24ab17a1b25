"""The arguments of a call, classified by what the call does with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec


class ArgumentUse(Enum):
    GIVEN = "given"
    """A path, a command, a pattern."""
    WRITTEN = "written"
    """Text that is in a file from now on: later calls copy its lines."""
    REPLACED = "replaced"
    """Text that no longer exists."""


@dataclass(frozen=True, slots=True)
class Argument:
    text: str
    use: ArgumentUse = ArgumentUse.GIVEN
    name: str = ""
    """The key under which it is given; empty if there is none."""


_REPLACED = ("old", "search")
_WRITTEN = ("new", "replace")
_CONTENT = frozenset(
    {"content", "contents", "file_text", "filetext", "insert_text", "code_edit", "text"}
)


def arguments(content: bytes) -> Iterator[Argument]:
    """The strings and numbers of a call's arguments in order; text that is not JSON, unchanged."""
    try:
        decoded = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        yield Argument(content.decode("utf-8", "replace"))
        return
    todo: list[tuple[str, ArgumentUse, Any]] = [("", ArgumentUse.GIVEN, decoded)]
    while todo:
        name, use, here = todo.pop()
        if isinstance(here, str):
            yield Argument(here, use, name)
        elif isinstance(here, dict):
            keys = [str(key).lower() for key in here]
            edits = any(key.startswith(_REPLACED) for key in keys) and any(
                key.startswith(_WRITTEN) for key in keys
            )
            todo.extend(
                reversed(
                    [
                        (str(name), _use(key, edits=edits), value)
                        for key, (name, value) in zip(keys, here.items(), strict=True)
                    ]
                )
            )
        elif isinstance(here, list):
            todo.extend((name, use, each) for each in reversed(here))
        elif here is not None and not isinstance(here, bool):
            yield Argument(str(here), use, name)


def spoken(content: bytes) -> str:
    """A call's arguments as plain text, one a line."""
    return "\n".join(argument.text for argument in arguments(content))


def written_text(content: bytes) -> str:
    """The text that a call wrote, from its first line on, then its other arguments with their
    names; empty if no argument has several lines."""
    if b"\\n" not in content:
        return ""
    every = list(arguments(content))
    if not any(each.name and "\n" in each.text for each in every):
        return ""
    order = (ArgumentUse.WRITTEN, ArgumentUse.GIVEN, ArgumentUse.REPLACED)
    every.sort(key=lambda each: (order.index(each.use), "\n" not in each.text))
    first, *rest = every
    named = (f"{each.name}:{chr(10) if chr(10) in each.text else ' '}{each.text}" for each in rest)
    return "\n".join((first.text, *named))


def _use(key: str, *, edits: bool) -> ArgumentUse:
    """The use of an argument by the names common in editing tools; `edits` if an old and a new text
    are both given."""
    if edits and key.startswith(_REPLACED):
        return ArgumentUse.REPLACED
    return (
        ArgumentUse.WRITTEN
        if key in _CONTENT or (edits and key.startswith(_WRITTEN))
        else ArgumentUse.GIVEN
    )
