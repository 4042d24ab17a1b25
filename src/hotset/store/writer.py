"""Group commit: one thread writes everything that waits in one transaction, and answers when it is on disk."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import apsw

from hotset.errors import BadInput, DiskFull, HotsetError, PageDamaged, StoreFailed
from hotset.nouns.deposit import Answered, Asked, Deposit, Erased, Hid, Kept, Noted, Planned, Remembered
from hotset.nouns.page import Digest, digest
from hotset.store.ballast import Ballast
from hotset.store.blobs import Pressed, likely_new, press
from hotset.store.connecting import is_full, leave
from hotset.store.inserting import has_blob, write
from hotset.store.lookup import SqlLookup
from hotset.store.placing import place
from hotset.store.wal import Checkpointer

_MOST_AT_ONCE = 256  # bounds how long other processes wait for the lock: about 30 ms of small deposits
_MOST_BYTES_AT_ONCE = 16 * 1024 * 1024  # the same bound for long ones
_MEMORY_BYTES = 2048  # about what a memory takes beside its text: actions, files, where it comes from
_WORTH_PRESSING_AHEAD = 4096  # compressing less than this takes microseconds, wherever it is done


@dataclass(frozen=True, slots=True)
class _Waiting:
    deposit: Deposit
    future: Future[Kept] = field(default_factory=Future)


class Writer:
    """Deposits go in at any thread; futures come back at once and resolve when their deposit is durable."""

    def __init__(
        self,
        connection: apsw.Connection,
        open_one: Callable[[], apsw.Connection],
        ballast: Ballast,
        checkpointer: Checkpointer,
        translate: Callable[[apsw.Error], StoreFailed],
    ) -> None:
        self._open = open_one
        self._ballast = ballast
        self._checkpointer = checkpointer
        self._translate = translate
        self._connection: apsw.Connection | None = self._listening(connection)
        self._full = False
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._door = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="hotset-writer", daemon=True)
        self._thread.start()

    def keep(self, deposit: Deposit) -> Future[Kept]:
        waiting = _Waiting(deposit)
        # What was handed over is handed over: a caller that goes away does not take its deposit back.
        waiting.future.set_running_or_notify_cancel()
        with self._door:
            if self._closed:
                raise StoreFailed("the store is closed")
            self._queue.put(waiting)
        return waiting.future

    @property
    def full(self) -> bool:
        """The disk was full when we last wrote, and there is no room yet."""
        return self._full

    def close(self) -> None:
        """Writes what still waits, then ends."""
        with self._door:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        ended = False
        while not ended:
            first = self._queue.get()
            batch: list[_Waiting] = []
            size = 0
            while first is not None:
                batch.append(first)
                size += _bytes_of(first.deposit)
                if len(batch) >= _MOST_AT_ONCE or size >= _MOST_BYTES_AT_ONCE or self._queue.empty():
                    break
                first = self._queue.get()
            ended = first is None
            if batch:
                self._settle(batch)
        self._disconnect()

    def _settle(self, batch: Sequence[_Waiting]) -> None:
        """Every future of the batch gets its answer, whatever happens: a caller must never wait for ever."""
        try:
            answers = self._keep_all(batch)
        except BaseException as error:
            self._disconnect()
            failure = self._translate(error) if isinstance(error, apsw.Error) else error
            answers = [failure] * len(batch)
        else:
            if any(isinstance(waiting.deposit, Erased) for waiting in batch):
                self._checkpointer.empty()
        for waiting, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Kept):
                waiting.future.set_result(answer)
            else:
                waiting.future.set_exception(answer)

    def _keep_all(self, batch: Sequence[_Waiting]) -> Sequence[Kept | BaseException]:
        if self._full and not self._ballast.room_again():
            raise DiskFull("the disk is full; make room, nothing that was kept is lost")
        self._full = False
        pressed = _press_ahead(self._connected(), batch)
        try:
            return self._commit(batch, pressed)
        except (apsw.FullError, apsw.IOError) as error:
            if not is_full(error) and self._ballast.has_room:
                raise
            self._disconnect()
            self._full = self._ballast.drop()
            if not self._full:
                raise DiskFull("the disk is full; make room, nothing that was kept is lost") from error
        answers = self._commit(batch, pressed)
        self._full = not self._ballast.room_again()
        return answers

    def _commit(self, batch: Sequence[_Waiting], pressed: dict[Digest, Pressed]) -> Sequence[Kept | BaseException]:
        connection = self._connected()
        connection.execute("BEGIN IMMEDIATE")
        try:
            answers = [self._place(connection, waiting.deposit, pressed) for waiting in batch]
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return answers

    def _place(self, connection: apsw.Connection, deposit: Deposit, pressed: dict[Digest, Pressed]) -> Kept | BaseException:
        """One deposit of the batch. Its own fault is its own answer; a fault of the disk is everybody's."""
        connection.execute("SAVEPOINT deposit")
        try:
            writing, kept = place(deposit, SqlLookup(connection))
            write(connection, writing, pressed)
        except (apsw.FullError, apsw.IOError, apsw.NoMemError, MemoryError):
            raise
        except Exception as error:
            connection.execute("ROLLBACK TO deposit; RELEASE deposit")
            return _own_fault(error, self._translate)
        connection.execute("RELEASE deposit")
        return kept

    def _connected(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = self._listening(self._open())
        return self._connection

    def _listening(self, connection: apsw.Connection) -> apsw.Connection:
        connection.set_wal_hook(self._after_commit)
        return connection

    def _after_commit(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._checkpointer.wal_has(pages)
        return apsw.SQLITE_OK

    def _disconnect(self) -> None:
        """After a failure nothing of the old connection is trusted."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            leave(connection)


def _bytes_of(deposit: Deposit) -> int:
    match deposit:
        case Asked():
            return len(deposit.request.raw)
        case Answered():
            return len(deposit.raw)
        case Noted():
            return len(deposit.content)
        case Planned() | Hid():
            return sum(map(len, likely_new(deposit)))
        case Remembered():
            return sum(_MEMORY_BYTES + len(memory.text) for memory in deposit.memories)
        case _:
            return 0


def _press_ahead(connection: apsw.Connection, batch: Sequence[_Waiting]) -> dict[Digest, Pressed]:
    """Compresses before the write lock is taken, so that other processes do not wait for it."""
    pressed: dict[Digest, Pressed] = {}
    for waiting in batch:
        for content in likely_new(waiting.deposit):
            if len(content) < _WORTH_PRESSING_AHEAD:
                continue
            address = digest(content)
            if address not in pressed and not has_blob(connection, address):
                pressed[address] = press(content)
    return pressed


def _own_fault(error: Exception, translate: Callable[[apsw.Error], StoreFailed]) -> BaseException:
    if isinstance(error, HotsetError):
        return error
    if isinstance(error, apsw.Error):
        return translate(error)
    if isinstance(error, UnicodeDecodeError):
        return PageDamaged("a row that the deposit builds on is damaged: its text is not UTF-8")
    if isinstance(error, UnicodeError):
        return BadInput(f"a deposit with text that UTF-8 cannot hold: {error}")
    failed = StoreFailed(f"a deposit could not be placed: {type(error).__name__}: {error}")
    failed.__cause__ = error
    return failed
