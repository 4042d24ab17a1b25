"""One search over every source: pages, code, memories and tools as hits whose scores can be
compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hotset.index.port import Index
from hotset.nouns.finding import Query, SearchHit
from hotset.sources.code import code_hits
from hotset.sources.history import find, page_hits
from hotset.sources.memory import memory_hits
from hotset.sources.tools import tool_hits
from hotset.store.port import Store

__all__ = [
    "TextHits",
    "code_hits",
    "memory_hits",
    "merge_hits",
    "page_hits",
    "text_hits",
    "tool_hits",
]


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


@dataclass(frozen=True, slots=True)
class TextHits:
    """Hits in the project's files and in pages of its conversations."""

    groups: Sequence[Sequence[SearchHit]]
    lacking: frozenset[str]
    """Signals that did not answer in time."""
    note: str
    """How the words were loosened, where nothing holds them as they were asked for."""


def text_hits(query: Query, index: Index, store: Store | None, code_path: str | None) -> TextHits:
    """Hits by the strictest wording of the query that has any: in the files on `code_path` unless
    it is None, and in pages where there is a store."""
    from hotset.index.analysis import wordings  # noqa: PLC0415 - numpy
    from hotset.sources.code import find_code  # noqa: PLC0415

    found = TextHits((), frozenset(), "")
    for wording in wordings(query.words):
        groups: list[Sequence[SearchHit]] = []
        lacking: frozenset[str] = frozenset()
        asked = replace(query, words=wording.words)
        if code_path is not None:
            hits = find_code(index, replace(asked, only=replace(asked.only, path=code_path)))
            lacking |= hits.lacking
            groups.append(code_hits(hits))
        if store is not None:
            pages = find(asked, store, index)
            lacking |= pages.lacking
            groups.append(page_hits(pages, store))
        found = TextHits(groups, lacking, wording.note)
        # Where "words" did not answer, it is not known whether anything holds the phrase.
        if any(groups) or "words" in lacking:
            break
    return found
