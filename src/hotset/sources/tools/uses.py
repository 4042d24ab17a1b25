"""What was used for what was asked: kept in a file, and asked again by how alike two questions are.

`uses.jsonl` is the truth and nothing else can make it again: a line a use, appended under a lock. A line that was cut off by a
kill or a full disk is left out and harms no other. The oldest leave. Vectors of the questions live in memory: the table makes
10,000 of them in 0.15 s.
"""

from __future__ import annotations

import errno
import math
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np

from hotset.errors import DiskFull, StoreFailed
from hotset.files.folder import private_folder
from hotset.files.lock import lock_file
from hotset.files.open import open_private
from hotset.files.write import is_full, replace_file
from hotset.index.embed.port import Embedder
from hotset.index.vectors import Floats
from hotset.sealing import seal

FILE = "uses.jsonl"
MOST = 10_000
"""Uses that are kept."""

_SPARE = 0.25  # more than `MOST` may stand in the file before it is written anew
_LONGEST_QUESTION = 2000
_NEAREST = 15  # past questions that vote
_SHARPNESS = 8  # of a vote, by likeness: with 1 the many that are half alike outvote the one that says the same
_UNLIKE, _ALIKE = 0.4, 0.8  # the nearest past question: below the first nothing is said, from the second on it counts in full


class Use(msgspec.Struct, frozen=True):
    """One line of the file."""

    query: str
    tool: str
    at: float


class Uses:
    """The past of one project's tools. Use it from any thread and any process."""

    def __init__(self, folder: Path, embedder: Embedder, most: int = MOST) -> None:
        """`embedder` reads questions as they come: it has to be quick, and nothing is kept of what it makes."""
        self._path = private_folder(folder) / FILE
        self._embedder = embedder
        self._most = most
        self._lock = threading.Lock()
        self._uses: list[Use] = []
        self._vectors: Floats = np.empty((0, embedder.size), np.float32)
        self._read: tuple[int, int] = (0, 0)
        """Which file that was, and how far."""

    def add(self, query: str, tool: str, now: float) -> None:
        """Durable when it returns. Raises `StoreFailed`."""
        question = seal(query[:_LONGEST_QUESTION]).text.strip()
        if not question:
            return
        line = msgspec.json.encode(Use(question, tool, now)) + b"\n"
        with self._lock, _in_our_words(self._path), _alone(self._path) as file:
            _append(file, line)
            self._catch_up(file)
            if len(self._uses) > self._most * (1 + _SPARE):
                self._write_anew()

    def votes(self, query: str) -> Mapping[str, float]:
        """For each tool that was used for something alike, from 0 to 1: its share of the nearest, by how near the nearest is."""
        with self._lock, _in_our_words(self._path):
            self._catch_up_alone()
            uses, vectors = self._uses[-self._most :], self._vectors[-self._most :]
        if not uses:
            return {}
        likeness = np.einsum("ij,j->i", vectors, self._embedder.embed([query[:_LONGEST_QUESTION]])[0])
        near = np.argsort(-likeness, kind="stable")[:_NEAREST]
        return _votes([uses[at].tool for at in near], likeness[near].tolist())

    def every(self) -> Sequence[Use]:
        """The oldest first."""
        with self._lock, _in_our_words(self._path):
            self._catch_up_alone()
            return tuple(self._uses[-self._most :])

    def _catch_up_alone(self) -> None:
        """Reads what others added, if anything changed."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            self._forget()
            return
        if self._read != (found.st_ino, found.st_size):
            file = open_private(self._path)
            try:
                self._catch_up(file)
            finally:
                os.close(file)

    def _catch_up(self, file: int) -> None:
        found = os.fstat(file)
        if self._read[0] != found.st_ino or found.st_size < self._read[1]:
            self._forget()
        begin = self._read[1]
        content = os.pread(file, found.st_size - begin, begin)
        whole = content[: content.rfind(b"\n") + 1]  # what follows may still be on its way
        new = list(_lines(whole))
        if new:
            self._uses += new
            made = np.nan_to_num(self._embedder.embed([use.query for use in new]))
            self._vectors = np.concatenate([self._vectors, made])
        self._read = found.st_ino, begin + len(whole)

    def _forget(self) -> None:
        self._uses, self._vectors, self._read = [], self._vectors[:0], (0, 0)

    def _write_anew(self) -> None:
        """Without the oldest; alone. Whoever waits for the lock of the old file finds that another one has its name."""
        self._uses, self._vectors = self._uses[-self._most :], self._vectors[-self._most :].copy()
        content = b"".join(msgspec.json.encode(use) + b"\n" for use in self._uses)
        with replace_file(self._path, f".{FILE}.new") as file:
            file.write(content)
            self._read = os.fstat(file.fileno()).st_ino, len(content)


def _votes(tools: Sequence[str], likeness: Sequence[float]) -> Mapping[str, float]:
    heard = min(1.0, max(0.0, (likeness[0] - _UNLIKE) / (_ALIKE - _UNLIKE)))
    if not heard:
        return {}
    weights = [max(0.0, each) ** _SHARPNESS for each in likeness]
    votes: dict[str, float] = {}
    for tool, weight in zip(tools, weights, strict=True):
        votes[tool] = votes.get(tool, 0.0) + heard * weight / sum(weights)
    return votes


def _lines(content: bytes) -> Iterator[Use]:
    for line in content.splitlines():
        try:
            yield msgspec.json.decode(line, type=Use)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # cut off, or not ours


def _append(file: int, line: bytes) -> None:
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        line = b"\n" + line  # one that was cut off ends here
    written = os.pwrite(file, line, size)
    if written < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fdatasync(file) if hasattr(os, "fdatasync") else os.fsync(file)


@contextmanager
def _alone(path: Path) -> Iterator[int]:
    """The file that has this name, under a lock."""
    while True:
        file = open_private(path)
        try:
            lock_file(file, patience=math.inf)
            if _is(path, file):
                yield file
                return
        finally:
            os.close(file)


def _is(path: Path, file: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(file).st_ino
    except FileNotFoundError:
        return False


@contextmanager
def _in_our_words(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise DiskFull(f"no room is left to write {path}; make some: this use was not remembered") from error
        raise StoreFailed(f"{path} cannot be read or written: {error.strerror}") from error
