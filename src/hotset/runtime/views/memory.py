"""What is remembered, for a person: topics, days, what waits for a decision, one memory with all
that is known about it, and what memory cost and saved. Looking is not counted as use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from hotset.nouns.memory import (
    Ending,
    MemoryId,
    MemoryKind,
    MemoryRecord,
    Standing,
)
from hotset.runtime.views.tools import GraphEdge, GraphNode, GraphView
from hotset.sources.memory import (
    NAMED_KINDS,
    Economics,
    MemoryTopic,
    ProjectMemories,
    SessionEconomics,
)

_DAY = 86_400.0
_MOST_TOPICS = 60
_MOST_NODES = 120
_MOST_EDGES = 300
_MOST_RUNS = 10
_MOST_SESSIONS = 20
_MOST_LINKED = 30
_MOST_FOUND = 50  # by a search


@dataclass(frozen=True, slots=True)
class MemoryRow:
    id: str
    kind: str
    title: str
    text: str
    created: float
    standing: str
    ending: str
    """How the work came out; empty where that is unknown, or there was none."""
    trust: str
    topics: tuple[str, ...]
    tokens: int
    pinned: bool
    session: str
    agent: str
    by: str


@dataclass(frozen=True, slots=True)
class MemoryList:
    rows: tuple[MemoryRow, ...]
    """The newest first; of a search the best first."""
    has_more: bool


@dataclass(frozen=True, slots=True)
class MemoryConflict:
    """Two memories that contradict each other; the later statement first."""

    one: MemoryRow
    other: MemoryRow


@dataclass(frozen=True, slots=True)
class ReviewQueue:
    rows: tuple[MemoryRow, ...]
    """What no person has looked at yet, the newest first."""
    total: int
    conflicts: tuple[MemoryConflict, ...]


@dataclass(frozen=True, slots=True)
class MemoryRun:
    """A piece of work that wrote memories, and that can be undone."""

    name: str
    versions: int
    time: float


@dataclass(frozen=True, slots=True)
class MemoriesView:
    is_on: bool
    memories: int
    tokens: int
    waiting: int
    conflicts: int
    topics: tuple[MemoryTopic, ...]
    """Those with the most and the latest memories first."""
    runs: tuple[MemoryRun, ...]
    """The latest first."""


@dataclass(frozen=True, slots=True)
class WorkOfDay:
    name: str
    rows: tuple[MemoryRow, ...]


@dataclass(frozen=True, slots=True)
class DayView:
    day: str
    done: tuple[WorkOfDay, ...]
    decided: tuple[MemoryRow, ...]
    noted: tuple[MemoryRow, ...]


@dataclass(frozen=True, slots=True)
class MemoryTimeline:
    days: tuple[DayView, ...]
    """The latest first."""
    open: tuple[str, ...]
    """Unfinished work, and what agents left to do."""
    since: float
    earlier: float | None
    """When something was last done before that; None if nothing was."""


@dataclass(frozen=True, slots=True)
class LinkedMemory:
    id: str
    title: str
    relation: str
    points_away: bool
    """The relation is read from the shown memory to this one."""


@dataclass(frozen=True, slots=True)
class VersionOfMemory:
    version: int
    time: float
    title: str
    text: str
    why: str
    standing: str


@dataclass(frozen=True, slots=True)
class MemoryView:
    """One memory."""

    row: MemoryRow
    confidence: float
    valid_until: float | None
    why: tuple[str, ...]
    """Where it comes from and why it has its form, in sentences."""
    pages: tuple[str, ...]
    places: tuple[str, ...]
    versions: tuple[VersionOfMemory, ...]
    """The latest first."""
    links: tuple[LinkedMemory, ...]
    graph: GraphView
    shown: int
    read: int
    helped: int
    misled: int


@dataclass(frozen=True, slots=True)
class MemorySpending:
    """What memory took in a session, and what loading all of it would have taken."""

    session: str
    time: float
    spent: int
    available: int
    saved: int
    full_loads: int
    asked: int
    breaches: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryEconomics:
    rows: tuple[MemorySpending, ...]
    spent: int
    available: int


def read_memories(memories: ProjectMemories, *, is_on: bool) -> MemoriesView:
    topics, known, tokens = memories.topics() if is_on else ((), 0, 0)
    runs = memories.runs()[:_MOST_RUNS]
    return MemoriesView(
        is_on=is_on,
        memories=known,
        tokens=tokens,
        waiting=len(memories.unreviewed()),
        conflicts=len(memories.conflicts()),
        topics=tuple(topics[:_MOST_TOPICS]),
        runs=tuple(MemoryRun(*run) for run in runs),
    )


def list_memories(
    memories: ProjectMemories,
    *,
    text: str = "",
    kind: MemoryKind | None = None,
    standing: Standing | None = None,
    topic: str = "",
    offset: int = 0,
    limit: int = 50,
) -> MemoryList:
    """So many memories that fit; with `text` those that a search finds."""
    if text.strip():
        kinds = [str(kind)] if kind is not None else [str(each) for each in NAMED_KINDS]
        answer = memories.unlogged().recall(text, kinds=kinds, most=_MOST_FOUND)
        items = (item.memory for item in answer.recall.items if item.memory is not None)
        found: Iterable[MemoryRecord] = (
            each
            for each in items
            if standing in (None, each.standing) and (not topic or topic in each.topics)
        )
    else:
        found = memories.list(
            kinds=frozenset({kind} if kind is not None else ()),
            standings=frozenset({standing} if standing is not None else ()),
            topic=topic,
            limit=None,
        )
    some = list(islice(found, offset, offset + limit + 1))
    return MemoryList(_rows(some[:limit]), len(some) > limit)


def read_review(memories: ProjectMemories, offset: int = 0, limit: int = 20) -> ReviewQueue:
    waiting = memories.unreviewed()
    return ReviewQueue(
        _rows(waiting[offset : offset + limit]),
        len(waiting),
        tuple(MemoryConflict(_row(one), _row(other)) for one, other in memories.conflicts()),
    )


def read_memory_timeline(
    memories: ProjectMemories, now: float, days: int = 7, until: float | None = None
) -> MemoryTimeline:
    """What was done, decided and noted in so many days before `until`, or now."""
    since = (now if until is None else until) - days * _DAY
    found = memories.standup(since, until)
    before = next(memories.list(until=since, limit=1), None)
    return MemoryTimeline(
        tuple(
            DayView(
                each.day.isoformat(),
                tuple(WorkOfDay(work.name, _rows(work.episodes)) for work in each.works),
                _rows(each.decided),
                _rows(each.noted),
            )
            for each in reversed(found.days)
        ),
        tuple(line.text for line in found.open),
        since,
        before.created if before is not None else None,
    )


def read_memory_view(memories: ProjectMemories, id: str, depth: int = 2) -> MemoryView:
    """Raises `NotFound`."""
    shown = memories.details(id)
    memory = shown.memory
    graph = read_memory_graph(memories, memory.id, depth)
    titles = {node.name: node.title for node in graph.nodes}
    return MemoryView(
        row=_row(memory),
        confidence=memory.confidence,
        valid_until=memory.valid_until,
        why=memories.why(memory.id),
        pages=memory.source.pages,
        places=memory.source.places,
        versions=tuple(
            VersionOfMemory(each.version, each.time, each.title, each.text, each.why, each.standing)
            for each in reversed(shown.versions)
        ),
        links=tuple(
            _linked(link.of, link.to, str(link.relation), memory.id, titles)
            for link in shown.links[:_MOST_LINKED]
        ),
        graph=graph,
        shown=shown.uses.shown,
        read=shown.uses.read,
        helped=shown.uses.helped,
        misled=shown.uses.misled,
    )


def read_memory_graph(memories: ProjectMemories, id: str = "", depth: int = 2) -> GraphView:
    """The links between memories: around one, or those with the most links."""
    drawn = memories.graph(id, depth=depth)
    links = Counter(end for link in drawn.links for end in (link.of, link.to))
    every = sorted(drawn.memories, key=lambda each: (each.id != id, -links[each.id], each.id))
    some = [each for each in every if links[each.id] or each.id == id][:_MOST_NODES]
    here = {each.id for each in some}
    return GraphView(
        tuple(GraphNode(each.id, float(links[each.id]), each.kind, each.title) for each in some),
        tuple(
            GraphEdge(link.of, link.to, 1.0, str(link.relation))
            for link in drawn.links
            if link.of in here and link.to in here
        )[:_MOST_EDGES],
        sum(1 for each in every if links[each.id]),
    )


def read_memory_economics(memories: ProjectMemories) -> MemoryEconomics:
    """Of the latest sessions."""
    found = memories.economics()[:_MOST_SESSIONS]
    return MemoryEconomics(
        tuple(_spending(each, each.whole) for each in found),
        sum(each.whole.spent for each in found),
        sum(each.whole.available for each in found),
    )


def _spending(session: SessionEconomics, whole: Economics) -> MemorySpending:
    return MemorySpending(
        session.session or "",
        session.time,
        whole.spent,
        whole.available,
        whole.saved,
        whole.full_loads,
        whole.asked,
        tuple(str(each.metric) for each in session.breaches),
    )


def _linked(
    of: MemoryId, to: MemoryId, relation: str, here: MemoryId, titles: dict[str, str]
) -> LinkedMemory:
    other = to if of == here else of
    return LinkedMemory(other, titles.get(other, ""), relation, of == here)


def _rows(memories: Sequence[MemoryRecord]) -> tuple[MemoryRow, ...]:
    return tuple(map(_row, memories))


def _row(memory: MemoryRecord) -> MemoryRow:
    return MemoryRow(
        id=memory.id,
        kind=memory.kind,
        title=memory.title,
        text=memory.text,
        created=memory.created,
        standing=memory.standing,
        ending="" if memory.ending is Ending.UNKNOWN else memory.ending,
        trust=memory.trust,
        topics=memory.topics,
        tokens=memory.tokens,
        pinned=memory.pinned,
        session=memory.source.session or "",
        agent=memory.source.agent,
        by=memory.source.by,
    )
