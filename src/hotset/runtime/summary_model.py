"""Asks a small model to sum up a stretch of work: one request, bounded in size and time, with a key
of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec

from hotset.config import Summarising
from hotset.dialects import DEFAULT, Dialect, Dialects
from hotset.errors import HotsetError, UpstreamFailed
from hotset.nouns.call import ClientCall, Headers
from hotset.nouns.message import Reply, Usage
from hotset.nouns.page import Kind
from hotset.runtime.codings import plain
from hotset.upstream.port import Wire
from hotset.window.summary import INSTRUCTION, Stretch, checked_summary, transcript

_REPLY_TOKENS = 4096  # a bound, not a wish: models that think count their thoughts too
_MOST_REPLY = 1 << 20  # bytes; a summary has two thousand
_REFUSALS = frozenset({"refusal", "content_filter"})


class NotWritten(HotsetError):
    """The model gave no summary. Says why in a word or two, never with content."""


async def ask(
    stretch: Stretch, chosen: Summarising, wire: Wire, dialects: Dialects
) -> tuple[str, Usage]:
    """What the model wrote, and what it counted. Raises `NotWritten`."""
    return await ask_about(await asyncio.to_thread(transcript, stretch), chosen, wire, dialects)


async def ask_about(
    source: str, chosen: Summarising, wire: Wire, dialects: Dialects
) -> tuple[str, Usage]:
    """The same, of a text that tells of some work. Nothing is believed that does not stand in
    it."""
    spoken = (each for each in dialects.values() if each.provider == chosen.upstream)
    dialect = next(spoken, DEFAULT)  # every upstream but a provider's own speaks OpenAI's chat
    call = _call(source, chosen, dialect)
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
    reply = dialect.read(body, streamed=False)
    return checked_words(reply, source), reply.usage


def checked_words(reply: Reply, source: str) -> str:
    """The words of a reply as far as they can be trusted. Raises `NotWritten` where nothing is left
    of them."""
    if not reply.complete:
        raise NotWritten("unreadable")
    if reply.stop in _REFUSALS:
        raise NotWritten("refused")
    said = (
        part.content
        for message in reply.messages
        for part in message.parts
        if part.kind is Kind.RESPONSE
    )
    words = b"\n".join(said).decode("utf-8", "replace").strip()
    if not words:
        raise NotWritten("empty")
    text = checked_summary(words, source)
    if not text:
        raise NotWritten("unfounded")
    return text


def _call(source: str, chosen: Summarising, dialect: Dialect) -> ClientCall:
    headers: Headers = (
        (b"content-type", b"application/json"),
        (b"accept-encoding", b"identity"),
        (b"user-agent", b"hotset"),
    )
    body = {
        "model": chosen.model,
        dialect.length_field(chosen.upstream): _REPLY_TOKENS,
        **dialect.compose(INSTRUCTION, [{"role": "user", "content": source}]),
    }
    headers += dialect.headers(chosen.key)
    return ClientCall(
        "POST", dialect.endpoint, headers, msgspec.json.encode(body), chosen.upstream, dialect.name
    )


async def _whole(chunks: AsyncIterator[bytes]) -> bytes:
    got = bytearray()
    async for chunk in chunks:
        got += chunk
        if len(got) > _MOST_REPLY:
            raise NotWritten("too long")
    return bytes(got)
