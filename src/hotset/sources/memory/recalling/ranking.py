"""One order from many signals: each between 0 and 1 for this question, times its weight, summed. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hotset.nouns.memory import Ending, Episode, Memory, MemoryKind, Standing, Task, Uses
from hotset.sources.memory.recalling.signals import Candidate, has_number, own_statements
from hotset.sources.memory.recalling.tasks import KIND_WEIGHTS
from hotset.sources.memory.recalling.weights import Weights
from hotset.sources.memory.recalling.when import Spoken, fits

Signals = dict[str, float]
"""By a signal's name."""

DAY = 86_400.0

_PERSON = "prompt"

_FLOOR = 1 / 3  # the share of cosines that say nothing: the least of those that were found is near the middle of all
_LEAST_SPAN = 0.2  # of cosines: what differs by less is alike, and must not be told apart where only two were found
_RECENT_DAYS = 30.0  # after so many days it counts a third
_OTHER_KINDS = 0.3  # of kinds that the tasks' table does not name
_MANY_USES = 20  # reads from which on more make no difference


@dataclass(frozen=True, slots=True)
class Setting:
    """What a question wants beside its words."""

    now: float
    task: Task
    spoken: Spoken = field(default_factory=Spoken)
    """The time that it speaks of."""
    of_the_model: bool = False
    """It asks what the model said."""
    of_oneself: bool = False
    for_a_number: bool = False

    @property
    def has_range(self) -> bool:
        return self.spoken.since is not None or self.spoken.until is not None


def first_signals(candidates: Mapping[str, Candidate], setting: Setting) -> dict[str, Signals]:
    """By what the index knows alone."""
    words = _shares({key: each.words for key, each in candidates.items()})
    windows = _shares({key: each.window for key, each in candidates.items()})
    meaning = _above_floor({key: each.meaning for key, each in candidates.items()})
    late = _places(candidates) if setting.spoken.latest or setting.spoken.first else {}
    signals: dict[str, Signals] = {}
    for key, each in candidates.items():
        found = {"words": words.get(key, 0.0), "meaning": meaning.get(key, 0.0), "window": windows.get(key, 0.0)}
        found["recent"] = _recency(each.time, setting.now)
        if setting.has_range:
            found["when"] = fits(each.time, setting.spoken)
        if late:
            found["latest"] = late[key] if setting.spoken.latest else 1.0 - late[key]
        if each.is_talk:
            found["speaker"] = float(each.kind == _PERSON and not setting.of_the_model)
        else:
            found["kind"] = wanted_kind(MemoryKind(each.kind), setting.task)
        signals[key] = found
    return signals


def of_text(each: Candidate, setting: Setting) -> Signals:
    """What a person's words tell by themselves: looked at only where they may be shown."""
    if each.kind != _PERSON:
        return {}
    return {
        "told": own_statements(each.text) if setting.of_oneself else 0.0,
        "number": float(setting.for_a_number and has_number(each.text)),
    }


def wanted_kind(kind: MemoryKind, task: Task) -> float:
    """How much a task wants memories of this kind; of the one that it wants most, 1."""
    row = KIND_WEIGHTS[task]
    return row.get(kind, _OTHER_KINDS) / max(row.values())


def of_memory(memory: Memory, uses: Uses | None, setting: Setting) -> Signals:
    """What a memory's own record tells."""
    signals: Signals = {}
    if uses is not None:
        useful = uses.read + 2 * uses.helped - 2 * uses.misled
        signals["used"] = max(-1.0, min(1.0, math.copysign(math.log1p(abs(useful)) / math.log1p(_MANY_USES), useful)))
    if setting.task is Task.DEBUGGING and _went_wrong(memory):
        signals["failed"] = 1.0
    if memory.standing is Standing.SUPERSEDED and not held_then(memory, setting):
        signals["outdated"] = 1.0
    return signals


def held_then(memory: Memory, setting: Setting) -> bool:
    """The question is about a time before something else came to hold."""
    ended = memory.valid_until
    until = setting.spoken.until
    return setting.spoken.first or (until is not None and ended is not None and until <= ended)


def order(signals: Mapping[str, Signals], weights: Weights) -> list[tuple[str, float]]:
    """Keys with their scores, best first. Of equal ones the order is that of their names: nothing depends on who came first."""
    counts = weights.as_dict()
    scored = [(-sum(counts[name] * value for name, value in found.items() if value), key) for key, found in signals.items()]
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


def _places(candidates: Mapping[str, Candidate]) -> dict[str, float]:
    """From 0 for the earliest to 1 for the latest, by place: one that is years older makes the others no more alike."""
    times = sorted({each.time for each in candidates.values()})
    place = {time: at / max(1, len(times) - 1) for at, time in enumerate(times)}
    return {key: place[each.time] for key, each in candidates.items()}


def _recency(time: float, now: float) -> float:
    return math.exp(-abs(now - time) / (_RECENT_DAYS * DAY))


def _went_wrong(memory: Memory) -> bool:
    return memory.ending is Ending.FAILURE or (isinstance(memory.detail, Episode) and bool(memory.detail.troubles))
