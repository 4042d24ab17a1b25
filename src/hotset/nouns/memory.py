"""Memories: what an agent did, what it knows, how things are done, and what goes wrong; each with
where it comes from.

A memory is never changed. Whatever happens to it, being corrected, replaced, merged, confirmed or
forgotten, is a new version of it, and the versions before stay.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

from hotset.nouns.memory_kind import MemoryKind as MemoryKind  # noqa: PLC0414 - one vocabulary
from hotset.nouns.page import PageId, SessionId

MemoryId = NewType("MemoryId", str)
"""`ep-2026-01-05-3k9f2mqx`, `sem-7ha2c0de`: a kind, the day of an episode, and a hash (see
`sources.memory.kinds`)."""


class Task(StrEnum):
    """The kind of task that a prompt is about. Each needs other memories."""

    EXPLORATION = "exploration"
    IMPLEMENTATION = "implementation"
    DEBUGGING = "debugging"
    REVIEW = "review"
    REFACTORING = "refactoring"


class Ending(StrEnum):
    """How it came out."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAILURE = "failure"
    UNKNOWN = "unknown"


class Trust(StrEnum):
    """Whose words these are."""

    PERSON = "person"
    """A person wrote or confirmed it."""
    OUTCOME = "outcome"
    """Put together by rules from what was done, and what was done worked."""
    AGENT = "agent"
    """Stated by a model."""
    OUTSIDE = "outside"
    """Text of a tool, a file or the web. Never becomes a procedure or a pitfall by itself."""


class Standing(StrEnum):
    ACTIVE = "active"
    CANDIDATE = "candidate"
    """Waits until an outcome or a person confirms it; never offered as advice."""
    SUPERSEDED = "superseded"
    """Replaced by another one. Still found, with the id of its replacement."""
    MERGED = "merged"
    """Merged into another one that has its content and its sources."""
    FORGOTTEN = "forgotten"
    """Forgotten on request. No search finds it; `hotset memory restore` brings it back."""


class Relation(StrEnum):
    DERIVED_FROM = "derived_from"
    RELATED_TO = "related_to"
    CONTRADICTS = "contradicts"
    SUPERSEDES = "supersedes"


class Layer(StrEnum):
    """How much of a memory is shown."""

    INDEX = "index"
    """As one of those that a topic counts."""
    TIMELINE = "timeline"
    """In a line."""
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a memory comes from."""

    by: str
    """Who put it into words: `rules`, `person`, `import`, or the name of a model."""
    session: SessionId | None = None
    agent: str = ""
    pages: tuple[PageId, ...] = ()
    """The pages that it was made from."""
    places: tuple[str, ...] = ()
    """What those words came from: tools, addresses, files. `rollback` takes back by any of these,
    by session and by agent."""


@dataclass(frozen=True, slots=True)
class Action:
    at: float
    """Seconds since the episode began."""
    tool: str
    target: str
    """What it was done to: a path, a command, a query. Short."""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that went wrong, and what became of it."""

    kind: str
    """The error's own name, such as `ModuleNotFoundError`; `exit 1` where it has none."""
    said: str
    """Its message, cut short. Untrusted data."""
    tool: str
    target: str
    """The action that failed."""
    resolved: tuple[str, ...] = ()
    """What was done before the same action worked; empty where it never did."""
    is_resolved: bool = False
    page: PageId | None = None


@dataclass(frozen=True, slots=True)
class Episode:
    goal: str
    """In the user's words."""
    phase: str = ""
    """What was being done when it ended: exploring, changing, testing."""
    turns: tuple[int, int] = (0, 0)
    branch: int = 0
    seconds: float = 0.0
    """From its first to its last page."""
    actions: tuple[Action, ...] = ()
    more_actions: int = 0
    """Those beyond the ones that are listed."""
    troubles: tuple[Trouble, ...] = ()
    files: tuple[str, ...] = ()
    """That were looked at."""
    artifacts: tuple[str, ...] = ()
    """Files that were made or changed."""
    decisions: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    """What the user asked to heed, in their words."""
    answer: str = ""
    """What the reply said in the end."""
    tokens: int = 0
    """Of the pages that it summarises."""
    quoted: bool = False
    """The goal's words may come from a document or a tool instead of the user. Never shown
    unasked."""


@dataclass(frozen=True, slots=True)
class Fact:
    subject: str = ""
    """What it is about: facts on one subject may replace each other."""


@dataclass(frozen=True, slots=True)
class Procedure:
    when: str = ""
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pitfall:
    what: str = ""
    """What fails."""
    why: str = ""
    instead: str = ""
    """What resolved it."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Of a ledger or a handoff."""

    done: tuple[str, ...] = ()
    doing: str = ""
    next: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    to: str = ""
    """Whom a handoff is for."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How memories are shown in this store: what the corrective actions of the economics
    changed."""

    scores: dict[str, float] = field(default_factory=dict)
    """Of topics that were judged by their use; 1 is what any other has."""
    aliases: dict[str, str] = field(default_factory=dict)
    """Topics that are shown under another one."""
    composites: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Topics that are read together, under one name."""
    stale: tuple[str, ...] = ()
    """Topics that the index leaves out. What they hold is found all the same."""
    split: bool = False
    """The timeline is ordered by topic."""
    full_days: float = 7.0
    line_days: float = 30.0
    excerpt: int = 120
    """Tokens of a long memory that are shown."""
    weights: dict[str, float] = field(default_factory=dict)
    """Of the signals of a recall, where those of this store were learned."""
    bypass: dict[str, float] = field(default_factory=dict)
    """Kinds of tasks in which memory did not pay, and until when nothing is offered there."""


Detail = Episode | Fact | Procedure | Pitfall | Checkpoint | Arrangement | None

DETAILS: dict[MemoryKind, type | None] = {
    MemoryKind.EPISODE: Episode,
    MemoryKind.FACT: Fact,
    MemoryKind.PROCEDURE: Procedure,
    MemoryKind.PITFALL: Pitfall,
    MemoryKind.LEDGER: Checkpoint,
    MemoryKind.HANDOFF: Checkpoint,
    MemoryKind.LEARNING: None,
    MemoryKind.ARRANGEMENT: Arrangement,
}
"""What each kind has beside what all have."""


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """One version of a memory. Holds no secrets: they were sealed before it was made."""

    id: MemoryId
    kind: MemoryKind
    title: str
    """One line."""
    text: str
    """What is shown of it, whole."""
    created: float
    """When it happened or was stated."""
    source: Provenance
    detail: Detail = None
    topics: tuple[str, ...] = ()
    task: Task | None = None
    ending: Ending = Ending.UNKNOWN
    confidence: float = 0.5
    trust: Trust = Trust.AGENT
    standing: Standing = Standing.ACTIVE
    valid_until: float | None = None
    """From when on something else holds; it holds since `created`."""
    pinned: bool = False
    """Age changes nothing about its form."""
    tokens: int = 0
    """Of its text."""
    time: float = 0.0
    """When this version was written."""
    version: int = 1
    run: str = ""
    """The piece of work that wrote this version; `undo` takes back all that it wrote."""
    why: str = ""
    """Why this version was written, in a few words."""


@dataclass(frozen=True, slots=True)
class MemoryLink:
    """A relation from `of` to `to`: derived from it, supersedes it, and so on."""

    of: MemoryId
    to: MemoryId
    relation: Relation
    time: float = 0.0
    run: str = ""
    gone: bool = False
    """It was taken back. The latest row of two memories and a relation holds."""


class Used(StrEnum):
    SHOWN = "shown"
    """Offered, or among the results of a search."""
    READ = "read"
    """Asked for by its id."""
    HELPED = "helped"
    """A person confirmed it, or the work it was shown for ended well."""
    MISLED = "misled"


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """A memory was used."""

    memory: MemoryId
    how: Used
    time: float
    session: SessionId | None = None
    task: Task | None = None


@dataclass(frozen=True, slots=True)
class Uses:
    """How often a memory was used."""

    shown: int = 0
    read: int = 0
    helped: int = 0
    misled: int = 0
    last: float = 0.0
    """When it was last read, or helped."""
