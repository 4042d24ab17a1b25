"""Brings a folder into the index: changed files are read, sealed, parsed, cut and handed over, in
batches that each survive a kill.

    compare   by stat, folder by folder (`manifest`, `scan`)
    read      what differs, and hash it: the same content is not parsed again (`texts`)
    cut       in other processes (`parsers`)
    hand over to the index, then to the manifest

A file that cannot be indexed is counted with its reason, and the rest continues.

`watch_project` follows a project's files: a change is in the index a moment later. Changes are
gathered until they pause, and while git holds its lock (a switch of branches, a rebase). If the
system cannot watch so many folders, the manifest is compared every few seconds instead.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path

from hotset.errors import BadInput
from hotset.files.root import NotTaken, Root, Stat, Why
from hotset.index.port import Index, Watermark
from hotset.nouns.search import Entry, Sort
from hotset.sealing import VERSION as SEALING
from hotset.sources.code.chunks import entries
from hotset.sources.code.manifest import (
    WATERMARK,
    CutContent,
    FileRow,
    FolderDifference,
    FolderStamp,
    IndexProgress,
    IndexReport,
    Manifest,
    is_fresh,
)
from hotset.sources.code.parsers import GRAMMARS, ParseResult, Parsers, cutting_identity
from hotset.sources.code.scan import EXCLUDED_FOLDERS, ScanLimits, SkippedFiles, scan
from hotset.sources.code.texts import VERSION as TEXTS, read_text, refuse_machine_made
from hotset.text.languages import Language, language_of

GAVE_UP = "cut by lines: its grammar crashed or took too long"
_WINDOW = 20_000  # files that are put in order together; memory stays the same for a million
_FIRST_BATCH = 32  # files; something can be found after a blink
_BATCH = 256
_BATCH_BYTES = 8_000_000
_UNDER_WAY = 48  # files that are being cut while others are read
# changed files of a batch that leave and come in one commit each, so that no search sees half of it
_REPLACED_ONE_BY_ONE = 32
_MOST_FOLDERS = 200  # touched by one batch of changes; with more a scan of everything is faster


def manifest_identity() -> str:
    """Versions of all that a manifest depends on: cutter, grammars, text rules and secret
    patterns."""
    return f"{cutting_identity()}, texts {TEXTS}, sealing {SEALING}"


def index_project(
    root: Path,
    index: Index,
    manifest: Manifest,
    *,
    parsers: Parsers | None = None,
    progress: Callable[[IndexProgress], None] | None = None,
    limits: ScanLimits | None = None,
    stop: Callable[[], bool] | None = None,
) -> IndexReport:
    """Bring index and manifest up to date with the folder. Raises `BadInput` if there is none, and
    `StoreBusy` if another process indexes for too long.

    Without `parsers` it starts its own, with grammars beside the manifest.
    """
    with Root(root) as opened:
        run = _Run(
            opened,
            index,
            manifest,
            parsers=parsers or Parsers(manifest.path.with_name(GRAMMARS)),
            limits=limits,
            progress=progress,
            stop=stop,
        )
        try:
            return run.everything()
        finally:
            if parsers is None:
                run.parsers.close()


def index_paths(
    root: Path,
    index: Index,
    manifest: Manifest,
    paths: Iterable[str],
    *,
    parsers: Parsers,
    limits: ScanLimits | None = None,
) -> IndexReport:
    """Bring these paths, relative to the root, up to date: only their folders are scanned."""
    with Root(root) as opened, manifest.alone():
        run = _Run(opened, index, manifest, parsers=parsers, limits=limits)
        folders = _touched_folders(opened, manifest, paths)
        return run.everything() if folders is None else run.folders(sorted(folders))


def _touched_folders(root: Root, manifest: Manifest, paths: Iterable[str]) -> set[str] | None:
    """The folders of these files; None if folders or ignore files changed: then everything has to
    be scanned."""
    folders: set[str] = set()
    for path in paths:
        folder, _, name = path.rpartition("/")
        if not manifest.knows_folder(folder):
            continue  # ignored, or below a new folder that is among the paths too
        if name.endswith("ignore") or manifest.knows_folder(path) or root.is_folder(path):
            return None
        folders.add(folder)
    return None if len(folders) > _MOST_FOLDERS else folders


@dataclass(slots=True)
class _Batch:
    """What is handed over together."""

    rows: dict[str, FileRow] = field(default_factory=dict)
    cuts: dict[tuple[bytes, str], CutContent] = field(default_factory=dict)
    entries: dict[str, list[Entry]] = field(default_factory=dict)
    leave: set[str] = field(default_factory=set)
    """Files that were indexed and no longer are."""
    replace: set[str] = field(default_factory=set)
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Reading:
    """A file that was read; its chunks may still be in work."""

    path: str
    row: FileRow
    text: str = ""
    language: Language | None = None
    cut: CutContent | None = None
    coming: Future[ParseResult] | None = None
    was_indexed: bool = False


class _Run:
    """One run over a project, or over some of its folders."""

    def __init__(
        self,
        root: Root,
        index: Index,
        manifest: Manifest,
        *,
        parsers: Parsers,
        limits: ScanLimits | None,
        progress: Callable[[IndexProgress], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> None:
        self.parsers = parsers
        self._root, self._index, self._manifest, self._limits = (
            root,
            index,
            manifest,
            limits or ScanLimits(),
        )
        self._progress, self._stop = progress, stop
        self._began = time.time()
        self._started = time.monotonic()
        self._tally = SkippedFiles()
        self._changed = self._parsed = self._removed = self._done = self._total = self._bytes = (
            self._chunks
        ) = 0
        self._sealed = 0
        self._stopped = False
        self._batch_size = _FIRST_BATCH

    def everything(self) -> IndexReport:
        fresh = self._agree()
        edited = None if fresh else self._manifest.edited(self._root.folder, self._is_to_stop)
        if edited is not None or self._stopped:
            if edited:
                self._manifest.mark_run("begun")
            self._take(edited or {})
            if not self._stopped:
                self._manifest.mark_run("ended")
            return self._report(walked=False)
        self._manifest.mark_run("begun")
        walked: list[FolderStamp] = []
        found = self._manifest.differences(scan(self._root, self._tally, self._limits), self._began)
        for todo, gone in _windows(takewhile(lambda _: not self._is_to_stop(), found), walked):
            self._leave(gone)
            self._take(todo)
            if self._stopped:
                return self._report(walked=True)
        if walked and walked[-1].path == "":
            self._forget_folders(self._manifest.folders() - {folder.path for folder in walked})
            self._manifest.settle(walked)
        if self._manifest.may_have_strangers:
            self._remove_strangers()
        self._manifest.tidy()
        self._manifest.mark_run("ended")
        return self._report(walked=True)

    def folders(self, paths: Sequence[str]) -> IndexReport:
        if self._agree():
            return self.everything()
        for path in paths:
            folders = list(scan(self._root, self._tally, self._limits, under=path))
            if not folders:  # gone since
                return self.everything()
            for folder in folders:
                self._manifest.leave_out(folder.path, folder.left_out)
            for _, difference in self._manifest.differences(folders, self._began):
                if difference is not None:
                    self._leave(difference.gone)
                    self._take(difference.changed)
        return self._report(walked=False)

    def _agree(self) -> bool:
        """Bring index and manifest into agreement; True if everything has to be added again.
        Entries that a killed run had begun are removed from the index."""
        agreed = self._manifest.agree(self._index.watermark(WATERMARK))
        if pending := self._manifest.pending():
            self._index.remove(pending)
            self._manifest.keep({}, gone=pending, indexed=False)
        return not agreed

    def _take(self, files: Mapping[str, Stat]) -> None:
        """Read and index these files."""
        self._total += len(files)
        under_way: deque[_Reading] = deque()
        batch = _Batch()
        for path in in_order(files):
            if self._is_to_stop():
                break
            under_way.append(self._read(path, files[path]))
            while len(under_way) > _UNDER_WAY or (under_way and _is_done(under_way[0])):
                self._finish(under_way.popleft(), batch)
                batch = self._handed_over_if_full(batch)
        while under_way:
            self._finish(under_way.popleft(), batch)
            batch = self._handed_over_if_full(batch)
        self._hand_over(batch)

    def _is_to_stop(self) -> bool:
        self._stopped = self._stopped or (self._stop is not None and self._stop())
        return self._stopped

    def _read(self, path: str, stat: Stat) -> _Reading:
        known = self._manifest.row(path)
        was_indexed = known is not None and not known.why
        try:
            content, sealed = read_text(
                self._root, path, self._limits.bytes, hard_links=self._limits.hard_links
            )
            digest = hashlib.sha256(content.data).digest()
            row = FileRow(self._settled(content.stat), digest)
            if known is not None and known.digest == digest and not known.why:
                row = FileRow(row.stat, digest, known.symbols, known.chunks, part=known.part)
                return _Reading(path, row, was_indexed=was_indexed)
            text = sealed.text
            refuse_machine_made(path, text)
        except NotTaken as error:
            kept = error.why not in (
                Why.GONE,
                Why.CHANGING,
                Why.UNREADABLE,
            )  # these may be otherwise at the next look
            return _Reading(
                path,
                FileRow(self._settled(stat) if kept else stat._replace(mtime_ns=0), why=error.why),
                was_indexed=was_indexed,
            )
        language = language_of(path, text)
        self._changed += 1
        self._sealed += len(sealed.found)
        cut = self._manifest.cut(digest, language.name)
        coming = self.parsers.cut(text, language) if cut is None else None
        return _Reading(path, row, text, language, cut, coming, was_indexed)

    def _settled(self, stat: Stat) -> Stat:
        """The stat, without its mtime if that is too recent to trust (racy timestamp)."""
        return (
            stat._replace(mtime_ns=0)
            if is_fresh(max(stat.mtime_ns, stat.ctime_ns), time.time())
            else stat
        )

    def _finish(self, reading: _Reading, batch: _Batch) -> None:
        self._done += 1
        path, row, language = reading.path, reading.row, reading.language
        if language is None:
            batch.rows[path] = row
            if row.why and reading.was_indexed:
                batch.leave.add(path)
            return
        cut = reading.cut
        if reading.coming is not None:
            parsed = reading.coming.result()
            cut = CutContent(parsed.chunks, parsed.count, GAVE_UP if parsed.gave_up else "")
            self._parsed += 1
            batch.cuts[row.digest, language.name] = cut
        assert cut is not None
        made = entries(
            path, reading.text, language, cut.chunks, (row.stat.mtime_ns or row.stat.ctime_ns) / 1e9
        )
        batch.rows[path] = FileRow(row.stat, row.digest, cut.symbols, len(made), part=cut.part)
        batch.entries[path] = made
        if reading.was_indexed:
            batch.replace.add(path)
        batch.bytes += row.stat.size
        self._bytes += row.stat.size
        self._chunks += len(made)

    def _handed_over_if_full(self, batch: _Batch) -> _Batch:
        if len(batch.rows) < self._batch_size and batch.bytes < _BATCH_BYTES:
            return batch
        self._batch_size = _BATCH
        self._hand_over(batch)
        return _Batch()

    def _hand_over(self, batch: _Batch) -> None:
        """Hand a batch to the index, then to the manifest. Its paths are noted before as
        pending."""
        if not batch.rows:
            return
        paths = [*batch.entries, *batch.leave]
        if paths:
            self._manifest.begin(paths)
            new = set(batch.entries) - batch.replace
            if len(batch.replace) > _REPLACED_ONE_BY_ONE:
                self._index.remove(sorted(batch.replace | batch.leave))
                new = set(batch.entries)
            else:
                if batch.leave:
                    self._index.remove(sorted(batch.leave))
                for path in sorted(batch.replace):
                    self._index.replace(path, batch.entries[path])
            self._index.add(
                [entry for path in batch.entries if path in new for entry in batch.entries[path]],
                self._next_mark(),
            )
        self._manifest.keep(batch.rows, batch.cuts, indexed=bool(paths))
        if self._progress is not None:
            self._progress(
                IndexProgress(
                    self._done,
                    self._total,
                    self._bytes,
                    self._chunks,
                    time.monotonic() - self._started,
                )
            )

    def _next_mark(self) -> Watermark:
        return Watermark(WATERMARK, self._manifest.mark(ahead=1))

    def _leave(self, paths: Sequence[str]) -> None:
        if paths:
            self._index.remove(paths, self._next_mark())
            self._manifest.keep({}, gone=paths)
            self._removed += len(paths)

    def _forget_folders(self, folders: Iterable[str]) -> None:
        """Remove folders that are gone, with all their files."""
        for folder in sorted(folders):
            names = self._manifest.rows(folder)
            paths = [f"{folder}/{name}" if folder else name for name in names]
            if paths:
                self._index.remove(paths, self._next_mark())
            self._manifest.keep({}, gone=paths, gone_folders=(folder,), indexed=bool(paths))
            self._removed += len(paths)

    def _remove_strangers(self) -> None:
        """Remove entries that an earlier manifest had indexed and this one does not know."""
        strangers = (
            path for path in self._index.wholes(Sort.CODE) if not self._manifest.is_indexed(path)
        )
        for some in _portions(strangers, 1000):
            self._index.remove(some)
        self._manifest.has_no_strangers()

    def _report(self, *, walked: bool) -> IndexReport:
        totals = self._manifest.totals(self._tally if walked else None)
        return IndexReport.of(
            totals,
            changed=self._changed,
            parsed=self._parsed,
            removed=self._removed,
            sealed=self._sealed,
            seconds=time.monotonic() - self._started,
            stopped=self._stopped,
        )


def _windows(
    found: Iterable[tuple[FolderStamp, FolderDifference | None]], walked: list[FolderStamp]
) -> Iterator[tuple[dict[str, Stat], list[str]]]:
    """Files to read and files that are gone, in portions; folders are recorded as they come."""
    todo: dict[str, Stat] = {}
    gone: list[str] = []
    for folder, difference in found:
        walked.append(folder)
        if difference is None:
            continue
        todo.update(difference.changed)
        gone += difference.gone
        if len(todo) >= _WINDOW:
            yield todo, gone
            todo, gone = {}, []
    yield todo, gone


def _is_done(reading: _Reading) -> bool:
    return reading.coming is None or reading.coming.done()


def _portions(items: Iterable[str], size: int) -> Iterator[list[str]]:
    each = iter(items)
    while some := list(islice(each, size)):
        yield some


_LATELY_NS = 7 * 24 * 3600 * 10**9  # before the latest change of any file
_CORE = frozenset(
    (
        "src",
        "lib",
        "app",
        "apps",
        "pkg",
        "cmd",
        "core",
        "internal",
        "packages",
        "crates",
        "server",
        "client",
        "api",
    )
)
_TESTS = frozenset(
    ("test", "tests", "spec", "specs", "__tests__", "testing", "e2e", "fixtures", "testdata")
)
_ASIDE = frozenset(
    (
        "doc",
        "docs",
        "example",
        "examples",
        "sample",
        "samples",
        "demo",
        "benchmark",
        "benchmarks",
        "bench",
    )
)
_CARRIED = frozenset(
    (
        "vendor",
        "vendored",
        "third_party",
        "third-party",
        "external",
        "extern",
        "deps",
        "generated",
        "gen",
        "migrations",
    )
)


def in_order(files: Mapping[str, Stat]) -> list[str]:
    """Paths, the most useful first."""
    lately = max((stat.mtime_ns for stat in files.values()), default=0) - _LATELY_NS
    return sorted(
        files,
        key=lambda path: (_distance(path) + (0 if files[path].mtime_ns >= lately else 2), path),
    )


def _distance(path: str) -> int:
    """Rank of a file: those that a developer would look at first come first."""
    *folders, name = path.lower().split("/")
    language = language_of(path)
    kind = (
        0
        if language.grammar and language.name != "json"
        else 1
        if language.name in ("markdown", "toml", "yaml")
        else 2
    )
    return _place(folders, name) + kind


def _place(folders: Iterable[str], name: str) -> int:
    names = set(folders)
    if names & _CARRIED:
        return 8
    if names & _ASIDE:
        return 6
    if (
        names & _TESTS
        or name.startswith("test_")
        or ".test." in name
        or ".spec." in name
        or "_test." in name
    ):
        return 4
    return 0 if names & _CORE or not names else 1


_log = logging.getLogger("hotset")

_PAUSE_MS = 50  # without a change: then what was gathered is handed over
_LONGEST_MS = 400  # of gathering while changes go on
# how late is noticed what changed before the watch began, a wish to stop, and the end of git's lock
_WAKE_MS = 200
_LONGEST_LOCK = 30.0  # seconds; an older lock was left behind by a git that died
_POLL_SECONDS = 5.0
_AFTER_A_NAME_SECONDS = 1.0  # a file whose name is not UTF-8 may be written all the time
_LATEST = 50  # files that were changed last: what is changed next is in one of their languages
_LOCK = ".git/index.lock"


def watch_project(
    root: Path,
    index: Index,
    manifest: Manifest,
    *,
    stop: threading.Event,
    parsers: Parsers,
    updated: Callable[[IndexReport], None] | None = None,
    poll_seconds: float = _POLL_SECONDS,
    force_polling: bool = False,
) -> None:
    """Index changes until `stop` is set. Call it in a thread of its own, after `index_project`,
    with a manifest of its own.

    It also ends when the folder is gone.
    """
    root = root.expanduser().resolve()
    parsers.warm(
        {
            language.name: language for language in map(language_of, manifest.latest(_LATEST))
        }.values()
    )

    def report_changes(report: IndexReport) -> None:
        if updated is not None and (report.changed or report.removed):
            updated(report)

    try:
        if not force_polling:
            for paths in _batches(root, stop):
                report_changes(index_paths(root, index, manifest, paths, parsers=parsers))
            if stop.is_set():
                return
        while not stop.wait(poll_seconds):
            report_changes(index_project(root, index, manifest, parsers=parsers, stop=stop.is_set))
    except BadInput:
        _log.info("the watched folder is gone")


def _batches(root: Path, stop: threading.Event) -> Iterator[set[str]]:
    """Changed paths, relative to the root. Ends if the system cannot watch, or when `stop` is
    set."""
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
    """The watcher's changes. It ends at a name that is not UTF-8, and loses what it gathered: the
    next one begins with a full scan."""
    from watchfiles._rust_notify import WatchfilesRustInternalError  # noqa: PLC0415 - exported nowhere else

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
