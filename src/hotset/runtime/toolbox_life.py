"""Tools that agents write: made, let go when nobody uses them, and brought back from the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hotset.errors import StoreBusy
from hotset.files.folder import private_folder
from hotset.nouns.deposit import Noted
from hotset.nouns.page import Kind, PageId
from hotset.nouns.tool import Life, Origin, Tool
from hotset.sources.tools.deleted import Deletions
from hotset.sources.tools.found import created
from hotset.sources.tools.graph import Graph
from hotset.sources.tools.registry import Registry
from hotset.sources.tools.sweeping import Places, Swept, restore, sweep
from hotset.store.port import Store

FOLDER = "created"
"""Where they are, in the folder of a project's tools."""

_SESSION = "tools"
"""The session that keeps the code of tools that were let go."""

_KEEP_SECONDS = 30.0


class ToolLife:
    """Of one project. Use it from any thread."""

    def __init__(self, folder: Path, registry: Registry, graph: Graph, clock: Callable[[], float]) -> None:
        """`folder` is that of the project's tools."""
        self._folder = private_folder(folder) / FOLDER
        self._registry = registry
        self._graph = graph
        self._clock = clock
        self._deletions = Deletions(folder)

    def create(self, name: str, code: str) -> Tool:
        """Raises `Malformed` where the name or the code cannot be a tool, and says what to change."""
        tool = created.create(self._folder, name, code)
        self._registry.born(tool.name, Origin.CREATED)
        return tool

    def sweep(self, store: Store) -> Swept:
        """One round of the clean-up. Raises `StoreFailed`."""
        return sweep(self._places(store), self._clock())

    def restore(self, name: str, store: Store) -> Life:
        """Raises `NotFound` and `BadInput`."""
        return restore(self._places(store), name, self._clock())

    def troubles(self) -> Sequence[str]:
        return self._deletions.troubles()

    def _places(self, store: Store) -> Places:
        def keep(name: str, code: bytes) -> str:
            note = Noted(None, name, Kind.FILE, code, self._clock(), media="text/x-python", key=_SESSION)
            try:
                return store.keep(note).result(_KEEP_SECONDS).pages[0]
            except TimeoutError:
                raise StoreBusy(f"the store took longer than {_KEEP_SECONDS:.0f} s to keep {name}") from None

        def fetch(id: str) -> bytes:
            return store.content(store.page(PageId(id)).digest)

        return Places(self._registry, self._graph, created.CreatedTools(self._folder), self._deletions, keep, fetch)
