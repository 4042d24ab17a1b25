"""What the three wire formats share: the turn they render, the events they give, ids and JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hotset.nouns.message import DialectName
from hotset.testing.upstream.cache import Charge
from hotset.testing.upstream.faults import Edge
from hotset.testing.upstream.script import Call, Say
from hotset.testing.upstream.tokens import estimate_tokens

_DELTA_CHARACTERS = 24  # a few words, as providers send them


@dataclass(frozen=True, slots=True)
class WireTurn:
    """One reply in the making: everything that its bytes depend on."""

    say: Say
    body: Mapping[str, Any]
    """The request, parsed."""
    charge: Charge
    seed: str
    """Every id in the reply is made from it."""
    created: int

    @property
    def model(self) -> str:
        return str(self.body.get("model", "scripted"))

    @property
    def output_tokens(self) -> int:
        written = self.say.text.encode() + b"".join(
            arguments(call).encode() for call in self.say.calls
        )
        return self.thinking_tokens + max(1, estimate_tokens(written))

    @property
    def thinking_tokens(self) -> int:
        return estimate_tokens(self.say.thinking.encode())

    def id(self, prefix: str, place: int = 0) -> str:
        """An id that only depends on the seed and the place in the reply."""
        return prefix + hashlib.sha256(f"{self.seed}/{prefix}/{place}".encode()).hexdigest()[:24]

    def call_id(self, prefix: str, place: int) -> str:
        given = self.say.calls[place].id
        return prefix + given if given else self.id(prefix, place)


@dataclass(frozen=True, slots=True)
class WireEvent:
    """One server-sent event."""

    name: str
    """Empty where the dialect sends none."""
    data: bytes
    edge: Edge | None = None
    block: int | None = None
    """The content block, tool call or output item that it belongs to."""


@dataclass(frozen=True, slots=True)
class DialectWire:
    """How one dialect says things. The functions are pure."""

    document: Callable[[WireTurn], dict[str, Any]]
    events: Callable[[WireTurn], tuple[WireEvent, ...]]
    refusal: Callable[[int, str], dict[str, Any]]
    """The body of an error status."""
    error_event: Callable[[str, str, int], WireEvent]
    """An error in the middle of a stream: type, message, how many events came before."""
    request_id_header: str


Wires = Mapping[DialectName, DialectWire]


def to_json(value: Any) -> bytes:
    return msgspec.json.encode(value)


def arguments(call: Call) -> str:
    return call.arguments if isinstance(call.arguments, str) else to_json(call.arguments).decode()


def pieces(text: str, chunks: int) -> Iterator[str]:
    """The text in deltas: `chunks` of about the same length, or of a few words each where `chunks`
    is 0."""
    size = -(-len(text) // chunks) if chunks else _DELTA_CHARACTERS
    for start in range(0, len(text), max(1, size)):
        yield text[start : start + size]


def status_text(status: int) -> str:
    """What providers commonly say with a status."""
    return _TEXTS.get(status, "The server had an error while processing your request")


_TEXTS = {
    400: "The request was invalid.",
    401: "Invalid API key provided.",
    403: "Your API key does not have permission to use the specified resource.",
    404: "The requested resource could not be found.",
    408: "The request timed out.",
    409: "The request conflicts with the current state of the resource.",
    413: "Request exceeds the maximum allowed number of bytes.",
    422: "The request was well-formed but could not be processed.",
    429: "Rate limit reached. Please try again later.",
    502: "Bad gateway.",
    503: "The engine is currently overloaded, please try again later.",
    504: "The request took too long to process.",
    529: "Overloaded",
}
