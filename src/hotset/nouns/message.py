"""What flows over the wire, in one set of nouns for every dialect: requests, messages, parts,
replies."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from hotset.nouns.page import Digest, Kind, Role
from hotset.nouns.usage import DialectName as DialectName, Usage as Usage  # noqa: PLC0414 - one vocabulary


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a body's bytes: `body[start:end]`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Part:
    """One block of a message, as a reader wants it."""

    kind: Kind
    content: bytes
    """Text as UTF-8, a call's arguments as JSON, an image's own bytes, an unknown block as its
    JSON."""
    media: str = "text/plain"
    tool: str = ""
    call: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One element of the conversation that a client sends."""

    role: Role
    raw: bytes
    """Its exact bytes on the wire."""
    parts: tuple[Part, ...]
    essence: Digest
    """The hash of what it says, blind to what clients change when they resend it: cache marks, key
    order, thinking."""
    aside: bool = False
    """True where later messages' identity does not build on it: system texts and reasoning, which
    clients change or drop."""
    span: Span | None = None
    """Its range in the body it was parsed from; None for a new message."""


@dataclass(frozen=True, slots=True)
class ClientTool:
    name: str
    raw: bytes


class Loading(StrEnum):
    """When a provider that can defer tools shows one to the model."""

    AT_ONCE = "at once"
    FINDS = "finds"
    """At once; by it the model finds others, and it takes the provider's own form of such a tool
    where there is one."""
    WHEN_FOUND = "when found"
    """Where an answer refers to it. Until then it is declared at most, and no part of what the
    provider caches."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as we offer it, in no dialect yet."""

    name: str
    description: str
    parameters: bytes
    """The JSON schema of its arguments."""
    loading: Loading = Loading.AT_ONCE


@dataclass(frozen=True, slots=True)
class Image:
    media: str
    data: str
    """In base64."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a call of one of our own tools."""

    call: str
    """The id that the provider gave to the call."""
    text: str
    failed: bool = False
    images: tuple[Image, ...] = ()
    """Behind the text, if the dialect's results can carry images; the text mentions them anyway."""
    tools: tuple[ToolSpec, ...] = ()
    """Tools that the model may call by name from here on. If the dialect can express that, it
    replaces the text."""
    searched: bool = False
    """It answers the provider's own search for tools: by tools, and by nothing else."""


@dataclass(frozen=True, slots=True)
class Request:
    """A parsed request. `dialect.render(request)` gives its bytes back, spliced where messages were
    replaced."""

    dialect: DialectName
    raw: bytes
    model: str
    stream: bool
    messages: tuple[Message, ...]
    array: Span
    """The range in `raw` of the value that holds the messages."""
    system: tuple[Part, ...] = ()
    """System text outside the messages."""
    tools: tuple[ClientTool, ...] = ()
    params: bytes = b"{}"
    """Every other top-level field, as raw JSON."""
    previous: str = ""
    """The provider-side reply that this request continues (`previous_response_id`)."""
    hints: tuple[str, ...] = ()
    """Body fields that distinguish sessions (cache keys, user metadata)."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, as far as it came."""

    messages: tuple[Message, ...] = ()
    """The assistant's messages, with `raw` in the form in which a client would send them back."""
    usage: Usage = field(default_factory=Usage)
    """Of a turn of several calls the last one's: its prompt is the size of the client's context."""
    stop: str = ""
    response_id: str = ""
    model: str = ""
    complete: bool = False
    """The provider marked the reply as complete."""
    error: str = ""
    """The provider's own error type, if it answered with one."""
