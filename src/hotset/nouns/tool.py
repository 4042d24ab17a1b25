"""A tool of the library: what it is, where it comes from, what a call of it gives, and how it
fares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

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
