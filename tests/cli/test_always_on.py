"""`hotset service`: one process, one port, every project by its own token."""

from __future__ import annotations

import http.client
import json
import plistlib
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hotset.config import load
from hotset.surfaces.cli.always_on import autostart_of
from tests.cli.conftest import Desk
from tests.cli.test_serving import ASK, python
from tests.proxy.wire import Answer
from tests.waiting import lives, wait_until


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port: int = trial.getsockname()[1]
    return port


def at_home(desk: Desk) -> Desk:
    """The same desk with its data where every user's is, and no service manager to start things."""
    bare = desk.home / "bin"
    bare.mkdir(exist_ok=True)
    for name in ("git", "nice"):
        if not (bare / name).exists() and (found := shutil.which(name)):
            (bare / name).symlink_to(found)
    env = {name: value for name, value in desk.env.items() if name != "HOTSET_DATA"}
    env |= {"HOTSET_HOME": str(desk.home / "hotset"), "PATH": str(bare)}
    return replace(desk, data=desk.home / "hotset", env=env)


def another_project(desk: Desk, name: str) -> Desk:
    project = desk.project.with_name(name)
    (project / ".git").mkdir(parents=True)
    return replace(desk, project=project)


@contextmanager
def running(desk: Desk, env: Mapping[str, str], *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """`hotset service run` in a process of its own, until the block ends."""
    with (desk.home / "service.log").open("ab") as log:
        process = desk.start("service", "run", *flags, env=env, stdout=log, stderr=log)
    try:
        wait_until(lambda: process.poll() is not None or desk.run("service", "status").code == 0)
        assert process.poll() is None, (desk.home / "service.log").read_text()
        yield process
    finally:
        process.terminate()
        process.wait(120)


def installed(desk: Desk) -> int:
    port = free_port()
    assert desk.run("service", "install", "--port", str(port)).code in (0, 1)
    return port


def ask(root: str, text: str, headers: Mapping[str, str] | None = None) -> int:
    body = {
        "model": "claude-test",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": text}],
    }
    sent = {"content-type": "application/json", "x-api-key": "k", **(headers or {})}
    request = urllib.request.Request(f"{root}/v1/messages", json.dumps(body).encode(), sent)
    try:
        with urllib.request.urlopen(request) as reply:
            reply.read()
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def claude_root(desk: Desk) -> str:
    """The base URL that Claude Code was given for the project."""
    settings = json.loads((desk.project / ".claude" / "settings.local.json").read_text())
    root: str = settings["env"]["ANTHROPIC_BASE_URL"]
    return root


def fetch(url: str, cookie: str = "") -> Answer:
    """The answer as it comes: redirects are not followed."""
    parts = urlsplit(url)
    headers = {"cookie": cookie} if cookie else {}
    with closing(http.client.HTTPConnection("127.0.0.1", parts.port, timeout=120)) as connection:
        connection.request("GET", parts.path, headers=headers)
        reply = connection.getresponse()
        return Answer(reply.status, reply.getheaders(), reply.read())


def titles(desk: Desk, *flags: str) -> list[tuple[str, str]]:
    kept = desk.run("sessions", "--json", *flags).json()
    return [(each["session"]["title"], each["session"]["agent"]) for each in kept]


def state(desk: Desk) -> dict[str, Any]:
    found: dict[str, Any] = desk.run("service", "status", "--json").json()
    return found


@pytest.mark.slow
def test_one_process_keeps_the_calls_of_each_project_apart_by_the_token_that_connect_wrote(
    desk: Desk, to_upstream
):
    one = at_home(desk)
    two = another_project(one, "another")
    port = installed(one)
    for each in (one, two):
        assert each.run("connect", "claude", "--proxy").code == 0
    one.run("connect", "codex", "--proxy")

    with running(one, to_upstream) as process:
        assert ask(claude_root(one), "of the first") == 200
        assert ask(claude_root(two), "of the second") == 200
        codex = (one.home / ".codex" / "config.toml").read_text().split('"')[1]
        assert ask(codex.removesuffix("/v1"), "of no project") == 200
        assert ask(f"http://127.0.0.1:{port}/{'x' * 32}", "of a stranger") == 401
        assert ask(claude_root(one), "elsewhere", {"origin": "https://evil.example"}) == 403
        assert ask(claude_root(one), "elsewhere", {"host": "evil.example"}) == 421
        wait_until(lambda: len(titles(one)) == 1 and len(titles(two)) == 1)
        served = state(one)
        status = two.run("status", "--json").json()
        again = one.run("up")
        wrapped = two.run("wrap", *python(ASK))
        wait_until(lambda: len(titles(two)) == 2)
        after = state(one)["pid"]

    assert (served["port"], served["pid"]) == (port, process.pid)
    assert {each["project"]: each["calls"] for each in served["projects"]} == {
        str(one.project): 1,
        str(two.project): 1,
        "unknown": 1,
    }
    assert status["proxy"]["pid"] == process.pid
    assert status["project"] == str(two.project)
    assert (again.code, "serves already" in again.err) == (1, True)
    assert (wrapped.code, wrapped.out, after) == (7, "200\n", process.pid)
    assert f"127.0.0.1:{port}" in wrapped.err
    assert titles(one) == [("of the first", "claude")]
    assert set(titles(two)) == {
        ("of the second", "claude"),
        ("hello from the agent", "fake-agent"),
    }
    unknown = str(one.data / "projects" / "unknown")
    assert titles(one, "--data", unknown) == [("of no project", "codex")]
    for path in ((one.data / "service").iterdir(), (one.data / "projects" / "unknown").iterdir()):
        assert not [each.name for each in path if each.is_file() and each.stat().st_mode & 0o077]


@pytest.mark.slow
def test_a_project_that_rests_is_closed_and_opened_again_by_its_next_call(desk: Desk, to_upstream):
    desk = at_home(desk)
    installed(desk)
    desk.run("connect", "claude", "--proxy")

    with running(desk, to_upstream, "--idle", "0"):
        for number in range(2):
            assert ask(claude_root(desk), f"call {number}") == 200
            wait_until(lambda: not any(each["open"] for each in state(desk)["projects"]))
        assert len(titles(desk)) == 2


@pytest.mark.row("X4")
@pytest.mark.row("V17")
@pytest.mark.slow
def test_each_project_s_dashboard_is_its_own_also_behind_one_port(desk: Desk, to_upstream):
    home = at_home(desk)
    other = another_project(home, "other")
    port = installed(home)
    with running(home, to_upstream):
        links, cookies, homes = [], [], []
        for each, text in ((home, "the first project"), (other, "the second project")):
            assert each.run("connect", "claude", "--proxy").code == 0
            assert ask(claude_root(each), text) == 200
            links.append(each.run("open", "--print").out.strip())
        assert links[0].startswith(f"http://127.0.0.1:{port}/hotset/open/")
        for link in links:
            opened = fetch(link)
            assert opened.status == 303
            homes.append(opened.header("location"))
            cookies.append(opened.header("set-cookie").partition(";")[0])
            assert fetch(link).status in (401, 403)
        assert homes[0] != homes[1]
        both = "; ".join(cookies)
        for at, text in enumerate(("the first project", "the second project")):
            root = f"http://127.0.0.1:{port}{homes[at]}"
            view = fetch(f"{root}api/sessions/last/window", both).json()
            page = next(piece for piece in view["segments"] if piece["kind"] == "prompt")
            shown = fetch(f"{root}api/pages/{page['pages'][0]}", both).json()
            assert shown["text"] == text
            assert fetch(f"{root}now", both).status == 200
            assert fetch(f"{root}api/orders", cookies[1 - at]).status == 401
            assert fetch(f"{root}api/orders").status == 401
        assert fetch(f"http://127.0.0.1:{port}/hotset/api/orders", both).status == 401


@pytest.mark.slow
def test_a_project_that_connects_while_it_runs_is_served_and_one_that_disconnects_is_not(
    desk: Desk, to_upstream
):
    desk = at_home(desk)
    installed(desk)

    with running(desk, to_upstream):
        desk.run("connect", "claude", "--proxy")
        root = claude_root(desk)
        served = ask(root, "now")
        desk.run("disconnect", "claude")
        refused = ask(root, "no more")

    assert (served, refused) == (200, 401)


def test_there_is_one_and_remove_ends_it(desk: Desk, to_upstream):
    desk = at_home(desk)
    port = installed(desk)

    with running(desk, to_upstream) as process:
        second = subprocess.run(
            desk.command("service", "run", "--port", str(free_port())),
            env=desk.environ(to_upstream),
            cwd=desk.project,
            capture_output=True,
            timeout=120,
            check=False,
        )
        removed = desk.run("service", "remove")
        assert process.wait(120) == 0

    assert (second.returncode, f"process {process.pid}" in second.stderr.decode()) == (2, True)
    assert removed.code == 0
    assert not lives(process.pid)
    assert not list((desk.home / ".config" / "systemd" / "user").iterdir())
    assert desk.run("service", "remove").code == 1
    with socket.socket() as trial:
        assert trial.connect_ex(("127.0.0.1", port)) != 0


def test_where_no_service_manager_answers_install_writes_the_unit_and_says_what_to_run(desk: Desk):
    desk = at_home(desk)
    shown = desk.run("service", "install", "--print")
    assert not (desk.home / ".config").exists()
    ran = desk.run("service", "install")

    unit = desk.home / ".config" / "systemd" / "user" / "hotset.service"
    assert (shown.code, ran.code) == (0, 1)
    assert shown.out.strip() == unit.read_text().strip()
    assert f'ExecStart="{sys.executable}" "-P" "-m" "hotset" "service" "run"' in unit.read_text()
    assert f'Environment="HOTSET_HOME={desk.data}"' in unit.read_text()
    assert "  systemctl --user enable --now hotset.service\n" in ran.err
    assert state(desk)["running"] is False


def test_where_systemd_serves_the_user_install_starts_it_and_remove_stops_it(desk: Desk):
    desk = at_home(desk)
    calls = desk.home / "calls"
    systemctl = desk.home / "bin" / "systemctl"
    systemctl.write_text(f'#!/bin/sh\necho "$@" >> {calls}\n')
    systemctl.chmod(0o755)

    assert desk.run("service", "install").code == 0
    assert desk.run("service", "remove").code == 0

    assert [each for each in calls.read_text().splitlines() if "environment" not in each] == [
        "--user daemon-reload",
        "--user enable --now hotset.service",
        "--user disable --now hotset.service",
        "--user daemon-reload",
    ]


def test_a_launchd_agent_says_the_same(desk: Desk):
    environ = {"HOME": str(desk.home), "PATH": "/a b:/c", "HOTSET_HOME": str(desk.data)}
    agent = autostart_of(load(project=str(desk.project), environ=environ), 4801, "darwin")

    described = plistlib.loads(agent.text.encode())
    assert agent.path.parent == desk.home / "Library" / "LaunchAgents"
    assert described["ProgramArguments"][-4:] == ["service", "run", "--port", "4801"]
    assert described["EnvironmentVariables"] == {"PATH": "/a b:/c", "HOTSET_HOME": str(desk.data)}
    assert agent.on[0][:2] == ("launchctl", "bootstrap")


def test_a_port_that_is_taken_is_told_and_another_one_is_found_without_a_wish(desk: Desk):
    desk = at_home(desk)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        refused = desk.run("service", "install", "--port", str(taken))

    assert refused.code == 2
    assert f"port {taken} is taken" in refused.err
    assert not Path(desk.home / ".config").exists()
