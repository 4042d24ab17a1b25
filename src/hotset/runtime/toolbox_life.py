"""Tools that agents write: made, let go when nobody uses them, and brought back from the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hotset.nouns.deposit import Noted
from hotset.nouns.page import Kind, PageId
from hotset.nouns.tool import Life, Origin, Tool
from hotset.sources.tools.deleted import Deletions
from hotset.sources.tools.found import created
from hotset.sources.tools.graph import Graph
from hotset.sources.tools.registry import Registry
from hotset.sources.tools.sweeping import Places, Swept, restore, sweep
from hotset.store.folder import private_folder
from hotset.store.port import Store

FOLDER = "created"
"""Where they are, in the folder of a project's tools."""

_SESSION = "tools"
"""The session that keeps the code of tools that were let go."""

_KEEP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ToolLife:
    folder: Path
    """Of the project's tools."""
    registry: Registry
    graph: Graph
    clock: Callable[[], float]

    def create(self, name: str, code: str) -> Tool:
        """Raises `Malformed` where the name or the code cannot be a tool, and says what to change."""
        tool = created.create(private_folder(self.folder) / FOLDER, name, code)
        self.registry.born(tool.name, Origin.CREATED)
        return tool

    def sweep(self, store: Store) -> Swept:
        """One round of the clean-up. Raises `StoreFailed`."""
        return sweep(self._places(store), self.clock())

    def restore(self, name: str, store: Store) -> Life:
        """Raises `NotFound` and `BadInput`."""
        return restore(self._places(store), name, self.clock())

    def _places(self, store: Store) -> Places:
        def keep(name: str, code: bytes) -> str:
            note = Noted(None, name, Kind.FILE, code, self.clock(), media="text/x-python", key=_SESSION)
            return store.keep(note).result(_KEEP_SECONDS).pages[0]

        def fetch(id: str) -> bytes:
            return store.content(store.page(PageId(id)).digest)

        written = _Written(self.folder / FOLDER)
        return Places(self.registry, self.graph, written, Deletions(private_folder(self.folder)), keep, fetch)


@dataclass(frozen=True, slots=True)
class _Written:
    folder: Path

    def read(self, name: str) -> bytes | None:
        return created.read(self.folder, name)

    def remove(self, name: str) -> bytes:
        return created.remove(self.folder, name)

    def put_back(self, name: str, code: bytes) -> None:
        created.put_back(self.folder, name, code)
