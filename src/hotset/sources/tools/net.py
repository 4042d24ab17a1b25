"""The net of tools: what ties two of them, and how strongly. Pure.

A bond by use fades by half in a month. A tool keeps its 64 strongest edges.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import msgspec

MOST_EDGES = 64
"""Of one tool: its strongest."""

_HALF_LIFE = 30 * 86_400.0
_UNSURE = 2.0  # uses that a pair is given apart: having met once is not a bond
_ALIKE = 0.5  # what resembles a tool belongs to it less than what is used with it
_NEEDS, _NEEDED_BY = 0.9, 0.5
_FAINT = 0.01  # of an edge or a use: forgotten below that


class Why(StrEnum):
    TOGETHER = "used together"
    ALIKE = "alike"
    NEEDS = "needs"
    NEEDED_BY = "needed by"


@dataclass(frozen=True, slots=True)
class Neighbour:
    name: str
    weight: float
    """From 0 to 1, of all reasons together."""
    why: Mapping[Why, float]


@dataclass(frozen=True, slots=True)
class Edge:
    """Two tools in the order of their names; the reasons are those of the first."""

    one: str
    other: str
    weight: float
    why: Mapping[Why, float]


_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
_Likeness = Annotated[float, msgspec.Meta(ge=0, le=1)]


class _Link(msgspec.Struct):
    together: _Amount = 0.0
    alike: _Likeness = 0.0


class _Tool(msgspec.Struct):
    uses: _Amount = 0.0
    needs: list[str] = []
    near: dict[str, _Link] = {}


class _Kept(msgspec.Struct):
    when: _Amount = 0.0
    tools: dict[str, _Tool] = {}


@dataclass(slots=True)
class Net:
    """All tools and what ties them. Whoever shares it does not change it."""

    when: float = 0.0
    uses: dict[str, float] = field(default_factory=dict)
    needs: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    needed_by: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    links: dict[str, dict[str, _Link]] = field(default_factory=lambda: defaultdict(dict))
    """Both ways, one object for both."""

    def age(self, now: float) -> None:
        """At most by one half-life at a time: a clock that jumped by years, or a long absence, wipes nothing out."""
        kept = 0.5 ** (min(max(0.0, now - self.when), _HALF_LIFE) / _HALF_LIFE) if self.when else 1.0
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

    def link(self, one: str, other: str) -> _Link:
        link = self.links[one].get(other)
        if link is None:
            link = self.links[one][other] = self.links[other][one] = _Link()
        return link

    def names(self) -> set[str]:
        return {*self.uses, *self._meeting(self.links), *self._meeting(self.needs), *self._meeting(self.needed_by)}

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
        return tuple(sorted((each for each in found if each.weight > 0), key=lambda each: (-each.weight, each.name)))

    def neighbour(self, name: str, other: str) -> Neighbour:
        link = self.links.get(name, {}).get(other) or _Link()
        uses = self.uses.get(name, 0.0) + self.uses.get(other, 0.0)
        reasons = {
            Why.TOGETHER: min(1.0, link.together / (uses + _UNSURE)),
            Why.ALIKE: _ALIKE * link.alike,
            Why.NEEDS: _NEEDS if other in self.needs.get(name, ()) else 0.0,
            Why.NEEDED_BY: _NEEDED_BY if other in self.needed_by.get(name, ()) else 0.0,
        }
        why = {reason: value for reason, value in reasons.items() if value > 0}
        return Neighbour(other, combined(why.values()), why)

    def edges(self) -> tuple[Edge, ...]:
        found = [
            Edge(one, other.name, other.weight, other.why)
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
        self.uses = {name: uses for name, uses in self.uses.items() if uses >= _FAINT or self.around(name)}

    def as_json(self) -> dict[str, Any]:
        tools = {}
        for name in sorted(self.names()):
            near = {
                other: {"together": round(link.together, 4), "alike": round(link.alike, 4)}
                for other, link in sorted(self.links.get(name, {}).items())
                if name < other
            }
            tools[name] = {"uses": round(self.uses.get(name, 0.0), 4), "needs": sorted(self.needs.get(name, ())), "near": near}
        return {"when": round(self.when, 3), "tools": tools}

    def _pairs(self) -> Iterator[tuple[str, str]]:
        for one, others in self.links.items():
            for other in others:
                if one < other:
                    yield one, other

    @staticmethod
    def _meeting(edges: Mapping[str, Iterable[str]]) -> Iterator[str]:
        return (name for name, others in edges.items() if others)


def net_from(document: Mapping[str, Any]) -> Net:
    kept = msgspec.convert(document, _Kept)
    net = Net(kept.when)
    for name, tool in kept.tools.items():
        net.uses[name] = tool.uses
        net.say_needs(name, tool.needs)
        for other, link in tool.near.items():
            if other != name:
                net.links[name][other] = net.links[other][name] = link
    return net


def combined(weights: Iterable[float]) -> float:
    """Reasons that do not know of each other: each closes a part of the distance that the others left."""
    left = 1.0
    for weight in weights:
        left *= 1 - weight
    return 1 - left
