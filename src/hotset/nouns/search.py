"""What can be found, what is asked, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

EntryId = NewType("EntryId", str)
"""An entry's own name, unique in its index: what it is part of, and which part of it."""


class Sort(StrEnum):
    """Where an entry comes from. Each sort has weights of its own: tools want little of the words,
    code wants more."""

    PAGE = "page"
    """A stretch of a page of a conversation."""
    CODE = "code"
    """A stretch of a file of the project."""
    TOOL = "tool"
    MEMORY = "memory"
    RECORD = "record"
    """A reference to what left a window, a checkpoint or a handoff."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A stretch of text that can be found. Its text holds no secrets: they were sealed before it
    was made."""

    id: EntryId
    whole: str
    """What it is a stretch of: a page's id, a file's path in the project. All entries of one whole
    leave together."""
    sort: Sort
    text: str
    kind: str = ""
    """A page's kind, or a file's language."""
    title: str = ""
    """Words that say what it is and weigh more than those of its text: a symbol with its scope, a
    path, a tool's name."""
    session: str = ""
    agent: str = ""
    turn: int = 0
    time: float = 0.0
    """Time of the page, or the file's last change."""
    path: str = ""
    lines: tuple[int, int] = (0, 0)
    """First and last line of the stretch in its whole, both included, from 1; (0, 0) where it has
    none."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which entries: every condition that is set must hold."""

    sorts: frozenset[Sort] = frozenset()
    kinds: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    turns: tuple[int, int] | None = None
    since: float | None = None
    until: float | None = None
    """Before this moment."""
    path: str = ""
    """A folder, a file, or a glob pattern."""


@dataclass(frozen=True, slots=True)
class Query:
    """Words are data: no character of them is an operator."""

    words: str
    only: Filter = field(default_factory=Filter)
    most: int = 10
    deadline: float = 0.2
    """Seconds. A signal that takes longer is left out, and the result says so."""


class Lack(StrEnum):
    """Why a signal did not serve."""

    LATE = "did not answer in time"
    MISSING = "index files missing or damaged; they are made again"
    UNBUILT = "index not built yet"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class IndexHit:
    entry: Entry
    score: float
    """Of this query alone: good for an order, not for a threshold."""
    by_words: float | None = None
    """What full text alone gave it; None where it did not find it."""
    by_meaning: float | None = None
    """The cosine of its vector and the query's; None where it is not among the nearest."""


@dataclass(frozen=True, slots=True)
class Hits:
    hits: tuple[IndexHit, ...] = ()
    lacking: frozenset[str] = frozenset()
    """Signals that did not serve this time: `words`, `meaning`, `tail`."""
    why: Mapping[str, Lack] = field(default_factory=dict)
    """Why they did not, where it was not for lack of time."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One thing that a search over every source found."""

    type: Sort
    score: float
    """A share of the best score of its type, once hits of several types are merged."""
    where: str
    """A file's `path:first-last`, a session's turn, a memory's id or a tool's name."""
    what: str
    """Its kind, title or description, in a line."""
    show: str = ""
    """The command that shows more of it."""
    time: float = 0.0
    """Time of the page or memory; 0 if it has none."""
    stretch: Entry | None = None
    """The text that matches; None if `what` is all there is."""
    detail: Mapping[str, object] = field(default_factory=dict)
    """Its fields for programs."""


@dataclass(frozen=True, slots=True)
class SourceHits:
    """What one source found, best first."""

    hits: Sequence[SearchHit] = ()
    lacking: frozenset[str] = frozenset()
    """Signals that did not serve."""
    why: Mapping[str, Lack] = field(default_factory=dict)
    """Why, where it was not for lack of time."""
