"""All servers of one hotset, for callers of any thread: `call` starts what is needed, and what is
not needed any more goes.

One thread with an event loop does the work. It is started when something is to run, and ends when
nothing does.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hotset.config import TOOLS, Config
from hotset.errors import MemoryClosed
from hotset.files.folder import private_folder
from hotset.files.write import write_atomically
from hotset.nouns.tool import Returned, Tooling, ToolOrigin
from hotset.sources.tools.running.mcp_client import ToolListing
from hotset.sources.tools.running.processes import memory_of
from hotset.sources.tools.running.server_pool import (
    HearsList,
    PooledServer,
    ServerPool,
    StartHistory,
)

_log = logging.getLogger("hotset")

# after the last server ended: sources that are listed one after the other share what starts them
_LINGER_SECONDS = 5.0
_CLOSE_SECONDS = 10.0  # a pool takes up to five, and the supervisor two more

_RUNNING = "running"


class RunningServer(msgspec.Struct, frozen=True):
    """A process that runs for tools, or a connection to one elsewhere."""

    source: str
    session: str
    """Empty where all sessions share it."""
    pid: int | None
    """None for a connection to another machine."""
    since: float
    """By the pool's clock; by the wall clock in `running_everywhere`. So is `last_used`."""
    calls: int
    last_used: float
    protocol: str
    """Of MCP; empty while it starts."""
    pinned: bool
    whose: str = ""
    """The hotset process it runs for; empty for this one."""
    bytes: int = 0
    """In memory, with all that it started; 0 where that was not measured or cannot be known."""


class ServerPoolThread:
    """May be made anywhere: nothing runs before the first call. Not after a fork, and not after
    `close`: then `MemoryClosed`."""

    def __init__(
        self,
        tooling: Tooling,
        *,
        project: Path,
        clock: Callable[[], float] = time.monotonic,
        linger: float = _LINGER_SECONDS,
        listed: HearsList | None = None,
    ) -> None:
        """`listed` is called with what a server offers when it was started, before its first call,
        in a thread of its own."""
        self._tooling = tooling
        self._listed = listed
        self._project = project
        self._clock = clock
        self._linger = linger
        self._past: dict[str, StartHistory] = {}
        self._lock = threading.Lock()
        self._work: _LoopThread | None = None
        self._pid = os.getpid()
        self._is_closed = False

    def list_tools(self, source: ToolOrigin, seconds: float | None = None) -> ToolListing:
        """The tools of a source now; a process that was started for this alone is stopped again.
        Raises `ToolFailed`."""
        limit = self._tooling.list_seconds if seconds is None else seconds
        return _result(self._submit(lambda pool: pool.list_tools(source, limit)))

    def call(
        self,
        source: ToolOrigin,
        own_name: str,
        arguments: Mapping[str, Any],
        *,
        session: str = "",
        pinned: bool = False,
    ) -> Returned:
        """Raises `ToolFailed`, which tells a model what to do. A tool that fails by itself returns
        so."""
        return _result(
            self._submit(
                lambda pool: pool.call(source, own_name, arguments, session, pinned=pinned)
            )
        )

    async def call_async(
        self,
        source: ToolOrigin,
        own_name: str,
        arguments: Mapping[str, Any],
        *,
        session: str = "",
        pinned: bool = False,
    ) -> Returned:
        """The same from an event loop. Where it is cancelled, the call is cancelled at the
        server."""
        return await asyncio.wrap_future(
            self._submit(
                lambda pool: pool.call(source, own_name, arguments, session, pinned=pinned)
            )
        )

    def running(self) -> Sequence[RunningServer]:
        return tuple(map(_measured, self.unmeasured()))

    def unmeasured(self) -> Sequence[RunningServer]:
        """As `running`, without `bytes`; costs nothing."""
        return tuple(
            RunningServer(
                source=server.source.name,
                session=server.session_name,
                pid=session.connection.pid if session is not None else None,
                since=server.since,
                calls=server.calls,
                last_used=server.last_used,
                protocol=session.protocol if session is not None else "",
                pinned=server.pinned,
            )
            for server in self._servers()
            for session in (server.session,)
        )

    def loaded(self) -> frozenset[str]:
        """The names of the sources that run; costs nothing."""
        return frozenset(server.source.name for server in self._servers())

    def changed(self) -> frozenset[str]:
        """The names of the running sources that announced a change of their tools; costs
        nothing."""
        return frozenset(each.source.name for each in self._servers() if each.has_news)

    def troubles(self) -> Mapping[str, str]:
        """Sources that are not started for a while because they failed several times -> why."""
        return {name: past.why for name, past in tuple(self._past.items()) if past.breaker.open}

    def end_session(self, session: str) -> None:
        """Stops the servers of this session alone, each when it has answered its calls."""
        if self._servers():
            _result(self._submit(lambda pool: _run_now(pool.end_session, session)))

    def stop(self, source_name: str) -> None:
        """Stops a source at once, also in the middle of a call; its next call starts it anew,
        however often it failed before."""
        self._past.pop(source_name, None)
        if self._servers():
            _result(self._submit(lambda pool: pool.stop(source_name)))

    def tend(self) -> None:
        """Stops servers that were idle for too long; a timer does so, too."""
        if self._servers():
            _result(self._submit(lambda pool: _run_now(pool.tend)))

    def close(self) -> None:
        """Ends every server, within a few seconds. May be called again."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._is_closed = True
            work, self._work = self._work, None
        if work is not None:
            work.end()
            work.thread.join(_CLOSE_SECONDS)

    def _servers(self) -> tuple[PooledServer, ...]:
        work = self._work
        if work is None or os.getpid() != self._pid:
            return ()
        return tuple(server for server in work.pool.servers() if not server.has_ended)

    def _submit(
        self, ask: Callable[[ServerPool], Coroutine[Any, Any, _Made]]
    ) -> concurrent.futures.Future[_Made]:
        if os.getpid() != self._pid:
            raise MemoryClosed(
                "the tools belong to the process that this one was forked from; open hotset "
                "anew in this one"
            )
        with self._lock:
            if self._is_closed:
                raise MemoryClosed("the tools are closed; open hotset anew")
            if self._work is None:
                self._work = _LoopThread(self._make_pool, self._may_end, self._linger)
            work = self._work
            work.waiting += 1
            future = asyncio.run_coroutine_threadsafe(ask(work.pool), work.loop)
        future.add_done_callback(lambda _: self._answered(work))
        return future

    def _make_pool(self) -> ServerPool:
        return ServerPool(self._tooling, self._project, self._clock, self._past, self._listed)

    def _answered(self, work: _LoopThread) -> None:
        with self._lock:
            work.waiting -= 1

    def _may_end(self, work: _LoopThread) -> bool:
        """True if nothing waits or runs; from then on no work is submitted to it."""
        with self._lock:
            if work.waiting == 0 and work.pool.is_empty and self._work is work:
                self._work = None
            return self._work is not work


class _LoopThread:
    """A thread with an event loop, from the first server to the last."""

    def __init__(
        self, make: Callable[[], ServerPool], may_end: Callable[[_LoopThread], bool], linger: float
    ) -> None:
        self.waiting = 0
        self.loop: asyncio.AbstractEventLoop
        self.pool: ServerPool
        self._make = make
        self._may_end = may_end
        self._linger = linger
        self._ended: asyncio.Event
        self._ready = threading.Event()
        self.thread = threading.Thread(target=self._run, name="hotset-tools", daemon=True)
        self.thread.start()
        self._ready.wait()

    def end(self) -> None:
        """From any thread."""
        self.loop.call_soon_threadsafe(self._ended.set)

    def _run(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        self.loop, self.pool, self._ended = (
            asyncio.get_running_loop(),
            self._make(),
            asyncio.Event(),
        )
        self.loop.set_exception_handler(_log_fault)
        self._ready.set()
        over = asyncio.create_task(self._until_over())
        ended = asyncio.create_task(self._ended.wait())
        await asyncio.wait([over, ended], return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        ended.cancel()
        await self.pool.close()

    async def _until_over(self) -> None:
        while True:
            await self.pool.until_empty()
            await asyncio.sleep(self._linger)
            if self._may_end(self):
                return


def _log_fault(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Logs the type of an unhandled fault. asyncio's own log goes to stderr where a program set up
    none, and quotes content."""
    error = context.get("exception")
    _log.error(
        "a fault of the toolbox: %s",
        type(error).__name__ if error is not None else context.get("message", ""),
    )


_Made = TypeVar("_Made")


async def _run_now(act: Callable[..., None], *given: str) -> None:
    """In the thread of the loop, which owns the servers."""
    act(*given)


def _result(future: concurrent.futures.Future[_Made]) -> _Made:
    """Waits for the result. Ctrl-C cancels the work."""
    try:
        return future.result()
    except concurrent.futures.CancelledError:
        raise MemoryClosed("the tools were closed in the middle of the call") from None
    except KeyboardInterrupt:
        future.cancel()
        raise


class RunningFile:
    """Tells other processes which servers run for this one. Written when something was used; what
    has stopped since is seen by its missing process."""

    def __init__(self, folder: Path, whose: str) -> None:
        self._path = folder / _RUNNING / f"{os.getpid()}.json"
        self._whose = f"{whose} ({os.getpid()})"
        self._written: frozenset[tuple[str, str, int | None]] = frozenset()

    def write(self, pool: ServerPoolThread) -> None:
        """Cheap where nothing came or went since."""
        running = pool.unmeasured()
        now = frozenset((each.source, each.session, each.pid) for each in running)
        if now == self._written:
            return
        ago = time.time() - time.monotonic()
        rows = [
            msgspec.structs.replace(
                each,
                since=ago + each.since,
                last_used=ago + each.last_used,
                whose=self._whose,
            )
            for each in running
        ]
        private_folder(self._path.parent)
        write_atomically(self._path, msgspec.json.encode(rows))
        self._written = now

    def close(self) -> None:
        self._path.unlink(missing_ok=True)


def running_everywhere(config: Config) -> list[RunningServer]:
    """Everything that still runs. Notes of processes that are gone are thrown away."""
    found: list[RunningServer] = []
    for path in sorted((config.folder / TOOLS / _RUNNING).glob("*.json")):
        if not _is_alive(int(path.stem) if path.stem.isdecimal() else 0):
            path.unlink(missing_ok=True)
            continue
        try:
            rows = msgspec.json.decode(path.read_bytes(), type=list[RunningServer])
        except (OSError, msgspec.DecodeError):
            continue
        found += [_measured(each) for each in rows if each.pid is None or _is_alive(each.pid)]
    return found


def _measured(server: RunningServer) -> RunningServer:
    return msgspec.structs.replace(server, bytes=memory_of(server.pid) if server.pid else 0)


def _is_alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
