"""A proxy that is killed under traffic: what its clients said and saw is kept, and they go on where
they were."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hotset.nouns.page import Kind
from hotset.nouns.turn import Outcome, Turn
from hotset.store.port import Where
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.proxy.address import Address, read_note
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.upstream.faults import Drip, Gate, Hold
from hotset.testing.upstream.script import Received
from tests.campaign import sample
from tests.proxy.talking import tools
from tests.proxy.wire import DIALECTS, PATHS, question
from tests.waiting import ask, wait_until

PATIENCE = 30.0
_KILLS = 6
_WORK = 10
"""What each agent says and hears at least."""


@dataclass
class Up:
    """`hotset up` as a user starts it, a process of its own; may be killed and started again in its
    place."""

    folder: Path
    upstream: str
    process: subprocess.Popen[bytes] | None = None
    port: int = 0
    started: list[float] = field(default_factory=list)
    """What each start took, from nothing to serving: seconds of its own work, for the machine may
    be busy."""
    environment: dict[str, str] = field(default_factory=dict)

    def start(self) -> Address:
        ready, log = self.folder.with_suffix(".ready"), self.folder.with_suffix(".log")
        ready.unlink(missing_ok=True)
        command = [
            sys.executable,
            "-m",
            "hotset",
            "up",
            "--quiet",
            "--port",
            str(self.port),
            "--data",
            str(self.folder),
        ]
        command += [
            "--openai-url",
            f"{self.upstream}/v1",
            "--anthropic-url",
            self.upstream,
            "--ready-file",
            str(ready),
        ]
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=out, env={**os.environ, **self.environment}
            )
        wait_until(lambda: ready.exists() or self.process.poll() is not None)
        assert ready.exists(), log.read_text()
        self.started.append(_worked(self.process.pid))
        self.port = self.address.port
        return self.address

    @property
    def address(self) -> Address:
        note = read_note(self.folder)
        assert note is not None
        return note

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self) -> int:
        """Asks it to end, as Ctrl-C and service managers do, and gives its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def settle(self) -> None:
        """Returns when everything that went through so far is kept."""
        wait_until(lambda: (status := ask(self.address)) is not None and not status["keeping"])


@contextlib.contextmanager
def serving(folder: Path, upstream: str, **environment: str) -> Iterator[Up]:
    up = Up(folder, upstream, environment=environment)
    try:
        up.start()
        yield up
    finally:
        if up.process is not None and up.process.poll() is None:
            up.kill()


def _worked(pid: int) -> float:
    """The seconds of a processor that a process has had so far; none where the system does not
    tell."""
    stat = Path(f"/proc/{pid}/stat")
    user, system = stat.read_text().rpartition(")")[2].split()[11:13] if stat.exists() else (0, 0)
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@dataclass
class Agent:
    """A client that resends its whole history with each question and tries a call that failed
    again, as agents do."""

    name: str
    dialect: str
    keyed: bool
    """It names its session in a header."""
    words: list[str] = field(default_factory=list)
    """What it asked and what it was told, in turns."""
    retries: int = 0
    degraded: int = 0

    def work(self, up: Up, over: threading.Event) -> None:
        while not over.is_set():
            self.words.append(
                f"{self.name} asks question {len(self.words) // 2}: " + "why, and how? " * 40
            )
            self.words.append(self._answer(up))

    def _answer(self, up: Up) -> str:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return self._call(up.address)
            except (OSError, http.client.HTTPException):
                assert time.monotonic() < deadline, f"{self.name} could not go on"
                self.retries += 1
                time.sleep(0.02)  # a client's pause between two tries

    def _call(self, address: Address) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=PATIENCE)
        try:
            body = question(self.dialect, *self.words, stream=len(self.words) % 4 != 1)
            connection.request(
                "POST", f"/{address.token}{PATHS[self.dialect]}", body, self._headers()
            )
            response = connection.getresponse()
            got = response.read()
        finally:
            connection.close()
        assert response.status == 200, got
        self.degraded += response.getheader("x-hotset-degraded") is not None
        # The script says every reply in one piece, so that its text stands whole on the wire.
        found = re.search(rb"reply \d+ to [^\"]*?, in full", got)
        assert found, got
        return found.group().decode()

    def _headers(self) -> dict[str, str]:
        key = {"x-session-id": self.name} if self.keyed else {}
        return {"content-type": "application/json", "user-agent": f"{self.name}/1.0", **key}


def _agents() -> list[Agent]:
    """Two in each dialect, of which one names its session."""
    return [
        Agent(f"agent-{n}-{dialect}", dialect, keyed=n % 2 == 0)
        for n in range(2)
        for dialect in DIALECTS
    ]


def _said(agents: list[Agent]) -> int:
    return sum(len(agent.words) for agent in agents)


def _unhurried(request: Received) -> Say:
    """Long enough for a kill to fall into any part of a call."""
    text = f"reply {request.index} to {len(request.body)} bytes: " + "because. " * 30 + ", in full"
    return Say(text, chunks=1, fault=Drip(0.004))


@pytest.mark.row("V1")
@pytest.mark.parametrize("seed", range(1, 1 + sample(1, 8)))
@pytest.mark.slow
def test_whatever_an_agent_said_and_saw_is_kept_through_kills_at_any_moment(tmp_path, seed):
    chance = random.Random(seed)
    agents = _agents()
    names, over = {agent.name for agent in agents}, threading.Event()
    with (
        ScriptedUpstream(_unhurried) as upstream,
        serving(tmp_path / "data", upstream.url) as up,
        ThreadPoolExecutor(len(agents)) as pool,
    ):
        at_work = [pool.submit(agent.work, up, over) for agent in agents]
        try:
            # A kill within the very first turn is a case of its own, below.
            wait_until(
                lambda: (
                    {turn.agent for turn in _turns(up.folder) if turn.outcome is Outcome.DONE}
                    == names
                )
            )
            for number in range(_KILLS):
                if (
                    number % 2
                ):  # into work that is well under way; the others may fall into the very first call
                    said = _said(agents)
                    wait_until(lambda said=said: _said(agents) > said + len(agents))
                time.sleep(
                    chance.uniform(0.05, 0.6)
                )  # the moment of the kill is what the seed chooses
                up.kill()
                up.start()
            wait_until(lambda: min(len(agent.words) for agent in agents) > _WORK)
        finally:
            over.set()
        for work in at_work:
            work.result(PATIENCE)
        up.settle()
        assert up.stop() == 0

    assert sum(agent.retries for agent in agents) >= _KILLS
    assert sum(agent.degraded for agent in agents) == 0
    assert statistics.median(up.started) < 3, up.started
    with SqliteStore.open(tmp_path / "data") as store:
        assert list(store.verify()) == []
        kept = {
            (page.agent, page.kind, store.content(page.digest)) for page in store.pages(Where())
        }
        turns = [turn for session in store.sessions() for turn in store.turns(session.id)]
    for agent in agents:
        said = {(agent.name, Kind.PROMPT, text.encode()) for text in agent.words[::2]}
        heard = {(agent.name, Kind.RESPONSE, text.encode()) for text in agent.words[1::2]}
        assert said <= kept
        assert heard <= kept
        assert len({turn.session for turn in turns if turn.agent == agent.name}) == 1, _story(
            agent, turns
        )


_ENDINGS = {
    "anthropic": re.compile(rb'"stop_reason": ?"\w+"'),
    "openai-chat": re.compile(rb'"finish_reason": ?"\w+"'),
    "openai-responses": re.compile(rb'"type": ?"response\.completed"'),
}
"""By this a client knows how a stream ended."""


@dataclass
class OneShot:
    """A client that never comes back: each call is a conversation of its own, so nothing that is
    lost is ever sent again."""

    number: int
    dialect: str
    stream: bool
    tools: bool
    """It has tools, so that ours are offered beside them and the reply passes through our hands."""
    seen: dict[str, str] = field(default_factory=dict)
    """The prompts whose reply it saw end, and the reply."""
    unplaced: int = 0
    degraded: int = 0

    def work(self, up: Up, over: threading.Event, ended: threading.Semaphore) -> None:
        for call in itertools.count():
            if over.is_set():
                return
            try:
                self._call(
                    up.address,
                    f"client {self.number} asks question {call} once: " + "why, and how? " * 40,
                    ended,
                )
            except (OSError, http.client.HTTPException):
                time.sleep(
                    0.05
                )  # a client's pause after a failure; the proxy is just starting again

    def _call(self, address: Address, prompt: str, ended: threading.Semaphore) -> None:
        more = {"tools": tools(self.dialect, "read_file")} if self.tools else {}
        connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=PATIENCE)
        try:
            body = question(self.dialect, prompt, stream=self.stream, **more)
            connection.request(
                "POST",
                f"/{address.token}{PATHS[self.dialect]}",
                body,
                {"content-type": "application/json"},
            )
            response = connection.getresponse()
            got = self._until_the_end(response)
        finally:
            connection.close()
        found = re.search(rb"reply \d+ to [^\"]*?, in full", got)
        assert found, got
        self.seen[prompt] = found.group().decode()
        ended.release()
        self.unplaced += response.getheader("x-hotset-session") is None
        self.degraded += response.getheader("x-hotset-degraded") is not None or b": hotset: " in got

    def _until_the_end(self, response: http.client.HTTPResponse) -> bytes:
        if not self.stream:
            return response.read()
        got = b""
        while not _ENDINGS[self.dialect].search(got):
            piece = response.read1(65536)
            if not piece:
                raise http.client.IncompleteRead(got)
            got += piece
        return got


@pytest.mark.row("V1")
@pytest.mark.parametrize("seed", range(1, 1 + sample(1, 5)))
@pytest.mark.slow
def test_a_reply_that_a_client_saw_end_outlives_a_kill_right_behind_it(tmp_path, seed):
    """40 kills each, 200 in the campaign. Every other one falls within 3 ms of the end that a
    client saw."""
    chance = random.Random(seed)
    over, ended = threading.Event(), threading.Semaphore(0)
    forms = [(dialect, stream) for stream in (True, False) for dialect in DIALECTS]
    clients = [OneShot(n, *forms[(n + seed) % len(forms)], tools=n % 2 == 1) for n in range(5)]
    with (
        ScriptedUpstream(_unhurried) as upstream,
        serving(tmp_path / "data", upstream.url) as up,
        ThreadPoolExecutor(len(clients)) as pool,
    ):
        at_work = [pool.submit(client.work, up, over, ended) for client in clients]
        try:
            for number in range(sample(5, 40)):
                while ended.acquire(blocking=False):
                    pass
                for _ in range(chance.randrange(1, 12)):
                    assert ended.acquire(timeout=PATIENCE), (
                        up.process.poll(),
                        [work for work in at_work if work.done()],
                    )
                time.sleep(
                    chance.uniform(0, 0.003 if number % 2 else 0.1)
                )  # the moment of the kill is what the seed chooses
                up.kill()
                up.start()
        finally:
            over.set()
        for work in at_work:
            work.result(PATIENCE)
        assert up.stop() == 0

    seen = {prompt: reply for client in clients for prompt, reply in client.seen.items()}
    with SqliteStore.open(tmp_path / "data") as store:
        assert list(store.verify()) == []
        kept = {(page.kind, store.content(page.digest)) for page in store.pages(Where())}
    lost_prompts = [prompt for prompt in seen if (Kind.PROMPT, prompt.encode()) not in kept]
    lost_replies = [reply for reply in seen.values() if (Kind.RESPONSE, reply.encode()) not in kept]
    found = (
        len(seen),
        len(lost_prompts),
        len(lost_replies),
        sum(client.unplaced for client in clients),
    )
    print("replies seen to end, prompts lost, replies lost, replies without a session:", found)
    assert found[1:] == (0, 0, sum(client.degraded for client in clients)), found


@pytest.mark.slow
def test_agents_whose_first_reply_was_cut_off_by_a_kill_go_on_in_their_sessions(tmp_path):
    gate, over, agents = Gate(), threading.Event(), _agents()

    def script(request: Received) -> Say:
        held = Hold(gate) if request.index < len(agents) else None
        return Say(f"reply {request.index} to it, in full", chunks=1, fault=held)

    with (
        ScriptedUpstream(script) as upstream,
        serving(tmp_path / "data", upstream.url) as up,
        ThreadPoolExecutor(len(agents)) as pool,
    ):
        at_work = [pool.submit(agent.work, up, over) for agent in agents]
        try:
            upstream.wait_for_requests(len(agents))
            wait_until(lambda: len(_turns(tmp_path / "data")) == len(agents))
            up.kill()
            gate.open()
            up.start()
            wait_until(lambda: min(len(agent.words) for agent in agents) > 2 * 2)
        finally:
            over.set()
        for work in at_work:
            work.result(PATIENCE)
        up.settle()
        assert up.stop() == 0

    assert all(agent.retries for agent in agents)
    turns = _turns(tmp_path / "data")
    sessions = {
        agent.name: {turn.session for turn in turns if turn.agent == agent.name} for agent in agents
    }
    for agent in agents:
        assert len(sessions[agent.name]) == 1, _story(agent, turns)
    assert len(set.union(*sessions.values())) == len(agents)


@pytest.mark.row("V1")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.rest_slow
def test_a_stream_that_ends_while_the_proxy_is_asked_to_stop_is_whole_and_kept(tmp_path, dialect):
    gate = Gate()
    script = [Say("the first words and then the rest of it", fault=Hold(gate, events=6))]
    with (
        ScriptedUpstream(script) as upstream,
        serving(tmp_path / "data", upstream.url) as up,
        _streaming(up.address, dialect) as response,
    ):
        got = _read_until(response, b"words")
        up.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not _accepts(up.port))
        gate.open()
        got += response.read()
        assert up.process.wait(PATIENCE) == 0

    assert b"rest" in got
    assert read_note(tmp_path / "data") is None
    [turn] = _turns(tmp_path / "data")
    assert turn.outcome is Outcome.DONE
    with SqliteStore.open(tmp_path / "data") as store:
        assert store.content(turn.reply) == got
        assert list(store.verify()) == []


@pytest.mark.row("V1")
@pytest.mark.slow
def test_a_stream_that_does_not_end_is_cut_when_the_proxy_stops_and_what_came_of_it_is_kept(
    tmp_path,
):
    script = [Say("the first words and then the rest of it", fault=Hold(Gate(), events=6))]
    with (
        ScriptedUpstream(script) as upstream,
        serving(tmp_path / "data", upstream.url) as up,
        _streaming(up.address, "anthropic") as response,
    ):
        got = _read_until(response, b"words")
        assert up.stop() == 0
        with pytest.raises((http.client.HTTPException, OSError)):
            response.read()

    assert read_note(tmp_path / "data") is None
    [turn] = _turns(tmp_path / "data")
    assert turn.outcome in (Outcome.LEFT, Outcome.BROKEN)
    with SqliteStore.open(tmp_path / "data") as store:
        assert store.content(turn.reply).startswith(got)


@contextlib.contextmanager
def _streaming(address: Address, dialect: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=PATIENCE)
    body = question(dialect, "hello", stream=True)
    connection.request(
        "POST", f"/{address.token}{PATHS[dialect]}", body, {"content-type": "application/json"}
    )
    response = connection.getresponse()
    try:
        assert response.status == 200
        yield response
    finally:
        response.close()
        connection.close()


def _read_until(response: http.client.HTTPResponse, mark: bytes) -> bytes:
    got = b""
    while mark not in got:
        piece = response.read1(65536)
        assert piece, "the stream ended too early"
        got += piece
    return got


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
    except OSError:
        return False
    return True


def _turns(folder: Path) -> list[Turn]:
    with SqliteStore.open(folder) as store:
        return [turn for session in store.sessions() for turn in store.turns(session.id)]


def _story(agent: Agent, turns: list[Turn]) -> str:
    """Where the turns of an agent went, for whoever reads the failure."""
    return "; ".join(
        f"{turn.session} {turn.number} {turn.outcome}" for turn in turns if turn.agent == agent.name
    )
