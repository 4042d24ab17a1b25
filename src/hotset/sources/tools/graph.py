"""The graph of tools that belong together: used one after the other, alike, or one needing the
other.

All of it but the declared needs is learned, and can be thrown away. A bond by use fades by half in
a month. A tool keeps its 64 strongest edges. The graph is shown as DOT, for Graphviz and every
viewer that reads it, and as JSON.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec

from hotset.errors import HotsetError
from hotset.nouns.note import Space
from hotset.nouns.tool import ToolTier
from hotset.store.port import Store
from hotset.store.stored_value import GatheredValue, StoredValue

MOST_ALIKE = 8
"""Similar tools that are kept for one tool."""

_GRAPH = Space("tool_graph", keeps=1)
_ALIKE_FROM = 0.3  # below that, two texts share little more than the words of their trade
_WORD = re.compile(r"[a-z0-9]+|[A-Z][a-z0-9]*")

Nearest = Callable[[str], Iterable[tuple[str, float]]]
"""The tools that resemble one, each with a likeness from 0 to 1."""

MOST_EDGES = 64
"""Of one tool: its strongest."""

_HALF_LIFE = 30 * 86_400.0
_UNSURE = 2.0  # uses that a pair is given apart: having met once is not a bond
_ALIKE = 0.5  # what resembles a tool belongs to it less than what is used with it
_NEEDS, _NEEDED_BY = 0.9, 0.5
_FAINT = 0.01  # of an edge or a use: forgotten below that

_COLOURS = {
    ToolTier.HOT: "#c8452f",
    ToolTier.WARM: "#d08a1d",
    ToolTier.COLD: "#3d77b8",
    ToolTier.PROBATION: "#8d8f96",
    ToolTier.PROTECTED: "#2f8f5b",
}


class ToolGraph:
    """One project's. Any thread may use it, and several processes may have one each."""

    def __init__(
        self,
        store: Callable[[], Store],
        clock: Callable[[], float] = time.time,
        *,
        old_file: Path | None = None,
    ) -> None:
        self._clock = clock
        self._stored = GatheredValue(
            StoredValue(_GRAPH, StoredNet, store, old_file=old_file), self._used, clock
        )
        self._read: tuple[StoredNet, tuple[tuple[str, ...], ...], ToolNet] | None = None
        self._trouble = ""

    def close(self) -> None:
        self._stored.close()

    def used_together(self, names: Sequence[str]) -> None:
        """Records that the last of these tools was used, in a session that used the others before
        it, the latest next to it.

        Also for one alone: how often a tool is used without another shows how much they belong
        together. Written soon."""
        if names:
            self._stored.put(tuple(dict.fromkeys(reversed(names)))[::-1])

    def alike(self, names: Iterable[str], nearest: Nearest) -> None:
        """Replaces, for each of these tools, the tools that resemble it. Raises a `HotsetError`."""
        found = {name: dict(_best_alike(name, nearest)) for name in names}

        def change(net: ToolNet) -> None:
            for name, others in found.items():
                net.say_alike(name, others)

        self._change(change)

    def depends(self, name: str, on: Iterable[str]) -> None:
        """Replaces what a tool declares that it needs. Raises a `HotsetError`."""
        needed = list(on)
        self._change(lambda net: net.say_needs(name, needed))

    def without(self, *names: str) -> None:
        """Removes tools with all their edges. Raises a `HotsetError`."""

        def change(net: ToolNet) -> None:
            for name in names:
                net.drop(name)

        self._change(change)

    def neighbours(self, name: str, most: int = 5) -> tuple[Neighbour, ...]:
        """The closest first."""
        return self._net().neighbours(name)[:most]

    def boost(self, used: Iterable[str]) -> Mapping[str, float]:
        """Tools that go with those that a session used, from 0 to 1. Likeness does not count: a
        similar tool is an alternative."""
        net, here = self._net(), set(used)
        missing: dict[str, float] = defaultdict(lambda: 1.0)
        for name in sorted(here):
            for neighbour in net.neighbours(name):
                weight = combined(
                    value for why, value in neighbour.why.items() if why is not Bond.ALIKE
                )
                if weight and neighbour.name not in here:
                    missing[neighbour.name] *= 1 - weight
        return {name: 1 - left for name, left in missing.items()}

    def edges(self) -> tuple[ToolEdge, ...]:
        """All of them, the strongest first."""
        return self._net().edges()

    def tools(self) -> Mapping[str, float]:
        """How often each was used lately."""
        net = self._net()
        return {name: net.uses.get(name, 0.0) for name in sorted(net.names())}

    def flush(self) -> None:
        """Writes the uses that wait. Raises a `HotsetError`."""
        self._stored.flush()

    def troubles(self) -> Sequence[str]:
        return [trouble for trouble in (self._stored.trouble or self._trouble,) if trouble]

    def _change(self, change: Callable[[ToolNet], None]) -> None:
        def changed(stored: StoredNet) -> StoredNet:
            net = net_from(stored)
            change(net)
            net.prune()
            return net.stored()

        self._stored.change(changed)

    def _used(self, stored: StoredNet, uses: Sequence[tuple[str, ...]]) -> StoredNet:
        """With these uses, and older ones faded up to now."""
        net = net_from(stored)
        net.age(self._clock())
        for names in uses:
            net.add(names)
        net.prune()
        return net.stored()

    def _net(self) -> ToolNet:
        """What is written, with the uses that wait; nothing that is given out may be changed."""
        read = self._read
        try:
            stored, uses = self._stored.read()
        except HotsetError as error:
            self._trouble = str(error)
            return ToolNet() if read is None else read[2]
        self._trouble = ""
        if read is None or read[0] is not stored or read[1] != uses:
            net = net_from(stored)
            for names in uses:
                net.add(names)
            self._read = read = stored, uses, net
        return read[2]


def word_overlap(texts: Mapping[str, str]) -> Nearest:
    """Likeness by the words that two texts share, of all words in either; a word that half of the
    texts have does not count."""
    words = {
        name: frozenset(word.lower() for word in _WORD.findall(text))
        for name, text in texts.items()
    }
    having = Counter(word for own in words.values() for word in own)
    telling = {
        name: frozenset(word for word in own if having[word] * 2 <= max(len(words), 4))
        for name, own in words.items()
    }
    where: dict[str, list[str]] = defaultdict(list)
    for name, own in telling.items():
        for word in own:
            where[word].append(name)

    def nearest(name: str) -> Iterator[tuple[str, float]]:
        own = telling.get(name, frozenset())
        shared = Counter(other for word in own for other in where[word] if other != name)
        for other, number in shared.items():
            yield other, number / (len(own) + len(telling[other]) - number)

    return nearest


def _best_alike(name: str, nearest: Nearest) -> Iterator[tuple[str, float]]:
    found = (
        (min(likeness, 1.0), other)
        for other, likeness in nearest(name)
        if other != name and likeness >= _ALIKE_FROM
    )
    for likeness, other in sorted(found, key=lambda each: (-each[0], each[1]))[:MOST_ALIKE]:
        yield other, likeness


class Bond(StrEnum):
    TOGETHER = "used together"
    ALIKE = "alike"
    NEEDS = "needs"
    NEEDED_BY = "needed by"


@dataclass(frozen=True, slots=True)
class Neighbour:
    name: str
    weight: float
    """From 0 to 1, of all reasons together."""
    why: Mapping[Bond, float]


@dataclass(frozen=True, slots=True)
class ToolEdge:
    """Two tools in the order of their names; the reasons are those of the first."""

    one: str
    other: str
    weight: float
    why: Mapping[Bond, float]


_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
_Likeness = Annotated[float, msgspec.Meta(ge=0, le=1)]


class ToolLink(msgspec.Struct):
    together: _Amount = 0.0
    alike: _Likeness = 0.0


class _StoredTool(msgspec.Struct):
    uses: _Amount = 0.0
    needs: list[str] = []
    near: dict[str, ToolLink] = {}


class StoredNet(msgspec.Struct):
    when: _Amount = 0.0
    tools: dict[str, _StoredTool] = {}


@dataclass(slots=True)
class ToolNet:
    """All tools and their edges. Do not change one that is shared."""

    when: float = 0.0
    uses: dict[str, float] = field(default_factory=dict)
    needs: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    needed_by: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    links: dict[str, dict[str, ToolLink]] = field(default_factory=lambda: defaultdict(dict))
    """Both ways, one object for both."""

    def age(self, now: float) -> None:
        """At most by one half-life at a time: a clock that jumped by years, or a long absence,
        wipes nothing out."""
        kept = (
            0.5 ** (min(max(0.0, now - self.when), _HALF_LIFE) / _HALF_LIFE) if self.when else 1.0
        )
        self.when = max(now, 0.0)
        self.uses = {name: uses * kept for name, uses in self.uses.items()}
        for one, other in self._pairs():
            self.links[one][other].together *= kept

    def add(self, names: Sequence[str]) -> None:
        *earlier, last = names
        self.uses[last] = self.uses.get(last, 0.0) + 1
        for steps, other in enumerate(reversed(earlier), start=1):
            if other != last:
                self.uses.setdefault(other, 1.0)
                self.link(last, other).together += 1 / steps

    def say_alike(self, name: str, others: Mapping[str, float]) -> None:
        for link in self.links[name].values():
            link.alike = 0.0
        for other, likeness in others.items():
            self.link(name, other).alike = likeness

    def say_needs(self, name: str, on: Iterable[str]) -> None:
        for other in self.needs.pop(name, set()):
            self.needed_by[other].discard(name)
        for other in set(on) - {name}:
            self.needs[name].add(other)
            self.needed_by[other].add(name)

    def link(self, one: str, other: str) -> ToolLink:
        link = self.links[one].get(other)
        if link is None:
            link = self.links[one][other] = self.links[other][one] = ToolLink()
        return link

    def names(self) -> set[str]:
        return {
            *self.uses,
            *self._meeting(self.links),
            *self._meeting(self.needs),
            *self._meeting(self.needed_by),
        }

    def drop(self, name: str) -> None:
        self.uses.pop(name, None)
        for other in [*self.around(name)]:
            self.part(name, other)

    def part(self, one: str, other: str) -> None:
        for name, mate in ((one, other), (other, one)):
            self.links[name].pop(mate, None)
            self.needs[name].discard(mate)
            self.needed_by[name].discard(mate)

    def around(self, name: str) -> set[str]:
        return {*self.links.get(name, ()), *self.needs.get(name, ()), *self.needed_by.get(name, ())}

    def neighbours(self, name: str) -> tuple[Neighbour, ...]:
        found = (self.neighbour(name, other) for other in self.around(name))
        return tuple(
            sorted(
                (each for each in found if each.weight > 0),
                key=lambda each: (-each.weight, each.name),
            )
        )

    def neighbour(self, name: str, other: str) -> Neighbour:
        link = self.links.get(name, {}).get(other) or ToolLink()
        uses = self.uses.get(name, 0.0) + self.uses.get(other, 0.0)
        reasons = {
            Bond.TOGETHER: min(1.0, link.together / (uses + _UNSURE)),
            Bond.ALIKE: _ALIKE * link.alike,
            Bond.NEEDS: _NEEDS if other in self.needs.get(name, ()) else 0.0,
            Bond.NEEDED_BY: _NEEDED_BY if other in self.needed_by.get(name, ()) else 0.0,
        }
        why = {reason: value for reason, value in reasons.items() if value > 0}
        return Neighbour(other, combined(why.values()), why)

    def edges(self) -> tuple[ToolEdge, ...]:
        found = [
            ToolEdge(one, other.name, other.weight, other.why)
            for one in self.names()
            for other in self.neighbours(one)
            if one < other.name
        ]
        return tuple(sorted(found, key=lambda edge: (-edge.weight, edge.one, edge.other)))

    def prune(self) -> None:
        for one, other in [*self._pairs()]:
            link = self.links[one][other]
            if link.together < _FAINT and not link.alike:
                del self.links[one][other], self.links[other][one]
        for name in sorted(self.names()):
            if len(self.around(name)) > MOST_EDGES:
                for neighbour in self.neighbours(name)[MOST_EDGES:]:
                    self.part(name, neighbour.name)
        self.uses = {
            name: uses for name, uses in self.uses.items() if uses >= _FAINT or self.around(name)
        }

    def stored(self) -> StoredNet:
        """In the form that is kept: each pair once, below the first of its names, and numbers
        rounded."""
        tools = {}
        for name in sorted(self.names()):
            near = {
                other: ToolLink(round(link.together, 4), round(link.alike, 4))
                for other, link in sorted(self.links.get(name, {}).items())
                if name < other
            }
            tools[name] = _StoredTool(
                round(self.uses.get(name, 0.0), 4), sorted(self.needs.get(name, ())), near
            )
        return StoredNet(round(self.when, 3), tools)

    def _pairs(self) -> Iterator[tuple[str, str]]:
        for one, others in self.links.items():
            for other in others:
                if one < other:
                    yield one, other

    @staticmethod
    def _meeting(edges: Mapping[str, Iterable[str]]) -> Iterator[str]:
        return (name for name, others in edges.items() if others)


def net_from(stored: StoredNet) -> ToolNet:
    net = ToolNet(stored.when)
    for name, tool in stored.tools.items():
        net.uses[name] = tool.uses
        net.say_needs(name, tool.needs)
        for other, link in tool.near.items():
            if other != name:
                net.links[name][other] = net.links[other][name] = ToolLink(
                    link.together, link.alike
                )
    return net


def combined(weights: Iterable[float]) -> float:
    """Reasons that do not know of each other: each closes a part of the distance that the others
    left."""
    left = 1.0
    for weight in weights:
        left *= 1 - weight
    return 1 - left


@dataclass(frozen=True, slots=True)
class GraphSnapshot:
    """All tools of a graph and the edges between them, as they were at one moment."""

    uses: Mapping[str, float]
    """Every tool, with the number of its recent uses."""
    edges: tuple[ToolEdge, ...]
    """The strongest first."""
    tiers: Mapping[str, ToolTier] = field(default_factory=dict)
    """The tiers of the tools for which they are known."""


def render_json(graph: GraphSnapshot) -> str:
    """Every tool and every edge as an indented JSON object."""
    tools = [
        {"name": name, "uses": round(uses, 3)}
        | ({"tier": graph.tiers[name].value} if name in graph.tiers else {})
        for name, uses in sorted(graph.uses.items())
    ]
    edges = [
        {"from": edge.one, "to": edge.other, "weight": round(edge.weight, 4)}
        | {"why": {why.value: round(weight, 4) for why, weight in edge.why.items()}}
        for edge in graph.edges
    ]
    return (
        msgspec.json.format(
            msgspec.json.encode({"tools": tools, "edges": edges}), indent=2
        ).decode()
        + "\n"
    )


def render_dot(graph: GraphSnapshot) -> str:
    """Every tool and every edge for `dot`, `neato` or `sfdp`.

    A line's width is the edge's weight; dashed means alike, an arrow points at the tool that is
    needed, a box has the colour of its tier.
    """
    lines = [
        "digraph tools {",
        '  node [shape=box, style=rounded, fontname="sans-serif", fontsize=10];',
        "  edge [dir=none];",
    ]
    lines += [
        _dot_node(name, uses, graph.tiers.get(name)) for name, uses in sorted(graph.uses.items())
    ]
    return "\n".join([*lines, *map(_dot_edge, graph.edges), "}", ""])


def _dot_node(name: str, uses: float, tier: ToolTier | None) -> str:
    use = f"used {uses:.1f} times lately"
    looks = (
        f'tooltip="{use}, {tier.value}", color="{_COLOURS[tier]}"' if tier else f'tooltip="{use}"'
    )
    return f"  {_quoted(name)} [{looks}];"


def _dot_edge(edge: ToolEdge) -> str:
    needs = Bond.NEEDS in edge.why or Bond.NEEDED_BY in edge.why
    backwards = Bond.NEEDED_BY in edge.why and Bond.NEEDS not in edge.why
    one, other = (edge.other, edge.one) if backwards else (edge.one, edge.other)
    looks = [f"penwidth={0.5 + 3 * edge.weight:.2f}", f'tooltip="{_reasons(edge)}"']
    looks += ["dir=forward"] if needs else ["style=dashed"] if set(edge.why) == {Bond.ALIKE} else []
    return f"  {_quoted(one)} -> {_quoted(other)} [{', '.join(looks)}];"


def _reasons(edge: ToolEdge) -> str:
    names = {Bond.NEEDED_BY: Bond.NEEDS.value}  # read in the direction of the arrow
    return ", ".join(
        f"{names.get(why, why.value)} {weight:.2f}" for why, weight in edge.why.items()
    )


def _quoted(name: str) -> str:
    """A DOT string, without control, format and unassigned characters."""
    hidden = {"Cc", "Cf", "Cs", "Cn"}
    plain = "".join("\ufffd" if unicodedata.category(each) in hidden else each for each in name)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
