"""A project's memory, opened by a program: what is kept in it is what the proxy and the command
line see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Self, TypeVar

from hotset.config import Config, budget_of, load
from hotset.errors import BadConfig, StoreFailed
from hotset.nouns.call import Headers
from hotset.nouns.page import SessionId
from hotset.nouns.retrieval import MAX_TOKENS, Retrieved
from hotset.runtime import ledger
from hotset.runtime.machine import Machine, open_store as open_project_store
from hotset.runtime.reader import Store, find_content
from hotset.runtime.record import KEEPING
from hotset.sources.memory import MemorySource
from hotset.sources.tools import Toolbox
from hotset.surfaces.library.engine import Engine
from hotset.surfaces.library.frameworks import framework_of
from hotset.surfaces.library.memories import AsyncMemories, Memories
from hotset.surfaces.library.messages import dialect_named
from hotset.surfaces.library.searching import LibrarySearch, Wanted, types_named
from hotset.surfaces.library.tools import AsyncTools, Tools
from hotset.surfaces.library.window import AsyncWindow, Conversation, Setting, Window
from hotset.surfaces.library.wrapping import wrapped

_SETTLE_SECONDS = 5.0
"""How long a look into the store waits for what was handed to it just before."""

_Client = TypeVar("_Client")
_Window = TypeVar("_Window", bound=Conversation)


def open(
    project: str | Path | None = None,
    *,
    data: str | Path | None = None,
    off: bool | None = None,
    inject: bool | None = None,
    budget: int | None = None,
    profile: str | None = None,
    open_store: Callable[[], Store] | None = None,
) -> Memory:
    """The memory of the project that a folder belongs to: the working directory's, where none is
    named.

    The other settings are those of `hotset up`, and win over the environment and the user's file. A
    store that cannot be opened is told about and tried again later; until then requests go through
    untouched. Raises `BadConfig`.
    """
    config = load(
        project=None if project is None else str(project),
        data=None if data is None else str(data),
        off=off,
        inject=inject,
        budget=budget,
        profile=profile,
    )
    return Memory(config, open_store or partial(open_project_store, config))


def wrap(
    client: _Client,
    memory: Memory | AsyncMemory | None = None,
    *,
    agent: str = "",
    session: str = "",
    budget: int = 0,
) -> _Client:
    """A copy of an openai or anthropic client, blocking or not, whose conversations have a memory.

    Everything else about it stays: key, URL, headers, timeouts, retries, connections. Models of
    pydantic-ai, openai-agents and LangChain are wrapped in the same way. Without a memory it is the
    working directory's, open until the program ends.
    """
    return (memory or _of_this_project()).wrap(client, agent=agent, session=session, budget=budget)


_shared: dict[Path, Memory] = {}
_sharing = Lock()


def _of_this_project() -> Memory:
    config = load()
    with _sharing:
        memory = _shared.get(config.folder)
        if memory is None or memory.closed:
            memory = _shared[config.folder] = Memory(config, partial(open_project_store, config))
        return memory


class _Opened(Generic[_Window]):
    """What a blocking and an awaiting memory share."""

    def __init__(self, engine: Engine, window: Callable[[Engine, Setting], _Window]) -> None:
        self._engine = engine
        self._window = window
        self._searching = LibrarySearch(engine)

    @property
    def closed(self) -> bool:
        return not self._engine.alive

    def window(
        self,
        model: str,
        *,
        agent: str = "",
        session: str = "",
        budget: int = 0,
        system: Any = None,
        dialect: str = "",
        **params: Any,
    ) -> _Window:
        """A conversation in a bounded window.

        `agent` says who asks: kinds of agents have profiles of their own. `session` names the
        conversation, which is otherwise known by what is said in it. `budget` is what a prompt may
        have in tokens, where that is less than the model's window. `params` go into every request.
        Raises `BadInput`, and `MemoryClosed`.
        """
        self._engine.working()
        spoken = dialect_named(dialect) if dialect else None
        headers = (*_named(agent, session), (b"user-agent", b"hotset-window"))
        tokens = budget_of(budget, "of memory.window()")
        return self._window(self._engine, Setting(model, system, spoken, headers, tokens, params))

    def wrap(
        self, client: _Client, *, agent: str = "", session: str = "", budget: int = 0
    ) -> _Client:
        """See `hotset.wrap`. Raises `BadInput`, and `MemoryClosed`."""
        self._engine.working()
        one = partial(
            wrapped,
            engine=self._engine,
            budget=budget_of(budget, "of wrap()"),
            named=_named(agent, session),
        )
        of_framework = framework_of(client)
        made: _Client = one(client) if of_framework is None else of_framework(client, one)
        return made

    def _toolbox(self) -> Toolbox:
        """Raises `BadConfig` where the operator wants none, and `MemoryClosed`."""
        toolbox = self._engine.working().toolbox
        if not isinstance(toolbox, Toolbox):
            raise BadConfig(f"tools are switched off ({self._engine.config.origins['tools']})")
        return toolbox

    def _remembered(self) -> MemorySource:
        """As it stands when what went through so far is kept. Raises `MemoryClosed`."""
        machine = self._engine.working()
        self._settle(machine)
        return machine.memories

    def _search(self, wanted: Wanted) -> Retrieved:
        return self._searching.search(wanted, self._store)

    def _recall(self, id: str) -> bytes:
        store = self._store
        return store.content(find_content(store, id)[1])

    def _savings(self, session: str, since: float | None) -> ledger.Savings:
        return ledger.savings(
            self._store, self._engine.config, SessionId(session) if session else None, since
        )

    @property
    def _store(self) -> Store:
        """As it stands when what went through so far is kept. Raises `StoreFailed` while there is
        none, and `MemoryClosed`."""
        machine = self._engine.working()
        self._settle(machine)
        keeper = machine.keeper
        if keeper.store is None:
            raise StoreFailed(keeper.trouble or "the store is not open")
        return keeper.store

    def _settle(self, machine: Machine) -> None:
        self._engine.wait(machine.background.settled(KEEPING, _SETTLE_SECONDS))


class Memory(_Opened[Window]):
    """Use it as a context manager: `with hotset.open() as memory`; `async with` gives an
    `AsyncMemory`."""

    def __init__(self, config: Config, open_store: Callable[[], Store]) -> None:
        super().__init__(Engine(config, open_store), Window)
        self.tools = Tools(self._toolbox)
        """The toolbox of the project."""
        self.memories = Memories(self._remembered)
        """What was learned in its sessions."""

    def search(
        self,
        query: str,
        *,
        type: str | Sequence[str] = (),
        kind: str = "",
        session: str = "all",
        path: str = "",
        max_tokens: int = MAX_TOKENS,
    ) -> Retrieved:
        """What fits best: the project's files, where they are indexed, pages of its sessions,
        memories and tools.

        `type` narrows it to `page`, `code`, `memory` or `tool`, one or several. `kind` is a kind of
        page (`tool_result`, `prompt` ...) or a language (`python` ...); `path` a folder, file or
        pattern. Raises `BadInput` where these leave nothing to search.
        """
        return self._search(Wanted(query, kind, session, path, max_tokens, types_named(type)))

    def recall(self, id: str) -> bytes:
        """The exact bytes of a page, by its id or the beginning of it, by a tool call's id, or by
        the content's SHA-256.

        Raises `NotFound`.
        """
        return self._recall(id)

    def savings(self, session: str = "", since: float | None = None) -> ledger.Savings:
        """What was spent, and what sending everything would have come to: of all sessions, or of
        one."""
        return self._savings(session, since)

    def close(self) -> None:
        """Keeps what is under way, and ends. Clients that were wrapped go on without a memory."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> AsyncMemory:
        return AsyncMemory(self._engine)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)


class AsyncMemory(_Opened[AsyncWindow]):
    """The same for a loop: what takes time is awaited."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, AsyncWindow)
        self.tools = AsyncTools(self._toolbox)
        """The toolbox of the project."""
        self.memories = AsyncMemories(self._remembered)
        """What was learned in its sessions."""

    async def search(
        self,
        query: str,
        *,
        type: str | Sequence[str] = (),
        kind: str = "",
        session: str = "all",
        path: str = "",
        max_tokens: int = MAX_TOKENS,
    ) -> Retrieved:
        """See `Memory.search`."""
        return await asyncio.to_thread(
            self._search, Wanted(query, kind, session, path, max_tokens, types_named(type))
        )

    async def recall(self, id: str) -> bytes:
        """See `Memory.recall`."""
        return await asyncio.to_thread(self._recall, id)

    async def savings(self, session: str = "", since: float | None = None) -> ledger.Savings:
        """See `Memory.savings`."""
        return await asyncio.to_thread(self._savings, session, since)

    async def close(self) -> None:
        """See `Memory.close`."""
        await asyncio.to_thread(self._engine.close)


def _named(agent: str, session: str) -> Headers:
    given = ((b"x-hotset-agent", agent), (b"x-hotset-session", session))
    return tuple((name, value.encode("latin-1", "replace")) for name, value in given if value)
