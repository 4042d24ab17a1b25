"""Keeps the project's files indexed beside whatever runs here: in a process of its own, while it is
allowed, and no longer.

Another process, because reading and sealing files would hold the interpreter up while calls wait
for it.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Self

from hotset.config import Config
from hotset.sources.code import read_consent, who_indexes

_LOOK_SECONDS = (
    1.0  # between two looks at the answer: it may be given, or taken back, in another terminal
)
_REST_SECONDS = 30.0  # after one that ended: whatever was the matter may be over


class Following:
    """A context: it follows until the block ends. It ends with its process, however that ends,
    because its stdin does."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="hotset-follow-code", daemon=True)
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._child is not None:
            _end(self._child)

    def _follow(self) -> None:
        earliest = 0.0
        while not self._ended.wait(_LOOK_SECONDS):
            if self._child is not None:
                if self._child.poll() is None:
                    continue
                _end(self._child)
                self._child = None
                earliest = time.monotonic() + _REST_SECONDS
            config = self._config
            allowed = read_consent(config.folder).allows(config.project)
            if allowed and time.monotonic() >= earliest and who_indexes(config.folder) is None:
                self._child = _start(config)


def _start(config: Config) -> subprocess.Popen[bytes]:
    """With -P, because we may run in the project's folder: what lies there must not be imported."""
    about = ["--project", str(config.project), "--data", str(config.folder)]
    return subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-m",
            "hotset",
            "index",
            "--watch",
            "--while-stdin",
            "--quiet",
            *about,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for us: it ends when we close its stdin
    )


def _end(child: subprocess.Popen[bytes]) -> None:
    """It stops by itself once its stdin is closed, after what it is in the middle of: nobody has to
    wait for that."""
    assert child.stdin is not None
    with suppress(OSError):
        child.stdin.close()
