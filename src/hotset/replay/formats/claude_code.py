"""Claude Code transcripts: one entry per line, each with its parent; each block of a reply is an
entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hotset.dialects import json_bytes
from hotset.replay.conversation import RecordedSession
from hotset.replay.formats.api_messages import add_reply_blocks, add_user_blocks
from hotset.replay.formats.transcript import (
    OpenTranscript,
    TalkBuilder,
    TranscriptReader,
    kind_of,
    parse_time,
    usage_of,
)

Entry = Mapping[str, Any]

_MESSAGE_TYPES = frozenset({"user", "assistant"})
_AGENT = "claude-cli"
_SYNTHETIC = "<synthetic>"
"""Model name of messages that the client wrote itself: errors and interruptions."""


def _claims(opening: Sequence[Any]) -> bool:
    return any(
        _is_message(entry) and _id(entry)
        for each in opening
        if (entry := json_bytes.as_object(each))
    )


def _sessions(opened: OpenTranscript) -> Iterator[RecordedSession]:
    """The main conversation, and one session per subagent recorded with it."""
    entries = [entry for each in opened.documents if _id(entry := json_bytes.as_object(each))]
    agents: dict[str, str] = {}
    lines: dict[str, list[Entry]] = {}
    for entry in entries:
        agent = agents[_id(entry)] = _agent_of(entry, agents)
        lines.setdefault(agent, []).append(entry)
    for agent, line in lines.items():
        session = _read_session(_latest_branch(line), agent, opened)
        if session.messages:
            yield session


def _is_message(entry: Entry) -> bool:
    return kind_of(entry) in _MESSAGE_TYPES and isinstance(entry.get("message"), dict)


def _id(entry: Entry) -> str:
    return json_bytes.as_text(entry.get("uuid"))


def _parent_id(entry: Entry) -> str:
    return json_bytes.as_text(entry.get("parentUuid"))


def _message(entry: Entry) -> dict[str, Any]:
    return json_bytes.as_object(entry.get("message"))


def _agent_of(entry: Entry, agents: Mapping[str, str]) -> str:
    """The subagent that an entry belongs to, by its own field or its parent's; empty for the main
    conversation."""
    if not entry.get("isSidechain"):
        return ""
    return json_bytes.as_text(entry.get("agentId")) or agents.get(_parent_id(entry)) or _id(entry)


def _latest_branch(line: Sequence[Entry]) -> list[Entry]:
    """The entries that led to the last one, in order, without what was rewound.

    Parallel calls are children of one another, and so are their results: a reply's entries and the
    results of its calls belong to it whether or not the last entry descends from them.
    """
    path = _path(line)
    replies = {id for entry in line if _id(entry) in path and (id := _reply_id(entry))}
    ours = [entry for entry in line if _id(entry) in path or _reply_id(entry) in replies]
    calls = {json_bytes.as_text(block.get("id")) for entry in ours for block in _blocks(entry)} - {
        ""
    }
    kept = {_id(entry) for entry in ours}
    return [
        entry
        for entry in line
        if _id(entry) in kept
        or any(json_bytes.as_text(block.get("tool_use_id")) in calls for block in _blocks(entry))
    ]


def _path(line: Sequence[Entry]) -> set[str]:
    by_id = {_id(entry): place for place, entry in enumerate(line)}
    place = next((place for place in reversed(range(len(line))) if _is_message(line[place])), -1)
    path: set[str] = set()
    while place >= 0 and _id(line[place]) not in path:
        entry = line[place]
        path.add(_id(entry))
        parent = _parent_id(entry) or json_bytes.as_text(entry.get("logicalParentUuid"))
        # The parent may be cut off by a compaction or be in another file: take the entry before.
        place = by_id.get(parent, place - 1) if parent else -1
    return path


def _reply_id(entry: Entry) -> str:
    """Id of the reply that an entry is a part of; empty if it is not part of one."""
    return json_bytes.as_text(_message(entry).get("id")) if entry.get("type") == "assistant" else ""


def _blocks(entry: Entry) -> list[dict[str, Any]]:
    return [
        json_bytes.as_object(block) for block in json_bytes.as_list(_message(entry).get("content"))
    ]


def _read_session(line: Sequence[Entry], agent: str, opened: OpenTranscript) -> RecordedSession:
    talk = TalkBuilder(marks_ends=True)
    reply = ""
    model = ""
    for entry in line:
        message = _message(entry)
        time = parse_time(entry.get("timestamp"))
        if entry.get("type") == "user":
            add_user_blocks(
                talk,
                message.get("content"),
                time,
                compaction=entry.get("isCompactSummary") is True,
                by_client=entry.get("isMeta") is True,
            )
        elif entry.get("type") == "assistant" and message.get("model") != _SYNTHETIC:
            if not reply or _reply_id(entry) != reply:
                talk.end_reply()
            reply = _reply_id(entry)
            model = model or json_bytes.as_text(message.get("model"))
            add_reply_blocks(talk, message.get("content"), time)
            talk.set_usage(usage_of(message.get("usage")))
    session = _first_text(line, "sessionId") or opened.file.stem
    return RecordedSession(
        f"{session}:{agent}" if agent else session,
        opened.file.set,
        model,
        talk.messages(),
        agent=_AGENT,
        folder=_first_text(line, "cwd"),
        is_subagent=bool(agent),
    )


def _first_text(line: Sequence[Entry], field: str) -> str:
    return next((text for entry in line if (text := json_bytes.as_text(entry.get(field)))), "")


READER = TranscriptReader("Claude Code transcript", _claims, _sessions)
