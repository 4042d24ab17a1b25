"""What memory costs in tokens and what it saves, for each task and session, and which of six limits that crosses.

Kept as events: numbers and ids, never a topic or another word of a memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from hotset.nouns.memory import Layer, MemoryId, Task
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event
from hotset.sources.memory.disclosing.unfolding import TOP_TOPICS, Load

LOADED = "MemoryLoaded"
"""The name of the event."""

_MOST_IDS = 16  # of one load: more are not shown in full at once
_LAYERS: Mapping[str | float | None, Layer] = {layer.value: layer for layer in Layer}
_TASKS: Mapping[str | float | None, Task] = {task.value: task for task in Task}


class Metric(StrEnum):
    """In their order of priority: what costs with every question before what is a matter of structure."""

    RATIO = "ratio"
    """Tokens spent on finding out what there is, for each token that was read."""
    SAVINGS = "savings"
    """Of the tokens of everything, the share that was not spent."""
    FULL_LOADS = "full_loads"
    """In one task."""
    DISCOVERY = "discovery_tokens"
    TIMELINE = "timeline_tokens"
    """For each question."""
    SAVED = "tokens_saved"
    """In a session."""


class Remedy(StrEnum):
    """What is done where a limit is crossed."""

    COMPRESS = "compress"
    RESCORE = "rescore"
    COMPOSE = "compose"
    REORGANISE = "reorganise"
    SPLIT = "split"
    BYPASS = "bypass"


Occasion = Literal["task", "session", "trigger"]
"""When it is looked at: behind each task, behind a session, and in the middle of a task on its third full load."""


@dataclass(frozen=True, slots=True)
class Threshold:
    metric: Metric
    limit: float
    remedy: Remedy
    is_least: bool = False
    """Below it is too little; else above it is too much."""


THRESHOLDS = (
    Threshold(Metric.RATIO, 0.15, Remedy.COMPRESS),
    Threshold(Metric.SAVINGS, 0.5, Remedy.RESCORE, is_least=True),
    Threshold(Metric.FULL_LOADS, 3, Remedy.COMPOSE),
    Threshold(Metric.DISCOVERY, 200, Remedy.REORGANISE),
    Threshold(Metric.TIMELINE, 100, Remedy.SPLIT),
    Threshold(Metric.SAVED, 1000, Remedy.BYPASS, is_least=True),
)

TRIGGER_LOADS = 3
"""The full load of a task on which it is looked at before the task is over."""

_LOOKED_AT: Mapping[Occasion, frozenset[Metric]] = {
    "task": frozenset({Metric.RATIO, Metric.FULL_LOADS}),
    "session": frozenset(Metric),
    "trigger": frozenset({Metric.RATIO, Metric.FULL_LOADS}),
}


@dataclass(frozen=True, slots=True)
class Economics:
    """Of a task, or of a session."""

    index_loads: int = 0
    index_tokens: int = 0
    timeline_loads: int = 0
    timeline_tokens: int = 0
    full_loads: int = 0
    full_tokens: int = 0
    most_full_loads: int = 0
    """In one task."""
    available: int = 0
    """Tokens of all that was remembered at the time: what loading everything would have taken, once."""
    asked: int = 0
    """Loads that the model asked for itself."""
    task: Task | None = None
    """What was done most, where that is known."""
    together: tuple[tuple[str, ...], ...] = ()
    """The topics of each full load, where somebody could tell them."""

    @property
    def loads(self) -> int:
        return self.index_loads + self.timeline_loads + self.full_loads

    @property
    def discovery_tokens(self) -> int:
        return self.index_tokens + self.timeline_tokens

    @property
    def read_tokens(self) -> int:
        return self.full_tokens

    @property
    def spent(self) -> int:
        return self.discovery_tokens + self.read_tokens

    @property
    def ratio(self) -> float | None:
        """None where nothing was read: an index that nobody needed more than is no overhead of reading."""
        return self.discovery_tokens / self.read_tokens if self.read_tokens else None

    @property
    def saved(self) -> int:
        """Below 0 where it took more than everything would have."""
        return self.available - self.spent

    @property
    def savings(self) -> float | None:
        return self.saved / self.available if self.available else None

    @property
    def timeline_per_load(self) -> float:
        return self.timeline_tokens / self.timeline_loads if self.timeline_loads else 0.0

    def value(self, metric: Metric) -> float | None:
        """None where there is nothing to judge."""
        if not self.loads:
            return None
        values: dict[Metric, float | None] = {
            Metric.RATIO: self.ratio,
            Metric.SAVINGS: self.savings,
            Metric.FULL_LOADS: self.most_full_loads,
            Metric.DISCOVERY: self.discovery_tokens,
            Metric.TIMELINE: self.timeline_per_load,
            Metric.SAVED: self.saved,
        }
        return values[metric]


@dataclass(frozen=True, slots=True)
class Breach:
    """A limit that was crossed."""

    metric: Metric
    value: float
    threshold: float
    remedy: Remedy


def check(occasion: Occasion, economics: Economics) -> tuple[Breach, ...]:
    """The limits that were crossed, the weightiest first. The trigger says nothing before the third full load of a task."""
    if occasion == "trigger" and economics.most_full_loads < TRIGGER_LOADS:
        return ()
    breaches = []
    for each in THRESHOLDS:
        value = economics.value(each.metric)
        if each.metric in _LOOKED_AT[occasion] and value is not None and _is_crossed(each, value):
            breaches.append(Breach(each.metric, value, each.limit, each.remedy))
    return tuple(breaches)


def loaded_event(
    load: Load,
    now: float,
    *,
    available: int,
    session: SessionId | None = None,
    turn: int = 0,
    task: Task | None = None,
    prompt: int = 0,
    asked: bool = False,
) -> Event:
    """A load as it is kept. `prompt` is the turn with which the task began; `asked` says that the model wanted it."""
    detail: dict[str, str | int | float] = {
        "layer": load.layer,
        "tokens": load.tokens,
        "topics": len(load.topics),
        "all": available,
        "task": task or "",
        "prompt": prompt,
        "asked": int(asked),
        "ids": " ".join(load.ids[:_MOST_IDS]),
    }
    return Event(LOADED, now, session, turn, detail)


Topics = Callable[[MemoryId], Sequence[str]]
"""The topics of a memory; none where there is no such memory any more."""


def economics_of(events: Iterable[Event], topics: Topics = lambda _id: ()) -> Economics:
    """Of all loads among the events: give those of one session, or of one task (see `by_task`)."""
    loads = [each for event in events if (each := _load(event)) is not None]
    of_layer = {layer: [each for each in loads if each.layer is layer] for layer in Layer}
    full = of_layer[Layer.FULL]
    by_prompt = [sum(1 for each in full if each.key == key) for key in dict.fromkeys(each.key for each in full)]
    tasks = [each.task for each in loads if each.task is not None]
    return Economics(
        index_loads=len(of_layer[Layer.INDEX]),
        index_tokens=sum(each.tokens for each in of_layer[Layer.INDEX]),
        timeline_loads=len(of_layer[Layer.TIMELINE]),
        timeline_tokens=sum(each.tokens for each in of_layer[Layer.TIMELINE]),
        full_loads=len(full),
        full_tokens=sum(each.tokens for each in full),
        most_full_loads=max(by_prompt, default=0),
        available=max((each.available for each in loads), default=0),
        asked=sum(each.asked for each in loads),
        task=max(dict.fromkeys(tasks), key=tasks.count) if tasks else None,
        together=tuple(named for each in full if (named := _named(each.ids, topics))),
    )


def by_task(events: Iterable[Event]) -> dict[tuple[SessionId | None, int], list[Event]]:
    """The loads of each task, by its session and the turn with which it began, in their order."""
    tasks: dict[tuple[SessionId | None, int], list[Event]] = {}
    for event in events:
        if (load := _load(event)) is not None:
            tasks.setdefault(load.key, []).append(event)
    return tasks


@dataclass(frozen=True, slots=True)
class _Loaded:
    key: tuple[SessionId | None, int]
    layer: Layer
    tokens: int
    available: int
    asked: bool
    task: Task | None
    ids: tuple[MemoryId, ...]


def _load(event: Event) -> _Loaded | None:
    """None where it is none, or one that somebody else wrote."""
    detail = event.detail
    layer, task = detail.get("layer"), detail.get("task")
    if event.name != LOADED or layer not in _LAYERS:
        return None
    return _Loaded(
        (event.session, _number(detail.get("prompt"))),
        _LAYERS[layer],
        _number(detail.get("tokens")),
        _number(detail.get("all")),
        bool(_number(detail.get("asked"))),
        _TASKS.get(task),
        tuple(MemoryId(id) for id in str(detail.get("ids", "")).split()),
    )


def _number(value: str | float | None) -> int:
    return int(value) if isinstance(value, int | float) and value >= 0 else 0


def _named(ids: Sequence[MemoryId], topics: Topics) -> tuple[str, ...]:
    """The topics that most of a load's memories have, as many as a load is made for."""
    often = Counter(topic for id in ids for topic in dict.fromkeys(topics(id)))
    return tuple(topic for topic, _ in often.most_common(TOP_TOPICS))


def _is_crossed(threshold: Threshold, value: float) -> bool:
    return value < threshold.limit if threshold.is_least else value > threshold.limit
