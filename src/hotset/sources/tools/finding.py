"""The tool that fits what is asked: by its words, by its meaning, and by what was used for the like before."""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hotset.errors import StoreFailed
from hotset.index.embed.wordwise import Wordwise
from hotset.index.port import Index
from hotset.nouns.finding import Entry, EntryId, Filter, Hit, Query, Sort
from hotset.nouns.tool import Tool
from hotset.sealing import VERSION as SEALING
from hotset.sources.tools.uses import Uses
from hotset.sources.tools.wording import VERSION as WORDING
from hotset.sources.tools.wording import wording

_log = logging.getLogger("hotset")

FOLDER = "index"
"""Where the index is, in the folder of a project's tools: tools have one of their own."""

_CANDIDATES = 30  # of the index, to be put in order here; 50 took 2 ms more and gave nothing, on six sets
_AT_ONCE = 1000  # entries in one commit
_FOLDED_AT_ONCE = 500  # changes: about so many are found by their meaning before they are folded; more wait for it here
_WORDWISE_WEIGHT = 0.5  # beside the index's own order: 0.3 to 0.8 raised NDCG@10 by 1.1 on four sets, by 0.9 with MiniLM
_USES_WEIGHT = 4.0  # a vote in full, in deviations among the candidates: it puts what served for the same question first
_TOOLS = frozenset({Sort.TOOL})


@dataclass(frozen=True, slots=True)
class Match:
    name: str
    score: float
    """From 0 to 1, of this question alone: how far above the average candidate it is, and the best one counts as 1."""
    by: frozenset[str]
    """What speaks for it: `words`, `meaning`, `use`."""


class Finding:
    """The tools of a project, to be found. Use it from any thread."""

    def __init__(self, index: Index, uses: Uses | None = None, wordwise: Wordwise | None = None) -> None:
        """`index` holds nothing but tools: see `FOLDER`."""
        self._index = index
        self._uses = uses
        self._wordwise = wordwise
        self._trouble = ""

    def sync(self, tools: Iterable[Tool]) -> int:
        """These tools and no others are found from now on; how many came, changed or left.

        Whoever may not be used is not among them. What is unchanged costs a comparison.
        """
        known = set(self._index.wholes(Sort.TOOL))
        there: set[str] = set()
        names: set[str] = set()
        new: list[Entry] = []
        for tool in tools:
            whole = _whole(tool)
            there.add(whole)
            if whole not in known:
                names.add(tool.name)
                new.append(_entry(tool, whole))
            if len(new) >= _AT_ONCE:
                self._index.add(new)
                new = []
        if new:
            self._index.add(new)
        gone = known - there
        if gone:
            self._index.remove(gone)
        changed = len(names | {whole.rpartition("#")[0] for whole in gone})
        if changed > _FOLDED_AT_ONCE:
            self._index.fold()
        return changed

    def find(self, query: str, most: int = 5, *, only: Sequence[str] = (), deadline: float = 0.2) -> tuple[Match, ...]:
        """The best first. `only` names sources; no character of the query is an operator, and nothing is started or asked."""
        words = query.replace('"', " ")  # somebody's words, not a condition: a tool need not hold the name that is looked up
        if most <= 0 or not words.strip():
            return ()
        wanted = Filter(sorts=_TOOLS, kinds=frozenset(only))
        hits = self._index.search(Query(words, wanted, max(_CANDIDATES, most), deadline)).hits
        return _matches(hits, self._scores(words, hits), self._votes(words, hits, frozenset(only)))[:most]

    def used(self, query: str, name: str, now: float) -> None:
        """It served for this: from now on it ranks higher for the like. Raises `StoreFailed` where that cannot be kept."""
        if self._uses is not None:
            self._uses.add(query, name, now)

    def troubles(self) -> tuple[str, ...]:
        return (*self._index.troubles(), *([self._trouble] if self._trouble else []))

    def _scores(self, query: str, hits: Sequence[Hit]) -> list[float]:
        """The index's order, and each word of the question against each word of the tools."""
        scores = _deviations([hit.score for hit in hits])
        if self._wordwise is None:
            return scores
        closely = self._wordwise.scores(query, [f"{hit.entry.title}\n{hit.entry.text}" for hit in hits])
        return [score + _WORDWISE_WEIGHT * more for score, more in zip(scores, _deviations(closely), strict=True)]

    def _votes(self, query: str, hits: Sequence[Hit], only: frozenset[str]) -> Mapping[str, float]:
        """Of those tools that are there and fit."""
        if self._uses is None:
            return {}
        try:
            votes = self._uses.votes(query)
        except StoreFailed as error:
            if not self._trouble:
                _log.warning("past uses of tools cannot be read: %s", error)
            self._trouble = str(error)
            return {}
        self._trouble = ""
        found = {hit.entry.id for hit in hits}
        further = self._index.entries([EntryId(name) for name in votes if name not in found])
        found |= {entry.id for entry in further if not only or entry.kind in only}
        return {name: vote for name, vote in votes.items() if name in found}


def _matches(hits: Sequence[Hit], scored: Sequence[float], votes: Mapping[str, float]) -> tuple[Match, ...]:
    scores = dict.fromkeys(votes, min(scored, default=0.0))
    scores |= {str(hit.entry.id): score for hit, score in zip(hits, scored, strict=True)}
    scores = {name: _lifted(score, votes.get(name, 0.0)) for name, score in scores.items()}
    by = {str(hit.entry.id): _signals(hit) for hit in hits}
    best = max(scores.values(), default=0.0)
    return tuple(
        Match(name, _share(score, best), by.get(name, frozenset()) | ({"use"} if name in votes else frozenset()))
        for name, score in sorted(scores.items(), key=lambda each: (-each[1], each[0]))
    )


def _lifted(score: float, vote: float) -> float:
    """In full, a vote lifts from the average at least: what served for the same question need not sound like it."""
    return score + vote * (_USES_WEIGHT + max(0.0, -score))


def _deviations(values: Sequence[float]) -> list[float]:
    mean = sum(values) / max(1, len(values))
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / max(1, len(values)))
    return [(value - mean) / spread if spread else 0.0 for value in values]


def _signals(hit: Hit) -> frozenset[str]:
    told = (("words", hit.by_words), ("meaning", hit.by_meaning))
    return frozenset(name for name, value in told if value is not None)


def _share(score: float, best: float) -> float:
    if best <= 0:  # nothing is above the average: they are all alike
        return 1.0 if score == best else 0.0
    return round(min(1.0, max(0.0, score / best)), 4)


def _entry(tool: Tool, whole: str) -> Entry:
    said = wording(tool)
    return Entry(EntryId(tool.name), whole, Sort.TOOL, said.text, kind=tool.source, title=said.title)


def _whole(tool: Tool) -> str:
    """Its name, and a hash of all that is indexed of it and of what makes words of that."""
    made_from = (WORDING, SEALING, tool.source, tool.origin, tool.own_name, tool.title, tool.description, tool.parameters)
    return f"{tool.name}#{hashlib.sha256(repr(made_from).encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
