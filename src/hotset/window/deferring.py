"""Who can defer tools, so that one which was found is called by its own name, and how our list looks there.

A deferred tool is no part of what the provider caches. It becomes a part of the conversation where an answer to a search refers
to it, behind everything that was said before: a find breaks no prefix, whatever it finds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hotset.nouns.message import DialectName, Loading, ToolSpec
from hotset.nouns.tool import FIND_TOOLS, Deferring

MOST_DEFERRED = 64
"""Tools that one session's list may hold deferred: they cost no tokens, but are sent with every request, about 1 KB each. What is
found beyond them is told in words."""

ANCHOR = ToolSpec(
    "hotset__later", "Reserved. Never available, never to be called.", b'{"type":"object","properties":{}}', Loading.WHEN_FOUND
)
"""Stands in a list from the session's first request on. Clients that live on Anthropic's cache (Claude Code, Pi) declare such a
tool, too: it is the first deferred one that changes what the provider writes in front of a conversation, and no other does."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One that can defer tools, and whose search can be ours."""

    host: str
    dialect: DialectName
    models: re.Pattern[str]
    source: str
    """Where that is said, and when it was read."""


PROVIDERS = (
    Provider(
        "api.anthropic.com",
        DialectName.ANTHROPIC,
        re.compile(r"claude-(?:opus|sonnet|haiku|fable|mythos)-(?:4-[5-9]|[5-9])(?!\d)"),
        "platform.claude.com, tool search tool, 2026-05: generally available; Opus and Sonnet from 4.0 on, Haiku from 4.5 on."
        " It came with Opus and Sonnet 4.5; what is older is left alone.",
    ),
    Provider(
        "api.openai.com",
        DialectName.OPENAI_RESPONSES,
        re.compile(r"gpt-(?:5\.(?:[4-9]|[1-9]\d)|(?:[6-9]|[1-9]\d)(?:\.\d+)?)(?![\d.])"),
        "developers.openai.com, tool search, 2026-11: gpt-5.4 and later, in the Responses API. Codex runs its search itself.",
    ),
)

_REFUSED = re.compile(rb"defer_?loading|deferred|tool_reference|tool_search|hotset__later", re.IGNORECASE)
"""What an upstream speaks of that does not know the fields."""


def is_taken(mode: Deferring, dialect: DialectName, host: str, model: str) -> bool:
    """May tools be deferred for this model, behind this host?"""
    if mode is Deferring.AUTO:
        return any(
            each.host == host.lower() and each.dialect is dialect and each.models.match(model) is not None for each in PROVIDERS
        )
    return mode is Deferring.ON


def is_refusal(status: int, body: bytes) -> bool:
    """Does an upstream refuse a request because it knows no deferred tools?"""
    return status in (400, 422) and _REFUSED.search(body) is not None


def deferring(specs: Sequence[ToolSpec], found: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """Our tools, where those that are found can be called by their own names; `found` are those that were."""
    here = (replace(each, loading=Loading.FINDS) if each.name == FIND_TOOLS else each for each in specs)
    return (*here, ANCHOR, *found)


def at_once(specs: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """The same where nothing is deferred."""
    return tuple(replace(each, loading=Loading.AT_ONCE) for each in specs if each.loading is not Loading.WHEN_FOUND)


def words_for(spec: ToolSpec) -> str:
    """What is said of a tool that was found, where it cannot be called by its own name."""
    return f"{spec.name}: {spec.description} Arguments: {spec.parameters.decode()}"
