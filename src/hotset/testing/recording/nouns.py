"""A recorded session: what the user asked, what the assistant said and called, what the tools gave back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hotset.testing.upstream.script import Call


@dataclass(frozen=True, slots=True)
class ToolSpec:
    name: str
    description: str
    parameters: Mapping[str, Any]
    """A JSON schema."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The user says something."""

    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """One model call's reply. Every call in it is followed by its result."""

    text: str
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool gave back."""

    call: str
    """The id of the call, without a dialect's prefix."""
    tool: str
    output: str


Step = Prompt | Reply | Result


@dataclass(frozen=True, slots=True)
class Recording:
    system: str
    tools: tuple[ToolSpec, ...]
    steps: tuple[Step, ...]

    @property
    def replies(self) -> tuple[Reply, ...]:
        """One for each model call."""
        return tuple(step for step in self.steps if isinstance(step, Reply))

    @property
    def output_bytes(self) -> int:
        """The size of all tool results together."""
        return sum(len(step.output.encode()) for step in self.steps if isinstance(step, Result))
