"""The walk: one call, from the client's bytes to the last byte of its reply.

    bytes arrive -> parse -> plan -> keep, send -> relay as it comes -> read -> keep
                               ^                      |
                               |______________________|   the model asked for what left its window: `faults`

Nobody waits for the disk: the request is made durable beside the call to the upstream, and the reply goes to the client as it
comes. Only its last bytes wait until it is handed to the store, so that a client's next request stands behind it.
Any fault of ours ends in the client's own bytes going through (see `record` and `sending`).
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from hotset.dialects.view import View
from hotset.errors import UpstreamFailed
from hotset.nouns.call import Call, Headers, Response
from hotset.nouns.turn import Outcome
from hotset.runtime.asking import asked
from hotset.runtime.codings import plain
from hotset.runtime.machine import Machine
from hotset.runtime.record import Record
from hotset.runtime.sending import Sending


class Client(Protocol):
    """Whoever made the call."""

    begun: bool
    """The reply has begun: nothing else can be told any more."""

    async def start(self, status: int, headers: Headers) -> None: ...

    async def send(self, chunk: bytes) -> None: ...

    async def finish(self, last: bytes = b"") -> None: ...

    async def refuse(self, status: int, message: str, headers: Headers) -> None:
        """An error in the call's own dialect."""
        ...

    def broke(self) -> None:
        """The reply broke off: the client must see that it did, never a clean end."""
        ...


async def walk(call: Call, client: Client, machine: Machine) -> None:
    """One call of a conversation. Cancelled when the client leaves."""
    try:
        record = Record(call, machine)
    except Exception as error:  # fail open: nothing was sent yet, so the client's bytes go through without us
        machine.bypass(f"a fault of ours: {type(error).__name__}", path=call.path.split("?")[0])
        await pass_through(call, client, machine)
        return
    sending: Sending | None = None
    try:
        sending = await Sending.of(call, record, machine)
        async with asked(sending.call, sending, machine.wire) as response:
            if sending.offered and response.status < 400:
                await _rounds(await plain(response), sending, record, client, machine)
            else:
                await record.answered(response)
                await (_stream if record.streamed else _document)(response, record, client)
        sending.settle()
    except UpstreamFailed as failure:
        await record.end(Outcome.BROKEN)
        await _fail(failure, client, record.headers)
    except asyncio.CancelledError:
        machine.tally.left += 1
        record.end_later(Outcome.LEFT)
        if sending is not None:
            sending.settle()  # many a client leaves as soon as it has the last event: the reply was whole all the same
        raise
    finally:
        if sending is not None:
            sending.close()


async def _stream(response: Response, record: Record, client: Client) -> None:
    """Every event as it comes; the one that ends it when the reply is handed to the store."""
    await client.start(response.status, (*response.headers, *record.headers))
    async for chunk in response.chunks:
        record.take(chunk)
        if record.at_the_end():
            await record.end(Outcome.DONE)
        await client.send(chunk)
    await record.end(Outcome.DONE)
    await client.finish()


async def _document(response: Response, record: Record, client: Client) -> None:
    """A document is of use only whole, so its last piece, most often all of it, can wait without costing anybody anything."""
    held = b""
    async for chunk in response.chunks:
        record.take(chunk)
        if held:
            await _begin(response, record, client)
            await client.send(held)
        held = chunk
    await record.end(Outcome.DONE)
    await _begin(response, record, client)
    await client.finish(held)


async def _rounds(response: Response, sending: Sending, record: Record, client: Client, machine: Machine) -> None:
    """A turn in which the model may ask us for something: as many calls as it takes, one reply for the client."""
    await record.answered(response)
    view = sending.view(streamed=record.streamed)
    await _relay(response, view, record, client)
    while (again := await sending.answered(view.round())) is not None:
        async with asked(again, sending, machine.wire) as later:
            response = await plain(later)
            if response.status >= 400:
                await _refused(response, view, record, client)
                return
            await _relay(response, view, record, client)
    last = view.close()
    record.take(last)
    await sending.hide(view)
    await record.end(Outcome.DONE)
    await _begin(response, record, client)
    await client.finish(last)


async def _relay(response: Response, view: View, record: Record, client: Client) -> None:
    """What the client may see of a round, as it comes; of a document that is nothing before its end."""
    async for chunk in response.chunks:
        if shown := view.take(chunk):
            await _begin(response, record, client)
            record.take(shown)
            await client.send(shown)


async def _refused(response: Response, view: View, record: Record, client: Client) -> None:
    """The upstream refused a later round: its own words, in the form that fits what the client has seen so far."""
    body = b"".join([chunk async for chunk in response.chunks])
    if client.begun:
        last, outcome = view.fail(response.status, body), Outcome.BROKEN
    else:
        last, outcome = body, Outcome.REFUSED
        await record.answered(response)
    record.take(last)
    await record.end(outcome)
    await _begin(response, record, client)
    await client.finish(last)


async def _begin(response: Response, record: Record, client: Client) -> None:
    if not client.begun:
        await client.start(response.status, (*response.headers, *record.headers))


async def pass_through(call: Call, client: Client, machine: Machine) -> None:
    """A call that is not part of a conversation, or that we cannot read: nothing is looked at, nothing is kept."""
    told: Headers = ((b"x-hotset-degraded", call.unread.encode()),) if call.unread else ()
    try:
        async with machine.wire.send(call) as response:
            await client.start(response.status, (*response.headers, *told))
            async for chunk in response.chunks:
                await client.send(chunk)
            await client.finish()
    except UpstreamFailed as failure:
        await _fail(failure, client, told)


async def _fail(failure: UpstreamFailed, client: Client, told: Headers) -> None:
    if client.begun:
        client.broke()
    else:
        await client.refuse(502, str(failure), told)
