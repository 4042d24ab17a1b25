"""Conversations as an API takes them: messages or items in a list, in a request's body, or one a
line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hotset.dialects import wire
from hotset.nouns.page import Role
from hotset.replay.formats import anthropic, openai_chat, openai_responses
from hotset.replay.formats.fields import kind_of, text_of, tokens_of, when
from hotset.replay.formats.source import Opened
from hotset.replay.formats.talk import TranscriptTalk
from hotset.replay.recorded import Recorded

_LISTS = ("messages", "input", "conversation", "history")
"""Where a body holds its conversation."""

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def claims(opening: Sequence[Any]) -> bool:
    return _is_body(opening[0]) or _is_said(opening[0]) or _is_list(opening[0])


def sessions(opened: Opened) -> Iterator[Recorded]:
    """A session for each body or list; lines that are messages themselves are one session
    together."""
    lines: list[Any] = []
    found = 0
    for document in opened.documents:
        if _is_said(document):
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


def _session(opened: Opened, body: Any, number: int) -> Recorded:
    fields = wire.as_object(body)
    said = [each for each in (_said(fields) if fields else body) if isinstance(each, dict)]
    tell = _teller(fields, said)
    talk = TranscriptTalk(told=tell is not openai_responses.tell)
    talk.say(Role.SYSTEM, text_of(fields.get("system") or fields.get("instructions")))
    for each in said:
        tell(talk, each, when(each.get("timestamp")) or when(each.get("created_at")))
    stem = opened.source.stem
    return Recorded(
        id=wire.as_text(fields.get("id"))
        or wire.as_text(fields.get("session_id"))
        or (f"{stem}-{number}" if number > 1 else stem),
        set=opened.source.set,
        model=wire.as_text(fields.get("model")),
        messages=talk.messages(),
        fixed_tokens=tokens_of(fields.get("tools")),
    )


def _teller(
    fields: Mapping[str, Any], said: Sequence[Mapping[str, Any]]
) -> Callable[[TranscriptTalk, Mapping[str, Any], float | None], None]:
    """The dialect by what only it has; a talk without any of that reads the same in all three."""
    if any(kind_of(each) in openai_responses.TYPES for each in said) or "input" in fields:
        return openai_responses.tell
    blocks = (block for each in said for block in wire.as_list(each.get("content")))
    if any(kind_of(wire.as_object(block)) in anthropic.TYPES for block in blocks):
        return anthropic.tell
    return openai_chat.tell


def _said(fields: Mapping[str, Any]) -> list[Any]:
    for name in _LISTS:
        if isinstance(said := fields.get(name), list):
            return said
        if isinstance(said, str) and name == "input":
            return [{"role": "user", "content": said}]
    return []


def _is_body(document: Any) -> bool:
    said = _said(wire.as_object(document))
    return bool(said) and _is_said(said[0])


def _is_list(document: Any) -> bool:
    return (
        isinstance(document, list)
        and bool(document)
        and (_is_said(document[0]) or _is_body(document[0]))
    )


def _is_said(document: Any) -> bool:
    """A message or an item."""
    fields = wire.as_object(document)
    return (wire.as_text(fields.get("role")) in _ROLES and "content" in fields) or kind_of(
        fields
    ) in openai_responses.TYPES
