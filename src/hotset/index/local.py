"""The index of a project, in a folder of its own: rows, full text, vectors, and whoever folds
them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from hotset.errors import HotsetError, StoreFailed
from hotset.files.folder import private_folder
from hotset.index.embed.port import Embedder
from hotset.index.entries import Entries
from hotset.index.generations import Generations, embedder_of
from hotset.index.port import IndexState, Watermark
from hotset.index.rows import EntryRows, RowsDamaged, writer_lock
from hotset.index.searching import IndexSearch
from hotset.index.writing import FoldWriter
from hotset.nouns.finding import Entry, EntryId, Hits, Query, Sort

_log = logging.getLogger("hotset")

_FOLD_ENTRIES = 500  # added here: then the next fold begins at once
_REST_FOLDS = 10  # left out after one that failed
_IDLE_FOLDS = 30  # without work: then the writers are closed, with the memory that they hold
_READ_AT_ONCE = 3  # hot entries between two looks for work: each takes a core up to 0.2 s
_NOTHING = Hits(lacking=frozenset({"words", "meaning", "tail"}))


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Of what is done beside the searches."""

    fold_seconds: float = 1.0
    """From one look for something to fold to the next."""
    quiet_seconds: float = 2.0
    """Without a search or an addition: then nobody works, and hot entries are read closely."""


_RHYTHM = Rhythm()


class LocalIndex:
    """An `Index` in a folder. Use it from any thread; open it anew after a fork."""

    def __init__(
        self,
        folder: Path,
        embedder: Embedder | None = None,
        asking: Embedder | None = None,
        *,
        sealing: int = 0,
        folds: bool = True,
        rhythm: Rhythm = _RHYTHM,
    ) -> None:
        """`asking` reads questions instead of the embedder, in the same vector space, where it has
        the time.

        `sealing` is the version of the rules by which texts were sealed. A process that only looks
        need not fold.
        """
        self.folder = private_folder(folder)
        self._rows = EntryRows(self.folder)
        self._entries = Entries(self._rows, sealing)
        self._folding = FoldWriter(self.folder, self._rows, self._entries, embedder)
        self._writing = writer_lock(self.folder)
        self._searching = IndexSearch(self.folder, self._rows, self._entries, embedder, asking)
        self._rhythm = rhythm
        self._fold_trouble = ""
        self._reading_trouble = ""
        self._added = 0
        self._worked = time.monotonic()
        self._wake = threading.Event()
        self._closed = False
        self._thread = threading.Thread(
            target=self._fold_now_and_then, name="hotset-fold", daemon=True
        )
        if folds:
            self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._folding.stop()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._searching.close()
        self._folding.close()
        self._writing.release()
        self._rows.close()

    def add(self, entries: Iterable[Entry], watermark: Watermark | None = None) -> None:
        given = list(entries)
        self._write(lambda: self._entries.add(given, watermark), len(given))

    def remove(self, wholes: Iterable[str], watermark: Watermark | None = None) -> None:
        given = list(wholes)
        self._write(lambda: self._entries.remove(given, watermark))

    def purge(self, wholes: Iterable[str]) -> None:
        self.remove(wholes)
        generations = Generations(self._rows)
        for generation in generations.every():
            generations.condemn(generation.number)
        self._rows.shorten()
        self._wake.set()

    def replace(
        self, whole: str, entries: Iterable[Entry], watermark: Watermark | None = None
    ) -> None:
        given = list(entries)
        self._write(lambda: self._entries.replace(whole, given, watermark), len(given))

    def search(self, query: Query) -> Hits:
        if self._closed:
            return _NOTHING
        self._worked = time.monotonic()
        try:
            if self._rows.moved():
                self._rows.renew()
            return self._searching.search(query)
        except RowsDamaged:
            self._renew()
        except StoreFailed as error:
            _log.warning("a search failed: %s", error)
        return _NOTHING

    def entries(self, ids: Iterable[EntryId]) -> Sequence[Entry]:
        return [entry for _, entry in self._entries.by_id(list(ids))]

    def wholes(self, sort: Sort) -> Sequence[str]:
        return self._entries.wholes(sort)

    def watermark(self, name: str) -> int:
        return self._entries.watermarks().get(name, 0)

    def touch(self, ids: Iterable[EntryId], turn: int = 0) -> None:
        self._searching.hot.touch(ids, turn)

    def fold(self) -> bool:
        return self._fold() is not None

    def read_closely(self) -> bool:
        """Reads one hot entry once more, by whoever reads questions. False where there is none, or
        it failed: then for good."""
        closely = self._searching.closely
        if closely is None or self._reading_trouble:
            return False
        try:
            return closely.read_one()
        except Exception as error:  # background work, as `_fold`
            self._reading_trouble = f"hot entries cannot be read closely ({type(error).__name__})"
            _log.warning("%s", self._reading_trouble)
            return False

    def state(self) -> IndexState:
        generations = Generations(self._rows)
        every = generations.every()
        serving = next((each for each in every if each.serving), None)
        building = next((each for each in reversed(every) if not each.serving), None)
        return IndexState(
            entries=self._entries.count(),
            lag=generations.lag(serving),
            bytes=_size(self.folder),
            watermarks=self._entries.watermarks(),
            embedder=embedder_of(serving.identity) if serving else "",
            writer=self._writing.holder(),
            building=None if building is None else generations.done(building),
            outdated=self._entries.outdated(),
            troubles=self.troubles(),
        )

    def troubles(self) -> tuple[str, ...]:
        return tuple(self._troubles())

    def _write(self, write: Callable[[], None], many: int = 0) -> None:
        if self._closed:
            raise StoreFailed("the index is closed")
        self._worked = time.monotonic()
        if self._rows.moved():
            self._rows.renew()
        try:
            write()
        except RowsDamaged:
            self._rows.renew()
            write()
        self._added += many
        if self._added >= _FOLD_ENTRIES:
            self._added = 0
            self._wake.set()

    def _renew(self) -> None:
        try:
            self._rows.renew()
        except StoreFailed as error:
            _log.warning("the index cannot be made again: %s", error)

    def _fold(self) -> bool | None:
        """Was there anything to fold? None where that is another process's business, or failed."""
        try:
            if self._rows.moved():
                self._rows.renew()
            if not self._writing.take():
                return None
            folded = self._folding.fold()
        except Exception as error:
            # background work: nobody above could do anything about it, and an embedder may raise
            # anything
            if (
                self._closed or not self.folder.exists()
            ):  # nobody is left who could miss what was to be folded
                return None
            self._fold_trouble = (
                str(error)
                if isinstance(error, HotsetError)
                else f"a fold failed ({type(error).__name__})"
            )
            _log.warning("a fold failed: %s", self._fold_trouble)
            return None
        self._fold_trouble = ""
        return folded

    def _fold_now_and_then(self) -> None:
        idle = rest = 0
        while not self._closed:
            self._wake.wait(self._rhythm.fold_seconds)
            self._wake.clear()
            if self._closed:
                return
            if rest:
                rest -= 1
                continue
            folded = self._fold()
            rest = _REST_FOLDS if self._fold_trouble else 0
            idle = 0 if folded else idle + 1
            if idle:
                self._read_some()
            if idle == _IDLE_FOLDS:
                self._folding.close()

    def _read_some(self) -> None:
        for _ in range(_READ_AT_ONCE):
            at_work = (
                self._wake.is_set() or time.monotonic() - self._worked < self._rhythm.quiet_seconds
            )
            if self._closed or at_work or not self.read_closely():
                return

    def _troubles(self) -> Iterable[str]:
        if self._rows.renewals:
            yield "the rows were unusable; they were thrown away and are added again"
        if self._fold_trouble:
            yield self._fold_trouble
        if self._reading_trouble:
            yield self._reading_trouble
        if self._folding.unfit:
            yield f"{self._folding.unfit} entries have no vector: theirs was not made of numbers"
        yield from self._searching.troubles()


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # cleared away since
            continue
    return total
