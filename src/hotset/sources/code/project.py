"""A project's files and its index: one process brings them in, a search catches up with changes,
`take_out` removes them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from hotset.errors import HotsetError, StoreBusy
from hotset.files.folder import private_folder
from hotset.files.lock import FileLock
from hotset.index import open_index
from hotset.index.port import FOLDER, Index
from hotset.nouns.embedding import Embedding
from hotset.nouns.finding import Sort
from hotset.sources.code.consent import revoke
from hotset.sources.code.manifest import DATABASE as MANIFEST, Totals

_INDEXING = "code.indexing"
_CATCHING_UP_SECONDS = 0.5  # for files that were changed since
_PATIENCE = 10.0  # seconds for whoever indexes to notice that it no longer may


def index_folder(folder: Path) -> Path:
    """Where the index is, in a project's data folder."""
    return folder / FOLDER


def below(root: Path, path: str) -> str:
    """A path or a pattern of the project's files as their index has it: relative to the project,
    wherever that is."""
    for start in (f"{root}/", f"{root.resolve()}/"):
        if f"{path}/".startswith(start):
            inside = path[len(start) :]
            return inside if "/" in inside or not inside else f"./{inside}"
    return path


def catch_up(root: Path, folder: Path, index: Index) -> Iterator[str]:
    """Where nobody watches the files, a look at what was changed; says what a search has to do
    without.

    What takes longer than that is left to `hotset index`.
    """
    from hotset.sources.code.indexer import index_project, manifest_identity  # noqa: PLC0415 - 50 ms, for this alone
    from hotset.sources.code.manifest import Manifest  # noqa: PLC0415

    until = time.monotonic() + _CATCHING_UP_SECONDS
    try:
        with indexing_lock(folder), Manifest(folder, manifest_identity()) as manifest:
            if index_project(root, index, manifest, stop=lambda: time.monotonic() > until).stopped:
                yield (
                    "not every file could be looked at in time; to search them as they are: "
                    "hotset index"
                )
    except StoreBusy:  # somebody is at it
        return
    except HotsetError as error:
        yield f"files may be found as they were: {error}"


def is_up_to_date(root: Path, folder: Path) -> Totals | None:
    """What is known of the project's files, if that is all there is to know; None where something
    is still to be done.

    For those who may not index now because somebody else does: it compares, and reads only what is
    too fresh to tell by its stat.
    """
    from hotset.sources.code.freshness import nothing_is_left  # noqa: PLC0415 - for this alone
    from hotset.sources.code.indexer import manifest_identity  # noqa: PLC0415
    from hotset.sources.code.manifest import manifest_as_it_is  # noqa: PLC0415

    manifest = manifest_as_it_is(folder) if has_code(folder) else None
    if manifest is None:
        return None
    with manifest:
        if not manifest.is_made_by(manifest_identity()) or not nothing_is_left(root, manifest):
            return None
        return manifest.totals()


def has_code(folder: Path) -> bool:
    """Was anything of the project's files ever indexed, and not removed?"""
    return (folder / MANIFEST).exists() and index_folder(folder).exists()


@contextmanager
def indexing_lock(folder: Path, patience: float = 0.0) -> Iterator[None]:
    """The right to bring the project's files into its index, held by one process at a time. Raises
    `StoreBusy`."""
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
    """The process that brings the project's files into the index now, or watches them."""
    return FileLock(folder / _INDEXING).holder() or None


def take_out(folder: Path, embedding: Embedding) -> int | None:
    """Takes consent back and everything that was made of the project's files away: nothing of them
    is left on the disk.

    The process that had the index open and has not let go of it yet, if there is one: it does as
    soon as it looks, or ends. Raises `StoreBusy` where whoever indexes does not stop.
    """
    from hotset.index.database import discard_index  # noqa: PLC0415 - a look at what nobody changed does not pay for it
    from hotset.sources.code.parsers import GRAMMARS  # noqa: PLC0415

    if not folder.exists():
        return None
    revoke(folder)
    with indexing_lock(folder, _PATIENCE):
        revoke(
            folder, folder / GRAMMARS
        )  # whoever indexed may have written once more before it noticed
        if not index_folder(folder).exists():
            return None
        with closing(open_index(folder, embedding, folds=False)) as index:
            index.purge(
                index.wholes(Sort.CODE)
            )  # for whoever has it open: nothing of the files is found from now on
            alone = index.fold()
        # The index holds what was said, too; that comes back from the store.
        if not alone:
            return discard_index(index_folder(folder))
        revoke(folder, index_folder(folder))
        return None
