"""Group commit: one thread writes all waiting deposits in one transaction, and answers when it is
on disk. An existing row stays as it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

import msgspec

from hotset.errors import BadInput, HotsetError, PageDamaged, StoreFailed
from hotset.files.lru import Lru
from hotset.files.scope import PROCESS, ScopedQueue
from hotset.nouns.deposit import (
    CommitReceipt,
    Deposit,
    Erased,
    HiddenKept,
    NoteWritten,
    PageAdded,
    PlanMade,
    Remembered,
    ReplyReceived,
    RequestReceived,
)
from hotset.nouns.message import Message
from hotset.nouns.page import Digest, Gist, digest
from hotset.store.engine import SqlConnection, WriteEngine
from hotset.store.memory_tables import ERASABLE, TABLE_OF, TABLES
from hotset.store.placement import merge_receipts, place, whole_system, whole_toolbox
from hotset.store.port import Blob, Row, Writing
from hotset.store.sql_lookup import SqlLookup
from hotset.store.tables import (
    GIST,
    NOTE,
    TURN,
    WORTH_COMPRESSING,
    CompressedContent,
    RowTable,
    Value,
    compress,
    pack_hex,
)

_MOST_AT_ONCE = 256
_MOST_BYTES_AT_ONCE = 4 * 1024 * 1024  # a commit writes them to the disk while it holds the lock
_TRANSACTION_SECONDS = 0.025
"""After this time a transaction is committed, and the rest goes into the next one: others wait for
the lock."""
_MOST_QUEUED = 65536  # deposits: the keeper stops long before, and an import waits
_MOST_SEEN = 16384  # digests: the latest requests of some dozens of sessions, in 3 MB
_MEMORY_BYTES = (
    2048  # about what a memory takes beside its text: actions, files, where it comes from
)
_WORTH_COMPRESSING_AHEAD = (
    4096  # compressing less than this takes less than a trip to another thread
)


@dataclass(frozen=True, slots=True)
class _QueuedDeposit:
    deposits: tuple[Deposit, ...]
    future: Future[CommitReceipt] = field(default_factory=Future)
    compressed: Mapping[Digest, CompressedContent] = field(default_factory=dict)
    """Its content, compressed before it got here."""


class Writer:
    """Takes deposits from any thread; returns futures at once, which resolve when their deposit is
    durable.

    Long deposits are compressed on a thread of their own before they come to the one that writes;
    all stay in their order.
    """

    def __init__(self, engine: WriteEngine) -> None:
        self._engine = engine
        self._scope = PROCESS.child("store")
        self._long: ScopedQueue[_QueuedDeposit | None] = self._scope.queue(_MOST_QUEUED)
        self._queue: ScopedQueue[_QueuedDeposit | None] = self._scope.queue(_MOST_QUEUED)
        self._door = threading.Lock()
        self._compressing = 0
        """Deposits that are not in the writer's own queue yet."""
        self._closed = False
        self._threads = [
            self._scope.thread(self._compress_ahead, "hotset-presser"),
            self._scope.thread(self._run, "hotset-writer"),
        ]

    def keep(self, deposits: tuple[Deposit, ...]) -> Future[CommitReceipt]:
        waiting = _QueuedDeposit(deposits)
        # What was handed over is handed over: a caller that goes away does not take its deposit
        # back.
        waiting.future.set_running_or_notify_cancel()
        with self._door:
            if self._closed:
                raise StoreFailed("the store is closed")
            if self._compressing or _bytes_in(deposits) >= _WORTH_COMPRESSING_AHEAD:
                self._compressing += 1
                self._long.put(waiting)
            else:
                self._queue.put(waiting)
        return waiting.future

    def close(self) -> None:
        """Write what still waits, then end."""
        with self._door:
            if not self._closed:
                self._closed = True
                self._long.put(None)
        for thread in self._threads:
            thread.join()

    def _compress_ahead(self) -> None:
        compressor = DepositCompressor()
        while (waiting := self._long.get()) is not None:
            with suppress(Exception):  # whatever happens, it is written
                waiting = replace(
                    waiting,
                    compressed={
                        address: form
                        for each in waiting.deposits
                        for address, form in compressor.compress(each).items()
                    },
                )
            self._queue.put(waiting)
            with self._door:
                self._compressing -= 1
            del waiting
        self._queue.put(None)

    def _run(self) -> None:
        ended = False
        while not ended:
            first = self._queue.get()
            batch: list[_QueuedDeposit] = []
            count = size = 0
            while first is not None:
                batch.append(first)
                count += len(first.deposits)
                size += _bytes_in(first.deposits)
                if count >= _MOST_AT_ONCE or size >= _MOST_BYTES_AT_ONCE or self._queue.empty():
                    break
                first = self._queue.get()
            ended = first is None
            if batch:
                self._settle(batch)
            del first, batch  # bodies of megabytes, and the next deposit may be far

    def _settle(self, batch: Sequence[_QueuedDeposit]) -> None:
        """Every future of the batch gets an answer, whatever happens: a caller must never wait
        forever."""
        while batch:
            try:
                answers = self._engine.run(partial(self._place_all, batch))
            except BaseException as error:
                answers = [self._engine.translate(error)] * len(batch)
            for waiting, answer in zip(batch, answers, strict=False):
                if not isinstance(answer, CommitReceipt):
                    waiting.future.set_exception(answer)
                elif any(isinstance(each, Erased) for each in waiting.deposits):
                    self._engine.forget(partial(waiting.future.set_result, answer))
                else:
                    waiting.future.set_result(answer)
            batch = batch[len(answers) :]

    def _place_all(
        self, batch: Sequence[_QueuedDeposit], connection: SqlConnection
    ) -> Sequence[CommitReceipt | BaseException]:
        """The answers to as many deposits as one transaction takes, from the first on."""
        answers: list[CommitReceipt | BaseException] = []
        until = time.monotonic() + _TRANSACTION_SECONDS
        for waiting in batch:
            answers.append(self._place(connection, waiting))
            if time.monotonic() > until:
                break
        return answers

    def _place(
        self, connection: SqlConnection, waiting: _QueuedDeposit
    ) -> CommitReceipt | BaseException:
        """Place one group of the batch. Its own error is its own answer; an error of the engine is
        an answer to all."""
        connection.execute("SAVEPOINT deposit")
        kept = CommitReceipt()
        try:
            for deposit in waiting.deposits:
                writing, each = place(deposit, SqlLookup(connection))
                write(connection, writing, waiting.compressed)
                kept = merge_receipts(kept, each)
            self._engine.placed(connection, waiting.deposits, kept)
        except Exception as error:
            if self._engine.concerns_all(error):
                raise
            connection.execute("ROLLBACK TO deposit")
            connection.execute("RELEASE deposit")
            return _own_fault(error, self._engine)
        connection.execute("RELEASE deposit")
        return kept


def _bytes_in(deposits: tuple[Deposit, ...]) -> int:
    return sum(map(_bytes_of, deposits))


def _bytes_of(deposit: Deposit) -> int:
    match deposit:
        case RequestReceived():
            return len(deposit.request.raw)
        case NoteWritten():
            return len(deposit.value or b"")
        case Remembered():
            return sum(_MEMORY_BYTES + len(memory.text) for memory in deposit.memories)
        case _:
            return sum(map(len, content_beside_messages(deposit)))


def _own_fault(error: Exception, engine: WriteEngine) -> BaseException:
    translated = engine.translate(error)
    if isinstance(translated, HotsetError):
        return translated
    if isinstance(error, UnicodeDecodeError):
        return PageDamaged("a row that the deposit builds on is damaged: its text is not UTF-8")
    if isinstance(error, UnicodeError):
        return BadInput(f"a deposit with text that UTF-8 cannot hold: {error}")
    failed = StoreFailed(f"a deposit could not be placed: {type(error).__name__}: {error}")
    failed.__cause__ = error
    return failed


class DepositCompressor:
    """Compresses the content of deposits before they reach the writer. For one thread."""

    def __init__(self) -> None:
        self._seen: Lru[Digest, bool] = Lru("compressed content", count=_MOST_SEEN)
        """Content of the latest deposits: most of a request was in the one before it."""

    def compress(self, deposit: Deposit) -> dict[Digest, CompressedContent]:
        """Compress what may be new to the store."""
        made: dict[Digest, CompressedContent] = {}
        for content in content_beside_messages(deposit):
            self._compress(content, made)
        for message in _newest_first(deposit):
            if not self._compress(message.raw, made):
                break  # a client resends what is known: what it adds comes after that
            for part in message.parts:
                self._compress(part.content, made)
        return made

    def _compress(self, content: bytes, made: dict[Digest, CompressedContent]) -> bool:
        """False if it was seen before."""
        address = digest(content)
        if self._seen.get(address):
            return False
        self._seen.put(address, True)
        if len(content) >= WORTH_COMPRESSING:
            made[address] = compress(content)
        return True


def content_beside_messages(deposit: Deposit) -> Iterator[bytes]:
    """The content of a deposit that is not part of a message."""
    match deposit:
        case RequestReceived(request=request):
            yield from (part.content for part in request.system)
            yield from (tool.raw for tool in request.tools)
            yield from (whole_system(request), whole_toolbox(request), request.params)
        case ReplyReceived():
            yield deposit.raw
        case PageAdded():
            yield deposit.content
        case PlanMade():
            yield from (shown.text for shown in deposit.shown)
        case HiddenKept():
            yield from (*deposit.hidden.before, deposit.hidden.instead, *deposit.hidden.after)


def _newest_first(deposit: Deposit) -> Iterator[Message]:
    match deposit:
        case RequestReceived():
            yield from reversed(deposit.request.messages)
        case ReplyReceived():
            yield from reversed(deposit.reply.messages)


_INSERT = {
    table.name: f"INSERT INTO {table.name} ({', '.join(table.stored)}) "
    f"VALUES ({', '.join('?' * len(table.stored))}) ON CONFLICT DO NOTHING"
    for table in TABLES
}
_INSERT["turn"] = (
    f"INSERT INTO turn ({TURN.names}) VALUES ({TURN.marks}) "
    f"ON CONFLICT (session, number) DO UPDATE SET ({TURN.names}) = ({TURN.qualified('excluded.')})"
)
_INSERT["gist"] = (
    f"INSERT INTO gist (seq, {GIST.names}) "
    f"SELECT seq, {GIST.marks} FROM page WHERE id = ? ON CONFLICT DO NOTHING"
)
ERASE = tuple(
    f"UPDATE {table.name} SET {blanked} WHERE {column} IN (SELECT value FROM json_each(?))"
    for table in ERASABLE
    for blanked in [", ".join(f"{name} = NULL" for name in table.stored)]
    for column in table.erased_by
)
"""What blanks the rows of memories; each takes their ids as JSON."""
_OVERWRITE_NOTE = (
    f"UPDATE note SET ({NOTE.names}) = ({NOTE.marks}) WHERE space = ? AND key = ? AND version = ?"
)


def write(
    connection: SqlConnection, writing: Writing, compressed: Mapping[Digest, CompressedContent]
) -> None:
    """The rows of one deposit. `compressed` holds content that was compressed beforehand."""
    if writing.erased:  # their numbers stay: see `migrations`
        named = msgspec.json.encode(writing.erased).decode()
        for sql in ERASE:
            connection.execute(sql, (named,))
    for blob in writing.blobs:
        insert_blob(connection, blob, compressed.get(blob.digest))
    rows: Iterable[Row] = chain(
        writing.sessions,
        writing.nodes,
        writing.pages,
        writing.tools,
        writing.references,
        writing.shown,
        writing.hidden,
        writing.sent,
        writing.bills,
        writing.summaries,
        writing.memories,
        () if writing.overwritten else writing.notes,
        writing.turns,
        writing.events,
        writing.links,
        writing.uses,
        writing.gists,
    )
    for row in rows:
        insert_row(connection, row)
    # Rows are numbered without gaps, so none is deleted: see `repair`.
    for old in writing.overwritten:
        [note] = writing.notes
        connection.execute(
            _OVERWRITE_NOTE, (*NOTE.pack(note), old.space, pack_hex(old.key), old.version)
        )


def insert_row(
    connection: SqlConnection, row: Row, nth: Callable[[Value], int] | None = None
) -> bool:
    """Insert a row; True if it is new. An existing row stays as it is, except for a turn.

    In a table that repeats equal rows `nth` numbers those of one seal, from 0; by default it is the
    next one.
    """
    table = TABLE_OF[type(row)]
    values = table.pack(row)
    if table.repeats:
        values = (*values, (nth or partial(_count_equal, connection, table))(values[-1]))
    if isinstance(row, Gist):
        values = (*values, row.page)
    connection.execute(_INSERT[table.name], values)
    if connection.changes() == 1:
        return True
    page = "SELECT 1 FROM page WHERE id = ?"
    if isinstance(row, Gist) and connection.execute(page, (row.page,)).fetchone() is None:
        raise BadInput(f"a gist of page {row.page}, which is not there")
    return False


def _count_equal(connection: SqlConnection, table: RowTable[Any], seal: Value) -> int:
    sql = f'SELECT count(*) FROM "{table.name}" WHERE seal = ?'
    row = connection.execute(sql, (seal,)).fetchone()
    return int(row[0]) if row else 0


def has_blob(connection: SqlConnection, digest: Digest) -> bool:
    return (
        connection.execute("SELECT 1 FROM blob WHERE digest = ?", (pack_hex(digest),)).fetchone()
        is not None
    )


def insert_blob(
    connection: SqlConnection, blob: Blob, compressed: CompressedContent | None = None
) -> bool:
    if has_blob(connection, blob.digest):
        return False
    form = compressed or compress(blob.content)
    connection.execute(
        "INSERT INTO blob (digest, codec, size, body) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (pack_hex(blob.digest), int(form.codec), form.size, form.body),
    )
    return True
