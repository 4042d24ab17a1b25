"""What a turn cost, and what it would have cost to send everything."""

from __future__ import annotations

from dataclasses import dataclass, field

from hotset.nouns.page import SessionId
from hotset.nouns.usage import Usage


@dataclass(frozen=True, slots=True)
class Bill:
    """One turn's entry in the ledger. `usage` is the provider's own count, if it gave one; all
    other tokens are estimated."""

    model: str
    upstream: str
    sent: Usage = field(default_factory=Usage)
    """What we sent, under the provider's cache rules."""
    whole: Usage = field(default_factory=Usage)
    """What sending everything would have come to, under the same rules."""
    usage: Usage = field(default_factory=Usage)
    """What the provider reported, summed over every call of the turn; our own count, marked as
    such, if it reported nothing."""
    calls: int = 1
    """Calls to the provider: one, and one more for each round of faults."""
    faults: int = 0
    """Retrievals that the model asked for."""
    refaults: int = 0
    """Of these, the ones for a page that we had shortened or evicted."""
    broke: str = ""
    """Why the prefix did not extend the latest one; empty if it did."""
    overhead_ms: float = 0.0
    """Time that we added before the request left."""
    session: SessionId | None = None
    turn: int = 0
    time: float = 0.0
    """Session, turn and time are filled in by the store."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a stretch of a session was about. Made from what was there at that moment: it never
    contains what came after."""

    session: SessionId
    turns: tuple[int, int]
    """First and last turn, both included."""
    branch: int
    version: int
    """Later versions of the same stretch have higher numbers."""
    text: str
    by: str
    """The model that wrote it; `rules` where it was put together from the text's own sentences."""
    time: float
