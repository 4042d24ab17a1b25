"""Each word of a question against each word of a text."""

from hypothesis import given, settings, strategies as st

from hotset.index.embed.table import TokenMaxSim, WordVectors

_WORDWISE = TokenMaxSim(WordVectors())


def test_a_text_that_has_every_word_answers_in_full_however_long_it_is():
    around = (
        "and many other things that nobody asked about, such as "
        "boats, paint and the history of "
        "tea "
    )
    [alone, hidden, lacking] = _WORDWISE.scores(
        "delete user", ["delete user", around + "delete user " + around, around]
    )
    assert abs(alone - 1) < 1e-5
    assert abs(hidden - 1) < 1e-5
    assert lacking < 0.9


def test_a_word_of_the_same_meaning_answers_better_than_another():
    [near, far] = _WORDWISE.scores("remove", ["delete", "violin"])
    assert near > far


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=5))
def test_every_text_has_a_score_of_its_own_whatever_stands_beside_it(question, texts):
    together = _WORDWISE.scores(question, texts)
    alone = [_WORDWISE.scores(question, [text])[0] for text in texts]
    assert all(abs(one - other) < 1e-5 for one, other in zip(together, alone, strict=True))
    assert all(-1.001 <= score <= 1.001 for score in together)
