"""What is kept of one call: its request while it is under way, its reply before the client is told
how it ended."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from typing import TypeVar

from hotset.dialects.port import Dialect
from hotset.errors import DiskFull, HotsetError, Malformed, NotFound, StoreBusy, StoreMoved
from hotset.nouns.call import ClientCall, Headers, Response, header
from hotset.nouns.deposit import CommitReceipt, Deposit, ReplyReceived, RequestReceived
from hotset.nouns.message import Reply, Request
from hotset.nouns.turn import Outcome, TurnId, TurnRef
from hotset.runtime import clients
from hotset.runtime.codings import MOST, decode, salvage
from hotset.runtime.machine import Machine
from hotset.runtime.tail import StreamTail

_log = logging.getLogger("hotset")

_T = TypeVar("_T")

KEEPING = "keep a turn"
"""The name of this work among that of the background."""

_PATIENCE_SECONDS = 2.0
"""How long a call waits in all for request and reply to be on disk: two group commits, a few
milliseconds each."""

_LONGEST_REASON = 300
_SMALL = 16 << 10  # below this, reading on the event loop is faster than a trip to a thread


class Record:
    """The record of one call. Every method fails open: trouble is told in `headers` and in an
    event, never raised."""

    def __init__(self, call: ClientCall, machine: Machine) -> None:
        assert call.dialect is not None
        self._call = call
        self._machine = machine
        self._dialect: Dialect = machine.dialects[call.dialect]
        self._id = TurnId(secrets.token_hex(8))
        self._asked_at = machine.clock()
        self._trouble = ""
        self._told = ""
        """The trouble that the client was told of."""
        self._patience = _PATIENCE_SECONDS * machine.config.patience
        self._late = False
        self._stopped: float | None = None
        """When the event came that tells how the reply ended."""
        self._ref: TurnRef | None = None
        self._response: Response | None = None
        self._got: list[bytes] = []
        self._size = 0
        self._ended_size = -1
        self._goes_out = asyncio.Event()
        self._beside: asyncio.Task[None] | None = None
        self._committing: asyncio.Task[None] | None = None
        """Ends when the reply is on disk, or cannot be."""
        self._handed_over = asyncio.Event()
        self._ending = asyncio.Lock()
        self._kept = asyncio.Event()
        self._is_read = asyncio.Event()
        self._asking: RequestReceived | None = None
        """The request, once it is read; None where it cannot be."""
        self._reply = Reply()
        self.closing: Callable[[Reply], Sequence[Deposit]] | None = None
        """What is to be kept with the reply once it is read. Let go when it was asked: it refers
        back to this record."""
        self._beside_request: list[Deposit] = []
        self._beside_reply: list[Deposit] = []
        self._given_up = True
        """Until the request is handed over: then its reply can be as well."""
        if self._is_quick:
            self._take_in(self._parse())
        self._asked = machine.background.spawn(self._keep_request(), KEEPING)

    @property
    def id(self) -> TurnId:
        return self._id

    @property
    def asked_at(self) -> float:
        return self._asked_at

    async def request(self) -> Request | None:
        """What the client asked for; None where it cannot be read."""
        if not self._is_read.is_set():
            await self._is_read.wait()
        return self._asking.request if self._asking is not None else None

    def goes_out(self) -> None:
        """The request is about to be sent. From then on it is kept: sooner, the store's thread
        would hold up its bytes."""
        # Behind what the sender does in this very step: on a connection that is open, that is to
        # write all of it.
        asyncio.get_running_loop().call_soon(self._goes_out.set)

    def beside(self, work: asyncio.Task[None]) -> None:
        """Work on this call for which the upstream need not wait. It is done before the reply ends:
        the next one builds on it."""
        self._beside = work

    async def ref(self, seconds: float) -> TurnRef | None:
        """The turn's place in the store, as soon as it has one; None where it has none in time."""
        try:
            async with asyncio.timeout(seconds * self._machine.config.patience):
                await self._kept.wait()
        except TimeoutError:
            return None
        return self._ref

    @property
    def reply(self) -> Reply:
        """What the client saw, once it has ended."""
        return self._reply

    def also(self, *deposits: Deposit) -> None:
        """Keeps more about this turn, in the commit of its request or of its reply, whichever is
        next; behind both by itself."""
        if not self._handed_over.is_set():
            self._beside_request += deposits
        elif self._ended_size < 0:
            self._beside_reply += deposits
        else:
            self.at_once(*deposits)

    def at_once(self, *deposits: Deposit) -> None:
        """Keeps deposits in a commit of their own, behind the request: others look for them before
        the reply ends."""
        if deposits:
            self._machine.background.spawn(self._keep_also(deposits), KEEPING)

    def bypassed(self, reason: str) -> None:
        """We could not do our part for this call; it is told with the reply, as far as that has not
        begun."""
        if reason == self._trouble:
            return
        self._trouble = reason
        self._machine.bypass(reason, path=self._call.path.split("?")[0])

    async def answered(self, response: Response) -> None:
        """The reply begins. It waits for the request's commit, which had all the time that the
        provider took: by it the client is told where its turn is kept."""
        self._response = response
        await self._until_kept(self._asked)
        if not self._asked.done():
            self._is_late()
        elif self._ref is None and not self._trouble:
            self._trouble = self._machine.keeper.trouble or "a fault of ours"

    @property
    def headers(self) -> Headers:
        """What is known of this record by now, for the client."""
        told: list[tuple[bytes, bytes]] = []
        if self._ref is not None:
            told += [
                (b"x-hotset-session", self._ref.session.encode()),
                (b"x-hotset-turn", str(self._ref.number).encode()),
            ]
        if self._trouble:
            told.append((b"x-hotset-degraded", _header_text(self._trouble)))
        self._told = self._trouble
        return tuple(told)

    @property
    def comment(self) -> bytes:
        """What the headers did not tell yet, as a comment between two events of a stream; empty
        where there is nothing."""
        if self._trouble in ("", self._told):
            return b""
        self._told = self._trouble
        return b": hotset: %s\n\n" % _header_text(self._trouble)

    @property
    def streamed(self) -> bool:
        return self._header(b"content-type").startswith("text/event-stream")

    def take(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size <= MOST:
            self._got.append(chunk)

    def seen(self) -> Reply:
        """The reply as the client saw it, by now."""
        return self._dialect.read(b"".join(self._got), streamed=self.streamed)

    def tail(self) -> StreamTail:
        """For the end of this reply, where it is a stream."""
        return StreamTail(self._dialect, self._header(b"content-encoding"))

    def stopped(self, stopped: bool) -> None:
        """Whether the client waits to be told how the reply ended: its patience counts from
        then."""
        if not stopped:
            self._stopped = None
        elif self._stopped is None:
            self._stopped = asyncio.get_running_loop().time()

    async def end(self, outcome: Outcome) -> None:
        """Hands the reply to the store as it stands and waits until it is on disk; said again it
        counts only if more has come since.

        Whatever the client sees behind this is acknowledged. Its next request is handed over behind
        it, too, so that it finds its own past.
        """
        handing = self.end_later(outcome)
        await self._wait(handing)
        if self._committing is not None:
            await self._until_kept(self._committing)
        if self._beside is not None:  # the next call builds on it
            await self._until_kept(self._beside)
        if not handing.done() or (self._committing is not None and not self._committing.done()):
            self._is_late()

    def end_later(self, outcome: Outcome) -> asyncio.Task[None]:
        """The same, while nobody waits for it. Done when it is handed over."""
        return self._machine.background.spawn(self._end(outcome), KEEPING)

    def _is_late(self) -> None:
        """The call goes on before it is on disk, and says so once."""
        keeper = self._machine.keeper
        reason = (
            f"store: {keeper.trouble}" if keeper.store is None else keeper.trouble or self._lateness
        )
        if not self._late and self._trouble != reason:
            self._machine.tally.late += 1
            self.bypassed(reason)
        self._late, self._patience = True, 0.0

    @property
    def _lateness(self) -> str:
        seconds = _PATIENCE_SECONDS * self._machine.config.patience
        return f"not on disk within {seconds:.0f} s; kept as soon as the store takes it"

    async def _until_kept(self, keeping: asyncio.Task[None]) -> None:
        """Waits for a commit, but not for a store that is known to be down or stuck."""
        if not keeping.done() and not self._machine.keeper.trouble:
            await self._wait(keeping)

    async def _wait(self, work: asyncio.Task[None]) -> None:
        now = asyncio.get_running_loop().time
        begun = now()
        left = self._patience - (begun - self._stopped if self._stopped is not None else 0.0)
        await asyncio.wait({work}, timeout=max(0.0, left))
        if self._stopped is None:
            self._patience -= now() - begun

    async def _end(self, outcome: Outcome) -> None:
        try:
            await self._handed_over.wait()
            async with self._ending:
                await self._hand_reply_over(outcome)
        except Exception as error:
            # fail open: the reply has come, and nothing of ours may stand in its way
            self.bypassed(f"a fault of ours: {type(error).__name__}")

    async def _hand_reply_over(self, outcome: Outcome) -> None:
        if self._given_up or self._ended_size == self._size:
            return
        first, self._ended_size = self._ended_size < 0, self._size
        if self._size > MOST:
            self.bypassed(f"a reply of {self._size >> 20} MiB was kept only in part")
            outcome = Outcome.BROKEN
        raw = b"".join(self._got)
        packed = self._header(b"content-encoding").lower() not in (
            "",
            "identity",
        )  # then it may hold any number of bytes
        body, reply = await _off_loop(_SMALL + 1 if packed else len(raw), self._read, raw)
        self._reply = reply
        status = self._response.status if self._response else 0
        ended = ReplyReceived(
            self._id, self._machine.clock(), _judged(outcome, status, reply), status, body, reply
        )
        before, self._beside_reply = self._beside_reply, []
        group = (*before, ended, *self._closed_with(reply)) if first else (ended,)
        if (keeping := self._hand_over(*group)) is not None:
            confirming = self._confirm(keeping, ended, group, first=first)
            self._committing = self._machine.background.spawn(confirming, KEEPING)

    def _closed_with(self, reply: Reply) -> Sequence[Deposit]:
        closing, self.closing = self.closing, None
        try:
            return closing(reply) if closing is not None else ()
        except Exception as error:  # fail open: the reply is kept without
            self.bypassed(f"a fault of ours in closing a turn: {type(error).__name__}")
            return ()

    async def _keep_request(self) -> None:
        try:
            if not self._is_read.is_set():
                self._take_in(await asyncio.to_thread(self._parse))
            await self._goes_out.wait()
            await self._machine.keeper.ready()
            asked = self._asking
            group = (asked, *self._beside_request) if asked is not None else ()
            keeping = self._hand_over(*group) if group else None
            self._given_up = keeping is None
        finally:
            self._is_read.set()
            self._handed_over.set()
            if self._given_up:
                self._kept.set()
        if keeping is not None and asked is not None:
            await self._confirm(keeping, asked, group)

    async def _keep_also(self, deposits: Sequence[Deposit]) -> None:
        await self._handed_over.wait()
        if self._given_up:
            return
        if (keeping := self._hand_over(*deposits)) is not None:
            await self._confirm_also(keeping)

    async def _confirm_also(self, keeping: asyncio.Future[CommitReceipt]) -> None:
        try:
            await keeping
        except HotsetError as error:
            if not self._given_up:  # otherwise it has been told
                self.bypassed(f"store: {error}")

    @property
    def _is_quick(self) -> bool:
        """Reading it takes less than a trip to a thread. A packed body may hold any number of
        bytes."""
        body = self._call.body
        assert isinstance(body, bytes)
        return not self._packing and (len(body) <= _SMALL or self._dialect.is_quick(body))

    @property
    def _packing(self) -> str:
        return header(self._call.headers, b"content-encoding")

    def _parse(self) -> Request | Malformed:
        assert isinstance(self._call.body, bytes)
        try:
            return self._dialect.parse(decode(self._call.body, self._packing))
        except Malformed as error:
            return error

    def _take_in(self, read: Request | Malformed) -> None:
        if isinstance(read, Malformed):
            # Not ours to judge: the upstream says what is wrong with it. Nothing is written, not
            # even an event.
            self._trouble = f"unreadable request: {read}"
            self._machine.tally.bypassed += 1
        else:
            headers = self._call.headers
            self._asking = RequestReceived(
                request=read,
                time=self._asked_at,
                agent=clients.agent(headers),
                key=clients.session_key(headers),
                client=clients.client(headers),
                since=self._machine.began,
                id=self._id,
                parents=clients.parent_keys(headers),
            )
        self._is_read.set()

    def _hand_over(self, *deposits: Deposit) -> asyncio.Future[CommitReceipt] | None:
        try:
            return self._machine.keeper.hand_over(*deposits)
        except HotsetError as error:
            self.bypassed(f"store: {error}")
            return None

    async def _confirm(
        self,
        keeping: asyncio.Future[CommitReceipt],
        main: RequestReceived | ReplyReceived,
        group: Sequence[Deposit],
        *,
        first: bool = False,
    ) -> None:
        """What was handed over is on disk, or it is told why not."""
        try:
            kept = await self._or_alone(keeping, main, group)
        except NotFound:
            return  # the reply of a request that could not be kept: that has been told
        except HotsetError as error:
            self._given_up = True
            self._kept.set()
            self.bypassed(f"store: {error}")
            return
        self._ref = kept.turn
        self._kept.set()
        if first and isinstance(main, ReplyReceived) and kept.turn is not None:
            self._machine.tally.kept += 1
            self._machine.gister.nudge()
            _tell(kept.turn, main, self._asked_at)

    async def _or_alone(
        self,
        keeping: asyncio.Future[CommitReceipt],
        main: RequestReceived | ReplyReceived,
        group: Sequence[Deposit],
    ) -> CommitReceipt:
        """A request or a reply is kept also where something beside it cannot be."""
        try:
            return await keeping
        except HotsetError as error:
            if len(group) == 1 or isinstance(error, NotFound | DiskFull | StoreBusy | StoreMoved):
                raise
            self.bypassed(f"store: {error}")
            return await self._machine.keeper.hand_over(main)

    def _read(self, raw: bytes) -> tuple[bytes, Reply]:
        body = salvage(raw, self._header(b"content-encoding"))
        return body, self._dialect.read(body, streamed=self.streamed)

    def _header(self, name: bytes) -> str:
        return header(self._response.headers, name) if self._response else ""


def _header_text(reason: str) -> bytes:
    """One line of plain ASCII, whatever an error's text may quote."""
    plain = "".join(each if " " <= each <= "~" else "?" for each in reason)
    return plain[:_LONGEST_REASON].encode()


def _judged(outcome: Outcome, status: int, reply: Reply) -> Outcome:
    """A reply is done when the provider said so, not when its connection closed."""
    if outcome is not Outcome.DONE:
        return outcome
    if status >= 400:
        return Outcome.REFUSED
    return Outcome.DONE if reply.complete else Outcome.BROKEN


def _tell(ref: TurnRef, ended: ReplyReceived, asked_at: float) -> None:
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
