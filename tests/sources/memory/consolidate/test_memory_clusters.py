"""Episodes that are alike, and vectors that are near."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings, strategies as st
from tests.sources.memory.consolidate.making import EMBEDDER, GOALS, varied

from hotset.nouns.knobs import MemoryKnobs
from hotset.sources.memory.consolidation import (
    clusters_of,
    leaders,
    near_pairs,
    nearest_before,
    sketch,
)

MANY = 1300  # more than two blocks


def clustered(episodes):
    return clusters_of(episodes, EMBEDDER.embed, MemoryKnobs().cluster_alike)


def unit(rng, many, size=8):
    vectors = rng.standard_normal((many, size)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_episodes_with_one_goal_are_one_cluster_and_others_stay_alone():
    episodes = varied(60)
    found = clustered(episodes)
    titles = {each.id: each.title for each in episodes}
    large = [cluster for cluster in found if len(cluster.members) > 2]
    assert len(large) == len(GOALS)
    for cluster in large:
        goal = next(goal for goal, *_ in GOALS if goal in titles[cluster.leader])
        assert all(goal in titles[member] for member in cluster.members)
    assert sorted(member for cluster in found for member in cluster.members) == sorted(titles)


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_clusters_are_the_same_in_whatever_order_episodes_come(seed):
    episodes = varied(40)
    shuffled = list(episodes)
    random.Random(seed).shuffle(shuffled)
    assert clustered(shuffled) == clustered(episodes)


def test_later_episodes_change_nothing_about_earlier_ones():
    episodes = varied(60)
    before = {
        member: cluster.leader for cluster in clustered(episodes[:30]) for member in cluster.members
    }
    after = {
        member: cluster.leader for cluster in clustered(episodes) for member in cluster.members
    }
    assert before.items() <= after.items()


def test_no_episodes_are_no_clusters():
    assert clustered([]) == []


def test_near_pairs_are_those_that_comparing_each_with_each_finds():
    vectors = unit(np.random.default_rng(1), MANY)
    likeness = vectors @ vectors.T
    wanted = {
        (one, other) for one, other in zip(*np.nonzero(np.triu(likeness, 1) >= 0.95), strict=True)
    }
    assert {(one, other) for one, other, _ in near_pairs(vectors, 0.95)} == wanted


def test_the_nearest_before_a_row_are_those_that_comparing_with_each_finds():
    vectors = unit(np.random.default_rng(2), MANY)
    for row, found in enumerate(nearest_before(vectors, 0.8, 3)):
        likeness = vectors[:row] @ vectors[row]
        wanted = [
            int(each) for each in np.argsort(-likeness, kind="stable") if likeness[each] >= 0.8
        ][:3]
        assert found == wanted


def test_every_row_follows_a_leader_that_is_near_enough_and_no_two_leaders_are():
    vectors = unit(np.random.default_rng(3), MANY, 6)
    found = leaders(vectors, 0.9)
    heads = sorted(set(found))
    assert all(found[head] == head for head in heads)
    assert all(vectors[row] @ vectors[leader] >= 0.9 - 1e-6 for row, leader in enumerate(found))
    among = np.triu(vectors[heads] @ vectors[heads].T, 1)
    assert among.max() < 0.9


def test_a_sketch_says_how_much_two_sets_share():
    rng = random.Random(4)
    things = [rng.getrandbits(64) for _ in range(30)]
    same, half, none = (
        [(thing, 1.0) for thing in part] for part in (things[:10], things[5:15], things[15:25])
    )
    first, *others = sketch([same, same, half, none], 512)
    shared = [float(first @ other) for other in others]
    assert abs(shared[0] - 1) < 1e-5
    assert 0.3 < shared[1] < 0.7
    assert abs(shared[2]) < 0.25
