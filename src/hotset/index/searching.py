"""One search: one state of the rows, both signals over it, one order, and only what may be
shown."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apsw

from hotset.index.analysis import AnalysedQuery, analyse_query, holds_phrases
from hotset.index.closely import HotReranker
from hotset.index.embed.port import Embedder
from hotset.index.entries import Entries, by_number, paths_of, tail_by_words
from hotset.index.filters import NumberFilter, matches_filter
from hotset.index.generations import (
    FilesDamaged,
    Generation,
    Generations,
    removed_docs,
    serving_generation,
)
from hotset.index.hybrid import FusedHit, Ranked, by_file, fuse
from hotset.index.rows import EntryRows, read_number
from hotset.index.signals import ByMeaning, ByWords, RowView, Signals
from hotset.index.tiers import AnswerCache, Effort, HotEntries, SearchTier, tier_for
from hotset.index.words import Terms, fts5_query, query_terms, tool_terms
from hotset.nouns.finding import Entry, Filter, Hits, IndexHit, Query, Sort

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


class IndexSearch:
    """Use it from any thread."""

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
        self.closely = HotReranker(asking, self.hot) if asking is not None else None
        self._meaning = (
            ByMeaning(folder, rows, embedder, asking, self.closely)
            if embedder is not None
            else None
        )
        self._signals = Signals()
        self._answers = AnswerCache()
        self._standing: _Standing | None = None
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
        wanted = (
            tool_terms(query_terms(asked))
            if query.only.sorts == _TOOLS_ALONE
            else query_terms(asked)
        )
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

    def close(self) -> None:
        self._signals.close()

    def _view(self, query: Query, asked: AnalysedQuery, wanted: Terms, version: int) -> RowView:
        """What the rows say at this version at least, all of it at one moment."""
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
            self._standing = _Standing(
                version, generation, hidden, {**dict(others), query.only: only}
            )
        said = [(doc, entry) for doc, entry in tail if _says(entry, asked)]
        return RowView(generation, only, hidden, beyond, said)

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
        ranked = fuse(by_words, by_meaning)
        with self._rows.reading() as connection:
            first = max(_BY_FILE, 2 * query.most)
            code = [each.found for each in ranked[:first] if each.found.sort is Sort.CODE]
            if code and wanted.loose:
                files = _files(connection, code)
                said = _said(
                    self._entries.names(connection, frozenset(files.values())),
                    frozenset(wanted.loose),
                )
                ranked = [*by_file(ranked[:first], files, said), *ranked[first:]]
            hits = _shown(connection, ranked, query, question)
        return Hits(hits, lacking | self._absent(view))

    def _absent(self, view: RowView) -> frozenset[str]:
        """What cannot serve however long one waits."""
        if self._meaning is None or (
            view.generation is not None and not self._meaning.serves(view.generation)
        ):
            return frozenset({"meaning"})
        return frozenset()

    def _look_into(self, view: RowView, lacking: frozenset[str]) -> None:
        """A signal whose files are missing, or that fails again and again: they are made anew, by
        whoever folds."""
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


@dataclass(frozen=True, slots=True)
class _Standing:
    """What the rows said while nothing waited to be folded: as long as nobody commits, the next
    search need not ask again."""

    version: int
    generation: Generation | None
    hidden: frozenset[int]
    filters: Mapping[Filter, NumberFilter]


def _shown(
    connection: apsw.Connection, ranked: list[Ranked], query: Query, asked: AnalysedQuery
) -> tuple[IndexHit, ...]:
    """The best that are still there, looked at once more: an engine may be wrong about a filter or
    a phrase."""
    hits: list[IndexHit] = []
    for at in range(0, len(ranked), query.most):
        some = ranked[at : at + query.most]
        entries = by_number(connection, [each.doc for each in some])
        for each in some:
            entry = entries.get(each.doc)
            if entry is not None and matches_filter(query.only, entry) and _says(entry, asked):
                hits.append(IndexHit(entry, each.score, each.by_words, each.by_meaning))
        if len(hits) >= query.most:
            break
    return tuple(hits[: query.most])


def _files(connection: apsw.Connection, found: Sequence[FusedHit]) -> dict[int, int]:
    """The number of each one's file; the database is asked for those that are not folded."""
    known = {each.doc: each.path for each in found if each.path is not None}
    return (
        known | paths_of(connection, [each.doc for each in found if each.path is None])
        if len(known) < len(found)
        else known
    )


def _said(names: Mapping[int, frozenset[str]], asked: frozenset[str]) -> dict[int, float]:
    """The share of each file's name that the question says."""
    return {file: len(name & asked) / len(name) for file, name in names.items() if name}


def _says(entry: Entry, asked: AnalysedQuery) -> bool:
    return not asked.phrases or holds_phrases(f"{entry.title}\n{entry.text}", asked.phrases)
