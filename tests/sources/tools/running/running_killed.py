"""Kills a program that runs servers again and again, and looks for what is left: `python
running_killed.py FOLDER WHO ROUNDS`.

This process adopts whatever its descendants leave behind, so that nothing can hide: when it has no
child left, there is nothing. Each round forks programs that start a supervisor and servers without
end, and kills them after a moment.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from running_stories import children, started

from hotset.sources.tools.running.processes import Supervisor

KINDS = ("echo", "daemon", "deaf", "family", "hopper", "stopped")
TOGETHER = 3
PATIENCE = 30.0


def main() -> None:
    folder, who, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    chance = random.Random(who)
    assert ctypes.CDLL(None).prctl(36, ctypes.c_ulong(1)) == 0  # PR_SET_CHILD_SUBREAPER
    for _ in range(rounds):
        programs = [start(folder, chance.sample(KINDS, 3)) for _ in range(TOGETHER)]
        for program in programs:
            time.sleep(chance.uniform(0, 0.2))
            for victim in victims(program, who, chance):
                kill(victim)
            kill(program)
        if not all_gone():
            print("left", sorted(children(os.getpid())), flush=True)
            for pid in children(os.getpid()):
                kill(pid)
            return
    print("nothing", flush=True)


def start(folder: Path, kinds: list[str]) -> int:
    program = os.fork()
    if program == 0:
        asyncio.run(run_servers(folder, kinds))
    return program


async def run_servers(folder: Path, kinds: list[str]) -> None:
    supervisor = Supervisor()
    while True:
        channels = await asyncio.gather(*(started(supervisor, kind, folder) for kind in kinds))
        await asyncio.sleep(0.1)
        for channel in channels:
            channel.kill()


def victims(program: int, who: str, chance: random.Random) -> list[int]:
    """Who is killed before the program: nobody, its supervisor, or one of the reapers."""
    supervisors = sorted(children(program))
    reapers = [reaper for supervisor in supervisors for reaper in children(supervisor)]
    chosen = {"hotset": [], "supervisor": supervisors, "reaper": reapers}[who]
    return chance.sample(chosen, min(1, len(chosen)))


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def all_gone() -> bool:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.005)
        except ChildProcessError:
            return True
    return False


if __name__ == "__main__":
    main()
