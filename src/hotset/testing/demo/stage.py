"""The stage: the agent's client, a provider that answers as recorded, and the real proxy as a
process that can be killed."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

from hotset.errors import HotsetError
from hotset.files.folder import private_folder
from hotset.testing.recording import Recording
from hotset.testing.upstream.received import Received
from hotset.testing.upstream.script import Call, Say

_START_SECONDS = 20.0
_STOP_SECONDS = 10.0
_CALL_SECONDS = 30.0
_POLL_SECONDS = 0.01
_ASSISTANT_ITEMS = ("function_call", "reasoning")
_LOOK = "look"
_LOOKS = frozenset(
    range(4, 48, 9)
)  # often enough to be seen, rare enough to be true: in recorded sessions it is 5 of 100
_SHORTENED = re.compile(r'retrieve_context\(id=\\"(c[0-9a-f]{12})\\"')
_MARK = ".demo"
"""Says that a folder is the demonstration's own, and may be emptied for the next one."""


@dataclass(frozen=True, slots=True)
class CallTiming:
    """One call, as its client saw it."""

    status: int
    size: int
    """Bytes of the reply."""
    seconds: float
    session: str
    turn: int
    """What the proxy says it was; empty and 0 without one."""


class DemoClient:
    """Calls one base URL over one connection, as agents do."""

    def __init__(self, root: str) -> None:
        self.root = root
        parts = urlsplit(root)
        self._path = parts.path.rstrip("/")
        self._connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=_CALL_SECONDS
        )

    def call(self, path: str, body: bytes) -> CallTiming:
        """Raises OSError or HTTPException where the connection breaks; the next call makes a new
        one."""
        headers = {
            "content-type": "application/json",
            "user-agent": "demo-agent/1.0",
            "x-api-key": "no-key-needed",
            "anthropic-version": "2023-06-01",
        }
        begun = time.perf_counter()
        try:
            self._connection.request("POST", self._path + path, body, headers)
            response = self._connection.getresponse()
            size = len(response.read())
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        return CallTiming(
            status=response.status,
            size=size,
            seconds=time.perf_counter() - begun,
            session=response.headers.get("x-hotset-session", ""),
            turn=int(response.headers.get("x-hotset-turn", 0)),
        )

    def close(self) -> None:
        self._connection.close()


class RecordedProvider:
    """Answers each request with what was said at that point of the recording, however often it is
    asked.

    At a few points the model first wants a look at something that was shortened: what it asks for
    is its hotset's to answer.
    """

    def __init__(self, recording: Recording) -> None:
        self._replies = recording.replies
        self.at = 0
        """How many replies the client's own history holds."""
        self.delay = 0.0
        """Seconds that the next answers take."""
        self.asked: list[str] = []
        """What the model asked to have back."""
        self.got: list[str] = []
        """What it was given."""

    def __call__(self, request: Received) -> Say:
        if self.at >= len(self._replies):
            return Say("The recording ends here.", delay=self.delay)
        reply = self._replies[self.at]
        last = request.decoded[request.decoded.rfind(b"tool_result") :].decode()
        if (asked := f"{_LOOK}{self.at}") in last:
            self.got.append(last)
        elif self.at in _LOOKS and (shortened := _SHORTENED.search(last)):
            self.asked.append(shortened[1])
            return Say(
                calls=(Call("retrieve_context", {"id": shortened[1], "lines": "41-60"}, asked),),
                delay=self.delay,
            )
        return Say(reply.text, reply.calls, delay=self.delay)


def replies_in(body: dict[str, Any]) -> int:
    """How many replies a history holds: what the assistant says between two turns of anybody else
    is one."""
    items = body.get("messages") or body.get("input") or []
    ours = [
        item.get("role") == "assistant" or item.get("type") in _ASSISTANT_ITEMS
        for item in items
        if isinstance(item, dict)
    ]
    return sum(mine and not before for before, mine in pairwise((False, *ours)))


class ProxyProcess:
    """`hotset up` in a process of its own. It ends with us, in whatever way we end: we hold its
    stdin."""

    root: str

    def __init__(self, folder: Path, upstream_url: str) -> None:
        self._folder = folder
        self._upstream_url = upstream_url
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._wait()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Returns when it serves; after a kill on the same port, so that no client has to be
        told."""
        ready = self._folder / "ready.json"
        ready.unlink(missing_ok=True)
        log = os.open(self._folder / "proxy.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self._process = subprocess.Popen(
                self._command(ready), stdin=subprocess.PIPE, stdout=log, stderr=log
            )
        finally:
            os.close(log)
        deadline = time.monotonic() + _START_SECONDS
        while not ready.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise HotsetError(f"the proxy did not start; see {self._folder / 'proxy.log'}")
            time.sleep(_POLL_SECONDS)
        announced = msgspec.json.decode(ready.read_bytes(), type=dict[str, str | int])
        self.root = str(announced["anthropic_base_url"])
        self._port = urlsplit(self.root).port or 0

    def kill(self) -> None:
        """kill -9: no chance to write anything more."""
        os.kill(self.pid, signal.SIGKILL)
        self._wait()

    def _wait(self) -> None:
        assert self._process is not None
        self._process.wait(_STOP_SECONDS)
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None

    def _command(self, ready: Path) -> list[str]:
        flags = {
            "--port": str(self._port),
            "--data": str(self._folder),
            "--project": str(self._folder),
            "--ready-file": str(ready),
            "--openai-url": f"{self._upstream_url}/v1",
            "--anthropic-url": self._upstream_url,
        }
        words = [word for pair in flags.items() for word in pair]
        return [sys.executable, "-m", "hotset", "up", "--quiet", "--while-stdin", *words]


def empty_folder(folder: Path) -> Path:
    """The demonstration's own folder, empty. What is not marked as ours is never touched."""
    if folder.exists() and not (folder / _MARK).exists() and any(folder.iterdir()):
        raise HotsetError(
            f"{folder} holds something that is not a demonstration's; choose another folder "
            f"with --data"
        )
    shutil.rmtree(folder, ignore_errors=True)
    private_folder(folder)
    (folder / _MARK).touch(0o600)
    return folder
