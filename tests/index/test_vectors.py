"""Vectors: what is near is found, whatever was written before, and what is no number is refused."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hotset.errors import BadInput
from hotset.index.database import FilesDamaged
from hotset.index.filters import NumberFilter
from hotset.index.vectors import _SIGNED_FROM, Vectors, VectorsWriter

_ANY = NumberFilter()
_MANY = 2 * _SIGNED_FROM


def _random(many, size, seed=1):
    """Vectors as texts have them: one direction in common, and some that come in groups."""
    rng = np.random.default_rng(seed)
    groups = rng.standard_normal((50, size))
    made = 1.5 + 2 * groups[rng.integers(0, 50, many)] + rng.standard_normal((many, size))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def _columns(first, many):
    numbers = list(range(first, first + many))
    fixed = {
        name: [number % 3 for number in numbers]
        for name in ("sort", "kind", "session", "agent", "path")
    }
    return {"doc": numbers, "turn": numbers, "time": [float(number) for number in numbers], **fixed}


def _written(folder, vectors, *portions):
    writer = VectorsWriter(folder, vectors.shape[1], 0)
    first = 0
    for portion in (*portions, len(vectors) - sum(portions)):
        writer.append(vectors[first : first + portion], _columns(first, portion))
        first += portion
    writer.sync()
    return writer


def _docs(near):
    return [each.doc for each in near]


@pytest.mark.parametrize("size", [384, 100, 1])
def test_few_vectors_are_searched_one_by_one(tmp_path, size):
    vectors = _random(300, size)
    _written(tmp_path, vectors, 1, 99).close()
    near = Vectors(tmp_path, size, 300).nearest(vectors[7], _ANY, frozenset(), 5, 10)
    exact = vectors @ vectors[7]
    assert near[0].score == pytest.approx(1.0, abs=0.02)
    assert all(each.score == pytest.approx(exact[each.doc], abs=0.02) for each in near)


def _right(folder, vectors, candidates):
    """How many of the nearest ten of forty questions are found."""
    size = vectors.shape[1]
    searched = Vectors(folder, size, len(vectors))
    queries = vectors[:40] + 0.6 / size**0.5 * np.random.default_rng(2).standard_normal(
        (40, size)
    ).astype(np.float32)
    exact = np.argsort(-(queries @ vectors.T), axis=1)[:, :10].tolist()
    found = (_docs(searched.nearest(query, _ANY, frozenset(), 10, candidates)) for query in queries)
    return sum(len(set(right) & set(docs)) for right, docs in zip(exact, found, strict=True))


@pytest.mark.parametrize("size", [100, 384, 768])
def test_among_many_vectors_nine_of_the_nearest_ten_are_found(tmp_path, size):
    vectors = _random(_MANY + 1000, size)
    _written(tmp_path, vectors, 10, _SIGNED_FROM - 11, 2, 3000).close()
    assert _right(tmp_path, vectors, 1000) >= 0.9 * 400


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Rows of three blocks, some of them empty, with a vector for each."""
    folder = tmp_path_factory.mktemp("vectors")
    vectors = _random(2 * _MANY + 3000, 64)
    with pytest.MonkeyPatch.context() as patched:
        _shorten_blocks(patched)
        writer = _written(folder, vectors, 5, _SIGNED_FROM, 1, 2, 3999)
        writer.forget(range(0, len(vectors), 11))
        writer.close()
        yield Vectors(folder, 64, len(vectors)), vectors


def _shorten_blocks(patched):
    for name, rows in (("", 1), ("_WORDS", 64), ("_BYTES", 8)):
        patched.setattr(f"hotset.index.vectors._BLOCK{name}", _MANY // rows)


def test_signs_are_right_however_rows_came(tmp_path, monkeypatch):
    _shorten_blocks(monkeypatch)
    vectors = _random(2 * _MANY + 77, 64)
    _written(tmp_path, vectors, 9, _SIGNED_FROM, 1, 5, 8, 3000, 1077, 3, 4093).close()
    signs = np.fromfile(tmp_path / "signs", np.uint8)
    rows = (
        np.unpackbits(signs, bitorder="little")
        .reshape(3, 64, _MANY)
        .transpose(0, 2, 1)
        .reshape(-1, 64)
    )
    right = vectors > np.fromfile(tmp_path / "middle", np.float32)
    first = 9 + _SIGNED_FROM
    assert (rows[:first] == right[:first]).mean() > 0.99  # made of bytes, which are rounded
    assert (rows[first : len(vectors)] == right[first:]).all()
    assert not rows[len(vectors) :].any()


_FILTERS = st.builds(
    NumberFilter,
    kinds=st.none() | st.sets(st.integers(0, 2), min_size=1).map(frozenset),
    turns=st.none() | st.tuples(st.integers(-5, 20_000), st.integers(-5, 20_000)),
    since=st.none() | st.floats(-5, 20_000),
    until=st.none() | st.floats(-5, 20_000),
)


@given(_FILTERS, st.integers(0, 2 * _MANY + 2999), st.integers(0, 4), st.integers(10, 900))
def test_a_row_that_may_be_shown_is_nearest_to_itself_and_no_other_row_is_shown(
    shared, only, asked, hides, candidates
):
    searched, vectors = shared
    near = _docs(searched.nearest(vectors[asked], only, frozenset(), 5, candidates))
    hidden = frozenset(near[1 : 1 + hides])

    def fits(doc):
        return (
            doc % 11
            and doc not in hidden
            and (only.kinds is None or doc % 3 in only.kinds)
            and (only.turns is None or only.turns[0] <= doc <= only.turns[1])
            and (only.since is None or doc >= only.since)
            and (only.until is None or doc < only.until)
        )

    for _ in range(2):  # the second time the filter is known
        found = _docs(searched.nearest(vectors[asked], only, hidden, 5, candidates))
        assert all(fits(doc) for doc in found)
        assert found[:1] == [asked] or not fits(asked)
        assert len(found) == min(5, sum(1 for doc in range(len(vectors)) if fits(doc)))


def test_what_was_forgotten_takes_no_place_among_the_candidates(tmp_path):
    vectors = _random(_MANY + 1000, 64)
    writer = _written(tmp_path, vectors)
    order = np.argsort(-(vectors @ vectors[0])).tolist()
    writer.forget(order[:400])
    writer.close()
    found = _docs(
        Vectors(tmp_path, 64, len(vectors)).nearest(vectors[0], _ANY, frozenset(), 10, 100)
    )
    assert len(found) == 10
    assert not set(found) & set(order[:400])


def test_a_row_that_is_forgotten_is_not_shown_by_a_filter_that_was_asked_before(tmp_path):
    many = _MANY + 1000
    vectors = _random(many, 64)
    writer = _written(tmp_path, vectors)
    searched = Vectors(tmp_path, 64, many)
    filters = (_ANY, NumberFilter(kinds=frozenset({0, 1})), NumberFilter(since=3.0, until=60.0))
    assert all(
        _docs(searched.nearest(vectors[3], only, frozenset(), 1, 100)) == [3] for only in filters
    )
    writer.forget([3])
    writer.close()
    assert all(
        _docs(searched.nearest(vectors[3], only, frozenset(), 1, 100)) != [3] for only in filters
    )


def test_filters_and_removed_rows_hold_also_where_signs_are_looked_at(tmp_path):
    many = _MANY + 7000
    vectors = _random(many, 64)
    writer = _written(tmp_path, vectors, _SIGNED_FROM)
    forgotten = _docs(Vectors(tmp_path, 64, many).nearest(vectors[3], _ANY, frozenset(), 5, 500))
    writer.forget([*forgotten, many + 50])
    searched = Vectors(tmp_path, 64, many)
    hidden = frozenset(_docs(searched.nearest(vectors[3], _ANY, frozenset(), 5, 500)))
    assert not hidden & set(forgotten)
    only = NumberFilter(
        kinds=frozenset({0, 2}), since=100.0, until=float(many - 100), turns=(50, many)
    )
    found = _docs(searched.nearest(vectors[3], only, hidden, 50, 500))
    assert len(found) == 50
    assert all(doc % 3 != 1 and 100 <= doc < many - 100 for doc in found)
    assert not (hidden | set(forgotten)) & set(found)
    assert writer.alive() == many - 5
    writer.close()


def test_rows_beyond_those_that_count_are_written_over(tmp_path):
    vectors = _random(_SIGNED_FROM + 100, 64)
    _written(tmp_path, vectors, 50).close()
    again = VectorsWriter(tmp_path, 64, 50)
    other = _random(_SIGNED_FROM, 64, seed=9)
    again.append(other, _columns(50, len(other)))
    again.close()
    searched = Vectors(tmp_path, 64, 50 + len(other))
    assert searched.nearest(other[5], _ANY, frozenset(), 1, 500)[0].doc == 55
    assert searched.nearest(other[5], _ANY, frozenset(), 1, 500)[0].score > 0.98


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused(tmp_path, wrong):
    writer = VectorsWriter(tmp_path, 4, 0)
    with pytest.raises(BadInput, match="not a number"):
        writer.append(np.array([[0, 1, wrong, 0]], np.float32), _columns(0, 1))
    with pytest.raises(BadInput, match="do not fit"):
        writer.append(np.ones((1, 5), np.float32), _columns(0, 1))
    assert writer.rows == 0
    writer.close()


def test_an_empty_vector_is_near_to_nothing(tmp_path):
    vectors = np.zeros((2, 8), np.float32)
    vectors[1, 0] = 1
    _written(tmp_path, vectors).close()
    near = Vectors(tmp_path, 8, 2).nearest(vectors[1], _ANY, frozenset(), 5, 10)
    assert [(each.doc, round(each.score, 2)) for each in near] == [(1, 1.0), (0, 0.0)]


def test_files_that_are_too_short_are_told(tmp_path):
    _written(tmp_path, _random(20, 64)).close()
    (tmp_path / "time").write_bytes(b"")
    with pytest.raises(FilesDamaged):
        Vectors(tmp_path, 64, 20)
    with pytest.raises(FilesDamaged):
        VectorsWriter(tmp_path, 64, 20)
