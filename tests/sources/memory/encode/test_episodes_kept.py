"""What an episode keeps: the answer, what was to be heeded, and each error with its resolution."""

from __future__ import annotations

import pytest
from told_sessions import PASSED, Told

from hotset.nouns.memory import Episode, MemoryKind, MemoryRecord

BUILD = "npm run build"
MISSING = "Error: Cannot find module 'left-pad'"
TYPES = "TypeError: total is not a function"


def only_episode(told: Told) -> tuple[MemoryRecord, Episode]:
    (memory,) = told.memories(MemoryKind.EPISODE)
    assert isinstance(memory.detail, Episode)
    return memory, memory.detail


def test_what_the_reply_concluded_is_kept_not_only_how_it_began():
    told = (
        Told()
        .user("Compare Redis and Postgres for the job queue of the shop.")
        .reads("docs/queue.md")
        .says(
            "Both can hold the jobs of the shop for a day. Redis loses jobs when it is "
            "restarted. Recommendation: keep the jobs in Postgres until there are 50 per second."
        )
    )
    memory, episode = only_episode(told)
    assert episode.answer.startswith("Both can hold the jobs of the shop for a day.")
    assert "keep the jobs in Postgres" in episode.answer
    assert "keep the jobs in Postgres" in memory.text


def test_what_the_user_asked_to_heed_is_kept_from_every_prompt():
    told = (
        Told()
        .user("Make the import of invoices faster.")
        .edits("src/invoices.py")
        .says("It is twice as fast.")
        .user("The import of invoices must not use more than 200 MB. Don't make it slower.")
        .edits("src/invoices.py")
        .says("It needs 120 MB now.")
    )
    memory, episode = only_episode(told)
    assert episode.constraints == (
        "The import of invoices must not use more than 200 MB.",
        "Don't make it slower.",
    )
    assert "Heeding: The import of invoices must not use more than 200 MB." in memory.text


def test_two_errors_of_one_command_are_two_and_each_has_its_own_resolution():
    told = (
        Told()
        .user("Make the build of the shop pass.")
        .runs(BUILD, MISSING, 1)
        .runs("npm ci")
        .runs(BUILD, TYPES, 1)
        .edits("src/total.ts")
        .runs(BUILD, "built in 2 s")
        .says("The build passes.")
    )
    memory, episode = only_episode(told)
    assert [(each.said, each.resolved, each.is_resolved) for each in episode.troubles] == [
        ("Error: Cannot find module 'left-pad'", ("ran `npm ci`",), True),
        ("TypeError: total is not a function", ("edited src/total.ts",), True),
    ]
    assert "ran `npm ci`" in memory.text
    assert "edited src/total.ts" in memory.text


def test_an_error_that_comes_back_is_one_and_is_resolved_by_what_came_last():
    told = (
        Told()
        .user("Make the build of the shop pass.")
        .runs(BUILD, MISSING, 1)
        .runs("npm ci")
        .runs(BUILD, TYPES, 1)
        .edits("src/total.ts")
        .runs(BUILD, MISSING, 1)
        .edits("package.json")
        .runs(BUILD, "built in 2 s")
        .says("The build passes.")
    )
    _, episode = only_episode(told)
    first, second = episode.troubles
    assert first.resolved[-1] == "edited package.json"
    assert second.resolved == ("edited src/total.ts",)


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("How do I run the tests?", "Run `make test`."),
        ("how do i run the tests", "With make test."),
        ("What did we do last week?", "We mended the parser. " * 30),
        ("where were we with the importer?", "The importer reads CSV and lacks XLSX. " * 20),
        ("Which port does staging use?", "8443."),
    ],
)
def test_a_question_that_a_line_or_the_past_answers_leaves_no_episode(asked, reply):
    assert Told().user(asked).says(reply).memories(MemoryKind.EPISODE) == []


def test_a_question_that_took_work_or_got_a_long_answer_is_an_episode():
    worked = Told().user("Why do the tests of the parser fail?").runs("pytest -q", PASSED)
    only_episode(worked.says("They pass."))
    long = "A queue keeps its jobs on disk, and a worker takes the oldest one first. " * 8
    only_episode(Told().user("How does a queue of jobs work?").says(long))
