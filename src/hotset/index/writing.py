"""Folding: what was added goes into the fast structures, by the one process of a project that has
the role.

A fold is written into files first and counts when one commit of the rows' database says so; cut off
at any moment it leaves only what the next one writes over.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hotset.errors import BadInput
from hotset.index import analysis, vectors, words
from hotset.index.embed.port import Embedder
from hotset.index.entries import Entries, Numbered
from hotset.index.generations import FOLDERS, FilesDamaged, Generation, Generations
from hotset.index.rows import EntryRows
from hotset.index.vectors import Floats, VectorsWriter
from hotset.index.words import Document, WordsWriter
from hotset.nouns.finding import Entry

_AT_ONCE = 16_384  # entries in memory, with their vectors
# entries: each commit is a segment of full text, and each segment makes every search longer
_COMMITTED = 131_072
_EMBED_AT_ONCE = 256
_WASTED = 0.5  # of the rows are empty: then a new generation is smaller and faster
_WASTED_LEAST = 10_000


def identity(embedder: Embedder | None) -> str:
    """What the folded structures depend on: where one of these changes, they are made anew."""
    made_by = {"analysis": analysis.VERSION, "words": words.VERSION, "vectors": vectors.VERSION}
    return json.dumps(
        {
            **made_by,
            "embedder": embedder.id if embedder else "",
            "size": embedder.size if embedder else 0,
        }
    )


def folder_of(folder: Path, generation: Generation) -> Path:
    return folder / f"{FOLDERS}{generation.number}"


class FoldWriter:
    """Folds, for whoever holds the role. One thread at a time."""

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
        """Until nothing waits any more, or it is told to stop; was there anything?

        Raises a `HotsetError` where it has to be tried again.
        """
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

    def stop(self) -> None:
        """A fold that is under way ends with its present batch; whoever comes next goes on from
        there."""
        self._stopping = True

    def close(self) -> None:
        with self._lock:
            self._close()

    def _target(self) -> Generation:
        """Ours, serving or under way; a new one where there is none, or where the one that serves
        is mostly empty."""
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
        """As many as one commit takes; up to which number that is, and whether it is every entry
        there is."""
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

    def _embedded(self, batch: Sequence[Numbered]) -> Floats:
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
        """Folders that no generation needs any more. Whoever still reads them has them open."""
        known = {folder_of(self._folder, each).name for each in self._generations.every()}
        for path in self._folder.glob(f"{FOLDERS}*"):
            if path.name not in known:
                shutil.rmtree(path, ignore_errors=True)


def embed_checked(embedder: Embedder, texts: Sequence[str]) -> Floats:
    """Vectors of the promised form, or `BadInput`."""
    made = np.array(embedder.embed(texts), np.float32)
    if made.shape != (len(texts), embedder.size):
        raise BadInput(
            f"the embedder {embedder.id} gave {made.shape} instead of {(len(texts), embedder.size)}"
        )
    return made


def embedded_text(entry: Entry) -> str:
    """What an entry's vector is made from."""
    return f"{entry.title}\n{entry.text}" if entry.title else entry.text


def _document(numbered: Numbered) -> Document:
    names = ("sort", "kind", "session", "agent", "path")
    return Document(
        numbered.doc, numbered.entry, tuple((name, getattr(numbered, name)) for name in names)
    )


def _columns(batch: Sequence[Numbered]) -> dict[str, list[float]]:
    names = ("doc", "sort", "kind", "session", "agent", "path")
    own = {name: [getattr(each, name) for each in batch] for name in names}
    return {
        **own,
        "turn": [each.entry.turn for each in batch],
        "time": [each.entry.time for each in batch],
    }
