"""What a question and a text are about."""

from hotset.text.terms import first_hits, hits, terms, topic_words
from hotset.text.words import lower_in_place


def test_the_plural_of_a_word_that_tells_nothing_tells_nothing():
    assert list(topic_words("issues fixes problems")) == []


def test_plurals_and_possessives_are_one_topic_word():
    assert list(topic_words("The parser\u2019s queries, the query's PARSERS")) == [
        "parser",
        "query",
        "query",
        "parser",
    ]


def test_a_question_is_its_names_first_then_its_words_by_their_stems():
    found = [term.text for term in terms("Where does parse_call handle merging?")]
    assert found == ["parse_call", "handl", "merg", "pars", "call"]


def test_a_question_of_nothing_but_common_words_is_about_these():
    assert [term.text for term in terms("what is it?")] == ["what", "is", "it"]


def test_a_term_is_found_where_words_begin_and_a_short_one_only_as_a_whole():
    text = "Merging ids: id of the merged idea, reMerge"
    found = {term.text: list(hits(text, lower_in_place(text), term)) for term in terms("merge id")}
    assert found == {"merg": [0, 23, 38], "id": [13]}


def test_each_term_that_stands_in_a_text_is_told_with_its_first_place():
    assert [
        (at, term.text) for at, term in first_hits("a plan, planned", terms("plan window"))
    ] == [(2, "plan")]
