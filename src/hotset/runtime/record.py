"""Keeps one call in the store: its request while it is under way, its reply before the client sees
how it ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from hotset.errors import DiskFull, HotsetError, NotFound, StoreBusy, StoreMoved
from hotset.nouns.call import Headers, Response, header
from hotset.nouns.deposit import CommitReceipt, Deposit, ReplyReceived, RequestReceived
from hotset.nouns.message import Reply
from hotset.nouns.turn import Outcome, TurnRef
from hotset.runtime.machine import Machine
from hotset.runtime.reply_bytes import MOST, StreamTail, salvage
from hotset.runtime.turn import OpenedTurn, SentTurn, off_loop

_log = logging.getLogger("hotset")

KEEPING = "keep a turn"
"""Name of this work among the background tasks."""

_PATIENCE_SECONDS = 2.0
"""How long a call waits in total until request and reply are on disk: two group commits, a few
milliseconds each."""

_LONGEST_REASON = 300

_Commit = asyncio.Future[TurnRef | None] | asyncio.Task[None]

Closing = Callable[["Record", Reply, Machine], Sequence[Deposit]]
"""Returns what is to be kept with a reply once it is read."""


class Record:
    """The record of one call, and the state of its turn. Every method fails open: trouble is
    reported in `headers` and in an event, never raised."""

    def __init__(self, opened: OpenedTurn, machine: Machine, closing: Closing) -> None:
        self.sent = SentTurn(opened, opened.call)
        """The latest value of the turn's chain."""
        self.reply = Reply()
        """What the client saw, once it has ended."""
        self.is_heard = False
        """The sources know that the turn ended."""
        self.is_billed = False
        self._machine = machine
        self._closing = closing
        self._trouble = f"unreadable request: {opened.unread}" if opened.unread else ""
        self._reported = ""
        """The trouble that the client knows of."""
        self._patience = _PATIENCE_SECONDS * machine.config.patience
        self._is_late = False
        self._stopped: float | None = None
        """When the event that ends the reply arrived."""
        self._response: Response | None = None
        self._got: list[bytes] = []
        self._size = 0
        self._ended_size = -1
        self._beside: asyncio.Task[None] | None = None
        self._committing: asyncio.Task[None] | None = None
        """Done when the reply is on disk, or cannot be."""
        self._ending = asyncio.Lock()
        self._beside_request: list[Deposit] = []
        self._beside_reply: list[Deposit] = []
        loop = asyncio.get_running_loop()
        self._handed: asyncio.Future[bool] = loop.create_future()
        """True when the request is with the store; False if it cannot be."""
        self._placed: asyncio.Future[TurnRef | None] = loop.create_future()
        """The turn's place, once its request is on disk; None if it cannot be."""
        self._given_up = False

    @property
    def place(self) -> TurnRef | None:
        """The turn's place in the store, if it is known yet."""
        return self._placed.result() if self._placed.done() else None

    def receive(self) -> None:
        """Hand the request and the plan's deposits to the store while the request goes out:
        earlier, the store's thread would delay the request's bytes."""
        if self.sent.opened.unread:
            self._machine.tally.bypassed += 1  # nothing is written, not even an event
        # The task starts after the sender's current step: on an open connection, that step writes
        # the whole request.
        self._machine.background.spawn(self._keep_request(), KEEPING)

    def beside(self, work: asyncio.Task[None]) -> None:
        """Add work on this call that the upstream need not wait for. The end of the reply waits for
        it: the next call builds on it."""
        self._beside = work

    async def ref(self, seconds: float) -> TurnRef | None:
        """The turn's place in the store, as soon as it has one; None if it has none in time."""
        await asyncio.wait({self._placed}, timeout=seconds * self._machine.config.patience)
        return self.place

    def also(self, *deposits: Deposit) -> None:
        """Keep more about this turn, in the commit of its request or its reply, whichever is next;
        after both, in a commit of its own."""
        if not self._handed.done():
            self._beside_request += deposits
        elif self._ended_size < 0:
            self._beside_reply += deposits
        else:
            self.at_once(*deposits)

    def at_once(self, *deposits: Deposit) -> None:
        """Keep deposits in a commit of their own, after the request: others read them before the
        reply ends."""
        if deposits:
            self._machine.background.spawn(self._keep_also(deposits), KEEPING)

    def bypassed(self, reason: str) -> None:
        """Note that we could not do our part for this call; the client reads why with the reply, if
        that has not begun."""
        if reason == self._trouble:
            return
        self._trouble = reason
        opened = self.sent.opened
        path = opened.call.path.split("?")[0]
        self._machine.bypass(reason, self.ref(_PATIENCE_SECONDS), path=path, call=opened.id)

    async def answered(self, response: Response) -> None:
        """Begin the reply. It waits for the request's commit, which ran while the provider worked,
        so that the headers can name the turn's place."""
        self._response = response
        await self._until_kept(self._placed)
        if not self._placed.done():
            self._report_late()
        elif self.place is None and not self._trouble:
            self._trouble = self._machine.keeper.trouble or "a fault of ours"

    @property
    def headers(self) -> Headers:
        """What is known about this record by now, as headers for the client."""
        fields: list[tuple[bytes, bytes]] = []
        if (ref := self.place) is not None:
            fields += [
                (b"x-hotset-session", ref.session.encode()),
                (b"x-hotset-turn", str(ref.number).encode()),
            ]
        if self._trouble:
            fields.append((b"x-hotset-degraded", _header_text(self._trouble)))
        self._reported = self._trouble
        return tuple(fields)

    @property
    def comment(self) -> bytes:
        """Trouble that the headers did not report, as a comment between two events of a stream;
        empty if there is none."""
        if self._trouble in ("", self._reported):
            return b""
        self._reported = self._trouble
        return b": hotset: %s\n\n" % _header_text(self._trouble)

    @property
    def streamed(self) -> bool:
        return self._header(b"content-type").startswith("text/event-stream")

    def take(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size <= MOST:
            self._got.append(chunk)

    def seen(self) -> Reply:
        """The reply as the client has seen it so far."""
        return self.sent.opened.dialect.read(b"".join(self._got), streamed=self.streamed)

    def tail(self) -> StreamTail:
        """Holds back the end of this reply, if it is a stream."""
        return StreamTail(self.sent.opened.dialect, self._header(b"content-encoding"))

    def stopped(self, stopped: bool) -> None:
        """Set whether the client waits for the end of the reply: its patience counts from then."""
        if not stopped:
            self._stopped = None
        elif self._stopped is None:
            self._stopped = asyncio.get_running_loop().time()

    async def end(self, outcome: Outcome) -> None:
        """Hand the reply so far to the store and wait until it is on disk. A second call counts
        only if more has arrived since.

        Everything the client sees after this is on disk. Its next request is handed over later, so
        that request finds this turn.
        """
        handing = self.end_later(outcome)
        await self._wait(handing)
        if self._committing is not None:
            await self._until_kept(self._committing)
        if self._beside is not None:  # the next call builds on it
            await self._until_kept(self._beside)
        if not handing.done() or (self._committing is not None and not self._committing.done()):
            self._report_late()

    def end_later(self, outcome: Outcome) -> asyncio.Task[None]:
        """The same without waiting. The task is done when the reply is handed over."""
        return self._machine.background.spawn(self._end(outcome), KEEPING)

    def _report_late(self) -> None:
        """Report once that the call goes on before it is on disk."""
        keeper = self._machine.keeper
        seconds = _PATIENCE_SECONDS * self._machine.config.patience
        lateness = f"not on disk within {seconds:.0f} s; kept as soon as the store takes it"
        reason = f"store: {keeper.trouble}" if keeper.store is None else keeper.trouble or lateness
        if not self._is_late and self._trouble != reason:
            self._machine.tally.late += 1
            self.bypassed(reason)
        self._is_late, self._patience = True, 0.0

    async def _until_kept(
        self, keeping: asyncio.Future[TurnRef | None] | asyncio.Task[None]
    ) -> None:
        """Wait for a commit, but not for a store that is known to be down or stuck."""
        if not keeping.done() and not self._machine.keeper.trouble:
            await self._wait(keeping)

    async def _wait(self, work: _Commit) -> None:
        now = asyncio.get_running_loop().time
        begun = now()
        left = self._patience - (begun - self._stopped if self._stopped is not None else 0.0)
        await asyncio.wait({work}, timeout=max(0.0, left))
        if self._stopped is None:
            self._patience -= now() - begun

    async def _end(self, outcome: Outcome) -> None:
        try:
            is_handed = await self._handed
            async with self._ending:
                if is_handed and not self._given_up:
                    await self._hand_reply_over(outcome)
        except Exception as error:
            # fail open: nothing of ours may hold up a reply that has come
            self.bypassed(f"a fault of ours: {type(error).__name__}")

    async def _hand_reply_over(self, outcome: Outcome) -> None:
        if self._ended_size == self._size:
            return
        first, self._ended_size = self._ended_size < 0, self._size
        if self._size > MOST:
            self.bypassed(f"a reply of {self._size >> 20} MiB was kept only in part")
            outcome = Outcome.BROKEN
        raw = b"".join(self._got)
        # A compressed body may unpack to any size.
        packed = self._header(b"content-encoding").lower() not in ("", "identity")
        body, reply = await off_loop(MOST if packed else len(raw), self._read, raw)
        self.reply = reply
        status = self._response.status if self._response else 0
        now, judged = self._machine.clock(), _judge_outcome(outcome, status, reply)
        ended = ReplyReceived(self.sent.opened.id, now, judged, status, body, reply)
        before, self._beside_reply = self._beside_reply, []
        group = (*before, ended, *self._closed_with(reply)) if first else (ended,)
        if (keeping := self._hand_over(*group)) is not None:
            confirming = self._confirm_reply(keeping, ended, group, first=first)
            self._committing = self._machine.background.spawn(confirming, KEEPING)

    def _closed_with(self, reply: Reply) -> Sequence[Deposit]:
        try:
            return self._closing(self, reply, self._machine)
        except Exception as error:
            # fail open: the reply is kept without
            self.bypassed(f"a fault of ours in closing a turn: {type(error).__name__}")
            return ()

    async def _keep_request(self) -> None:
        keeping: asyncio.Future[CommitReceipt] | None = None
        received = self.sent.opened.received(self._machine.began)
        group: tuple[Deposit, ...] = ()
        try:
            await self._machine.keeper.ready()
            if received is not None:
                group = (received, *self._beside_request)
                keeping = self._hand_over(*group)
        finally:
            self._handed.set_result(keeping is not None)
            if keeping is None:
                self._placed.set_result(None)
        if keeping is not None and received is not None:
            kept: CommitReceipt | None = None
            try:
                kept = await self._confirm(keeping, received, group)
            finally:
                self._placed.set_result(kept.turn if kept is not None else None)

    async def _keep_also(self, deposits: Sequence[Deposit]) -> None:
        if not await self._handed or self._given_up:
            return
        if (keeping := self._hand_over(*deposits)) is not None:
            try:
                await keeping
            except HotsetError as error:
                if not self._given_up:  # otherwise it is reported already
                    self.bypassed(f"store: {error}")

    def _hand_over(self, *deposits: Deposit) -> asyncio.Future[CommitReceipt] | None:
        try:
            return self._machine.keeper.hand_over(*deposits)
        except HotsetError as error:
            self.bypassed(f"store: {error}")
            return None

    async def _confirm_reply(
        self,
        keeping: asyncio.Future[CommitReceipt],
        ended: ReplyReceived,
        group: Sequence[Deposit],
        *,
        first: bool,
    ) -> None:
        kept = await self._confirm(keeping, ended, group)
        if first and kept is not None and kept.turn is not None:
            self._machine.tally.kept += 1
            self._machine.gister.nudge()
            _log_turn(kept.turn, ended, self.sent.opened.time)

    async def _confirm(
        self,
        keeping: asyncio.Future[CommitReceipt],
        main: RequestReceived | ReplyReceived,
        group: Sequence[Deposit],
    ) -> CommitReceipt | None:
        """Wait until the deposits are on disk; reports why if they cannot be."""
        try:
            return await self._or_alone(keeping, main, group)
        except NotFound:
            return None  # the reply of a request that could not be kept: reported already
        except HotsetError as error:
            self._given_up = True
            self.bypassed(f"store: {error}")
            return None

    async def _or_alone(
        self,
        keeping: asyncio.Future[CommitReceipt],
        main: RequestReceived | ReplyReceived,
        group: Sequence[Deposit],
    ) -> CommitReceipt:
        """Wait for the group; if it fails, keep the request or reply without what was beside it."""
        try:
            return await keeping
        except HotsetError as error:
            refused = isinstance(error, NotFound | DiskFull | StoreBusy | StoreMoved)
            if len(group) == 1 or refused:
                raise
            self.bypassed(f"store: {error}")
            return await self._machine.keeper.hand_over(main)

    def _read(self, raw: bytes) -> tuple[bytes, Reply]:
        body = salvage(raw, self._header(b"content-encoding"))
        return body, self.sent.opened.dialect.read(body, streamed=self.streamed)

    def _header(self, name: bytes) -> str:
        return header(self._response.headers, name) if self._response else ""


def _header_text(reason: str) -> bytes:
    """The reason as one line of plain ASCII, whatever an error's text quotes."""
    plain = "".join(each if " " <= each <= "~" else "?" for each in reason)
    return plain[:_LONGEST_REASON].encode()


def _judge_outcome(outcome: Outcome, status: int, reply: Reply) -> Outcome:
    """The outcome by the provider's word: a closed connection alone is no good end."""
    if outcome is not Outcome.DONE:
        return outcome
    if status >= 400:
        return Outcome.REFUSED
    return Outcome.DONE if reply.complete else Outcome.BROKEN


def _log_turn(ref: TurnRef, ended: ReplyReceived, asked_at: float) -> None:
    """Log one line a turn, with numbers only."""
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
