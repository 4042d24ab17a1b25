"""The strategy log: every offer, recall, search and retrieval with its strategies, what was
selected, what was used of it, and how the task came out. Read from the store; ids and numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from hotset.learn.events import OBSERVED, SessionFigures
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event
from hotset.runtime.audit import RETRIEVED, SEARCHED
from hotset.runtime.decision import asked_sources, logged_candidates, used_ids
from hotset.runtime.session_arm import arm_of_session
from hotset.sources.memory import OUTCOME
from hotset.store.port import Store
from hotset.typed import decode
from hotset.window.toolbox_tools import FIND

_RECALLED, _TOOLS_FOUND = "Recalled", "ToolsFound"
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
    """The log of one session, or of all in the order of their beginning, and then of what was
    asked outside of them."""
    sessions = [store.session(session)] if session is not None else list(store.sessions())
    observed = observed_figures(store)
    for each in sessions:
        events = list(store.events(each.id))
        outcome = _outcome(events, observed.get(each.id))
        log = _EventLog(each.id, arm_of_session(store, each.id).name, outcome, events)
        found = [*_offers(store, log), *log.entries()]
        yield from sorted(found, key=lambda entry: entry.timestamp)
    if session is None:
        known = {each.id for each in sessions}
        for name, events in _events_elsewhere(store, known).items():
            yield from _EventLog(name, "", _outcome(events, None), events).entries()


def _events_elsewhere(
    store: Store, known: Collection[SessionId]
) -> dict[SessionId | None, list[Event]]:
    """Events without a session (a program's, a person's) and of sessions that have no conversation
    here (an agent's over MCP)."""
    found: dict[SessionId | None, list[Event]] = {}
    for event in store.events():
        if event.session is None or event.session not in known:
            found.setdefault(event.session, []).append(event)
    return found


def _offers(store: Store, log: _EventLog) -> Iterator[StrategyEntry]:
    assert log.session is not None
    turns = list(store.turns(log.session))
    ids = [turn.id for turn in turns]
    asked, logged = asked_sources(store, ids), logged_candidates(store, ids)
    for turn in turns:
        if turn.id not in asked:
            continue
        strategies = tuple(
            RetrievalStrategy(each.name, each.results, round(each.ms, 1)) for each in asked[turn.id]
        )
        taken = tuple(each.key for each in logged.get(turn.id, ()) if each.is_taken)
        yield log.entry(
            turn.id, turn.started, "offer", turn=turn.number, strategies=strategies, shown=taken
        )


class _EventLog:
    """The entries of the events of one session, or of none."""

    def __init__(
        self, session: SessionId | None, arm: str, outcome: str, events: Sequence[Event]
    ) -> None:
        self.session = session
        self._arm = arm
        self._outcome = outcome
        self._events = events
        self._reads = _reads(events)

    def entries(self) -> Iterator[StrategyEntry]:
        where = f"{self.session[:8]}-" if self.session is not None else ""
        for number, event in enumerate(self._events):
            if event.name in (_RECALLED, RETRIEVED, SEARCHED, _TOOLS_FOUND):
                door, strategies, shown = _read_event(event)
                id = f"q-{_moment(event.time, '%Y%m%d')}-{where}{number:04}"
                yield self.entry(
                    id, event.time, door, turn=event.turn, strategies=strategies, shown=shown
                )

    def entry(
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
            self.session,
            turn,
            self._arm,
            strategies,
            shown,
            used,
            self._outcome,
            completed,
        )


def _read_event(event: Event) -> tuple[str, tuple[RetrievalStrategy, ...], tuple[str, ...]]:
    """The door of a look, its strategies, and what it showed."""
    detail = event.detail
    ms = float(detail.get("ms", 0.0))
    if event.name == _RECALLED:
        shown = tuple(str(detail.get("shown", "")).split())
        door, own = str(detail.get("door", "")) or "recall", str(detail.get("strategy", ""))
        by_signals = () if own else tuple(_recall_strategies(detail, ms))
        return door, by_signals or (RetrievalStrategy(own or door, len(shown), ms),), shown
    shown = tuple((str(detail.get("ids", "")) or str(detail.get("id", ""))).split())
    door = FIND if event.name == _TOOLS_FOUND else str(detail.get("tool", "search"))
    many = max(len(shown), int(detail.get("count", 0)), int(detail.get("found", 0)))
    return door, (RetrievalStrategy(door, many, ms),), shown


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


def _reads(events: Sequence[Event]) -> list[tuple[str, float]]:
    """Ids that were read on request or heeded, each with its time."""
    return [(id, event.time) for event in events for id in _read_ids(event) if id]


def _read_ids(event: Event) -> tuple[str, ...]:
    if event.name != RETRIEVED:
        return used_ids(event)
    named = str(event.detail.get("id", ""))
    return (named, *str(event.detail.get("ids", "")).split()) if named else ()


def _outcome(events: Sequence[Event], figures: SessionFigures | None) -> str:
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
