"""Brings the catalogue up to its sources, and the index up to the catalogue. Only what changed costs anything."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hotset.errors import HotsetError
from hotset.index.port import Index, Watermark
from hotset.nouns.tool import Origin, Source, Tool
from hotset.sources.tools.catalogue import Catalogue, State
from hotset.sources.tools.gathering import Gathered
from hotset.sources.tools.running.session import Listed

if TYPE_CHECKING:
    from hotset.sources.tools.finding import Finding

_AT_ONCE = 4  # servers that are asked for their lists side by side: more would only share two cores
_AGAIN_SECONDS = 300.0  # before a server that gave no list is asked again
_WATERMARK = "tools"
_RULE = 2  # of what is indexed; counted up when other tools of the same catalogue are

List = Callable[[Source], Listed]
"""Asks a server for its tools, starting it where need be."""


@dataclass(frozen=True, slots=True)
class _Failed:
    stamp: str
    at: float
    why: str


@dataclass(slots=True)
class Stocking:
    """Use it from any thread. One look at a time; whoever comes meanwhile waits for it."""

    catalogue: Catalogue
    list_tools: List
    monotonic: Callable[[], float] = time.monotonic
    _failed: dict[str, _Failed] = field(default_factory=dict)
    """Servers that gave no list."""
    _refused: dict[str, Sequence[str]] = field(default_factory=dict)
    """What was not taken of a source's list."""
    _asking: dict[str, tuple[Future[None], float]] = field(default_factory=dict)
    """Servers that are being asked, for whomever, and since when."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def shelve(self, found: Gathered, functions: Sequence[Tool]) -> None:
        """What can be read without running anything. `functions` are those of this program, and our own."""
        known = {shelf.name: shelf for shelf in self.catalogue.sources()}
        here: list[tuple[Source, Sequence[Tool]]] = [(skill.source, skill.tools) for skill in found.skills.values()]
        here += [(found.created, found.written)] if found.created else []
        for name in sorted({tool.source for tool in functions}):
            here.append((Source(name, Origin.CALLABLE), [tool for tool in functions if tool.source == name]))
        with self._lock:
            for source, tools in here:
                shelf = known.get(source.name)
                if shelf is None or shelf.stamp != source.stamp or not source.stamp:
                    self._put(source, tools)
            for name in self._failed.keys() - found.servers.keys():
                del self._failed[name]
            wanted = {source.name for source, _ in here} | found.servers.keys()
            for name, shelf in known.items():
                if name not in wanted and shelf.origin is not Origin.CALLABLE:  # those are another program's to drop
                    self.catalogue.drop(name)

    def unlisted(self, found: Gathered) -> list[Source]:
        """Servers whose tools are not known, or were listed under another launch; not those that failed a moment ago."""
        known = {shelf.name: shelf.stamp for shelf in self.catalogue.sources()}
        now = self.monotonic()
        return [
            source
            for source in found.servers.values()
            if known.get(source.name) != source.stamp and not self._failed_lately(source, now)
        ]

    def list_all(self, found: Gathered, changed: Collection[str], seconds: float, told: Callable[[str], None]) -> None:
        """Asks the servers whose tools are not known, and those that `changed`, a few at a time, once for all who want to know.

        They are waited for so many seconds after they were asked: what is not done by then goes on, and is found later.
        """
        pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="hotset-list")
        with self._lock:  # what somebody else has just asked is listed, or still being asked
            unlisted = {source.name for source in self.unlisted(found)}
            sources = [source for name, source in found.servers.items() if name in changed or name in unlisted]
            for source in sources:
                if source.name not in self._asking:
                    self._asking[source.name] = pool.submit(self._list, source, told), self.monotonic()
            asked = [self._asking[source.name] for source in sources]
        if asked:
            latest = max(since for _, since in asked)
            wait([done for done, _ in asked], timeout=max(0.0, latest + seconds - self.monotonic()))
        pool.shutdown(wait=False)

    def failures(self) -> list[tuple[str, str]]:
        """Servers that gave no list, and why not."""
        return [(name, failed.why) for name, failed in sorted(self._failed.items())]

    def waited_for(self) -> list[str]:
        """Servers that are still being asked."""
        return sorted(self._asking)

    def silent(self) -> list[str]:
        """Servers whose tools nobody knows: they gave no list, or have not given it yet."""
        return sorted({*self._failed, *self._asking})

    def refused(self) -> list[str]:
        """What was not taken of what sources list, in sentences."""
        return [sentence for sentences in self._refused.values() for sentence in sentences]

    def index(self, finding: Finding, index: Index) -> None:
        """Everything that can be used can be found, and skills that only wait for a person's yes."""
        from hotset.sources.tools.wording import VERSION as WORDING  # noqa: PLC0415 - with the index, and not before

        with self._lock:
            mark = _number(f"{self.catalogue.version()} {WORDING} {_RULE}")
            if index.watermark(_WATERMARK) == mark:
                return
            finding.sync(known.tool for known in self.catalogue.tools() if known.state is State.READY or known.is_told)
            index.add((), Watermark(_WATERMARK, mark))

    def _put(self, source: Source, tools: Sequence[Tool], instructions: str = "") -> None:
        self._refused[source.name] = self.catalogue.put(source, tools, instructions=instructions).refused

    def _list(self, source: Source, told: Callable[[str], None]) -> None:
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
            told(source.name)

    def _failed_lately(self, source: Source, now: float) -> bool:
        failed = self._failed.get(source.name)
        return failed is not None and failed.stamp == source.stamp and now - failed.at < _AGAIN_SECONDS


def _number(version: str) -> int:
    """A watermark is a number; 0 says that nothing was followed."""
    return int.from_bytes(hashlib.sha256(version.encode()).digest()[:6]) or 1
