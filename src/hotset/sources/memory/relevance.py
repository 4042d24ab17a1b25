"""Which memories change what an agent does next on a prompt: a probability for each.

A search always finds something, and most prompts need none of it. So each fact, procedure and
pitfall of a project is weighed by a few signs: what it shares with the prompt, by words, meaning
and kind of work, beyond what the others share with it; and whether the prompt gives work to do.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hotset.files.lru import CACHES, CacheSize, Lru, estimate_bytes, memo
from hotset.index.embed.table import WordVectors, shipped_vectors
from hotset.index.embed.wordpiece import counts_of
from hotset.nouns.knobs import MemoryKnobs
from hotset.nouns.memory import (
    Episode,
    MemoryId,
    MemoryKind,
    MemoryRecord,
    Pitfall,
    Procedure,
    Standing,
    Task,
    Trust,
)
from hotset.nouns.pressure import PressureResponse
from hotset.sources.memory.concepts import concepts_of
from hotset.sources.memory.error_match import LEAST_MATCH, matching_trouble, quoted_error
from hotset.sources.memory.kinds import PERSON, REMINDED_KINDS
from hotset.sources.memory.memory_writer import sessions_of
from hotset.sources.memory.tasks import TaskGuess
from hotset.store.port import Store
from hotset.text.sentences import sentences
from hotset.text.stems import stem
from hotset.text.stops import CHAT, QUESTION
from hotset.text.words import split_humps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_READ = 500  # versions at a time
_MOST = 5000  # latest memories that are weighed
_SAMPLED = 8  # memories by which the size of all is estimated
_MOST_CHANGES = 10_000  # sessions, of some 100 bytes each
_LONGEST = 3000  # characters of a prompt or a memory
_SHORT = 300  # characters: a longer prompt is more than a question
_SENTENCES = 16
_LOOKED_AT = 100
"""Memories that are weighed: the nearest to the prompt."""
_NEAREST = 12
"""Of those, with which each one is compared."""
_UNRELATED = 0.1  # the cosine of a prompt with a memory of something else
_LEAST_SPREAD = 0.05
_WORDS_COUNT = 0.15  # of shared words, beside the cosine, in what is nearest
_SAME_ERROR = 0.9
"""How likely a memory of the very error that a prompt quotes is right."""
_HABIT_LEAST = 0.65
"""Rate from which on a habit is told: it speaks of every change, not of this one."""
_PERSON_RATE = 0.7
"""How likely a change is checked as a person said it is to be."""
_SHORTEST_WORD = 3
_STOPS = CHAT | QUESTION
_WORD = re.compile(r"[^\W\d_]+|\d+(?:\.\d+)*")
_ROUTINE = "after a change"

_TALK = re.compile(
    r"\W*(?:(?:ok(?:ay)?|good (?:morning|night|evening)|hello|hi|hey|yes|yep|no|continue|go on"
    r"|carry on|proceed|lgtm|looks good|well done|done)\b[^\n,.;]{0,30}"
    r"|(?:thanks|thank you|thx|great|nice|cool|perfect|awesome)\b[^\n]{0,80})\Z",
    re.IGNORECASE,
)
_GENERAL = re.compile(
    r"\b(?:in general|difference between|differ|just curious|brainstorm\w*|in theory|invented"
    r"|what does .{1,40} mean|mean compared|asking for a friend)\b",
    re.IGNORECASE,
)
_BROUGHT = re.compile(
    r"\b(?:translate|convert|format|proofread|rephrase|reword|summari[sz]e) "
    r"(?:this|the following)\b"
    r"|\bprint it here\b|\b(?:haiku|poem|joke)\b",
    re.IGNORECASE,
)
"""Work on a text that the prompt itself brings."""
_KNOWLEDGE = re.compile(
    r"\A\W*(?:(?:hey|hi|btw|quick question)\W+)?(?:what(?:'s| is| are| does| do)|why|who|which"
    r"|how (?:do|does|is|are|would)|does|do|is|are|explain)\b",
    re.IGNORECASE,
)
_READING = re.compile(
    r"\b(?:where(?:'s| is| are| do| does)?|who calls|explain|walk me through|summari[sz]e|show me"
    r"|which (?:class|file|function|component|module|script|test|line)|list (?:the|all|every)"
    r"|tell me|describe|only want to (?:know|read)|just (?:explain|read|look|tell)|how many"
    r"|don'?t (?:touch|change|edit)|change nothing|nothing to (?:run|change)|call sites"
    r"|what (?:columns|fields|happens|does|did))\b",
    re.IGNORECASE,
)
_SMALL = re.compile(
    r"\b(?:typo|comment block|heading|link is dead|dead link|spelling|readme|not aligned|rename)\b",
    re.IGNORECASE,
)
_COMMITS = re.compile(
    r"\W*(?:please |now |and |then |ok(?:ay)?,? |let'?s )*(?:commit|push|merge|rebase|squash"
    r"|(?:generate|write|create) (?:a|the) (?:commit|pr|pull))\b",
    re.IGNORECASE,
)
_FEWEST_WORDS = 3
_FAILS = re.compile(
    r"\b(?:fail\w*|error|broken|crash\w*|hang\w*|red|exception|traceback|wrong|refused|denied"
    r"|not found|missing|stuck|dies|doesn'?t|does not|cannot|can't|lost|twice|stale|slow|bug)\b",
    re.IGNORECASE,
)
_CHANGES = frozenset({Task.IMPLEMENTATION, Task.REFACTORING})
_OTHER_WORK = frozenset({"release", "deploy", "commit", "prose", "hardware"})
_COMMAND = re.compile(r"`([^`\n]+)`")


class RelevanceSigns(NamedTuple):
    """Evidence that a memory matters for a prompt."""

    constant: float
    meant: float
    """Cosine of the whole prompt with the memory."""
    nearer: float
    """How much nearer its condition is to a sentence of the prompt than those of other memories, in
    their spread."""
    worded: float
    """The same, of the rarity of the words that both have."""
    behind: float
    """How far it is behind the memory that shares most; 0 for that one."""
    asked: float
    """Share of the prompt's words, by rarity, that its condition has."""
    works: float
    """Kinds of work that a sentence of the prompt and the memory name, as a logarithm."""
    covered: float
    """Share of the memory's kinds of work that the prompt names."""
    calm: float
    """It is a pitfall, and nothing fails."""
    asks: float
    """The prompt asks or wants to read: up to three signs of it."""
    small: float
    """The prompt is about a word or a line."""


WEIGHTS = (-3.03, 2.44, 1.06, 0.2, 0.75, 1.99, 0.27, 1.15, -0.84, -0.84, -1.28)
"""Of the signs; the weighted sum is the log-odds. Fitted to hand-made cases: `HOTSET_BENCH_FIT=1
make bench-telling` fits them again, and reports projects that were left out."""


@dataclass(frozen=True, slots=True)
class Tellable:
    """A memory that may be told unasked, with what it is compared by."""

    memory: MemoryRecord
    condition: str
    """When it matters: a procedure's occasion, what a pitfall says that fails, else all of it."""
    words: frozenset[str]
    condition_words: frozenset[str]
    works: frozenset[str]

    @property
    def is_routine(self) -> bool:
        """True for checks that follow any change."""
        detail = self.memory.detail
        return isinstance(detail, Procedure) and detail.when.lower().startswith(_ROUTINE)

    @property
    def is_habit(self) -> bool:
        """True for what any change may meet: its checks, or a command that fails."""
        return self.is_routine or isinstance(self.memory.detail, Pitfall)

    @property
    def knows_errors(self) -> bool:
        return isinstance(self.memory.detail, Pitfall | Episode)


def tellable(memory: MemoryRecord) -> Tellable | None:
    """None for a memory that is never told unasked: put aside, from outside, or an episode without
    a resolved error."""
    if memory.standing is not Standing.ACTIVE or memory.trust is Trust.OUTSIDE:
        return None
    match memory.detail:
        case Episode(troubles=troubles) if not any(each.is_resolved for each in troubles):
            return None
        case Episode(goal=goal):
            condition = goal
        case Procedure(when=when) if when:
            condition = when
        case Pitfall(what=what, why=why) if what:
            condition = f"{what} {why}"
        case _:
            condition = memory.text
    if not isinstance(memory.detail, Episode) and memory.kind not in REMINDED_KINDS:
        return None
    text = memory.text[:_LONGEST]
    return Tellable(
        memory, condition[:_LONGEST], words_of(text), words_of(condition), concepts_of(text)
    )


class TellableMemories:
    """The memories of a store that may be told unasked; follows it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._store: Store | None = None
        self._read = 0
        """The last version that was read."""
        self._known: dict[MemoryId, Tellable] = {}
        self._vectors: tuple[Floats, Floats] | None = None
        self._often: Counter[str] = Counter()
        """How many of them have a word."""
        self._changes: Lru[str, float] = Lru(
            "sessions with changes", count=_MOST_CHANGES, shrinks=False
        )
        """Sessions that changed files, and when."""
        CACHES.add(self)

    def respond(self, response: PressureResponse) -> None:
        """Nothing: the next prompt would read and embed all of them again."""

    def cache_size(self) -> CacheSize:
        known, vectors = tuple(self._known.values()), self._vectors
        some = known[-_SAMPLED:]
        size = sum(map(estimate_bytes, some)) * len(known) // max(1, len(some))
        size += sum(each.nbytes for each in vectors) if vectors is not None else 0
        return CacheSize("memories to tell", len(known), size, _MOST, "entries", shrinks=False)

    def follow(self, store: Store) -> None:
        """Read the versions that are new."""
        with self._lock:
            if self._store is not store:  # opened anew
                self._store, self._read, self._known, self._vectors = store, 0, {}, None
                self._changes.clear()
            while some := store.memories_after(self._read, _READ):
                self._read = some[-1][0]
                for _, memory in some:
                    if isinstance(memory.detail, Episode) and memory.detail.artifacts:
                        for session in sessions_of(memory.source):
                            self._changes.put(session, memory.created)
                    self._known.pop(memory.id, None)
                    if (new := tellable(memory)) is not None:
                        self._known[memory.id] = new
                self._vectors = None
            for id in list(self._known)[:-_MOST]:
                del self._known[id]

    def warm(self, store: Store) -> None:
        """Make the first prompt fast."""
        self.follow(store)
        for _ in self.weigh("Make the first prompt fast."):
            pass

    def find(
        self,
        store: Store,
        prompt: str,
        guess: TaskGuess,
        *,
        knobs: MemoryKnobs,
        known: frozenset[str],
    ) -> Iterator[tuple[Tellable, float]]:
        """The memories that matter for a prompt with the probability that their kind needs, the
        likeliest first; then, for the first change of a session, what most changes before it met:
        how they were checked, and what failed. `known`: ids that were told."""
        if is_idle(prompt):
            return
        self.follow(store)
        weighed = list(self.weigh(prompt))
        new = [pair for pair in weighed if pair[0].memory.id not in known]
        yield from (
            (each, worth)
            for each, worth in new
            if worth >= _least(each, knobs) and not each.is_routine
        )
        is_first = not any(each.is_habit for each, _ in weighed if each.memory.id in known)
        if is_first and gives_work(prompt, guess):
            rates = [(each, self.rate(each.memory)) for each, _ in new if each.is_habit]
            habits = [
                (each, rate)
                for each, rate in rates
                if rate >= max(_least(each, knobs), _HABIT_LEAST)
                and not _names_command(prompt, each)
            ]
            yield from sorted(habits, key=lambda pair: (-pair[1], pair[0].memory.id))

    def rate(self, memory: MemoryRecord) -> float:
        """Of the sessions that changed files since a memory was made, the share that met it again;
        a little less where there were few. A person's procedure counts without."""
        with self._lock:
            since = sum(time >= memory.created for time in self._changes.values())
        if memory.source.by == PERSON:
            return _PERSON_RATE if memory.kind is MemoryKind.PROCEDURE else 0.0
        met = len(sessions_of(memory.source))
        return (met + 0.5) / (max(since, met) + 2.0)

    def weigh(self, prompt: str) -> Iterator[tuple[Tellable, float]]:
        """Each memory with the probability that it matters for the prompt, the highest first."""
        with self._lock:
            known = list(self._known.values())
            if self._vectors is None and known:
                texts = [each.memory.text[:_LONGEST] for each in known]
                conditions = [each.condition for each in known]
                table = shipped_vectors()
                self._vectors = table.embed(texts), table.embed(conditions)
                self._often = Counter(word for each in known for word in each.words)
            vectors = self._vectors
        if vectors is None:
            return
        likely, signs = weigh_signs(shipped_vectors(), prompt, known, vectors, self._often)
        worths = 1.0 / (1.0 + np.exp(-signs @ np.array(WEIGHTS)))
        error = quoted_error(prompt[:_LONGEST])
        weighed = [
            (known[at], _of_error(known[at], error, float(worth)))
            for at, worth in zip(likely, worths, strict=True)
        ]
        yield from sorted(weighed, key=lambda pair: (-pair[1], pair[0].memory.id))


def _least(each: Tellable, knobs: MemoryKnobs) -> float:
    return knobs.tells.get(each.memory.kind, knobs.tell)


def weigh_signs(
    table: WordVectors,
    prompt: str,
    known: Sequence[Tellable],
    vectors: tuple[Floats, Floats],
    often: Mapping[str, int],
) -> tuple[list[int], NDArray[np.float64]]:
    """The places of the memories that may matter, and the signs of each, a row each.

    `vectors`: of their texts and of their conditions; `often`: how many memories have a word.
    """
    prompt = prompt[:_LONGEST]
    pieces = [each for each in sentences(prompt) if each.strip()][:_SENTENCES] or [prompt]
    of_prompt = table.embed([*pieces, prompt])
    whole = vectors[0] @ of_prompt[-1]
    near = (vectors[1] @ of_prompt[:-1].T).max(1)
    asked = words_of(prompt)
    weigh = _Rarity(often, len(known))
    shared = np.array([math.log1p(weigh(asked & each.words)) for each in known])
    nearest = np.argsort(-(near + _WORDS_COUNT * shared), kind="stable")[:_LOOKED_AT]
    nearer = _stand_out(near, nearest, _UNRELATED)
    worded = _stand_out(shared, nearest, 0.0)
    works = [concepts_of(piece) for piece in pieces]
    all_works = frozenset().union(*works)
    mass, most = sum(map(_rarity, asked)) or 1.0, float(shared.max())
    asks, small = prompt_signs(prompt)
    fails = _FAILS.search(prompt) is not None
    rows = [
        RelevanceSigns(
            constant=1.0,
            meant=float(whole[at]),
            nearer=float(nearer[at]),
            worded=float(worded[at]),
            behind=float(shared[at]) - most,
            asked=weigh(asked & known[at].condition_words) / mass,
            works=math.log1p(max((len(some & known[at].works) for some in works), default=0)),
            covered=len(all_works & known[at].works) / max(1, len(known[at].works)),
            calm=float(isinstance(known[at].memory.detail, Pitfall) and not fails),
            asks=asks,
            small=small,
        )
        for at in nearest
    ]
    return [int(at) for at in nearest], np.array(rows)


def prompt_signs(prompt: str) -> tuple[float, float]:
    """How much a prompt asks, and whether it is about a small thing."""
    signs = (_KNOWLEDGE.match(prompt), _READING.search(prompt), prompt.rstrip().endswith("?"))
    return float(sum(map(bool, signs))), float(_SMALL.search(prompt) is not None)


def is_idle(prompt: str) -> bool:
    """True for talk, a question of general knowledge, or work on a text that the prompt brings."""
    begin = prompt[:_LONGEST]
    return (
        _TALK.match(prompt) is not None
        or (len(prompt) <= _SHORT and _GENERAL.search(prompt) is not None)
        or _BROUGHT.search(begin) is not None
    )


def is_order(prompt: str) -> bool:
    """True if something is to be done, and it is more than a word or a line."""
    return not is_idle(prompt) and prompt_signs(prompt[:_LONGEST]) == (0.0, 0.0)


def gives_work(prompt: str, guess: TaskGuess) -> bool:
    """True if a prompt asks for a change of code, and not for a commit, a release or a text."""
    return (
        is_order(prompt)
        and guess.task in _CHANGES
        and guess.confidence > 0.0
        and not _COMMITS.match(prompt)
        and concepts_of(prompt[:_LONGEST]).isdisjoint(_OTHER_WORK)
        and len(words_of(prompt)) >= _FEWEST_WORDS
    )


def words_of(text: str) -> frozenset[str]:
    """The telling words of a text, without endings; names are taken apart."""
    found = (word.lower() for word in _WORD.findall(split_humps(text)))
    return frozenset(
        stem(word) for word in found if len(word) >= _SHORTEST_WORD and word not in _STOPS
    )


def _names_command(prompt: str, each: Tellable) -> bool:
    """True if the prompt says itself what is to be run."""
    return any(command in prompt for command in _COMMAND.findall(each.memory.text))


class _Rarity:
    """How much words tell: by the table of vectors, less where most memories of the project have
    them."""

    def __init__(self, often: Mapping[str, int], memories: int) -> None:
        self._often = often
        self._memories = memories

    def __call__(self, words: frozenset[str]) -> float:
        return sum(_rarity(word) * self._here(word) for word in words)

    def _here(self, word: str) -> float:
        if self._memories < _NEAREST:
            return 1.0
        share = (self._memories + 1) / (self._often[word] + 0.5)
        return math.log(share) / math.log(self._memories + 1)


@memo("word rarity", 50_000)
def _rarity(word: str) -> float:
    tokens, _, _ = counts_of([word], 8)
    return float(shipped_vectors().directions(tokens)[1].max()) if len(tokens) else 0.0


def _stand_out(
    values: NDArray[np.floating], nearest: NDArray[np.intp], usual: float
) -> NDArray[np.float64]:
    """How much each value stands out among those of the nearest memories; where there are few, also
    among `usual` ones."""
    first = values[nearest[:_NEAREST]]
    among = np.append(first, [usual] * (_NEAREST - len(first)))
    return np.asarray((values - among.mean()) / (among.std() + _LEAST_SPREAD), np.float64)


def _of_error(each: Tellable, error: str, worth: float) -> float:
    """A memory of the same error is right; an episode is told for nothing else."""
    same = each.knows_errors and error and matching_trouble(each.memory, error)[0] >= LEAST_MATCH
    if same:
        return max(worth, _SAME_ERROR)
    return 0.0 if isinstance(each.memory.detail, Episode) else worth
