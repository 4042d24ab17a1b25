"""Records what was indexed of a project, so that only changes are read again. Derived: it can be
deleted at any time.

Files are compared by stat, whole folders by a tree of hashes over the stats; if a stat differs, by
content hash; and content that was cut before, under any name, is not parsed again. Each batch is
one commit. The paths of a batch are recorded before the index gets it: after a kill the next run
removes them from the index and adds them again.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from hotset.errors import PageDamaged
from hotset.files.lock import hold_lock
from hotset.files.open import open_private
from hotset.files.private_folder import private_folder
from hotset.files.root import Stat, Why
from hotset.sources.code.scan import ScannedFolder, SkippedFiles
from hotset.store.connection import Tuning, close_connection, connect, translate_errors
from hotset.store.store_files import refuse_links, wal_and_shm

if TYPE_CHECKING:
    import msgspec

    from hotset.sources.code.chunks import Chunk

DATABASE = "code.db"
WATERMARK = "code"
"""Name of the watermark by which an index records how much of this manifest it has."""

_LOCK = "code.lock"
_PATIENCE = 60.0  # seconds; a process that waits longer gets an error
_FORMAT = 2
_BATCH_BITS = 24  # of a mark: batches of one epoch; the rest is the epoch
# clocks of file systems tick every 10 ms at worst: a file changed again within that may look
# unchanged
_SETTLED_NS = 50_000_000
_COARSE_NS = 2_000_000_000  # where stamps are whole seconds, as on old file systems
_BETWEEN_STOPS = 1000  # files that are looked at in about 5 ms
_MOST_EDITED = 10_000  # files that are returned at once; a scan yields more in portions
_MOST_NAMED = 5
# contents that no file has now are remembered for the way back to their branch: about 20 MB
_UNUSED_CUTS = 50_000
_ROW = "size, mtime, ctime, inode, digest, symbols, chunks, why, part"
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE folder (path TEXT PRIMARY KEY, stamp BLOB NOT NULL, stat TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE file (
  folder TEXT NOT NULL, name TEXT NOT NULL, size INT NOT NULL, mtime INT NOT NULL, ctime INT NOT NULL, inode INT NOT NULL,
  digest BLOB NOT NULL, symbols INT NOT NULL, chunks INT NOT NULL, why TEXT NOT NULL, part TEXT NOT NULL, batch INT NOT NULL,
  PRIMARY KEY (folder, name)
) WITHOUT ROWID;
CREATE TABLE cut (digest BLOB, language TEXT, symbols INT NOT NULL, chunks BLOB NOT NULL, part TEXT NOT NULL, used INT NOT NULL,
  PRIMARY KEY (digest, language)) WITHOUT ROWID;
CREATE TABLE left_out (folder TEXT, why TEXT, times INT NOT NULL, examples TEXT NOT NULL,
  PRIMARY KEY (folder, why)) WITHOUT ROWID;
CREATE TABLE pending (path TEXT PRIMARY KEY) WITHOUT ROWID;
"""  # noqa: E501


@dataclass(frozen=True, slots=True)
class FileRow:
    """What is known about a file."""

    stat: Stat
    digest: bytes = b""
    """Hash of its content; empty if it was not read."""
    symbols: int = 0
    chunks: int = 0
    why: str = ""
    """Why it is not indexed; empty if it is."""
    part: str = ""
    """Why it is indexed only in part; empty if nothing is missing."""


@dataclass(frozen=True, slots=True)
class CutContent:
    """How a content was cut."""

    chunks: tuple[Chunk, ...]
    symbols: int
    part: str = ""
    """Why it was cut only in part."""


@dataclass(frozen=True, slots=True)
class Totals:
    files: int
    chunks: int
    bytes: int
    symbols: int
    refused: Mapping[str, int]
    """Files and folders that are not indexed, by reason."""
    examples: Mapping[str, Sequence[str]]
    """The first few of these, by path."""
    in_part: Mapping[str, int]
    """Files that are indexed only in part, by reason."""
    in_part_files: Sequence[str]
    """The first few of these, by path."""


@dataclass(frozen=True, slots=True)
class IndexReport(Totals):
    """What is indexed of a project, and what a run did."""

    changed: int = 0
    """Files that were read in this run."""
    parsed: int = 0
    """Those of them with new content."""
    removed: int = 0
    sealed: int = 0
    """Secrets in the files that were read in this run; nothing of them is kept."""
    seconds: float = 0.0
    stopped: bool = False
    """The run was asked to end early; the next one continues from here."""

    @classmethod
    def of(cls, known: Totals, **done: Any) -> IndexReport:
        return cls(*(getattr(known, each.name) for each in fields(Totals)), **done)


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """Progress of an index run. Counts only, no names."""

    done: int
    total: int
    """Files that differ, as far as the scan has come."""
    bytes: int
    chunks: int
    seconds: float


@dataclass(frozen=True, slots=True)
class FolderStamp:
    """What is kept of a scanned folder."""

    path: str
    left_out: SkippedFiles
    stamp: bytes = b""
    """Hash of everything in it; empty if a stat in it is too recent to trust. The same holds for
    `stat`, its own."""
    stat: str = ""


@dataclass(frozen=True, slots=True)
class FolderDifference:
    """The part of a folder that has to be read."""

    changed: Mapping[str, Stat]
    """By path; includes new files."""
    gone: tuple[str, ...] = ()


class Manifest:
    """The manifest of one project, in a private folder. One process at a time indexes; any may
    read."""

    def __init__(self, folder: Path, identity: str | None) -> None:
        """`identity` says how files are cut: what another one cut is forgotten. None accepts
        any."""
        self.path = private_folder(folder) / DATABASE
        try:
            self._open(identity)
        except PageDamaged:
            if identity is None:
                raise
            remove_manifest(self.path.parent)
            self._open(identity)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        close_connection(self._db)

    @contextmanager
    def alone(self, patience: float = _PATIENCE) -> Iterator[None]:
        """Hold the right to update index and manifest. Raises `StoreBusy` if another process holds
        it for too long."""
        busy = (
            f"another process has been indexing into {self.path.parent} "
            f"for {patience:.0f} s; try "
            f"again later"
        )
        with hold_lock(self.path.with_name(_LOCK), busy, patience):
            yield

    # Together with the index

    def mark(self, ahead: int = 0) -> int:
        """The watermark that an up-to-date index has, or will have after `ahead` more batches."""
        return int(self._meta("epoch") or 0) << _BATCH_BITS | int(self._meta("batch") or 0) + ahead

    def agree(self, mark: int) -> bool:
        """Forget what the index, by its own mark, does not have. False if that is everything.

        How contents were cut is kept.
        """
        if mark == self.mark():
            return True
        batch, epoch = mark & ((1 << _BATCH_BITS) - 1), mark >> _BATCH_BITS
        is_ours = epoch == int(self._meta("epoch") or 0)
        with self._commit():
            if not is_ours:
                self._db.execute(
                    "DELETE FROM file; DELETE FROM folder; DELETE FROM left_out; DELETE FROM "
                    "pending"
                )
                self._begin_epoch()
            elif batch < int(
                self._meta("batch") or 0
            ):  # a loss of power took more from the index than from here
                self._db.execute("DELETE FROM file WHERE batch > ?", (batch,))
                self._db.execute("DELETE FROM folder")
            self._set("batch", str(batch if is_ours else 0))
        return is_ours

    @property
    def may_have_strangers(self) -> bool:
        """True if the index may have entries of files that only an earlier manifest knew."""
        return self._meta("strangers") == "1"

    def has_no_strangers(self) -> None:
        with self._commit():
            self._set("strangers", "0")

    def read_note(self, name: str) -> str | None:
        """The value that `write_note` stored under this name."""
        return self._meta(f"said {name}")

    def write_note(self, name: str, value: str) -> None:
        with self._commit():
            self._set(f"said {name}", value)

    def is_made_by(self, identity: str) -> bool:
        return self._meta("identity") == f"{_FORMAT} {identity}"

    @property
    def unfinished(self) -> bool:
        """True if the last run that had something to do did not end."""
        return self._meta("run") == "begun"

    def mark_run(self, state: Literal["begun", "ended"]) -> None:
        if self._meta("run") != state:
            with self._commit():
                self._set("run", state)

    # What is known

    def rows(self, folder: str) -> dict[str, FileRow]:
        """Rows of a folder, by name."""
        found = self._select((f"SELECT name, {_ROW} FROM file WHERE folder = ?"), folder)
        return {name: FileRow(Stat(*rest[:4]), *rest[4:]) for name, *rest in found}

    def row(self, path: str) -> FileRow | None:
        found = self._select(
            f"SELECT {_ROW} FROM file WHERE folder = ? AND name = ?", *_split_path(path)
        )
        return FileRow(Stat(*found[0][:4]), *found[0][4:]) if found else None

    def is_indexed(self, path: str) -> bool:
        return bool(
            self._select(
                "SELECT 1 FROM file WHERE folder = ? AND name = ? AND why = ''", *_split_path(path)
            )
        )

    def totals(self, walked_past: SkippedFiles | None = None) -> Totals:
        """Totals of the manifest. `walked_past` is what an unfinished scan skipped; by default the
        last finished scan's."""
        sums = self._select(
            "SELECT count(*), total(chunks), total(size), total(symbols) FROM file WHERE why = ''"
        )
        files, chunks, size, symbols = map(int, sums[0])
        in_part = self._select("SELECT part, count(*) FROM file WHERE part != '' GROUP BY part")
        some = self._select("SELECT folder, name FROM file WHERE part != '' LIMIT ?", _MOST_NAMED)
        left = self._refused()
        left.merge(self._walked_past() if walked_past is None else walked_past)
        return Totals(
            files,
            chunks,
            size,
            symbols,
            refused=dict(left.counts),
            examples=left.examples,
            in_part=dict(in_part),
            in_part_files=tuple(_join_path(*each) for each in some),
        )

    def _refused(self) -> SkippedFiles:
        """Known files that are not indexed."""
        tally = SkippedFiles()
        with translate_errors(self.path):
            found: Any = self._db.execute(
                "SELECT folder, name, why FROM file WHERE why != '' ORDER BY folder, name"
            )
            for folder, name, why in found:
                tally.add(_join_path(folder, name), why)
        return tally

    def _walked_past(self) -> SkippedFiles:
        """What the last whole scan, and scans of single folders since, skipped without reading
        it."""
        tally = SkippedFiles()
        for why, times, examples in self._select(
            "SELECT why, times, examples FROM left_out ORDER BY folder"
        ):
            tally.more(why, times, json.loads(examples))
        return tally

    def latest(self, most: int) -> list[str]:
        """Paths of the files that were changed last, the latest first."""
        latest = (
            "SELECT folder, name FROM file WHERE why = '' ORDER BY "
            "iif(mtime, mtime, ctime) DESC "
            "LIMIT ?"
        )
        return [_join_path(*each) for each in self._select(latest, most)]

    def edited(self, root: Path, stop: Callable[[], bool] | None = None) -> dict[str, Stat] | None:
        """Files whose stat differs, if no folder's does and every one was compared before; None
        asks for a scan.

        Makes one stat of each known file and folder: nothing is scanned, no ignore file is read.
        Ends early if `stop` says so.
        """
        here = str(root)
        changed: dict[str, Stat] = {}
        try:
            if not self._folders_are_as_they_were(here):
                return None
            with translate_errors(
                self.path
            ):  # row by row: a million of them at once take half a gigabyte
                rows: Any = self._db.execute(
                    "SELECT folder, name, size, mtime, ctime, inode FROM file"
                )
                for number, (folder, name, *known) in enumerate(rows):
                    if stop is not None and number % _BETWEEN_STOPS == 0 and stop():
                        return changed
                    path = f"{folder}/{name}" if folder else name
                    found = Stat.of(os.lstat(f"{here}/{path}"))
                    if found != tuple(known):
                        changed[path] = found
                        if name.endswith("ignore") or len(changed) > _MOST_EDITED:
                            return None
        except OSError:  # something is gone
            return None
        return changed

    def _folders_are_as_they_were(self, here: str) -> bool:
        folders = self._select("SELECT path, stat FROM folder")
        closed = self._select("SELECT folder FROM left_out WHERE why = ?", Why.UNREADABLE)
        if any(os.access(f"{here}/{path}", os.R_OK | os.X_OK) for (path,) in closed):
            return False
        return any(not path for path, _ in folders) and all(
            _folder_stamp(Stat.of(os.lstat(f"{here}/{path}"))) == stat for path, stat in folders
        )

    def cut(self, digest: bytes, language: str) -> CutContent | None:
        found = self._select(
            "SELECT chunks, symbols, part FROM cut WHERE digest = ? AND language = ?",
            digest,
            language,
        )
        return CutContent(_codec()[1].decode(found[0][0]), *found[0][1:]) if found else None

    # The tree

    def differences(
        self, folders: Iterable[ScannedFolder], began: float
    ) -> Iterator[tuple[FolderStamp, FolderDifference | None]]:
        """What of each scanned folder has to be read; None if nothing in it changed. `began` is
        when the scan began."""
        known = dict(self._select("SELECT path, stamp FROM folder"))
        stamps: dict[str, bytes] = {}
        for folder in folders:
            below = {
                name: stamps.pop(_join_path(folder.path, name), b"") for name in folder.folders
            }
            stamp = stamps[folder.path] = stamp_of(folder, below)
            stats = (folder.stat, *folder.files.values())
            fresh = any(is_fresh(max(each.mtime_ns, each.ctime_ns), began) for each in stats)
            left_out = folder.left_out
            walked = (
                FolderStamp(folder.path, left_out)
                if fresh
                else FolderStamp(folder.path, left_out, stamp, _folder_stamp(folder.stat))
            )
            yield walked, None if known.get(folder.path) == stamp else self._difference(folder)

    def _difference(self, folder: ScannedFolder) -> FolderDifference:
        rows = self.rows(folder.path)
        changed = {
            _join_path(folder.path, name): stat
            for name, stat in folder.files.items()
            if (row := rows.get(name)) is None or row.stat != stat
        }
        return FolderDifference(
            changed,
            tuple(_join_path(folder.path, name) for name in rows.keys() - folder.files.keys()),
        )

    def settle(self, walked: Iterable[FolderStamp]) -> None:
        """Note that everything in these folders is done, and that there are no others."""
        walked = tuple(walked)
        with self._commit():
            self._db.execute("DELETE FROM left_out")
            for each in walked:
                self._leave_out(each.path, each.left_out)
            self._db.executemany(
                "INSERT OR REPLACE INTO folder VALUES (?, ?, ?)",
                ((each.path, each.stamp, each.stat) for each in walked),
            )

    def leave_out(self, folder: str, tally: SkippedFiles) -> None:
        """Record what was skipped in one folder, after a scan of that folder alone."""
        with self._commit():
            self._db.execute("DELETE FROM left_out WHERE folder = ?", (folder,))
            self._leave_out(folder, tally)

    def _leave_out(self, folder: str, tally: SkippedFiles) -> None:
        self._db.executemany(
            "INSERT INTO left_out VALUES (?, ?, ?, ?)",
            (
                (folder, why, times, json.dumps(tally.examples.get(why, [])))
                for why, times in tally.counts.items()
            ),
        )

    def folders(self) -> set[str]:
        """Every folder that was scanned."""
        return {
            path
            for (path,) in self._select(
                "SELECT path FROM folder UNION SELECT DISTINCT folder FROM file"
            )
        }

    def knows_folder(self, path: str) -> bool:
        return bool(self._select("SELECT 1 FROM folder WHERE path = ?", path))

    # Writing

    def begin(self, paths: Iterable[str]) -> None:
        """Record that the index is about to get these paths."""
        with self._commit():
            self._db.executemany(
                "INSERT OR IGNORE INTO pending VALUES (?)", ((path,) for path in paths)
            )

    def pending(self) -> list[str]:
        """Paths that the index may have got when an earlier run was killed."""
        return [path for (path,) in self._select("SELECT path FROM pending")]

    def keep(
        self,
        rows: Mapping[str, FileRow],
        cuts: Mapping[tuple[bytes, str], CutContent] | None = None,
        gone: Sequence[str] = (),
        gone_folders: Sequence[str] = (),
        *,
        indexed: bool = True,
    ) -> None:
        """Commit one batch; `indexed` says whether the index got it. The folders of these files no
        longer count as unchanged."""
        now = int(time.time())
        batch = int(self._meta("batch") or 0) + indexed
        with self._commit():
            self._set("batch", str(batch))
            every = self._db.executemany
            every(
                "INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        *_split_path(path),
                        *row.stat,
                        row.digest,
                        row.symbols,
                        row.chunks,
                        row.why,
                        row.part,
                        batch,
                    )
                    for path, row in rows.items()
                ),
            )
            every(
                "INSERT OR REPLACE INTO cut VALUES (?, ?, ?, ?, ?, ?)",
                (
                    (digest, language, cut.symbols, _codec()[0].encode(cut.chunks), cut.part, now)
                    for (digest, language), cut in (cuts or {}).items()
                ),
            )
            every("DELETE FROM file WHERE folder = ? AND name = ?", map(_split_path, gone))
            every("DELETE FROM file WHERE folder = ?", ((folder,) for folder in gone_folders))
            every("DELETE FROM folder WHERE path = ?", ((folder,) for folder in gone_folders))
            above = {(folder,) for path in (*rows, *gone) for folder in _parent_folders(path)}
            every("UPDATE folder SET stamp = x'' WHERE path = ?", above)
            every(
                "UPDATE folder SET stat = '' WHERE path = ?",
                {_split_path(path)[:1] for path in gone},
            )
            self._db.execute("DELETE FROM pending")

    def tidy(self) -> None:
        """Forget the oldest cuts of contents that no file has any more."""
        with self._commit():
            self._db.execute(
                "DELETE FROM cut WHERE digest IN (SELECT digest FROM cut WHERE digest NOT IN "
                "(SELECT digest FROM file)"
                " ORDER BY used DESC LIMIT -1 OFFSET ?)",
                (_UNUSED_CUTS,),
            )

    def _open(self, identity: str | None) -> None:
        os.close(open_private(self.path))
        refuse_links(self.path)
        with translate_errors(self.path):
            self._db = connect(
                self.path, Tuning(synchronous="NORMAL")
            )  # derived: what a power cut takes is rebuilt
            try:
                self._db.pragma("journal_mode", "wal")
                self._db.wal_autocheckpoint(1000)
                if identity is not None:
                    self._prepare(f"{_FORMAT} {identity}")
            except BaseException:
                close_connection(self._db)
                raise

    def _prepare(self, identity: str) -> None:
        with self._db:
            if (
                self._db.execute("SELECT count(*) FROM sqlite_master").get
                and self._meta("identity") == identity
            ):
                return
            for (table,) in self._db.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            ).fetchall():
                self._db.execute(f'DROP TABLE "{table}"')
            self._db.execute(_TABLES)
            self._set("identity", identity)
            self._begin_epoch()

    def _begin_epoch(self) -> None:
        self._set("epoch", str(secrets.randbits(62 - _BATCH_BITS - 1) + 1))
        self._set("batch", "0")
        self._set("strangers", "1")

    def _meta(self, name: str) -> str | None:
        if not self._select("SELECT 1 FROM sqlite_master WHERE name = 'meta'"):
            return None
        found = self._select("SELECT value FROM meta WHERE name = ?", name)
        return str(found[0][0]) if found else None

    def _select(self, sql: str, *values: Any) -> list[Any]:
        with translate_errors(self.path):
            return self._db.execute(sql, values).fetchall()

    def _set(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    @contextmanager
    def _commit(self) -> Iterator[None]:
        with translate_errors(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")


def manifest_as_it_is(folder: Path) -> Manifest | None:
    """The manifest of a data folder, whatever version made it; None if there is none."""
    return Manifest(folder, None) if (folder / DATABASE).exists() else None


def remove_manifest(folder: Path) -> None:
    """Delete a project's manifest."""
    database = folder / DATABASE
    for path in (database, *wal_and_shm(database), folder / _LOCK):
        path.unlink(missing_ok=True)


def stamp_of(folder: ScannedFolder, below: Mapping[str, bytes]) -> bytes:
    """A hash of all stats in a folder: its files, and the stamps of its folders. Equal stamps,
    equal trees."""
    lines = [
        f"{name}\0{stat.size}\0{stat.mtime_ns}\0{stat.ctime_ns}\0{stat.inode}"
        for name, stat in sorted(folder.files.items())
    ]
    lines += [f"{name}/\0{stamp.hex()}" for name, stamp in sorted(below.items())]
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).digest()


def is_fresh(changed_ns: int, began: float) -> bool:
    """True if the mtime is too recent to trust: another change right after it would not show (racy
    timestamp)."""
    coarse = changed_ns % 1_000_000_000 == 0
    return changed_ns > began * 1e9 - (_COARSE_NS if coarse else _SETTLED_NS)


@cache
def _codec() -> tuple[msgspec.msgpack.Encoder, msgspec.msgpack.Decoder[tuple[Chunk, ...]]]:
    import msgspec  # noqa: PLC0415

    from hotset.sources.code.chunks import Chunk  # noqa: PLC0415
    from hotset.typed import msgpack_decoder  # noqa: PLC0415

    return msgspec.msgpack.Encoder(), msgpack_decoder(tuple[Chunk, ...])


def _folder_stamp(folder: Stat) -> str:
    """A folder's stat without its size, which says nothing."""
    return f"{folder.mtime_ns} {folder.ctime_ns} {folder.inode}"


def _parent_folders(path: str) -> Iterator[str]:
    """The folders that a path is in."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def _split_path(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name


def _join_path(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
