"""A command of ours in a child process, beside a proxy: long work that would hold the interpreter
while calls wait for it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self

import click

from hotset.config import Config
from hotset.files.child_process import DEVNULL, PIPE, ChildProcess
from hotset.files.scope import PROCESS

_NICENESS = 10  # beside an agent that works

while_stdin = click.option(
    "--while-stdin",
    is_flag=True,
    hidden=True,
    help="Stop when stdin closes: the program that started us has ended.",
)


class ChildFollower:
    """Runs `hotset COMMAND` in a child process whenever it `is_due`, while the block runs.

    The child ends with this process, however that ends, because its stdin closes. `is_due` is asked
    every `every` seconds, and not for `rest` seconds after a child ended.
    """

    def __init__(
        self,
        config: Config,
        command: Sequence[str],
        is_due: Callable[[], bool],
        *,
        rest: float,
        every: float,
    ) -> None:
        self._config = config
        self._command = command
        self._is_due = is_due
        self._rest = rest
        self._every = every
        self._ended = threading.Event()
        self._thread = PROCESS.new_thread(self._follow, f"hotset-{command[0]}")
        self._child: ChildProcess | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._child is not None:
            self._child.leave()  # without its stdin it stops at the next step

    def _follow(self) -> None:
        earliest = 0.0
        while not self._ended.wait(self._every):
            if self._child is not None:
                if self._child.poll() is None:
                    continue
                self._child.leave()
                self._child = None
                earliest = time.monotonic() + self._rest
            if time.monotonic() >= earliest and self._is_due():
                self._child = self._start()

    def _start(self) -> ChildProcess:
        """Starts it with -P: modules in the project's folder must not be imported."""
        config = self._config
        ours = [sys.executable, "-P", "-m", "hotset", *self._command, "--while-stdin", "--quiet"]
        return ChildProcess(
            [*ours, "--project", str(config.project), "--data", str(config.folder)],
            stdin=PIPE,
            stdout=DEVNULL,
            start_new_session=True,  # Ctrl-C is for us: the child ends when we close its stdin
        )


def follow_stdin(stop: Callable[[], object]) -> None:
    """In the child: call `stop` when stdin ends. Our work goes behind everybody else's."""

    def read() -> None:
        with suppress(OSError, ValueError):
            while os.read(0, 4096):
                pass
        stop()

    os.nice(_NICENESS)
    PROCESS.thread(read, "hotset-stdin")
