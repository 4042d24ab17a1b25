"""A project as its views read it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from hotset.config import Config
from hotset.errors import NotFound, StoreFailed
from hotset.nouns.turn import Session
from hotset.runtime.reader import find_session
from hotset.store.port import Store

if TYPE_CHECKING:
    from hotset.index.port import Index
    from hotset.runtime.machine import Machine
    from hotset.sources.memory import ProjectMemories
    from hotset.sources.port import Source
    from hotset.sources.tools import Toolbox

_NONE: Mapping[str, Any] = {}


def _no_index() -> Index | None:
    return None


@dataclass(frozen=True, slots=True)
class ViewedProject:
    """A project's parts, as far as they are open."""

    config: Config
    store: Store
    memories: ProjectMemories | None = None
    toolbox: Toolbox | None = None
    sources: tuple[Source, ...] = ()
    live: Mapping[str, Any] = field(default_factory=lambda: _NONE)
    """The status of the running proxy; empty if none runs."""
    clock: Callable[[], float] = time.time
    open_index: Callable[[], Index | None] = _no_index
    """The index, opened if need be; None if there is none."""

    @classmethod
    def of_machine(cls, machine: Machine, live: Mapping[str, Any]) -> Self:
        """The parts of a running machine. Raises `StoreFailed` if its store is not open."""
        from hotset.sources.tools import Toolbox  # noqa: PLC0415 - loaded by then

        if machine.keeper.store is None:
            raise StoreFailed(machine.keeper.trouble or "the store is not open")
        toolbox = machine.toolbox
        return cls(
            machine.config,
            machine.keeper.store,
            machine.memories,
            toolbox if isinstance(toolbox, Toolbox) else None,
            machine.sources,
            live,
            machine.clock,
            machine.follower.opened,
        )

    def session(self, typed: str) -> Session:
        """A session by its id, the beginning of one, its client's name, or `last`. Raises
        `NotFound`."""
        return find_session(self.store, typed)

    def opened_toolbox(self) -> Toolbox:
        """Raises `NotFound` where tools are switched off."""
        if self.toolbox is None:
            raise NotFound("tools are switched off: enabled = true in [tools]")
        return self.toolbox

    def opened_memories(self) -> ProjectMemories:
        """Raises `NotFound` where memory is not open."""
        if self.memories is None:
            raise NotFound("memory is not open here")
        return self.memories
