"""What is well with a project and what is not: checks that read what is there, and the figures of
the proxy that serves it."""

from __future__ import annotations

import os
import shutil
import stat
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from hotset.config import Config
from hotset.errors import HotsetError
from hotset.files.breaker import BreakerState
from hotset.files.lru import CacheSize
from hotset.files.scope import ScopeCount
from hotset.nouns.turn import Event
from hotset.runtime.reader import BALLAST_BYTES, DATABASE, Where, has_store, wal_and_shm
from hotset.runtime.waits import WaitFigures
from hotset.store.port import Store
from hotset.text.amounts import count, size, span
from hotset.typed import convert

_LOW_BYTES = 500_000_000
_BIG_WAL = 64 << 20  # the store empties it at 32 MB; twice that means that a process holds it
_RECENT_SECONDS = 7 * 86400
_MOST_BYPASSES = 2_000  # that are counted
_REASONS = 3
_SAMPLE = 20


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    about: str
    level: Level
    says: str
    todo: str = ""
    """What to do about it; empty if all is well."""


def ok(about: str, says: str) -> Finding:
    return Finding(about, Level.OK, says)


def warn(about: str, says: str, todo: str) -> Finding:
    return Finding(about, Level.WARN, says, todo)


def fail(about: str, says: str, todo: str) -> Finding:
    return Finding(about, Level.FAIL, says, todo)


def check_serving(config: Config, live: Mapping[str, Any]) -> Iterator[Finding]:
    """What a running proxy says of itself."""
    if live["store"] != "ok":
        yield warn(
            "keeping",
            f"the proxy keeps nothing now: {live['store']}",
            "see the findings on the store below",
        )
    if "memory" in live:  # a proxy of an older version has none
        yield _check_memory(live["memory"])
    for name, url in live["upstreams"].items():
        chosen = config.upstreams.get(name)
        if chosen is not None and chosen.url != url:
            yield warn(
                "upstream",
                (
                    f"the proxy sends {name} to {url}; settings here "
                    f"({config.origins.get(f'{name}_url')}) say {chosen.url}"
                ),
                "stop the proxy and start it again",
            )


def _check_memory(memory: Mapping[str, Any]) -> Finding:
    used = f"{size(memory['used'])} used"
    if memory["limit"]:
        used += f" of {size(memory['limit'])} ({memory['source']})"
    if memory["level"] == "normal":
        return ok("memory", used)
    return warn(
        "memory",
        f"memory is short, level {memory['level']}: {used}; caches are small now"
        + ("" if memory["prefetch"] else " and prefetch is off"),
        "raise the limit of its group or of [pressure], or end other programs",
    )


def check_folder(config: Config) -> Iterator[Finding]:
    folder = config.folder
    if not folder.exists():
        yield warn(
            "folder",
            f"{folder} is not there: nothing was ever kept for this project",
            "start with: hotset up",
        )
        return
    yield from _check_privacy(folder)
    yield from _check_token(folder / "token")
    yield from _check_disk(folder)


def _check_privacy(folder: Path) -> Iterator[Finding]:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        yield fail(
            "folder", f"{folder} is not a folder", "move it away, or choose another with --data"
        )
        return
    if found.st_uid != os.geteuid():
        yield fail(
            "folder",
            f"{folder} belongs to another user (uid {found.st_uid})",
            "choose a folder of your own with --data",
        )
        return
    open_ones = [path for path in (folder, *sorted(folder.iterdir())) if _open_to_others(path)]
    if open_ones:
        names = ", ".join(path.name for path in open_ones[:3])
        yield fail(
            "folder", f"others can look into {folder}: {names}", f"run: chmod -R go-rwx {folder}"
        )
    else:
        yield ok("folder", f"{folder}, only yours")


def _open_to_others(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISLNK(mode) and bool(mode & 0o077)


def _check_token(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield ok("token", "not made yet; the first start makes one")
    elif path.is_symlink() or not path.is_file():
        yield fail(
            "token", f"{path} is not a regular file", "remove it; the next start makes a new one"
        )
    elif path.stat().st_mode & 0o077:
        yield fail(
            "token",
            f"{path} can be read by others",
            f"run: chmod 600 {path}   or delete it to get a new one",
        )
    else:
        yield ok("token", "in a file that only you can read")


def _check_disk(folder: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(folder).free
    if free < _LOW_BYTES:
        yield warn(
            "disk",
            f"{size(free)} free on the disk of {folder}",
            "make room; calls go through, but cannot be kept on a full disk",
        )
    else:
        yield ok("disk", f"{size(free)} free")
    if not has_store(folder):
        return
    ballast = folder / "ballast"
    if not ballast.exists() or ballast.stat().st_size < BALLAST_BYTES:
        yield warn(
            "ballast",
            "the reserve for a full disk is used up",
            "make room; the reserve comes back by itself",
        )
    wal, _ = wal_and_shm(folder / DATABASE)
    grown = wal.stat().st_size if wal.exists() else 0
    if grown > _BIG_WAL:
        yield warn(
            "wal",
            f"the write-ahead log has grown to {size(grown)}",
            "stop every hotset of this project once",
        )
    else:
        yield ok("wal", f"the write-ahead log is {size(grown)}")


def check_contents(store: Store, now: float) -> Iterator[Finding]:
    """How much an open store holds, whether its newest pages read back whole, and what went past
    it. Raises a `HotsetError` where it is damaged."""
    census = store.census()
    contents = (
        f"{count(census.sessions, 'session')}, {count(census.pages, 'page')}, "
        f"{size(census.content_bytes)}"
    )
    read = _read_latest(store)
    yield ok(
        "store",
        (
            f"opens; {contents} in {size(census.stored_bytes)}; the latest "
            f"{count(read, 'page')} read back whole"
        ),
    )
    recent = store.events_before(
        None, _MOST_BYPASSES, names=frozenset({"Bypassed"}), since=now - _RECENT_SECONDS
    )
    yield _check_bypasses([event for _, event in recent], now)


def _read_latest(store: Store) -> int:
    """Reads the newest pages back, which checks their hashes. `hotset verify` does it for all."""
    newest = deque(store.sessions(), maxlen=1)
    pages = deque(
        (page for session in newest for page in store.pages(Where(session=session.id))),
        maxlen=_SAMPLE,
    )
    for page in pages:
        store.content(page.digest)
    return len(pages)


def _check_bypasses(recent: Sequence[Event], now: float) -> Finding:
    if not recent:
        return ok("bypassed", "no call went past the store in the last week")
    reasons = Counter(str(event.detail.get("reason", "unknown")) for event in recent).most_common(
        _REASONS
    )
    why = "; ".join(f"{times:,} x {reason}" for reason, times in reasons)
    last = span(now - max(event.time for event in recent))
    more = "at least " if len(recent) == _MOST_BYPASSES else ""
    return warn(
        "bypassed",
        f"{more}{count(len(recent), 'call')} in the last week, the last {last} ago: {why}",
        _advice(reasons[0][0]),
    )


def _advice(reason: str) -> str:
    if reason.startswith("store"):
        return "the findings on disk and store say what is wrong; nothing has to be restarted"
    if reason.startswith("unreadable"):
        return "the agent sent something that is no request; it got the provider's own answer"
    return "those calls went through unchanged; if it goes on, report it"


class WatchedMemory(Struct, frozen=True):
    """How much memory is used, and what that means."""

    level: str
    used: int
    limit: int
    source: str
    tier: str
    prefetch: bool


class ServingProxy(Struct, frozen=True):
    """What a running proxy does, from its status."""

    pid: int
    version: str
    started: float
    uptime: float
    store: str
    """`ok`, or why nothing is kept."""
    index: tuple[str, ...]
    """Troubles of the index."""
    resting: dict[str, str]
    """Tool sources that are not started for a while, and why."""
    memory: WatchedMemory
    scopes: tuple[ScopeCount, ...]
    breakers: tuple[BreakerState, ...]
    caches: tuple[CacheSize, ...]
    planning: str
    requests: int
    kept: int
    bypassed: int
    late: int
    """Calls that went on before they were on disk."""
    left: int
    """Calls whose client went away."""
    retried: int
    keeping: int
    """Groups that are being written now."""
    last: float
    wait: WaitFigures


@dataclass(frozen=True, slots=True)
class HealthView:
    project: str
    folder: str
    proxy: ServingProxy | None
    """None if no proxy serves."""


def read_health(config: Config, live: Mapping[str, Any]) -> HealthView:
    """Figures that cost nothing to read."""
    proxy = convert(dict(live), ServingProxy, strict=False) if live else None
    return HealthView(str(config.project), str(config.folder), proxy)


def run_checks(
    config: Config, store: Store, live: Mapping[str, Any], now: float
) -> tuple[Finding, ...]:
    """The checks that a program which has the store open can make, worst first. Beyond these
    `hotset doctor` looks at the store's format and at how agents are connected."""
    found = [*(check_serving(config, live) if live else ()), *check_folder(config)]
    try:
        found += check_contents(store, now)
    except HotsetError as error:
        found.append(fail("store", str(error), "run: hotset verify, then: hotset repair"))
    return tuple(sorted(found, key=lambda each: -list(Level).index(each.level)))
