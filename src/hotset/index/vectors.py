"""Vectors: signs find candidates, bytes put them in order. numpy over mapped files, and nothing of it in memory.

Signs are those of the difference to the middle of all vectors: texts share much of their direction, and without it 1 % of the
rows as candidates held 96 % of the nearest ten instead of 74 %. (A random rotation gave 69 %, and nothing on top of this.)

A row is a vector with the numbers that filters ask for. Files grow at their end; what counts is told by the rows' own database,
so that a fold that was cut off leaves nothing but bytes to be written over.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hotset.errors import BadInput, DiskFull, StoreFailed
from hotset.index.filters import Numbers
from hotset.index.generations import FilesDamaged

VERSION = 1
"""Of the files' form."""

Floats = NDArray[np.float32]

_BLOCK = 8192  # rows: their signs (393 KB at 384 numbers) stay in a core's cache; 7 ms for a million, 12 with 1024
_WORD_BITS = 64
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_SAMPLE = 16  # every so many distances say where to cut: a count of all takes as long as half of the distances themselves
_SIGNED_FROM = 4096  # rows: up to them bytes alone take a millisecond; and so many tell well where the middle is
_AT_ONCE = 1024  # rows made floats at a time: they stay in the cache
_FAR = np.uint8(255)
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


@dataclass(frozen=True, slots=True)
class Near:
    doc: int
    cosine: float


class Vectors:
    """The folded vectors of one generation, to be searched. Use it from any thread."""

    def __init__(self, folder: Path, size: int, rows: int) -> None:
        self._size = size
        self._rows = rows
        self._words = _words(size)
        signed = rows >= _SIGNED_FROM
        blocks = -(-rows // _BLOCK) if signed else 0
        self._middle = _mapped(folder / "middle", np.dtype("<f4"), (size if signed else 0,))
        self._signs = _mapped(folder / "signs", np.dtype("<u8"), (blocks, self._words, _BLOCK))
        self._bytes = _mapped(folder / "bytes", np.dtype("i1"), (rows, size))
        self._column = {name: _mapped(folder / name, dtype, (rows,)) for name, dtype in _COLUMNS.items()}

    @property
    def rows(self) -> int:
        return self._rows

    def nearest(self, query: Floats, only: Numbers, hidden: frozenset[int], limit: int, candidates: int) -> list[Near]:
        """The nearest that are alive, not hidden and fit, nearest first."""
        if not self._rows or only.nothing:
            return []
        fits = self._fitting(only, hidden)
        many = self._rows if fits is None else int(np.count_nonzero(fits))
        if many > max(candidates, _SIGNED_FROM):
            rows = self._candidates(query, fits, candidates)
        else:
            rows = np.arange(self._rows) if fits is None else np.flatnonzero(fits)
        return self._ranked(query, rows, limit)

    def exact(self, query: Floats, limit: int) -> list[Near]:
        """By bytes alone: what candidates are measured against."""
        return self._ranked(query, np.flatnonzero(self._column["alive"]), limit)

    def _fitting(self, only: Numbers, hidden: frozenset[int]) -> NDArray[np.bool_] | None:
        """Which rows may be shown; None for all."""
        alive = self._column["alive"].view(np.bool_)
        conditions = list(self._conditions(only))
        if hidden:
            rows = self._rows_of(sorted(hidden))
            shown = np.ones(self._rows, np.bool_)
            shown[rows] = False
            conditions.append(shown)
        if not conditions and alive.all():
            return None
        fits = alive.copy()
        for condition in conditions:
            fits &= condition
        return fits

    def _conditions(self, only: Numbers) -> Iterator[NDArray[np.bool_]]:
        for name, numbers in only.sets:
            yield _among(self._column[name], numbers)
        if only.turns is not None:
            turn = self._column["turn"]
            yield (turn >= only.turns[0]) & (turn <= only.turns[1])
        if only.since is not None:
            yield self._column["time"] >= only.since
        if only.until is not None:
            yield self._column["time"] < only.until

    def _rows_of(self, docs: Sequence[int]) -> NDArray[np.intp]:
        """Numbers grow from row to row."""
        every = self._column["doc"]
        wanted = np.asarray(docs, np.int64)
        rows = np.searchsorted(every, wanted)
        there = rows < self._rows
        rows, wanted = rows[there], wanted[there]
        return np.asarray(rows[every[rows] == wanted])

    def _candidates(self, query: Floats, fits: NDArray[np.bool_] | None, candidates: int) -> NDArray[np.intp]:
        distances = self._distances(query)
        if fits is not None:
            np.putmask(distances, ~fits, _FAR)
        step = _SAMPLE if self._rows > _SAMPLE * candidates else 1
        counts = np.bincount(distances[::step], minlength=256).cumsum()
        cut = int(np.searchsorted(counts, candidates / step))
        return np.flatnonzero(distances <= min(cut, int(_FAR) - 1))

    def _distances(self, query: Floats) -> NDArray[np.uint8]:
        """In how many signs each row differs. Beyond 255, far worse than chance, they begin anew: bytes sort that out."""
        asked = signs((query - self._middle)[None, :], self._words).T.copy()
        blocks = len(self._signs)
        distances = np.empty((blocks, _BLOCK), np.uint8)
        differing = np.empty((self._words, _BLOCK), np.uint64)
        counted = np.empty((self._words, _BLOCK), np.uint8)
        for block in range(blocks):
            np.bitwise_xor(self._signs[block], asked, out=differing)
            np.bitwise_count(differing, out=counted)
            np.add.reduce(counted, axis=0, dtype=np.uint8, out=distances[block])
        return distances.reshape(-1)[: self._rows]

    def _ranked(self, query: Floats, rows: NDArray[np.intp], limit: int) -> list[Near]:
        cosines = np.empty(len(rows), np.float32)
        for at in range(0, len(rows), _AT_ONCE):
            some = rows[at : at + _AT_ONCE]
            # Not a matrix product: for so little work the threads of a BLAS cost 25 times as much as they save.
            cosines[at : at + _AT_ONCE] = np.einsum("ij,j->i", self._bytes.take(some, axis=0).astype(np.float32), query)
        cosines *= self._column["scale"][rows]
        cosines[self._column["alive"][rows] == 0] = -np.inf
        if len(rows) > limit:
            best = np.argpartition(cosines, -limit)[-limit:]
            rows, cosines = rows[best], cosines[best]
        order = np.argsort(-cosines, kind="stable")
        docs = self._column["doc"][rows[order]].tolist()
        return [Near(doc, cosine) for doc, cosine in zip(docs, cosines[order].tolist(), strict=True) if math.isfinite(cosine)]


class VectorsWriter:
    """The one that folds into the vectors' files."""

    def __init__(self, folder: Path, size: int, rows: int) -> None:
        self._size = size
        self.rows = rows
        self._words = _words(size)
        self._files: dict[str, int] = {}
        try:
            for name in ("middle", "signs", "bytes", *_COLUMNS):
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                self._files[name] = os.open(folder / name, flags, 0o600)
        except OSError as error:
            self.close()
            raise _failed(error, folder) from error
        self._folder = folder
        signed = rows >= _SIGNED_FROM
        blocks = -(-rows // _BLOCK) if signed else 0
        least = {"middle": size * 4 * signed, "signs": blocks * _BLOCK * self._words * 8, "bytes": rows * size}
        least |= {name: rows * dtype.itemsize for name, dtype in _COLUMNS.items()}
        for name, file in self._files.items():
            if os.fstat(file).st_size < least[name]:
                self.close()
                raise FilesDamaged(f"{folder / name} is shorter than it was left; the vectors are made again")

    def append(self, vectors: Floats, columns: Mapping[str, Sequence[float]]) -> None:
        """Rows in the order of their numbers. They count when the rows' database says so."""
        checked(vectors, self._size)
        largest = np.maximum(np.abs(vectors).max(axis=1, initial=0), np.float32(1e-12))
        scale = (largest / 127).astype(np.float32)
        try:
            self._write("bytes", np.rint(vectors / scale[:, None]).astype(np.int8), self._size)
            for name, dtype in _COLUMNS.items():
                column: Any = {"alive": np.ones(len(vectors), np.uint8), "scale": scale}.get(name)
                self._write(name, np.asarray(columns[name] if column is None else column, dtype), dtype.itemsize)
            self._sign(vectors)
        except OSError as error:
            raise _failed(error, self._folder) from error
        self.rows += len(vectors)

    def forget(self, docs: Sequence[int]) -> None:
        """The rows stay, empty: neither their numbers nor their bytes can be found again."""
        if not self.rows or not docs:
            return
        every = _mapped(self._folder / "doc", _COLUMNS["doc"], (self.rows,))
        wanted = np.asarray(sorted(docs), np.int64)
        rows = np.searchsorted(every, wanted)
        try:
            for row, doc in zip(rows.tolist(), wanted.tolist(), strict=True):
                if row < self.rows and every[row] == doc:
                    os.pwrite(self._files["alive"], b"\0", row)
                    os.pwrite(self._files["bytes"], bytes(self._size), row * self._size)
        except OSError as error:
            raise _failed(error, self._folder) from error

    def alive(self) -> int:
        return int(np.count_nonzero(_mapped(self._folder / "alive", _COLUMNS["alive"], (self.rows,)))) if self.rows else 0

    def sync(self) -> None:
        """Bytes reach the disk before anybody is told that they count."""
        try:
            for file in self._files.values():
                os.fsync(file)
        except OSError as error:
            raise _failed(error, self._folder) from error

    def close(self) -> None:
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def _write(self, name: str, values: NDArray[Any], width: int) -> None:
        _write_all(self._files[name], np.ascontiguousarray(values).tobytes(), self.rows * width)

    def _sign(self, vectors: Floats) -> None:
        """The signs of new rows; of all rows, where these make them enough to have signs at all."""
        if self.rows >= _SIGNED_FROM:
            middle = _mapped(self._folder / "middle", np.dtype("<f4"), (self._size,))
            self._write_signs(self.rows, signs(vectors - middle, self._words))
        elif (rows := self.rows + len(vectors)) >= _SIGNED_FROM:
            every = _mapped(self._folder / "bytes", np.dtype("i1"), (rows, self._size)).astype(np.float32)
            every *= _mapped(self._folder / "scale", _COLUMNS["scale"], (rows,))[:, None]
            middle = every.mean(axis=0, dtype=np.float64).astype("<f4")
            _write_all(self._files["middle"], middle.tobytes(), 0)
            self._write_signs(0, signs(every - middle, self._words))

    def _write_signs(self, first: int, words: NDArray[np.uint64]) -> None:
        """Block by block; in a block all first words stand together, then all second ones, and so on."""
        done = 0
        while done < len(words):
            block, at = divmod(first + done, _BLOCK)
            some = words[done : done + _BLOCK - at]
            start = block * self._words * _BLOCK * 8
            if at == 0:  # the whole block has its place on the disk before anybody maps it
                _write_all(self._files["signs"], bytes(self._words * _BLOCK * 8), start)
            for word in range(self._words):
                _write_all(self._files["signs"], some[:, word].tobytes(), start + (word * _BLOCK + at) * 8)
            done += len(some)


def checked(vectors: Floats, size: int) -> None:
    """Refuses what is no set of vectors of this size: one NaN would be near to everything."""
    if vectors.ndim != 2 or vectors.shape[1] != size:
        raise BadInput(f"vectors of the form {vectors.shape} do not fit an index of {size} numbers; nothing was folded")
    if not np.isfinite(vectors).all():
        raise BadInput("a vector holds something that is not a number; nothing was folded")


def signs(vectors: Floats, words: int) -> NDArray[np.uint64]:
    """One bit a number, 64 in a word."""
    packed = np.zeros((len(vectors), words * _WORD_BITS // 8), np.uint8)
    bits = np.packbits(vectors > 0, axis=1, bitorder="little")
    packed[:, : bits.shape[1]] = bits
    return packed.view(np.dtype("<u8"))


def _words(size: int) -> int:
    return -(-size // _WORD_BITS)


def _among(column: NDArray[Any], numbers: frozenset[int]) -> NDArray[np.bool_]:
    if len(numbers) == 1:
        return np.asarray(column == next(iter(numbers)))
    wanted = np.zeros(max(int(column.max(initial=0)), *numbers) + 1, np.bool_)
    wanted[list(numbers)] = True
    return np.asarray(wanted[column])


def _mapped(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if 0 in shape:
        return np.empty(shape, dtype)
    try:
        return np.asarray(np.memmap(path, dtype, "r", shape=shape))
    except (OSError, ValueError) as error:
        raise FilesDamaged(f"{path} is missing or shorter than it was left; the vectors are made again") from error


def _write_all(file: int, content: bytes, at: int) -> None:
    left = memoryview(content)
    while left:
        written = os.pwrite(file, left, at)
        left, at = left[written:], at + written


def _failed(error: OSError, folder: Path) -> StoreFailed:
    if error.errno in _NO_ROOM:
        return DiskFull(f"the disk that holds {folder} is full; make room: the index goes on from where it is")
    return StoreFailed(f"{folder} cannot be written: {error.strerror}")
