"""The project behind the MCP tools: its store, index and files, opened when first needed, or those
of a running proxy."""

from __future__ import annotations

import re
from contextlib import ExitStack, closing, suppress
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Self

from hotset.config import Config
from hotset.errors import HotsetError, NotFound, StoreFailed, StoreMoved
from hotset.nouns.knobs import HistoryKnobs
from hotset.nouns.page import SessionId
from hotset.nouns.search import Query
from hotset.runtime.learned_state import read_state
from hotset.runtime.learning import learned_knobs
from hotset.runtime.machine import Machine
from hotset.runtime.model_tools import warm
from hotset.runtime.reader import Store, has_store, open_index, open_to_look
from hotset.sources.code import GRAMMARS, Parsers, has_code, index_folder, read_consent
from hotset.sources.memory import ProjectMemories

if TYPE_CHECKING:
    from hotset.runtime.reader import Index
    from hotset.sources.memory import ProjectMemories

# seconds of processor time for one file: a model waits, and a megabyte of ordinary code takes a
# quarter of one
_PARSING = 2.0
_NOT_AN_AGENT = re.compile(r"mcp( [0-9a-f]+)?|tools")
"""Keys of sessions that are no conversations: they keep results of tools, and tools that were
removed."""


class Project:
    """Opens a project's parts on demand. Use it from one thread, but for `warm` and `keeping`; and
    close it."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._opened = ExitStack()
        self._opening = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def warm(self) -> None:
        """Loads what the first answers need, while the agent is still starting. Errors here occur
        again where they are reported."""
        warm()
        with suppress(HotsetError):
            if self._config.search and index_folder(self._config.folder).exists():
                self._index.search(Query("warm"))

    @property
    def knobs(self) -> HistoryKnobs:
        """How earlier work is searched, with what the project learned about that."""
        return learned_knobs(self._config, read_state(self.store)).history

    @property
    def patience(self) -> float:
        return self._config.patience

    @property
    def root(self) -> Path:
        """The project's folder. Raises `NotFound` until a person has allowed reading its files."""
        if not self._allowed:
            raise NotFound(
                "the files of this project are not indexed; read them with your own "
                "tools, or ask the user to run `hotset index`"
            )
        return self._config.project

    @property
    def code(self) -> Index:
        """The index with the project's files. Raises `NotFound` while there is none."""
        if self.root and not has_code(self._config.folder):
            raise NotFound("the files of this project are being indexed; ask again soon")
        return self._index

    @property
    def history_index(self) -> Index | None:
        """The index of pages; None where search is switched off."""
        return self._index if self._config.search else None

    @property
    def store(self) -> Store:
        """The store. Raises `NotFound` while nothing is kept."""
        if not has_store(self._config.folder):
            raise NotFound(
                "no conversation of this project is stored yet; ask the user to run "
                "`hotset wrap AGENT`"
            )
        return self.keeping

    @property
    def keeping(self) -> Store:
        """The store, created where there is none, and opened anew where its file was moved or
        replaced."""
        with self._opening:
            try:
                self._store.version()
            except StoreMoved:
                self._store.close()
                del self._store
            return self._store

    def memories(self, *, makes: bool = False) -> ProjectMemories:
        """The memories. Raises `NotFound` while nothing is kept, unless `makes`."""
        if not makes:
            self.store  # noqa: B018 - raises where there is no store
        return self._memories

    def session(self, named: str) -> SessionId | None:
        """The session of that id, key or beginning of an id; by default the one used last. Raises
        `NotFound`."""
        every = self.store.recent_sessions()
        if not named:
            sessions = [each.id for each in every if not _NOT_AN_AGENT.fullmatch(each.key)]
            return sessions[0] if sessions else None
        exact = [each.id for each in every if named in (each.id, each.key)]
        found = exact or [each.id for each in every if each.id.startswith(named)]
        if len(found) != 1:
            problem = "several sessions begin" if found else "no session begins"
            latest = ", ".join(each.id for each in every[:3])
            raise NotFound(
                f"{problem} with {named[:80]!r}; latest: {latest}; others: search_history(query)"
            )
        return found[0]

    @property
    def _allowed(self) -> bool:
        return read_consent(self._config.folder).allows(self._config.project)

    @cached_property
    def _memories(self) -> ProjectMemories:
        from hotset.sources.memory import ProjectMemories  # noqa: PLC0415

        config, index = self._config, lambda: self.history_index
        knobs = lambda: learned_knobs(config, read_state(self.keeping)).memory  # noqa: E731
        return ProjectMemories(config, lambda: self.keeping, index, knobs=knobs)

    @cached_property
    def parsers(self) -> Parsers:
        """Parsers with the grammars that the indexer unpacked: unpacking one takes a third of a
        second."""
        return self._opened.enter_context(
            Parsers(self._config.folder / GRAMMARS, processes=1, seconds=_PARSING)
        )

    @cached_property
    def _store(self) -> Store:
        return self._opened.enter_context(open_to_look(self._config.folder))

    @cached_property
    def _index(self) -> Index:
        return self._opened.enter_context(
            closing(open_index(self._config.folder, self._config.embedding))
        )


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
    def history_index(self) -> Index | None:
        """The open index; None until it is open: then the store itself is searched."""
        return self._machine.follower.index

    @property
    def _memories(self) -> ProjectMemories:
        return self._machine.memories

    @property
    def _index(self) -> Index:
        index = self._machine.follower.index
        if index is None:
            raise NotFound("the index is being opened; ask again soon")
        return index
