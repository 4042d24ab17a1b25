"""The client's own tools that its list does not have: how they are found and called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from hotset import tokens
from hotset.dialects.hand_over import HandOver
from hotset.errors import Malformed
from hotset.text.terms import first_hits, terms
from hotset.window.toolbox_tools import USE, parse_use


def weigh_tools(raws: Sequence[bytes]) -> int:
    """Tokens of these definitions."""
    return sum(map(tokens.count, raws))


def describe_left_out(left_out: Mapping[str, bytes], query: str, limit: int) -> list[str]:
    """What `find_tools` says of the client's own tools that are not in the list: those that fit,
    best first; the names of all of them if none does."""
    if not left_out:
        return []
    asked, low = terms(query), query.casefold()
    scores: dict[str, float] = {}
    for name, raw in left_out.items():
        text = f"{name} {_described(raw)[0]}"
        fit = sum(term.weight for _, term in first_hits(text, asked))
        scores[name] = fit + sum(term.weight for term in asked) * (name.casefold() in low)
    best = sorted((name for name in scores if scores[name]), key=lambda name: -scores[name])
    if not best:
        return [f"[hotset: also unlisted, find one by its name: {', '.join(left_out)}]"]
    return [_line(name, *_described(left_out[name])) for name in best[:limit]]


def _line(name: str, description: str, schema: str) -> str:
    return f"{name}: {description} Arguments: {schema} Call: use_tool(name={name!r}, arguments=...)"


def _described(raw: bytes) -> tuple[str, str]:
    """A definition's description, and the JSON schema of its arguments."""
    tree = msgspec.json.decode(raw)
    inner = tree.get("function")
    tool = inner if isinstance(inner, dict) else tree
    schema = tool.get("input_schema") or tool.get("parameters") or {}
    return str(tool.get("description") or ""), msgspec.json.encode(schema).decode()


def hand_over(left_out: Mapping[str, bytes]) -> HandOver | None:
    """How calls of these tools through `use_tool` reach the client; None if there are none."""

    def resolve(arguments: bytes) -> tuple[str, bytes] | None:
        try:
            wanted = parse_use(arguments)
        except Malformed:
            return None  # it is answered with what to send instead
        if wanted.name not in left_out or isinstance(wanted.arguments, str):
            return None
        return wanted.name, msgspec.json.encode(wanted.arguments)

    return HandOver(USE, resolve) if left_out else None
