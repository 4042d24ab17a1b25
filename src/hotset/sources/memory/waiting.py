"""Which sessions have something in them that was not made into memories yet.

Derived from the store's pages: where the file is lost, every session waits again, and nothing is written twice.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import msgspec

from hotset.files.folder import private_folder
from hotset.files.write import write_atomically
from hotset.nouns.page import SessionId
from hotset.store.port import Store

_FILE = "waiting.json"
_CHUNK = 1000


class _Kept(msgspec.Struct):
    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)] = 0
    """Of the last page that was looked at."""
    sessions: dict[str, float] = {}
    """When something was last said in each session that waits."""


class Waiting:
    """Safe to use from several threads; each process has its own, and they may disagree: what is done twice changes nothing."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        self._lock = threading.Lock()
        self._kept: _Kept | None = None

    def look(self, store: Store, most: int = 1 << 62) -> bool:
        """Comes by the pages that are new. False where there are more than `most` of them."""
        with self._lock:
            kept = self._read()
            if kept.number and not store.pages_after(kept.number - 1, 1):  # another store than the one it was made from
                kept.number = 0
            while most > 0 and (pages := store.pages_after(kept.number, min(_CHUNK, most))):
                for _, page in pages:
                    kept.sessions[page.session] = max(page.time, kept.sessions.get(page.session, 0.0))
                kept.number = pages[-1][0]
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

    def save(self) -> None:
        with self._lock:
            if self._kept is not None:
                private_folder(self._path.parent)
                write_atomically(self._path, msgspec.json.encode(self._kept))

    def _read(self) -> _Kept:
        if self._kept is None:
            try:
                self._kept = msgspec.json.decode(self._path.read_bytes(), type=_Kept)
            except (OSError, msgspec.DecodeError):
                self._kept = _Kept()
        return self._kept
