"""The tools that live, in `registry.json`: a file in step with every change, which a person can
read and edit.

It holds the tools that were created, used, pinned or put there by hand; any other is implied. Times
are UTC, to the millisecond; a person may also write a date, another zone or seconds since 1970.
Keys that mean nothing here are kept.

A use is counted at once and written a fifth of a second later together with those that came
meanwhile, off the caller's path; one that wakes an inactive tool is written without waiting. All
else is written before the call returns.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from hotset.errors import DiskFull, StoreFailed
from hotset.files.deadline_pool import Debouncer
from hotset.files.lock import hold_to_change
from hotset.files.lru import memo
from hotset.files.open import NotRegular, open_regular
from hotset.files.private_folder import private_folder
from hotset.files.root import Stat
from hotset.files.write import is_full, replace_file
from hotset.nouns.tool import Life, OriginKind, ToolMetrics, ToolStatus, ToolTier
from hotset.nouns.tooling import Tooling
from hotset.sources.tools.found.folders import lstat_of

FILE = "registry.json"
_FORMAT = 1
_GATHER = 0.2  # seconds
_SAVING = (
    1.0  # seconds for which a file that was just changed may still be on its way out of an editor
)
_SAVING_POLL = 0.05
_LARGEST = 64 * 1024 * 1024  # bytes; nothing that is kept here comes near
_TROUBLES = 20
_BOM = b"\xef\xbb\xbf"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_CALLS = 10**12  # more than that was a slip of the hand
_LATEST = 253_402_300_799.0  # the last second of the year 9999

DEFAULTS = Tooling()
HOT_AT = 0.5
"""Used within the last two hours, or within five where it is used a lot."""
WARM_AT = 0.25
"""Used within the last four hours, or within eleven where it is used a lot."""

_LIFETIME_PER_CALL = 0.01  # each call makes a score last so much longer,
_LIFETIME_MORE = 2.0  # up to three times as long
_NEW = 3600.0
_YOUNG = 6 * 3600.0
_NEW_SCORE, _YOUNG_SCORE, _UNUSED_SCORE = 1.0, 0.5, 0.05
_TIERS_THAT_GO = (
    ToolTier.PROBATION,
    ToolTier.COLD,
    ToolTier.WARM,
    ToolTier.HOT,
)  # of equal score: what was never used has the least to lose


class RegistryEntries:
    """The registry while it is changed."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._tools: dict[str, Any] = document["tools"]

    def get(self, name: str) -> Life | None:
        entry = self._tools.get(name)
        return None if entry is None else life_from(name, entry)

    def put(self, life: Life) -> Life:
        entry = self._tools.get(life.name, {})
        self._tools[life.name] = {**entry, **life_as_json(life)}
        if life.inactive_since is None:
            self._tools[life.name].pop("inactive_since", None)
        return life

    def drop(self, name: str) -> None:
        self._tools.pop(name, None)

    def lives(self) -> dict[str, Life]:
        return _lives(self._document)

    @property
    def swept(self) -> float | None:
        """When it was last gone through."""
        return _swept(self._document)

    @swept.setter
    def swept(self, now: float) -> None:
        self._document["swept"] = time_as_json(now)


class Registry:
    """One project's. Any thread may use it, and several processes may have one each."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float] = time.time,
        rules: Tooling = DEFAULTS,
    ) -> None:
        self._document = _RegistryFile(folder / FILE)
        self._clock = clock
        self.rules = rules
        self._changing = threading.RLock()
        self._using = threading.Lock()  # held for moments only: recording a use waits for no disk
        self._uses: dict[str, Life] = {}
        """Calls that are not written yet, as lives that had no others."""
        self._leaving: dict[str, Life] = {}
        """Those on their way to the file."""
        self._known: dict[str, Life] | None = None
        """The content of the file when it was last read."""
        self._soon = Debouncer(self._try_to_write, _GATHER)

    def close(self) -> None:
        """Writes every recorded use; where that fails, a trouble says why."""
        self._soon.close()

    @property
    def path(self) -> Path:
        return self._document.path

    def lives(self, known: Mapping[str, OriginKind] | None = None) -> Mapping[str, Life]:
        """All tools of the registry by name; those of `known` that are not in it as if they were
        created now."""
        now = self._now()
        lives = {name: self._new(name, origin, now) for name, origin in (known or {}).items()}
        with self._changing:  # a use that is on its way would be counted twice, or not at all
            lives |= self._look()
            with self._using:
                waiting = _all_of(self._leaving, self._uses)
        for name, uses in waiting.items():
            lives[name] = _added(uses, lives.get(name))
        return lives

    def is_pinned(self, name: str) -> bool:
        """As the file says now."""
        try:
            entry = self._document.read()["tools"].get(name)
        except StoreFailed as error:
            self._document.trouble(str(error))
            entry = None
        return (
            is_pinned_by_name(name, self.rules) if entry is None else life_from(name, entry).pinned
        )

    def used(self, name: str, origin: OriginKind, seconds: float, *, failed: bool = False) -> Life:
        """Counts a call, and returns the tool's record with it. Waits for no disk but at the first
        use, and never fails."""
        now = self._now()
        if self._known is None:
            self._look()
        with self._using:
            new = self._uses.get(name) or self._new(name, origin, now)
            self._uses[name] = new = after_use(new, now, round(seconds, 6), failed=failed)
            before = (self._known or {}).get(name)
            leaving = self._leaving.get(name)
        self._soon.ask(at_once=before is not None and before.status is ToolStatus.INACTIVE)
        return _added(new, before if leaving is None else _added(leaving, before))

    def born(self, name: str, origin: OriginKind) -> Life:
        """A tool was created, or replaced under the same name."""
        now = self._now()
        with self.changing() as entries:
            known = entries.get(name)
            return entries.put(
                self._new(name, origin, now)
                if known is None
                else replace(reborn(known, now), origin=origin)
            )

    def pin(self, name: str, origin: OriginKind) -> Life:
        with self.changing() as entries:
            life = entries.get(name) or self._new(name, origin, self._now())
            return entries.put(pinned(life, pin=True))

    def unpin(self, name: str, origin: OriginKind | None = None) -> Life | None:
        """None where it is not pinned. `origin` is that of a tool that may be pinned by its name
        alone, without being in the registry."""
        with self.changing() as entries:
            known = entries.get(name)
            if known is None and origin is not None and is_pinned_by_name(name, self.rules):
                known = self._new(name, origin, self._now())
            return None if known is None else entries.put(pinned(known, pin=False))

    def remove(self, *names: str) -> None:
        """Removes their records."""
        with self.changing() as entries:
            for name in names:
                entries.drop(name)

    @contextmanager
    def changing(self) -> Iterator[RegistryEntries]:
        """The registry as it is now, with every use; written when the block ends, unless it fails.
        Raises `StoreFailed`."""
        with self._changing:
            try:
                with self._document.changing() as document:
                    entries = RegistryEntries(document)
                    with self._using:
                        self._leaving, self._uses = self._uses, {}
                    for name, uses in self._leaving.items():
                        entries.put(_added(uses, entries.get(name)))
                    yield entries
                known = entries.lives()
                with self._using:
                    self._known, self._leaving = known, {}
            except BaseException:
                with self._using:
                    self._uses, self._leaving = _all_of(self._leaving, self._uses), {}
                raise

    def flush(self) -> None:
        """Writes the uses that wait. Raises `StoreFailed`."""
        with self._using:
            waiting = bool(self._uses)
        if waiting:
            with self.changing():
                pass

    def troubles(self) -> Sequence[str]:
        """What happened to the file, in sentences."""
        return self._document.troubles()

    def _try_to_write(self) -> None:
        try:
            self.flush()
        except StoreFailed as error:  # the uses wait for the next attempt
            self._document.trouble(str(error))

    def _look(self) -> dict[str, Life]:
        try:
            known = _lives(self._document.read())
        except StoreFailed as error:
            self._document.trouble(str(error))
            return self._known or {}
        with self._using:
            self._known = known
        return known

    def _new(self, name: str, origin: OriginKind, now: float) -> Life:
        return Life(name, born=now, origin=origin, pinned=is_pinned_by_name(name, self.rules))

    def _now(self) -> float:
        return round(self._clock(), 3)


class _RegistryFile:
    """A JSON file that several processes change, and a person edits as well. Safe to use from
    several threads; a change holds a lock that other processes respect.

    It is read anew before each change, written whole, never lost. Beside `NAME` lies `NAME.last`,
    the copy of what was last written here. A file that cannot be read is set aside as
    `NAME.damaged-1` (2, 3 ...), what cannot be read of it is taken from the copy, and a trouble
    says so.
    """

    def __init__(self, path: Path) -> None:
        self.path = private_folder(path.parent) / path.name
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
            return _check(None, None).value
        if found.stamp is not None and not found.why:
            checked = _check(found.value, None)
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
            checked = _check(found.value, None)
            if not checked.wrong:
                return checked.value
        copy = _look(self._last)
        if found.stamp is None and copy.stamp is None:
            return _check(None, None).value
        return self._mend(found, copy)

    def _mend(self, found: _Found, copy: _Found) -> dict[str, Any]:
        checked = _check(found.value, copy.value)
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
        return _check(msgspec.json.decode(_encoded(checked.value)), None).value

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


def _added(uses: Life, life: Life | None) -> Life:
    """A life with calls that are not written yet: `uses` is a life that had no others."""
    if life is None:
        return uses
    return replace(
        uses,
        born=life.born,
        origin=life.origin,
        calls=life.calls + uses.calls,
        seconds=round(life.seconds + uses.seconds, 6),
        failures=life.failures + uses.failures,
        pinned=life.pinned,
    )


def _all_of(earlier: Mapping[str, Life], later: Mapping[str, Life]) -> dict[str, Life]:
    return {**earlier, **{name: _added(uses, earlier.get(name)) for name, uses in later.items()}}


def life_as_json(life: Life) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "born": time_as_json(life.born),
        "calls": life.calls,
        "failures": life.failures,
        "last_used": None if life.last_used is None else time_as_json(life.last_used),
        "origin": life.origin.value,
        "pinned": life.pinned,
        "seconds": round(life.seconds, 6),
        "status": life.status.value,
    }
    return (
        fields
        if life.inactive_since is None
        else {**fields, "inactive_since": time_as_json(life.inactive_since)}
    )


def life_from(name: str, entry: Any) -> Life:
    """Raises `ValueError` with what is wrong. What is missing has its default; without a birth it
    was born long ago."""
    if not isinstance(entry, dict):
        raise ValueError(f"{name} is not an object")  # noqa: TRY004 - of a file, not of a program
    return _life_from(name, msgspec.json.encode(entry))


@memo(
    "tool lives", 10_000, each=1000
)  # of 1,000 entries one changes: reading them all took 15 ms, and 1 ms with what is remembered here  # noqa: E501
def _life_from(name: str, encoded: bytes) -> Life:
    entry = msgspec.json.decode(encoded)
    try:
        return Life(
            name,
            born=time_from(entry.get("born", 0)),
            origin=OriginKind(entry.get("origin", OriginKind.SERVER)),
            calls=_number(entry.get("calls", 0)),
            last_used=_time_or_none(entry.get("last_used")),
            seconds=_amount(entry.get("seconds", 0.0)),
            failures=_number(entry.get("failures", 0)),
            status=ToolStatus(entry.get("status", ToolStatus.ACTIVE)),
            inactive_since=_time_or_none(entry.get("inactive_since")),
            pinned=_flag(entry.get("pinned", False)),
        )
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def time_as_json(when: float) -> str:
    moment = _EPOCH + timedelta(milliseconds=round(min(max(when, 0.0), _LATEST) * 1000))
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_from(value: Any) -> float:
    """Raises `ValueError`."""
    if isinstance(value, str):
        moment = datetime.fromisoformat(value)
        when = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    else:
        when = _amount(value)
    if not 0 <= when <= _LATEST:
        raise ValueError(f"{value} is no time")
    return round(when, 3)


def _time_or_none(value: Any) -> float | None:
    return None if value is None else time_from(value)


def _number(value: Any) -> int:
    amount = _amount(value)
    if amount != int(amount):
        raise ValueError(f"{value} is not a whole number")
    return int(amount)


def _amount(value: Any) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or not 0 <= value <= _MOST_CALLS
    ):
        raise ValueError(f"{value!r} is not a number from 0 up")
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")  # noqa: TRY004 - of a file, not of a program
    return value


def _lives(document: Mapping[str, Any]) -> dict[str, Life]:
    return {name: life_from(name, entry) for name, entry in document["tools"].items()}


def _swept(document: Mapping[str, Any]) -> float | None:
    return _time_or_none(document.get("swept"))


@dataclass(frozen=True, slots=True)
class _Checked:
    """The usable content of a file."""

    value: dict[str, Any]
    wrong: tuple[str, ...] = ()
    """What is wrong, in a few words each; `value` has something else in its place."""


def _check(found: dict[str, Any] | None, copy: dict[str, Any] | None) -> _Checked:
    """Each entry for itself: one slip of the hand costs one entry its edit, and no other."""
    if found is None:
        return _Checked({"format": _FORMAT, "tools": {}}) if copy is None else _check(copy, None)
    if not isinstance(found.get("tools", {}), dict):
        return replace(_check(None, copy), wrong=("its tools are not an object",))
    value = {"format": _FORMAT, **found, "tools": dict(found.get("tools", {}))}
    good = {} if copy is None else _check(copy, None).value["tools"]
    wrong = []
    for name, entry in found.get("tools", {}).items():
        try:
            life_from(name, entry)
        except ValueError as error:
            wrong.append(str(error))
            value["tools"].pop(name)
            if name in good:
                value["tools"][name] = good[name]
    try:
        _swept(value)
    except ValueError as error:
        wrong.append(f"swept: {error}")
        value.pop("swept")
    return _Checked(value, tuple(wrong))


def is_pinned_by_name(name: str, rules: Tooling) -> bool:
    """True for a tool that the settings pin by its full name or its source's."""
    source = name.partition("__")[0]
    return any(fnmatchcase(name, each) or fnmatchcase(source, each) for each in rules.pins)


def decay(life: Life, now: float, rules: Tooling = DEFAULTS) -> float:
    """From 1, just used, down to 0."""
    if not life.calls:
        age = _since(life.born, now)
        return _NEW_SCORE if age < _NEW else _YOUNG_SCORE if age < _YOUNG else _UNUSED_SCORE
    last = life.born if life.last_used is None else max(life.born, life.last_used)
    lifetime = rules.life_seconds * (1 + min(_LIFETIME_PER_CALL * life.calls, _LIFETIME_MORE))
    return math.exp(-_since(last, now) / lifetime)


def tier(life: Life, now: float, rules: Tooling = DEFAULTS) -> ToolTier:
    if life.pinned:
        return ToolTier.PROTECTED
    if not life.calls:
        return ToolTier.PROBATION
    score = decay(life, now, rules)
    return ToolTier.HOT if score >= HOT_AT else ToolTier.WARM if score >= WARM_AT else ToolTier.COLD


def after_use(life: Life, now: float, seconds: float, *, failed: bool = False) -> Life:
    """One call more. Whatever it was before, it is active now."""
    used = replace(
        life,
        calls=life.calls + 1,
        last_used=now,
        seconds=life.seconds + seconds,
        failures=life.failures + bool(failed),
    )
    return _awake(used)


def reborn(life: Life, now: float) -> Life:
    """As if it had come into being now, with the record of what it did before."""
    return _awake(replace(life, born=now))


def pinned(life: Life, *, pin: bool) -> Life:
    return _awake(replace(life, pinned=True)) if pin else replace(life, pinned=False)


def step(life: Life, now: float, rules: Tooling = DEFAULTS) -> Life:
    """The state that it has now. Only a use, a pin and a corrected clock make an inactive one
    active."""
    if life.pinned:
        return _awake(life)
    faded = decay(life, now, rules) <= rules.inactive_at
    if life.status is ToolStatus.ACTIVE:
        return (
            replace(life, status=ToolStatus.INACTIVE, inactive_since=now) if faded else _awake(life)
        )
    if life.inactive_since is None:  # by hand: from now on
        return replace(life, inactive_since=now)
    if life.inactive_since <= now:
        return life
    return replace(life, inactive_since=now) if faded else _awake(life)  # the clock was ahead


def time_left(life: Life, now: float, rules: Tooling = DEFAULTS) -> float:
    """Seconds until an inactive tool expires; the whole time for one that is active."""
    if life.status is ToolStatus.ACTIVE or life.inactive_since is None:
        return rules.ttl_seconds
    return max(0.0, rules.ttl_seconds - _since(life.inactive_since, now))


def expired(life: Life, now: float, rules: Tooling = DEFAULTS) -> bool:
    is_inactive = not life.pinned and life.status is ToolStatus.INACTIVE
    return is_inactive and time_left(life, now, rules) <= 0


def evictable(lives: Iterable[Life], now: float, rules: Tooling = DEFAULTS) -> tuple[Life, ...]:
    """Who goes, in order: inactive ones by the time they have left, then active ones by score and
    tier, the oldest first. Pinned ones never."""
    free = (life for life in lives if not life.pinned)
    return tuple(sorted(free, key=lambda life: _turn(life, now, rules)))


def measure(life: Life, now: float, rules: Tooling = DEFAULTS) -> ToolMetrics:
    """How a tool fares now, also where no sweep ran lately."""
    life = step(life, now, rules)
    leaves = life.origin is OriginKind.CREATED and life.status is ToolStatus.INACTIVE
    return ToolMetrics(
        life.name,
        life.origin,
        life.status,
        tier(life, now, rules),
        round(decay(life, now, rules), 4),
        life.calls,
        life.failures,
        life.seconds,
        life.born,
        life.last_used,
        life.inactive_since,
        time_left(life, now, rules) if leaves else None,
        life.pinned,
    )


def _turn(life: Life, now: float, rules: Tooling) -> tuple[bool, float, int, float, float, str]:
    if life.status is ToolStatus.INACTIVE:
        return False, time_left(life, now, rules), 0, 0.0, life.born, life.name
    score = decay(life, now, rules)
    # In tenths: what was used minutes ago is worth no less than what is new and was never used.
    tenths, going = round(score, 1), _TIERS_THAT_GO.index(tier(life, now, rules))
    return True, tenths, going, score, life.born, life.name


def _awake(life: Life) -> Life:
    if life.status is ToolStatus.ACTIVE and life.inactive_since is None:
        return life
    return replace(life, status=ToolStatus.ACTIVE, inactive_since=None)


def _since(then: float, now: float) -> float:
    return max(0.0, now - then)
