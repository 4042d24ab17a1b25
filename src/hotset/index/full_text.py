"""Full text: tantivy, and nothing of it outside this file.

Queries are built from terms, never parsed from text: no character of a question can be an operator.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import tantivy

from hotset.errors import DiskFull, StoreBusy, StoreFailed
from hotset.index.analysis import AnalysedQuery, exact_words, split_identifiers
from hotset.index.database import FilesDamaged
from hotset.index.filters import SORTS, NumberFilter
from hotset.index.fusion import FusedHit
from hotset.nouns.search import Entry
from hotset.text.stops import CHAT

VERSION = f"tantivy {getattr(tantivy, '__version__').split()[1].strip('v,')}, fields 2"  # noqa: B009 - it has no type
"""Version of the files and fields: only the same version can read them."""

_LONGEST_WORD = 64  # what is longer is no word: a hash, a blob
_LONGEST_IDENTIFIER = 128
_MOST_TERMS = (
    32  # of a question, the rarest: the time grows with each, and the common ones say little
)
_LETTERS_A_TERM = 4  # a Chinese question of 60 words has 100 different letters
_COMMON_SHARE = 0.25
_DOCUMENTS_ENOUGH = 1000  # to tell what is common
_MOST_PATHS = (
    2000  # as a condition of the engine: 1.5 ms for 1,000 paths, 7 for 3,000 at 100,000 entries
)
_MOST_NUMBERS = 64  # of a condition: for more it takes too long to ask how common each is
_COMMON = 0.25  # of all documents: a condition that so many fulfil is looked at once they are found
_MARGIN = (
    1.5  # times as many are looked at as would do, did such a condition not depend on what is asked
)
_FURTHER = 8  # times as many hits, where too few of the first ones may be shown
_MOST_LOOKED_AT = 20_000
# for additions until their commit, at most: what does not fit into it is a segment more
LEAST_HEAP_BYTES = 15_000_000  # tantivy takes no less
HEAP_BYTES = 128_000_000
_FILE_MODE = 0o600
_LOW_MACRON = "\N{MODIFIER LETTER LOW MACRON}"
_LOOSE, _TITLE, _EXACT = "body", "title", "exact"
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[^\W_]+")
_PANIC = "PanicException"  # what becomes of a Rust panic: no Exception, and not to be imported
_K1, _B = 1.2, 0.75  # tantivy's own
_USUAL_LENGTH = {_LOOSE: 80.0, _TITLE: 8.0, _EXACT: 70.0}  # words of a stretch of about 145 tokens


@dataclass(frozen=True, slots=True)
class Terms:
    """A question in terms of the index."""

    loose: tuple[str, ...]
    """Parts of identifiers and words, stemmed."""
    exact: tuple[str, ...]
    """Whole identifiers of several parts: they are meant literally."""
    phrases: tuple[tuple[str, ...], ...]
    title_weight: float = 1.0
    """Additional weight of a word in the title."""
    drops_common: bool = True
    """Words that very many documents have are left out."""

    def __bool__(self) -> bool:
        return bool(self.loose or self.phrases)


@dataclass(frozen=True, slots=True)
class Document:
    """An entry as the full-text index takes it."""

    doc: int
    entry: Entry
    numbers: tuple[tuple[str, int], ...]


def query_terms(question: AnalysedQuery) -> Terms:
    words = [
        word
        for word in dict.fromkeys(_WORD.findall(question.text))
        if len(word) <= _LONGEST_IDENTIFIER
    ]
    text, *apart = split_identifiers([question.text, *words])
    compound = (
        word
        for word, parts in zip(words, apart, strict=True)
        if " " in parts or "_" in word.strip("_")
    )
    return Terms(
        tuple(dict.fromkeys(_analyzer().analyze(text))),
        tuple(dict.fromkeys(word.lower() for word in compound))[:_MOST_TERMS],
        question.phrases,
    )


def tool_terms(asked: Terms) -> Terms:
    """The same, for tools: without what people say around their wish, and less for names, which are
    a third of the text.

    On seven public sets of tools (none of them in the benchmark) NDCG@10 of words alone was 52.1,
    without these words 54.6, and with names at a quarter 55.3; names in full gave 54.3, three times
    in the text 55.1.
    """
    return replace(
        asked,
        loose=tuple(term for term in asked.loose if term not in _chat()) or asked.loose,
        title_weight=0.25,
    )


def talk_terms(asked: Terms) -> Terms:
    """The same, for conversations and memories: common words are kept, as the name of one of two
    speakers is in half of all that they say."""
    return replace(asked, drops_common=False)


def fts5_query(question: AnalysedQuery) -> str:
    """The query for FTS5, which stems by itself: every word is quoted, so that none is an
    operator."""
    words = list(dict.fromkeys(_PART.findall(split_identifiers([question.text])[0])))
    return " OR ".join(f'"{word}"' for word in words[: _most_terms(words)])


def score_unfolded(
    asked: Terms, entries: Sequence[tuple[int, Entry]], folded: WordIndex | None
) -> list[FusedHit]:
    """Scores of entries that are not folded: the same formula over the same frequencies."""
    if not entries:  # as a rule; a look for ten words' frequencies takes a millisecond
        return []
    every = [(field, term) for field in (_LOOSE, _TITLE) for term in asked.loose]
    every += [(_EXACT, term) for term in asked.exact]
    counted = [(doc, entry.sort, _counts(entry)) for doc, entry in entries]
    among = Counter(key for *_, counts in counted for key in every if counts[key[0]][key[1]])
    total = len(counted) + (folded.documents if folded else 0)
    weights = {
        key: _rarity(among[key] + (folded.frequency(*key) if folded else 0), total) for key in every
    }
    weights |= {
        key: weight * asked.title_weight for key, weight in weights.items() if key[0] == _TITLE
    }
    return [
        FusedHit(
            doc,
            sum(
                weights[key] * _share(counts[key[0]], *key)
                for key in every
                if counts[key[0]][key[1]]
            ),
            sort,
        )
        for doc, sort, counts in counted
    ]


def stems_in(text: str, language: str) -> list[str]:
    """The words of a text whose stem in its own language is another than in English, as stems.
    `language` is a name of Snowball's."""
    words = _WORD.findall(text)
    return [
        stem[0]
        for word in words
        if (stem := _stemmer(language).analyze(word))
        and stem != _analyzer().analyze(word)
        and len(stem[0]) > 1
    ]


def words_of(text: str) -> frozenset[str]:
    """Every word of a text, analysed as in queries."""
    return frozenset(_analyzer().analyze(split_identifiers([text])[0]))


def words_of_names(paths: Sequence[str]) -> list[frozenset[str]]:
    """The words of each file's name, without its extension."""
    names = split_identifiers([path.rpartition("/")[2].partition(".")[0] for path in paths])
    return [frozenset(_analyzer().analyze(name)) for name in names]


class WordIndex:
    """The folded full text of one generation, for searching. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._schema = _schema()
        with _translate_errors(folder):
            self._index = _open_tantivy(folder, new=False)
            self._searcher = self._index.searcher()

    def reload(self) -> None:
        """Make later commits visible."""
        with _translate_errors(self._folder):
            self._index.reload()
            self._searcher = self._index.searcher()

    @property
    def documents(self) -> int:
        return int(self._searcher.num_docs)

    def frequency(self, field: str, term: str) -> int:
        with _translate_errors(self._folder):
            return int(
                self._searcher.doc_freq(field, _keep_identifiers(term) if field == _EXACT else term)
            )

    def telling(self, asked: Terms) -> Terms:
        """Drop words that a quarter of all documents have, if others remain: they discriminate
        little and take most time.

        On commits of five public repositories and docstrings of a sixth, NDCG@10 rose from .545 to
        .549; with a tenth instead of a quarter it fell to .534.
        """
        documents = self.documents
        if documents < _DOCUMENTS_ENOUGH or not asked.drops_common:
            return asked
        with _translate_errors(self._folder):
            often = {term: int(self._searcher.doc_freq(_LOOSE, term)) for term in asked.loose}
        rare = tuple(term for term, count in often.items() if count <= _COMMON_SHARE * documents)
        return (
            replace(asked, loose=rare)
            if len(rare) < len(often) and any(often[term] for term in rare)
            else asked
        )

    def search(
        self, asked: Terms, only: NumberFilter, hidden: frozenset[int], upto: int, limit: int
    ) -> list[FusedHit]:
        """The best hits that are not hidden and have numbers up to `upto`, best first."""
        if only.nothing or not asked:
            return []
        with _translate_errors(self._folder):
            try:
                return self._search(asked, only, hidden, upto, limit)
            except ValueError as error:
                # a question that it cannot take says nothing about its files
                raise StoreFailed(f"full text in {self._folder} could not answer") from error

    def _search(
        self, asked: Terms, only: NumberFilter, hidden: frozenset[int], upto: int, limit: int
    ) -> list[FusedHit]:
        searcher = self._searcher
        shares = self._common(searcher, only)
        look = int(limit * _MARGIN / math.prod(shares.values())) if shares else limit
        sifted = {
            name: numbers
            for name, numbers in only.sets
            if name in shares or len(numbers) > _MOST_PATHS
        }
        while True:
            hits = searcher.search(
                self._query(searcher, asked, only, sifted), look, count=False
            ).hits
            found = [
                each
                for each in _filter_hits(searcher, hits, sifted)
                if each.doc <= upto and each.doc not in hidden
            ]
            if len(found) >= limit or len(hits) < look or look >= _MOST_LOOKED_AT:
                return found[:limit]
            sifted = {
                name: numbers for name, numbers in sifted.items() if len(numbers) > _MOST_PATHS
            }
            look = min(look * _FURTHER, _MOST_LOOKED_AT)

    def _common(self, searcher: Any, only: NumberFilter) -> dict[str, float]:
        """The share of all documents that fulfils each of the conditions that many do.

        By sort alone, at a million documents: 5 ms if it is looked at afterwards, 11 as a
        condition.
        """
        every = max(1, searcher.num_docs)
        few = ((name, numbers) for name, numbers in only.sets if len(numbers) <= _MOST_NUMBERS)
        shares = {
            name: sum(searcher.doc_freq(name, number) for number in numbers) / every
            for name, numbers in few
        }
        return {name: min(1.0, share) for name, share in shares.items() if share >= _COMMON}

    def _query(
        self, searcher: Any, asked: Terms, only: NumberFilter, sifted: Collection[str]
    ) -> Any:
        must, should = tantivy.Occur.Must, tantivy.Occur.Should
        loose = self._rarest(searcher, asked.loose)
        any_of = [(should, self._term(_LOOSE, term)) for term in loose]
        any_of += [(should, _boost(self._term(_TITLE, term), asked.title_weight)) for term in loose]
        any_of += [(should, self._term(_EXACT, _keep_identifiers(term))) for term in asked.exact]
        conditions = [(must, self._phrase(phrase)) for phrase in asked.phrases]
        conditions += [(must, _without_score(query)) for query in self._conditions(only, sifted)]
        # Without conditions it stays a flat list of terms: only then does tantivy skip what cannot
        # be among the best.
        if not conditions:
            return tantivy.Query.boolean_query(any_of)
        asked_for = (should if asked.phrases else must, tantivy.Query.boolean_query(any_of))
        return tantivy.Query.boolean_query([*conditions, asked_for])

    def _rarest(self, searcher: Any, loose: tuple[str, ...]) -> Sequence[str]:
        most = _most_terms(loose)
        if len(loose) <= most:
            return loose
        known = [
            (frequency, term) for term in loose if (frequency := searcher.doc_freq(_LOOSE, term))
        ]
        return [term for _, term in sorted(known)[:most]]

    def _term(self, field: str, term: str) -> Any:
        return tantivy.Query.term_query(self._schema, field, term, "freq")

    def _phrase(self, phrase: tuple[str, ...]) -> Any:
        if len(phrase) == 1:
            return self._term(_EXACT, _keep_identifiers(phrase[0]))
        return tantivy.Query.phrase_query(
            self._schema, _EXACT, [_keep_identifiers(word) for word in phrase]
        )

    def _conditions(self, only: NumberFilter, sifted: Collection[str]) -> Iterable[Any]:
        for name, numbers in only.sets:
            if name in sifted:
                continue
            if (
                len(numbers) == 1
            ):  # half the time of a set of one, which is spread over all documents first
                yield tantivy.Query.term_query(self._schema, name, next(iter(numbers)), "basic")
            else:
                yield tantivy.Query.term_set_query(self._schema, name, sorted(numbers))
        if only.turns is not None:
            yield self._range("turn", tantivy.FieldType.Integer, *only.turns)
        if only.since is not None or only.until is not None:
            last = None if only.until is None else math.nextafter(only.until, -math.inf)
            yield self._range("time", tantivy.FieldType.Float, only.since, last)

    def _range(self, field: str, sort: Any, first: float | None, last: float | None) -> Any:
        """Both ends included."""
        return tantivy.Query.range_query(self._schema, field, sort, first, last)


def _filter_hits(
    searcher: Any, hits: Sequence[tuple[float, Any]], sets: Mapping[str, frozenset[int]]
) -> Iterator[FusedHit]:
    """The hits whose numbers are in these sets."""
    if not hits:
        return
    addresses = [address for _, address in hits]
    column = {
        name: searcher.fast_field_values(name, addresses) for name in ("doc", "sort", "path", *sets)
    }
    kept: Iterable[int] = range(len(hits))
    for name, numbers in sets.items():
        values = column[name]
        kept = [at for at in kept if values[at] in numbers]
    docs, sorts, paths = column["doc"], column["sort"], column["path"]
    for at in kept:
        yield FusedHit(docs[at], hits[at][0], SORTS[sorts[at]], paths[at])


class WordsWriter:
    """Folds into the full text. Raises `StoreBusy` if another process does."""

    def __init__(self, folder: Path, *, new: bool, heap: int = HEAP_BYTES) -> None:
        self._schema = _schema()
        self._folder = folder
        with _translate_errors(folder):
            self._writer = _open_tantivy(folder, new=new).writer(heap, 1)

    def add(self, documents: Sequence[Document]) -> None:
        texts = split_identifiers([_body(document.entry) for document in documents])
        titles = split_identifiers([document.entry.title for document in documents])
        with _translate_errors(self._folder):
            for document, text, title in zip(documents, texts, titles, strict=True):
                self._writer.add_document(_document(document, text, title))

    def forget(self, docs: Iterable[int]) -> None:
        for doc in docs:
            self._writer.delete_documents_by_term("doc", doc)

    def forget_beyond(self, doc: int) -> None:
        """Drop what an unfinished fold left."""
        beyond = tantivy.Query.range_query(
            self._schema,
            "doc",
            tantivy.FieldType.Unsigned,
            doc,
            None,
            include_lower=False,
            include_upper=True,
        )
        self._writer.delete_documents_by_query(beyond)

    def commit(self) -> None:
        with _translate_errors(self._folder):
            self._writer.commit()
            for path in (
                self._folder.iterdir()
            ):  # tantivy leaves them readable for everybody who can look into the folder
                with suppress(FileNotFoundError):
                    path.chmod(_FILE_MODE)

    def close(self) -> None:
        """Uncommitted changes are dropped."""
        with suppress(StoreFailed), _translate_errors(self._folder):
            self._writer.rollback()
            self._writer.wait_merging_threads()


@contextmanager
def _translate_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError, RuntimeError) as error:
        message = str(error)
        if "LockBusy" in message:
            raise StoreBusy(
                f"another process writes in {folder}; it will fold what waits"
            ) from error
        if "No space left" in message or "StorageFull" in message:
            raise DiskFull(
                f"the disk that holds {folder} is full; make room: the index goes on from "
                f"where it is"
            ) from error
        raise FilesDamaged(
            f"full text in {folder} cannot be read or written; it is made again"
        ) from error
    except BaseException as error:
        if type(error).__name__ == _PANIC:
            raise FilesDamaged(f"full text in {folder} is damaged; it is made again") from error
        raise


def _open_tantivy(folder: Path, *, new: bool) -> Any:
    index = (
        tantivy.Index(_schema(), str(folder), reuse=True)
        if new
        else tantivy.Index.open(str(folder))
    )
    index.register_tokenizer("loose", _analyzer())
    index.register_tokenizer("exact", _exactly())
    index.config_reader("manual")
    return index


@cache
def _chat() -> frozenset[str]:
    return words_of(" ".join(CHAT))


@cache
def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("doc", fast=True, indexed=True)
    builder.add_text_field(_LOOSE, tokenizer_name="loose", index_option="freq")
    builder.add_text_field(_TITLE, tokenizer_name="loose", index_option="freq")
    builder.add_text_field(_EXACT, tokenizer_name="exact", index_option="position")
    for name in ("sort", "kind", "session", "agent", "path"):
        builder.add_unsigned_field(name, indexed=True, fast=True)
    builder.add_integer_field("turn", fast=True)
    builder.add_float_field("time", fast=True)
    return builder.build()


@cache
def _analyzer() -> Any:
    filters = tantivy.Filter
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(filters.remove_long(_LONGEST_WORD))
        .filter(filters.lowercase())
        .filter(filters.ascii_fold())
        .filter(filters.stemmer("english"))
        .build()
    )


@cache
def _stemmer(language: str) -> Any:
    filters = tantivy.Filter
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(filters.remove_long(_LONGEST_WORD))
        .filter(filters.lowercase())
        .filter(filters.stemmer(language))
        .filter(filters.ascii_fold())
        .build()
    )


@cache
def _exactly() -> Any:
    filters = tantivy.Filter
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(filters.remove_long(_LONGEST_IDENTIFIER))
        .filter(filters.lowercase())
        .build()
    )


def _document(document: Document, text: str, title: str) -> Any:
    entry = document.entry
    made = tantivy.Document()
    made.add_unsigned("doc", document.doc)
    made.add_text(_LOOSE, text)
    made.add_text(_TITLE, title)
    made.add_text(_EXACT, _keep_identifiers(_plain(entry.text)))
    made.add_text(_EXACT, _keep_identifiers(_plain(entry.title)))
    for name, number in document.numbers:
        made.add_unsigned(name, number)
    made.add_integer("turn", entry.turn)
    made.add_float("time", entry.time)
    return made


def _body(entry: Entry) -> str:
    """A title's words are repeated in the text: that gives them more weight."""
    return f"{entry.title}\n{entry.text}" if entry.title else entry.text


def _keep_identifiers(text: str) -> str:
    """Identifiers stay whole with what tantivy takes for a letter in the place of `_`; a pattern of
    ours takes twice the time."""
    return text.replace("_", _LOW_MACRON)


def _most_terms(terms: Sequence[str]) -> int:
    """How many terms of a question are searched for: where words are not told apart by spaces, each
    letter is a term."""
    single = sum(len(term) == 1 for term in terms)
    return _MOST_TERMS * (_LETTERS_A_TERM if 2 * single > len(terms) else 1)


def _boost(query: Any, weight: float) -> Any:
    return query if weight == 1.0 else tantivy.Query.boost_query(query, weight)


def _without_score(query: Any) -> Any:
    return tantivy.Query.const_score_query(query, 0.0)


def _plain(text: str) -> str:
    """tantivy reads UTF-8 alone."""
    return text.encode("utf-8", "replace").decode()


def _counts(entry: Entry) -> dict[str, Counter[str]]:
    text, title = split_identifiers([_body(entry), entry.title])
    return {
        _LOOSE: Counter(_analyzer().analyze(text)),
        _TITLE: Counter(_analyzer().analyze(title)),
        _EXACT: Counter(exact_words(f"{entry.text}\n{entry.title}")),
    }


def _rarity(documents: int, total: int) -> float:
    return math.log(1 + (total - documents + 0.5) / (documents + 0.5))


def _share(counts: Counter[str], field: str, term: str) -> float:
    often = counts[term]
    length = counts.total() / _USUAL_LENGTH[field]
    return often * (1 + _K1) / (often + _K1 * (1 - _B + _B * length))
