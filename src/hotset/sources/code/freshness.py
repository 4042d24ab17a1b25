"""Is a project as the last whole run left it? Told from two databases and one look at each file.

What makes an index takes half a second to load, and an unchanged project needs none of it. Whatever
is in doubt here is left to a whole run.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

from hotset.errors import StoreFailed
from hotset.files.root import NotTaken, Root
from hotset.index.database import SettledIndex, read_settled
from hotset.index.port import FOLDER
from hotset.nouns.embedding import Embedding
from hotset.sources.code.manifest import WATERMARK, IndexReport, Manifest, manifest_as_it_is
from hotset.sources.code.scan import ScanLimits, SkippedFiles, scan

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
    """What a run over the project would report, if nothing is to be done; None where something is,
    or may be.

    `folder` is where hotset keeps what belongs to the project.
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
    except StoreFailed:  # a whole run makes again what cannot be read
        return None
    return IndexReport.of(totals, seconds=time.monotonic() - began)


def settle(folder: Path, manifest: Manifest, embedding: Embedding) -> None:
    """A whole run has ended, and all that it found is folded: the next one need not load anything
    to see that."""
    if said := _settled(read_settled(folder / FOLDER, WATERMARK), manifest, embedding):
        manifest.say(_SETTLED, said)


def _is_settled(folder: Path, manifest: Manifest, embedding: Embedding) -> bool:
    said = manifest.said(_SETTLED)
    return said is not None and said == _settled(
        read_settled(folder / FOLDER, WATERMARK), manifest, embedding
    )


def _is_as_it_was(root: Path, manifest: Manifest, until: float, stop: Callable[[], bool]) -> bool:
    """False as well where that could not be told in time."""
    gave_up = False

    def is_enough() -> bool:
        nonlocal gave_up
        gave_up = time.monotonic() > until or stop()
        return gave_up

    return manifest.edited(root, is_enough) == {} and not gave_up


def _settled(rest: SettledIndex | None, manifest: Manifest, embedding: Embedding) -> str:
    """By what index and manifest were made, where both are at rest and of one mind; else
    nothing."""
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
    except OSError:  # not installed as files: nothing can be told of them without loading
        return ""
    return blake2b(makers.encode(), digest_size=16).hexdigest()


def _makers() -> Iterator[str]:
    """Whatever could make another index of the same files, by stat: to ask it for its version is to
    load it."""
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


def nothing_is_left(root: Path, manifest: Manifest) -> bool:
    """Raises `BadInput` where there is no such folder."""
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
    """By its content, where its stat was too fresh to be kept; or known not to be taken."""
    row = manifest.row(path)
    if row is None or not row.digest:
        return row is not None and bool(row.why)
    try:
        return hashlib.sha256(root.read(path, ScanLimits().bytes).data).digest() == row.digest
    except NotTaken:
        return False
