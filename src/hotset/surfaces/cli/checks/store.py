"""Does the store open, is it whole at first sight, and what went past it?"""

from __future__ import annotations

import os
import struct
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from pathlib import Path

import apsw

from hotset.errors import HotsetError, StoreTooNew
from hotset.files.open import open_regular
from hotset.nouns.turn import Event
from hotset.runtime.reader import (
    DATABASE,
    STORE_VERSION,
    Store,
    Where,
    has_store,
    open_to_look,
)
from hotset.surfaces.cli.checks.finding import CheckScene, Finding, fail, ok, warn
from hotset.surfaces.cli.terminal import count, plain, size, span

_OLDEST_SQLITE = (3, 51, 3)  # earlier ones can corrupt a WAL when it is reset
_FORMAT_AT = 60  # where SQLite's header holds the number of the store's format
_RECENT_SECONDS = 7 * 86400
_REASONS = 3
_SAMPLE = 20


def check(scene: CheckScene) -> Iterator[Finding]:
    yield from _engine()
    database = scene.config.folder / DATABASE
    if not has_store(scene.config.folder):
        yield ok("store", "empty: nothing was kept yet")
        return
    if database.exists():
        if not database.is_file():  # whoever opens a pipe waits for its other end
            yield fail("store", f"{database} is not a regular file", "move it away")
            return
        yield _format(database)
    yield from _contents(scene)


def _engine() -> Iterator[Finding]:
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")[:3]) < _OLDEST_SQLITE:
        yield fail("sqlite", f"SQLite {version} can damage a store", "run: pip install -U apsw")
    else:
        yield ok("sqlite", f"SQLite {version} (apsw {apsw.apsw_version()})")


def _format(database: Path) -> Finding:
    try:
        file = open_regular(database)
    except (OSError, HotsetError) as error:
        return fail(
            "format",
            f"{database} cannot be read: {error}",
            "move it away, or choose another folder with --data",
        )
    try:
        header = os.pread(file, 100, 0)
    except OSError as error:
        return fail("format", f"{database} cannot be read: {error.strerror}", "move it away")
    finally:
        os.close(file)
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        return fail("format", f"{database} does not look like a store", "run: hotset repair")
    (version,) = struct.unpack_from(">I", header, _FORMAT_AT)
    if version > STORE_VERSION:
        return fail(
            "format",
            f"format {version}; this hotset knows up to {STORE_VERSION}",
            "run: pip install -U hotset",
        )
    return ok(
        "format",
        f"format {version}"
        + ("" if version == STORE_VERSION else f"; becomes {STORE_VERSION} when it is next used"),
    )


def _contents(scene: CheckScene) -> Iterator[Finding]:
    try:
        store = open_to_look(scene.config.folder)
    except StoreTooNew:
        return  # told by `format`
    except HotsetError as error:
        yield fail("store", str(error), "run: hotset repair")
        return
    try:
        if store.only_read:
            todo = (
                "run: hotset repair"
                if store.missing()
                else "give it back its rights, or choose another folder with --data"
            )
            yield fail("store", f"nothing can be kept: {store.only_read}", todo)
        census = store.census()
        told = (
            f"{count(census.sessions, 'session')}, {count(census.pages, 'page')}, "
            f"{size(census.content_bytes)}"
        )
        read = _read_latest(store)
        yield ok(
            "store",
            (
                f"opens; {told} in {size(census.stored_bytes)}; the latest {count(read, 'page')} "
                f"read back whole"
            ),
        )
        yield from _bypassed(scene, store.events())
    except HotsetError as error:
        yield fail("store", str(error), "run: hotset verify, then: hotset repair")
    finally:
        store.close()


def _read_latest(store: Store) -> int:
    """Reads the newest pages back; their hashes are checked on the way. `hotset verify` does it for
    all."""
    newest = deque(store.sessions(), maxlen=1)
    pages = deque(
        (page for session in newest for page in store.pages(Where(session=session.id))),
        maxlen=_SAMPLE,
    )
    for page in pages:
        store.content(page.digest)
    return len(pages)


def _bypassed(scene: CheckScene, events: Iterable[Event]) -> Iterator[Finding]:
    recent = [
        event
        for event in events
        if event.name == "Bypassed" and scene.now - event.time < _RECENT_SECONDS
    ]
    if not recent:
        yield ok("bypassed", "no call went past the store in the last week")
        return
    reasons = Counter(str(event.detail.get("reason", "unknown")) for event in recent).most_common(
        _REASONS
    )
    told = "; ".join(f"{times:,} x {plain(reason)}" for reason, times in reasons)
    last = span(scene.now - max(event.time for event in recent))
    yield warn(
        "bypassed",
        f"{count(len(recent), 'call')} in the last week, the last {last} ago: {told}",
        _todo(reasons[0][0]),
    )


def _todo(reason: str) -> str:
    if reason.startswith("store"):
        return "the findings on disk and store say what is wrong; nothing has to be restarted"
    if reason.startswith("unreadable"):
        return "the agent sent something that is no request; it got the provider's own answer"
    return "those calls went through untouched; if it goes on, tell us"
