"""How much is done in the time there is: the hot few from memory, most of it in milliseconds, all
of it in a blink."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from hotset.files.lru import Lru
from hotset.index.analysis import AnalysedQuery, holds_phrases
from hotset.index.entries import Entries, still_there
from hotset.index.filters import matches_filter
from hotset.index.rows import EntryRows
from hotset.index.words import Terms, words_of
from hotset.nouns.finding import Entry, EntryId, Filter, Hits, IndexHit, Query


@dataclass(frozen=True, slots=True)
class Effort:
    """What a search does."""

    candidates: int
    """Vectors that are looked at closely, at least: of 100,000, 1,000 hold 98 % of the nearest ten
    of four words."""
    share: float
    """And of very many so many."""
    found: int
    """Entries of each signal that are fused."""
    embeds_tail: bool
    """Also what is not folded yet is found by its meaning."""

    def candidates_of(self, rows: int) -> int:
        return max(self.candidates, int(self.share * rows))


class SearchTier(Enum):
    HOT = Effort(candidates=0, share=0.0, found=0, embeds_tail=False)
    WARM = Effort(candidates=400, share=0.001, found=30, embeds_tail=False)
    FULL = Effort(candidates=1000, share=0.004, found=40, embeds_tail=True)


_HOT_SECONDS = 0.002  # less than that leaves no time to ask anybody
_WARM_SECONDS = 0.02
_OFTEN = 3  # looks at an entry that make it hot
_RECENT_TURNS = 5
_MOST_TRACKED = 2048
_MOST_HOT = 256  # in memory: half a megabyte, and half a millisecond to look through
_MOST_ANSWERS = 128


def tier_for(deadline: float) -> SearchTier:
    if deadline < _HOT_SECONDS:
        return SearchTier.HOT
    return SearchTier.WARM if deadline < _WARM_SECONDS else SearchTier.FULL


class AnswerCache:
    """What was answered a moment ago, as long as nothing was added or removed since."""

    def __init__(self) -> None:
        self._known: Lru[tuple[str, Filter, int], tuple[int, SearchTier, Hits]] = Lru(
            count=_MOST_ANSWERS
        )

    def get(self, query: Query, tier: SearchTier, version: int) -> Hits | None:
        """An answer made with as much effort at least."""
        at, made_by, hits = self._known.get(_key(query)) or (-1, SearchTier.HOT, Hits())
        return hits if at == version and made_by.value.candidates >= tier.value.candidates else None

    def put(self, query: Query, tier: SearchTier, version: int, hits: Hits) -> None:
        self._known.put(_key(query), (version, tier, hits))


@dataclass(frozen=True, slots=True)
class _Looked:
    times: int
    turn: int


@dataclass(frozen=True, slots=True)
class _Kept:
    doc: int
    entry: Entry
    words: frozenset[str]


class HotEntries:
    """The entries that were looked at three times, or within the last five turns, in memory."""

    def __init__(self, rows: EntryRows, entries: Entries) -> None:
        self._rows = rows
        self._entries = entries
        self._lock = threading.Lock()
        self._looked: Lru[EntryId, _Looked] = Lru(count=_MOST_TRACKED)
        self._kept: dict[EntryId, _Kept] = {}
        self._turn = 0
        self._version = -1

    def touch(self, ids: Iterable[EntryId], turn: int) -> None:
        with self._lock:
            self._turn = max(self._turn, turn)
            for id in ids:
                before = self._looked.get(id) or _Looked(0, 0)
                self._looked.put(id, _Looked(before.times + 1, max(before.turn, turn)))
            hot = self._hot()
            self._kept = {id: kept for id, kept in self._kept.items() if id in hot}
            new = [id for id in hot if id not in self._kept]
        loaded = {
            entry.id: _Kept(doc, entry, words_of(f"{entry.title}\n{entry.text}"))
            for doc, entry in self._entries.by_id(new)
        }
        with self._lock:
            self._kept.update(loaded)
            self._version = -1

    def find(self, query: Query, asked: AnalysedQuery, wanted: Terms) -> tuple[IndexHit, ...]:
        """By the share of the question's words that they hold."""
        words = frozenset(wanted.loose)
        if not words:
            return ()
        kept = self._still_there()
        scored = [(len(words & each.words) / len(words), each.doc, each.entry) for each in kept]
        best = sorted((each for each in scored if each[0]), key=lambda each: (-each[0], each[1]))
        fitting = (
            IndexHit(entry, score)
            for score, _, entry in best
            if matches_filter(query.only, entry)
            and holds_phrases(f"{entry.title}\n{entry.text}", asked.phrases)
        )
        return tuple(hit for hit, _ in zip(fitting, range(query.most), strict=False))

    def every(self) -> list[tuple[int, Entry]]:
        """Those that are still there, with their numbers."""
        return [(each.doc, each.entry) for each in self._still_there()]

    def _hot(self) -> dict[EntryId, _Looked]:
        """The last that were looked at first."""
        since = max(0, self._turn - _RECENT_TURNS)
        hot = (
            (id, each)
            for id, each in reversed(self._looked.items())
            if each.times >= _OFTEN or each.turn > since
        )
        return dict(pair for pair, _ in zip(hot, range(_MOST_HOT), strict=False))

    def _still_there(self) -> list[_Kept]:
        """A number is given once: an entry that was changed has another one."""
        version = self._rows.version()
        with self._lock:
            kept = list(self._kept.values())
            if version == self._version:
                return kept
        with self._rows.reading() as connection:
            there = still_there(connection, [each.doc for each in kept])
        with self._lock:
            self._kept = {id: each for id, each in self._kept.items() if each.doc in there}
            self._version = version
            return list(self._kept.values())


def _key(query: Query) -> tuple[str, Filter, int]:
    return query.words, query.only, query.most
