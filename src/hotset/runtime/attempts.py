"""Sends calls upstream: the client's own call once, a follow-up of ours again if it was refused.

A client retries its own call as it likes. It does not know of our follow-ups, and a failed one
costs it a turn that has begun. A call is also sent once more without deferred tools if the upstream
does not support them: it was refused for a field of ours, so only we can repair it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from email.utils import parsedate_to_datetime
from math import isfinite

from hotset.errors import UpstreamFailed
from hotset.nouns.call import Headers, Response, header
from hotset.runtime.machine import Machine
from hotset.runtime.record import Record
from hotset.runtime.reply_bytes import decompress_reply
from hotset.runtime.steps import deferring_refused, log_retry, spell_out_tools
from hotset.runtime.turn import SentRounds
from hotset.window.deferred_tools import is_refusal

_PAUSES = (0.5, 2.0)
"""Seconds before each retry of a follow-up, unless the upstream says how long to wait."""

_RETRY_SECONDS = 30.0
"""How long the retries may take together, including waits."""

_PULSE_SECONDS = 10.0
"""How often a waiting client gets a sign that the turn goes on."""


@asynccontextmanager
async def ask_upstream(record: Record, machine: Machine) -> AsyncIterator[Response]:
    """The upstream's response to the latest call of this turn."""
    sent = record.sent
    defers = isinstance(sent, SentRounds) and sent.planned.deferred
    async with machine.wire.send(record.sent.call) as response:
        if not defers or response.status < 400:
            yield response
            return
        refusal = await decompress_reply(response)
        body = b"".join([chunk async for chunk in refusal.chunks])
        is_ours = is_refusal(response.status, body)
        again = await spell_out_tools(record, machine) if is_ours else None
        if again is None:
            yield replace(refusal, chunks=_chunks(body))
            return
    async with machine.wire.send(again) as response:
        if response.status < 400:
            deferring_refused(record, machine)
        yield response


@asynccontextmanager
async def follow_up(
    record: Record, machine: Machine, pulse: Callable[[], Awaitable[None]]
) -> AsyncIterator[Response]:
    """The upstream's response to a follow-up, which is retried twice as long as no byte of a reply
    has come.

    `pulse` is called every 10 s while the client waits for a retry. Raises `UpstreamFailed` if the
    last try gets no reply.
    """
    left, clock = _RETRY_SECONDS, asyncio.get_running_loop().time
    async with AsyncExitStack() as reply, AsyncExitStack() as pulses:
        for number, pause in enumerate((*_PAUSES, None), 2):
            began = clock()
            failure: UpstreamFailed | None = None
            response: Response | None = None
            try:
                response = await _wait_for_first_bytes(
                    await reply.enter_async_context(ask_upstream(record, machine))
                )
            except UpstreamFailed as error:
                failure = error
            left -= clock() - began if number > 2 else 0.0
            wait = _wait(response, pause, machine.clock())
            if wait is None or wait > left:
                break
            await reply.aclose()
            if number == 2:
                await pulses.enter_async_context(_pulsing(machine, pulse))
            log_retry(record, machine, number, response.status if response is not None else 0, wait)
            await machine.sleep(wait)
            left -= wait
        await pulses.aclose()
        if response is None:
            assert failure is not None
            raise failure
        yield response


async def _wait_for_first_bytes(response: Response) -> Response:
    """A reply whose first bytes have arrived; a refusal in full. Raises `UpstreamFailed` if nothing
    arrived."""
    if response.status >= 400:
        return replace(
            response, chunks=_chunks(b"".join([chunk async for chunk in response.chunks]))
        )
    async for chunk in response.chunks:
        if chunk:
            return replace(response, chunks=_chunks(chunk, response.chunks))
    raise UpstreamFailed("the upstream ended its reply before it began")


def _wait(response: Response | None, pause: float | None, now: float) -> float | None:
    """Seconds until the next try; None if there is none."""
    if response is None:
        return pause
    refuses = header(response.headers, b"x-should-retry").strip().lower() == "false"
    if pause is None or refuses or not (response.status == 429 or response.status >= 500):
        return None
    seconds = _retry_after(response.headers, now)
    return pause if seconds is None else seconds


def _retry_after(headers: Headers, now: float) -> float | None:
    """How long the upstream says to wait: in milliseconds, in seconds, or until a date."""
    for name, unit in ((b"retry-after-ms", 1000.0), (b"retry-after", 1.0)):
        value = header(headers, name).strip()
        try:
            seconds = float(value) / unit
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - now
            except (ValueError, OverflowError):
                continue
        if isfinite(seconds):
            return max(0.0, seconds)
    return None


@asynccontextmanager
async def _pulsing(machine: Machine, pulse: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    async def beat() -> None:
        for _ in range(
            int(_RETRY_SECONDS / _PULSE_SECONDS)
        ):  # a longer silence of the upstream is for the client to judge
            await machine.sleep(_PULSE_SECONDS)
            await pulse()

    beating = machine.scope.task(beat(), "pulse")
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait({beating})


async def _chunks(first: bytes, rest: AsyncIterator[bytes] | None = None) -> AsyncIterator[bytes]:
    yield first
    if rest is not None:
        async for chunk in rest:
            yield chunk
