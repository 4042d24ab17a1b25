"""Which tools are offered with a prompt before anybody searched: part of `bench/tools.py`.

Random libraries of 20, 100 and 400 tools out of each public set. Prompts whose tools are there;
prompts of the other sets, whose tools are not there; and prompts of recorded coding sessions, which
need none. Each goes as the second prompt of a session through the planner and the tools source, so
that what is offered stands as text behind it.

    right           prompts whose tool is there that were offered one of theirs, in percent
    other, coding   prompts of other sets, and of coding sessions, that were offered anything
    ghosts          tools offered with a prompt whose tool is there, and of these
    precise         the share that was right
    tokens          of an offer, where there was one; most_tokens: the largest
    cost            tokens of offers, in percent of all that the sessions' requests read

`fit` makes the weights of the signs (`tool_search.WEIGHTS`) out of three sets and chooses the
threshold on them; `held out` is the fourth set with these. `hotset` is what is installed, whose
weights are fitted to all of them.
"""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hotset.config import load
from hotset.dialects import DIALECTS
from hotset.nouns.candidate import OfferKind, OfferSlot
from hotset.nouns.deposit import NoteWritten, PlanMade, RequestReceived
from hotset.nouns.message import DialectName
from hotset.nouns.tool import Ghost, Tool
from hotset.nouns.turn import TurnId
from hotset.runtime.planner import PlannedTurn, Planner
from hotset.sources.tools import ToolSource
from hotset.sources.tools.tool_search import (
    RankedTool,
    ToolSearch,
    ToolSigns,
    likelihoods,
)
from hotset.testing import RamStore
from hotset.text.client_notes import asked_in

SIZES = ((20, 12, 12), (100, 5, 30), (400, 2, 75))
"""Tools of a library, how many such libraries of a set, and prompts of each kind asked there."""
_DIALECT = DIALECTS[DialectName.ANTHROPIC]
_MOST = 5
_SEED = 11
_PATIENT = 30.0
_LONGEST = 2000
_SESSIONS = ("cc-packmind", "cc-cipherbox", "codex-agentv", "pi-mono")
_FALSE = 0.08
"""Share of prompts without a tool that may be offered one, on the sets a threshold is chosen on."""
_FURTHER = 0.6
"""Of the threshold, that further ghosts need. On held-out sets, from 1 down to 0.6 one in four of
the ghosts that come with it is right; from 0.6 down to 0.3, one in nine."""
_STEPS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
_RIDGE = 1.0
_SYSTEM = "You are a helpful agent. " * 1500
"""About as long as the system prompts and tools of coding agents."""

_OWN = [{"name": "read_file", "description": "Read a file.", "input_schema": {"type": "object"}}]

Asked = tuple[str, frozenset[str]]
Library = Callable[[Sequence[Tool]], AbstractContextManager[ToolSearch]]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt for one library, with the tools that the search found."""

    kind: str
    """`there`, `other` or `coding`."""
    text: str
    gold: frozenset[str]
    ranked: Sequence[RankedTool]
    signs: Sequence[ToolSigns]


@dataclass(frozen=True, slots=True)
class SomeLibrary:
    tools: Mapping[str, Tool]
    prompts: Sequence[Prompt]


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was made out of some sets."""

    weights: Sequence[float]
    ghost: float
    further: float


def coding_prompts(folder: Path) -> list[str]:
    """What people wrote in recorded coding sessions."""
    found: dict[str, None] = {}
    for name in _SESSIONS:
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for session in map(json.loads, lines):
                for message in session["msgs"]:
                    if message["r"] == "user" and message.get("x") != "compact":
                        text = asked_in(message.get("t") or "").strip()[:_LONGEST]
                        if len(text.split()) > 2:
                            found[text] = None
    return list(found)


def libraries(
    tools: Sequence[Tool],
    questions: Sequence[Asked],
    others: Sequence[str],
    coding: Sequence[str],
    library: Library,
) -> Iterator[SomeLibrary]:
    """Random libraries of one set, each with what a search finds there for its prompts."""
    rng = random.Random(_SEED)
    by_name = {tool.name: tool for tool in tools}
    known = [each for each in questions if each[1] <= by_name.keys()]
    for size, many, prompts in SIZES:
        for _ in range(many):
            names: set[str] = set()
            for _, gold in rng.sample(known, min(prompts, len(known))):
                names |= gold if len(names | gold) <= size else set()
            rest = sorted(by_name.keys() - names)
            names |= set(rng.sample(rest, min(size - len(names), len(rest))))
            there = [each for each in known if each[1] <= names]
            asked = [
                *(("there", *each) for each in rng.sample(there, min(prompts, len(there)))),
                *(("other", each, frozenset[str]()) for each in rng.sample(others, prompts)),
                *(("coding", each, frozenset[str]()) for each in rng.sample(coding, prompts)),
            ]
            chosen = {name: by_name[name] for name in sorted(names)}
            with library(list(chosen.values())) as search:
                yield SomeLibrary(
                    chosen,
                    [
                        Prompt(kind, text, gold, *search.rank(text, 2 * _MOST, deadline=_PATIENT))
                        for kind, text, gold in asked
                    ],
                )


def fit(given: Iterable[SomeLibrary]) -> list[float]:
    """Weights of the signs: logistic regression over the first candidates of every prompt."""
    prompts = [prompt for each in given for prompt in each.prompts]
    rows = [
        (astuple(signs)[:-1], ranked.name in prompt.gold)
        for prompt in prompts
        for ranked, signs in zip(prompt.ranked[:_MOST], prompt.signs, strict=False)
    ]
    values = np.array([row for row, _ in rows], float)
    right = np.array([each for _, each in rows], float)
    weights = np.zeros(values.shape[1])
    ridge = _RIDGE * np.eye(len(weights))
    for _ in range(30):  # Newton's method
        likely = 1 / (1 + np.exp(-values @ weights))
        slope = values.T @ (right - likely) - ridge @ weights
        curve = (values * (likely * (1 - likely))[:, None]).T @ values + ridge
        weights += np.linalg.solve(curve, slope)
    return [round(float(each), 2) for each in weights]


def choose(given: Sequence[SomeLibrary]) -> Chosen:
    """Weights, and the smallest threshold at which few enough prompts are offered what they do not
    need."""
    weights = fit(given)
    scores = [
        (likelihoods(prompt.signs[:1], [0.0], weights) or [0.0])[0]
        for each in given
        for prompt in each.prompts
        if prompt.kind != "there"
    ]
    few = [
        step for step in _STEPS if sum(score >= step for score in scores) <= _FALSE * len(scores)
    ]
    return Chosen(weights, few[0] if few else _STEPS[-1], _FURTHER)


def offered(given: Sequence[SomeLibrary], chosen: Chosen | None = None) -> dict[str, float]:
    """What the prompts of these libraries were offered, by the planner."""
    counts = {"there": 0, "other": 0, "coding": 0}
    hits = {"there": 0, "other": 0, "coding": 0}
    sizes: list[int] = []
    read = ghosts = right = 0
    for each in given:
        with _Line(each, chosen) as line:
            for prompt in each.prompts:
                names, tokens, whole = line.ask(prompt)
                counts[prompt.kind] += 1
                read += whole
                sizes += [tokens] if names else []
                if prompt.kind == "there":
                    hits["there"] += bool(prompt.gold.intersection(names))
                    ghosts += len(names)
                    right += len(prompt.gold.intersection(names))
                else:
                    hits[prompt.kind] += bool(names)
                assert len(names) <= _MOST
    return {
        "right": _percent(hits["there"], counts["there"]),
        "other": _percent(hits["other"], counts["other"]),
        "coding": _percent(hits["coding"], counts["coding"]),
        "ghosts": round(ghosts / counts["there"], 2),
        "precise": _percent(right, ghosts),
        "tokens": round(sum(sizes) / max(1, len(sizes)), 1),
        "most_tokens": float(max(sizes, default=0)),
        "cost": round(100 * sum(sizes) / max(1, read), 2),
    }


class _Line:
    """A planner with one library, whose searches were made before."""

    def __init__(self, given: SomeLibrary, chosen: Chosen | None) -> None:
        self._given = given
        self._chosen = chosen
        self._found: Sequence[Ghost] = ()
        self._folder = tempfile.TemporaryDirectory(prefix="hotset-bench-")
        config = load(project=self._folder.name, data=self._folder.name, environ={})
        if chosen is not None:
            knobs = {"toolbox.ghost": chosen.ghost, "toolbox.ghost_fit": chosen.further}
            config = replace(config, knobs=config.knobs_for("").turned(knobs))
        self._source = ToolSource(self, _MOST, _PATIENT)  # type: ignore[arg-type]
        self._planner = Planner(config, sources=[self._source])

    empty, ready = False, True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def knows(self, name: str) -> bool:
        return name in self._given.tools

    def find(self, query: str, limit: int = 5, **_: object) -> Sequence[Ghost]:
        del query
        return self._found[:limit]

    def ask(self, prompt: Prompt) -> tuple[list[str], int, int]:
        """The tools offered behind the prompt, their tokens, and those of the whole request."""
        weights = self._chosen.weights if self._chosen is not None else ()
        first = prompt.ranked[: len(prompt.signs)]
        scores = likelihoods(prompt.signs, [each.vote for each in first], weights)
        messages = [{"role": "user", "content": "Hello."}]
        store = RamStore()
        self._found = ()
        opened = self._plan(messages, store, 1.0)
        id = TurnId("t1")
        notes = [each for each in self._planner.went_out(opened) if isinstance(each, NoteWritten)]
        for deposit in (
            RequestReceived(opened.request, 1.0, "agent", id=id),
            *(replace(note, turn=id) for note in notes),
            PlanMade(id, opened.sent, opened.plan.fresh),
        ):
            store.keep(deposit).result()
        self._found = [
            Ghost(self._given.tools[each.name], score)
            for each, score in zip(first, scores, strict=True)
        ]
        messages += [
            {"role": "assistant", "content": "What shall I do?"},
            {"role": "user", "content": prompt.text},
        ]
        planned = self._plan(messages, store, 2.0)
        taken = [each for each in planned.plan.taken if each.kind is OfferKind.GHOST]
        assert all(each.slot is OfferSlot.BEHIND_PROMPT for each in taken)
        size = planned.scene.fixed + planned.plan.tokens
        return [each.key for each in taken], sum(each.tokens for each in taken), size

    def _plan(
        self, messages: Sequence[Mapping[str, str]], store: RamStore, now: float
    ) -> PlannedTurn:
        fields = {
            "model": "claude-sonnet-5",
            "max_tokens": 999,
            "messages": messages,
            "tools": _OWN,
        }
        request = _DIALECT.parse(json.dumps({**fields, "system": _SYSTEM}).encode())
        return self._planner.prepare(request, _DIALECT, store, now, "anthropic", off=False)


def _percent(part: float, whole: float) -> float:
    return round(100 * part / max(1, whole), 1)
