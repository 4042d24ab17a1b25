"""OpenAI's Chat Completions API, which many providers speak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hotset.dialects import parts
from hotset.dialects.chat.change import (
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
from hotset.dialects.chat.parse import CACHE, parse, understand
from hotset.dialects.chat.reply import mark, read, refuse
from hotset.dialects.chat.rules import INVARIANTS, check
from hotset.dialects.chat.view import view
from hotset.dialects.envelope import render
from hotset.dialects.port import CacheMarking, Deferral, Invariant
from hotset.nouns.call import Headers
from hotset.nouns.message import DialectName

name = DialectName.OPENAI_CHAT
title = "OpenAI's Chat Completions"
provider = "openai"
path = endpoint = "/chat/completions"
models: tuple[str, ...] = ()
reply_field = "choices"
defaults: Mapping[str, Any] = {}
marking: CacheMarking | None = None  # the provider caches by itself
deferral: Deferral | None = None
carries_images = False
previous_field = ""

_BLOCKS = frozenset(("image_url", "input_audio", "file"))
_FIELDS = frozenset(("tool_calls", "tool_call_id", "function_call", "refusal", "audio"))
_ROLES = frozenset(("tool", "function"))

invariants: tuple[Invariant, ...] = INVARIANTS
is_quick = CACHE.bodies.is_quick


def compose(system: Any, messages: Sequence[Any]) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": system}, *messages] if system else messages}


def length_field(upstream: str) -> str:
    """OpenAI's newer models reject the field's old name, and most other servers know only that."""
    return "max_completion_tokens" if upstream == provider else "max_tokens"


def headers(key: str) -> Headers:
    return ((b"authorization", b"Bearer " + key.encode()),) if key else ()


def claims(message: Mapping[str, Any]) -> bool:
    is_ours = message.get("role") in _ROLES or bool(_FIELDS & message.keys())
    return is_ours or parts.has_block(message, _BLOCKS)


def reply_messages(document: Mapping[str, Any]) -> list[Any] | None:
    match document:
        case {"choices": [{"message": dict(message)}, *_]}:
            return [message]
    return None
