"""What counts as a word, and how full text uses it."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from hotset.errors import StoreBusy
from hotset.index.analysis import analyse_query, holds_phrases, split_identifiers
from hotset.index.filters import NumberFilter
from hotset.index.full_text import (
    Document,
    WordIndex,
    WordsWriter,
    fts5_query,
    query_terms,
    score_unfolded,
    talk_terms,
    tool_terms,
)
from hotset.nouns.search import Entry, EntryId, Sort

_TEXT = st.text(st.characters() | st.sampled_from('aB9_" \0'), max_size=60)


def _entry(text, title=""):
    return Entry(EntryId("e"), "w", Sort.CODE, text, title=title)


def _written(folder, *entries):
    folder.mkdir()
    writer = WordsWriter(folder, new=True)
    writer.add([Document(number, entry, (("sort", 1),)) for number, entry in enumerate(entries)])
    writer.commit()
    writer.close()
    return WordIndex(folder)


def _found(words, text, limit=10):
    return [
        each.doc
        for each in words.search(
            query_terms(analyse_query(text)), NumberFilter(), frozenset(), 10**9, limit
        )
    ]


@pytest.mark.parametrize(
    ("identifier", "apart"),
    [
        ("parseHTTPDate", "parse HTTP Date"),
        ("HTTPServer", "HTTP Server"),
        ("snake_case_Name", "snake_case_Name"),
        ("utf8", "utf 8"),
        ("sha256sum", "sha 256 sum"),
        ("3fa9c81e", "3 fa 9c81e"),
        ("x1", "x1"),
        ("漢字Test", " 漢  字 Test"),
        ("", ""),
        ("A", "A"),
        ("aB", "a B"),
    ],
)
def test_identifiers_come_apart(identifier, apart):
    assert split_identifiers([identifier]) == [apart]


@given(st.lists(_TEXT, max_size=5))
def test_splitting_only_puts_spaces_in_and_each_text_is_split_on_its_own(texts):
    together = split_identifiers(texts)
    assert together == [split_identifiers([text])[0] for text in texts]
    for text, apart in zip(texts, together, strict=True):
        kept = text.replace("\0", " ").encode("utf-8", "replace").decode()
        assert apart.replace(" ", "") == kept.replace(" ", "")


@given(st.text(st.sampled_from("aBcD12_ é漢\0"), max_size=40))
def test_a_text_comes_apart_in_the_same_places_alone_and_among_much_else(text):
    assert split_identifiers([text, "filling " * 200])[0] == split_identifiers([text])[0]


@given(_TEXT)
def test_no_character_of_a_question_is_an_operator_of_full_text(text):
    expression = fts5_query(analyse_query(text))
    assert re.fullmatch(r'("\w+"( OR "\w+")*)?', expression)


def test_words_are_found_in_other_forms_and_titles_weigh_more(tmp_path):
    words = _written(
        tmp_path / "w",
        _entry("it parses the headers of a reply, and something else that makes it long"),
        _entry("something else that makes it long, and parses", title="parser of headers"),
        _entry("nothing of that kind"),
    )
    assert _found(words, "parsing header") == [1, 0]
    assert _found(words, "PARSE") == [1, 0]
    assert _found(words, "kinds") == [2]


def test_who_names_an_identifier_finds_it_before_its_parts(tmp_path):
    parts = [_entry(f"get the user name {number} user get name user name") for number in range(5)]
    words = _written(
        tmp_path / "w", *parts, _entry("call getUserName here"), _entry("call get_user_name here")
    )
    assert _found(words, "getUserName")[0] == 5
    assert _found(words, "get_user_name")[0] == 6
    assert _found(words, '"getusername"') == [5]


def test_a_question_of_a_megabyte_is_answered_by_its_rarest_words(tmp_path):
    words = _written(
        tmp_path / "w", *[_entry(f"common words here number{number}x") for number in range(50)]
    )
    asked = " ".join(f"common here noise{number}" for number in range(300)) + " number7x "
    assert _found(words, asked + "padding " * 130_000)[0] == 7


def test_names_that_half_of_a_conversation_has_are_searched_for(tmp_path):
    words = _written(
        tmp_path / "w",
        *[_entry(f"{('Caroline', 'Melanie')[number % 2]}: fine, thanks") for number in range(1000)],
        _entry("Caroline: the stoat is back"),
        _entry("Melanie: the stoat is back"),
    )
    asked = query_terms(analyse_query("Melanie stoat"))
    assert words.telling(asked).loose == ("stoat",)
    assert words.telling(talk_terms(asked)) == talk_terms(asked)
    assert _found(words, "Melanie stoat")[0] == 1001


def test_words_that_many_say_are_left_out_of_a_question_unless_there_are_no_others(tmp_path):
    words = _written(
        tmp_path / "w",
        *[_entry(f"self return {'stoat' if number == 7 else 'none'}") for number in range(1000)],
    )
    assert words.telling(query_terms(analyse_query("self return stoat unheard"))).loose == (
        "stoat",
        "unheard",
    )
    for common in (
        "self return",
        "return unheard",
    ):  # what nobody says does not answer in their place
        assert words.telling(query_terms(analyse_query(common))) == query_terms(
            analyse_query(common)
        )


def test_among_few_documents_no_word_is_common(tmp_path):
    words = _written(
        tmp_path / "w",
        *[_entry(f"self return {'stoat' if number == 7 else 'none'}") for number in range(10)],
    )
    assert words.telling(query_terms(analyse_query("self stoat"))).loose == ("self", "stoat")


def test_a_second_writer_is_told_that_there_is_one(tmp_path):
    (tmp_path / "w").mkdir()
    first = WordsWriter(tmp_path / "w", new=True)
    with pytest.raises(StoreBusy):
        WordsWriter(tmp_path / "w", new=True)
    first.close()
    WordsWriter(tmp_path / "w", new=True).close()


def test_what_a_fold_left_behind_is_forgotten_by_the_next(tmp_path):
    _written(tmp_path / "w", _entry("first stoat"), _entry("second stoat"), _entry("third stoat"))
    writer = WordsWriter(tmp_path / "w", new=False)
    writer.forget_beyond(0)
    writer.add([Document(1, _entry("second stoat"), (("sort", 1),))])
    writer.commit()
    writer.close()
    assert sorted(_found(WordIndex(tmp_path / "w"), "stoat")) == [0, 1]


def test_hidden_entries_do_not_take_the_place_of_others(tmp_path):
    words = _written(tmp_path / "w", *[_entry("stoat " * (200 - number)) for number in range(200)])
    found = words.search(
        query_terms(analyse_query("stoat")), NumberFilter(), frozenset(range(190)), 195, 10
    )
    assert sorted(each.doc for each in found) == [190, 191, 192, 193, 194, 195]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.sampled_from(["stoat", "weasel", "otter", "parseDate", "parse", "date"]),
        min_size=1,
        max_size=8,
    ).map(" ".join)
)
def test_an_entry_that_is_not_folded_is_scored_as_if_it_were(text):
    """But for the usual length of texts, which full text knows better: the order among equals in
    length is the same."""
    asked = query_terms(analyse_query("stoat parseDate"))
    entries = [(1, _entry(text)), (2, _entry(" ".join("stoat" for _ in text.split())))]
    scores = {each.doc: each.score for each in score_unfolded(asked, entries, None)}
    assert (scores[1] > 0) == bool({"stoat", "parseDate", "parse", "date"} & set(text.split()))


@given(_TEXT, _TEXT)
def test_a_text_says_each_phrase_that_was_taken_from_it(before, after):
    phrases = analyse_query('"the Otter\'s_Tail"').phrases
    assert phrases == (("the", "otter", "s_tail"),)
    assert holds_phrases(f"{before} the OTTER s_tail {after}", phrases)
    assert not holds_phrases("the otter and s_tail", phrases)


def test_of_tools_is_asked_without_the_words_of_chat_unless_there_are_no_others():
    assert tool_terms(
        query_terms(analyse_query("Can you please help me find the weather?"))
    ).loose == ("weather",)
    assert (
        tool_terms(query_terms(analyse_query("can you help me"))).loose
        == query_terms(analyse_query("can you help me")).loose
    )


def test_a_name_counts_less_for_tools_folded_or_not(tmp_path):
    entries = (
        _entry("words about rain and more of them", title="rain"),
        _entry("words about wind and more of them", title="b"),
    )
    words = _written(tmp_path / "words", *entries)
    asked = query_terms(analyse_query("rain"))
    for scored in (
        lambda terms: words.search(terms, NumberFilter(), frozenset(), 10**9, 10)[0].score,
        lambda terms: score_unfolded(terms, list(enumerate(entries)), None)[0].score,
    ):
        assert 0 < scored(tool_terms(asked)) < scored(asked)


_FILTERS = st.builds(
    NumberFilter,
    sorts=st.none() | st.sets(st.integers(0, 3), min_size=1).map(frozenset),
    kinds=st.none() | st.sets(st.integers(0, 40), min_size=1).map(frozenset),
    paths=st.none() | st.sets(st.integers(0, 300), min_size=1).map(frozenset),
    turns=st.none() | st.tuples(st.integers(-5, 310), st.integers(-5, 310)),
)


@given(_FILTERS, st.integers(1, 40))
def test_a_filter_takes_the_best_of_those_that_fit_however_many_do(numbered, only, limit):
    """The best of all words stand in the documents with the first numbers: whether a condition
    holds depends on the question."""
    words, many = numbered
    asked = query_terms(analyse_query("stoat"))
    every = [each.doc for each in words.search(asked, NumberFilter(), frozenset(), many, many)]
    assert len(every) == many
    fitting = [
        doc
        for doc in every
        if (only.sorts is None or doc * 4 // many in only.sorts)
        and (only.kinds is None or doc % 41 in only.kinds)
        and (only.paths is None or doc in only.paths)
        and (only.turns is None or only.turns[0] <= doc <= only.turns[1])
    ]
    found = words.search(asked, only, frozenset(), many, limit)
    assert [each.doc for each in found] == fitting[:limit]
    assert all(each.sort is list(Sort)[each.doc * 4 // many] for each in found)


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    """Documents that say the same word ever less often."""
    many = 300
    folder = tmp_path_factory.mktemp("words")
    writer = WordsWriter(folder, new=True)
    for number in range(many):
        entry = replace(_entry("stoat " * (many - number) + "other " * number), turn=number)
        numbers = (("sort", number * 4 // many), ("kind", number % 41), ("path", number))
        writer.add([Document(number, entry, numbers)])
    writer.commit()
    writer.close()
    return WordIndex(folder), many
