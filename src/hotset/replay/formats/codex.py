"""Codex rollouts: each line is an item, an event or a turn's settings, with its time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hotset.dialects import json_bytes
from hotset.nouns.message import Usage
from hotset.nouns.page import Role
from hotset.replay.conversation import RecordedSession
from hotset.replay.formats.api_messages import SEALED, add_responses_item
from hotset.replay.formats.transcript import (
    OpenTranscript,
    TalkBuilder,
    TranscriptReader,
    kind_of,
    parse_time,
    text_of,
    tokens_of,
    usage_of,
)

_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_SEALED = frozenset({"compaction", "compaction_summary", "context_compaction"})


def _claims(opening: Sequence[Any]) -> bool:
    return any(_is_line(json_bytes.as_object(each)) for each in opening)


def _sessions(opened: OpenTranscript) -> Iterator[RecordedSession]:
    lines = [line for each in opened.documents if _is_line(line := json_bytes.as_object(each))]
    metas = [_payload(line) for line in lines if line["type"] == "session_meta"]
    meta: Mapping[str, Any] = metas[0] if metas else {}
    models = [
        model
        for line in lines
        if line["type"] == "turn_context"
        and (model := json_bytes.as_text(_payload(line).get("model")))
    ]
    talk = TalkBuilder(marks_ends=any(_billed_tokens(line) for line in lines))
    talk.add_message(Role.SYSTEM, _instructions(meta), parse_time(meta.get("timestamp")))
    spent: Any = None
    for line in lines:
        if (bill := _billed_tokens(line)) is None:
            _add_line(talk, line)
        elif bill != spent:  # the same bill may be recorded twice
            spent = bill
            talk.set_usage(_usage(bill))
            talk.end_reply()
    yield RecordedSession(
        id=json_bytes.as_text(meta.get("id")) or opened.file.stem,
        set=opened.file.set,
        model=max(models, key=models.count) if models else json_bytes.as_text(meta.get("model")),
        messages=talk.messages(),
        fixed_tokens=tokens_of(meta.get("dynamic_tools")),
        agent=json_bytes.as_text(meta.get("originator")) or "codex",
        folder=json_bytes.as_text(meta.get("cwd")),
        is_subagent="subagent" in json_bytes.as_object(meta.get("source")),
    )


def _is_line(line: Mapping[str, Any]) -> bool:
    return kind_of(line) in _TYPES and isinstance(line.get("payload"), dict)


def _payload(line: Mapping[str, Any]) -> dict[str, Any]:
    return json_bytes.as_object(line.get("payload"))


def _instructions(meta: Mapping[str, Any]) -> str:
    return text_of(meta.get("base_instructions") or meta.get("instructions"))


def _billed_tokens(line: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The event with the tokens that the provider counted; it follows the reply."""
    payload = _payload(line)
    if line["type"] != "event_msg" or payload.get("type") != "token_count":
        return None
    info = json_bytes.as_object(payload.get("info"))
    return info if _usage(info) is not None else None


def _usage(info: Mapping[str, Any]) -> Usage | None:
    usage = usage_of(info.get("last_token_usage"))
    return usage if usage is not None and usage != Usage() else None


def _add_line(talk: TalkBuilder, line: Mapping[str, Any]) -> None:
    payload = _payload(line)
    time = parse_time(line.get("timestamp"))
    if line["type"] == "response_item":
        add_responses_item(talk, payload, time)
    elif line["type"] == "compacted":
        talk.add_message(Role.USER, _summary(payload), time, compaction=True)


def _summary(payload: Mapping[str, Any]) -> str:
    """The window's content after a compaction, as one text: the messages taken over, and the
    summary if it is readable."""
    kept = [
        json_bytes.as_object(each)
        for each in json_bytes.as_list(payload.get("replacement_history"))
    ]
    texts = [SEALED if kind_of(each) in _SEALED else text_of(each.get("content")) for each in kept]
    texts.append(
        json_bytes.as_text(payload.get("message")) or json_bytes.as_text(payload.get("summary"))
    )
    return "\n\n".join(text for text in texts if text) or SEALED


READER = TranscriptReader("Codex rollout", _claims, _sessions)
