"""One search: a snapshot of the rows, both signals over it within a deadline, fused into one order,
and filtered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from functools import partial
from heapq import nlargest
from operator import attrgetter
from pathlib import Path

import apsw
import numpy as np

from hotset.errors import BadInput, StoreFailed
from hotset.files.breaker import Breaker
from hotset.files.deadline_pool import DeadlinePool
from hotset.files.lru import CACHES, Lru
from hotset.index import vectors
from hotset.index.analysis import AnalysedQuery, analyse_query, holds_phrases
from hotset.index.database import (
    EntryRows,
    FilesDamaged,
    Generation,
    Generations,
    folder_of,
    made_by,
    read_number,
    removed_docs,
    serving_generation,
)
from hotset.index.embed.port import Embedder, embed_checked, embed_one
from hotset.index.embed.table import WordVectors
from hotset.index.entries import (
    Entries,
    by_number,
    embedded_text,
    paths_of,
    tail_by_words,
    tail_numbers,
)
from hotset.index.filters import NumberFilter, matches_filter
from hotset.index.full_text import (
    Terms,
    WordIndex,
    fts5_query,
    query_terms,
    score_unfolded,
    talk_terms,
    tool_terms,
)
from hotset.index.fusion import FusedHit, RankedHit, by_file, fuse
from hotset.index.hot import HotEntries, HotReranker
from hotset.index.vectors import Floats, Vectors
from hotset.nouns.pressure import MemoryTier, PressureResponse
from hotset.nouns.search import Entry, Filter, Hits, IndexHit, Lack, Query, Sort
from hotset.text.human_language import is_latin

_TAIL_FOUND = 50
# of the first, whose files are looked at; with 50 the same NDCG on eight repositories, .5420 and
# .5415, for 0.2 ms
_BY_FILE = 30
_TAIL_SCANNED = (
    1000  # entries beyond the folded ones that are looked through for a phrase: 15 ms at worst
)
_MOST_CONDEMNED = 3  # generations: whatever still fails then is no matter of damaged files
_FILTERS_KEPT = 32
_ALL = frozenset({"words", "meaning", "tail"})
_TOOLS_ALONE = frozenset({Sort.TOOL})
_TALK = frozenset({Sort.PAGE, Sort.MEMORY})


_HOT_SECONDS = 0.002  # less than that leaves no time to ask anybody
_WARM_SECONDS = 0.02
_MOST_ANSWERS = 128


@dataclass(frozen=True, slots=True)
class Effort:
    """Limits of a search."""

    candidates: int
    """Minimum of vectors that are compared exactly: of 100,000, 1,000 hold 98 % of the nearest ten
    of four words."""
    share: float
    """Share of the vectors compared exactly, if there are very many."""
    found: int
    """Entries of each signal that are fused."""
    embeds_tail: bool
    """True to find unfolded entries by meaning too."""

    def candidates_of(self, rows: int) -> int:
        return max(self.candidates, int(self.share * rows))


class SearchTier(Enum):
    HOT = Effort(candidates=0, share=0.0, found=0, embeds_tail=False)
    WARM = Effort(candidates=400, share=0.001, found=30, embeds_tail=False)
    FULL = Effort(candidates=1000, share=0.004, found=40, embeds_tail=True)


def tier_for(deadline: float) -> SearchTier:
    """How thoroughly to search in that time; and while memory is short, without what it takes most
    of."""
    if deadline < _HOT_SECONDS:
        return SearchTier.HOT
    is_short = CACHES.response.tier is not MemoryTier.FULL
    return SearchTier.WARM if deadline < _WARM_SECONDS or is_short else SearchTier.FULL


class AnswerCache:
    """Recent answers, valid until something is added or removed."""

    def __init__(self) -> None:
        self._known: Lru[tuple[str, Filter, int], tuple[int, SearchTier, Hits]] = Lru(
            "search results", count=_MOST_ANSWERS
        )

    def get(self, query: Query, tier: SearchTier, version: int) -> Hits | None:
        """An answer made with at least this effort."""
        at, made_by, hits = self._known.get(_key(query)) or (-1, SearchTier.HOT, Hits())
        return hits if at == version and made_by.value.candidates >= tier.value.candidates else None

    def put(self, query: Query, tier: SearchTier, version: int, hits: Hits) -> None:
        self._known.put(_key(query), (version, tier, hits))


def _key(query: Query) -> tuple[str, Filter, int]:
    return query.words, query.only, query.most


class IndexSearch:
    """Thread-safe."""

    def __init__(
        self,
        folder: Path,
        rows: EntryRows,
        entries: Entries,
        embedder: Embedder | None,
        asking: Embedder | None = None,
    ) -> None:
        self._rows = rows
        self._entries = entries
        self._generations = Generations(rows)
        self._words = ByWords(folder)
        self.hot = HotEntries(rows, entries)
        self.reranker = HotReranker(asking, self.hot) if asking is not None else None
        self._meaning = (
            ByMeaning(folder, rows, embedder, asking, self.reranker)
            if embedder is not None
            else None
        )
        self._signals = Signals()
        self._answers = AnswerCache()
        self._standing: _CachedView | None = None
        self._condemned: set[int] = set()

    def search(self, query: Query) -> Hits:
        until = time.monotonic() + query.deadline
        tier = tier_for(query.deadline)
        if query.most <= 0 or not query.words.strip():
            return Hits()
        version = self._rows.version()
        if (known := self._answers.get(query, tier, version)) is not None:
            return known
        asked = analyse_query(query.words)
        wanted = _terms_of(asked, query.only.sorts)
        if tier is SearchTier.HOT:
            return Hits(self.hot.find(query, asked, wanted), _ALL)
        view = self._view(query, asked, wanted, version)
        hits = self._hits(view, query, (asked, wanted), tier.value, until)
        if (
            hits.lacking
            and (again := self._view(query, asked, wanted, self._rows.version())).generation
            != view.generation
        ):
            hits = self._hits(
                again, query, (asked, wanted), tier.value, until
            )  # it was swapped while we looked
        if not hits.lacking:
            self._answers.put(query, tier, version, hits)
        return hits

    def troubles(self) -> Iterable[str]:
        for name, error in sorted(self._signals.failed.items()):
            rests = (
                "is left out for now: it failed again and again"
                if self._signals.breakers[name].open
                else "failed last time"
            )
            yield f"{name} {rests} ({type(error).__name__})"
        if self._condemned:
            yield "the folded files were damaged; they are made again"

    def respond(self, response: PressureResponse) -> None:
        """Keep in memory what the tier allows; the rest comes back with the next search."""
        if self.reranker is not None and (response.tier is not MemoryTier.FULL or response.empties):
            self.reranker.clear()
        if response.tier is MemoryTier.HOT or response.empties:
            self._standing = None
            self._words.release()
            if self._meaning is not None:
                self._meaning.release()

    def close(self) -> None:
        self._signals.close()

    def _view(self, query: Query, asked: AnalysedQuery, wanted: Terms, version: int) -> RowView:
        """A snapshot of the rows, at this version or later."""
        known = self._standing
        if known is not None and known.version == version and query.only in known.filters:
            return RowView(
                known.generation, known.filters[query.only], known.hidden, beyond=False, tail=[]
            )
        with self._rows.reading() as connection:
            generation = serving_generation(connection)
            folded = generation.folded if generation else 0
            only = self._entries.numbers(connection, query.only)
            hidden = frozenset(removed_docs(connection))
            beyond = bool(
                read_number(
                    connection, "SELECT EXISTS (SELECT 1 FROM entry WHERE doc > ?)", (folded,)
                )
            )
            tail: list[tuple[int, Entry]] = []
            if beyond and wanted and not only.nothing:
                words, most = (
                    ("", _TAIL_SCANNED) if asked.phrases else (fts5_query(asked), _TAIL_FOUND)
                )
                if words or asked.phrases:
                    tail = tail_by_words(connection, folded, words, only, most)
        if not beyond:
            others = (
                list(known.filters.items())[1 - _FILTERS_KEPT :]
                if known is not None and known.version == version
                else ()
            )
            self._standing = _CachedView(
                version, generation, hidden, {**dict(others), query.only: only}
            )
        matching = [(doc, entry) for doc, entry in tail if _has_phrases(entry, asked)]
        return RowView(generation, only, hidden, beyond, matching)

    def _hits(
        self,
        view: RowView,
        query: Query,
        asked: tuple[AnalysedQuery, Terms],
        effort: Effort,
        until: float,
    ) -> Hits:
        question, wanted = asked
        limit = max(effort.found, 2 * query.most)
        words = (
            partial(self._words.find, view, wanted, limit)
            if wanted and not view.only.nothing
            else None
        )
        meaning = None
        if self._meaning is not None and not view.only.nothing:
            meaning = partial(self._meaning.find, view, query, limit, effort)
        apart = self._meaning is None or not self._meaning.is_quick(view)
        by_words, by_meaning, lacking = self._signals.ask(words, meaning, until, apart=apart)
        self._look_into(view, lacking)
        absent = self._absent(view)
        why = dict.fromkeys(absent, Lack.UNBUILT) | self._signals.why(lacking)
        ranked = fuse(by_words, by_meaning)
        with self._rows.reading() as connection:
            first = max(_BY_FILE, 2 * query.most)
            code = [each.found for each in ranked[:first] if each.found.sort is Sort.CODE]
            if code and wanted.loose:
                files = _files(connection, code)
                shares = _name_shares(
                    self._entries.names(connection, frozenset(files.values())),
                    frozenset(wanted.loose),
                )
                ranked = [*by_file(ranked[:first], files, shares), *ranked[first:]]
            hits = _shown(connection, ranked, query, question)
        return Hits(hits, lacking | absent, why)

    def _absent(self, view: RowView) -> frozenset[str]:
        """Signals that cannot serve, however long one waits."""
        if self._meaning is None or (
            view.generation is not None and not self._meaning.serves(view.generation)
        ):
            return frozenset({"meaning"})
        return frozenset()

    def _look_into(self, view: RowView, lacking: frozenset[str]) -> None:
        """Condemn a generation whose files are missing, or on which a signal keeps failing: the
        folding process rebuilds it."""
        if (
            view.generation is None
            or view.generation.number in self._condemned
            or len(self._condemned) >= _MOST_CONDEMNED
        ):
            return
        for name in lacking & self._signals.failed.keys():
            if (
                isinstance(self._signals.failed[name], FilesDamaged)
                or self._signals.breakers[name].open
            ):
                if self._generations.condemn(view.generation.number):
                    self._condemned.add(view.generation.number)
                return


def _terms_of(asked: AnalysedQuery, sorts: frozenset[Sort]) -> Terms:
    wanted = query_terms(asked)
    if sorts == _TOOLS_ALONE:
        return tool_terms(wanted)
    return talk_terms(wanted) if sorts and sorts <= _TALK else wanted


@dataclass(frozen=True, slots=True)
class _CachedView:
    """The rows while nothing waited to be folded: valid until the next commit."""

    version: int
    generation: Generation | None
    hidden: frozenset[int]
    filters: Mapping[Filter, NumberFilter]


def _shown(
    connection: apsw.Connection, ranked: list[RankedHit], query: Query, asked: AnalysedQuery
) -> tuple[IndexHit, ...]:
    """The best existing hits, checked again: an engine may be wrong about a filter or a phrase."""
    hits: list[IndexHit] = []
    for at in range(0, len(ranked), query.most):
        some = ranked[at : at + query.most]
        entries = by_number(connection, [each.doc for each in some])
        for each in some:
            entry = entries.get(each.doc)
            if (
                entry is not None
                and matches_filter(query.only, entry)
                and _has_phrases(entry, asked)
            ):
                hits.append(IndexHit(entry, each.score, each.by_words, each.by_meaning))
        if len(hits) >= query.most:
            break
    return tuple(hits[: query.most])


def _files(connection: apsw.Connection, found: Sequence[FusedHit]) -> dict[int, int]:
    """The file number of each hit; the database is queried for unfolded ones."""
    known = {each.doc: each.path for each in found if each.path is not None}
    return (
        known | paths_of(connection, [each.doc for each in found if each.path is None])
        if len(known) < len(found)
        else known
    )


def _name_shares(names: Mapping[int, frozenset[str]], asked: frozenset[str]) -> dict[int, float]:
    """The share of each file's name that occurs in the query."""
    return {file: len(name & asked) / len(name) for file, name in names.items() if name}


def _has_phrases(entry: Entry, asked: AnalysedQuery) -> bool:
    return not asked.phrases or holds_phrases(f"{entry.title}\n{entry.text}", asked.phrases)


_THREADS = 4  # searches at once; one that a slow embedder holds is one less
_SHUTDOWN_SECONDS = (
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
    """A snapshot of the rows."""

    generation: Generation | None
    only: NumberFilter
    hidden: frozenset[int]
    """Entries removed since they were folded."""
    beyond: bool
    """True if there are unfolded entries."""
    tail: list[tuple[int, Entry]]
    """Unfolded entries that match by words."""


class ByWords:
    """Full-text search."""

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

    def release(self) -> None:
        """Close the files, unless a search opens them right now."""
        if self._lock.acquire(blocking=False):
            self._words = self._generation = None
            self._lock.release()

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
    """Vector search; unfolded entries are embedded on the fly."""

    def __init__(
        self,
        folder: Path,
        rows: EntryRows,
        embedder: Embedder,
        asking: Embedder | None,
        reranker: HotReranker | None,
    ) -> None:
        self._folder = folder
        self._rows = rows
        self._embedder = embedder
        self._is_at_hand = isinstance(embedder, WordVectors) and asking is None
        self._questions = QueryVectors(embedder, asking)
        self._reranker = reranker
        self._lock = threading.Lock()
        self._vectors: Vectors | None = None
        self._generation: Generation | None = None
        self._tail: Lru[int, Floats] = Lru("vectors of new entries", count=_TAIL_KEPT)

    def serves(self, generation: Generation) -> bool:
        """False for vectors of another embedder or files of another form."""
        made = made_by(generation.identity)
        return made.get("embedder") == self._embedder.id and made.get("vectors") == vectors.VERSION

    def is_quick(self, view: RowView) -> bool:
        """True if it answers faster than a second thread would cost."""
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
        if self._reranker is not None and (generation is None or self.serves(generation)):
            closer = self._reranker.found(query, asked.only)
            found = (
                nlargest(limit, {each.doc: each for each in (*found, *closer)}.values(), key=_SCORE)
                if closer
                else found
            )
        return found

    def release(self) -> None:
        """Close the files, unless a search opens them right now."""
        if self._lock.acquire(blocking=False):
            self._vectors = self._generation = None
            self._lock.release()

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
    """Runs both signals at once. One that is slow, broken or resting is left out, and named."""

    def __init__(self) -> None:
        self._pool = DeadlinePool(_THREADS, "hotset-search")
        self.breakers = {name: Breaker(f"search by {name}") for name in ("words", "meaning")}
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

    def why(self, lacking: Iterable[str]) -> dict[str, Lack]:
        """Why these gave nothing, where they failed."""
        failed = {name: self.failed[name] for name in lacking if name in self.failed}
        return {
            name: Lack.MISSING if isinstance(error, FilesDamaged) else Lack.FAILED
            for name, error in failed.items()
        }

    def close(self) -> None:
        self._pool.close(_SHUTDOWN_SECONDS)

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
                self.breakers["meaning"].failed("it did not answer in time")
            return None
        self._note("meaning", error)
        return asked.result() if error is None else None

    def _note(self, name: str, error: BaseException | None) -> None:
        if error is None:
            self.failed.pop(name, None)
            self.breakers[name].succeeded()
        else:
            self.failed[name] = error
            self.breakers[name].failed(type(error).__name__)


_KEPT = 256  # vectors of the last questions
_CLOSE_READING_SECONDS = 0.1  # less leaves no time for that and for the search itself
_CLOSE_READING_CHARACTERS = (
    400  # 31 ms of one core, 8 for a few words; and a long text has words enough for the table
)
_CODE_ALONE = frozenset({Sort.CODE})


class QueryVectors:
    """Vectors of questions: by the documents' own embedder, or by a model that reads more closely
    where that helps and fits the deadline. Use it from any thread."""

    def __init__(self, documents: Embedder, asking: Embedder | None = None) -> None:
        """`asking` gives vectors of the documents' space."""
        if asking is not None and asking.id != documents.id:
            raise BadInput(f"vectors of {asking.id} cannot ask for those of {documents.id}")
        self._documents = documents
        self._asking = asking
        self._known: Lru[tuple[bool, str], Floats] = Lru("vectors of queries", count=_KEPT)

    def vector(self, query: Query) -> Floats:
        text = analyse_query(query.words).text
        reader = self._reader(query)
        if isinstance(self._documents, WordVectors) and not is_latin(text):
            # Its vocabulary is English. By it and by words NDCG@10 of 1,000 Chinese questions for
            # tools was 31, by words alone it is 69.
            return np.zeros(self._documents.size, np.float32)
        return self._known.get_or_make(
            (reader is self._asking, text), lambda: embed_one(reader, text)
        )

    def _reader(self, query: Query) -> Embedder:
        # Asked by the mean of table and MiniLM, code gave .555 instead of .569 (mean of 1/place),
        # tools .644 instead of .590.
        helps = query.only.sorts != _CODE_ALONE
        fits = (
            query.deadline >= _CLOSE_READING_SECONDS
            and len(query.words) <= _CLOSE_READING_CHARACTERS
            and CACHES.response.tier is MemoryTier.FULL
        )
        return self._asking if self._asking is not None and helps and fits else self._documents
