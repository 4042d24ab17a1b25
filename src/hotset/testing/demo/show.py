"""The show: a recorded session goes through the real proxy, which is killed on the way; then we
check what is left.

It has three parts: the agent's client, a provider that answers as recorded, and the proxy as a
process that can be killed.
"""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

from hotset.config import listed_prices
from hotset.errors import HotsetError
from hotset.files.private_folder import private_folder
from hotset.nouns.message import DialectName, Usage
from hotset.nouns.price import Prices
from hotset.surfaces.proxy.address import make_link, read_note
from hotset.testing import ScriptedUpstream
from hotset.testing.demo.view import Board, Holdings, Screen, count_holdings
from hotset.testing.recording import (
    MODELS,
    RecordedReply,
    RecordedResult,
    Recording,
    requests,
    session,
)
from hotset.testing.upstream.script import Call, Received, Say
from hotset.typed import decode
from hotset.window.price import dollars, price_of

_ANTHROPIC, _RESPONSES = "/v1/messages", "/v1/responses"
_WATCHING_SECONDS = 9.0  # of pauses; the calls themselves and the restart take about six more
_SECOND_CALLS = 6
_HELD_SECONDS = 1.0
"""Duration of the call during which the proxy is killed."""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """Measured results of the demonstration."""

    calls: int
    sent: int
    added: tuple[float, ...]
    """Seconds that the proxy added, call by call."""
    heard: int
    """Complete replies that the agent had when the proxy was killed."""
    found: int
    """How many of those were on disk after the restart."""
    down: float
    """Seconds from the kill until it served again."""
    sessions: tuple[str, ...]
    """Sessions that the proxy put the recording's calls into: one, if it recognised the agent
    again."""
    held: Holdings
    byte_equal: bool
    """True if `hotset recall` returned the largest tool result exactly as the agent had sent it."""
    through: DemoBill
    direct: DemoBill
    """Cost of the recording at the provider without hotset."""
    looks: int
    """How often the model asked for something that it had been shown only in part."""
    missed: int
    """How often it did not get it."""


@dataclass(frozen=True, slots=True)
class DemoBill:
    """Charges of a provider with a prompt cache."""

    prompt: int
    """Tokens of all prompts."""
    dollars: float

    @classmethod
    def of(cls, usage: Usage) -> DemoBill:
        price = price_of(MODELS[DialectName.ANTHROPIC], Prices(listed_prices()))
        return cls(usage.input + usage.cache_read + usage.cache_write, dollars(price, usage))


def play(folder: Path, screen: Screen, *, slowly: bool) -> DemoResult:
    recording = session()
    script = RecordedProvider(recording)
    with (
        ScriptedUpstream(script) as upstream,
        ScriptedUpstream(plain := RecordedProvider(recording)) as bare,
        ProxyProcess(folder, upstream.url) as proxy,
    ):
        screen.say(
            f"A scripted provider on port {upstream.port}; the proxy in process {proxy.pid}, "
            f"keeping in {folder}."
        )
        screen.say(f"Watch it in a browser, as it happens: {proxy.make_link()}")
        through_proxy = DemoSide(DemoClient(proxy.root), upstream, script)
        agent = DemoAgent(
            folder, screen, through_proxy, DemoSide(DemoClient(bare.url), bare, plain), recording
        )
        bodies = tuple(requests(recording, DialectName.ANTHROPIC))
        middle = len(bodies) // 2
        pause = _WATCHING_SECONDS / len(bodies) if slowly else 0.0
        agent.play(bodies[:middle], pause)
        heard = agent.calls
        down = _kill_in_mid_call(
            agent, bodies[middle], script=script, upstream=upstream, proxy=proxy, screen=screen
        )
        found = count_holdings(folder).done
        screen.say(
            f"  back after {down:.1f} s; {found} of {heard} replies are on disk; the agent "
            f"repeats its call, and goes on."
        )
        agent.play(bodies[middle:], pause)
        through, direct = DemoBill.of(upstream.bill), DemoBill.of(bare.bill)
        screen.say(
            "The user goes back and says something else: the history branches, nothing is "
            "overwritten."
        )
        agent.call(_ANTHROPIC, _edit_last_message(bodies[middle]), "another branch")
        screen.say("Another agent, in the Responses dialect, beside it.")
        for body in islice(requests(recording, DialectName.OPENAI_RESPONSES), _SECOND_CALLS):
            agent.call(_RESPONSES, body, "a second session")
        held = count_holdings(folder)
    return DemoResult(
        calls=agent.calls,
        sent=agent.sent,
        added=tuple(agent.added),
        heard=heard,
        found=found,
        down=down,
        sessions=tuple(agent.sessions),
        held=held,
        byte_equal=_is_recalled_exactly(folder, held, recording),
        through=through,
        direct=direct,
        looks=len(script.asked),
        missed=sum("[hotset: retrieved" not in got for got in script.got)
        + len(script.asked)
        - len(script.got),
    )


@dataclass(frozen=True, slots=True)
class DemoSide:
    """One route to the provider, with its own provider at the end."""

    caller: DemoClient
    upstream: ScriptedUpstream
    script: RecordedProvider

    def call(self, path: str, body: bytes) -> CallTiming:
        self.script.at = replies_in(msgspec.json.decode(body))
        return self.caller.call(path, body)


class DemoAgent:
    """Plays the agent's side and counts what it sees."""

    def __init__(
        self, folder: Path, screen: Screen, through: DemoSide, bare: DemoSide, recording: Recording
    ) -> None:
        self._folder = folder
        self._screen = screen
        self._through = through
        self._bare = bare
        self._doing = [_describe_reply(reply) for reply in recording.replies]
        self.calls = 0
        self.sent = 0
        self.added: list[float] = []
        self.sessions: set[str] = set()
        """The sessions in which the proxy put the calls of the recording."""

    def play(self, bodies: Sequence[bytes], pause: float) -> None:
        for body in bodies:
            # Where the provider answers faster than the disk, a reply begins before its session is
            # known.
            if named := self.call(_ANTHROPIC, body, self._doing[self.calls]):
                self.sessions.add(named)
            time.sleep(pause)

    def call(self, path: str, body: bytes, doing: str) -> str:
        """Make a call through the proxy, and the same directly, to measure the difference."""
        heard = self._through.call(path, body)
        alone = self._bare.call(path, body)
        if heard.status != 200 or alone.status != 200:
            raise HotsetError(
                f"the scripted provider answered {heard.status} and {alone.status}; please "
                f"report this"
            )
        self.calls += 1
        self.sent += len(body)
        self.added.append(heard.seconds - alone.seconds)
        self._screen.show(
            Board(
                call=self.calls,
                of=len(self._doing) + 1 + _SECOND_CALLS,
                doing=doing,
                sent=self.sent,
                added=self.added[-1],
                median=statistics.median(self.added),
                held=count_holdings(self._folder),
                through=DemoBill.of(self._through.upstream.bill).dollars,
                direct=DemoBill.of(self._bare.upstream.bill).dollars,
            )
        )
        return heard.session

    def give_up_on(self, path: str, body: bytes) -> None:
        """Make a call that will break off."""
        try:
            self._through.call(path, body)
        except (OSError, http.client.HTTPException):
            return
        raise HotsetError("the proxy answered although it was killed; please report this")


def _kill_in_mid_call(
    agent: DemoAgent,
    body: bytes,
    *,
    script: RecordedProvider,
    upstream: ScriptedUpstream,
    proxy: ProxyProcess,
    screen: Screen,
) -> float:
    script.delay = _HELD_SECONDS
    calling = threading.Thread(target=agent.give_up_on, args=(_ANTHROPIC, body))
    seen = len(upstream.requests)
    calling.start()
    upstream.wait_for_requests(seen + 1)
    screen.say(f"Call {agent.calls + 1} is under way: kill -9 {proxy.pid}")
    proxy.kill()
    calling.join()
    script.delay = 0.0
    begun = time.perf_counter()
    proxy.start()
    return time.perf_counter() - begun


def _edit_last_message(body: bytes) -> bytes:
    """The same request with another text at its end; a tool's result stays where the provider wants
    it."""
    request: dict[str, Any] = msgspec.json.decode(body)
    *before, last = request["messages"]
    content = (
        last["content"]
        if isinstance(last["content"], list)
        else [{"type": "text", "text": last["content"]}]
    )
    aside = {"type": "text", "text": "Wait. Tell me first what you know so far."}
    return msgspec.json.encode(
        {**request, "messages": [*before, {**last, "content": [*content, aside]}]}
    )


def _is_recalled_exactly(folder: Path, held: Holdings, recording: Recording) -> bool:
    if held.largest is None:
        return False
    command = [sys.executable, "-m", "hotset", "recall", held.largest.id, "--data", str(folder)]
    recalled = subprocess.run(command, capture_output=True, check=True).stdout
    return recalled in {
        step.output.encode() for step in recording.steps if isinstance(step, RecordedResult)
    }


def _describe_reply(reply: RecordedReply) -> str:
    return ", ".join(call.name for call in reply.calls) or "answers the user"


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
"""Marks a folder as the demonstration's own, which may be emptied."""


@dataclass(frozen=True, slots=True)
class CallTiming:
    """One call, as its client saw it."""

    status: int
    seconds: float
    session: str
    """The proxy's session id; empty without a proxy."""


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
        """Raises OSError or HTTPException if the connection breaks; the next call opens a new
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
            response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        return CallTiming(
            status=response.status,
            seconds=time.perf_counter() - begun,
            session=response.headers.get("x-hotset-session", ""),
        )

    def close(self) -> None:
        self._connection.close()


class RecordedProvider:
    """Answers each request with the recorded reply at that point, however often it is asked.

    At a few points the model first asks for something that was shortened; hotset answers that.
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
    """Number of replies in a history: consecutive assistant messages are one reply."""
    items = body.get("messages") or body.get("input") or []
    ours = [
        item.get("role") == "assistant" or item.get("type") in _ASSISTANT_ITEMS
        for item in items
        if isinstance(item, dict)
    ]
    return sum(mine and not before for before, mine in pairwise((False, *ours)))


class ProxyProcess:
    """`hotset up` as a child process. It ends when this process does, in any way: we hold its
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

    def make_link(self) -> str:
        """A link to the dashboard of this session; it works once."""
        address = read_note(self._folder)
        assert address is not None
        return make_link(address)

    def start(self) -> None:
        """Returns when it serves; after a kill on the same port, so that clients need no change."""
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
        announced = decode(ready.read_bytes(), dict[str, str | int])
        self.root = str(announced["anthropic_base_url"])
        self._port = urlsplit(self.root).port or 0

    def kill(self) -> None:
        """kill -9: it cannot write anything more."""
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
    """The demonstration's own folder, emptied. A folder without our mark is never touched."""
    if folder.exists() and not (folder / _MARK).exists() and any(folder.iterdir()):
        raise HotsetError(
            f"{folder} holds something that is not a demonstration's; choose another folder "
            f"with --data"
        )
    shutil.rmtree(folder, ignore_errors=True)
    private_folder(folder)
    (folder / _MARK).touch(0o600)
    return folder
