"""The show: the recorded session goes through the real proxy, which is killed on the way; then we
look at what is left."""

from __future__ import annotations

import http.client
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from hotset.config import listed_prices
from hotset.errors import HotsetError
from hotset.nouns.message import DialectName, Usage
from hotset.nouns.price import Prices
from hotset.testing import ScriptedUpstream
from hotset.testing.demo.holdings import Holdings, look
from hotset.testing.demo.stage import (
    CallTiming,
    DemoClient,
    ProxyProcess,
    RecordedProvider,
    replies_in,
)
from hotset.testing.demo.view import Board, Screen
from hotset.testing.recording import RecordedReply, RecordedResult, Recording, requests, session
from hotset.testing.recording.replay import MODELS
from hotset.window.price import dollars, price_of

_ANTHROPIC, _RESPONSES = "/v1/messages", "/v1/responses"
_WATCHING_SECONDS = 9.0  # of pauses; the calls themselves and the restart take about six more
_SECOND_CALLS = 6
_HELD_SECONDS = 1.0
"""How long the provider takes over the call during which the proxy is killed."""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What came of it: measured, all of it."""

    calls: int
    sent: int
    added: tuple[float, ...]
    """Seconds that the proxy added, call by call."""
    heard: int
    """Replies that the agent had heard out when the proxy was killed."""
    found: int
    """How many of those were on disk when it was back."""
    down: float
    """Seconds from the kill until it served again."""
    sessions: tuple[str, ...]
    """The sessions into which the proxy put the calls of the recording: one, if it recognised the
    agent again."""
    held: Holdings
    byte_equal: bool
    """The largest tool result came back from `hotset recall` as the agent had sent it."""
    through: DemoBill
    direct: DemoBill
    """What the provider would have charged for the recording, with hotset and without."""
    looks: int
    """How often the model asked to have something back that it had been shown only in part."""
    missed: int
    """How often it did not get it."""


@dataclass(frozen=True, slots=True)
class DemoBill:
    """What a provider with a prompt cache would have charged."""

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
        found = look(folder).done
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
        agent.call(_ANTHROPIC, _edited(bodies[middle]), "another branch")
        screen.say("Another agent, in the Responses dialect, beside it.")
        for body in islice(requests(recording, DialectName.OPENAI_RESPONSES), _SECOND_CALLS):
            agent.call(_RESPONSES, body, "a second session")
        held = look(folder)
    return DemoResult(
        calls=agent.calls,
        sent=agent.sent,
        added=tuple(agent.added),
        heard=heard,
        found=found,
        down=down,
        sessions=tuple(agent.sessions),
        held=held,
        byte_equal=_byte_equal(folder, held, recording),
        through=through,
        direct=direct,
        looks=len(script.asked),
        missed=sum("[hotset: retrieved" not in got for got in script.got)
        + len(script.asked)
        - len(script.got),
    )


@dataclass(frozen=True, slots=True)
class DemoSide:
    """One way to the provider, with a provider of its own at its end."""

    caller: DemoClient
    upstream: ScriptedUpstream
    script: RecordedProvider

    def call(self, path: str, body: bytes) -> CallTiming:
        self.script.at = replies_in(msgspec.json.decode(body))
        return self.caller.call(path, body)


class DemoAgent:
    """Plays the agent's side, and keeps count of what it sees."""

    def __init__(
        self, folder: Path, screen: Screen, through: DemoSide, bare: DemoSide, recording: Recording
    ) -> None:
        self._folder = folder
        self._screen = screen
        self._through = through
        self._bare = bare
        self._doing = [_doing(reply) for reply in recording.replies]
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
        """Makes a call through the proxy, and the same past it, so that the difference can be
        told."""
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
                held=look(self._folder),
                through=DemoBill.of(self._through.upstream.bill).dollars,
                direct=DemoBill.of(self._bare.upstream.bill).dollars,
            )
        )
        return heard.session

    def give_up_on(self, path: str, body: bytes) -> None:
        """A call that will break off."""
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


def _edited(body: bytes) -> bytes:
    """The same request with something else said at its end; a tool's result stays where the
    provider wants it."""
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


def _byte_equal(folder: Path, held: Holdings, recording: Recording) -> bool:
    if held.largest is None:
        return False
    command = [sys.executable, "-m", "hotset", "recall", held.largest.id, "--data", str(folder)]
    recalled = subprocess.run(command, capture_output=True, check=True).stdout
    return recalled in {
        step.output.encode() for step in recording.steps if isinstance(step, RecordedResult)
    }


def _doing(reply: RecordedReply) -> str:
    return ", ".join(call.name for call in reply.calls) or "answers the user"
