"""The servers of one hotset, for callers of any thread: started by the first call, shared by those
that come meanwhile, stopped when unused.

`ServerPool` is what runs in one event loop. It begins when something is needed and ends when
nothing runs; what was learned about a source outlives it (`StartHistory`). `ServerPoolThread` is
the thread with that loop: it is started when something is to run, and ends when nothing does.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from hotset.config import TOOLS, Config
from hotset.errors import MemoryClosed, ToolFailed
from hotset.files.breaker import Breaker
from hotset.files.private_folder import private_folder
from hotset.files.write import write_atomically
from hotset.nouns.tool import Launch, OriginKind, Returned, Stdio, ToolOrigin
from hotset.nouns.tooling import Tooling
from hotset.sources.tools.running import SERVERS
from hotset.sources.tools.running.mcp_client import (
    McpSession,
    NoAnswer,
    NotDelivered,
    NotUnderstood,
    PipeConnection,
    RpcConnection,
    RpcRefused,
    ToolListing,
    greet,
)
from hotset.sources.tools.running.processes import ServerGone, Supervisor, memory_of
from hotset.typed import decode

if TYPE_CHECKING:
    from hotset.sources.tools.running.mcp_http import HttpClient

Clock = Callable[[], float]
HearsList = Callable[[ToolOrigin, ToolListing, str], None]
"""Called with what a server offers before its first call, and the tool that is about to be called;
raises where that must not be."""

ADVICE = " Use another tool, or ask the user to run `hotset tools status`."
"""What a model can do; it follows what went wrong."""

_FAILED_WITHIN = (
    60.0  # seconds in which a source fails to start three times before it is left alone
)
_REST, _LONGEST_REST = 30.0, 600.0  # seconds for which it is
_UNANSWERED = 2  # calls in a row after which a server is taken to hang, and another one is started
_CLOSE_SECONDS = 5.0  # for all servers together; the supervisor ends what is left
_LONGEST_WORDS = 500  # characters of a server's last words in an error
_SOONEST = 1.0  # second in which we look again for what was idle for too long

_HOUR = 3600.0
_OFTEN = 20.0  # calls an hour from which on a process is kept longest
_LONGEST = 5.0  # times as long as one that is hardly ever used

_log = logging.getLogger("hotset")

# after the last server ended: sources that are listed one after the other share what starts them
_LINGER_SECONDS = 5.0
_THREAD_CLOSE_SECONDS = 10.0  # a pool takes up to five, and the supervisor two more

_RUNNING = "running"


@dataclass(frozen=True, slots=True)
class UsageRate:
    """How often something is used: each call counts one, and fades over an hour."""

    rate: float = 0.0
    """Calls in an hour, as of then."""
    at: float = 0.0


@dataclass(slots=True)
class StartHistory:
    """What earlier runs of a source showed: whether it starts, how often it is used, which version
    it speaks."""

    stamp: str
    breaker: Breaker
    why: str = ""
    use: UsageRate = field(default_factory=UsageRate)
    protocol: str = ""


@dataclass(eq=False, slots=True)
class PooledServer:
    """One process or connection, from its start to its end."""

    source: ToolOrigin
    session_name: str
    since: float
    last_used: float
    starting: asyncio.Task[McpSession]
    busy: int = 0
    calls: int = 0
    pinned: bool = False
    unanswered: int = 0
    was_listed: bool = False
    """Its tools were listed since it was started."""

    @property
    def is_idle(self) -> bool:
        """True if it may be stopped to make room."""
        return self.busy == 0 and not self.pinned

    @property
    def may_rest(self) -> bool:
        """True if it may be stopped when it was not used for long. A pinned one of a single session
        may: sessions come and go."""
        return self.busy == 0 and not (self.pinned and not self.session_name)

    @property
    def key(self) -> tuple[str, str]:
        return self.source.name, self.session_name

    @property
    def session(self) -> McpSession | None:
        """None while it starts."""
        is_started = (
            self.starting.done()
            and not self.starting.cancelled()
            and self.starting.exception() is None
        )
        return self.starting.result() if is_started else None

    @property
    def has_news(self) -> bool:
        """It announced a change of its tools since they were last listed."""
        return self.session is not None and self.session.connection.changed

    @property
    def has_ended(self) -> bool:
        return self.session is not None and self.session.connection.gone

    def last_words(self) -> str:
        return self.session.connection.last_words() if self.session is not None else ""

    async def close(self) -> None:
        self.starting.cancel()
        await asyncio.wait([self.starting])
        if self.session is not None:
            await self.session.connection.close()


class ServerPool:
    """Made and used inside one event loop."""

    def __init__(
        self,
        tooling: Tooling,
        project: Path,
        clock: Clock,
        past: dict[str, StartHistory],
        listed: HearsList | None = None,
    ) -> None:
        self._tooling = tooling
        self._listed = listed
        self._project = project
        self._clock = clock
        self._past = past
        self._supervisor = Supervisor()
        self._http: HttpClient | None = None
        self._servers: dict[tuple[str, str], PooledServer] = {}
        self._leaving: set[PooledServer] = set()
        """Servers that get no more calls, and end when they have answered the ones they have."""
        self._closing: set[asyncio.Task[None]] = set()
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._next_look: asyncio.TimerHandle | None = None

    @property
    def is_empty(self) -> bool:
        """Nothing runs, starts or ends."""
        return self._is_empty.is_set()

    async def until_empty(self) -> None:
        await self._is_empty.wait()

    def servers(self) -> tuple[PooledServer, ...]:
        """May be asked from any thread."""
        return (*tuple(self._servers.values()), *tuple(self._leaving))

    async def call(
        self,
        source: ToolOrigin,
        own_name: str,
        arguments: Mapping[str, Any],
        session_name: str,
        *,
        pinned: bool,
    ) -> Returned:
        """Runs the tool in the process of its source. Raises `ToolFailed`, which tells a model what
        to do."""
        seconds = self._tooling.call_seconds

        async def work(server: PooledServer, session: McpSession) -> Returned:
            server.pinned = pinned
            server.calls += 1
            past = self._past_of(source)
            past.use = count_use(past.use, self._clock())
            if (
                self._listed is not None
                and source.origin is OriginKind.SERVER
                and (server.has_news or not server.was_listed)
            ):
                listed = await session.list_tools(self._tooling.list_seconds)
                await asyncio.to_thread(self._listed, source, listed, own_name)
                server.was_listed = True
            return await session.call(own_name, arguments, seconds)

        return await self._using(source, "" if source.shared else session_name, seconds, work)

    async def list_tools(self, source: ToolOrigin, seconds: float) -> ToolListing:
        """Asks a process that runs anyway where there is one, first one that has news. Raises
        `ToolFailed`."""
        running = [
            each
            for each in self._servers.values()
            if each.source.name == source.name and each.source.stamp == source.stamp
        ]
        server = max(running, key=lambda each: each.has_news, default=None)
        try:
            async with asyncio.timeout(seconds):
                return await self._using(
                    source,
                    server.session_name if server else "",
                    seconds,
                    lambda _, session: session.list_tools(seconds),
                )
        except TimeoutError:
            raise ToolFailed(
                f"{source.name} did not list its tools in {seconds:g} s.{ADVICE}"
            ) from None

    def end_session(self, session_name: str) -> None:
        """Stops the servers of this session alone, each when it has answered."""
        for server in [
            each
            for each in self._servers.values()
            if session_name and each.session_name == session_name
        ]:
            self._release(server)
        self._settle()

    async def stop(self, source_name: str) -> None:
        """At once, whatever it does."""
        closing = [
            self._dismiss(each) for each in self.servers() if each.source.name == source_name
        ]
        if closing:
            await asyncio.wait(closing, timeout=_CLOSE_SECONDS)

    def tend(self) -> None:
        """Stops servers that were idle for too long."""
        now = self._clock()
        for server in self.servers():
            if server.has_ended or (
                server.may_rest and now - server.last_used >= self._patience(server)
            ):
                self._dismiss(server)
        self._settle()

    async def close(self) -> None:
        for server in self.servers():
            self._dismiss(server)
        if self._next_look is not None:
            self._next_look.cancel()
        if self._closing:
            await asyncio.wait(self._closing, timeout=_CLOSE_SECONDS)
        if self._http is not None:
            await self._http.close()
        self._supervisor.close()

    async def _using(
        self,
        source: ToolOrigin,
        session_name: str,
        seconds: float,
        work: Callable[[PooledServer, McpSession], Coroutine[Any, Any, _Made]],
    ) -> _Made:
        """Runs `work` with a started server. Tries again once where the server had ended, or had
        forgotten us, before it could have read the request."""
        for is_last in (False, True):
            server = self._enter(source, session_name)
            try:
                made = await work(server, await self._started(server, seconds))
            except NotDelivered as error:
                self._dismiss(server)
                if is_last:
                    raise ToolFailed(f"{source.name} is out of reach: {error}.{ADVICE}") from None
            except ServerGone as error:
                self._dismiss(server)
                raise ToolFailed(_broke_off(source, error, server.last_words())) from None
            except NoAnswer:
                self._count_unanswered(server)
                raise ToolFailed(_too_slow(source, seconds)) from None
            except (RpcRefused, NotUnderstood) as error:
                raise ToolFailed(
                    f"{source.name} failed: {_sealed(source, str(error))}.{ADVICE}"
                ) from None
            else:
                server.unanswered = 0
                return made
            finally:
                self._leave(server)
        raise AssertionError("the last try returns or raises")

    async def _started(self, server: PooledServer, seconds: float) -> McpSession:
        """The session of a server, once it has started. All callers share the start; one that stops
        waiting does not stop it."""
        done, _ = await asyncio.wait([server.starting], timeout=seconds)
        if not done:
            raise ToolFailed(
                f"{server.source.name} is still starting after {seconds:g} s: call "
                f"it again later.{ADVICE}"
            )
        if server.starting.cancelled():
            raise ToolFailed(
                f"{server.source.name} was stopped before it had started; call it again."
            )
        if isinstance(error := server.starting.exception(), ToolFailed):
            raise ToolFailed(str(error))  # one for each: they are raised in many threads
        return server.starting.result()

    def _enter(self, source: ToolOrigin, session_name: str) -> PooledServer:
        """The server of this source and session, for one more call; started where there is none, it
        has ended, or its source has changed."""
        server = self._servers.get((source.name, session_name))
        if server is not None and (server.source.stamp != source.stamp or server.has_ended):
            self._release(server)
            server = None
        if server is None:
            server = self._start(source, session_name)
        server.busy += 1
        return server

    def _leave(self, server: PooledServer) -> None:
        server.busy -= 1
        server.last_used = self._clock()
        if server.busy == 0 and server in self._leaving:
            self._dismiss(server)
        elif (
            server.is_idle
            and server.calls == 0
            and server.session is not None
            and self._servers.get(server.key) is server
        ):
            self._dismiss(server)  # it ran to be listed, and for nothing else
        self._settle()

    def _start(self, source: ToolOrigin, session_name: str) -> PooledServer:
        if source.launch is None:
            raise ToolFailed(f"{source.name} has nothing to run.")
        past = self._past_of(source)
        if not past.breaker.allows():
            raise ToolFailed(_resting(source, past))
        if isinstance(source.launch, Stdio):
            self._make_room(self._tooling.limit - 1)
        now = self._clock()
        server = PooledServer(
            source,
            session_name,
            now,
            now,
            SERVERS.task(self._open(source, source.launch, past), f"start {source.name}"),
        )
        self._servers[source.name, session_name] = server
        self._is_empty.clear()
        server.starting.add_done_callback(lambda _: self._forget_unless_started(server))
        return server

    async def _open(self, source: ToolOrigin, launch: Launch, past: StartHistory) -> McpSession:
        """Starts and greets a server, within the longer of both times: a caller that waits for less
        can come back to it."""
        seconds = max(self._tooling.list_seconds, self._tooling.call_seconds)
        connection: RpcConnection | None = None
        session: McpSession | None = None
        try:
            async with asyncio.timeout(seconds):
                connection = await self._connect(launch)
                session = await greet(source, connection, seconds, past.protocol)
        except (ToolFailed, TimeoutError) as error:
            words = connection.last_words() if connection is not None else ""
            why = (
                str(error)
                if isinstance(error, ToolFailed)
                else f"it was not ready after {seconds:g} s"
            )
            past.why = f"{_sealed(source, why)}.{_last_words(source, words)}"
            raise ToolFailed(f"{source.name} did not start: {past.why}{ADVICE}") from None
        finally:
            past.protocol = session.protocol if session is not None else ""
            if session is not None:
                past.why = ""
                past.breaker.succeeded()
            else:
                past.breaker.failed(past.why)
                if connection is not None:
                    self._close_beside(connection.close())
        return session

    async def _connect(self, launch: Launch) -> RpcConnection:
        if isinstance(launch, Stdio):
            return PipeConnection(
                await self._supervisor.start(launch, cwd=launch.cwd or str(self._project))
            )
        from hotset.sources.tools.running.mcp_http import HttpClient, HttpConnection  # noqa: PLC0415 - aiohttp, only where it is needed

        if self._http is None:
            self._http = HttpClient()
        return HttpConnection(self._http, launch)

    def _past_of(self, source: ToolOrigin) -> StartHistory:
        past = self._past.get(source.name)
        if past is None or past.stamp != source.stamp:
            breaker = Breaker(
                f"tools of {source.name}",
                self._clock,
                within=_FAILED_WITHIN,
                rest=_REST,
                longest=_LONGEST_REST,
            )
            past = self._past[source.name] = StartHistory(
                source.stamp, breaker, use=past.use if past is not None else UsageRate()
            )
        return past

    def _forget_unless_started(self, server: PooledServer) -> None:
        if server.session is None and self._servers.get(server.key) is server:
            del self._servers[server.key]
            self._note_emptiness()

    def _count_unanswered(self, server: PooledServer) -> None:
        server.unanswered += 1
        if server.unanswered >= _UNANSWERED:
            self._release(server)

    def _release(self, server: PooledServer) -> None:
        """No more calls go to it; those that it has may come to their end."""
        if self._servers.get(server.key) is server:
            del self._servers[server.key]
            self._leaving.add(server)
        if server.busy == 0:
            self._dismiss(server)

    def _dismiss(self, server: PooledServer) -> asyncio.Task[None]:
        """Ends it, whatever it does."""
        if self._servers.get(server.key) is server:
            del self._servers[server.key]
        self._leaving.discard(server)
        return self._close_beside(server.close())

    def _close_beside(self, closing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Closes in the background: a process may take its time to end."""
        task = SERVERS.task(closing, "end a server")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        task.add_done_callback(lambda _: self._note_emptiness())
        return task

    def _note_emptiness(self) -> None:
        if not (self._servers or self._leaving or self._closing):
            self._is_empty.set()

    def _settle(self) -> None:
        self._make_room(self._tooling.limit)
        if self._next_look is not None:
            self._next_look.cancel()
            self._next_look = None
        due = [each.last_used + self._patience(each) for each in self.servers() if each.may_rest]
        if due:
            delay = max(_SOONEST, min(due) - self._clock())
            self._next_look = asyncio.get_running_loop().call_later(delay, self.tend)

    def _make_room(self, limit: int) -> None:
        for server in to_make_room(
            [each for each in self.servers() if isinstance(each.source.launch, Stdio)], limit
        ):
            self._dismiss(server)

    def _patience(self, server: PooledServer) -> float:
        if server.pinned:
            return _LONGEST * self._tooling.idle_seconds
        past = self._past.get(server.source.name)
        return patience(past.use if past is not None else UsageRate(), self._tooling.idle_seconds)


_Made = TypeVar("_Made")


def _broke_off(source: ToolOrigin, error: ToolFailed, words: str) -> str:
    return (
        f"{source.name} broke off during the call: {error}. It may have done "
        f"its work: check before you call it again, which restarts it.{_last_words(source, words)}"
    )


def _too_slow(source: ToolOrigin, seconds: float) -> str:
    return (
        f"{source.name} did not answer in {seconds:g} s and was told to stop, "
        "but may still run (the user can see: `hotset tools status`). Check "
        "before you call it again, and ask for less."
    )


def _resting(source: ToolOrigin, past: StartHistory) -> str:
    left = past.breaker.seconds_left
    when = f"It is tried again in {left:.0f} s" if left else "It is being tried again now"
    return (
        f"{source.name} failed to start several times: {past.why} {when}, "
        f"or when it changes.{ADVICE}"
    )


def _last_words(source: ToolOrigin, words: str) -> str:
    return f" Its last words: {_sealed(source, words)}" if words else ""


def _sealed(source: ToolOrigin, words: str) -> str:
    """A server's words without secrets; the keys of its own configuration are known, whatever they
    look like."""
    from hotset.sealing import KnownSecrets, seal  # noqa: PLC0415 - 50 ms that no start pays

    given = (
        source.launch.env
        if isinstance(source.launch, Stdio)
        else source.launch.headers
        if source.launch is not None
        else {}
    )
    known = KnownSecrets(
        {value.encode("utf-8", "surrogatepass"): "configured" for value in given.values()}
    )
    return seal(words, known).text[-_LONGEST_WORDS:]


def count_use(use: UsageRate, now: float) -> UsageRate:
    return UsageRate(use.rate * exp(-max(0.0, now - use.at) / _HOUR) + 1, now)


def patience(use: UsageRate, idle_seconds: float) -> float:
    """Seconds after its last call for which a process is kept."""
    return idle_seconds * (1 + (_LONGEST - 1) * min(1.0, use.rate / _OFTEN))


def to_make_room(processes: Iterable[PooledServer], limit: int) -> list[PooledServer]:
    """The servers to stop so that no more than the limit are left: idle ones, the longest unused
    first. Where too many are in use, fewer than it would take.
    """
    every = list(processes)
    idle = sorted((each for each in every if each.is_idle), key=lambda each: each.last_used)
    return idle[: max(0, len(every) - limit)]


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

    def process_of(self, source: str, session: str) -> tuple[float, int | None] | None:
        """What tells apart the process of a source that serves this session from one started later;
        None where none runs. Costs nothing."""
        return next(
            (
                (server.since, server.session.connection.pid)
                for server in self._servers()
                if server.source.name == source
                and server.session_name in ("", session)
                and server.session is not None
                and not server.has_ended
                and _is_running(server.session.connection.pid)
            ),
            None,
        )

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
            work.thread.join(_THREAD_CLOSE_SECONDS)

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
        self.thread = SERVERS.new_thread(self._run, "hotset-tools")
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
        over = SERVERS.task(self._until_over(), "until no server runs")
        ended = SERVERS.task(self._ended.wait(), "until the tools close")
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
            rows = decode(path.read_bytes(), list[RunningServer])
        except (OSError, msgspec.DecodeError):
            continue
        found += [_measured(each) for each in rows if each.pid is None or _is_alive(each.pid)]
    return found


def _measured(server: RunningServer) -> RunningServer:
    return msgspec.structs.replace(server, bytes=memory_of(server.pid) if server.pid else 0)


def _is_running(pid: int | None) -> bool:
    """False for a process that has just ended, also before its end is noticed here."""
    if pid is None:
        return True
    with suppress(OSError, IndexError):  # there is no /proc on macOS
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state not in ("Z", "X")
    return _is_alive(pid)


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
