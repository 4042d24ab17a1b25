"""A value that lives as one note: read from any process, changed without losing what another
process wrote (`StoredValue`); and one to which many small items are added (`GatheredValue`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from hotset.errors import Conflict, HotsetError
from hotset.files.deadline_pool import Debouncer
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.note import Note, Space
from hotset.store.port import Store
from hotset.typed import decode

_Value = TypeVar("_Value", bound=msgspec.Struct)
_Item = TypeVar("_Item")

_TRIES = 20  # of a change that another process was faster with
_GATHER = 1.0  # seconds, in the background
_MOST_WAITING = 1000  # items that are remembered while they cannot be written


class StoredValue(Generic[_Value]):
    """A msgspec struct under one key. Safe to use from several threads and processes.

    Where there is no note, or none that can be read, it is the struct's default. `old_file` is
    where an earlier version of hotset kept it: what can be read there becomes the note, and the
    file is removed.
    """

    def __init__(
        self,
        space: Space,
        kind: type[_Value],
        store: Callable[[], Store],
        *,
        key: str = "",
        old_file: Path | None = None,
    ) -> None:
        self._space = space
        self._kind = kind
        self._store = store
        self._key = key
        self._old_file = old_file
        self._known: tuple[int, int, _Value] | None = None
        """The store's version, the note's version and the value."""

    def read(self) -> _Value:
        """The value; the same object while it is unchanged. Raises a `HotsetError` if the store
        cannot be read."""
        store, known = self._store(), self._known
        version = store.version()
        if known is None or known[0] != version:
            note = self._note(store)
            number = note.version if note is not None else 0
            is_same = known is not None and known[1] == number
            self._known = known = (
                version,
                number,
                known[2] if known and is_same else self._decoded(note),
            )
        return known[2]

    def write(self, value: _Value, now: float) -> None:
        """Replace the value, whatever it was. Durable when it returns; raises a `HotsetError`."""
        written = NoteWritten(self._space, self._key, msgspec.json.encode(value), now)
        self._store().keep(written).result()

    def change(self, change: Callable[[_Value], _Value], now: float) -> _Value:
        """Apply `change` to the latest version, again if another process wrote meanwhile. Durable
        when it returns."""
        for attempt in range(_TRIES):
            store = self._store()
            note = self._note(store)
            value = change(self._decoded(note))
            version = note.version if note is not None else 0
            written = NoteWritten(
                self._space, self._key, msgspec.json.encode(value), now, expects=version
            )
            try:
                store.keep(written).result()
            except Conflict:
                if attempt == _TRIES - 1:
                    raise
            else:
                return value
        raise AssertionError("unreachable")

    def _note(self, store: Store) -> Note | None:
        note = store.notes(self._space, [self._key]).get(self._key)
        if note is not None or self._old_file is None or not self._old_file.is_file():
            return note
        with suppress(OSError, msgspec.DecodeError, Conflict):
            raw = self._old_file.read_bytes()
            decode(raw, self._kind)
            time = self._old_file.stat().st_mtime
            store.keep(NoteWritten(self._space, self._key, raw, time, expects=0)).result()
            self._old_file.unlink(missing_ok=True)
        return store.notes(self._space, [self._key]).get(self._key)

    def _decoded(self, note: Note | None) -> _Value:
        if note is not None and note.value is not None:
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                return decode(note.value, self._kind)
        return self._kind()


class GatheredValue(Generic[_Value, _Item]):
    """A stored value to which items are added about once a second, off the caller's path. Any
    thread may use it."""

    def __init__(
        self,
        value: StoredValue[_Value],
        add: Callable[[_Value, Sequence[_Item]], _Value],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.trouble = ""
        """Why the waiting items could not be written."""
        self._value = value
        self._add = add
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: list[_Item] = []
        self._debouncer = Debouncer(self._try_to_write, _GATHER)

    def put(self, item: _Item) -> None:
        with self._lock:
            self._waiting.append(item)
            del self._waiting[:-_MOST_WAITING]
        self._debouncer.ask()

    def read(self) -> tuple[_Value, tuple[_Item, ...]]:
        """The written value (the same object while it is unchanged) and the waiting items. Raises a
        `HotsetError`."""
        with self._lock:
            waiting = tuple(self._waiting)
        return self._value.read(), waiting

    def change(self, change: Callable[[_Value], _Value] = lambda value: value) -> None:
        """Add the waiting items, then apply `change`. Durable when it returns; raises a
        `HotsetError`."""
        with self._lock:
            taken, self._waiting = self._waiting, []
        try:
            self._value.change(lambda value: change(self._add(value, taken)), self._clock())
        except BaseException:
            with self._lock:
                self._waiting = taken + self._waiting
            raise
        self.trouble = ""

    def flush(self) -> None:
        """Write the waiting items. Raises a `HotsetError`."""
        if self._waiting:
            self.change()

    def close(self) -> None:
        self._debouncer.close()

    def _try_to_write(self) -> None:
        try:
            self.flush()
        except HotsetError as error:  # the items wait for the next attempt
            self.trouble = str(error)
