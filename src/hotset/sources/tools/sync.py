"""Brings the catalogue up to its sources, and the index up to the catalogue. Only what changed
costs anything."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from hotset.config import TOOLS, Config
from hotset.errors import HotsetError
from hotset.files.root import Stat
from hotset.nouns.tool import OriginKind, Tool, ToolOrigin
from hotset.sources.tools.catalogue import Catalogue
from hotset.sources.tools.consent import ToolState
from hotset.sources.tools.found.created import read_created
from hotset.sources.tools.found.files import listing, stat_of
from hotset.sources.tools.found.servers import read_servers
from hotset.sources.tools.found.skills import (
    CACHE_FILE,
    Skill,
    SkillCache,
    find_skills,
    skill_folders,
)
from hotset.sources.tools.running.mcp_client import ToolListing
from hotset.sources.tools.running.server_pool import ADVICE

if TYPE_CHECKING:
    from hotset.sources.tools.search import ToolSearch


_AT_ONCE = 4  # servers that are asked for their lists side by side: more would only share two cores
_AGAIN_SECONDS = 300.0  # before a server that gave no list is asked again

List = Callable[[ToolOrigin], ToolListing]
"""Asks a server for its tools, starting it where need be."""

CREATED = "created"
"""The folder of what agents wrote, in the folder of a project's tools."""

_RACY_NS = 2_000_000_000  # the coarsest clock of a file system in use ticks every two seconds
_REST_SECONDS = 1.0  # between two looks at the files: a model's next call comes later than that


_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class _Failed:
    stamp: str
    at: float
    why: str


@dataclass(slots=True)
class ToolSync:
    """Brings the catalogue up to its sources. Safe to use from several threads, one at a time."""

    catalogue: Catalogue
    list_tools: List
    monotonic: Callable[[], float] = time.monotonic
    _failed: dict[str, _Failed] = field(default_factory=dict)
    """Servers that gave no list."""
    _refused: dict[str, Sequence[str]] = field(default_factory=dict)
    """What was not taken of a source's list."""
    _asking: dict[str, tuple[Future[None], float]] = field(default_factory=dict)
    """Servers that are being asked for their tools, and since when."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put_readable(self, found: ToolSources, functions: Sequence[Tool]) -> None:
        """Puts into the catalogue what can be read without running anything. `functions` are those
        of this program, and our own."""
        known = {record.name: record for record in self.catalogue.sources()}
        here: list[tuple[ToolOrigin, Sequence[Tool]]] = [
            (skill.source, skill.tools) for skill in found.skills.values()
        ]
        here += [(found.created, found.written)] if found.created else []
        for name in sorted({tool.source for tool in functions}):
            here.append(
                (
                    ToolOrigin(name, OriginKind.CALLABLE),
                    [tool for tool in functions if tool.source == name],
                )
            )
        with self._lock:
            for source, tools in here:
                record = known.get(source.name)
                if record is None or record.stamp != source.stamp or not source.stamp:
                    self._put(source, tools)
            for name in self._failed.keys() - found.servers.keys():
                del self._failed[name]
            wanted = {source.name for source, _ in here} | found.servers.keys()
            for name, record in known.items():
                if (
                    name not in wanted and record.origin is not OriginKind.CALLABLE
                ):  # those are another program's to drop
                    self.catalogue.drop(name)

    def unlisted(self, found: ToolSources) -> list[ToolOrigin]:
        """Servers whose tools are not known, or were listed under another launch; not those that
        failed a moment ago."""
        known = {record.name: record.stamp for record in self.catalogue.sources()}
        now = self.monotonic()
        return [
            source
            for source in found.servers.values()
            if known.get(source.name) != source.stamp and not self._failed_lately(source, now)
        ]

    def list_all(
        self,
        found: ToolSources,
        changed: Collection[str],
        seconds: float,
        listed: Callable[[str], None],
    ) -> None:
        """Lists the servers whose tools are unknown, and those that `changed`, a few at a time.
        Callers that come meanwhile share the listing.

        Returns at the latest so many `seconds` after the last one was asked: what is not done by
        then goes on in the background.
        """
        pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="hotset-list")
        with self._lock:  # another thread may have asked or listed them
            unlisted = {source.name for source in self.unlisted(found)}
            sources = [
                source
                for name, source in found.servers.items()
                if name in changed or name in unlisted
            ]
            for source in sources:
                if source.name not in self._asking:
                    self._asking[source.name] = (
                        pool.submit(self._list, source, listed),
                        self.monotonic(),
                    )
            asked = [self._asking[source.name] for source in sources]
        if asked:
            latest = max(since for _, since in asked)
            wait([done for done, _ in asked], timeout=max(0.0, latest + seconds - self.monotonic()))
        pool.shutdown(wait=False)

    def silent(self) -> list[str]:
        """Servers whose tools are unknown: they gave no list, or not yet."""
        return sorted({*self._failed, *self._asking})

    def troubles(self) -> list[str]:
        """Servers that gave no list, and what was not taken of other lists."""
        found = [
            f"{name} gave no list of its tools: {failed.why.removesuffix(ADVICE)}"
            for name, failed in sorted(self._failed.items())
        ]
        found += [f"{name} has not told its tools yet" for name in sorted(self._asking)]
        return [*found, *(each for refused in self._refused.values() for each in refused)]

    def index(self, search: ToolSearch) -> None:
        """Indexes every tool that can be used, and skills that only wait for a person's
        approval."""
        with self._lock:
            tools = (
                known.tool
                for known in self.catalogue.tools()
                if known.state is ToolState.READY or known.is_told
            )
            search.follow(self.catalogue.version(), tools)

    def _put(self, source: ToolOrigin, tools: Sequence[Tool], instructions: str = "") -> None:
        self._refused[source.name] = self.catalogue.put(
            source, tools, instructions=instructions
        ).refused

    def _list(self, source: ToolOrigin, done: Callable[[str], None]) -> None:
        try:
            listed = self.list_tools(source)
            with self._lock:
                self._put(source, listed.tools, listed.instructions)
                self._failed.pop(source.name, None)
        except HotsetError as error:
            self._failed[source.name] = _Failed(source.stamp, self.monotonic(), str(error))
        finally:
            with self._lock:
                del self._asking[source.name]
            done(source.name)

    def _failed_lately(self, source: ToolOrigin, now: float) -> bool:
        failed = self._failed.get(source.name)
        return (
            failed is not None and failed.stamp == source.stamp and now - failed.at < _AGAIN_SECONDS
        )


@dataclass(frozen=True, slots=True)
class ToolSources:
    servers: Mapping[str, ToolOrigin] = field(default_factory=dict)
    skills: Mapping[str, Skill] = field(default_factory=dict)
    created: ToolOrigin | None = None
    """None while no agent has written any."""
    written: tuple[Tool, ...] = ()
    """What agents wrote."""
    troubles: tuple[str, ...] = ()

    @property
    def sources(self) -> Mapping[str, ToolOrigin]:
        found = {**self.servers, **{name: skill.source for name, skill in self.skills.items()}}
        return {**found, self.created.name: self.created} if self.created else found


class _Remembered(Generic[_Made]):
    """A value made of files, made again when one of them has another mtime, size or inode, or one
    too recent to trust."""

    def __init__(self, make: Callable[[], _Made], clock_ns: Callable[[], int]) -> None:
        self._make = make
        self._clock_ns = clock_ns
        self._known: tuple[Mapping[str, Stat | None], _Made] | None = None

    def get(self, stats: Mapping[str, Stat | None]) -> _Made:
        trusted = self._clock_ns() - _RACY_NS
        is_racy = any(
            at is not None and max(at.mtime_ns, at.ctime_ns) > trusted for at in stats.values()
        )
        if self._known is None or self._known[0] != stats or is_racy:
            self._known = stats, self._make()
        return self._known[1]


class SourceScanner:
    """Finds servers, skills and created tools in files; reads only those that changed. Safe to use
    from several threads."""

    def __init__(
        self,
        config: Config,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._folders = skill_folders(config.project, config.user, config.tooling.skills)
        self._cache = SkillCache(config.folder / TOOLS / CACHE_FILE)
        self._created = config.folder / TOOLS / CREATED
        self._read_created = _Remembered(partial(read_created, self._created), clock_ns)
        self._servers = {
            file: _Remembered(partial(read_servers, file, config.environ), clock_ns)
            for file in config.servers
        }
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._looked = float("-inf")
        self._found = ToolSources()

    def now(self, *, at_once: bool = False) -> ToolSources:
        """The sources, the same object while nothing changed. The files are looked at once a second
        at most, or `at_once`."""
        with self._lock:
            if at_once or self._monotonic() - self._looked >= _REST_SECONDS:
                found = self._look()
                self._found = self._found if found == self._found else found
                self._looked = self._monotonic()
            return self._found

    def _look(self) -> ToolSources:
        servers: dict[str, ToolOrigin] = {}
        troubles: list[str] = []
        for file, remembered in self._servers.items():
            read = remembered.get({"": stat_of(file)})
            servers |= {source.name: source for source in read.sources}
            troubles += read.troubles
        found = find_skills(self._folders, self._cache)
        skills = {skill.source.name: skill for skill in found.skills}
        for name in servers.keys() & skills.keys():
            troubles.append(f"skill {name} is left out: a server has the same name")
            del skills[name]
        there = listing(self._created, deepest=0)
        created = self._read_created.get(
            {**there.files, **dict.fromkeys((*there.links, *there.special))}
        )
        return ToolSources(
            servers,
            skills,
            created.source,
            created.tools,
            (*troubles, *found.troubles, *created.troubles),
        )
