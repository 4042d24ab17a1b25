"""A project's files and its index: one process indexes them, a search catches up with changes,
`take_out` removes them, and `unchanged` says whether there is anything to do.

The indexer takes half a second to load, and an unchanged project needs none of it: two databases
and one stat of each file show that. In doubt a whole run decides.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from hashlib import blake2b, sha256
from importlib.util import find_spec
from pathlib import Path

from hotset.errors import HotsetError, StoreBusy, StoreFailed
from hotset.files.lock import FileLock
from hotset.files.private_folder import private_folder
from hotset.files.root import NotTaken, Root
from hotset.index import FOLDER, open_index
from hotset.index.database import SettledIndex, read_settled
from hotset.index.port import Index
from hotset.nouns.embedding import Embedding
from hotset.nouns.search import Sort
from hotset.sources.code.manifest import (
    DATABASE as MANIFEST,
    WATERMARK,
    IndexReport,
    Manifest,
    Totals,
    manifest_as_it_is,
)
from hotset.sources.code.scan import ScanLimits, SkippedFiles, scan

_INDEXING = "code.indexing"
_CATCHING_UP_SECONDS = 0.5  # for files that were changed since
_PATIENCE = 10.0  # seconds for the indexing process to notice that consent is gone


def index_folder(folder: Path) -> Path:
    """The folder of the index, in a project's data folder."""
    return folder / FOLDER


def below(root: Path, path: str) -> str:
    """A path or pattern of the project's files as the index has it: relative to the project."""
    for start in (f"{root}/", f"{root.resolve()}/"):
        if f"{path}/".startswith(start):
            inside = path[len(start) :]
            return inside if "/" in inside or not inside else f"./{inside}"
    return path


def catch_up(root: Path, folder: Path, index: Index) -> Iterator[str]:
    """Index what changed since the last run, unless another process watches the files. Yields a
    sentence about what the search lacks.

    What takes longer than the time limit is left to `hotset index`.
    """
    from hotset.sources.code.indexer import index_project, manifest_identity  # noqa: PLC0415 - 50 ms, for this alone

    until = time.monotonic() + _CATCHING_UP_SECONDS
    try:
        with indexing_lock(folder), Manifest(folder, manifest_identity()) as manifest:
            if index_project(root, index, manifest, stop=lambda: time.monotonic() > until).stopped:
                yield (
                    "not every file could be looked at in time; to search them as they are: "
                    "hotset index"
                )
    except StoreBusy:  # another process indexes
        return
    except HotsetError as error:
        yield f"files may be found as they were: {error}"


def is_up_to_date(root: Path, folder: Path) -> Totals | None:
    """The totals of the project's files if all of them are indexed; None if something is left to
    do.

    For a process that may not index because another one does: it compares stats, and reads only
    files whose mtime is too recent to trust (racy timestamp).
    """
    from hotset.sources.code.indexer import manifest_identity  # noqa: PLC0415

    manifest = manifest_as_it_is(folder) if has_code(folder) else None
    if manifest is None:
        return None
    with manifest:
        if not manifest.is_made_by(manifest_identity()) or not _is_nothing_left(root, manifest):
            return None
        return manifest.totals()


def has_code(folder: Path) -> bool:
    """True if any of the project's files are indexed."""
    return (folder / MANIFEST).exists() and index_folder(folder).exists()


@contextmanager
def indexing_lock(folder: Path, patience: float = 0.0) -> Iterator[None]:
    """The right to index the project's files, held by one process at a time. Raises `StoreBusy`."""
    lock = FileLock(private_folder(folder) / _INDEXING)
    if not lock.take(patience):
        holder = lock.holder() or "?"
        raise StoreBusy(
            f"process {holder} indexes this project already and keeps it up to date; see: "
            f"hotset index --status"
        )
    try:
        yield
    finally:
        lock.release()


def who_indexes(folder: Path) -> int | None:
    """The process that indexes or watches the project's files now."""
    return FileLock(folder / _INDEXING).holder() or None


def take_out(folder: Path, embedding: Embedding) -> int | None:
    """Revoke consent and remove everything that was made from the project's files: nothing of them
    is left on the disk.

    Returns the process that still has the index open, if there is one: it lets go at its next
    access, or ends. Raises `StoreBusy` if the indexing process does not stop.
    """
    from hotset.index.database import discard_index  # noqa: PLC0415 - only removal pays for it
    from hotset.sources.code.index_consent import revoke  # noqa: PLC0415
    from hotset.sources.code.parsers import GRAMMARS  # noqa: PLC0415

    if not folder.exists():
        return None
    revoke(folder)
    with indexing_lock(folder, _PATIENCE):
        revoke(
            folder, folder / GRAMMARS
        )  # the indexing process may have written once more before it noticed
        if not index_folder(folder).exists():
            return None
        with closing(open_index(folder, embedding, folds=False)) as index:
            index.purge(
                index.wholes(Sort.CODE)
            )  # for processes that have it open: no file is found from now on
            alone = index.fold()
        # The index also holds conversations; those come back from the store.
        if not alone:
            return discard_index(index_folder(folder))
        revoke(folder, index_folder(folder))
        return None


# enough for 100,000 files; where there are more, loading is the lesser part, and a whole run looks
# again
_LOOK_SECONDS = 1.0
_SETTLED = "settled"
_PACKAGE = Path(__file__).parents[2]
_PARTS = ("index", "index/embed", "index/embed/data", "sealing", "sources/code", "store", "text")
_OTHERS = ("semble_grammars", "tree_sitter")


def unchanged(
    root: Path, folder: Path, embedding: Embedding, stop: Callable[[], bool]
) -> IndexReport | None:
    """The report of a run over the project if nothing is to be done; None if something is, or may
    be.

    `folder` is the project's data folder.
    """
    began = time.monotonic()
    try:
        manifest = manifest_as_it_is(folder)
        if manifest is None:
            return None
        with manifest:
            if not _is_settled(folder, manifest, embedding) or not _is_as_it_was(
                root, manifest, began + _LOOK_SECONDS, stop
            ):
                return None
            totals = manifest.totals()
    except StoreFailed:  # a whole run rebuilds what cannot be read
        return None
    return IndexReport.of(totals, seconds=time.monotonic() - began)


def settle(folder: Path, manifest: Manifest, embedding: Embedding) -> None:
    """Note that a whole run has ended and all its entries are folded: the next run need not load
    anything to see that."""
    if identity := _settled_identity(read_settled(folder / FOLDER, WATERMARK), manifest, embedding):
        manifest.write_note(_SETTLED, identity)


def _is_settled(folder: Path, manifest: Manifest, embedding: Embedding) -> bool:
    identity = manifest.read_note(_SETTLED)
    return identity is not None and identity == _settled_identity(
        read_settled(folder / FOLDER, WATERMARK), manifest, embedding
    )


def _is_as_it_was(root: Path, manifest: Manifest, until: float, stop: Callable[[], bool]) -> bool:
    """True if no file changed; False also if that could not be checked in time."""
    gave_up = False

    def is_enough() -> bool:
        nonlocal gave_up
        gave_up = time.monotonic() > until or stop()
        return gave_up

    return manifest.edited(root, is_enough) == {} and not gave_up


def _settled_identity(rest: SettledIndex | None, manifest: Manifest, embedding: Embedding) -> str:
    """Hash of everything that made index and manifest, if both are at rest and agree; otherwise
    empty."""
    if (
        rest is None
        or rest.watermark != manifest.mark()
        or manifest.may_have_strangers
        or manifest.pending()
    ):
        return ""
    try:
        makers = "\0".join(
            (rest.made_by, embedding.url, embedding.model, str(embedding.size), *_makers())
        )
    except OSError:  # not installed as files: their versions are unknown without loading
        return ""
    return blake2b(makers.encode(), digest_size=16).hexdigest()


def _makers() -> Iterator[str]:
    """Stats of all code that affects the index: to ask it for its version would be to load it."""
    for part in _PARTS:
        with os.scandir(_PACKAGE / part) as entries:
            files = sorted((each for each in entries if each.is_file()), key=lambda each: each.name)
        yield from (_stat(f"{part}/{each.name}", each.stat()) for each in files)
    for name in _OTHERS:
        found = find_spec(name)
        if found is not None and found.origin:
            yield _stat(name, os.stat(found.origin))  # noqa: PTH116 - a stat like the others


def _stat(name: str, found: os.stat_result) -> str:
    return f"{name} {found.st_size} {found.st_mtime_ns} {found.st_ino}"


def _is_nothing_left(root: Path, manifest: Manifest) -> bool:
    """True if every file is known as it is. Raises `BadInput` if there is no such folder."""
    if manifest.unfinished or manifest.pending():
        return False
    known: set[str] = set()
    with Root(root) as opened:
        for walked, difference in manifest.differences(scan(opened, SkippedFiles()), time.time()):
            known.add(walked.path)
            if difference is None:
                continue
            if difference.gone or not all(
                _is_known(opened, manifest, path) for path in difference.changed
            ):
                return False
    return "" in known and manifest.folders() <= known


def _is_known(root: Root, manifest: Manifest, path: str) -> bool:
    """True if the file's content is known (its stat was too fresh to be kept), or known to be
    skipped."""
    row = manifest.row(path)
    if row is None or not row.digest:
        return row is not None and bool(row.why)
    try:
        return sha256(root.read(path, ScanLimits().bytes).data).digest() == row.digest
    except NotTaken:
        return False
