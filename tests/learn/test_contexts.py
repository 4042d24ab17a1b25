"""Kinds of work and habits, in numbers."""

from __future__ import annotations

import random

from hotset.learn.contexts import (
    DIMENSIONS,
    MOST_CONTEXTS,
    UserProfile,
    add_habits,
    add_prompt,
    nearest,
)
from hotset.learn.events import SessionFigures


def small_vector(values):
    """A vector in few dimensions, of length 1."""
    sums = [sum(values[at::DIMENSIONS]) for at in range(DIMENSIONS)]
    length = sum(each * each for each in sums) ** 0.5
    return tuple(each / length for each in sums)


def near(centre: list[float], chance: random.Random) -> tuple[float, ...]:
    return small_vector([each + chance.gauss(0, 0.1) for each in centre])


def test_prompts_that_are_alike_get_the_same_context():
    chance = random.Random(1)
    kinds = [[float(at % 4 == kind) for at in range(256)] for kind in range(4)]
    clusters = ()
    for at in range(200):
        clusters = add_prompt(clusters, near(kinds[at % 4], chance))

    found = [{nearest(clusters, near(kind, chance)) for _ in range(20)} for kind in kinds]

    assert len(clusters) == 4
    assert sorted(map(len, found)) == [1, 1, 1, 1]
    assert len(set.union(*found)) == 4


def test_there_are_at_most_ten_contexts():
    chance = random.Random(2)
    clusters = ()
    for _ in range(500):
        clusters = add_prompt(clusters, small_vector([chance.gauss(0, 1) for _ in range(64)]))

    assert len(clusters) == MOST_CONTEXTS
    assert all(0 <= nearest(clusters, small_vector([chance.random()])) < 10 for _ in range(9))


def test_a_vector_that_says_nothing_or_has_another_length_changes_nothing():
    clusters = add_prompt((), small_vector([1.0, 2.0]))

    assert add_prompt(clusters, (0.0,) * 32) == clusters
    assert add_prompt(clusters, (1.0, 2.0)) == clusters
    assert nearest(clusters, ()) == 0


def session(**given) -> SessionFigures:
    return SessionFigures("s", **given)


def test_a_profile_says_nothing_before_five_observations():
    profile = UserProfile()
    for _ in range(4):
        profile = add_habits(profile, session(success=1.0, searches=5, signals={"follow_ups": 9}))
    assert (profile.is_thorough, profile.tolerates_searches) == (0.0, 0.0)

    profile = add_habits(profile, session(success=1.0, searches=5, signals={"follow_ups": 9}))

    assert profile.is_thorough > 0
    assert profile.tolerates_searches > 0


def test_a_profile_tells_brief_from_thorough_and_who_dislikes_searches():
    brief = thorough = UserProfile()
    for _ in range(30):
        brief = add_habits(brief, session(success=0.0, searches=6))
        thorough = add_habits(thorough, session(success=1.0, signals={"follow_ups": 5}))

    assert brief.is_thorough < -0.5 < 0.5 < thorough.is_thorough
    assert brief.tolerates_searches < -0.5
    assert thorough.tolerates_searches == 0.0


def test_a_session_whose_outcome_is_unknown_tells_nothing_of_habits():
    assert add_habits(UserProfile(), session(searches=9)) == UserProfile()
