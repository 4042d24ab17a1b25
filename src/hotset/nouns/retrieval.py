"""What a model asks for when something left its window, and what it gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hotset.nouns.knobs import HistoryKnobs, MemoryKnobs
from hotset.nouns.message import Image
from hotset.nouns.page import Chain, Digest, PageId, SessionId
from hotset.nouns.search import Filter
from hotset.nouns.window import Shown, Spot

Span = tuple[int, int]
"""First and last, both included, from 1."""

END = 1 << 53
"""The last of a span without an end ("120-")."""


@dataclass(frozen=True, slots=True)
class Whole:
    """All of it, as far as it fits."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """From one piece of a long line to another, both included: each is a line and the number of a
    piece in it, from 1."""

    first: Span
    last: Span


@dataclass(frozen=True, slots=True)
class Lines:
    """By line number: the text's own numbers where it carries some. Of long lines also piece by
    piece."""

    spans: tuple[Span | Pieces, ...]


@dataclass(frozen=True, slots=True)
class RowSlice:
    """Rows of a table or elements of an array, from 1; a header is no row and always comes
    along."""

    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class JsonPath:
    path: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function, class, section or setting by its name, with its whole body."""

    name: str


@dataclass(frozen=True, slots=True)
class Regex:
    """In RE2's syntax."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Question:
    """The blocks that share the most telling words with it."""

    words: str


Slice = Whole | Lines | RowSlice | JsonPath | Symbol | Regex | Question

MAX_TOKENS = 2000
"""What an answer may take where the model does not say."""


@dataclass(frozen=True, slots=True)
class Retrieve:
    """Bring content back: by its id, or by what it was."""

    id: str = ""
    """Of a reference, of content, of a page or of a tool call."""
    iteration: int | None = None
    """The model's n-th reply, from 1, with its results; -1 is the latest."""
    tool: str = ""
    topic: str = ""
    how: Slice = field(default_factory=Whole)
    max_tokens: int = MAX_TOKENS
    more: tuple[str, ...] = ()
    """Further ids."""


@dataclass(frozen=True, slots=True)
class Search:
    """Find where something was."""

    query: str
    session: str = ""
    """Empty: this one. `all`: every session of the project. Otherwise a session's id."""
    max_tokens: int = MAX_TOKENS
    only: Filter = field(default_factory=Filter)
    """More conditions: kinds, agents, turns, since, until. Sessions are those of `session`."""


@dataclass(frozen=True, slots=True)
class Range:
    """Whole messages, turn by turn."""

    first: int
    last: int
    max_tokens: int = MAX_TOKENS
    session: str = ""
    """Empty: this one; otherwise a session's id."""


Retrieval = Retrieve | Search | Range


@dataclass(frozen=True, slots=True)
class Place:
    """Where the question is asked: only what comes before it on its own line is "here"."""

    session: SessionId | None
    """None for a conversation that is not kept yet."""
    turn: int = 0
    chains: tuple[Chain, ...] = ()
    """The line's messages in order, asides included; empty means the session's latest line."""
    knobs: HistoryKnobs = field(default_factory=HistoryKnobs)
    memory: MemoryKnobs | None = None
    """The session's own; None outside of one."""
    shown: Mapping[Spot, Shown] = field(default_factory=dict)
    """Pages of the line that are not in the window in full; see `PageTable.shown`."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text of a source: what has an id of its own, whole, or what it knows on a question."""

    heading: str
    text: str
    answers: bool = False
    """It is all that a question asks for: no pages need to be searched."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The text for the model, and what the audit wants to know of it."""

    text: str
    tokens: int
    found: bool = True
    """False if nothing was found; the text says what to ask instead."""
    failed: bool = False
    """The search failed: the store could not be read."""
    truncated: bool = False
    """Less came back than was asked for; the text says what is missing and how to get it."""
    pages: tuple[PageId, ...] = ()
    """The pages that were asked for and looked into, in order, also where the slice that was asked
    for is not in them."""
    spots: tuple[Spot, ...] = ()
    """The places of these pages."""
    contents: tuple[Digest, ...] = ()
    """Their content's addresses: a page that was shortened elsewhere with the same content is meant
    too."""
    scores: tuple[float, ...] = ()
    """Scores of these pages, relative to the best, where a search chose them."""
    images: tuple[Image, ...] = ()
    """Images among the pages that the model can look at again. The text mentions them."""
