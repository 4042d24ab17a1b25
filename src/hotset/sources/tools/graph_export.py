"""The graph of tools as DOT, for Graphviz and every viewer that reads it, and as JSON. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from hotset.nouns.tool import Tier
from hotset.sources.tools.net import Edge, Why

_COLOURS = {
    Tier.HOT: "#c8452f",
    Tier.WARM: "#d08a1d",
    Tier.COLD: "#3d77b8",
    Tier.PROBATION: "#8d8f96",
    Tier.PROTECTED: "#2f8f5b",
}


@dataclass(frozen=True, slots=True)
class GraphSnapshot:
    """All tools of a graph and the edges between them, as they were at one moment."""

    uses: Mapping[str, float]
    """Every tool, with the number of its recent uses."""
    edges: tuple[Edge, ...]
    """The strongest first."""
    tiers: Mapping[str, Tier] = field(default_factory=dict)
    """The tiers of the tools for which they are known."""


def render_json(graph: GraphSnapshot) -> str:
    """Every tool and every edge as an indented JSON object."""
    tools = [
        {"name": name, "uses": round(uses, 3)} | ({"tier": graph.tiers[name].value} if name in graph.tiers else {})
        for name, uses in sorted(graph.uses.items())
    ]
    edges = [
        {"from": edge.one, "to": edge.other, "weight": round(edge.weight, 4)}
        | {"why": {why.value: round(weight, 4) for why, weight in edge.why.items()}}
        for edge in graph.edges
    ]
    return msgspec.json.format(msgspec.json.encode({"tools": tools, "edges": edges}), indent=2).decode() + "\n"


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
    lines += [_dot_node(name, uses, graph.tiers.get(name)) for name, uses in sorted(graph.uses.items())]
    return "\n".join([*lines, *map(_dot_edge, graph.edges), "}", ""])


def _dot_node(name: str, uses: float, tier: Tier | None) -> str:
    use = f"used {uses:.1f} times lately"
    looks = f'tooltip="{use}, {tier.value}", color="{_COLOURS[tier]}"' if tier else f'tooltip="{use}"'
    return f"  {_quoted(name)} [{looks}];"


def _dot_edge(edge: Edge) -> str:
    needs = Why.NEEDS in edge.why or Why.NEEDED_BY in edge.why
    backwards = Why.NEEDED_BY in edge.why and Why.NEEDS not in edge.why
    one, other = (edge.other, edge.one) if backwards else (edge.one, edge.other)
    looks = [f"penwidth={0.5 + 3 * edge.weight:.2f}", f'tooltip="{_reasons(edge)}"']
    looks += ["dir=forward"] if needs else ["style=dashed"] if set(edge.why) == {Why.ALIKE} else []
    return f"  {_quoted(one)} -> {_quoted(other)} [{', '.join(looks)}];"


def _reasons(edge: Edge) -> str:
    names = {Why.NEEDED_BY: Why.NEEDS.value}  # read in the direction of the arrow
    return ", ".join(f"{names.get(why, why.value)} {weight:.2f}" for why, weight in edge.why.items())


def _quoted(name: str) -> str:
    """A DOT string, without control, format and unassigned characters."""
    hidden = {"Cc", "Cf", "Cs", "Cn"}
    plain = "".join("\ufffd" if unicodedata.category(each) in hidden else each for each in name)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
