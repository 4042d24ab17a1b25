"""Which sessions have something in them that was not made into memories yet.

Derived from the store's pages: where the note is lost, every session waits again, and nothing is written twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec

from hotset.nouns.note import Scope, Space
from hotset.nouns.page import SessionId
from hotset.store.port import Store
from hotset.store.values import StoredValue

_PENDING = Space("memory.pending", Scope.MACHINE, keeps=1)
"""Of this machine: it counts the pages of this store."""

_CHUNK = 1000


class _Progress(msgspec.Struct):
    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)] = 0
    """Of the last page that was looked at."""
    sessions: dict[str, float] = {}
    """When something was last said in each session that waits."""


class PendingSessions:
    """Safe to use from several threads. Each process has its own; they may disagree, as what is done twice changes nothing."""

    def __init__(self, store: Callable[[], Store], old_file: Path) -> None:
        self._stored = StoredValue(_PENDING, _Progress, store, old_file=old_file)
        self._lock = threading.Lock()
        self._loaded: _Progress | None = None

    def look(self, store: Store, most: int = 1 << 62) -> bool:
        """Takes in the pages that are new. False where there are more than `most` of them."""
        with self._lock:
            progress = self._read()
            if progress.number and not store.pages_after(progress.number - 1, 1):  # made from another store
                progress.number = 0
            while most > 0 and (pages := store.pages_after(progress.number, min(_CHUNK, most))):
                for _, page in pages:
                    progress.sessions[page.session] = max(page.time, progress.sessions.get(page.session, 0.0))
                progress.number = pages[-1][0]
                most -= len(pages)
            return most > 0

    def ready(self, before: float) -> list[SessionId]:
        """The sessions in which nothing was said since, the oldest first."""
        with self._lock:
            waiting = sorted((time, id) for id, time in self._read().sessions.items() if time <= before)
        return [SessionId(id) for _, id in waiting]

    @property
    def many(self) -> int:
        with self._lock:
            return len(self._read().sessions)

    def done(self, session: SessionId, said: float) -> None:
        """It was made into memories, as far as it went when its last page had come at that time."""
        with self._lock:
            sessions = self._read().sessions
            if sessions.get(session, 0.0) <= said:
                sessions.pop(session, None)

    def last_said(self, session: SessionId) -> float:
        with self._lock:
            return self._read().sessions.get(session, 0.0)

    def save(self, now: float) -> None:
        with self._lock:
            if self._loaded is not None:
                self._stored.write(self._loaded, now)

    def _read(self) -> _Progress:
        if self._loaded is None:
            stored = self._stored.read()
            self._loaded = _Progress(stored.number, dict(stored.sessions))
        return self._loaded
