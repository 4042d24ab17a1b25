"""The tools that agents can use, for a person: how each fares, what waits for a decision, what
runs, and which tools go together. No server is started by looking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hotset.config import Config
from hotset.errors import NotFound
from hotset.nouns.tool import ToolMetrics
from hotset.sources.tools import (
    KnownTool,
    RunningServer,
    Toolbox,
    ToolState,
    compact,
    diff,
    readable,
    running_everywhere,
)
from hotset.store.port import Store

WAITING = (ToolState.CHANGED, ToolState.FLAGGED, ToolState.UNAPPROVED)
"""States in which a person has to look."""

_MOST_EVENTS = 200
_MOST_NODES = 120
_MOST_EDGES = 300


@dataclass(frozen=True, slots=True)
class ToolRow:
    name: str
    source: str
    origin: str
    state: str
    """Whether it may be used."""
    why: str
    says: str
    """The first line of its description."""
    status: str
    """`active` or `inactive`."""
    tier: str
    score: float
    """From 1, just used, down to 0."""
    calls: int
    failures: int
    seconds: float
    """Of all its calls together."""
    last_used: float | None
    ttl_left: float | None
    """Seconds until it is deleted unless it is used; None if it stays."""
    pinned: bool


@dataclass(frozen=True, slots=True)
class ToolList:
    rows: tuple[ToolRow, ...]
    total: int
    sources: tuple[str, ...]
    """Every source, for a choice."""
    states: Mapping[str, int]
    """How many tools are in each state."""


@dataclass(frozen=True, slots=True)
class DeletedToolRow:
    name: str
    time: float


@dataclass(frozen=True, slots=True)
class ToolsView:
    tools: int
    sources: int
    waiting: int
    active: int
    inactive: int
    pinned: int
    pins: tuple[str, ...]
    """Patterns whose tools are pinned from their first use on."""
    created: int
    capacity: int
    creates: bool
    """Agents may write tools of their own."""
    next_to_leave: str
    running: tuple[RunningServer, ...]
    limit: int
    """Processes that may run at once."""
    troubles: tuple[str, ...]
    deleted: tuple[DeletedToolRow, ...]
    """Tools that agents wrote, that were deleted, and that can come back; the latest first."""


@dataclass(frozen=True, slots=True)
class ToolApproval:
    """What a person has to look at before it is used."""

    name: str
    """To be approved or denied: a tool, or a source that is approved as a whole."""
    state: str
    why: str
    text: str
    """What changed, line by line, or all that it says."""
    is_diff: bool
    warnings: tuple[str, ...]
    seen: str
    """The hash of what was shown: the approval is for that alone."""


@dataclass(frozen=True, slots=True)
class ToolBond:
    other: str
    weight: float
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolView:
    """One tool."""

    row: ToolRow
    description: str
    parameters: str
    """The JSON schema of its arguments."""
    warnings: tuple[str, ...]
    goes_with: tuple[ToolBond, ...]


@dataclass(frozen=True, slots=True)
class GraphNode:
    name: str
    weight: float
    """How much it was used lately, or how many links it has."""
    kind: str
    """What its colour says."""
    title: str = ""


@dataclass(frozen=True, slots=True)
class GraphEdge:
    one: str
    other: str
    weight: float
    why: str


@dataclass(frozen=True, slots=True)
class GraphView:
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    total: int
    """How many nodes there are; only the heaviest are drawn."""


def read_tools(toolbox: Toolbox, config: Config, store: Store) -> ToolsView:
    known = list(toolbox.catalogue.tools())
    summed = toolbox.summary()
    return ToolsView(
        tools=len(known),
        sources=len({each.tool.source for each in known}),
        waiting=len(_names_waiting(known)),
        active=summed.active,
        inactive=summed.inactive,
        pinned=summed.pinned,
        pins=config.tooling.pins,
        created=summed.created,
        capacity=summed.capacity,
        creates=config.tooling.create,
        next_to_leave=summed.next_to_evict or "",
        running=tuple(running_everywhere(config)),
        limit=config.tooling.limit,
        troubles=tuple(toolbox.troubles()),
        deleted=_deleted(toolbox, store),
    )


def list_tools(
    toolbox: Toolbox,
    *,
    text: str = "",
    source: str = "",
    state: str = "",
    order: str = "heat",
    offset: int = 0,
    limit: int = 50,
) -> ToolList:
    """So many tools that fit. `state` is one of a tool's states, `active`, `inactive` or
    `pinned`."""
    metrics = toolbox.metrics()
    every = [_row(each, metrics[each.tool.name]) for each in toolbox.catalogue.tools()]
    words = text.lower().split()
    found = [
        row
        for row in every
        if source in ("", row.source)
        and (state in ("", row.state, row.status) or (state == "pinned" and row.pinned))
        and all(word in f"{row.name} {row.says}".lower() for word in words)
    ]
    found.sort(key=lambda row: (*_rank(row, order), row.name))
    return ToolList(
        tuple(found[offset : offset + limit]),
        len(found),
        tuple(sorted({row.source for row in every})),
        Counter(row.state for row in every),
    )


def read_tool(toolbox: Toolbox, name: str) -> ToolView:
    """Raises `NotFound`."""
    known = toolbox.catalogue.resolve(name)
    tool = known.tool
    bonds = [
        ToolBond(each.name, each.weight, tuple(str(why) for why in each.why))
        for each in toolbox.graph.neighbours(tool.name, 12)
    ]
    return ToolView(
        _row(known, toolbox.metrics(tool.name)[tool.name]),
        tool.description,
        tool.parameters.decode("utf-8", "replace"),
        known.warnings,
        tuple(bonds),
    )


def list_approvals(
    toolbox: Toolbox, offset: int = 0, limit: int = 20
) -> tuple[tuple[ToolApproval, ...], int]:
    """What waits for a person's decision, and how much that is."""
    names = _names_waiting(list(toolbox.catalogue.tools()))
    some = sorted(names)[offset : offset + limit]
    return tuple(read_approval(toolbox, name) for name in some), len(names)


def read_approval(toolbox: Toolbox, name: str) -> ToolApproval:
    """What a person has to look at before a tool or a source is used. Raises `NotFound`."""
    waiting = toolbox.waiting(name)
    if not waiting:
        raise NotFound(f"nothing of {name} waits for approval")
    one = waiting[0]
    is_whole = one.state is ToolState.UNAPPROVED  # a skill is approved as a whole
    changes = "" if is_whole else "\n".join(filter(None, map(diff, waiting)))
    shown = [compact(each.tool) if is_whole else readable(each.tool) for each in waiting]
    text = changes or "\n\n".join(
        filter(None, (toolbox.instructions(one.tool.source) if is_whole else "", *shown))
    )
    is_one = is_whole or name == one.tool.name
    return ToolApproval(
        one.tool.source if is_whole else one.tool.name if len(waiting) == 1 else name,
        one.state,
        one.why,
        text,
        bool(changes),
        tuple(warning for each in waiting for warning in each.warnings),
        one.digest if is_one else "",
    )


def read_tool_graph(toolbox: Toolbox) -> GraphView:
    """Which tools go together: the most used ones, and the strongest bonds between them."""
    uses, edges = toolbox.graph.tools(), toolbox.graph.edges()
    tiers = {name: str(each.tier) for name, each in toolbox.metrics().items()}
    bonds = Counter(end for edge in edges for end in (edge.one, edge.other))
    names = sorted(uses, key=lambda name: (-uses[name], -bonds[name], name))[:_MOST_NODES]
    here = frozenset(names)
    drawn = [edge for edge in edges if edge.one in here and edge.other in here][:_MOST_EDGES]
    return GraphView(
        tuple(GraphNode(name, uses[name], tiers.get(name, "")) for name in names),
        tuple(
            GraphEdge(edge.one, edge.other, edge.weight, ", ".join(map(str, edge.why)))
            for edge in drawn
        ),
        len(uses),
    )


def _names_waiting(known: Sequence[KnownTool]) -> set[str]:
    whole = {each.tool.source for each in known if each.state is ToolState.UNAPPROVED}
    return {
        each.tool.source if each.tool.source in whole else each.tool.name
        for each in known
        if each.state in WAITING
    }


def _deleted(toolbox: Toolbox, store: Store) -> tuple[DeletedToolRow, ...]:
    lives = toolbox.registry.lives()
    events = store.events_before(None, _MOST_EVENTS, names=frozenset({"ToolDeleted"}))
    found: dict[str, DeletedToolRow] = {}
    for _, event in events:
        name = str(event.detail.get("tool", ""))
        if name and name not in lives:
            found.setdefault(name, DeletedToolRow(name, event.time))
    return tuple(found.values())


def _row(known: KnownTool, metrics: ToolMetrics) -> ToolRow:
    tool = known.tool
    return ToolRow(
        name=tool.name,
        source=tool.source,
        origin=tool.origin,
        state=known.state,
        why=known.why,
        says=tool.description.strip().partition("\n")[0],
        status=metrics.status,
        tier=metrics.tier,
        score=metrics.score,
        calls=metrics.calls,
        failures=metrics.failures,
        seconds=metrics.seconds,
        last_used=metrics.last_used,
        ttl_left=metrics.ttl_left,
        pinned=metrics.pinned,
    )


def _rank(row: ToolRow, order: str) -> tuple[float, ...]:
    match order:
        case "calls":
            return (-row.calls,)
        case "failures":
            return (-row.failures, -row.calls)
        case "name":
            return ()
        case _:
            return (-row.score if row.calls or row.pinned else 0.0, -row.calls)
