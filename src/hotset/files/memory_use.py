"""How much memory this process and its group of processes (cgroup v2 or v1) use, and may use."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hotset.nouns.pressure import MemoryReading

_NO_LIMIT = 1 << 60  # v1 says so by a number next to the largest
_PAGE = os.sysconf("SC_PAGE_SIZE")


class SystemMemory:
    """Reads Linux's own files. Elsewhere there is nothing to read: no limit, no pressure."""

    def __init__(
        self,
        limit: int = 0,
        *,
        proc: Path = Path("/proc"),
        groups: Path = Path("/sys/fs/cgroup"),
    ) -> None:
        """`limit` is of this process alone, in bytes; 0 leaves it to its group."""
        self._limit = limit
        self._proc = proc
        self._v2: tuple[Path, ...] = ()
        self._v1: tuple[Path, ...] = ()
        with suppress(OSError):
            self._v2, self._v1 = _groups(proc / "self" / "cgroup", groups)

    def read(self) -> MemoryReading:
        """Raises `OSError` or `ValueError` for files that are not as they should be."""
        statm = self._proc / "self" / "statm"
        if not statm.exists():
            return MemoryReading()
        rss = int(statm.read_bytes().split()[1]) * _PAGE
        found = [(used, most, source) for used, most, source in self._limits() if most]
        if self._limit:
            found.append((rss, self._limit, "own limit"))
        used, limit, source = max(found, key=lambda each: each[0] / each[1], default=(rss, 0, ""))
        some, full = self._stalls()
        return MemoryReading(rss, used, limit, some, full, source)

    def _limits(self) -> Iterator[tuple[int, int, str]]:
        """Used and most bytes of the group and of those around it: any of them may be the
        tightest."""
        for folder in self._v2:
            if limits := [
                int(text)
                for name in ("memory.max", "memory.high")
                if (text := _text(folder / name)) not in ("", "max")
            ]:
                files = _stat(folder, "active_file", "inactive_file")
                used = max(0, int(_text(folder / "memory.current")) - files)
                yield used, min(limits), "cgroup v2"
        for folder in self._v1:
            limit = int(_text(folder / "memory.limit_in_bytes") or _NO_LIMIT)
            if limit < _NO_LIMIT:
                files = _stat(folder, "total_active_file", "total_inactive_file")
                used = max(0, int(_text(folder / "memory.usage_in_bytes")) - files)
                yield used, limit, "cgroup v1"

    def _stalls(self) -> tuple[float, float]:
        """PSI of the group; of the whole machine where the group has none."""
        own = self._v2[0] / "memory.pressure" if self._v2 else None
        text = (_text(own) if own is not None else "") or _text(self._proc / "pressure" / "memory")
        found = {
            line.split()[0]: float(line.split()[1].removeprefix("avg10="))
            for line in text.splitlines()
            if line
        }
        return found.get("some", 0.0), found.get("full", 0.0)


def _groups(file: Path, mounted: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The folders of this process's groups, its own first: of v2, and of v1."""
    v2: tuple[Path, ...] = ()
    v1: tuple[Path, ...] = ()
    for line in file.read_text("utf-8").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            root = next(
                (
                    each
                    for each in (mounted, mounted / "unified")
                    if (each / "cgroup.controllers").exists()
                ),
                None,
            )
            v2 = _upwards(root, path, "memory.current") if root is not None else ()
        elif "memory" in controllers.split(","):
            v1 = _upwards(mounted / "memory", path, "memory.usage_in_bytes")
    return v2, v1


def _upwards(root: Path, path: str, counter: str) -> tuple[Path, ...]:
    """The group's folder and those above it. A container may see its own group as the root."""
    own = root / path.lstrip("/")
    found = [each for each in (own, *own.parents) if each == root or root in each.parents]
    there = tuple(each for each in found if (each / counter).exists())
    return there or ((root,) if (root / counter).exists() else ())


def _stat(folder: Path, *names: str) -> int:
    rows = (line.split() for line in _text(folder / "memory.stat").splitlines())
    return sum(int(value) for name, value in rows if name in names)


def _text(file: Path) -> str:
    try:
        return file.read_text("ascii").strip()
    except FileNotFoundError:
        return ""


def release_freed() -> None:
    """Give memory that was freed back to the system. Takes milliseconds: not for the event loop."""
    with suppress(OSError, AttributeError):  # another C library has its own ways
        ctypes.CDLL(None).malloc_trim(0)
