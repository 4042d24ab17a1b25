"""The client's own tools, and which of them its latest sessions called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from hotset import tokens
from hotset.dialects.hand_over import HandOver
from hotset.errors import Malformed
from hotset.nouns.page import Kind, SessionId
from hotset.store.port import Store, Where
from hotset.text.terms import first_hits, terms
from hotset.typed import json_decoder
from hotset.window.toolbox_tools import USE, parse_use

_DEFERRED = "defer_loading"
_MOST_SEARCHED = 200
"""Sessions that are looked at: a client's side requests are sessions without tools."""

_RAW = json_decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class SessionTools:
    """The tools that one session's model had from its client, and those that it called."""

    session: SessionId
    offered: Mapping[str, bytes]
    """Definitions by name, of the latest request; without those that the provider runs itself or
    loads when they are found."""
    called: frozenset[str]
    turns: int
    times: tuple[float, ...]
    """When its requests began."""

    @property
    def unused(self) -> frozenset[str]:
        return frozenset(self.offered) - self.called


def latest_tools(store: Store, sessions: int) -> Sequence[SessionTools]:
    """The latest sessions that had tools, the newest first."""
    recent = islice(store.recent_ids(), _MOST_SEARCHED)
    found = (_tools_of(store, each) for each in recent)
    return list(islice((each for each in found if each is not None), sessions))


def never_called(latest: Sequence[SessionTools], least: int = 1) -> frozenset[str]:
    """The tools that none of these sessions called and at least so many of them had."""
    called = frozenset().union(*(each.called for each in latest))
    had = [name for each in latest for name in each.offered]
    return frozenset(name for name in had if name not in called and had.count(name) >= least)


def weigh_tools(raws: Sequence[bytes]) -> int:
    """Tokens of these definitions."""
    return sum(map(tokens.count, raws))


def _tools_of(store: Store, session: SessionId) -> SessionTools | None:
    turns = [turn for turn in store.turns(session) if turn.tools is not None]
    if not turns or turns[-1].tools is None:
        return None
    offered = {
        name: raw
        for name, raw in _definitions(store.content(turns[-1].tools))
        if b'"%s"' % _DEFERRED.encode() not in raw
    }
    calls = store.pages(Where(session=session, kinds=frozenset({Kind.TOOL_CALL})))
    called = frozenset(page.tool for page in calls)
    times = tuple(turn.started for turn in turns)
    return SessionTools(session, offered, called, len(turns), times)


def _definitions(content: bytes) -> list[tuple[str, bytes]]:
    """Each tool's name and its bytes."""
    raws = [bytes(each) for each in _RAW.decode(content)]
    trees = [msgspec.json.decode(raw) for raw in raws]
    return [
        (name, raw)
        for raw, tree in zip(raws, trees, strict=True)
        if isinstance(tree, dict) and (name := client_tool_name(tree))
    ]


def client_tool_name(tree: Mapping[str, object]) -> str:
    """The name of a function that the client runs; empty for any other kind of tool."""
    inner = tree.get("function")
    name = (inner if isinstance(inner, dict) else tree).get("name")
    is_function = tree.get("type", "custom") in ("custom", "function") and "format" not in tree
    return name if is_function and isinstance(name, str) else ""


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
