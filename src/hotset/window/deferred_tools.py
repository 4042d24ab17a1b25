"""Our tool list for providers that can defer tools, so that a tool found by search is called by its
own name.

A deferred tool is not part of what the provider caches. It enters the conversation where the answer
to a search refers to it, after everything before: a search never breaks the prefix.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from hotset.nouns.message import Loading, ToolSpec
from hotset.nouns.tool import FIND_TOOLS

MOST_DEFERRED = 64
"""Deferred tools in one session's list: they cost no tokens, but are sent with every request, about
1 KB each. Further tools found are described in text."""

ANCHOR = ToolSpec(
    "hotset__later",
    "Reserved. Never call it.",
    b'{"type":"object","properties":{}}',
    Loading.WHEN_FOUND,
)
"""In the list from the session's first request on. The first deferred tool changes what the
provider writes in front of a conversation, and no later one does; clients that rely on Anthropic's
cache (Claude Code, Pi) declare such a tool too."""


_REFUSED = re.compile(
    rb"defer_?loading|deferred|tool_reference|tool_search|hotset__later", re.IGNORECASE
)
"""Words in the error of an upstream that does not know the fields."""


def is_refusal(status: int, body: bytes) -> bool:
    """True if an upstream refuses a request because it does not know deferred tools."""
    return status in (400, 422) and _REFUSED.search(body) is not None


def with_deferred_tools(
    specs: Sequence[ToolSpec], found: Sequence[ToolSpec]
) -> tuple[ToolSpec, ...]:
    """Our tools for a provider that defers, with the `found` ones callable by their own names."""
    here = (
        replace(each, loading=Loading.FINDS) if each.name == FIND_TOOLS else each for each in specs
    )
    return (*here, ANCHOR, *found)


def without_deferred_tools(specs: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """The same list with nothing deferred."""
    return tuple(
        replace(each, loading=Loading.AT_ONCE)
        for each in specs
        if each.loading is not Loading.WHEN_FOUND
    )


def describe_tool(spec: ToolSpec) -> str:
    """The text about a found tool that cannot be called by its own name."""
    return f"{spec.name}: {spec.description} Arguments: {spec.parameters.decode()}"
