"""Child processes: each belongs to a scope, with its pipes, until somebody has waited for it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from subprocess import DEVNULL, PIPE, TimeoutExpired
from typing import Any

from hotset.files.scope import PROCESS, ResourceScope

__all__ = ["DEVNULL", "PIPE", "ChildProcess", "TimeoutExpired"]


class ChildProcess(subprocess.Popen[bytes]):
    """`subprocess.Popen` in a scope: its pipes count among the scope's files, and a start blocks
    while their budget is used up. Closing the scope kills it."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        scope: ResourceScope = PROCESS,
        descriptors: int = 0,
        **given: Any,
    ) -> None:
        """`descriptors` are further ones that its owner keeps open as long as it runs."""
        pipes = sum(given.get(name) == PIPE for name in ("stdin", "stdout", "stderr"))
        self._held = scope.file(f"process {command[0]}", self.end, pipes + descriptors)
        try:
            super().__init__(command, **given)
        except BaseException:
            self._held.release()
            raise

    def poll(self) -> int | None:
        code = super().poll()
        if code is not None:
            self._held.release()
        return code

    def wait(self, timeout: float | None = None) -> int:
        code = super().wait(timeout)
        self._held.release()
        return code

    def end(self) -> None:
        """Kill it, close its pipes, and wait for it."""
        self.kill()
        self._close_pipes()
        self.wait()

    def leave(self) -> None:
        """Close its pipes; it ends by itself, and nobody waits for it."""
        self._close_pipes()
        self._held.release()

    def _close_pipes(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
