"""What a prompt is told unasked: how much of it is right, how much of what was needed is told, and
whether nothing is told where nothing fits. No model is called at any time.

    make bench-telling
    HOTSET_BENCH_FIT=1 make bench-telling     also fits the weights of `relevance.py` anew

Hand-made cases (`bench/telling_cases.json`): projects with their memories, and prompts with the
memories that change what an agent does next (`right`) or would do no harm (`ok`, not counted).
Weights are fitted to those of `fitted` and `looked at`, which were in view when signs were chosen;
`held out` was written by somebody who did not know the code, and was not looked at.

Recorded sessions (`$HOTSET_BENCH_DATA/trajectories`), a project's in their order: before each
session the store has the memories of those before it, made by the product's own rules. A memory was
right if the session acts on it after it was told, and no person had said so in that session: a
procedure's or a pitfall's command is run, a known error is met, a value of a fact is used, a file
of an episode is edited. Recall is over what was done so: commands, errors, values, files.
Weights and threshold were chosen with `packmind` in view; the others are held out.

    hotset        what the product tells
    nearest_two   the two memories that its search puts first, always
    everything    all memories, as tokens

precision   of what is told, in percent, that was right
recall      of what was needed, that was told
silence     of the prompts that needed nothing, that were told nothing at all
tokens      a prompt; `saved`: against loading everything
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.memory_sets import DATA, bring, indexed
from bench.results import tell
from hotset.config import load
from hotset.index.local import LocalIndex
from hotset.nouns.memory import (
    Detail,
    Episode,
    MemoryRecord,
    Pitfall,
    Procedure,
    Standing,
    Trust,
)
from hotset.nouns.page import Role
from hotset.replay import formats
from hotset.replay.conversation import RecordedMessage, RecordedSession
from hotset.replay.learning import LEARNABLE, KnownSessions, keep_learned, plan_learning
from hotset.sources.memory import project_memories
from hotset.sources.memory.encode.speakers import is_person
from hotset.sources.memory.error_match import LEAST_MATCH, matching_trouble, quoted_error
from hotset.sources.memory.kinds import REMINDED_KINDS
from hotset.sources.memory.project_memories import ProjectMemories
from hotset.testing.ram_store import RamStore
from hotset.text.stems import stem
from hotset.text.terms import terms

FIT = "HOTSET_BENCH_FIT"
CASES = Path(__file__).with_name("telling_cases.json")
_SETS = ("cc-packmind", "cc-cipherbox", "codex-agentv")
_PATIENT = 30.0  # seconds
_NOW = 1.76e9
_HOUR = 3600.0
_ROOM = 400  # tokens, as the product has by default
_HOW = 'read one: retrieve_context(id="...")'

Figures = dict[str, float]


def main() -> None:
    project_memories.SECONDS = _PATIENT
    sets: dict[str, dict[str, Figures]] = {}
    projects = json.loads(CASES.read_text())
    for name in ("fitted", "looked at", "held out"):
        some = [project for project in projects if project["split"] == name]
        sets[f"hand-made, {name}"] = hand_made(some)
    tell("telling", sets)
    for name in _SETS:
        sets[name] = recorded(name)
        tell("telling", sets)
    if os.environ.get(FIT):
        from bench.telling_fit import fit  # noqa: PLC0415 - only where it is asked for

        fit([project for project in projects if project["split"] != "held out"])


# What was told


@dataclass(slots=True)
class Score:
    """Counts over prompts."""

    right: int = 0
    wrong: int = 0
    needed: int = 0
    met: int = 0
    silent: int = 0
    kept_silent: int = 0
    prompts: int = 0
    tokens: list[int] = field(default_factory=list)
    everything: list[int] = field(default_factory=list)

    def figures(self) -> Figures:
        spent, whole = fmean(self.tokens or [0]), fmean(self.everything or [0])
        return {
            "precision": 100 * self.right / max(1, self.right + self.wrong),
            "recall": 100 * self.met / max(1, self.needed),
            "silence": 100 * self.kept_silent / max(1, self.silent),
            "told": float(self.right + self.wrong),
            "tokens": spent,
            "saved": 100 * (1 - spent / max(1.0, whole)),
            "prompts": float(self.prompts),
        }


@contextmanager
def project() -> Iterator[tuple[ProjectMemories, RamStore, LocalIndex, list[float]]]:
    """Memories of an empty project, its store and index, and its clock."""
    store, clock = RamStore(), [_NOW]
    with (
        tempfile.TemporaryDirectory(prefix="hotset-telling-") as folder,
        indexed(store, Path(folder) / "index") as index,
    ):
        config = load(project=folder, data=folder, environ={})
        yield (
            ProjectMemories(config, lambda: store, lambda: index, lambda: clock[0], logged=False),
            store,
            index,
            clock,
        )


# Hand-made cases


def hand_made(projects: Iterable[Mapping[str, Any]]) -> dict[str, Figures]:
    scores = {"hotset": Score(), "nearest_two": Score()}
    for given in projects:
        with project() as (memories, store, index, _):
            names = {keep(memories, each): each["id"] for each in given["memories"]}
            bring(store, index)
            everything = sum(memory.tokens for memory in store.memories())
            for task in given["tasks"]:
                reminder = memories.remind(task["prompt"], opens=True, max_tokens=_ROOM, how=_HOW)
                shown = [names[id] for id in reminder.shown] if reminder else []
                tokens = reminder.tokens if reminder else 0
                _judge(scores["hotset"], task, shown, tokens, everything)
                nearest = _nearest(memories, task["prompt"])
                told = [names[memory.id] for memory in nearest]
                spent = sum(memory.tokens for memory in nearest)
                _judge(scores["nearest_two"], task, told, spent, everything)
    return {name: score.figures() for name, score in scores.items()}


def _judge(
    score: Score, task: Mapping[str, Any], told: Sequence[str], tokens: int, everything: int
) -> None:
    right, harmless = set(task["right"]), set(task["ok"])
    score.prompts += 1
    score.right += len(right & set(told))
    score.wrong += len(set(told) - right - harmless)
    score.needed += len(right)
    score.met += len(right & set(told))
    if not right:
        score.silent += 1
        score.kept_silent += not set(told) - harmless and (bool(told) or not tokens)
    score.tokens.append(tokens)
    score.everything.append(everything)


def keep(memories: ProjectMemories, given: Mapping[str, Any]) -> str:
    """Store a memory of a case as a person's; returns its id."""
    text, detail = worded(given)
    made = memories.remember(
        text, kind=given["kind"], by="person", trust=Trust.PERSON, detail=detail
    )
    return made.id


def worded(given: Mapping[str, Any]) -> tuple[str, Detail]:
    """The text and the detail of a memory, as the product words them."""
    match given["kind"]:
        case "procedure":
            steps = "; ".join(f"{at}. {step}" for at, step in enumerate(given["steps"], 1))
            when = given["when"][:1].upper() + given["when"][1:]
            return f"{when}: {steps}.", Procedure(given["when"], tuple(given["steps"]))
        case "pitfall":
            what, why, instead = given["what"], given["why"], given["instead"]
            text = f"{what}. It says: {why}. What resolved it: {instead}."
            return text, Pitfall(what, why, instead)
        case "episode":
            text = f"{given['goal']}. Done: {'; '.join(given['did'])}."
            return text, Episode(given["goal"], artifacts=tuple(given["files"]))
    return given["text"], None


def _nearest(memories: ProjectMemories, prompt: str) -> list[MemoryRecord]:
    found = memories.recall(prompt, kinds=sorted(REMINDED_KINDS), most=10).recall.items
    return [item.memory for item in found if item.memory is not None][:2]


# Recorded sessions


def recorded(name: str) -> dict[str, Figures]:
    path = DATA / "trajectories" / f"{name}.jsonl.gz"
    sessions = sorted(formats.read([path]), key=_begin)
    scores = {"hotset": Score(), "nearest_two": Score()}
    with project() as (memories, store, index, clock):
        for session in sessions:
            _judge_session(scores, memories, store, session, clock)
            plan = plan_learning(session, path, KnownSessions(store), None)
            if plan.state in LEARNABLE:
                keep_learned(store, plan)
                clock[0] = max(clock[0], *(each.time or 0.0 for each in session.messages)) + _HOUR
                memories.encode()
                bring(store, index)
    return {name: score.figures() for name, score in scores.items()}


def _begin(session: RecordedSession) -> float:
    return next((each.time for each in session.messages if each.time), 0.0)


def _judge_session(
    scores: Mapping[str, Score],
    memories: ProjectMemories,
    store: RamStore,
    session: RecordedSession,
    clock: list[float],
) -> None:
    known = [
        memory
        for memory in store.memories(REMINDED_KINDS, frozenset({Standing.ACTIVE}))
        if memory.trust is not Trust.OUTSIDE
    ]
    if not known:
        return
    by_id = {memory.id: memory for memory in known}
    everything = sum(memory.tokens for memory in store.memories())
    told: dict[str, dict[str, frozenset[str]]] = {name: {} for name in scores}
    needed: set[str] = set()
    opens = True
    for at, message in _prompts(session):
        clock[0] = message.time or clock[0]
        done = Deeds(session.messages, at)
        acted = {id: done.evidence(memory) for id, memory in by_id.items()}
        needed |= {each for evidence in acted.values() for each in evidence}
        seen = frozenset(told["hotset"])
        reminder = memories.remind(
            message.text[:2000], opens=opens, max_tokens=_ROOM, how=_HOW, known=seen
        )
        shown = {
            "hotset": [id for id in reminder.shown if id in by_id] if reminder else [],
            "nearest_two": [
                memory.id
                for memory in _nearest(memories, message.text[:2000])
                if memory.id in by_id and memory.id not in told["nearest_two"]
            ],
        }
        for name, score in scores.items():
            tokens = sum(by_id[id].tokens for id in shown[name])
            if name == "hotset":
                tokens = reminder.tokens if reminder else 0
            score.prompts += 1
            score.tokens.append(tokens)
            score.everything.append(everything)
            for id in shown[name]:
                score.right += bool(acted[id])
                score.wrong += not acted[id]
                told[name][id] = acted[id]
            if not any(evidence for id, evidence in acted.items() if id not in told[name]):
                score.silent += 1
                score.kept_silent += not tokens
        opens = False
    for name, score in scores.items():
        score.needed += len(needed)
        score.met += len(needed & {each for evidence in told[name].values() for each in evidence})


def _prompts(session: RecordedSession) -> Iterator[tuple[int, RecordedMessage]]:
    """What a person typed, with its place."""
    for at, message in enumerate(session.messages):
        if (
            message.role is Role.USER
            and not message.by_client
            and not message.compaction
            and message.text.strip()
            and is_person(message.text)
        ):
            yield at, message


_QUOTED = re.compile(r"`([^`\n]{3,120})`")
_VALUE = re.compile(
    r"`([^`\n]{3,120})`|[\"\u201c]([^\"\u201d\n]{3,60})[\"\u201d]|"
    r"((?:[\w.@-]+/)+[\w.-]+|\b\w+_\w+\b|\b[a-z]+[A-Z]\w+|--[\w-]+|\b\d+(?:\.\d+)+\b|"
    r"\b[\w-]+\.(?:py|tsx?|jsx?|go|rs|md|json|ya?ml|toml|css|sql|svg|html)\b)"
)
_BLANK = re.compile(r"<\w+>")
_MOST_OF_WORDS = 0.6
_FEWEST_WORDS = 3
_PARTS_OF = 0.5  # of a procedure's commands


class Deeds:
    """What a session did behind one of its prompts, and what its people had said until then."""

    def __init__(self, messages: Sequence[RecordedMessage], at: int) -> None:
        later = messages[at + 1 :]
        self._said = " ".join(
            each.text
            for each in messages[: at + 1]
            if each.role is Role.USER and not each.by_client
        )
        self._calls = "\n".join(call.arguments for each in later for call in each.calls)
        self._edits = "\n".join(
            call.arguments
            for each in later
            for call in each.calls
            if re.search(r"(?i)edit|write|patch", call.name) or "*** Update File" in call.arguments
        )
        self._replies = [
            f"{each.text} {' '.join(call.arguments for call in each.calls)}"
            for each in later
            if each.role is Role.ASSISTANT
        ]
        self._errors = "\n".join(
            error
            for each in later
            if each.role is Role.TOOL and (error := quoted_error(each.text[-4000:]))
        )

    def evidence(self, memory: MemoryRecord) -> frozenset[str]:
        """The commands, errors, values or files of a memory that the session used; empty if it did
        not act on it, or if a person had said as much."""
        match memory.detail:
            case Procedure(steps=steps):
                commands = [each for step in steps for each in _QUOTED.findall(step)]
                run = frozenset(each for each in commands if self._is_run(each))
                return run if commands and len(run) >= _PARTS_OF * len(commands) else frozenset()
            case Pitfall(instead=instead):
                met = matching_trouble(memory, self._errors)[0] >= LEAST_MATCH
                ways = frozenset(each for each in _QUOTED.findall(instead) if self._is_run(each))
                return ways | (frozenset({f"error {memory.title}"}) if met else frozenset())
            case Episode(artifacts=files):
                names = (Path(file).name for file in files)
                return frozenset(
                    name for name in names if name in self._edits and name not in self._said
                )
        return self._values_used(memory.text)

    def _is_run(self, command: str) -> bool:
        begin = _BLANK.split(command)[0].strip()
        return len(begin) >= _FEWEST_WORDS and begin in self._calls and begin not in self._said

    def _values_used(self, text: str) -> frozenset[str]:
        values = {next(filter(None, found)) for found in _VALUE.findall(text)}
        used = frozenset(
            value
            for value in values
            if value not in self._said and any(value in reply for reply in self._replies)
        )
        words = frozenset(stem(term.text) for term in terms(text))
        if values or len(words) < _FEWEST_WORDS:
            return used
        said = frozenset(stem(term.text) for term in terms(self._said[-4000:]))
        for reply in self._replies:
            low = reply.lower()
            if sum(word in low for word in words) >= _MOST_OF_WORDS * len(words) and words - said:
                return frozenset({text})
        return frozenset()


if __name__ == "__main__":
    main()
