"""In which form a memory is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from tests.sources.memory.consolidate.making import DAY, episode, fact

from hotset.nouns.memory import Arrangement, Layer, MemoryKind, Uses
from hotset.sources.memory.memory_text import RARE, frequencies, layer_of, mass

NOW = 1000 * DAY
SHOWN = Arrangement()
ORDER = [Layer.INDEX, Layer.TIMELINE, Layer.FULL]


def layer(memory, *, uses=Uses(), referenced=False, mass=0.0, arrangement=SHOWN):  # noqa: B008 - frozen
    return layer_of(
        memory, NOW, uses=uses, referenced=referenced, mass=mass, arrangement=arrangement
    )


def aged(days):
    return episode("rotate the token", session="s1", created=NOW - days * DAY)


@pytest.mark.parametrize(
    ("days", "form"),
    [
        (0, Layer.FULL),
        (6.9, Layer.FULL),
        (7.1, Layer.TIMELINE),
        (29, Layer.TIMELINE),
        (31, Layer.INDEX),
    ],
)
def test_an_episode_is_whole_for_a_week_and_a_line_for_a_month(days, form):
    assert layer(aged(days)) is form


def test_what_is_referred_to_or_was_of_use_stays_a_line():
    assert layer(aged(400), referenced=True) is Layer.TIMELINE
    assert layer(aged(400), uses=Uses(helped=1)) is Layer.TIMELINE
    assert layer(aged(400), uses=Uses(shown=9)) is Layer.INDEX
    assert layer(aged(400), uses=Uses(read=1, misled=2)) is Layer.INDEX


def test_age_counts_from_the_last_use():
    assert layer(aged(400), uses=Uses(read=1, last=NOW - DAY)) is Layer.FULL


def test_what_is_pinned_is_whole_at_any_age():
    assert layer(replace(aged(4000), pinned=True)) is Layer.FULL


def test_what_tells_much_is_shown_one_form_better():
    assert layer(aged(20), mass=RARE) is Layer.FULL
    assert layer(aged(400), mass=RARE) is Layer.TIMELINE


def test_a_fact_stays_a_line_for_good():
    assert layer(fact("We deploy with Docker", created=NOW - 4000 * DAY)) is Layer.TIMELINE


def test_the_days_are_those_of_the_arrangement():
    assert layer(aged(10), arrangement=Arrangement(full_days=14.0)) is Layer.FULL


@given(st.floats(0, 3000), st.floats(0, 3000), st.booleans(), st.floats(0, 1), st.integers(0, 3))
def test_no_memory_gains_by_getting_older(one, other, referenced, weight, helped):
    younger, older = (
        layer(aged(days), referenced=referenced, mass=weight, uses=Uses(helped=helped))
        for days in sorted((one, other))
    )
    assert ORDER.index(younger) >= ORDER.index(older)


def test_rare_words_weigh_more_than_common_ones():
    common = [
        fact(f"We always run the same tests for build {at % 3}", created=float(at))
        for at in range(40)
    ]
    rare = fact(
        "Konstantin keeps the vault passphrase rotation ledger beside the frobnicator", created=99.0
    )
    counted = frequencies([*common, rare])
    assert mass(rare, counted) > RARE > mass(common[0], counted)


def test_without_any_memory_counted_nothing_weighs():
    assert mass(fact("anything"), frequencies([])) == 0.0


@given(st.lists(st.text("abcdef ", max_size=30), min_size=1, max_size=12))
def test_a_mass_lies_between_0_and_1_and_about_a_quarter_is_rare(texts):
    memories = [fact(text, created=float(at)) for at, text in enumerate(texts)]
    counted = frequencies(memories)
    assert all(0 <= mass(each, counted) <= 1 for each in memories)
    assert counted.memories == len(memories)
    assert sum(mass(each, counted) >= RARE for each in memories) <= len(memories) / 4 + 1


def test_every_kind_has_a_form():
    assert {layer(replace(aged(400), kind=kind)) for kind in MemoryKind} <= set(Layer)
