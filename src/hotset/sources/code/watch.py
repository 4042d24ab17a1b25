"""Follows a project's files: what was changed is in the index a moment later.

Changes are gathered until they pause; while git holds its lock (a switch of branches, a rebase)
they are gathered on and become one batch. Where the system cannot watch so many folders, the
manifest is compared every few seconds instead.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from hotset.errors import BadInput
from hotset.index.port import Index
from hotset.sources.code.indexer import index_paths, index_project
from hotset.sources.code.manifest import IndexReport, Manifest
from hotset.sources.code.parsers import Parsers
from hotset.sources.code.scan import EXCLUDED_FOLDERS, ScanLimits
from hotset.text.languages import language_of

_log = logging.getLogger("hotset")

_PAUSE_MS = 50  # without a change: then what was gathered is handed over
_LONGEST_MS = 400  # of gathering while changes go on
# how late is noticed what changed before the watch began, a wish to stop, and the end of git's lock
_WAKE_MS = 200
_LONGEST_LOCK = 30.0  # seconds; an older lock was left behind by a git that died
_POLL_SECONDS = 5.0
_AFTER_A_NAME_SECONDS = 1.0  # a file whose name cannot be said may be written all the time
_LATEST = 50  # files that were changed last: what is changed next is in one of their languages
_LOCK = ".git/index.lock"


def watch_project(
    root: Path,
    index: Index,
    manifest: Manifest,
    *,
    stop: threading.Event,
    parsers: Parsers,
    limits: ScanLimits | None = None,
    updated: Callable[[IndexReport], None] | None = None,
    poll_seconds: float = _POLL_SECONDS,
    force_polling: bool = False,
) -> None:
    """Until `stop` is set. Call it in a thread of its own, after `index_project`, with a manifest
    of its own.

    A folder that is gone ends it.
    """
    root = root.expanduser().resolve()
    parsers.warm(
        {
            language.name: language for language in map(language_of, manifest.latest(_LATEST))
        }.values()
    )

    def told(report: IndexReport) -> None:
        if updated is not None and (report.changed or report.removed):
            updated(report)

    try:
        if not force_polling:
            for paths in _batches(root, stop):
                told(index_paths(root, index, manifest, paths, parsers=parsers, limits=limits))
            if stop.is_set():
                return
        while not stop.wait(poll_seconds):
            told(
                index_project(
                    root, index, manifest, parsers=parsers, limits=limits, stop=stop.is_set
                )
            )
    except BadInput:
        _log.info("the watched folder is gone")


def _batches(root: Path, stop: threading.Event) -> Iterator[set[str]]:
    """Paths that changed, relative to the root. Ends where the system does not watch, or when
    `stop` is set."""
    gathered = {""}  # the folder itself: what changed before the watch began
    try:
        for changes in _all_changes(root, stop):
            gathered |= changes
            if gathered and not _git_is_at_work(root):
                yield gathered
                gathered = set()
    except OSError as error:
        _log.info(
            "files are compared every few seconds: this system does not watch them (%s)",
            type(error).__name__,
        )


def _all_changes(root: Path, stop: threading.Event) -> Iterator[set[str]]:
    """The watcher ends at a name that is no UTF-8, with all that it gathered: another begins with a
    look at everything."""
    from watchfiles._rust_notify import WatchfilesRustInternalError  # noqa: PLC0415 - it is told nowhere else

    while not stop.is_set():
        try:
            yield from _changes(root, stop)
        except WatchfilesRustInternalError:
            stop.wait(_AFTER_A_NAME_SECONDS)
            yield {""}
        else:
            return


def _changes(root: Path, stop: threading.Event) -> Iterator[set[str]]:
    from watchfiles import watch  # noqa: PLC0415 - 20 ms that only watching should pay

    start = len(str(root)) + 1
    for changes in watch(
        root,
        watch_filter=lambda _, path: EXCLUDED_FOLDERS.isdisjoint(path[start:].split("/")),
        debounce=_LONGEST_MS,
        step=_PAUSE_MS,
        rust_timeout=_WAKE_MS,
        yield_on_timeout=True,
        stop_event=stop,
        raise_interrupt=False,
        force_polling=False,
        ignore_permission_denied=True,
    ):
        yield {path[start:] for _, path in changes if len(path) > start}


def _git_is_at_work(root: Path) -> bool:
    try:
        return time.time() - (root / _LOCK).lstat().st_mtime < _LONGEST_LOCK
    except OSError:
        return False
