"""Memories that say the same become one."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from tests.sources.memory.consolidate.making import fact

from hotset.nouns.memory import Relation, Standing, Trust
from hotset.sources.memory.supersede import merge_group, mergers, say_the_same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The service listens on port 8000", "The service listens on port 9000"),
        ("Run the linter before every commit", "Never run the linter before every commit"),
        (
            "We store sessions in Postgres on the primary host",
            "We store sessions in MySQL on the primary host",
        ),
        ("Retries are enabled for all the uploads", "Retries are disabled for all the uploads"),
        ("Indent the config files with tabs", "Indent the config files with spaces"),
        ("Logs go to `app.log` on every host", "Logs go to `audit.log` on every host"),
        (
            "We prefer small commits in the main repository",
            "We prefer signed commits in the main repository",
        ),
        ("Wait two seconds between the retries", "Wait four seconds between the retries"),
        (
            "the primary store replaced the replica store",
            "the replica store replaced the primary store",
        ),
    ],
)
def test_another_number_name_value_or_no_is_not_the_same(one, other):
    assert not say_the_same(one, other)
    assert not say_the_same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Run the linter before every commit", "run the linter before every commit!"),
        ("The deploys are running from the main branch", "Deploys run from the main branch"),
        ("We deploy the api service with Docker", "We deploy the api service with Docker today"),
    ],
)
def test_other_endings_and_fillers_make_no_difference(one, other):
    assert say_the_same(one, other)


def test_the_surest_is_kept_and_carries_the_sources_of_all():
    low = fact(
        "We deploy with Docker", session="s1", confidence=0.5, trust=Trust.AGENT, places=("a.md",)
    )
    high = fact(
        "We deploy with Docker now",
        session="s2",
        created=2.0,
        confidence=0.9,
        trust=Trust.AGENT,
        places=("b.md",),
    )
    (group,) = mergers([low, high], {low.text: [high.text], high.text: [low.text]})
    assert (group.kept, group.lost) == (high.id, (low.id,))
    (kept, lost), (link,) = merge_group(high, [low], 9.0, "run-1")
    assert kept.text == high.text
    assert {"a.md", "b.md", "session:s1"} <= set(kept.source.places)
    assert set(kept.source.pages) == {*low.source.pages, *high.source.pages}
    assert (lost.standing, lost.version, lost.text) == (Standing.MERGED, 2, low.text)
    assert (link.of, link.to, link.relation) == (high.id, low.id, Relation.DERIVED_FROM)


def test_what_a_person_said_is_kept_before_what_a_model_is_surer_of():
    person = fact("We deploy with Docker", confidence=0.5)
    model = fact(
        "We deploy with Docker", session="s2", created=2.0, confidence=0.9, trust=Trust.AGENT
    )
    (group,) = mergers([person, model], {})
    assert group.kept == person.id


def test_no_chain_leads_from_one_text_to_another_that_says_something_else():
    best, middle, last = (
        fact(text, session=text, confidence=sure)
        for text, sure in (("a", 0.9), ("b", 0.8), ("c", 0.7))
    )
    groups = mergers([best, middle, last], {"a": ["b"], "b": ["a", "c"], "c": ["b"]})
    assert [(group.kept, group.lost) for group in groups] == [(best.id, (middle.id,))]


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0, 1)), max_size=12),
    st.lists(st.tuples(*[st.sampled_from("abcdef")] * 2), max_size=8),
)
def test_every_memory_is_in_one_group_at_most_and_nothing_that_can_be_merged_is_left(said, pairs):
    memories = [
        fact(text, session=f"s{at}", created=float(at), confidence=sure)
        for at, (text, sure) in enumerate(said)
    ]
    same = {}
    for one, other in pairs:
        if one != other:
            same.setdefault(one, []).append(other)
            same.setdefault(other, []).append(one)
    groups = mergers(memories, same)
    named = [id for group in groups for id in (group.kept, *group.lost)]
    assert len(named) == len(set(named))
    lost = {id for group in groups for id in group.lost}
    left = [memory for memory in memories if memory.id not in lost]
    assert not any(
        one.text == other.text or other.text in same.get(one.text, ())
        for at, one in enumerate(left)
        for other in left[at + 1 :]
    )
