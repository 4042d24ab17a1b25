"""A process that the tests start: keeps pages of its own, and follows whatever anybody keeps into
the one index."""

import sys
import time
from pathlib import Path

from hotset.index.local import LocalIndex
from hotset.nouns.search import Query
from hotset.sealing import VERSION
from hotset.sources.history import find, follow
from hotset.store.connection import Tuning
from hotset.store.sqlite import SqliteStore
from hotset.testing.fakes import HashingEmbedder
from hotset.testing.store_talk import StoreTalk

EMBEDDER = HashingEmbedder(64)
TUNING = Tuning(ballast_bytes=4096)


def work(folder, name, many):
    """Says what it kept and could not find at once."""
    with (
        SqliteStore.open(folder, TUNING) as store,
        LocalIndex(folder / "index", EMBEDDER, sealing=VERSION) as index,
    ):
        for number in range(many):
            StoreTalk(store, key=f"{name}{number}").turn(
                f"question {number} of {name}", f"answer {name}x{number}"
            )
            follow(store, index, time.monotonic() + 60)
            if not find(Query(f'"{name}x{number}"', deadline=30.0), store, index).best:
                print("missed", number, flush=True)
        print("done", flush=True)


if __name__ == "__main__":
    work(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
