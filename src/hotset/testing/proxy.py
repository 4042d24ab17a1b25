"""A real proxy on a real port, in a thread of the test's own process, over any store."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hotset.config import Upstream, load
from hotset.nouns.knobs import Knobs, Remembering
from hotset.nouns.pressure import PressureLimits
from hotset.nouns.tooling import Tooling
from hotset.runtime.background import BoundedPool
from hotset.runtime.machine import Machine
from hotset.runtime.pressure import MemoryReader
from hotset.sources.tools import ToolLibrary
from hotset.store.port import Store
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.proxy.address import Address
from hotset.surfaces.proxy.limits import Limits
from hotset.surfaces.proxy.server import ServedProject, listen, run

PATIENCE = 60.0
"""Factor on waits, so that no test fails because the machine is busy: a process may get a twentieth
of a core."""

_START_SECONDS = 300
_IDLE_SECONDS = 300
_LOOK_SECONDS = 0.01

_ENDLESS = frozenset({"tend tools", "tend memory", "learn", "watch the memory"})
_RESTING = frozenset({*_ENDLESS, "follow the store", "work out gists"})
"""Background work that begins with a pause, so that calls go first."""


class LocalProxy:
    """`with LocalProxy(folder, openai_url=..., anthropic_url=...) as proxy:
    proxy.address.openai_base_url`."""

    address: Address

    def __init__(
        self,
        folder: Path,
        *,
        project: Path | None = None,
        openai_url: str = "http://127.0.0.1:9/v1",
        anthropic_url: str = "http://127.0.0.1:9",
        upstreams: dict[str, str] | None = None,
        open_store: Callable[[], Store] | None = None,
        off: bool = False,
        inject: bool = True,
        budget: int = 0,
        knobs: Knobs | None = None,
        toolbox: ToolLibrary | None = None,
        tooling: Tooling | None = None,
        memory: Remembering | None = None,
        memory_reader: MemoryReader | None = None,
        pressure: PressureLimits | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        bounded: BoundedPool | None = None,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
        patience: float = PATIENCE,
    ) -> None:
        """`folder` is the project's data folder, and its own without `project`. Waits `patience`
        times as long as usual for its own work; pass 1 to test a deadline. Memory pressure is what
        `memory_reader` says; nothing is short without one: a test must not depend on what else
        runs."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Nothing of the person who runs this: neither settings nor servers nor skills.
        environ = {
            "HOME": str(folder),
            "HOTSET_CONFIG": str(folder / "config.toml"),
            "HOTSET_PATIENCE": str(patience),
        }
        config = load(
            data=str(folder),
            project=str(project or folder),
            port=0,
            openai_url=openai_url,
            anthropic_url=anthropic_url,
            environ=environ,
        )
        named = {name: Upstream(name, url) for name, url in (upstreams or {}).items()}
        self.config = replace(
            config,
            upstreams={**config.upstreams, **named},
            off=off,
            inject=inject,
            budget=budget,
            knobs=knobs or config.knobs,
            tooling=tooling or config.tooling,
            memory=memory or config.memory,
            pressure=pressure or PressureLimits(enabled=memory_reader is not None),
        )
        self._toolbox = toolbox
        self._options: dict[str, Any] = {"sleep": sleep, "bounded": bounded, "limits": limits}
        self._options |= {"clock": clock, "on_served": self._started}
        self._options["memory_reader"] = memory_reader
        self._open_store = open_store or partial(SqliteStore.open, folder, makes_folder=False)
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._stop: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(_START_SECONDS) or self._failure is not None:
            raise RuntimeError("the proxy did not start") from self._failure
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    @property
    def machine(self) -> Machine:
        """The running machine. It belongs to the proxy's own thread: look, and change nothing."""
        return self._machine

    def wait_until_kept(self) -> None:
        """Return when the immediate work after a reply is done: the turn is on disk, billed and
        summarised."""
        self._wait(_RESTING)

    def wait_until_idle(self) -> None:
        """Return when the index, gists and memories are up to date too. A memory is made of a
        session that is quiet by the proxy's own clock: a stopped clock must be moved first."""
        self._wait(_ENDLESS)
        asyncio.run_coroutine_threadsafe(self._remember(), self._loop).result(_IDLE_SECONDS)
        self._wait(_ENDLESS)

    def _wait(self, besides: Collection[str]) -> None:
        asyncio.run_coroutine_threadsafe(self._idle(besides), self._loop).result(_IDLE_SECONDS)

    async def _idle(self, besides: Collection[str]) -> None:
        background, toolbox, quiet = self._machine.background, self._machine.toolbox, 0
        while quiet < 2:  # a call whose last byte has left may have a step to go
            await asyncio.sleep(_LOOK_SECONDS)
            warm = toolbox is None or toolbox.empty or toolbox.ready
            quiet = quiet + 1 if warm and not background.names - set(besides) else 0
        if besides is _ENDLESS and (index := self._machine.follower.index) is not None:
            await asyncio.to_thread(index.fold)

    async def _remember(self) -> None:
        for source in self._machine.sources:
            if source.name == "memory" and source.every:
                await source.upkeep()

    def _run(self) -> None:
        try:
            with contextlib.closing(listen(self.config)) as listener:
                asyncio.run(
                    run(
                        self.config,
                        listener,
                        self._open_store,
                        self._serving,
                        self._toolbox,
                        **self._options,
                    )
                )
        except BaseException as error:
            self._failure = error
            self._ready.set()

    def _started(self, served: ServedProject) -> None:
        self._machine, self._loop = served.machine, asyncio.get_running_loop()

    def _serving(self, address: Address, stop: Callable[[], None]) -> None:
        self.address = address
        self._stop = stop
        self._ready.set()
