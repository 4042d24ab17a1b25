"""The write-ahead log, moved into the database beside the commits and refused where it belongs to
another file; and the commit seal, by which a lost end is noticed.

The seal is a small file beside the store that says how much was committed. Each transaction counts
itself in the store; the same count is written to the seal once the commit has returned. So the seal
may lag behind the store (a kill between the two), and never leads. It is synced at checkpoints, not
at commits: a power cut can only make it lag.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from hotset.errors import PageDamaged, StoreFailed, StoreMoved
from hotset.files.open import open_regular
from hotset.files.scope import PROCESS, ScopedQueue
from hotset.store.connection import Connection, close_connection
from hotset.store.store_files import SEAL, closing_file, wal_and_shm

_MAGIC_LITTLE, _MAGIC_BIG = 0x377F0682, 0x377F0683
_HEADER_BYTES = 32
_FILE_HEADER_BYTES = 100
_FRAME_HEADER_BYTES = 24
_PAGES_AT = 28  # how many pages a database has, in its first page
_COOKIE_AT = 40  # the schema cookie in a database's first page; random for each store
_MOST_MIGRATIONS = 100_000  # a cookie grows by one with each change of the schema
# a commit that makes a file grow writes its first page too; each frame takes 0.1 ms to check
_FRAMES_LOOKED_AT = 64
_SHORT_WAIT_MS = (
    50  # writers wait while the emptying of a WAL waits for readers; most reads are over in one
)
_LAST_WAIT_MS = 1000  # for readers, before a WAL is closed that cannot be opened again
_TRY_AGAIN = (
    1.0  # seconds: beside an export that takes minutes, writers wait for a twentieth of the time
)
_TRUNCATE_AFTER = (
    8  # times the usual size: then writers are made to wait, so that the WAL stays bounded
)


class Checkpointer:
    """A thread that moves the WAL into the database whenever it has grown enough."""

    def __init__(
        self, open_one: Callable[[], Connection], pages: int, sync_seal: Callable[[], None]
    ) -> None:
        self._open = open_one
        self._pages = pages
        self._sync_seal = sync_seal
        self._grown = 0
        self._emptying = False
        self._scope = PROCESS.child("checkpoints")
        self._erased: ScopedQueue[Callable[[], None]] = self._scope.queue(0)
        self._wake = threading.Event()
        self._closing = False
        self._thread = self._scope.thread(self._run, "hotset-checkpoint")

    def after_commit(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        """A connection's WAL hook: gets the number of pages in the WAL after a commit."""
        self._wal_has(pages)
        return apsw.SQLITE_OK

    def _wal_has(self, pages: int) -> None:
        if pages < self._grown:  # it was begun anew
            self._grown = 0
        if pages - self._grown >= self._pages:
            # Under load a WAL is never wholly moved and goes on growing: we wake for each part it
            # grew by, not for each commit.
            self._grown = pages
            self._wake.set()

    def empty(self, tried: Callable[[], None]) -> None:
        """Move everything into the database and truncate the WAL: its older pages still contain
        what was erased since.

        While a reader of an older state is in the way, it is tried again until that reader is done;
        `tried` is called after the first attempt. Runs on the checkpointer's own thread: no commit
        waits behind it.
        """
        self._erased.put(tried)
        self._wake.set()

    def close(self) -> None:
        self._closing = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._wake.wait(_TRY_AGAIN if self._emptying else None)
            self._wake.clear()
            tried = [self._erased.get() for _ in range(self._erased.qsize())]
            if self._emptying or tried:
                self._emptying = not self._checkpoint(empties=True)
            for tell in tried:
                tell()
            if self._closing:
                return
            if not self._emptying and not tried:
                self._checkpoint(empties=self._grown >= _TRUNCATE_AFTER * self._pages)

    def _checkpoint(self, *, empties: bool) -> bool:
        """Move the WAL into the database, and truncate it if `empties`. False if that was not
        possible: nothing is lost, the WAL keeps every commit."""
        self._sync_seal()
        try:
            connection = self._open()
        except (apsw.Error, StoreFailed):
            return False
        try:
            connection.set_busy_timeout(_SHORT_WAIT_MS)
            connection.wal_checkpoint(
                mode=apsw.SQLITE_CHECKPOINT_PASSIVE
            )  # while it is moved, others may write
            if empties:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error:
            return False
        finally:
            close_connection(connection)
        return True


def save_lost_wal(connection: Connection) -> None:
    """If only the WAL was removed, it is still open here: move its content into the database."""
    if connection.has_lost_wal:
        with suppress(apsw.Error):
            connection.set_busy_timeout(_LAST_WAIT_MS)
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def refuse_hollow_wal(database: Path) -> None:
    """Raises `StoreMoved` if a WAL has no valid header: it was truncated under us, and the commit
    is after a hole."""
    wal = f"{database}-wal"
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        with closing_file(os.open(wal, flags)) as file:
            magic = os.pread(file, 4, 0)
    except FileNotFoundError:
        return
    if magic and int.from_bytes(magic, "big") not in (_MAGIC_LITTLE, _MAGIC_BIG):
        raise StoreMoved(f"{wal} was cut off or overwritten while it was in use")


def refuse_torn(database: Path, sealed: str) -> None:
    """Raises `PageDamaged` if the database is gone, empty or truncated although it had content.

    SQLite takes an empty file for a new one, and one that is shorter than its header says for whole
    while a WAL lies beside it. `sealed` is what the seal says of it; empty where there is none.
    """
    wal, _ = wal_and_shm(database)
    by_seal = f"; its seal says {sealed}" if sealed else ""
    size = database.stat().st_size if database.exists() else 0
    if size < _FILE_HEADER_BYTES:
        waiting = len(_numbers_in(wal))
        if sealed or waiting:
            how = f"has only {size} bytes" if database.exists() else "is gone"
            beside_it = f"; {wal.name} beside it holds {waiting:,} of its pages" if waiting else ""
            raise PageDamaged(
                f"{database} {how}{by_seal}{beside_it}. Put it back, or save what is left with: "
                f"hotset repair. To begin anew,"
                " move all store.* files away"
            )
        return
    header = _beginning_of(database)
    page_size = {1: 65536}.get(
        int.from_bytes(header[16:18], "big"), int.from_bytes(header[16:18], "big")
    )
    (pages,) = struct.unpack_from(">I", header, _PAGES_AT)
    if page_size < 512 or header[24:28] != header[92:96] or size >= pages * page_size:
        return
    there = size // page_size
    # A checkpoint that was broken off writes the first page before those that it adds at the end:
    # these are in the WAL.
    if missing := set(range(there + 1, pages + 1)) - _numbers_in(wal):
        raise PageDamaged(
            f"{database} is cut off: of its {pages:,} pages {len(missing):,} are missing{by_seal}."
            " `hotset repair` saves what is intact"
        )


def refuse_foreign_wal(database: Path) -> None:
    """Refuse another database's WAL: SQLite would replay it into this one and ruin it."""
    wal, _ = wal_and_shm(database)
    ours = _cookie(_beginning_of(database))
    theirs = next(
        (
            _cookie(frame.page)
            for frame in islice(frames(wal), _FRAMES_LOOKED_AT)
            if frame.number == 1
        ),
        0,
    )
    if ours and theirs and not 0 <= theirs - ours < _MOST_MIGRATIONS:
        raise StoreFailed(
            f"{wal} belongs to another store; put the right one back or move it away. Nothing "
            f"was changed"
        )


@dataclass(frozen=True, slots=True)
class Frame:
    """One page in a WAL."""

    number: int
    """Page number in the database, from 1."""
    commits: bool
    """The last page of a transaction."""
    page: bytes


def frames(wal: Path) -> Iterator[Frame]:
    """The frames that SQLite would accept: each checksum builds on the one before it, so the first
    wrong one ends it."""
    try:
        file = wal.open("rb")
    except FileNotFoundError:
        return
    with file:
        header = file.read(_HEADER_BYTES)
        if len(header) < _HEADER_BYTES:
            return
        magic, _, page_size = struct.unpack_from(">III", header)
        order = {_MAGIC_LITTLE: "<", _MAGIC_BIG: ">"}.get(magic)
        if order is None or not 512 <= page_size <= 65536:
            return
        sums = _checksum(header[:24], (0, 0), order)
        if sums != struct.unpack_from(">II", header, 24):
            return
        while (
            len(frame := file.read(_FRAME_HEADER_BYTES + page_size))
            == _FRAME_HEADER_BYTES + page_size
        ):
            number, size = struct.unpack_from(">II", frame)
            page = frame[_FRAME_HEADER_BYTES:]
            sums = _checksum(page, _checksum(frame[:8], sums, order), order)
            if frame[8:16] != header[16:24] or sums != struct.unpack_from(">II", frame, 16):
                return
            yield Frame(number, size > 0, page)


def unchecked_frames(wal: Path, page_size: int) -> Iterator[Frame]:
    """Every frame of the WAL's newest round, whatever its checksum: for callers that can verify the
    rows."""
    if not wal.exists():
        return
    with wal.open("rb") as file:
        file.seek(_HEADER_BYTES)
        salts = None
        while (
            len(frame := file.read(_FRAME_HEADER_BYTES + page_size))
            == _FRAME_HEADER_BYTES + page_size
        ):
            salts = salts or frame[8:16]
            if frame[8:16] == salts:
                number, size = struct.unpack_from(">II", frame)
                yield Frame(number, size > 0, frame[_FRAME_HEADER_BYTES:])


def _numbers_in(wal: Path) -> set[int]:
    """The pages in a WAL, by the frames that SQLite would accept, without checking checksums."""
    try:
        file = wal.open("rb")
    except FileNotFoundError:
        return set()
    with file:
        header = file.read(_HEADER_BYTES)
        if len(header) < _HEADER_BYTES or struct.unpack_from(">I", header)[0] not in (
            _MAGIC_LITTLE,
            _MAGIC_BIG,
        ):
            return set()
        (page_size,) = struct.unpack_from(">I", header, 8)
        numbers: set[int] = set()
        while (
            len(frame := file.read(_FRAME_HEADER_BYTES)) == _FRAME_HEADER_BYTES
            and frame[8:16] == header[16:24]
        ):
            numbers.add(int.from_bytes(frame[:4], "big"))
            file.seek(page_size, 1)
        return numbers


def _checksum(content: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    """SQLite's checksum, from its file format."""
    one, two = sums
    for left, right in struct.iter_unpack(f"{order}II", content):
        one = (one + left + two) & 0xFFFFFFFF
        two = (two + right + one) & 0xFFFFFFFF
    return one, two


def _beginning_of(database: Path) -> bytes:
    with database.open("rb") as file:
        return file.read(100)


def _cookie(page: bytes) -> int:
    return int(struct.unpack_from(">I", page, _COOKIE_AT)[0]) if len(page) >= 100 else 0


_SEAL_MAGIC = b"hotseal1"
_SEAL_RECORD = struct.Struct(">8s16sQ16sQQQQ")
_SEAL_SUM_BYTES = 16
_SLOT_BYTES = (
    512  # one sector for each of two records in turn: a write that is torn spoils only its own
)
_META_ROW = struct.Struct(">16sQ16s")
_STATE = (
    "SELECT (SELECT value FROM meta WHERE name = 'committed'), (SELECT max(seq) FROM "
    "session), (SELECT max(seq) FROM turn),"
    " (SELECT max(seq) FROM page), (SELECT max(seq) FROM blob)"
)
_SEAL_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class CommitCount:
    """How many commits and rows a store has. Rows are numbered from 1, so the highest number is
    their count."""

    store: bytes = b""
    """Random, made with the first commit."""
    commits: int = 0
    tip: bytes = b""
    """A rolling hash over the commits: it differs between two copies of a store that diverged."""
    sessions: int = 0
    turns: int = 0
    pages: int = 0
    contents: int = 0

    def __str__(self) -> str:
        return f"commit {self.commits:,} with {self.turns:,} turns and {self.pages:,} pages"


def committed_in(connection: apsw.Connection) -> CommitCount:
    """The store's own count; all zero if an older hotset wrote it, which did not count yet."""
    try:
        row: Any = connection.execute(_STATE).fetchone()
    except apsw.SQLError:  # no such table: a new file
        return CommitCount()
    packed, *counts = row
    known = (
        _META_ROW.unpack(packed)
        if isinstance(packed, bytes) and len(packed) == _META_ROW.size
        else (b"", 0, b"")
    )
    return CommitCount(*known, *(count or 0 for count in counts))


def count_commit(connection: apsw.Connection, *, after: CommitCount | None = None) -> CommitCount:
    """Count the current transaction, as its last statement; after `after` if that is further."""
    here = committed_in(connection)
    store = (after.store if after is not None else here.store) or secrets.token_bytes(16)
    commits = max(here.commits, after.commits if after is not None else 0) + 1
    tip = hashlib.sha256(here.tip + secrets.token_bytes(16)).digest()[:16]
    connection.execute(
        "INSERT OR REPLACE INTO meta VALUES ('committed', ?)",
        (_META_ROW.pack(store, commits, tip),),
    )
    return replace(here, store=store, commits=commits, tip=tip)


def commit(connection: Connection) -> None:
    """Count and commit the current transaction, and seal it once it is on disk. Raises `StoreMoved`
    if the file is no longer in the folder: such a commit is not acknowledged."""
    committed = count_commit(connection)
    connection.execute("COMMIT")
    connection.refuse_moved()
    refuse_hollow_wal(connection.database)
    write_seal(connection.database.parent, committed)


def read_seal(folder: Path) -> CommitCount | None:
    """The latest intact record; None if there is no seal, or none that can be read."""
    try:
        file = open_regular(folder / SEAL)
    except (OSError, StoreFailed):
        return None
    with closing_file(file):
        found = [_read_slot(file, slot) for slot in (0, 1)]
    return max(
        (each for each in found if each is not None), key=lambda each: each.commits, default=None
    )


def write_seal(folder: Path, committed: CommitCount) -> None:
    """Write the seal. If that fails, it only lags: the commit is valid."""
    path = f"{folder}/{SEAL}"
    with suppress(OSError), closing_file(os.open(path, _SEAL_FLAGS, 0o600)) as file:
        slot = committed.commits % 2
        there = _read_slot(file, slot)
        if there is None or there.store != committed.store or there.commits < committed.commits:
            record = _SEAL_RECORD.pack(_SEAL_MAGIC, *astuple(committed))
            os.pwrite(file, record + _seal_sum(record), slot * _SLOT_BYTES)


def sync_seal(folder: Path) -> None:
    """Sync the seal to disk; call it at checkpoints."""
    with suppress(OSError, StoreFailed), closing_file(open_regular(folder / SEAL)) as file:
        os.fsync(file)


def what_is_missing(sealed: CommitCount | None, found: CommitCount) -> str:
    """What the seal counts and the store does not have, in a sentence; empty if nothing is
    missing."""
    if sealed is None:
        return ""
    if sealed.store != found.store and found.store:
        return f"the seal beside it is that of another store, at {sealed}; this one is at {found}"
    if sealed.commits > found.commits:
        gone = (
            f"{max(0, sealed.turns - found.turns):,} turns and "
            f"{max(0, sealed.pages - found.pages):,} pages"
        )
        return (
            f"its seal says {sealed}, the store ends at {found}: "
            f"{sealed.commits - found.commits:,} commits are missing,"
            f" with them {gone}"
        )
    if sealed.commits == found.commits and sealed.tip != found.tip:
        return (
            f"its seal is of {sealed}, and the store came to as many "
            f"commits by another way: it "
            f"was replaced"
        )
    return ""


def _read_slot(file: int, slot: int) -> CommitCount | None:
    content = os.pread(file, _SEAL_RECORD.size + _SEAL_SUM_BYTES, slot * _SLOT_BYTES)
    record = content[: _SEAL_RECORD.size]
    if (
        len(content) < _SEAL_RECORD.size + _SEAL_SUM_BYTES
        or content[_SEAL_RECORD.size :] != _seal_sum(record)
        or not record.startswith(_SEAL_MAGIC)
    ):
        return None
    return CommitCount(*_SEAL_RECORD.unpack(record)[1:])


def _seal_sum(record: bytes) -> bytes:
    return hashlib.sha256(record).digest()[:_SEAL_SUM_BYTES]
