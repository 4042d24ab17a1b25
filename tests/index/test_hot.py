"""Hot entries are read once more while nobody works, and found by what they mean rather than by
what they say."""

import pytest
from tests.embedders import DOCUMENTS, Knowing
from tests.waiting import wait_until

from hotset.index.local import LocalIndex, Rhythm
from hotset.nouns.search import Entry, EntryId, Filter, Query, Sort
from hotset.testing.fakes import HashingEmbedder

HOT, COLD = EntryId("hot"), EntryId("cold")
_ENTRIES = [
    Entry(HOT, "hot", Sort.MEMORY, "the automobile"),
    Entry(COLD, "cold", Sort.MEMORY, "the automobile, once more"),
    *(Entry(EntryId(f"e{n}"), f"e{n}", Sort.PAGE, f"something about thing{n}x") for n in range(20)),
]
ASKED = Query("car", deadline=30.0)


@pytest.fixture
def knowing():
    return Knowing("the automobile", means="car")


@pytest.fixture
def index(tmp_path, knowing):
    with LocalIndex(tmp_path / "index", DOCUMENTS, knowing, folds=False) as index:
        index.add(_ENTRIES)
        index.fold()
        yield index


def _meaning(index, query=ASKED):
    return {hit.entry.id: hit.by_meaning for hit in index.search(query).hits}


def _read_all(index):
    return sum(1 for _ in iter(index.read_closely, False))


def test_only_what_is_hot_is_read_and_only_once(index, knowing):
    assert _read_all(index) == 0
    for _ in range(3):
        index.touch([HOT])
    assert _read_all(index) == 1
    assert _read_all(index) == 0
    assert knowing.read == ["the automobile"]


def test_an_entry_that_was_read_closely_is_found_by_its_meaning(index):
    before = _meaning(index)
    index.touch([HOT], turn=9)
    _read_all(index)
    index.add(
        [Entry(EntryId("new"), "new", Sort.PAGE, "a new one")]
    )  # or the answer of a moment ago would be given again
    after = _meaning(index)
    assert after[HOT] == max(after.values()) > max(0.5, before.get(HOT, 0.0))
    assert after.get(COLD) == before.get(COLD)


def test_a_filter_that_it_does_not_fit_keeps_it_out(index):
    index.touch([HOT], turn=9)
    _read_all(index)
    assert HOT not in _meaning(
        index, Query("car", Filter(sorts=frozenset({Sort.PAGE})), deadline=30.0)
    )


def test_hot_entries_that_do_not_fit_a_filter_take_nobody_s_place(index):
    hot = [
        Entry(EntryId(f"hot{n}"), f"hot{n}", Sort.MEMORY, f"the automobile {n}") for n in range(60)
    ]
    index.add(hot)
    index.touch([entry.id for entry in hot], turn=9)
    assert _read_all(index) == 60
    found = _meaning(
        index, Query("car thing3x", Filter(sorts=frozenset({Sort.PAGE})), most=20, deadline=30.0)
    )
    assert len(found) == 20
    assert None not in found.values()


@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_what_was_removed_or_changed_is_no_longer_found_by_what_was_read(index, change):
    index.touch([HOT], turn=9)
    _read_all(index)
    if change == "removed":
        index.remove(["hot"])
        assert HOT not in _meaning(index)
    else:
        index.add([Entry(HOT, "hot", Sort.MEMORY, "a house")])
        assert _meaning(index).get(HOT, 0.0) < 0.5


def test_what_is_hot_no_longer_is_forgotten(index):
    index.touch([HOT], turn=9)
    _read_all(index)
    index.touch([COLD], turn=20)
    assert _read_all(index) == 1
    index.add([Entry(EntryId("new"), "new", Sort.PAGE, "a new one")])
    assert _meaning(index).get(HOT, 0.0) < 0.5
    index.touch([HOT], turn=20)
    assert _read_all(index) == 1


def test_a_model_that_fails_is_not_asked_again(tmp_path):
    failing = _Failing(64)
    with LocalIndex(tmp_path / "index", DOCUMENTS, failing, folds=False) as index:
        index.add(_ENTRIES)
        index.touch([HOT, COLD], turn=9)
        assert [index.read_closely() for _ in range(3)] == [False] * 3
    assert failing.asked == 1


@pytest.mark.parametrize("fails", [False, True])
def test_the_thread_that_folds_reads_while_nobody_works_and_outlives_a_model_that_fails(
    tmp_path, knowing, fails
):
    asking = _Failing(64) if fails else knowing
    with LocalIndex(tmp_path / "index", DOCUMENTS, asking, rhythm=Rhythm(0.01, 0.0)) as index:
        index.add(_ENTRIES)
        index.touch([HOT], turn=9)
        wait_until(lambda: index.troubles() if fails else knowing.read)
        index.add([Entry(EntryId("new"), "new", Sort.PAGE, "a new one")])
        wait_until(lambda: index.state().lag == 0)
        assert index.troubles() == (
            ("hot entries cannot be read closely (RuntimeError)",) if fails else ()
        )


def test_nothing_is_read_while_somebody_works(tmp_path, knowing):
    with LocalIndex(tmp_path / "index", DOCUMENTS, knowing, rhythm=Rhythm(0.001, 3600.0)) as index:
        index.add(_ENTRIES)
        index.touch([HOT], turn=9)
        wait_until(lambda: index.state().lag == 0)
        for n in range(20):
            index.add([Entry(EntryId(f"n{n}"), f"n{n}", Sort.PAGE, "a new one")])
            wait_until(lambda: index.state().lag == 0)
    assert knowing.read == []


class _Failing(HashingEmbedder):
    asked = 0

    def embed(self, texts):
        self.asked += 1
        raise RuntimeError(texts)
