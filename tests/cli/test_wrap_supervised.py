"""`hotset wrap` while its proxy is killed, and what it says at the end: real processes, a scripted
provider."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hotset.store.port import Where
from hotset.store.sqlite import SqliteStore
from hotset.testing import Say, ScriptedUpstream
from tests.cli.conftest import Desk, sending_to
from tests.cli.test_serving import proxy_pid, python
from tests.waiting import lives, wait_until

AGENT = """
import json, os, pathlib, sys, time, urllib.error, urllib.request
turns, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
headers = {"content-type": "application/json", "x-api-key": "k", "user-agent": "fake-agent/1.0"}
said = []

def pause(seconds):
    if (folder / "stop").exists() or not folder.exists():
        sys.exit(3)
    time.sleep(seconds)

for turn in range(turns):
    said.append({"role": "user", "content": f"question {turn}"})
    body = json.dumps({"model": "claude-test", "max_tokens": 50, "messages": said}).encode()
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=120) as reply:
                said.append({"role": "assistant", "content": json.load(reply)["content"]})
                break
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > deadline:
                sys.exit(3)
            pause(0.05)
    (folder / f"turn-{turn}").touch()
    while not (folder / f"go-{turn}").exists():
        pause(0.01)
"""  # noqa: E501
"""Asks one question after the other, each when its `go` file is there, and tries again while the
proxy is down. It outlives a wrap that is killed, so it ends by itself when its `stop` file is there
or its folder is gone."""


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(
        lambda request: Say(f"answer to {len(request.json()['messages'])} messages")
    ) as scripted:
        yield scripted


@pytest.fixture
def to_upstream(upstream: ScriptedUpstream) -> dict[str, str]:
    """With a port that no process takes while the proxy is down: no other test asks for it, and no
    system hands it out."""
    for port in random.Random(os.getpid()).sample(range(20_000, 32_000), 100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return {**sending_to(upstream), "HOTSET_PORT": str(port)}
    raise AssertionError("no port is free")


class Conversation:
    """A wrapped agent that waits behind each turn."""

    def __init__(self, desk: Desk, env: dict[str, str], folder: Path, turns: int) -> None:
        folder.mkdir()
        self._folder, self._turns = folder, turns
        with (desk.home / "wrap.err").open("wb") as err:
            self.wrap = desk.start(
                "wrap", *python(AGENT, str(turns), str(folder)), env=env, stderr=err
            )
        self._err = desk.home / "wrap.err"

    def reach(self, turn: int) -> None:
        """Returns when this turn was answered; the ones before are let go."""
        for before in range(turn):
            (self._folder / f"go-{before}").touch()
        wait_until(lambda: (self._folder / f"turn-{turn}").exists() or self.wrap.poll() is not None)
        assert (self._folder / f"turn-{turn}").exists(), self.said()

    def end(self) -> int:
        for turn in range(self._turns):
            (self._folder / f"go-{turn}").touch()
        return self.wrap.wait(120)

    def stop(self) -> None:
        """Ends the agent, also one whose wrap was killed, and the wrap."""
        (self._folder / "stop").touch()
        if self.wrap.poll() is None:
            self.wrap.kill()
            self.wrap.wait(120)

    def said(self) -> str:
        return self._err.read_text()


@pytest.fixture
def conversation(desk: Desk, to_upstream, tmp_path: Path):
    begun: list[Conversation] = []

    def begin(turns: int = 3, **env: str) -> Conversation:
        begun.append(
            Conversation(desk, {**to_upstream, **env}, tmp_path / f"agent-{len(begun)}", turns)
        )
        return begun[-1]

    yield begin
    for each in begun:
        each.stop()


def settled(desk: Desk) -> None:
    """Returns when the proxy has everything on disk."""
    wait_until(
        lambda: (
            (status := desk.run("status", "--json").json()["proxy"]) is not None
            and not status["keeping"]
        )
    )


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not lives(pid))


def said(turns: int) -> list[str]:
    return [
        text
        for turn in range(turns)
        for text in (f"question {turn}", f"answer to {2 * turn + 1} messages")
    ]


def kept(desk: Desk) -> list[str]:
    """Everything that was asked and answered, in the order in which it was kept."""
    with closing(SqliteStore.open(desk.data)) as store:
        return [store.content(page.digest).decode() for page in store.pages(Where())]


@pytest.mark.row("X2")
def test_a_proxy_that_is_killed_is_started_again_at_the_same_address_and_the_agent_goes_on(
    desk: Desk, conversation, upstream, tmp_path
):
    agent = conversation(turns=3)
    agent.reach(0)
    first, note = proxy_pid(desk), json.loads((desk.data / "proxy.json").read_bytes())
    settled(desk)
    kill(first)
    agent.reach(1)
    second, again = proxy_pid(desk), json.loads((desk.data / "proxy.json").read_bytes())
    settled(desk)
    os.kill(second, signal.SIGTERM)  # however it ends
    wait_until(lambda: not lives(second))
    agent.reach(2)
    third = proxy_pid(desk)

    assert agent.end() == 0
    assert len({first, second, third}) == 3
    assert (again["port"], again["token"]) == (note["port"], note["token"])
    assert kept(desk) == said(3)
    assert len(upstream.requests) == 3, "nothing is asked twice"
    assert "started again" in agent.said()
    wait_until(lambda: not lives(third))
    assert not [
        path.name
        for path in desk.data.iterdir()
        if path.name.startswith(("wrapped-", ".ready", "proxy.json"))
    ]


@contextmanager
def serving(desk: Desk, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """`hotset up` in another terminal."""
    ready = desk.home / "ready.json"
    with (desk.home / "up.log").open("wb") as log:
        up = desk.start(
            "up", "--port", "0", "--ready-file", str(ready), env=env, stdout=log, stderr=log
        )
    try:
        wait_until(lambda: ready.exists() or up.poll() is not None)
        yield up
    finally:
        if up.poll() is None:
            up.terminate()
        up.wait(120)


@pytest.mark.slow
def test_a_proxy_that_wrap_found_and_that_goes_away_is_replaced_by_its_own(
    desk: Desk, conversation, to_upstream
):
    with serving(desk, to_upstream) as up:
        agent = conversation(turns=2)
        agent.reach(0)
        note = json.loads((desk.data / "proxy.json").read_bytes())
        assert note["pid"] == up.pid
        settled(desk)
        up.kill()
        up.wait(120)
        agent.reach(1)
        again = json.loads((desk.data / "proxy.json").read_bytes())

        assert agent.end() == 0
        assert again["pid"] != up.pid
        assert (again["port"], again["token"]) == (note["port"], note["token"])
        assert kept(desk) == said(2)
        wait_until(lambda: not lives(again["pid"]))


@pytest.mark.slow
def test_two_wraps_that_shared_a_proxy_share_the_one_that_replaces_it(
    desk: Desk, conversation, to_upstream, upstream
):
    first, second = conversation(turns=2), None
    first.reach(0)
    second = conversation(turns=2)
    second.reach(0)
    settled(desk)
    kill(proxy_pid(desk))
    first.reach(1)
    second.reach(1)
    pid = proxy_pid(desk)

    assert (first.end(), second.end()) == (0, 0)
    assert "could not" not in first.said() + second.said()
    assert len(upstream.requests) == 4
    wait_until(lambda: not lives(pid))


@pytest.mark.slow
def test_a_proxy_that_cannot_be_started_again_is_told_at_once_and_in_the_exit_code(
    desk: Desk, conversation
):
    agent = conversation(turns=1, HOTSET_PATIENCE="1")  # what has the port does not answer
    agent.reach(0)
    settled(desk)
    pid, port = proxy_pid(desk), json.loads((desk.data / "proxy.json").read_bytes())["port"]
    with taken(port, pid):
        wait_until(lambda: "could not be started again" in agent.said())
        assert agent.wrap.poll() is None, "the agent is left alone"
        assert f"port {port}" in agent.said()

        assert agent.end() != 0


@contextmanager
def taken(port: int, pid: int) -> Iterator[None]:
    """Another program has the port of the proxy, which is killed."""
    other = socket.socket()
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 120
    while True:  # the moment that the port is free
        try:
            other.bind(("127.0.0.1", port))
            break
        except OSError:
            assert time.monotonic() < deadline
    other.listen()
    with other:
        yield


@pytest.mark.slow
def test_a_crash_loop_is_bounded(desk: Desk, conversation):
    agent = conversation(turns=1)
    agent.reach(0)
    settled(desk)
    killed = []
    while "could not be started again" not in agent.said():
        pid = proxy_pid(desk)
        if pid not in killed and lives(pid):
            kill(pid)
            killed.append(pid)
        assert len(killed) < 20
        time.sleep(0.02)

    assert 3 <= len(killed) <= 8
    assert agent.end() != 0


@pytest.mark.slow
def test_no_proxy_outlives_a_wrap_that_is_killed_after_it_started_one_again(
    desk: Desk, conversation
):
    agent = conversation(turns=2)
    agent.reach(0)
    kill(proxy_pid(desk))
    agent.reach(1)
    pid = proxy_pid(desk)

    agent.wrap.kill()
    agent.wrap.wait(120)

    wait_until(lambda: not lives(pid))


@pytest.mark.slow
def test_with_nothing_kept_it_says_so_and_what_doctor_finds_and_that_an_unknown_program_got_only_variables(  # noqa: E501
    desk: Desk, to_upstream
):
    (desk.home / ".claude").mkdir()
    settings = {
        "env": {
            "ANTHROPIC_BASE_URL": "https://gateway.example.com",
            "ANTHROPIC_AUTH_TOKEN": "secret",
        }
    }
    (desk.home / ".claude" / "settings.json").write_text(json.dumps(settings))
    program = Path(sys.executable).name

    ran = desk.run("wrap", *python("pass"), env=to_upstream)

    assert ran.code == 0
    begin, end = ran.err.split("no call was kept: ")
    assert f"{program} is no agent that hotset knows: only its environment was set" in begin
    assert all(
        name in begin for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL")
    )
    assert end.startswith(f"nothing arrived from {program}\n")
    assert "it does not read OPENAI_BASE_URL, OPENAI_API_BASE or ANTHROPIC_BASE_URL" in end
    assert "settings.json sends it to https://gateway.example.com" in end
    assert "hotset doctor" in end
    assert "secret" not in ran.err


def test_a_call_that_arrives_and_is_not_kept_is_told_from_none(desk: Desk, to_upstream):
    script = "import os, urllib.request as r; r.urlopen(os.environ['OPENAI_BASE_URL'] + '/models')"

    ran = desk.run("wrap", *python(script), env=to_upstream)

    assert "no call was kept: 1 call arrived" in ran.err
    assert "does not read" not in ran.err


@pytest.mark.slow
def test_a_wrapped_pi_gets_the_extension_that_sends_it_to_the_proxy(
    desk: Desk, to_upstream, tmp_path
):
    pi = tmp_path / "pi"
    pi.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\nprint(sys.argv[1], "
        f"pathlib.Path(sys.argv[2]).read_text(), sys.argv[3:])"
    )
    pi.chmod(0o700)

    ran = desk.run("wrap", str(pi), "-p", "hi", env=to_upstream)

    assert ran.out.startswith("-e ")
    assert "registerProvider" in ran.out
    assert ran.out.rstrip().endswith("['-p', 'hi']")
