"""Rows out of a SQLite file that SQLite itself may refuse: every leaf page is read as it lies
there.

No header, schema or index is needed. Rows prove themselves by their seals, content by its hash, so
that whatever comes out is what was kept.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotset.store.wal import frames, unchecked_frames

_PAGE_BYTES = 4096  # what `migrations` makes; the header, which says so too, may be gone
_LEAF = 0x0D
_HEADER_BYTES = 100
_MOST_VALUES = 64  # more columns than any table of ours will have
_UNREADABLE = (IndexError, ValueError, struct.error, UnicodeDecodeError)


@dataclass(frozen=True, slots=True)
class Cell:
    """One row as it lies in the file. `values` begin with the place of `seq`, which SQLite keeps
    outside."""

    seq: int
    values: tuple[Any, ...]


class DamagedFile:
    """A database and its WAL as one set of pages."""

    def __init__(self, database: Path, wal: Path) -> None:
        self._database = database
        self._wal = wal

    def cells(self) -> Iterator[Cell]:
        """First what is committed beyond doubt; then what lies behind a damaged place in the
        WAL."""
        with self._database.open("rb") as file:
            count = -(-self._database.stat().st_size // _PAGE_BYTES)
            committed = self._committed()
            pages = _Pages(file, committed)
            yield from pages.cells({*range(1, count + 1), *committed})
            behind = self._behind(set(committed.values()))
            if behind:
                yield from _Pages(file, {**committed, **behind}).cells(set(behind))

    def _committed(self) -> dict[int, bytes]:
        latest: dict[int, bytes] = {}
        transaction: dict[int, bytes] = {}
        for frame in frames(self._wal):
            transaction[frame.number] = frame.page
            if frame.commits:
                latest.update(transaction)
                transaction.clear()
        return latest

    def _behind(self, known: set[bytes]) -> dict[int, bytes]:
        """Frames that SQLite does not believe, up to the last that ended a transaction."""
        latest: dict[int, bytes] = {}
        transaction: dict[int, bytes] = {}
        for frame in unchecked_frames(self._wal, _PAGE_BYTES):
            transaction[frame.number] = frame.page
            if frame.commits:
                latest.update(transaction)
                transaction.clear()
        return {number: page for number, page in latest.items() if page not in known}


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
        return Cell(_signed(seq), _record(self._payload(page, at, size)))

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


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
