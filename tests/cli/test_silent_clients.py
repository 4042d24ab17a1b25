"""`hotset doctor` where a client was connected or wrapped, and its login goes past base URLs."""

from __future__ import annotations

import os
import sys

import pytest

from tests.cli.conftest import Desk
from tests.cli.test_always_on import ask, at_home, claude_root, installed, running, titles
from tests.cli.test_doctor import findings
from tests.cli.test_serving import ASK
from tests.waiting import wait_until


def stub(desk: Desk, name: str, script: str) -> dict[str, str]:
    """An environment with a command of that name first on its path."""
    folder = desk.home / "stubs"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return {"PATH": os.pathsep.join((str(folder), os.environ["PATH"]))}


@pytest.mark.slow
def test_a_connected_client_of_which_nothing_comes_is_told_and_which_way_works(
    desk: Desk, to_upstream
):
    desk = at_home(desk)
    installed(desk)
    for client in ("claude", "codex", "pi"):
        desk.run("connect", client, "--proxy")

    with running(desk, to_upstream):
        silent = desk.run("doctor", "--json", env=to_upstream)
        plain = desk.run("doctor", env=to_upstream).out
        ask(claude_root(desk), "hello")
        wait_until(lambda: titles(desk))
        heard = desk.run("doctor", "--json", env=to_upstream)

    assert [level for level, _ in findings(silent, "codex")] == ["ok", "warn"]
    assert "as the project unknown" in findings(silent, "codex")[0][1]
    assert "no call of it came" in findings(silent, "codex")[1][1]
    assert "MCP works with every login: hotset connect codex --mcp" in plain
    assert "use it with an API key" in plain  # pi has no MCP
    assert [level for level, _ in findings(silent, "claude")] == ["warn"]
    assert ("ok", True) in [
        (level, "its calls arrive" in says) for level, says in findings(heard, "claude")
    ]
    assert "warn" not in [level for level, _ in findings(heard, "claude")]


@pytest.mark.slow
def test_a_wrapped_client_of_which_nothing_came_is_told_until_a_call_comes(
    desk: Desk, to_upstream, upstream
):
    (desk.home / "call.py").write_text(ASK)
    call = f"exec {sys.executable} {desk.home / 'call.py'}"
    told = []
    for script in ("exit 0", call):
        desk.run("wrap", "claude", env={**to_upstream, **stub(desk, "claude", script)})
        told.append(findings(desk.run("doctor", "--json"), "claude"))

    assert [level for level, _ in told[0]] == ["warn"]
    assert "none of its calls arrived" in told[0][0][1]
    assert told[1] == []
    assert len(upstream.requests) == 1
