"""The two signals over one generation of folded structures, and how both are asked within a
deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from heapq import nlargest
from operator import attrgetter
from pathlib import Path

import numpy as np

from hotset.errors import StoreFailed
from hotset.files.deadline import DeadlinePool
from hotset.files.lru import Lru
from hotset.index import vectors
from hotset.index.breaker import Breaker
from hotset.index.closely import HotReranker
from hotset.index.embed.port import Embedder
from hotset.index.embed.table import WordVectors
from hotset.index.entries import by_number, tail_numbers
from hotset.index.filters import NumberFilter
from hotset.index.generations import Generation, made_by
from hotset.index.hybrid import FusedHit
from hotset.index.questions import QueryVectors
from hotset.index.rows import EntryRows
from hotset.index.tiers import Effort
from hotset.index.vectors import Floats, Vectors
from hotset.index.words import Terms, WordIndex, score_unfolded
from hotset.index.writing import embed_checked, embedded_text, folder_of
from hotset.nouns.finding import Entry, Query

_THREADS = 4  # searches at once; one that a slow embedder holds is one less
_CLOSE_SECONDS = (
    30.0  # for searches that still read the index; an embedder that hangs holds up nothing longer
)
_FAIR_SECONDS = 0.1  # who is given less and does not answer has not failed: the machine may be busy
_TAIL_EMBEDDED = (
    512  # entries beyond the folded ones whose meaning is looked at: the last ones, 20 ms at worst
)
_TAIL_KEPT = 4096
# vectors. Of 100,000 both signals take 3.0 ms one after the other and side by side; p95 4.3 and 5.4
_QUICK_ROWS = 200_000
_SCORE = attrgetter("score")
_Look = Callable[[], list[FusedHit]]


@dataclass(frozen=True, slots=True)
class RowView:
    """What the rows said at one moment."""

    generation: Generation | None
    only: NumberFilter
    hidden: frozenset[int]
    """What was removed since it was folded."""
    beyond: bool
    """Are there entries that are not folded yet?"""
    tail: list[tuple[int, Entry]]
    """What words find among them."""


class ByWords:
    """What full text finds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._words: WordIndex | None = None
        self._generation: Generation | None = None

    def find(self, view: RowView, asked: Terms, limit: int) -> list[FusedHit]:
        folded = self._over(view.generation) if view.generation is not None else None
        telling = folded.telling(asked) if folded is not None else asked
        found = score_unfolded(telling, view.tail, folded)
        if folded is not None and view.generation is not None:
            found += folded.search(telling, view.only, view.hidden, view.generation.folded, limit)
        return found

    def _over(self, generation: Generation) -> WordIndex:
        """The full text of this generation, as far as it was folded at least."""
        with self._lock:
            if (
                self._words is None
                or self._generation is None
                or self._generation.number != generation.number
            ):
                self._words = WordIndex(folder_of(self._folder, generation) / "words")
            elif self._generation != generation:
                self._words.reload()
            self._generation = generation
            return self._words


class ByMeaning:
    """What vectors find, and what lies beyond them: its vectors are made here and forgotten
    again."""

    def __init__(
        self,
        folder: Path,
        rows: EntryRows,
        embedder: Embedder,
        asking: Embedder | None,
        closely: HotReranker | None,
    ) -> None:
        self._folder = folder
        self._rows = rows
        self._embedder = embedder
        self._is_at_hand = isinstance(embedder, WordVectors) and asking is None
        self._questions = QueryVectors(embedder, asking)
        self._closely = closely
        self._lock = threading.Lock()
        self._vectors: Vectors | None = None
        self._generation: Generation | None = None
        self._tail: Lru[int, Floats] = Lru(count=_TAIL_KEPT)

    def serves(self, generation: Generation) -> bool:
        """Vectors of another embedder do not compare with ours, and files of another form are not
        read."""
        made = made_by(generation.identity)
        return made.get("embedder") == self._embedder.id and made.get("vectors") == vectors.VERSION

    def is_quick(self, view: RowView) -> bool:
        """It answers in less time than two threads lose by waiting for each other."""
        rows = view.generation.rows if view.generation is not None else 0
        return self._is_at_hand and not view.beyond and rows <= _QUICK_ROWS

    def find(self, view: RowView, asked: Query, limit: int, effort: Effort) -> list[FusedHit]:
        generation, only = view.generation, view.only
        query = self._questions.vector(asked)
        found: list[FusedHit] = []
        if not query.any():
            return found
        if generation is not None and self.serves(generation):
            candidates = effort.candidates_of(generation.rows)
            found = self._over(generation).nearest(query, only, view.hidden, limit, candidates)
        if effort.embeds_tail and view.beyond:
            found += self._in_tail(query, generation.folded if generation else 0, only, limit)
        if self._closely is not None and (generation is None or self.serves(generation)):
            closer = self._closely.found(query, asked.only)
            found = (
                nlargest(limit, {each.doc: each for each in (*found, *closer)}.values(), key=_SCORE)
                if closer
                else found
            )
        return found

    def _over(self, generation: Generation) -> Vectors:
        with self._lock:
            if self._vectors is None or self._generation != generation:
                self._vectors = Vectors(
                    folder_of(self._folder, generation), self._embedder.size, generation.rows
                )
                self._generation = generation
            return self._vectors

    def _in_tail(
        self, query: Floats, folded: int, only: NumberFilter, limit: int
    ) -> list[FusedHit]:
        with self._rows.reading() as connection:
            docs = tail_numbers(connection, folded, only, _TAIL_EMBEDDED)
            known = self._tail.get_many(docs)
            new = by_number(connection, [doc for doc in docs if doc not in known])
        if new:
            made = embed_checked(self._embedder, [embedded_text(entry) for entry in new.values()])
            for doc, vector in zip(new, made, strict=True):
                self._tail.put(doc, vector)
                known[doc] = vector
        if not known:
            return []
        cosines = np.einsum("ij,j->i", np.stack(list(known.values())), query)
        best = sorted(zip(cosines.tolist(), known, strict=True), reverse=True)[:limit]
        return [FusedHit(doc, cosine, docs[doc]) for cosine, doc in best if np.isfinite(cosine)]


class Signals:
    """Asks both signals at once. One that is slow, broken or resting is left out, and named."""

    def __init__(self) -> None:
        self._pool = DeadlinePool(_THREADS, "hotset-search")
        self.breakers = {"words": Breaker(), "meaning": Breaker()}
        self.failed: dict[str, BaseException] = {}
        """The last failure of each signal that failed last time."""

    def ask(
        self, words: _Look | None, meaning: _Look | None, until: float, *, apart: bool = True
    ) -> tuple[list[FusedHit], list[FusedHit], frozenset[str]]:
        """What each gave, and the names of those that gave nothing in time.

        An embedder may be far away, so meaning is asked `apart`, in a thread that can be left
        behind; words are asked in this one, which saves a millisecond: full text is here and takes
        a bounded time.
        """
        patience = max(0.0, until - time.monotonic())
        by_words = by_meaning = asked = None
        if meaning is not None and self.breakers["meaning"].allows():
            if apart:
                asked = self._pool.submit(meaning)
            else:
                by_meaning = self._here("meaning", meaning, Exception)
        if words is not None and self.breakers["words"].allows():
            by_words = self._here("words", words, StoreFailed)
        if asked is not None:
            by_meaning = self._there(asked, until, patience)
        silent = {
            "words": words is not None and by_words is None,
            "meaning": meaning is not None and by_meaning is None,
        }
        return (
            by_words or [],
            by_meaning or [],
            frozenset(name for name, lacks in silent.items() if lacks),
        )

    def close(self) -> None:
        self._pool.close(_CLOSE_SECONDS)

    def _here(self, name: str, look: _Look, failures: type[Exception]) -> list[FusedHit] | None:
        try:
            found = look()
        except failures as error:
            self._note(name, error)
            return None
        self._note(name, None)
        return found

    def _there(
        self, asked: Future[list[FusedHit]], until: float, patience: float
    ) -> list[FusedHit] | None:
        try:
            error = asked.exception(max(0.0, until - time.monotonic()))
        except TimeoutError:
            asked.cancel()
            if patience >= _FAIR_SECONDS:
                self.breakers["meaning"].failed()
            return None
        self._note("meaning", error)
        return asked.result() if error is None else None

    def _note(self, name: str, error: BaseException | None) -> None:
        if error is None:
            self.failed.pop(name, None)
            self.breakers[name].succeeded()
        else:
            self.failed[name] = error
            self.breakers[name].failed()
