"""A provider that says what a script tells it, over real HTTP, in all three dialects."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Self

from hotset.nouns.message import Usage
from hotset.testing.upstream.http import Arrival, Performed, ScriptedConnection
from hotset.testing.upstream.provider import Provider
from hotset.testing.upstream.received import Log, Received
from hotset.testing.upstream.script import Script
from hotset.testing.upstream.shape import Act

_HOST = "127.0.0.1"
_PATIENCE = 120.0  # seconds a test waits before it is told what did not happen


class ScriptedUpstream:
    """The fake provider: `with ScriptedUpstream([Say("hello")]) as upstream: ...`, or `async with`.

    It runs in a thread and an event loop of its own, so the code under test may block or not.
    Without a script it echoes.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        port: int = 0,
        seed: int = 0,
        strict: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._provider = Provider(script, seed=seed, strict=strict, now=now)
        self._log = Log()
        self._now = now
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="scripted-upstream", daemon=True
        )
        self._living: set[ScriptedConnection] = set()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self._port}"

    @property
    def openai_url(self) -> str:
        """What an OpenAI client takes as its `base_url`."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """What an Anthropic client takes as its `base_url`."""
        return self.url

    @property
    def requests(self) -> tuple[Received, ...]:
        """Every request so far, as it stands now; read it again to see what became of one."""
        return self._log.requests

    @property
    def bill(self) -> Usage:
        """The tokens of all replies so far, added up; also of those that broke off, which providers
        charge for too."""
        return self._provider.bill

    def wait_for_requests(self, count: int, timeout: float = _PATIENCE) -> tuple[Received, ...]:
        """Blocks until so many requests have arrived whole. From async code: `await
        asyncio.to_thread(...)`."""
        self._log.wait(f"{count} requests", timeout, lambda seen: len(seen) >= count)
        return self.requests

    def wait_for_end(self, index: int, timeout: float = _PATIENCE) -> Received:
        """Blocks until the request's reply has ended, one way or the other."""
        self._log.wait(
            f"the end of request {index}",
            timeout,
            lambda seen: (
                len(seen) > index and (seen[index].ended or seen[index].cancelled_after is not None)
            ),
        )
        return self.requests[index]

    def wait_for_cancel(self, index: int = 0, timeout: float = _PATIENCE) -> Received:
        """Blocks until the client has gone away before the end of that request's reply."""
        self._log.wait(
            f"request {index} to be cancelled",
            timeout,
            lambda seen: len(seen) > index and seen[index].cancelled_after is not None,
        )
        return self.requests[index]

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Connections are refused, open ones are dropped; afterwards it listens on the same port
        again."""
        self._run(self._unlisten())
        try:
            yield
        finally:
            self._run(self._listen())

    def start(self) -> Self:
        self._thread.start()
        try:
            self._run(self._listen())
        except OSError:  # the port is taken
            self.stop()
            raise
        return self

    def stop(self) -> None:
        self._run(self._unlisten())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)

    def _run(self, coroutine: object) -> None:
        assert asyncio.iscoroutine(coroutine)
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_PATIENCE)

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: ScriptedConnection(self._answer, self._living), _HOST, self._port
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def _unlisten(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in tuple(self._living):
            await connection.close()

    async def _answer(self, arrival: Arrival) -> tuple[Iterable[Act], Callable[[Performed], None]]:
        received = self._log.add(self._provider.receive(arrival, self._now()))
        acts = self._provider.acts(received)
        return acts, lambda performed: self._log.end(
            received.index, cancelled_after=performed.cancelled_after
        )


def free_port() -> int:
    """A port of the loopback on which nobody listens: connections to it are refused."""
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])
