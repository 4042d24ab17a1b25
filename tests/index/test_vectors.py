"""Vectors: what is near is found, whatever was written before, and what is no number is refused."""

import numpy as np
import pytest

from hotset.errors import BadInput
from hotset.index.filters import Numbers
from hotset.index.generations import FilesDamaged
from hotset.index.vectors import _BLOCK, _SIGNED_FROM, Vectors, VectorsWriter

_ANY = Numbers()


def _random(many, size, seed=1):
    """Vectors as texts have them: one direction in common, and some that come in groups."""
    rng = np.random.default_rng(seed)
    groups = rng.standard_normal((50, size))
    made = 1.5 + 2 * groups[rng.integers(0, 50, many)] + rng.standard_normal((many, size))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def _columns(first, many):
    numbers = list(range(first, first + many))
    fixed = {name: [number % 3 for number in numbers] for name in ("sort", "kind", "session", "agent", "path")}
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
    assert near[0].cosine == pytest.approx(1.0, abs=0.02)
    assert all(each.cosine == pytest.approx(exact[each.doc], abs=0.02) for each in near)


def test_among_many_vectors_nine_of_the_nearest_ten_are_found(tmp_path):
    many = _BLOCK + 1000
    vectors = _random(many, 384)
    _written(tmp_path, vectors, 10, _SIGNED_FROM - 11, 2, 3000).close()
    searched = Vectors(tmp_path, 384, many)
    queries = vectors[:40] + 0.03 * np.random.default_rng(2).standard_normal((40, 384)).astype(np.float32)
    right = 0
    for query in queries:
        exact = set(np.argsort(-(vectors @ query))[:10].tolist())
        right += len(exact & set(_docs(searched.nearest(query, _ANY, frozenset(), 10, 1000))))
    assert right >= 0.9 * 10 * len(queries)


def test_filters_and_removed_rows_hold_also_where_signs_are_looked_at(tmp_path):
    many = _BLOCK + 7000
    vectors = _random(many, 64)
    writer = _written(tmp_path, vectors, _SIGNED_FROM)
    forgotten = _docs(Vectors(tmp_path, 64, many).nearest(vectors[3], _ANY, frozenset(), 5, 500))
    writer.forget([*forgotten, many + 50])
    searched = Vectors(tmp_path, 64, many)
    hidden = frozenset(_docs(searched.nearest(vectors[3], _ANY, frozenset(), 5, 500)))
    assert not hidden & set(forgotten)
    only = Numbers(kinds=frozenset({0, 2}), since=100.0, until=float(many - 100), turns=(50, many))
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
    assert searched.nearest(other[5], _ANY, frozenset(), 1, 500)[0].cosine > 0.98


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
    assert [(each.doc, round(each.cosine, 2)) for each in near] == [(1, 1.0), (0, 0.0)]


def test_files_that_are_too_short_are_told(tmp_path):
    _written(tmp_path, _random(20, 64)).close()
    (tmp_path / "time").write_bytes(b"")
    with pytest.raises(FilesDamaged):
        Vectors(tmp_path, 64, 20)
    with pytest.raises(FilesDamaged):
        VectorsWriter(tmp_path, 64, 20)
