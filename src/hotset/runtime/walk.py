"""The walk: one call, from the client's bytes to the last byte of its reply.

    bytes arrive -> parse -> keep -> send -> relay as it comes -> read -> keep

The request is read and made durable beside the call to the upstream. The reply goes to the client as it comes; only its
last bytes wait until it is on disk, so that whoever has seen the end of a reply can rely on its being kept. Any fault of
ours ends in the client's own bytes going through (see `record`).
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from hotset.errors import UpstreamFailed
from hotset.nouns.call import Call, Headers, Response
from hotset.nouns.turn import Outcome
from hotset.runtime.machine import Machine
from hotset.runtime.record import Record


class Client(Protocol):
    """Whoever made the call."""

    async def start(self, status: int, headers: Headers) -> None: ...

    async def send(self, chunk: bytes) -> None: ...

    async def finish(self) -> None: ...

    async def refuse(self, status: int, message: str, headers: Headers) -> None:
        """An error in the call's own dialect."""
        ...

    def broke(self) -> None:
        """The reply broke off: the client must see that it did, never a clean end."""
        ...


async def walk(call: Call, client: Client, machine: Machine) -> None:
    """One call of a conversation. Cancelled when the client leaves."""
    record = Record(call, machine)
    begun = False
    try:
        async with machine.wire.send(call) as response:
            record.answered(response)
            await record.settle()
            begun = True
            await client.start(response.status, (*response.headers, *record.headers))
            await _relay(response, record, client)
    except UpstreamFailed as failure:
        await record.end(Outcome.BROKEN)
        if begun:
            client.broke()
        else:
            await client.refuse(502, str(failure), record.headers)
    except asyncio.CancelledError:
        machine.tally.left += 1
        record.end_later(Outcome.LEFT)
        raise


async def pass_through(call: Call, client: Client, machine: Machine) -> None:
    """A call that is not part of a conversation, or that we cannot read: nothing is looked at, nothing is kept."""
    begun = False
    told: Headers = ((b"x-hotset-degraded", call.unread.encode()),) if call.unread else ()
    try:
        async with machine.wire.send(call) as response:
            begun = True
            await client.start(response.status, (*response.headers, *told))
            async for chunk in response.chunks:
                await client.send(chunk)
            await client.finish()
    except UpstreamFailed as failure:
        if begun:
            client.broke()
        else:
            await client.refuse(502, str(failure), told)


async def _relay(response: Response, record: Record, client: Client) -> None:
    """Every byte as it comes; the last ones when the reply is on disk."""
    held = b""
    async for chunk in response.chunks:
        record.take(chunk)
        if held:
            await client.send(held)
        if not record.streamed:
            held = chunk  # a document is of use only whole, so holding its last piece costs nobody anything
            continue
        if record.at_the_end():
            await record.end(Outcome.DONE)
        await client.send(chunk)
    await record.end(Outcome.DONE)
    if held:
        await client.send(held)
    await client.finish()
