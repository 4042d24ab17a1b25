"""The parts of a running hotset, chosen once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hotset.config import Config
from hotset.dialects import DIALECTS
from hotset.dialects.port import Dialects
from hotset.nouns.bill import Bill
from hotset.nouns.turn import Event
from hotset.runtime.background import Background
from hotset.runtime.gisting import Gister
from hotset.runtime.keeper import Keeper
from hotset.runtime.planning import Planner
from hotset.store.port import Store
from hotset.upstream.http import Wire

_log = logging.getLogger("hotset")

_DRAIN_SECONDS = 5.0


@dataclass(slots=True)
class Tally:
    """What went through since the start."""

    requests: int = 0
    kept: int = 0
    bypassed: int = 0
    """Calls of a conversation that went through without being kept."""
    left: int = 0
    last: float = 0.0
    faults: int = 0
    refaults: int = 0

    def add(self, bill: Bill) -> None:
        self.faults += bill.faults
        self.refaults += bill.refaults


@dataclass(slots=True)
class Machine:
    """Made inside a running event loop; `close` when done."""

    config: Config
    wire: Wire
    keeper: Keeper
    clock: Callable[[], float] = time.time
    dialects: Dialects = field(default_factory=lambda: DIALECTS)
    tally: Tally = field(default_factory=Tally)
    background: Background = field(init=False)
    gister: Gister = field(init=False)
    planner: Planner = field(init=False)

    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()
        self.background = Background(self._failed)
        self.gister = Gister(self.keeper, self.background)
        self.planner = Planner(self.config)

    @classmethod
    def start(cls, config: Config, open_store: Callable[[], Store]) -> Machine:
        keeper = Keeper(open_store, time.monotonic)
        keeper.open()
        machine = cls(config, Wire(config.upstreams), keeper)
        machine.gister.nudge()  # what the last run did not get to
        return machine

    def bypass(self, reason: str, **detail: str | int) -> None:
        """A call went through that we could not do our part for."""
        self.tally.bypassed += 1
        _log.warning("bypassed: %s", reason)
        event = Event("Bypassed", self.clock(), detail={"reason": reason, **detail})
        self.background.spawn(self.keeper.happened(event), "keep an event")

    async def close(self) -> None:
        self.gister.stop()
        await self.background.drain(_DRAIN_SECONDS)
        await self.wire.close()
        self.keeper.close()

    def _failed(self, name: str, error: BaseException) -> None:
        # The error's text may quote content, so only its type is told.
        _log.error("could not %s: %s", name, type(error).__name__, exc_info=_log.isEnabledFor(logging.DEBUG))
        self.tally.bypassed += 1
