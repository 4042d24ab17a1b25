"""What a source offers for a request, and what the plan decided about each offer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hotset.nouns.message import ToolSpec


class OfferSlot(StrEnum):
    """Where a candidate would be placed."""

    TOOL_LIST = "tool list"
    BEHIND_PROMPT = "behind the prompt"
    BEHIND_RESULT = "behind a result"


class OfferKind(StrEnum):
    """What a candidate is; each kind has a cap and a budget of its own."""

    TOOL = "tool"
    """In the session's tool list already: it is sent again, byte for byte."""
    GHOST = "ghost"
    REFERENCE = "reference"
    """To what a client no longer sends."""
    REMINDER = "reminder"
    HANDOFF_NOTE = "handoff note"
    """Of a handoff with which nothing left."""
    EXCERPT = "excerpt"
    HINT = "hint"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing that a source would put into the window."""

    source: str
    kind: OfferKind
    key: str
    """What it is about: a tool's name, a file's path, a memory's id. Of several candidates with one
    key at most one is taken."""
    slot: OfferSlot
    body: str | ToolSpec
    tokens: int
    worth: float
    """The calibrated probability that it is used, so that sources can be compared."""
    heading: str = ""
    """Shown once, above everything taken of the same source."""
    covers: tuple[str, ...] = ()
    """Lines by which its content is recognised. It is left out if most of them are in the window
    already."""
    origin: object = None
    """What its source made it of. Only the source looks at it."""


class OfferVerdict(StrEnum):
    """Why a candidate was taken or left."""

    TAKEN = "taken"
    UNLIKELY = "too unlikely to be used"
    COVERED = "stands in the window already"
    SAME = "another candidate says the same"
    CAPPED = "enough others of its kind"
    NO_ROOM = "no room"
    REFUSED = "the provider takes no text there"


@dataclass(frozen=True, slots=True)
class Choice:
    """What the plan decided about a candidate."""

    candidate: Candidate
    verdict: OfferVerdict
    probability: float = 1.0
    """With which the same plan would decide so again: 1 as long as nothing is explored."""

    @property
    def is_taken(self) -> bool:
        return self.verdict is OfferVerdict.TAKEN
