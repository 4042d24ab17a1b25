"""The toolbox: any number of tools, found by asking, run when they are called, and nothing running
that is not in use.

query -> find -> ghosts, with their schemas -> use: check, start just in time, call -> what it gave
                                                |-> registry, graph, uses: what is used lives longer
                                                and is found better
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from hotset.config import TOOLS, Config
from hotset.errors import (
    BadInput,
    HotsetError,
    Malformed,
    NotFound,
    StoreBusy,
    ToolFailed,
    ToolRefused,
)
from hotset.files.lru import Lru
from hotset.files.private_folder import private_folder
from hotset.learn.events import Change, ChangeDecision, GateVerdict, change_id, encode_payload
from hotset.nouns.deposit import PageAdded
from hotset.nouns.knobs import ToolboxKnobs
from hotset.nouns.page import Kind, PageId
from hotset.nouns.tool import (
    UNLIKELY,
    Ghost,
    Life,
    OriginKind,
    Returned,
    Tool,
    ToolMetrics,
    ToolOrigin,
)
from hotset.nouns.turn import Event
from hotset.sources.tools.answers import ReadCall, ToolAnswers
from hotset.sources.tools.approval import KnownTool, ToolState
from hotset.sources.tools.callables import (
    OURS,
    BoundFunction,
    bind_function,
    program,
    returned,
    text_of,
)
from hotset.sources.tools.catalogue import CREATED, Catalogue, SourceScanner, ToolSources, ToolSync
from hotset.sources.tools.found.created import SOURCE, CreatedTools, create
from hotset.sources.tools.found.skills import Skill, read_skill
from hotset.sources.tools.graph import ToolGraph, word_overlap
from hotset.sources.tools.registry import Registry, is_pinned_by_name, measure
from hotset.sources.tools.running.mcp_client import ToolListing
from hotset.sources.tools.running.server_pool import (
    ADVICE,
    RunningFile,
    RunningServer,
    ServerPoolThread,
)
from hotset.sources.tools.schemas import check, read_arguments, render_found
from hotset.sources.tools.sweep import (
    Deletions,
    LifeSummary,
    ToolPlaces,
    has_room,
    make_room,
    restore,
    summary,
    sweep,
)
from hotset.sources.tools.tool_names import full_name
from hotset.store.port import Store

if TYPE_CHECKING:
    from hotset.sources.tools.tool_search import (
        LearnedPast,
        ToolSearch,  # loads numpy, which no start should pay for
    )

MOST_FOUND = 20
"""Tools that one question brings at most: more schemas than that are a list again."""

_BY, _PAST = "tools", "toolbox.past"
"""Who proposes a change, and the knob that it changes."""
_FIND_SECONDS = 0.2
_REST_SECONDS = 1.0  # between two looks for what is new
_KEEP_SECONDS = 30.0  # for the store to take the code of a tool that is let go
_CODE_SESSION = "tools"
"""The session that keeps the code of tools that were let go."""

_MOST_SESSIONS = 256
_MOST_QUESTIONS = 8
_MOST_USED = 16
_MOST_FAULTS = 3


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call that was made; or one that was not, because its arguments were wrong: then `returned`
    says what is wrong with them."""

    tool: Tool
    returned: Returned
    seconds: float = 0.0
    ran: bool = True
    stored: bool = False
    """It was not run: this is what the same call gave before (`answers`)."""

    @property
    def text(self) -> str:
        """What it returned, for a model; what is no text is described by kind and size."""
        return text_of(self.returned)


@dataclass(frozen=True, slots=True)
class ToolMatches:
    """The result of a search for tools."""

    ghosts: tuple[Ghost, ...] = ()
    """The best first. Where even that is below `UNLIKELY`, nothing fits, and these are only the
    nearest."""
    waiting: tuple[KnownTool, ...] = ()
    """Skills of the project that fit, too, and that no person approved yet: only their names and
    descriptions may be shown."""
    faults: tuple[str, ...] = ()
    """Errors in the files of those that fit or that the query names."""


class ToolLibrary(Protocol):
    """The toolbox, as far as a conversation needs it. Safe to use from any thread."""

    @property
    def empty(self) -> bool:
        """True if there is nothing to offer. Cheap."""

    @property
    def ready(self) -> bool:
        """True when a search takes milliseconds."""

    def knows(self, name: str) -> bool:
        """True for the full name of a tool that could be used. Cheap."""

    def find(
        self, query: str, limit: int = 5, only: Sequence[str] = (), *, session: str = ""
    ) -> Sequence[Ghost]:
        """The tools that fit, best first. Raises a `HotsetError` for the model to read."""

    def look_for(
        self, query: str, limit: int = 5, only: Sequence[str] = (), *, session: str = ""
    ) -> ToolMatches:
        """As `find`, with skills that would fit once a person approves them."""

    def render_found(
        self,
        ghosts: Sequence[Ghost],
        max_tokens: int,
        waiting: Sequence[KnownTool] = (),
        faults: Sequence[str] = (),
    ) -> str:
        """The text for a model about these tools and the skills that wait for approval."""

    async def use_async(
        self, name: str, arguments: object, *, session: str = "", query: str = "", turn: int = 0
    ) -> ToolUse:
        """Call a tool. Raises a `HotsetError` for the model to read."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that can be made."""

    tool: Tool
    arguments: Mapping[str, Any]
    source: ToolOrigin | None = None
    """Where it runs; None for a function of this program."""
    skill: Skill | None = None
    """The skill that is read, where nothing has to run."""
    pinned: bool = False
    session: str = ""
    query: str = ""
    turn: int = 0
    begun: float = 0.0
    reads: ReadCall | None = None
    """Where what it returns may answer the same call later."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """What is opened when it is first needed: a toolbox with nothing in it leaves no trace on
    disk."""

    catalogue: Catalogue
    sync: ToolSync
    registry: Registry
    graph: ToolGraph
    deletions: Deletions


@dataclass(frozen=True, slots=True)
class _Session:
    """What a session searched for and used lately: the query tells what a call was good for."""

    questions: Lru[str, frozenset[str]] = field(
        default_factory=lambda: Lru("tool queries", count=_MOST_QUESTIONS, shrinks=False)
    )
    """Queries, with the tools that each of them found."""
    used: Lru[str, None] = field(
        default_factory=lambda: Lru("used tools", count=_MOST_USED, shrinks=False)
    )

    def question(self, tool: str) -> str:
        """The latest query that found this tool; empty where none did."""
        return next(
            (asked for asked, names in reversed(self.questions.items()) if tool in names), ""
        )

    def tools(self) -> tuple[str, ...]:
        """The latest last."""
        return tuple(tool for tool, _ in self.used.items())


class Toolbox:
    """The tools of one project, in one process. Use it from any thread; close it."""

    def __init__(
        self,
        config: Config,
        store: Callable[[], Store],
        *,
        whose: str = "hotset",
        happened: Callable[[Event], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`whose` names this process to people, `happened` hears of every use. `store` is asked,
        and the index opened, when something is looked for or used."""
        self.knobs: Callable[[], ToolboxKnobs] = lambda: config.knobs_for("").toolbox
        """Those of a search; a machine replaces them by what was learned."""
        self._config = config
        self._store = store
        self._whose = whose
        self._folder = config.folder / TOOLS
        self._happened = happened
        self._clock = clock
        self._scanner = SourceScanner(config)
        self._bound: dict[str, BoundFunction] = {}
        self._sessions: Lru[str, _Session] = Lru(
            "tool sessions", count=_MOST_SESSIONS, shrinks=False
        )
        self._lock = threading.Lock()
        self._sweeping = threading.Lock()
        """Held until what a sweep changed is in the audit: nothing closes in between."""
        self._synced: tuple[ToolSources, int] | None = None
        self._search: ToolSearch | None = None
        self._pool: ServerPoolThread | None = None
        self._running_file = RunningFile(self._folder, whose)
        self._parts: _Parts | None = None
        self._related: frozenset[str] = frozenset()
        self._looked = float("-inf")
        self._closed = False
        tooling = config.tooling
        self._answers = (
            ToolAnswers(config.project, tooling.answer_seconds)
            if tooling.answer_from_store
            else None
        )
        if tooling.create:
            self._bind(self._create_tool, OURS, name="create_tool")
            self._bind(self._restore_tool, OURS, name="restore_tool")

    @property
    def empty(self) -> bool:
        """True if there is nothing in it. Costs a look at a few files, at most once a second."""
        return not self._config.tooling.enabled or not (self._bound or self._scanner.now().sources)

    @property
    def ready(self) -> bool:
        """True when a search takes milliseconds. Before that everything has to be opened: see
        `warm`."""
        return self._search is not None

    @property
    def catalogue(self) -> Catalogue:
        return self._opened_parts().catalogue

    @property
    def registry(self) -> Registry:
        return self._opened_parts().registry

    @property
    def graph(self) -> ToolGraph:
        return self._opened_parts().graph

    def register(
        self, function: Callable[..., Any], *, name: str = "", description: str = ""
    ) -> Tool:
        """A function of this program becomes a tool. Raises `BadInput` where it cannot be one."""
        self._looked = float("-inf")
        return self._bind(function, program(), name=name, description=description)

    def warm(self) -> None:
        """Opens everything that the first search needs, ahead of it, and cleans up once: many
        processes end before their first round. What fails here fails again where it is reported."""
        with suppress(HotsetError, OSError):
            if not self.empty:
                self.stock(self._config.tooling.list_seconds)
                self.index()
                self.tend()

    def stock(self, seconds: float, on_listed: Callable[[str], None] = lambda _: None) -> None:
        """Lists servers whose tools are unknown, and calls `on_listed` with the name of each that
        is done, for a progress display."""
        found = self._scanner.now()
        self._follow(found)
        self._opened_parts().sync.list_all(found, self._changed(), seconds, on_listed)

    def index(self) -> None:
        """Indexes what is new."""
        self._opened_parts().sync.index(self._opened_search())

    def find(
        self, query: str, limit: int = 5, only: Sequence[str] = (), *, session: str = ""
    ) -> tuple[Ghost, ...]:
        """The tools that fit best, best first. A server that is new is asked for its tools first:
        that is waited for once."""
        return self.look_for(query, limit, only, session=session).ghosts

    def look_for(
        self, query: str, limit: int = 5, only: Sequence[str] = (), *, session: str = ""
    ) -> ToolMatches:
        """As `find`, with skills that would fit once a person approves them."""
        if not query.strip():
            raise Malformed("find_tools: describe what the tool should do")
        # A look at every file of a large library takes milliseconds.
        if self._changed() or time.monotonic() - self._looked > _REST_SECONDS:
            self.stock(self._config.tooling.list_seconds)
            self.index()
            self._looked = time.monotonic()
        return self._matches(query, limit, only, session)

    def render_found(
        self,
        ghosts: Sequence[Ghost],
        max_tokens: int,
        waiting: Sequence[KnownTool] = (),
        faults: Sequence[str] = (),
    ) -> str:
        """The text of `find_tools` for what `look_for` found."""
        silent = self._opened_parts().sync.silent()
        return render_found(ghosts, max_tokens, silent, waiting, faults)

    def knows(self, name: str) -> bool:
        """True for the full name of a tool that could be used, or of which can be told how it could
        be again."""
        known = self.catalogue.get(name)
        if known is None:
            return False
        is_gone = known.state is ToolState.GONE and not self._why_gone(known.tool.name)
        return not is_gone and self._is_here(known.tool)

    def resolve(self, name: str) -> KnownTool:
        """Resolve a tool by exact or unambiguous name. If none matches, list servers whose tools
        are unknown or outdated, then try again. Raises `NotFound`."""
        self._follow(
            self._scanner.now(at_once=True)
        )  # what was changed a moment ago is used at once
        try:
            return self.catalogue.resolve(name)
        except NotFound:
            if not self.unlisted() and not self._changed():
                raise
        self.stock(self._config.tooling.list_seconds)
        return self.catalogue.resolve(name)

    def loaded(self, session: str) -> Sequence[Tool]:
        """Functions of this program, and what the session used lately, the latest first."""
        used = (self.catalogue.get(name) for name in reversed(self._session(session).tools()))
        tools = [
            known.tool for known in used if known is not None and known.state is ToolState.READY
        ]
        return list(
            {
                tool.name: tool for tool in (*(each.tool for each in self._bound.values()), *tools)
            }.values()
        )

    def use(
        self, name: str, arguments: object, *, session: str = "", query: str = "", turn: int = 0
    ) -> ToolUse:
        """Calls a tool, starting what it needs. Raises `NotFound`, `ToolRefused` and `ToolFailed`,
        with words for a model. `turn` is the place in the conversation of `session`."""
        call = self._begin(name, arguments, session, query, turn)
        if isinstance(call, ToolUse):
            return call
        try:
            if call.skill is not None:
                came = _read(call.skill, call.arguments)
            elif call.source is None:
                came = self._bound[call.tool.name].call(call.arguments)
            else:
                came = self._opened_pool().call(
                    call.source,
                    call.tool.own_name,
                    call.arguments,
                    session=session,
                    pinned=call.pinned,
                )
        except ToolFailed:
            self._end(call, None)
            raise
        return self._end(call, came)

    async def use_async(
        self, name: str, arguments: object, *, session: str = "", query: str = "", turn: int = 0
    ) -> ToolUse:
        """As `use`, for callers that must not block: cancelled, it no longer waits, and nothing is
        noted."""
        call = await asyncio.to_thread(self._begin, name, arguments, session, query, turn)
        if isinstance(call, ToolUse):
            return call
        try:
            if call.skill is not None:
                came = await asyncio.to_thread(_read, call.skill, call.arguments)
            elif call.source is None:
                came = await self._bound[call.tool.name].call_async(call.arguments)
            else:
                came = await self._opened_pool().call_async(
                    call.source,
                    call.tool.own_name,
                    call.arguments,
                    session=session,
                    pinned=call.pinned,
                )
        except ToolFailed:
            await asyncio.to_thread(self._end, call, None)
            raise
        return await asyncio.to_thread(self._end, call, came)

    def running(self) -> Sequence[RunningServer]:
        """The processes and connections that are open for tools, in this process."""
        return self._pool.running() if self._pool is not None else ()

    def unlisted(self) -> Sequence[ToolOrigin]:
        """Servers whose tools are not known yet."""
        return self._opened_parts().sync.unlisted(self._scanner.now())

    def instructions(self, source: str) -> str:
        """What a skill says, and its files, for a person who decides about it; empty for what is
        none."""
        skill = self._scanner.now().skills.get(source)
        return read_skill(skill) if skill is not None else ""

    def waiting(self, name: str) -> Sequence[KnownTool]:
        """What of a tool or a source a person has to look at before it is used."""
        needing = (ToolState.CHANGED, ToolState.FLAGGED, ToolState.UNAPPROVED)
        return [
            known
            for known in self.catalogue.tools()
            if name in (known.tool.name, known.tool.source) and known.state in needing
        ]

    def resting(self) -> Mapping[str, str]:
        """Sources that are not started for a while because they failed again and again -> why."""
        failed = self._pool.troubles() if self._pool is not None else {}
        return {name: why.removesuffix(ADVICE) for name, why in failed.items()}

    def troubles(self) -> Sequence[str]:
        """What is wrong with sources, and what to do about it."""
        parts = self._opened_parts()
        found = [*self._scanner.now().troubles, *parts.sync.troubles()]
        found += [f"{name}: {why}" for name, why in self.resting().items()]
        for each in (parts.catalogue, parts.registry, parts.graph, parts.deletions):
            found += each.troubles()
        return [*found, *(self._search.troubles() if self._search is not None else ())]

    def ended(self, session: str) -> None:
        """Stop what ran for this session alone."""
        self._sessions.pop(session)
        if self._pool is not None:
            self._pool.end_session(session)

    def pin(self, name: str) -> Tool:
        """Keeps a tool: it never becomes inactive. Raises `NotFound`."""
        tool = self.resolve(name).tool
        self.registry.pin(tool.name, tool.origin)
        self._log("ToolPinned", tool.name, "a person")
        return tool

    def unpin(self, name: str) -> str:
        """Undoes `pin`, also for a tool that is gone. Returns its name. Raises `NotFound`."""
        tool: Tool | None = None
        with suppress(NotFound):
            tool = self.resolve(name).tool
        name = tool.name if tool is not None else name
        if self.registry.unpin(name, tool.origin if tool is not None else None) is None:
            raise NotFound(f"{name} was not pinned")
        self._log("ToolUnpinned", name, "a person")
        return name

    def restore(self, name: str) -> Life:
        """Brings back a tool that an agent wrote and that was let go; over the capacity another one
        makes room. Raises `NotFound` and `BadInput`."""
        self._check_room()
        full = name if name.startswith(f"{SOURCE}__") else full_name(SOURCE, name)
        life = restore(self._places(), full, self._clock())
        self._log("ToolRestored", full)
        self._make_room(full)
        self._scanner.now(at_once=True)
        self._looked = float("-inf")
        return life

    def metrics(self, *names: str) -> Mapping[str, ToolMetrics]:
        """How these tools fare, by full name, or all that are known; one that was never used as if
        it came now. Raises `NotFound`."""
        found = map(self.resolve, names) if names else self.catalogue.tools()
        known = {each.tool.name: each.tool.origin for each in found}
        now, rules = self._clock(), self._config.tooling
        lives = self.registry.lives(known)
        return {name: measure(lives[name], now, rules) for name in (known if names else lives)}

    def summary(self, most: int = 5) -> LifeSummary:
        """How many tools are active and inactive, and which are deleted next."""
        lives = self.registry.lives().values()
        return summary(lives, self._clock(), self._config.tooling, most)

    def tend(self) -> Sequence[str]:
        """One round of the clean-up. Returns what a person should know of it; where it fails, the
        next round tries again."""
        with suppress(HotsetError):
            with self._sweeping:
                if self._closed:
                    return ()
                swept = sweep(self._places(), self._clock())
                for name in swept.inactivated:
                    self._log("ToolInactivated", name)
                for name in swept.deleted:
                    self._log("ToolDeleted", name, "expired")
            self._relate()
            if self._search is not None and (learned := self._search.learn(self._clock())):
                self.keep_learned(learned)
            return swept.notes
        return ()

    def close(self) -> None:
        with self._sweeping, self._lock:
            self._closed = True
            pool, search, parts = self._pool, self._search, self._parts
        if pool is not None:
            pool.close()
            self._running_file.close()
        if search is not None:
            search.close()
        if parts is not None:
            parts.registry.close()
            parts.graph.close()

    def keep_learned(self, learned: LearnedPast) -> None:
        """Write down how much past uses count from now on. It changes an order and hides nothing,
        so the library's own past is enough to adopt it."""
        if learned.weight == learned.before:
            return
        knobs, before = {_PAST: learned.weight}, {_PAST: learned.before}
        id = change_id({**knobs, "uses": learned.queries}, _BY)
        why = (
            f"past uses of tools count {learned.weight:g} times as much as usual: asked for again, "
            f"{learned.queries} of them rank {learned.gain:+.3f} [{learned.low:+.3f}, "
            f"{learned.high:+.3f}] NDCG@10 higher"
        )
        figures = (learned.gain, learned.low, learned.high, learned.queries)
        payloads = {
            "ChangeProposed": Change(id, knobs, before, _BY, why, is_safe=True),
            "ChangeGated": GateVerdict(id, True, *figures, why=why),
            "ChangeAdopted": ChangeDecision(id, why),
        }
        now = self._clock()
        events = (
            Event(name, now, detail={"data": encode_payload(payload)})
            for name, payload in payloads.items()
        )
        self._store().keep(*events).result()

    def _matches(self, query: str, limit: int, only: Sequence[str], session: str) -> ToolMatches:
        search, knobs = self._opened_search(), self.knobs()
        most = max(1, min(limit, MOST_FOUND))
        matches = search.find(
            query,
            2 * most,
            only=only,
            deadline=_FIND_SECONDS * self._config.patience,
            past=knobs.past,
        )
        near = self.graph.boost(self._session(session).tools()) if session else {}
        ranked = sorted(
            matches, key=lambda match: -(match.score + knobs.together * near.get(match.name, 0.0))
        )
        running = self._pool.loaded() if self._pool is not None else frozenset[str]()
        best = max((match.score for match in matches), default=0.0)
        found: list[Ghost] = []
        waiting: list[KnownTool] = []
        for match in ranked:
            if found and match.score < knobs.fit * best:
                continue
            known = self.catalogue.get(match.name)
            if known is not None and known.is_shown_unapproved and match.score >= UNLIKELY:
                waiting.append(known)
            elif known is not None and known.state is ToolState.READY and self._is_here(known.tool):
                loaded = known.tool.source in running or known.tool.origin is OriginKind.CALLABLE
                found.append(Ghost(known.tool, match.score, loaded))
        self._session(session).questions.put(
            query, frozenset(ghost.tool.name for ghost in found[:most])
        )
        sources = {*only, *(each.tool.source for each in found[:most])}
        return ToolMatches(
            tuple(found[:most]),
            tuple(waiting[: knobs.waiting]),
            self._faults(lambda name: name in sources or is_spoken_of(name, query)),
        )

    def _faults(self, is_meant: Callable[[str], bool]) -> tuple[str, ...]:
        """Errors in the files of skills and created tools, for a model that can mend them."""
        return tuple(
            each.text
            for each in self._scanner.now().faults
            if is_meant(each.name) and (each.trusted or self.catalogue.was_approved(each.name))
        )[:_MOST_FAULTS]

    def _why_gone(self, name: str) -> str:
        """Why a tool is not there that could be again, and what to do; empty where that is
        unknown."""
        source = name.partition("__")[0]
        if faults := self._faults(lambda broken: broken in (name, source)):
            return f"{name} cannot run: {'; '.join(faults)}. Mend the file, then call it again"
        with suppress(HotsetError):
            if name in self._opened_parts().deletions.all():
                return f"{name} was deleted for lack of use; {self._how_to_restore(name)}"
        return ""

    def _how_to_restore(self, name: str) -> str:
        if self._config.tooling.create:
            call = f'use_tool(name="hotset__restore_tool", arguments={{"name": "{name}"}})'
            return f"restore it: {call}, or `hotset tools restore {name}`"
        return f"ask the user to restore it: `hotset tools restore {name}`"

    def _begin(
        self, name: str, arguments: object, session: str, query: str, turn: int
    ) -> _Call | ToolUse:
        """The call to make; or its result, where nothing has to run."""
        call = self._call(name, arguments)
        if isinstance(call, ToolUse):
            return call
        call = replace(call, session=session, query=query, turn=turn, begun=time.monotonic())
        if self._answers is None or call.source is None:
            return call
        launch = call.source.launch
        reads = self._answers.reading(call.tool, launch, call.arguments, session)
        if reads is None:
            return call
        answer = self._answers.get(reads, self._process(call))
        if answer is None:
            return replace(call, reads=reads)
        seconds = self._note_use(call, failed=False, stored=True)
        return ToolUse(call.tool, self._answers.marked(answer), seconds, stored=True)

    def _end(self, call: _Call, came: Returned | None) -> ToolUse:
        """Records a call that ended; without a result it failed."""
        seconds = self._note_use(call, failed=came is None or came.failed)
        if self._answers is not None and call.source is not None:
            if call.reads is None:
                self._answers.wrote(call.tool.source)
            elif came is not None:
                self._answers.put(call.reads, self._process(call), came, call.turn)
        return ToolUse(call.tool, came or Returned(b"[]", failed=True), seconds)

    def _process(self, call: _Call) -> object:
        """What tells apart the process that answers this call from one started later; None where
        none runs."""
        return self._opened_pool().process_of(call.tool.source, call.session)

    def _call(self, name: str, arguments: object) -> _Call | ToolUse:
        """The call to make; or, where the arguments are wrong, what a model has to know to correct
        them."""
        try:
            known = self.resolve(name)
        except NotFound:
            if why := self._why_gone(name):
                raise NotFound(why) from None
            raise
        found, tool = self._scanner.now(), known.tool
        if known.state is ToolState.GONE and (why := self._why_gone(tool.name)):
            raise ToolRefused(why)
        if known.state is not ToolState.READY:
            raise ToolRefused(f"{tool.name} cannot be called: {known.why}")
        given = read_arguments(arguments, tool)
        if wrong := check(tool, given):
            return ToolUse(
                tool, returned(f"[hotset: {tool.name} was not called]\n{wrong}"), ran=False
            )
        if tool.name in self._bound:
            return _Call(tool, given)
        source = found.sources.get(tool.source)
        if source is None:
            raise NotFound(
                f"{tool.source}, the source of {tool.name}, is not configured; try "
                "find_tools(query)"
            )
        if not tool.own_name:
            return _Call(tool, given, skill=found.skills[tool.source])
        self.catalogue.may_run(source)
        return _Call(tool, given, source, pinned=self.registry.is_pinned(tool.name))

    def _note_use(self, call: _Call, *, failed: bool, stored: bool = False) -> float:
        """Records a call: in the registry, as an event, and for the search. Returns the seconds
        that it took. Where its query is empty, the latest query that found the tool is used."""
        tool, session, query = call.tool, call.session, call.query
        if self._pool is not None:
            self._running_file.write(self._pool)
        seconds, now = time.monotonic() - call.begun, self._clock()
        life = self.registry.used(tool.name, tool.origin, seconds, failed=failed)
        if life.calls == 1 and life.pinned and is_pinned_by_name(tool.name, self.registry.rules):
            self._log("ToolPinned", tool.name, "its name")
        detail: dict[str, str | int | float] = {
            "tool": tool.name,
            "source": tool.source,
            "seconds": round(seconds, 4),
            "failed": int(failed),
            **({"stored": 1} if stored else {}),
        }
        self._happened(Event("ToolUsed", now, detail=detail))
        if not failed:
            here = self._session(session)
            asked = query or here.question(tool.name)
            if asked and self._search is not None:
                self._search.used(asked, tool.name, now)
            here.used.put(tool.name, None)
            self.graph.used_together(
                here.tools()
            )  # alone, too: else what is popular would go with everything
        return seconds

    def _session(self, session: str) -> _Session:
        return self._sessions.get_or_make(session, _Session)

    def _changed(self) -> frozenset[str]:
        """Running servers that announced a change of their tools."""
        return self._pool.changed() if self._pool is not None else frozenset()

    def _follow(self, found: ToolSources) -> None:
        """Brings the catalogue up to date with what can be read without running anything."""
        if self._synced != (found, len(self._bound)):
            functions = [each.tool for each in self._bound.values()]
            self._opened_parts().sync.put_readable(found, functions)
            self._synced = found, len(functions)

    def _relate(self) -> None:
        """Updates declared needs and likeness in the graph when other tools live than last time."""
        living = frozenset(self.registry.lives())
        if living == self._related:
            return
        known = [each.tool for each in map(self.catalogue.get, sorted(living)) if each is not None]
        for tool in known:
            if tool.depends:
                self.graph.depends(tool.name, tool.depends)
        texts = {tool.name: f"{tool.name} {tool.description}" for tool in known}
        self.graph.alike(texts, word_overlap(texts))
        self._related = living

    def _is_here(self, tool: Tool) -> bool:
        """Functions of other programs are known, but cannot be called here."""
        return tool.origin is not OriginKind.CALLABLE or tool.name in self._bound

    def _bind(
        self,
        function: Callable[..., Any],
        source: ToolOrigin,
        *,
        name: str = "",
        description: str = "",
    ) -> Tool:
        made = bind_function(function, source, name=name, description=description)
        self._bound[made.tool.name] = made
        return made.tool

    def _create_tool(self, name: str, code: str) -> str:
        """Write a tool of your own: Python code with one function of that name, with typed
        parameters and a docstring. It can be called at once and is kept while it is used."""
        self._check_room()
        tool = create(private_folder(self._folder) / CREATED, name, code)
        self.registry.born(tool.name, OriginKind.CREATED)
        self._log("ToolCreated", tool.name)
        gone = self._make_room(tool.name)
        self._scanner.now(at_once=True)
        self._looked = float("-inf")
        call = f'call it: use_tool(name="{tool.name}", arguments={{...}})'
        if not gone:
            return call
        return f"{call}\n{', '.join(gone)} made room for it; {self._how_to_restore(gone[0])}"

    def _restore_tool(self, name: str) -> str:
        """Bring back a tool of your own that was deleted because it was not used."""
        life = self.restore(name)
        return f'call it: use_tool(name="{life.name}", arguments={{...}})'

    def _check_room(self) -> None:
        if not has_room(self.registry):
            raise BadInput(
                f"all {self._config.tooling.capacity} tools that agents created are pinned: ask "
                "the user to unpin one or to raise `capacity` in [tools]"
            )

    def _make_room(self, new: str) -> tuple[str, ...]:
        """Deletes what is over the capacity. Where that fails, the next new tool tries again."""
        with suppress(HotsetError):
            gone = make_room(self._places(), new, self._clock())
            for name in gone:
                self._log("ToolDeleted", name, "capacity")
            return gone
        return ()

    def _log(self, event: str, tool: str, why: str = "") -> None:
        """An event in the life of a tool, for the audit."""
        detail: dict[str, str | int | float] = {"tool": tool, **({"why": why} if why else {})}
        with suppress(HotsetError):
            self._store().keep(Event(event, self._clock(), detail=detail))

    def _places(self) -> ToolPlaces:
        def keep(name: str, code: bytes) -> str:
            note = PageAdded(
                None, name, Kind.FILE, code, self._clock(), media="text/x-python", key=_CODE_SESSION
            )
            try:
                return self._store().keep(note).result(_KEEP_SECONDS).pages[0]
            except TimeoutError:
                raise StoreBusy(
                    f"the store took longer than {_KEEP_SECONDS:.0f} s to keep {name}"
                ) from None

        def fetch(id: str) -> bytes:
            store = self._store()
            return store.content(store.page(PageId(id)).digest)

        parts = self._opened_parts()
        return ToolPlaces(
            parts.registry,
            parts.graph,
            CreatedTools(self._folder / CREATED),
            parts.deletions,
            keep,
            fetch,
        )

    def _list_tools(self, source: ToolOrigin) -> ToolListing:
        # Callers give up earlier; but a first start may fetch packages, and would never end if it
        # were broken off.
        seconds = max(self._config.tooling.list_seconds, self._config.tooling.call_seconds)
        return self._opened_pool().list_tools(source, seconds)

    def _relisted(self, source: ToolOrigin, listed: ToolListing, own_name: str) -> None:
        """A server that was started lists its tools anew: a tool that differs from what was
        accepted is not called."""
        self.catalogue.put(source, listed.tools, instructions=listed.instructions)
        known = self.catalogue.get_own(source.name, own_name)
        if known is None or known.state is not ToolState.READY:
            raise ToolRefused(
                f"{source.name}__{own_name} cannot be called: "
                f"{known.why if known else 'its server no longer has it'}"
            )

    def _opened_pool(self) -> ServerPoolThread:
        with self._lock:
            if self._closed:
                raise ToolFailed("hotset is shutting down: no tool is started")
            if self._pool is None:
                self._pool = ServerPoolThread(
                    self._config.tooling, project=self._config.project, listed=self._relisted
                )
            return self._pool

    def _opened_parts(self) -> _Parts:
        with self._lock:
            if self._parts is None:
                tooling, folder, clock = (
                    self._config.tooling,
                    private_folder(self._folder),
                    self._clock,
                )
                catalogue = Catalogue(
                    folder, self._store, allow=tooling.allow, deny=tooling.deny, clock=clock
                )
                self._parts = _Parts(
                    catalogue,
                    ToolSync(catalogue, self._list_tools),
                    Registry(folder, clock, tooling),
                    ToolGraph(self._store, clock, old_file=folder / "graph.json"),
                    Deletions(self._store, old_file=folder / "deleted.json"),
                )
            return self._parts

    def _opened_search(self) -> ToolSearch:
        with self._lock:
            if self._search is None:
                if self._closed:  # nothing would close what is opened now
                    raise ToolFailed("hotset is shutting down: no tool is looked for")
                from hotset.sources.tools.tool_search import open_search  # noqa: PLC0415 - 0.25 s and 60 MB that no start pays

                self._search = open_search(
                    private_folder(self._folder), self._store, self._config.embedding, self._clock
                )
            return self._search


def is_spoken_of(name: str, query: str) -> bool:
    """True if a query has every word of a skill's name."""
    words = re.findall(r"\w+", query.lower())
    return all(each in words for each in re.findall(r"[^\W_]+", name.lower()))


def _read(skill: Skill, arguments: Mapping[str, Any]) -> Returned:
    return returned(read_skill(skill, str(arguments.get("file") or "")))
