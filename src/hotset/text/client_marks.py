"""Texts with which clients say that a conversation goes on without its earlier messages: a summary
in their place, or the user's command to begin anew.

Each begins a text of its own and is written by the client's program, never by a model or a tool.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class ContextChange(StrEnum):
    """What a client did with the messages that it no longer sends."""

    COMPACTED = "compacted"
    """It replaced them by a summary."""
    CLEARED = "cleared"
    """The user began anew."""


class MarkPlace(StrEnum):
    """Where a mark stands."""

    USER = "user"
    """At the beginning of a text in the user's name."""
    ASSISTANT = "assistant"
    """At the beginning of a text in the model's name."""
    FIRST_QUESTION = "first question"
    """It is the whole first prompt, and the model's answer to it comes with it."""


@dataclass(frozen=True, slots=True)
class ClientMark:
    """How one client begins such a text."""

    client: str
    change: ContextChange
    begins: str
    place: MarkPlace = MarkPlace.USER


_COMPACTED, _CLEARED = ContextChange.COMPACTED, ContextChange.CLEARED

MARKS = (
    ClientMark(
        "codex", _COMPACTED, "Another language model started to solve this problem and produced a"
    ),
    ClientMark(
        "claude-code, cline",
        _COMPACTED,
        "This session is being continued from a previous conversation",
    ),
    ClientMark(
        "pi, openclaw", _COMPACTED, "The conversation history before this point was compacted"
    ),
    ClientMark("gemini-cli, qwen-code", _COMPACTED, "<state_snapshot>"),
    ClientMark("opencode", _COMPACTED, "What did we do so far?", MarkPlace.FIRST_QUESTION),
    ClientMark("copilot", _COMPACTED, "<conversation-summary>"),
    ClientMark("langchain", _COMPACTED, "Here is a summary of the conversation to date:"),
    ClientMark("aider", _COMPACTED, "I spoke to you previously about a number of things."),
    ClientMark(
        "goose",
        _COMPACTED,
        "Your context was compacted. The previous message contains a summary",
        MarkPlace.ASSISTANT,
    ),
    ClientMark(
        "goose",
        _COMPACTED,
        "The previous message contains a summary that was prepared because a context limit",
        MarkPlace.ASSISTANT,
    ),
    ClientMark("claude-code", _CLEARED, "<command-name>/clear</command-name>"),
    ClientMark("claude-code", _CLEARED, "<command-name>/new</command-name>"),
    ClientMark("claude-code", _CLEARED, "<command-name>/reset</command-name>"),
)
"""Every known mark. One line adds a client."""

COMPACTION_ITEMS = frozenset({"compaction", "compaction_summary", "context_compaction"})
"""Types of wire items that stand for earlier messages: OpenAI's and Anthropic's own compaction."""

_PLACED = {
    place: re.compile(
        rb"\s*(?:%s)"
        % b"|".join(
            b"(?P<m%d>%s)%s"
            % (
                number,
                re.escape(mark.begins.encode()),
                rb"\s*\Z" if place is MarkPlace.FIRST_QUESTION else b"",
            )
            for number, mark in enumerate(MARKS)
            if mark.place is place
        )
    )
    for place in MarkPlace
}
_LOOKED_AT = 400  # bytes at the beginning of a text


def mark_at(content: bytes, place: MarkPlace) -> ClientMark | None:
    """The mark with which a text begins."""
    found = _PLACED[place].match(content[:_LOOKED_AT])
    return MARKS[int(str(found.lastgroup)[1:])] if found else None
