"""Recall over kinds of conversations: each kind on its own, and their mean.

Every question has evidence that is known without anybody's judgement: labelled in the public sets,
taken from what the sessions then did in the recorded ones.
"""

from __future__ import annotations

import json
import os
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import platformdirs

from bench.memory_sets import (
    DATA,
    DAY,
    Chat,
    Floats,
    Kept,
    Question,
    Ranked,
    SessionPages,
    collapsed,
    indexed,
    judged,
    longmemeval,
    ranked,
    recorded,
    replayed,
    timed,
)
from bench.results import quantile
from hotset.config import load
from hotset.index.port import Index
from hotset.nouns.page import Kind, PageId, Role, SessionId
from hotset.sources.memory import project_memories as memory_facade
from hotset.sources.memory.recall import RecalledItem, RecallQuery, recall
from hotset.sources.memory.recall_signals import DEFAULT, SIGNALS, SignalWeights

LOCOMO = "HOTSET_BENCH_LOCOMO"
PROJECTS = ("cc-packmind", "cc-cipherbox", "codex-agentv")
PATIENT = 30.0  # seconds: where it is about what is found
MOST = 60  # items of a question that other weights may put in another order
_HAYSTACK = 50  # sessions
_SEED = 20
_STRETCH = 8  # words in a row that are said again
_REPEATED = 60  # questions of repeated lines in a project, at most
_OFTEN = 3  # sessions with the same words: with more it is a form, not something that was said
_LONGEST_LINE = 400  # characters
_FEWEST_WORDS = 3  # of a commit's subject
_FILES = 25  # files of a project that are asked for, first and last
_ORDERED = 25  # commits of a project that are asked for, before and after
_NAMES = ("recall5", "recall10", "recall20", "ndcg10")

Figures = dict[str, float]
Sets = dict[str, dict[str, Figures]]


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question with what was found: labels, best first, and the signals of each."""

    gold: frozenset[str]
    labels: tuple[str, ...]
    signals: tuple[Mapping[str, float], ...]
    milliseconds: float

    def figures(self) -> list[float]:
        return judged(collapsed(self.labels), self.gold)

    def as_ranked(self, group: str) -> Ranked:
        return ranked(self.labels, self.signals, self.gold, group)


Label = Callable[[RecalledItem], str]
"""What an item counts as: a text, or a session."""


def ask(
    kept: Kept,
    index: Index,
    asking: RecallQuery,
    gold: Iterable[str],
    label: Label,
    *,
    weights: SignalWeights = DEFAULT,
) -> AskedQuestion:
    found: list[RecalledItem] = []
    patient = replace(asking, most=MOST, deadline=PATIENT)
    took, _ = timed(lambda: found.extend(recall(patient, index, kept.store, weights).items))
    return AskedQuestion(
        frozenset(gold), tuple(map(label, found)), tuple(item.signals for item in found), took
    )


def by_text(texts: Mapping[PageId, str]) -> Label:
    return lambda item: texts[item.page] if item.page is not None else item.text


def figures(asked: Sequence[AskedQuestion]) -> Figures:
    columns = zip(*(each.figures() for each in asked), strict=True)
    took = [each.milliseconds for each in asked]
    return {
        **{name: 100 * fmean(column) for name, column in zip(_NAMES, columns, strict=True)},
        "p50_ms": quantile(took, 0.5),
        "p95_ms": quantile(took, 0.95),
        "questions": float(len(asked)),
    }


@contextmanager
def kept_chats(chats: Iterable[Chat]) -> Iterator[tuple[Kept, Index]]:
    """Conversations in a store of their own, remembered and indexed."""
    with tempfile.TemporaryDirectory(prefix="hotset-memory-") as folder:
        kept = Kept(SessionPages())
        kept.keep(chats)
        kept.remember()
        with indexed(kept.store, Path(folder) / "index") as index:
            yield kept, index


# Chats with an assistant


def assistant_chats(weights: SignalWeights) -> list[AskedQuestion]:
    """LongMemEval: the turn with the answer, all sessions in one pool. Recency counts nothing: each
    question was asked near its own sessions, which is a matter of the pool."""
    chats, questions = longmemeval()
    pooled = replace(weights, recent=0.0)
    with kept_chats(chats) as (kept, index):
        texts = kept.texts()
        return [
            ask(
                kept,
                index,
                RecallQuery(question.text, question.now, memories=False),
                question.gold,
                by_text(texts),
                weights=pooled,
            )
            for question in questions
        ]


def haystacks(weights: SignalWeights) -> Sets:
    """LongMemEval by session, in haystacks of 50 sessions that hold all those of each question
    asked. `any5`: a session with an answer is among the first five."""
    chats, questions = longmemeval()
    waiting = dict(enumerate(questions))
    asked: list[AskedQuestion] = []
    for names in _haystacks(questions):
        stack = [chat for chat in chats if chat.id in names]
        with kept_chats(stack) as (kept, index):
            label = _session_label({session: chat for chat, session in kept.sessions.items()})
            for at in [at for at, each in waiting.items() if names.issuperset(each.chats)]:
                question = waiting.pop(at)
                gold = [
                    chat.id for chat in stack if any(text in question.gold for _, text in chat.said)
                ]
                asking = RecallQuery(question.text, question.now)
                asked.append(ask(kept, index, asking, gold, label, weights=weights))
    first = [(collapsed(each.labels), each.gold) for each in asked]
    return {
        f"longmemeval, sessions among {_HAYSTACK}": {
            "hotset": {
                "any1": 100 * fmean(not gold.isdisjoint(found[:1]) for found, gold in first),
                "any5": 100 * fmean(not gold.isdisjoint(found[:5]) for found, gold in first),
                "all5": 100 * fmean(gold.issubset(found[:5]) for found, gold in first),
                "p50_ms": quantile([each.milliseconds for each in asked], 0.5),
                "questions": float(len(asked)),
            }
        }
    }


def _haystacks(questions: Sequence[Question]) -> list[frozenset[str]]:
    """Sessions of questions drawn at random, until 50 are together; each session is in one."""
    groups: dict[str, frozenset[str]] = {}
    for question in questions:
        merged = frozenset(question.chats).union(*(groups.get(chat, ()) for chat in question.chats))
        groups |= dict.fromkeys(merged, merged)
    every = sorted(map(sorted, set(groups.values())))
    random.Random(_SEED).shuffle(every)
    stacks: list[set[str]] = [set()]
    for group in every:
        if len(stacks[-1]) + len(group) > _HAYSTACK:
            stacks.append(set())
        stacks[-1].update(group)
    rest = sorted(groups)
    random.Random(_SEED).shuffle(rest)
    for stack in stacks:  # filled up with sessions of other haystacks
        stack.update([chat for chat in rest if chat not in stack][: _HAYSTACK - len(stack)])
    return [frozenset(stack) for stack in stacks]


def _session_label(ids: Mapping[SessionId, str]) -> Label:
    return lambda item: ids.get(item.session, "") if item.session is not None else ""


# Decisions in chats about code


Decision = tuple[str, list[Chat]]
"""A bug report, and the chats about it, the one that holds last."""


def decisions() -> tuple[list[Decision], list[Decision], list[Chat]]:
    """Plain ones, amended ones, and chats that decide something else."""
    plain: list[Decision] = []
    amended: list[Decision] = []
    folder = DATA / "memory" / "sde-bench"
    for number, path in enumerate(sorted(folder.glob("boltons-*.json"))):
        task = json.loads(path.read_text())
        if not task.get("conversations"):
            continue
        told = (
            task["conversations"]
            if isinstance(task["conversations"][0], list)
            else [task["conversations"]]
        )
        chats = [
            _chat(f"{path.stem}-{at}", DAY * (number + 30 * at), turns)
            for at, turns in enumerate(told)
        ]
        (amended if len(chats) > 1 else plain).append((task["bug_report"], chats))
    rows = json.loads((folder / "_decoys.json").read_text())
    return (
        plain,
        amended,
        [_chat(f"decoy-{at}", DAY * at / 2, row["turns"]) for at, row in enumerate(rows)],
    )


DECIDED_BY = 1.7e9 + 120 * DAY
"""When bug reports come in."""


def _chat(id: str, time: float, turns: Sequence[Mapping[str, str]]) -> Chat:
    return Chat(id, 1.7e9 + time, tuple((Role(turn["role"]), turn["text"]) for turn in turns))


def code_chats(weights: SignalWeights) -> list[AskedQuestion]:
    """sde-bench: the chat that decided it, amended or not, among all others."""
    plain, amended, decoys = decisions()
    asked: list[AskedQuestion] = []
    for tasks in (plain, amended):
        with kept_chats([chat for _, each in tasks for chat in each] + decoys) as (kept, index):
            label = _session_label({session: chat for chat, session in kept.sessions.items()})
            asked += [
                ask(
                    kept,
                    index,
                    RecallQuery(report, DECIDED_BY),
                    [chats[-1].id],
                    label,
                    weights=weights,
                )
                for report, chats in tasks
            ]
    return asked


# Recorded coding sessions


@dataclass(frozen=True, slots=True)
class CodingProject:
    """Recorded sessions of one project, in their order, in a store of their own."""

    kept: Kept
    index: Index
    sessions: tuple[dict[str, Any], ...]
    starts: tuple[float, ...]

    @property
    def now(self) -> float:
        return self.starts[-1] + DAY

    def id_of(self, at: int) -> SessionId:
        return self.kept.sessions[self.sessions[at]["id"]]


@contextmanager
def coding_project(name: str) -> Iterator[CodingProject]:
    sessions = sorted(recorded(name), key=_start)
    starts = tuple(map(_start, sessions))
    with tempfile.TemporaryDirectory(prefix="hotset-memory-") as folder:
        kept = Kept(SessionPages())
        for session, start in zip(sessions, starts, strict=True):
            replayed(kept.store, session, start)
        kept.sessions = {session.key: session.id for session in kept.store.sessions()}
        kept.remember()
        with indexed(kept.store, Path(folder) / "index") as index:
            yield CodingProject(kept, index, tuple(sessions), starts)


def _start(session: Mapping[str, Any]) -> float:
    """When it began; sessions of Codex have that in their ids."""
    times = [said["ts"] for said in session["msgs"] if said.get("ts")]
    return float(min(times)) if times else int(session["id"].replace("-", "")[:12], 16) / 1000


def coding_sessions(
    project: CodingProject, weights: SignalWeights
) -> dict[str, list[AskedQuestion]]:
    """By the words of a commit the session that made it; by a line of a later prompt where it was
    said before; by a question written by hand the words of its answer."""
    kept, index = project.kept, project.index
    commits = [
        ask(
            kept,
            index,
            RecallQuery(subject, project.now),
            map(str, ids),
            lambda item: str(item.session),
            weights=weights,
        )
        for subject, ids in _commits(project).items()
    ]
    texts = kept.texts()
    label = by_text(texts)
    repeats = [
        ask(
            kept,
            index,
            RecallQuery(line, project.now, memories=False, session=session),
            gold,
            label,
            weights=weights,
        )
        for line, session, gold in _repeats(project)
    ]
    written = [
        ask(
            kept,
            index,
            RecallQuery(question, project.now, memories=False),
            gold,
            label,
            weights=weights,
        )
        for question, gold in _written(project, list(texts.values()))
    ]
    return {"commits": commits, "repeats": repeats, "written": written}


_COMMIT = re.compile(
    r"git commit[^\n]*?-m\s+(?:\"\$\(cat <<'?EOF'?\n([^\n]+)|\"([^\"\n$]+)|'([^'\n]+))"
)
_CONVENTIONAL = re.compile(r"^\w+(?:\([^)]*\))?!?:\s*")


def _commits(project: CodingProject) -> dict[str, set[SessionId]]:
    """Subjects of commits, without `fix(api):`, and the sessions that made them."""
    found: dict[str, set[SessionId]] = defaultdict(set)
    for at, session in enumerate(project.sessions):
        for command in _commands(session):
            for hit in _COMMIT.findall(command):
                subject = _CONVENTIONAL.sub("", next(filter(None, hit)).strip())
                if len(subject.split()) >= _FEWEST_WORDS:
                    found[subject].add(project.id_of(at))
    return {subject: ids for subject, ids in found.items() if len(ids) <= _OFTEN}


def _calls(session: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for said in session["msgs"]:
        for call in said.get("calls") or ():
            arguments = call["a"]
            if isinstance(arguments, str):
                with suppress(ValueError):
                    arguments = json.loads(arguments)
            yield call["n"], arguments


def _commands(session: Mapping[str, Any]) -> Iterator[str]:
    for _, arguments in _calls(session):
        given = arguments if isinstance(arguments, dict) else {}
        command = given.get("command") or given.get("cmd") or ""
        yield " ".join(map(str, command)) if isinstance(command, list) else str(command)


_WORD = re.compile(r"\w+")


def _repeats(project: CodingProject) -> list[tuple[str, SessionId, frozenset[str]]]:
    """Lines of prompts with eight words in a row that few other sessions have, the session that
    says them, and the texts of others that say them too, one of which was before."""
    numbers = {project.id_of(at): at for at in range(len(project.sessions))}
    texts = project.kept.texts()
    said: list[tuple[int, bool, str]] = [
        (numbers[page.session], page.kind is Kind.PROMPT, texts[page.id])
        for page in map(project.kept.store.page, texts)
    ]
    known: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for place, (_, _, text) in enumerate(said):
        for stretch in _stretches(text):
            known[stretch].add(place)
    made: dict[str, tuple[str, SessionId, frozenset[str]]] = {}
    for at, is_prompt, text in said:
        if not is_prompt or text.lstrip().startswith(("<", "# AGENTS.md")):
            continue
        for line in map(str.strip, text.splitlines()):
            if len(line) > _LONGEST_LINE or line in made:
                continue
            places = set().union(*(known[each] for each in _stretches(line)))
            others = {place for place in places if said[place][0] != at}
            sessions = {said[place][0] for place in others}
            if sessions and min(sessions) < at and len(sessions) <= _OFTEN:
                gold = frozenset(said[place][2] for place in others)
                made[line] = (line, project.id_of(at), gold)
    every = sorted(made.values())
    random.Random(_SEED).shuffle(every)
    return every[:_REPEATED]


def _stretches(text: str) -> set[tuple[str, ...]]:
    words = [word.lower() for word in _WORD.findall(text)]
    return {tuple(words[at : at + _STRETCH]) for at in range(len(words) - _STRETCH + 1)}


def _written(project: CodingProject, texts: Sequence[str]) -> list[tuple[str, frozenset[str]]]:
    """The questions of `bench/history.py` whose answer was said, and not only printed by a tool."""
    known = json.loads((Path(__file__).parent / "history_questions.json").read_text())
    plain = {text: " ".join(text.split()) for text in texts}
    made = []
    for session in project.sessions:
        for each in known.get(session["id"], ()):
            lines = [" ".join(line.split()) for line in each["lines"]]
            gold = {text for text in texts if any(line in plain[text] for line in lines)}
            if gold:
                made.append((each["question"], frozenset(gold)))
    return made


# The order of events


def event_order(project: CodingProject, folder: Path) -> dict[str, list[int]]:
    """For each kind of question the place of the right session among those that are told, from 0;
    -1 if it is not told."""
    config = load(project=str(folder), data=str(folder), environ={})
    memory_facade.SECONDS = PATIENT
    source = memory_facade.ProjectMemories(
        config,
        lambda: project.kept.store,
        lambda: project.index,
        lambda: project.now,
        logged=False,
    )
    places: dict[str, list[int]] = defaultdict(list)
    for kind, question, gold, besides in _ordered(project):
        items = source.recall(question).recall.items
        told = collapsed(str(item.session) for item in items if item.session not in besides)
        places[kind].append(told.index(gold) if gold in told else -1)
    return places


def _ordered(project: CodingProject) -> Iterator[tuple[str, str, SessionId, set[SessionId]]]:
    """Questions of order: their kind and words, the session to tell, and those named by them."""
    edited: dict[str, list[int]] = defaultdict(list)
    for at, session in enumerate(project.sessions):
        for name in sorted(set(_edited(session))):
            edited[name].append(at)
    files = sorted(name for name, sessions in edited.items() if len(sessions) > 1)
    rng = random.Random(_SEED)
    for name in rng.sample(files, min(_FILES, len(files))):
        yield "last", f"When did we last touch {name}?", project.id_of(edited[name][-1]), set()
        yield "first", f"When did we first change {name}?", project.id_of(edited[name][0]), set()
    numbers = {project.id_of(at): at for at in range(len(project.sessions))}
    once = sorted(
        (subject, numbers[next(iter(ids))])
        for subject, ids in _commits(project).items()
        if len(ids) == 1
    )
    for subject, at in rng.sample(once, min(_ORDERED, len(once))):
        ended = max((said.get("ts") or 0.0) for said in project.sessions[at]["msgs"])
        later = [i for i, start in enumerate(project.starts) if start > ended and i > at]
        besides = {project.id_of(at)}
        if later:
            words = f"What did we do after the work on {subject}?"
            yield "after", words, project.id_of(later[0]), besides
        if at:
            words = f"What did we do before the work on {subject}?"
            yield "before", words, project.id_of(at - 1), besides


_PATCHED = re.compile(r"\*\*\* (?:Update|Add) File: (\S+)")
_EDITS = frozenset({"Edit", "Write", "MultiEdit"})


def _edited(session: Mapping[str, Any]) -> Iterator[str]:
    """Names of the files that a session changed."""
    for tool, arguments in _calls(session):
        if tool in _EDITS and isinstance(arguments, dict):
            yield Path(str(arguments.get("file_path", ""))).name
        else:
            text = arguments if isinstance(arguments, str) else "\n".join(_texts(arguments))
            yield from (Path(path).name for path in _PATCHED.findall(text))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def order_figures(places: Mapping[str, Sequence[int]]) -> Figures:
    every = [place for each in places.values() for place in each]
    return {
        **{kind: 100 * fmean(place == 0 for place in each) for kind, each in places.items()},
        "first_of_all": 100 * fmean(place == 0 for place in every),
        "among3": 100 * fmean(0 <= place < 3 for place in every),
        "questions": float(len(every)),
    }


# Two people who talk


def two_people(weights: SignalWeights) -> list[AskedQuestion]:
    """LoCoMo: the turns of the evidence, each conversation in a store of its own. Nothing is ever
    chosen by it. Empty if it is not on this machine."""
    asked: list[AskedQuestion] = []
    for conversation in _conversations():
        chats, said = _talk(conversation)
        now = max(chat.time for chat in chats) + DAY
        with kept_chats(chats) as (kept, index):
            texts = kept.texts()
            for row in conversation["qa"]:
                gold = {
                    said[id]
                    for each in row.get("evidence") or ()
                    for id in re.findall(r"D\d+:\d+", str(each))
                    if id in said
                }
                if gold:
                    asked.append(
                        ask(
                            kept,
                            index,
                            RecallQuery(str(row["question"]), now, memories=False),
                            gold,
                            by_text(texts),
                            weights=weights,
                        )
                    )
    return asked


def locomo_folder() -> Path:
    return Path(os.environ.get(LOCOMO, platformdirs.user_cache_path("hotset-bench") / "locomo"))


def _conversations() -> Iterator[dict[str, Any]]:
    """From `locomo10.json`, or from a file for each conversation."""
    for path in sorted(locomo_folder().glob("*.json")):
        rows = json.loads(path.read_text())
        for row in rows if isinstance(rows, list) else [rows]:
            yield {**row, **row.get("conversation", {})}


def _talk(conversation: Mapping[str, Any]) -> tuple[list[Chat], dict[str, str]]:
    """Its sessions, with the speaker's name in front of each text, and the texts by id."""
    chats: list[Chat] = []
    said: dict[str, str] = {}
    for key, turns in conversation.items():
        if re.fullmatch(r"session_\d+", key) and turns:
            date = f"{conversation[f'{key}_date_time']} +0000"
            when = datetime.strptime(date, "%I:%M %p on %d %B, %Y %z").timestamp()
            talk = []
            for turn in turns:
                role = Role.USER if turn["speaker"] == conversation["speaker_a"] else Role.ASSISTANT
                text = f"{turn['speaker']}: {turn.get('text') or turn.get('clean_text') or ''}"
                said[turn["dia_id"]] = text
                talk.append((role, text))
            chats.append(Chat(key, when, tuple(talk)))
    return chats, said


# Weights that were not chosen on the kind they are tested on


TURNED: Mapping[str, tuple[float, ...]] = {
    **dict.fromkeys(
        (
            "meaning",
            "window",
            "around",
            "closely",
            "pointed",
            "session",
            "speaker",
            "told",
            "quoted",
        ),
        (0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3),
    ),
    "long": (0.0, -0.1, -0.2, -0.35, -0.5, -0.7, -1.0),
    "number": (0.0, 0.1, 0.2, 0.3),
    "kind": (0.0, 0.15, 0.3, 0.45, 0.6, 0.8),
}
_PASSES = 2
# of worth, for each weight that leaves the start; with 0.0005 the kind left out lost more
_PULL = 0.003


def left_out(
    kinds: Mapping[str, Sequence[Sequence[AskedQuestion]]], start: SignalWeights
) -> tuple[Sets, dict[str, dict[str, float]]]:
    """For each kind of conversation: figures by the start's weights, by weights chosen on the other
    kinds, and by those chosen on all; and the chosen weights."""
    cases = {
        name: [[each.as_ranked(f"{name} {at}") for at, each in enumerate(part)] for part in parts]
        for name, parts in kinds.items()
    }
    begin = start.as_dict()
    chosen = {"all": _choose(list(cases.values()), begin)}
    for name in cases:
        chosen[name] = _choose([each for other, each in cases.items() if other != name], begin)
    sets: Sets = {}
    for name, parts in cases.items():
        ways = {"shipped": begin, "held_out": chosen[name], "fitted": chosen["all"]}
        sets[f"kinds, {name}"] = {way: _order_figures(parts, w) for way, w in ways.items()}
    sets["kinds, mean"] = {
        way: {
            metric: fmean(sets[f"kinds, {name}"][way][metric] for name in cases)
            for metric in _NAMES
        }
        for way in ("shipped", "held_out", "fitted")
    }
    return sets, chosen


def _order_figures(parts: Sequence[Sequence[Ranked]], weights: Mapping[str, float]) -> Figures:
    row = np.array([weights[name] for name in SIGNALS])
    values = 100 * _judged(parts, row)
    return dict(zip(_NAMES, map(float, values), strict=True))


def _judged(parts: Sequence[Sequence[Ranked]], weights: Floats) -> Floats:
    """The mean over the parts of a kind."""
    means = [
        np.array([judged(collapsed(case.order(weights)), case.gold) for case in part]).mean(0)
        for part in parts
    ]
    mean: Floats = np.array(means).mean(0)
    return mean


def _choose(
    kinds: Sequence[Sequence[Sequence[Ranked]]], start: Mapping[str, float]
) -> dict[str, float]:
    """Coordinate search for the mean over these kinds; each weight that moves must be worth it."""
    weights = np.array([start[name] for name in SIGNALS])
    begin = weights.copy()

    def worth(trial: Floats) -> float:
        mean = np.array([_judged(parts, trial) for parts in kinds]).mean(0)
        return float(mean @ np.array([0.35, 0.35, 0.1, 0.2])) - _PULL * int((trial != begin).sum())

    highest = worth(weights)
    for _ in range(_PASSES):
        before = weights.copy()
        for name, levels in TURNED.items():
            for level in levels if name in SIGNALS else ():
                trial = weights.copy()
                trial[SIGNALS.index(name)] = level
                if (now := worth(trial)) > highest + 1e-6:
                    highest, weights = now, trial
        if (before == weights).all():
            break
    return dict(zip(SIGNALS, map(float, weights), strict=True))
