"""Serves a project's proxy on loopback until a signal stops it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from hotset import __version__
from hotset.config import DEFAULT_PORT, Config
from hotset.errors import BadConfig, StoreFailed
from hotset.files.breaker import BREAKERS
from hotset.files.lru import CACHES
from hotset.files.private_folder import private_folder
from hotset.files.scope import PROCESS, ScopedTimer
from hotset.runtime.background import BoundedPool
from hotset.runtime.keeper import Keeper
from hotset.runtime.machine import Machine, open_store as open_project_store
from hotset.runtime.pressure import MemoryReader
from hotset.runtime.reader import Store
from hotset.runtime.record import KEEPING
from hotset.runtime.wire import open_wire
from hotset.sources.tools import Toolbox, ToolLibrary
from hotset.surfaces.dashboard.access import DashboardAccess
from hotset.surfaces.mcp.protocol import Server
from hotset.surfaces.proxy.address import (
    HOST,
    Address,
    project_token,
    read_note,
    remove_note,
    write_note,
)
from hotset.surfaces.proxy.app import build
from hotset.surfaces.proxy.collector import IdleCollector
from hotset.surfaces.proxy.limits import BoundedHttp, Limits, sweep
from hotset.surfaces.proxy.mcp import McpDoor

_log = logging.getLogger("hotset")
_SCOPE = PROCESS.child("server")

_GRACE_SECONDS = 5
_END_SECONDS = 2.0 * _GRACE_SECONDS
"""The deadline of a stop: the proxy ends then, even if something hangs. What was acknowledged is on
disk by then."""

_LEAST_DRAIN_SECONDS = 1.0
_LEAVE_SECONDS = 1.0
_BACKLOG = 2048
_TICKS = 10  # of uvicorn's tenths of a second, between two sweeps over the connections
_SWITCH_SECONDS = 0.0005
"""After so long a thread that computes lets the event loop run: with Python's 5 ms, every relayed
byte could wait that long for the store's thread or the index's."""


def serve(config: Config, *, ready: Callable[[Address, str], None]) -> None:
    """Serves until SIGINT or SIGTERM; `ready` is called with the address and a link to the
    dashboard. Raises `BadConfig` if the requested port is taken."""
    with contextlib.suppress(
        StoreFailed
    ):  # it still passes calls through, and the keeper logs why nothing is kept
        private_folder(config.folder)
    collector = settle()
    served: list[ServedProject] = []
    alarm = Alarm(lambda: [each.machine.keeper for each in served])
    with contextlib.closing(listen(config)) as listener:
        open_store = partial(open_project_store, config, makes_folder=False)
        serving = run(
            config,
            listener,
            open_store,
            lambda address, _stop: ready(address, served[0].make_link()),
            on_served=served.append,
            on_signal=alarm,
            collector=collector,
        )
        run_to_end(serving, alarm)


def settle() -> IdleCollector:
    """Sets a process up to serve; what collects its garbage."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    collector = IdleCollector()
    collector.settle()
    return collector


class Alarm:
    """Ends the process if it could not be closed some time after the first signal."""

    def __init__(self, keepers: Callable[[], Sequence[Keeper]]) -> None:
        """`keepers` are those whose stores are closed first."""
        self._keepers = keepers
        self._timer: ScopedTimer | None = None

    def __call__(self) -> None:
        if self._timer is None:
            self._timer = _SCOPE.timer(_END_SECONDS, lambda: _give_up(self._keepers()))

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def run_to_end(serving: Coroutine[Any, Any, None], alarm: Alarm | None = None) -> None:
    """Runs a server on an event loop of its own, and leaves nothing behind."""
    runner = asyncio.Runner(loop_factory=_loop_factory())
    # as many threads as asyncio's own
    threads = _SCOPE.executor(min(32, (os.cpu_count() or 1) + 4), "hotset-thread")
    runner.get_loop().set_default_executor(threads)
    try:
        runner.run(serving)
    finally:
        _leave(runner, threads)
        if alarm is not None:
            alarm.cancel()


def _leave(runner: asyncio.Runner, threads: Executor) -> None:
    """Closes the loop. Python would wait for every thread: if one hangs, the process ends without
    it a moment later."""
    threads.shutdown(wait=False, cancel_futures=True)
    runner.get_loop().set_default_executor(
        _SCOPE.executor(1, "hotset-last")
    )  # or the loop would wait for them
    runner.close()
    others = [
        each
        for each in threading.enumerate()
        if not each.daemon and each is not threading.main_thread()
    ]
    until = time.monotonic() + _LEAVE_SECONDS
    for thread in others:
        thread.join(max(0.0, until - time.monotonic()))
    if any(thread.is_alive() for thread in others):
        _log.warning("a thread hangs; the process ends without it")
        _SCOPE.timer(_LEAVE_SECONDS, lambda: _end_process(0))


def _end_process(code: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _give_up(keepers: Sequence[Keeper]) -> None:
    """Called when closing hangs: closes the stores, if possible, and ends the process."""
    _log.error("the proxy could not be closed in %.0f s; it ends at once", _END_SECONDS)
    closing = [_SCOPE.thread(each.close, "hotset-last") for each in keepers]
    until = time.monotonic() + _LEAVE_SECONDS
    for each in closing:
        each.join(max(0.0, until - time.monotonic()))
    _end_process(1)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed (`hotset[fast]`): a quarter less added latency, for 14 MB."""
    try:
        import uvloop  # noqa: PLC0415 - an optional extra
    except ImportError:
        return None
    fast: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return fast


async def run(
    config: Config,
    listener: socket.socket,
    open_store: Callable[[], Store],
    ready: Callable[[Address, Callable[[], None]], None],
    toolbox: ToolLibrary | None = None,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    bounded: BoundedPool | None = None,
    limits: Limits | None = None,
    clock: Callable[[], float] = time.time,
    memory_reader: MemoryReader | None = None,
    on_served: Callable[[ServedProject], None] | None = None,
    on_signal: Callable[[], None] | None = None,
    collector: IdleCollector | None = None,
) -> None:
    """Serves on a listening socket; `ready` is called with the address and a function that stops
    it, safe from any thread.

    `on_served` is called with the project once its machine has started. `on_signal` is called when
    a signal asks it to stop, before anything is stopped.
    """
    port: int = listener.getsockname()[1]
    machine = Machine.start(
        config,
        open_store,
        open_wire(config),
        toolbox,
        sleep=sleep,
        bounded=bounded,
        clock=clock,
        memory_reader=memory_reader,
    )
    address = Address(
        port,
        project_token(config.folder),
        os.getpid(),
        secrets.token_hex(16),
        __version__,
        time.time(),
    )
    served = ServedProject(machine, address)
    if on_served is not None:
        on_served(served)
    server = ProxyServer(served.app, limits)
    server.on_signal = on_signal
    server.on_stop = served.access.close
    if collector is not None:
        server.on_rest = lambda: collector.tick(machine.tally.last, machine.clock())

    def started() -> None:
        write_note(config.folder, address)
        ready(address, server.stop)

    try:
        await server.serve_from(listener, started)
    finally:
        remove_note(config.folder, address)
        await served.close(server.seconds_left)


class ServedProject:
    """A project's machine with its way in."""

    def __init__(
        self, machine: Machine, address: Address, access: DashboardAccess | None = None
    ) -> None:
        self.machine = machine
        self.address = address
        self.access = access or DashboardAccess(address.port, address.token)
        self._mcp = McpDoor(partial(_mcp_server, machine), partial(_end_session, machine))
        status = partial(_status, machine, address)
        self.app = build(machine, address, status, self._mcp, self.access)

    def make_link(self) -> str:
        """The address that opens the dashboard once."""
        return f"http://{HOST}:{self.address.port}{self.access.make_link()}"

    async def close(self, seconds: float) -> None:
        """Waits so long for what is under way in the background."""
        self._mcp.close()
        await self.machine.close(seconds)


def _mcp_server(machine: Machine) -> Server:
    """The MCP server in this process, with the machine's own store, index and toolbox. Made for the
    first client."""
    from hotset.surfaces.mcp.mcp_tools import (  # noqa: PLC0415
        INSTRUCTIONS,
        toolbox_tools,
        tools,
    )
    from hotset.surfaces.mcp.memory_tools import memory_tools  # noqa: PLC0415 - 0.2 s that no start pays
    from hotset.surfaces.mcp.project import MachineProject  # noqa: PLC0415

    project = MachineProject(machine)
    toolbox = machine.toolbox
    knobs = machine.config.knobs_for("")
    found = (
        toolbox_tools(toolbox, lambda: project.keeping, knobs)
        if isinstance(toolbox, Toolbox)
        else ()
    )
    return Server((*found, *tools(project), *memory_tools(project, machine.config)), INSTRUCTIONS)


def _end_session(machine: Machine, session: str) -> None:
    if isinstance(machine.toolbox, Toolbox):
        machine.toolbox.ended(session)


class ProxyServer(uvicorn.Server):
    """Calls back when it serves; stops on SIGINT and SIGTERM without raising them again, so that
    calls under way are still kept."""

    def __init__(self, app: ASGIApp, limits: Limits | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=partial(BoundedHttp, limits or Limits()),  # type: ignore[arg-type] # it only calls it
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # its messages quote requests

    @property
    def seconds_left(self) -> float:
        """For what runs in the background: one deadline holds for that and for the calls."""
        taken = time.monotonic() - self.stopped if self.stopped else 0.0
        return max(_LEAST_DRAIN_SECONDS, _GRACE_SECONDS - taken)

    async def serve_from(self, listener: socket.socket, started: Callable[[], None]) -> None:
        self._say_started = started
        await self.serve(sockets=[listener])

    stopped = 0.0
    """When it was asked to stop."""
    on_signal: Callable[[], None] | None = None
    on_rest: Callable[[], object] | None = None
    on_stop: Callable[[], object] | None = None
    """Ends replies that would go on for ever."""

    def stop(self) -> None:
        self.stopped = self.stopped or time.monotonic()
        if self.on_stop is not None:
            self.on_stop()
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.on_signal is not None:
            self.on_signal()
        if self.on_stop is not None:
            self.on_stop()
        self.stopped = self.stopped or time.monotonic()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._say_started()

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS == 0:
            sweep(self.server_state.connections)
            if self.on_rest is not None:
                self.on_rest()
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            # signals are for the main thread; a caller in another one uses `stop`
            yield
            return
        loop = asyncio.get_running_loop()
        stops = (signal.SIGINT, signal.SIGTERM)
        for stop in stops:
            loop.add_signal_handler(stop, self.handle_exit, stop, None)
        try:
            yield
        finally:
            for stop in stops:
                loop.remove_signal_handler(stop)


def listen(config: Config) -> socket.socket:
    """A listening socket on the requested port, or else on the last one, the usual one, or any."""
    if config.port is not None:
        try:
            return _bind(config.port)
        except OSError as error:
            raise BadConfig(
                f"port {config.port} cannot be used: {error.strerror}; choose another with --port"
            ) from error
    last = read_note(config.folder)
    for port in dict.fromkeys((last.port if last else DEFAULT_PORT, DEFAULT_PORT, 0)):
        try:
            return _bind(port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise BadConfig(f"cannot listen on {HOST}: {error.strerror}") from error
    raise BadConfig(f"no port is free on {HOST}")


def _bind(port: int) -> socket.socket:
    # With the protocol named, asyncio turns Nagle's algorithm off; without it every reply would
    # wait 40 ms for an ACK.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


async def _status(machine: Machine, address: Address) -> dict[str, Any]:
    tally = machine.tally
    await machine.keeper.look()
    return {
        "nonce": address.nonce,
        "pid": address.pid,
        "version": address.version,
        "started": address.started,
        "uptime": time.time() - address.started,
        "project": str(machine.config.project),
        "folder": str(machine.config.folder),
        "store": machine.keeper.trouble or "ok",
        "index": list(machine.follower.troubles),
        "resting": machine.toolbox.resting() if isinstance(machine.toolbox, Toolbox) else {},
        "tools_ready": machine.toolbox is None or machine.toolbox.empty or machine.toolbox.ready,
        "memory": machine.pressure.report(),
        "scopes": [asdict(each) for each in PROCESS.counts()],
        "breakers": [asdict(each) for each in BREAKERS.states()],
        "caches": [asdict(each) for each in CACHES.sizes()],
        "planning": f"{hung} earlier plans have not ended"
        if (hung := machine.bounded.hung)
        else "ok",
        "requests": tally.requests,
        "kept": tally.kept,
        "bypassed": tally.bypassed,
        "late": tally.late,
        "left": tally.left,
        "retried": tally.retried,
        "keeping": machine.background.under_way(KEEPING),
        "last": tally.last,
        "wait": asdict(tally.waits.figures()),
        "window": machine.config.window,
        "metrics": asdict(machine.metrics()),
        "alerts": [asdict(alert) for alert in machine.alerts],
        "upstreams": {name: upstream.url for name, upstream in machine.config.upstreams.items()},
    }
