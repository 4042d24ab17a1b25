"""From a request's body to the prompt that a provider's cache sees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from hotset.testing.upstream.cache import (
    LONG,
    MINUTES,
    SHORT,
    CachedBlock,
    MarkedPrompt,
    PlainPrompt,
)

_WRITES_COST_FROM = (5, 6)  # gpt-5.6

_DEFERRING = CachedBlock(b"Some tools are shown when they are found.")
"""What the first deferred tool puts in front of a conversation: clients that live on the cache
declare one from the start."""


def marked_prompt(body: Mapping[str, Any]) -> MarkedPrompt:
    """A Messages request as its cache sees it: tools, system, messages, without the marks
    themselves."""
    declared = _listed(body.get("tools"))
    deferred = {str(tool.get("name")): tool for tool in declared if tool.get("defer_loading")}
    tools = tuple(_block("", tool) for tool in declared if not tool.get("defer_loading"))
    if deferred:
        tools = (*tools, _DEFERRING)
    system = tuple(_block("", block) for block in _blocks(body.get("system")))
    messages = tuple(
        _block(str(message.get("role")), _expanded(block, deferred))
        for message in _listed(body.get("messages"))
        for block in _blocks(message.get("content"))
    )
    settings = msgspec.json.encode([body.get("tool_choice"), body.get("thinking")])
    prompt = MarkedPrompt(str(body.get("model")), tools, system, messages, settings)
    return _with_automatic_mark(prompt, body.get("cache_control"))


def chat_prompt(body: Mapping[str, Any]) -> PlainPrompt:
    shape = [body.get("response_format"), body.get("reasoning_effort"), body.get("verbosity")]
    return _plain_prompt(body, [body.get("tools"), shape, *_listed(body.get("messages"))])


def responses_prompt(body: Mapping[str, Any], items: Iterable[Any]) -> PlainPrompt:
    """`items` is the whole input, with what the provider remembers of it."""
    shape = [body.get("text"), body.get("reasoning")]
    return _plain_prompt(
        body, [body.get("tools"), shape, body.get("instructions"), *map(_anonymous, items)]
    )


def _plain_prompt(body: Mapping[str, Any], parts: Iterable[Any]) -> PlainPrompt:
    model = str(body.get("model"))
    version = re.match(r"gpt-(\d+)(?:\.(\d+))?", model)
    modern = version is not None and (int(version[1]), int(version[2] or 0)) >= _WRITES_COST_FROM
    return PlainPrompt(
        model=model,
        content=b"\n".join(map(msgspec.json.encode, parts)),
        route=str(body.get("prompt_cache_key") or ""),
        ttl=_plain_ttl(body, modern=modern),
        pays_writes=modern,
    )


def _plain_ttl(body: Mapping[str, Any], *, modern: bool) -> float:
    if modern:
        asked = (body.get("prompt_cache_options") or {}).get("ttl")
        return 12 * LONG if asked == "12h" else 30 * MINUTES
    return 24 * LONG if body.get("prompt_cache_retention") == "24h" else SHORT


def _anonymous(item: Any) -> Any:
    """An item without what the model never reads: clients resend their items with or without
    these."""
    if not isinstance(item, Mapping):
        return item
    return {key: value for key, value in item.items() if key not in ("id", "status")}


def _block(role: str, block: Any) -> CachedBlock:
    """`role` is part of what the model reads; the mark is not."""
    marks = tuple(_marks(block))
    ttl = None
    if marks:
        ttl = LONG if any(mark.get("ttl") == "1h" for mark in marks) else SHORT
    return CachedBlock(role.encode() + msgspec.json.encode(_unmarked(block)), ttl)


def _expanded(block: Any, deferred: Mapping[str, Any]) -> Any:
    """A block as the model reads it: where it refers to a deferred tool, the tool stands."""
    if (
        not isinstance(block, Mapping)
        or block.get("type") != "tool_result"
        or not isinstance(block.get("content"), list)
    ):
        return block
    inner = (each if isinstance(each, Mapping) else {} for each in block["content"])
    shown = [
        deferred.get(str(each.get("tool_name")), each)
        if each.get("type") == "tool_reference"
        else each
        for each in inner
    ]
    return {**block, "content": shown}


def _marks(block: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(block, Mapping):
        if isinstance(block.get("cache_control"), Mapping):
            yield block["cache_control"]
        if block.get("type") == "tool_result":
            yield from (mark for inner in _blocks(block.get("content")) for mark in _marks(inner))


def _unmarked(block: Any) -> Any:
    if not isinstance(block, Mapping):
        return block
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    if bare.get("type") == "tool_result" and isinstance(bare.get("content"), list):
        bare["content"] = [_unmarked(inner) for inner in bare["content"]]
    return bare


def _with_automatic_mark(prompt: MarkedPrompt, mark: Any) -> MarkedPrompt:
    """A `cache_control` at the top of the request stands for one on its last block."""
    if not isinstance(mark, Mapping) or not prompt.messages:
        return prompt
    *before, last = prompt.messages
    ttl = last.ttl or (LONG if mark.get("ttl") == "1h" else SHORT)
    return replace(prompt, messages=(*before, replace(last, ttl=ttl)))


def _blocks(content: Any) -> list[Any]:
    """A string is short for one text block: clients switch between the two, and providers see no
    difference."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else _listed(content)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
