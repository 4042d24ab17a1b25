"""Is everything that a project's folder holds known to its manifest? A look that changes nothing."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from hotset.files.root import NotTaken, Root
from hotset.sources.code.manifest import Manifest
from hotset.sources.code.scan import Limits, Tally, scan


def nothing_is_left(root: Path, manifest: Manifest) -> bool:
    """Raises `BadInput` where there is no such folder."""
    if manifest.unfinished or manifest.pending():
        return False
    known: set[str] = set()
    with Root(root) as opened:
        for walked, difference in manifest.differences(scan(opened, Tally()), time.time()):
            known.add(walked.path)
            if difference is None:
                continue
            if difference.gone or not all(_is_known(opened, manifest, path) for path in difference.changed):
                return False
    return "" in known and manifest.folders() <= known


def _is_known(root: Root, manifest: Manifest, path: str) -> bool:
    """By its content, where its stat was too fresh to be kept; or known not to be taken."""
    row = manifest.row(path)
    if row is None or not row.digest:
        return row is not None and bool(row.why)
    try:
        return hashlib.sha256(root.read(path, Limits().bytes).data).digest() == row.digest
    except NotTaken:
        return False
