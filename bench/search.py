"""Hybrid search over real text, against each of its parts alone and a hybrid database, all in one
run.

    make bench-search
    HOTSET_BENCH_LARGE=1 make bench-search      a million entries, too: half an hour, 3 GB of disk

Entries are stretches of about 145 tokens of installed packages' sources; a question is four words
of one of them. Methods take turns, 50 questions each: a noisy machine is equally noisy for all, and
none is measured with another's data in the processor's cache. The first 20 questions, which bring
files into memory, are not measured. CPU time is what the machine's noise changes least. lancedb
(PyPI) gets a virtual environment of its own in the user's cache folder at the first run and answers
from a process of its own, which also takes its time there; it is no dependency of hotset.

Per method: entries a CPU second when building (with the embedding, where there are vectors); a
durable addition of one entry; questions plain, with a filter (one session of twenty, and the later
half) and, for hotset, in the hot and the warm tier and with filters that all, half, a twentieth and
a thousandth of the entries pass, each question with one of its own; how many of the ten nearest
vectors are found; disk; memory that is not a file's, of a process that has only asked questions.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Any, Protocol

import apsw
import numpy as np
import platformdirs
import tantivy

from bench.peer_environment import peer_program
from bench.results import quantile, tell
from hotset.index.embed.table import WordVectors
from hotset.index.local import LocalIndex
from hotset.nouns.search import Entry, EntryId, Filter, Query, Sort

LANCEDB = "0.40.0"
LARGE = "HOTSET_BENCH_LARGE"
_MORE_TEXT = (
    "sympy",
    "django",
    "pandas",
    "scipy",
    "transformers",
    "botocore",
    "kubernetes",
    "pulumi-aws",
    "google-api-python-client",
)
_SUFFIXES = frozenset((".py", ".pyi", ".md", ".rst", ".js", ".ts", ".h", ".json"))
_STRETCH = 420  # characters
_LONGEST_LINE = 1000
_QUESTIONS = 600  # in twelve turns: a slow minute of the machine is not all of it
_FIRST = 20
_IN_A_ROW = 50  # questions that a method is asked before the next one's turn
_RECALL_QUESTIONS = 100
_ADDITIONS = 100
_AT_ONCE = 2000
_SESSIONS = 20
_AGENTS = 1000
_FOUND = 10
_WORD = re.compile(r"[A-Za-z_]{3,}")


def main() -> None:
    sizes = [10_000, 100_000] + ([1_000_000] if os.environ.get(LARGE) else [])
    embedder = WordVectors()
    sets: dict[str, dict[str, dict[str, float]]] = {}
    for size in sizes:
        sets[f"{size:,} entries"] = _measured(size, embedder)
        tell("search", sets)  # each time: the next size takes ten times as long


def _measured(size: int, embedder: WordVectors) -> dict[str, dict[str, float]]:
    entries = list(islice(_entries(), size))
    assert len(entries) == size, f"only {len(entries):,} entries of text are installed here"
    vectors = np.concatenate([embedder.embed(_texts(some)) for some in _portions(entries)])
    first, questions = _questions(entries, embedder)
    folder = Path(tempfile.mkdtemp(prefix="hotset-bench-"))
    methods: list[Method] = [
        Hotset(folder / "hotset", embedder),
        Tantivy(folder / "tantivy"),
        Fts5(folder),
        Brute(),
    ]
    lancedb = [f"lancedb=={LANCEDB}", "pandas"]
    if size <= 100_000 and (python := peer_program("lancedb", LANCEDB, "python", lancedb)):
        methods.append(LanceDb(folder, python))
    try:
        results = {method.name: _built(method, entries, vectors) for method in methods}
        del entries
        _ask_all(methods, first, {method.name: {} for method in methods})
        _ask_all(methods, questions, results)
        for method in methods:
            results[method.name] |= _additions(method, embedder)
            results[method.name] |= method.more(questions, vectors)
            method.close()
    finally:
        shutil.rmtree(folder)
    return results


# Methods


@dataclass(frozen=True, slots=True)
class Question:
    words: str
    vector: Any


class Method(Protocol):
    name: str

    def build(self, entries: Sequence[Entry], vectors: Any) -> None: ...

    def ask(self, question: Question, filtered: bool) -> float | None:
        """CPU seconds where they are another process's; None where they are ours. Raises
        NotImplementedError."""
        ...

    def add(self, entry: Entry, vector: Any) -> None: ...

    def disk(self) -> int: ...

    def more(self, questions: Sequence[Question], vectors: Any) -> dict[str, float]:
        """What is measured of this method alone."""
        ...

    def close(self) -> None: ...


class Hotset:
    name = "hotset"

    def __init__(self, folder: Path, embedder: WordVectors) -> None:
        self._folder = folder
        self._index = LocalIndex(folder, embedder, folds=False)
        self._only = Filter()

    def build(self, entries: Sequence[Entry], _vectors: Any) -> None:
        self._first = entries[0].id
        for some in _portions(entries):
            self._index.add(some)
        assert self._index.fold()
        self._only = Filter(sessions=frozenset({"s7"}), since=len(entries) / 2)

    def ask(self, question: Question, filtered: bool) -> None:
        hits = self._index.search(
            Query(question.words, self._only if filtered else Filter(), _FOUND, deadline=10.0)
        )
        assert not hits.lacking

    def add(self, entry: Entry, _vector: Any) -> None:
        self._index.add([entry])

    def disk(self) -> int:
        return _size(self._folder)

    def more(self, questions: Sequence[Question], vectors: Any) -> dict[str, float]:
        self._index.fold()
        figures: dict[str, float] = {}
        seen = [
            hit.entry.id
            for each in questions[:20]
            for hit in self._index.search(Query(each.words, deadline=10.0)).hits
        ]
        for _ in range(3):
            self._index.touch(seen)
        for tier, deadline in (("hot", 0.0015), ("warm", 0.015)):
            taken = [self._in_time(each, deadline) for each in questions]
            figures |= {
                f"{tier}_p{share}_ms": _ms(quantile(taken, share / 100)) for share in (50, 95)
            }
        figures |= self._filtered(questions, len(vectors))
        figures["recall10"] = self._recall(questions[:_RECALL_QUESTIONS], vectors)
        asked = json.dumps([each.words for each in questions[:50]])
        told = subprocess.run(
            [sys.executable, "-c", _MEMORY, self._folder],
            input=asked,
            capture_output=True,
            text=True,
            check=True,
        )
        figures["anonymous_mb"] = round(int(told.stdout) / 1024, 1)
        return figures

    def _in_time(self, question: Question, deadline: float) -> float:
        """One hit fewer than before: else the answer of a moment ago would be given again."""
        query = Query(question.words, most=_FOUND - 1, deadline=deadline)
        return _timed(lambda: self._index.search(query))[0]

    def _filtered(self, questions: Sequence[Question], many: int) -> dict[str, float]:
        """Another filter for each question, as far as there are that many: what is kept of the last
        ones counts for little."""
        taken: dict[str, list[float]] = {}
        for number, each in enumerate(questions):
            filters = {
                "all": Filter(sorts=frozenset({Sort.CODE})),
                "half": Filter(since=many / 2 + number),
                "twentieth": Filter(sessions=frozenset({f"s{number % _SESSIONS}"})),
                "thousandth": Filter(agents=frozenset({f"a{number}"})),
            }
            for name, only in filters.items():
                query = Query(each.words, only, _FOUND, deadline=10.0)
                taken.setdefault(name, []).append(_timed(partial(self._index.search, query))[0])
        return {
            f"{name}_p{share}_ms": _ms(quantile(taken[name], share / 100))
            for name in taken
            for share in (50, 95)
        }

    def _recall(self, questions: Sequence[Question], vectors: Any) -> float:
        """By meaning alone; numbers of entries follow the vectors."""
        meaning = self._index._search._meaning  # noqa: SLF001 - no public way asks one signal alone
        assert meaning is not None
        [found] = [each for each in self._index._fold_writer._generations.every() if each.serving]  # noqa: SLF001
        view = _view_of(found)
        [(first, _)] = self._index._entries.by_id([self._first])  # noqa: SLF001
        right = 0
        for each in questions:
            exact = {int(at) + first for at in _exact(vectors, each.vector)}
            right += len(
                exact
                & {near.doc for near in meaning.find(view, Query(each.words), _FOUND, _full())}
            )
        return round(right / (_FOUND * len(questions)), 4)

    def close(self) -> None:
        self._index.close()


class Tantivy:
    """As it comes: its own words, whole documents of one field."""

    name = "tantivy"

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("body", index_option="freq")
        builder.add_unsigned_field("number", fast=True)
        builder.add_text_field("session", tokenizer_name="raw", index_option="basic")
        builder.add_float_field("time", fast=True)
        self._schema = builder.build()
        self._index = tantivy.Index(self._schema, str(folder))
        self._writer = self._index.writer(64_000_000, 1)
        self._half = 0.0

    def build(self, entries: Sequence[Entry], _vectors: Any) -> None:
        for number, entry in enumerate(entries):
            self._put(number, entry)
        self._writer.commit()
        self._index.reload()
        self._half = len(entries) / 2

    def ask(self, question: Question, filtered: bool) -> None:
        term = tantivy.Query.term_query
        words = dict.fromkeys(word.lower() for word in re.findall(r"[A-Za-z]+", question.words))
        query = tantivy.Query.boolean_query(
            [(tantivy.Occur.Should, term(self._schema, "body", word, "freq")) for word in words]
        )
        if filtered:
            later = tantivy.Query.range_query(
                self._schema, "time", tantivy.FieldType.Float, self._half, None
            )
            must = [query, term(self._schema, "session", "s7", "basic"), later]
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, each) for each in must])
        searcher = self._index.searcher()
        hits = searcher.search(query, 50, count=False).hits
        searcher.fast_field_values("number", [address for _, address in hits])

    def add(self, entry: Entry, _vector: Any) -> None:
        self._put(0, entry)
        self._writer.commit()

    def disk(self) -> int:
        return _size(self._folder)

    def more(self, _questions: Sequence[Question], _vectors: Any) -> dict[str, float]:
        return {}

    def close(self) -> None:
        self._writer.wait_merging_threads()

    def _put(self, number: int, entry: Entry) -> None:
        made = tantivy.Document(body=entry.text, session=entry.session)
        made.add_unsigned("number", number)
        made.add_float("time", entry.time)
        self._writer.add_document(made)


class Fts5:
    name = "sqlite fts5"

    def __init__(self, folder: Path) -> None:
        self._file = folder / "fts5.db"
        self._database = apsw.Connection(str(self._file))
        for sql in (
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = NORMAL",
            "CREATE VIRTUAL TABLE t USING fts5(body, session UNINDEXED, time UNINDEXED)",
        ):
            self._database.execute(sql).fetchall()
        self._half = 0.0

    def build(self, entries: Sequence[Entry], _vectors: Any) -> None:
        with self._database:
            rows = ((entry.text, entry.session, entry.time) for entry in entries)
            self._database.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        self._half = len(entries) / 2

    def ask(self, question: Question, filtered: bool) -> None:
        words = " OR ".join(f'"{word}"' for word in question.words.split())
        where = "AND session = 's7' AND time >= ?" if filtered else ""
        sql = f"SELECT rowid, rank FROM t WHERE t MATCH ? {where} ORDER BY rank LIMIT 50"
        self._database.execute(sql, (words, self._half) if filtered else (words,)).fetchall()

    def add(self, entry: Entry, _vector: Any) -> None:
        self._database.execute(
            "INSERT INTO t VALUES (?, ?, ?)", (entry.text, entry.session, entry.time)
        )

    def disk(self) -> int:
        return self._file.stat().st_size

    def more(self, _questions: Sequence[Question], _vectors: Any) -> dict[str, float]:
        return {}

    def close(self) -> None:
        self._database.close()


class Brute:
    """Every vector, exactly."""

    name = "numpy"

    def build(self, entries: Sequence[Entry], vectors: Any) -> None:
        self._vectors = vectors
        self._fits = np.array(
            [entry.session == "s7" and entry.time >= len(entries) / 2 for entry in entries]
        )

    def ask(self, question: Question, filtered: bool) -> None:
        if filtered:
            _exact(self._vectors[self._fits], question.vector)
        else:
            _exact(self._vectors, question.vector)

    def add(self, _entry: Entry, _vector: Any) -> None:
        raise NotImplementedError

    def disk(self) -> int:
        return int(self._vectors.nbytes)

    def more(self, _questions: Sequence[Question], _vectors: Any) -> dict[str, float]:
        return {"recall10": 1.0}

    def close(self) -> None:
        pass


class LanceDb:
    """Its own hybrid search, with an index of each kind, in a process that talks over its standard
    input and output."""

    name = "lancedb"

    def __init__(self, folder: Path, python: Path) -> None:
        self._folder = folder / "lancedb"
        self._folder.mkdir()
        command = [
            str(python),
            str(Path(__file__).with_name("search_lancedb.py")),
            str(self._folder),
        ]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def build(self, entries: Sequence[Entry], vectors: Any) -> None:
        np.save(self._folder / "vectors.npy", vectors)
        rows = [(entry.text, entry.session, entry.time) for entry in entries]
        (self._folder / "rows.json").write_text(json.dumps(rows))
        self.build_seconds = self._say({"do": "build", "half": len(entries) / 2})
        for name in ("vectors.npy", "rows.json"):
            (self._folder / name).unlink()

    def ask(self, question: Question, filtered: bool) -> float:
        return self._say(
            {
                "do": "ask",
                "words": question.words,
                "vector": question.vector.tolist(),
                "filtered": filtered,
            }
        )

    def add(self, entry: Entry, vector: Any) -> None:
        row = {
            "text": entry.text,
            "session": entry.session,
            "time": entry.time,
            "vector": vector.tolist(),
        }
        self._say({"do": "add", "row": row})

    def disk(self) -> int:
        return _size(self._folder)

    def more(self, _questions: Sequence[Question], _vectors: Any) -> dict[str, float]:
        return {}

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _say(self, what: dict[str, Any]) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())


# Measuring


def _built(method: Method, entries: Sequence[Entry], vectors: Any) -> dict[str, float]:
    _, cpu = _timed(lambda: method.build(entries, vectors))
    cpu = getattr(method, "build_seconds", cpu)
    return {
        "build_per_cpu_s": round(len(entries) / max(cpu, 1e-9)),
        "disk_mb": round(method.disk() / 1e6, 1),
    }


def _ask_all(
    methods: Sequence[Method], questions: Sequence[Question], results: dict[str, dict[str, float]]
) -> None:
    for filtered, prefix in ((False, ""), (True, "filtered_")):
        walls: dict[str, list[float]] = {method.name: [] for method in methods}
        cpus: dict[str, list[float]] = {method.name: [] for method in methods}
        for at in range(0, len(questions), _IN_A_ROW):
            for method, each in product(methods, questions[at : at + _IN_A_ROW]):
                told: list[float | None] = []
                wall, cpu = _timed(partial(_ask, method, each, filtered, told))
                walls[method.name].append(wall)
                cpus[method.name].append(cpu if told[0] is None else told[0])
        for method in methods:
            for share in (50, 95):
                results[method.name][f"{prefix}p{share}_ms"] = _ms(
                    quantile(walls[method.name], share / 100)
                )
            results[method.name][f"{prefix}cpu_ms"] = _ms(quantile(cpus[method.name], 0.5))


def _ask(method: Method, question: Question, filtered: bool, told: list[float | None]) -> None:
    told.append(method.ask(question, filtered))


def _additions(method: Method, embedder: WordVectors) -> dict[str, float]:
    taken = []
    for number in range(_ADDITIONS):
        entry = _entry(
            f"new/{number}.py",
            1,
            f"a new entry, the {number}th of its kind, about adding entries one by one",
            0,
        )
        [vector] = embedder.embed([entry.text])
        try:
            taken.append(_timed(partial(method.add, entry, vector))[0])
        except NotImplementedError:
            return {}
    return {"add_p50_ms": _ms(quantile(taken, 0.5)), "add_p95_ms": _ms(quantile(taken, 0.95))}


_MEMORY = """
import json, pathlib, sys
from hotset.index.embed.table import WordVectors
from hotset.index.local import LocalIndex
from hotset.nouns.search import Query
with LocalIndex(pathlib.Path(sys.argv[1]), WordVectors(), folds=False) as index:
    for words in json.load(sys.stdin):
        index.search(Query(words, deadline=10.0))
    told = pathlib.Path("/proc/self/smaps_rollup")
    lines = told.read_text().splitlines() if told.exists() else []
    print(next((line.split()[1] for line in lines if line.startswith("Anonymous:")), 0))
"""


def _timed(act: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the wall, and of the processor."""
    wall, cpu = time.perf_counter(), _cpu()
    act()
    return time.perf_counter() - wall, _cpu() - cpu


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _exact(vectors: Any, query: Any) -> Any:
    cosines = np.einsum("ij,j->i", vectors, query)
    if len(cosines) <= _FOUND:
        return np.arange(len(cosines))
    return np.argpartition(cosines, -_FOUND)[-_FOUND:]


def _view_of(generation: Any) -> Any:
    from hotset.index.filters import NumberFilter  # noqa: PLC0415
    from hotset.index.hybrid_search import RowView  # noqa: PLC0415

    return RowView(generation, NumberFilter(), frozenset(), beyond=False, tail=[])


def _full() -> Any:
    from hotset.index.hybrid_search import SearchTier  # noqa: PLC0415

    return SearchTier.FULL.value


# Text


def _entries() -> Iterator[Entry]:
    number = 0
    for root in _roots():
        for path in sorted(root.rglob("*")):
            if path.suffix in _SUFFIXES and path.is_file():
                for first, text in _stretches(path):
                    yield _entry(str(path.relative_to(root)), first, text, number)
                    number += 1


def _roots() -> Iterator[Path]:
    yield Path(sysconfig.get_path("purelib"))
    yield Path(sysconfig.get_path("stdlib"))
    if os.environ.get(LARGE):
        yield _more_text()


def _more_text() -> Path:
    """Packages that are only read."""
    folder = platformdirs.user_cache_path("hotset-bench") / "text"
    for name in _MORE_TEXT:
        if not (folder / name).exists():
            print(f"fetching {name} for its text")
            command = [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--target",
                str(folder / name),
                name,
            ]
            subprocess.run(command, check=False)
    return folder


def _stretches(path: Path) -> Iterator[tuple[int, str]]:
    text, first = "", 1
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            text += line[:_LONGEST_LINE]
            if len(text) >= _STRETCH:
                yield first, text
                text, first = "", number + 1


def _entry(path: str, first: int, text: str, number: int) -> Entry:
    return Entry(
        EntryId(f"{path}#{first}"),
        path,
        Sort.CODE,
        text,
        kind=path.rpartition(".")[2],
        title=path,
        session=f"s{number % _SESSIONS}",
        agent=f"a{number % _AGENTS}",
        time=float(number),
        path=path,
        lines=(first, first + text.count("\n")),
    )


def _questions(
    entries: Sequence[Entry], embedder: WordVectors
) -> tuple[list[Question], list[Question]]:
    """Some to begin with, which are not measured, and the others."""
    rng = random.Random(11)
    made: list[Question] = []
    while len(made) < _FIRST + _QUESTIONS:
        words = _WORD.findall(rng.choice(entries).text)
        if len(words) >= 4:
            text = " ".join(rng.sample(words, 4))
            made.append(Question(text, embedder.embed([text])[0]))
    return made[:_FIRST], made[_FIRST:]


def _texts(entries: Sequence[Entry]) -> list[str]:
    return [f"{entry.title}\n{entry.text}" for entry in entries]


def _portions(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    for at in range(0, len(entries), _AT_ONCE):
        yield entries[at : at + _AT_ONCE]


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


if __name__ == "__main__":
    main()
