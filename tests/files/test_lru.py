"""The bounded map: against a plain model, and from several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, strategies as st
from msgspec import Raw

from hotset.files.lru import Lru, estimate_bytes

COUNT, WEIGHT = 4, 10
KEYS = st.integers(0, 7)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.integers(0, WEIGHT + 2)),
        st.tuples(st.just("get"), KEYS, st.just(0)),
        st.tuples(st.just("pop"), KEYS, st.just(0)),
        st.tuples(st.just("clear"), st.just(0), st.just(0)),
    )
)


class Model:
    """The same map as a list of (key, value, weight), the least recently used first."""

    def __init__(self):
        self.entries = []

    def put(self, key, value, weight):
        self.pop(key)
        dropped = []
        if weight <= WEIGHT:
            self.entries.append((key, value, weight))
            while len(self.entries) > COUNT or sum(each[2] for each in self.entries) > WEIGHT:
                dropped.append(self.entries.pop(0)[:2])
        return dropped

    def get(self, key):
        found = next((each for each in self.entries if each[0] == key), None)
        if found is not None:
            self.entries.remove(found)
            self.entries.append(found)
        return found and found[1]

    def pop(self, key):
        found = next((each for each in self.entries if each[0] == key), None)
        if found is not None:
            self.entries.remove(found)
        return found and found[1]

    def clear(self):
        self.entries = []


@given(steps=STEPS)
def test_whatever_is_done_it_holds_what_a_plain_list_would(steps):
    lru, model = Lru("model", count=COUNT, weight=WEIGHT), Model()
    for number, (what, key, weight) in enumerate(steps):
        match what:
            case "put":
                assert lru.put(key, f"v{number}", weight) == model.put(key, f"v{number}", weight)
            case "get":
                assert lru.get(key) == model.get(key)
            case "pop":
                assert lru.pop(key) == model.pop(key)
            case "clear":
                lru.clear(), model.clear()
        assert lru.items() == [each[:2] for each in model.entries]
        assert lru.weight == sum(each[2] for each in model.entries) <= WEIGHT
        assert len(lru) == len(model.entries) <= COUNT
        assert all(
            (key in lru) == any(key == each[0] for each in model.entries) for key in range(8)
        )


def test_many_are_read_at_once_and_count_as_used():
    lru = Lru("test", count=3)
    for key in "abc":
        lru.put(key, key.upper())
    assert lru.get_many("axb") == {"a": "A", "b": "B"}
    assert lru.put("d", "D") == [("c", "C")]


def test_a_value_is_made_once_and_made_again_after_it_was_dropped():
    lru, made = Lru("test", count=2), []

    def get(key):
        return lru.get_or_make(key, lambda: made.append(key) or key)

    assert [get(key) for key in "aabbca"] == [*"aabbca"]
    assert made == [*"abca"]


def test_a_value_of_none_is_made_once_too():
    lru, made = Lru("test", count=2), []
    for _ in range(3):
        assert lru.get_or_make("a", lambda: made.append("a")) is None
    assert made == ["a"]


def test_what_raises_is_not_kept():
    lru = Lru("test", count=2)
    with pytest.raises(ZeroDivisionError):
        lru.get_or_make("a", lambda: 1 // 0)
    assert lru.get_or_make("a", lambda: 1) == 1


def test_it_stays_whole_when_threads_share_it():
    lru = Lru("test", count=50, weight=500)

    def work(seed):
        for number in range(2000):
            key = (seed * 31 + number * 17) % 120
            lru.put(key, key, key % 20)
            assert lru.get(key) in (key, None)
            lru.get_many(range(key, key + 5))
            if number % 7 == 0:
                lru.pop(key)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert len(lru) <= 50
    assert lru.weight == sum(key % 20 for key, _ in lru.items()) <= 500


def test_a_piece_of_undecoded_json_counts_with_its_bytes():
    assert 1000 <= estimate_bytes({"a": Raw(b"[" + b"1," * 500 + b"1]")}) < 2000
