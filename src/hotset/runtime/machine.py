"""The parts of a running hotset, chosen once."""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from math import inf

from hotset import tokens
from hotset.config import Config
from hotset.dialects import DIALECTS
from hotset.dialects.port import Dialects
from hotset.errors import HotsetError, StoreFailed
from hotset.files.lru import CACHES
from hotset.files.memory_use import release_freed
from hotset.files.scope import PROCESS, Budget, ResourceScope
from hotset.index import open_index
from hotset.nouns.alert import Alert
from hotset.nouns.bill import Bill
from hotset.nouns.tooling import ClientListing
from hotset.nouns.turn import Event
from hotset.nouns.window import Cause, Shown
from hotset.runtime.background import Background, BoundedPool
from hotset.runtime.follower import Follower, Gister
from hotset.runtime.keeper import Keeper
from hotset.runtime.learning import Learning
from hotset.runtime.metrics import (
    SUMMARISED,
    SUMMARY_FAILED,
    Births,
    Metrics,
    empty_ledger,
    metrics,
)
from hotset.runtime.orders import OrderFollower
from hotset.runtime.planner import Planner
from hotset.runtime.pressure import PRESSURE, MemoryReader, PressureChange, PressureMonitor
from hotset.runtime.spending import Spending
from hotset.runtime.summaries import Summariser, ask_about, ask_to
from hotset.runtime.waits import Waits
from hotset.runtime.watch import Watch, event_of, raised_lately
from hotset.sources.code import CodeSource, Prefetches, has_code
from hotset.sources.history import HistorySource
from hotset.sources.memory import EpisodeWriter, MemorySource, ProjectMemories
from hotset.sources.port import Source
from hotset.sources.tools import Toolbox, ToolLibrary, ToolSource
from hotset.store.port import Store
from hotset.upstream.port import Wire
from hotset.window.ledger import Ledger
from hotset.window.repeats import NO_REPEATS, POINTED, Repeats

_log = logging.getLogger("hotset")

_DRAIN_SECONDS = 5.0
_LOOK_SECONDS = 2.0
"""Between two looks at what was learned, or ordered by a person."""
_LOOKS_BETWEEN = 30  # two looks at the sessions that ended
_LEFT_SECONDS = 1.0
_MOST_BOOKS = 256  # sessions whose bills are still set right by each other


@dataclass(slots=True)
class CallTally:
    """What went through since the start."""

    requests: int = 0
    kept: int = 0
    bypassed: int = 0
    """Calls of a conversation that went through without being kept."""
    late: int = 0
    """Calls that went on before they were on disk."""
    reason: str = ""
    """Why the latest of these did."""
    left: int = 0
    retried: int = 0
    """Further tries of follow-ups that were refused or got no reply."""
    last: float = 0.0
    births: int = 0
    """Results that were shown for the first time."""
    births_again: int = 0
    """Of these, the ones of which the window had the same, or an older version, already."""
    repeated: int = 0
    """Results that repeat something, of turns that were paid for."""
    pointed: int = 0
    """Of these, the ones that point to what they repeat."""
    prefetches: Prefetches = field(default_factory=Prefetches)
    waits: Waits = field(default_factory=Waits)

    def born(self, rows: Iterable[Shown]) -> None:
        for row in rows:
            if row.cause is Cause.BIRTH:
                self.births += 1
                self.births_again += row.form in POINTED


@dataclass(slots=True)
class Machine:
    """Made inside a running event loop; `close` when done."""

    config: Config
    wire: Wire
    keeper: Keeper
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """How a call waits before it tries something again."""
    dialects: Dialects = field(default_factory=lambda: DIALECTS)
    tally: CallTally = field(default_factory=CallTally)
    bounded: BoundedPool = field(default_factory=BoundedPool)
    toolbox: ToolLibrary | None = None
    """Where there is one, its tools are offered beside the client's."""
    memory_reader: MemoryReader | None = None
    """What says how much memory is used; None is the system."""
    scope: ResourceScope = field(init=False)
    """What runs for it; it ends with it."""
    background: Background = field(init=False)
    pressure: PressureMonitor = field(init=False)
    gister: Gister = field(init=False)
    follower: Follower = field(init=False)
    memories: ProjectMemories = field(init=False)
    sources: tuple[Source, ...] = field(init=False)
    """Where offers, answers and finds come from. A new source is one line here."""
    summariser: Summariser = field(init=False)
    planner: Planner = field(init=False)
    learning: Learning = field(init=False)
    orders: OrderFollower = field(init=False)
    """What a person ordered about the window."""
    ledger: Ledger = field(init=False)
    """Of the turns since the start."""
    watch: Watch = field(init=False)
    spending: Spending = field(init=False)
    began: float = field(init=False)
    tending: list[asyncio.Task[None]] = field(init=False, default_factory=list)
    warming: asyncio.Task[None] | None = field(init=False, default=None)
    """Loads the tokenizer."""

    def __post_init__(self) -> None:
        self.began = self.clock()
        self.scope = PROCESS.child("machine", Budget(tasks=inf))
        self.background = Background(self._failed, self.scope)
        self.pressure = PressureMonitor(self.config.pressure, self.memory_reader, clock=self.clock)
        self.gister = Gister(self.keeper, self.background)
        opening = (
            partial(open_index, self.config.folder, self.config.embedding, makes_folder=False)
            if self.config.search
            else None
        )
        self.follower = Follower(opening, self.keeper, self.background)
        self.keeper.pages_came = self.follower.nudge
        chosen, patience = self.config.memory, self.config.patience
        opened, index = partial(_opened, self.keeper), lambda: self.follower.index
        self.learning = Learning(self.config)
        self.orders = OrderFollower()
        knobs = lambda: self.learning.knobs.memory  # noqa: E731 - as the two above
        self.memories = ProjectMemories(self.config, opened, index, self.clock, knobs=knobs)
        summing = replace(self.config.summary, every=0) if self.config.off else self.config.summary
        asking = partial(ask_about, chosen=summing, wire=self.wire, dialects=self.dialects)
        proposing = partial(ask_to, chosen=summing, wire=self.wire, dialects=self.dialects)
        memory = MemorySource(
            self.memories,
            chosen,
            patience=patience,
            offers=chosen.enabled and chosen.offer and not self.config.off,
            spawn=self.background.spawn,
            writer=EpisodeWriter(summing.model, asking, proposing) if summing.model else None,
            clock=self.clock,
        )
        prefetch = self.config.knobs_for("").prefetch
        self.sources = (
            HistorySource(lambda: self.keeper.store, index),
            memory,
            CodeSource(
                index,
                prefetch,
                self.config.project,
                is_indexed=partial(has_code, self.config.folder),
                opening=self.follower.opened if self.config.search else None,
                patience=patience,
            ),
            *([self._tool_source(self.toolbox)] if self.toolbox is not None else []),
        )
        self.follower.sources = self.sources
        self.summariser = Summariser(
            summing, self.wire, self.keeper, self.background, self.dialects, clock=self.clock
        )
        self.planner = self.plan_with(self.config)
        self.ledger = empty_ledger(self.config, _MOST_BOOKS)
        self.watch = Watch(self.config.thresholds)
        self.spending = Spending(self.config)

    @classmethod
    def start(
        cls,
        config: Config,
        open_store: Callable[[], Store],
        wire: Wire,
        toolbox: ToolLibrary | None = None,
        *,
        whose: str = "hotset up",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        bounded: BoundedPool | None = None,
        clock: Callable[[], float] = time.time,
        memory_reader: MemoryReader | None = None,
    ) -> Machine:
        keeper = Keeper(open_store, time.monotonic, config.patience)
        keeper.open()
        tools = toolbox or _toolbox(config, keeper, whose)
        bounded = bounded or BoundedPool(patience=config.patience)
        machine = cls(
            config,
            wire,
            keeper,
            clock,
            sleep,
            bounded=bounded,
            toolbox=tools,
            memory_reader=memory_reader,
        )
        if keeper.store is not None:
            with suppress(HotsetError):  # sessions then run with the defaults
                machine.learning.refresh(keeper.store)
                machine.orders.refresh(keeper.store)
        machine.gister.nudge()  # what the last run did not get to
        machine.call_came()
        learning = machine.background.spawn(machine._learn(), "learn")
        machine.tending.append(learning)
        if config.pressure.enabled:
            watching = machine.background.spawn(machine._watch_memory(), "watch the memory")
            machine.tending.append(watching)
        for source in machine.sources:
            source.warm()
            if source.every:
                tending = machine.background.spawn(machine._tend(source), f"tend {source.name}")
                machine.tending.append(tending)
        return machine

    def _tool_source(self, library: ToolLibrary) -> ToolSource:
        tooling, knobs = self.config.tooling, self.config.knobs_for("").toolbox
        unused = knobs.unused if tooling.client is ClientListing.AUTO else 0
        if isinstance(library, Toolbox):
            library.knobs = lambda: self.learning.knobs.toolbox
        patience, client = self.config.patience, knobs.client
        return ToolSource(library, tooling.ghosts, patience, unused=unused, client=client)

    def plan_with(self, config: Config, *, program_decides: bool = False) -> Planner:
        """A planner over this machine's sources: for another budget, say."""
        return Planner(
            config,
            summaries=self.summariser.summaries_for,
            orders=lambda: self.orders.latest,
            sources=self.sources,
            program_decides=program_decides,
        )

    def over(self, wire: Wire, planner: Planner) -> Machine:
        """The same machine with another way out: for a call whose client sends it itself, and has a
        budget of its own."""
        other = copy.copy(self)
        other.wire, other.planner = wire, planner
        return other

    def call_came(self) -> None:
        """A call begins: after a long rest, what it needs is loaded while its body arrives."""
        CACHES.latest = time.monotonic()
        self.warm()

    def warm(self) -> None:
        """Load the tokenizer, or the next plan would wait for it."""
        if not tokens.is_loaded() and (self.warming is None or self.warming.done()):
            loading = asyncio.to_thread(tokens.warm)
            self.warming = self.background.spawn(loading, "load the tokenizer")

    def bypass(
        self, reason: str, placed: Awaitable[object] | None = None, **detail: str | int
    ) -> None:
        """A call went through that we could not do our part for. Its event is kept once the call
        is `placed`, so that it can name the turn."""
        self.tally.bypassed += 1
        # A warning once for each new reason; the tally has the count, the store's events have all.
        _log.log(
            logging.DEBUG if reason == self.tally.reason else logging.WARNING,
            "bypassed: %s",
            reason,
        )
        self.tally.reason = reason
        event = Event("Bypassed", self.clock(), detail={"reason": reason, **detail})
        self.background.spawn(self._keep_event(event, placed), "keep an event")

    def billed(self, bill: Bill, window: int = 0, repeats: Repeats = NO_REPEATS) -> None:
        """A turn was paid for: it counts, and may be the one that gives cause for an alert."""
        self.ledger.add(bill)
        self.tally.repeated += repeats.all
        self.tally.pointed += repeats.pointed
        now = self.clock()
        counted = self.keeper.event_counts
        failed = counted[SUMMARY_FAILED]
        # Each summary that a model is asked for has one by rules first.
        due = (counted[SUMMARISED] + failed) // 2
        for alert in self.watch.add(
            bill, failed, now, window=window, repeats=repeats, summaries=due
        ):
            _log_alert(alert)
            event = replace(event_of(alert, now), session=bill.session or None, turn=bill.turn)
            self.background.spawn(self._raise(event), "keep an alert")
        if self.spending.is_watched:
            self.background.spawn(self._count_spending(bill), "count what is spent")

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """Everything beyond its threshold now."""
        return (*self.watch.standing(), *self.spending.standing(self.clock()))

    def metrics(self) -> Metrics:
        """How the window did since the start."""
        counts = self.keeper.event_counts
        births = Births(self.tally.births, self.tally.births_again)
        found = metrics(self.ledger.total(), births, counts[SUMMARISED], counts[SUMMARY_FAILED])
        hits = 100 * self.tally.pointed / self.tally.repeated if self.tally.repeated else None
        return replace(found, prefetches=self.tally.prefetches, dedup_hit_pct=hits)

    async def close(self, seconds: float = _DRAIN_SECONDS) -> None:
        """Waits so long for what is under way in the background."""
        self.gister.stop()
        self.summariser.stop()
        for tending in self.tending:
            tending.cancel()
        for source in self.sources:
            await source.close()
        self.background.spawn(self.follower.close(), "close the index")
        await self.background.drain(seconds)
        await self.wire.close()
        self.bounded.close()
        self.planner.close()
        self.pressure.close()
        self.keeper.close()
        if left := await self.scope.aclose(_LEFT_SECONDS):
            _log.warning("not ended: %s", "; ".join(left))

    async def _tend(self, source: Source) -> None:
        """The upkeep of a source, in the background; it waits while memory is short."""
        while True:
            await asyncio.sleep(source.every)
            if self.keeper.store is not None and self.pressure.response.prefetches:
                await source.upkeep()

    async def _learn(self) -> None:
        """Follow what the project learns, and add to it when sessions end; in the background."""
        for number in count():
            if (store := self.keeper.store) is not None:
                with suppress(HotsetError):  # a store that is down is reported elsewhere
                    await asyncio.to_thread(self.learning.refresh, store)
                    await asyncio.to_thread(self.orders.refresh, store)
                    if self.config.learns and number % _LOOKS_BETWEEN == _LOOKS_BETWEEN - 1:
                        await asyncio.to_thread(_tend_learning, store, self.config, self.clock())
            await asyncio.sleep(_LOOK_SECONDS)

    async def _watch_memory(self) -> None:
        while True:
            # Not here: dropping half of all caches takes a while.
            for change in await asyncio.to_thread(self._look_at_memory):
                event = Event(PRESSURE, self.clock(), detail=change.detail)
                self.background.spawn(self._keep_event(event, None), "keep an event")
            await asyncio.sleep(self.config.pressure.seconds)

    def _look_at_memory(self) -> list[PressureChange]:
        changes = self.pressure.look(time.monotonic() - CACHES.latest)
        if self.pressure.dropped:
            release_freed()
        return changes

    async def _keep_event(self, event: Event, placed: Awaitable[object] | None) -> None:
        if placed is not None:
            await placed
        await self.keeper.happened(event)

    async def _raise(self, event: Event) -> None:
        store = self.keeper.store
        if store is None or not await asyncio.to_thread(raised_lately, store, event):
            await self.keeper.happened(event)

    async def _count_spending(self, bill: Bill) -> None:
        """Raise an alert where the bill's day or session cost too much: once a day, once a
        session."""
        store, now = self.keeper.store, self.clock()
        for alert in await asyncio.to_thread(self.spending.add, bill, store, now):
            event = replace(event_of(alert, now), session=bill.session or None, turn=bill.turn)
            if self.spending.is_first(event):
                _log_alert(alert)
                await self._raise(event)

    def _failed(self, name: str, error: BaseException) -> None:
        # The error's text may quote content, so only its type is logged.
        _log.error(
            "could not %s: %s",
            name,
            type(error).__name__,
            exc_info=_log.isEnabledFor(logging.DEBUG),
        )
        self.tally.bypassed += 1


def _log_alert(alert: Alert) -> None:
    _log.warning(
        "alert: %s is %.4g, %s %.4g: %s",
        alert.name,
        alert.value,
        alert.side,
        alert.threshold,
        alert.means,
    )


def _opened(keeper: Keeper) -> Store:
    if keeper.store is None:
        raise StoreFailed(keeper.trouble or "the store is not open")
    return keeper.store


def _tend_learning(store: Store, config: Config, now: float) -> None:
    from hotset.runtime.observe import tend_learning  # noqa: PLC0415 - half a second

    tend_learning(store, config, now)


def _toolbox(config: Config, keeper: Keeper, whose: str) -> Toolbox | None:
    """The toolbox, not opened yet; None where tools are off."""
    if not config.tooling.enabled:
        return None
    return Toolbox(config, partial(_opened, keeper), whose=whose)


def open_store(config: Config, *, makes_folder: bool = True) -> Store:
    """The project's store, made where there is none."""
    from hotset.store.sqlite import SqliteStore  # noqa: PLC0415 - a program may bring its own

    return SqliteStore.open(config.folder, makes_folder=makes_folder)
