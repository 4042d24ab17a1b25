"""What a stretch of work was, and whether it is finished."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, strategies as st

from hotset.dialects import DIALECTS
from hotset.nouns.message import DialectName
from hotset.nouns.page import Chain, Kind, Role
from hotset.nouns.window import Line, Piece
from hotset.testing.recording import requests, session
from hotset.window.work.worklog import (
    counted_line,
    finished_work,
    is_finished,
    key_sentences,
    read_work,
)
from tests.window.talk import Talk, piece


class Work(Talk):
    """A conversation with shell commands, edits and plans."""

    def run(self, command: str, result: str) -> Work:
        return self.call("bash", {"command": command}, result)

    def edit(self, path: str, old: str, new: str) -> Work:
        given = {"file_path": path, "old_string": old, "new_string": new}
        return self.call("edit", given, "The file was updated.")

    def plan(self, **states: str) -> Work:
        todos = [{"content": item, "status": state} for item, state in states.items()]
        return self.call("TodoWrite", {"todos": todos}, "ok", Kind.PLAN)

    def call(self, tool: str, arguments: object, result: str, kind: Kind = Kind.TOOL_CALL) -> Work:
        id = f"call{len(self.lines)}"
        self.add(Role.ASSISTANT, piece(kind, json.dumps(arguments), tool, id))
        self.add(Role.TOOL, piece(Kind.TOOL_RESULT, result, tool, id))
        return self


def mended() -> Work:
    work = Work()
    work.user("The date parser drops the time zone. Please fix it.")
    work.run("pytest -q tests/test_dates.py", "E   AssertionError: 5 != 10\n1 failed in 0.2s")
    work.edit("src/dates.py", "return naive(text)", "return aware(text)")
    work.run("pytest -q tests/test_dates.py", "4 passed in 0.2s")
    work.say("We decided to keep the old name. `naive` is gone because it lost the zone.")
    return work


def test_a_stretch_says_what_was_wanted_changed_run_decided_and_what_resolved_an_error():
    work = read_work(mended().lines)

    assert work.wanted == ("The date parser drops the time zone. Please fix it.",)
    assert [(file.path, file.old, file.new) for file in work.files] == [
        ("src/dates.py", "return naive(text)", "return aware(text)")
    ]
    (run,) = work.done
    assert (run.command, run.failed) == ("pytest -q tests/test_dates.py", (True, False))
    assert run.outcomes == ("1 failed in 0.2s", "4 passed in 0.2s")
    (error,) = work.errors
    assert (error.kind, error.is_resolved) == ("AssertionError", True)
    assert error.resolved == ("edited src/dates.py",)
    assert work.decisions == ("We decided to keep the old name.",)
    assert work.open == ()


def test_what_the_plan_leaves_and_a_check_that_fails_are_open():
    work = Work()
    work.user("Do both.").plan(**{"Parse dates": "completed", "Write the docs": "pending"})
    work.run("pytest -q", "E   ValueError: no zone\n1 failed in 0.2s")

    found = read_work(work.lines)

    assert found.ticked == ("Parse dates",)
    assert found.open == ("Write the docs", "`pytest -q` fails with ValueError")


def test_sentences_that_find_something_are_worth_more_than_plans():
    talk = Talk().say("Let me look at it now and read the files. The cache in `load_all` is wrong.")

    plan, finding = key_sentences(talk.lines)

    assert finding.worth > plan.worth


@pytest.mark.row("V5")
@pytest.mark.parametrize(
    ("prompt", "finished"),
    [
        ("Great, thanks!", True),
        ("Done, next: upgrade the docker image to the current base.", True),
        ("please commit and push", True),
        ("Add a dark theme to the settings page of the web client.", True),
        ("It still does not work, the zone is wrong.", False),
        ("[Request interrupted by user]", False),
        ("and the tests?", False),
        ("go on", False),
    ],
)
def test_the_users_next_words_say_whether_the_work_is_finished(prompt, finished):
    assert is_finished(mended().lines, Talk().user(prompt).lines) is finished


def test_work_whose_reply_asks_the_user_goes_on_with_the_answer():
    work = mended()
    work.say("Fixed. Should I also rename the module?")

    assert not is_finished(work.lines, Talk().user("The second one, in the old layout").lines)


def test_work_is_not_finished_while_its_agent_works_on_the_same_files():
    later = Work()
    later.edit("src/dates.py", "a", "b")

    assert not is_finished(mended().lines, later.lines)
    assert not is_finished(mended().lines, ())


def test_green_tests_and_work_elsewhere_finish_a_piece_without_the_user():
    later = Work()
    later.edit("docs/index.md", "a", "b")

    assert is_finished(mended().lines, later.lines)


def test_a_ticked_item_of_the_plan_ends_a_piece_of_work():
    work = Work()
    work.user("Do both.").plan(one="in_progress", two="pending")
    work.edit("src/one.py", "a", "b").plan(one="completed", two="in_progress")
    first = len(work.lines)
    work.edit("src/two.py", "a", "b").plan(one="completed", two="completed")
    end = len(work.lines)
    work.say("Both are done.").user("Thanks, now the release notes of this version, please.")

    assert finished_work(work.lines)[:2] == [(0, first), (first, end)]


@pytest.mark.parametrize("dialect", DialectName)
def test_the_recorded_session_reads_the_same_in_every_dialect(dialect):
    *_, body = requests(session(), dialect)
    lines = _lines(body, dialect)

    work = read_work(lines)

    assert [file.path for file in work.files][:3] == [
        "tests/test_worker.py",
        "tests/test_backoff.py",
        "ferrypost/store.py",
    ]
    assert len(work.wanted) == 4
    assert read_work(lines) == work


def test_a_hundred_messages_are_read_in_a_few_milliseconds():
    *_, body = requests(session(), DialectName.ANTHROPIC)
    lines = _lines(body, DialectName.ANTHROPIC)[:100]
    read_work(lines)

    began = time.process_time()
    read_work(lines)

    assert time.process_time() - began < 0.05  # 3 ms on an idle machine


@given(
    st.lists(
        st.tuples(st.sampled_from(Role), st.sampled_from(Kind), st.binary(max_size=80)), max_size=12
    )
)
def test_anything_can_be_read(drawn):
    lines = [
        Line(Chain(f"m{at}"), role, (Piece(kind, content, 1, "bash", f"c{at % 3}"),))
        for at, (role, kind, content) in enumerate(drawn)
    ]

    read_work(lines)
    for first, end in finished_work(lines):
        assert 0 <= first < end < len(lines)


def _lines(body: bytes, dialect: DialectName) -> list[Line]:
    messages = DIALECTS[dialect].parse(body).messages
    return [
        Line(
            Chain(f"m{at}"),
            message.role,
            tuple(Piece(p.kind, p.content, 1, p.tool, p.call) for p in message.parts),
        )
        for at, message in enumerate(messages)
    ]


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        ("> @acme/tui@0.7.29 test\n> node --test\n\nall good", ""),
        ("> npm run test\nrunning 12 tests\ntest result: ok. 12 passed; 0 failed", "test result"),
        ("collected 12 items\n\n=== 12 passed in 0.1s ===", "12 passed in 0.1s"),
        ("Already up to date.\nRunning 3 tests", ""),
        (
            " 1300 pass\n 2 fail\nRan 1302 tests across 9 files.",
            "1300 pass, 2 fail, Ran 1302 tests",
        ),
        (" 1300 pass\n 0 fail\nRan 1300 tests across 9 files.", "1300 pass, Ran 1300 tests"),
        ("ok a/x 0.1s [no tests to run]\n" * 15, "no tests to run (15 x)"),
        ("ok a/x 0.1s [no tests to run]\n" * 15 + "ok a/y 0.3s", "ok a/y 0.3s"),
    ],
)
def test_a_banner_is_no_outcome_and_what_did_not_run_is_told_once(output, outcome):
    found = counted_line(output)
    assert found.startswith(outcome)
    assert bool(found) == bool(outcome)


def test_talk_is_finished_when_the_user_says_so_and_what_was_not_answered_never():
    asked = Work().user("Which of the two names is better, index or manifest?")
    talk = asked.say("manifest, because there may be several kinds of it.").lines
    after = [
        Work().user(text).lines for text in ("next: the release notes", "is that the usual name?")
    ]

    assert [is_finished(talk, each) for each in after] == [True, False]
    assert not is_finished(Work().user("ls").lines, after[0])


def test_work_that_the_user_had_committed_is_finished_with_their_next_words():
    done = Work().user("commit this").run("git commit -am x", "[main 1a2b3c] x").say("Committed.")
    failed = Work().user("commit this").run("git commit -am x", "error: hook failed\nExit code 1")
    following = Work().user("clear").lines

    assert is_finished(done.lines, following)
    assert not is_finished(failed.say("The hook failed; the tests are red.").lines, following)
