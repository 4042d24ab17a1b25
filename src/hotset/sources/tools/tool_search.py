"""Search for tools: by words, by meaning, and by what was used for similar queries before."""

from __future__ import annotations

import hashlib
import logging
import math
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hotset.errors import HotsetError
from hotset.index.analysis import split_identifiers
from hotset.index.embed.blas_threads import one_thread
from hotset.index.embed.embedders import embedders
from hotset.index.embed.port import Embedder
from hotset.index.embed.table import WordVectors
from hotset.index.embed.wordpiece import counts_of
from hotset.index.full_text import stems_in
from hotset.index.local import LocalIndex
from hotset.index.port import Index, Watermark
from hotset.index.vectors import Floats
from hotset.nouns.embedding import Embedding
from hotset.nouns.note import Space
from hotset.nouns.search import Entry, EntryId, Filter, IndexHit, Query, Sort
from hotset.nouns.tool import OriginKind, Tool
from hotset.sealing import VERSION as SEALING, seal
from hotset.sources.tools.verbs import query_intent, tool_intent
from hotset.store.port import Store
from hotset.store.stored_value import GatheredValue, StoredValue
from hotset.text.human_language import STOPS, is_latin, language_of, pairs_of_letters
from hotset.text.stems import light_stem
from hotset.text.stops import TOOL_PROMPT
from hotset.text.words import split_humps, word_set
from hotset.typed import decode

_log = logging.getLogger("hotset")

FOLDER = "index"
"""Where the index is, in the folder of a project's tools: tools have one of their own."""

_CANDIDATES = (
    30  # of the index, to be put in order here; 50 took 2 ms more and gave nothing, on six sets
)
_AT_ONCE = 1000  # entries in one commit
# changes: about so many are found by their meaning before they are folded; more wait for it here
_FOLDED_AT_ONCE = 500
_ANSWERED_WEIGHT, _NAME_WEIGHT = 0.75, 0.6
"""Beside the index's own order. Over seven sets (none of them in the benchmark) NDCG@10 is 57.2 by
that order, 58.0 with what a tool answers of a question too, and 59.2 with what a question names of
a tool; from 0.45 to 0.8 of the latter it stays at 59.1."""
_OPPOSED_WEIGHT = 4.0
"""Deviations that a tool loses if it writes where a plain query asks to read, or the other way
round. On the public sets, which have few such queries, it changes next to nothing."""
_USES_WEIGHT = 6.0
"""Of a vote in full, in deviations among the candidates, times the library's own `PastUses.weight`:
it puts what served for the same question first."""
_TOOLS = frozenset({Sort.TOOL})

MOST = 10_000
"""Uses that are kept."""

_USES = Space("tool_uses", keeps=1)
_WEIGHT = Space("tool_past_weight", keeps=1)
_WATERMARK = "tools"
_RULE = 3  # of what is indexed; counted up when other tools of the same catalogue are
_LONGEST_QUESTION = 2000
_PAST_WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_LEAST_REPLAYED = 20  # queries; fewer say too little about how much their past should count
_MOST_REPLAYED = 400  # uses, the latest: three seconds
_GROWTH = 1.25  # times as many uses as when the weight was chosen, for it to be chosen again
_NEAREST = 15  # past questions that vote
# of a vote, by likeness: with 1 the many that are half alike outvote the one that says the same
_SHARPNESS = 8
# likeness of the nearest past query: below the first it counts nothing, from the second on in full
_UNLIKE, _ALIKE = (
    0.4,
    0.8,
)

_SMALLEST = 10  # tools: smaller libraries were not looked at, and count as this
_JUDGED = 10  # of the candidates, the best: the others are never likelier than the last of these
_MOST_SENTENCES = 8  # of a query; a prompt may ask for one thing in many sentences
_SENTENCE_WORDS = 3  # fewer are no wish
_DESCRIBED = 400  # characters of a tool's text whose words are compared: what it does comes first
_PAST_WEIGHT = (
    0.8  # of what a vote in full takes away of the doubt: what served once need not serve again
)

_MOST_LIKENESS_TOKENS = 256  # of a text, as it begins

WORDING_VERSION = 1
"""Another number when the same tool gives other words: all tools are worded anew then."""

_MOST_DESCRIPTION = 2000  # characters; the table's vectors read some 512 tokens of all that is here
_MOST_ARGUMENTS = 64
_MOST_OF_ARGUMENT = 300
_MOST_CHOICES = 16
_MOST_OF_CHOICE = 40
_DEEPEST = (
    4  # objects in objects: what lies below is about the form of the call, not about the tool
)
_JOINTS = re.compile(r"[_\-./:|]+")
_WORD = re.compile(r"[^\W\d_]+")
_MARKS = ".,;:!?\"'()[]{}¿¡«»„“”…"
_SENTENCE_END = re.compile(r"(?<=[.!?;:])\s+|\n+")
_WEAK = word_set("""
    add based check code create creat data delete delet file first following info information list
    name new number one other result return run set string test two type update updat user value
    work
    """)
"""Too common to identify a tool by themselves: every tool creates, lists and tests."""
_NAMELESS = frozenset(
    {OriginKind.CREATED, OriginKind.CALLABLE}
)  # the names of their sources carry no meaning


@dataclass(frozen=True, slots=True)
class ToolMatch:
    name: str
    score: float
    """How likely it is the right one, from 0 to 1 (see `likelihood`). None is above the one
    before."""
    by: frozenset[str]
    """What it was found by: `words`, `meaning`, `use`."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    entry: Entry
    score: float
    """The index's own; of what only the past brings, the least."""
    by: frozenset[str]


class ToolSearch:
    """The search over a project's tools. Safe to use from several threads."""

    def __init__(self, index: Index, table: WordVectors, uses: PastUses | None = None) -> None:
        """`index` holds nothing but tools: see `FOLDER`. `table` has the vectors of single
        words."""
        self._index = index
        self._table = table
        self._uses = uses
        self._size: int | None = None
        """Number of tools in the index; None until it is needed."""
        self._trouble = ""

    def follow(self, version: str, tools: Iterable[Tool]) -> None:
        """Syncs the index, unless it has this version of the catalogue already."""
        digest = hashlib.sha256(f"{version} {WORDING_VERSION} {_RULE}".encode()).digest()
        mark = int.from_bytes(digest[:6]) or 1  # 0 means that nothing was followed
        if self._index.watermark(_WATERMARK) != mark:
            self.sync(tools)
            self._index.add((), Watermark(_WATERMARK, mark))

    def sync(self, tools: Iterable[Tool]) -> int:
        """Indexes these tools and no others. Returns how many came, changed or left.

        The caller leaves out tools that may not be used. What is unchanged costs a comparison.
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

    def find(
        self,
        query: str,
        most: int = 5,
        *,
        only: Sequence[str] = (),
        deadline: float = 0.2,
        past: float = 1.0,
    ) -> tuple[ToolMatch, ...]:
        """The best matches first. `only` names sources; `past` is how much past uses count. No
        character of the query is an operator, and no server is started or asked."""
        if most <= 0 or not query.replace('"', " ").strip():
            return ()
        ranked, signs = self.rank(query, most, only=only, deadline=deadline, past=past)
        scores = likelihoods(signs, [each.vote for each in ranked[: len(signs)]])
        scores += scores[-1:] * (len(ranked) - len(scores))
        return tuple(
            ToolMatch(each.name, score, each.by) for each, score in zip(ranked, scores, strict=True)
        )

    def rank(
        self,
        query: str,
        most: int,
        *,
        only: Sequence[str] = (),
        deadline: float = 0.2,
        past: float = 1.0,
    ) -> tuple[Sequence[RankedTool], Sequence[ToolSigns]]:
        """The best candidates first, and the signs of the very first ones."""
        many = max(_CANDIDATES, most)
        plain = plain_query(query)
        votes = self._votes(query.replace('"', " "))
        found = self._candidates(plain, frozenset(only), many, deadline, votes)
        ranked = _in_order(found, past)
        size = self._looked_through(len(ranked), many)
        first = ranked[: min(most, _JUDGED)]
        return ranked[:most], weigh_signs(self._table, plain, first, size)

    def learn(self, now: float, deadline: float = 1.0) -> LearnedPast | None:
        """How much past uses should count in this library, by its own past: the latest uses are
        asked for again with the earlier ones as past. Takes seconds; None unless there are enough
        new uses. Raises a `HotsetError`."""
        if self._uses is None or not self._uses.has_grown():
            return None
        uses = self._uses.every()
        first = max(len(uses) * 2 // 3, len(uses) - _MOST_REPLAYED)
        used: dict[str, set[str]] = {}
        for use in uses[first:]:
            used.setdefault(use.query, set()).add(use.tool)
        if len(used) < _LEAST_REPLAYED:
            return None
        gains = []
        for query, right in used.items():
            votes = self._uses.votes(query, first)
            found = self._candidates(plain_query(query), frozenset(), _CANDIDATES, deadline, votes)
            gains.append([_gain(_in_order(found, weight), right) for weight in _PAST_WEIGHTS])
        before = self._uses.weight()
        learned = _choose_weight(np.array(gains), before)
        self._uses.keep_weight(learned.weight, len(uses), now)
        return learned

    def used(self, query: str, name: str, now: float) -> None:
        """Records that a tool was used for a query: it ranks higher for similar ones from now
        on."""
        if self._uses is not None:
            self._uses.add(query, name, now)

    def troubles(self) -> tuple[str, ...]:
        uses = self._uses.troubles() if self._uses is not None else ()
        return (*self._index.troubles(), *uses, *([self._trouble] if self._trouble else []))

    def close(self) -> None:
        self._index.close()
        if self._uses is not None:
            self._uses.close()

    def _candidates(
        self,
        query: str,
        only: frozenset[str],
        most: int,
        deadline: float,
        votes: Mapping[str, float],
    ) -> list[RankedTool]:
        """In no order, with scores that leave out past uses."""
        hits = self._index.search(
            Query(query, Filter(sorts=_TOOLS, kinds=only), most, deadline)
        ).hits
        found = [_Candidate(hit.entry, hit.score, _signals(hit)) for hit in hits]
        least = min((each.score for each in found), default=0.0)
        further = self._index.entries(
            [EntryId(name) for name in votes.keys() - {each.entry.id for each in found}]
        )
        found += [
            _Candidate(each, least, frozenset())
            for each in further
            if not only or each.kind in only
        ]
        if not found:
            return []
        alike = measure_likeness(
            self._table, query, [(each.entry.title, each.entry.text) for each in found]
        )
        order, answered, named = (
            _deviations(values, len(hits))
            for values in (
                [each.score for each in found],
                [each.answered for each in alike],
                [each.named for each in alike],
            )
        )
        wish = query_intent(query)
        return [
            RankedTool(
                each.entry.id,
                order[at]
                + _ANSWERED_WEIGHT * answered[at]
                + _NAME_WEIGHT * named[at]
                - _OPPOSED_WEIGHT * wish.opposes(tool_intent(each.entry.title)),
                alike[at],
                votes.get(each.entry.id, 0.0),
                each.by | ({"use"} if each.entry.id in votes else frozenset()),
                each.entry.title,
                each.entry.text,
            )
            for at, each in enumerate(found)
        ]

    def _looked_through(self, found: int, most: int) -> int:
        """How many tools a search looked through: where it found fewer than it could, these were
        all."""
        if found < most:
            return found
        if (
            self._size is None
            # once: another process may have filled the index, and nothing hangs on a few more or less  # noqa: E501
        ):
            self._size = len(self._index.wholes(Sort.TOOL))
        return self._size

    def _votes(self, query: str) -> Mapping[str, float]:
        """The votes of past uses."""
        if self._uses is None:
            return {}
        try:
            votes = self._uses.votes(query)
        except HotsetError as error:
            if not self._trouble:
                _log.warning("past uses of tools cannot be read: %s", error)
            self._trouble = str(error)
            return {}
        self._trouble = ""
        return votes


def open_search(
    folder: Path, store: Callable[[], Store], embedding: Embedding, clock: Callable[[], float]
) -> ToolSearch:
    """Opens what finds a project's tools, in the folder of these: an index of its own, so that a
    question for a tool finds nothing else, and past uses. Raises `BadConfig` where what was chosen
    for embedding cannot be used."""
    made = embedders(embedding)
    index = LocalIndex(folder / FOLDER, made.documents, made.asking, sealing=SEALING)
    # Past questions are compared with every new one: an endpoint elsewhere would make each of them
    # wait.
    table = made.documents if isinstance(made.documents, WordVectors) else WordVectors()
    return ToolSearch(
        index, table, PastUses(store, table, clock=clock, old_file=folder / "uses.jsonl")
    )


def plain_query(query: str) -> str:
    """A query without quotation marks, which are no operators here: a tool need not hold the words.
    If it is not in English, without the common words of its language, too, and with the stems of
    the others."""
    query = query.replace('"', " ")
    language = language_of(query)
    if not language:
        return query
    stops = STOPS[language]
    kept = " ".join(word for word in query.split() if _letters(word) not in stops)
    return _with_stems(kept, language) if kept else query


def _letters(word: str) -> str:
    return word.strip(_MARKS).lower()


def _with_stems(text: str, language: str) -> str:
    stems = [stem for stem in stems_in(text, language) if stem not in STOPS[language]]
    return f"{text}\n{' '.join(stems)}" if stems else text


def _in_order(found: Iterable[RankedTool], weight: float) -> list[RankedTool]:
    """Best first, with past uses counted at `weight`."""
    lifted = (
        replace(each, score=_lifted(each.score, weight * each.vote)) if each.vote else each
        for each in found
    )
    return sorted(lifted, key=lambda each: (-each.score, each.name))


def _lifted(score: float, vote: float) -> float:
    """A score with a vote of past uses. A full vote lifts from the average at least: what served
    for the same query need not sound like it."""
    return score + vote * (_USES_WEIGHT + max(0.0, -score))


def _gain(ranked: Sequence[RankedTool], right: Collection[str]) -> float:
    """NDCG@10."""
    first = ranked[:_JUDGED]
    gain = sum(1 / math.log2(at + 2) for at, each in enumerate(first) if each.name in right)
    return gain / sum(1 / math.log2(at + 2) for at in range(min(_JUDGED, len(right))))


@dataclass(frozen=True, slots=True)
class LearnedPast:
    """How much past uses should count, and what that gains over the usual weight."""

    weight: float
    before: float
    gain: float
    """Of NDCG@10, and its bounds of two standard errors."""
    low: float
    high: float
    queries: int


def _choose_weight(gains: Floats, before: float) -> LearnedPast:
    """The weight that gains most over the usual one, if that is more than two standard errors: with
    one, a set was chosen a weight that lost 0.2 points of NDCG@10."""
    more = gains - gains[:, [_PAST_WEIGHTS.index(1.0)]]
    mean, error = more.mean(0), more.std(0) / math.sqrt(len(more))
    at = int((mean - 2 * error).argmax())
    if mean[at] <= 2 * error[at]:
        at = _PAST_WEIGHTS.index(1.0)
    gain, doubt = float(mean[at]), 2 * float(error[at])
    return LearnedPast(_PAST_WEIGHTS[at], before, gain, gain - doubt, gain + doubt, len(more))


def _deviations(values: Sequence[float], first: int) -> list[float]:
    """Deviations from the mean of the first ones: candidates found by past uses alone do not count
    in it."""
    among = values[:first] or values
    mean = sum(among) / len(among)
    spread = math.sqrt(sum((value - mean) ** 2 for value in among) / len(among))
    return [(value - mean) / spread if spread else 0.0 for value in values]


def _signals(hit: IndexHit) -> frozenset[str]:
    signals = (("words", hit.by_words), ("meaning", hit.by_meaning))
    return frozenset(name for name, value in signals if value is not None)


def _entry(tool: Tool, whole: str) -> Entry:
    wording = word_tool(tool)
    language = language_of(wording.text)
    text = _with_stems(wording.text, language) if language else wording.text
    return Entry(EntryId(tool.name), whole, Sort.TOOL, text, kind=tool.source, title=wording.title)


def _whole(tool: Tool) -> str:
    """The id of an indexed tool: its name, and a hash of everything that is indexed of it."""
    made_from = (
        WORDING_VERSION,
        SEALING,
        tool.source,
        tool.origin,
        tool.own_name,
        tool.title,
        tool.description,
        tool.parameters,
    )
    return (
        f"{tool.name}#"
        f"{hashlib.sha256(repr(made_from).encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    )


class PastUse(msgspec.Struct, frozen=True):
    """A tool that was used for a query."""

    query: str
    tool: str
    at: float


class _StoredUses(msgspec.Struct, frozen=True):
    uses: list[PastUse] = []


class _PastWeight(msgspec.Struct, frozen=True):
    weight: float = 1.0
    uses: int = 0
    """How many uses there were when it was chosen."""


class PastUses:
    """Past uses of one project's tools. Safe to use from several threads and processes; close
    it."""

    def __init__(
        self,
        store: Callable[[], Store],
        embedder: Embedder,
        most: int = MOST,
        *,
        clock: Callable[[], float] = time.time,
        old_file: Path | None = None,
    ) -> None:
        """`embedder` embeds every query: it has to be quick. Vectors are not stored.

        `old_file` is where an earlier version of hotset kept a line for each use.
        """
        self._stored = GatheredValue(StoredValue(_USES, _StoredUses, store), self._add, clock)
        self._weight = StoredValue(_WEIGHT, _PastWeight, store)
        self._old_file = old_file
        self._embedder = embedder
        self._most = most
        self._lock = threading.Lock()
        self._uses: list[PastUse] = []
        self._vectors: Floats = np.empty((0, embedder.size), np.float32)
        self._read: tuple[_StoredUses, tuple[PastUse, ...]] | None = None

    def add(self, query: str, tool: str, now: float) -> None:
        """Records a use, without secrets; it is written soon."""
        question = seal(query[:_LONGEST_QUESTION]).text.strip()
        if question:
            self._stored.put(PastUse(question, tool, now))

    def weight(self) -> float:
        """What `ToolSearch.learn` chose last; 1 before. Raises a `HotsetError`."""
        return self._weight.read().weight

    def has_grown(self) -> bool:
        """True if there are enough new uses to choose the weight again. Raises a `HotsetError`."""
        with self._lock:
            self._follow()
        return len(self._uses) >= max(_LEAST_REPLAYED, _GROWTH * self._weight.read().uses)

    def keep_weight(self, weight: float, uses: int, now: float) -> None:
        self._weight.write(_PastWeight(weight, uses), now)

    def votes(self, query: str, first: int | None = None) -> Mapping[str, float]:
        """For each tool that was used for a similar query, from 0 to 1: its share of the nearest
        past uses, by how near the nearest is. Only the `first` uses vote, where that is given.

        Raises a `HotsetError`.
        """
        with self._lock:
            self._follow()
            uses, vectors = self._uses[:first], self._vectors[:first]
        if not uses:
            return {}
        likeness = np.einsum(
            "ij,j->i", vectors, self._embedder.embed([query[:_LONGEST_QUESTION]])[0]
        )
        near = np.argsort(-likeness, kind="stable")[:_NEAREST]
        return _count_votes([uses[at].tool for at in near], likeness[near].tolist())

    def every(self) -> Sequence[PastUse]:
        """The oldest first. Raises a `HotsetError`."""
        with self._lock:
            self._follow()
            return tuple(self._uses)

    def flush(self) -> None:
        """Writes the uses that wait. Raises a `HotsetError`."""
        self._stored.flush()

    def close(self) -> None:
        self._stored.close()

    def troubles(self) -> Sequence[str]:
        return [self._stored.trouble] if self._stored.trouble else []

    def _add(self, stored: _StoredUses, new: Sequence[PastUse]) -> _StoredUses:
        return _StoredUses([*stored.uses, *new][-self._most :])

    def _follow(self) -> None:
        """Reads what is new; questions that were there before keep their vectors."""
        self._take_over()
        read = self._stored.read()
        if self._read is not None and read[0] is self._read[0] and read[1] == self._read[1]:
            return
        uses = self._add(*read).uses
        places = {use: at for at, use in enumerate(self._uses)}
        new = list({use: None for use in uses if use not in places})
        if new:
            made = np.nan_to_num(self._embedder.embed([use.query for use in new]))
            self._vectors = np.concatenate([self._vectors, made])
            places |= {use: len(self._uses) + at for at, use in enumerate(new)}
        self._vectors = self._vectors[[places[use] for use in uses]]
        self._uses, self._read = uses, read

    def _take_over(self) -> None:
        """Once, from the file; a line that was cut off by a kill or a full disk is left out."""
        if self._old_file is not None and self._old_file.is_file():
            with suppress(OSError):
                lines = list(_decode_uses(self._old_file.read_bytes().splitlines()))
                self._stored.change(
                    lambda stored: _StoredUses(
                        list(dict.fromkeys([*lines, *stored.uses]))[-self._most :]
                    )
                )
                self._old_file.unlink(missing_ok=True)


def _count_votes(tools: Sequence[str], likeness: Sequence[float]) -> Mapping[str, float]:
    heard = min(1.0, max(0.0, (likeness[0] - _UNLIKE) / (_ALIKE - _UNLIKE)))
    if not heard:
        return {}
    weights = [max(0.0, each) ** _SHARPNESS for each in likeness]
    votes: dict[str, float] = {}
    for tool, weight in zip(tools, weights, strict=True):
        votes[tool] = votes.get(tool, 0.0) + heard * weight / sum(weights)
    return votes


def _decode_uses(lines: Iterable[bytes]) -> Iterator[PastUse]:
    for line in lines:
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            yield decode(line, PastUse)


@dataclass(frozen=True, slots=True)
class Likeness:
    """The likeness of one tool to one query."""

    answered: float = 0.0
    """How much of the query the tool's words cover."""
    named: float = 0.0
    """How much of the tool's name the query covers."""


@dataclass(frozen=True, slots=True)
class ToolSigns:
    """Evidence that a tool is the right one for a query."""

    constant: float
    size: float
    """Tools that were looked through, as a power of ten: among more, more sound alike."""
    meant: float
    """Cosine with the query, or with the sentence of it that is nearest."""
    answered: float
    """How much of the sentence that it covers best its words cover."""
    named: float
    """Share of its name's words that the query has."""
    shared: float
    """How many telling words the query shares with its name and what it does."""
    telling: float
    """How many telling words the query has: a long one has every word in it somewhere."""
    opposed: float = 0.0
    """1 if it writes and the query asks to read, or the other way round."""
    latin: bool = True
    """False for a query in a script that the table of vectors does not know."""


WEIGHTS = (-1.62, -1.74, 9.18, 1.12, 2.75, 1.16, -1.01, -1.54)
"""Of the signs; the weighted sum is the log-odds. Fitted to random libraries of 20 to 400 tools out
of four public sets, with prompts for which a tool is there and twice as many for which none is;
`make bench-tools` fits them again, to each three of the sets, and reports the fourth."""


OTHER_SCRIPTS = (0.03, -0.09, 3.71, 0.0, 0.0, 2.21, -1.45, 0.0)
"""The same for queries in another script, where `meant` is the share of a tool's pairs of letters
that the query has. Fitted to UltraTool's Chinese prompts."""


@dataclass(frozen=True, slots=True)
class RankedTool:
    """A candidate of a search, and the evidence for it."""

    name: str
    score: float
    """Its place in the order, in deviations among the candidates."""
    alike: Likeness
    vote: float = 0.0
    """The vote of past uses, from 0 to 1."""
    by: frozenset[str] = field(default_factory=frozenset)
    title: str = ""
    text: str = ""


def likelihood(signs: ToolSigns, weights: Sequence[float] = ()) -> float:
    """Probability that it is the right tool, where a third of the queries have one. `weights` are
    ours unless they are given."""
    weights = weights or (WEIGHTS if signs.latin else OTHER_SCRIPTS)
    odds = sum(sign * weight for sign, weight in zip(astuple(signs)[:-1], weights, strict=True))
    return 1.0 / (1.0 + math.exp(-odds))


def likelihoods(
    signs: Sequence[ToolSigns], votes: Sequence[float], weights: Sequence[float] = ()
) -> list[float]:
    """The likelihood of each candidate, best first: none is likelier than the one before."""
    found: list[float] = []
    for each, vote in zip(signs, votes, strict=True):
        likely = likelihood(each, weights)
        likely += (1.0 - likely) * _PAST_WEIGHT * min(1.0, max(0.0, vote))
        found.append(round(min([likely, *found[-1:]]), 4))
    return found


def weigh_signs(
    table: WordVectors, query: str, tools: Sequence[RankedTool], size: int
) -> list[ToolSigns]:
    """The signs of each of these tools, among `size`."""
    if not tools:
        return []
    latin = is_latin(query)
    pieces = _sentences(query)
    texts = [(each.title, each.text) for each in tools]
    vectors = table.embed([query, *pieces, *(f"{name}\n{text}" for name, text in texts)])
    meant = np.einsum("ik,jk->ij", vectors[1 + len(pieces) :], vectors[: 1 + len(pieces)]).max(1)
    answered = [
        [each.answered for each in measure_likeness(table, piece, texts)] for piece in pieces
    ]
    asked, wish = telling_words(query), query_intent(query)
    signs = []
    for at, each in enumerate(tools):
        name = telling_words(each.title)
        does = name | telling_words(each.text[:_DESCRIBED])
        both = (asked - _WEAK) & does
        signs.append(
            ToolSigns(
                constant=1.0,
                size=math.log10(max(_SMALLEST, size)),
                meant=float(meant[at]) if latin else len(both) / max(1, len(does)),
                answered=max(some[at] for some in answered),
                named=len(asked & (name - _WEAK or name)) / max(1, len(name - _WEAK or name)),
                shared=math.log1p(len(both)),
                telling=math.log1p(len(asked - _WEAK)),
                opposed=float(wish.opposes(tool_intent(each.title))),
                latin=latin,
            )
        )
    return signs


def telling_words(text: str) -> frozenset[str]:
    """The words of a text without polite phrases and inflections."""
    pairs = pairs_of_letters(text)
    if pairs:
        text = " ".join(word for word in _WORD.findall(text) if word.isascii())
    words = (word.lower() for word in _WORD.findall(split_humps(text)))
    return pairs.union(
        light_stem(word) for word in words if len(word) > 2 and word not in TOOL_PROMPT
    )


def _sentences(query: str) -> list[str]:
    pieces = [piece.strip() for piece in _SENTENCE_END.split(query)]
    long = [piece for piece in pieces if len(piece.split()) >= _SENTENCE_WORDS]
    return long[:_MOST_SENTENCES] or [query]


def measure_likeness(
    table: WordVectors, question: str, tools: Sequence[tuple[str, str]]
) -> list[Likeness]:
    """Likeness of each tool, given by its name and text in words, to the question.

    A token of the one side counts with the cosine of the token of the other side that is
    nearest to it, and weighs as the square of what it adds to the sum of a text: on four sets
    of tools NDCG@10 was 53.0 by `answered` alone, and 47.9 with the weight as it is.
    """
    names, texts = [name for name, _ in tools], [f"{name}\n{text}" for name, text in tools]
    if not is_latin(question):  # the table's vocabulary is English
        return [Likeness()] * len(tools)
    tokens, _, ends = counts_of([question, *texts, *names], _MOST_LIKENESS_TOKENS)
    asked = tokens[: ends[0]]
    if not len(asked) or not tools:
        return [Likeness()] * len(tools)
    different, place = np.unique(tokens[ends[0] :], return_inverse=True)
    directions, weights = table.directions(asked)
    others, their_weights = table.directions(different)
    with one_thread():
        cosines = directions @ others.T
    begins = np.array(ends[:-1]) - ends[0]
    lengths = np.diff(np.array(ends))
    many = len(tools)
    best = _largest(cosines[:, place], begins[:many], lengths[:many])
    answered = _shares(weights**2) @ best
    named = _means(cosines.max(0)[place], their_weights[place] ** 2, begins[many:], lengths[many:])
    return [Likeness(*pair) for pair in zip(answered.tolist(), named.tolist(), strict=True)]


_Places = NDArray[np.intp]


def _largest(values: Floats, begins: _Places, lengths: _Places) -> Floats:
    """Of each row, the largest of each stretch; 0 where a stretch is empty."""
    best = np.zeros((len(values), len(begins)), np.float32)
    there = lengths > 0
    if there.any():
        end = begins[there][-1] + lengths[there][-1]
        best[:, there] = np.maximum.reduceat(values[:, :end], begins[there], axis=1)
    return best


def _means(values: Floats, weights: Floats, begins: _Places, lengths: _Places) -> Floats:
    """Of each stretch, weighed; 0 where it is empty."""
    means = np.zeros(len(begins), np.float32)
    there = lengths > 0
    if there.any():
        sums = np.add.reduceat(np.stack([values * weights, weights]), begins[there], axis=1)
        means[there] = sums[0] / np.maximum(sums[1], 1e-12)
    return means


def _shares(weights: Floats) -> Floats:
    shares: Floats = weights / max(float(weights.sum()), 1e-12)
    return shares


@dataclass(frozen=True, slots=True)
class ToolWording:
    title: str
    """Its name, in words."""
    text: str
    """Where it comes from, what it does, what it takes."""


def word_tool(tool: Tool) -> ToolWording:
    name = _readable(tool.own_name or tool.name)
    shown = "" if _same(tool.title, name) else tool.title
    source = "" if tool.origin in _NAMELESS or _same(tool.source, name) else _readable(tool.source)
    description = tool.description[:_MOST_DESCRIPTION]
    arguments = "; ".join(_arguments(tool.parameters))
    text = "\n".join(part for part in (source, shown, description, arguments) if part)
    return ToolWording(seal(name).text, seal(text).text)


def _readable(name: str) -> str:
    """`getUserByID` is `get User By ID`, and `create_pull-request` is `create pull request`."""
    return " ".join(_JOINTS.sub(" ", split_identifiers([name])[0]).split())


def _same(title: str, name: str) -> bool:
    return _readable(title).casefold() == name.casefold()


def _arguments(schema: bytes) -> list[str]:
    try:
        decoded = msgspec.json.decode(schema)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # reported where it is listed; here the tool is found by its other words
        return []
    found = (_argument(name, about) for name, about in _properties(decoded, 0))
    return [each for each, _ in zip(found, range(_MOST_ARGUMENTS), strict=False)]


def _argument(name: str, about: Any) -> str:
    description, choices = "", []
    if isinstance(about, Mapping):
        if isinstance(about.get("description"), str):
            description = about["description"][:_MOST_OF_ARGUMENT]
        if isinstance(about.get("enum"), list):
            choices = [
                each[:_MOST_OF_CHOICE]
                for each in about["enum"][:_MOST_CHOICES]
                if isinstance(each, str)
            ]
    words = ", ".join(part for part in (description, *choices) if part)
    return f"{_readable(name)}: {words}" if words else _readable(name)


def _properties(schema: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Each argument with its schema, and those inside it: behind it, in the schema's own order."""
    if depth > _DEEPEST:
        return
    if isinstance(schema, list):
        for each in schema:
            yield from _properties(each, depth + 1)
    if not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    for name, about in properties.items() if isinstance(properties, Mapping) else ():
        yield name, about
        yield from _properties(about, depth + 1)
    for inside in ("items", "anyOf", "oneOf", "allOf"):
        yield from _properties(schema.get(inside), depth + 1)
    for named in ("$defs", "definitions"):
        about = schema.get(named)
        yield from _properties(
            list(about.values()) if isinstance(about, Mapping) else None, depth + 1
        )
