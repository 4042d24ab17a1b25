"""What is kept of one call: its request while it is under way, its reply when it ends. Never in the call's way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from hotset.dialects.port import Dialect
from hotset.errors import HotsetError, Malformed
from hotset.nouns.call import Call, Headers, Response, header
from hotset.nouns.deposit import Answered, Asked
from hotset.nouns.message import Reply
from hotset.nouns.turn import Outcome, TurnRef
from hotset.runtime import clients
from hotset.runtime.codings import MOST, decode, salvage
from hotset.runtime.machine import Machine

_log = logging.getLogger("hotset")

_T = TypeVar("_T")

_PATIENCE_SECONDS = 0.25
"""How long a client may wait for the store before its bytes go on without it."""

_IMPATIENCE_SECONDS = 0.01
"""How long it may wait once the store was found to be slow, until that keeps something in time again."""

_BYTES_A_SECOND = 20 << 20
"""What reading and keeping manages on a slow machine: a large body may take longer."""

_SMALL = 16 << 10  # below this, reading on the event loop is faster than a trip to a thread
_MARK_LENGTH = 64  # longer than the mark that ends a stream in any dialect


class Record:
    """The record of one call. Every method fails open: trouble is told in `headers` and in an event, never raised."""

    def __init__(self, call: Call, machine: Machine) -> None:
        assert call.dialect is not None
        self._call = call
        self._machine = machine
        self._dialect: Dialect = machine.dialects[call.dialect]
        self._trouble = ""
        self._ref: TurnRef | None = None
        self._asked_at = machine.clock()
        self._status = 0
        self._headers: Headers = ()
        self._got: list[bytes] = []
        self._size = 0
        self._kept_size = 0
        self._ended: asyncio.Task[None] | None = None
        self._asked = machine.background.spawn(self._keep_request(), "keep a request")

    async def settle(self) -> None:
        """Returns when the request is durable, or when the client has waited long enough."""
        await self._wait(self._asked)
        if self._ref is None and not self._trouble:
            self._bypassed("a fault of ours" if self._asked.done() else "not kept in time")

    @property
    def headers(self) -> Headers:
        """What the client is told of this record."""
        told: list[tuple[bytes, bytes]] = []
        if self._ref is not None:
            told += [(b"x-hotset-session", self._ref.session.encode()), (b"x-hotset-turn", str(self._ref.number).encode())]
        if self._trouble:
            told.append((b"x-hotset-degraded", self._trouble.encode("ascii", "replace")))
        return tuple(told)

    def answered(self, response: Response) -> None:
        self._status = response.status
        self._headers = response.headers

    @property
    def streamed(self) -> bool:
        return header(self._headers, b"content-type").startswith("text/event-stream")

    def take(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size <= MOST:
            self._got.append(chunk)

    def at_the_end(self) -> bool:
        """Do the latest bytes carry the mark that ends a streamed reply?"""
        latest = self._got[-1] if self._got else b""
        if len(latest) < _MARK_LENGTH and len(self._got) > 1:
            latest = self._got[-2][-_MARK_LENGTH:] + latest
        return self._dialect.ends(latest)

    async def end(self, outcome: Outcome) -> None:
        """Keeps the reply as it stands; returns when it is durable, or when the client has waited long enough."""
        self.end_later(outcome)
        assert self._ended is not None
        await self._wait(self._ended)

    def end_later(self, outcome: Outcome) -> None:
        """Keeps the reply while nobody waits for it. Said again it counts only if more has come since."""
        if self._ended is None or self._kept_size != self._size:
            self._kept_size = self._size
            self._ended = self._machine.background.spawn(self._keep_reply(outcome, self._ended), "keep a reply")

    async def _wait(self, task: asyncio.Task[None]) -> None:
        assert isinstance(self._call.body, bytes)
        large = (len(self._call.body) + self._size) / _BYTES_A_SECOND
        await asyncio.wait({task}, timeout=large + (_PATIENCE_SECONDS if self._machine.patient else _IMPATIENCE_SECONDS))
        self._machine.patient = task.done()

    async def _keep_request(self) -> None:
        call, machine = self._call, self._machine
        assert isinstance(call.body, bytes)
        try:
            body = await _off_loop(len(call.body), decode, call.body, header(call.headers, b"content-encoding"))
            request = await _off_loop(len(body), self._dialect.parse, body)
        except Malformed as error:
            # Not ours to judge: the upstream says what is wrong with it. Nothing is written, not even an event.
            self._trouble = f"unreadable request: {error}"
            machine.tally.bypassed += 1
            return
        asked = Asked(
            request=request,
            time=self._asked_at,
            agent=clients.agent(call.headers),
            key=clients.session_key(call.headers),
            client=clients.client(call.headers),
        )
        try:
            kept = await machine.keeper.keep(asked)
        except HotsetError as error:
            self._bypassed(f"store: {error}")
            return
        self._ref = kept.turn

    async def _keep_reply(self, outcome: Outcome, earlier: asyncio.Task[None] | None) -> None:
        await asyncio.wait({self._asked, earlier} if earlier else {self._asked})
        if self._ref is None:
            return
        raw = b"".join(self._got)
        encoding = header(self._headers, b"content-encoding")
        if self._size > MOST:
            self._bypassed(f"a reply of {self._size >> 20} MiB was kept only in part")
            outcome = Outcome.BROKEN
        body, reply = await _off_loop(len(raw), self._read, raw, encoding)
        ended = Answered(self._ref, self._machine.clock(), self._judge(outcome, reply), self._status, body, reply)
        try:
            await self._machine.keeper.keep(ended)
        except HotsetError as error:
            self._bypassed(f"store: {error}")
            return
        if earlier is None:
            self._machine.tally.kept += 1
            self._machine.gister.nudge()
            _tell(self._ref, ended, self._asked_at)

    def _read(self, raw: bytes, encoding: str) -> tuple[bytes, Reply]:
        body = salvage(raw, encoding)
        return body, self._dialect.read(body, streamed=self.streamed)

    def _judge(self, outcome: Outcome, reply: Reply) -> Outcome:
        """A reply is done when the provider said so, not when its connection closed."""
        if outcome is not Outcome.DONE:
            return outcome
        if self._status >= 400:
            return Outcome.REFUSED
        return Outcome.DONE if reply.complete else Outcome.BROKEN

    def _bypassed(self, reason: str) -> None:
        self._trouble = reason
        self._machine.bypass(reason, path=self._call.path.split("?")[0])


def _tell(ref: TurnRef, ended: Answered, asked_at: float) -> None:
    """One line a turn, by numbers alone."""
    usage = ended.reply.usage
    _log.info(
        "%s turn %d  %s %d  %d tokens in (%d cached), %d out  %.1f s",
        ref.session,
        ref.number,
        ended.outcome,
        ended.status,
        usage.input + usage.cache_read + usage.cache_write,
        usage.cache_read,
        usage.output,
        ended.time - asked_at,
    )


async def _off_loop(size: int, work: Callable[..., _T], *arguments: object) -> _T:
    if size <= _SMALL:
        return work(*arguments)
    return await asyncio.to_thread(work, *arguments)
