"""A value under one note: what one process writes, another reads, and no change is lost."""

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from msgspec.structs import replace

from hotset.nouns.deposit import NoteWritten
from hotset.nouns.note import Space
from hotset.store.connection import Tuning
from hotset.store.sqlite import SqliteStore
from hotset.store.stored_value import StoredValue

COUNTS = Space("counts")


class Count(msgspec.Struct, frozen=True):
    number: int = 0


@pytest.fixture
def store(tmp_path):
    with SqliteStore.open(tmp_path / "s", Tuning(ballast_bytes=0)) as store:
        yield store


def test_a_value_is_its_default_until_it_is_written_and_then_what_was_written_last(store):
    here, there = (StoredValue(COUNTS, Count, lambda: store) for _ in range(2))
    assert here.read() == Count()
    there.write(Count(1), 1.0)
    assert here.read() == Count(1)
    here.write(Count(2), 2.0)
    assert there.read() == here.read() == Count(2)


def test_no_change_is_lost_where_several_change_it_at_once(store):
    values = [StoredValue(COUNTS, Count, lambda: store) for _ in range(4)]

    def count_up(value):
        for _ in range(10):
            value.change(lambda count: replace(count, number=count.number + 1), 1.0)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(count_up, values))
    assert values[0].read() == Count(40)


def test_two_keys_of_a_space_are_two_values(store):
    one, two = (StoredValue(COUNTS, Count, lambda: store, key=key) for key in ("one", "two"))
    one.write(Count(1), 1.0)
    assert (one.read(), two.read()) == (Count(1), Count())


def test_a_file_of_an_earlier_version_becomes_the_note_and_is_removed(store, tmp_path):
    file = tmp_path / "old.json"
    file.write_text('{"number": 7}')
    value = StoredValue(COUNTS, Count, lambda: store, old_file=file)
    assert value.read() == Count(7)
    assert not file.exists()
    file.write_text('{"number": 8}')
    value.write(Count(9), 1.0)
    assert value.read() == Count(9)


@pytest.mark.parametrize("junk", [b"", b"{", b"null", b'{"number": "x"}', b"\xff"])
def test_what_cannot_be_read_is_the_default_and_a_file_like_that_is_left_alone(
    store, tmp_path, junk
):
    file = tmp_path / "old.json"
    file.write_bytes(junk)
    value = StoredValue(COUNTS, Count, lambda: store, old_file=file)
    assert value.read() == Count()
    assert file.read_bytes() == junk
    store.keep(NoteWritten(COUNTS, "", junk, 1.0)).result()
    assert value.read() == Count()
    assert value.change(lambda count: replace(count, number=count.number + 1), 2.0) == Count(1)
