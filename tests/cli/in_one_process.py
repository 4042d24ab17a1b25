"""Many commands in one process of their own: it may have fewer rights than the tests, and one that
hangs ends with it."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.cli.conftest import Desk, Ran


def run_all(
    desk: Desk,
    commands: Sequence[tuple[str, ...]],
    *,
    before: Sequence[str] = (),
    seconds: float = 300,
) -> list[Ran]:
    """`before` are words that stand before the command: a program that starts it."""
    order = json.dumps(
        [[str(path) for path in (desk.home, desk.project, desk.data)], dict(desk.env), commands]
    )
    words = [*before, sys.executable, "-m", "tests.cli.in_one_process"]
    done = subprocess.run(
        words, input=order.encode(), capture_output=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return [
        Ran(code, base64.b64decode(out), err)
        for code, out, err in map(json.loads, done.stdout.splitlines())
    ]


def _run() -> None:
    paths, env, commands = json.load(sys.stdin)
    desk = Desk(*map(Path, paths), env)
    for words in commands:
        ran = desk.run(*words)
        print(json.dumps((ran.code, base64.b64encode(ran.raw).decode(), ran.err)), flush=True)


if __name__ == "__main__":
    _run()
