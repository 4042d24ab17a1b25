"""Saves what is intact of a damaged store into a fresh one, and keeps the damaged file beside
it."""

from __future__ import annotations

import bisect
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from hotset.errors import HotsetError, NotFound, PageDamaged, StoreFailed
from hotset.files.folder import private_folder, sync_folder
from hotset.files.open import open_private
from hotset.nouns.message import DialectName, Message
from hotset.nouns.page import Digest, Page, digest
from hotset.nouns.turn import Turn
from hotset.store.blobs import read_content
from hotset.store.commit_seal import CommitCount, committed_in, count_commit, read_seal, write_seal
from hotset.store.connecting import Connection, Tuning, close_connection, connect, translate_errors
from hotset.store.folder import DATABASE, exclusive_use, opening_lock, refuse_links, wal_and_shm
from hotset.store.inserting import has_blob, insert_blob
from hotset.store.lookup import SqlLookup
from hotset.store.migrations import APPLICATION_ID, VERSION, migrate
from hotset.store.needs import needs, supersedes
from hotset.store.notes import move_hidden_to_notes
from hotset.store.placing import pages_of
from hotset.store.port import Blob
from hotset.store.rows import (
    ERASABLE,
    GIST,
    HIDDEN,
    NODE,
    PAGE,
    SHOWN,
    TABLES,
    TURN,
    RowTable,
    is_blank,
    pack_hex,
)
from hotset.store.scavenge import Cell, DamagedFile

Reread = Callable[[DialectName, bytes], Iterable[Message]]
"""Reads the raw bytes of a message or of a whole reply again. A dialect can; the store cannot."""

_FRESH = "store.db.repairing"
_BLOB_VALUES = 5
_SET = {
    table.name: "seal" for table in ERASABLE
}  # a column that tells a row from what stays of one that was erased


@dataclass(frozen=True, slots=True)
class RepairReport:
    saved: Mapping[str, int]
    """Rows that are there now, by kind; `content` are the blobs."""
    lost: Mapping[str, int]
    """Rows that were there and are not any more, as far as the gaps in their numbers tell."""
    rederived: int
    """Contents and pages that were made again from the raw bytes of their messages."""
    missing: tuple[Digest, ...]
    """Content that a row still points to, but nobody has."""
    damaged: Path
    """Where the damaged file is kept."""

    @property
    def whole(self) -> bool:
        return not self.missing and not any(self.lost.values())


def repair(folder: Path, reread: Reread | None = None, tuning: Tuning = Tuning()) -> RepairReport:  # noqa: B008 - frozen
    """Raises `StoreBusy` while any process works with the store; leaves everything as it was where
    it fails."""
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
                    DamagedFile(database, wal_and_shm(database)[0]),
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
    connection: apsw.Connection, file: DamagedFile, reread: Reread | None, sealed: CommitCount
) -> dict[str, Any]:
    connection.execute("BEGIN IMMEDIATE")
    for cell in file.cells():
        _take(connection, cell)
    connection.execute("DELETE FROM gist WHERE seq NOT IN (SELECT seq FROM page)")
    gaps = _gaps(connection, sealed)
    made_blobs, made_pages = _rederive(connection, reread) if reread else (0, 0)
    gaps["blob"] = max(0, gaps["blob"] - made_blobs)
    gaps["page"] = max(0, gaps["page"] - made_pages)
    for table in (SHOWN, HIDDEN):
        gaps[table.name] += _let_go(connection, table)
    move_hidden_to_notes(connection)
    saved = {
        name: _one(connection, f'SELECT count({_SET.get(name, "*")}) FROM "{name}"')
        for name in (*gaps, "gist")
    }
    if not any(saved.values()):
        raise StoreFailed(
            "nothing in the file could be recognised as a part of a store; it was left as it "
            "is. To begin anew, move all store.*"
            " files away"
        )
    missing = tuple(sorted(_missing(connection)))
    count_commit(
        connection, after=sealed
    )  # beyond the seal: what stays lost is told here, and not again
    connection.execute("COMMIT")
    return {
        "saved": _in_words(saved),
        "lost": _in_words(gaps),
        "rederived": made_blobs + made_pages,
        "missing": missing,
    }


def _gaps(connection: apsw.Connection, sealed: CommitCount) -> dict[str, int]:
    """Rows are numbered without gaps, and none is ever deleted: one that was erased leaves its
    number.

    How far the numbers went, the seal tells of those that it counts. Gists have their pages'
    numbers and are made again anyway.
    """
    names = ("blob", *(table.name for table in TABLES if table is not GIST))
    ends = {
        "blob": sealed.contents,
        "session": sealed.sessions,
        "turn": sealed.turns,
        "page": sealed.pages,
    }
    return {
        name: _one(
            connection,
            f'SELECT max(coalesce(max(seq), 0), {ends.get(name, 0)}) - count(*) FROM "{name}"',
        )
        for name in names
    }


def _in_words(counts: dict[str, int]) -> dict[str, int]:
    return {"content" if name == "blob" else name: count for name, count in counts.items()}


def _take(connection: apsw.Connection, cell: Cell) -> None:
    """A row of whichever table it proves to belong to; anything else is not ours."""
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


def _take_blank(connection: apsw.Connection, cell: Cell) -> None:
    """What was erased is no loss, and its number is not given to another."""
    for table in ERASABLE:
        if len(cell.values) == len(table.columns) + 2 + table.repeats:
            connection.execute(
                (f"INSERT OR IGNORE INTO {table.name} (seq) VALUES (?)"), (cell.seq,)
            )


def _take_blob(connection: apsw.Connection, cell: Cell) -> None:
    _, packed, codec, size, body = cell.values
    if isinstance(packed, bytes):
        with suppress(PageDamaged):
            read_content(Digest(packed.hex()), codec, size, body)
            connection.execute(
                "INSERT OR IGNORE INTO blob VALUES (?, ?, ?, ?, ?)",
                (cell.seq, packed, codec, size, body),
            )


def _take_row(connection: apsw.Connection, table: RowTable[Any], cell: Cell, noun: Any) -> None:
    marks = ", ".join("?" * len(cell.values))
    values = (cell.seq, *cell.values[1:])
    if isinstance(noun, Turn):
        there = SqlLookup(connection).turn(noun.session, noun.number)
        if there is not None and supersedes(noun, there):
            connection.execute(
                "DELETE FROM turn WHERE session = ? AND number = ?", (noun.session, noun.number)
            )
    connection.execute((f'INSERT OR IGNORE INTO "{table.name}" VALUES ({marks})'), values)


def _let_go(connection: apsw.Connection, table: RowTable[Any]) -> int:
    """Without its bytes a form cannot be sent: the page is shown as it was before, or full. Gives
    how many rows went."""
    rows = connection.execute(f'SELECT seq, {table.names} FROM "{table.name}"').fetchall()
    lost = [
        seq
        for seq, *row in rows
        if not all(has_blob(connection, each) for each in needs(table.unpack(row)).content)
    ]
    connection.executemany((f'DELETE FROM "{table.name}" WHERE seq = ?'), ((seq,) for seq in lost))
    return len(lost)


def _missing(connection: apsw.Connection) -> set[Digest]:
    """Content that some row points to and that is not there."""
    wanted = {
        address
        for table in TABLES
        for row in _rows(connection, table)
        for address in needs(row).content
    }
    return {address for address in wanted if not has_blob(connection, address)}


def _rederive(connection: apsw.Connection, reread: Reread) -> tuple[int, int]:
    """How many contents and pages were made again from the raw bytes of messages and replies;
    hashes tell what is right."""
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


def _raw_bytes(
    connection: apsw.Connection, missing: set[Digest]
) -> Iterator[tuple[DialectName, bytes]]:
    """The raw bytes of every message and reply in the sessions that miss something."""
    sessions = {
        row.session
        for table in (NODE, PAGE, TURN)
        for row in _rows(connection, table)
        if missing & {*needs(row).content}
    }
    for turn in _rows(connection, TURN):
        if turn.session in sessions and turn.reply and has_blob(connection, turn.reply):
            yield turn.dialect, _content(connection, turn.reply)
    dialects = _dialects(connection)
    for node in _rows(connection, NODE):
        if node.session in sessions and node.session in dialects and has_blob(connection, node.raw):
            yield dialects[node.session], _content(connection, node.raw)


def _rederive_pages(connection: apsw.Connection, reread: Reread) -> int:
    """Pages of messages that are there; they go where a number is free, in the order of their
    messages."""
    last = _one(connection, "SELECT max(seq) FROM page") or 0
    there = {seq for (seq,) in connection.execute("SELECT seq FROM page")}
    free = [seq for seq in range(1, last + 1) if seq not in there]
    dialects = _dialects(connection)
    agents = {(turn.session, turn.number): turn.agent for turn in _rows(connection, TURN)}
    made = 0
    for node in _rows(connection, NODE):
        if node.session not in dialects or not has_blob(connection, node.raw):
            continue
        for message in _read_again(reread, dialects[node.session], _content(connection, node.raw)):
            if message.essence != node.essence:
                continue
            agent = agents.get((node.session, node.turn), "")
            for page in pages_of(node, message.parts, agent, SqlLookup(connection)):
                if SqlLookup(connection).page(page.id) is None and has_blob(
                    connection, page.digest
                ):
                    seq = _number_for(connection, page, free)
                    values = PAGE.pack(page)
                    connection.execute(
                        f"INSERT INTO page (seq, {PAGE.names}) VALUES (?, {PAGE.marks})",
                        (seq, *values),
                    )
                    made += 1
    return made


def _number_for(connection: apsw.Connection, page: Page, free: list[int]) -> int:
    """The first free one behind the page that it follows."""
    row = connection.execute("SELECT seq FROM page WHERE id = ?", (page.parent,)).fetchone()
    behind: Any = row[0] if row else 0
    at = bisect.bisect(free, behind)
    return (
        free.pop(at) if at < len(free) else (_one(connection, "SELECT max(seq) FROM page") or 0) + 1
    )


def _read_again(reread: Reread, dialect: DialectName, raw: bytes) -> tuple[Message, ...]:
    try:
        return tuple(reread(dialect, raw))
    except HotsetError:
        return ()


def _dialects(connection: apsw.Connection) -> dict[str, DialectName]:
    return {turn.session: turn.dialect for turn in _rows(connection, TURN)}


def _rows(connection: apsw.Connection, table: RowTable[Any]) -> Iterator[Any]:
    rows = connection.execute(f'SELECT {table.names} FROM "{table.name}" ORDER BY seq').fetchall()
    return (table.unpack(row) for row in rows if not is_blank(row))


def _content(connection: apsw.Connection, address: Digest) -> bytes:
    row = connection.execute(
        "SELECT codec, size, body FROM blob WHERE digest = ?", (pack_hex(address),)
    ).fetchone()
    assert row is not None
    return read_content(address, *row)


def _one(connection: apsw.Connection, sql: str) -> Any:
    row = connection.execute(sql).fetchone()
    return row[0] if row else None


def _make(fresh: Path, tuning: Tuning) -> Connection:
    os.close(open_private(fresh))
    connection = connect(fresh, tuning)
    migrate(connection, fresh)
    return connection


def _refuse_newer(database: Path) -> None:
    """A whole header of a newer store is believed; what we do not know we cannot save."""
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
    file = open_private(fresh)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _swap(database: Path, fresh: Path) -> Path:
    """The damaged file keeps a second name before the fresh one takes its place: at no moment is
    there no store."""
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
