"""Names come apart at their humps, and lower case moves no character."""

import pytest
from hypothesis import given, strategies as st

from hotset.text.words import humps, lower_in_place, once, split_humps, word_set

_LETTERS = "abzABZ"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("parseHTTPDate", ["parse", "HTTP", "Date"]),
        ("snake_case_2", ["snake", "case"]),
        ("IOError", ["IO", "Error"]),
        ("URL", ["URL"]),
        ("42", []),
    ],
)
def test_a_name_comes_apart_into_the_words_it_is_made_of(name, parts):
    assert humps(name) == parts


@given(st.text(_LETTERS))
def test_both_ways_of_taking_a_name_apart_agree_and_lose_no_letter(name):
    assert humps(name) == split_humps(name).split()
    assert "".join(humps(name)) == name


@given(st.text())
def test_lower_case_keeps_every_character_at_its_place(text):
    assert len(lower_in_place(text)) == len(text)


@given(st.lists(st.text(_LETTERS, min_size=1)))
def test_each_item_comes_once_in_its_order(items):
    found = once(items)
    assert set(found) == word_set(" ".join(items))
    assert sorted(found, key=items.index) == list(found)
    assert once(items, 2) == found[:2]
