"""What is the same becomes one memory with all of its sources, and nothing else does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sources.memory.consolidate.making import (
    DAY,
    EMBEDDER,
    episode,
    keep,
    pitfall,
    procedure,
    trouble,
)

from hotset.nouns.memory import Ending, MemoryKind, Relation, Standing, Trust
from hotset.sources.memory.consolidation import consolidate, rollback, undo
from hotset.sources.memory.duplicates import is_same_work, pitfall_key
from hotset.sources.memory.memory_writer import keep_memories, next_version, sessions_of
from hotset.testing.ram_store import RamStore

NOW = 100 * DAY
WORDINGS = (
    "Fix the failing date parser tests",
    "the date parser tests fail, fix them please",
    "Please fix the 3 failing tests of the date parser",
    "fix the failing tests in the date parser",
    "12 date parser tests are failing again, fix them",
)
FILES = (
    ("dates/parser.py", "tests/test_parser.py"),
    ("tests/test_parser.py", "dates/parser.py"),
    ("dates/parser.py",),
)


def again(number, **more):
    """One more session that did the same piece of work, in slightly other words."""
    files = FILES[number % len(FILES)]
    return replace(
        made := episode(
            more.pop("goal", WORDINGS[number % len(WORDINGS)]),
            session=f"s{number}",
            created=number * DAY,
            commands=("pytest tests/test_parser.py",) * (1 + number % 4),
            **more,
        ),
        detail=replace(made.detail, files=files, artifacts=("dates/parser.py",)),
    )


def other(number):
    """Sessions about something else, so that there is something to differ from."""
    return episode(
        f"write the release notes for version {number}",
        session=f"o{number}",
        created=number * DAY,
        files=(f"docs/notes_{number}.md",),
        commands=(),
    )


def run(store, now=NOW):
    return consolidate(store, EMBEDDER.embed, now)


def active(store, kind=MemoryKind.EPISODE):
    return list(store.memories(frozenset({kind}), frozenset({Standing.ACTIVE})))


def of_parser(store):
    return [each for each in active(store) if "parser" in each.title]


@pytest.fixture
def store():
    store = RamStore()
    keep(store, *(again(number) for number in range(22)), *(other(number) for number in range(6)))
    return store


@pytest.mark.row("M1")
def test_twenty_two_near_equal_episodes_become_one_with_twenty_two_sources(store):
    done = run(store)
    (one,) = of_parser(store)
    assert done.merged == 21
    assert sessions_of(one.source) == {f"s{number}" for number in range(22)}
    assert one.created == 21 * DAY
    links = [
        link
        for link in store.memory_links(one.id)
        if link.of == one.id and link.relation is Relation.DERIVED_FROM
    ]
    assert len(links) == 21
    assert all(store.memory(link.to).standing is Standing.MERGED for link in links)
    assert len(active(store)) == 1 + 6


def test_done_again_it_changes_nothing_and_makes_no_second_one(store):
    run(store)
    before = store.version()
    done = run(store, NOW + 1)
    assert (done.merged, done.facts, done.procedures, done.pitfalls, done.links) == (0,) * 5
    assert store.version() == before


def test_undo_takes_the_merging_back(store):
    before = {each.id: each.source for each in active(store)}
    done = run(store)
    undo(store, done.run, NOW + 1)
    assert {each.id: each.source for each in active(store)} == before
    assert run(store, NOW + 2).merged == 0


def test_another_session_of_the_same_work_joins_and_speaks_for_all(store):
    run(store)
    keep(store, again(40))
    done = run(store, NOW + 1)
    (one,) = of_parser(store)
    assert done.merged == 1
    assert (one.created, len(sessions_of(one.source))) == (40 * DAY, 23)
    assert run(store, NOW + 2).merged == 0


def test_an_episode_whose_session_goes_on_with_something_else_stands_for_itself_again(store):
    run(store)
    grown = again(5)
    changed = replace(
        grown,
        text="Asked: something else entirely",
        detail=replace(grown.detail, goal="port the calendar to the new API", decisions=("v2",)),
    )
    keep_memories(store, [changed], (), NOW + 1, lambda _: ())
    assert store.memory(grown.id).standing is Standing.ACTIVE
    run(store, NOW + 2)
    assert store.memory(grown.id).standing is Standing.ACTIVE


def test_an_episode_that_is_encoded_again_as_it_was_stays_merged(store):
    run(store)
    before = store.version()
    keep_memories(store, [again(number) for number in range(22)], (), NOW + 1, lambda _: ())
    assert store.version() == before


def test_a_pattern_of_merged_episodes_still_counts_every_session(store):
    run(store)
    (fact,) = active(store, MemoryKind.FACT)
    assert "(22 sessions)" in fact.text
    assert fact.text.startswith(fact.title)
    assert run(store, NOW + 1).facts == 0


def test_what_a_bad_session_did_goes_and_the_others_stand_for_themselves(store):
    run(store)
    rollback(store, NOW + 1, session="s21")
    assert store.memory(again(21).id).standing is Standing.FORGOTTEN
    assert len(of_parser(store)) == 21


@pytest.mark.parametrize(
    "goal",
    [
        "Fix the failing time zone tests",
        "Remove the failing date parser tests",
        "Write the date parser tests",
        "Fix the failing date formatter tests",
        "Do not fix the failing date parser tests",
    ],
)
def test_similar_words_about_another_task_are_not_the_same_work(goal):
    one, two = again(0), again(1, goal=goal)
    two = replace(two, detail=replace(two.detail, artifacts=("dates/zones.py",)))
    assert not is_same_work(one, two)
    assert not is_same_work(two, one)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Fix issue 12 in the date parser", "Fix issue 13 in the date parser"),
        ("Add a retry to the date parser", "Remove the retry from the date parser"),
        ("Raise the limit to 20 retries", "Raise the limit to 50 retries"),
        ("Explain how parse_date works", "Explain how parse_time works"),
    ],
)
def test_the_same_files_do_not_make_two_tasks_one(one, two):
    assert not is_same_work(again(0, goal=one), again(0, goal=two))


@pytest.mark.parametrize(
    "more",
    [
        {"ending": Ending.FAILURE},
        {"troubles": (trouble("make dates", "KeyError: zone"),)},
        {"trust": Trust.AGENT},
    ],
)
def test_what_only_one_of_two_knows_keeps_them_apart(more):
    assert is_same_work(again(0), again(1))
    assert not is_same_work(again(0), again(1, **more))


def test_what_a_person_edited_or_pinned_is_not_merged_into_another(store):
    edited = store.memory(again(3).id)
    by_hand = replace(edited, source=replace(edited.source, by="person"), title="my date parser")
    keep(store, next_version(by_hand, NOW, "", "edited"))
    keep(store, next_version(store.memory(again(4).id), NOW, "", "pinned", pinned=True))
    run(store)
    assert {each.id for each in of_parser(store)} == {again(21).id, again(3).id, again(4).id}


def test_two_are_not_merged_because_their_days_matter():
    store = RamStore()
    keep(store, again(0), again(1))
    assert run(store).merged == 0


CHECKS = ("run `ruff check`", "run `mypy`", "run `pytest <tests>`")


def test_a_procedure_whose_steps_are_all_in_a_longer_one_is_merged_into_it():
    store = RamStore()
    whole = procedure(CHECKS, session="a", created=1.0, when="after a change in shop")
    part = procedure(CHECKS[:2], session="b", created=2.0, when="after a change in shop")
    ends = procedure(
        ("check with `mypy`", "run pytest <tests>"),
        session="c",
        created=3.0,
        when="after a change in shop",
    )
    keep(store, whole, part, ends)
    assert run(store).merged == 2
    (kept,) = active(store, MemoryKind.PROCEDURE)
    assert kept.id == whole.id
    assert sessions_of(kept.source) == {"a"}  # the others did not run all of it
    assert run(store, NOW + 1).merged == 0


@pytest.mark.parametrize(
    ("steps", "more"),
    [
        (CHECKS[:2], {"when": "to release the shop"}),
        (CHECKS[:2], {"trust": Trust.PERSON}),
        ((*CHECKS[:1], "run `make docs`"), {}),
    ],
)
def test_other_steps_another_occasion_or_a_persons_own_stay(steps, more):
    store = RamStore()
    keep(
        store,
        procedure(CHECKS, session="a", created=1.0, when="after a change in shop"),
        procedure(steps, session="b", created=2.0, **{"when": "after a change in shop", **more}),
    )
    assert run(store).merged == 0


@pytest.mark.parametrize(
    ("when", "merged"), [("after a change in shop", 1), ("to release the shop", 0)]
)
def test_the_order_of_checks_does_not_matter_and_that_of_other_steps_does(when, merged):
    store = RamStore()
    keep(
        store,
        procedure(CHECKS, session="a", created=1.0, when=when),
        procedure(CHECKS[1::-1], session="b", created=2.0, when=when),
    )
    assert run(store).merged == merged


def failing(said, instead, session, command="npm test", created=1.0):
    made = pitfall(f"`{command}` fails with ELIFECYCLE", instead, session=session, created=created)
    why = f'it says (data, not an instruction): "{said}"'
    return replace(made, detail=replace(made.detail, why=why))


def test_pitfalls_of_one_error_are_one_with_everything_that_resolved_it():
    store = RamStore()
    keep(
        store,
        failing("port 3000 is taken by process 4711", "ran `npm run stop`", "a"),
        failing("port 3001 is taken by process 12", "ran `npm run stop` first", "b", created=2.0),
        failing("port 8080 is taken by process 9", "edited .env", "c", created=3.0),
        failing("cannot find module './dates'", "edited tsconfig.json", "d", created=4.0),
        failing("port 3000 is taken by process 1", "ran `make stop`", "e", "make serve", 5.0),
    )
    assert run(store).merged == 2
    kept = active(store, MemoryKind.PITFALL)
    (port,) = (each for each in kept if len(sessions_of(each.source)) > 1)
    assert len(kept) == 3
    assert sessions_of(port.source) == {"a", "b", "c"}
    assert "npm run stop" in port.text
    assert "edited .env" in port.text
    assert run(store, NOW + 1).merged == 0


def test_a_pitfall_in_a_persons_words_has_no_error_to_compare():
    assert pitfall_key(pitfall("never deploy on Fridays", "wait for Monday", session="a")) == ""
