"""Our list of tools where the provider can defer some, so that one which was found is called by its
own name.

A deferred tool is no part of what the provider caches. It becomes a part of the conversation where
an answer to a search refers to it, behind everything that was said before: a find breaks no prefix,
whatever it finds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from hotset.nouns.message import Loading, ToolSpec
from hotset.nouns.tool import FIND_TOOLS

MOST_DEFERRED = 64
"""Tools that one session's list may hold deferred: they cost no tokens, but are sent with every
request, about 1 KB each. What is found beyond them is told in words."""

ANCHOR = ToolSpec(
    "hotset__later",
    "Reserved. Never call it.",
    b'{"type":"object","properties":{}}',
    Loading.WHEN_FOUND,
)
"""Stands in a list from the session's first request on. Clients that live on Anthropic's cache
(Claude Code, Pi) declare such a tool, too: it is the first deferred one that changes what the
provider writes in front of a conversation, and no other does."""


_REFUSED = re.compile(
    rb"defer_?loading|deferred|tool_reference|tool_search|hotset__later", re.IGNORECASE
)
"""What an upstream speaks of that does not know the fields."""


def is_refusal(status: int, body: bytes) -> bool:
    """Does an upstream refuse a request because it knows no deferred tools?"""
    return status in (400, 422) and _REFUSED.search(body) is not None


def deferring(specs: Sequence[ToolSpec], found: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """Our tools, where those that are found can be called by their own names; `found` are those
    that were."""
    here = (
        replace(each, loading=Loading.FINDS) if each.name == FIND_TOOLS else each for each in specs
    )
    return (*here, ANCHOR, *found)


def at_once(specs: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """The same where nothing is deferred."""
    return tuple(
        replace(each, loading=Loading.AT_ONCE)
        for each in specs
        if each.loading is not Loading.WHEN_FOUND
    )


def words_for(spec: ToolSpec) -> str:
    """What is said of a tool that was found, where it cannot be called by its own name."""
    return f"{spec.name}: {spec.description} Arguments: {spec.parameters.decode()}"
