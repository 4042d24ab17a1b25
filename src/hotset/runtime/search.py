"""One search over every source: pages, code, memories and tools as hits whose scores can be
compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hotset.nouns.finding import SearchHit
from hotset.sources.code import code_hits
from hotset.sources.history import page_hits
from hotset.sources.memory import memory_hits
from hotset.sources.tools import tool_hits

__all__ = ["code_hits", "memory_hits", "merge_hits", "page_hits", "tool_hits"]


def merge_hits(groups: Iterable[Sequence[SearchHit]]) -> list[SearchHit]:
    """One list, best first. Scores of different sources say nothing about each other, so each is a
    share of its best."""
    scaled = [
        replace(hit, score=hit.score / best)
        for group in groups
        for best in (max((each.score for each in group), default=0.0) or 1.0,)
        for hit in group
    ]
    return sorted(scaled, key=lambda hit: -hit.score)
