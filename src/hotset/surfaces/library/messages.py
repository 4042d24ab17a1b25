"""Messages as programs have them, dicts or objects of an SDK, and the dialect that they are of. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hotset.errors import BadInput
from hotset.nouns.message import DialectName

CHAT, RESPONSES, ANTHROPIC = DialectName.OPENAI_CHAT, DialectName.OPENAI_RESPONSES, DialectName.ANTHROPIC

TITLES = {CHAT: "OpenAI's Chat Completions", RESPONSES: "OpenAI's Responses", ANTHROPIC: "Anthropic's Messages"}

_BLOCKS = {
    **dict.fromkeys(("image_url", "input_audio", "file"), CHAT),
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), RESPONSES),
    **dict.fromkeys(
        ("tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "search_result", "server_tool_use"),
        ANTHROPIC,
    ),
}
"""Blocks that tell a dialect; `text` stands in two of them."""

_CHAT_FIELDS = frozenset(("tool_calls", "tool_call_id", "function_call", "refusal", "audio"))
_CHAT_ROLES = frozenset(("tool", "function"))


def as_json(value: Any) -> Any:
    """A value with every object of an SDK in it as a dict of what was said, without what was not."""
    if isinstance(value, Mapping):
        return {str(key): as_json(each) for key, each in value.items()}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    return value


def messages_of(given: Any) -> Iterator[dict[str, Any]]:
    """The messages in what a program adds: a message, text for a prompt, an SDK's reply, or several of these."""
    if isinstance(given, str):
        yield {"role": "user", "content": given}
        return
    if isinstance(given, list | tuple):
        for each in given:
            yield from messages_of(each)
        return
    said = as_json(given)
    match said:
        case {"choices": [{"message": dict(message)}, *_]}:
            yield message
        case {"object": "response", "output": list(items)}:
            yield from items
        case {"type": "message", "stop_reason": _, "role": role, "content": content}:
            yield {"role": role, "content": content}
        case {"role": str()} | {"type": str()}:
            yield said
        case _:
            raise BadInput(f"a message is a dict with a role or a type, or an object of an SDK, not {type(given).__name__}")


def dialect_of(message: Mapping[str, Any]) -> DialectName | None:
    """The dialect that a message can only be of; None where it could be of several."""
    if message.get("role") in _CHAT_ROLES or _CHAT_FIELDS & message.keys():
        return CHAT
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, Mapping)] if isinstance(content, Sequence) else []
    told = next((_BLOCKS[block["type"]] for block in blocks if block.get("type") in _BLOCKS), None)
    if told is not None:
        return told
    if any("cache_control" in block for block in blocks):
        return ANTHROPIC
    return RESPONSES if "type" in message else None


def dialect_named(name: str) -> DialectName:
    """Raises `BadInput` with the names that there are."""
    try:
        return DialectName(name)
    except ValueError:
        raise BadInput(f"there is no dialect {name!r}; there are {', '.join(DialectName)}") from None


def dialect_for(model: str) -> DialectName:
    """What a model is most often spoken to in, where no message tells."""
    return ANTHROPIC if "claude" in model.lower() else CHAT
