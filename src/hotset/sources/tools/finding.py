"""The tool that fits what is asked: by its words, by its meaning, and by what was used for the like before."""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hotset.errors import StoreFailed
from hotset.index.embed.table import Table
from hotset.index.port import Index
from hotset.nouns.finding import Entry, EntryId, Filter, Hit, Query, Sort
from hotset.nouns.tool import Tool
from hotset.sealing import VERSION as SEALING
from hotset.sources.tools.likelihood import Weighed, likely
from hotset.sources.tools.likeness import Likening
from hotset.sources.tools.uses import Uses
from hotset.sources.tools.wording import VERSION as WORDING
from hotset.sources.tools.wording import wording

_log = logging.getLogger("hotset")

FOLDER = "index"
"""Where the index is, in the folder of a project's tools: tools have one of their own."""

_CANDIDATES = 30  # of the index, to be put in order here; 50 took 2 ms more and gave nothing, on six sets
_AT_ONCE = 1000  # entries in one commit
_FOLDED_AT_ONCE = 500  # changes: about so many are found by their meaning before they are folded; more wait for it here
_ANSWERED_WEIGHT, _NAMED_WEIGHT = 0.75, 0.6
"""Beside the index's own order. Over seven sets (none of them in the benchmark) NDCG@10 is 57.2 by that order, 58.0 with what a
tool answers of a question too, and 59.2 with what a question names of a tool; from 0.45 to 0.8 of the latter it stays at 59.1."""
_USES_WEIGHT = 6.0  # a vote in full, in deviations among the candidates: it puts what served for the same question first
_TOOLS = frozenset({Sort.TOOL})


@dataclass(frozen=True, slots=True)
class Match:
    name: str
    score: float
    """From 0 to 1: of first results with 0.8 about eight of ten were right (see `likely`). Those behind are never above it."""
    by: frozenset[str]
    """What speaks for it: `words`, `meaning`, `use`."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    entry: Entry
    score: float
    """The index's own; of what only the past brings, the least."""
    by: frozenset[str]


class Finding:
    """The tools of a project, to be found. Use it from any thread."""

    def __init__(self, index: Index, table: Table, uses: Uses | None = None) -> None:
        """`index` holds nothing but tools: see `FOLDER`. `table` has the vectors of single words."""
        self._index = index
        self._likening = Likening(table)
        self._uses = uses
        self._size: int | None = None
        """Tools that can be found; None until somebody asks."""
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
        self._size = len(there)
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
        weighed, voted = self._weighed(words, frozenset(only), max(_CANDIDATES, most), deadline)
        scores = likely(weighed, self._looked_through(len(weighed), max(_CANDIDATES, most)))
        return tuple(
            Match(each.name, score, each.by | ({"use"} if each.name in voted else frozenset()))
            for each, score in zip(weighed[:most], scores, strict=False)
        )

    def used(self, query: str, name: str, now: float) -> None:
        """It served for this: from now on it ranks higher for the like. Raises `StoreFailed` where that cannot be kept."""
        if self._uses is not None:
            self._uses.add(query, name, now)

    def troubles(self) -> tuple[str, ...]:
        return (*self._index.troubles(), *([self._trouble] if self._trouble else []))

    def _weighed(self, query: str, only: frozenset[str], most: int, deadline: float) -> tuple[list[Weighed], frozenset[str]]:
        """The best first; and the names of those for which the past speaks."""
        hits = self._index.search(Query(query, Filter(sorts=_TOOLS, kinds=only), most, deadline)).hits
        found = [_Candidate(hit.entry, hit.score, _signals(hit)) for hit in hits]
        votes = self._votes(query)
        least = min((each.score for each in found), default=0.0)
        further = self._index.entries([EntryId(name) for name in votes.keys() - {each.entry.id for each in found}])
        found += [_Candidate(each, least, frozenset()) for each in further if not only or each.kind in only]
        if not found:
            return [], frozenset()
        alike = self._likening.of(query, [(each.entry.title, each.entry.text) for each in found])
        order, answered, named = (
            _deviations(values, len(hits))
            for values in ([each.score for each in found], [each.answered for each in alike], [each.named for each in alike])
        )
        weighed = [
            Weighed(
                each.entry.id,
                _lifted(order[at] + _ANSWERED_WEIGHT * answered[at] + _NAMED_WEIGHT * named[at], votes.get(each.entry.id, 0.0)),
                alike[at],
                votes.get(each.entry.id, 0.0),
                each.by,
            )
            for at, each in enumerate(found)
        ]
        return sorted(weighed, key=lambda each: (-each.score, each.name)), frozenset(votes)

    def _looked_through(self, found: int, most: int) -> int:
        """How many tools a search was among: where it could have brought more than it did, these were all."""
        if found < most:
            return found
        if self._size is None:  # once: another process may have filled the index, and nothing hangs on a few more or less
            self._size = len(self._index.wholes(Sort.TOOL))
        return self._size

    def _votes(self, query: str) -> Mapping[str, float]:
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
        return votes


def _lifted(score: float, vote: float) -> float:
    """In full, a vote lifts from the average at least: what served for the same question need not sound like it."""
    return score + vote * (_USES_WEIGHT + max(0.0, -score))


def _deviations(values: Sequence[float], first: int) -> list[float]:
    """From the mean of the first ones: what only the past brings says nothing about the others."""
    among = values[:first] or values
    mean = sum(among) / len(among)
    spread = math.sqrt(sum((value - mean) ** 2 for value in among) / len(among))
    return [(value - mean) / spread if spread else 0.0 for value in values]


def _signals(hit: Hit) -> frozenset[str]:
    told = (("words", hit.by_words), ("meaning", hit.by_meaning))
    return frozenset(name for name, value in told if value is not None)


def _entry(tool: Tool, whole: str) -> Entry:
    said = wording(tool)
    return Entry(EntryId(tool.name), whole, Sort.TOOL, said.text, kind=tool.source, title=said.title)


def _whole(tool: Tool) -> str:
    """Its name, and a hash of all that is indexed of it and of what makes words of that."""
    made_from = (WORDING, SEALING, tool.source, tool.origin, tool.own_name, tool.title, tool.description, tool.parameters)
    return f"{tool.name}#{hashlib.sha256(repr(made_from).encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
