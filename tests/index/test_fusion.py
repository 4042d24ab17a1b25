"""One order from two signals, what is done when a signal does not answer, and what is done in a
hurry."""

import math

import pytest
from hypothesis import given, strategies as st

from hotset.files.breaker import Breaker
from hotset.index.fusion import FusedHit, RankedHit, by_file, fuse
from hotset.index.hybrid_search import SearchTier, tier_for
from hotset.index.local import LocalIndex
from hotset.nouns.search import Entry, EntryId, Query, Sort
from hotset.testing import Clock
from hotset.testing.fakes import HashingEmbedder

_SCORES = st.dictionaries(st.integers(0, 20), st.floats(0, 50, allow_nan=False))


def _found(scores, sort=Sort.CODE):
    return [FusedHit(doc, score, sort) for doc, score in scores.items()]


def _fused(words, meaning, sort=Sort.CODE):
    return fuse(_found(words, sort), _found(meaning, sort))


@pytest.mark.row("V2")
@given(_SCORES, _SCORES)
def test_everything_that_either_found_is_in_the_order_once(words, meaning):
    ranked = _fused(words, meaning)
    assert sorted(each.doc for each in ranked) == sorted({*words, *meaning})
    assert all(math.isfinite(each.score) for each in ranked)
    assert [each.score for each in ranked] == sorted((each.score for each in ranked), reverse=True)


@pytest.mark.row("V2")
@given(_SCORES, _SCORES, st.integers(0, 20))
def test_what_both_signals_like_best_is_first(words, meaning, best):
    ranked = _fused({**words, best: 60.0}, {**meaning, best: 60.0})
    assert ranked[0].doc == best


def test_the_one_entry_that_has_the_words_is_before_those_that_are_merely_alike():
    ranked = _fused({3: 7.0}, {1: 0.5, 2: 0.45, 3: 0.4, 4: 0.3})
    assert ranked[0].doc == 3


@pytest.mark.row("V2")
@given(st.dictionaries(st.integers(0, 20), st.integers(0, 50).map(float)))
def test_one_signal_alone_keeps_its_order(scores):
    for ranked in (_fused(scores, {}), _fused({}, scores)):
        assert [each.doc for each in ranked] == sorted(scores, key=lambda doc: (-scores[doc], doc))


def test_words_count_less_for_memories_than_for_code():
    words, meaning = {1: 9.0, 2: 0.0}, {1: 0.0, 2: 0.9}
    assert _fused(words, meaning, Sort.MEMORY)[0].doc == 2
    assert _fused(words, meaning, Sort.CODE)[0].doc == 1


@pytest.mark.row("V11")
def test_a_breaker_opens_after_some_failures_and_lets_one_try_now_and_then():
    clock = Clock()
    breaker = Breaker("test", clock)
    for _ in range(3):
        assert breaker.allows()
        breaker.failed()
    assert breaker.open
    assert not breaker.allows()
    clock.advance(6)
    assert [breaker.allows(), breaker.allows()] == [True, False]
    breaker.failed()
    assert not breaker.allows()
    clock.advance(6)
    assert breaker.allows()
    breaker.succeeded()
    assert not breaker.open
    assert breaker.allows()


@pytest.mark.row("V11")
def test_two_failures_are_chance():
    breaker = Breaker("test")
    for _ in range(10):
        breaker.failed()
        breaker.failed()
        breaker.succeeded()
    assert breaker.allows()


@pytest.mark.row("V10")
def test_the_time_there_is_says_what_is_done():
    assert [tier_for(seconds) for seconds in (0.0, 0.001, 0.01, 0.2, 60.0)] == [
        SearchTier.HOT,
        SearchTier.HOT,
        SearchTier.WARM,
        SearchTier.FULL,
        SearchTier.FULL,
    ]


@pytest.mark.row("V10")
def test_what_was_looked_at_within_five_turns_is_hot_and_cools_down(tmp_path):
    with LocalIndex(tmp_path / "index", None, folds=False) as index:
        index.add(
            Entry(EntryId(f"e{n}"), f"w{n}", Sort.MEMORY, f"a heron by the lake {n}")
            for n in range(3)
        )
        hurried = Query("heron", deadline=0.0005)
        index.touch([EntryId("e0")], turn=3)
        index.touch([EntryId("e1")], turn=6)
        assert {hit.entry.id for hit in index.search(hurried).hits} == {"e0", "e1"}
        index.touch([EntryId("e2")], turn=10)
        assert {hit.entry.id for hit in index.search(hurried).hits} == {"e1", "e2"}


@pytest.mark.row("V10")
def test_an_answer_is_given_again_until_something_changes(tmp_path):
    with LocalIndex(tmp_path / "index", HashingEmbedder(64), folds=False) as index:
        index.add([Entry(EntryId("e"), "w", Sort.MEMORY, "a heron by the lake")])
        thorough, hurried = Query("heron", deadline=30.0), Query("heron", deadline=0.0005)
        assert not index.search(hurried).hits
        first = index.search(thorough)
        assert index.search(hurried) == first
        index.remove(["w"])
        assert not index.search(hurried).hits


def _ranked(doc, score):
    return RankedHit(FusedHit(doc, score, Sort.CODE), score, None, score)


def test_a_file_that_the_question_names_is_lifted_and_so_is_the_best_stretch_of_one_with_several_finds():  # noqa: E501
    ranked = [_ranked(1, 1.0), _ranked(2, 0.9), _ranked(3, 0.8), _ranked(4, 0.7)]
    plain = {1: 11, 2: 12, 3: 13, 4: 14}
    assert [each.doc for each in by_file(ranked, plain, {})] == [1, 2, 3, 4]
    assert [each.doc for each in by_file(ranked, plain, {14: 1.0})] == [4, 1, 2, 3]
    together = {1: 11, 2: 12, 3: 12, 4: 12}
    assert [each.doc for each in by_file(ranked, together, {})] == [2, 1, 3, 4]


def test_what_is_no_code_keeps_its_score_beside_files():
    ranked = [_ranked(1, 1.0), _ranked(2, 0.9)]
    assert by_file(ranked, {2: 7}, {7: 0.5})[1] == ranked[0]
    assert by_file(ranked, {}, {}) == ranked
