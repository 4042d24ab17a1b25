"""Forms of one word share a stem; what is shown stays a word."""

import pytest
from hypothesis import given, strategies as st

from hotset.text.stems import light_stem, root, singular, stem


@pytest.mark.parametrize(
    ("said", "one"),
    [
        ("dependencies", "dependency"),
        ("queries", "query"),
        ("cookies", "cookie"),
        ("boxes", "box"),
        ("classes", "class"),
        ("branches", "branch"),
        ("caches", "cache"),
        ("dates", "date"),
        ("arrays", "array"),
        ("status", "status"),
        ("test_dates", "test_dates"),
    ],
)
def test_a_plural_and_its_singular_are_one_word_and_a_word_of_the_language(said, one):
    assert singular(said) == singular(one) == one


@pytest.mark.parametrize(
    "forms", ["merge merges merged merging", "run runs running", "test tests tested testing"]
)
def test_the_forms_of_a_word_have_one_root(forms):
    assert len({root(form) for form in forms.split()}) == 1


@given(st.from_regex(r"[a-z]{1,12}", fullmatch=True))
def test_every_form_of_a_word_begins_with_its_stem_and_no_stem_is_short(word):
    for cut, least in ((stem, 4), (light_stem, 3)):
        assert word.startswith(cut(word))
        assert cut(word) == word or len(cut(word)) >= least


def test_an_ending_that_would_leave_too_little_stays():
    assert stem("ring") == "ring"
    assert light_stem("uses") == "use"
    assert light_stem("used") == "used"
