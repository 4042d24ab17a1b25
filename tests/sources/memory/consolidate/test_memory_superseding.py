"""What a new fact does to those that are there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from tests.sources.memory.consolidate.making import episode, fact, keep

from hotset.nouns.memory import MemoryKind, Relation, Standing, Trust
from hotset.sources.memory.supersede import (
    DOUBT,
    FactVerdict,
    accept_both,
    judge,
    open_conflicts,
    settle,
    settle_among,
    settle_conflict,
)
from hotset.testing.ram_store import RamStore


def arrive(store, *new, now=100.0):
    """Facts come, and what that means is written."""
    facts = list(store.memories(frozenset({MemoryKind.FACT})))
    settled = settle(new, store, lambda _new: facts, now)
    keep(store, *settled.memories, links=settled.links)
    return settled


FIRST = (
    "Settled: retries cover any 5xx and 429, at most 4 attempts, and "
    "backoff sleeps are capped at "
    "60 seconds."
)
AMENDED = (
    "Amending the policy: retries cover any 5xx plus 429 and 408, still at most 4 attempts; "
    "backoff now caps at 30 seconds."
)
OTHERS = (
    "Round half cents down when invoices are printed.",
    "Tags are merged in order of precedence and keep the casing of the first one.",
    "The scheduler never runs two jobs of one tenant back to back.",
)


def test_a_fact_that_gives_its_subject_another_value_replaces_the_one_before_and_both_stay():
    store = RamStore()
    old = fact("The retry cap is 60 seconds", created=1.0, subject="retry cap")
    new = fact("The retry cap is 30 seconds", session="s2", created=2.0, subject="retry cap")
    keep(store, old)
    arrive(store, new)
    before = store.memory(old.id)
    assert (before.standing, before.valid_until, before.version) == (Standing.SUPERSEDED, 2.0, 2)
    assert store.memory(new.id).standing is Standing.ACTIVE
    assert [(link.of, link.to, link.relation) for link in store.memory_links()] == [
        (new.id, old.id, Relation.SUPERSEDES)
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Host number 1 is called heron", "Host number 2 is called crane"),
        ("Version 1.2 needs Python 3.9", "Version 1.3 needs Python 3.11"),
        ("The test of module a takes 3 minutes", "The test of module b takes 4 minutes"),
        (
            "The nightly job of host eu1 in our region runs at 2:00 and mails a report",
            "The nightly job of host eu2 in our region runs at 3:00 and mails a report",
        ),
    ],
)
def test_what_is_said_of_another_one_of_its_sort_replaces_nothing(one: str, other: str):
    store = RamStore()
    keep(store, fact(one, created=1.0, subject="the same words"))
    arrive(store, fact(other, session="s2", created=2.0, subject="the same words"))
    assert [each.standing for each in store.memories()] == [Standing.ACTIVE, Standing.ACTIVE]
    assert not store.memory_links()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Host number 1 is called heron", "Host number 1 is called crane"),
        ("Version 1.2 is the current one", "Version 1.3 is the current one"),
        ("The retry cap is 60 seconds", "The retry cap is 30 seconds"),
    ],
)
def test_what_is_said_of_the_same_one_or_of_only_one_replaces_what_was_said_before(
    one: str, other: str
):
    store = RamStore()
    keep(store, fact(one, created=1.0, subject="the same words"))
    arrive(store, fact(other, session="s2", created=2.0, subject="the same words"))
    assert {each.text: each.standing for each in store.memories()} == {
        one: Standing.SUPERSEDED,
        other: Standing.ACTIVE,
    }


def test_an_amendment_that_names_no_subject_replaces_what_it_amends_and_nothing_else():
    store = RamStore()
    first = fact(FIRST, created=1.0)
    others = [fact(text, session=f"o{at}", created=2.0 + at) for at, text in enumerate(OTHERS)]
    keep(store, *others, first)
    arrive(store, fact(AMENDED, session="s9", created=50.0))
    assert store.memory(first.id).standing is Standing.SUPERSEDED
    assert all(store.memory(each.id).standing is Standing.ACTIVE for each in others)


def test_an_amendment_that_could_mean_two_replaces_only_the_nearer_one_however_often_it_is_looked_at():  # noqa: E501
    store = RamStore()
    near, far = (
        fact(FIRST, created=1.0),
        fact(FIRST.replace("retries", "uploads").replace("429", "503"), session="s2", created=2.0),
    )
    keep(store, near, far)
    new = fact(AMENDED, session="s9", created=50.0)
    settled = settle([new], store, lambda _new: [near, far], 100.0)
    keep(store, *settled.memories, links=settled.links)
    again = settle_among(new.id, [near.id, far.id], store, 101.0)
    assert (store.memory(near.id).standing, store.memory(far.id).standing) == (
        Standing.SUPERSEDED,
        Standing.ACTIVE,
    )
    assert not again.memories


def test_facts_about_other_things_leave_each_other_alone():
    store = RamStore()
    for at, text in enumerate((*OTHERS, FIRST)):
        arrive(store, fact(text, session=f"o{at}", created=float(at)))
    assert all(each.standing is Standing.ACTIVE for each in store.memories())
    assert not store.memory_links()


def test_two_things_said_of_one_subject_both_hold():
    one = fact(
        "window.plan is pure and takes no clock, file or random number from anywhere",
        subject="window.plan",
    )
    other = fact(
        "window.plan has to answer within five milliseconds for a hundred thousand pages",
        created=2.0,
        subject="window.plan",
    )
    assert judge(one, other) is FactVerdict.UNRELATED


def test_what_is_said_again_in_another_session_makes_the_first_surer_and_is_no_second_record():
    store = RamStore()
    old = fact("We deploy the api with Docker", confidence=0.6)
    again = fact("We deploy the API with Docker.", session="s2", created=2.0, confidence=0.6)
    keep(store, old)
    settled = arrive(store, again)
    now = store.memory(old.id)
    assert settled.absorbed == {again.id: old.id}
    assert len(list(store.memories())) == 1
    assert now.confidence == pytest.approx(0.84)
    assert set(old.source.pages + again.source.pages) == set(now.source.pages)
    assert "session:s2" in now.source.places


def test_the_same_words_in_another_order_are_not_the_same():
    one, other = (
        fact("the primary store replaced the replica store"),
        fact("the replica store replaced the primary store", created=2.0),
    )
    assert judge(one, other) is not FactVerdict.SAME


def test_what_is_said_again_in_the_same_session_makes_nothing_surer():
    store = RamStore()
    old = fact("We deploy the api with Docker")
    keep(store, old)
    arrive(store, fact("We deploy the API with Docker.", created=2.0))
    assert store.memory(old.id).confidence == old.confidence


LESS = (
    "Releases of the payment service are cut every Tuesday morning "
    "after the captain has signed "
    "them off"
)


def test_a_person_does_not_stand_for_a_word_more_that_a_model_has_put_into_the_same_sentence():
    store = RamStore()
    planted = fact(f"{LESS} by evilpm", created=1.0, trust=Trust.AGENT)
    said = fact(LESS, session="s2", created=2.0, trust=Trust.PERSON)
    keep(store, planted)
    assert judge(planted, said) is FactVerdict.SAME
    arrive(store, said)
    assert store.memory(planted.id).trust is Trust.AGENT
    assert (store.memory(said.id).text, store.memory(said.id).trust) == (LESS, Trust.PERSON)


@pytest.mark.parametrize("trust", [Trust.OUTSIDE, Trust.AGENT, Trust.OUTCOME])
def test_nobody_but_a_person_replaces_what_a_person_said(trust):
    store = RamStore()
    said = fact("The retry cap is 60 seconds", subject="retry cap")
    other = fact(
        "The retry cap is 30 seconds", session="s2", created=2.0, subject="retry cap", trust=trust
    )
    keep(store, said)
    arrive(store, other)
    assert store.memory(said.id) == said
    doubted = store.memory(other.id)
    assert doubted.standing is Standing.ACTIVE
    assert doubted.confidence == pytest.approx(other.confidence * DOUBT)
    assert [link.relation for link in store.memory_links()] == [Relation.CONTRADICTS]


def test_what_was_said_at_the_same_time_contradicts_and_neither_goes():
    store = RamStore()
    one = fact("The retry cap is 60 seconds", subject="retry cap")
    other = fact("The retry cap is 30 seconds", session="s2", subject="retry cap")
    keep(store, one)
    arrive(store, other)
    assert {each.standing for each in store.memories()} == {Standing.ACTIVE}
    assert [link.relation for link in store.memory_links()] == [Relation.CONTRADICTS]


def test_a_fact_of_the_past_that_comes_late_does_not_replace_a_newer_one():
    store = RamStore()
    newer = fact("The retry cap is 30 seconds", created=20.0, subject="retry cap")
    late = fact("The retry cap is 60 seconds", session="s0", created=1.0, subject="retry cap")
    keep(store, newer)
    arrive(store, late)
    assert store.memory(newer.id) == newer
    kept = store.memory(late.id)
    assert (kept.standing, kept.valid_until, kept.version) == (Standing.SUPERSEDED, 20.0, 1)


def test_what_a_person_pinned_is_replaced_by_a_person_alone():
    store = RamStore()
    pinned = fact(
        "The retry cap is 60 seconds", subject="retry cap", trust=Trust.AGENT, pinned=True
    )
    keep(store, pinned)
    arrive(
        store,
        fact(
            "The retry cap is 30 seconds",
            session="s2",
            created=2.0,
            subject="retry cap",
            trust=Trust.AGENT,
        ),
    )
    assert store.memory(pinned.id).standing is Standing.ACTIVE
    arrive(
        store,
        fact(
            "The retry cap is 20 seconds",
            session="s3",
            created=3.0,
            subject="retry cap",
            trust=Trust.PERSON,
        ),
    )
    assert store.memory(pinned.id).standing is Standing.SUPERSEDED


def test_settled_again_nothing_more_is_written():
    store = RamStore()
    keep(
        store,
        fact("The retry cap is 60 seconds", subject="retry cap"),
        fact("We deploy the api with Docker", created=1.5),
    )
    new = (
        fact(
            "The retry cap is 30 seconds",
            session="s2",
            created=2.0,
            subject="retry cap",
            trust=Trust.PERSON,
        ),
        fact("We deploy the API with Docker!", session="s2", created=2.5),
    )
    arrive(store, *new)
    count = len(store.memories_after(0, 100))
    again = arrive(store, new[1])
    assert not again.memories
    assert len(store.memories_after(0, 100)) == count


def test_what_somebody_brought_back_is_not_replaced_by_the_same_fact_again():
    store = RamStore()
    old, new = (
        fact("The retry cap is 60 seconds", subject="retry cap"),
        fact("The retry cap is 30 seconds", created=2.0, subject="retry cap"),
    )
    keep(store, old)
    arrive(store, new)
    replaced = store.memory(old.id)
    keep(store, replace(replaced, standing=Standing.ACTIVE, valid_until=None, version=3))
    arrive(store, replace(store.memory(new.id), version=2, confidence=0.7))
    assert store.memory(old.id).standing is Standing.ACTIVE


def test_what_was_forgotten_does_not_come_back_because_its_session_is_read_again():
    store = RamStore()
    first = fact("We deploy the api with Docker")
    keep(store, first)
    arrive(store, again := fact("We deploy the API with Docker!", session="s2", created=2.0))
    keep(store, replace(store.memory(first.id), standing=Standing.FORGOTTEN, version=3))
    assert not arrive(store, again).memories
    assert arrive(store, fact("We deploy the API with Docker!", session="s3", created=3.0)).memories


def test_memories_of_other_kinds_come_back_as_they_came():
    made = episode("rotate the token", session="s1", created=1.0)
    assert settle([made], RamStore(), lambda _new: [], 5.0).memories == (made,)


@given(st.permutations(range(6)))
def test_the_order_in_which_facts_are_given_makes_no_difference(order):
    texts = [f"The retry cap is {10 * at} seconds" for at in range(1, 4)] + [*OTHERS]
    facts = [
        fact(text, session=f"s{at}", created=float(at), subject="retry cap" if at < 3 else "")
        for at, text in enumerate(texts)
    ]

    def outcome(given):
        settled = settle(given, RamStore(), lambda _new: [], 9.0)
        return {each.id: each for each in settled.memories}, {
            (link.of, link.to, link.relation) for link in settled.links
        }

    assert outcome([facts[at] for at in order]) == outcome(facts)


def collision(store):
    one = fact("The retry cap is 60 seconds", subject="retry cap")
    other = fact("The retry cap is 30 seconds", session="s2", subject="retry cap")
    keep(store, one)
    arrive(store, other)
    return one, other


def test_two_that_contradict_each_other_are_a_conflict_until_a_person_decides():
    store = RamStore()
    one, other = collision(store)
    assert [{each.id for each in pair} for pair in open_conflicts(store)] == [{one.id, other.id}]
    settle_conflict(store, one.id, other.id, 200.0)
    kept, dropped = store.memory(one.id), store.memory(other.id)
    assert (kept.standing, kept.trust) == (Standing.ACTIVE, Trust.PERSON)
    assert (dropped.standing, dropped.valid_until) == (Standing.SUPERSEDED, 200.0)
    assert [(link.of, link.to, link.relation) for link in store.memory_links()] == [
        (one.id, other.id, Relation.SUPERSEDES)
    ]
    assert not list(open_conflicts(store))


def test_two_that_both_hold_are_not_asked_about_again():
    store = RamStore()
    one, other = collision(store)
    accept_both(store, one.id, other.id, 200.0)
    assert not settle_among(one.id, [other.id], store, 300.0).links
    assert not list(open_conflicts(store))
    assert {each.standing for each in store.memories()} == {Standing.ACTIVE}
