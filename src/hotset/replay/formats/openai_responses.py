"""Items of OpenAI's Responses API, which Codex keeps too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotset.dialects import wire
from hotset.nouns.page import Role
from hotset.replay.formats.fields import as_json, kind_of, text_of
from hotset.replay.formats.talk import TranscriptTalk

_ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER}
_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
    "tool_search_call": "arguments",
    "mcp_call": "arguments",
}
"""Items by which a tool is called, and the field that says with what."""

_ANSWERS = {f"{name}_output": "output" for name in _CALLS} | {"tool_search_output": "tools"}

TYPES = frozenset(
    {
        *_CALLS,
        *_ANSWERS,
        "reasoning",
        "web_search_call",
        "compaction",
        "compaction_summary",
        "item_reference",
    }
)
"""Types by which items are told from the messages of other dialects; both have messages."""

SEALED = "[a summary that only the provider can read]"


def tell(talk: TranscriptTalk, item: Mapping[str, Any], time: float | None = None) -> None:
    """One item, said again to `talk`. What a provider's own tool did is passed over where the item
    does not hold its outcome."""
    kind = kind_of(item)
    id = wire.as_text(item.get("call_id")) or wire.as_text(item.get("id"))
    if kind in _CALLS:
        name = wire.as_text(item.get("name")) or kind.removesuffix("_call")
        id = talk.call(id, name, as_json(item.get(_CALLS[kind])), time)
        if kind == "mcp_call":
            talk.answer(id, as_json(item.get("output")) or as_json(item.get("error")), time)
    elif kind in _ANSWERS:
        talk.answer(id, _output(item.get(_ANSWERS[kind])), time)
    elif kind == "reasoning":
        talk.think(text_of(item.get("content")) or text_of(item.get("summary")), time)
    elif kind in ("compaction", "compaction_summary"):
        talk.say(Role.USER, SEALED, time, compaction=True)
    elif kind in ("message", ""):
        _message(talk, item, time)


def _message(talk: TranscriptTalk, item: Mapping[str, Any], time: float | None) -> None:
    role = wire.as_text(item.get("role"))
    text = text_of(item.get("content"))
    if role == "assistant":
        talk.speak(text, time)
    elif role in _ROLES:
        talk.say(_ROLES[role], text, time)


def _output(value: Any) -> str:
    """A tool's output: text, blocks, or (what a tool search found) anything."""
    if isinstance(value, str):
        return value
    return text_of(value) or as_json(value)
