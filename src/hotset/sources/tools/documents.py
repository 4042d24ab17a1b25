"""What several processes change: a JSON file that a person edits as well, and a stored value that
is written seldom.

The file is read anew before each change, written whole, never lost. Beside `NAME` lies `NAME.last`,
the copy of what was last written here. A file that cannot be read is set aside as `NAME.damaged-1`
(2, 3 ...), what cannot be read of it is taken from the copy, and a trouble tells of it.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from hotset.errors import DiskFull, HotsetError, StoreFailed
from hotset.files.debounce import Debouncer
from hotset.files.folder import private_folder
from hotset.files.lock import hold_to_change
from hotset.files.open import NotRegular, open_regular
from hotset.files.root import Stat
from hotset.files.write import is_full, replace_file
from hotset.store.values import StoredValue

_SAVING = (
    1.0  # seconds for which a file that was just changed may still be on its way out of an editor
)
_SAVING_POLL = 0.05
_LARGEST = 64 * 1024 * 1024  # bytes; nothing that is kept here comes near
_TROUBLES = 20
_GATHER = 1.0  # seconds, in the background
_MOST_WAITING = 1000  # items that are remembered while they cannot be written
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class CheckedDocument:
    """The usable content of a file."""

    value: dict[str, Any]
    wrong: tuple[str, ...] = ()
    """What is wrong, in a few words each; `value` has something else in its place."""


Check = Callable[[dict[str, Any] | None, dict[str, Any] | None], CheckedDocument]
"""Gets the content of a file and of its copy, each None where there is none, and fills what is
wrong in the one from the other."""


class SharedDocument:
    """One file. Any thread may use it; a change holds a lock that other processes respect."""

    def __init__(self, path: Path, check: Check) -> None:
        self.path = private_folder(path.parent) / path.name
        self._check = check
        self._last = self.path.with_name(f"{path.name}.last")
        self._lock = self.path.with_name(f".{path.name}.lock")
        self._seen: tuple[Stat, dict[str, Any]] | None = None
        self._troubles: deque[str] = deque(maxlen=_TROUBLES)

    def read(self) -> dict[str, Any]:
        """Its content; not to be changed. The same object while the file is unchanged."""
        seen = self._seen
        if seen is not None and seen[0] == lstat_of(self.path):
            return seen[1]
        found = _look(self.path)
        if found.stamp is None and not self._last.exists():
            return self._check(None, None).value
        if found.stamp is not None and not found.why:
            checked = self._check(found.value, None)
            if not checked.wrong:
                self._seen = found.stamp, checked.value
                return checked.value
        with self._alone():
            return self._sound()

    @contextmanager
    def changing(self) -> Iterator[dict[str, Any]]:
        """Its content, to be changed in place; written when the block ends, unless it fails. Not to
        be changed after that.

        Raises `StoreFailed`.
        """
        with self._alone():
            value = self._sound()
            yield value
            self._write(value)

    def troubles(self) -> Sequence[str]:
        """What went wrong with the file, in sentences, the latest last."""
        return tuple(self._troubles)

    def trouble(self, sentence: str) -> None:
        if sentence not in self._troubles:
            self._troubles.append(sentence)

    def _alone(self) -> AbstractContextManager[None]:
        return hold_to_change(self.path, self._lock)

    def _sound(self) -> dict[str, Any]:
        """A fresh copy of its content; repaired first, where it has to be. Under the lock."""
        found = _look_when_saved(self.path)
        if found.stamp is not None and not found.why:
            checked = self._check(found.value, None)
            if not checked.wrong:
                return checked.value
        copy = _look(self._last)
        if found.stamp is None and copy.stamp is None:
            return self._check(None, None).value
        return self._mend(found, copy)

    def _mend(self, found: _Found, copy: _Found) -> dict[str, Any]:
        checked = self._check(found.value, copy.value)
        aside = [
            _set_aside(path) for path, look in ((self.path, found), (self._last, copy)) if look.why
        ]
        if not found.why and checked.wrong:
            aside.append(_set_aside(self.path))
        why = found.why or "; ".join(checked.wrong) or "it is missing"
        source = (
            "started anew" if copy.stamp is None or copy.why else f"mended from {self._last.name}"
        )
        kept = (
            f"; what was there is kept as {', '.join(aside)}"
            if aside
            else f"; remove {self._last.name} too to start anew"
        )
        self.trouble(f"{self.path} could not be used ({why}) and was {source}{kept}")
        self._write(checked.value)
        return self._check(msgspec.json.decode(_encoded(checked.value)), None).value

    def _write(self, value: dict[str, Any]) -> None:
        """Writes the copy first: whatever happens, one of the two is whole. Nothing where the
        content is the same. Under the lock."""
        content = _encoded(value)
        try:
            if _content(self.path) == content and self._last.exists():
                return
            for path in (self._last, self.path):
                with replace_file(path, f".{self.path.name}.new") as file:
                    file.write(content)
            stamp = lstat_of(self.path)
            self._seen = (stamp, value) if stamp else None
        except OSError as error:
            if is_full(error):
                raise DiskFull(
                    f"no room is left to write {self.path}; make some, and what was not "
                    f"written will be"
                ) from error
            raise StoreFailed(f"cannot write {self.path}: {error.strerror}") from error


_Value = TypeVar("_Value", bound=msgspec.Struct)
_Item = TypeVar("_Item")


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
        """Why the items that wait could not be written."""
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
        """What is written, the same object while it is unchanged, and the items that wait. Raises a
        `HotsetError`."""
        with self._lock:
            waiting = tuple(self._waiting)
        return self._value.read(), waiting

    def change(self, change: Callable[[_Value], _Value] = lambda value: value) -> None:
        """Adds the items that wait, then applies `change`. Durable when it returns; raises a
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
        """Writes the items that wait. Raises a `HotsetError`."""
        if self._waiting:
            self.change()

    def close(self) -> None:
        self._debouncer.close()

    def _try_to_write(self) -> None:
        try:
            self.flush()
        except HotsetError as error:  # the items wait for the next attempt
            self.trouble = str(error)


@dataclass(frozen=True, slots=True)
class _Found:
    stamp: Stat | None
    """None where there is no file."""
    value: dict[str, Any] | None = None
    why: str = ""
    """Why there is no value."""


def _look(path: Path) -> _Found:
    try:
        file = open_regular(path)
    except FileNotFoundError:
        return _Found(None)
    except NotRegular:
        return _Found(lstat_of(path), why="it is not a regular file")
    except OSError as error:
        raise StoreFailed(f"cannot open {path}: {error.strerror}") from error
    try:
        here = os.fstat(file)
        with os.fdopen(file, "rb", closefd=False) as opened:
            content = opened.read(_LARGEST + 1)
    except OSError as error:
        raise StoreFailed(f"cannot read {path}: {error.strerror}") from error
    finally:
        os.close(file)
    stamp = Stat.of(here)
    if len(content) > _LARGEST:
        return _Found(stamp, why=f"it is larger than {_LARGEST // 1024 // 1024} MB")
    try:
        value = msgspec.json.decode(content.removeprefix(_BOM))
        return (
            _Found(stamp, value)
            if isinstance(value, dict)
            else _Found(stamp, why="it is not an object")
        )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _Found(stamp, why=f"it is not JSON: {error}" if content.strip() else "it is empty")


def _look_when_saved(path: Path) -> _Found:
    """Some editors empty a file before they fill it: one that makes no sense and is changing is
    looked at again."""
    found = _look(path)
    while (
        found.why
        and found.stamp is not None
        and abs(time.time_ns() - found.stamp.mtime_ns) < _SAVING * 1e9
    ):
        time.sleep(_SAVING_POLL)
        found = _look(path)
    return found


def _content(path: Path) -> bytes:
    with suppress(OSError):
        return path.read_bytes()
    return b""


def _set_aside(path: Path) -> str:
    original = path.name.removesuffix(".last")
    for number in count(1):
        aside = path.with_name(f"{original}.damaged-{number}")
        if not os.path.lexists(aside):
            path.rename(aside)
            return aside.name
    raise AssertionError("numbers do not end")


def _encoded(value: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2) + b"\n"


def lstat_of(path: Path) -> Stat | None:
    """Of the path itself, links not followed; None where it cannot be known."""
    try:
        return Stat.of(path.lstat())
    except OSError:
        return None
