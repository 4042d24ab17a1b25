"""Processes that the tests start: some that add, some that fold until they are killed, some that
only look."""

import json
import sys
import time
from pathlib import Path

from hotset.index.local import LocalIndex
from hotset.nouns.search import Entry, EntryId, Query, Sort
from hotset.testing.fakes import HashingEmbedder

EMBEDDER = HashingEmbedder(64)


def entry(writer, number):
    """What a writer adds as its n-th entry: the same for whoever asks."""
    id = f"{writer}-{number}"
    return Entry(
        EntryId(id),
        id,
        Sort.PAGE,
        f"note {number} of {writer} says word{writer}x{number}",
        session=writer,
        turn=number,
    )


def adds(folder, writer, many):
    """Adds one by one; after each, searches for it."""
    missed = []
    with LocalIndex(Path(folder), EMBEDDER) as index:
        for number in range(int(many)):
            new = entry(writer, number)
            index.add([new])
            hits = index.search(Query(f"word{writer}x{number}", deadline=30.0)).hits
            if not hits or hits[0].entry != new:
                missed.append(number)
    print(json.dumps({"missed": missed}))


def folds(folder):
    """Folds without end; says when it holds the role."""
    with LocalIndex(Path(folder), EMBEDDER, folds=False) as index:
        while not index.fold():
            time.sleep(0.005)
        print("holds", flush=True)
        while True:
            index.fold()


if __name__ == "__main__":
    {"adds": adds, "folds": folds}[sys.argv[1]](*sys.argv[2:])
