"""Fields that records share: texts made of blocks, times, token counts. What is missing or odd is
empty, never an error."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hotset.dialects import wire
from hotset.nouns.message import Usage

IMAGE = "[image]"
"""Stands for what has no words."""

_IMAGES = frozenset(
    {"image", "image_url", "input_image", "document", "input_file", "file", "input_audio"}
)
_MILLISECONDS = 1e11  # as seconds this is the year 5138: a larger number counts milliseconds
_BYTES_PER_TOKEN = 4  # of schemas and system texts, which are prose and JSON


def kind_of(fields: Mapping[str, Any]) -> str:
    """What a block, an item or a line says it is."""
    return wire.as_text(fields.get("type"))


def text_of(content: Any) -> str:
    """What a content field says: a string, or blocks with texts and images among them."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = (
            content.get("content") if isinstance(content.get("content"), str | list) else [content]
        )
        return text_of(content)
    return "\n".join(text for block in wire.as_list(content) if (text := _block(block)))


def as_json(value: Any) -> str:
    """Arguments as text: JSON where they are not text already."""
    return (
        value
        if isinstance(value, str)
        else wire.encode(value).decode()
        if value is not None
        else ""
    )


def when(value: Any) -> float | None:
    """Unix seconds, from ISO 8601 text or from a number of seconds or milliseconds."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value / 1000 if value > _MILLISECONDS else float(value)
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def usage_of(value: Any) -> Usage | None:
    """Tokens as Anthropic or OpenAI report them; OpenAI counts cached tokens among the input."""
    fields = wire.as_object(value)
    if not fields:
        return None
    count = wire.as_count
    output = count(fields.get("output_tokens")) or count(fields.get("completion_tokens"))
    written = count(fields.get("cache_creation_input_tokens"))
    if "prompt_tokens" not in fields and "cache_read_input_tokens" in fields:
        return Usage(
            count(fields.get("input_tokens")),
            count(fields["cache_read_input_tokens"]),
            written,
            output,
        )
    sent = count(fields.get("prompt_tokens")) or count(fields.get("input_tokens"))
    details = wire.as_object(fields.get("prompt_tokens_details")) or wire.as_object(
        fields.get("input_tokens_details")
    )
    read = count(details.get("cached_tokens")) or count(fields.get("cached_input_tokens"))
    return Usage(max(0, sent - read - written), min(sent, read), written, output)


def tokens_of(value: Any) -> int:
    """About how many tokens something that was sent beside the messages has; 0 where there is
    nothing."""
    return len(wire.encode(value)) // _BYTES_PER_TOKEN if value else 0


def _block(block: Any) -> str:
    if isinstance(block, str):
        return block
    fields = wire.as_object(block)
    if isinstance(text := fields.get("text"), str):
        return text
    if kind_of(fields) in _IMAGES:
        return IMAGE
    if isinstance(content := fields.get("content"), str | list):
        return text_of(content)
    return wire.as_text(fields.get("refusal"))
