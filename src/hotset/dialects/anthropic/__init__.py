"""Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hotset.dialects import parts
from hotset.dialects.anthropic.change import (
    answer,
    can_defer,
    declare,
    injectable,
    loaded_tools,
    offer,
    reveal,
    reword,
    say,
    spell_out,
    withhold,
)
from hotset.dialects.anthropic.marks import marking
from hotset.dialects.anthropic.parse import CACHE, parse, understand
from hotset.dialects.anthropic.reply import mark, read, refuse
from hotset.dialects.anthropic.rules import INVARIANTS, check
from hotset.dialects.anthropic.view import view
from hotset.dialects.envelope import render
from hotset.dialects.port import Deferral, Invariant
from hotset.nouns.call import Headers
from hotset.nouns.message import DialectName

name = DialectName.ANTHROPIC
title = "Anthropic's Messages"
provider = "anthropic"
path = "/messages"
endpoint = "/v1/messages"
models: tuple[str, ...] = ("claude",)
reply_field = "content"
# Anthropic requires a limit on the reply's length, and caches only on request.
defaults: Mapping[str, Any] = {"max_tokens": 8192, "cache_control": {"type": "ephemeral"}}
deferral: Deferral | None = Deferral(
    "api.anthropic.com",
    re.compile(r"claude-(?:opus|sonnet|haiku|fable|mythos)-(?:4-[5-9]|[5-9])(?!\d)"),
    "platform.claude.com, tool search tool, 2026-05: generally available; Opus and Sonnet "
    "from 4.0 on, Haiku from 4.5 on."
    " It came with Opus and Sonnet 4.5; what is older is left alone.",
)
carries_images = True
previous_field = ""

_BLOCKS = frozenset(
    (
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "image",
        "document",
        "search_result",
        "server_tool_use",
    )
)
"""Blocks that only this dialect has."""

invariants: tuple[Invariant, ...] = INVARIANTS
is_quick = CACHE.bodies.is_quick


def compose(system: Any, messages: Sequence[Any]) -> dict[str, Any]:
    return ({"system": system} if system else {}) | {"messages": messages}


def length_field(_upstream: str) -> str:
    return "max_tokens"


def headers(key: str) -> Headers:
    version = (b"anthropic-version", b"2023-06-01")
    return (version, (b"x-api-key", key.encode())) if key else (version,)


def claims(message: Mapping[str, Any]) -> bool:
    return parts.has_block(message, _BLOCKS, "cache_control")


def reply_messages(document: Mapping[str, Any]) -> list[Any] | None:
    match document:
        case {"type": "message", "stop_reason": _, "role": role, "content": content}:
            return [{"role": role, "content": content}]
    return None
