"""Sums of bits are what one gets by adding, and the least of them are the least."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hotset.index.vectors import bit_sums, clear_bits, least_sums, pack_bits, unpack_bits

_SEEDS = st.integers(0, 2**32 - 1)


def _numbers(planes):
    return sum(
        np.unpackbits(plane.view(np.uint8), bitorder="little").astype(int) << bit
        for bit, plane in enumerate(planes)
    )


@given(_SEEDS, st.integers(1, 7), st.integers(1, 300), st.floats(0, 1))
def test_sums_are_what_adding_gives(seed, bits, rows, share):
    given_bits = np.random.default_rng(seed).random(((1 << bits) - 1, rows)) < share
    planes = bit_sums(np.stack([pack_bits(each) for each in given_bits]))
    assert len(planes) == bits
    assert _numbers(planes)[:rows].tolist() == given_bits.sum(axis=0).tolist()


@given(_SEEDS, st.integers(1, 1000), st.integers(1, 1200), st.floats(0, 1))
def test_the_least_are_as_many_as_wanted_and_all_that_are_like_the_last(seed, rows, many, share):
    rng = np.random.default_rng(seed)
    numbers, among = rng.binomial(31, 0.5, rows), rng.random(rows) < share
    planes = [pack_bits((numbers >> bit) & 1 == 1) for bit in range(5)]
    found = unpack_bits(least_sums(planes, pack_bits(among), many))
    wanted = np.sort(numbers[among])[:many]
    right = np.flatnonzero(among & (numbers <= wanted[-1])) if len(wanted) else []
    assert found.tolist() == list(right)


@pytest.mark.parametrize("last", range(16))
def test_where_as_many_as_wanted_have_sums_up_to_one_no_other_is_among_them(last):
    numbers = np.random.default_rng(1).integers(0, 16, 500)
    planes = [pack_bits((numbers >> bit) & 1 == 1) for bit in range(4)]
    right = np.flatnonzero(numbers <= last)
    assert (
        unpack_bits(least_sums(planes, pack_bits(np.ones(500, np.bool_)), len(right))).tolist()
        == right.tolist()
    )


@given(st.lists(st.booleans(), min_size=1, max_size=300), st.data())
def test_rows_come_back_as_they_were_put_in(rows, data):
    assert unpack_bits(pack_bits(np.array(rows))).tolist() == [
        row for row, is_set in enumerate(rows) if is_set
    ]
    gone = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1))))
    left = unpack_bits(clear_bits(pack_bits(np.array(rows)), np.array(gone, np.intp)))
    assert left.tolist() == [row for row, is_set in enumerate(rows) if is_set and row not in gone]


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 128])
def test_beyond_the_last_row_there_are_none(rows):
    assert unpack_bits(pack_bits(np.ones(rows, np.bool_))).tolist() == list(range(rows))
