"""Recall of pages and memories: which weights of its signals put what is wanted first.

What is wanted is known from the project's own log of recalls (what was read soon after), or from a
public set of questions whose evidence is marked (LongMemEval). Both are a `RecallLog`: candidates
with their signals, and the good ones; so a configuration costs microseconds a recall.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from random import Random
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hotset.errors import BadInput
from hotset.index.embed.table import WordVectors
from hotset.index.local import LocalIndex
from hotset.nouns.knobs import Knobs
from hotset.nouns.page import Kind, PageId, Role
from hotset.replay.conversation import RecordedMessage, RecordedSession
from hotset.replay.evolve_fitness import SessionScore, rounded
from hotset.replay.evolve_search import Gene
from hotset.replay.learning import KnownSessions, keep_learned, plan_learning
from hotset.sealing import VERSION
from hotset.sources.history import follow
from hotset.sources.memory.memory_writer import follow_memories, remember_session
from hotset.sources.memory.recall import RecallQuery, recall
from hotset.sources.memory.recall_signals import (
    DEFAULT,
    SIGNALS,
    LoggedCandidate,
    RecallLog,
    recall_log,
)
from hotset.store.port import Store, Where
from hotset.store.sqlite import SqliteStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_TOGETHER = 5  # recalls that are one session for a search: one alone says yes or no
_FIRST = 10  # of the order, that are shown
_CANDIDATES = 60
_PATIENT = 30.0  # seconds for a recall
_DAY, _AN_HOUR = 86_400.0, 3600.0
_SIGNALS = "memory.signals"


@dataclass(frozen=True, slots=True)
class _ScoredRecall:
    signals: Floats
    """Axes: candidate, signal. The candidates are in random order: it must not say which is
    good."""
    good: frozenset[int]

    def score(self, weights: Floats) -> tuple[float, float]:
        """NDCG of the first ten, and the share of these that are read until the last good one."""
        import numpy as np  # noqa: PLC0415

        order = np.argsort(-(self.signals @ weights), kind="stable")[:_FIRST]
        ranks = [rank for rank, at in enumerate(order.tolist()) if at in self.good]
        ideal = sum(1 / np.log2(rank + 2) for rank in range(min(_FIRST, len(self.good))))
        gain = sum(1 / np.log2(rank + 2) for rank in ranks)
        missed = 1 - len(ranks) / min(_FIRST, len(self.good))
        until = (ranks[-1] + 1) / _FIRST if ranks else 1.0
        return float(gain / ideal), missed + (1 - missed) * until


@dataclass(frozen=True, slots=True)
class RecallPart:
    """The weights of recall."""

    groups: Sequence[tuple[str, Sequence[_ScoredRecall]]]
    genes: Sequence[Gene]
    name: str = "memory"

    @classmethod
    def of(cls, logs: Sequence[RecallLog], genes: Sequence[Gene]) -> RecallPart:
        """`logs`: in order of time."""
        told = [log for log in logs if _is_informative(log)]
        parts = [told[at : at + _TOGETHER] for at in range(0, len(told), _TOGETHER)]
        return cls([_group(part) for part in parts if len(part) == _TOGETHER], genes)

    @property
    def sessions(self) -> Sequence[str]:
        return [name for name, _ in self.groups]

    def judge(self, knobs: Knobs, session: int) -> SessionScore:
        import numpy as np  # noqa: PLC0415

        given = {**DEFAULT.as_dict(), **knobs.memory.signals}
        weights = np.array([given[name] for name in SIGNALS])
        scores = [each.score(weights) for each in self.groups[session][1]]
        return SessionScore(
            rounded(fmean(task for task, _ in scores)), rounded(fmean(spent for _, spent in scores))
        )

    def shuffled(self, seed: int) -> RecallPart:
        return replace(self, groups=[_shuffle(name, each, seed) for name, each in self.groups])


def recall_genes(knobs: Knobs) -> list[Gene]:
    """One for each signal; what has no weight stays without."""
    given = {**DEFAULT.as_dict(), **knobs.memory.signals}
    return [
        Gene(f"{_SIGNALS}.{name}", given[name], "retrieve", *_range(given[name]))
        for name in SIGNALS
        if given[name]
    ]


def _range(weight: float) -> tuple[float, float]:
    far = 3 * weight
    return (far, 0.0) if weight < 0 else (0.0, max(far, 1.0))


def _is_informative(log: RecallLog) -> bool:
    ids = {each.id for each in log.candidates}
    return bool(ids & log.good) and not ids <= log.good


def _group(logs: Sequence[RecallLog]) -> tuple[str, Sequence[_ScoredRecall]]:
    import numpy as np  # noqa: PLC0415

    scored = []
    said = sha256()
    for log in logs:
        ids = " ".join(each.id for each in log.candidates)
        said.update(f"{ids} {sorted(log.good)}".encode())
        order = list(log.candidates)
        Random(ids).shuffle(order)  # noqa: S311 - no secret
        rows = [[each.signals.get(name, 0.0) for name in SIGNALS] for each in order]
        said.update(repr(rows).encode())
        good = frozenset(at for at, each in enumerate(order) if each.id in log.good)
        scored.append(_ScoredRecall(np.array(rows, np.float64), good))
    return said.hexdigest()[:16], scored


def _shuffle(
    name: str, recalls: Sequence[_ScoredRecall], seed: int
) -> tuple[str, Sequence[_ScoredRecall]]:
    rng = Random(f"{seed} {name}")  # noqa: S311 - no secret
    moved = [
        replace(each, good=frozenset(rng.sample(range(len(each.signals)), len(each.good))))
        for each in recalls
    ]
    return f"{name}-{seed}", moved


def stored_recalls(store: Store) -> list[RecallLog]:
    """What the project's sessions recalled, and what they read of it."""
    return list(recall_log(store.events()))


# LongMemEval


def is_question_file(path: Path) -> bool:
    """True for a file of questions over marked conversations, as LongMemEval has."""
    try:
        with _opened(path) as file:
            return b'"haystack_' in file.read(1 << 16)
    except OSError:  # a folder, or no file: whoever reads it says so
        return False


def _opened(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def question_recalls(path: Path, step: Callable[[], None] = lambda: None) -> list[RecallLog]:
    """Keeps all conversations of such a file in one scratch store, makes memories of them, and asks
    every question there. In order of the questions' dates. `step` after each session and question.
    """
    try:
        with _opened(path) as file:
            rows = sorted(json.load(file), key=lambda row: _moment(row["question_date"]))
        sessions = _sessions(rows)
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: not as LongMemEval writes it ({error})") from error
    with (
        TemporaryDirectory(prefix="hotset-evolve-") as folder,
        SqliteStore.open(Path(folder)) as store,
        closing(_index(Path(folder) / "index")) as index,
    ):
        known = KnownSessions(store)
        for session in sessions:
            keep_learned(store, plan_learning(session, path, known, None))
            step()
        for kept in sorted(store.sessions(), key=lambda each: each.started):
            remember_session(store, kept.id, kept.started + _DAY, lambda _: ())
            step()
        until = time.monotonic() + _AN_HOUR
        follow(store, index, until)
        follow_memories(store, index, until)
        index.fold()
        pages: dict[str, set[PageId]] = {}
        for page in store.pages(Where(kinds=frozenset({Kind.PROMPT, Kind.RESPONSE}))):
            text = store.content(page.digest).decode("utf-8", "replace")
            pages.setdefault(text, set()).add(page.id)
        return list(_asked(rows, pages, store, index, step))


def _index(folder: Path) -> LocalIndex:
    return LocalIndex(folder, WordVectors(), None, sealing=VERSION, folds=False)


def _asked(
    rows: Sequence[Any],
    pages: dict[str, set[PageId]],
    store: Store,
    index: LocalIndex,
    step: Callable[[], None],
) -> Iterator[RecallLog]:
    for row in rows:
        marked = (
            turn["content"]
            for turns in row["haystack_sessions"]
            for turn in turns
            if turn.get("has_answer")
        )
        good = frozenset(id for text in marked for id in pages.get(text, ()))
        asking = RecallQuery(
            row["question"],
            _moment(row["question_date"]),
            memories=False,
            most=_CANDIDATES,
            deadline=_PATIENT,
        )
        items = recall(asking, index, store).items
        candidates = tuple(LoggedCandidate(item.id, _without_age(item.signals)) for item in items)
        yield RecallLog(candidates, good)
        step()


def _without_age(signals: Mapping[str, float]) -> dict[str, float]:
    """All conversations of all questions stand in one store, where a question's own are the
    nearest in time: what that says holds for no other store."""
    return {name: value for name, value in signals.items() if name != "recent"}


def _sessions(rows: Sequence[Any]) -> list[RecordedSession]:
    found: dict[str, RecordedSession] = {}
    for row in rows:
        named = zip(
            row["haystack_session_ids"],
            row["haystack_dates"],
            row["haystack_sessions"],
            strict=True,
        )
        for id, when, turns in named:
            if id not in found:
                began = _moment(when)
                messages = tuple(
                    RecordedMessage(Role(turn["role"]), turn["content"] or " ", time=began + at)
                    for at, turn in enumerate(turns)
                )
                found[id] = RecordedSession(id, "longmemeval", "claude-sonnet-4", messages)
    return list(found.values())


def _moment(date: str) -> float:
    return (
        datetime.strptime(f"{date[:10]} {date[-5:]}", "%Y/%m/%d %H:%M")
        .replace(tzinfo=UTC)
        .timestamp()
    )
