"""Asks an upstream, and once more without deferred tools where it does not know what those are.

The one second try there is: a request that was refused for a field of ours was not worked on, and nobody else can mend it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from hotset.nouns.call import Call, Response
from hotset.runtime.codings import plain
from hotset.runtime.sending import Sending
from hotset.upstream.port import Wire
from hotset.window.deferring import is_refusal


@asynccontextmanager
async def asked(call: Call, sending: Sending, wire: Wire) -> AsyncIterator[Response]:
    """What the upstream answers to a call of this turn."""
    async with wire.send(call) as response:
        if not sending.deferred or response.status < 400:
            yield response
            return
        told = await plain(response)
        body = b"".join([chunk async for chunk in told.chunks])
        again = await sending.without_deferred() if is_refusal(response.status, body) else None
        if again is None:
            yield replace(told, chunks=_whole(body))
            return
    async with wire.send(again) as response:
        if response.status < 400:
            sending.was_taken()
        yield response


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body
