"""Puts a conversation together from pieces that come one by one, in the order in which they were
recorded."""

from __future__ import annotations

from dataclasses import dataclass, field

from hotset.nouns.message import Usage
from hotset.nouns.page import Role
from hotset.replay.recorded import RecordedCall, RecordedMessage


@dataclass(slots=True)
class _Reply:
    """What an assistant says in one go, while its pieces come in."""

    time: float | None
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[RecordedCall] = field(default_factory=list)
    usage: Usage | None = None


class TranscriptTalk:
    """The assistant's pieces join into one message; what its calls brought follows it.

    Where a record tells the end of each reply (`told=True`) a reply ends with `end()` or when
    somebody else speaks, even where a result is recorded before the reply's last call. Elsewhere a
    piece that comes behind a result begins the next reply.
    """

    def __init__(self, *, told: bool) -> None:
        self._told = told
        self._messages: list[RecordedMessage] = []
        self._reply: _Reply | None = None
        self._answers: list[RecordedMessage] = []
        self._tools: dict[str, str] = {}
        self._unnamed = 0

    def say(
        self, role: Role, text: str, time: float | None = None, *, compaction: bool = False
    ) -> None:
        """Somebody other than the assistant speaks."""
        self.end()
        if text.strip():
            self._messages.append(RecordedMessage(role, text, time=time, compaction=compaction))

    def speak(self, text: str, time: float | None = None) -> None:
        if text.strip():
            self._open(time).texts.append(text)

    def think(self, text: str, time: float | None = None) -> None:
        if text.strip():
            self._open(time).thoughts.append(text)

    def call(self, id: str, name: str, arguments: str, time: float | None = None) -> str:
        """The id under which the call is known: its own, or one that is made up."""
        reply = self._open(time)
        if not id or id in self._tools:
            self._unnamed += 1
            id = f"call-{self._unnamed}"
        self._tools[id] = name
        reply.calls.append(RecordedCall(id, name, arguments))
        return id

    def answer(self, id: str, text: str, time: float | None = None, *, tool: str = "") -> None:
        """What a call brought."""
        self._answers.append(
            RecordedMessage(
                Role.TOOL, text, call=id, tool=tool or self._tools.get(id, ""), time=time
            )
        )

    def bill(self, usage: Usage | None) -> None:
        """What the provider reported for the open reply."""
        if self._reply is not None and usage is not None:
            self._reply.usage = usage

    def end(self) -> None:
        """The reply is over, and so is what its calls brought so far."""
        if (reply := self._reply) is not None:
            self._messages.append(
                RecordedMessage(
                    Role.ASSISTANT,
                    "\n\n".join(reply.texts),
                    tuple(reply.calls),
                    thinking="\n\n".join(reply.thoughts),
                    time=reply.time,
                    usage=reply.usage,
                )
            )
        self._messages += self._answers
        self._reply = None
        self._answers = []

    def messages(self) -> tuple[RecordedMessage, ...]:
        self.end()
        return tuple(self._messages)

    def _open(self, time: float | None) -> _Reply:
        if self._answers and not self._told:
            self.end()
        if self._reply is None:
            if self._answers:
                self.end()
            self._reply = _Reply(time)
        return self._reply
