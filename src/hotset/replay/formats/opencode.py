"""opencode sessions: what `opencode export` writes, one document with messages and their parts; or
the same in opencode's own storage, a file for each session, message and part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hotset.dialects import json_bytes
from hotset.nouns.message import Usage
from hotset.nouns.page import Role
from hotset.replay.conversation import RecordedSession
from hotset.replay.formats.transcript import (
    OpenTranscript,
    TalkBuilder,
    TranscriptReader,
    as_json,
    kind_of,
    parse_time,
)

STORAGE = "storage"
"""The folder of opencode's own files; sessions are in its `session`, and the rest belongs to
them."""

_AGENT = "opencode"


def is_inner(path: Path) -> bool:
    """True for a file of opencode's storage that is only a part of a session."""
    parts = path.parts
    return STORAGE in parts and parts[parts.index(STORAGE) + 1] in (
        "message",
        "part",
        "project",
        "session_diff",
        "todo",
    )


def _claims(opening: Sequence[Any]) -> bool:
    first = json_bytes.as_object(opening[0])
    return _is_export(first) or _is_stored(first)


def _is_export(document: Mapping[str, Any]) -> bool:
    """True for a document whose messages have an `info` and parts of their own."""
    messages = document.get("messages")
    if not isinstance(document.get("info"), dict) or not isinstance(messages, list):
        return False
    return all(isinstance(json_bytes.as_object(each).get("info"), dict) for each in messages)


def _is_stored(document: Mapping[str, Any]) -> bool:
    return json_bytes.as_text(document.get("id")).startswith("ses_") and "projectID" in document


def _sessions(opened: OpenTranscript) -> Iterator[RecordedSession]:
    for document in opened.documents:
        fields = json_bytes.as_object(document)
        if _is_export(fields):
            info, messages = json_bytes.as_object(fields["info"]), fields["messages"]
        elif _is_stored(fields):
            info, messages = fields, _stored_messages(opened.file.path, fields["id"])
        else:
            continue
        yield _session(opened, info, [json_bytes.as_object(each) for each in messages])


def _session(
    opened: OpenTranscript, info: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]
) -> RecordedSession:
    talk = TalkBuilder(marks_ends=False)
    model = ""
    for message in messages:
        head = json_bytes.as_object(message.get("info"))
        time = parse_time(json_bytes.as_object(head.get("time")).get("created"))
        parts = [json_bytes.as_object(part) for part in json_bytes.as_list(message.get("parts"))]
        if head.get("role") == "user":
            for part in parts:
                if kind_of(part) == "text":
                    talk.add_message(
                        Role.USER,
                        json_bytes.as_text(part.get("text")),
                        time,
                        by_client=part.get("synthetic") is True,
                    )
        else:
            talk.end_reply()
            model = model or json_bytes.as_text(head.get("modelID"))
            for part in parts:
                _add_part(talk, part, time)
            talk.set_usage(_usage(head.get("tokens")))
    return RecordedSession(
        json_bytes.as_text(info.get("id")) or opened.file.stem,
        opened.file.set,
        model,
        talk.messages(),
        agent=_AGENT,
        folder=json_bytes.as_text(info.get("directory")),
        is_subagent=bool(info.get("parentID")),
    )


def _add_part(talk: TalkBuilder, part: Mapping[str, Any], time: float | None) -> None:
    match kind_of(part):
        case "text":
            talk.add_text(json_bytes.as_text(part.get("text")), time)
        case "reasoning":
            talk.add_thinking(json_bytes.as_text(part.get("text")), time)
        case "tool":
            state = json_bytes.as_object(part.get("state"))
            id = talk.add_call(
                json_bytes.as_text(part.get("callID")),
                json_bytes.as_text(part.get("tool")),
                as_json(state.get("input")),
                time,
            )
            said = state.get("output") if "output" in state else state.get("error")
            ended = parse_time(json_bytes.as_object(state.get("time")).get("end"))
            if said is not None:
                talk.add_result(id, as_json(said), ended or time)


def _usage(value: Any) -> Usage | None:
    fields = json_bytes.as_object(value)
    cache = json_bytes.as_object(fields.get("cache"))
    count = json_bytes.as_count
    usage = Usage(
        count(fields.get("input")),
        count(cache.get("read")),
        count(cache.get("write")),
        count(fields.get("output")) + count(fields.get("reasoning")),
    )
    return usage if usage != Usage() else None


def _stored_messages(session: Path, id: str) -> Iterator[Mapping[str, Any]]:
    storage = next((each for each in session.parents if each.name == STORAGE), None)
    if storage is None:
        return
    for message in sorted((storage / "message" / id).glob("*.json")):
        parts = sorted((storage / "part" / message.stem).glob("*.json"))
        yield {"info": _document(message), "parts": [_document(part) for part in parts]}


def _document(path: Path) -> Any:
    """A file's document; None if it is damaged or gone: a part of a session that is lost."""
    with suppress(OSError):
        return json_bytes.lenient(path.read_bytes())
    return None


READER = TranscriptReader("opencode session", _claims, _sessions)
