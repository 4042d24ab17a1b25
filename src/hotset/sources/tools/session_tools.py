"""The tools that a session's model had from its client, and which of them the latest sessions
called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from hotset.nouns.page import Kind, SessionId
from hotset.store.port import Store, Where
from hotset.typed import json_decoder

_DEFERRED = "defer_loading"
_MOST_SEARCHED = 200
"""Sessions that are looked at: a client's side requests are sessions without tools."""

_BYTES_PER_TOKEN = 4.5
"""Of a definition: between 4.2 and 5.0 for the usual tools of agents."""

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


def estimate_tokens(raws: Sequence[bytes]) -> int:
    """Tokens of these definitions, by their size: to count them would load a vocabulary."""
    return round(sum(map(len, raws)) / _BYTES_PER_TOKEN)


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
