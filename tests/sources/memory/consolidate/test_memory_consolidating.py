"""Memories are drawn together, at any time, as often as one likes, and whatever happens
meanwhile."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.sources.memory.consolidate.consolidating_process import NOW, TUNING
from tests.sources.memory.consolidate.making import (
    EMBEDDER,
    GOALS,
    episode,
    fact,
    filled,
    keep,
    pitfall,
    varied,
)

from hotset.nouns.memory import MemoryKind, Relation, Standing, Trust
from hotset.sources.memory.consolidation import consolidate, restore, undo
from hotset.sources.memory.memory_writer import is_derived, next_version, sessions_of
from hotset.store.sqlite import SqliteStore
from hotset.testing.ram_store import RamStore


@pytest.fixture
def store():
    store = RamStore()
    filled(store)
    return store


def run(store, now=NOW, **more):
    return consolidate(store, EMBEDDER.embed, now, **more)


def state(store):
    """All that a store says of memories, whenever and by which work it was written."""
    memories = {
        each.id: [
            replace(
                version,
                time=0.0,
                run="",
                why="",
                valid_until=None if is_derived(version) else version.valid_until,
            )
            for version in store.memory_versions(each.id)
        ]
        for each in store.memories()
    }
    return memories, {(link.of, link.to, link.relation) for link in store.memory_links()}


def drawn(store, kind):
    return [
        each
        for each in store.memories(frozenset({kind}), frozenset({Standing.ACTIVE}))
        if is_derived(each)
    ]


def test_each_goal_that_recurs_becomes_a_fact_and_a_pitfall_where_there_is_one(store):
    done = run(store)
    assert (done.clusters, done.facts, done.pitfalls) == (len(GOALS), len(GOALS), 1)
    assert all(each.confidence >= 0.8 for each in drawn(store, MemoryKind.FACT))
    (avoid,) = drawn(store, MemoryKind.PITFALL)
    assert "`make audit` fails" in avoid.text
    billing = next(each for each in drawn(store, MemoryKind.FACT) if "billing" in each.title)
    related = [
        link.to for link in store.memory_links(avoid.id) if link.relation is Relation.RELATED_TO
    ]
    assert related == [billing.id]


def test_steps_that_a_session_has_already_as_a_procedure_are_not_drawn_a_second_time(store):
    done = run(store)
    active = frozenset({Standing.ACTIVE})
    (steps,) = store.memories(frozenset({MemoryKind.PROCEDURE}), active)
    assert done.procedures == 0
    assert steps.detail.steps == ("run `make rotate`", "run `make test`")
    assert len(sessions_of(steps.source)) > 10


def test_every_fact_names_the_episodes_that_it_is_drawn_from(store):
    run(store)
    for each in drawn(store, MemoryKind.FACT):
        origins = [
            store.memory(link.to)
            for link in store.memory_links(each.id)
            if link.relation is Relation.DERIVED_FROM and link.of == each.id
        ]
        assert len(origins) >= 3
        assert all(origin.kind is MemoryKind.EPISODE for origin in origins)


def test_facts_that_repeat_are_merged_and_those_that_changed_are_replaced(store):
    done = run(store)
    assert (done.superseded, done.contradicted) == (1, 0)
    assert done.merged >= 9
    facts = [
        each
        for each in store.memories(frozenset({MemoryKind.FACT}), frozenset({Standing.ACTIVE}))
        if not is_derived(each)
    ]
    assert sorted(each.text for each in facts) == [
        "The retry cap is 30 seconds",
        *(
            f"We deploy the {name} service on port {port}"
            for name, port in (("api", 8001), ("job", 8002), ("web", 8000))
        ),
    ]


def test_advice_that_another_session_proved_right_is_served_from_then_on(store):
    run(store)
    (confirmed,) = [
        each
        for each in store.memories(frozenset({MemoryKind.PITFALL}))
        if each.source.by == "model"
    ]
    assert (confirmed.standing, confirmed.trust) == (Standing.ACTIVE, Trust.OUTCOME)


def test_advice_in_the_words_of_tools_is_never_promoted(store):
    untrusted = [
        pitfall(
            "`npm test` fails with exit 1",
            "ran `bun test` instead",
            session=f"evil{at}",
            trust=Trust.OUTSIDE,
            standing=Standing.CANDIDATE,
        )
        for at in range(9)
    ]
    keep(store, *untrusted)
    run(store)
    assert all(store.memory(each.id) == each for each in untrusted)


def test_done_again_it_writes_nothing(store):
    first = run(store)
    before = store.memories_after(0, 10_000)
    again = run(store, NOW + 1)
    assert again == type(again)(first.run, clusters=first.clusters)
    assert store.memories_after(0, 10_000) == before


def test_in_whatever_order_memories_were_kept_the_same_comes_of_them():
    stores = []
    for seed in (None, 5):
        store, episodes = RamStore(), varied(80)
        if seed is not None:
            random.Random(seed).shuffle(episodes)
        keep(store, *episodes)
        run(store)
        stores.append(store)
    assert state(stores[0]) == state(stores[1])


def test_more_sessions_make_a_pattern_surer_and_not_a_second_one(store):
    run(store)
    before = {each.id: each for each in drawn(store, MemoryKind.FACT)}
    goal, files, commands = GOALS[0]
    keep(
        store,
        *(
            episode(
                goal, session=f"more{at}", created=50_000.0 + at, files=files, commands=commands
            )
            for at in range(9)
        ),
    )
    run(store, NOW + 1)
    after = {each.id: each for each in drawn(store, MemoryKind.FACT)}
    assert after.keys() == before.keys()
    (changed,) = [id for id in after if after[id].version > 1]
    assert "rotate" in after[changed].title
    assert after[changed].confidence > before[changed].confidence


def test_a_pattern_whose_sessions_no_longer_agree_holds_no_longer(store):
    run(store)
    goal, *_ = GOALS[0]
    keep(
        store,
        *(
            episode(
                goal, session=f"x{at}", created=50_000.0 + at, files=(f"src/n{at}.py",), commands=()
            )
            for at in range(80)
        ),
    )
    run(store, NOW + 1)
    gone = [
        each
        for each in store.memories(frozenset({MemoryKind.FACT}), frozenset({Standing.SUPERSEDED}))
        if is_derived(each)
    ]
    assert ["rotate" in each.title for each in gone] == [True]


def test_what_a_person_forgot_or_edited_is_left_alone(store):
    run(store)
    forgotten, edited, *_ = drawn(store, MemoryKind.FACT)
    keep(store, next_version(forgotten, NOW, "", "forgotten", standing=Standing.FORGOTTEN))
    keep(
        store,
        next_version(
            edited,
            NOW,
            "",
            "edited",
            text="mine",
            source=replace(edited.source, by="person"),
            trust=Trust.PERSON,
        ),
    )
    before = store.memory(forgotten.id), store.memory(edited.id)
    run(store, NOW + 1)
    assert (store.memory(forgotten.id), store.memory(edited.id)) == before


def test_what_somebody_took_back_is_not_done_again(store):
    done = run(store)
    undo(store, done.run, NOW + 1)
    before = store.memories_after(0, 10_000)
    again = run(store, NOW + 2)
    assert (again.facts, again.merged, again.superseded, again.confirmed) == (0, 0, 0, 0)
    assert store.memories_after(0, 10_000) == before


def test_a_change_to_a_pattern_that_somebody_took_back_is_not_made_again(store):
    run(store)
    goal, files, commands = GOALS[0]
    keep(
        store,
        *(
            episode(
                goal, session=f"more{at}", created=50_000.0 + at, files=files, commands=commands
            )
            for at in range(9)
        ),
    )
    undo(store, run(store, NOW + 1).run, NOW + 2)
    before = store.memories_after(0, 10_000)
    assert run(store, NOW + 3).facts == 0
    assert store.memories_after(0, 10_000) == before


def test_what_somebody_brought_back_is_not_merged_again(store):
    run(store)
    merged = [each.id for each in store.memories(standings=frozenset({Standing.MERGED}))]
    restore(store, merged[:1], NOW + 1)
    run(store, NOW + 2)
    assert store.memory(merged[0]).standing is Standing.ACTIVE


def test_it_tells_how_far_it_is(store):
    told = []
    run(store, progress=lambda *step: told.append(step))
    assert {"reading episodes", "patterns", "procedures", "pitfalls", "merging facts", "facts"} <= {
        what for what, _, _ in told
    }
    assert all(done <= of or of == 0 for _, done, of in told)


def test_an_empty_store_is_soon_done():
    assert run(RamStore()).facts == 0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A folder with a store that was not consolidated yet, and what it says when nothing disturbs
    that."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with SqliteStore.open(folder / "store", TUNING) as store:
        filled(store, 80)
    shutil.copytree(folder / "store", folder / "done")
    with SqliteStore.open(folder / "done", TUNING) as store:
        before = len(store.memories_after(0, 100_000))
        consolidate(store, EMBEDDER.embed, NOW, batch=3)
        assert len(store.memories_after(0, 100_000)) > before
        return folder / "store", state(store)


@pytest.mark.parametrize("commits", [1, 3, 5, random.Random(3).randrange(6, 9)])
@pytest.mark.slow
def test_killed_at_any_moment_and_begun_again_it_comes_to_the_same(undisturbed, tmp_path, commits):
    fresh, wanted = undisturbed
    folder = tmp_path / "store"
    shutil.copytree(fresh, folder)
    command = [
        sys.executable,
        "-m",
        "tests.sources.memory.consolidate.consolidating_process",
        str(folder),
        str(commits),
    ]
    ended = subprocess.run(
        command, cwd=Path(__file__).parents[4], capture_output=True, timeout=120, check=False
    )
    assert ended.returncode == -9, ended.stderr
    with SqliteStore.open(folder, TUNING) as store:
        runs = {name for name, *_ in store.memory_runs()}
        assert state(store) != wanted
        done = consolidate(store, EMBEDDER.embed, NOW, batch=3)
        assert state(store) == wanted
        assert runs <= {done.run}, (
            "what was begun before and after the end is one run, and can be taken back as one"
        )


def test_a_fact_that_comes_in_while_it_runs_is_neither_lost_nor_in_its_way(store):
    def meanwhile(what, done, _of):
        if what == "patterns" and done == 1:
            keep(store, fact("Something new was said", session="late", created=90_000.0))

    run(store, progress=meanwhile)
    assert any(each.text == "Something new was said" for each in store.memories())
