"""Kinds of work and the user's habits, in numbers only: clusters of prompts found one prompt after
the other, and a profile."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from hotset.learn.chance import uniform
from hotset.learn.events import SessionFigures
from hotset.text.terms import topic_words

MOST_CONTEXTS = 10
DIMENSIONS = 32
"""Of a small vector, at most."""

_ALIKE = 0.5  # the cosine from which on a prompt belongs to a cluster
_PULL = 0.1  # of a new prompt on its cluster's centre
_DIGITS = 4
_LEAST_OBSERVED = 5
_HABIT = 0.1  # of a new session on a habit
_MANY = 2  # searches, or further prompts


class PromptCluster(Struct, frozen=True, array_like=True):
    """Prompts that are alike."""

    centre: tuple[float, ...]
    count: int = 1


def prompt_vector(text: str) -> tuple[float, ...]:
    """A small vector of a prompt's words, by hashes: near ones have many words in common."""
    vector = [0.0] * DIMENSIONS
    for word in set(topic_words(text)):
        vector[int(uniform(f"place:{word}") * DIMENSIONS)] += (
            1.0 if uniform(f"sign:{word}") < 0.5 else -1.0
        )
    return _of_length_one(vector) if any(vector) else ()


def nearest(clusters: Sequence[PromptCluster], vector: Sequence[float]) -> int:
    """The number of a prompt's context: that of its cluster, or the next one where it would begin
    one. 0 without a vector."""
    if not vector or not clusters:
        return 0
    likeness = [_cosine(cluster.centre, vector) for cluster in clusters]
    best = likeness.index(max(likeness))
    is_new = likeness[best] < _ALIKE and len(clusters) < MOST_CONTEXTS
    return len(clusters) if is_new else best


def add_prompt(
    clusters: Sequence[PromptCluster], vector: Sequence[float]
) -> tuple[PromptCluster, ...]:
    """The clusters with one more prompt."""
    expected = len(clusters[0].centre) if clusters else min(len(vector), DIMENSIONS)
    if len(vector) != expected or not any(vector):
        return tuple(clusters)
    unit = _of_length_one(vector)
    at = nearest(clusters, unit)
    if at == len(clusters):
        return (*clusters, PromptCluster(unit))
    old = clusters[at]
    centre = [(1 - _PULL) * a + _PULL * b for a, b in zip(old.centre, unit, strict=True)]
    moved = PromptCluster(_of_length_one(centre), old.count + 1)
    return (*clusters[:at], moved, *clusters[at + 1 :])


class UserProfile(Struct, frozen=True):
    """A user's habits, from -1 to 1; 0 until enough was observed."""

    thorough: float = 0.0
    """Asks on (1), or is done with the first answer (-1)."""
    searches: float = 0.0
    """Work goes well although the model searches much (1), or does not (-1)."""
    thorough_seen: int = 0
    searches_seen: int = 0

    @property
    def is_thorough(self) -> float:
        return self.thorough if self.thorough_seen >= _LEAST_OBSERVED else 0.0

    @property
    def tolerates_searches(self) -> float:
        return self.searches if self.searches_seen >= _LEAST_OBSERVED else 0.0


def add_habits(profile: UserProfile, figures: SessionFigures) -> UserProfile:
    """The profile with one more session. Only one with a known outcome tells something."""
    if figures.success is None:
        return profile
    asked = figures.signals.get("follow_ups", 0.0) - figures.corrections
    wish = 1.0 if asked > _MANY else 0.0 if asked > 0 else -1.0
    thorough = round(profile.thorough + _HABIT * (wish - profile.thorough), _DIGITS)
    profile = replace(profile, thorough=thorough, thorough_seen=profile.thorough_seen + 1)
    if figures.searches > _MANY:
        sign = 2 * figures.success - 1
        sign = min(sign, 0.0) if figures.corrections else sign
        searches = round(profile.searches + _HABIT * (sign - profile.searches), _DIGITS)
        profile = replace(profile, searches=searches, searches_seen=profile.searches_seen + 1)
    return profile


def _of_length_one(vector: Sequence[float]) -> tuple[float, ...]:
    length = math.sqrt(sum(each * each for each in vector))
    return tuple(round(each / length, _DIGITS) if length else 0.0 for each in vector)


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other):
        return 0.0
    lengths = math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0
