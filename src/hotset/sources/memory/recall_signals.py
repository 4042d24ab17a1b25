"""What speaks for each candidate of a recall: signals of the index, the lift of memories that fit,
their order and reasons; what each signal counts, and learning that from what was read afterwards.

Each recall is logged with the signals of what it found, as numbers; a reading of one of these in
the same session soon after shows that it was wanted. Every set of weights can so be judged on the
same recalls, without trying it out on anybody.

The defaults are round numbers near those that are chosen on four fifths of LongMemEval's questions
and do best on the rest; with any one of them 30 % greater or smaller, recall@5, @10 and NDCG@10
there change by less than a point. The set says nothing of how memories that are used, outdated or
wanted by a task should count: those weights are a judgement.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from hotset.index.port import Index
from hotset.nouns.memory import (
    Ending,
    Episode,
    Layer,
    MemoryKind,
    MemoryRecord,
    Standing,
    Task,
    Uses,
)
from hotset.nouns.page import Kind, SessionId
from hotset.nouns.search import Filter, IndexHit, Query, Sort
from hotset.nouns.turn import Event
from hotset.sources.memory.data_lines import DAY
from hotset.sources.memory.economics import LOADED
from hotset.sources.memory.kinds import ADVICE_KINDS
from hotset.sources.memory.memory_writer import WINDOW, said_by
from hotset.sources.memory.tasks import KIND_WEIGHTS
from hotset.sources.memory.time_parser import TimeWords, fits
from hotset.text.sentences import SENTENCE_END
from hotset.text.stops import CHAT
from hotset.text.terms import Term, first_hits
from hotset.text.words import lower_in_place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    from hotset.index.embed.table import TokenMaxSim

SAME_SESSION = 0.5
"""Of being outdated, for what else was said or done where something was decided that no longer
holds."""

_MEANING_SHARE = 0.4  # beside words, in how well a memory fits


@dataclass(frozen=True, slots=True)
class SignalWeights:
    """A field for each signal, by its name in `Recalled.signals`. A score is the sum of every
    signal times its weight."""

    words: float = 1.0
    """Full text of its own words; the best candidate has 1."""
    meaning: float = 0.3
    """The cosine of its vector and the question's, above what any candidate has."""
    window: float = 0.2
    """Full text of what was said around it."""
    closely: float = 0.6
    """Each word of the question against each of its words, by meaning; of the first few."""
    pointed: float = 0.2
    """A memory that fits points to it."""
    session: float = 0.3
    """An episode that fits has it in it."""
    speaker: float = 0.9
    """A person said it, and the question does not ask what the model said."""
    told: float = 0.25
    """Who asks about themselves told of themselves here."""
    number: float = 0.2
    """The question asks for a number or a date, and there is one in it."""
    when: float = 1.2
    """It was said in the time that the question speaks of."""
    recent: float = 0.1
    latest: float = 0.2
    """Of a question for the latest or the first: how late, or early, it is among the candidates."""
    used: float = 0.15
    kind: float = 0.6
    """The task wants memories of its kind."""
    failed: float = 0.3
    """It went wrong, and the task is to find out why something does."""
    outdated: float = -1.0
    """Something else holds now."""

    def as_dict(self) -> dict[str, float]:
        return {name: float(getattr(self, name)) for name in SIGNALS}


SIGNALS: tuple[str, ...] = tuple(field.name for field in fields(SignalWeights))

DEFAULT = SignalWeights()


def weights_from_dict(given: Mapping[str, float]) -> SignalWeights:
    """What it does not name is as by default; what is no signal is left out."""
    return replace(
        DEFAULT, **{name: float(value) for name, value in given.items() if name in SIGNALS}
    )


@dataclass(frozen=True, slots=True)
class LoggedCandidate:
    id: str
    signals: Mapping[str, float]
    """As they were summed up, before their weights; a missing one is 0."""


@dataclass(frozen=True, slots=True)
class RecallLog:
    """A recall: what could have been served, and what turned out to be of use."""

    candidates: tuple[LoggedCandidate, ...]
    good: frozenset[str]
    """Read, or said to have helped."""
    bad: frozenset[str] = frozenset()
    """Said to have misled."""


@dataclass(frozen=True, slots=True)
class LearnedWeights:
    weights: Mapping[str, float]
    """The defaults, where nothing better was found."""
    gain: float
    """In NDCG@10 on the recalls that were held out, with its 98 % interval; of what was found, also
    when it was not taken."""
    low: float
    high: float
    used: int
    """Recalls that could tell something."""
    why: str


def learn_weights(
    log: Sequence[RecallLog], defaults: Mapping[str, float], seed: int = 0
) -> LearnedWeights:
    """`log` in the order of time. The same log and seed give the same weights."""
    import numpy as np  # noqa: PLC0415

    telling = [one for one in log if _tells(one)][-_MOST:]
    few = f"{len(telling)} recalls can tell something; {_LEAST} are needed"
    kept = LearnedWeights(dict(defaults), 0.0, 0.0, 0.0, len(telling), few)
    if len(telling) < _LEAST:
        return kept
    rng = np.random.default_rng(seed)
    split = round(len(telling) * _FIT)
    names = tuple(name for name, weight in defaults.items() if weight)
    start = np.array([defaults[name] for name in names], dtype=np.float64)
    older, newer = (_Trial.of(part, names, rng) for part in (telling[:split], telling[split:]))
    found = _search(older, start)
    gain, low, high = _gained(newer, start, found, rng)
    told = (
        f"{gain:+.3f} [{low:+.3f}, {high:+.3f}] NDCG@10 on {len(telling) - split} recalls held out"
    )
    kept = replace(kept, gain=gain, low=low, high=high, why=f"kept: {told}")
    if low <= 0:
        return kept
    canary = _search(older.shuffled(rng), start)
    if _gained(newer.shuffled(rng), start, canary, rng)[1] > 0:
        won = "kept: shuffled labels won as well, so the log shows something else"
        return replace(kept, why=won)
    moved = ", ".join(
        f"{name} x{now / before:.2g}"
        for name, now, before in zip(names, found, start, strict=True)
        if now != before
    )
    weights = {**defaults, **dict(zip(names, map(float, found), strict=True))}
    return replace(kept, weights=weights, why=f"adapted: {moved}; {told}")


_LEAST = 40  # recalls: below that the interval of the gain is wider than any gain that was seen
_MOST = 4000  # the newest ones: a store changes, and this is a second of work
_FIT = 0.5  # of the log; as many to test on as to learn from
_STEPS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)  # of a default weight
_PASSES = 4
# towards the defaults: an octave away from them must be worth this much in the sum over all recalls
_PULL = 0.3
_DEPTH = 10
_MISLED = 0.5  # of what a good one is worth: people say it more rarely than they read, and mean it
_RESAMPLES = 1000
_TAIL = 0.01  # with 0.025, weights were adapted to pure noise in 4 of 100 stores


def _tells(one: RecallLog) -> bool:
    """Is something in it better than something else?"""
    ids = {candidate.id for candidate in one.candidates}
    labelled = ids & (one.good | one.bad)
    return bool(labelled) and (labelled != ids or bool(ids & one.good and ids & one.bad))


@dataclass(frozen=True, slots=True)
class _Trial:
    """Recalls as arrays, to be ranked by any weights. Candidates stand in a random order, which
    decides ties."""

    signals: Floats
    """Signal, recall, candidate."""
    missing: NDArray[np.bool_]
    """Recall, candidate: recalls have different numbers of them."""
    marks: tuple[_Marks, _Marks]
    """The good ones and the bad ones."""

    @classmethod
    def of(cls, log: Sequence[RecallLog], names: Sequence[str], rng: np.random.Generator) -> _Trial:
        import numpy as np  # noqa: PLC0415

        sizes = np.array([len(one.candidates) for one in log], dtype=np.int64)
        signals = np.zeros((len(names), len(log), int(sizes.max())))
        places: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
        for row, one in enumerate(log):
            order = rng.permutation(len(one.candidates)).tolist()
            for column, at in enumerate(order):
                candidate = one.candidates[at]
                for layer, name in enumerate(names):
                    signals[layer, row, column] = candidate.signals.get(name, 0.0)
                for labelled, ids in zip(places, (one.good, one.bad), strict=True):
                    if candidate.id in ids:
                        labelled.append((row, column))
        missing = np.arange(signals.shape[2])[None, :] >= sizes[:, None]
        return cls(
            signals, missing, (_Marks.of(places[0], len(log)), _Marks.of(places[1], len(log)))
        )

    def shuffled(self, rng: np.random.Generator) -> _Trial:
        """The same, with as many labels on other candidates of the same recall."""
        import numpy as np  # noqa: PLC0415

        chance = rng.random(self.missing.shape)
        chance[self.missing] = 2.0
        place = np.argsort(
            chance, axis=1
        )  # a permutation of each recall's own candidates, the missing ones last
        marks = tuple(
            _Marks(one.rows, place[one.rows, one.columns], one.ideal) for one in self.marks
        )
        return _Trial(self.signals, self.missing, (marks[0], marks[1]))

    def scores(self, weights: Floats) -> Floats:
        """Signal by signal: candidates with equal signals get equal scores, to the last bit."""
        import numpy as np  # noqa: PLC0415

        total = np.zeros(self.missing.shape)
        for layer, weight in zip(self.signals, weights, strict=True):
            total += weight * layer
        total[self.missing] = -np.inf
        return total

    def worth(self, scores: Floats) -> Floats:
        """Of each recall: NDCG of the good ones, less what the bad ones take."""
        good, bad = self.marks
        return good.ndcg(scores) - _MISLED * bad.ndcg(scores)


@dataclass(frozen=True, slots=True)
class _Marks:
    """Labelled candidates: the one at `columns[i]` of recall `rows[i]`."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    ideal: Floats
    """Of each recall: the best that they can reach."""

    @classmethod
    def of(cls, places: Sequence[tuple[int, int]], recalls: int) -> _Marks:
        import numpy as np  # noqa: PLC0415

        rows, columns = np.array(places, dtype=np.int64).reshape(-1, 2).T
        discounts = np.concatenate(([0.0], np.cumsum(1 / np.log2(np.arange(_DEPTH) + 2))))
        counts = np.minimum(np.bincount(rows, minlength=recalls), _DEPTH)
        return cls(rows, columns, np.maximum(discounts[counts], 1.0))

    def ndcg(self, scores: Floats) -> Floats:
        import numpy as np  # noqa: PLC0415

        others, own = scores[self.rows], scores[self.rows, self.columns][:, None]
        before = np.arange(scores.shape[1])[None, :] < self.columns[:, None]
        ranks = ((others > own) | ((others == own) & before)).sum(axis=1)
        gains = np.where(ranks < _DEPTH, 1 / np.log2(ranks + 2), 0.0)
        return np.bincount(self.rows, weights=gains, minlength=len(scores)) / self.ideal


def _search(trial: _Trial, start: Floats) -> Floats:
    """One weight after the other, each at its best step, until nothing moves."""
    import numpy as np  # noqa: PLC0415

    steps = np.array(_STEPS)
    pull = _PULL * np.log2(steps) ** 2 / len(trial.missing)
    at = np.full(len(start), _STEPS.index(1.0))
    best = float(trial.worth(trial.scores(start)).mean())
    for _ in range(_PASSES):
        before = at.copy()
        for signal in range(len(start)):
            scores = trial.scores(start * steps[at])
            held = pull[at].sum() - pull[at[signal]]
            here = at[signal]
            for step in range(len(steps)):
                if step == here:
                    continue
                moved = scores + (steps[step] - steps[here]) * start[signal] * trial.signals[signal]
                worth = float(trial.worth(moved).mean()) - held - pull[step]
                if worth > best:
                    best, at[signal] = worth, step
        if (at == before).all():
            break
    found: Floats = start * steps[at]
    return found


def _gained(
    trial: _Trial, start: Floats, found: Floats, rng: np.random.Generator
) -> tuple[float, float, float]:
    """The mean gain of a recall, and its interval by resampling recalls."""
    import numpy as np  # noqa: PLC0415

    gains = trial.worth(trial.scores(found)) - trial.worth(trial.scores(start))
    means = gains[rng.integers(len(gains), size=(_RESAMPLES, len(gains)))].mean(axis=1)
    low, high = np.quantile(means, [_TAIL, 1 - _TAIL])
    return float(gains.mean()), float(low), float(high)


RECALLED_EVENT = "Recalled"
"""The name of the event."""

_SOON = 900.0
"""Seconds within which a reading belongs to a recall."""

_DIGITS = 4


def recalled_event(
    candidates: Sequence[tuple[str, Mapping[str, float]]],
    now: float,
    session: SessionId | None,
    task: Task,
    ms: float,
) -> Event:
    """Ids and numbers, never a word of what was asked or found."""
    signals = [
        {name: round(value, _DIGITS) for name, value in each.items() if value}
        for _, each in candidates
    ]
    detail: dict[str, str | int | float] = {
        "ids": " ".join(id for id, _ in candidates),
        "signals": msgspec.json.encode(signals).decode(),
        "task": str(task),
        "ms": round(ms, 1),
    }
    return Event(RECALLED_EVENT, now, session, 0, detail)


def weights_from_events(events: Iterable[Event]) -> LearnedWeights:
    """The weights that would have put what was read higher, where that is beyond doubt; otherwise
    the default ones."""
    return learn_weights(list(_log(events)), DEFAULT.as_dict())


def _log(events: Iterable[Event]) -> Iterator[RecallLog]:
    asked: dict[SessionId | None, list[tuple[float, tuple[LoggedCandidate, ...], set[str]]]] = {}
    for event in events:
        if event.name == RECALLED_EVENT and (candidates := _logged_candidates(event.detail)):
            asked.setdefault(event.session, []).append((event.time, candidates, set()))
        elif (
            event.name == LOADED
            and event.detail.get("layer") == Layer.FULL
            and event.detail.get("asked")
        ):
            ids = str(event.detail.get("ids", "")).split()
            # what a recall itself showed has several
            for time, candidates, good in asked.get(event.session, ()) if len(ids) == 1 else ():
                if 0 <= event.time - time <= _SOON:
                    good.update(one.id for one in candidates if one.id == ids[0])
    for _, candidates, good in chain.from_iterable(asked.values()):
        if good:
            yield RecallLog(candidates, frozenset(good))


def _logged_candidates(detail: Mapping[str, str | int | float]) -> tuple[LoggedCandidate, ...]:
    ids = str(detail.get("ids", "")).split()
    try:
        signals = msgspec.json.decode(str(detail.get("signals", "")), type=list[dict[str, float]])
    except msgspec.DecodeError:  # somebody else's event
        return ()
    if len(ids) != len(signals):
        return ()
    known = ({name: value for name, value in each.items() if name in SIGNALS} for each in signals)
    return tuple(map(LoggedCandidate, ids, known))


def evidence_boosts(
    candidates: Mapping[str, RecallCandidate],
    signals: Mapping[str, Signals],
    memories: Mapping[str, MemoryRecord],
    replaced: Mapping[str, MemoryRecord | None],
) -> dict[str, Signals]:
    """For each page that was found. `replaced` are the memories that hold no longer, with what
    holds now, if anything does.

    A memory that was replaced boosts the words of the one that holds now instead of its own.
    """
    boost = _EvidenceBoost()
    for id, share in _evidence_shares(signals, memories).items():
        memory = memories[id]
        session = memory.source.session or ""
        if isinstance(memory.detail, Episode):
            boost.stretches.setdefault(session, []).append((memory.detail.turns, share))
        elif id in replaced:
            boost.replace(memory, replaced[id], share)
        else:
            boost.point(memory, share)
    return {key: boost.signals(each) for key, each in candidates.items() if each.is_talk}


def _evidence_shares(
    signals: Mapping[str, Signals], memories: Mapping[str, MemoryRecord]
) -> dict[str, float]:
    """How well each fits, beside the best of its kind: texts of another kind are of another
    length."""
    fit = {id: signals[id]["words"] + _MEANING_SHARE * signals[id]["meaning"] for id in memories}
    best: dict[str, float] = {}
    for id, memory in memories.items():
        best[memory.kind] = max(best.get(memory.kind, 0.0), fit[id])
    return {
        id: fit[id] / best[memory.kind] if best[memory.kind] else 0.0
        for id, memory in memories.items()
    }


@dataclass(slots=True)
class _EvidenceBoost:
    """What the memories that fit say for the pages they stand on."""

    pages: dict[str, float] = field(default_factory=dict)
    stretches: dict[str, list[tuple[tuple[int, int], float]]] = field(default_factory=dict)
    """By session: turns of an episode, and how well it fits."""
    old_pages: set[str] = field(default_factory=set)
    old_sessions: set[str] = field(default_factory=set)
    moved: dict[str, set[str]] = field(default_factory=dict)
    """By session: those in which something was decided that this one replaced."""

    def point(self, memory: MemoryRecord, share: float) -> None:
        for page in memory.source.pages:
            self.pages[page] = max(self.pages.get(page, 0.0), share)

    def replace(self, old: MemoryRecord, new: MemoryRecord | None, share: float) -> None:
        self.old_pages.update(old.source.pages)
        if new is None:
            return
        self.point(new, share)
        before, now = old.source.session, new.source.session
        if before and now and before != now:
            self.old_sessions.add(before)
            self.moved.setdefault(now, set()).add(before)

    def signals(self, each: RecallCandidate) -> Signals:
        fits = [
            share
            for turns, share in self.stretches.get(each.session, ())
            if turns[0] <= each.turn <= turns[1]
        ]
        fits += [
            share
            for session in self.moved.get(each.session, ())
            for _, share in self.stretches.get(session, ())
        ]
        signals = {"pointed": self.pages.get(each.key, 0.0), "session": max(fits, default=0.0)}
        if each.key in self.old_pages and each.key not in self.pages:
            signals["outdated"] = 1.0
        elif each.session in self.old_sessions:
            signals["outdated"] = SAME_SESSION
        return signals


TALK_KINDS: Mapping[str, int] = {Kind.PROMPT: 50, Kind.RESPONSE: 25}
"""Whose words are looked for, and how many stretches of each: one search for both finds the longer
answers of models first."""

_WINDOWS = 25
_MEMORIES = 30
_CLOSE = 0.45  # cosine that counts where no telling word is shared: see `sources.history.search`
_WORD = re.compile(r"\S+")
_EDGES = re.compile(r"^\W+|\W+$")
_OWN_STATEMENT = re.compile(r"\b(?:I|I'm|I've|I'd|my|My|we|We|our|Our)\b")
_NUMBER = re.compile(
    (
        r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|once|twice|first|second|third|"
        r"couple|few)\b"
    ),
    re.IGNORECASE,
)
_ENOUGH_TOLD = 2  # own statements: more say no more


@dataclass(frozen=True, slots=True)
class RecallCandidate:
    """Something that may be recalled, with what the index knows of it."""

    key: str
    """A page's id, or a memory's."""
    kind: str
    """`prompt`, `response`, or a memory's kind."""
    session: str
    time: float
    turn: int = 0
    title: str = ""
    text: str = ""
    """Its best stretch; empty where only what stands around it was found."""
    words: float | None = None
    meaning: float | None = None
    window: float | None = None

    @property
    def is_talk(self) -> bool:
        return self.kind in TALK_KINDS


@dataclass(frozen=True, slots=True)
class IndexQuestion:
    """A question, as far as the index is asked."""

    words: str
    """Without what people say around it, and without its time."""
    kinds: frozenset[MemoryKind]
    talk: bool
    since: float | None = None
    until: float | None = None


def query_words(query: str) -> str:
    """The words of a question that tell it from others; all of them, where none does. Quotes are no
    condition here."""
    words = query.replace('"', " ")
    kept = [word for word in _WORD.findall(words) if _EDGES.sub("", word).lower() not in CHAT]
    return " ".join(kept) or " ".join(words.split())


def gather(
    asked: IndexQuestion, index: Index, until: float, clock: Callable[[], float] = time.monotonic
) -> tuple[dict[str, RecallCandidate], frozenset[str]]:
    """Everything that shares a telling word with the question, or is close to it in meaning; and
    what did not serve in one of the searches."""
    candidates: dict[str, RecallCandidate] = {}
    lacking: frozenset[str] = frozenset()
    for query in _queries(asked):
        hits = index.search(replace(query, deadline=max(0.0, until - clock())))
        lacking |= hits.lacking
        for new in _candidates(hits.hits):
            candidates[new.key] = _together(candidates.get(new.key), new)
    return candidates, lacking


def _queries(asked: IndexQuestion) -> Iterator[Query]:
    wanted: list[tuple[Sort, frozenset[str], int]] = []
    if asked.talk:
        wanted += [(Sort.PAGE, frozenset({kind}), most) for kind, most in TALK_KINDS.items()]
        wanted.append((Sort.MEMORY, frozenset({WINDOW}), _WINDOWS))
    if asked.kinds:
        wanted.append((Sort.MEMORY, frozenset(map(str, asked.kinds)), _MEMORIES))
    spans: list[tuple[float | None, float | None, float]] = [(None, None, 1.0)]
    if asked.since is not None or asked.until is not None:
        spans.append((asked.since, asked.until, 0.5))
    for since, until, share in spans:
        for sort, kinds, most in wanted:
            only = Filter(sorts=frozenset({sort}), kinds=kinds, since=since, until=until)
            yield Query(asked.words, only, int(most * share))


def _candidates(hits: Iterable[IndexHit]) -> Iterator[RecallCandidate]:
    for hit in hits:
        entry = hit.entry
        if hit.by_words is None and (hit.by_meaning or 0.0) < _CLOSE:
            continue
        if entry.kind == WINDOW:
            if hit.by_words is not None:
                yield RecallCandidate(
                    entry.whole,
                    said_by(entry),
                    entry.session,
                    entry.time,
                    entry.turn,
                    window=hit.by_words,
                )
        else:
            about = entry.session, entry.time, entry.turn, entry.title, entry.text
            fit = hit.by_words, hit.by_meaning
            yield RecallCandidate(entry.whole, entry.kind, *about, *fit)


def _together(one: RecallCandidate | None, other: RecallCandidate) -> RecallCandidate:
    """Several stretches of a page are one candidate, with the text of the best and the best of each
    signal."""
    if one is None:
        return other
    best = max(
        one, other, key=lambda each: (bool(each.text), each.words or 0.0, each.meaning or 0.0)
    )
    found: dict[str, Any] = {}
    for name in ("words", "meaning", "window"):
        known = [v for each in (one, other) if (v := getattr(each, name)) is not None]
        found[name] = max(known, default=None)
    return replace(best, **found)


def own_statements(text: str) -> float:
    """How much somebody tells of themselves, from 0 to 1: sentences in the first person that are no
    questions."""
    spoken = (each for line in text.split("\n") for each in SENTENCE_END.split(line))
    told = sum(
        1 for each in spoken if _OWN_STATEMENT.search(each) and not each.rstrip().endswith("?")
    )
    return min(1.0, told / _ENOUGH_TOLD)


def score_wordwise(question: str, texts: Sequence[str]) -> list[float]:
    """How well each text answers each word of the question."""
    return _wordwise().scores(question, texts)


@cache
def _wordwise() -> TokenMaxSim:
    from hotset.index.embed.table import TokenMaxSim, WordVectors  # noqa: PLC0415 - most never ask

    return TokenMaxSim(WordVectors())


Signals = dict[str, float]
"""By a signal's name."""

_PERSON = "prompt"

# the share of cosines that say nothing: the least of those that were found is near the middle of
# all
_FLOOR = 1 / 3
# of cosines: what differs by less is alike, and must not be told apart where only two were found
_LEAST_SPAN = 0.2
_RECENT_DAYS = 30.0  # after so many days it counts a third
_OTHER_KINDS = 0.3  # of kinds that the tasks' table does not name
_MANY_USES = 20  # reads from which on more make no difference


@dataclass(frozen=True, slots=True)
class RankSetting:
    """What a question wants beside its words."""

    now: float
    task: Task
    spoken: TimeWords = field(default_factory=TimeWords)
    """The time that it speaks of."""
    of_the_model: bool = False
    """It asks what the model said."""
    of_oneself: bool = False
    for_a_number: bool = False


def first_signals(
    candidates: Mapping[str, RecallCandidate], setting: RankSetting
) -> dict[str, Signals]:
    """By what the index knows alone."""
    words = _shares({key: each.words for key, each in candidates.items()})
    windows = _shares({key: each.window for key, each in candidates.items()})
    meaning = _above_floor({key: each.meaning for key, each in candidates.items()})
    late = _places(candidates) if setting.spoken.latest or setting.spoken.first else {}
    signals: dict[str, Signals] = {}
    for key, each in candidates.items():
        found = {
            "words": words.get(key, 0.0),
            "meaning": meaning.get(key, 0.0),
            "window": windows.get(key, 0.0),
        }
        found["recent"] = math.exp(-abs(setting.now - each.time) / (_RECENT_DAYS * DAY))
        if setting.spoken.since is not None or setting.spoken.until is not None:
            found["when"] = fits(each.time, setting.spoken)
        if late:
            found["latest"] = late[key] if setting.spoken.latest else 1.0 - late[key]
        if each.is_talk:
            found["speaker"] = float(each.kind == _PERSON and not setting.of_the_model)
        else:
            found["kind"] = wanted_kind(MemoryKind(each.kind), setting.task)
        signals[key] = found
    return signals


def text_signals(each: RecallCandidate, setting: RankSetting) -> Signals:
    """What a person's words tell by themselves: looked at only where they may be shown."""
    if each.kind != _PERSON:
        return {}
    return {
        "told": own_statements(each.text) if setting.of_oneself else 0.0,
        "number": float(setting.for_a_number and _NUMBER.search(each.text) is not None),
    }


def wanted_kind(kind: MemoryKind, task: Task) -> float:
    """How much a task wants memories of this kind; of the one that it wants most, 1."""
    row = KIND_WEIGHTS[task]
    return row.get(kind, _OTHER_KINDS) / max(row.values())


def memory_signals(memory: MemoryRecord, uses: Uses | None, setting: RankSetting) -> Signals:
    """What a memory's own record tells."""
    signals: Signals = {}
    if uses is not None:
        useful = uses.read + 2 * uses.helped - 2 * uses.misled
        signals["used"] = max(
            -1.0, min(1.0, math.copysign(math.log1p(abs(useful)) / math.log1p(_MANY_USES), useful))
        )
    has_trouble = isinstance(memory.detail, Episode) and bool(memory.detail.troubles)
    if setting.task is Task.DEBUGGING and (memory.ending is Ending.FAILURE or has_trouble):
        signals["failed"] = 1.0
    if memory.standing is Standing.SUPERSEDED and not held_then(memory, setting):
        signals["outdated"] = 1.0
    return signals


def held_then(memory: MemoryRecord, setting: RankSetting) -> bool:
    """The question is about a time before something else came to hold."""
    ended = memory.valid_until
    until = setting.spoken.until
    return setting.spoken.first or (until is not None and ended is not None and until <= ended)


def order(signals: Mapping[str, Signals], weights: SignalWeights) -> list[tuple[str, float]]:
    """Keys with their scores, best first. Of equal ones the order is that of their names: nothing
    depends on who came first."""
    counts = weights.as_dict()
    scored = [
        (-sum(counts[name] * value for name, value in found.items() if value), key)
        for key, found in signals.items()
    ]
    return [(key, -score) for score, key in sorted(scored)]


def spread(values: Sequence[float]) -> list[float]:
    """From 0 for the least towards 1 for the greatest, which has it where they differ by enough."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [(value - low) / max(high - low, _LEAST_SPAN) for value in values]


def _shares(values: Mapping[str, float | None]) -> dict[str, float]:
    found = {key: value for key, value in values.items() if value is not None}
    highest = max(found.values(), default=0.0)
    return {key: value / highest for key, value in found.items()} if highest > 0 else {}


def _above_floor(values: Mapping[str, float | None]) -> dict[str, float]:
    found = {key: value for key, value in values.items() if value is not None}
    if not found:
        return {}
    ranked = sorted(found.values())
    floor, highest = ranked[int(len(ranked) * _FLOOR)], ranked[-1]
    span = max(highest - floor, _LEAST_SPAN)
    return {key: max(0.0, value - floor) / span for key, value in found.items()}


def _places(candidates: Mapping[str, RecallCandidate]) -> dict[str, float]:
    """From 0 for the earliest to 1 for the latest, by place: one that is years older makes the
    others no more alike."""
    times = sorted({each.time for each in candidates.values()})
    place = {time: at / max(1, len(times) - 1) for at, time in enumerate(times)}
    return {key: place[each.time] for key, each in candidates.items()}


_SPOKEN_WORD = re.compile(r"[\w'-]*\w")
_MOST_WORDS = 5
_NOTABLE = 0.5  # of a signal that goes from 0 to 1
_LATELY_DAYS = 7.0


def why(
    text: str,
    signals: Signals,
    wanted: tuple[Term, ...],
    setting: RankSetting,
    *,
    memory: MemoryRecord | None = None,
    uses: Uses | None = None,
) -> tuple[str, ...]:
    """What spoke for something that is told, the plainest first; `text` is what of it was compared
    with the question."""
    return (
        *_of_signals(signals, _shared(text, wanted), setting),
        *(_of_memory(memory, uses, signals, setting) if memory is not None else ()),
    )


def day(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%-d %B %Y}"


def _of_signals(signals: Signals, shared: list[str], setting: RankSetting) -> Iterator[str]:
    if shared:
        yield f"words: {', '.join(shared)}"
    if signals.get("meaning", 0.0) >= _NOTABLE or (not shared and signals.get("meaning", 0.0) > 0):
        yield "close in meaning"
    if not shared and signals.get("window", 0.0) > 0:
        yield "what was said around it fits"
    if signals.get("when", 0.0) == 1.0:
        yield f"you asked about {_range(setting.spoken)}"
    if signals.get("latest", 0.0) >= _NOTABLE:
        yield "among the latest" if setting.spoken.latest else "among the first"
    if signals.get("pointed", 0.0) >= _NOTABLE:
        yield "a memory that fits stands on it"
    if signals.get("session", 0.0) >= _NOTABLE:
        yield "said in an episode that fits"


def _of_memory(
    memory: MemoryRecord, uses: Uses | None, signals: Signals, setting: RankSetting
) -> Iterator[str]:
    if memory.kind in ADVICE_KINDS and signals.get("kind", 0.0) > 0:
        article = "an" if setting.task[0] in "aeiou" else "a"
        yield f"{memory.kind} for {article} {setting.task} task"
    if signals.get("failed"):
        yield "it went wrong there"
    if uses is not None and uses.read:
        yield f"read {uses.read} time{'s' if uses.read > 1 else ''}"
    if uses is not None and uses.helped > uses.misled:
        yield "it helped before"
    if setting.now - memory.created <= _LATELY_DAYS * DAY:
        yield "of the last days"
    if memory.standing is Standing.SUPERSEDED:
        yield (
            f"held until {day(memory.valid_until)}"
            if memory.valid_until is not None
            else "something else holds now"
        )


def _shared(text: str, wanted: tuple[Term, ...]) -> list[str]:
    """The words of the text by which it was found, as they stand there."""
    low = lower_in_place(text)
    words = (_SPOKEN_WORD.match(low, at) for at, _ in first_hits(text, wanted))
    return list(dict.fromkeys(word[0] for word in words if word))[:_MOST_WORDS]


def _range(said: TimeWords) -> str:
    if said.since is None:
        return f"the time before {day(said.until or 0.0)}"
    if said.until is None:
        return f"the time since {day(said.since)}"
    if said.until - said.since <= DAY:
        return day(said.since)
    return f"{day(said.since)} to {day(said.until - 1)}"
