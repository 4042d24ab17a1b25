"""A recorded session of a coding agent, to demonstrate and measure hotset: `session()` reads it,
`requests()` is its client and `script()` its provider.

`system.txt` is the system prompt and `tools.jsonl` the client's tools, one a line. `session.jsonl`
has a line for each prompt of the user, each reply of the model, and each tool call of the reply
above it, with its output or the name of the file in `outputs/` that holds it.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import Any

import msgspec

from hotset.nouns.message import DialectName
from hotset.testing.upstream.script import Call, Say
from hotset.testing.upstream.wires import WIRES, arguments
from hotset.typed import json_decoder

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
    """A line of `session.jsonl`; the one of the first three fields that is set is its type."""

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
    lines = json_decoder(_Line).decode_lines(_read("session.jsonl"))
    steps: list[RecordedStep] = []
    for place, line in enumerate(lines):
        if line.prompt is not None:
            steps.append(RecordedPrompt(line.prompt))
        elif line.reply is not None:
            steps += _reply_steps(line.reply, lines[place + 1 :])
    tools = json_decoder(RecordedTool).decode_lines(_read("tools.jsonl"))
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
    """The bytes of a file beside this module, unpacked if its name ends in `.gz`."""
    content = (_FOLDER / name).read_bytes()
    return gzip.decompress(content) if name.endswith(".gz") else content


MODELS: Mapping[DialectName, str] = {
    DialectName.ANTHROPIC: "claude-sonnet-5",
    DialectName.OPENAI_CHAT: "gpt-5.6",
    DialectName.OPENAI_RESPONSES: "gpt-5.6",
}
_TOOL_USE = WIRES[DialectName.ANTHROPIC].call_prefix
_CALL = WIRES[DialectName.OPENAI_CHAT].call_prefix
_SESSION = "6f0c1f0e-5a44-4a1e-9d55-2b7a3a0c9e11"
_MARK = {"cache_control": {"type": "ephemeral"}}


def requests(recording: Recording, dialect: DialectName, *, stream: bool = True) -> Iterator[bytes]:
    """The exact body of every model call, in order. Clients keep no state: each body has the whole
    history."""
    write = {
        DialectName.ANTHROPIC: _anthropic_body,
        DialectName.OPENAI_CHAT: _chat_body,
        DialectName.OPENAI_RESPONSES: _responses_body,
    }[dialect]
    for place, step in enumerate(recording.steps):
        if isinstance(step, RecordedReply):
            yield msgspec.json.encode(
                write(recording, recording.steps[:place]) | {"stream": stream}
            )


def script(recording: Recording) -> tuple[Say, ...]:
    """The assistant's side, for a `ScriptedUpstream`; the call ids are those that `requests` sends
    back."""
    return tuple(Say(text=reply.text, calls=reply.calls) for reply in recording.replies)


def _anthropic_body(recording: Recording, history: tuple[RecordedStep, ...]) -> dict[str, Any]:
    """Marked as Claude Code does it: the system prompt, and the user's newest block, which moves
    with every call."""
    messages: list[dict[str, Any]] = []
    for step in history:
        role = "assistant" if isinstance(step, RecordedReply) else "user"
        if not messages or messages[-1]["role"] != role:
            messages.append({"role": role, "content": []})
        messages[-1]["content"] += _anthropic_blocks(step)
    newest = messages[-1]["content"]
    newest[-1] = newest[-1] | _MARK
    return {
        "model": MODELS[DialectName.ANTHROPIC],
        "max_tokens": 32_000,
        "system": [{"type": "text", "text": recording.system, **_MARK}],
        "tools": [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in recording.tools
        ],
        "messages": messages,
        "metadata": {"user_id": f"user_recorded_session_{_SESSION}"},
    }


def _anthropic_blocks(step: RecordedStep) -> list[dict[str, Any]]:
    if isinstance(step, RecordedPrompt):
        return [{"type": "text", "text": step.text}]
    if isinstance(step, RecordedResult):
        return [
            {
                "type": "tool_result",
                "tool_use_id": _TOOL_USE + step.call,
                "content": step.output,
            }
        ]
    blocks = [{"type": "text", "text": step.text}] if step.text else []
    return blocks + [
        {
            "type": "tool_use",
            "id": _TOOL_USE + call.id,
            "name": call.name,
            "input": call.arguments,
        }
        for call in step.calls
    ]


def _chat_body(recording: Recording, history: tuple[RecordedStep, ...]) -> dict[str, Any]:
    return {
        "model": MODELS[DialectName.OPENAI_CHAT],
        "messages": [{"role": "system", "content": recording.system}, *map(_chat_message, history)],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in recording.tools
        ],
        "parallel_tool_calls": True,
        "prompt_cache_key": _SESSION,
        "stream_options": {"include_usage": True},
    }


def _chat_message(step: RecordedStep) -> dict[str, Any]:
    if isinstance(step, RecordedPrompt):
        return {"role": "user", "content": step.text}
    if isinstance(step, RecordedResult):
        return {
            "role": "tool",
            "tool_call_id": _CALL + step.call,
            "content": step.output,
        }
    message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
    if step.calls:
        message["tool_calls"] = [
            {
                "id": _CALL + call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments(call)},
            }
            for call in step.calls
        ]
    return message


def _responses_body(recording: Recording, history: tuple[RecordedStep, ...]) -> dict[str, Any]:
    """As Codex does it: the provider stores nothing, every item is sent again."""
    return {
        "model": MODELS[DialectName.OPENAI_RESPONSES],
        "instructions": recording.system,
        "input": [item for step in history for item in _responses_items(step)],
        "tools": [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in recording.tools
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "store": False,
        "prompt_cache_key": _SESSION,
    }


def _responses_items(step: RecordedStep) -> list[dict[str, Any]]:
    if isinstance(step, RecordedPrompt):
        return [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": step.text}],
            }
        ]
    if isinstance(step, RecordedResult):
        return [
            {
                "type": "function_call_output",
                "call_id": _CALL + step.call,
                "output": step.output,
            }
        ]
    blocks = (
        [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": step.text}],
            }
        ]
        if step.text
        else []
    )
    return blocks + [
        {
            "type": "function_call",
            "call_id": _CALL + call.id,
            "name": call.name,
            "arguments": arguments(call),
        }
        for call in step.calls
    ]
