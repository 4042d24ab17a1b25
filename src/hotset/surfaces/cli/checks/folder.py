"""Is what we keep private, and is there room for more?"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from hotset.runtime.reader import BALLAST_BYTES, DATABASE, beside, has_store
from hotset.surfaces.cli.checks.finding import CheckScene, Finding, fail, ok, warn
from hotset.surfaces.cli.terminal import size

_LOW_BYTES = 500_000_000
_BIG_WAL = 64 << 20  # the store empties it at 32 MB; twice that means that something holds it


def check(scene: CheckScene) -> Iterator[Finding]:
    folder = scene.config.folder
    if not folder.exists():
        yield warn(
            "folder",
            f"{folder} is not there: nothing was ever kept for this project",
            "start with: hotset up",
        )
        return
    yield from _private(folder)
    yield from _token(folder / "token")
    yield from _room(folder)


def _private(folder: Path) -> Iterator[Finding]:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        yield fail(
            "folder", f"{folder} is not a folder", "move it away, or choose another with --data"
        )
        return
    if found.st_uid != os.geteuid():
        yield fail(
            "folder",
            f"{folder} belongs to another user (uid {found.st_uid})",
            "choose a folder of your own with --data",
        )
        return
    open_ones = [path for path in (folder, *sorted(folder.iterdir())) if _open_to_others(path)]
    if open_ones:
        names = ", ".join(path.name for path in open_ones[:3])
        yield fail(
            "folder", f"others can look into {folder}: {names}", f"run: chmod -R go-rwx {folder}"
        )
    else:
        yield ok("folder", f"{folder}, only yours")


def _open_to_others(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISLNK(mode) and bool(mode & 0o077)


def _token(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield ok("token", "not made yet; the first start makes one")
    elif path.is_symlink() or not path.is_file():
        yield fail(
            "token", f"{path} is not a file of its own", "remove it; the next start makes a new one"
        )
    elif path.stat().st_mode & 0o077:
        yield fail(
            "token",
            f"{path} can be read by others",
            f"run: chmod 600 {path}   or delete it to get a new one",
        )
    else:
        yield ok("token", "in a file that only you can read")


def _room(folder: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(folder).free
    if free < _LOW_BYTES:
        yield warn(
            "disk",
            f"{size(free)} free where {folder} lies",
            "make room; calls go through, but cannot be kept on a full disk",
        )
    else:
        yield ok("disk", f"{size(free)} free")
    if not has_store(folder):
        return
    ballast = folder / "ballast"
    if not ballast.exists() or ballast.stat().st_size < BALLAST_BYTES:
        yield warn(
            "ballast",
            "the reserve for a full disk is used up",
            "make room; the reserve comes back by itself",
        )
    wal, _ = beside(folder / DATABASE)
    grown = wal.stat().st_size if wal.exists() else 0
    if grown > _BIG_WAL:
        yield warn(
            "wal",
            f"the write-ahead log has grown to {size(grown)}",
            "stop every hotset of this project once",
        )
    else:
        yield ok("wal", f"the write-ahead log is {size(grown)}")
