"""The commit seal: a small file beside the store that says how much was committed, so that a lost
end is noticed.

Each transaction counts itself in the store; the same count is written to the seal once the commit
has returned. So the seal may lag behind the store (a kill between the two), and never leads. It is
synced at checkpoints, not at commits: a power cut can only make it lag.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apsw

from hotset.errors import StoreFailed
from hotset.files.open import open_regular
from hotset.store.connecting import Connection
from hotset.store.folder import SEAL
from hotset.store.wal import refuse_hollow_wal

_MAGIC = b"hotseal1"
_RECORD = struct.Struct(">8s16sQ16sQQQQ")
_SUM_BYTES = 16
_SLOT_BYTES = (
    512  # one sector for each of two records in turn: a write that is torn spoils only its own
)
_ROW = struct.Struct(">16sQ16s")
_STATE = (
    "SELECT (SELECT value FROM meta WHERE name = 'committed'), (SELECT max(seq) FROM "
    "session), (SELECT max(seq) FROM turn),"
    " (SELECT max(seq) FROM page), (SELECT max(seq) FROM blob)"
)
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class CommitCount:
    """How far a store has come. Rows are numbered from 1, so that the highest number is their
    count."""

    store: bytes = b""
    """Random, made with the first commit."""
    commits: int = 0
    tip: bytes = b""
    """A rolling hash over the commits: two stores that were copies once and went different ways
    differ in it."""
    sessions: int = 0
    turns: int = 0
    pages: int = 0
    contents: int = 0

    def __str__(self) -> str:
        return f"commit {self.commits:,} with {self.turns:,} turns and {self.pages:,} pages"


def committed_in(connection: apsw.Connection) -> CommitCount:
    """How far the store has come, as it says itself; all zero where it was written by a hotset that
    did not count yet."""
    try:
        row: Any = connection.execute(_STATE).fetchone()
    except apsw.SQLError:  # no such table: a new file
        return CommitCount()
    said, *counts = row
    known = (
        _ROW.unpack(said) if isinstance(said, bytes) and len(said) == _ROW.size else (b"", 0, b"")
    )
    return CommitCount(*known, *(count or 0 for count in counts))


def count_commit(connection: apsw.Connection, *, after: CommitCount | None = None) -> CommitCount:
    """Counts the transaction that is under way, as its last statement; behind `after` where that is
    further."""
    here = committed_in(connection)
    store = (after.store if after is not None else here.store) or secrets.token_bytes(16)
    commits = max(here.commits, after.commits if after is not None else 0) + 1
    tip = hashlib.sha256(here.tip + secrets.token_bytes(16)).digest()[:16]
    connection.execute(
        "INSERT OR REPLACE INTO meta VALUES ('committed', ?)", (_ROW.pack(store, commits, tip),)
    )
    return replace(here, store=store, commits=commits, tip=tip)


def commit(connection: Connection) -> None:
    """Counts and commits the transaction that is under way, and seals it once it is on disk.

    Raises `StoreMoved` where that was a file which the folder does not hold any more: such a commit
    is not acknowledged.
    """
    committed = count_commit(connection)
    connection.execute("COMMIT")
    connection.refuse_moved()
    refuse_hollow_wal(connection.database)
    write_seal(connection.database.parent, committed)


def read_seal(folder: Path) -> CommitCount | None:
    """The latest record that is whole; None where there is no seal, or none that can be read."""
    try:
        file = open_regular(folder / SEAL)
    except (OSError, StoreFailed):
        return None
    try:
        found = [_read_slot(file, slot) for slot in (0, 1)]
    finally:
        os.close(file)
    return max(
        (each for each in found if each is not None), key=lambda each: each.commits, default=None
    )


def write_seal(folder: Path, committed: CommitCount) -> None:
    """A seal that cannot be written only lags: the commit stands."""
    with suppress(OSError):
        file = os.open(f"{folder}/{SEAL}", _FLAGS, 0o600)
        try:
            slot = committed.commits % 2
            there = _read_slot(file, slot)
            if there is None or there.store != committed.store or there.commits < committed.commits:
                record = _RECORD.pack(_MAGIC, *_values(committed))
                os.pwrite(file, record + _sum(record), slot * _SLOT_BYTES)
        finally:
            os.close(file)


def sync_seal(folder: Path) -> None:
    """To be called at checkpoints."""
    with suppress(OSError, StoreFailed):
        file = open_regular(folder / SEAL)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def what_is_missing(sealed: CommitCount | None, found: CommitCount) -> str:
    """What the seal tells of and the store does not hold, in a sentence; empty where nothing is
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
    content = os.pread(file, _RECORD.size + _SUM_BYTES, slot * _SLOT_BYTES)
    record = content[: _RECORD.size]
    if (
        len(content) < _RECORD.size + _SUM_BYTES
        or content[_RECORD.size :] != _sum(record)
        or not record.startswith(_MAGIC)
    ):
        return None
    return CommitCount(*_RECORD.unpack(record)[1:])


def _values(committed: CommitCount) -> tuple[Any, ...]:
    return tuple(getattr(committed, name) for name in CommitCount.__slots__)


def _sum(record: bytes) -> bytes:
    return hashlib.sha256(record).digest()[:_SUM_BYTES]
