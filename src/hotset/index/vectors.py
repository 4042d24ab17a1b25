"""Vectors: signs find candidates, bytes put them in order. numpy over mapped files; in memory is
what the last filters take.

Signs are those of the difference to the middle of all vectors: texts share much of their direction,
and without it 1 % of the rows as candidates held 96 % of the nearest ten instead of 74 %. (A random
rotation gave 69 %, and nothing on top of this.) They are stored dimension by dimension, a bit per
row. A question looks only at the numbers in which it is farthest from the middle: of 384 numbers
these 63 find nearly as much as all, 98.3 and 98.6 % of the nearest ten among 1 % of the rows, in
two thirds of the time.

A row is a vector with the numbers that filters ask for. Files grow at their end; the rows' own
database records what is valid, so a fold that was cut off leaves only bytes to be overwritten.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hotset.errors import BadInput, DiskFull, StoreFailed
from hotset.files.lru import Lru
from hotset.files.write import is_full
from hotset.index.database import FilesDamaged
from hotset.index.filters import SORTS, NumberFilter
from hotset.index.fusion import FusedHit

WORD_BITS = 64
_WORD_BYTES = 8
Bits = NDArray[np.uint64]
"""One bit per row, 64 in a word, lowest first."""
VERSION = 2
"""Of the files' form."""

Floats = NDArray[np.float32]
_Rows = NDArray[np.intp]
_Condition = Callable[[NDArray[Any]], NDArray[np.bool_]]

_BLOCK = (
    1 << 17
)  # rows: what is counted at a time. Of a million, half as many at a time took a fifth longer
_BLOCK_WORDS = _BLOCK // WORD_BITS
_BLOCK_BYTES = _BLOCK // 8
_FILTERS_KEPT = 8  # of a million rows an eighth of a megabyte each, at most
_LOOKED_AT = 6  # one number of so many
_LEAST_BITS = 6
# rows: up to them bytes alone take a millisecond; and so many tell well where the middle is
_SIGNED_FROM = 4096
# rows made floats at a time: they stay in the cache, and are few enough for BLAS to stay on one
# thread
_AT_ONCE = 256
_NO_ROWS: Final[_Rows] = np.empty(0, np.intp)
_NO_BITS: Final[Bits] = np.empty(0, np.uint64)
_COLUMNS: Final[Mapping[str, np.dtype[Any]]] = {
    "doc": np.dtype("<i8"),
    "sort": np.dtype("<i4"),
    "kind": np.dtype("<i4"),
    "session": np.dtype("<i4"),
    "agent": np.dtype("<i4"),
    "path": np.dtype("<i4"),
    "turn": np.dtype("<i8"),
    "time": np.dtype("<f8"),
    "alive": np.dtype("u1"),
    "scale": np.dtype("<f4"),
}


class Vectors:
    """The folded vectors of one generation, for searching. Thread-safe."""

    def __init__(self, folder: Path, size: int, rows: int) -> None:
        self._rows = rows
        signed = rows >= _SIGNED_FROM
        blocks = -(-rows // _BLOCK) if signed else 0
        self._middle = _map_file(folder / "middle", np.dtype("<f4"), (size if signed else 0,))
        self._signs = _map_file(folder / "signs", np.dtype("<u8"), (blocks, size, _BLOCK_WORDS))
        self._bytes = _map_file(folder / "bytes", np.dtype("i1"), (rows, size))
        self._column = {
            name: _map_file(folder / name, dtype, (rows,)) for name, dtype in _COLUMNS.items()
        }
        self._looked_at = _looked_at(size)
        self._fitting: Lru[NumberFilter, _Fitting] = Lru("filtered rows", count=_FILTERS_KEPT)
        """Which rows fit, for the last filters."""

    def nearest(
        self, query: Floats, only: NumberFilter, hidden: frozenset[int], limit: int, candidates: int
    ) -> list[FusedHit]:
        """The nearest rows that are alive, not hidden and match, nearest first; scores are
        cosines."""
        if not self._rows or only.nothing:
            return []
        fitting = self._fitting.get_or_make(only, lambda: self._worked_out(only))
        removed = self._rows_of(sorted(hidden))
        if fitting.few is not None:
            return self._ranked(query, self._shown(fitting.few, removed), limit)
        return self._ranked(
            query,
            self._candidates(query, self._shown_of_many(fitting.many, removed), candidates),
            limit,
        )

    def _worked_out(self, only: NumberFilter) -> _Fitting:
        few: _Rows | None = np.arange(self._rows) if self._rows <= _SIGNED_FROM else None
        fits = np.ones(self._rows, np.bool_)
        for name, condition in _conditions(only):
            column = self._column[name]
            if few is not None:
                few = few[condition(column[few])]
                continue
            fits &= condition(column)
            if np.count_nonzero(fits) <= _SIGNED_FROM:
                few = np.flatnonzero(fits)
        return _Fitting(None, pack_bits(fits)) if few is None else _Fitting(few, _NO_BITS)

    def _shown(self, rows: _Rows, removed: _Rows) -> _Rows:
        """Those of these rows that are alive, without some; both in order."""
        if len(removed):
            there = np.searchsorted(removed, rows)
            there[there == len(removed)] = 0
            rows = rows[removed[there] != rows]
        return np.asarray(rows[self._column["alive"][rows] != 0])

    def _shown_of_many(self, rows: Bits, removed: _Rows) -> Bits:
        alive = self._column["alive"]
        if not alive.min():  # `all` takes four times as long
            rows = rows & pack_bits(alive != 0)
        return clear_bits(rows, removed) if len(removed) else rows

    def _rows_of(self, docs: Sequence[int]) -> _Rows:
        """Numbers grow from row to row."""
        if not docs:
            return _NO_ROWS
        every = self._column["doc"]
        wanted = np.asarray(docs, np.int64)
        rows = np.searchsorted(every, wanted)
        there = rows < self._rows
        rows, wanted = rows[there], wanted[there]
        return np.asarray(rows[every[rows] == wanted])

    def _candidates(self, query: Floats, among: Bits, many: int) -> _Rows:
        """About so many of these rows, by their signs in the most significant dimensions."""
        apart = query - self._middle
        telling = np.abs(apart).argpartition(-self._looked_at)[-self._looked_at :]
        above = apart[telling] > 0
        numbers = np.concatenate((telling[above], telling[~above]))
        likewise = int(np.count_nonzero(above))
        distances = np.empty((self._looked_at.bit_length(), len(among)), np.uint64)
        for block, signs in enumerate(self._signs):
            part = slice(block * _BLOCK_WORDS, min((block + 1) * _BLOCK_WORDS, len(among)))
            if np.count_nonzero(among[part]):  # else this part is not looked at
                differing = signs[numbers, : part.stop - part.start]
                np.invert(differing[:likewise], out=differing[:likewise])
                for bit, summed in zip(distances, bit_sums(differing), strict=True):
                    bit[part] = summed
        return unpack_bits(least_sums(list(distances), among, many))

    def _ranked(self, query: Floats, rows: _Rows, limit: int) -> list[FusedHit]:
        cosines = np.empty(len(rows), np.float32)
        for at in range(0, len(rows), _AT_ONCE):
            some = rows[at : at + _AT_ONCE]
            cosines[at : at + _AT_ONCE] = np.dot(
                self._bytes.take(some, axis=0).astype(np.float32), query
            )
        cosines *= self._column["scale"][rows]
        cosines[self._column["alive"][rows] == 0] = -np.inf
        if len(rows) > limit:
            best = cosines.argpartition(-limit)[-limit:]
            rows, cosines = rows[best], cosines[best]
        order = (-cosines).argsort(kind="stable")
        rows = rows[order]
        columns = (
            self._column["doc"][rows],
            cosines[order],
            self._column["sort"][rows],
            self._column["path"][rows],
        )
        found = zip(*(column.tolist() for column in columns), strict=True)
        return [
            FusedHit(doc, cosine, SORTS[sort], path)
            for doc, cosine, sort, path in found
            if math.isfinite(cosine)
        ]


@dataclass(frozen=True, slots=True)
class _Fitting:
    """The rows that a filter accepts, alive or not."""

    few: _Rows | None
    """In order, where they are few."""
    many: Bits
    """Where they are not."""


class VectorsWriter:
    """Folds into the vectors' files."""

    def __init__(self, folder: Path, size: int, rows: int) -> None:
        self._size = size
        self.rows = rows
        self._files: dict[str, int] = {}
        try:
            for name in ("middle", "signs", "bytes", *_COLUMNS):
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                self._files[name] = os.open(folder / name, flags, 0o600)
        except OSError as error:
            self.close()
            raise _translate_error(error, folder) from error
        self._folder = folder
        signed = rows >= _SIGNED_FROM
        blocks = -(-rows // _BLOCK) if signed else 0
        least = {
            "middle": size * 4 * signed,
            "signs": blocks * size * _BLOCK_BYTES,
            "bytes": rows * size,
        }
        least |= {name: rows * dtype.itemsize for name, dtype in _COLUMNS.items()}
        for name, file in self._files.items():
            if os.fstat(file).st_size < least[name]:
                self.close()
                raise FilesDamaged(
                    f"{folder / name} is shorter than it was left; the vectors are made again"
                )

    def append(self, vectors: Floats, columns: Mapping[str, Sequence[float]]) -> None:
        """Append rows in the order of their numbers. They become valid when the rows' database
        records them."""
        check_vectors(vectors, self._size)
        largest = np.maximum(np.abs(vectors).max(axis=1, initial=0), np.float32(1e-12))
        scale = (largest / 127).astype(np.float32)
        try:
            self._write("bytes", np.rint(vectors / scale[:, None]).astype(np.int8), self._size)
            for name, dtype in _COLUMNS.items():
                column: Any = {"alive": np.ones(len(vectors), np.uint8), "scale": scale}.get(name)
                self._write(
                    name,
                    np.asarray(columns[name] if column is None else column, dtype),
                    dtype.itemsize,
                )
            self._sign(vectors)
        except OSError as error:
            raise _translate_error(error, self._folder) from error
        self.rows += len(vectors)

    def forget(self, docs: Sequence[int]) -> None:
        """Clear the rows: neither their numbers nor their bytes can be found again."""
        if not self.rows or not docs:
            return
        every = _map_file(self._folder / "doc", _COLUMNS["doc"], (self.rows,))
        wanted = np.asarray(sorted(docs), np.int64)
        rows = np.searchsorted(every, wanted)
        try:
            for row, doc in zip(rows.tolist(), wanted.tolist(), strict=True):
                if row < self.rows and every[row] == doc:
                    os.pwrite(self._files["alive"], b"\0", row)
                    os.pwrite(self._files["bytes"], bytes(self._size), row * self._size)
        except OSError as error:
            raise _translate_error(error, self._folder) from error

    def alive(self) -> int:
        return (
            int(
                np.count_nonzero(_map_file(self._folder / "alive", _COLUMNS["alive"], (self.rows,)))
            )
            if self.rows
            else 0
        )

    def sync(self) -> None:
        """Flush to disk before the database records the rows as valid."""
        try:
            for file in self._files.values():
                os.fsync(file)
        except OSError as error:
            raise _translate_error(error, self._folder) from error

    def close(self) -> None:
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def _write(self, name: str, values: NDArray[Any], width: int) -> None:
        _write_all(self._files[name], np.ascontiguousarray(values).tobytes(), self.rows * width)

    def _sign(self, vectors: Floats) -> None:
        """The signs of new rows; of all rows, where these make them enough to have signs at all."""
        if self.rows >= _SIGNED_FROM:
            middle = _map_file(self._folder / "middle", np.dtype("<f4"), (self._size,))
            self._write_signs(self.rows, vectors > middle)
        elif (rows := self.rows + len(vectors)) >= _SIGNED_FROM:
            every = _map_file(self._folder / "bytes", np.dtype("i1"), (rows, self._size)).astype(
                np.float32
            )
            every *= _map_file(self._folder / "scale", _COLUMNS["scale"], (rows,))[:, None]
            middle = every.mean(axis=0, dtype=np.float64).astype("<f4")
            _write_all(self._files["middle"], middle.tobytes(), 0)
            self._write_signs(0, every > middle)

    def _write_signs(self, first: int, above: NDArray[np.bool_]) -> None:
        """Block by block; in a block each number has its own stretch, a bit a row."""
        while len(above):
            block, at = divmod(first, _BLOCK)
            some, above = above[: _BLOCK - at], above[_BLOCK - at :]
            first += len(some)
            end = (block + 1) * self._size * _BLOCK_BYTES
            if os.fstat(self._files["signs"]).st_size < end:
                os.ftruncate(
                    self._files["signs"], end
                )  # what is not written yet is not read, and takes no room
            byte, before = divmod(at, 8)
            if before:
                some = np.concatenate((self._signs_in(block, byte)[:before], some))
            bits = np.ascontiguousarray(np.packbits(some, axis=0, bitorder="little").T)
            for number, stretch in enumerate(bits):
                _write_all(
                    self._files["signs"],
                    stretch.tobytes(),
                    (block * self._size + number) * _BLOCK_BYTES + byte,
                )

    def _signs_in(self, block: int, byte: int) -> NDArray[np.bool_]:
        """Of the eight rows that share a byte."""
        every = _map_file(
            self._folder / "signs", np.dtype(np.uint8), (block + 1, self._size, _BLOCK_BYTES)
        )
        return np.unpackbits(every[block, :, byte, None], axis=1, bitorder="little").T.view(
            np.bool_
        )


def check_vectors(vectors: Floats, size: int) -> None:
    """Reject anything but vectors of this size: one NaN would be near to everything."""
    if vectors.ndim != 2 or vectors.shape[1] != size:
        raise BadInput(
            f"vectors of the form {vectors.shape} do not fit an index of {size} numbers; "
            f"nothing was folded"
        )
    if not np.isfinite(vectors).all():
        raise BadInput("a vector holds something that is not a number; nothing was folded")


def _looked_at(size: int) -> int:
    """Of how many numbers the signs are counted: about a sixth, but not too few, and one fewer than
    a power of two."""
    bits = max(_LEAST_BITS, round(math.log2(size / _LOOKED_AT)))
    return (1 << min(bits, (size + 1).bit_length() - 1)) - 1


def _conditions(only: NumberFilter) -> Iterator[tuple[str, _Condition]]:
    """A column, and what must hold for it."""
    for name, numbers in only.sets:
        yield name, partial(_among, numbers)
    if only.turns is not None:
        first, last = only.turns
        yield "turn", lambda turn: (turn >= first) & (turn <= last)
    if (since := only.since) is not None:
        yield "time", lambda time: time >= since
    if (until := only.until) is not None:
        yield "time", lambda time: time < until


def _among(numbers: frozenset[int], column: NDArray[Any]) -> NDArray[np.bool_]:
    if len(numbers) == 1:
        return np.asarray(column == next(iter(numbers)))
    wanted = np.zeros(max(int(column.max(initial=0)), *numbers) + 1, np.bool_)
    wanted[list(numbers)] = True
    return np.asarray(wanted[column])


def _map_file(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if 0 in shape:
        return np.empty(shape, dtype)
    try:
        return np.asarray(np.memmap(path, dtype, "r", shape=shape))
    except (OSError, ValueError) as error:
        raise FilesDamaged(
            f"{path} is missing or shorter than it was left; the vectors are made again"
        ) from error


def _write_all(file: int, content: bytes, at: int) -> None:
    left = memoryview(content)
    while left:
        written = os.pwrite(file, left, at)
        left, at = left[written:], at + written


def _translate_error(error: OSError, folder: Path) -> StoreFailed:
    if is_full(error):
        return DiskFull(
            f"the disk that holds {folder} is full; make room: the index goes on from where it is"
        )
    return StoreFailed(f"{folder} cannot be written: {error.strerror}")


def pack_bits(rows: NDArray[np.bool_]) -> Bits:
    """Up to the end of the last word there are no rows."""
    bits = np.packbits(rows, bitorder="little")
    return np.pad(bits, (0, -len(bits) % _WORD_BYTES)).view(np.dtype("<u8"))


def unpack_bits(bits: Bits) -> NDArray[np.intp]:
    """Indexes of the set rows."""
    return (
        np.unpackbits(bits.view(np.uint8), bitorder="little").view(np.bool_).nonzero()[0]
    )  # 8 times as fast as of bytes


def clear_bits(bits: Bits, rows: NDArray[np.intp]) -> Bits:
    left = bits.copy()
    np.bitwise_and.at(
        left, rows // WORD_BITS, ~(np.uint64(1) << (rows % WORD_BITS).astype(np.uint64))
    )
    return left


def bit_sums(bits: Bits) -> list[Bits]:
    """How many of each column are set, lowest bit first. `bits` are used up, and one fewer than a
    power of two.

    A word holds a bit of each of 64 rows, and a sum has an array for each of its bits. Where a word
    is a row numpy counts its bits in half the time; but here bits that are not asked for are not
    even read.

    As hardware adds: of three bits the sum stays and the carry goes to the next bit. Of so many
    none is left over.
    """
    every: list[Bits] = []
    while len(bits):
        carries = np.empty((len(bits) // 2, bits.shape[1]), np.uint64)
        differing = np.empty((len(bits) // 3, bits.shape[1]), np.uint64)
        made = 0
        while (third := len(bits) // 3) > 0:
            first, second, last = bits[:third], bits[third : 2 * third], bits[2 * third : 3 * third]
            differ, carry = differing[:third], carries[made : made + third]
            np.bitwise_xor(first, second, out=differ)
            np.bitwise_and(first, second, out=carry)
            np.bitwise_and(differ, last, out=first)
            np.bitwise_or(carry, first, out=carry)
            np.bitwise_xor(differ, last, out=last)  # beside those that are left, for the next round
            bits, made = bits[2 * third :], made + third
        every.append(bits[0])
        bits = carries
    return every


def least_sums(sums: Sequence[Bits], among: Bits, many: int) -> Bits:
    """The rows with the least sums: as many as requested, or more if the last ones tie."""
    surely, perhaps, found = np.zeros_like(among), among, 0
    for bit in reversed(sums):
        high = perhaps & bit
        low = perhaps ^ high
        lower = int(np.add.reduce(np.bitwise_count(low), dtype=np.uint32))
        if found + lower >= many:
            perhaps = low
        else:
            surely |= low
            perhaps, found = high, found + lower
    return np.asarray(surely | perhaps)
