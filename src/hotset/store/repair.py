"""Repairs a damaged store: copies what is intact into a fresh store and keeps the damaged file
beside it."""

from __future__ import annotations

import bisect
import os
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotset.errors import HotsetError, NotFound, PageDamaged, StoreFailed
from hotset.files.open import open_private
from hotset.files.private_folder import private_folder, sync_folder
from hotset.nouns.message import DialectName, Message
from hotset.nouns.page import Digest, Page, digest
from hotset.nouns.turn import Turn
from hotset.store.connection import Connection, Tuning, close_connection, connect, translate_errors
from hotset.store.memory_tables import ERASABLE, TABLES
from hotset.store.migrations import APPLICATION_ID, VERSION, migrate, move_hidden_to_notes
from hotset.store.placement import pages_of
from hotset.store.port import Blob
from hotset.store.queries import read_value
from hotset.store.sql_lookup import SqlLookup
from hotset.store.store_files import (
    DATABASE,
    closing_file,
    exclusive_use,
    opening_lock,
    refuse_links,
    wal_and_shm,
)
from hotset.store.tables import (
    GIST,
    NODE,
    PAGE,
    TURN,
    RowTable,
    is_blank,
    read_content,
    supersedes,
)
from hotset.store.wal import (
    CommitCount,
    Frame,
    committed_in,
    count_commit,
    frames,
    read_seal,
    unchecked_frames,
    write_seal,
)
from hotset.store.writer import has_blob, insert_blob

Reread = Callable[[DialectName, bytes], Iterable[Message]]
"""Parses the raw bytes of a message or of a whole reply again. A dialect can; the store cannot."""

_FRESH = "store.db.repairing"
_BLOB_VALUES = 5
_SET = {
    table.name: "seal" for table in ERASABLE
}  # a column that tells a row from what stays of one that was erased
_PAGE_BYTES = 4096  # what `migrations` makes; the header, which says so too, may be gone
_LEAF = 0x0D
_HEADER_BYTES = 100
_MOST_VALUES = 64  # more columns than any table of ours will have
_UNREADABLE = (IndexError, ValueError, struct.error, UnicodeDecodeError)


@dataclass(frozen=True, slots=True)
class RepairReport:
    saved: Mapping[str, int]
    """Rows in the fresh store, by kind; `content` are the blobs."""
    lost: Mapping[str, int]
    """Rows that are lost, as far as gaps in their numbers show."""
    rederived: int
    """Contents and pages rebuilt from the raw bytes of their messages."""
    missing: tuple[Digest, ...]
    """Lost content that a row still points to."""
    damaged: Path
    """Path of the damaged file."""

    @property
    def whole(self) -> bool:
        return not self.missing and not any(self.lost.values())


def repair(folder: Path, reread: Reread | None = None, tuning: Tuning = Tuning()) -> RepairReport:  # noqa: B008 - frozen
    """Repair a store. Raises `StoreBusy` while any process uses it; on failure everything stays as
    it was."""
    folder = private_folder(Path(folder))
    database = folder / DATABASE
    was_there = database.exists()
    if not was_there and not wal_and_shm(database)[0].exists():
        raise NotFound(f"no store in {folder}")
    fresh = folder / _FRESH
    with exclusive_use(folder), opening_lock(folder, tuning.patience), translate_errors(database):
        sealed = read_seal(folder)
        refuse_links(database)
        os.close(open_private(database))
        _refuse_newer(database)
        _discard(fresh)
        try:
            connection = _make(fresh, tuning)
            try:
                report = _save(
                    connection,
                    read_cells(database, wal_and_shm(database)[0]),
                    reread,
                    sealed or CommitCount(),
                )
                committed = committed_in(connection)
            finally:
                close_connection(connection)
            _sync(fresh)
        except BaseException:
            _discard(fresh)
            if not was_there:
                database.unlink()
            raise
        aside = _swap(database, fresh)
        write_seal(folder, committed)
    return RepairReport(**report, damaged=aside)


def _save(
    connection: Connection, cells: Iterable[Cell], reread: Reread | None, sealed: CommitCount
) -> dict[str, Any]:
    connection.execute("BEGIN IMMEDIATE")
    for cell in cells:
        _take(connection, cell)
    connection.execute("DELETE FROM gist WHERE seq NOT IN (SELECT seq FROM page)")
    gaps = _gaps(connection, sealed)
    made_blobs, made_pages = _rederive(connection, reread) if reread else (0, 0)
    gaps["blob"] = max(0, gaps["blob"] - made_blobs)
    gaps["page"] = max(0, gaps["page"] - made_pages)
    for table in TABLES:
        if table.when_lost:
            gaps[table.name] += _let_go(connection, table)
    move_hidden_to_notes(connection)
    saved = {
        name: read_value(connection, f'SELECT count({_SET.get(name, "*")}) FROM "{name}"')
        for name in (*gaps, "gist")
    }
    if not any(saved.values()):
        raise StoreFailed(
            "nothing in the file could be recognised as a part of a store; it was left as it "
            "is. To begin anew, move all store.*"
            " files away"
        )
    missing = tuple(sorted(_missing(connection)))
    count_commit(connection, after=sealed)  # beyond the seal: what stays lost is reported once
    connection.execute("COMMIT")
    return {
        "saved": _in_words(saved),
        "lost": _in_words(gaps),
        "rederived": made_blobs + made_pages,
        "missing": missing,
    }


def _gaps(connection: Connection, sealed: CommitCount) -> dict[str, int]:
    """Lost rows, by gaps in their numbers.

    Rows are numbered without gaps, and none is ever deleted: an erased one leaves its number. The
    seal knows the highest numbers of the tables that it counts. Gists have their pages' numbers and
    are made again anyway.
    """
    names = ("blob", *(table.name for table in TABLES if table is not GIST))
    ends = {
        "blob": sealed.contents,
        "session": sealed.sessions,
        "turn": sealed.turns,
        "page": sealed.pages,
    }
    return {
        name: read_value(
            connection,
            f'SELECT max(coalesce(max(seq), 0), {ends.get(name, 0)}) - count(*) FROM "{name}"',
        )
        for name in names
    }


def _in_words(counts: dict[str, int]) -> dict[str, int]:
    return {"content" if name == "blob" else name: count for name, count in counts.items()}


def _take(connection: Connection, cell: Cell) -> None:
    """A row of the table that its seal proves; anything else is not ours."""
    if cell.seq < 1 or not cell.values or cell.values[0] is not None:
        return
    if len(cell.values) == _BLOB_VALUES:
        _take_blob(connection, cell)
        return
    if is_blank(cell.values):
        _take_blank(connection, cell)
        return
    for table in TABLES:
        extra = 1 if table.repeats else 0
        if len(cell.values) == len(table.columns) + 2 + extra:
            values = cell.values[1 : len(cell.values) - extra]
            with suppress(PageDamaged):
                noun = table.unpack(values)
                _take_row(connection, table, cell, noun)
                return


def _take_blank(connection: Connection, cell: Cell) -> None:
    """Keep an erased row: it is no loss, and its number is not reused."""
    for table in ERASABLE:
        if len(cell.values) == len(table.columns) + 2 + table.repeats:
            connection.execute(
                (f"INSERT OR IGNORE INTO {table.name} (seq) VALUES (?)"), (cell.seq,)
            )


def _take_blob(connection: Connection, cell: Cell) -> None:
    _, packed, codec, size, body = cell.values
    if isinstance(packed, bytes):
        with suppress(PageDamaged):
            read_content(Digest(packed.hex()), codec, size, body)
            connection.execute(
                "INSERT OR IGNORE INTO blob VALUES (?, ?, ?, ?, ?)",
                (cell.seq, packed, codec, size, body),
            )


def _take_row(connection: Connection, table: RowTable[Any], cell: Cell, noun: Any) -> None:
    marks = ", ".join("?" * len(cell.values))
    values = (cell.seq, *cell.values[1:])
    if isinstance(noun, Turn):
        there = SqlLookup(connection).turn(noun.session, noun.number)
        if there is not None and supersedes(noun, there):
            connection.execute(
                "DELETE FROM turn WHERE session = ? AND number = ?", (noun.session, noun.number)
            )
    connection.execute((f'INSERT OR IGNORE INTO "{table.name}" VALUES ({marks})'), values)


def _let_go(connection: Connection, table: RowTable[Any]) -> int:
    """Drop forms without bytes, which cannot be sent: the page is shown as before, or full. Returns
    how many rows went."""
    rows = connection.execute(f'SELECT seq, {table.names} FROM "{table.name}"').fetchall()
    lost = [
        seq
        for seq, *row in rows
        if not all(has_blob(connection, each) for each in table.addresses(table.unpack(row)))
    ]
    connection.executemany((f'DELETE FROM "{table.name}" WHERE seq = ?'), ((seq,) for seq in lost))
    return len(lost)


def _missing(connection: Connection) -> set[Digest]:
    """Content that some row points to and that does not exist."""
    wanted = {
        address
        for table in TABLES
        for row in _rows(connection, table)
        for address in table.addresses(row)
    }
    return {address for address in wanted if not has_blob(connection, address)}


def _rederive(connection: Connection, reread: Reread) -> tuple[int, int]:
    """Number of contents and pages rebuilt from the raw bytes of messages and replies; hashes
    decide what is right."""
    made = 0
    missing = _missing(connection)
    for dialect, raw in _raw_bytes(connection, missing):
        for message in _read_again(reread, dialect, raw):
            for content in (message.raw, *(part.content for part in message.parts)):
                address = digest(content)
                if address in missing:
                    made += insert_blob(connection, Blob(address, content))
                    missing.discard(address)
    return made, _rederive_pages(connection, reread)


def _raw_bytes(connection: Connection, missing: set[Digest]) -> Iterator[tuple[DialectName, bytes]]:
    """The raw bytes of every message and reply in the sessions that lack something."""
    sessions = {
        row.session
        for table in (NODE, PAGE, TURN)
        for row in _rows(connection, table)
        if missing & {*table.addresses(row)}
    }
    look = SqlLookup(connection)
    for turn in _rows(connection, TURN):
        if (
            turn.session in sessions
            and turn.reply
            and (raw := look.content(turn.reply)) is not None
        ):
            yield turn.dialect, raw
    dialects = _dialects(connection)
    for node in _rows(connection, NODE):
        if (
            node.session in sessions
            and node.session in dialects
            and (raw := look.content(node.raw)) is not None
        ):
            yield dialects[node.session], raw


def _rederive_pages(connection: Connection, reread: Reread) -> int:
    """Rebuild pages of existing messages; they get free numbers, in the order of their messages."""
    last = read_value(connection, "SELECT max(seq) FROM page") or 0
    there = {seq for (seq,) in connection.execute("SELECT seq FROM page")}
    free = [seq for seq in range(1, last + 1) if seq not in there]
    dialects = _dialects(connection)
    agents = {(turn.session, turn.number): turn.agent for turn in _rows(connection, TURN)}
    look = SqlLookup(connection)
    made = 0
    for node in _rows(connection, NODE):
        raw = look.content(node.raw) if node.session in dialects else None
        if raw is None:
            continue
        for message in _read_again(reread, dialects[node.session], raw):
            if message.essence != node.essence:
                continue
            agent = agents.get((node.session, node.turn), "")
            for page in pages_of(node, message.parts, agent, look):
                if look.page(page.id) is None and has_blob(connection, page.digest):
                    seq = _number_for(connection, page, free)
                    values = PAGE.pack(page)
                    connection.execute(
                        f"INSERT INTO page (seq, {PAGE.names}) VALUES (?, {PAGE.marks})",
                        (seq, *values),
                    )
                    made += 1
    return made


def _number_for(connection: Connection, page: Page, free: list[int]) -> int:
    """The first free number after the page that it follows."""
    row = connection.execute("SELECT seq FROM page WHERE id = ?", (page.parent,)).fetchone()
    behind: Any = row[0] if row else 0
    at = bisect.bisect(free, behind)
    return (
        free.pop(at)
        if at < len(free)
        else (read_value(connection, "SELECT max(seq) FROM page") or 0) + 1
    )


def _read_again(reread: Reread, dialect: DialectName, raw: bytes) -> tuple[Message, ...]:
    try:
        return tuple(reread(dialect, raw))
    except HotsetError:
        return ()


def _dialects(connection: Connection) -> dict[str, DialectName]:
    return {turn.session: turn.dialect for turn in _rows(connection, TURN)}


def _rows(connection: Connection, table: RowTable[Any]) -> Iterator[Any]:
    rows = connection.execute(f'SELECT {table.names} FROM "{table.name}" ORDER BY seq').fetchall()
    return (table.unpack(row) for row in rows if not is_blank(row))


def _make(fresh: Path, tuning: Tuning) -> Connection:
    os.close(open_private(fresh))
    connection = connect(fresh, tuning)
    migrate(connection, fresh)
    return connection


def _refuse_newer(database: Path) -> None:
    """Refuse a store with an intact header of a newer version: unknown rows could not be saved."""
    with database.open("rb") as file:
        header = file.read(100)
    version, application = (
        int.from_bytes(header[60:64], "big"),
        int.from_bytes(header[68:72], "big"),
    )
    if application == APPLICATION_ID and VERSION < version < VERSION + 1000:
        raise StoreFailed(
            f"{database} was written by a newer hotset (format {version}): repair it with that one"
        )


def _sync(fresh: Path) -> None:
    with closing_file(open_private(fresh)) as file:
        os.fsync(file)


def _swap(database: Path, fresh: Path) -> Path:
    """Swap the files. The damaged one gets a second name before the fresh one takes its place:
    there is a store at every moment."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    aside = database.with_name(f"{DATABASE}.damaged-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = database.with_name(f"{DATABASE}.damaged-{stamp}-{number}")
    os.link(database, aside)
    for path, kept in zip(wal_and_shm(database), wal_and_shm(aside), strict=True):
        with suppress(FileNotFoundError):
            path.replace(kept)
    wal_and_shm(aside)[1].unlink(missing_ok=True)
    fresh.replace(database)
    sync_folder(database.parent)
    return aside


def _discard(fresh: Path) -> None:
    for path in (fresh, *wal_and_shm(fresh)):
        path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Cell:
    """One row as it lies in the file. `values` begin with the place of `seq`, which SQLite keeps
    outside."""

    seq: int
    values: tuple[Any, ...]


def read_cells(database: Path, wal: Path) -> Iterator[Cell]:
    """Every row of a SQLite file that SQLite itself may refuse, with its WAL as one set of pages.

    Every leaf page is read as it lies there; no header, schema or index is needed. First comes what
    is committed beyond doubt; then what lies behind a damaged place in the WAL, up to the last
    frame that ended a transaction. Rows prove themselves by their seals, content by its hash, so
    that whatever comes out is what was kept.
    """
    with database.open("rb") as file:
        count = -(-database.stat().st_size // _PAGE_BYTES)
        committed = _committed_pages(frames(wal))
        yield from _Pages(file, committed).cells({*range(1, count + 1), *committed})
        known = set(committed.values())
        unchecked = _committed_pages(unchecked_frames(wal, _PAGE_BYTES))
        behind = {number: page for number, page in unchecked.items() if page not in known}
        if behind:
            yield from _Pages(file, {**committed, **behind}).cells(set(behind))


def _committed_pages(every: Iterable[Frame]) -> dict[int, bytes]:
    """The last version of each page, without transactions that did not end."""
    latest: dict[int, bytes] = {}
    transaction: dict[int, bytes] = {}
    for frame in every:
        transaction[frame.number] = frame.page
        if frame.commits:
            latest.update(transaction)
            transaction.clear()
    return latest


class _Pages:
    def __init__(self, file: Any, newer: dict[int, bytes]) -> None:
        self._file = file
        self._newer = newer

    def page(self, number: int) -> bytes:
        newer = self._newer.get(number)
        if newer is not None:
            return newer
        self._file.seek((number - 1) * _PAGE_BYTES)
        page: bytes = self._file.read(_PAGE_BYTES)
        return page.ljust(_PAGE_BYTES, b"\0")

    def cells(self, numbers: set[int]) -> Iterator[Cell]:
        for number in sorted(numbers):
            page = self.page(number)
            start = _HEADER_BYTES if number == 1 else 0
            if page[start] != _LEAF:
                continue
            (count,) = struct.unpack_from(">H", page, start + 3)
            for index in range(min(count, _PAGE_BYTES // 4)):
                with suppress(*_UNREADABLE):
                    (at,) = struct.unpack_from(">H", page, start + 8 + 2 * index)
                    yield self._cell(page, at)

    def _cell(self, page: bytes, at: int) -> Cell:
        size, at = _varint(page, at)
        seq, at = _varint(page, at)
        return Cell(_to_signed(seq), _record(self._payload(page, at, size)))

    def _payload(self, page: bytes, at: int, size: int) -> bytes:
        """A row that is too long for its page goes on in a chain of others."""
        most = _PAGE_BYTES - 35
        if size <= most:
            return page[at : at + size]
        least = (_PAGE_BYTES - 12) * 32 // 255 - 23
        here = least + (size - least) % (_PAGE_BYTES - 4)
        here = here if here <= most else least
        parts = [page[at : at + here]]
        (following,) = struct.unpack_from(">I", page, at + here)
        left = size - here
        met: set[int] = set()
        while (
            left > 0 and following and following not in met
        ):  # damaged, it may lead round in a circle
            met.add(following)
            overflow = self.page(following)
            parts.append(overflow[4 : 4 + left])
            left -= _PAGE_BYTES - 4
            (following,) = struct.unpack_from(">I", overflow)
        if left > 0:
            raise ValueError("a chain that ends too early")
        return b"".join(parts)


def _record(payload: bytes) -> tuple[Any, ...]:
    header, at = _varint(payload, 0)
    kinds = []
    while at < header:
        kind, at = _varint(payload, at)
        kinds.append(kind)
        if len(kinds) > _MOST_VALUES:
            raise ValueError("not a row of ours")
    values = []
    for kind in kinds:
        size = _size(kind)
        content = payload[at : at + size]
        if len(content) != size:
            raise ValueError("a row that ends too early")
        values.append(_value(kind, content))
        at += size
    return tuple(values)


def _size(kind: int) -> int:
    if kind >= 12:
        return (kind - 12) // 2
    return (0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0)[kind]


def _value(kind: int, content: bytes) -> Any:
    match kind:
        case 0:
            return None
        case 7:
            return struct.unpack(">d", content)[0]
        case 8 | 9:
            return kind - 8
        case _ if kind < 7:
            return int.from_bytes(content, "big", signed=True)
        case _ if kind % 2:
            return content.decode()
        case _:
            return content


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(8):
        byte = content[at + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    return value << 8 | content[at + 8], at + 9


def _to_signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
