"""What a piece of work wrote can be taken back, and what was put aside comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sources.memory.consolidate.making import EMBEDDER, fact, filled, keep

from hotset.errors import NotFound
from hotset.nouns.memory import MemoryId, MemoryKind, Standing, Trust
from hotset.sources.memory.consolidation import consolidate, restore, undo
from hotset.sources.memory.memory_writer import is_derived, next_version
from hotset.testing.ram_store import RamStore

NOW = 100_000.0


@pytest.fixture
def store():
    store = RamStore()
    filled(store, 60)
    return store


def said(store):
    """What is shown to anybody: all that is not forgotten, without its history."""
    shown = (each for each in store.memories() if each.standing is not Standing.FORGOTTEN)
    return {each.id: replace(each, version=0, time=0.0, run="", why="") for each in shown}


def links(store):
    return {(link.of, link.to, link.relation) for link in store.memory_links()}


def test_a_run_that_is_taken_back_leaves_everything_as_it_was(store):
    before = said(store), links(store)
    done = consolidate(store, EMBEDDER.embed, NOW)
    assert (said(store), links(store)) != before
    assert undo(store, done.run, NOW + 1) > 10
    assert (said(store), links(store)) == before


def test_taken_back_twice_nothing_more_happens(store):
    done = consolidate(store, EMBEDDER.embed, NOW)
    undo(store, done.run, NOW + 1)
    versions = store.memories_after(0, 10_000)
    assert undo(store, done.run, NOW + 2) == 0
    assert store.memories_after(0, 10_000) == versions


def test_taking_back_can_be_taken_back(store):
    done = consolidate(store, EMBEDDER.embed, NOW)
    after = said(store)
    undo(store, done.run, NOW + 1)
    undo(store, f"undo-{done.run}", NOW + 2)
    assert said(store) == after


def test_what_somebody_changed_since_stays_changed(store):
    done = consolidate(store, EMBEDDER.embed, NOW)
    replaced = next(each for each in store.memories(standings=frozenset({Standing.SUPERSEDED})))
    keep(store, next_version(replaced, NOW, "", "edited", text="in other words", title="mine"))
    made = next(each for each in store.memories(frozenset({MemoryKind.FACT})) if is_derived(each))
    keep(
        store,
        next_version(
            made,
            NOW,
            "",
            "edited",
            text="so it is",
            trust=Trust.PERSON,
            source=replace(made.source, by="person"),
        ),
    )
    undo(store, done.run, NOW + 1)
    back = store.memory(replaced.id)
    assert (back.text, back.standing, back.valid_until) == ("in other words", Standing.ACTIVE, None)
    assert store.memory(made.id).standing is Standing.ACTIVE


def test_what_somebody_forgot_since_stays_forgotten(store):
    done = consolidate(store, EMBEDDER.embed, NOW)
    replaced = next(each for each in store.memories(standings=frozenset({Standing.SUPERSEDED})))
    keep(store, next_version(replaced, NOW, "", "forgotten", standing=Standing.FORGOTTEN))
    undo(store, done.run, NOW + 1)
    assert store.memory(replaced.id).standing is Standing.FORGOTTEN


def test_a_run_that_never_was_changes_nothing(store):
    assert undo(store, "consolidate-nowhere", NOW) == 0


def test_what_was_forgotten_comes_back_as_it_stood():
    store = RamStore()
    waiting = fact("We deploy with Docker", standing=Standing.CANDIDATE)
    keep(store, waiting)
    keep(store, next_version(waiting, 2.0, "", "forgotten", standing=Standing.FORGOTTEN))
    assert restore(store, [waiting.id], 3.0) == 1
    assert store.memory(waiting.id).standing is Standing.CANDIDATE
    assert restore(store, [waiting.id], 4.0) == 0


@pytest.mark.parametrize("aside", [Standing.MERGED, Standing.SUPERSEDED])
def test_what_was_merged_or_replaced_holds_again(aside):
    store = RamStore()
    old = fact("We deploy with Docker")
    keep(store, old)
    keep(store, next_version(old, 2.0, "", "put aside", standing=aside, valid_until=2.0))
    assert restore(store, [old.id, old.id], 3.0) == 1
    back = store.memory(old.id)
    assert (back.standing, back.valid_until, back.text) == (Standing.ACTIVE, None, old.text)


def test_bringing_back_can_be_taken_back():
    store = RamStore()
    old = fact("We deploy with Docker")
    keep(store, old)
    keep(store, next_version(old, 2.0, "", "forgotten", standing=Standing.FORGOTTEN))
    restore(store, [old.id], 3.0)
    undo(store, store.memory(old.id).run, 4.0)
    assert store.memory(old.id).standing is Standing.FORGOTTEN


def test_what_never_was_cannot_come_back():
    with pytest.raises(NotFound):
        restore(RamStore(), [MemoryId("sem-nowhere")], 1.0)
