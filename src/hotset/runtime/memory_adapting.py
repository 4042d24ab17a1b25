"""The weights of a store's own recalls, learned from which of the memories that were found were then read.

Each recall is logged with the signals of what it found, as numbers; a reading of one of these in the same session soon after says
that it was wanted. Every set of weights can so be judged on the same recalls, without trying it out on anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from hotset.nouns.memory import Layer, Task
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event
from hotset.sources.memory.disclosing.economics import LOADED
from hotset.sources.memory.recalling.adapting import Adapted, Candidate, Logged, adapt
from hotset.sources.memory.recalling.weights import DEFAULT, SIGNALS

RECALLED = "Recalled"
"""The name of the event."""

_SOON = 900.0
"""Seconds within which a reading belongs to a recall."""

_DIGITS = 4


def recalled_event(
    candidates: Sequence[tuple[str, Mapping[str, float]]], now: float, session: SessionId | None, task: Task, ms: float
) -> Event:
    """Ids and numbers, never a word of what was asked or found."""
    signals = [{name: round(value, _DIGITS) for name, value in each.items() if value} for _, each in candidates]
    detail: dict[str, str | int | float] = {
        "ids": " ".join(id for id, _ in candidates),
        "signals": msgspec.json.encode(signals).decode(),
        "task": str(task),
        "ms": round(ms, 1),
    }
    return Event(RECALLED, now, session, 0, detail)


def adapted(events: Iterable[Event]) -> Adapted:
    """The weights that would have put what was read higher, where that is beyond doubt; otherwise the default ones."""
    return adapt(list(_log(events)), DEFAULT.as_dict())


@dataclass(slots=True)
class _Open:
    time: float
    candidates: tuple[Candidate, ...]
    good: set[str]


def _log(events: Iterable[Event]) -> Iterator[Logged]:
    asked: dict[SessionId | None, list[_Open]] = {}
    for event in events:
        if event.name == RECALLED and (candidates := _candidates(event.detail)):
            asked.setdefault(event.session, []).append(_Open(event.time, candidates, set()))
        elif event.name == LOADED and event.detail.get("layer") == Layer.FULL and event.detail.get("asked"):
            ids = str(event.detail.get("ids", "")).split()
            for each in asked.get(event.session, ()) if len(ids) == 1 else ():  # what a recall itself showed has several
                if 0 <= event.time - each.time <= _SOON and any(one.id == ids[0] for one in each.candidates):
                    each.good.add(ids[0])
    for every in asked.values():
        yield from (Logged(each.candidates, frozenset(each.good), frozenset()) for each in every if each.good)


def _candidates(detail: Mapping[str, str | int | float]) -> tuple[Candidate, ...]:
    ids = str(detail.get("ids", "")).split()
    try:
        signals = msgspec.json.decode(str(detail.get("signals", "")), type=list[dict[str, float]])
    except msgspec.DecodeError:  # somebody else's event
        return ()
    known = [{name: value for name, value in each.items() if name in SIGNALS} for each in signals]
    return tuple(Candidate(*pair) for pair in zip(ids, known, strict=False)) if len(ids) == len(known) else ()
