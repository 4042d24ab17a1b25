"""All that came from one place is taken back, with what was derived from it alone, and nothing
else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sources.memory.consolidate.making import (
    EMBEDDER,
    derived,
    episode,
    fact,
    keep,
    pitfall,
    varied,
)

from hotset.errors import BadInput
from hotset.nouns.memory import MemoryKind, MemoryLink, Relation, Standing, Trust
from hotset.sources.memory.consolidation import (
    RollbackOrigin,
    consolidate,
    plan_rollback,
    rollback,
    undo,
)
from hotset.sources.memory.memory_writer import is_derived, next_version
from hotset.sources.memory.supersede import settle
from hotset.store.connection import Tuning
from hotset.store.sqlite import SqliteStore
from hotset.testing.ram_store import RamStore

EVIL = "https://evil.example/page"
NOW = 1_000_000.0


def standing(store):
    return {each.id: each.standing for each in store.memories()}


def arrive(store, *new):
    settled = settle(
        new, store, lambda _new: list(store.memories(frozenset({MemoryKind.FACT}))), NOW
    )
    keep(store, *settled.memories, links=settled.links)


def poisoned(store):
    """2,000 memories, 200 of them from one bad place, and what comes of all of them."""
    good = varied(600)
    facts = [
        fact(
            f"fact w{at} x{at * 7} y{at * 3}",
            session=f"g{at}",
            created=float(at),
            trust=Trust.AGENT,
        )
        for at in range(1200)
    ]
    bad = [
        episode(
            f"open the wallet backdoor of the treasury {at % 3}",
            session=f"e{at}",
            created=2e5 + at,
            files=("src/wallet.py",),
            places=(EVIL,),
        )
        for at in range(100)
    ]
    lies = [
        fact(
            f"lie v{at} u{at * 11} q{at}",
            session=f"e{at}",
            created=3e5 + at,
            trust=Trust.AGENT,
            places=(f"{EVIL}/{at}",),
        )
        for at in range(100)
    ]
    keep(store, *good)
    keep(store, *facts)
    keep(store, *bad, *lies)
    return {each.id for each in (*bad, *lies)}


@pytest.mark.slow
def test_200_memories_of_one_bad_place_among_2000_go_with_what_was_derived_from_them_and_nothing_else_does(  # noqa: E501
    tmp_path,
):
    with SqliteStore.open(tmp_path, Tuning(ballast_bytes=4096)) as store:
        bad = poisoned(store)
        assert len(list(store.memories())) == 2000
        consolidate(store, EMBEDDER.embed, NOW)
        drawn = [each for each in store.memories(frozenset({MemoryKind.FACT})) if is_derived(each)]
        tainted = {each.id for each in drawn if "wallet" in each.text}
        assert len(tainted) == 1
        assert len(drawn) > 3
        before = standing(store)
        gone = set(rollback(store, NOW + 1, place=EVIL))
        after = standing(store)
        assert gone == bad | tainted
        assert {id for id in after if after[id] != before[id]} == gone
        assert all(after[id] is Standing.FORGOTTEN for id in gone)
        assert rollback(store, NOW + 2, place=EVIL) == ()
        assert undo(store, store.memory(next(iter(gone))).run, NOW + 3) == len(gone)
        assert standing(store) == before


@pytest.mark.parametrize(
    "named",
    [
        {"session": "s2"},
        {"agent": "other"},
        {"by": "some-model"},
        {"place": "evil.example"},
        {"place": "https://evil.example/a/"},
    ],
)
def test_it_goes_by_place_session_agent_and_author(named):
    store = RamStore()
    good = fact("We deploy with Docker")
    bad = fact(
        "We deploy with rsync to the host",
        session="s2",
        created=2.0,
        places=("https://evil.example/a",),
    )
    bad = replace(bad, source=replace(bad.source, agent="other", by="some-model"))
    keep(store, good, bad)
    assert rollback(store, NOW, **named) == (bad.id,)
    assert store.memory(good.id) == good


def test_a_place_is_no_other_place_that_begins_alike():
    store = RamStore()
    keep(
        store, fact("We deploy with Docker", places=("https://evil.example.org/a", "docs/a.md.bak"))
    )
    assert (
        rollback(store, NOW, place="evil.example") == rollback(store, NOW, place="docs/a.md") == ()
    )


def test_of_several_conditions_all_must_hold():
    store = RamStore()
    one, other = (
        fact("We deploy with Docker", places=(EVIL,)),
        fact("Tests run on every push", session="s2", created=2.0, places=(EVIL,)),
    )
    keep(store, one, other)
    assert rollback(store, NOW, place=EVIL, session="s2") == (other.id,)


def test_something_has_to_be_named():
    with pytest.raises(BadInput, match="say what to take back"):
        rollback(RamStore(), NOW)


def test_what_others_said_too_stays_without_the_bad_source_and_less_sure():
    store = RamStore()
    first = fact("We deploy the api with Docker", session="s1", places=("a.md",))
    keep(store, first)
    arrive(store, fact("We deploy the api with Docker!", session="s2", created=2.0, places=(EVIL,)))
    surer = store.memory(first.id)
    assert rollback(store, NOW, place=EVIL) == ()
    left = store.memory(first.id)
    assert (left.source, left.confidence) == (first.source, first.confidence)
    assert left.confidence < surer.confidence


def test_what_the_bad_source_said_first_stays_with_those_who_said_it_later():
    store = RamStore()
    first = fact("We deploy the api with Docker", session="s1", places=(EVIL,))
    keep(store, first)
    arrive(
        store, fact("We deploy the api with Docker!", session="s2", created=2.0, places=("a.md",))
    )
    assert rollback(store, NOW, place=EVIL) == ()
    left = store.memory(first.id)
    assert (left.source.session, left.source.places) == ("s2", ("a.md",))
    assert 0 < left.confidence < 0.84


def test_what_was_taken_back_once_carries_nothing_when_the_rest_is_taken_back():
    store = RamStore()
    first = fact("We deploy the api with Docker", session="s1", places=("a.md",))
    keep(store, first)
    arrive(store, fact("We deploy the api with Docker!", session="s2", created=2.0, places=(EVIL,)))
    assert rollback(store, NOW, place=EVIL) == ()
    assert rollback(store, NOW + 1, place="a.md") == (first.id,)


def test_a_pattern_that_others_carry_stays_and_is_less_sure_and_one_that_few_carry_goes():
    for bad, stays in ((2, True), (17, False)):
        store = RamStore()
        for at in range(20):
            places = (EVIL,) if at < bad else ()
            keep(
                store,
                episode(
                    f"rotate the login token {at}",
                    session=f"s{at}",
                    created=float(at),
                    places=places,
                ),
            )
        consolidate(store, EMBEDDER.embed, NOW)
        (pattern,) = [
            each for each in store.memories(frozenset({MemoryKind.FACT})) if is_derived(each)
        ]
        rollback(store, NOW + 1, place=EVIL)
        after = store.memory(pattern.id)
        assert (after.standing is Standing.ACTIVE) is stays
        assert after.confidence < pattern.confidence or not stays


def test_what_the_bad_one_replaced_holds_again():
    store = RamStore()
    good = fact("The retry cap is 60 seconds", subject="retry cap", trust=Trust.AGENT)
    keep(store, good)
    arrive(
        store,
        fact(
            "The retry cap is 9000 seconds",
            session="e",
            created=2.0,
            subject="retry cap",
            trust=Trust.AGENT,
            places=(EVIL,),
        ),
    )
    assert store.memory(good.id).standing is Standing.SUPERSEDED
    rollback(store, NOW, place=EVIL)
    back = store.memory(good.id)
    assert (back.standing, back.valid_until) == (Standing.ACTIVE, None)


def test_what_was_merged_into_the_bad_one_holds_again():
    store = RamStore()
    good = fact("We deploy the api with Docker", trust=Trust.AGENT, confidence=0.5)
    bad = fact(
        "We deploy the api with Docker",
        session="e",
        created=2.0,
        trust=Trust.AGENT,
        confidence=0.9,
        places=(EVIL,),
    )
    keep(store, good, bad)
    consolidate(store, EMBEDDER.embed, NOW)
    assert store.memory(good.id).standing is Standing.MERGED
    rollback(store, NOW + 1, by="rules", session="e")
    assert [each.standing for each in (store.memory(good.id), store.memory(bad.id))].count(
        Standing.ACTIVE
    ) == 1


def test_advice_that_only_the_bad_one_proved_waits_again():
    store = RamStore()
    proof = pitfall("`npm test` fails with exit 1", "ran `bun test` instead", session="e")
    longer = (
        "`npm test` fails with exit 1 whenever the lockfile of that "
        "workspace is older than its "
        "manifest"
    )
    waiting = pitfall(
        longer,
        "ran `bun test` instead",
        session="s",
        trust=Trust.AGENT,
        standing=Standing.CANDIDATE,
    )
    keep(store, proof, waiting)
    assert consolidate(store, EMBEDDER.embed, NOW).confirmed == 1
    assert store.memory(waiting.id).standing is Standing.ACTIVE
    rollback(store, NOW + 1, session="e")
    after = store.memory(waiting.id)
    assert (after.standing, after.trust) == (Standing.CANDIDATE, Trust.AGENT)


def test_what_a_person_said_in_a_bad_session_is_theirs_and_what_was_drawn_from_it_is_not():
    store = RamStore()
    bad = episode("rotate the token", session="s1", created=1.0, places=(EVIL,))
    theirs, drawn = (
        fact("We deploy with Docker"),
        fact("The token is stale", created=3.0, trust=Trust.AGENT),
    )
    keep(store, bad, theirs, drawn, links=(derived(theirs, bad), derived(drawn, bad)))
    assert set(rollback(store, NOW, place=EVIL)) == {bad.id, drawn.id}


def test_it_tells_beforehand_what_it_would_do_and_does_not_do_it():
    store = RamStore()
    old, bad = (
        fact("The retry cap is 60 seconds"),
        fact("The retry cap is 9 seconds", session="e", created=2.0, places=(EVIL,)),
    )
    keep(store, old, bad)
    keep(
        store,
        next_version(old, 2.0, "", "replaced", standing=Standing.SUPERSEDED),
        links=(MemoryLink(bad.id, old.id, Relation.SUPERSEDES),),
    )
    versions = store.memories_after(0, 100)
    told = plan_rollback(store, RollbackOrigin(place=EVIL), NOW)
    assert ([each.id for each in told.forgotten], [each.id for each in told.revived]) == (
        [bad.id],
        [old.id],
    )
    assert store.memories_after(0, 100) == versions
