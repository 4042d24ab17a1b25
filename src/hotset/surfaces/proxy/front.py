"""The front of the always-on proxy: one port for all projects of a user.

A call belongs to the project whose token is in its path; the user's own token stands for the
project `unknown`, and any other is refused. Each project has a machine of its own, opened with its
first call and closed when none has come for a while. What serves it is what `hotset up` serves.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from hotset import __version__
from hotset.config import Config
from hotset.errors import BadConfig, HotsetError
from hotset.files.lock import FileLock
from hotset.files.private_folder import private_folder
from hotset.files.scope import PROCESS
from hotset.runtime.machine import Machine, open_store
from hotset.runtime.reader import Store
from hotset.runtime.wire import DIALECTS, open_wire
from hotset.surfaces.dashboard.access import DashboardAccess, mark_in
from hotset.surfaces.proxy.address import (
    PROJECTS_PATH,
    Address,
    kept_token,
    project_token,
    remove_note,
    write_note,
)
from hotset.surfaces.proxy.always_on import (
    KnownProject,
    known_project,
    list_projects,
    shared_folder,
    unknown_folder,
    unknown_project,
)
from hotset.surfaces.proxy.app import (
    AsgiClient,
    Guard,
    Refusal,
    dialect_of,
    encode_path,
    named_tokens,
)
from hotset.surfaces.proxy.collector import IdleCollector
from hotset.surfaces.proxy.server import (
    Alarm,
    ProxyServer,
    ServedProject,
    listen,
    run_to_end,
    settle,
)

IDLE_SECONDS = 300.0
"""After so long without a call a project is closed: open, it takes 20 MB and 0.7 % of a core."""

_MOST_OPEN = 16  # the one idle longest is closed for another
_CLOSE_SECONDS = 5.0

_log = logging.getLogger("hotset")

Beside = Callable[[Config], AbstractContextManager[object]]
"""What runs beside a project's machine while it is open."""


@dataclass(slots=True)
class _Place:
    """A project that can be called, open or not."""

    known: KnownProject
    access: DashboardAccess
    guard: Guard
    address: Address
    served: ServedProject | None = None
    beside: ExitStack = field(default_factory=ExitStack)
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while it is opened or closed."""
    calls: int = 0
    """Calls under way."""
    last: float = 0.0
    """When the latest call began or ended."""


class Front:
    """Hands each call to its project's own application. For one event loop."""

    def __init__(
        self, config: Config, address: Address, beside: Beside, idle: float = IDLE_SECONDS
    ) -> None:
        """`config` is that of any project of the user, `address` that of the user's own token."""
        self._config = config
        self._own = address
        self._beside = beside
        self._idle = idle
        self._places: dict[str, _Place] = {}
        """By token."""
        self._open: list[_Place] = []
        """Those that are open, also some that are not called any more."""
        self._read: object = None
        """The state of the list of projects that `_places` is from."""
        self._stranger = Guard(address.port, secrets.token_urlsafe())
        """The guard of a token that nobody has: it says why a call is refused."""
        self._scope = PROCESS.child("front")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, headers = encode_path(scope["raw_path"]), tuple(scope["headers"])
        self._look()
        named = map(self._places.get, named_tokens(path, headers))
        place = next(filter(None, named), None) or self._place_of_page(path)
        admitted = (place.guard if place is not None else self._stranger).admit(path, headers)
        client = AsgiClient(send, dialect_of(scope["path"], DIALECTS), DIALECTS)
        if place is None or isinstance(admitted, Refusal):
            assert isinstance(admitted, Refusal)
            await client.refuse(admitted.status, admitted.message, ())
        elif admitted == f"/{PROJECTS_PATH}" and place.address.token == self._own.token:
            await JSONResponse(self.report())(scope, receive, send)
        else:
            with self._call(place):
                try:
                    served = await self._opened(place)
                except HotsetError as error:
                    await client.refuse(503, str(error), ())
                    return
                await served.app(scope, receive, send)

    def report(self) -> dict[str, Any]:
        """What is served: every project, and those that are open now."""
        self._look()
        return {
            "nonce": self._own.nonce,
            "pid": self._own.pid,
            "version": self._own.version,
            "started": self._own.started,
            "projects": [
                {
                    "project": "unknown" if each is self._unknown else each.known.project,
                    "folder": each.known.folder,
                    "open": each.served is not None,
                    "calls": each.served.machine.tally.requests if each.served else 0,
                }
                for each in self._places.values()
            ],
        }

    @property
    def machines(self) -> list[Machine]:
        """Those of the projects that are open."""
        return [each.served.machine for each in self._open if each.served is not None]

    @property
    def last(self) -> float:
        """When the latest call began or ended."""
        return max((each.last for each in self._places.values()), default=0.0)

    def tick(self, now: float) -> None:
        """Close what was idle for long, and what is not called any more."""
        for place in self._open:
            is_over = self._places.get(place.address.token) is not place
            if not place.calls and (is_over or now - place.last > self._idle):
                self._scope.task(self._close(place), "close a project")

    def hang_up(self) -> None:
        """End what pages of the dashboard listen to."""
        for place in self._places.values():
            place.access.close()

    async def close(self, seconds: float) -> None:
        """Close every project, side by side, whatever is under way."""
        ends = [self._close(each, seconds, ends_calls=True) for each in self._open]
        await asyncio.gather(*ends)
        await self._scope.aclose()

    @property
    def _unknown(self) -> _Place | None:
        return self._places.get(self._own.token)

    def _place_of_page(self, path: str) -> _Place | None:
        """The project whose dashboard is meant: the one that the address names, or that made the
        link."""
        mark = mark_in(path)
        return next(
            (
                each
                for each in self._places.values()
                if (mark and each.access.mark == mark) or each.access.knows(path)
            ),
            None,
        )

    @contextmanager
    def _call(self, place: _Place) -> Iterator[None]:
        place.calls, place.last = place.calls + 1, time.time()
        try:
            yield
        finally:
            place.calls, place.last = place.calls - 1, time.time()

    def _look(self) -> None:
        """Take over projects that were added since the last look; one that was dropped, or has
        another token now, is not called any more."""
        state = _state_of(shared_folder(self._config))
        if state == self._read and self._places:
            return
        known = {self._own.token: KnownProject("", str(unknown_folder(self._config)))}
        for each in list_projects(self._config):
            if token := kept_token(Path(each.folder)):
                known[token] = each
            else:
                _log.warning("%s has no token that can be used: `hotset doctor`", each.project)
        for token in self._places.keys() - known.keys():
            self._places.pop(token).access.close()
        for token, each in known.items():
            if token not in self._places:
                address = replace(self._own, token=token)
                access = DashboardAccess(address.port, token)
                guard = Guard(address.port, token, access.admits)
                self._places[token] = _Place(each, access, guard, address)
        self._read = state

    async def _opened(self, place: _Place) -> ServedProject:
        """The project's machine and application. Raises `HotsetError` for settings that cannot be
        used."""
        if place.served is not None:
            return place.served
        async with place.opening:
            if place.served is None:
                await self._make_room()
                place.served = await self._start(place)
                self._open.append(place)
                _log.info("opened %s", place.known.project or "the project unknown")
            return place.served

    async def _start(self, place: _Place) -> ServedProject:
        is_unknown = place.address.token == self._own.token
        reading = partial(unknown_project, self._config)
        if not is_unknown:
            reading = partial(known_project, self._config, place.known)
        config = await asyncio.to_thread(reading)
        opened = await asyncio.to_thread(_opened_store, config)
        machine = Machine.start(config, opened, open_wire(config))
        served = ServedProject(machine, place.address, place.access)
        await asyncio.to_thread(place.beside.enter_context, self._beside(config))
        return served

    async def _make_room(self) -> None:
        resting = [each for each in self._open if not each.calls]
        if len(self._open) >= _MOST_OPEN and resting:
            await self._close(min(resting, key=lambda each: each.last))

    async def _close(
        self, place: _Place, seconds: float = _CLOSE_SECONDS, *, ends_calls: bool = False
    ) -> None:
        async with place.opening:
            if place.served is None or (place.calls and not ends_calls):
                return
            served, place.served = place.served, None
            self._open.remove(place)
            await asyncio.to_thread(place.beside.close)
            await served.close(seconds)
            _log.info("closed %s", place.known.project or "the project unknown")


def _opened_store(config: Config) -> Callable[[], Store]:
    """Opens the store: the first time at once, in this thread, because a machine opens its own on
    the event loop, where the calls of other projects would wait for it."""
    private_folder(config.folder)
    again = partial(open_store, config, makes_folder=False)
    try:
        ready = [again()]
    except (HotsetError, OSError):
        return again  # the machine meets the same error, and says it
    return lambda: ready.pop() if ready else again()


def _state_of(folder: Path) -> tuple[int, int, int] | None:
    """Changes when the list of projects does."""
    try:
        found = (folder / "projects.json").stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def serve_all(
    config: Config,
    port: int,
    *,
    ready: Callable[[Address], None],
    beside: Beside = lambda _config: nullcontext(),
    idle: float = IDLE_SECONDS,
) -> None:
    """Serves every project of the user until SIGINT or SIGTERM. Raises `BadConfig` if another
    process does, or if the port is taken."""
    folder = private_folder(shared_folder(config))
    lock = FileLock(folder / "lock")
    if not lock.take():
        raise BadConfig(
            f"the always-on proxy runs already (process {lock.holder()}); `hotset service status`"
        )
    collector = settle()
    try:
        address = Address(
            port,
            project_token(folder),
            os.getpid(),
            secrets.token_hex(16),
            __version__,
            time.time(),
        )
        front = Front(config, address, beside, idle)
        alarm = Alarm(lambda: [each.keeper for each in front.machines])
        with closing(listen(replace(config, port=port))) as listener:
            server = ProxyServer(front)
            server.on_signal = alarm
            server.on_rest = partial(_tick, front, collector)
            server.on_stop = front.hang_up

            def started() -> None:
                write_note(folder, address)
                ready(address)

            async def serving() -> None:
                await open_wire(config).close()  # importing it would hold up a project's first call
                try:
                    await server.serve_from(listener, started)
                finally:
                    remove_note(folder, address)
                    await front.close(server.seconds_left)

            run_to_end(serving(), alarm)
    finally:
        lock.release()


def _tick(front: Front, collector: IdleCollector) -> None:
    now = time.time()
    front.tick(now)
    collector.tick(front.last, now)
