"""The hot entries: viewed often or recently, kept in memory, and embedded again by the model that
reads questions, for a better order."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hotset.files.lru import Lru
from hotset.index.analysis import AnalysedQuery, holds_phrases
from hotset.index.database import EntryRows
from hotset.index.embed.port import Embedder, embed_one
from hotset.index.entries import Entries, embedded_text, still_there
from hotset.index.filters import matches_filter
from hotset.index.full_text import Terms, words_of
from hotset.index.fusion import FusedHit
from hotset.index.vectors import Floats
from hotset.nouns.search import Entry, EntryId, Filter, IndexHit, Query

_OFTEN = 3  # looks at an entry that make it hot
_RECENT_TURNS = 5
_MOST_SESSIONS = 64
_MOST_OF_WHOLE = 16  # entries of a page or file that was viewed as a whole
_MOST_TRACKED = 2048
_MOST_HOT = 256  # in memory: half a megabyte, and half a millisecond to look through


@dataclass(frozen=True, slots=True)
class _ViewCount:
    times: int
    turn: int
    session: str


@dataclass(frozen=True, slots=True)
class _HotEntry:
    doc: int
    entry: Entry
    words: frozenset[str]


class HotEntries:
    """Entries viewed three times, or within the last five turns of a session, in memory."""

    def __init__(self, rows: EntryRows, entries: Entries) -> None:
        self._rows = rows
        self._entries = entries
        self._lock = threading.Lock()
        self._looked: Lru[EntryId, _ViewCount] = Lru(
            "viewed entries", count=_MOST_TRACKED, shrinks=False
        )
        self._kept: Lru[EntryId, _HotEntry] = Lru("hot entries", count=_MOST_HOT)
        self._turns: Lru[str, int] = Lru("viewed sessions", count=_MOST_SESSIONS, shrinks=False)
        self._version = -1

    def touch(self, names: Iterable[str], turn: int, session: str) -> None:
        """Count a view of each of these entries, and of the first entries of these wholes."""
        ids = self._entries.ids_named(list(names), _MOST_OF_WHOLE)
        with self._lock:
            self._turns.put(session, max(self._turns.get(session) or 0, turn))
            for id in ids:
                before = self._looked.get(id)
                times = before.times + 1 if before is not None else 1
                self._looked.put(id, _ViewCount(times, turn, session))
            hot = self._hot()
            for id in [id for id, _ in self._kept.items()]:
                if id not in hot:
                    self._kept.pop(id)
            new = [id for id in hot if id not in self._kept]
        loaded = {
            entry.id: _HotEntry(doc, entry, words_of(f"{entry.title}\n{entry.text}"))
            for doc, entry in self._entries.by_id(new)
        }
        with self._lock:
            for id in reversed(hot):
                if id in loaded:
                    self._kept.put(id, loaded[id])
            self._version = -1

    def find(self, query: Query, asked: AnalysedQuery, wanted: Terms) -> tuple[IndexHit, ...]:
        """By the share of the query's words that they have."""
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
        """The existing ones, with their numbers."""
        return [(each.doc, each.entry) for each in self._still_there()]

    def _hot(self) -> dict[EntryId, _ViewCount]:
        """Most recently viewed first."""
        hot = (
            (id, each)
            for id, each in reversed(self._looked.items())
            if each.times >= _OFTEN
            or each.turn > max(0, (self._turns.get(each.session) or 0) - _RECENT_TURNS)
        )
        return dict(pair for pair, _ in zip(hot, range(self._kept.most), strict=False))

    def _still_there(self) -> list[_HotEntry]:
        """A number is never reused: a changed entry has another one."""
        version = self._rows.version()
        with self._lock:
            kept = [each for _, each in self._kept.items()]
            if version == self._version:
                return kept
        with self._rows.reading() as connection:
            there = still_there(connection, [each.doc for each in kept])
        with self._lock:
            for id, each in self._kept.items():
                if each.doc not in there:
                    self._kept.pop(id)
            self._version = version
            return [each for _, each in self._kept.items()]


_FAIR = 0.97
"""What a cosine with an entry that was read closely is worth beside the others'.

Such an entry is a little nearer to everything. On 1,200 docstrings and as many functions of
Python's library, the mean of 1/place of what was hot rose from .50 to .56 and from .53 to .61; that
of the rest fell by .01, and without the factor by up to .02.
"""


class HotReranker:
    """Embeds hot entries once more with the model that reads questions, one at a time while the
    machine is idle, and scores them by these vectors. Use it from any thread.

    The vectors stay in the memory of this process as long as an entry is hot: nothing of them is on
    the disk.
    """

    def __init__(self, asking: Embedder, hot: HotEntries) -> None:
        self._asking = asking
        self._hot = hot
        self._lock = threading.Lock()
        self._read: dict[int, Floats] = {}

    def read_one(self) -> bool:
        """Embed one entry. False if there was none left."""
        hot = dict(self._hot.every())
        with self._lock:
            self._read = {doc: vector for doc, vector in self._read.items() if doc in hot}
            unread = next((doc for doc in hot if doc not in self._read), None)
        if unread is None:
            return False
        made = embed_one(self._asking, embedded_text(hot[unread]))
        with self._lock:
            self._read[unread] = made
        return True

    def clear(self) -> None:
        """Forget the vectors: they are made again while the machine is idle."""
        with self._lock:
            self._read = {}

    def found(self, query: Floats, only: Filter) -> list[FusedHit]:
        """Similarity of the embedded entries that match, on the scale of the documents' own
        vectors."""
        with self._lock:
            read = dict(self._read)
        every = self._hot.every() if read else []
        fitting = {
            doc: entry.sort for doc, entry in every if doc in read and matches_filter(only, entry)
        }
        if not fitting:
            return []
        cosines = _FAIR * np.einsum("ij,j->i", np.stack([read[doc] for doc in fitting]), query)
        return [
            FusedHit(doc, cosine, sort)
            for (doc, sort), cosine in zip(fitting.items(), cosines.tolist(), strict=True)
        ]
