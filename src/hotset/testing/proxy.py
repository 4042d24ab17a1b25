"""A real proxy on a real port, in a thread of the test's own process, over any store."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hotset.config import Upstream, load
from hotset.nouns.knobs import Knobs
from hotset.nouns.remembering import Remembering
from hotset.nouns.tool import Tooling
from hotset.runtime.bounded import Bounded
from hotset.sources.tools import ToolLibrary
from hotset.store.port import Store
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.proxy.address import Address
from hotset.surfaces.proxy.limits import Limits
from hotset.surfaces.proxy.serve import listen, run

_START_SECONDS = 30


class LocalProxy:
    """`with LocalProxy(folder, openai_url=..., anthropic_url=...) as proxy: proxy.address.openai_base_url`."""

    address: Address

    def __init__(
        self,
        folder: Path,
        *,
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
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        bounded: Bounded | None = None,
        limits: Limits | None = None,
    ) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Nothing of the person who runs this: neither settings nor servers nor skills.
        environ = {"HOME": str(folder), "HOTSET_CONFIG": str(folder / "config.toml")}
        config = load(
            data=str(folder), project=str(folder), port=0, openai_url=openai_url, anthropic_url=anthropic_url, environ=environ
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
        )
        self._toolbox = toolbox
        self._options: dict[str, Any] = {"sleep": sleep, "bounded": bounded, "limits": limits}
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

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            with contextlib.closing(listen(self.config)) as listener:
                asyncio.run(run(self.config, listener, self._open_store, self._serving, self._toolbox, **self._options))
        except BaseException as error:
            self._failure = error
            self._ready.set()

    def _serving(self, address: Address, stop: Callable[[], None]) -> None:
        self.address = address
        self._stop = stop
        self._ready.set()
