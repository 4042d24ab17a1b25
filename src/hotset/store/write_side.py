"""What a store needs to be written: the writer's threads, the checkpointer, and the ballast."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from hotset.store import exchange
from hotset.store.connection import (
    Connection,
    Tuning,
    close_connection,
    translate_error,
    translate_errors,
)
from hotset.store.port import Row
from hotset.store.store_files import DATABASE, Ballast
from hotset.store.wal import Checkpointer, sync_seal
from hotset.store.writer import Writer


class WriteSide:
    """Made when a process first writes: a command that only reads starts no thread for it."""

    def __init__(
        self,
        folder: Path,
        tuning: Tuning,
        connection: Connection,
        open_one: Callable[[], Connection],
    ) -> None:
        self._folder, self._database = folder, folder / DATABASE
        self._open_one = open_one
        self.ballast = Ballast(folder, tuning.ballast_bytes)
        self._checkpointer = Checkpointer(
            open_one, tuning.checkpoint_pages, partial(sync_seal, folder)
        )
        self.writer = Writer(
            connection,
            open_one,
            self.ballast,
            self._checkpointer,
            partial(translate_error, database=self._database),
        )

    def load(self, rows: Iterable[Row], *, gaps: bool) -> int:
        """Import rows; see `Store.load`."""
        with translate_errors(self._database):
            connection = self._open_one()
        connection.set_wal_hook(self._checkpointer.after_commit)
        try:
            return exchange.load(
                connection, rows, partial(translate_errors, self._database), self._folder, gaps=gaps
            )
        finally:
            close_connection(connection)

    def close(self) -> None:
        """Write what still waits."""
        self.writer.close()
        self._checkpointer.close()
