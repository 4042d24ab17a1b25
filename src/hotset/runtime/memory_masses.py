"""How much each memory tells, by how rare its words are among episodes: worked out with each consolidation, kept in a file.

What is rare is needed more often than what is new, so it is shown one form better than its age says.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from hotset.files.folder import private_folder
from hotset.files.write import write_atomically
from hotset.nouns.memory import Memory, MemoryKind, Standing
from hotset.sources.memory.managing.forms import Frequencies, frequencies, mass
from hotset.store.port import Store

_FILE = "masses.json"
_MOST_WORDS = 50_000  # the most common ones; whatever is not among them is rare
_COUNTED = frozenset({MemoryKind.EPISODE})  # most of what there is, and what age is about
_STANDING = frozenset({Standing.ACTIVE, Standing.SUPERSEDED})


class _Kept(msgspec.Struct, frozen=True):
    time: float | None = None
    memories: int = 0
    words: dict[str, int] = {}
    edges: tuple[float, ...] = ()


class Masses:
    """Derived: where the file is lost, nothing is rare until it is made again. Use it from any thread."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        self._known: tuple[int, _Kept] = (0, _Kept())

    def of(self, memory: Memory) -> float:
        """From 0 to 1: the share of episodes that tell less."""
        kept = self._read()
        return mass(memory, Frequencies(kept.memories, kept.words, kept.edges))

    @property
    def renewed(self) -> float | None:
        """When they were worked out, in whichever process; None where they are not known."""
        return self._read().time

    def renew(self, store: Store, now: float) -> None:
        """Reads every episode once."""
        found = frequencies(store.memories(_COUNTED, _STANDING))
        common = dict(Counter(found.words).most_common(_MOST_WORDS))
        private_folder(self._path.parent)
        write_atomically(self._path, msgspec.json.encode(_Kept(now, found.memories, common, found.edges)))

    def drop(self) -> None:
        """Something was erased: none of its words may stay."""
        self._path.unlink(missing_ok=True)

    def _read(self) -> _Kept:
        try:
            stamp = self._path.stat().st_mtime_ns
        except OSError:
            return _Kept()
        if self._known[0] != stamp:
            try:
                kept = msgspec.json.decode(self._path.read_bytes(), type=_Kept)
            except (OSError, msgspec.DecodeError):
                kept = _Kept()
            self._known = stamp, kept
        return self._known[1]
