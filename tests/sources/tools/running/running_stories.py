"""What the tests of running servers share: a supervisor for a story, servers to start, and what is
left of them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from tests.waiting import lives

from hotset.nouns.tool import Stdio
from hotset.sources.tools.running.processes import ServerProcess, Supervisor

T = TypeVar("T")

SERVERS = Path(__file__).with_name("running_servers.py")


def told(story: Callable[[Supervisor], Awaitable[T]]) -> T:
    async def whole() -> T:
        supervisor = Supervisor()
        try:
            return await story(supervisor)
        finally:
            supervisor.close()

    return asyncio.run(whole())


def server(kind: str, folder: Path) -> Stdio:
    return Stdio((sys.executable, "-I", "-S", str(SERVERS), kind, str(folder)))


async def started(supervisor: Supervisor, kind: str, folder: Path) -> ServerProcess:
    return await supervisor.start(server(kind, folder), cwd=str(folder))


def pids(folder: Path) -> set[int]:
    """That servers left there."""
    return {int(path.name) for path in folder.iterdir() if path.name.isdigit()}


def left(folder: Path) -> set[int]:
    """Those of them that live."""
    return {pid for pid in pids(folder) if lives(pid)}


def children(pid: int) -> set[int]:
    """Of this process, zombies among them."""
    found = set()
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == pid:
                found.add(int(path.name))
    return found


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
