"""What would be offered from an indexed project with the first prompts of recorded sessions, and
how much would have been used.

    HOTSET_BENCH_PROJECTS=django=/path/to/django/.git,astropy=/path/to/astropy/.git make
    bench-prefetch_project

Reads mini-gemini3-150 of HOTSET_BENCH_DATA (default: ../shared/data): agents that work on issues of
these projects. Which commit a session had before it is not recorded; taken is the first begin of a
quarter whose files say most of what the session's own commands showed, and sessions for which that
is too little are left out. The project is indexed as it was then, the issue is the prompt, and the
next ten commands tell what was used. Weights are the shipped ones, fitted to other sessions, and
once more some that were fitted to the other projects of this run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Self

from bench.calibration import bins
from bench.prefetch import (
    BORDERS,
    DATA,
    excerpt_used,
    figures_by_method,
    fitted,
    hint_used,
    is_excerpt,
    is_hint,
    judged,
)
from bench.prefetch_cases import Set, case_of_prompt, command_lines, policy_of
from bench.results import tell
from hotset.config import listed_prices
from hotset.index.embed.table import WordVectors
from hotset.index.local import LocalIndex
from hotset.nouns.knobs import Prefetch
from hotset.nouns.page import Kind, Role
from hotset.nouns.price import Prices
from hotset.replay.conversation import RecordedConversation, split_conversations
from hotset.replay.formats import read
from hotset.replay.measure import Figures, StudiedConversation, measure
from hotset.replay.report import Ruling
from hotset.sources.code.indexer import index_project, manifest_identity
from hotset.sources.code.manifest import Manifest
from hotset.sources.code.parsers import Parsers
from hotset.window.prefetch import WEIGHTS

SET = "mini-gemini3-150"
WINDOW = 64_000
_QUARTERS = [f"{year}-{month:02}-01" for year in range(2016, 2025) for month in (1, 4, 7, 10)]
_TELLING = 16  # characters of a line; shorter ones stand everywhere
_MOSTLY = 0.9  # of the lines that a session's commands showed must be in the project
_LEAST_LINES = 20
_ISSUE = re.compile(r"<pr_description>(.*?)</pr_description>", re.DOTALL)
_READ = re.compile(
    r"(?:^|&&|;|\|)\s*(?:cat|nl(?: -ba)?|head(?: -n ?\d+)?|sed -n "
    r"'[^']*')\s+([\w./-]+\.\w+)\s*(?=$|&&|;|\|)"
)


@dataclass(frozen=True, slots=True)
class Dated:
    """A conversation, and the commit at which its project was about as it had it."""

    commit: str
    """Its day, then its name."""
    conversation: RecordedConversation


def main() -> None:
    projects = dict(
        each.split("=", 1)
        for each in os.environ.get("HOTSET_BENCH_PROJECTS", "").split(",")
        if "=" in each
    )
    file = DATA / f"{SET}.jsonl.gz"
    if not projects or not file.exists():
        sys.exit(
            f"name git folders in HOTSET_BENCH_PROJECTS (django=/path/.git,...), and have {file}"
        )
    most = int(os.environ.get("HOTSET_BENCH_SESSIONS", "0")) or None
    sessions = [each for session in read([file]) for each in split_conversations(session)]
    sets: dict[str, Set] = {}
    for name, repository in projects.items():
        mine = [each for each in sessions if each.id.startswith(f"{name}__")][:most]
        began = time.perf_counter()
        sets[name] = studied(Path(repository), mine)
        print(
            (
                f"{name}: {len(sets[name].cases)} of {len(mine)} prompts, "
                f"{time.perf_counter() - began:.0f} s"
            ),
            file=sys.stderr,
        )
    report(sets)


def report(sets: Mapping[str, Set]) -> None:
    tell(
        "prefetch_project",
        {name: dict(figures_by_method(found, WEIGHTS)) for name, found in sets.items()},
    )
    weights = {"shipped weights": dict.fromkeys(sets, WEIGHTS)}
    if len(sets) > 1:
        others = {
            name: [case for other, found in sets.items() if other != name for case in found.cases]
            for name in sets
        }
        weights["weights of the other projects"] = {
            name: fitted(cases) for name, cases in others.items()
        }
    for title, by_set in weights.items():
        print(f"\ncalibration, {title}: said -> came (finds)")
        for what, which, came, many in (
            ("excerpts", is_excerpt, excerpt_used, Prefetch().excerpts),
            ("hints", is_hint, hint_used, Prefetch().hints),
        ):
            pairs = {
                name: list(judged(found, getattr(by_set[name], what[:-1]), which, came, many))
                for name, found in sets.items()
            }
            for name, mine in {**pairs, "all": list(chain(*pairs.values()))}.items():
                told = "  ".join(
                    f"{each.said:.2f} -> {each.came:.2f} ({each.many})"
                    for each in bins(mine, BORDERS)
                )
                print(f"{what:<10}{name:<16}{told}")


def studied(repository: Path, sessions: Sequence[RecordedConversation]) -> Set:
    found, figures, table = Set(), Figures(), WordVectors()
    ruling = Ruling(Prices(listed_prices()), "anthropic", WINDOW)
    folder = Path(tempfile.mkdtemp(prefix="hotset-prefetch-"))
    try:
        with ExitStack() as open_:
            index = open_.enter_context(LocalIndex(folder / "index", table, folds=False))
            manifest = open_.enter_context(Manifest(folder, manifest_identity()))
            parsers = open_.enter_context(Parsers(folder / "grammars"))
            at, there = "", False
            for each in sorted(_dated(repository, sessions), key=lambda one: one.commit):
                if each.commit != at:
                    at = each.commit
                    there = _check_out(repository, at.partition(" ")[2], folder / "project")
                    if there:
                        index_project(folder / "project", index, manifest, parsers=parsers)
                        index.fold()
                if not there:
                    continue
                conversation = each.conversation
                rules = ruling.rules(conversation.model)
                prompt = next(
                    at for at, line in enumerate(conversation.lines) if line.role is Role.USER
                )
                found.cases.append(
                    case_of_prompt(conversation, prompt, _issue(conversation), index, rules)
                )
                measure(
                    StudiedConversation.of(conversation),
                    policy_of(conversation, rules),
                    rules,
                    figures,
                    lambda: 0.0,
                )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found.cost, found.tokens = figures.cost + figures.fault_cost, figures.prompt
    return found


def _issue(conversation: RecordedConversation) -> str:
    """What somebody asked, without what the agent's makers put around it."""
    said = next(line for line in conversation.lines if line.role is Role.USER)
    text = "\n".join(piece.content.decode("utf-8", "replace") for piece in said.pieces)
    found = _ISSUE.search(text)
    return found[1] if found else text


def _dated(repository: Path, sessions: Sequence[RecordedConversation]) -> Iterator[Dated]:
    commits = {
        day: _git(repository, "rev-list", "-1", f"--before={day}", "HEAD").strip()
        for day in _QUARTERS
    }
    with _Files(repository) as files:
        for conversation in sessions:
            shown = dict(_shown(conversation))
            every = sum(map(len, shown.values()))
            if every < _LEAST_LINES:
                continue
            best, day = max(
                (
                    sum(
                        len(lines & files.lines(commits[day], path))
                        for path, lines in shown.items()
                    ),
                    -number,
                )
                for number, day in enumerate(_QUARTERS)
                if commits[day]
            )
            if best >= _MOSTLY * every:
                yield Dated(f"{_QUARTERS[-day]} {commits[_QUARTERS[-day]]}", conversation)


def _shown(conversation: RecordedConversation) -> Iterator[tuple[str, frozenset[str]]]:
    """What files said when a command first read them: later ones may be edited."""
    seen: set[str] = set()
    asked = {piece.call: piece.content.decode("utf-8", "replace") for line in conversation.lines for piece in line.pieces  # noqa: E501
             if piece.kind.family is Kind.TOOL_CALL}  # fmt: skip
    for line in conversation.lines:
        for piece in line.pieces if line.role is Role.TOOL else ():
            command = asked.get(piece.call, "")
            paths = {
                path.removeprefix("/testbed/").removeprefix("./") for path in _READ.findall(command)
            }
            if len(paths) == 1 and "<<" not in command and not paths & seen:
                seen |= paths
                lines = {
                    bare
                    for each in piece.content.decode("utf-8", "replace").split("\n")
                    if len(bare := each.strip()) >= _TELLING
                }
                yield (
                    paths.pop(),
                    frozenset(
                        re.sub(r"^\d+\s+", "", each) for each in lines if not each.startswith("<")
                    ),
                )
            elif command_lines(command.encode()) is None:
                seen |= {word for word in command.split() if "/" in word}


class _Files:
    """Files of any commit."""

    def __init__(self, repository: Path) -> None:
        command = ["git", f"--git-dir={repository}", "cat-file", "--batch"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._known: dict[tuple[str, str], frozenset[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def lines(self, commit: str, path: str) -> frozenset[str]:
        if (commit, path) not in self._known:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(f"{commit}:{path}\n".encode())
            self._process.stdin.flush()
            head = self._process.stdout.readline().split()
            content = (
                self._process.stdout.read(int(head[2]) + 1)
                if len(head) == 3 and head[1] == b"blob"
                else b""
            )
            said = (line.strip() for line in content.decode("utf-8", "replace").split("\n"))
            self._known[commit, path] = frozenset(line for line in said if len(line) >= _TELLING)
        return self._known[commit, path]


def _check_out(repository: Path, commit: str, to: Path) -> bool:
    """False where the repository lacks some of that commit's files, as a snapshot without its
    largest ones does."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    archive = subprocess.run(
        ["git", f"--git-dir={repository}", "archive", commit], capture_output=True, check=False
    )
    if archive.returncode:
        return False
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as tar:
        tar.extractall(to, filter="data")
    return True


def _git(repository: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", f"--git-dir={repository}", *arguments], capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    main()
