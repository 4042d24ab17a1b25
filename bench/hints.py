"""Hints of code with a prompt: how often they are right, and the weights that say how likely.

    HOTSET_BENCH_REPO=/path/to/a/repository/.git:/path/to/another/.git make bench-hints

Questions that nobody here wrote: a commit's message is the prompt, over the project as it was
before that commit, and a file is right if the commit changed it. All commits of people count that
changed at most ten files, also those that changed no code: whatever is shown for these is wrong.
Messages lose what a prompt would not have: trailers, numbers of pull requests, a `(scope)`.

`hotset` shows what the shipped weights say. `later` is fitted to the first three fifths of every
repository's commits and judged by the rest; `others` is fitted to the other repositories and judged
by all commits of this one. `every` fits to everything and prints what is shipped. `lines` is the
share of excerpts of right files whose lines the commit changed, and `said` the mean likelihood.
HOTSET_BENCH_COMMITS (500) says how many commits of each repository count, the latest ones.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from bench.results import quantile, tell
from hotset.index.embed.table import WordVectors
from hotset.index.local import LocalIndex
from hotset.nouns.knobs import Prefetch
from hotset.nouns.search import Hits
from hotset.sources.code.indexer import index_project, manifest_identity
from hotset.sources.code.manifest import Manifest
from hotset.sources.code.parsers import Parsers
from hotset.window.prefetch import (
    CALIBRATION,
    SIGNS,
    HintCalibration,
    WeighedFile,
    likelihood,
    query_for,
    weigh,
)

_LOGGED = 4000
_MOST_FILES = 10
_LEAST_WORDS = 3
_LONGEST_MESSAGE = 1000
_WEIGHED = 5  # files of a commit that are fitted to: those beyond are hardly ever shown
_EARLIER = 0.6
_RIDGE = 2.0  # flat between 0.5 and 8
_NOISE = re.compile(r"\(#\d+\)|#\d+|\bhttps?://\S+|^[A-Z][\w-]+-by:.*$", re.MULTILINE)
_TYPE = re.compile(r"\A(\w+)(?:\([^)]*\))?!?:")  # `fix(scope):`, of which `fix` stays
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))?")

Metrics = dict[str, float]


@dataclass(frozen=True, slots=True)
class Commit:
    id: str
    parent: str
    words: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A commit, and the files that its message found."""

    files: frozenset[str]
    changed: Mapping[str, Sequence[tuple[int, int]]]
    """Lines of the files before the commit that it changed."""
    weighed: Sequence[WeighedFile]
    seconds: float

    def is_right(self, each: WeighedFile) -> bool:
        return each.hit.entry.path in self.files

    def has_lines(self, each: WeighedFile) -> bool:
        first, last = each.hit.entry.lines
        spans = self.changed.get(each.hit.entry.path, ())
        return any(begin <= last and first <= end for begin, end in spans)


def main() -> None:
    named = [
        Path(each) for each in os.environ.get("HOTSET_BENCH_REPO", "").split(os.pathsep) if each
    ]
    if len(named) < 2:
        sys.exit("name two git directories or more in HOTSET_BENCH_REPO, separated by :")
    most = int(os.environ.get("HOTSET_BENCH_COMMITS", "500"))
    cases: dict[str, list[Case]] = {}
    began = time.perf_counter()
    with get_context("spawn").Pool(2) as pool:
        jobs = [pool.apply_async(_cases, (repository, most)) for repository in named]
        for repository, job in zip(named, jobs, strict=True):
            name = (
                repository.parent.name if repository.name in (".git", "repo") else repository.stem
            )
            cases[name] = job.get()
            took = time.perf_counter() - began
            print(f"{name}: {len(cases[name])} commits, after {took:.0f} s", file=sys.stderr)
    report(cases)


def _cases(repository: Path, most: int) -> list[Case]:
    return list(cases_of(repository, most))


def report(cases: Mapping[str, Sequence[Case]]) -> None:
    cut = {name: round(_EARLIER * len(every)) for name, every in cases.items()}
    earlier = fitted([case for name, every in cases.items() for case in every[: cut[name]]])
    sets = {
        name: {
            "hotset": shown(every, CALIBRATION),
            "later": shown(every[cut[name] :], earlier),
            "others": shown(
                every,
                fitted([case for other, some in cases.items() if other != name for case in some]),
            ),
        }
        for name, every in cases.items()
    }
    sets["all"] = {
        "hotset": shown([case for every in cases.values() for case in every], CALIBRATION)
    }
    sets["all"]["later"] = shown(
        [case for name, every in cases.items() for case in every[cut[name] :]], earlier
    )
    tell("hints", sets)
    ours = fitted([case for every in cases.values() for case in every])
    print(f"\nweights of {', '.join(SIGNS)}")
    print(f"every:   ({', '.join(f'{weight:.2f}' for weight in ours.weights)}), {ours.clear:.2f}")
    print(f"shipped: {CALIBRATION.weights}, {CALIBRATION.clear}")


def shown(cases: Sequence[Case], by: HintCalibration) -> Metrics:
    """What is shown at the shipped thresholds, and how much of it is right."""
    knobs = Prefetch()
    hints: list[tuple[float, bool]] = []
    excerpts: list[tuple[float, bool]] = []
    lines: list[bool] = []
    prompts = 0
    for case in cases:
        judged = sorted(
            ((likelihood(each.signs, by), each) for each in case.weighed),
            key=lambda pair: -pair[0],
        )
        sure = [(said, each) for said, each in judged if said >= knobs.excerpt][: knobs.excerpts]
        rest = [pair for pair in judged if pair not in sure and pair[0] >= knobs.hint]
        excerpts += [(said, case.is_right(each)) for said, each in sure]
        lines += [case.has_lines(each) for _, each in sure if case.is_right(each)]
        hints += [(said, case.is_right(each)) for said, each in rest[: knobs.hints]]
        prompts += bool(sure or rest)
    every = excerpts + hints
    return {
        "commits": len(cases),
        "prompts_pct": 100 * prompts / len(cases),
        "hints": len(hints),
        "excerpts": len(excerpts),
        "right_pct": _share(right for _, right in every),
        "hints_right_pct": _share(right for _, right in hints),
        "excerpts_right_pct": _share(right for _, right in excerpts),
        "lines_pct": _share(lines),
        "said_pct": _share(said for said, _ in every),
        "p95_cpu_ms": 1000 * quantile([case.seconds for case in cases], 0.95),
    }


def _share(values: Iterator[float] | Sequence[float]) -> float:
    every = list(values)
    return 100 * sum(every) / len(every) if every else float("nan")


def fitted(cases: Sequence[Case]) -> HintCalibration:
    """Weights of a logistic regression, by Newton's method, with a small ridge; and the share of
    clear files that are right, with one right and one wrong added."""
    pairs = [
        (astuple(each.signs), case.is_right(each))
        for case in cases
        for each in case.weighed[:_WEIGHED]
    ]
    signs = np.array([pair[0] for pair in pairs])
    right = np.array([pair[1] for pair in pairs], float)
    ridge = np.diag([1e-3] + [_RIDGE] * (len(SIGNS) - 1))
    weights = np.zeros(len(SIGNS))
    for _ in range(50):
        said = 1 / (1 + np.exp(-signs @ weights))
        slope = signs.T @ (said - right) + ridge @ weights
        step = np.linalg.solve((signs.T * (said * (1 - said))) @ signs + ridge, slope)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    clear = [case.is_right(each) for case in cases for each in case.weighed if each.signs.is_clear]
    return HintCalibration(tuple(weights.tolist()), (sum(clear) + 1) / (len(clear) + 2))


def cases_of(repository: Path, most: int) -> Iterator[Case]:
    """The latest commits, the oldest first, each over the files as they were before it."""
    commits = list(_commits(repository))[:most][::-1]
    with tempfile.TemporaryDirectory(prefix="hotset-bench-") as made:
        folder = Path(made)
        tree = folder / "project"
        tree.mkdir()
        with (
            LocalIndex(folder / "index", WordVectors(), folds=False) as index,
            Manifest(folder, manifest_identity()) as manifest,
            Parsers(folder / "grammars") as parsers,
        ):
            for commit in commits:
                if not _check_out(repository, commit.parent, tree, folder / "git-index"):
                    continue
                index_project(tree, index, manifest, parsers=parsers)
                index.fold()
                began = time.process_time()
                found: Hits = index.search(query_for(commit.words, Prefetch(), 5.0))
                weighed = weigh(commit.words, found)
                took = time.process_time() - began
                changed = dict(_changed(repository, commit))
                yield Case(frozenset(commit.files), changed, weighed, took)


def _commits(repository: Path) -> Iterator[Commit]:
    form = "--format=%x1e%H%x1f%P%x1f%an%x1f%B%x1f"
    log = _git(
        repository, "log", "--no-merges", "--no-renames", form, "--name-only", f"-n{_LOGGED}"
    )
    for id, parents, author, message, names in (
        each.split("\x1f") for each in log.split("\x1e")[1:]
    ):
        files = tuple(name for name in names.split("\n") if name)
        words = " ".join(_NOISE.sub(" ", _TYPE.sub(r"\1", message)).split())[:_LONGEST_MESSAGE]
        is_fit = 1 <= len(files) <= _MOST_FILES and len(words.split()) >= _LEAST_WORDS
        if parents and is_fit and "bot" not in re.split(r"\W", author.lower()):
            yield Commit(id, parents.split()[0], words, files)


def _changed(repository: Path, commit: Commit) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    diff = _git(repository, "diff", "-U0", "--no-renames", "--no-color", commit.parent, commit.id)
    for part in diff.split("\n--- a/")[1:]:
        path = part.partition("\n")[0]
        spans = [(int(each[1]), int(each[2] or 1)) for each in _HUNK.finditer(part)]
        yield path, [(first, first + max(many, 1) - 1) for first, many in spans]


def _check_out(repository: Path, commit: str, to: Path, index: Path) -> bool:
    """False where the repository lacks some of that commit's files, as a snapshot without its
    largest ones does. The repository itself is not changed."""
    command = ["git", f"--git-dir={repository}", f"--work-tree={to}"]
    environ = {**os.environ, "GIT_INDEX_FILE": str(index)}
    made = subprocess.run(
        [*command, "read-tree", "--reset", "-u", commit],
        cwd=to,
        env=environ,
        capture_output=True,
        check=False,
    )
    return made.returncode == 0


def _git(repository: Path, *arguments: str) -> str:
    command = ["git", f"--git-dir={repository}", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, errors="replace"
    ).stdout


if __name__ == "__main__":
    main()
