"""The kinds of memories."""

from __future__ import annotations

from enum import StrEnum


class MemoryKind(StrEnum):
    EPISODE = "episode"
    """What was asked, done and achieved in a stretch of a session."""
    FACT = "fact"
    """Something that holds: a decision, a preference, a pattern that episodes have in common."""
    PROCEDURE = "procedure"
    """Steps that led to success."""
    PITFALL = "pitfall"
    """What failed, why, and what resolved it."""
    LEDGER = "ledger"
    """An agent's own checkpoint."""
    HANDOFF = "handoff"
    """What one agent left for the next."""
    LEARNING = "learning"
    """A lesson in the words of a person or an agent."""
    ARRANGEMENT = "arrangement"
    """How memories are shown. hotset's own; never listed or recalled."""
