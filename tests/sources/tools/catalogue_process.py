"""A process that the tests start: puts servers of its own into a catalogue, and approves, denies
and changes what others put."""

import sys
from contextlib import closing
from pathlib import Path

from shop import server, tool

from hotset.sources.tools.catalogue import Catalogue
from hotset.store.sqlite import SqliteStore


def work(folder, name, many):
    with closing(SqliteStore.open(folder / "store")) as store:
        change(Catalogue(folder, lambda: store), name, many)


def change(catalogue, name, many):
    for number in range(many):
        own = server(f"{name}{number}")
        catalogue.put(own, [tool("one", own.name), tool("two", own.name)])
        catalogue.put(own, [tool("one", own.name, "Something else."), tool("two", own.name)])
        catalogue.approve(f"{own.name}__one")
        catalogue.approve(f"shared__{name}{number}")
        catalogue.deny(f"{own.name}__two")


if __name__ == "__main__":
    work(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
