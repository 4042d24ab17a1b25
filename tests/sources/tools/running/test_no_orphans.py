"""No process stays when hotset is killed: whenever that is, whatever its servers are, and whoever
else was killed before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from running_stories import left, pids
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="counts on a parent that adopts what is left behind"
)

KILLED = Path(__file__).with_name("running_killed.py")
WITH_TESTS = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join((str(KILLED.parent), str(KILLED.parents[4]))),
}


@pytest.mark.parametrize(("who", "rounds"), [("hotset", 10), ("supervisor", 3), ("reaper", 3)])
@pytest.mark.slow
def test_nothing_is_left_of_a_program_that_was_killed_in_the_midst_of_it(tmp_path, who, rounds):
    command = [sys.executable, str(KILLED), str(tmp_path), who, str(rounds)]
    said = subprocess.run(
        command, capture_output=True, text=True, env=WITH_TESTS, timeout=240, check=False
    )
    assert (said.stdout.strip(), said.returncode) == ("nothing", 0), said.stderr[-2_000:]
    assert len(pids(tmp_path)) > 3 * rounds  # the servers did run
    assert left(tmp_path) == set()


def test_nothing_is_left_of_a_program_whose_sockets_live_on_in_a_fork_of_it(tmp_path):
    """As in a program that uses multiprocessing: then the end of the program is not the end of its
    sockets."""
    program = f"""
import asyncio, os, signal, sys
from pathlib import Path
from running_stories import started
from hotset.sources.tools.running.processes import Supervisor

async def main():
    supervisor = Supervisor()
    for kind in ("echo", "daemon"):
        channel = await started(supervisor, kind, Path({str(tmp_path)!r}))
        await channel.send(b"{{}}")
        await channel.receive()
    if os.fork() == 0:
        sys.stdin.read()
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb"):
        subprocess.run(
            [sys.executable, "-c", program], stdin=reading, env=WITH_TESTS, timeout=120, check=False
        )
        os.close(reading)
        assert len(pids(tmp_path)) == 3
        wait_until(lambda: not left(tmp_path))
