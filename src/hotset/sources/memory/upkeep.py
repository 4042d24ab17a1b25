"""What memories need while nobody waits: which sessions are not remembered yet, and the work that
remembers them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from hotset import tokens
from hotset.errors import HotsetError, NotFound
from hotset.files.lru import Lru
from hotset.nouns.deposit import Remembered
from hotset.nouns.knobs import Remembering
from hotset.nouns.memory import Episode, MemoryId, MemoryRecord, Standing
from hotset.nouns.message import Usage
from hotset.nouns.page import SessionId
from hotset.sealing import seal
from hotset.sources.memory.keep import next_version
from hotset.sources.memory.kinds import RULES
from hotset.sources.memory.render.economics import TRIGGER_LOADS, Occasion
from hotset.sources.memory.render.memories import memory_text
from hotset.store.port import Store

if TYPE_CHECKING:
    from hotset.sources.memory.source import MemorySource


Ask = Callable[[str], Awaitable[tuple[str, Usage]]]
"""Sums up a text. Raises a `HotsetError` where nothing came of it."""

_SAID = 1500  # characters of each page that the model reads
_MOST_PAGES = 12


@dataclass(frozen=True, slots=True)
class EpisodeWriter:
    model: str
    ask: Ask


async def reword(
    id: MemoryId, store: Store, writer: EpisodeWriter, now: float
) -> MemoryRecord | None:
    """None where the episode has changed meanwhile, or the model had nothing to say. Nobody waits
    for it."""
    try:
        memory = await asyncio.to_thread(store.memory, id)
        if (
            memory.source.by != RULES
            or memory.standing is not Standing.ACTIVE
            or not isinstance(memory.detail, Episode)
        ):
            return None
        text, _ = await writer.ask(await asyncio.to_thread(_source, memory, store))
        words = seal(text).text
        if not words.strip():
            return None
        worded = replace(
            memory,
            text=words,
            tokens=tokens.count(words),
            source=replace(memory.source, by=writer.model),
        )
        version = next_version(worded, now, "", "a model put it into words")
        await asyncio.wrap_future(store.keep(Remembered((version,))))
    except HotsetError:
        return None  # the rules' words stand
    return version


def _source(memory: MemoryRecord, store: Store) -> str:
    """What the rules found, and what was said."""
    said = [f"What rules found:\n{memory_text(memory, store)}"]
    for page in memory.source.pages[:_MOST_PAGES]:
        try:
            found = store.page(page)
            text = store.content(found.digest).decode("utf-8", "replace")
        except NotFound:
            continue
        said.append(f"{found.role} said:\n{seal(text[:_SAID]).text}")
    return "\n\n".join(said)


_log = logging.getLogger("hotset")

_STINT_SECONDS = 0.2
"""Of work at a time: a call that comes meanwhile shares the interpreter with it."""

_BREATH_SECONDS = 0.1
_LAST_SECONDS = 2.0
"""For what was said just before the end; the rest is remembered after the next start."""

_HOUR = 3600.0
_MOST_SESSIONS = 1000


class Spawn(Protocol):
    """Starts a piece of work that is supervised and not waited for."""

    def __call__(self, work: Coroutine[Any, Any, None], name: str, /) -> asyncio.Task[None]: ...


class MemoryUpkeep:
    """Sessions become memories in the background: when nothing was said in them for a while, and
    when hotset ends.

    Then, too, it is judged what memories cost and saved there, and now and then memories are
    consolidated. One piece of work at a time, however many turns ask for it.
    """

    def __init__(
        self,
        source: MemorySource,
        chosen: Remembering,
        store: Callable[[], Store | None],
        spawn: Spawn,
        clock: Callable[[], float],
        *,
        writer: EpisodeWriter | None = None,
    ) -> None:
        """`writer` finds better words for episodes than rules do."""
        self._source = source
        self._chosen = chosen
        self._store = store
        self._spawn = spawn
        self._clock = clock
        self._writer = writer
        self._working: asyncio.Task[None] | None = None
        self._stopped = False
        self._read: Lru[SessionId, int] = Lru(count=_MOST_SESSIONS)
        """How many memories were read for the task at hand, by session."""

    def nudge(self) -> None:
        """Something was said."""
        if (
            self._chosen.enabled
            and not self._stopped
            and (self._working is None or self._working.done())
        ):
            self._working = self._spawn(self._work(), "remember")

    def prompted(self, session: SessionId) -> None:
        """Somebody asks for something new: what memories cost for the task before is looked at."""
        if self._read.pop(session):
            self._settle_up(session, "task")

    def read(self, session: SessionId) -> None:
        """A memory was read whole in a conversation. On the third time it is looked at what that
        costs."""
        times = (self._read.get(session) or 0) + 1
        self._read.put(session, times)
        if times == TRIGGER_LOADS:
            self._settle_up(session, "trigger")

    async def close(self) -> None:
        """What was said in the last minutes is remembered now, as far as that takes no longer than
        a moment."""
        self._stopped = True
        if self._working is None:
            return
        if not self._working.done():
            self._working.cancel()
        last = self._spawn(self._remember_now(), "remember what was said last")
        await asyncio.wait({last}, timeout=2 * _LAST_SECONDS)

    def _settle_up(self, session: SessionId, occasion: Occasion) -> None:
        async def settle_up() -> None:
            try:
                await asyncio.to_thread(self._source.settle_up, session, occasion)
            except HotsetError:
                # the keeper tells of the store's troubles; it is looked at again when the session
                # ends
                return

        if not self._stopped:
            self._spawn(settle_up(), "look at what memories cost")

    async def _remember_now(self) -> None:
        try:
            await asyncio.to_thread(self._source.encode, seconds=_LAST_SECONDS)
        except (HotsetError, RuntimeError):
            # no store, or a program that ends without closing: then after the next start
            return

    async def _work(self) -> None:
        while not self._stopped:
            await asyncio.sleep(self._chosen.quiet_seconds)
            try:
                await self._catch_up()
                await self._reword()
                if await asyncio.to_thread(self._is_due):
                    await asyncio.to_thread(self._source.consolidate)
            except HotsetError as error:
                _log.warning("what was said is not remembered yet (%s)", type(error).__name__)
                continue
            if not self._source.pending.many:
                return

    async def _catch_up(self) -> None:
        while not self._stopped:
            if not await asyncio.to_thread(self._stint):
                return
            await asyncio.sleep(_BREATH_SECONDS)  # calls go first

    async def _reword(self) -> None:
        """Where a small model is configured it puts episodes into better words; those of the rules
        stay as a version."""
        while self._writer is not None and self._source.by_rules and not self._stopped:
            id, store = self._source.by_rules.popleft(), self._store()
            if store is not None:
                await reword(id, store, self._writer, self._clock())

    def _stint(self) -> bool:
        """True if there was anything to remember."""
        if self._store() is None:
            return False
        return bool(self._source.encode(quiet=self._chosen.quiet_seconds, seconds=_STINT_SECONDS))

    def _is_due(self) -> bool:
        hours = self._chosen.consolidate_hours
        return (
            bool(hours)
            and self._store() is not None
            and self._source.unconsolidated >= hours * _HOUR
        )
