"""The clean-up: unused tools become inactive; those of them that an agent wrote are deleted, few at
a time; and over the capacity the least useful make room for a new one. All can be restored.

Nothing else is ever deleted. Content is kept first; then the file goes, the edges of the graph, and
last the entry in the registry: a sweep that was cut off is finished by the next one.

Time that jumps deletes nothing. Between two sweeps lies a minute; where it seems to be more than a
day, forward or back, the clock was changed, or hotset did not run. Then that sweep deletes nothing,
and every inactive tool has its whole time from there on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from hotset.errors import BadInput, HotsetError, NotFound, StoreFailed
from hotset.nouns.note import Space
from hotset.nouns.tool import Life, OriginKind, ToolMetrics, ToolStatus
from hotset.nouns.tooling import Tooling
from hotset.sources.tools.found.created import CreatedTools
from hotset.sources.tools.graph import ToolGraph
from hotset.sources.tools.registry import (
    DEFAULTS,
    Registry,
    evictable,
    expired,
    life_as_json,
    life_from,
    measure,
    reborn,
    step,
    time_as_json,
    time_from,
)
from hotset.store.port import Store
from hotset.store.stored_value import StoredValue

CYCLE = 60.0
"""Seconds between two sweeps."""

_DAY = 86_400.0
_JUMP = _DAY  # of the clock between two sweeps; a night is less, and its hours count
# how stale the time of the last sweep may get on disk: an idle disk is not woken every minute
_NOTED = 3600.0
_SHARE = 100  # one in so many may go in one sweep
_FEW_NAMES = 5

_DELETED = Space("deleted_tools")


@dataclass(frozen=True, slots=True)
class ToolPlaces:
    """Everywhere a tool is, and where it goes."""

    registry: Registry
    graph: ToolGraph
    written: CreatedTools
    deletions: Deletions
    keep: Callable[[str, bytes], str]
    """Keeps a tool's code for good, by its name, and gives the id under which it comes back."""
    fetch: Callable[[str], bytes]
    """The code, by that id."""


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep did, by name."""

    inactivated: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    waiting: int = 0
    """Expired tools that one of the next sweeps deletes."""
    notes: tuple[str, ...] = ()
    """For a person: a jump in time, a tool that could not be deleted."""


@dataclass(frozen=True, slots=True)
class LifeSummary:
    active: int
    inactive: int
    pinned: int
    """Of the active ones."""
    created: int
    """Tools that agents created."""
    capacity: int
    """How many of them are kept."""
    next_to_evict: str | None
    candidates: tuple[ToolMetrics, ...]
    """The first of those that may be deleted, in the order in which they would. Only what agents
    created ever is."""
    inactive_tools: tuple[ToolMetrics, ...]
    """First those that agents created, the one with the least time left first."""


def summary(
    lives: Iterable[Life], now: float, rules: Tooling = DEFAULTS, most: int = 5
) -> LifeSummary:
    """The state of all tools now, also where no sweep ran lately. Pure."""
    here = [step(life, now, rules) for life in lives]
    order = evictable(here, now, rules)
    made = [life for life in order if life.origin is OriginKind.CREATED]
    others = [life for life in order if life.origin is not OriginKind.CREATED]
    sleeping = tuple(measure(life, now, rules) for life in (*made, *others) if _sleeps(life))
    return LifeSummary(
        active=len(here) - len(sleeping),
        inactive=len(sleeping),
        pinned=sum(life.pinned for life in here),
        created=sum(life.origin is OriginKind.CREATED for life in here),
        capacity=rules.capacity,
        next_to_evict=made[0].name if made else None,
        candidates=tuple(measure(life, now, rules) for life in made[:most]),
        inactive_tools=sleeping,
    )


def sweep(places: ToolPlaces, now: float) -> SweepReport:
    """One round. Raises `StoreFailed` where the registry cannot be written; what was kept by then
    is not lost."""
    if not places.registry.lives():
        return SweepReport()
    now, rules = round(now, 3), places.registry.rules
    asleep, lives, jump = _put_to_sleep(places.registry, now)
    made = [life for life in lives if life.origin is OriginKind.CREATED]
    over = [life for life in evictable(made, now, rules) if expired(life, now, rules)]
    most = 0 if jump else max(1, len(made) // _SHARE)
    gone: list[str] = []
    notes = [jump] if jump else []
    for life in over:
        if len(gone) == most:
            break
        try:
            is_over = partial(expired, now=now, rules=rules)
            gone += [life.name] if _delete(places, life.name, now, is_over) else []
        except StoreFailed as error:
            notes.append(f"{life.name} has expired and cannot be deleted yet: {error}")
            break
        except HotsetError as error:  # of this tool alone
            notes.append(f"{life.name} has expired and could not be deleted: {error}")
    return SweepReport(asleep, tuple(gone), len(over) - len(gone), tuple(notes))


def has_room(registry: Registry) -> bool:
    """False where a new tool of an agent could not be kept: all that are kept are pinned."""
    made = [each for each in registry.lives().values() if each.origin is OriginKind.CREATED]
    return sum(life.pinned for life in made) < registry.rules.capacity


def make_room(places: ToolPlaces, new: str, now: float) -> tuple[str, ...]:
    """Deletes the tools of agents that are over the capacity, but not the `new` one. Returns their
    names. Raises `StoreFailed` where one cannot be kept to be restored."""
    now, rules = round(now, 3), places.registry.rules
    lives = [
        step(life, now, rules)
        for life in places.registry.lives().values()
        if life.origin is OriginKind.CREATED
    ]
    order = evictable((life for life in lives if life.name != new), now, rules)
    gone: list[str] = []
    for life in order:
        if len(gone) >= len(lives) - rules.capacity:
            break

        def is_unused(current: Life, calls: int = life.calls) -> bool:
            return not current.pinned and current.calls == calls

        try:
            gone += [life.name] if _delete(places, life.name, now, is_unused) else []
        except StoreFailed:
            raise
        except HotsetError:  # of this tool alone: the next one goes
            continue
    return tuple(gone)


def restore(places: ToolPlaces, name: str, now: float) -> Life:
    """Brings a deleted tool back, byte for byte, with its record and a new life. Raises `NotFound`
    and `BadInput`."""
    known = places.deletions.all()
    if name not in known:
        names = ", ".join(sorted(known)[:_FEW_NAMES])
        raise NotFound(
            f"no tool {name} was deleted" + (f"; these were: {names}" if names else "; none was")
        )
    code, here = places.fetch(known[name].content), places.written.read(name)
    if here is not None and here != code:
        raise BadInput(
            f"there is another tool {name} now: remove or rename it, then restore the earlier one"
        )
    if here is None:
        places.written.put_back(name, code)
    with places.registry.changing() as entries:
        life = entries.put(
            reborn(replace(known[name].life, origin=OriginKind.CREATED), round(now, 3))
        )
    places.deletions.forget(name, now)
    return life


def _put_to_sleep(registry: Registry, now: float) -> tuple[tuple[str, ...], list[Life], str]:
    """The names that became inactive, all lives as they are now, and a sentence about a jump in
    time."""
    rules = registry.rules
    with registry.changing() as entries:
        before = entries.lives()
        last = entries.swept
        jump = _jump(last, now)
        after = {name: step(life, now, rules) for name, life in before.items()}
        if jump:
            after = {
                name: replace(life, inactive_since=now) if _sleeps(life) else life
                for name, life in after.items()
            }
        changed = [name for name, life in after.items() if life != before[name]]
        for name in changed:
            entries.put(after[name])
        if last is None or changed or jump or abs(now - last) > _NOTED:
            entries.swept = now
    asleep = tuple(
        sorted(name for name in changed if _sleeps(after[name]) and not _sleeps(before[name]))
    )
    return asleep, list(after.values()), jump if last is not None else ""


def _jump(last: float | None, now: float) -> str:
    """A sentence where time jumped since the last sweep. Before the first sweep it is unknown how
    long a tool has been inactive."""
    if last is None:
        return "nobody had swept before"
    if abs(now - last) <= _JUMP:
        return ""
    days = abs(now - last) / _DAY
    what = "nobody swept, or the clock was put forward" if now > last else "the clock was put back"
    return (
        f"{what}, by {days:,.1f} days: nothing is deleted now, and inactive tools have their "
        f"whole time from here on"
    )


def _delete(places: ToolPlaces, name: str, now: float, may_go: Callable[[Life], bool]) -> bool:
    """False where it was used, pinned or changed meanwhile."""
    code = _code(places, name)
    content = (
        "" if code is None else _kept(places, name, code)
    )  # outside the lock: a store may take its time
    with places.registry.changing() as entries:
        life = entries.get(name)
        if (
            life is None
            or life.origin is not OriginKind.CREATED
            or not may_go(life)
            or _code(places, name) != code
        ):
            return False
        if code is not None:
            places.deletions.note(life, content, now)
            if (gone := places.written.remove(name)) != code:
                places.written.put_back(name, gone)
                return False
        places.graph.without(name)
        entries.drop(name)
    return True


def _kept(places: ToolPlaces, name: str, code: bytes) -> str:
    """Record the deletion once, however often deleting the tool is tried."""
    known = places.deletions.all().get(name)
    if known is not None:
        with suppress(HotsetError):
            if places.fetch(known.content) == code:
                return known.content
    return places.keep(name, code)


def _code(places: ToolPlaces, name: str) -> bytes | None:
    try:
        return places.written.read(name)
    except NotFound:  # an entry that was put there by hand
        return None


def _sleeps(life: Life) -> bool:
    return life.status is ToolStatus.INACTIVE


@dataclass(frozen=True, slots=True)
class DeletedTool:
    life: Life
    content: str
    """Where its code is kept."""
    when: float
    earlier: tuple[str, ...] = ()
    """Where the code is kept of tools that had its name before it, the latest last."""


class _StoredDeletion(msgspec.Struct, frozen=True):
    content: str
    when: str | float = 0.0
    earlier: tuple[str, ...] = ()
    life: dict[str, Any] = {}


class _StoredDeletions(msgspec.Struct, frozen=True):
    tools: dict[str, _StoredDeletion] = {}


class Deletions:
    """The deleted tools of one project. Only restoring removes one."""

    def __init__(self, store: Callable[[], Store], *, old_file: Path | None = None) -> None:
        self._old_file = old_file
        self._stored = StoredValue(_DELETED, _StoredDeletions, store, old_file=old_file)

    def all(self) -> Mapping[str, DeletedTool]:
        """Raises a `HotsetError`. One whose record makes no sense is left out."""
        found = {}
        for name, entry in self._stored.read().tools.items():
            with suppress(ValueError):
                found[name] = DeletedTool(
                    life_from(name, entry.life), entry.content, time_from(entry.when), entry.earlier
                )
        return found

    def note(self, life: Life, content: str, now: float) -> None:
        """Raises a `HotsetError`."""

        def noted(stored: _StoredDeletions) -> _StoredDeletions:
            known = stored.tools.get(life.name)
            before = (*known.earlier, known.content) if known is not None else ()
            earlier = tuple(each for each in before if each != content)
            entry = _StoredDeletion(content, time_as_json(now), earlier, life_as_json(life))
            return _StoredDeletions({**stored.tools, life.name: entry})

        self._stored.change(noted, now)

    def forget(self, name: str, now: float) -> None:
        """Raises a `HotsetError`."""
        self._stored.change(
            lambda stored: _StoredDeletions(
                {key: stored.tools[key] for key in stored.tools if key != name}
            ),
            now,
        )

    def troubles(self) -> Sequence[str]:
        if self._old_file is None or not self._old_file.exists():
            return ()
        return (
            (
                f"{self._old_file} cannot be understood, so the tools that it names cannot be "
                f"restored: mend or remove it"
            ),
        )
