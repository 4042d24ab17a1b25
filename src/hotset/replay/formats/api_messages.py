"""Conversations as an API takes them: messages or items in a list, in a request's body, or one a
line. `tell_anthropic`, `tell_chat` and `tell_responses` read one message of their dialect."""

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
    text_of,
    tokens_of,
    when,
)

_LISTS = ("messages", "input", "conversation", "history")
"""Where a body holds its conversation."""

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def _claims(opening: Sequence[Any]) -> bool:
    return _is_body(opening[0]) or _is_message(opening[0]) or _is_list(opening[0])


def _sessions(opened: OpenTranscript) -> Iterator[RecordedSession]:
    """A session for each body or list; lines that are messages themselves are one session
    together."""
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
    said = [each for each in (_messages_of(fields) if fields else body) if isinstance(each, dict)]
    tell = _teller(fields, said)
    talk = TalkBuilder(marks_ends=tell is not tell_responses)
    talk.say(Role.SYSTEM, text_of(fields.get("system") or fields.get("instructions")))
    for each in said:
        tell(talk, each, when(each.get("timestamp")) or when(each.get("created_at")))
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


def _teller(
    fields: Mapping[str, Any], said: Sequence[Mapping[str, Any]]
) -> Callable[[TalkBuilder, Mapping[str, Any], float | None], None]:
    """The dialect by what only it has; a talk without any of that reads the same in all three."""
    if any(kind_of(each) in _RESPONSES_TYPES for each in said) or "input" in fields:
        return tell_responses
    blocks = (block for each in said for block in json_bytes.as_list(each.get("content")))
    if any(kind_of(json_bytes.as_object(block)) in _ANTHROPIC_TYPES for block in blocks):
        return tell_anthropic
    return tell_chat


def _messages_of(fields: Mapping[str, Any]) -> list[Any]:
    for name in _LISTS:
        if isinstance(said := fields.get(name), list):
            return said
        if isinstance(said, str) and name == "input":
            return [{"role": "user", "content": said}]
    return []


def _is_body(document: Any) -> bool:
    said = _messages_of(json_bytes.as_object(document))
    return bool(said) and _is_message(said[0])


def _is_list(document: Any) -> bool:
    return (
        isinstance(document, list)
        and bool(document)
        and (_is_message(document[0]) or _is_body(document[0]))
    )


def _is_message(document: Any) -> bool:
    """A message or an item."""
    fields = json_bytes.as_object(document)
    return (json_bytes.as_text(fields.get("role")) in _ROLES and "content" in fields) or kind_of(
        fields
    ) in _RESPONSES_TYPES


READER = TranscriptReader("OpenAI or Anthropic messages", _claims, _sessions)


_ANTHROPIC_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})

_ANTHROPIC_TYPES = frozenset({*_ANTHROPIC_CALLS, "tool_result", "thinking", "redacted_thinking"})
"""Blocks by which these messages are told from OpenAI's."""


def tell_anthropic(
    talk: TalkBuilder, message: Mapping[str, Any], time: float | None = None
) -> None:
    """Adds one message to `talk`."""
    role = json_bytes.as_text(message.get("role"))
    if role == "assistant":
        talk.end()
        tell_reply_blocks(talk, message.get("content"), time)
    elif role == "system":
        talk.say(Role.SYSTEM, text_of(message.get("content")), time)
    elif role == "user":
        tell_user_blocks(talk, message.get("content"), time)


def tell_user_blocks(
    talk: TalkBuilder, content: Any, time: float | None, *, compaction: bool = False
) -> None:
    """What a user's message holds: results of tools first, as the API demands, then what the user
    says."""
    words: list[Any] = []
    for block in _content_blocks(content):
        if kind_of(json_bytes.as_object(block)) == "tool_result":
            talk.answer(
                json_bytes.as_text(block.get("tool_use_id")), text_of(block.get("content")), time
            )
        else:
            words.append(block)
    if text := text_of(words):
        talk.say(Role.USER, text, time, compaction=compaction)


def tell_reply_blocks(talk: TalkBuilder, content: Any, time: float | None) -> None:
    """What an assistant's message holds, or a part of it."""
    for each in _content_blocks(content):
        block = json_bytes.as_object(each)
        kind = kind_of(block)
        if kind in _ANTHROPIC_CALLS:
            talk.call(
                json_bytes.as_text(block.get("id")),
                json_bytes.as_text(block.get("name")),
                as_json(block.get("input")),
                time,
            )
        elif kind == "thinking":
            talk.think(json_bytes.as_text(block.get("thinking")), time)
        elif kind.endswith("_tool_result"):
            talk.answer(
                json_bytes.as_text(block.get("tool_use_id")), text_of(block.get("content")), time
            )
        else:
            talk.speak(text_of([each]), time)


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


def tell_chat(talk: TalkBuilder, message: Mapping[str, Any], time: float | None = None) -> None:
    """Adds one message to `talk`. Unknown roles are skipped."""
    role = json_bytes.as_text(message.get("role"))
    text = text_of(message.get("content"))
    if role in _CHAT_ROLES:
        talk.say(_CHAT_ROLES[role], text, time)
    elif role in _CHAT_ANSWERS:
        tool = json_bytes.as_text(message.get("name"))
        talk.answer(json_bytes.as_text(message.get("tool_call_id")), text, time, tool=tool)
    elif role == "assistant":
        talk.end()
        talk.think(_chat_thinking(message), time)
        talk.speak(text or json_bytes.as_text(message.get("refusal")), time)
        for call in json_bytes.as_list(message.get("tool_calls")):
            _tell_chat_call(talk, json_bytes.as_object(call), time)
        if legacy := json_bytes.as_object(message.get("function_call")):
            talk.call(
                "", json_bytes.as_text(legacy.get("name")), as_json(legacy.get("arguments")), time
            )


def _chat_thinking(message: Mapping[str, Any]) -> str:
    for name in ("reasoning_content", "reasoning"):
        if said := message.get(name):
            return text_of(said)
    blocks = (
        json_bytes.as_object(block) for block in json_bytes.as_list(message.get("thinking_blocks"))
    )
    return "\n\n".join(json_bytes.as_text(block.get("thinking")) for block in blocks)


def _tell_chat_call(talk: TalkBuilder, call: Mapping[str, Any], time: float | None) -> None:
    named = json_bytes.as_object(call.get("function")) or json_bytes.as_object(call.get("custom"))
    arguments = named.get("arguments") if "arguments" in named else named.get("input")
    talk.call(
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
"""Items by which a tool is called, and the field that says with what."""

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
"""Types by which items are told from the messages of other dialects; both have messages."""

SEALED = "[a summary that only the provider can read]"


def tell_responses(talk: TalkBuilder, item: Mapping[str, Any], time: float | None = None) -> None:
    """Adds one item to `talk`. Calls of a provider's own tools are skipped where the item lacks
    their outcome."""
    kind = kind_of(item)
    id = json_bytes.as_text(item.get("call_id")) or json_bytes.as_text(item.get("id"))
    if kind in _RESPONSES_CALLS:
        name = json_bytes.as_text(item.get("name")) or kind.removesuffix("_call")
        id = talk.call(id, name, as_json(item.get(_RESPONSES_CALLS[kind])), time)
        if kind == "mcp_call":
            talk.answer(id, as_json(item.get("output")) or as_json(item.get("error")), time)
    elif kind in _RESPONSES_ANSWERS:
        talk.answer(id, _tool_output(item.get(_RESPONSES_ANSWERS[kind])), time)
    elif kind == "reasoning":
        talk.think(text_of(item.get("content")) or text_of(item.get("summary")), time)
    elif kind in ("compaction", "compaction_summary"):
        talk.say(Role.USER, SEALED, time, compaction=True)
    elif kind in ("message", ""):
        _tell_responses_message(talk, item, time)


def _tell_responses_message(talk: TalkBuilder, item: Mapping[str, Any], time: float | None) -> None:
    role = json_bytes.as_text(item.get("role"))
    text = text_of(item.get("content"))
    if role == "assistant":
        talk.speak(text, time)
    elif role in _RESPONSES_ROLES:
        talk.say(_RESPONSES_ROLES[role], text, time)


def _tool_output(value: Any) -> str:
    """A tool's output: text, blocks, or (what a tool search found) anything."""
    if isinstance(value, str):
        return value
    return text_of(value) or as_json(value)
