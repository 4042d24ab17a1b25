"""The `Index` protocol. `hotset.testing.check_index()` is the contract; engines stay behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hotset.nouns.search import Entry, EntryId, Hits, Lack, Query, Sort


def describe_lacking(lacking: Iterable[str], why: Mapping[str, Lack]) -> str:
    """`words (did not answer in time)`, for a person or a model."""
    return ", ".join(f"{name} ({why.get(name, Lack.LATE)})" for name in sorted(lacking))


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far a source was followed."""

    name: str
    number: int


@dataclass(frozen=True, slots=True)
class IndexState:
    """State of an index, for people."""

    entries: int
    lag: int
    """Entries found by words already and not yet folded."""
    bytes: int
    """On disk, all files together."""
    watermarks: Mapping[str, int] = field(default_factory=dict)
    embedder: str = ""
    """The one that made the vectors; empty if there are none."""
    writer: int | None = None
    """The process that folds, if any does."""
    building: float | None = None
    """Finished share of a new generation, while one is built beside the one that serves."""
    outdated: int = 0
    """Entries sealed by older rules; they leave when their sources have caught up again."""
    troubles: tuple[str, ...] = ()
    """As `Index.troubles` returns them."""


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
        """As `remove`; and once the folding process has rewritten the files, no word of them is
        left in any."""
        ...

    def replace(
        self, whole: str, entries: Iterable[Entry], watermark: Watermark | None = None
    ) -> None:
        """Remove all entries of this whole, except given ones that are unchanged; no search sees a
        partial state."""
        ...

    def search(self, query: Query) -> Hits: ...

    def entries(self, ids: Iterable[EntryId]) -> Sequence[Entry]:
        """The existing ones, in the order requested."""
        ...

    def wholes(self, sort: Sort) -> Sequence[str]:
        """Everything of this sort that has an entry, by name."""
        ...

    def watermark(self, name: str) -> int:
        """0 if nothing was set, or if everything has to be added again."""
        ...

    def touch(self, names: Iterable[str], turn: int = 0, session: str = "") -> None:
        """Record a view of entries, by their ids, or of wholes, by their names. What was viewed
        often, or within the last turns of the session that viewed it, is found fastest."""
        ...

    def fold(self) -> bool:
        """Fold everything that waits into the fast structures. False if another process does that,
        or it failed."""
        ...

    def state(self) -> IndexState: ...

    def troubles(self) -> Sequence[str]:
        """Problems that are being repaired: a damaged file, a full disk, an embedder that does not
        answer."""
        ...

    def close(self) -> None: ...
