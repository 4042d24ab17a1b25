"""The normal form: one session per line, with short field names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hotset.dialects import json_bytes
from hotset.nouns.message import Usage
from hotset.nouns.page import Role
from hotset.replay.conversation import RecordedCall, RecordedMessage, RecordedSession
from hotset.replay.formats.transcript import OpenTranscript, TranscriptReader, as_json, parse_time

_ROLES = {role.value: role for role in Role}


def _claims(opening: Sequence[Any]) -> bool:
    first = json_bytes.as_object(opening[0])
    return isinstance(first.get("msgs"), list) and isinstance(first.get("id"), str)


def _sessions(opened: OpenTranscript) -> Iterator[RecordedSession]:
    for document in opened.documents:
        fields = json_bytes.as_object(document)
        yield RecordedSession(
            id=json_bytes.as_text(fields.get("id")),
            set=json_bytes.as_text(fields.get("set")) or opened.file.set,
            model=json_bytes.as_text(fields.get("model")),
            messages=tuple(_messages(fields)),
            fixed_tokens=json_bytes.as_count(fields.get("fixed_tokens")),
        )


def _messages(fields: Mapping[str, Any]) -> Iterator[RecordedMessage]:
    for each in json_bytes.as_list(fields.get("msgs")):
        message = json_bytes.as_object(each)
        if (role := _ROLES.get(json_bytes.as_text(message.get("r")))) is None:
            continue
        calls = [json_bytes.as_object(call) for call in json_bytes.as_list(message.get("calls"))]
        yield RecordedMessage(
            role=role,
            text=_without_inline_calls(json_bytes.as_text(message.get("t")), calls),
            calls=tuple(_call(call) for call in calls),
            call=json_bytes.as_text(message.get("id")),
            tool=json_bytes.as_text(message.get("n")),
            thinking=json_bytes.as_text(message.get("th")),
            time=parse_time(message.get("ts")),
            usage=_usage(message.get("u")),
            compaction=message.get("x") == "compact",
        )


def _call(call: Mapping[str, Any]) -> RecordedCall:
    return RecordedCall(
        json_bytes.as_text(call.get("id")),
        json_bytes.as_text(call.get("n")),
        as_json(call.get("a")),
    )


def _without_inline_calls(text: str, calls: Sequence[Mapping[str, Any]]) -> str:
    """The text without the calls quoted in it, so that they are not counted twice."""
    for call in calls:
        if call.get("inline"):
            text = text.replace(as_json(call.get("a")), "", 1)
    return text


def _usage(value: Any) -> Usage | None:
    match value:
        case [int(sent), int(written), int(read), int(output)]:
            return Usage(sent, read, written, output)
        case _:
            return None


READER = TranscriptReader("hotset's normal form", _claims, _sessions)
