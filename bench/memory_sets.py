"""Public conversations with questions whose evidence is known, and what else could be done to find
it."""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotset.index.analysis import split_identifiers
from hotset.index.embed.port import Embedder
from hotset.index.embed.table import WordVectors
from hotset.index.full_text import words_of
from hotset.index.local import LocalIndex
from hotset.nouns.memory import MemoryKind, MemoryRecord
from hotset.nouns.message import Part
from hotset.nouns.page import Kind, Page, PageId, Role, SessionId
from hotset.sealing import VERSION
from hotset.sources.history import follow
from hotset.sources.memory.memory_writer import follow_memories, remember_session
from hotset.sources.memory.recall_signals import SIGNALS
from hotset.store.port import Store, Where
from hotset.testing.ram_store import RamStore
from hotset.testing.store_talk import StoreTalk, message
from hotset.text.terms import terms

DATA = Path(os.environ.get("HOTSET_BENCH_DATA", Path(__file__).parents[2] / "shared" / "data"))
DAY = 86_400.0
FOLDS = 5
LEVELS = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3)

_WORD = re.compile(r"\w+")
_OWN_WORDS = 60  # characters from which on the same words are no coincidence
_SIMILAR = 8
_ALIKE = 0.2  # of all words shared
_TEXT = (
    1500  # characters of a call or a result that are kept: facts and troubles are told by its ends
)
_TALK_KINDS = frozenset({Kind.PROMPT, Kind.RESPONSE})

Floats = NDArray[np.float64]
Said = tuple[Role, str]


@dataclass(frozen=True, slots=True)
class Chat:
    id: str
    time: float
    said: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    now: float
    kind: str
    gold: frozenset[str]
    """Texts in which the answer stands."""
    chats: tuple[str, ...]
    """In which the evidence stands."""
    answer: str = ""


def longmemeval() -> tuple[list[Chat], list[Question]]:
    """All sessions of all questions in one pool; questions whose evidence is nowhere are left
    out."""
    with gzip.open(DATA / "memory" / "longmemeval_oracle.json.gz", "rt", encoding="utf-8") as file:
        rows: list[dict[str, Any]] = json.load(file)
    chats: dict[str, Chat] = {}
    questions = []
    for row in rows:
        gold = set()
        for id, when, turns in zip(
            row["haystack_session_ids"],
            row["haystack_dates"],
            row["haystack_sessions"],
            strict=True,
        ):
            said = tuple((Role(turn["role"]), turn["content"] or " ") for turn in turns)
            chats.setdefault(id, Chat(id, _moment(when), said))
            gold |= {turn["content"] for turn in turns if turn.get("has_answer")}
        if gold:
            now, chat_ids = _moment(row["question_date"]), tuple(row["haystack_session_ids"])
            questions.append(
                Question(
                    row["question"],
                    now,
                    row["question_type"],
                    frozenset(gold),
                    chat_ids,
                    str(row["answer"]),
                )
            )
    return list(chats.values()), questions


def grouped(chats: Sequence[Chat], questions: Sequence[Question]) -> list[str]:
    """A name for each question; those that share anything that was said have the same."""
    said = {chat.id: chat.said for chat in chats}
    above: dict[str, str] = {}

    def top(name: str) -> str:
        while above.setdefault(name, name) != name:
            name = above[name]
        return name

    for at, question in enumerate(questions):
        for chat in question.chats:
            for _, text in said[chat]:
                if len(text) >= _OWN_WORDS:
                    above[top(text)] = top(f"question {at}")
    return [top(f"question {at}") for at in range(len(questions))]


def _moment(date: str) -> float:
    return (
        datetime.strptime(f"{date[:10]} {date[-5:]}", "%Y/%m/%d %H:%M")
        .replace(tzinfo=UTC)
        .timestamp()
    )


@dataclass(slots=True)
class Kept:
    """Conversations in a store, with the memories that rules made of them."""

    store: Store
    sessions: dict[str, SessionId] = field(default_factory=dict)
    made: Counter[str] = field(default_factory=Counter)
    facts: dict[str, tuple[frozenset[str], MemoryRecord]] = field(default_factory=dict)

    def keep(self, chats: Iterable[Chat]) -> None:
        for chat in chats:
            talk = StoreTalk(self.store, key=chat.id, time=chat.time)
            turn = None
            for role, text in chat.said:
                if role is Role.USER or turn is None:
                    turn = talk.asks(text if role is Role.USER else "(go on)").turn
                if role is Role.ASSISTANT:
                    talk.hears(turn, text)
        self.sessions = {session.key: session.id for session in self.store.sessions()}

    def remember(self) -> None:
        """As the background does when a session has ended, the oldest first."""
        for session in sorted(self.store.sessions(), key=lambda each: each.started):
            self.remember_one(session.id, session.started + DAY)

    def remember_one(self, session: SessionId, now: float) -> None:
        for memory in remember_session(self.store, session, now, self._similar).versions:
            self.made[memory.kind] += memory.version == 1
            if memory.kind is MemoryKind.FACT:
                self.facts[memory.id] = (_telling(memory), memory)

    def texts(self) -> dict[PageId, str]:
        """What was said, by page."""
        return {
            page.id: self.store.content(page.digest).decode()
            for page in self.store.pages(Where(kinds=_TALK_KINDS))
        }

    def _similar(self, memory: MemoryRecord) -> list[MemoryRecord]:
        words = _telling(memory)
        near = sorted(
            (
                (len(words & known) / max(1, len(words | known)), id)
                for id, (known, _) in self.facts.items()
            ),
            reverse=True,
        )
        return [self.facts[id][1] for share, id in near[:_SIMILAR] if share >= _ALIKE]


def _telling(memory: MemoryRecord) -> frozenset[str]:
    return frozenset(term.text for term in terms(f"{memory.title} {memory.text}"))


class SessionPages(RamStore):
    """A store in memory that keeps the pages of each session together, as a store on disk does."""

    def __init__(self) -> None:
        super().__init__()
        self._known = 0
        self._of_session: dict[SessionId, list[Page]] = defaultdict(list)

    def pages(self, where: Where) -> Iterator[Page]:
        if where.session is None:
            return super().pages(where)
        while new := self.pages_after(self._known, 1000):
            self._known = new[-1][0]
            for _, page in new:
                self._of_session[page.session].append(page)
        found = (page for page in self._of_session[where.session] if where.holds(page))
        return islice(found, where.limit)


def indexed(store: Store, folder: Path, asking: Embedder | None = None) -> LocalIndex:
    index = LocalIndex(folder, WordVectors(), asking, sealing=VERSION, folds=False)
    bring(store, index)
    return index


def bring(store: Store, index: LocalIndex) -> None:
    """The index up to the store, and folded."""
    follow(store, index, time.monotonic() + 1e6)
    follow_memories(store, index, time.monotonic() + 1e6)
    index.fold()


# What others would find


@dataclass(slots=True)
class Bm25:
    """Over whole texts. Its words are those of hotset's own index: stemmed, identifiers taken
    apart."""

    k1: float
    b: float
    posts: dict[str, tuple[NDArray[np.int64], Floats]] = field(default_factory=dict)
    norm: Floats = field(default_factory=lambda: np.zeros(0))

    def learn(self, texts: Sequence[str]) -> Bm25:
        rows = [Counter(tokens(text)) for text in texts]
        lengths = np.array([row.total() for row in rows], np.float64)
        self.norm = self.k1 * (1 - self.b + self.b * lengths / max(1.0, float(lengths.mean())))
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for at, row in enumerate(rows):
            for word, often in row.items():
                found[word].append((at, often))
        for word, pairs in found.items():
            places, counts = zip(*pairs, strict=True)
            self.posts[word] = np.array(places), np.array(counts, np.float64)
        return self

    def scores(self, question: str) -> Floats:
        scores = np.zeros(len(self.norm))
        for word in set(tokens(question)):
            if word in self.posts:
                at, often = self.posts[word]
                rare = math.log(1 + (len(self.norm) - len(at) + 0.5) / (len(at) + 0.5))
                scores[at] += rare * often * (1 + self.k1) / (often + self.norm[at])
        return scores


_STEMS: dict[str, tuple[str, ...]] = {}


def tokens(text: str) -> list[str]:
    stems: list[str] = []
    for word in _WORD.findall(split_identifiers([text])[0].lower()):
        if word not in _STEMS:
            _STEMS[word] = tuple(words_of(word))
        stems += _STEMS[word]
    return stems


def best(scores: Floats, most: int) -> list[int]:
    return [int(at) for at in np.argsort(-scores, kind="stable")[:most]]


def by_rank(*orders: Sequence[int], offset: int = 60) -> list[int]:
    scores: dict[int, float] = defaultdict(float)
    for order in orders:
        for place, at in enumerate(order):
            scores[at] += 1.0 / (offset + place + 1)
    return sorted(scores, key=lambda at: (-scores[at], at))


# How good an order is


def collapsed(texts: Iterable[str]) -> list[str]:
    """The same words twice are one find, for every method alike."""
    return list(dict.fromkeys(texts))


def judged(found: Sequence[str], gold: frozenset[str]) -> list[float]:
    """Recall at 5, 10 and 20, and NDCG at 10."""
    hits = [text in gold for text in found[:20]]
    ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(gold))))
    gain = sum(1 / math.log2(place + 2) for place, hit in enumerate(hits[:10]) if hit)
    return [
        sum(hits[:5]) / len(gold),
        sum(hits[:10]) / len(gold),
        sum(hits) / len(gold),
        gain / ideal,
    ]


def interval(differences: Sequence[float], seed: int = 7) -> tuple[float, float, float]:
    """The mean of paired differences with its 95 % interval, by bootstrap."""
    values = np.array(differences)
    rng = np.random.default_rng(seed)
    means = values[rng.integers(0, len(values), (2000, len(values)))].mean(1)
    return float(values.mean()), float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


# Weights that were not chosen on what they are tested on


@dataclass(frozen=True, slots=True)
class Ranked:
    """What one question found, before any weights: texts with their signals."""

    texts: tuple[str, ...]
    signals: Floats
    """(texts, signals)"""
    gold: frozenset[str]
    group: str

    def order(self, weights: Floats) -> list[str]:
        return [self.texts[at] for at in np.argsort(-(self.signals @ weights), kind="stable")]


def ranked(
    texts: Sequence[str], signals: Sequence[Mapping[str, float]], gold: frozenset[str], group: str
) -> Ranked:
    """In an order that nothing depends on: of equals the first counts, and it must not be the one
    that hotset put first."""
    at = list(range(len(texts)))
    random.Random(group).shuffle(at)
    rows = np.array([[signals[i].get(name, 0.0) for name in SIGNALS] for i in at]).reshape(
        len(at), len(SIGNALS)
    )
    return Ranked(tuple(texts[i] for i in at), rows, gold, group)


def cross_fitted(
    cases: Sequence[Ranked], start: Mapping[str, float], turned: Sequence[str]
) -> list[list[str]]:
    """For each question the order by weights that were chosen on the other groups' questions
    alone."""
    names = sorted({case.group for case in cases})
    random.Random(1).shuffle(names)
    fold = {name: at % FOLDS for at, name in enumerate(names)}
    chosen = {
        at: _chosen([case for case in cases if fold[case.group] != at], start, turned)
        for at in range(FOLDS)
    }
    return [case.order(chosen[fold[case.group]]) for case in cases]


def _chosen(cases: Sequence[Ranked], start: Mapping[str, float], turned: Sequence[str]) -> Floats:
    weights = np.array([start[name] for name in SIGNALS])
    highest = _worth(cases, weights)
    for _ in range(2):
        for name in turned:
            for level in LEVELS:
                trial = weights.copy()
                trial[SIGNALS.index(name)] = level
                if (worth := _worth(cases, trial)) > highest + 1e-6:
                    highest, weights = worth, trial
    return weights


def _worth(cases: Sequence[Ranked], weights: Floats) -> float:
    figures = np.array([judged(case.order(weights), case.gold) for case in cases]).mean(0)
    return float(figures @ np.array([0.35, 0.35, 0.1, 0.2]))


# Recorded sessions of agents


def recorded(name: str) -> list[dict[str, Any]]:
    with gzip.open(DATA / "trajectories" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def replayed(store: Store, session: Mapping[str, Any], start: float) -> None:
    """A recorded session into the store, with its calls and their results; very long ones cut at
    both ends."""
    talk = StoreTalk(store, key=session["id"], time=start)
    turn = None
    for said in session["msgs"]:
        text = said.get("t") or ""
        if said["r"] in {"user", "tool"}:
            kind, tool, call = (
                (Kind.PROMPT, "", "")
                if said["r"] == "user"
                else (Kind.TOOL_RESULT, said.get("n", ""), said.get("id", ""))
            )
            if text or kind is Kind.TOOL_RESULT:
                role = Role.USER if kind is Kind.PROMPT else Role.TOOL
                turn = talk.asks(
                    message(role, Part(kind, _ends(text).encode(), "text/plain", tool, call))
                ).turn
        elif said["r"] == "assistant" and turn is not None:
            parts = [Part(Kind.RESPONSE, text.encode())] if text else []
            parts += [
                Part(
                    Kind.TOOL_CALL,
                    _ends(_plain(call["a"])).encode(),
                    "application/json",
                    call["n"],
                    call["id"],
                )
                for call in said.get("calls") or ()
            ]
            if parts:
                talk.hears(turn, message(Role.ASSISTANT, *parts))


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _TEXT else f"{text[:_TEXT]}\n...\n{text[-_TEXT:]}"


def _plain(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def timed(act: Callable[[], Any]) -> tuple[float, float]:
    """Milliseconds on the wall, and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000
