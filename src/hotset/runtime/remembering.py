"""Sessions become memories while nobody waits: when nothing was said in them for a while, and when hotset ends.

Then, too, it is judged what memories cost and saved there, and now and then memories are consolidated.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from hotset.errors import HotsetError
from hotset.files.lru import Lru
from hotset.nouns.page import SessionId
from hotset.nouns.remembering import Remembering
from hotset.runtime.background import Background
from hotset.runtime.keeper import Keeper
from hotset.runtime.memory_upkeep import Upkeep
from hotset.runtime.memory_wording import Writer, reword
from hotset.sources.memory.disclosing.economics import TRIGGER_LOADS, Occasion

_log = logging.getLogger("hotset")

_STINT_SECONDS = 0.2
"""Of work at a time: a call that comes meanwhile shares the interpreter with it."""

_BREATH_SECONDS = 0.1
_LAST_SECONDS = 2.0
"""For what was said just before the end; the rest is remembered after the next start."""

_HOUR = 3600.0
_MOST_SESSIONS = 1000


class Rememberer:
    """One piece of work at a time, however many turns ask for it."""

    def __init__(
        self,
        upkeep: Upkeep,
        chosen: Remembering,
        keeper: Keeper,
        background: Background,
        clock: Callable[[], float],
        *,
        writer: Writer | None = None,
    ) -> None:
        """`writer` finds better words for episodes than rules do."""
        self._upkeep = upkeep
        self._chosen = chosen
        self._keeper = keeper
        self._background = background
        self._clock = clock
        self._writer = writer
        self._working: asyncio.Task[None] | None = None
        self._stopped = False
        self._read: Lru[SessionId, int] = Lru(count=_MOST_SESSIONS)
        """How many memories were read for the task at hand, by session."""

    def nudge(self) -> None:
        """Something was said."""
        if self._chosen.enabled and not self._stopped and (self._working is None or self._working.done()):
            self._working = self._background.spawn(self._work(), "remember")

    def prompted(self, session: SessionId) -> None:
        """Somebody asks for something new: what memories cost for the task before is looked at."""
        if self._read.pop(session):
            self._settle_up(session, "task")

    def read(self, session: SessionId) -> None:
        """A memory was read whole in a conversation. On the third time it is looked at what that costs."""
        times = (self._read.get(session) or 0) + 1
        self._read.put(session, times)
        if times == TRIGGER_LOADS:
            self._settle_up(session, "trigger")

    async def close(self) -> None:
        """What was said in the last minutes is remembered now, as far as that takes no longer than a moment."""
        self._stopped = True
        if self._working is None:
            return
        if not self._working.done():
            self._working.cancel()
        last = self._background.spawn(self._remember_now(), "remember what was said last")
        await asyncio.wait({last}, timeout=2 * _LAST_SECONDS)

    def _settle_up(self, session: SessionId, occasion: Occasion) -> None:
        async def settle_up() -> None:
            try:
                await asyncio.to_thread(self._upkeep.settle_up, session, occasion)
            except HotsetError:
                return  # the keeper tells of the store's troubles; it is looked at again when the session ends

        if not self._stopped:
            self._background.spawn(settle_up(), "look at what memories cost")

    async def _remember_now(self) -> None:
        try:
            await asyncio.to_thread(self._upkeep.encode, seconds=_LAST_SECONDS)
        except (HotsetError, RuntimeError):  # no store, or a program that ends without closing: then after the next start
            return

    async def _work(self) -> None:
        while not self._stopped:
            await asyncio.sleep(self._chosen.quiet_seconds)
            try:
                await self._catch_up()
                await self._reword()
                if await asyncio.to_thread(self._is_due):
                    await asyncio.to_thread(self._upkeep.consolidate)
            except HotsetError as error:
                _log.warning("what was said is not remembered yet (%s)", type(error).__name__)
                continue
            if not self._upkeep.pending.many:
                return

    async def _catch_up(self) -> None:
        while not self._stopped:
            if not await asyncio.to_thread(self._stint):
                return
            await asyncio.sleep(_BREATH_SECONDS)  # calls go first

    async def _reword(self) -> None:
        """Where a small model is configured it puts episodes into better words; those of the rules stay as a version."""
        while self._writer is not None and self._upkeep.by_rules and not self._stopped:
            id = self._upkeep.by_rules.popleft()
            store = self._keeper.store
            if store is not None:
                await reword(id, store, self._writer, self._clock())

    def _stint(self) -> bool:
        """Was there anything to remember?"""
        if self._keeper.store is None:
            return False
        return bool(self._upkeep.encode(quiet=self._chosen.quiet_seconds, seconds=_STINT_SECONDS))

    def _is_due(self) -> bool:
        hours = self._chosen.consolidate_hours
        return bool(hours) and self._keeper.store is not None and self._upkeep.unconsolidated >= hours * _HOUR
