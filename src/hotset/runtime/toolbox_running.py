"""What runs for tools, in whichever hotset process of this project: each leaves a note of its own, and anyone can read all."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from hotset.config import TOOLS, Config
from hotset.files.folder import private_folder
from hotset.files.write import write_atomically
from hotset.sources.tools.running.pool import Pool
from hotset.sources.tools.running.processes import memory_of

_FOLDER = "running"


class Here(msgspec.Struct, frozen=True):
    """A process that runs for tools, as its hotset process told it when it was last used."""

    source: str
    session: str
    pid: int | None
    """None for a connection to another machine."""
    since: float
    calls: int
    last_used: float
    protocol: str
    pinned: bool
    whose: str
    """Which hotset process it runs for."""
    bytes: int = 0
    """In memory, now."""


class RunningNote:
    """This process's own. Written when something was used; what stopped since is known by its absence."""

    def __init__(self, folder: Path, whose: str) -> None:
        self._path = folder / _FOLDER / f"{os.getpid()}.json"
        self._whose = f"{whose} ({os.getpid()})"
        self._told: frozenset[tuple[str, str, int | None]] = frozenset()

    def write(self, pool: Pool) -> None:
        """Cheap where nothing came or went since."""
        told = pool.processes()
        if told == self._told:
            return
        running = pool.running()
        ago = time.time() - time.monotonic()
        rows = [
            Here(
                source=each.source,
                session=each.session,
                pid=each.pid,
                since=ago + each.since,
                calls=each.calls,
                last_used=ago + each.last_used,
                protocol=each.protocol,
                pinned=each.pinned,
                whose=self._whose,
            )
            for each in running
        ]
        private_folder(self._path.parent)
        write_atomically(self._path, msgspec.json.encode(rows))
        self._told = told

    def close(self) -> None:
        self._path.unlink(missing_ok=True)


def running_everywhere(config: Config) -> list[Here]:
    """Everything that still runs. Notes of processes that are gone are thrown away."""
    found: list[Here] = []
    for path in sorted((config.folder / TOOLS / _FOLDER).glob("*.json")):
        if not _is_alive(int(path.stem) if path.stem.isdecimal() else 0):
            path.unlink(missing_ok=True)
            continue
        try:
            rows = msgspec.json.decode(path.read_bytes(), type=list[Here])
        except (OSError, msgspec.DecodeError):
            continue
        alive = (each for each in rows if each.pid is None or _is_alive(each.pid))
        found += [msgspec.structs.replace(each, bytes=memory_of(each.pid) if each.pid else 0) for each in alive]
    return found


def _is_alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
