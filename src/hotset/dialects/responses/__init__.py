"""OpenAI's Responses API: the conversation is a list of items."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hotset.dialects import parts
from hotset.dialects.chat import headers
from hotset.dialects.chat.reply import refuse
from hotset.dialects.port import CacheMarking, Deferral, Invariant
from hotset.dialects.responses.change import (
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
from hotset.dialects.responses.parse import CACHE, parse, render, understand
from hotset.dialects.responses.reply import mark, read
from hotset.dialects.responses.rules import INVARIANTS, check
from hotset.dialects.responses.view import view
from hotset.nouns.message import DialectName

name = DialectName.OPENAI_RESPONSES
title = "OpenAI's Responses"
provider = "openai"
path = endpoint = "/responses"
models: tuple[str, ...] = ()
reply_field = "output"
defaults: Mapping[str, Any] = {}
marking: CacheMarking | None = None  # the provider caches by itself
deferral: Deferral | None = Deferral(
    "api.openai.com",
    re.compile(r"gpt-(?:5\.(?:[4-9]|[1-9]\d)|(?:[6-9]|[1-9]\d)(?:\.\d+)?)(?![\d.])"),
    (
        "developers.openai.com, tool search, 2026-11: gpt-5.4 and later, in the Responses API. "
        "Codex runs its search itself."
    ),
)
carries_images = True
previous_field = "previous_response_id"

_BLOCKS = frozenset(("input_text", "output_text", "input_image", "input_file"))

invariants: tuple[Invariant, ...] = INVARIANTS
is_quick = CACHE.bodies.is_quick


def compose(system: Any, messages: Sequence[Any]) -> dict[str, Any]:
    return ({"instructions": system} if system else {}) | {"input": messages}


def length_field(_upstream: str) -> str:
    return "max_output_tokens"


def claims(message: Mapping[str, Any]) -> bool:
    return "type" in message or parts.has_block(message, _BLOCKS)


def reply_messages(document: Mapping[str, Any]) -> list[Any] | None:
    match document:
        case {"object": "response", "output": list(items)}:
            return items
    return None
