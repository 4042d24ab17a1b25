"""Messages of Anthropic's Messages API: a message is a list of blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotset.dialects import wire
from hotset.nouns.page import Role
from hotset.replay.formats.fields import as_json, kind_of, text_of
from hotset.replay.formats.talk import TranscriptTalk

_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})

TYPES = frozenset({*_CALLS, "tool_result", "thinking", "redacted_thinking"})
"""Blocks by which these messages are told from OpenAI's."""


def tell(talk: TranscriptTalk, message: Mapping[str, Any], time: float | None = None) -> None:
    """One message, said again to `talk`."""
    role = wire.as_text(message.get("role"))
    if role == "assistant":
        talk.end()
        blocks(talk, message.get("content"), time)
    elif role == "system":
        talk.say(Role.SYSTEM, text_of(message.get("content")), time)
    elif role == "user":
        said(talk, message.get("content"), time)


def said(
    talk: TranscriptTalk, content: Any, time: float | None, *, compaction: bool = False
) -> None:
    """What a user's message holds: results of tools first, as the API demands, then what the user
    says."""
    words: list[Any] = []
    for block in _blocks(content):
        if kind_of(wire.as_object(block)) == "tool_result":
            talk.answer(wire.as_text(block.get("tool_use_id")), text_of(block.get("content")), time)
        else:
            words.append(block)
    if text := text_of(words):
        talk.say(Role.USER, text, time, compaction=compaction)


def blocks(talk: TranscriptTalk, content: Any, time: float | None) -> None:
    """What an assistant's message holds, or a part of it."""
    for each in _blocks(content):
        block = wire.as_object(each)
        kind = kind_of(block)
        if kind in _CALLS:
            talk.call(
                wire.as_text(block.get("id")),
                wire.as_text(block.get("name")),
                as_json(block.get("input")),
                time,
            )
        elif kind == "thinking":
            talk.think(wire.as_text(block.get("thinking")), time)
        elif kind.endswith("_tool_result"):
            talk.answer(wire.as_text(block.get("tool_use_id")), text_of(block.get("content")), time)
        else:
            talk.speak(text_of([each]), time)


def _blocks(content: Any) -> list[Any]:
    return (
        [{"type": "text", "text": content}] if isinstance(content, str) else wire.as_list(content)
    )
