"""Asks a small model to sum up a stretch of work: one request, bounded in size and time, with a key of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from hotset.config import Summarising
from hotset.dialects.port import Dialects
from hotset.errors import HotsetError, UpstreamFailed
from hotset.nouns.call import Call, Headers
from hotset.nouns.message import DialectName, Reply, Usage
from hotset.nouns.page import Kind
from hotset.runtime.codings import plain
from hotset.upstream.port import Wire
from hotset.window.summary import INSTRUCTION, Stretch, checked, transcript

_REPLY_TOKENS = 4096  # a bound, not a wish: models that think count their thoughts too
_MOST_REPLY = 1 << 20  # bytes; a summary has two thousand
_REFUSALS = frozenset({"refusal", "content_filter"})


class NotWritten(HotsetError):
    """The model gave no summary. Says why in a word or two, never with content."""


async def ask(stretch: Stretch, chosen: Summarising, wire: Wire, dialects: Dialects) -> tuple[str, Usage]:
    """What the model wrote, and what it counted. Raises `NotWritten`."""
    return await ask_about(await asyncio.to_thread(transcript, stretch), chosen, wire, dialects)


async def ask_about(source: str, chosen: Summarising, wire: Wire, dialects: Dialects) -> tuple[str, Usage]:
    """The same, of a text that tells of some work. Nothing is believed that does not stand in it."""
    call = _call(source, chosen)
    assert call.dialect is not None
    try:
        async with asyncio.timeout(chosen.seconds), wire.send(call) as response:
            answer = await plain(response)
            body = await _whole(answer.chunks)
    except TimeoutError:
        raise NotWritten("timeout") from None
    except UpstreamFailed:
        raise NotWritten("unreachable") from None
    if answer.status >= 400:
        raise NotWritten(f"status {answer.status}")
    reply = dialects[call.dialect].read(body, streamed=False)
    return checked_words(reply, source), reply.usage


def checked_words(reply: Reply, source: str) -> str:
    """The words of a reply as far as they can be trusted. Raises `NotWritten` where nothing is left of them."""
    if not reply.complete:
        raise NotWritten("unreadable")
    if reply.stop in _REFUSALS:
        raise NotWritten("refused")
    said = (part.content for message in reply.messages for part in message.parts if part.kind is Kind.RESPONSE)
    words = b"\n".join(said).decode("utf-8", "replace").strip()
    if not words:
        raise NotWritten("empty")
    text = checked(words, source)
    if not text:
        raise NotWritten("unfounded")
    return text


def _call(source: str, chosen: Summarising) -> Call:
    """In the dialect that the upstream speaks: every one but Anthropic's own speaks OpenAI's chat."""
    headers: Headers = ((b"content-type", b"application/json"), (b"accept-encoding", b"identity"), (b"user-agent", b"hotset"))
    key = chosen.key.encode()
    asked: list[dict[str, Any]] = [{"role": "user", "content": source}]
    if chosen.upstream == "anthropic":
        path, dialect = "/v1/messages", DialectName.ANTHROPIC
        body = {"model": chosen.model, "max_tokens": _REPLY_TOKENS, "system": INSTRUCTION, "messages": asked}
        headers += ((b"anthropic-version", b"2023-06-01"), *(((b"x-api-key", key),) if key else ()))
    else:
        path, dialect = "/chat/completions", DialectName.OPENAI_CHAT
        # OpenAI's newer models refuse the field's old name, and most other servers know no other.
        bound = "max_completion_tokens" if chosen.upstream == "openai" else "max_tokens"
        body = {"model": chosen.model, bound: _REPLY_TOKENS, "messages": [{"role": "system", "content": INSTRUCTION}, *asked]}
        headers += ((b"authorization", b"Bearer " + key),) if key else ()
    return Call("POST", path, headers, msgspec.json.encode(body), chosen.upstream, dialect)


async def _whole(chunks: AsyncIterator[bytes]) -> bytes:
    got = bytearray()
    async for chunk in chunks:
        got += chunk
        if len(got) > _MOST_REPLY:
            raise NotWritten("too long")
    return bytes(got)
