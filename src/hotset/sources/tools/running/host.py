"""Serves the typed functions of Python scripts as MCP tools: `python -I -B host.py FOLDER
SCRIPT...`. Stdlib only.

This is the process: its streams, its threads, and the files beside this one that it needs, loaded
by their path. It runs in the skill's own Python, which may be older than ours and has nothing of
ours installed; `serving` speaks the protocol.

stdin and stdout are the protocol's. What a script prints goes to stderr, and it finds nothing to
read. Calls that come one after the other run in the main thread, as in a program; those that come
at the same time run beside it.
"""

# ruff: noqa: PTH100, PTH118, PTH120 - as few imports as can be before the first answer

from __future__ import annotations

import importlib.machinery
import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import ModuleType

TYPE_CHECKING = False  # typing takes longer to import than most of what is called here takes to run
if TYPE_CHECKING:
    from typing import Any

Job = Callable[[], Callable[[], None]]
"""Does the work, and gives what sends the answer."""


def main() -> None:
    folder, *scripts = sys.argv[1:]
    asked, said = _own_stdio()
    workers = _Workers()

    def write(line: bytes) -> None:
        said.write(line)
        said.flush()

    host = _beside("serving").Host(folder, scripts, write, workers.run, _beside)

    def listen() -> None:
        for line in asked:
            host.hear(line)
        workers.stop()

    threading.Thread(target=listen, daemon=True).start()
    workers.work()


class _Workers:
    """Run jobs in the main thread whenever it is free, otherwise in one that is or in a new one.

    A thread is free before its answer is out: the next call may follow at once.
    """

    def __init__(self) -> None:
        self._main: SimpleQueue[Job | None] = SimpleQueue()
        self._idle = [self._main]
        self._lock = threading.Lock()

    def run(self, job: Job) -> None:
        with self._lock:
            queue = self._idle.pop() if self._idle else None
        if queue is None:
            queue = SimpleQueue()
            threading.Thread(target=self._work, args=(queue,), daemon=True).start()
        queue.put(job)

    def work(self) -> None:
        """The main thread's part: until `stop`."""
        self._work(self._main)

    def stop(self) -> None:
        self._main.put(None)

    def _work(self, queue: SimpleQueue[Job | None]) -> None:
        while (job := queue.get()) is not None:
            send = job()
            with self._lock:
                self._idle.insert(len(self._idle) if queue is self._main else 0, queue)
            send()


def _own_stdio() -> tuple[Any, Any]:
    """The protocol's two streams, of which scripts and their own processes know nothing from now
    on."""
    asked, said = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return asked, said


def _beside(name: str) -> ModuleType:
    """A file of ours by its path: this folder is not searched for modules, so that none of ours
    stands before one of Python's.

    What was compiled of ours is kept for the next time, as always; of a skill nothing is.
    """
    with _LOADING:
        if name not in _LOADED:
            path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
            loader = importlib.machinery.SourceFileLoader(f"hotset_{name}", path)
            module = ModuleType(loader.name)
            module.__file__ = path
            kept, sys.dont_write_bytecode = sys.dont_write_bytecode, False
            try:
                loader.exec_module(module)
            finally:
                sys.dont_write_bytecode = kept
            _LOADED[name] = module
        return _LOADED[name]


_LOADED: dict[str, ModuleType] = {}
_LOADING = threading.Lock()


if __name__ == "__main__":
    main()
