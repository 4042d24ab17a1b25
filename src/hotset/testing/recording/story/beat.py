"""The nouns in which the story is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Use:
    """One tool call."""

    tool: str
    arguments: Mapping[str, Any]
    output: str = ""
    """The name of a stored or seeded output; empty where the workspace itself answers."""


@dataclass(frozen=True, slots=True)
class Beat:
    """One model call: what the agent says and does."""

    text: str
    uses: tuple[Use, ...] = ()
    prompt: str = ""
    """What the user said right before it, if anything."""


def read(path: str, **lines: int) -> Use:
    return Use("read_file", {"path": path, **lines})


def edit(path: str, old: str, new: str) -> Use:
    return Use("edit_file", {"path": path, "old": old, "new": new})


def grep(pattern: str, path: str = ".", context: int = 0) -> Use:
    return Use("grep", {"pattern": pattern, "path": path, **({"context": context} if context else {})})


def run_tests(output: str, target: str = "tests") -> Use:
    return Use("run_tests", {"target": target, "verbose": True}, output)


def get(url: str, output: str) -> Use:
    return Use("http_get", {"url": url}, output)


def command(line: str, output: str, timeout: int = 120) -> Use:
    return Use("run_command", {"command": line, "timeout_seconds": timeout}, output)
