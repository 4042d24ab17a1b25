"""What the scripted provider says: a reply is a noun, a script picks the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from hotset.testing.upstream.faults import Fault, Status
from hotset.testing.upstream.received import Received


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of the assistant."""

    name: str
    arguments: Mapping[str, Any] | str
    """A string is sent as it is, so that a script can also say broken JSON."""
    id: str = ""
    """Without the dialect's own prefix (`toolu_`, `call_`); empty: made from the seed and the
    reply's number."""


@dataclass(frozen=True, slots=True)
class Say:
    """One reply, in words that every dialect can render, streamed or not."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    delay: float = 0.0
    """Seconds before the first byte."""
    chunks: int = 0
    """Into how many deltas each text is cut; 0 cuts as providers do, every few words."""
    truncated: bool = False
    """The reply ended because the token limit was reached."""
    fault: Fault | tuple[Fault, ...] | None = None
    """What goes wrong; several faults may come together (`(Gzipped(), Split(1))`)."""

    @property
    def faults(self) -> tuple[Fault, ...]:
        if self.fault is None:
            return ()
        return self.fault if isinstance(self.fault, tuple) else (self.fault,)


_DEEPEST = 16  # how far down `echo` looks for words: no message has any below that

Script = Sequence[Say] | Callable[[Received], Say]


def player(script: Script | None) -> Callable[[Received], Say]:
    """The function that gives each request its reply. A sequence that has run out answers 500: a
    test must notice."""
    if script is None:
        return echo
    if callable(script):
        return _guarded(script)
    replies: Iterator[Say] = iter(script)
    lock = Lock()

    def play(request: Received) -> Say:
        with lock:
            said = next(replies, None)
        return said or Say(
            fault=Status(500, f"The script has no reply left for request {request.index}.")
        )

    return play


def _guarded(script: Callable[[Received], Say]) -> Callable[[Received], Say]:
    def play(request: Received) -> Say:
        try:
            return script(request)
        except Exception as error:
            # a test's own mistake: said to the client, where the test will see it
            return Say(fault=Status(500, f"The script failed: {error!r}"))

    return play


def echo(request: Received) -> Say:
    """The script of an upstream without one: says back the last text it was sent, so that replies
    tell requests apart."""
    body = request.json()
    messages = body.get("messages", body.get("input", []))
    if isinstance(messages, str):
        return Say(text=f"You said: {messages}")
    last = messages[-1] if isinstance(messages, list) and messages else {}
    return Say(text=f"Message {len(messages)} said: {_words(last)}")


def _words(message: Any, depth: int = 0) -> str:
    if isinstance(message, str) or depth > _DEEPEST:
        return message if isinstance(message, str) else ""
    if isinstance(message, list):
        return " ".join(filter(None, (_words(each, depth + 1) for each in message)))
    if isinstance(message, Mapping):
        return _words(
            next((message[key] for key in ("text", "content", "output") if message.get(key)), ""),
            depth + 1,
        )
    return ""
