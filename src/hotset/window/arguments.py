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
    todo: list[tuple[ArgumentUse, Any]] = [(ArgumentUse.GIVEN, decoded)]
    while todo:
        use, here = todo.pop()
        if isinstance(here, str):
            yield Argument(here, use)
        elif isinstance(here, dict):
            keys = [str(key).lower() for key in here]
            edits = any(key.startswith(_REPLACED) for key in keys) and any(
                key.startswith(_WRITTEN) for key in keys
            )
            todo.extend(
                reversed(
                    [
                        (_use(key, edits=edits), value)
                        for key, value in zip(keys, here.values(), strict=True)
                    ]
                )
            )
        elif isinstance(here, list):
            todo.extend((use, each) for each in reversed(here))
        elif here is not None and not isinstance(here, bool):
            yield Argument(str(here), use)


def spoken(content: bytes) -> str:
    """A call's arguments as plain text, one a line."""
    return "\n".join(argument.text for argument in arguments(content))


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
