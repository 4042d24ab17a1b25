"""Vectors: signs find candidates, bytes put them in order. numpy over mapped files; in memory is what the last filters take.

Signs are those of the difference to the middle of all vectors: texts share much of their direction, and without it 1 % of the
rows as candidates held 96 % of the nearest ten instead of 74 %. (A random rotation gave 69 %, and nothing on top of this.)
(Half of the signs first, to choose which rows are worth a look at the rest: at a million rows that took a fifth less time and
held 97.7 % of the nearest ten instead of 99.)

A row is a vector with the numbers that filters ask for. Files grow at their end; what counts is told by the rows' own database,
so that a fold that was cut off leaves nothing but bytes to be written over.
"""

from __future__ import annotations

import errno
import math
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hotset.errors import BadInput, DiskFull, StoreFailed
from hotset.index.filters import SORTS, Numbers
from hotset.index.generations import FilesDamaged
from hotset.index.hybrid import Found

VERSION = 1
"""Of the files' form."""

Floats = NDArray[np.float32]
_Rows = NDArray[np.intp]
_Words = NDArray[np.uint64]
_Condition = Callable[[NDArray[Any]], NDArray[np.bool_]]

_BLOCK_BITS = 13
_BLOCK = 1 << _BLOCK_BITS  # rows: their signs (393 KB at 384 numbers) stay in a core's cache; 7 ms for a million, 12 with 1024
_WORD_BITS = 64
_MOST_COUNTED = 6  # words of signs in a byte: unlike ones differ in half of their bits, and hardly any in more than 255
_FEW = 8  # one row of so many: then the signs of those rows are picked out, which takes less than a look at all
_FILTERS_KEPT = 8  # of a million rows a megabyte each, at most
_SHARED_FROM = 32  # blocks, 2 ms: then a second thread helps; of 13 it saved no time and took twice the work
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_SAMPLED = 130  # of those that are wanted are enough to say where to cut: a count of all takes half as long as the distances
_STEPS = (47, 17, 7, 3)  # from one that is counted to the next. Primes: what fits a filter may come every second or tenth row
_SIGNED_FROM = 4096  # rows: up to them bytes alone take a millisecond; and so many tell well where the middle is
_AT_ONCE = 256  # rows made floats at a time: they stay in the cache, and are few enough for BLAS to stay on one thread
_NO_ROWS: Final[_Rows] = np.empty(0, np.intp)
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
    """The folded vectors of one generation, to be searched. Use it from any thread."""

    def __init__(self, folder: Path, size: int, rows: int) -> None:
        self._rows = rows
        self._words = _words(size)
        signed = rows >= _SIGNED_FROM
        blocks = -(-rows // _BLOCK) if signed else 0
        self._middle = _mapped(folder / "middle", np.dtype("<f4"), (size if signed else 0,))
        self._signs = _mapped(folder / "signs", np.dtype("<u8"), (blocks, self._words, _BLOCK))
        self._bytes = _mapped(folder / "bytes", np.dtype("i1"), (rows, size))
        self._column = {name: _mapped(folder / name, dtype, (rows,)) for name, dtype in _COLUMNS.items()}
        self._counted: np.dtype[Any] = np.dtype(np.uint8 if self._words <= _MOST_COUNTED else np.uint16)
        self._far = np.iinfo(self._counted).max
        self._second = ThreadPoolExecutor(1, "hotset-signs")
        self._lock = threading.Lock()
        self._fitting: OrderedDict[Numbers, _Fitting] = OrderedDict()

    @property
    def rows(self) -> int:
        return self._rows

    def nearest(self, query: Floats, only: Numbers, hidden: frozenset[int], limit: int, candidates: int) -> list[Found]:
        """The nearest that are alive, not hidden and fit, nearest first; their scores are cosines."""
        if not self._rows or only.nothing:
            return []
        fitting, without = self._those(only), self._rows_of(sorted(hidden))
        few = None if fitting.few is None else self._shown(fitting.few, without)
        if few is not None and len(few) <= max(candidates, _SIGNED_FROM):
            return self._ranked(query, few, limit)
        return self._ranked(query, self._candidates(query, few, fitting, without, candidates), limit)

    def exact(self, query: Floats, limit: int) -> list[Found]:
        """By bytes alone: what candidates are measured against."""
        return self._ranked(query, np.flatnonzero(self._column["alive"]), limit)

    def _those(self, only: Numbers) -> _Fitting:
        """Which rows fit: worked out once for a filter, as long as it is one of the last."""
        with self._lock:
            known = self._fitting.pop(only, None)
        made = self._worked_out(only) if known is None else known
        with self._lock:
            self._fitting[only] = made
            while len(self._fitting) > _FILTERS_KEPT:
                self._fitting.popitem(last=False)
        return made

    def _worked_out(self, only: Numbers) -> _Fitting:
        most = max(self._rows // _FEW, _SIGNED_FROM)
        few: _Rows | None = np.arange(self._rows) if self._rows <= most else None
        fits: NDArray[np.bool_] | None = None
        for name, condition in _conditions(only):
            column = self._column[name]
            if few is not None:
                few = few[condition(column[few])]
                continue
            fits = condition(column) if fits is None else fits & condition(column)
            if np.count_nonzero(fits) <= most:
                few = np.flatnonzero(fits)
        if few is not None or fits is None:
            return _Fitting(few, None, range(len(self._signs)))
        far = np.where(fits, self._counted.type(0), self._counted.type(self._far))
        begins = np.arange(0, self._rows, _BLOCK)
        return _Fitting(None, far, np.flatnonzero(np.logical_or.reduceat(fits, begins)).tolist())

    def _shown(self, rows: _Rows, without: _Rows) -> _Rows:
        """Those of these rows that are alive, without some; both in order."""
        if len(without):
            there = np.searchsorted(without, rows)
            there[there == len(without)] = 0
            rows = rows[without[there] != rows]
        return np.asarray(rows[self._column["alive"][rows] != 0])

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

    def _candidates(self, query: Floats, few: _Rows | None, fitting: _Fitting, without: _Rows, candidates: int) -> _Rows:
        """About so many, by their signs: among these few rows, or among all that fit."""
        asked = signs((query - self._middle)[None, :], self._words)[0]
        if few is not None:
            return few[_least(self._distances_of(few, asked), candidates)]
        distances = self._distances(asked, fitting.blocks)
        self._put_away(distances, fitting, without)
        return _least(distances, candidates)

    def _distances(self, asked: _Words, blocks: Sequence[int]) -> NDArray[Any]:
        """In how many signs each row differs; as far as can be in blocks that are left out.

        In a byte they begin anew beyond 255, far worse than chance: bytes of the vectors sort that out.
        """
        distances = np.full((len(self._signs), _BLOCK), self._far, self._counted)
        left = iter(blocks)  # each is taken by the one who comes first; numpy lets the other one work meanwhile
        second = self._second.submit(self._look_through, left, asked, distances) if len(blocks) >= _SHARED_FROM else None
        self._look_through(left, asked, distances)
        if second is not None and not second.cancel():  # where the machine is busy it may not even have begun
            second.result()
        return distances.reshape(-1)[: self._rows]

    def _look_through(self, blocks: Iterator[int], asked: _Words, distances: NDArray[Any]) -> None:
        differing = np.empty((self._words, _BLOCK), np.uint64)
        counted = np.empty((self._words, _BLOCK), np.uint8)
        for block in blocks:
            np.bitwise_xor(self._signs[block], asked[:, None], out=differing)
            np.bitwise_count(differing, out=counted)
            np.add.reduce(counted, axis=0, dtype=self._counted, out=distances[block])

    def _distances_of(self, rows: _Rows, asked: _Words) -> NDArray[np.uint16]:
        every = self._signs.reshape(-1)
        place = rows + (rows >> _BLOCK_BITS) * ((self._words - 1) * _BLOCK)
        distances = np.zeros(len(rows), np.uint16)
        for number, word in enumerate(asked):
            distances += np.bitwise_count(every.take(place + number * _BLOCK) ^ word)
        return distances

    def _put_away(self, distances: NDArray[Any], fitting: _Fitting, without: _Rows) -> None:
        """As far as can be: what does not fit, is no longer alive, or must not be shown."""
        if fitting.far is not None:  # 80 times as fast as `putmask`
            np.bitwise_or(distances, fitting.far, out=distances)
        alive = self._column["alive"]
        if not alive.all():
            np.bitwise_or(distances, alive.astype(self._counted) - self._counted.type(1), out=distances)
        if len(without):
            distances[without] = self._far

    def _ranked(self, query: Floats, rows: _Rows, limit: int) -> list[Found]:
        cosines = np.empty(len(rows), np.float32)
        for at in range(0, len(rows), _AT_ONCE):
            some = rows[at : at + _AT_ONCE]
            cosines[at : at + _AT_ONCE] = np.dot(self._bytes.take(some, axis=0).astype(np.float32), query)
        cosines *= self._column["scale"][rows]
        cosines[self._column["alive"][rows] == 0] = -np.inf
        if len(rows) > limit:
            best = np.argpartition(cosines, -limit)[-limit:]
            rows, cosines = rows[best], cosines[best]
        order = np.argsort(-cosines, kind="stable")
        rows = rows[order]
        columns = (self._column["doc"][rows], cosines[order], self._column["sort"][rows], self._column["path"][rows])
        found = zip(*(column.tolist() for column in columns), strict=True)
        return [Found(doc, cosine, SORTS[sort], path) for doc, cosine, sort, path in found if math.isfinite(cosine)]


@dataclass(frozen=True, slots=True)
class _Fitting:
    """The rows that a filter takes, alive or not."""

    few: _Rows | None
    """In order, where they are few."""
    far: NDArray[Any] | None
    """Where they are many and not all: 0 for each of them, and the farthest distance for each other row."""
    blocks: Sequence[int]
    """Where the many are."""


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

    def _write_signs(self, first: int, words: _Words) -> None:
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


def signs(vectors: Floats, words: int) -> _Words:
    """One bit a number, 64 in a word."""
    packed = np.zeros((len(vectors), words * _WORD_BITS // 8), np.uint8)
    bits = np.packbits(vectors > 0, axis=1, bitorder="little")
    packed[:, : bits.shape[1]] = bits
    return packed.view(np.dtype("<u8"))


def _words(size: int) -> int:
    return -(-size // _WORD_BITS)


def _conditions(only: Numbers) -> Iterator[tuple[str, _Condition]]:
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


def _least(distances: NDArray[Any], many: int) -> _Rows:
    """Where about the `many` least are; never the farthest."""
    step = next((step for step in _STEPS if step * _SAMPLED <= many), 1)
    least = _up_to(distances, many, step)
    misled = step > 1 and not many <= 2 * len(least) <= 4 * many
    return _up_to(distances, many, 1) if misled else least


def _up_to(distances: NDArray[Any], many: int, step: int) -> _Rows:
    counts = np.bincount(distances[::step]).cumsum()
    cut = min(int(np.searchsorted(counts, many / step)), int(np.iinfo(distances.dtype).max) - 1)
    return np.flatnonzero(distances <= cut)


def _among(numbers: frozenset[int], column: NDArray[Any]) -> NDArray[np.bool_]:
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
