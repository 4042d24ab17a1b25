"""Codex rollouts: an item, an event or a turn's settings a line, each with its time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hotset.dialects import json_bytes
from hotset.nouns.message import Usage
from hotset.nouns.page import Role
from hotset.replay.conversation import RecordedSession
from hotset.replay.formats.api_messages import SEALED, tell_responses
from hotset.replay.formats.transcript import (
    OpenTranscript,
    TalkBuilder,
    TranscriptReader,
    kind_of,
    text_of,
    tokens_of,
    usage_of,
    when,
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
    talk = TalkBuilder(marks_ends=any(_bill(line) for line in lines))
    talk.say(Role.SYSTEM, _instructions(meta), when(meta.get("timestamp")))
    spent: Any = None
    for line in lines:
        if (bill := _bill(line)) is None:
            _tell(talk, line)
        elif bill != spent:  # the same bill may be told twice
            spent = bill
            talk.bill(_usage(bill))
            talk.end()
    yield RecordedSession(
        id=json_bytes.as_text(meta.get("id")) or opened.file.stem,
        set=opened.file.set,
        model=max(models, key=models.count) if models else json_bytes.as_text(meta.get("model")),
        messages=talk.messages(),
        fixed_tokens=tokens_of(meta.get("dynamic_tools")),
    )


def _is_line(line: Mapping[str, Any]) -> bool:
    return kind_of(line) in _TYPES and isinstance(line.get("payload"), dict)


def _payload(line: Mapping[str, Any]) -> dict[str, Any]:
    return json_bytes.as_object(line.get("payload"))


def _instructions(meta: Mapping[str, Any]) -> str:
    return text_of(meta.get("base_instructions") or meta.get("instructions"))


def _bill(line: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What the provider counted for a reply: the event comes once the reply is over."""
    payload = _payload(line)
    if line["type"] != "event_msg" or payload.get("type") != "token_count":
        return None
    info = json_bytes.as_object(payload.get("info"))
    return info if _usage(info) is not None else None


def _usage(info: Mapping[str, Any]) -> Usage | None:
    usage = usage_of(info.get("last_token_usage"))
    return usage if usage is not None and usage != Usage() else None


def _tell(talk: TalkBuilder, line: Mapping[str, Any]) -> None:
    payload = _payload(line)
    time = when(line.get("timestamp"))
    if line["type"] == "response_item":
        tell_responses(talk, payload, time)
    elif line["type"] == "compacted":
        talk.say(Role.USER, _summary(payload), time, compaction=True)


def _summary(payload: Mapping[str, Any]) -> str:
    """What the window holds after a compaction, as one text: what was taken over, and the summary
    where it can be read."""
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
