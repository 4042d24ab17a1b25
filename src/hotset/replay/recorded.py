"""A session as somebody's agent recorded it: the messages in the order in which the model saw them.

`hotset.replay.formats.read` makes these out of files; nothing else here knows how anyone writes
their transcripts.
"""

from __future__ import annotations

from dataclasses import dataclass

from hotset.nouns.message import Usage
from hotset.nouns.page import Role


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A tool call that an assistant's message carries."""

    id: str
    """Unique in its session; made up from the call's place where the record has none."""
    name: str
    arguments: str
    """As the record has them: JSON for most tools, plain text for free-form ones."""


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """One message. What an assistant said in one reply is one message: its text, its thinking and
    its calls together."""

    role: Role
    text: str
    calls: tuple[RecordedCall, ...] = ()
    call: str = ""
    """The id of the call that a tool's message answers."""
    tool: str = ""
    """The name of the tool that a tool's message comes from."""
    thinking: str = ""
    time: float | None = None
    """Unix seconds."""
    usage: Usage | None = None
    """What the provider reported for the reply."""
    compaction: bool = False
    """True on a summary that took the place of everything before it: the prompt begins anew
    here."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One conversation, from its first message to its last."""

    id: str
    set: str
    """What it is grouped under in reports: the record's own word for it, else the name of its file
    or folder."""
    model: str
    messages: tuple[RecordedMessage, ...]
    fixed_tokens: int = 0
    """Tokens of system text and tool schemas that were sent and are not among the messages."""
