"""The recorded session on the wire: what a client would send at each model call, and what the
provider would answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hotset.nouns.message import DialectName
from hotset.testing.recording.session import (
    RecordedPrompt,
    RecordedReply,
    RecordedResult,
    RecordedStep,
    Recording,
)
from hotset.testing.upstream import anthropic, chat, responses
from hotset.testing.upstream.script import Say
from hotset.testing.upstream.wire import arguments

MODELS: Mapping[DialectName, str] = {
    DialectName.ANTHROPIC: "claude-sonnet-5",
    DialectName.OPENAI_CHAT: "gpt-5.6",
    DialectName.OPENAI_RESPONSES: "gpt-5.6",
}
_SESSION = "6f0c1f0e-5a44-4a1e-9d55-2b7a3a0c9e11"
_MARK = {"cache_control": {"type": "ephemeral"}}


def requests(recording: Recording, dialect: DialectName, *, stream: bool = True) -> Iterator[bytes]:
    """The exact body of every model call, in order. Clients are forgetful: each body holds the
    whole history."""
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
    """Marked as Claude Code does it: the system prompt, and the newest block of the user, which
    moves with every call."""
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
                "tool_use_id": anthropic.CALL_PREFIX + step.call,
                "content": step.output,
            }
        ]
    said = [{"type": "text", "text": step.text}] if step.text else []
    return said + [
        {
            "type": "tool_use",
            "id": anthropic.CALL_PREFIX + call.id,
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
            "tool_call_id": chat.CALL_PREFIX + step.call,
            "content": step.output,
        }
    message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
    if step.calls:
        message["tool_calls"] = [
            {
                "id": chat.CALL_PREFIX + call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments(call)},
            }
            for call in step.calls
        ]
    return message


def _responses_body(recording: Recording, history: tuple[RecordedStep, ...]) -> dict[str, Any]:
    """As Codex does it: nothing is stored at the provider, every item is sent again."""
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
                "call_id": responses.CALL_PREFIX + step.call,
                "output": step.output,
            }
        ]
    said = (
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
    return said + [
        {
            "type": "function_call",
            "call_id": responses.CALL_PREFIX + call.id,
            "name": call.name,
            "arguments": arguments(call),
        }
        for call in step.calls
    ]
