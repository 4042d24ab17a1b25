"""What became of all that was offered before a model asked: counted from events, without what it takes to offer anything."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hotset.nouns.turn import Event
from hotset.window.prefetch import Verdict

PREFETCHED, JUDGED = "Prefetched", "PrefetchJudged"
"""Events: what was offered, and what became of each part of it."""


@dataclass(frozen=True, slots=True)
class Prefetches:
    """What became of all that was offered."""

    offered: int = 0
    """Excerpts and hints."""
    tokens: int = 0
    used: int = 0
    expanded: int = 0
    wasted: int = 0
    saved: int = 0
    """Tokens of excerpts from which an action copied before any had read their file."""

    def after(self, event: Event) -> Prefetches:
        detail = event.detail
        if event.name == PREFETCHED:
            many = int(detail["excerpts"]) + int(detail["hints"])
            return replace(self, offered=self.offered + many, tokens=self.tokens + int(detail["tokens"]))
        if event.name == JUDGED:
            verdict = str(Verdict(str(detail["verdict"])))
            return replace(self, saved=self.saved + int(detail["saved"]), **{verdict: getattr(self, verdict) + 1})
        return self
