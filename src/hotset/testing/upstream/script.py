"""Scripts of the provider: replies as objects, scripts that pick the next one, and the requests
that they answer."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Condition, Lock
from typing import Any, get_args

import msgspec

from hotset.nouns.message import DialectName
from hotset.testing.upstream.faults import Fault, Hold, Status
from hotset.typed import convert, decode

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


@dataclass(frozen=True, slots=True)
class Received:
    """One request, exactly as it came over the wire."""

    index: int
    method: str
    path: str
    """With the query, as in the request line."""
    headers: tuple[tuple[str, str], ...]
    """In their order, spelling and number."""
    body: bytes
    """Without transfer framing, but still compressed where the client compressed it."""
    arrived: float
    dialect: DialectName | None = None
    """None if the path belongs to no dialect."""
    ended: bool = False
    """True if the reply, or the fault in its place, was written to its end."""
    cancelled_after: float | None = None
    """Seconds after arrival at which the client went away before the reply had ended."""

    def header(self, name: str) -> str:
        """The first header with this name, in any case; empty if there is none."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    @property
    def decoded(self) -> bytes:
        """The body without compression."""
        body = self.body
        for coding in reversed(self.header("content-encoding").replace(" ", "").lower().split(",")):
            if coding not in _DECODERS:
                raise ValueError(f"Unsupported content-encoding: {coding}")
            body = _DECODERS[coding](body)
        return body

    def json(self) -> dict[str, Any]:
        """The body as a JSON object; raises `ValueError` for anything else."""
        try:
            return decode(self.decoded, dict[str, Any])
        except (
            msgspec.MsgspecError,
            RecursionError,
            OSError,
            EOFError,
            zlib.error,
            zstd.ZstdError,
        ) as error:
            raise ValueError(str(error)) from error


class Log:
    """Every request so far, in order of arrival. Written by the server's thread, read by any."""

    def __init__(self) -> None:
        self._received: list[Received] = []
        self._changed = Condition()

    @property
    def requests(self) -> tuple[Received, ...]:
        with self._changed:
            return tuple(self._received)

    def add(self, received: Received) -> Received:
        with self._changed:
            numbered = replace(received, index=len(self._received))
            self._received.append(numbered)
            self._changed.notify_all()
            return numbered

    def end(self, index: int, *, cancelled_after: float | None) -> None:
        with self._changed:
            self._received[index] = replace(
                self._received[index],
                ended=cancelled_after is None,
                cancelled_after=cancelled_after,
            )
            self._changed.notify_all()

    def wait(self, what: str, timeout: float, ready: Callable[[list[Received]], bool]) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: ready(self._received), timeout):
                raise TimeoutError(
                    f"waited {timeout:g} s for {what}; saw {len(self._received)} requests"
                )


def _inflate(body: bytes) -> bytes:
    """`deflate` means zlib, but some clients send it without zlib's header."""
    try:
        return zlib.decompress(body)
    except zlib.error:
        return zlib.decompress(body, -zlib.MAX_WBITS)


_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "identity": bytes,
    "gzip": gzip.decompress,
    "deflate": _inflate,
    "zstd": zstd.decompress,
}


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of the assistant."""

    name: str
    arguments: Mapping[str, Any] | str
    """A string is sent unchanged, so that a script can also send broken JSON."""
    id: str = ""
    """Without the dialect's own prefix (`toolu_`, `call_`); empty: made from the seed and the
    reply's number."""


@dataclass(frozen=True, slots=True)
class Say:
    """One reply in a form that every dialect can render, streamed or not."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    delay: float = 0.0
    """Seconds before the first byte."""
    chunks: int = 0
    """Into how many deltas each text is cut; 0 cuts as providers do, every few words."""
    truncated: bool = False
    """True if the reply ended because the token limit was reached."""
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
    """A function that returns each request's reply. A sequence that has run out answers 500: a test
    must notice."""
    if script is None:
        return echo
    if callable(script):
        return _report_failures(script)
    replies: Iterator[Say] = iter(script)
    lock = Lock()

    def play(request: Received) -> Say:
        with lock:
            reply = next(replies, None)
        return reply or Say(
            fault=Status(500, f"The script has no reply left for request {request.index}.")
        )

    return play


def _report_failures(script: Callable[[Received], Say]) -> Callable[[Received], Say]:
    def play(request: Received) -> Say:
        try:
            return script(request)
        except Exception as error:
            # a test's own mistake: sent to the client, where the test will see it
            return Say(fault=Status(500, f"The script failed: {error!r}"))

    return play


def echo(request: Received) -> Say:
    """The default script: returns the last text it was sent, so that replies identify requests."""
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


_FAULTS = {
    kind.__name__: kind for kind in get_args(Fault) if kind is not Hold
}  # a gate cannot be opened from outside


def read_script(path: Path) -> tuple[Say, ...]:
    """A script from a file: JSON lines, one reply each. Raises `ValueError`, with the line, for a
    file that is no script.

    {"text": "Let me look.", "calls": [{"name": "read_file", "arguments": {"path": "a.py"}}]}
    {"text": "Done.", "fault": {"type": "Reset", "events": 2}}
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(
        _say(path, number, line) for number, line in enumerate(lines, start=1) if line.strip()
    )


def _say(path: Path, number: int, line: str) -> Say:
    try:
        fields = decode(line, dict[str, Any])
        calls = tuple(convert(call, Call) for call in fields.pop("calls", ()))
        given = fields.pop("fault", None) or ()
        faults = tuple(_fault(fault) for fault in ([given] if isinstance(given, dict) else given))
        return Say(**fields, calls=calls, fault=faults or None)
    except (msgspec.MsgspecError, TypeError, KeyError) as error:
        raise ValueError(f"{path}:{number}: not a reply: {error}") from error


def _fault(fields: Mapping[str, Any]) -> Fault:
    kind = _FAULTS[fields["type"]]
    fault: Fault = convert({key: value for key, value in fields.items() if key != "type"}, kind)
    return fault
