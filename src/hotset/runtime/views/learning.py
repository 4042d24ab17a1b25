"""What was learned over time, as curves that are short enough to draw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

from msgspec import to_builtins

from hotset.files.lru import Lru
from hotset.learn.events import LEARN_EVENTS
from hotset.learn.ranges import knob_ranges
from hotset.learn.trials import DAY
from hotset.nouns.knobs import Knobs
from hotset.runtime.knob_texts import knob_text
from hotset.runtime.learning_history import (
    DECISIONS,
    NO_HISTORY,
    BeliefPoint,
    DayShares,
    KnobStep,
    LearningHistory,
    learning_history,
)
from hotset.runtime.learning_view import knob_value
from hotset.runtime.views.project import ViewedProject
from hotset.store.port import Store

_MOST_STEPS = 200  # of a knob
_MOST_POINTS = 400  # of a belief, and of shares
_T = TypeVar("_T", DayShares, BeliefPoint)


@dataclass(frozen=True, slots=True)
class KnobCurve:
    """The values of a knob over time."""

    knob: str
    what: str
    """What it is, in half a sentence."""
    default: Any
    steps: tuple[KnobStep, ...]
    """The earliest first. The first one may be from before `since`: its value held then."""
    left_out: int
    """Earlier steps that are not among them."""


@dataclass(frozen=True, slots=True)
class KnobCurves:
    rows: tuple[KnobCurve, ...]
    """Those that changed last come first."""
    total: int
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class ShareCurves:
    days: tuple[DayShares, ...]
    """The earliest first; days between them are left out where there are many."""
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class BeliefCurve:
    """Where the best value of a knob probably lay, over time."""

    knob: str
    what: str
    default: float
    points: tuple[BeliefPoint, ...]
    """The earliest first; days between them are left out where there are many."""


@dataclass(frozen=True, slots=True)
class BeliefCurves:
    rows: tuple[BeliefCurve, ...]
    total: int
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class CurveSpan:
    """Which curves, and how far back."""

    days: int = 90
    """0 for all."""
    offset: int = 0
    limit: int = 20


def read_knob_curves(project: ViewedProject, span: CurveSpan, knob: str = "") -> KnobCurves:
    """Of the knobs whose value was learned or ordered, or of one of them."""
    steps: dict[str, list[KnobStep]] = {}
    for each in _read_history(project, DECISIONS).knobs:
        if knob in ("", each.knob):
            steps.setdefault(each.knob, []).append(each)
    now = project.clock()
    since = _since(now, span, (each[0].time for each in steps.values()))
    names = sorted(steps, key=lambda each: (-steps[each][-1].time, each))
    rows = (_knob_curve(each, steps[each], since) for each in _paged(names, span))
    return KnobCurves(tuple(rows), len(names), since, now)


def read_share_curves(project: ViewedProject, span: CurveSpan) -> ShareCurves:
    """Of the arms of new sessions."""
    found, now = _read_history(project, DECISIONS).shares, project.clock()
    since = _since(now, span, (each.day for each in found))
    return ShareCurves(_thinned(_held_at(found, since)), since, now)


def read_belief_curves(project: ViewedProject, span: CurveSpan) -> BeliefCurves:
    """Of the knobs that sessions explored."""
    points: dict[str, list[BeliefPoint]] = {}
    has_beliefs = _read_history(project, DECISIONS).explored
    for each in _read_history(project, LEARN_EVENTS).beliefs if has_beliefs else ():
        points.setdefault(each.knob, []).append(each)
    now = project.clock()
    since = _since(now, span, (each[0].day for each in points.values()))
    rows = tuple(
        BeliefCurve(each, knob_text(each), default, _thinned(_held_at(points[each], since)))
        for each in _paged(sorted(points), span)
        if (default := _default_position(each)) is not None
    )
    return BeliefCurves(rows, len(points), since, now)


@dataclass(frozen=True, slots=True)
class _KnownHistory:
    history: LearningHistory
    time: float
    """Of its last event: another store in the same folder has another one."""


_known: Lru[tuple[str, frozenset[str]], _KnownHistory] = Lru("histories of learning", count=4)
_lock = Lock()
"""One reader folds the events; the others wait for what it finds."""


def _read_history(project: ViewedProject, names: frozenset[str]) -> LearningHistory:
    """The history of a project, from events of these names; only those that came since the last
    look are read."""
    store, key = project.store, (str(project.config.folder), names)
    with _lock:
        known = _known.get(key)
        if known is not None and not _is_of(known, store):
            known = None
        before = known.history if known is not None else NO_HISTORY
        history = learning_history(store, before, names)
        last = _event_time(store, history.state.number)
        if last is not None:
            _known.put(key, _KnownHistory(history, last))
        return history


def _is_of(known: _KnownHistory, store: Store) -> bool:
    return _event_time(store, known.history.state.number) == known.time


def _event_time(store: Store, number: int) -> float | None:
    found = store.events_after(number - 1, 1, LEARN_EVENTS)
    return next((event.time for each, event in found if each == number), None)


def _since(now: float, span: CurveSpan, firsts: Iterable[float]) -> float:
    return now - span.days * DAY if span.days else min(firsts, default=now)


def _paged(names: Sequence[str], span: CurveSpan) -> Sequence[str]:
    return names[span.offset : span.offset + span.limit]


def _knob_curve(knob: str, steps: Sequence[KnobStep], since: float) -> KnobCurve:
    held = max((at for at, each in enumerate(steps) if each.time <= since), default=0)
    first = max(held, len(steps) - _MOST_STEPS)
    default = to_builtins(knob_value(Knobs(), knob), order="sorted")
    return KnobCurve(knob, knob_text(knob), default, tuple(steps[first:]), first)


def _held_at(found: Sequence[_T], since: float) -> Sequence[_T]:
    """With the one that held at first."""
    held = max((at for at, each in enumerate(found) if each.day <= since), default=0)
    return found[held:]


def _thinned(found: Sequence[_T]) -> tuple[_T, ...]:
    """Evenly, with the last one."""
    step = -(-len(found) // _MOST_POINTS)
    return tuple(reversed(found[::-1][::step])) if step > 1 else tuple(found)


def _default_position(knob: str) -> float | None:
    found = knob_ranges().get(knob)
    return found.value(found.prior) if found is not None else None
