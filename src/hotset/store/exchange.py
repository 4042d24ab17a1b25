"""Export and import of a store: as rows in one snapshot, and as text, one JSON object a
line, so that people and other programs can read what was exported."""

from __future__ import annotations

import base64
import binascii
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import msgspec

from hotset.errors import BadInput, BadRow
from hotset.nouns.link import derive
from hotset.nouns.memory import MemoryId, MemoryKind, MemoryLink, MemoryRecord, MemoryUse
from hotset.nouns.note import Note, Scope
from hotset.nouns.page import ROOT, Digest, Gist, Page, SessionId, digest
from hotset.nouns.turn import Node, Session, Turn
from hotset.store.engine import Reading, SqlConnection
from hotset.store.memory_queries import memory_versions
from hotset.store.memory_tables import TABLES, needs
from hotset.store.memory_versions import MemoryMerge, memory_from_fields, refuse_unfit
from hotset.store.migrations import note_of
from hotset.store.port import Blob, HiddenRow, Row
from hotset.store.sql_lookup import SqlLookup
from hotset.store.tables import (
    CompressedContent,
    Value,
    compress,
    is_blank,
    pack_hex,
    read_content,
    supersedes,
    unpack_hex,
)
from hotset.store.writer import insert_blob, insert_row
from hotset.typed import convert

FORMAT = 4
_READABLE = (
    1,
    2,
    3,
    4,
)  # 2 has the page table, bills and summaries, 3 memories, 4 notes; every earlier row is as it was

_NAMES: dict[type, str] = {Blob: "content"} | {table.noun: table.name for table in TABLES}
_TYPES: dict[str, Any] = {name: noun for noun, name in _NAMES.items()}


def write_lines(rows: Iterable[Row], *, sealed: int = 0) -> Iterator[bytes]:
    """A header, a line for each row, and a last line with their count: a truncated file is noticed.

    `sealed`, in the header, is the version of the patterns by which secrets were sealed (see
    `store.sealed`); 0 if they were not.
    """
    yield _line({"hotset": "store", "format": FORMAT} | ({"sealed": sealed} if sealed else {}))
    count = 0
    for row in rows:
        count += 1
        fields = _content(row) if isinstance(row, Blob) else _fields(row)
        yield _line({"is": _NAMES[type(row)], **fields})
    yield _line({"end": count})


def read_lines(lines: Iterable[bytes]) -> Iterator[Row]:
    """The rows back. Raises `BadInput` with the number of the line that cannot be used."""
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    _check_header(next(numbered, None))
    count = 0
    ended = False
    for number, line in numbered:
        if ended:
            raise BadInput(f"line {number}: something stands behind the last line of the export")
        fields = _object(number, line)
        if "end" in fields:
            if fields["end"] != count:
                raise BadInput(
                    f"line {number}: the export had {fields['end']} rows, here are {count}"
                )
            ended = True
            continue
        count += 1
        yield _row(number, fields)
    if not ended:
        raise BadInput(f"the export is cut off: its last line is missing (after {count} rows)")


def _line(fields: dict[str, Any]) -> bytes:
    return msgspec.json.encode(fields) + b"\n"


def _fields(row: Row) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(row)
    if isinstance(row, Note) and row.value is not None:
        with suppress(UnicodeDecodeError):
            fields = {**fields, "value": None, "text": row.value.decode()}
    return fields


def _content(blob: Blob) -> dict[str, str]:
    try:
        return {"digest": blob.digest, "text": blob.content.decode("utf-8")}
    except UnicodeDecodeError:
        return {"digest": blob.digest, "base64": base64.b64encode(blob.content).decode()}


def _check_header(first: tuple[int, bytes] | None) -> None:
    if first is None:
        raise BadInput("line 1: the export is empty")
    header = _object(*first)
    if header.get("hotset") != "store":
        raise BadInput(f"line {first[0]}: this is not an export of a hotset store")
    if header.get("format") not in _READABLE:
        raise BadInput(
            f"line {first[0]}: format {header.get('format')!r} is not known here (up to "
            f"{FORMAT}); update hotset"
        )


def _object(number: int, line: bytes) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"line {number}: not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise BadInput(f"line {number}: not a JSON object")
    return fields


def _row(number: int, fields: dict[str, Any]) -> Row:
    name = fields.pop("is", None)
    noun = _TYPES.get(name) if isinstance(name, str) else None
    if noun is None:
        raise BadInput(f"line {number}: no such kind of row: {name!r}")
    if noun is Blob:
        return _blob(number, fields)
    if noun is Note and isinstance(text := fields.pop("text", None), str):
        fields["value"] = base64.b64encode(text.encode()).decode()
    try:
        row: Row = memory_from_fields(fields) if noun is MemoryRecord else convert(fields, noun)
    except msgspec.ValidationError as error:
        raise BadInput(f"line {number}: not a {name}: {error}") from error
    return row


def _blob(number: int, fields: dict[str, Any]) -> Blob:
    match fields:
        case {"digest": str(address), "text": str(text), **rest} if not rest:
            content = text.encode()
        case {"digest": str(address), "base64": str(text), **rest} if not rest:
            try:
                content = base64.b64decode(text, validate=True)
            except binascii.Error as error:
                raise BadInput(f"line {number}: not base64: {error}") from error
        case _:
            raise BadInput(f"line {number}: content needs a digest and either text or base64")
    if digest(content) != address:
        raise BadInput(f"line {number}: the content does not have the hash {address}")
    return Blob(Digest(address), content)


def dump(snapshot: Reading, session: SessionId | None) -> Iterator[Row]:
    """All rows of a store, or of one session: the content first, then the rows in the order in
    which they were kept.

    One read transaction covers it all: a row must not point to content that was kept later.
    """
    given = {"session": session} if session is not None else None
    addresses = " UNION ALL ".join(sql for table in TABLES for sql in table.content_of_session)
    with snapshot() as connection:
        which = f"digest IN ({addresses})" if session is not None else "TRUE"
        for packed, *form in connection.stream(
            f"SELECT digest, codec, size, body FROM blob WHERE {which} ORDER BY seq", given
        ):
            digest = Digest(unpack_hex(packed))
            yield Blob(digest, read_content(digest, *form))
        for table in TABLES:
            which = f"{table.of_session} AND " if session is not None else ""
            for row in connection.stream(
                f'SELECT {table.names} FROM "{table.name}" WHERE {which}{table.exported} '
                f"ORDER BY {table.order}",
                given,
            ):
                if not is_blank(row):
                    yield table.unpack(row)


_TRANSACTION_SECONDS = 0.02
"""How long rows are added before they are committed, which takes about as long again: others wait
for the lock."""

_MOST_BYTES = (
    1 << 20
)  # of one transaction: a commit writes them to the disk while it holds the lock
_PAUSE_SECONDS = 0.012  # between two: a process that waits for the lock looks every 10 ms

_ROW_BYTES = 512  # about what a row takes that is no content
_FURTHEST = 2**53  # the next number must still fit into a column

Translate = Callable[[], AbstractContextManager[None]]
"""Turns errors of the engine into ours."""

Committing = Callable[[], AbstractContextManager[None]]
"""A transaction on the connection of the import, durable at the end of the block."""


def load(
    connection: SqlConnection,
    committing: Committing,
    rows: Iterable[Row],
    translate: Translate,
    folder: Path,
    *,
    gaps: bool = False,
) -> int:
    """Import rows; returns how many were new.

    Raises `BadInput`, and changes nothing, if a row points to something missing or is invalid: all
    rows are checked before the first is written, and wait in an unnamed file in `folder` meanwhile.
    The writing is in transactions of some milliseconds. If it is interrupted (a kill, a full disk),
    a consistent part is there; loading again adds the rest.
    """
    check = ImportCheck(connection, translate, gaps)
    with TemporaryFile(dir=folder) as waiting:
        waiting.writelines(write_lines(check.over(rows)))  # an error of their source stays as it is
        row_import = RowImport(connection)
        return sum(
            _take_all(committing, row_import, part, translate)
            for part in _in_order(waiting, is_sorted=check.is_sorted)
        )


def _in_order(waiting: BinaryIO, *, is_sorted: bool) -> Iterator[Iterator[Row]]:
    """Rows sorted so that each follows what it points to: the store is consistent between any two
    transactions."""
    waiting.seek(0)
    if is_sorted:
        yield read_lines(waiting)
        return
    yield (row for row in read_lines(waiting) if isinstance(row, Blob | Session))
    waiting.seek(0)
    yield (row for row in read_lines(waiting) if not isinstance(row, Blob | Session))


def _take_all(
    committing: Committing, row_import: RowImport, rows: Iterator[Row], translate: Translate
) -> int:
    new = 0
    while batch := list(_next_bytes(rows)):
        while batch:
            with translate():
                done, added = _commit_some(committing, row_import, batch)
            batch = batch[done:]
            new += added
            time.sleep(_PAUSE_SECONDS)
    return new


def _next_bytes(rows: Iterator[Row]) -> Iterator[tuple[Row, CompressedContent | None]]:
    """The next batch, read and compressed before the lock is taken."""
    size = 0
    for row in rows:
        compressed = compress(row.content) if isinstance(row, Blob) else None
        size += len(compressed.body) if compressed is not None else _ROW_BYTES
        yield row, compressed
        if size >= _MOST_BYTES:
            return


def _commit_some(
    committing: Committing, row_import: RowImport, batch: list[tuple[Row, CompressedContent | None]]
) -> tuple[int, int]:
    """Number of rows of the batch that one transaction took, and how many of them were new."""
    taken = new = 0
    with committing():
        until = time.monotonic() + _TRANSACTION_SECONDS
        for row, compressed in batch:
            new += row_import.take(row, compressed)
            taken += 1
            if time.monotonic() > until:
                break
        new += row_import.finish()
    return taken, new


class RowImport:
    """Adds rows of another store, inside a transaction of the caller."""

    def __init__(self, connection: SqlConnection) -> None:
        self._connection = connection
        self._seen: Counter[Value] = Counter()
        self._merge = MemoryMerge(SqlLookup(connection), partial(memory_versions, connection))

    def take(self, row: Row, compressed: CompressedContent | None = None) -> bool:
        """Add a row; True if it is new. `compressed` is content that was compressed beforehand."""
        match row:
            case Blob():
                return insert_blob(self._connection, row, compressed)
            case Turn():
                there = SqlLookup(self._connection).turn(row.session, row.number)
                if there is not None and not supersedes(row, there):
                    return False
            case MemoryRecord():
                version = self._merge.take(row)
                return version is not None and insert_row(self._connection, version)
            case HiddenRow() if (note := note_of(self._connection, row)) is not None:
                return insert_row(self._connection, note)
            case Note() if row.scope is Scope.MACHINE:
                return False
        return insert_row(self._connection, row, self._nth)

    def _nth(self, seal: Value) -> int:
        """The number of an equal row: the n-th in the file is the n-th in the store."""
        self._seen[seal] += 1
        return self._seen[seal] - 1

    def finish(self) -> int:
        """Call before each commit. Returns how many rows it added."""
        return sum(insert_row(self._connection, memory) for memory in self._merge.ours_again())


@dataclass(slots=True)
class ImportCheck:
    """Refuses invalid rows before anything is written: those that follow themselves, each other or
    something missing, or that are invalid in themselves.

    What a row follows is in the store or comes before it, so that there are no cycles. With `gaps`,
    it may be missing: a repaired store looks like that. Keys are remembered by their hashes, to
    take little room.
    """

    connection: SqlConnection
    translate: Translate
    gaps: bool = False
    is_sorted: bool = True
    """Content and sessions came before everything that points to them, as in a `dump`."""
    _is_behind: bool = False
    _seen: set[int] = field(default_factory=set)
    _awaited: dict[tuple[str, ...], int] = field(default_factory=dict)
    """Keys that may still come, and the row that needs each."""
    _followed: dict[str, int] = field(default_factory=dict)
    """Missing pages that a note follows: they must not come after it."""
    _memories: dict[MemoryId, MemoryKind] = field(default_factory=dict)

    def over(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows. Raises `BadRow`, or another `BadInput`."""
        for number, row in enumerate(rows, 1):
            self._check(number, row)
            if isinstance(row, Blob | Session):
                self.is_sorted = self.is_sorted and not self._is_behind
            else:
                self._is_behind = True
            yield row
        for key, number in self._awaited.items():
            if not self._has(*key):
                raise BadRow(number, _wants(*key))

    def _check(self, number: int, row: Row) -> None:  # noqa: C901 - one case a kind of row
        _refuse_boundless(number, row)
        match row:
            case Blob():
                self._seen.add(hash(("content", row.digest)))
            case Session():
                self._seen.add(hash(("session", row.id)))
            case Node():
                self._check_node(number, row)
            case Page():
                self._check_page(number, row)
            case Turn() if not self.gaps:
                for chain in {row.head, row.tail} - {ROOT}:
                    self._await(number, "message", row.session, chain)
            case Gist() if not self._has("page", row.page):
                raise BadInput(
                    f"a gist of page {row.page}, which is not there; nothing was changed"
                )
            case MemoryRecord():
                self._check_memory(row)
            case MemoryLink() | MemoryUse():
                refuse_unfit(row)
        needed = needs(row)
        for address in needed.content:
            self._await(number, "content", address)
        for session in needed.sessions:
            self._await(number, "session", session)

    def _check_node(self, number: int, node: Node) -> None:
        if node.chain == node.parent or node.chain != derive(
            node.parent, node.essence, aside=node.aside
        ):
            raise BadRow(
                number,
                (
                    f"message {node.chain} does not have the chain that follows from "
                    f"{node.parent} and what it says"
                ),
            )
        if (
            node.parent != ROOT
            and not self.gaps
            and not self._has("message", node.session, node.parent)
        ):
            raise BadRow(
                number,
                (
                    f"message {node.chain} follows message {node.parent}, which is not there, or "
                    f"comes later"
                ),
            )
        self._seen.add(hash(("message", node.session, node.chain)))

    def _check_page(self, number: int, page: Page) -> None:
        if page.parent == page.id:
            raise BadRow(number, f"page {page.id} follows itself")
        if page.id in self._followed:
            raise BadRow(
                number,
                (
                    f"page {page.id} comes behind a page that follows it (row "
                    f"{self._followed[page.id]})"
                ),
            )
        if page.parent is not None and not self._has("page", page.parent):
            if page.chain != ROOT and not self.gaps:
                raise BadRow(
                    number,
                    (
                        f"page {page.id} follows page {page.parent}, which is not there, or comes "
                        f"later"
                    ),
                )
            self._followed.setdefault(
                page.parent, number
            )  # a note may follow a page of a session that was not exported
        self._seen.add(hash(("page", page.id)))

    def _check_memory(self, theirs: MemoryRecord) -> None:
        refuse_unfit(theirs)
        if theirs.id not in self._memories:
            with self.translate():
                latest = SqlLookup(self.connection).last_memory(theirs.id)
            self._memories[theirs.id] = theirs.kind if latest is None else latest.kind
        if (kind := self._memories[theirs.id]) is not theirs.kind:
            raise BadInput(
                f"memory {theirs.id} is a {kind} here and a {theirs.kind} there; nothing was "
                f"changed"
            )

    def _await(self, number: int, *key: str) -> None:
        if hash(key) not in self._seen:
            self._awaited.setdefault(key, number)

    def _has(self, *key: str) -> bool:
        if hash(key) in self._seen:
            return True
        sql, packed = _FIND[key[0]]
        with self.translate():
            return self.connection.execute(sql, packed(*key[1:])).fetchone() is not None


_FIND: dict[str, tuple[str, Callable[..., tuple[Any, ...]]]] = {
    "content": ("SELECT 1 FROM blob WHERE digest = ?", lambda digest: (pack_hex(digest),)),
    "session": ("SELECT 1 FROM session WHERE id = ?", lambda name: (name,)),
    "page": ("SELECT 1 FROM page WHERE id = ?", lambda name: (name,)),
    "message": (
        "SELECT 1 FROM node WHERE session = ? AND chain = ?",
        lambda session, chain: (session, pack_hex(chain)),
    ),
}


def _refuse_boundless(number: int, row: Row) -> None:
    for each in fields(row):
        value = getattr(row, each.name)
        if isinstance(value, int) and not -_FURTHEST < value < _FURTHEST:
            raise BadRow(number, f"its {each.name} is {value}, which no store counts up to")


def _wants(kind: str, *key: str) -> str:
    if kind == "session":
        return f"it belongs to session {key[0]}, which is not there"
    if kind == "message":
        return f"it ends with message {key[1]} of session {key[0]}, which is not there"
    return f"it points to {kind} {key[0]}, which is not there"
