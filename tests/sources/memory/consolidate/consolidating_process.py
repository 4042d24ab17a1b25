"""A process that the tests start: consolidates a store, and kills itself after so many commits."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.sources.memory.consolidate.making import EMBEDDER

from hotset.sources.memory.consolidation import consolidate
from hotset.store.connection import Tuning
from hotset.store.sqlite import SqliteStore

TUNING = Tuning(ballast_bytes=4096)
NOW = 100_000.0


class Dying:
    """A store whose process ends right after so many commits, or in the middle of the next one."""

    def __init__(self, store, commits):
        self._store, self._left = store, commits

    def __getattr__(self, name):
        return getattr(self._store, name)

    def keep(self, *deposits):
        self._left -= 1
        future = self._store.keep(*deposits)
        if self._left == 0:
            future.result(120)
            os.kill(os.getpid(), signal.SIGKILL)
        if self._left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return future


if __name__ == "__main__":
    with SqliteStore.open(Path(sys.argv[1]), TUNING) as opened:
        consolidate(Dying(opened, int(sys.argv[2])), EMBEDDER.embed, NOW, batch=3)
    print("done", flush=True)
