"""What every index can do. `hotset.testing.check_index()` is the contract; engines stay behind
it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hotset.nouns.search import Entry, EntryId, Hits, Query, Sort

FOLDER = "index"
"""Where it is, in a project's data folder."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far a source was followed."""

    name: str
    number: int


@dataclass(frozen=True, slots=True)
class IndexState:
    """How an index is, for people."""

    entries: int
    lag: int
    """Entries that are found by their words already and not yet folded."""
    bytes: int
    """On disk, all files together."""
    watermarks: Mapping[str, int] = field(default_factory=dict)
    embedder: str = ""
    """The one that made the vectors; empty where there are none."""
    writer: int | None = None
    """The process that folds, if any does."""
    building: float | None = None
    """The share of a new generation that is done, while one is made beside the one that serves."""
    outdated: int = 0
    """Entries whose secrets were sealed by older rules; they leave when their sources have come by
    again."""
    troubles: tuple[str, ...] = ()
    """As `Index.troubles` tells them."""


class Index(Protocol):
    """Finds entries. Never the truth: its sources can add everything again.

    - What `add` was given is found by the next `search`, in whichever process.
    - What was removed is not found by the next `search`, in whichever process.
    - A watermark is set in the commit of the entries that it came with, or not at all.
    - An entry whose id is there already takes the old one's place.
    - `search` raises nothing: what cannot serve is named in `Hits.lacking`.
    - Safe to use from several threads and several processes at once.
    """

    def add(self, entries: Iterable[Entry], watermark: Watermark | None = None) -> None: ...

    def remove(self, wholes: Iterable[str], watermark: Watermark | None = None) -> None:
        """All entries of these wholes."""
        ...

    def purge(self, wholes: Iterable[str]) -> None:
        """As `remove`; and once the process that folds has made the files anew, no word of
        them is left in any."""
        ...

    def replace(
        self, whole: str, entries: Iterable[Entry], watermark: Watermark | None = None
    ) -> None:
        """All entries of this whole leave, but for those that are given and unchanged; half of it
        is never seen."""
        ...

    def search(self, query: Query) -> Hits: ...

    def entries(self, ids: Iterable[EntryId]) -> Sequence[Entry]:
        """Those that are there, in the order asked for."""
        ...

    def wholes(self, sort: Sort) -> Sequence[str]:
        """Everything of this sort that has an entry, by name."""
        ...

    def watermark(self, name: str) -> int:
        """0 where nothing was set, and where everything has to be added again."""
        ...

    def touch(self, ids: Iterable[EntryId], turn: int = 0) -> None:
        """These were looked at: what is looked at often or just now is found fastest."""
        ...

    def fold(self) -> bool:
        """Brings everything that waits into the fast structures. False where another process does
        that, or it failed."""
        ...

    def state(self) -> IndexState: ...

    def troubles(self) -> Sequence[str]:
        """What went wrong here and is being made good: a damaged file, a full disk, an embedder
        that does not answer."""
        ...

    def close(self) -> None: ...
