"""Conversations as an API takes them: messages or items in a list, in a request's body, or one per
line. `add_anthropic_message`, `add_chat_message` and `add_responses_item` read one message of their
dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hotset.dialects import json_bytes
from hotset.nouns.page import Role
from hotset.replay.conversation import RecordedSession
from hotset.replay.formats.transcript import (
    OpenTranscript,
    TalkBuilder,
    TranscriptReader,
    as_json,
    kind_of,
    parse_time,
    text_of,
    tokens_of,
)

_LISTS = ("messages", "input", "conversation", "history")
"""Fields of a request body that hold the conversation."""

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def _claims(opening: Sequence[Any]) -> bool:
    return _is_body(opening[0]) or _is_message(opening[0]) or _is_list(opening[0])


def _sessions(opened: OpenTranscript) -> Iterator[RecordedSession]:
    """One session per body or list; lines that are messages form one session together."""
    lines: list[Any] = []
    found = 0
    for document in opened.documents:
        if _is_message(document):
            lines.append(document)
            continue
        inside = (
            document
            if isinstance(document, list) and document and _is_body(document[0])
            else [document]
        )
        for body in inside:
            if _is_body(body) or _is_list(body):
                found += 1
                yield _session(opened, body, found)
    if lines:
        yield _session(opened, lines, found + 1)


def _session(opened: OpenTranscript, body: Any, number: int) -> RecordedSession:
    fields = json_bytes.as_object(body)
    messages = [
        each for each in (_messages_of(fields) if fields else body) if isinstance(each, dict)
    ]
    add_message = _message_adder(fields, messages)
    talk = TalkBuilder(marks_ends=add_message is not add_responses_item)
    talk.add_message(Role.SYSTEM, text_of(fields.get("system") or fields.get("instructions")))
    for each in messages:
        add_message(
            talk, each, parse_time(each.get("timestamp")) or parse_time(each.get("created_at"))
        )
    stem = opened.file.stem
    return RecordedSession(
        id=json_bytes.as_text(fields.get("id"))
        or json_bytes.as_text(fields.get("session_id"))
        or (f"{stem}-{number}" if number > 1 else stem),
        set=opened.file.set,
        model=json_bytes.as_text(fields.get("model")),
        messages=talk.messages(),
        fixed_tokens=tokens_of(fields.get("tools")),
    )


def _message_adder(
    fields: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]
) -> Callable[[TalkBuilder, Mapping[str, Any], float | None], None]:
    """Detect the dialect by what only it has. A conversation without any of that reads the same in
    all three."""
    if any(kind_of(each) in _RESPONSES_TYPES for each in messages) or "input" in fields:
        return add_responses_item
    blocks = (block for each in messages for block in json_bytes.as_list(each.get("content")))
    if any(kind_of(json_bytes.as_object(block)) in _ANTHROPIC_TYPES for block in blocks):
        return add_anthropic_message
    return add_chat_message


def _messages_of(fields: Mapping[str, Any]) -> list[Any]:
    for name in _LISTS:
        if isinstance(messages := fields.get(name), list):
            return messages
        if isinstance(messages, str) and name == "input":
            return [{"role": "user", "content": messages}]
    return []


def _is_body(document: Any) -> bool:
    messages = _messages_of(json_bytes.as_object(document))
    return bool(messages) and _is_message(messages[0])


def _is_list(document: Any) -> bool:
    return (
        isinstance(document, list)
        and bool(document)
        and (_is_message(document[0]) or _is_body(document[0]))
    )


def _is_message(document: Any) -> bool:
    """True for a message or an item."""
    fields = json_bytes.as_object(document)
    return (json_bytes.as_text(fields.get("role")) in _ROLES and "content" in fields) or kind_of(
        fields
    ) in _RESPONSES_TYPES


READER = TranscriptReader("OpenAI or Anthropic messages", _claims, _sessions)


_ANTHROPIC_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})

_ANTHROPIC_TYPES = frozenset({*_ANTHROPIC_CALLS, "tool_result", "thinking", "redacted_thinking"})
"""Blocks that only Anthropic's messages have."""


def add_anthropic_message(
    talk: TalkBuilder, message: Mapping[str, Any], time: float | None = None
) -> None:
    """Add one message to `talk`."""
    role = json_bytes.as_text(message.get("role"))
    if role == "assistant":
        talk.end_reply()
        add_reply_blocks(talk, message.get("content"), time)
    elif role == "system":
        talk.add_message(Role.SYSTEM, text_of(message.get("content")), time)
    elif role == "user":
        add_user_blocks(talk, message.get("content"), time)


def add_user_blocks(talk: TalkBuilder, content: Any, time: float | None, **marks: bool) -> None:
    """Add a user's message: tool results first, as the API demands, then the user's text."""
    words: list[Any] = []
    for block in _content_blocks(content):
        if kind_of(json_bytes.as_object(block)) == "tool_result":
            talk.add_result(
                json_bytes.as_text(block.get("tool_use_id")), text_of(block.get("content")), time
            )
        else:
            words.append(block)
    if text := text_of(words):
        talk.add_message(Role.USER, text, time, **marks)


def add_reply_blocks(talk: TalkBuilder, content: Any, time: float | None) -> None:
    """Add an assistant's message, or a part of it."""
    for each in _content_blocks(content):
        block = json_bytes.as_object(each)
        kind = kind_of(block)
        if kind in _ANTHROPIC_CALLS:
            talk.add_call(
                json_bytes.as_text(block.get("id")),
                json_bytes.as_text(block.get("name")),
                as_json(block.get("input")),
                time,
            )
        elif kind == "thinking":
            talk.add_thinking(json_bytes.as_text(block.get("thinking")), time)
        elif kind.endswith("_tool_result"):
            talk.add_result(
                json_bytes.as_text(block.get("tool_use_id")), text_of(block.get("content")), time
            )
        else:
            talk.add_text(text_of([each]), time)


def _content_blocks(content: Any) -> list[Any]:
    return (
        [{"type": "text", "text": content}]
        if isinstance(content, str)
        else json_bytes.as_list(content)
    )


_CHAT_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "human": Role.USER,
}
_CHAT_ANSWERS = frozenset({"tool", "function"})


def add_chat_message(
    talk: TalkBuilder, message: Mapping[str, Any], time: float | None = None
) -> None:
    """Add one message to `talk`. Unknown roles are skipped."""
    role = json_bytes.as_text(message.get("role"))
    text = text_of(message.get("content"))
    if role in _CHAT_ROLES:
        talk.add_message(_CHAT_ROLES[role], text, time)
    elif role in _CHAT_ANSWERS:
        tool = json_bytes.as_text(message.get("name"))
        talk.add_result(json_bytes.as_text(message.get("tool_call_id")), text, time, tool=tool)
    elif role == "assistant":
        talk.end_reply()
        talk.add_thinking(_chat_thinking(message), time)
        talk.add_text(text or json_bytes.as_text(message.get("refusal")), time)
        for call in json_bytes.as_list(message.get("tool_calls")):
            _add_chat_call(talk, json_bytes.as_object(call), time)
        if legacy := json_bytes.as_object(message.get("function_call")):
            talk.add_call(
                "", json_bytes.as_text(legacy.get("name")), as_json(legacy.get("arguments")), time
            )


def _chat_thinking(message: Mapping[str, Any]) -> str:
    for name in ("reasoning_content", "reasoning"):
        if thinking := message.get(name):
            return text_of(thinking)
    blocks = (
        json_bytes.as_object(block) for block in json_bytes.as_list(message.get("thinking_blocks"))
    )
    return "\n\n".join(json_bytes.as_text(block.get("thinking")) for block in blocks)


def _add_chat_call(talk: TalkBuilder, call: Mapping[str, Any], time: float | None) -> None:
    named = json_bytes.as_object(call.get("function")) or json_bytes.as_object(call.get("custom"))
    arguments = named.get("arguments") if "arguments" in named else named.get("input")
    talk.add_call(
        json_bytes.as_text(call.get("id")),
        json_bytes.as_text(named.get("name")),
        as_json(arguments),
        time,
    )


_RESPONSES_ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER}
_RESPONSES_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
    "tool_search_call": "arguments",
    "mcp_call": "arguments",
}
"""Item types of tool calls, and the field that holds the arguments."""

_RESPONSES_ANSWERS = {f"{name}_output": "output" for name in _RESPONSES_CALLS} | {
    "tool_search_output": "tools"
}

_RESPONSES_TYPES = frozenset(
    {
        *_RESPONSES_CALLS,
        *_RESPONSES_ANSWERS,
        "reasoning",
        "web_search_call",
        "compaction",
        "compaction_summary",
        "item_reference",
    }
)
"""Item types that no other dialect has."""

SEALED = "[a summary that only the provider can read]"


def add_responses_item(
    talk: TalkBuilder, item: Mapping[str, Any], time: float | None = None
) -> None:
    """Add one item to `talk`. Calls of a provider's own tools are skipped if the item lacks their
    outcome."""
    kind = kind_of(item)
    id = json_bytes.as_text(item.get("call_id")) or json_bytes.as_text(item.get("id"))
    if kind in _RESPONSES_CALLS:
        name = json_bytes.as_text(item.get("name")) or kind.removesuffix("_call")
        id = talk.add_call(id, name, as_json(item.get(_RESPONSES_CALLS[kind])), time)
        if kind == "mcp_call":
            talk.add_result(id, as_json(item.get("output")) or as_json(item.get("error")), time)
    elif kind in _RESPONSES_ANSWERS:
        talk.add_result(id, _tool_output(item.get(_RESPONSES_ANSWERS[kind])), time)
    elif kind == "reasoning":
        talk.add_thinking(text_of(item.get("content")) or text_of(item.get("summary")), time)
    elif kind in ("compaction", "compaction_summary"):
        talk.add_message(Role.USER, SEALED, time, compaction=True)
    elif kind in ("message", ""):
        _add_responses_message(talk, item, time)


def _add_responses_message(talk: TalkBuilder, item: Mapping[str, Any], time: float | None) -> None:
    role = json_bytes.as_text(item.get("role"))
    text = text_of(item.get("content"))
    if role == "assistant":
        talk.add_text(text, time)
    elif role in _RESPONSES_ROLES:
        talk.add_message(_RESPONSES_ROLES[role], text, time)


def _tool_output(value: Any) -> str:
    """A tool's output as text; it may be text, blocks, or any JSON (a tool search)."""
    if isinstance(value, str):
        return value
    return text_of(value) or as_json(value)
