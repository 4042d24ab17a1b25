"""A likelihood is one: between 0 and 1, falling with the order, and the higher the more speaks for
the first tool."""

from hypothesis import given, settings, strategies as st

from hotset.nouns.tool import UNLIKELY
from hotset.sources.tools.tool_search import Likeness, RankedTool, likelihoods

_SHARES = st.floats(0, 1)


@st.composite
def found(draw):
    scores = sorted(draw(st.lists(st.floats(-20, 20), max_size=12)), reverse=True)
    return [
        RankedTool(
            f"t{at}",
            score,
            Likeness(draw(_SHARES), draw(_SHARES)),
            draw(st.sampled_from([0.0, 0.0, 0.5, 1.0])),
        )
        for at, score in enumerate(scores)
    ]


def _first(answered=0.5, named=0.5, vote=0.0, others=0.3, lead=1.0, *, size=100):
    behind = [RankedTool("other", -lead, Likeness(others, 0.2))] * 7
    return likelihoods([RankedTool("first", 0.0, Likeness(answered, named), vote), *behind], size)[
        0
    ]


@settings(deadline=None)
@given(found(), st.integers(0, 10**6))
def test_likelihoods_lie_between_nothing_and_certainty_and_fall_with_the_order(weighed, size):
    scores = likelihoods(weighed, size)
    assert len(scores) == len(weighed)
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert scores == sorted(scores, reverse=True)


@settings(deadline=None)
@given(_SHARES, _SHARES, _SHARES, st.floats(0, 5), _SHARES)
def test_whatever_speaks_more_for_the_first_makes_it_no_less_likely(
    answered, named, others, lead, vote
):
    before = _first(answered, named, vote, others, lead)
    assert _first(min(1.0, answered + 0.1), named, vote, others, lead) >= before
    assert _first(answered, min(1.0, named + 0.1), vote, others, lead) >= before
    assert _first(answered, named, min(1.0, vote + 0.1), others, lead) >= before
    assert _first(answered, named, vote, others, lead + 0.5) >= before
    assert _first(answered, named, vote, min(1.0, others + 0.1), lead) <= before
    assert _first(answered, named, vote, others, lead, size=10_000) <= before


def test_a_tool_that_answers_no_more_than_any_other_is_unlikely_and_one_that_does_is_not():
    assert _first(answered=0.3, named=0.3, others=0.28) < UNLIKELY
    assert _first(answered=0.8, named=0.9, others=0.3) > 0.8
    assert likelihoods([], 10) == []


def test_the_same_tool_of_many_servers_does_not_make_itself_unlikely():
    of_all = [RankedTool(f"notes{at}__add_note", 0.0, Likeness(0.6, 0.8)) for at in range(30)]
    others = [RankedTool(f"notes{at}__read", -1.0, Likeness(0.3, 0.2)) for at in range(20)]
    alone, among = likelihoods([of_all[0], *others], 60), likelihoods([*of_all, *others], 60)
    assert among[:30] == [alone[0]] * 30
    assert alone[0] >= UNLIKELY
