"""Arms for public boards, held to a stub of the board's contract: no board, no key, no network."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hotset.testing import Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy

ROOT = Path(__file__).parents[1]
CONTRACT = """
import os

_ARMS = {}

class ProxyArm:
    kind, name, needs = "proxy", "arm", []

    def ready(self):
        missing = [key for key in self.needs if not os.environ.get(key)]
        return (False, f"missing env: {', '.join(missing)}") if missing else (True, "ok")

def register(name):
    def keep(factory):
        assert name not in _ARMS
        _ARMS[name] = factory
        return factory
    return keep

def get_arm(name):
    return _ARMS[name]()
"""
"""What the board's `bench/arm.py` has of a proxy arm."""

SOLVE = """
import json, sys
import arms
from bench.arm import get_arm

arm = get_arm("hotset")
print(json.dumps([arm.kind, arm.name, *arm.ready(), arm.headers()]), flush=True)
if sys.argv[1:] == ["solve"]:
    arm.setup()
    print(arm.model_base_url(), flush=True)
    sys.stdin.readline()
    arm.teardown()
"""


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """The board's folder, with our arm copied to it as its README says."""
    for name, text in {
        "bench/__init__.py": "",
        "bench/arm.py": CONTRACT,
        "arms/__init__.py": "from . import hotset\n",
        "solve.py": SOLVE,
    }.items():
        (tmp_path / "board" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "board" / name).write_text(text)
    shutil.copy(
        ROOT / "bench" / "boards" / "code_compression_bench.py",
        tmp_path / "board" / "arms" / "hotset.py",
    )
    return tmp_path / "board"


def _environ(board: Path, **more: str) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(board), "HOTSET_PATIENCE": "60", **more}


def _start(board: Path, *arguments: str, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "solve.py", *arguments],
        cwd=board,
        env=_environ(board, **environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _post(url: str) -> str:
    """What Claude Code sends there, with the header by which the board tells runs apart."""
    root = urlsplit(url)
    line = http.client.HTTPConnection(root.hostname or "", root.port, timeout=60)
    message = {"role": "user", "content": "Fix it."}
    body = {"model": "claude-sonnet-4", "max_tokens": 16, "messages": [message]}
    headers = {"x-ccb-run-id": "task-7", "authorization": "Bearer board"}
    line.request("POST", f"{root.path}/v1/messages", json.dumps(body), headers)
    reply = line.getresponse()
    text = reply.read().decode()
    line.close()
    assert reply.status == 200, text
    return text


def _solve(board: Path, gateway: ScriptedUpstream, **environ: str) -> None:
    with _start(board, "solve", CCB_GATEWAY_URL=gateway.anthropic_url, **environ) as solving:
        assert solving.stdout is not None
        assert json.loads(solving.stdout.readline()) == ["proxy", "hotset", True, "ok", {}]
        assert "Fixed." in _post(solving.stdout.readline().strip())
        solving.communicate("\n", timeout=60)
        assert solving.returncode == 0
    (request,) = gateway.requests
    assert request.header("x-ccb-run-id") == "task-7"
    assert request.header("authorization") == "Bearer board"


def test_an_arm_without_a_gateway_is_not_ready_and_says_why(board: Path):
    with _start(board) as asked:
        told = json.loads(asked.communicate(timeout=60)[0])
    assert told == ["proxy", "hotset", False, "missing env: CCB_GATEWAY_URL", {}]


def test_a_call_of_the_board_goes_through_a_proxy_that_runs_already(board: Path, tmp_path: Path):
    with (
        ScriptedUpstream([Say("Fixed.")]) as gateway,
        LocalProxy(tmp_path / "data", anthropic_url=gateway.anthropic_url) as proxy,
    ):
        _solve(board, gateway, HOTSET_BASE_URL=proxy.address.anthropic_base_url)


@pytest.mark.slow
def test_each_task_of_the_board_has_a_proxy_of_its_own_in_front_of_the_gateway(board: Path):
    with ScriptedUpstream([Say("Fixed.")]) as gateway:
        _solve(board, gateway, HOTSET_ARGUMENTS="--profile lean", TMPDIR=str(board))
    assert list(board.glob("hotset-arm-*")) == []
