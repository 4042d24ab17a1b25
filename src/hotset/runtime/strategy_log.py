"""The strategy log: every offer, recall, search and retrieval with its strategies, what was
selected, what was used of it, and how the task came out. Read from the store; ids and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from hotset.learn.events import OBSERVED, SessionFigures
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event, Turn
from hotset.runtime.audit import RETRIEVED, SEARCHED
from hotset.runtime.decision import asked_sources, logged_candidates, used_ids
from hotset.runtime.session_arm import arm_of_session
from hotset.sources.memory import OUTCOME
from hotset.store.port import Store
from hotset.typed import decode

_RECALLED = "Recalled"
_SIGNALS = {
    "keyword": ("words", "window", "quoted"),
    "vector": ("meaning", "around", "closely"),
    "temporal": ("when", "recent", "latest"),
}
"""Signals of a recall by the strategy that they belong to."""

_DONE, _PARTLY = 0.75, 0.25  # of a session's success


class RetrievalStrategy(msgspec.Struct, frozen=True, omit_defaults=True):
    type: str
    """A source, a tool of the model's, or a family of signals."""
    results: int
    latency_ms: float


class StrategyEntry(msgspec.Struct, frozen=True):
    """One look for something that could help."""

    query_id: str
    timestamp: str
    door: str
    """`offer` with a prompt, `recall`, or the tool that was called."""
    session: str | None
    turn: int
    arm: str
    retrieval_strategies: tuple[RetrievalStrategy, ...]
    selected_memories: tuple[str, ...]
    """Ids of memories, pages, files or tools that were shown."""
    used: tuple[str, ...]
    """Of these, the ones that were read or heeded later in the session."""
    outcome: str
    """success, partial, failure or unknown."""
    task_completed: bool | None


def strategy_log(store: Store, session: SessionId | None = None) -> Iterator[StrategyEntry]:
    """The log of one session, or of all in the order of their beginning."""
    sessions = [store.session(session)] if session is not None else list(store.sessions())
    observed = observed_figures(store)
    for each in sessions:
        yield from _SessionLog(store, each.id, observed.get(each.id)).entries()
    if session is None:
        loose = (event for event in store.events() if event.session is None)
        yield from _SessionLog(store, None, None).of_events(loose)


class _SessionLog:
    """The entries of one session; of none, for what a program or a person asked."""

    def __init__(
        self, store: Store, session: SessionId | None, observed: SessionFigures | None
    ) -> None:
        self._store = store
        self._session = session
        events = list(store.events(session)) if session is not None else []
        self._events = events
        self._arm = arm_of_session(store, session).name if session is not None else ""
        self._reads = _reads(events)
        self._outcome = _outcome(events, observed)

    def entries(self) -> Iterator[StrategyEntry]:
        assert self._session is not None
        turns = list(self._store.turns(self._session))
        found = [*self._offers(turns), *self.of_events(self._events)]
        yield from sorted(found, key=lambda each: each.timestamp)

    def _offers(self, turns: list[Turn]) -> Iterator[StrategyEntry]:
        ids = [turn.id for turn in turns]
        asked, logged = asked_sources(self._store, ids), logged_candidates(self._store, ids)
        for turn in turns:
            if turn.id not in asked:
                continue
            strategies = tuple(
                RetrievalStrategy(each.name, each.results, round(each.ms, 1))
                for each in asked[turn.id]
            )
            taken = tuple(each.key for each in logged.get(turn.id, ()) if each.is_taken)
            yield self._entry(
                turn.id,
                turn.started,
                "offer",
                turn=turn.number,
                strategies=strategies,
                shown=taken,
            )

    def of_events(self, events: Iterator[Event] | list[Event]) -> Iterator[StrategyEntry]:
        for number, event in enumerate(events):
            if event.name not in (_RECALLED, RETRIEVED, SEARCHED):
                continue
            detail = event.detail
            ms = float(detail.get("ms", 0.0))
            shown = str(detail.get("shown" if event.name == _RECALLED else "ids", ""))
            door = "recall" if event.name == _RECALLED else str(detail.get("tool", "search"))
            strategies = (
                tuple(_recall_strategies(detail, ms))
                if event.name == _RECALLED
                else (RetrievalStrategy(door, len(shown.split()), ms),)
            )
            id = f"q-{_moment(event.time, '%Y%m%d')}-{number:04}"
            yield self._entry(
                id,
                event.time,
                door,
                turn=event.turn,
                strategies=strategies,
                shown=tuple(shown.split()),
            )

    def _entry(
        self,
        id: str,
        time: float,
        door: str,
        *,
        turn: int,
        strategies: tuple[RetrievalStrategy, ...],
        shown: tuple[str, ...],
    ) -> StrategyEntry:
        used = tuple(
            each for each in shown if any(each == id and time <= at for id, at in self._reads)
        )
        completed = {"success": True, "failure": False, "partial": False}.get(self._outcome)
        return StrategyEntry(
            id,
            _moment(time, "%Y-%m-%dT%H:%M:%SZ"),
            door,
            self._session,
            turn,
            self._arm,
            strategies,
            shown,
            used,
            self._outcome,
            completed,
        )


def _recall_strategies(detail: Mapping[str, Any], ms: float) -> Iterator[RetrievalStrategy]:
    """The strategies of a recall with the candidates that each had; the time is the recall's."""
    try:
        signals = decode(str(detail.get("signals", "")), list[dict[str, float]])
    except msgspec.DecodeError:
        return
    for type, names in _SIGNALS.items():
        results = sum(any(each.get(name) for name in names) for each in signals)
        if results:
            yield RetrievalStrategy(type, results, ms)


def _reads(events: list[Event]) -> list[tuple[str, float]]:
    """Ids that were read on request or heeded, each with its time."""
    return [(id, event.time) for event in events for id in _read_ids(event) if id]


def _read_ids(event: Event) -> tuple[str, ...]:
    if event.name != RETRIEVED:
        return used_ids(event)
    named = str(event.detail.get("id", ""))
    return (named, *str(event.detail.get("ids", "")).split()) if named else ()


def _outcome(events: list[Event], figures: SessionFigures | None) -> str:
    """How the session's work came out: as the client said, else as it was observed."""
    told = [str(event.detail.get("outcome", "")) for event in events if event.name == OUTCOME]
    if told:
        return told[-1]
    if figures is None or figures.success is None:
        return "unknown"
    if figures.success >= _DONE:
        return "success"
    return "partial" if figures.success >= _PARTLY else "failure"


def observed_figures(store: Store) -> dict[str, SessionFigures]:
    """The figures of every observed session."""
    found: dict[str, SessionFigures] = {}
    for event in store.events(name=OBSERVED):
        try:
            figures = decode(str(event.detail.get("data", "")), SessionFigures)
        except msgspec.DecodeError:
            continue
        found[figures.session] = figures
    return found


def _moment(time: float, format: str) -> str:
    return datetime.fromtimestamp(time, UTC).strftime(format)
