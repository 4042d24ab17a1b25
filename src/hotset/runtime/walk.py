"""Handles one call, from the client's bytes to the last byte of its reply.

    open -> ask the sources, plan, render -> send -> relay as it arrives -> read -> keep
                                               ^                 |
                                               |_________________|   the model called our tools

The request is written to the store while it goes upstream, and the reply is relayed to the client
as it arrives. The event that ends the reply, and everything behind it, is held until request and
reply are on disk: what a client saw end is kept (see `reply_bytes` and `record`). The state of a
call is a chain of immutable values (`turn`); `record.sent` is the latest. If anything of ours
fails, the client's own bytes go through unchanged.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import Protocol

from hotset.dialects.port import TurnView
from hotset.errors import UpstreamFailed
from hotset.nouns.call import ClientCall, Headers, Response
from hotset.nouns.turn import Outcome
from hotset.runtime.attempts import ask_upstream, follow_up
from hotset.runtime.machine import Machine
from hotset.runtime.record import Record
from hotset.runtime.reply_bytes import StreamTail, chunks_with_timeout, decompress_reply
from hotset.runtime.steps import (
    answer_turn,
    bill_with_reply,
    close_turn,
    hide_rounds,
    plan_turn,
    settle_turn,
)
from hotset.runtime.turn import OwnTools, SentRounds, open_turn

_WHOLE_BYTES = 1 << 20
_WHOLE_SECONDS = 1.0
"""Limits up to which a document reply is held whole. Some upstreams send blanks for minutes before
the document, to keep the connection open."""


class Client(Protocol):
    """The connection to the client that made the call."""

    begun: bool
    """The status and headers are sent: from now on only body bytes can follow."""

    async def start(self, status: int, headers: Headers) -> None: ...

    async def send(self, chunk: bytes) -> None: ...

    async def finish(self, last: bytes = b"") -> None: ...

    async def refuse(self, status: int, message: str, headers: Headers) -> None:
        """Send an error in the call's own dialect."""
        ...

    def broke(self) -> None:
        """Abort the reply, so that the client cannot take it for a clean end."""
        ...


async def walk(call: ClientCall, client: Client, machine: Machine) -> None:
    """Handle one call of a conversation. Cancelled when the client disconnects."""
    now = asyncio.get_running_loop().time
    came = now()
    try:
        opened = await open_turn(call, machine)
        record = Record(opened, machine, bill_with_reply)
    except Exception as error:
        # fail open: nothing was sent yet, so the client's bytes go through without us
        machine.bypass(f"a fault of ours: {type(error).__name__}", path=call.path.split("?")[0])
        await pass_through(call, client, machine)
        return
    try:
        try:
            await plan_turn(record, machine)  # sources, plan, rules; or the client's own bytes
        finally:
            record.receive()  # the request goes to the store while it goes out
        machine.tally.waits.add(now() - came, record.sent.cpu)
        async with ask_upstream(record, machine) as response:
            if isinstance(record.sent, SentRounds) and response.status < 400:
                await _rounds(
                    await decompress_reply(response), record.sent.own, record, client, machine
                )
            else:
                await record.answered(response)
                await (_stream if record.streamed else _document)(response, record, client)
        settle_turn(record, machine)
    except UpstreamFailed as failure:
        await record.end(Outcome.BROKEN)
        await _fail(failure, client, record.headers)
    except asyncio.CancelledError:
        machine.tally.left += 1
        record.end_later(Outcome.LEFT)
        # many clients disconnect right after the last event: the reply may still be complete
        settle_turn(record, machine)
        raise
    finally:
        close_turn(record, machine)


async def _stream(response: Response, record: Record, client: Client) -> None:
    """Relay every event as it arrives; hold the one that ends the reply until it is on disk."""
    await client.start(response.status, (*response.headers, *record.headers))
    tail = record.tail()
    try:
        async with aclosing(
            chunks_with_timeout(response.chunks, lambda: tail.is_stopped)
        ) as chunks:
            async for chunk in chunks:
                record.take(chunk)
                if shown := tail.feed(chunk) if chunk else b"":
                    await client.send(shown)
                record.stopped(tail.is_stopped)
                if tail.is_whole or not chunk:
                    await record.end(Outcome.DONE)
                    await client.send(_trouble_comment(record, tail) + tail.release())
    except UpstreamFailed:  # the client gets what arrived before the connection broke
        await record.end(Outcome.BROKEN)
        if rest := _trouble_comment(record, tail) + tail.rest():
            await client.send(rest)
        raise
    await record.end(Outcome.DONE)
    await client.finish(_trouble_comment(record, tail) + tail.rest())


def _trouble_comment(record: Record, tail: StreamTail) -> bytes:
    """The comment that reports trouble to the client; a compressed stream has no place for one."""
    return record.comment if tail.is_plain else b""


async def _document(response: Response, record: Record, client: Client) -> None:
    """Relay a document. It is held until it is on disk, so that its headers can report trouble; of
    a large or slow one only the last piece is held."""
    held: list[bytes] = []
    now = asyncio.get_running_loop().time
    begun, size = now(), 0
    async for chunk in response.chunks:
        record.take(chunk)
        held.append(chunk)
        size += len(chunk)
        if size > _WHOLE_BYTES or now() - begun > _WHOLE_SECONDS:
            await _begin(response, record, client)
            while len(held) > 1:
                await client.send(held.pop(0))
    await record.end(Outcome.DONE)
    await _begin(response, record, client)
    await client.finish(b"".join(held))


async def _rounds(
    response: Response, own: OwnTools, record: Record, client: Client, machine: Machine
) -> None:
    """Relay a turn in which the model may call our tools: as many upstream calls as it takes, one
    reply for the client."""
    await record.answered(response)
    dialect = record.sent.opened.dialect
    view = dialect.view(own, streamed=record.streamed, hand_over=own.hand_over)
    tail = record.tail()
    await _relay(response, view, tail, record, client)
    round = view.round()
    while await answer_turn(record, round, machine):
        try:
            pulse = partial(_pulse, view, record, client)
            async with follow_up(record, machine, pulse) as later:
                response = await decompress_reply(later)
                if response.status >= 400:
                    await _relay_refusal(response, view, tail, record, client)
                    return
                await _relay(response, view, tail, record, client)
        except UpstreamFailed as failure:
            if not client.begun:
                raise
            await _end_broken(view.fail(502, _refusal(record, str(failure))), tail, record, client)
            return
        round = view.round()
        if client.begun and not round.complete and not view.stopped:
            reason = f"{record.sent.call.upstream} broke off in mid-reply"
            await _end_broken(view.fail(502, _refusal(record, reason)), tail, record, client)
            return
    last = view.close()
    record.take(last)
    hide_rounds(record, view, machine)
    await record.end(Outcome.DONE)
    await _begin(response, record, client)
    await client.finish((record.comment if record.streamed else b"") + tail.rest() + last)


def _refusal(record: Record, reason: str) -> bytes:
    """An error body in the dialect's own form, for an upstream that gave none."""
    return record.sent.opened.dialect.refuse(502, f"hotset: {reason}")


async def _relay(
    response: Response, view: TurnView, tail: StreamTail, record: Record, client: Client
) -> None:
    """Relay what the client may see of a round as it arrives; a document shows nothing before its
    end."""
    try:
        async with aclosing(chunks_with_timeout(response.chunks, lambda: view.stopped)) as chunks:
            async for chunk in chunks:
                if not chunk:  # the end event has come, but the stream stays open
                    return
                if shown := view.take(chunk):
                    record.take(shown)
                    if seen := tail.feed(shown):
                        await _begin(response, record, client)
                        await client.send(seen)
                record.stopped(view.stopped)
    except UpstreamFailed:
        if not tail.is_stopped:  # after an error event the stream counts as ended
            raise


async def _relay_refusal(
    response: Response, view: TurnView, tail: StreamTail, record: Record, client: Client
) -> None:
    """Pass on the upstream's refusal of a later round, in the form that fits what the client has
    seen so far."""
    body = b"".join([chunk async for chunk in response.chunks])
    if client.begun:
        last, outcome = view.fail(response.status, body), Outcome.BROKEN
    else:
        last, outcome = body, Outcome.REFUSED
        await record.answered(response)
    record.take(last)
    await record.end(outcome)
    await _begin(response, record, client)
    await client.finish(tail.rest() + last)


async def _end_broken(last: bytes, tail: StreamTail, record: Record, client: Client) -> None:
    """End a reply whose later round broke off with an error event in the client's dialect."""
    record.take(last)
    await record.end(Outcome.BROKEN)
    await client.finish(tail.rest() + last)


async def _pulse(view: TurnView, record: Record, client: Client) -> None:
    if client.begun and view.pulse:
        record.take(view.pulse)
        await client.send(view.pulse)


async def _begin(response: Response, record: Record, client: Client) -> None:
    if not client.begun:
        await client.start(response.status, (*response.headers, *record.headers))


async def pass_through(call: ClientCall, client: Client, machine: Machine) -> None:
    """Relay a call that is not part of a conversation, or that we cannot read. Nothing is parsed or
    kept."""
    trouble: Headers = ((b"x-hotset-degraded", call.unread.encode()),) if call.unread else ()
    try:
        async with machine.wire.send(call) as response:
            await client.start(response.status, (*response.headers, *trouble))
            async for chunk in response.chunks:
                await client.send(chunk)
            await client.finish()
    except UpstreamFailed as failure:
        await _fail(failure, client, trouble)


async def _fail(failure: UpstreamFailed, client: Client, headers: Headers) -> None:
    if client.begun:
        client.broke()
    else:
        await client.refuse(502, str(failure), headers)
