"""One order from many signals: it depends on what was found, not on who came first."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st

from hotset.nouns.memory import MemoryKind, Task
from hotset.sources.memory.memory_text import asks_the_model
from hotset.sources.memory.recall_signals import (
    DEFAULT,
    SIGNALS,
    RankSetting,
    RecallCandidate,
    SignalWeights,
    first_signals,
    order,
    own_statements,
    query_words,
    spread,
    wanted_kind,
    weights_from_dict,
    without_wish,
)
from hotset.sources.memory.time_parser import time_words

_numbers = st.none() | st.floats(0, 50)
_candidates = st.lists(
    st.builds(
        RecallCandidate,
        key=st.uuids().map(str),
        kind=st.sampled_from(["prompt", "response", "fact", "episode", "pitfall"]),
        session=st.just("s"),
        time=st.floats(0, 2e9),
        words=_numbers,
        meaning=st.none() | st.floats(-1, 1),
        window=_numbers,
    ),
    max_size=30,
    unique_by=lambda each: each.key,
)
_settings = st.builds(
    RankSetting,
    now=st.floats(0, 2e9),
    task=st.sampled_from(Task),
    spoken=st.sampled_from(
        ["", "last week", "the latest", "the first", "in March", "since 2020-01-01"]
    ).map(lambda text: time_words(text, 1.7e9)),
)


@given(_candidates, _settings)
@pytest.mark.slow
def test_every_signal_is_between_0_and_1_and_has_a_weight(candidates, setting):
    for found in first_signals({each.key: each for each in candidates}, setting).values():
        assert set(found) <= set(SIGNALS)
        assert all(0.0 <= value <= 1.0 for value in found.values())


@given(_candidates, _settings, st.randoms())
@pytest.mark.slow
def test_the_order_does_not_depend_on_the_order_of_the_candidates(
    candidates, setting, chance: random.Random
):
    shuffled = chance.sample(candidates, len(candidates))

    first, second = (
        order(first_signals({each.key: each for each in some}, setting), DEFAULT)
        for some in (candidates, shuffled)
    )

    assert first == second


@given(_candidates, _settings)
@pytest.mark.slow
def test_a_score_is_the_sum_of_signals_times_weights(candidates, setting):
    signals = first_signals({each.key: each for each in candidates}, setting)
    weights = DEFAULT.as_dict()

    for key, score in order(signals, DEFAULT):
        assert (
            abs(score - sum(weights[name] * value for name, value in signals[key].items())) < 1e-9
        )


@given(st.lists(st.floats(-1e6, 1e6), max_size=20))
def test_spread_values_keep_their_order_between_0_and_1(values):
    apart = spread(values)

    assert all(0.0 <= value <= 1.0 for value in apart)
    assert all(
        apart[i] <= apart[j]
        for i in range(len(values))
        for j in range(len(values))
        if values[i] <= values[j]
    )


def test_weights_come_back_from_what_was_written_and_strange_names_are_left_out():
    weights = SignalWeights(words=2.0, window=0.0)

    assert weights_from_dict(weights.as_dict()) == weights
    assert weights_from_dict({"words": 2.0, "astrology": 9.0}) == SignalWeights(words=2.0)


def test_each_task_wants_one_kind_most():
    for task in Task:
        assert max(wanted_kind(kind, task) for kind in MemoryKind) == 1.0


def test_what_people_say_around_their_question_tells_nothing():
    assert query_words("Can you please tell me where the retry policy is?") == "retry policy"
    assert query_words("what is it?") == "what is it?"
    assert query_words('the "retry policy"') == "retry policy"


def test_the_words_of_a_wish_tell_nothing():
    assert without_wish("evening activities suggestions?") == "evening activities"
    assert without_wish("suggestions?") == "suggestions?"


def test_a_name_that_is_also_a_filler_word_is_searched_for():
    assert query_words("What did Will say about May?") == "Will say May?"
    assert query_words("It fails. Will you look at the retry policy?") == "fails. retry policy?"


@pytest.mark.parametrize(
    "query",
    [
        "What did you say about the retry limit?",
        "Which library did you recommend for parsing dates?",
        "Remind me of the restaurant you suggested in Rome.",
        "In our previous chat you gave me a list of exercises. What was the third?",
        "What was your advice on the database index?",
        "You told me once how to reset the router. How was that?",
        "I remember you mentioned a book on gardening, what was its title?",
        "Can you repeat the steps that you listed for the backup?",
        "What were the three options you proposed for the cache?",
        "Going back to our last conversation about Kyoto: what was the temple's name?",
    ],
)
def test_a_question_about_what_the_model_said_is_known(query):
    assert asks_the_model(query)


@pytest.mark.parametrize(
    "query",
    [
        "What would you suggest for dinner tonight?",
        "Can you recommend a hotel in Lisbon?",
        "What do you think about the new layout?",
        "Could you suggest some accessories for my camera?",
        "Please tell me where the tokens are signed.",
        "Would you say that the parser is slow?",
        "What did I say about the retry limit?",
        "What did Anna recommend for the release?",
        "How do you run the tests here?",
        "Do you have any advice on how to store dates?",
        "Give me an explanation of the retry policy.",
    ],
)
def test_a_wish_for_something_new_does_not_ask_what_the_model_said(query):
    assert not asks_the_model(query)


def test_statements_about_oneself_are_counted_and_questions_are_not():
    assert own_statements("Do I like it? Where is my car?") == 0.0
    assert own_statements("I bought a car. My car is red. We like it.") == 1.0
    assert own_statements("By the way, I bought a car. Is it fast?") == 0.5
