"""Another process that uses tools: `python life_process.py FOLDER TOOL TIMES`. Says how many uses
are written, after each."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

from hotset.nouns.tool import OriginKind
from hotset.sources.tools.registry import Registry


def main() -> None:
    folder, tool, times = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    with closing(Registry(folder)) as registry:
        for _ in range(times):
            registry.used(tool, OriginKind.CREATED, 0.001)
            registry.flush()
            print(registry.lives()[tool].calls, flush=True)


if __name__ == "__main__":
    main()
