"""The real proxy before a scripted provider, with a clock that moves only between calls: every run
sends the same bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from hotset.config import Config
from hotset.nouns.knobs import Remembering
from hotset.nouns.message import Reply
from hotset.nouns.page import SessionId
from hotset.nouns.tooling import Tooling
from hotset.nouns.turn import TurnRef
from hotset.runtime.background import BoundedPool
from hotset.surfaces.proxy.address import Address
from hotset.testing import Clock, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.upstream.script import Received
from tests.proxy.talking import Talk, tools

TOOLS = ("read_file", "shell", "write_file", "fetch_url")
_PATIENT = 600.0
_CALL_SECONDS = 0.1
"""From one call to the next, by the sessions' clock: less than any quiet time after which a session
is remembered."""

_CONFIG = '[search]\nminilm = "off"\n'
"""Whether or not the weights of a better embedder are installed here."""


@dataclass(frozen=True)
class StagedCall:
    """One call of a client, with what the provider got and said for it."""

    talk: StagedTalk
    body: bytes
    """The client's own."""
    config: Config
    """Of the proxy that it went through."""
    requests: tuple[Received, ...]
    said: tuple[Say, ...]
    place: TurnRef | None
    """In the store, as the client was told."""
    headers: dict[str, str]


class Stage:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "data"
        self._stack = ExitStack()
        self._proxy: LocalProxy | None = None
        self.clock = Clock()
        self.replies: deque[Say | Callable[[Received], Say]] = deque()
        """What the provider says next. A session ends when it has said all of it."""
        self.said: list[Say] = []
        """What the provider said so far."""
        self.calls: list[StagedCall] = []
        """What clients asked so far."""
        self.upstream = ScriptedUpstream(self._reply, strict=True, now=self.clock)

    def __enter__(self) -> Self:
        self._stack.enter_context(self.upstream)
        return self

    def __exit__(self, *_: object) -> None:
        if self._proxy is not None:
            self._proxy.__exit__(None, None, None)
        self._stack.close()

    def start(self, config: str = "", **settings: Any) -> None:
        """Starts the proxy, or another one in its place over the same folder. Settings are those of
        `LocalProxy`."""
        if self._proxy is not None:
            self._proxy.__exit__(None, None, None)
            self._proxy = None
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.folder / "config.toml").write_text(_CONFIG + config)
        chosen = {
            "openai_url": self.upstream.openai_url,
            "anthropic_url": self.upstream.anthropic_url,
            "memory": Remembering(enabled=False),
            "tooling": Tooling(enabled=False),
            "bounded": BoundedPool(_PATIENT, _PATIENT, _PATIENT),
            "clock": self.clock,
            **settings,
        }
        proxy = LocalProxy(self.folder, **chosen)
        proxy.__enter__()
        self._proxy = proxy

    @property
    def proxy(self) -> LocalProxy:
        assert self._proxy is not None, "the stage was not started"
        return self._proxy

    def talk(
        self, dialect: str, *, stream: bool, headers: dict[str, str] | None = None, **extra: Any
    ) -> StagedTalk:
        """A client with a few tools; Anthropic's caches by itself."""
        marks = {"cache_control": {"type": "ephemeral"}} if dialect == "anthropic" else {}
        fields = {"tools": tools(dialect, *TOOLS), **marks, **extra}
        return StagedTalk(
            self.proxy.address, dialect, stream, fields, dict(headers or {}), stage=self
        )

    def pause(self, seconds: float) -> None:
        """Time passes, and all work in the background is done."""
        self.proxy.wait_until_kept()
        self.clock.advance(seconds)
        self.proxy.wait_until_idle()

    def before_call(self) -> Address:
        """What the last call left behind is done: the next one finds the same on every machine."""
        self.proxy.wait_until_kept()
        self.clock.advance(_CALL_SECONDS)
        return self.proxy.address

    @property
    def bodies(self) -> list[bytes]:
        """Every body that went upstream."""
        assert not self.replies, f"{len(self.replies)} replies were not asked for"
        return [request.decoded for request in self.upstream.requests]

    def _reply(self, request: Received) -> Say:
        said = self.replies.popleft()
        self.said.append(said if isinstance(said, Say) else said(request))
        return self.said[-1]


@dataclass
class StagedTalk(Talk):
    stage: Stage = field(kw_only=True)

    def send(self, *messages: dict[str, Any]) -> Reply:
        self.address = self.stage.before_call()
        before = len(self.stage.said)
        reply = super().send(*messages)
        assert self.answer is not None
        assert self.answer.status == 200, self.answer.body[:500]
        assert self.answer.header("x-hotset-degraded") is None, self.answer.header(
            "x-hotset-degraded"
        )
        self.stage.calls.append(self._called(before))
        return reply

    def _called(self, before: int) -> StagedCall:
        """The latest call; `before` it, the provider had replied so often."""
        assert self.answer is not None
        session = self.answer.header("x-hotset-session")
        number = int(self.answer.header("x-hotset-turn") or 0)
        return StagedCall(
            self,
            self.sent[-1],
            self.stage.proxy.config,
            self.stage.upstream.requests[before:],
            tuple(self.stage.said[before:]),
            TurnRef(SessionId(session), number) if session else None,
            dict(self.headers),
        )
