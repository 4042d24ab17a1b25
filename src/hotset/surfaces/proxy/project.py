"""The project of a running proxy, for agents that ask over MCP: the store and the index are those
that are open already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotset.errors import NotFound, StoreFailed
from hotset.runtime.machine import Machine
from hotset.runtime.reader import Store
from hotset.sources.memory import MemorySource
from hotset.surfaces.mcp.project import Project

if TYPE_CHECKING:
    from hotset.runtime.reader import Index


class MachineProject(Project):
    def __init__(self, machine: Machine) -> None:
        super().__init__(machine.config)
        self._machine = machine

    @property
    def keeping(self) -> Store:
        keeper = self._machine.keeper
        if keeper.store is None:
            raise StoreFailed(keeper.trouble or "the store is not open")
        return keeper.store

    @property
    def said(self) -> Index | None:
        """None while it is not open yet: then the store itself is searched."""
        return self._machine.follower.index

    @property
    def _memories(self) -> MemorySource:
        return self._machine.memories

    @property
    def _index(self) -> Index:
        index = self._machine.follower.index
        if index is None:
            raise NotFound("the index is about to be opened; ask again in a moment")
        return index
