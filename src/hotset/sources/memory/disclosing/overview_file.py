"""The overview between one process and the next: a file that can be thrown away at any time."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec

from hotset.errors import StoreFailed
from hotset.files.folder import private_folder
from hotset.files.lock import hold_to_change
from hotset.files.write import write_atomically
from hotset.sources.memory.disclosing.overview import FORMAT, Overview, overview
from hotset.store.port import Store

FILE = "overview.json"
_LOCK = ".overview.lock"
_WORTH_WRITING = 256  # versions: the next process folds so many in milliseconds; writing 20,000 topics takes longer

_Stamp = tuple[int, int, int]


class OverviewFile:
    """The overview of one store. Use it from any thread and any process.

    It holds titles of memories. Whoever erases memories calls `drop` behind it: then nobody goes on with what they had.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._lock = threading.Lock()
        self._known: tuple[_Stamp | None, Overview] | None = None
        self._saved = 0
        """The number up to which the file goes."""

    def latest(self, store: Store) -> Overview:
        """Up to the store's latest version. Raises a `HotsetError` where the store cannot be read."""
        with self._lock:
            stamp = self._stamp()
            before = self._before(stamp)
            after = overview(store, before)
            self._known = stamp, after
            if before is None or not self._saved <= after.number < self._saved + _WORTH_WRITING:
                self._write(after, stamp)
            return after

    def drop(self) -> None:
        """What follows is made from the store alone. Raises `StoreBusy` or `StoreFailed`."""
        private_folder(self._path.parent)
        with self._lock, hold_to_change(self._path, self._path.with_name(_LOCK)):
            self._known = None
            # Not removed: by its new stamp other processes know that it changed.
            write_atomically(self._path, msgspec.json.encode(Overview()))

    def _before(self, stamp: _Stamp | None) -> Overview | None:
        """What this process has, as long as the file is the one that it knows; else what the file says."""
        if self._known is not None and self._known[0] == stamp:
            return self._known[1]
        kept = _read(self._path)
        self._saved = kept.number if kept is not None else 0
        return kept

    def _write(self, after: Overview, before: _Stamp | None) -> None:
        """Only over the file that it was made from: somebody may have dropped that one meanwhile.

        A disk that takes no more costs the next process some time and nothing else.
        """
        try:
            private_folder(self._path.parent)
            with hold_to_change(self._path, self._path.with_name(_LOCK)):
                if self._stamp() != before:
                    self._known = None
                    return
                write_atomically(self._path, msgspec.json.encode(after))
                self._known = self._stamp(), after
                self._saved = after.number
        except StoreFailed:
            return

    def _stamp(self) -> _Stamp | None:
        try:
            found = self._path.lstat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: Path) -> Overview | None:
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=Overview)
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return kept if kept.format == FORMAT else None
