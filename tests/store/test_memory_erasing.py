"""What is erased leaves the disk: its words stand in no file of the store any more."""

import random
import shutil
import time
from dataclasses import replace

import pytest
from tests.campaign import sample

from hotset.nouns.deposit import Erased, Remembered
from hotset.nouns.memory import Fact, MemoryKind, Procedure
from hotset.store.connection import Tuning
from hotset.store.repair import repair
from hotset.store.sqlite import SqliteStore
from hotset.testing.store_memory_contract import fact, lives
from hotset.testing.store_talk import kept

_TUNING = Tuning(ballast_bytes=0)


def _words(folder):
    return b"".join(path.read_bytes() for path in folder.iterdir())


def _marked(rng, number, bytes=60):
    """A memory whose words stand in the file as they are, unless they are many, and a mark by which
    they are found there."""
    mark = f"mark{rng.randrange(10**9):09}x{number}y"
    noise = rng.randbytes(bytes).hex()
    return fact(
        f"{rng.randrange(10**9)}", title=mark, text=f"{mark} {noise} {mark}", detail=Fact(mark)
    ), mark.encode()


def _traces(store, memory, mark):
    """What each version of a memory looks like in the file: its mark, or a piece of what it was
    compressed to."""
    with store._reading() as connection:
        bodies = connection.execute("SELECT body FROM memory WHERE id = ?", (memory.id,)).fetchall()
    return [
        mark if mark in body else body[at : at + 16]
        for (body,) in bodies
        for at in (len(body) // 3, len(body) // 2)
    ]


@pytest.mark.parametrize("seed", range(sample(2, of=4)))
@pytest.mark.slow
def test_no_file_holds_the_words_of_what_was_erased(tmp_path, seed):
    """In any order: a file in which rows were moved about must not keep copies of them."""
    rng = random.Random(seed)
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        made = [_marked(rng, number, rng.choice((5, 60, 400, 3000))) for number in range(300)]
        for memory, _ in made:
            store.keep(Remembered((memory,)))
            if rng.random() < 0.3:
                store.keep(Remembered((replace(memory, version=2, why="again"),)))
        kept(store, Remembered())
        rng.shuffle(made)
        gone = []
        while made:
            some, made = made[:10], made[10:]
            if rng.random() < 0.5:
                some.append(_marked(rng, len(made)))
                kept(store, Remembered((some[-1][0],)))
            traces = [trace for each in some for trace in _traces(store, *each)]
            there = _words(tmp_path / "s")
            assert all(trace in there for trace in traces)
            for memory, _ in some:
                kept(store, Erased((memory.id,), 1.0))
            gone += traces
            left = _words(tmp_path / "s")
            assert [trace for trace in gone if trace in left] == []
        assert not list(store.verify())


def test_words_leave_as_soon_as_nobody_reads_an_older_state(tmp_path):
    memory, mark = _marked(random.Random(1), 1)
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        lives(store)
        kept(store, Remembered((memory,)))
        reading = store.dump()
        next(reading)
        kept(store, Erased((memory.id,), 1.0))
        assert mark in _words(tmp_path / "s")  # or the reader would not be what is in the way
        assert memory in list(reading)
        ends = time.monotonic() + 60
        while mark in _words(tmp_path / "s") and time.monotonic() < ends:
            time.sleep(0.02)
        assert mark not in _words(tmp_path / "s")
        assert not list(store.verify())


def test_a_listing_that_dawdles_keeps_no_erased_words_on_the_disk(tmp_path):
    memory, mark = _marked(random.Random(2), 1)
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        kept(store, Remembered((*(fact(f"{number}") for number in range(600)), memory)))
        listing = store.memories()
        next(listing)
        kept(store, Erased((memory.id,), 1.0))
        assert mark not in _words(tmp_path / "s")
        assert len(list(listing)) == 599


def test_a_process_that_dies_before_the_wal_is_cut_off_brings_nothing_back(tmp_path):
    memory, mark = _marked(random.Random(3), 1)
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        kept(store, Remembered((memory, fact("stays"))))
        reading = store.dump()
        next(reading)
        kept(store, Erased((memory.id,), 1.0))
        died = tmp_path / "died"
        died.mkdir(mode=0o700)
        for name in ("store.db", "store.db-wal"):
            shutil.copy(tmp_path / "s" / name, died / name)
        reading.close()
    assert mark in _words(died)
    with SqliteStore.open(died, _TUNING) as store:
        assert [each.title for each in store.memories()] == ["stays"]
    assert mark not in _words(died)


def test_a_repair_brings_nothing_back_and_counts_no_loss(tmp_path):
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        lives(store)
        kept(store, Remembered((fact("a"), fact("last"))))
        number = store.memories_after(0, 100)[-1][0]
        gone = [memory.id for memory in store.memories()][1:4]
        kept(store, Erased((*gone, fact("last").id), 1.0))
        rows = list(store.dump())
    content = bytearray((tmp_path / "s" / "store.db").read_bytes())
    content[:4096] = bytes(4096)
    (tmp_path / "s" / "store.db").write_bytes(content)
    report = repair(tmp_path / "s")
    assert report.whole
    assert report.saved["memory"] == sum(type(row).__name__ == "MemoryRecord" for row in rows)
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        assert list(store.dump()) == rows
        kept(store, Remembered((fact("new"),)))
        assert [memory.title for _, memory in store.memories_after(number, 9)] == ["new"]


def test_an_id_that_was_erased_can_be_of_another_kind_later(tmp_path):
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        kept(store, Remembered((fact("a"),)))
        kept(store, Erased((fact("a").id,), 1.0))
        later = fact("a", kind=MemoryKind.PROCEDURE, detail=Procedure("when"))
        kept(store, Remembered((later,)))
        assert store.memory(later.id) == later
