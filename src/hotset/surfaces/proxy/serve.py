"""Serves a project's proxy on loopback until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

import uvicorn

from hotset import __version__
from hotset.config import DEFAULT_PORT, Config
from hotset.errors import BadConfig
from hotset.runtime.machine import Machine
from hotset.runtime.offering import Tools
from hotset.runtime.record import KEEPING
from hotset.runtime.toolbox import Toolbox
from hotset.store.folder import private_folder
from hotset.store.port import Store
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.mcp.protocol import Server
from hotset.surfaces.proxy.address import HOST, Address, leave_note, read_note, take_note_back, token
from hotset.surfaces.proxy.app import build
from hotset.surfaces.proxy.guard import Guard
from hotset.surfaces.proxy.mcp import McpDoor
from hotset.upstream.http import HttpWire

_GRACE_SECONDS = 5
_BACKLOG = 2048
_SWITCH_SECONDS = 0.0005
"""After which a thread that computes lets the event loop go on: with Python's 5 ms, every byte that is relayed could wait so long
for the store's thread or the index's."""

_NEW_OBJECTS = 20_000  # between collections: with Python's 700 they took a sixth of the latency that a small call adds


def serve(config: Config, *, ready: Callable[[Address], None]) -> None:
    """Blocks until SIGINT or SIGTERM. Raises `BadConfig` where the port that was asked for is taken."""
    private_folder(config.folder)
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.freeze()  # what start-up made stays
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
    with contextlib.closing(listen(config)) as listener, asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(run(config, listener, lambda: SqliteStore.open(config.folder), lambda address, _stop: ready(address)))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed (`hotset[fast]`): a quarter less added latency, for 14 MB."""
    try:
        import uvloop  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    fast: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return fast


async def run(
    config: Config,
    listener: socket.socket,
    open_store: Callable[[], Store],
    ready: Callable[[Address, Callable[[], None]], None],
    toolbox: Tools | None = None,
) -> None:
    """Serves on a listening socket; `ready` is told the address and a function that ends it, safe from any thread."""
    port: int = listener.getsockname()[1]
    machine = Machine.start(config, open_store, HttpWire(config.upstreams), toolbox)
    address = Address(port, token(config.folder), os.getpid(), secrets.token_hex(16), __version__, time.time())
    mcp = McpDoor(partial(_mcp_server, machine), partial(_ended, machine))
    app = build(machine, Guard(port, address.token), lambda: _status(machine, address), mcp)
    server = _Server(
        uvicorn.Config(
            app,
            http="httptools",
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

    def started() -> None:
        leave_note(config.folder, address)
        ready(address, server.stop)

    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # its messages quote requests
    try:
        await server.serve_from(listener, started)
    finally:
        take_note_back(config.folder, address)
        mcp.close()
        await machine.close()


def _mcp_server(machine: Machine) -> Server:
    """What agents reach over MCP, in this process: the machine's own store, index and toolbox. Made when one of them comes."""
    from hotset.surfaces.mcp.memory import memory_tools  # noqa: PLC0415 - 0.2 s that no start pays
    from hotset.surfaces.mcp.toolbox import toolbox_tools  # noqa: PLC0415
    from hotset.surfaces.mcp.tools import INSTRUCTIONS, tools  # noqa: PLC0415
    from hotset.surfaces.proxy.project import MachineProject  # noqa: PLC0415

    project = MachineProject(machine)
    toolbox = machine.toolbox
    knobs = machine.config.knobs_for("")
    found = toolbox_tools(toolbox, lambda: project.keeping, knobs) if isinstance(toolbox, Toolbox) else ()
    return Server((*found, *tools(project), *memory_tools(project, machine.config)), INSTRUCTIONS)


def _ended(machine: Machine, session: str) -> None:
    if isinstance(machine.toolbox, Toolbox):
        machine.toolbox.ended(session)


class _Server(uvicorn.Server):
    """Says when it serves; stops on SIGINT and SIGTERM without raising them again, so that what is under way is still kept."""

    async def serve_from(self, listener: socket.socket, started: Callable[[], None]) -> None:
        self._say_started = started
        await self.serve(sockets=[listener])

    def stop(self) -> None:
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._say_started()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield  # signals are the main thread's business; whoever runs us in another one calls `stop`
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
    """The port that was asked for, or else the one of last time, the usual one, or any."""
    if config.port is not None:
        try:
            return _bind(config.port)
        except OSError as error:
            raise BadConfig(f"port {config.port} cannot be used: {error.strerror}; choose another with --port") from error
    last = read_note(config.folder)
    for port in dict.fromkeys((last.port if last else DEFAULT_PORT, DEFAULT_PORT, 0)):
        try:
            return _bind(port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise BadConfig(f"cannot listen on {HOST}: {error.strerror}") from error
    raise BadConfig(f"no port is free on {HOST}")


def _bind(port: int) -> socket.socket:
    # With the protocol named, asyncio turns Nagle's algorithm off; without it every reply would wait 40 ms for an ACK.
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
        "requests": tally.requests,
        "kept": tally.kept,
        "bypassed": tally.bypassed,
        "left": tally.left,
        "keeping": machine.background.under_way(KEEPING),
        "last": tally.last,
        "window": machine.config.window,
        "metrics": asdict(machine.metrics()),
        "alerts": [asdict(alert) for alert in machine.watch.standing()],
        "upstreams": {name: upstream.url for name, upstream in machine.config.upstreams.items()},
    }
