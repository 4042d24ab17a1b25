"""A tool of the library: what it is, where it comes from, what a call of it gives, and how it
fares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from hotset.nouns.knobs import AtLeastOne, Count, Seconds, Share

Texts = tuple[Annotated[str, Meta(min_length=1)], ...]

FIND_TOOLS = "find_tools"
"""The tool of ours by which a model finds others."""


class OriginKind(StrEnum):
    """What kind of source a tool comes from."""

    SERVER = "server"
    """An MCP server, on this machine or elsewhere."""
    SKILL = "skill"
    """A folder with a SKILL.md."""
    CREATED = "created"
    """Written by an agent. Only these are ever deleted."""
    CALLABLE = "callable"
    """A function of the program that imported us."""


@dataclass(frozen=True, slots=True)
class Stdio:
    """A process that speaks on its standard input and output."""

    command: tuple[str, ...]
    """The program and its arguments, as they are: no shell reads them."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Beside the few variables that every process gets. May hold keys: never logged, never
    shown."""
    cwd: str = ""
    """Empty is the project's folder."""


@dataclass(frozen=True, slots=True)
class Http:
    """A server that is reached by streamable HTTP."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request. May hold keys: never logged, never shown."""


Launch = Stdio | Http


@dataclass(frozen=True, slots=True)
class ToolOrigin:
    """Where tools come from, and how they are run."""

    name: str
    """Unique in the library; the part of a tool's name before the two underscores."""
    origin: OriginKind
    launch: Launch | None = None
    """None where there is nothing to run: a skill that is only read, functions of this program."""
    stamp: str = ""
    """The hash of everything that makes another process of it: the launch, and the files of a
    skill. A process that was started under another stamp is not used again."""
    shared: bool = False
    """Keeps nothing between two calls: all sessions may use one process. Otherwise each session
    gets its own."""
    trusted: bool = True
    """The person chose it by their own hand. False for skills that lie in the project's folder:
    they run after consent."""


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model has to know to call it, and what we have to know to run it."""

    name: str
    """As models call it: `source__tool`, of letters, digits, `_` and `-`, at most 64."""
    source: str
    origin: OriginKind
    own_name: str
    """As its source calls it."""
    description: str
    parameters: bytes
    """The JSON schema of its arguments, as its source gave it."""
    title: str = ""
    annotations: bytes = b"{}"
    """The source's own hints about its effects, as JSON. Unchecked."""
    depends: tuple[str, ...] = ()
    """Names of tools that it declares as needed."""


@dataclass(frozen=True, slots=True)
class Returned:
    """What a call gave."""

    content: bytes
    """The blocks, as JSON: an array of MCP's content blocks."""
    failed: bool = False
    """The tool reported a failure; the content describes it."""
    structured: bytes | None = None
    """The same as one JSON value, where the tool gives one."""


@dataclass(frozen=True, slots=True)
class Ghost:
    """A tool that fits a query, whether or not anything of it runs."""

    tool: Tool
    score: float
    """From 0 to 1, of this query."""
    loaded: bool = False


UNLIKELY = 0.15
"""A score below which nothing fits, as a rule: of such first results 9 in 100 were right. Of all
that were right 10 in 100 are below it, of all that were wrong half."""


class ToolTier(StrEnum):
    """How a tool is used."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"
    PROBATION = "probation"
    """Never used yet."""
    PROTECTED = "protected"
    """Pinned by a person: it never leaves."""


class ToolStatus(StrEnum):
    ACTIVE = "active"
    INACTIVE = "inactive"
    """Its score fell; it is found and works as ever, and a use makes it active again."""


@dataclass(frozen=True, slots=True)
class Life:
    """How a tool has fared."""

    name: str
    born: float
    origin: OriginKind = OriginKind.SERVER
    calls: int = 0
    last_used: float | None = None
    seconds: float = 0.0
    """Of all its calls together."""
    failures: int = 0
    status: ToolStatus = ToolStatus.ACTIVE
    inactive_since: float | None = None
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class ToolMetrics:
    """How a tool fares now."""

    name: str
    origin: OriginKind
    status: ToolStatus
    tier: ToolTier
    score: float
    """From 1, just used, down to 0."""
    calls: int
    failures: int
    seconds: float
    """Of all its calls together."""
    born: float
    last_used: float | None
    inactive_since: float | None
    ttl_left: float | None
    """Seconds until it is deleted unless it is used; None for one that is active, or that no agent
    created: that is never deleted."""
    pinned: bool


class Deferring(StrEnum):
    """Whether tools that were found are handed to the model in the provider's own way, to be called
    by their own names."""

    OFF = "off"
    """They are described in text, and called through `use_tool`."""
    AUTO = "auto"
    """Where the upstream is the provider itself and the model is known to take it
    (`window.deferring`)."""
    ON = "on"
    """Wherever the dialect has a form for it; an upstream that refuses it gets words instead."""


class ClientListing(StrEnum):
    """Which of the client's own tools a session's model sees from the start."""

    ALL = "all"
    AUTO = "auto"
    """Those that one of the latest sessions called (`toolbox.unused`); the others are found with
    `find_tools`, called through `use_tool`, and reach the client as calls of its own tools."""


class Tooling(Struct, frozen=True):
    """What an operator can choose about tools."""

    enabled: bool = True
    limit: AtLeastOne = 15
    """Processes that may run at once; the least recently used one makes room."""
    ghosts: Count = 5
    """Tools in a session's list from its first request on; 0 leaves them to `find_tools`."""
    deferred: Deferring = Deferring.OFF
    """Off, because what it does to a session's price and success was measured on a scripted
    provider only."""
    client: ClientListing = ClientListing.ALL
    """All, because what it does to a session's success could not be asked of a model."""
    list_seconds: Seconds = 10.0
    call_seconds: Seconds = 30.0
    idle_seconds: Seconds = 60.0
    """After which an unused process stops; one that is used often is kept up to five times as
    long."""
    create: bool = False
    """Agents may write tools of their own, which then run on this machine."""
    capacity: AtLeastOne = 50
    """Tools that agents created and that are kept at once; a new one evicts the least useful."""
    life_seconds: Annotated[float, Meta(ge=1, le=1_000_000_000)] = 9400.0
    """After which the score of a tool that was used once has fallen to 1/e."""
    inactive_at: Share = 0.1
    """The score at which a tool becomes inactive: after six hours for one that was used once."""
    ttl_seconds: Seconds = 86_400.0
    """After which an inactive tool that an agent created is deleted."""
    pins: Texts = ("filesystem", "terminal", "writer", "git", "note_taker")
    """Patterns of sources and of full tool names whose tools are pinned from their first use on."""
    answer_from_store: bool = False
    """Repeated calls of tools that declare themselves read-only and idempotent are not run again
    while what they read is unchanged (`answers`)."""
    answer_seconds: Seconds = 30.0
    """For how long, where it is unknown what they read."""
    skills: Texts = ()
    """Further folders with skills."""
    allow: Texts = ()
    """Patterns of tool names; where there are any, only what matches one can be found and used."""
    deny: Texts = ()
    """Patterns of tool names that can neither be found nor used."""
