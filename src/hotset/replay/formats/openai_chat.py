"""Messages of OpenAI's Chat Completions API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotset.dialects import wire
from hotset.nouns.page import Role
from hotset.replay.formats.fields import as_json, text_of
from hotset.replay.formats.talk import TranscriptTalk

_ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "human": Role.USER}
_ANSWERS = frozenset({"tool", "function"})


def tell(talk: TranscriptTalk, message: Mapping[str, Any], time: float | None = None) -> None:
    """One message, said again to `talk`. Roles that are nobody's are passed over."""
    role = wire.as_text(message.get("role"))
    text = text_of(message.get("content"))
    if role in _ROLES:
        talk.say(_ROLES[role], text, time)
    elif role in _ANSWERS:
        tool = wire.as_text(message.get("name"))
        talk.answer(wire.as_text(message.get("tool_call_id")), text, time, tool=tool)
    elif role == "assistant":
        talk.end()
        talk.think(_thinking(message), time)
        talk.speak(text or wire.as_text(message.get("refusal")), time)
        for call in wire.as_list(message.get("tool_calls")):
            _call(talk, wire.as_object(call), time)
        if legacy := wire.as_object(message.get("function_call")):
            talk.call("", wire.as_text(legacy.get("name")), as_json(legacy.get("arguments")), time)


def _thinking(message: Mapping[str, Any]) -> str:
    for name in ("reasoning_content", "reasoning"):
        if said := message.get(name):
            return text_of(said)
    blocks = (wire.as_object(block) for block in wire.as_list(message.get("thinking_blocks")))
    return "\n\n".join(wire.as_text(block.get("thinking")) for block in blocks)


def _call(talk: TranscriptTalk, call: Mapping[str, Any], time: float | None) -> None:
    named = wire.as_object(call.get("function")) or wire.as_object(call.get("custom"))
    arguments = named.get("arguments") if "arguments" in named else named.get("input")
    talk.call(
        wire.as_text(call.get("id")), wire.as_text(named.get("name")), as_json(arguments), time
    )
