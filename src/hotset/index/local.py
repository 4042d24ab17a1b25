"""The index of a project, in its own folder, and how the one folding process folds additions into
it.

A fold is written to files first and becomes valid with one commit of the database; if it is cut off
at any moment, the next one overwrites what it left.
"""

from __future__ import annotations

import json
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from hotset.errors import HotsetError, StoreFailed
from hotset.files.lru import CACHES, CacheSize
from hotset.files.private_folder import private_folder
from hotset.files.scope import PROCESS
from hotset.index import analysis, full_text, vectors
from hotset.index.database import (
    FOLDERS,
    EntryRows,
    FilesDamaged,
    Generation,
    Generations,
    RowsDamaged,
    embedder_of,
    folder_of,
    writer_lock,
)
from hotset.index.embed.port import Embedder, embed_checked
from hotset.index.entries import Entries, NumberedEntry, embedded_text
from hotset.index.full_text import HEAP_BYTES, Document, WordsWriter
from hotset.index.hybrid_search import IndexSearch
from hotset.index.port import IndexState, Watermark
from hotset.index.vectors import Floats, VectorsWriter
from hotset.nouns.pressure import MemoryTier, PressureResponse
from hotset.nouns.search import Entry, EntryId, Hits, Query, Sort

_log = logging.getLogger("hotset")

_FOLD_ENTRIES = 500  # added here: then the next fold begins at once
_REST_FOLDS = 10  # left out after one that failed
_IDLE_FOLDS = 30  # without work: then the writers are closed, with the memory that they hold
_READ_AT_ONCE = 3  # hot entries between two looks for work: each takes a core up to 0.2 s
_NOTHING = Hits(lacking=frozenset({"words", "meaning", "tail"}))


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Intervals of background work."""

    fold_seconds: float = 1.0
    """Interval between checks for something to fold."""
    quiet_seconds: float = 2.0
    """Seconds without a search or an addition after which the machine counts as idle, and hot
    entries are embedded."""


_RHYTHM = Rhythm()


class LocalIndex:
    """An `Index` in a folder. Thread-safe; open it anew after a fork."""

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
        self._fold_writer = FoldWriter(self.folder, self._rows, self._entries, embedder)
        self._writer_lock = writer_lock(self.folder)
        self._search = IndexSearch(self.folder, self._rows, self._entries, embedder, asking)
        self._rhythm = rhythm
        self._fold_trouble = ""
        self._reading_trouble = ""
        self._tier = MemoryTier.FULL
        self._added = 0
        self._worked = time.monotonic()
        self._wake = threading.Event()
        self._closed = False
        self._thread = PROCESS.child("index").new_thread(self._fold_now_and_then, "hotset-fold")
        if folds:
            self._thread.start()
        CACHES.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._fold_writer.stop()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._search.close()
        self._fold_writer.close()
        self._writer_lock.release()
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
            return self._search.search(query)
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

    def touch(self, names: Iterable[str], turn: int = 0, session: str = "") -> None:
        self._search.hot.touch(names, turn, session)

    def fold(self) -> bool:
        return self._fold() is not None

    def read_closely(self) -> bool:
        """Embed one hot entry with the model that reads questions. False if there is none, or if it
        failed, which is permanent."""
        reranker = self._search.reranker
        if reranker is None or self._reading_trouble or self._tier is not MemoryTier.FULL:
            return False
        try:
            return reranker.read_one()
        except Exception as error:  # background work, as `_fold`
            self._reading_trouble = f"hot entries cannot be read closely ({type(error).__name__})"
            _log.warning("%s", self._reading_trouble)
            return False

    def respond(self, response: PressureResponse) -> None:
        """Keep in memory what the tier allows. While it is the hot one nothing is folded: what was
        added is found among the entries that wait."""
        self._tier = response.tier
        self._search.respond(response)
        if response.tier is MemoryTier.HOT and self._fold_writer.is_open:
            self._wake.set()  # the thread that folds closes its writers

    def cache_size(self) -> CacheSize:
        writers = int(self._fold_writer.is_open)
        return CacheSize("index writers", writers, writers * HEAP_BYTES, 1, "entries", shrinks=True)

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
            writer=self._writer_lock.holder(),
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
        """True if there was anything to fold. None if another process folds, or it failed."""
        try:
            if self._rows.moved():
                self._rows.renew()
            if not self._writer_lock.take():
                return None
            folded = self._fold_writer.fold()
        except Exception as error:
            # background work: no caller could handle it, and an embedder may raise
            # anything
            if (
                self._closed or not self.folder.exists()
            ):  # the index is gone, and with it what was to be folded
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
            if self._tier is MemoryTier.HOT:
                self._fold_writer.close()
                continue
            if rest:
                rest -= 1
                continue
            folded = self._fold()
            rest = _REST_FOLDS if self._fold_trouble else 0
            idle = 0 if folded else idle + 1
            if idle:
                self._read_some()
            if idle == _IDLE_FOLDS:
                self._fold_writer.close()

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
        if self._fold_writer.unfit:
            unfit = self._fold_writer.unfit
            yield f"{unfit} entries have no vector: theirs was not made of numbers"
        yield from self._search.troubles()


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # cleared away since
            continue
    return total


_AT_ONCE = 16_384  # entries in memory, with their vectors
# entries: each commit is a segment of full text, and each segment makes every search longer
_COMMITTED = 131_072
_EMBED_AT_ONCE = 256
_WASTED = 0.5  # of the rows are empty: then a new generation is smaller and faster
_WASTED_LEAST = 10_000


def identity(embedder: Embedder | None) -> str:
    """What the folded structures depend on: if it changes, they are rebuilt."""
    made_by = {"analysis": analysis.VERSION, "words": full_text.VERSION, "vectors": vectors.VERSION}
    return json.dumps(
        {
            **made_by,
            "embedder": embedder.id if embedder else "",
            "size": embedder.size if embedder else 0,
        }
    )


class FoldWriter:
    """Folds, in the process that has the role. One thread at a time."""

    def __init__(
        self, folder: Path, rows: EntryRows, entries: Entries, embedder: Embedder | None
    ) -> None:
        self._folder = folder
        self._entries = entries
        self._generations = Generations(rows)
        self._embedder = embedder
        self._identity = identity(embedder)
        self._lock = threading.Lock()
        self._stopping = False
        self._open: tuple[int, WordsWriter, VectorsWriter | None] | None = None
        self.unfit = 0
        """Entries whose vectors were no numbers: they are found by their words alone."""

    def fold(self) -> bool:
        """Fold until nothing waits, or `stop` is called. True if there was anything. Raises a
        `HotsetError` if it must be retried."""
        with self._lock:
            self._entries.drop_outdated()
            generation = self._target()
            waited = self._generations.drop_abandoned(self._identity)
            waited = self._behind(generation) or waited
            try:
                while not self._stopping and self._behind(generation):
                    generation = self._step(generation)
            except FilesDamaged:
                self._close()
                self._generations.condemn(generation.number)
                raise
            except BaseException:
                self._close()
                raise
            if waited:
                self._clear_away()
            return waited

    @property
    def is_open(self) -> bool:
        """True while it has its writers open, with the memory that they hold."""
        return self._open is not None

    def stop(self) -> None:
        """A running fold ends with its current batch; the next one continues there."""
        self._stopping = True

    def close(self) -> None:
        with self._lock:
            self._close()

    def _target(self) -> Generation:
        """Our generation, serving or being built; a new one if there is none, or if the one that
        serves is mostly empty."""
        ours = [each for each in self._generations.every() if each.identity == self._identity]
        if not ours or (ours[-1].serving and self._mostly_empty()):
            return self._generations.new(self._identity)
        return ours[-1]

    def _mostly_empty(self) -> bool:
        meaning = self._open[2] if self._open is not None else None
        return (
            meaning is not None
            and meaning.rows >= _WASTED_LEAST
            and meaning.alive() < (1 - _WASTED) * meaning.rows
        )

    def _behind(self, generation: Generation) -> bool:
        return not generation.serving or self._generations.behind(generation)

    def _step(self, generation: Generation) -> Generation:
        full_text, meaning = self._writers(generation)
        forgotten = self._generations.removed()
        folded, every = self._add(full_text, meaning, generation.folded)
        full_text.forget(forgotten)
        if meaning is not None:
            meaning.forget(forgotten)
            meaning.sync()
        full_text.commit()
        after = replace(
            generation,
            folded=folded,
            rows=meaning.rows if meaning is not None else 0,
            serving=generation.serving or every,
        )
        self._generations.folded(after, forgotten)
        return after

    def _add(
        self, full_text: WordsWriter, meaning: VectorsWriter | None, folded: int
    ) -> tuple[int, bool]:
        """Add as many as one commit takes. Returns the last number, and whether that is every
        entry."""
        for _ in range(_COMMITTED // _AT_ONCE):
            batch = self._entries.beyond(folded, _AT_ONCE)
            if batch:
                if meaning is not None:
                    meaning.append(self._embedded(batch), _columns(batch))
                full_text.add([_document(each) for each in batch])
                folded = batch[-1].doc
            if len(batch) < _AT_ONCE:
                return folded, True
            if self._stopping:
                break
        return folded, False

    def _writers(self, generation: Generation) -> tuple[WordsWriter, VectorsWriter | None]:
        if self._open is not None and self._open[0] == generation.number:
            return self._open[1:]
        self._close()
        folder = folder_of(self._folder, generation)
        if not generation.folded:
            for made in (folder, folder / "words"):
                made.mkdir(mode=0o700, exist_ok=True)
        meaning = (
            VectorsWriter(folder, self._embedder.size, generation.rows)
            if self._embedder is not None
            else None
        )
        try:
            full_text = WordsWriter(folder / "words", new=not generation.folded)
        except BaseException:
            if meaning is not None:
                meaning.close()
            raise
        full_text.forget_beyond(generation.folded)
        self._open = generation.number, full_text, meaning
        return full_text, meaning

    def _close(self) -> None:
        if self._open is not None:
            _, full_text, meaning = self._open
            self._open = None
            if meaning is not None:
                meaning.close()
            full_text.close()

    def _embedded(self, batch: Sequence[NumberedEntry]) -> Floats:
        assert self._embedder is not None
        made = []
        for at in range(0, len(batch), _EMBED_AT_ONCE):
            some = [embedded_text(each.entry) for each in batch[at : at + _EMBED_AT_ONCE]]
            made.append(embed_checked(self._embedder, some))
        every = np.concatenate(made)
        unfit = ~np.isfinite(every).all(axis=1)
        if unfit.any():
            self.unfit += int(np.count_nonzero(unfit))
            every[unfit] = 0
        return every

    def _clear_away(self) -> None:
        """Delete folders that no generation needs. Readers still have their files open."""
        known = {folder_of(self._folder, each).name for each in self._generations.every()}
        for path in self._folder.glob(f"{FOLDERS}*"):
            if path.name not in known:
                shutil.rmtree(path, ignore_errors=True)


def _document(numbered: NumberedEntry) -> Document:
    names = ("sort", "kind", "session", "agent", "path")
    return Document(
        numbered.doc, numbered.entry, tuple((name, getattr(numbered, name)) for name in names)
    )


def _columns(batch: Sequence[NumberedEntry]) -> dict[str, list[float]]:
    names = ("doc", "sort", "kind", "session", "agent", "path")
    own = {name: [getattr(each, name) for each in batch] for name in names}
    return {
        **own,
        "turn": [each.entry.turn for each in batch],
        "time": [each.entry.time for each in batch],
    }
