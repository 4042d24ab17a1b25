"""The graph of tools to look at: as SVG, for Graphviz, or as JSON. Pure; the same graph is drawn the same each time."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from math import hypot

import msgspec

from hotset.nouns.tool import Tier
from hotset.sources.tools.graph_layout import Box, layout
from hotset.sources.tools.net import Edge, Why

MOST_DRAWN = 100
"""Tools in a picture: those with the strongest ties. More of them only make a ball of wool."""

_LETTER = 6.7  # pixels of a letter at the size below
_MARGIN = 24.0
_LABEL = 34.0  # two lines under the dot
_NARROWEST = 46.0


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn."""

    uses: Mapping[str, float]
    """All tools, with how often each was used lately."""
    edges: tuple[Edge, ...]
    """The strongest first."""
    tiers: Mapping[str, Tier] = field(default_factory=dict)
    """Where they are known, they colour the dots."""


def to_json(picture: Picture) -> str:
    """Whole: every tool and every edge."""
    tools = [
        {"name": name, "uses": round(uses, 3), **({"tier": picture.tiers[name].value} if name in picture.tiers else {})}
        for name, uses in sorted(picture.uses.items())
    ]
    edges = [
        {"from": edge.one, "to": edge.other, "weight": round(edge.weight, 4)}
        | {"why": {why.value: round(weight, 4) for why, weight in edge.why.items()}}
        for edge in picture.edges
    ]
    return msgspec.json.format(msgspec.json.encode({"tools": tools, "edges": edges}), indent=2).decode() + "\n"


def to_dot(picture: Picture) -> str:
    """Whole, for `dot`, `neato` or `sfdp`."""
    lines = ["digraph tools {", '  node [shape=box, style=rounded, fontname="sans-serif", fontsize=10];', "  edge [dir=none];"]
    lines += [f'  {_quoted(name)} [tooltip="used {uses:.1f} times lately"];' for name, uses in sorted(picture.uses.items())]
    for edge in picture.edges:
        one, other = _direction(edge)
        looks = [f"penwidth={0.5 + 3 * edge.weight:.2f}", f'tooltip="{_reasons(edge)}"']
        looks += ["dir=forward"] if _is_needed(edge) else ["style=dashed"] if set(edge.why) == {Why.ALIKE} else []
        lines.append(f"  {_quoted(one)} -> {_quoted(other)} [{', '.join(looks)}];")
    return "\n".join([*lines, "}", ""])


def to_svg(picture: Picture) -> str:
    """For a browser, light or dark. The tools with the strongest ties; a line tells how many more there are."""
    shown, edges = _strongest(picture)
    boxes = {name: _box(name) for name in shown}
    laid = layout(boxes, {(edge.one, edge.other): edge.weight for edge in edges})
    width, height = max(laid.width, 320.0) + 2 * _MARGIN, max(laid.height, 20.0) + 2 * _MARGIN + 20
    places = {name: (x + _MARGIN, y + _MARGIN) for name, (x, y) in laid.places.items()}
    told = _told(len(picture.uses), len(shown))
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title">',
            '<title id="title">Tools that belong together</title>',
            _STYLE,
            '<rect class="ground" width="100%" height="100%"/>',
            *(_line(edge, places) for edge in reversed(edges)),
            *(_dot(name, places[name], picture) for name in shown),
            f'<text class="note" x="{_MARGIN:.0f}" y="{height - 14:.0f}">{_text(told)}</text>',
            "</svg>",
            "",
        ]
    )


FORMATS: Mapping[str, Callable[[Picture], str]] = {"svg": to_svg, "dot": to_dot, "json": to_json}


_STYLE = """<style>
  .ground { fill: #ffffff } text { font: 11px system-ui, sans-serif; fill: #1c1e21; text-anchor: middle }
  text { paint-order: stroke; stroke: #ffffff; stroke-width: 3px; stroke-linejoin: round }
  .source, .note { fill: #6a7078; font-size: 10px } .note { text-anchor: start }
  line { stroke: #8a93a0 } .alike { stroke-dasharray: 3 4 } .needs { stroke: #4a6fb5 } .head { fill: #4a6fb5 }
  circle { stroke: #ffffff; fill: #7d8590 }
  .hot { fill: #c8452f } .warm { fill: #d08a1d } .cold { fill: #3d77b8 } .probation { fill: #8d8f96 } .protected { fill: #2f8f5b }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #14171a } text { fill: #e4e7eb; stroke: #14171a } .source, .note { fill: #98a1ab } line { stroke: #5d6672 }
    .needs { stroke: #7f9fdc } .head { fill: #7f9fdc } circle { stroke: #14171a }
    .hot { fill: #ee7660 } .warm { fill: #e6ad4d } .cold { fill: #74a8e0 }
    .probation { fill: #a4a7ae } .protected { fill: #5dbd89 }
  }
</style>"""


def _strongest(picture: Picture) -> tuple[list[str], list[Edge]]:
    weights = dict.fromkeys(picture.uses, 0.0)
    for edge in picture.edges:
        weights[edge.one] = weights.get(edge.one, 0.0) + edge.weight
        weights[edge.other] = weights.get(edge.other, 0.0) + edge.weight
    shown = sorted(sorted(weights, key=lambda name: (-weights[name], name))[:MOST_DRAWN])
    here = set(shown)
    return shown, [edge for edge in picture.edges if edge.one in here and edge.other in here]


def _told(tools: int, shown: int) -> str:
    if not tools:
        return "No tool has been used yet."
    more = f"; {tools - shown:,} more are not shown" if tools > shown else ""
    return f"{shown:,} tool{'s' if shown != 1 else ''}{more}. Lines: used together; dashed: alike; arrows: one needs the other."


def _box(name: str) -> Box:
    return Box(max(_NARROWEST, _LETTER * max(len(part) for part in _labels(name)) + 8), _LABEL + 20)


def _labels(name: str) -> tuple[str, str]:
    """The tool's own name, and its source."""
    source, _, own = name.partition("__")
    return (own, source) if own else (name, "")


def _line(edge: Edge, places: Mapping[str, tuple[float, float]]) -> str:
    one, other = _direction(edge)
    (x1, y1), (x2, y2) = places[one], places[other]
    kind = "needs" if _is_needed(edge) else "alike" if set(edge.why) == {Why.ALIKE} else "together"
    looks = f'stroke-width="{0.6 + 3 * edge.weight:.2f}" stroke-opacity="{0.25 + 0.75 * edge.weight:.2f}"'
    line = (
        f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {looks}>'
        f"<title>{_text(f'{one} and {other}: {_reasons(edge)}')}</title></line>"
    )
    return line + _head(x1, y1, x2, y2) if kind == "needs" else line


def _head(x1: float, y1: float, x2: float, y2: float) -> str:
    """An arrow's head, in front of the dot that it points to."""
    length = hypot(x2 - x1, y2 - y1) or 1.0
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    x, y = x2 - 14 * dx, y2 - 14 * dy
    back, wide = 9.0, 4.5
    points = (
        (x, y),
        (x - back * dx - wide * dy, y - back * dy + wide * dx),
        (x - back * dx + wide * dy, y - back * dy - wide * dx),
    )
    return f'<polygon class="head" points="{" ".join(f"{px:.1f},{py:.1f}" for px, py in points)}"/>'


def _dot(name: str, place: tuple[float, float], picture: Picture) -> str:
    x, y = place
    uses = picture.uses.get(name, 0.0)
    tier = picture.tiers.get(name)
    own, source = _labels(name)
    known = f", {tier.value}" if tier else ""
    return (
        f"<g><title>{_text(f'{name}: used {uses:.1f} times lately{known}')}</title>"
        f'<circle class="{tier.value if tier else "tool"}" cx="{x:.1f}" cy="{y:.1f}" r="{4 + min(uses, 36) ** 0.5:.1f}"/>'
        f'<text x="{x:.1f}" y="{y + 22:.1f}">{_text(own)}</text>'
        f'<text class="source" x="{x:.1f}" y="{y + 34:.1f}">{_text(source)}</text></g>'
    )


def _direction(edge: Edge) -> tuple[str, str]:
    """An arrow goes from the tool that needs to the one that is needed."""
    return (edge.other, edge.one) if Why.NEEDED_BY in edge.why and Why.NEEDS not in edge.why else (edge.one, edge.other)


def _is_needed(edge: Edge) -> bool:
    return Why.NEEDS in edge.why or Why.NEEDED_BY in edge.why


def _reasons(edge: Edge) -> str:
    names = {Why.NEEDED_BY: Why.NEEDS.value}  # told in the direction of the arrow
    return ", ".join(f"{names.get(why, why.value)} {weight:.2f}" for why, weight in edge.why.items())


def _quoted(name: str) -> str:
    plain = _plain(name).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'


def _text(text: str) -> str:
    return escape(_plain(text))


def _plain(text: str) -> str:
    """Without characters that no file of text may hold, or that make a name look like another."""
    return "".join("\ufffd" if unicodedata.category(each) in {"Cc", "Cf", "Cs", "Cn"} else each for each in text)
