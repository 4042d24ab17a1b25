"""The toolbox: any number of tools, found by asking, run when they are called, and nothing running that is not in use.

query -> find -> ghosts, with their schemas -> use: check, start just in time, call -> what it gave
                                                |-> registry, graph, uses: what is used lives longer and is found better
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotset.config import TOOLS, Config
from hotset.errors import HotsetError, Malformed, NotFound, StoreFailed, ToolFailed, ToolRefused
from hotset.files.folder import private_folder
from hotset.index.port import Index
from hotset.nouns.tool import Ghost, Origin, Returned, Source, Tool
from hotset.nouns.turn import Event
from hotset.runtime.toolbox_life import ToolLife
from hotset.runtime.toolbox_noting import Errand, Noting
from hotset.runtime.toolbox_running import RunningNote
from hotset.runtime.toolbox_sessions import Sessions
from hotset.runtime.toolbox_telling import told
from hotset.sources.tools.callables import OURS, Bound, bound, program
from hotset.sources.tools.catalogue import Catalogue, Known, State
from hotset.sources.tools.checking import check, read_arguments
from hotset.sources.tools.content import returned, text_of
from hotset.sources.tools.found.skills import Skill, read_skill
from hotset.sources.tools.gathering import Gathered, Gathering
from hotset.sources.tools.graph import Graph, word_overlap
from hotset.sources.tools.likelihood import UNLIKELY
from hotset.sources.tools.registry import Registry
from hotset.sources.tools.running.pool import Pool, Running
from hotset.sources.tools.running.session import Listed
from hotset.sources.tools.running.shift import ADVICE
from hotset.sources.tools.stocking import Stocking
from hotset.store.port import Store

if TYPE_CHECKING:
    from hotset.sources.tools.finding import Finding  # loads numpy, which no start should pay for

MOST_FOUND = 20
"""Tools that one question brings at most: more schemas than that are a list again."""

_FIND_SECONDS = 0.2
_REST_SECONDS = 1.0  # between two looks for what is new


@dataclass(frozen=True, slots=True)
class Used:
    """A call that was made; or one that was not, because its arguments were wrong: then it says what is wrong with them."""

    tool: Tool
    returned: Returned
    seconds: float = 0.0
    ran: bool = True

    @property
    def text(self) -> str:
        return text_of(self.returned)


@dataclass(frozen=True, slots=True)
class Fitting:
    """What a question for tools brings."""

    ghosts: tuple[Ghost, ...] = ()
    """The best first. Where even that is below `UNLIKELY`, nothing fits, and these are only the nearest."""
    waiting: tuple[Known, ...] = ()
    """Skills of the project that fit, too, and that nobody approved: their names and descriptions may be told, and no more."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that can be made."""

    tool: Tool
    arguments: Mapping[str, Any]
    source: Source | None = None
    """Where it runs; None for a function of this program."""
    skill: Skill | None = None
    """The skill that is read, where nothing has to run."""
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class _Parts:
    """What is opened when it is first needed: a toolbox with nothing in it leaves no trace on disk."""

    catalogue: Catalogue
    stocking: Stocking
    noting: Noting
    life: ToolLife


class Toolbox:
    """Of one project, in one process. Use it from any thread; close it."""

    def __init__(
        self,
        config: Config,
        open_finding: Callable[[Path], tuple[Index, Finding]],
        *,
        whose: str = "hotset",
        happened: Callable[[Event], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`whose` names this process to people, `happened` is told of every use. The index is opened at the first question."""
        self._config = config
        self._whose = whose
        self._folder = config.folder / TOOLS
        self._open_finding = open_finding
        self._happened = happened
        self._clock = clock
        self._gathering = Gathering(config)
        self._bound: dict[str, Bound] = {}
        self._sessions = Sessions()
        self._lock = threading.Lock()
        self._stocked: tuple[Gathered, int] | None = None
        self._found: tuple[Index, Finding] | None = None
        self._pool: Pool | None = None
        self._note: RunningNote | None = None
        self._parts: _Parts | None = None
        self._related: frozenset[str] = frozenset()
        self._looked = float("-inf")
        self._closed = False
        if config.tooling.create:
            self._bind(self._create_tool, OURS, name="create_tool")

    @property
    def empty(self) -> bool:
        """There is nothing in it. Costs a look at a few files, at most once a second."""
        return not self._config.tooling.enabled or not (self._bound or self._gathering.now().sources)

    @property
    def ready(self) -> bool:
        """A question takes milliseconds. Before that somebody has to wait until everything is opened: see `warm`."""
        return self._found is not None

    @property
    def catalogue(self) -> Catalogue:
        return self._opened_parts().catalogue

    @property
    def registry(self) -> Registry:
        return self._opened_parts().noting.registry

    @property
    def graph(self) -> Graph:
        return self._opened_parts().noting.graph

    @property
    def stocking(self) -> Stocking:
        return self._opened_parts().stocking

    @property
    def life(self) -> ToolLife:
        return self._opened_parts().life

    @property
    def pool(self) -> Pool:
        with self._lock:
            if self._closed:
                raise ToolFailed("hotset is about to end: no tool is started any more")
            if self._pool is None:
                self._pool = Pool(self._config.tooling, project=self._config.project, listed=self._relisted)
                self._note = RunningNote(self._folder, self._whose)
            return self._pool

    def register(self, function: Callable[..., Any], *, name: str = "", description: str = "") -> Tool:
        """A function of this program becomes a tool. Raises `BadInput` where it cannot be one."""
        self._looked = float("-inf")
        return self._bind(function, program(), name=name, description=description)

    def warm(self) -> None:
        """Everything that the first question needs, while nobody waits for it. What fails here fails again where it is told."""
        with suppress(HotsetError, OSError):
            if not self.empty:
                self.stock(self._config.tooling.list_seconds)
                self.index()

    def stock(self, seconds: float, told: Callable[[str], None] = lambda _: None) -> None:
        """Lists servers that are not known yet. `told` hears of each that is done, for a person who waits."""
        found = self._gathering.now()
        if self._stocked != (found, len(self._bound)):
            self._shelve(found)
        self.stocking.list_all(found, self._changed(), seconds, told)

    def index(self) -> None:
        """Makes what is new findable."""
        index, finding = self._opened()
        self.stocking.index(finding, index)

    def find(self, query: str, limit: int = 5, only: Sequence[str] = (), *, session: str = "") -> tuple[Ghost, ...]:
        """The tools that fit best, best first. A server that is new is asked for its tools first: that is waited for once."""
        return self.look_for(query, limit, only, session=session).ghosts

    def look_for(self, query: str, limit: int = 5, only: Sequence[str] = (), *, session: str = "") -> Fitting:
        """As `find`, with what would fit if a person allowed it."""
        if not query.strip():
            raise Malformed("find_tools: say in a few words what the tool should do")
        # A look at every file of a large library takes milliseconds.
        if self._changed() or time.monotonic() - self._looked > _REST_SECONDS:
            self.stock(self._config.tooling.list_seconds)
            self.index()
            self._looked = time.monotonic()
        return self._fitting(query, limit, only, session)

    def told(self, ghosts: Sequence[Ghost], max_tokens: int, waiting: Sequence[Known] = ()) -> str:
        """What `find_tools` says of them to a model; `waiting` is what `look_for` found beside them."""
        return told(ghosts, max_tokens, self.stocking.silent(), waiting)

    def knows(self, name: str) -> bool:
        """Is this the whole name of a tool that could be used?"""
        known = self.catalogue.get(name)
        return known is not None and known.state is not State.GONE and self._is_here(known.tool)

    def meant(self, name: str) -> Known:
        """The tool of that name, or of one so near that it is clear. Only where there is none are servers asked that nobody has
        asked for their tools yet, or that have others now. Raises `NotFound`."""
        found = self._gathering.now(at_once=True)  # what was changed a moment ago is used at once
        if self._stocked != (found, len(self._bound)):
            self._shelve(found)
        try:
            return self.catalogue.resolve(name)
        except NotFound:
            if not self.unlisted() and not self._changed():
                raise
        self.stock(self._config.tooling.list_seconds)
        return self.catalogue.resolve(name)

    def loaded(self, session: str) -> Sequence[Tool]:
        """Functions of this program, and what the session used lately, the latest first."""
        used = (self.catalogue.get(name) for name in reversed(self._sessions.used(session)))
        tools = [known.tool for known in used if known is not None and known.state is State.READY]
        return list({tool.name: tool for tool in (*(each.tool for each in self._bound.values()), *tools)}.values())

    def use(self, name: str, arguments: object, *, session: str = "", query: str = "") -> Used:
        """Calls a tool, starting what it needs. Raises `NotFound`, `ToolRefused` and `ToolFailed`, with words for a model."""
        call = self._call(name, arguments)
        if isinstance(call, Used):
            return call
        errand = Errand(call.tool, session, query, time.monotonic())
        try:
            if call.skill is not None:
                came = _read(call.skill, call.arguments)
            elif call.source is None:
                came = self._bound[call.tool.name].call(call.arguments)
            else:
                came = self.pool.call(call.source, call.tool.own_name, call.arguments, session=session, pinned=call.pinned)
        except ToolFailed:
            self._went(errand, failed=True)
            raise
        return Used(call.tool, came, self._went(errand, failed=came.failed))

    async def use_async(self, name: str, arguments: object, *, session: str = "", query: str = "") -> Used:
        """As `use`, for whoever must not block: cancelled, it no longer waits, and nothing is noted."""
        call = await asyncio.to_thread(self._call, name, arguments)
        if isinstance(call, Used):
            return call
        errand = Errand(call.tool, session, query, time.monotonic())
        try:
            if call.skill is not None:
                came = await asyncio.to_thread(_read, call.skill, call.arguments)
            elif call.source is None:
                came = await self._bound[call.tool.name].call_async(call.arguments)
            else:
                came = await self.pool.call_async(
                    call.source, call.tool.own_name, call.arguments, session=session, pinned=call.pinned
                )
        except ToolFailed:
            await asyncio.to_thread(self._went, errand, failed=True)
            raise
        return Used(call.tool, came, await asyncio.to_thread(self._went, errand, failed=came.failed))

    def running(self) -> Sequence[Running]:
        """The processes and connections that are open for tools, in this process."""
        return self._pool.running() if self._pool is not None else ()

    def unlisted(self) -> Sequence[Source]:
        """Servers whose tools are not known yet."""
        return self.stocking.unlisted(self._gathering.now())

    def instructions(self, source: str) -> str:
        """What a skill says, and its files, for whoever decides about it; empty for what is none."""
        skill = self._gathering.now().skills.get(source)
        return read_skill(skill) if skill is not None else ""

    def waiting(self, name: str) -> Sequence[Known]:
        """What of a tool or a source a person has to look at before it is used."""
        needing = (State.CHANGED, State.FLAGGED, State.UNAPPROVED)
        return [
            known for known in self.catalogue.tools() if name in (known.tool.name, known.tool.source) and known.state in needing
        ]

    def troubles(self) -> Sequence[str]:
        """What is wrong with sources, and what to do about it."""
        told = [*self._gathering.now().troubles]
        told += [f"{name} gave no list of its tools: {why.removesuffix(ADVICE)}" for name, why in self.stocking.failures()]
        told += [f"{name} has not told its tools yet" for name in self.stocking.waited_for()]
        told += self.stocking.refused()
        told += [
            f"{name}: {why.removesuffix(ADVICE)}"
            for name, why in (self._pool.troubles().items() if self._pool is not None else ())
        ]
        for own in (self.catalogue.troubles(), self.registry.troubles(), self.graph.troubles(), self.life.troubles()):
            told += own
        return [*told, *(self._found[1].troubles() if self._found is not None else ())]

    def ended(self, session: str) -> None:
        """A session is over: what ran for it alone stops."""
        self._sessions.end(session)
        if self._pool is not None:
            self._pool.end_session(session)

    def tend(self, store: Store) -> Sequence[str]:
        """One round of the clean-up; what a person should know of it. Its own troubles are for the next round to mend."""
        with suppress(StoreFailed):
            notes = self.life.sweep(store).notes
            self._relate()
            return notes
        return ()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            pool, note, found, parts = self._pool, self._note, self._found, self._parts
        if pool is not None and note is not None:
            pool.close()
            note.close()
        if found is not None:
            found[0].close()
        if parts is not None:
            parts.noting.registry.close()
            parts.noting.graph.close()

    def _fitting(self, query: str, limit: int, only: Sequence[str], session: str) -> Fitting:
        (_, finding), knobs = self._opened(), self._config.knobs_for("").toolbox
        most = max(1, min(limit, MOST_FOUND))
        matches = finding.find(query, 2 * most, only=only, deadline=_FIND_SECONDS * self._config.patience)
        near = self.graph.boost(self._sessions.used(session)) if session else {}
        ranked = sorted(matches, key=lambda match: -(match.score + knobs.together * near.get(match.name, 0.0)))
        running = self._pool.loaded() if self._pool is not None else frozenset[str]()
        best = max((match.score for match in matches), default=0.0)
        found: list[Ghost] = []
        waiting: list[Known] = []
        for match in ranked:
            if found and match.score < knobs.fit * best:
                continue
            known = self.catalogue.get(match.name)
            if known is not None and known.is_told and match.score >= UNLIKELY:
                waiting.append(known)
            elif known is not None and known.state is State.READY and self._is_here(known.tool):
                loaded = known.tool.source in running or known.tool.origin is Origin.CALLABLE
                found.append(Ghost(known.tool, match.score, loaded))
        self._sessions.asked(session, query, [ghost.tool.name for ghost in found[:most]])
        return Fitting(tuple(found[:most]), tuple(waiting[: knobs.waiting]))

    def _call(self, name: str, arguments: object) -> _Call | Used:
        """What there is to call; or, where the arguments are wrong, what a model has to know to get them right."""
        known = self.meant(name)
        found, tool = self._gathering.now(), known.tool
        if known.state is not State.READY:
            raise ToolRefused(f"{tool.name} cannot be called: {known.why}")
        given = read_arguments(arguments, tool)
        if wrong := check(tool, given):
            return Used(tool, returned(f"[hotset: {tool.name} was not called]\n{wrong}"), ran=False)
        if tool.name in self._bound:
            return _Call(tool, given)
        source = found.sources.get(tool.source)
        if source is None:
            raise NotFound(f"{tool.source}, where {tool.name} comes from, is not configured any more; find_tools finds others")
        if not tool.own_name:
            return _Call(tool, given, skill=found.skills[tool.source])
        self.catalogue.may_run(source)
        return _Call(tool, given, source, pinned=self.registry.is_pinned(tool.name))

    def _changed(self) -> frozenset[str]:
        """Servers that said, while they run, that their tools are others now."""
        return self._pool.changed() if self._pool is not None else frozenset()

    def _shelve(self, found: Gathered) -> None:
        functions = [each.tool for each in self._bound.values()]
        self.stocking.shelve(found, functions)
        self._stocked = found, len(functions)

    def _relate(self) -> None:
        """Tells the graph what the tools that live say of themselves, when others live than last time."""
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

    def _went(self, errand: Errand, *, failed: bool) -> float:
        if self._pool is not None and self._note is not None:
            self._note.write(self._pool)
        return self._opened_parts().noting.went(errand, self._found[1] if self._found else None, failed=failed)

    def _is_here(self, tool: Tool) -> bool:
        """Functions of other programs are known, but nobody here can call them."""
        return tool.origin is not Origin.CALLABLE or tool.name in self._bound

    def _bind(self, function: Callable[..., Any], source: Source, *, name: str = "", description: str = "") -> Tool:
        made = bound(function, source, name=name, description=description)
        self._bound[made.tool.name] = made
        return made.tool

    def _create_tool(self, name: str, code: str) -> str:
        """Write a tool of your own: Python code with one function of that name, whose parameters have types and which has a
        docstring. It can be called at once, and stays for later sessions as long as it is used."""
        tool = self.life.create(name, code)
        self._gathering.now(at_once=True)
        self._looked = float("-inf")
        return f'it is there: use_tool(name="{tool.name}", arguments={{...}})'

    def _list_tools(self, source: Source) -> Listed:
        # Whoever waits gives up earlier; but a first start may fetch packages, and would never end if it were broken off.
        return self.pool.list_tools(source, max(self._config.tooling.list_seconds, self._config.tooling.call_seconds))

    def _relisted(self, source: Source, listed: Listed, own_name: str) -> None:
        """A server that was started says what it offers now: what differs from what was seen before is not called."""
        self.catalogue.put(source, listed.tools, instructions=listed.instructions)
        known = self.catalogue.get_own(source.name, own_name)
        if known is None or known.state is not State.READY:
            raise ToolRefused(
                f"{source.name}__{own_name} cannot be called: {known.why if known else 'its server has it no more'}"
            )

    def _opened_parts(self) -> _Parts:
        with self._lock:
            if self._parts is None:
                tooling, folder, clock = self._config.tooling, private_folder(self._folder), self._clock
                catalogue = Catalogue(folder, allow=tooling.allow, deny=tooling.deny, clock=clock)
                noting = Noting(Registry(folder, clock), Graph(folder, clock), self._sessions, self._happened, clock)
                life = ToolLife(folder, noting.registry, noting.graph, clock)
                self._parts = _Parts(catalogue, Stocking(catalogue, self._list_tools), noting, life)
            return self._parts

    def _opened(self) -> tuple[Index, Finding]:
        with self._lock:
            if self._found is None:
                if self._closed:  # nobody would close what is opened now
                    raise ToolFailed("hotset is about to end: no tool is looked for any more")
                self._found = self._open_finding(private_folder(self._folder))
            return self._found


def _read(skill: Skill, arguments: Mapping[str, Any]) -> Returned:
    return returned(read_skill(skill, str(arguments.get("file") or "")))
