"""One search over every source: pages, code, memories and tools, with comparable scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from hotset.index.port import describe_lacking
from hotset.nouns.search import Query, SearchHit, SourceHits


def merge_hits(groups: Iterable[Sequence[SearchHit]]) -> list[SearchHit]:
    """One list, best first. Scores of different sources cannot be compared, so each is divided by
    its source's best."""
    scaled = [
        replace(hit, score=hit.score / best)
        for group in groups
        for best in (max((each.score for each in group), default=0.0) or 1.0,)
        for hit in group
    ]
    return sorted(scaled, key=lambda hit: -hit.score)


class Finder(Protocol):
    """What can be searched: any source, or the part of one that searches."""

    def find(self, query: Query) -> SourceHits: ...


TextSearch = tuple[Finder, Query]
"""What is searched, and its query."""


@dataclass(frozen=True, slots=True)
class TextHits:
    """Hits in the project's files and in pages of its conversations."""

    groups: Sequence[Sequence[SearchHit]]
    lacking: str
    """Signals that did not serve, and why; empty if all did."""
    note: str
    """How the query was loosened, if nothing matches it as it was asked."""


def find_text(searches: Sequence[TextSearch]) -> TextHits:
    """Hits of these sources for the strictest wording of their query that has any."""
    from hotset.index.analysis import wordings  # noqa: PLC0415 - numpy

    found = TextHits((), "", "")
    for wording in wordings(searches[0][1].words) if searches else ():
        given = [source.find(replace(query, words=wording.words)) for source, query in searches]
        lacking = frozenset[str]().union(*(each.lacking for each in given))
        why = {name: reason for each in given for name, reason in each.why.items()}
        found = TextHits(
            [each.hits for each in given], describe_lacking(lacking, why), wording.note
        )
        # If "words" did not answer, it is unknown whether anything contains the phrase.
        if any(found.groups) or "words" in lacking:
            break
    return found
