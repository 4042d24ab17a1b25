"""Rows that another store gave out, taken in: none of them where one is wrong, else all, a few
milliseconds at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

import apsw

from hotset.errors import BadInput
from hotset.nouns.memory import MemoryId, MemoryKind, MemoryLink, MemoryRecord, MemoryUse
from hotset.nouns.page import Digest, Gist, Page, PageId, SessionId
from hotset.nouns.turn import Session
from hotset.store.blobs import Compressed, compress
from hotset.store.commit_seal import commit
from hotset.store.connecting import Connection
from hotset.store.exchange import read_lines, write_lines
from hotset.store.inserting import RowImport, has_blob
from hotset.store.lookup import SqlLookup
from hotset.store.memory_form import refuse_unfit
from hotset.store.needs import needs
from hotset.store.port import Blob, Row

_TRANSACTION_SECONDS = 0.02
"""For so long rows are taken in before they are committed, which takes about as long again: others
wait for the lock."""

_MOST_BYTES = (
    1 << 20
)  # of one transaction: a commit writes them to the disk while it holds the lock
_PAUSE_SECONDS = 0.012  # between two: whoever waits for the lock looks every 10 ms

InOurWords = Callable[[], AbstractContextManager[None]]


def load(
    connection: Connection, rows: Iterable[Row], in_our_words: InOurWords, folder: Path
) -> int:
    """The number of rows that were new.

    Raises `BadInput`, and changes nothing, where a row points to what is not there or is wrong in
    itself: every row is looked at before the first is written, and waits in a file without a name
    in `folder` meanwhile. The writing is in transactions of some milliseconds. Where that breaks
    off (a kill, a full disk), a part is there, whole in itself; loading again adds the rest.
    """
    checks = _Checks(connection, in_our_words)
    with TemporaryFile(dir=folder) as waiting:
        waiting.writelines(
            write_lines(map(checks.checked, rows))
        )  # an error of their source stays what it is
        checks.finish()
        intake = RowImport(connection)
        return sum(
            _take_all(connection, intake, part, in_our_words) for part in _in_order(waiting, checks)
        )


def _in_order(waiting: BinaryIO, checks: _Checks) -> Iterator[Iterator[Row]]:
    """What others point to comes first: between two transactions everything that is there is
    whole."""
    waiting.seek(0)
    if checks.in_order:
        yield read_lines(waiting)
        return
    yield (row for row in read_lines(waiting) if isinstance(row, Blob | Session))
    waiting.seek(0)
    yield (row for row in read_lines(waiting) if not isinstance(row, Blob | Session))


def _take_all(
    connection: Connection, intake: RowImport, rows: Iterator[Row], in_our_words: InOurWords
) -> int:
    new = 0
    while batch := list(_next_bytes(rows)):
        while batch:
            with in_our_words():
                done, added = _commit_some(connection, intake, batch)
            batch = batch[done:]
            new += added
            time.sleep(_PAUSE_SECONDS)
    return new


def _next_bytes(rows: Iterator[Row]) -> Iterator[tuple[Row, Compressed | None]]:
    """Read and compressed before the lock is taken."""
    size = 0
    for row in rows:
        pressed = compress(row.content) if isinstance(row, Blob) else None
        size += len(pressed.body) if pressed is not None else _ROW_BYTES
        yield row, pressed
        if size >= _MOST_BYTES:
            return


_ROW_BYTES = 512  # about what a row takes that is no content


def _commit_some(
    connection: Connection, intake: RowImport, batch: list[tuple[Row, Compressed | None]]
) -> tuple[int, int]:
    """How many of the batch one transaction took, and how many rows were new."""
    taken = new = 0
    connection.execute("BEGIN IMMEDIATE")
    until = time.monotonic() + _TRANSACTION_SECONDS
    try:
        for row, pressed in batch:
            new += intake.take(row, pressed)
            taken += 1
            if time.monotonic() > until:
                break
        new += intake.finish()
        commit(connection)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return taken, new


@dataclass(slots=True)
class _Checks:
    """Everything that would be refused, found without writing."""

    connection: apsw.Connection
    in_our_words: InOurWords
    in_order: bool = True
    """Content and sessions came before everything that points to them, as `dump` gives them out."""
    _is_behind: bool = False
    _content: set[Digest] = field(default_factory=set)
    _sessions: set[SessionId] = field(default_factory=set)
    _pages: set[PageId] = field(default_factory=set)
    _memories: dict[MemoryId, MemoryKind] = field(default_factory=dict)
    _needed: set[Digest] = field(default_factory=set)
    _owners: set[SessionId] = field(default_factory=set)

    def checked(self, row: Row) -> Row:
        needed = needs(row)
        self._needed.update(needed.content)
        self._owners.update(needed.sessions)
        if isinstance(row, Blob | Session):
            self.in_order = self.in_order and not self._is_behind
        else:
            self._is_behind = True
        self._check(row)
        return row

    def _check(self, row: Row) -> None:
        match row:
            case Blob():
                self._content.add(row.digest)
            case Session():
                self._sessions.add(row.id)
            case Page():
                self._pages.add(row.id)
            case Gist() if row.page not in self._pages and not self._has("page", row.page):
                raise BadInput(
                    f"a gist of page {row.page}, which is not there; nothing was changed"
                )
            case MemoryRecord():
                self._check_memory(row)
            case MemoryLink() | MemoryUse():
                refuse_unfit(row)

    def finish(self) -> None:
        """To be called behind the last row: what a row points to may come after it."""
        for digest in self._needed - self._content:
            with self.in_our_words():
                if not has_blob(self.connection, digest):
                    raise BadInput(
                        f"a row points to content {digest}, which is not there; nothing was changed"
                    )
        for session in self._owners - self._sessions:
            if not self._has("session", session):
                raise BadInput(
                    f"a row belongs to session {session}, which is not there; nothing was changed"
                )

    def _check_memory(self, theirs: MemoryRecord) -> None:
        refuse_unfit(theirs)
        if theirs.id not in self._memories:
            with self.in_our_words():
                latest = SqlLookup(self.connection).last_memory(theirs.id)
            self._memories[theirs.id] = theirs.kind if latest is None else latest.kind
        if (kind := self._memories[theirs.id]) is not theirs.kind:
            raise BadInput(
                f"memory {theirs.id} is a {kind} here and a {theirs.kind} there; nothing was "
                f"changed"
            )

    def _has(self, table: str, id: str) -> bool:
        with self.in_our_words():
            return (
                self.connection.execute(f"SELECT 1 FROM {table} WHERE id = ?", (id,)).fetchone()
                is not None
            )
