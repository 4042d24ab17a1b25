"""Cost and savings of memory in tokens by task and session, the six limits on them, and the
remedies.

Stored as events: numbers and ids, never a topic or other words of a memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from math import ceil
from typing import TYPE_CHECKING, Literal

from hotset.errors import Conflict
from hotset.nouns.memory import (
    Arrangement,
    Layer,
    MemoryId,
    MemoryKind,
    MemoryRecord,
    Provenance,
    Task,
    Trust,
    Uses,
)
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event
from hotset.sources.memory.data_lines import DAY
from hotset.sources.memory.kinds import RULES, memory_id
from hotset.sources.memory.layers import (
    MEMORY_TOKENS,
    SPLIT_TOKENS,
    TIMELINE_TOKENS,
    TOP_TOPICS,
    Load,
    fitting_topics,
    ranked_topics,
    render_timeline,
    shown_as,
    stale_since,
    whole_index,
)
from hotset.sources.memory.memory_text import layer_of, render_memories
from hotset.sources.memory.memory_writer import KEEP_SECONDS, commit, known_memory, next_version
from hotset.sources.memory.overview import Overview, Topic
from hotset.store.port import Store
from hotset.text.terms import terms
from hotset.tokens import count

if TYPE_CHECKING:
    from hotset.sources.memory.recall import RecalledItem


LOADED = "MemoryLoaded"
"""The name of the event."""

_DIGITS = 4
_MOST_IDS = 16  # of one load: no more are shown in full at once
_LAYERS: Mapping[str | float | None, Layer] = {layer.value: layer for layer in Layer}
_TASKS: Mapping[str | float | None, Task] = {task.value: task for task in Task}


class Metric(StrEnum):
    """By priority: costs of every question before matters of structure."""

    RATIO = "ratio"
    """Discovery tokens for each token that was read."""
    SAVINGS = "savings"
    """The share of all memory's tokens that was not spent."""
    FULL_LOADS = "full_loads"
    """In one task."""
    DISCOVERY = "discovery_tokens"
    TIMELINE = "timeline_tokens"
    """For each question."""
    SAVED = "tokens_saved"
    """In a session."""


class Remedy(StrEnum):
    """The reaction to a breached limit."""

    COMPRESS = "compress"
    RESCORE = "rescore"
    COMPOSE = "compose"
    REORGANISE = "reorganise"
    SPLIT = "split"
    BYPASS = "bypass"


Occasion = Literal["task", "session", "trigger"]
"""When limits are checked: after a task, after a session, and within a task on its third full
load."""


@dataclass(frozen=True, slots=True)
class EconomicsLimit:
    metric: Metric
    limit: float
    remedy: Remedy
    is_least: bool = False
    """A minimum; otherwise a maximum."""


LIMITS = (
    EconomicsLimit(Metric.RATIO, 0.15, Remedy.COMPRESS),
    EconomicsLimit(Metric.SAVINGS, 0.5, Remedy.RESCORE, is_least=True),
    EconomicsLimit(Metric.FULL_LOADS, 3, Remedy.COMPOSE),
    EconomicsLimit(Metric.DISCOVERY, 200, Remedy.REORGANISE),
    EconomicsLimit(Metric.TIMELINE, 100, Remedy.SPLIT),
    EconomicsLimit(Metric.SAVED, 1000, Remedy.BYPASS, is_least=True),
)

TRIGGER_LOADS = 3
"""The full load of a task on which limits are checked before it ends."""

_LOOKED_AT: Mapping[Occasion, frozenset[Metric]] = {
    "task": frozenset({Metric.RATIO, Metric.FULL_LOADS}),
    "session": frozenset(Metric),
    "trigger": frozenset({Metric.RATIO, Metric.FULL_LOADS}),
}


@dataclass(frozen=True, slots=True)
class Economics:
    """Of a task or a session."""

    index_loads: int = 0
    index_tokens: int = 0
    timeline_loads: int = 0
    timeline_tokens: int = 0
    full_loads: int = 0
    read_tokens: int = 0
    most_full_loads: int = 0
    """In one task."""
    available: int = 0
    """Tokens of all memories at the time: the cost of loading everything once."""
    asked: int = 0
    """Loads that the model requested."""
    task: Task | None = None
    """The most frequent task, if known."""
    together: tuple[tuple[str, ...], ...] = ()
    """The topics of each full load, if known."""

    @property
    def loads(self) -> int:
        return self.index_loads + self.timeline_loads + self.full_loads

    @property
    def discovery_tokens(self) -> int:
        return self.index_tokens + self.timeline_tokens

    @property
    def spent(self) -> int:
        return self.discovery_tokens + self.read_tokens

    @property
    def ratio(self) -> float | None:
        """None if nothing was read: an index that was enough is no overhead of reading."""
        return self.discovery_tokens / self.read_tokens if self.read_tokens else None

    @property
    def saved(self) -> int:
        """Negative if it took more than loading everything."""
        return self.available - self.spent

    @property
    def savings(self) -> float | None:
        return self.saved / self.available if self.available else None

    @property
    def timeline_per_load(self) -> float:
        return self.timeline_tokens / self.timeline_loads if self.timeline_loads else 0.0

    def value(self, metric: Metric) -> float | None:
        """None if there is nothing to judge."""
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
    """A breached limit."""

    metric: Metric
    value: float
    threshold: float
    remedy: Remedy


def check(occasion: Occasion, economics: Economics) -> tuple[Breach, ...]:
    """The breached limits by priority. The trigger checks nothing before the third full load of a
    task."""
    if occasion == "trigger" and economics.most_full_loads < TRIGGER_LOADS:
        return ()
    breaches = []
    for each in LIMITS:
        value = economics.value(each.metric)
        if each.metric not in _LOOKED_AT[occasion] or value is None:
            continue
        if value < each.limit if each.is_least else value > each.limit:
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
    worth: float = 0.0,
) -> Event:
    """The stored event of a load. `prompt`: the turn in which the task began; `asked`: the model
    requested it; `worth`: how likely what it was told unasked would be used."""
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
    if worth and load.ids:
        detail["worth"] = round(worth, _DIGITS)
    return Event(LOADED, now, session, turn, detail)


Topics = Callable[[MemoryId], Sequence[str]]
"""The topics of a memory; none if it no longer exists."""


def economics_of(events: Iterable[Event], topics: Topics = lambda _id: ()) -> Economics:
    """Totals of all loads among the events of one session or one task (see `by_task`)."""
    loads = [each for event in events if (each := _load(event)) is not None]
    index, timeline, full = ([each for each in loads if each.layer is layer] for layer in Layer)
    tasks = [each.task for each in loads if each.task is not None]
    return Economics(
        index_loads=len(index),
        index_tokens=sum(each.tokens for each in index),
        timeline_loads=len(timeline),
        timeline_tokens=sum(each.tokens for each in timeline),
        full_loads=len(full),
        read_tokens=sum(each.tokens for each in full),
        most_full_loads=max(Counter(each.key for each in full).values(), default=0),
        available=max((each.available for each in loads), default=0),
        asked=sum(each.asked for each in loads),
        task=max(dict.fromkeys(tasks), key=tasks.count) if tasks else None,
        together=tuple(named for each in full if (named := _most_common_topics(each.ids, topics))),
    )


def by_task(events: Iterable[Event]) -> dict[tuple[SessionId | None, int], list[Event]]:
    """The loads of each task in order, by session and first turn."""
    tasks: dict[tuple[SessionId | None, int], list[Event]] = {}
    for event in events:
        if (load := _load(event)) is not None:
            tasks.setdefault(load.key, []).append(event)
    return tasks


@dataclass(frozen=True, slots=True)
class _LoggedLoad:
    key: tuple[SessionId | None, int]
    layer: Layer
    tokens: int
    available: int
    asked: bool
    task: Task | None
    ids: tuple[MemoryId, ...]


def _load(event: Event) -> _LoggedLoad | None:
    """The load that an event holds; None for other or foreign events."""
    detail = event.detail
    layer, task = detail.get("layer"), detail.get("task")
    if event.name != LOADED or layer not in _LAYERS:
        return None
    return _LoggedLoad(
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


def _most_common_topics(ids: Sequence[MemoryId], topics: Topics) -> tuple[str, ...]:
    """The most frequent topics of a load's memories, as many as a load is made for."""
    often = Counter(topic for id in ids for topic in dict.fromkeys(topics(id)))
    return tuple(topic for topic, _ in often.most_common(TOP_TOPICS))


ARRANGED = "MemoryArranged"
"""The name of the event."""

_LEAST_FULL_DAYS, _LEAST_LINE_DAYS, _LEAST_EXCERPT = 1.0, 7.0, 60
_SHORTER, _SHORTER_EXCERPT = 0.5, 0.75
_MUCH_READ = 2000  # tokens: from here on reading is a cost of its own and is shortened, too
_SHOWN_ENOUGH = 5  # times that a topic's memories were shown before their use is judged
_SHOWN_A_READ = 4  # showings that one reading pays for
_LEAST_SCORE, _MOST_SCORE = 0.2, 1.5
_MOST_SCORES = 200
_FITTING = 4  # topics of a typical question
_MEASURED = 20  # topics whose cost is measured
_MOST_MEMBERS = 4
_MOST_COMPOSITES = 8
_MOST_STALE = _MOST_ALIASES = 200
_CONSIDERED = 1000  # topics, the weightiest: those that could reach an index
_BYPASS_SECONDS = DAY


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a change, measured by rendering with it and without it."""

    before: float
    after: float
    unit: str
    note: str = ""
    """Why nothing was changed."""


def carry_out(  # noqa: PLR0917 - each of them is of another kind
    breach: Breach,
    arrangement: Arrangement,
    overview: Overview,
    uses: Mapping[str, Uses],
    economics: Economics,
    now: float,
    *,
    items: Sequence[RecalledItem] = (),
) -> tuple[Arrangement, Effect]:
    """The arrangement for the next session and its effect; unchanged if nothing can be gained.

    `uses` are by topic (`uses_by_topic`); `items` are recalled memories, to measure their cost.
    """
    scene = _Scene(arrangement, overview, uses, economics, now, items)
    return _REMEDIES[breach.remedy](scene)


def uses_by_topic(uses: Mapping[MemoryId, Uses], topics: Topics) -> dict[str, Uses]:
    """How often the memories of each topic were used."""
    added: dict[str, Uses] = {}
    for id, use in uses.items():
        for topic in dict.fromkeys(topics(id)):
            one = added.get(topic, Uses())
            many = (one.shown + use.shown, one.read + use.read, one.helped + use.helped)
            added[topic] = Uses(*many, one.misled + use.misled, max(one.last, use.last))
    return added


def arranged_event(
    breach: Breach, effect: Effect, now: float, session: SessionId | None = None
) -> Event:
    """The stored event of a remedy: its reason and effect."""
    detail: dict[str, str | int | float] = {
        "metric": breach.metric,
        "value": round(breach.value, 4),
        "threshold": breach.threshold,
        "remedy": breach.remedy,
        "before": round(effect.before, 1),
        "after": round(effect.after, 1),
        "unit": effect.unit,
        "note": effect.note,
    }
    return Event(ARRANGED, now, session, 0, detail)


@dataclass(frozen=True, slots=True)
class _Scene:
    """The input of a remedy."""

    arrangement: Arrangement
    overview: Overview
    uses: Mapping[str, Uses]
    economics: Economics
    now: float
    items: Sequence[RecalledItem]

    def timeline(self, arrangement: Arrangement) -> int:
        """Tokens of the timeline for a question on a few of the weightiest topics."""
        fitting = [
            each.topic.name
            for each in ranked_topics(self.overview, arrangement, self.now, most=_FITTING)
        ]
        topics, tokens = (
            (fitting[:TOP_TOPICS], SPLIT_TOKENS)
            if arrangement.split
            else (fitting, TIMELINE_TOKENS)
        )
        return render_timeline(
            self.overview, arrangement, self.now, topics=topics, max_tokens=tokens
        ).tokens

    def memories(self, arrangement: Arrangement) -> int:
        """Tokens of the recalled memories, shown by age."""
        memories = [item.memory for item in self.items if item.memory is not None]
        layers: dict[str, Layer] = {
            each.id: layer_of(
                each, self.now, uses=Uses(), referenced=False, mass=0.0, arrangement=arrangement
            )
            for each in memories
        }
        return render_memories(self.items, arrangement, layers, max_tokens=MEMORY_TOKENS).tokens

    def accept_if_better(
        self, changed: Arrangement, before: int, after: int, unit: str
    ) -> _Outcome:
        """The change if it is an improvement."""
        if after < before:
            return changed, Effect(before, after, unit)
        return self.arrangement, Effect(before, before, unit, "there is nothing to be gained by it")


_Outcome = tuple[Arrangement, Effect]


def _compress(scene: _Scene) -> _Outcome:
    """The mildest shortening of periods that saves tokens. Excerpts shrink only if much is read."""

    def cost(arrangement: Arrangement) -> int:
        return scene.timeline(arrangement) + (scene.memories(arrangement) if scene.items else 0)

    is_much = bool(scene.items) and scene.economics.read_tokens > _MUCH_READ
    before = after = cost(scene.arrangement)
    shorter = scene.arrangement
    while after >= before and (tighter := _tighter(shorter, is_much)) != shorter:
        shorter = tighter
        after = cost(shorter)
    return scene.accept_if_better(shorter, before, after, "tokens of what is told")


def _tighter(arrangement: Arrangement, is_much: bool) -> Arrangement:
    lines = min(arrangement.line_days, max(_LEAST_LINE_DAYS, arrangement.line_days * _SHORTER))
    if not is_much:
        return replace(arrangement, line_days=lines)
    full = min(arrangement.full_days, max(_LEAST_FULL_DAYS, arrangement.full_days * _SHORTER))
    excerpt = min(
        arrangement.excerpt, max(_LEAST_EXCERPT, int(arrangement.excerpt * _SHORTER_EXCERPT))
    )
    return replace(arrangement, line_days=lines, full_days=full, excerpt=excerpt)


def _rescore(scene: _Scene) -> _Outcome:
    """Lower the scores of topics that are shown and never read, until a question that names them no
    longer unfolds them."""
    judged = {name: uses for name, uses in scene.uses.items() if uses.shown >= _SHOWN_ENOUGH}
    often = sorted(judged, key=lambda name: (-judged[name].shown, name))[:_MOST_SCORES]
    scores = {name: score for name in often if (score := _score(judged[name])) != 1.0}
    unread = [
        name for name in often if _net_uses(judged[name]) <= 0 and name in scene.overview.topics
    ][:_MEASURED]

    def cost(arrangement: Arrangement) -> int:
        return sum(_timeline_tokens_of(name, arrangement, scene) for name in unread)

    changed = replace(scene.arrangement, scores=scores)
    before, after = cost(scene.arrangement), cost(changed)
    unit = "tokens told of topics that nobody reads"
    # topics that are read again come back, though that saves nothing
    if after == before and scores != scene.arrangement.scores:
        return changed, Effect(before, after, unit)
    return scene.accept_if_better(changed, before, after, unit)


def _score(uses: Uses) -> float:
    return round(
        min(_MOST_SCORE, max(_LEAST_SCORE, _SHOWN_A_READ * (_net_uses(uses) + 1) / uses.shown)), 3
    )


def _net_uses(uses: Uses) -> int:
    return uses.read + uses.helped - uses.misled


def _timeline_tokens_of(name: str, arrangement: Arrangement, scene: _Scene) -> int:
    """Tokens of a topic's timeline, if a question with its name gets that far."""
    shown = shown_as(name, arrangement)
    fitting = fitting_topics(scene.overview, arrangement, scene.now, query=name)
    if all(each.topic.name != shown for each in fitting):
        return 0
    return render_timeline(scene.overview, arrangement, scene.now, topics=[shown]).tokens


def _compose(scene: _Scene) -> _Outcome:
    """Combine the topics that were read one after the other in a task."""
    known = scene.overview.topics
    often = Counter(
        topic for topics in scene.economics.together for topic in topics if topic in known
    )
    ranked = sorted(often, key=lambda topic: (-often[topic], topic))
    members: list[str] = []
    for topic in ranked:
        members.extend(
            each for each in _combined_with(topic, scene.arrangement) if each not in members
        )
    members = members[:_MOST_MEMBERS]

    def loads(arrangement: Arrangement) -> int:
        return ceil(len({shown_as(topic, arrangement) for topic in ranked}) / TOP_TOPICS)

    changed = scene.arrangement
    if len(members) > 1:
        apart = {
            name: topics
            for name, topics in scene.arrangement.composites.items()
            if not set(members).intersection(topics)
        }
        kept = list(apart.items())[-(_MOST_COMPOSITES - 1) :]
        changed = replace(
            changed, composites={**dict(kept), " + ".join(sorted(members)): tuple(sorted(members))}
        )
    return scene.accept_if_better(
        changed, loads(scene.arrangement), loads(changed), "full loads for the topics of this task"
    )


def _combined_with(topic: str, arrangement: Arrangement) -> tuple[str, ...]:
    """A topic, with those it is combined with already."""
    topic = arrangement.aliases.get(topic, topic)
    return arrangement.composites.get(shown_as(topic, arrangement), (topic,))


def _reorganise(scene: _Scene) -> _Outcome:
    """Drop topics from the index that were not touched or read for long, and merge duplicates."""
    weighty = ranked_topics(
        scene.overview, Arrangement(scores=scene.arrangement.scores), scene.now, most=_CONSIDERED
    )
    topics = [scene.overview.topics[each.topic.name] for each in weighty]
    since = stale_since(scene.overview)
    stale = [
        topic.name
        for topic in topics
        if max(topic.last, scene.uses.get(topic.name, Uses()).last) < since
    ][:_MOST_STALE]
    aliases = _overlapping([topic for topic in topics if topic.name not in stale])
    changed = replace(scene.arrangement, aliases=aliases, stale=tuple(sorted(stale)))
    before, after = (
        count(whole_index(scene.overview, each)) for each in (scene.arrangement, changed)
    )
    return scene.accept_if_better(changed, before, after, "tokens of the index of all topics")


def _overlapping(topics: Sequence[Topic]) -> dict[str, str]:
    """Names that differ in an ending or a sign, and topics of the very same memories, under the
    largest."""
    by_words = _same(topics, lambda topic: frozenset(term.text for term in terms(topic.name)))
    left = [topic for topic in topics if topic.name not in by_words and topic.count > 1]
    by_content = _same(left, lambda topic: (topic.count, topic.tokens, topic.last, topic.latest))
    merged = {name: by_content.get(to, to) for name, to in by_words.items()} | by_content
    return dict(list(merged.items())[:_MOST_ALIASES])


def _same(topics: Iterable[Topic], key: Callable[[Topic], object]) -> dict[str, str]:
    groups: dict[object, list[Topic]] = {}
    for topic in topics:
        groups.setdefault(key(topic), []).append(topic)
    found = {}
    for group in groups.values():
        first = min(group, key=lambda topic: (-topic.count, len(topic.name), topic.name))
        found.update({topic.name: first.name for topic in group if topic is not first})
    return found


def _split(scene: _Scene) -> _Outcome:
    changed = replace(scene.arrangement, split=True)
    before, after = scene.timeline(scene.arrangement), scene.timeline(changed)
    return scene.accept_if_better(changed, before, after, "tokens of the timeline for a question")


def _bypass(scene: _Scene) -> _Outcome:
    """A kind of task that was shown memories and requested none is left alone for a day."""
    economics = scene.economics
    running = {task: until for task, until in scene.arrangement.bypass.items() if until > scene.now}
    spent = Effect(economics.spent, economics.spent, "tokens of such a session")
    if economics.task is None:
        return scene.arrangement, replace(spent, note="what was done is not known")
    if economics.asked:
        return scene.arrangement, replace(spent, note="memories were asked for")
    if economics.available < _WORTH_JUDGING:
        return scene.arrangement, replace(spent, note="too little is remembered to tell")
    until = running.get(economics.task, scene.now + _BYPASS_SECONDS)
    return replace(scene.arrangement, bypass={**running, economics.task: until}), replace(
        spent, after=0
    )


_WORTH_JUDGING = 1000  # tokens: a store that holds less cannot save as much

_REMEDIES: Mapping[Remedy, Callable[[_Scene], _Outcome]] = {
    Remedy.COMPRESS: _compress,
    Remedy.RESCORE: _rescore,
    Remedy.COMPOSE: _compose,
    Remedy.REORGANISE: _reorganise,
    Remedy.SPLIT: _split,
    Remedy.BYPASS: _bypass,
}


@dataclass(frozen=True, slots=True)
class SessionEconomics:
    session: SessionId | None
    """None for requests outside of a conversation."""
    time: float
    """Of the last load."""
    whole: Economics
    tasks: tuple[Economics, ...] = ()
    breaches: tuple[Breach, ...] = ()
    actions: tuple[Event, ...] = ()
    """The remedies applied, each with its effect."""


def economics(store: Store, session: SessionId | None = None) -> Sequence[SessionEconomics]:
    """Of every session in which memories were shown, the newest first; or of one."""
    loads: dict[SessionId | None, list[Event]] = {}
    actions: dict[SessionId | None, list[Event]] = {}
    for name, found_in in ((LOADED, loads), (ARRANGED, actions)):
        for event in store.events(session, name):
            found_in.setdefault(event.session, []).append(event)
    found = [_of(store, each, events, actions.get(each, ())) for each, events in loads.items()]
    return sorted(found, key=lambda each: -each.time)


def settle_up(
    store: Store,
    overview: Callable[[], Overview],
    session: SessionId,
    occasion: Occasion,
    now: float,
) -> tuple[Event, ...]:
    """Check what a session cost so far; for a breached limit, change how the next ones are shown
    memories.

    Returns the remedies applied. A remedy is applied once per session.
    """
    events = list(store.events(session))
    loads = [event for event in events if event.name == LOADED]
    if not loads:
        return ()
    done = {event.detail.get("remedy") for event in events if event.name == ARRANGED}
    tasks = list(by_task(loads).values())
    judged = loads if occasion == "session" else tasks[-1]
    spent = economics_of(judged, _topics(store))
    breaches = [each for each in check(occasion, spent) if str(each.remedy) not in done]
    if not breaches:
        return ()
    uses = uses_by_topic(store.memory_uses(), _topics(store))
    before = after = arrangement(store)
    remedies = []
    for breach in breaches:
        after, effect = carry_out(breach, after, overview(), uses, spent, now)
        remedies.append(arranged_event(breach, effect, now, session))
    if after != before:
        rearrange(store, after, now, ", ".join(str(breach.remedy) for breach in breaches))
    for event in remedies:
        store.keep(event).result(KEEP_SECONDS)
    return tuple(remedies)


def _of(
    store: Store, session: SessionId | None, loads: Sequence[Event], actions: Iterable[Event]
) -> SessionEconomics:
    whole = economics_of(loads, _topics(store))
    tasks = tuple(economics_of(each) for each in by_task(loads).values())
    last = max(event.time for event in loads)
    return SessionEconomics(session, last, whole, tasks, check("session", whole), tuple(actions))


ARRANGEMENT = memory_id(MemoryKind.ARRANGEMENT, "arrangement")
"""The one record that holds how memories are shown in this store."""


def arrangement(store: Store) -> Arrangement:
    latest = known_memory(store, ARRANGEMENT)
    return (
        latest.detail
        if latest is not None and isinstance(latest.detail, Arrangement)
        else Arrangement()
    )


def rearrange(store: Store, wanted: Arrangement, now: float, why: str) -> None:
    latest = known_memory(store, ARRANGEMENT)
    if latest is None:
        source = Provenance(RULES)
        first = MemoryRecord(
            ARRANGEMENT,
            MemoryKind.ARRANGEMENT,
            "How memories are shown",
            "",
            now,
            source,
            trust=Trust.OUTCOME,
        )
        version = replace(first, detail=wanted, time=now, why=why)
    else:
        version = next_version(latest, now, "", why, detail=wanted)
    with suppress(Conflict):  # another process was faster; the next session is judged anew
        commit(store, (version,))


def _topics(store: Store) -> Topics:
    """The topics of memories, each read once; none for an erased one."""

    @cache
    def topics(id: MemoryId) -> Sequence[str]:
        memory = known_memory(store, id)
        return memory.topics if memory is not None else ()

    return topics
