"""An index taken from the disk, whoever has it open: they see that it is gone, let go of it and
begin anew."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from hotset.index.generations import FOLDERS
from hotset.index.rows import DATABASE, discard_rows, writer_lock

_SEEN_SECONDS = 5.0  # whoever folds looks every second
_POLL_SECONDS = 0.05


def discard_index(folder: Path) -> int | None:
    """Nothing of what was added is left in any file. Tells the process that did not let go in time
    of what it had read."""
    discard_rows(folder)
    for generation in folder.glob(f"{FOLDERS}*"):
        shutil.rmtree(generation, ignore_errors=True)
    until = time.monotonic() + _SEEN_SECONDS
    while (holder := writer_lock(folder).holder()) is not None and not (folder / DATABASE).exists():
        if time.monotonic() > until:
            return holder
        time.sleep(_POLL_SECONDS)
    return None
