"""What speaks of the same as a new memory is found whether it is indexed already or was kept a
moment ago."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from tests.sources.memory.consolidate.making import fact, keep

from hotset.errors import StoreFailed
from hotset.index import open_index
from hotset.index.port import Index
from hotset.nouns.search import Hits
from hotset.sources.memory.memory_writer import PendingSessions, follow_memories, near
from hotset.store.sqlite import SqliteStore
from hotset.testing import RamStore
from hotset.testing.store_talk import StoreTalk


def test_what_was_kept_after_the_index_last_looked_is_near_too(tmp_path: Path):
    with SqliteStore.open(tmp_path) as store, contextlib.closing(open_index(tmp_path)) as index:
        indexed = fact("The staging database listens on port 5432.", session="s1")
        keep(store, indexed)
        follow_memories(store, index, time.monotonic() + 120)
        late = fact("The staging database listens on port 6543.", session="s2")
        keep(store, late)
        new = fact("The staging database listens on port 7654.", session="s3")
        assert {each.id for each in near(store, index, new)} == {indexed.id, late.id}


class Broken:
    """An index that can say nothing."""

    def watermark(self, name: str) -> int:
        raise StoreFailed(f"{name} is gone")

    def search(self, query: object) -> Hits:
        return Hits((), frozenset({"words", "meaning"}))


def test_an_index_that_is_broken_keeps_nobody_from_remembering():
    store = RamStore()
    keep(store, fact("The staging database listens on port 5432."))
    broken: Index = Broken()  # type: ignore[assignment]
    assert (
        near(store, broken, fact("The staging database listens on port 7654.", session="s3")) == []
    )


def test_sessions_of_another_store_in_the_same_place_wait_too(tmp_path: Path):
    first, second = RamStore(), RamStore()
    talk = StoreTalk(first, time=100.0)
    for _ in range(3):
        talk.hears(talk.asks("Please implement the export of invoices.").turn, "Done.")
    pending = PendingSessions(lambda: first, tmp_path / "none")
    pending.look(first)
    (old,) = pending.ready(1e12)
    pending.done(old, pending.last_page_time(old))
    pending.save(300.0)

    StoreTalk(second, time=200.0).asks("Please implement the import of invoices.")
    again = PendingSessions(lambda: first, tmp_path / "none")
    again.look(second)
    assert again.many == 1
