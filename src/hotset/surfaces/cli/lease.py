"""A proxy that `hotset wrap` started lives as long as any wrap holds on to it, and not a moment
longer.

The proxy's stdin is a named pipe; each wrap that uses the proxy keeps it open for writing. However
a wrap ends, also by kill -9, the system closes its end, and when the last one is closed the proxy
reads the end of its stdin and stops.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "wrapped-"


@contextmanager
def granted(folder: Path) -> Iterator[tuple[int, Path]]:
    """A new lease: the end that a proxy gets as its stdin, and its place for now. We hold it until
    the block ends."""
    clear_away(folder)
    path = folder / f"{_PREFIX}{secrets.token_hex(8)}"
    os.mkfifo(path, 0o600)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)
    holding = os.open(path, os.O_WRONLY)
    try:
        yield reading, path
    finally:
        os.close(holding)


def name_after(path: Path, pid: int) -> None:
    """Puts the lease where another wrap finds it: by the proxy's process id."""
    path.rename(_place(path.parent, pid))


@contextmanager
def joined(folder: Path, pid: int) -> Iterator[bool]:
    """Holds on to another wrap's proxy; False where the proxy is nobody's child and needs no
    holding."""
    try:
        holding = os.open(_place(folder, pid), os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # no such pipe, or nobody reads it
        yield False
        return
    try:
        yield True
    finally:
        os.close(holding)


def ended(folder: Path, pid: int) -> None:
    """Nobody holds on to that proxy any more; it says so itself, and takes as long to stop as its
    machine is busy."""
    _place(folder, pid).unlink(missing_ok=True)


def clear_away(folder: Path) -> None:
    """Pipes that nobody reads any more are left-overs of proxies that are gone."""
    for path in folder.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if stat.S_ISFIFO(path.lstat().st_mode) and not _is_read(path):
                path.unlink()


def _is_read(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def _place(folder: Path, pid: int) -> Path:
    return folder / f"{_PREFIX}{pid}"
