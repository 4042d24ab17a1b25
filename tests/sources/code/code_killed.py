"""Indexes a project into a real index until it is killed: `python code_killed.py ROOT DATA`."""

from __future__ import annotations

import sys
from pathlib import Path

from code_project import GRAMMARS

from hotset.index.local import LocalIndex
from hotset.sources.code.indexer import index_project, manifest_identity
from hotset.sources.code.manifest import Manifest
from hotset.sources.code.parsers import Parsers


def main() -> None:
    root, data = Path(sys.argv[1]), Path(sys.argv[2])
    with (
        LocalIndex(data / "index") as index,
        Manifest(data, manifest_identity()) as manifest,
        Parsers(GRAMMARS, 1) as parsers,
    ):
        index_project(
            root,
            index,
            manifest,
            parsers=parsers,
            progress=lambda told: print(told.done, flush=True),
        )
    print("done", flush=True)


if __name__ == "__main__":
    main()
