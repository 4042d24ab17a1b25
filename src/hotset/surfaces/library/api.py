"""The library's API: a program opens a project's memory, with its windows, toolbox and memories.
The proxy and the command line share the same data."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

import msgspec

from hotset.config import Config, budget_of, load
from hotset.errors import BadConfig, BadInput, HotsetError, StoreFailed, ToolFailed
from hotset.nouns.call import Headers
from hotset.nouns.memory import Detail, MemoryRecord, Trust
from hotset.nouns.message import ToolSpec
from hotset.nouns.page import SessionId
from hotset.nouns.retrieval import MAX_TOKENS, Place, Retrieved
from hotset.nouns.tool import UNLIKELY, Ghost, ToolMetrics
from hotset.nouns.turn import Event
from hotset.runtime import metrics, retrieval
from hotset.runtime.audit import (
    EventFilter,
    find_events,
    keep_event,
    retrieved_event,
    searched_event,
)
from hotset.runtime.machine import Machine, open_store as open_project_store
from hotset.runtime.model_tools import RANGE, RETRIEVE, parse_call
from hotset.runtime.reader import Store, find_content, find_session, page_to_keep
from hotset.runtime.record import KEEPING
from hotset.runtime.wire import DIALECTS
from hotset.sources.tools import USED, Toolbox, ToolUse
from hotset.surfaces.library.agent import AgentWindow, AsyncAgentWindow
from hotset.surfaces.library.engine import Engine
from hotset.surfaces.library.frameworks import framework_of
from hotset.surfaces.library.sdk_messages import dialect_named
from hotset.surfaces.library.search import (
    LibraryQuery,
    LibrarySearch,
    Moment,
    make_filter,
    parse_types,
)
from hotset.surfaces.library.transport import wrap_client
from hotset.surfaces.library.window import AsyncWindow, Conversation, Setting, Window

if TYPE_CHECKING:
    from hotset.sources.memory import ProjectMemories, RecallAnswer, RenderedText

_SETTLE_SECONDS = 5.0
"""How long a read of the store waits for what was handed to it just before."""

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Client = TypeVar("_Client")
_Window = TypeVar("_Window", bound=Conversation)
_Agent = TypeVar("_Agent", bound=Conversation)

_shared: dict[Path, Memory] = {}
_sharing = Lock()
PROGRAM = "program"
"""The author of a memory, where the program names none."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


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
    """Opens the memory of the project that a folder belongs to; by default the working directory's.

    The other settings are those of `hotset up`, and override the environment and the user's file. A
    store that cannot be opened is logged and tried again later; until then requests go through
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
    metadata: Mapping[str, str] | None = None,
) -> _Client:
    """A copy of an openai or anthropic client, blocking or not, whose conversations have a memory.

    Everything else about it stays: key, URL, headers, timeouts, retries, connections. Models of
    pydantic-ai, openai-agents and LangChain are wrapped in the same way. Without a memory it is the
    working directory's, open until the program ends.
    """
    return (memory or _shared_memory()).wrap(
        client, agent=agent, session=session, budget=budget, metadata=metadata
    )


def _shared_memory() -> Memory:
    config = load()
    with _sharing:
        memory = _shared.get(config.folder)
        if memory is None or memory.closed:
            memory = _shared[config.folder] = Memory(config, partial(open_project_store, config))
        return memory


def _in_thread(
    blocking: Callable[Concatenate[Any, _P], _T],
) -> Callable[Concatenate[Any, _P], Coroutine[Any, Any, _T]]:
    """An awaitable version of a blocking method: it runs in a thread, on an object with the same
    fields."""

    @wraps(blocking)
    async def awaited(self: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await asyncio.to_thread(blocking, self, *args, **kwargs)

    return awaited


class _BaseMemory(Generic[_Window, _Agent]):
    """Base of the blocking and the awaiting memory."""

    def __init__(
        self,
        engine: Engine,
        window: Callable[[Engine, Setting], _Window],
        agent: Callable[[Engine, Setting], _Agent],
    ) -> None:
        self._engine = engine
        self._window = window
        self._agent = agent
        self._searching = LibrarySearch(engine)

    @property
    def closed(self) -> bool:
        return not self._engine.is_alive

    def window(
        self,
        model: str,
        *,
        agent: str = "",
        session: str = "",
        budget: int = 0,
        metadata: Mapping[str, str] | None = None,
        system: Any = None,
        dialect: str = "",
        **params: Any,
    ) -> _Window:
        """A conversation in a bounded window.

        `agent` names the agent: kinds of agents have profiles of their own. `session` names the
        conversation, which is otherwise identified by its messages; `metadata` is kept with it, its
        `kind` being the agent's kind. `budget` is what a prompt may
        have in tokens, where that is less than the model's window. `params` go into every request.
        Raises `BadInput`, and `MemoryClosed`.
        """
        tokens = budget_of(budget, "of memory.window()")
        setting = self._setting(model, agent, session, metadata, tokens, system, dialect, params)
        return self._window(self._engine, setting)

    def agent(
        self,
        kind: str,
        id: str,
        *,
        model: str,
        budget: int = 0,
        metadata: Mapping[str, str] | None = None,
        system: Any = None,
        dialect: str = "",
        **params: Any,
    ) -> _Agent:
        """An agent of a kind in a window of its own: `librarian` and the other knowledge agents let
        steps leave, `engineer`, `designer`, `inspector`, `tester`, `orchestrator` and `guide` hand
        over (`handoff_due`, `handoff()`).

        All agents of a project share what is kept and search each other's history. `id` names this
        one: its session is `kind/id`. `task` and `pipeline` in `metadata` go into its state. The
        rest is as in `window()`. Raises `BadInput`, and `MemoryClosed`.
        """
        kinds = self._engine.config.profiles
        if kind not in kinds or not id:
            raise BadInput(f"agent() takes an id, and one of these kinds: {', '.join(kinds)}")
        session = f"{kind}/{id}"
        tokens = budget_of(budget, "of memory.agent()")
        setting = self._setting(model, kind, session, metadata, tokens, system, dialect, params)
        return self._agent(self._engine, replace(setting, agent=kind))

    def _setting(  # noqa: PLR0917 - the arguments of a window
        self,
        model: str,
        agent: str,
        session: str,
        metadata: Mapping[str, str] | None,
        budget: int,
        system: Any,
        dialect: str,
        params: Mapping[str, Any],
    ) -> Setting:
        self._engine.require_machine()
        spoken = dialect_named(dialect) if dialect else None
        headers = (*_name_headers(agent, session, metadata), (b"user-agent", b"hotset-window"))
        return Setting(model, system, spoken, headers, budget, params)

    def wrap(
        self,
        client: _Client,
        *,
        agent: str = "",
        session: str = "",
        budget: int = 0,
        metadata: Mapping[str, str] | None = None,
    ) -> _Client:
        """See `hotset.wrap`. Raises `BadInput`, and `MemoryClosed`."""
        self._engine.require_machine()
        one = partial(
            wrap_client,
            engine=self._engine,
            budget=budget_of(budget, "of wrap()"),
            named=_name_headers(agent, session, metadata),
        )
        of_framework = framework_of(client)
        made: _Client = one(client) if of_framework is None else of_framework(client, one)
        return made

    def _toolbox(self) -> Toolbox:
        """The toolbox. Raises `BadConfig` if it is switched off, and `MemoryClosed`."""
        toolbox = self._engine.require_machine().toolbox
        if not isinstance(toolbox, Toolbox):
            raise BadConfig(f"tools are switched off ({self._engine.config.origins['tools']})")
        return toolbox

    def _project_memories(self) -> ProjectMemories:
        """The memories, once what went through so far is kept. Raises `MemoryClosed`."""
        machine = self._engine.require_machine()
        self._settle(machine)
        return machine.memories

    @property
    def _store(self) -> Store:
        """The store, once what went through so far is kept. Raises `StoreFailed` while there is
        none, and `MemoryClosed`."""
        machine = self._engine.require_machine()
        self._settle(machine)
        keeper = machine.keeper
        if keeper.store is None:
            raise StoreFailed(keeper.trouble or "the store is not open")
        return keeper.store

    def _answer(self, tool: str, arguments: Mapping[str, Any], session: str) -> Retrieved:
        """The answer to a model's tool, asked by the program; by default of the latest session."""
        store, config = self._store, self._engine.config
        call = parse_call(tool, msgspec.json.encode(arguments))
        every = store.recent_sessions()
        asked = find_session(store, session).id if session else every[0].id if every else None
        here = Place(asked, knobs=self._engine.machine.learning.knobs.history)
        begun = time.monotonic()
        found = retrieval.answer(
            call,
            store,
            here,
            readers=[source.read for source in self._engine.machine.sources],
            abouts=[source.about for source in self._engine.machine.sources],
            index=self._engine.machine.follower.index,
            patience=config.patience,
        )
        took = 1000 * (time.monotonic() - begun)
        event = retrieved_event(tool, call, found, here, time.time(), agent=PROGRAM, ms=took)
        keep_event(store, event)
        return found

    def _keep_event(self, event: Event) -> None:
        """Without waiting; where there is no store, the event is lost."""
        store = self._engine.require_machine().keeper.store
        if store is not None:
            keep_event(store, event)

    def _settle(self, machine: Machine) -> None:
        self._engine.wait(machine.background.settled(KEEPING, _SETTLE_SECONDS))


class Memory(_BaseMemory[Window, AgentWindow]):
    """Use it as a context manager: `with hotset.open() as memory`; `async with` gives an
    `AsyncMemory`."""

    def __init__(self, config: Config, open_store: Callable[[], Store]) -> None:
        super().__init__(Engine(config, open_store), Window, AgentWindow)
        self.tools = Tools(self._toolbox, self._keep_event)
        """The toolbox of the project."""
        self.memories = Memories(self._project_memories)
        """What was learned in its sessions."""

    def search(
        self,
        query: str,
        *,
        type: str | Sequence[str] = (),
        kind: str | Sequence[str] = (),
        session: str = "all",
        agent: str | Sequence[str] = (),
        turns: tuple[int, int] | str | None = None,
        since: Moment = None,
        until: Moment = None,
        path: str = "",
        max_tokens: int = MAX_TOKENS,
    ) -> Retrieved:
        """The best hits among the project's indexed files, pages of its sessions, memories and
        tools.

        `type` narrows it to `page`, `code`, `memory`, `tool` or `record`, one or several. `kind`
        is a kind of page (`tool_result`, `prompt` ...), a kind of record (`reference`,
        `checkpoint`, `handoff`) or a language (`python` ...), one or several; `agent` one or
        several agents; `turns` is `(12, 20)` or `"12-20"`; `since` and `until` are seconds, a
        datetime, `"2d"` or a date; `path` a folder, file or pattern. Raises `BadInput` where these
        leave nothing to search.
        """
        only, sorts = make_filter(
            kind=kind, agent=agent, turns=turns, since=since, until=until, path=path
        )
        wanted = LibraryQuery(query, only, session, max_tokens, parse_types(type) & sorts)
        return self._searching.search(wanted, self._store)

    def keep(
        self,
        content: str | bytes,
        *,
        kind: str = "finding",
        session: str = PROGRAM,
        agent: str = PROGRAM,
        parent: str = "",
        media: str = "text/plain",
        metadata: Mapping[str, str] | None = None,
    ) -> str:
        """Keeps content of the program's own and returns its page's id: it is on disk, found by
        searches, and comes back byte for byte.

        `kind` is a kind of page: `finding`, `file`, `paper`, `plan`, `agent_message` ...; `session`
        an id, or the name of a conversation, opened if it is new; `parent` the page that it comes
        from. Raises `BadInput`, `NotFound` and `StoreFailed`.
        """
        store = self._store
        page = page_to_keep(
            store,
            content.encode() if isinstance(content, str) else content,
            time.time(),
            kind=kind,
            session=session,
            agent=agent,
            parent=parent,
            media=media,
            metadata=metadata or {},
        )
        [id] = store.keep(page).result(_SETTLE_SECONDS).pages
        self._engine.call_soon(self._engine.machine.follower.nudge)
        return id

    def retrieve(
        self,
        /,
        id: str = "",
        *,
        session: str = "",
        max_tokens: int = MAX_TOKENS,
        **arguments: Any,
    ) -> Retrieved:
        """What `retrieve_context` brings a model: content by its id, or by `topic`, `tool` or
        `iteration` of a session, whole or as `lines`, `rows`, `symbol`, `regex`, `json_path` or
        `question`. Raises `Malformed`, and `NotFound` for an unknown session."""
        given = {"id": id, "max_tokens": max_tokens, **arguments}
        return self._answer(RETRIEVE, given, session)

    def turns(
        self, first: int, last: int, *, session: str = "", max_tokens: int = MAX_TOKENS
    ) -> Retrieved:
        """The whole messages of these turns, as many as fit; the text names the call that
        continues."""
        return self._answer(
            RANGE, {"first": first, "last": last, "max_tokens": max_tokens}, session
        )

    def events(
        self,
        session: str = "",
        *,
        type: str | Sequence[str] = (),
        agent: str | Sequence[str] = (),
        turns: tuple[int, int] | str | None = None,
        since: Moment = None,
        until: Moment = None,
        limit: int | None = None,
    ) -> tuple[Event, ...]:
        """What happened, oldest first, as `hotset events` lists it: `type` is `eviction`,
        `retrieval`, `bypass`, `alert`, `checkpoint`, `handoff` ... or an event's name, one or
        several; `limit` keeps the latest so many. Raises `BadInput`, and `NotFound`."""
        store = self._store
        with suppress(HotsetError, TimeoutError):
            store.keep().result(_SETTLE_SECONDS)  # behind what was handed over before
        only, _ = make_filter(agent=agent, turns=turns, since=since, until=until)
        types = {type} if isinstance(type, str) else {*type}
        wanted = EventFilter(
            find_session(store, session).id if session else None,
            frozenset(map(str.lower, types - {""})),
            only.agents,
            only.turns,
            only.since,
            only.until,
        )
        return tuple(find_events(store, wanted, limit))

    def recall(self, id: str) -> bytes:
        """The exact bytes of a page, by its id or a beginning of it, by a tool call's id, or by the
        content's SHA-256. Raises `NotFound`."""
        store = self._store
        return store.content(find_content(store, id)[1])

    def savings(self, session: str = "", since: float | None = None) -> metrics.Savings:
        """The costs, and what sending everything would have cost: of all sessions, or of one."""
        return metrics.savings(
            self._store, self._engine.config, SessionId(session) if session else None, since
        )

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


class AsyncMemory(_BaseMemory[AsyncWindow, AsyncAgentWindow]):
    """`Memory` for an event loop: what takes time is awaited."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, AsyncWindow, AsyncAgentWindow)
        self.tools = AsyncTools(self._toolbox, self._keep_event)
        """The toolbox of the project."""
        self.memories = AsyncMemories(self._project_memories)
        """What was learned in its sessions."""

    search = _in_thread(Memory.search)
    keep = _in_thread(Memory.keep)
    retrieve = _in_thread(Memory.retrieve)
    turns = _in_thread(Memory.turns)
    events = _in_thread(Memory.events)
    recall = _in_thread(Memory.recall)
    savings = _in_thread(Memory.savings)
    close = _in_thread(Memory.close)


def _name_headers(agent: str, session: str, metadata: Mapping[str, str] | None) -> Headers:
    given = (
        (b"x-hotset-agent", agent),
        (b"x-hotset-session", session),
        (b"x-hotset-metadata", json.dumps(dict(metadata)) if metadata else ""),
    )
    return tuple((name, value.encode("latin-1", "replace")) for name, value in given if value)


class Memories:
    """What was learned in earlier sessions: search it, add to it, and take back from it.

    Every text for a model is marked as data; none belongs into a system prompt.
    """

    def __init__(self, remembered: Callable[[], ProjectMemories]) -> None:
        self._project_memories = remembered

    def index(self, query: str = "", *, max_tokens: int = 100, session: str = "") -> RenderedText:
        """The topics and their sizes in about a hundred tokens, those that fit the query first."""
        return self._project_memories().index(query, max_tokens=max_tokens, session=session)

    def timeline(
        self,
        query: str = "",
        *,
        topics: Sequence[str] = (),
        max_tokens: int = 500,
        session: str = "",
    ) -> RenderedText:
        """Recent work, decisions and open points, in lines with ids."""
        return self._project_memories().timeline(
            query, topics=topics, max_tokens=max_tokens, session=session
        )

    def recall(
        self,
        query: str,
        *,
        task: str = "",
        kinds: Sequence[str] = (),
        limit: int = 10,
        max_tokens: int = 2000,
        session: str = "",
        more: int = 0,
    ) -> RecallAnswer:
        """The memories that fit, best first: `text` for a model, `recall.items` with score and why.

        `task` is exploration, implementation, debugging, review or refactoring; by default it is
        inferred from the words. `more` (1, then 2, and so on) gives what earlier answers did not,
        also from sessions that the question's words hardly reach; `text` is empty when nothing is
        left.
        """
        ask = self._project_memories().recall
        return ask(
            query,
            task=task,
            kinds=kinds,
            most=limit,
            max_tokens=max_tokens,
            session=session,
            more=more,
        )

    def read(self, id: str, *, max_tokens: int = 2000, session: str = "") -> RenderedText:
        """One memory, as far as it fits, by its id or a unique beginning of it. Raises
        `NotFound`."""
        return self._project_memories().read(id, max_tokens=max_tokens, session=session)

    def get(self, id: str) -> MemoryRecord:
        """The memory itself. Raises `NotFound`."""
        return self._project_memories().get(id)

    def all(
        self, *, kinds: Sequence[str] = (), topic: str = "", limit: int | None = 50
    ) -> tuple[MemoryRecord, ...]:
        """All memories, newest first, without forgotten and merged ones. Raises `BadInput` for an
        unknown kind."""
        from hotset.sources.memory import kind_named  # noqa: PLC0415 - loaded on demand

        return tuple(
            self._project_memories().list(
                kinds=frozenset(map(kind_named, kinds)), topic=topic, limit=limit
            )
        )

    def remember(
        self,
        text: str,
        *,
        kind: str = "fact",
        title: str = "",
        topics: Sequence[str] = (),
        by: str = PROGRAM,
        trust: Trust = Trust.AGENT,
        session: str = "",
        agent: str = "",
        detail: Detail = None,
    ) -> MemoryRecord:
        """Keeps a memory. The same words are kept once; what they replace stays, linked to them.

        A procedure or a pitfall without a person's trust (`Trust.PERSON`) waits until a person
        confirms it: see `standing`.
        """
        return self._project_memories().remember(
            text,
            kind=kind,
            title=title,
            topics=topics,
            by=by,
            trust=trust,
            session=session,
            agent=agent,
            detail=detail,
        )

    def forget(self, id: str, *, erase: bool = False, why: str = "") -> None:
        """Takes a memory out of every search; `hotset memory restore` brings it back. With `erase`
        it leaves the disk for good."""
        self._project_memories().forget(id, erase=erase, why=why)

    def outcome(self, session: str, ending: str) -> None:
        """Records the outcome of the latest task of a session: success, partial, failure or
        unknown."""
        self._project_memories().outcome(session, ending)


class AsyncMemories:
    """`Memories` for an event loop: every method is awaited."""

    def __init__(self, remembered: Callable[[], ProjectMemories]) -> None:
        self._project_memories = remembered

    index = _in_thread(Memories.index)
    timeline = _in_thread(Memories.timeline)
    recall = _in_thread(Memories.recall)
    read = _in_thread(Memories.read)
    get = _in_thread(Memories.get)
    all = _in_thread(Memories.all)
    remember = _in_thread(Memories.remember)
    forget = _in_thread(Memories.forget)
    outcome = _in_thread(Memories.outcome)


class _BaseTools:
    """Base of the blocking and the awaiting toolbox."""

    def __init__(self, toolbox: Callable[[], Toolbox], keep_event: Callable[[Event], None]) -> None:
        self._toolbox = toolbox
        self._keep_event = keep_event

    def register(self, function: _Function, *, name: str = "", description: str = "") -> _Function:
        """Makes a function with annotated parameters a tool; also as a decorator. Raises `BadInput`
        where it cannot be one."""
        self._toolbox().register(function, name=name, description=description)
        return function

    def _keep_use(self, name: str, used: ToolUse | None = None) -> None:
        """Keeps the event of a call, by the name that was called; without a result, of a failed
        one."""
        detail: dict[str, str | int | float] = {"tool": name, "seconds": 0.0, "failed": 1}
        if used is not None:
            detail = {
                "tool": used.tool.name,
                "source": used.tool.source,
                "seconds": round(used.seconds, 4),
                "failed": int(used.returned.failed),
            }
        if used is None or used.ran:
            self._keep_event(Event(USED, time.time(), detail=detail))


class Tools(_BaseTools):
    """The toolbox for a program: registers functions as tools, finds tools by a query, and calls
    them."""

    def find(
        self, query: str, limit: int = 5, *, sources: Sequence[str] = (), session: str = ""
    ) -> tuple[Ghost, ...]:
        """The tools that fit best, best first, with full schemas and scores. Starts no server."""
        begun = time.monotonic()
        found = self._toolbox().find(query, limit, sources, session=session)
        took = 1000 * (time.monotonic() - begun)
        hits = [(ghost.tool.name, ghost.score) for ghost in found]
        event = searched_event("tools.find", query, hits, time.time(), ms=took, agent=PROGRAM)
        self._keep_event(event)
        return found

    def for_query(
        self, query: str, limit: int = 5, *, dialect: str = "openai-chat", session: str = ""
    ) -> list[dict[str, Any]]:
        """A tool list for a model, in the form of `dialect`: loaded tools first, then at most
        `limit` ghosts.

        It differs for every query: with a provider that caches prompts, ask once for a session.
        """
        spoken = DIALECTS[dialect_named(dialect)]
        toolbox = self._toolbox()
        loaded = [Ghost(tool, 1.0, loaded=True) for tool in toolbox.loaded(session)]
        names = {ghost.tool.name for ghost in loaded}
        found = [
            ghost
            for ghost in Tools.find(self, query, limit, session=session)
            if ghost.tool.name not in names and ghost.score >= UNLIKELY
        ]
        offered = [(ghost.tool, _description(ghost)) for ghost in (*loaded, *found)]
        specs = [ToolSpec(tool.name, description, tool.parameters) for tool, description in offered]
        return [msgspec.json.decode(each.raw) for each in spoken.declare(specs)]

    def use(
        self, name: str, arguments: Mapping[str, Any] | str, *, session: str = "", query: str = ""
    ) -> ToolUse:
        """Calls a tool, starting what it needs. Wrong arguments are answered with an explanation:
        `ToolUse.ran` is false then. Raises `NotFound`, `ToolRefused` and `ToolFailed`."""
        try:
            used = self._toolbox().use(name, arguments, session=session, query=query)
        except ToolFailed:
            self._keep_use(name)
            raise
        self._keep_use(name, used)
        return used

    def metrics(self, name: str) -> ToolMetrics:
        """How a tool fares: calls, failures, time, last use, score, tier, state. Raises
        `NotFound`."""
        (metrics,) = self._toolbox().metrics(name).values()
        return metrics

    def candidates(self, n: int = 5) -> tuple[ToolMetrics, ...]:
        """The tools that would be deleted next, in that order: only tools that agents created."""
        return self._toolbox().summary(n).candidates

    def inactive(self) -> tuple[ToolMetrics, ...]:
        """The tools that are inactive; those that are deleted first come first."""
        return self._toolbox().summary().inactive_tools


class AsyncTools(_BaseTools):
    """`Tools` for an event loop."""

    find = _in_thread(Tools.find)
    for_query = _in_thread(Tools.for_query)
    metrics = _in_thread(Tools.metrics)
    candidates = _in_thread(Tools.candidates)
    inactive = _in_thread(Tools.inactive)

    async def use(
        self, name: str, arguments: Mapping[str, Any] | str, *, session: str = "", query: str = ""
    ) -> ToolUse:
        """See `Tools.use`."""
        try:
            used = await self._toolbox().use_async(name, arguments, session=session, query=query)
        except ToolFailed:
            self._keep_use(name)
            raise
        self._keep_use(name, used)
        return used


def _description(ghost: Ghost) -> str:
    return (
        ghost.tool.description
        if ghost.loaded
        else f"[GHOST {ghost.score:.2f}] {ghost.tool.description}"
    )
