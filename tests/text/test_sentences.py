"""Sentences end where a reader sees them end."""

import pytest
from hypothesis import given, strategies as st

from hotset.text.sentences import report_sentences, sentences, unique_sentences, without_fences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Use uv. Never pip!", ["Use uv.", "Never pip!"]),
        (
            "Ask Dr. Miller, e.g. about version 1.2 of it.",
            ["Ask Dr. Miller, e.g. about version 1.2 of it."],
        ),
        ("- first thing\n- second thing\n3. third", ["first thing", "second thing", "third"]),
        ("# Heading\n\nText over\ttabs", ["Heading", "Text over tabs"]),
        ("", []),
    ],
)
def test_what_a_person_wrote_comes_apart_at_sentences_and_at_the_items_of_lists(text, found):
    assert sentences(text) == found


def test_in_a_report_a_colon_ends_a_sentence_and_code_is_none():
    text = (
        "The cause: `parse` drops the sign. Fixed.\n```\nx = 1. Y = 2\n```\n- It holds. see below"
    )
    found = [each for each in report_sentences(text) if each]
    assert found == ["The cause:", "`parse` drops the sign.", "Fixed.", "It holds. see below"]


def test_in_any_script_a_sentence_is_told_once():
    assert unique_sentences("一。二\uff01 Done… so far.\nDone… so far.") == [
        "一。",
        "二\uff01",
        "Done…",
        "so far.",
    ]


def test_only_lines_between_fences_are_left_out():
    assert without_fences("a\n```py\ncode\n```\nb `c`") == "a\n\n\nb `c`"
    assert without_fences("a\n~~~\nnever closed") == "a\n\n"


@given(st.text("aB .!?:\n-*`1"))
def test_no_word_is_lost_between_sentences(text):
    letters = [each for each in text if each in "aB"]
    assert [each for part in sentences(text) for each in part if each in "aB"] == letters


def test_only_a_marker_at_the_beginning_of_a_sentence_is_left_out():
    assert sentences("- It refuses port 5433. the database is down") == [
        "It refuses port 5433. the database is down"
    ]
    assert sentences("To release: 1. tag it; 2. push it") == ["To release: 1. tag it; 2. push it"]
