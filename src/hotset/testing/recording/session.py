"""The recorded session: the nouns it is made of, and the reader of the files beside this module.

`system.txt` is the system prompt and `tools.jsonl` the client's tools, one a line. `session.jsonl`
has a line for each prompt of the user, each reply of the model, and each tool call of the reply
above it, with its output or the name of the file in `outputs/` that holds it.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import Any

import msgspec

from hotset.testing.upstream.script import Call

_FOLDER = files("hotset.testing.recording")


@dataclass(frozen=True, slots=True)
class RecordedTool:
    """A tool that the client offers to the model."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """A JSON schema."""


@dataclass(frozen=True, slots=True)
class RecordedPrompt:
    """A message of the user."""

    text: str


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """The reply of one model call. Every call in it is followed by its result."""

    text: str
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """The output of a tool call."""

    call: str
    """The id of the call, without a dialect's prefix."""
    tool: str
    output: str


RecordedStep = RecordedPrompt | RecordedReply | RecordedResult


@dataclass(frozen=True, slots=True)
class Recording:
    """A session of a coding agent: system prompt, tools, and all steps in order."""

    system: str
    tools: tuple[RecordedTool, ...]
    steps: tuple[RecordedStep, ...]

    @property
    def replies(self) -> tuple[RecordedReply, ...]:
        """One for each model call."""
        return tuple(step for step in self.steps if isinstance(step, RecordedReply))

    @property
    def output_bytes(self) -> int:
        """The size of all tool results together."""
        return sum(
            len(step.output.encode()) for step in self.steps if isinstance(step, RecordedResult)
        )


class _Line(msgspec.Struct):
    """A line of `session.jsonl`; which of the first three fields is set says what it is."""

    prompt: str | None = None
    reply: str | None = None
    call: str = ""
    id: str = ""
    arguments: dict[str, Any] = {}
    output: str = ""
    output_file: str = ""


@cache
def session() -> Recording:
    """The session in which an agent fixes two bugs of a small service.

    Some fifty model calls and 400 KB of tool output, always the same bytes.
    """
    lines = msgspec.json.Decoder(_Line).decode_lines(_read("session.jsonl"))
    steps: list[RecordedStep] = []
    for place, line in enumerate(lines):
        if line.prompt is not None:
            steps.append(RecordedPrompt(line.prompt))
        elif line.reply is not None:
            steps += _reply_steps(line.reply, lines[place + 1 :])
    tools = msgspec.json.Decoder(RecordedTool).decode_lines(_read("tools.jsonl"))
    return Recording(_read("system.txt").decode(), tuple(tools), tuple(steps))


def _reply_steps(text: str, following: list[_Line]) -> list[RecordedStep]:
    """The reply, and the results of its calls: the lines up to the next prompt or reply."""
    calls = list(takewhile(lambda line: line.call, following))
    reply = RecordedReply(text, tuple(Call(line.call, line.arguments, line.id) for line in calls))
    return [reply, *(RecordedResult(line.id, line.call, _output(line)) for line in calls)]


def _output(line: _Line) -> str:
    if not line.output_file:
        return line.output
    return _read(f"outputs/{line.output_file}").decode().removesuffix("\n")


def _read(name: str) -> bytes:
    """The bytes of a file beside this module, unpacked where its name ends in `.gz`."""
    content = (_FOLDER / name).read_bytes()
    return gzip.decompress(content) if name.endswith(".gz") else content
