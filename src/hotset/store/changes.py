"""Has anybody committed since? Told by SQLite itself, without reading a row."""

from __future__ import annotations

import threading
from collections.abc import Callable

from hotset.store.connecting import Connection, close_connection

_ROUND = 2**32  # SQLite counts in 32 bits, anew for each connection


class DataVersion:
    """A connection that only ever asks for SQLite's count of what others committed."""

    def __init__(self, open_one: Callable[[], Connection]) -> None:
        self._open = open_one
        self._connection: Connection | None = None
        self._rounds = 0
        self._lock = threading.Lock()

    def version(self) -> int:
        with self._lock:
            if self._connection is None:
                self._connection = self._open()
                self._rounds += 1
            try:
                self._connection.refuse_moved()
                count = self._connection.execute("PRAGMA data_version").fetchone()
            except BaseException:
                self._close()
                raise
        assert count is not None
        return self._rounds * _ROUND + int(count[0])

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            close_connection(self._connection)
            self._connection = None
