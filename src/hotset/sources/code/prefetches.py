"""How many prefetched excerpts and hints were offered, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hotset.nouns.turn import Event

PREFETCHED, JUDGED = "Prefetched", "PrefetchJudged"
"""Event names: an offer was made; a part of one was judged."""


@dataclass(frozen=True, slots=True)
class Prefetches:
    """Counts of offers and their verdicts, from events."""

    offered: int = 0
    """Excerpts and hints."""
    tokens: int = 0
    used: int = 0
    expanded: int = 0
    wasted: int = 0
    saved: int = 0
    """Tokens of excerpts that an action copied from before any action had read their file."""

    def after(self, event: Event) -> Prefetches:
        detail = event.detail
        if event.name == PREFETCHED:
            many = int(detail["excerpts"]) + int(detail["hints"])
            return replace(
                self, offered=self.offered + many, tokens=self.tokens + int(detail["tokens"])
            )
        if event.name == JUDGED:
            verdict = str(detail["verdict"])  # one of `window.prefetch.Verdict`
            return replace(
                self,
                saved=self.saved + int(detail["saved"]),
                **{verdict: getattr(self, verdict) + 1},
            )
        return self
