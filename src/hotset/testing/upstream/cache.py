"""Simulates the providers' prompt caches: exact prefixes, pure, with the clock passed in.

Anthropic caches where a request marks it; OpenAI caches by itself. Both only return an exact
prefix, so both are a set of prefix hashes with a time to live, and differ in where they write and
where they look.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import msgspec

MINUTES = 60.0
SHORT = 5 * MINUTES
LONG = 60 * MINUTES
MAX_BREAKPOINTS = 4
LOOK_BACK = 20  # positions that each breakpoint checks for an earlier entry, itself included

MINIMUM_PREFIX: Mapping[str, int] = {
    "claude-opus-5": 512,
    "claude-fable-5": 512,
    "claude-mythos-5": 512,
    "claude-opus-4-7": 2048,
    "claude-opus-4-6": 4096,
    "claude-opus-4-5": 4096,
    "claude-haiku-4-5": 4096,
}
"""Tokens below which Anthropic silently does not cache, by prefix of the model's name."""
DEFAULT_MINIMUM = 1024

OPENAI_MINIMUM = 1024
OPENAI_STEP = 128


class BreakpointsRefused(ValueError):
    """Cache marks that the provider rejects with a 400; the message is the provider's own."""


@dataclass(frozen=True, slots=True)
class Charge:
    """A request's input tokens by what they cost."""

    fresh: int = 0
    read: int = 0
    written: int = 0
    """Written to the cache, for any time."""
    written_long: int = 0
    """The part of `written` with a time to live of an hour."""

    @property
    def total(self) -> int:
        return self.fresh + self.read + self.written


@dataclass(frozen=True, slots=True)
class CachedBlock:
    """A piece of a prompt that is cached whole or not at all."""

    raw: bytes
    ttl: float | None = None
    """Seconds, if the block has a breakpoint."""


@dataclass(frozen=True, slots=True)
class MarkedPrompt:
    """A prompt with cache marks (Anthropic), in the order in which its prefix is built."""

    model: str
    tools: tuple[CachedBlock, ...]
    system: tuple[CachedBlock, ...]
    messages: tuple[CachedBlock, ...]
    settings: bytes = b""
    """Settings that only invalidate the messages: tool choice and thinking."""

    @property
    def blocks(self) -> tuple[CachedBlock, ...]:
        return self.tools + self.system + self.messages


@dataclass(frozen=True, slots=True)
class PlainPrompt:
    """A prompt that is cached automatically (OpenAI)."""

    model: str
    content: bytes
    """Everything the model reads, tools first."""
    route: str = ""
    """`prompt_cache_key`: requests with another key reach another machine, with another cache."""
    ttl: float = SHORT
    pays_writes: bool = False
    """Models from gpt-5.6 on charge for cache writes and report them."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    expires: float
    ttl: float


@dataclass(frozen=True, slots=True)
class PromptCache:
    """The prefixes that a provider holds, by hash."""

    entries: Mapping[bytes, CacheEntry] = field(default_factory=dict)

    def holds(self, prefix: bytes, now: float) -> bool:
        return prefix in self.entries and self.entries[prefix].expires > now

    def used(self, prefixes: Mapping[bytes, float], now: float) -> PromptCache:
        """The cache after these prefixes, each with its time to live, were written or read: use
        refreshes."""
        kept = {prefix: entry for prefix, entry in self.entries.items() if entry.expires > now}
        for prefix, ttl in prefixes.items():
            longest = max(ttl, kept[prefix].ttl) if prefix in kept else ttl
            kept[prefix] = CacheEntry(now + longest, longest)
        return PromptCache(kept)


def serve_marked(
    cache: PromptCache, prompt: MarkedPrompt, now: float
) -> tuple[Charge, PromptCache]:
    """What a request costs by Anthropic's rules, and the cache after it."""
    blocks = prompt.blocks
    marks = [place for place, block in enumerate(blocks) if block.ttl is not None]
    _check_marks([blocks[place].ttl or 0.0 for place in marks])
    prefixes = _prefixes(prompt)
    upto = [0, *accumulate(estimate_tokens(block.raw) for block in blocks)]
    minimum = minimum_prefix(prompt.model)
    marks = [place for place in marks if upto[place + 1] >= minimum]
    hit = max((_hit(cache, prefixes, mark, now) for mark in marks), default=-1)
    last = max(marks, default=-1)
    last_long = max((mark for mark in marks if blocks[mark].ttl == LONG), default=-1)
    read = upto[hit + 1]
    written = max(0, upto[last + 1] - read)
    charge = Charge(
        fresh=upto[-1] - read - written,
        read=read,
        written=written,
        written_long=max(0, upto[last_long + 1] - read),
    )
    touched = {prefixes[mark]: blocks[mark].ttl or SHORT for mark in marks}
    if hit >= 0:
        touched.setdefault(prefixes[hit], SHORT)
    return charge, cache.used(touched, now)


def serve_plain(cache: PromptCache, prompt: PlainPrompt, now: float) -> tuple[Charge, PromptCache]:
    """What a request costs by OpenAI's rules, and the cache after it."""
    total = estimate_tokens(prompt.content)
    prefixes = _steps(prompt)
    hit = max(
        (place for place, prefix in enumerate(prefixes) if cache.holds(prefix, now)), default=-1
    )
    read = OPENAI_MINIMUM + hit * OPENAI_STEP if hit >= 0 else 0
    cacheable = OPENAI_MINIMUM + (len(prefixes) - 1) * OPENAI_STEP if prefixes else 0
    written = cacheable - read if prompt.pays_writes else 0
    return Charge(total - read - written, read, written), cache.used(
        dict.fromkeys(prefixes, prompt.ttl), now
    )


def minimum_prefix(model: str) -> int:
    return next(
        (minimum for name, minimum in MINIMUM_PREFIX.items() if model.startswith(name)),
        DEFAULT_MINIMUM,
    )


def _check_marks(ttls: Sequence[float]) -> None:
    if len(ttls) > MAX_BREAKPOINTS:
        raise BreakpointsRefused(
            f"A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. Found "
            f"{len(ttls)}."
        )
    if list(ttls) != sorted(ttls, reverse=True):
        raise BreakpointsRefused(
            "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
            "Note that blocks are processed in the following order: `tools`, `system`, `messages`."
        )


def _prefixes(prompt: MarkedPrompt) -> list[bytes]:
    """For each block, the hash of everything up to its end."""
    head = _chain(hashlib.sha256(prompt.model.encode()).digest(), prompt.tools + prompt.system)
    messages_start = hashlib.sha256(head[-1] + prompt.settings).digest()
    return head[1:] + _chain(messages_start, prompt.messages)[1:]


def _chain(start: bytes, blocks: Iterable[CachedBlock]) -> list[bytes]:
    return list(
        accumulate(
            blocks, lambda before, block: hashlib.sha256(before + block.raw).digest(), initial=start
        )
    )


def _hit(cache: PromptCache, prefixes: Sequence[bytes], mark: int, now: float) -> int:
    """The last cached position within reach of the breakpoint; -1 if there is none."""
    reach = range(mark, max(-1, mark - LOOK_BACK), -1)
    return next((place for place in reach if cache.holds(prefixes[place], now)), -1)


def _steps(prompt: PlainPrompt) -> list[bytes]:
    """The hashes of the prompt's prefixes, from the minimum on, step by step."""
    running = hashlib.sha256(f"{prompt.model}\0{prompt.route}\0".encode())
    prefixes, done = [], 0
    whole_tokens = (
        len(prompt.content) // BYTES_A_TOKEN
    )  # a token that is not yet full may still change
    for tokens in range(OPENAI_MINIMUM, whole_tokens + 1, OPENAI_STEP):
        end = tokens * BYTES_A_TOKEN
        running.update(prompt.content[done:end])
        prefixes.append(running.digest())
        done = end
    return prefixes


_WRITES_COST_FROM = (5, 6)  # gpt-5.6

_DEFERRING = CachedBlock(b"Some tools are shown when they are found.")
"""What the first deferred tool adds in front of a conversation: clients that depend on the cache
declare one from the start."""


def marked_prompt(body: Mapping[str, Any]) -> MarkedPrompt:
    """A Messages request as its cache sees it: tools, system, messages, without the marks
    themselves."""
    declared = _as_list(body.get("tools"))
    deferred = {str(tool.get("name")): tool for tool in declared if tool.get("defer_loading")}
    tools = tuple(_block("", tool) for tool in declared if not tool.get("defer_loading"))
    if deferred:
        tools = (*tools, _DEFERRING)
    system = tuple(_block("", block) for block in _blocks(body.get("system")))
    messages = tuple(
        _block(str(message.get("role")), _expand_references(block, deferred))
        for message in _as_list(body.get("messages"))
        for block in _blocks(message.get("content"))
    )
    settings = msgspec.json.encode([body.get("tool_choice"), body.get("thinking")])
    prompt = MarkedPrompt(str(body.get("model")), tools, system, messages, settings)
    return _with_automatic_mark(prompt, body.get("cache_control"))


def chat_prompt(body: Mapping[str, Any]) -> PlainPrompt:
    shape = [body.get("response_format"), body.get("reasoning_effort"), body.get("verbosity")]
    return _plain_prompt(body, [body.get("tools"), shape, *_as_list(body.get("messages"))])


def responses_prompt(body: Mapping[str, Any], items: Iterable[Any]) -> PlainPrompt:
    """`items` is the whole input, including what the provider stored."""
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
    """An item without fields that the model never reads: clients resend items with or without
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
    return CachedBlock(role.encode() + msgspec.json.encode(_strip_mark(block)), ttl)


def _expand_references(block: Any, deferred: Mapping[str, Any]) -> Any:
    """A block as the model reads it, with deferred tools in place of references."""
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


def _strip_mark(block: Any) -> Any:
    if not isinstance(block, Mapping):
        return block
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    if bare.get("type") == "tool_result" and isinstance(bare.get("content"), list):
        bare["content"] = [_strip_mark(inner) for inner in bare["content"]]
    return bare


def _with_automatic_mark(prompt: MarkedPrompt, mark: Any) -> MarkedPrompt:
    """A `cache_control` at the top of the request is moved to its last block."""
    if not isinstance(mark, Mapping) or not prompt.messages:
        return prompt
    *before, last = prompt.messages
    ttl = last.ttl or (LONG if mark.get("ttl") == "1h" else SHORT)
    return replace(prompt, messages=(*before, replace(last, ttl=ttl)))


def _blocks(content: Any) -> list[Any]:
    """A string is short for one text block: clients use both, and providers see no difference."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else _as_list(content)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


BYTES_A_TOKEN = (
    4  # what English and code average in the public tokenizers; exact counts would need one of them
)


def estimate_tokens(content: bytes) -> int:
    """Deterministic, offline, and never zero for non-empty content."""
    return -(-len(content) // BYTES_A_TOKEN)
