"""Recall signals: gather candidates from the index, score and order them, give reasons, and learn
the signals' weights.

Each recall is logged with the signals of its candidates, as numbers; reading one of them in the
same session soon after marks it as wanted. So any weights can be judged on the same recalls without
trying them out.

The defaults are round numbers that hold on several kinds of conversation at once (`kinds` in
`bench/memory.py`): chats with an assistant, chats about code, recorded coding sessions. A search
over all three finds none that are better by a third of a point; weights chosen on two of them lose
a point on the third. Conversations between two people were never used to choose anything. The sets
say nothing of how memories that are used, outdated or wanted by a task should count: those weights
are a judgement.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
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
from hotset.nouns.page import Kind, Page, SessionId
from hotset.nouns.search import Filter, IndexHit, Query, Sort
from hotset.nouns.turn import Event
from hotset.sources.memory.data_lines import DAY
from hotset.sources.memory.economics import LOADED
from hotset.sources.memory.error_match import LEAST_MATCH, matching_trouble
from hotset.sources.memory.kinds import ADVICE_KINDS, WARNING_KINDS, kinds_of
from hotset.sources.memory.memory_writer import WINDOW, window_speaker
from hotset.sources.memory.tasks import KIND_WEIGHTS
from hotset.sources.memory.time_parser import TimeWords, fits
from hotset.text.sentences import SENTENCE_END
from hotset.text.stops import CHAT
from hotset.text.terms import Term, first_hits
from hotset.text.words import lower_in_place, word_set
from hotset.typed import decode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    from hotset.index.embed.table import TokenMaxSim

SAME_SESSION = 0.5
"""How outdated other pages of a session are in which a replaced decision was made."""

_MEANING_SHARE = 0.4  # beside words, in how well a memory fits


@dataclass(frozen=True, slots=True)
class SignalWeights:
    """One weight per signal, named as in `Recalled.signals`. A score is the weighted sum of the
    signals."""

    words: float = 1.0
    """Full text of its own words; the best candidate has 1."""
    meaning: float = 0.2
    """The cosine of its vector and the question's, from the least to the best candidate."""
    window: float = 0.3
    """Full text of it together with the turns around it."""
    around: float = 0.3
    """As `meaning`, of it together with the turns around it."""
    closely: float = 0.6
    """Each word of the question against each of its words, by meaning; for the first few only."""
    pointed: float = 0.2
    """A fitting memory has it as a source."""
    session: float = 0.2
    """A fitting episode contains it."""
    speaker: float = 0.25
    """A person wrote it, and the question does not ask for the model's words. Small: of two people
    who talk, one may be stored as the model."""
    told: float = 0.4
    """Its author tells of himself, and the question does not ask for the model's words."""
    long: float = -0.7
    """It is a long reply of a model, and the question does not ask for the model's words."""
    quoted: float = 1.0
    """It has words of the question in the same order: one of them quotes the other."""
    named: float = 0.4
    """It begins with the name of its speaker, and the question has that name."""
    number: float = 0.1
    """The question asks for a number or a date, and it contains one."""
    when: float = 1.2
    """It is of the time that the question names."""
    recent: float = 0.1
    latest: float = 0.2
    """If the question asks for the latest or first: how late, or early, it is among the
    candidates."""
    used: float = 0.15
    kind: float = 0.6
    """The task wants memories of its kind."""
    failed: float = 0.3
    """It failed, and the task is debugging."""
    error: float = 1.0
    """It knows the error that the question quotes; more if that was resolved."""
    outdated: float = -1.0
    """Something else holds now."""
    semantic: float = 0.0
    """It is a fact."""
    episodic: float = 0.0
    """It is an episode or a page."""
    skill: float = 0.0
    """It is a procedure or a pitfall."""

    def as_dict(self) -> dict[str, float]:
        return {name: float(getattr(self, name)) for name in SIGNALS}


SIGNALS: tuple[str, ...] = tuple(field.name for field in fields(SignalWeights))

DEFAULT = SignalWeights()


def weights_from_dict(given: Mapping[str, float]) -> SignalWeights:
    """Missing signals have their default weight; unknown ones are ignored."""
    return replace(
        DEFAULT, **{name: float(value) for name, value in given.items() if name in SIGNALS}
    )


@dataclass(frozen=True, slots=True)
class LoggedCandidate:
    id: str
    signals: Mapping[str, float]
    """Before weighting; a missing one is 0."""


@dataclass(frozen=True, slots=True)
class RecallLog:
    """A recall: its candidates, and which of them proved useful."""

    candidates: tuple[LoggedCandidate, ...]
    good: frozenset[str]
    """Read, or reported as helpful."""
    bad: frozenset[str] = frozenset()
    """Reported as misleading."""
    session: str = ""
    time: float = 0.0


@dataclass(frozen=True, slots=True)
class LearnedWeights:
    weights: Mapping[str, float]
    """The defaults if nothing better was found."""
    gain: float
    """In NDCG@10 on held-out recalls, with its 98 % interval, whether or not the weights were
    adopted."""
    low: float
    high: float
    used: int
    """Recalls that were informative."""
    why: str


def learn_weights(
    log: Sequence[RecallLog], defaults: Mapping[str, float], seed: int = 0
) -> LearnedWeights:
    """Learn weights from a log in order of time. Deterministic for a log and seed."""
    import numpy as np  # noqa: PLC0415

    informative = [one for one in log if _is_informative(one)][-_MOST:]
    few = f"{len(informative)} recalls can tell something; {_LEAST} are needed"
    kept = LearnedWeights(dict(defaults), 0.0, 0.0, 0.0, len(informative), few)
    if len(informative) < _LEAST:
        return kept
    rng = np.random.default_rng(seed)
    split = round(len(informative) * _FIT)
    names = tuple(name for name, weight in defaults.items() if weight)
    start = np.array([defaults[name] for name in names], dtype=np.float64)
    older, newer = (
        _Trial.of(part, names, rng) for part in (informative[:split], informative[split:])
    )
    found = _search(older, start)
    gain, low, high = _measure_gain(newer, start, found, rng)
    held_out = len(informative) - split
    result = f"{gain:+.3f} [{low:+.3f}, {high:+.3f}] NDCG@10 on {held_out} recalls held out"
    kept = replace(kept, gain=gain, low=low, high=high, why=f"kept: {result}")
    if low <= 0:
        return kept
    canary = _search(older.shuffle(rng), start)
    if _measure_gain(newer.shuffle(rng), start, canary, rng)[1] > 0:
        won = "kept: shuffled labels won as well, so the log shows something else"
        return replace(kept, why=won)
    moved = ", ".join(
        f"{name} x{now / before:.2g}"
        for name, now, before in zip(names, found, start, strict=True)
        if now != before
    )
    weights = {**defaults, **dict(zip(names, map(float, found), strict=True))}
    return replace(kept, weights=weights, why=f"adapted: {moved}; {result}")


_LEAST = 40  # recalls: below that the interval of the gain is wider than any gain that was seen
_MOST = 4000  # the newest ones: a store changes, and this is a second of work
_FIT = 0.5  # of the log; as many to test on as to learn from
_STEPS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)  # of a default weight
_PASSES = 4
# towards the defaults: an octave away must be worth this much in the sum over all recalls
_PULL = 0.3
_DEPTH = 10
_MISLED = 0.5  # of a good one's worth: people report it more rarely than they read, and mean it
_RESAMPLES = 1000
_TAIL = 0.01  # with 0.025, weights were adapted to pure noise in 4 of 100 stores


def _is_informative(one: RecallLog) -> bool:
    """True if it labels some candidates better than others."""
    ids = {candidate.id for candidate in one.candidates}
    labelled = ids & (one.good | one.bad)
    return bool(labelled) and (labelled != ids or bool(ids & one.good and ids & one.bad))


@dataclass(frozen=True, slots=True)
class _Trial:
    """Recalls as arrays, to rank by any weights. Candidates are in random order, which decides
    ties."""

    signals: Floats
    """Axes: signal, recall, candidate."""
    missing: NDArray[np.bool_]
    """Axes: recall, candidate. Recalls differ in their number of candidates."""
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

    def shuffle(self, rng: np.random.Generator) -> _Trial:
        """The same, with as many labels on random candidates of the same recall."""
        import numpy as np  # noqa: PLC0415

        chance = rng.random(self.missing.shape)
        chance[self.missing] = 2.0
        # a permutation of each recall's own candidates, the missing ones last
        place = np.argsort(chance, axis=1)
        marks = tuple(
            _Marks(one.rows, place[one.rows, one.columns], one.ideal) for one in self.marks
        )
        return _Trial(self.signals, self.missing, (marks[0], marks[1]))

    def scores(self, weights: Floats) -> Floats:
        """Summed signal by signal: equal signals give equal scores, to the last bit."""
        import numpy as np  # noqa: PLC0415

        total = np.zeros(self.missing.shape)
        for layer, weight in zip(self.signals, weights, strict=True):
            total += weight * layer
        total[self.missing] = -np.inf
        return total

    def worth(self, scores: Floats) -> Floats:
        """For each recall: NDCG of the good ones, less a share of that of the bad ones."""
        good, bad = self.marks
        return good.ndcg(scores) - _MISLED * bad.ndcg(scores)


@dataclass(frozen=True, slots=True)
class _Marks:
    """Labelled candidates: the one at `columns[i]` of recall `rows[i]`."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    ideal: Floats
    """For each recall the best reachable value."""

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
    """Coordinate search: each weight at its best step, until nothing changes."""
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


def _measure_gain(
    trial: _Trial, start: Floats, found: Floats, rng: np.random.Generator
) -> tuple[float, float, float]:
    """The mean gain of a recall, and its bootstrap interval."""
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
    *,
    ms: float,
    shown: Iterable[str] = (),
    door: str = "recall",
    strategy: str = "",
) -> Event:
    """The log entry of a recall: ids and numbers, never words of the question or the results.
    `shown` are the ids in the answer; `strategy` says how they were found, where no signals do."""
    signals = [
        {name: round(value, _DIGITS) for name, value in each.items() if value}
        for _, each in candidates
    ]
    detail: dict[str, str | int | float] = {
        "ids": " ".join(id for id, _ in candidates),
        "signals": msgspec.json.encode(signals).decode(),
        "task": str(task),
        "ms": round(ms, 1),
        "shown": " ".join(shown),
        "door": door,
        "strategy": strategy,
    }
    return Event(RECALLED_EVENT, now, session, 0, detail)


def rank_logged(log: Sequence[RecallLog], weights: Mapping[str, float]) -> list[float]:
    """How well these weights rank each logged recall, from -0.5 to 1."""
    import numpy as np  # noqa: PLC0415

    trial = _Trial.of(log, tuple(weights), np.random.default_rng(0))
    found = trial.worth(trial.scores(np.array(list(weights.values()), dtype=np.float64)))
    return [float(each) for each in found]


def recall_log(events: Iterable[Event]) -> Iterator[RecallLog]:
    """Recalls of which something was read."""
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
            # a recall's own showing has several ids
            for time, candidates, good in asked.get(event.session, ()) if len(ids) == 1 else ():
                if 0 <= event.time - time <= _SOON:
                    good.update(one.id for one in candidates if one.id == ids[0])
    for session, recalls in asked.items():
        for time, candidates, good in recalls:
            if good:
                yield RecallLog(candidates, frozenset(good), session=str(session or ""), time=time)


def _logged_candidates(detail: Mapping[str, str | int | float]) -> tuple[LoggedCandidate, ...]:
    ids = str(detail.get("ids", "")).split()
    try:
        signals = decode(str(detail.get("signals", "")), list[dict[str, float]])
    except msgspec.DecodeError:  # a foreign event
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
    """Signals for the candidate pages from fitting memories. `replaced`: outdated memories, each
    with the one that holds now, if any.

    A replaced memory boosts the pages of the one that holds now instead of its own.
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
    """The fit of each memory relative to the best of its kind: kinds differ in text length."""
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
    """Boosts of the pages that fitting memories were made from."""

    pages: dict[str, float] = field(default_factory=dict)
    stretches: dict[str, list[tuple[tuple[int, int], float]]] = field(default_factory=dict)
    """By session: turns of an episode, and how well it fits."""
    old_pages: set[str] = field(default_factory=set)
    old_sessions: set[str] = field(default_factory=set)
    moved: dict[str, set[str]] = field(default_factory=dict)
    """By session: those with decisions that this one replaced."""

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


TALK_KINDS: Mapping[str, int] = {Kind.PROMPT: 70, Kind.RESPONSE: 50}
"""Page kinds to search and how many stretches of each: one search for both would find the longer
replies first."""

_WINDOWS = 70
_MEMORIES = 30
TROUBLED_KINDS = kinds_of(Episode) | WARNING_KINDS
"""Kinds of memories that know errors."""
_ADVICE = 12  # procedures and pitfalls, searched apart from the many episodes
_CLOSE = 0.3  # cosine below which nothing is a candidate by its meaning alone
_WISHES = word_set("""
    advice advise idea ideas recommend recommendation recommendations recommended suggest suggested
    suggestion suggestions thinking tip tips wondering
""")
"""Words of a wish for something new, and of every answer to one."""
_NAME = re.compile(r"[A-Z][a-z]{2,}")  # inside of a sentence: Will and May are people, too
_EDGES = re.compile(r"^\W+|\W+$")
_OWN_STATEMENT = re.compile(r"\b(?:I|I'm|I've|I'd|my|My|we|We|our|Our)\b")
_NUMBER = re.compile(
    (
        r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|once|twice|first|second|third|"
        r"couple|few)\b"
    ),
    re.IGNORECASE,
)
_ENOUGH_STATEMENTS = 2  # own statements: more make no difference
_ROW = 4  # words
_FEW_SHARED, _MANY_SHARED = 2, 8  # telling words of a run: a coincidence, and surely a quotation
_SHORT, _LONG = 400, 2000  # bytes of a page: up to here it is not long; from here on it is
_SPEAKER_NAME = re.compile(
    r"\W{0,3}(?:\[[^\]\n]{1,40}\]\s*)?([^\W\d_][\w'.-]{1,30})(?: [^\W\d_]\w{0,30})?"
    r"(?:\s*\([^)\n]{1,40}\))?\s*(?::|,? (?:said|wrote|says|writes)\b)"
)


@dataclass(frozen=True, slots=True)
class RecallCandidate:
    """A page or memory that may be recalled, with the index's scores."""

    key: str
    """Id of a page or a memory."""
    kind: str
    """`prompt`, `response`, or a memory's kind."""
    session: str
    time: float
    turn: int = 0
    title: str = ""
    text: str = ""
    """Its best stretch; empty if only the turns around it were found."""
    words: float | None = None
    meaning: float | None = None
    window: float | None = None
    """As `words` and `meaning`, with the turns around it."""
    around: float | None = None

    @property
    def is_talk(self) -> bool:
        return self.kind in TALK_KINDS


@dataclass(frozen=True, slots=True)
class IndexQuestion:
    """The part of a question that is sent to the index."""

    words: str
    """Without filler words."""
    kinds: frozenset[MemoryKind]
    talk: bool
    since: float | None = None
    until: float | None = None
    error: str = ""
    """Lines of the question that quote an error."""


def query_words(query: str) -> str:
    """The telling words of a question; all of them if none is. Quotes are no condition here."""
    words = query.replace('"', " ").split()
    bare = [_EDGES.sub("", word) for word in words]
    kept = [
        word
        for at, word in enumerate(words)
        if bare[at].lower() not in CHAT
        or (at and words[at - 1][-1] not in ".:?!" and _NAME.fullmatch(bare[at]))
    ]
    return " ".join(kept or words)


def without_wish(words: str) -> str:
    """The words of a question without those of a wish for something new, unless it has no
    others."""
    telling = [word for word in words.split() if _EDGES.sub("", word).lower() not in _WISHES]
    return " ".join(telling) or words


def gather(
    question: IndexQuestion, index: Index, until: float, clock: Callable[[], float] = time.monotonic
) -> tuple[dict[str, RecallCandidate], frozenset[str]]:
    """Candidates that share a telling word with the question or are close to it in meaning; and the
    search stages that did not serve."""
    candidates: dict[str, RecallCandidate] = {}
    lacking: frozenset[str] = frozenset()
    for query in _queries(question):
        hits = index.search(replace(query, deadline=max(0.0, until - clock())))
        lacking |= hits.lacking
        for new in _candidates(hits.hits):
            candidates[new.key] = _merge_candidates(candidates.get(new.key), new)
    return candidates, lacking


def _queries(question: IndexQuestion) -> Iterator[Query]:
    wanted: list[tuple[Sort, frozenset[str], int]] = []
    if question.talk:
        wanted += [(Sort.PAGE, frozenset({kind}), most) for kind, most in TALK_KINDS.items()]
        wanted.append((Sort.MEMORY, frozenset({WINDOW}), _WINDOWS))
    if question.kinds:
        wanted.append((Sort.MEMORY, frozenset(map(str, question.kinds)), _MEMORIES))
        if advice := ADVICE_KINDS & question.kinds:
            wanted.append((Sort.MEMORY, frozenset(map(str, advice)), _ADVICE))
    if question.error and (troubled := TROUBLED_KINDS & question.kinds):
        only = Filter(sorts=frozenset({Sort.MEMORY}), kinds=frozenset(map(str, troubled)))
        yield Query(question.error, only, _ADVICE)
    spans: list[tuple[float | None, float | None, float]] = [(None, None, 1.0)]
    if question.since is not None or question.until is not None:
        spans.append((question.since, question.until, 0.5))
    for since, until, share in spans:
        for sort, kinds, most in wanted:
            only = Filter(sorts=frozenset({sort}), kinds=kinds, since=since, until=until)
            yield Query(question.words, only, int(most * share))


def _candidates(hits: Iterable[IndexHit]) -> Iterator[RecallCandidate]:
    for hit in hits:
        entry = hit.entry
        if hit.by_words is None and (hit.by_meaning or 0.0) < _CLOSE:
            continue
        place = entry.session, entry.time, entry.turn
        if entry.kind == WINDOW:
            yield RecallCandidate(
                entry.whole,
                window_speaker(entry),
                *place,
                window=hit.by_words,
                around=hit.by_meaning,
            )
        else:
            texts, fit = (entry.title, entry.text), (hit.by_words, hit.by_meaning)
            yield RecallCandidate(entry.whole, entry.kind, *place, *texts, *fit)


def _merge_candidates(one: RecallCandidate | None, other: RecallCandidate) -> RecallCandidate:
    """Merge stretches of a page: the text of the best, and the best of each signal."""
    if one is None:
        return other
    best = max(
        one, other, key=lambda each: (bool(each.text), each.words or 0.0, each.meaning or 0.0)
    )
    found: dict[str, Any] = {}
    for name in ("words", "meaning", "window", "around"):
        known = [v for each in (one, other) if (v := getattr(each, name)) is not None]
        found[name] = max(known, default=None)
    return replace(best, **found)


def own_statements(text: str) -> float:
    """How much a text tells about its author, from 0 to 1: first-person sentences that are no
    questions."""
    parts = (each for line in text.split("\n") for each in SENTENCE_END.split(line))
    statements = sum(
        1 for each in parts if _OWN_STATEMENT.search(each) and not each.rstrip().endswith("?")
    )
    return min(1.0, statements / _ENOUGH_STATEMENTS)


def score_wordwise(question: str, texts: Sequence[str]) -> list[float]:
    """How well each text answers each word of the question."""
    return _wordwise().scores(question, texts)


def text_likeness(texts: Sequence[str]) -> list[list[float]]:
    """The cosine of each text with each other."""
    from hotset.index.embed.table import shipped_vectors  # noqa: PLC0415 - most never ask

    vectors = shipped_vectors().embed(texts)
    cosines: list[list[float]] = (vectors @ vectors.T).tolist()
    return cosines


@cache
def _wordwise() -> TokenMaxSim:
    from hotset.index.embed.table import TokenMaxSim, shipped_vectors  # noqa: PLC0415

    return TokenMaxSim(shipped_vectors())


Signals = dict[str, float]
"""By a signal's name."""

_PERSON = "prompt"

_WORDS_FLOOR = 0.5
# of cosines: smaller differences must not separate two candidates
_LEAST_SPAN = 0.2
_RECENT_DAYS = 30.0  # after so many days it counts a third
_LAYERS: Mapping[str, str] = {
    MemoryKind.FACT: "semantic",
    MemoryKind.PROCEDURE: "skill",
    MemoryKind.PITFALL: "skill",
}
_OTHER_KINDS = 0.3  # of kinds that the tasks' table does not name
_MANY_USES = 20  # reads from which on more make no difference


@dataclass(frozen=True, slots=True)
class RankSetting:
    """What a question wants beside its words."""

    now: float
    task: Task
    spoken: TimeWords = field(default_factory=TimeWords)
    """The time it names."""
    of_the_model: bool = False
    """It asks for the model's words."""
    for_a_number: bool = False
    error: str = ""
    """Lines of the question that quote an error."""


def first_signals(
    candidates: Mapping[str, RecallCandidate], setting: RankSetting
) -> dict[str, Signals]:
    """Signals from the index alone."""
    words = _spread_words({key: each.words for key, each in candidates.items()})
    windows = _spread_words({key: each.window for key, each in candidates.items()})
    meaning = _spread_cosines({key: each.meaning for key, each in candidates.items()})
    around = _spread_cosines({key: each.around for key, each in candidates.items()})
    late = _places(candidates) if setting.spoken.latest or setting.spoken.first else {}
    signals: dict[str, Signals] = {}
    for key, each in candidates.items():
        found = {
            "words": words.get(key, 0.0),
            "meaning": meaning.get(key, 0.0),
            "window": windows.get(key, 0.0),
            "around": around.get(key, 0.0),
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
        found[_LAYERS.get(each.kind, "episodic")] = 1.0
        signals[key] = found
    return signals


def text_signals(
    text: str, page: Page, query: str, rows: frozenset[WordRow], setting: RankSetting
) -> Signals:
    """Signals of a page's text, for those that may be shown. `rows`: of the question."""
    signals = {"number": float(setting.for_a_number and _NUMBER.search(text) is not None)}
    if not setting.of_the_model:
        signals["told"] = own_statements(text)
        if page.kind != _PERSON:
            over = math.log(max(page.size, _SHORT) / _SHORT) / math.log(_LONG / _SHORT)
            signals["long"] = min(1.0, over)
    if rows:
        signals["quoted"] = _quoted(text, rows)
    name = _SPEAKER_NAME.match(text)
    if name is not None and re.search(rf"\b{re.escape(name[1])}\b", query, re.IGNORECASE):
        signals["named"] = 1.0
    return signals


WordRow = tuple[str, ...]
"""Words that follow each other."""


def word_rows(text: str) -> frozenset[WordRow]:
    """Every row of a few words in a text."""
    return frozenset(_rows(_row_words(text)))


def _quoted(text: str, rows: frozenset[WordRow]) -> float:
    """The telling words of the longest run that the text shares with the question, from 0 for one
    that says nothing to 1."""
    found = _rows(_row_words(text))
    if rows.isdisjoint(found):
        return 0.0
    longest, run = 0, 0
    for row in found:
        if row not in rows:
            run = 0
            continue
        run += sum(word not in CHAT for word in (row[-1:] if run else row))
        longest = max(longest, run)
    return max(0.0, min(1.0, (longest - _FEW_SHARED) / (_MANY_SHARED - _FEW_SHARED)))


def _rows(words: list[str]) -> list[WordRow]:
    return list(zip(*(words[at:] for at in range(_ROW)), strict=False))


def _row_words(text: str) -> list[str]:
    return _SPOKEN_WORD.findall(text.lower())


def wanted_kind(kind: MemoryKind, task: Task) -> float:
    """How much a task wants this kind of memory; 1 for the kind it wants most."""
    row = KIND_WEIGHTS[task]
    return row.get(kind, _OTHER_KINDS) / max(row.values())


def memory_signals(memory: MemoryRecord, uses: Uses | None, setting: RankSetting) -> Signals:
    """Signals of a memory's own record."""
    signals: Signals = {}
    if uses is not None:
        useful = uses.read + 2 * uses.helped - 2 * uses.misled
        signals["used"] = max(
            -1.0, min(1.0, math.copysign(math.log1p(abs(useful)) / math.log1p(_MANY_USES), useful))
        )
    has_trouble = isinstance(memory.detail, Episode) and bool(memory.detail.troubles)
    if setting.task is Task.DEBUGGING and (memory.ending is Ending.FAILURE or has_trouble):
        signals["failed"] = 1.0
    if setting.error and memory.kind in TROUBLED_KINDS:
        found, _ = matching_trouble(memory, setting.error)
        signals["error"] = found if found >= LEAST_MATCH else 0.0
    if memory.standing is Standing.SUPERSEDED and not held_then(memory, setting):
        signals["outdated"] = 1.0
    return signals


def held_then(memory: MemoryRecord, setting: RankSetting) -> bool:
    """True if the question is about a time in which the memory still held."""
    ended = memory.valid_until
    until = setting.spoken.until
    return setting.spoken.first or (until is not None and ended is not None and until <= ended)


def order(signals: Mapping[str, Signals], weights: SignalWeights) -> list[tuple[str, float]]:
    """Keys with their scores, best first; ties by key."""
    counts = weights.as_dict()
    scored = [
        (-sum(counts[name] * value for name, value in found.items() if value), key)
        for key, found in signals.items()
    ]
    return [(key, -score) for score, key in sorted(scored)]


def spread(values: Sequence[float]) -> list[float]:
    """Scale to 0..1 from the least to the greatest value; less if they hardly differ."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [(value - low) / max(high - low, _LEAST_SPAN) for value in values]


def _spread_words(values: Mapping[str, float | None]) -> dict[str, float]:
    """Scale to 0..1 from the least to the greatest; where all are near the best, from half of it.
    What was not found has nothing, and so has hardly more the least that was."""
    found = {key: value for key, value in values.items() if value is not None}
    highest = max(found.values(), default=0.0)
    if highest <= 0:
        return {}
    floor = min(*found.values(), highest * _WORDS_FLOOR)
    return {key: (value - floor) / (highest - floor) for key, value in found.items()}


def _spread_cosines(values: Mapping[str, float | None]) -> dict[str, float]:
    found = {key: value for key, value in values.items() if value is not None}
    return dict(zip(found, spread(list(found.values())), strict=True))


def _places(candidates: Mapping[str, RecallCandidate]) -> dict[str, float]:
    """From 0 for the earliest to 1 for the latest by rank, so that one old outlier changes
    nothing."""
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
    """The reasons for an item, the plainest first; `text` is what was compared with the
    question."""
    return (
        *_of_signals(signals, _shared_words(text, wanted), setting),
        *(_of_memory(memory, uses, signals, setting) if memory is not None else ()),
    )


def day(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%-d %B %Y}"


def _of_signals(signals: Signals, shared: list[str], setting: RankSetting) -> Iterator[str]:
    if shared:
        yield f"words: {', '.join(shared)}"
    if signals.get("meaning", 0.0) >= _NOTABLE or (not shared and signals.get("meaning", 0.0) > 0):
        yield "close in meaning"
    if not shared and max(signals.get("window", 0.0), signals.get("around", 0.0)) > 0:
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
    if signals.get("error", 0.0) >= LEAST_MATCH:
        yield "it met the same error"
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


def _shared_words(text: str, wanted: tuple[Term, ...]) -> list[str]:
    """The words of the text that match the question, as written there."""
    low = lower_in_place(text)
    words = (_SPOKEN_WORD.match(low, at) for at, _ in first_hits(text, wanted))
    return list(dict.fromkeys(word[0] for word in words if word))[:_MOST_WORDS]


def _range(times: TimeWords) -> str:
    if times.since is None:
        return f"the time before {day(times.until or 0.0)}"
    if times.until is None:
        return f"the time since {day(times.since)}"
    if times.until - times.since <= DAY:
        return day(times.since)
    return f"{day(times.since)} to {day(times.until - 1)}"
