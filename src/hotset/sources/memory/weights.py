"""What each signal counts when memories are put in order, and learning that from what was read
after a recall.

Each recall is logged with the signals of what it found, as numbers; a reading of one of these in
the same session soon after shows that it was wanted. Every set of weights can so be judged on the
same recalls, without trying it out on anybody.

The defaults are round numbers near those that are chosen on four fifths of LongMemEval's questions
and do best on the rest; with any one of them 30 % greater or smaller, recall@5, @10 and NDCG@10
there change by less than a point. The set says nothing of how memories that are used, outdated or
wanted by a task should count: those weights are a judgement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from hotset.nouns.memory import Layer, Task
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event
from hotset.sources.memory.economics import LOADED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


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
        if event.name == RECALLED_EVENT and (candidates := _candidates(event.detail)):
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


def _candidates(detail: Mapping[str, str | int | float]) -> tuple[LoggedCandidate, ...]:
    ids = str(detail.get("ids", "")).split()
    try:
        signals = msgspec.json.decode(str(detail.get("signals", "")), type=list[dict[str, float]])
    except msgspec.DecodeError:  # somebody else's event
        return ()
    if len(ids) != len(signals):
        return ()
    known = ({name: value for name, value in each.items() if name in SIGNALS} for each in signals)
    return tuple(map(LoggedCandidate, ids, known))
