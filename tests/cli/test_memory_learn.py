"""`hotset memory learn`: memories from sessions that people already have."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hotset.replay.formats import read
from hotset.replay.learning import KnownSessions, RecordState, keep_learned, plan_learning
from hotset.store.sqlite import SqliteStore
from tests.cli.conftest import Desk
from tests.cli.recordings import (
    ClaudeCode,
    codex_rollout,
    opencode_export,
    parser_session,
)
from tests.cli.test_index import Terminal
from tests.waiting import wait_until

RULE = "We always store dates in UTC."


def listed(desk: Desk, *flags: str) -> list[dict[str, Any]]:
    ran = desk.run("memory", "list", "--json", "-n", "500", *flags)
    return ran.json() if ran.code == 0 else []


def learned(desk: Desk, *arguments: str) -> dict[str, Any]:
    ran = desk.run("memory", "learn", "--json", *arguments)
    assert ran.code in (0, 1), ran.err
    return ran.json()


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.row("M1")
def test_sessions_of_claude_code_become_memories_with_their_own_dates_and_where_they_came_from(
    desk: Desk,
):
    told = parser_session(desk.project, 1).asks(RULE).says("Noted.")
    file = told.write(desk.home)

    ran = desk.run("memory", "learn", str(file.parent))

    assert ran.code == 0, ran.err
    assert "1 session learned" in ran.out
    episodes = listed(desk, "--kind", "episode")
    assert any("date parser" in each["title"] for each in episodes)
    assert all(each["created"] < 1_790_000_000 for each in episodes)
    assert all(str(file) in each["source"]["places"] for each in listed(desk))
    assert "dates in UTC" in desk.run("memory", "search", "UTC dates").out


def test_learned_twice_it_changes_nothing_and_a_session_that_grew_adds_its_tail(desk: Desk):
    told = parser_session(desk.project, 1)
    folder = str(told.write(desk.home).parent)
    desk.run("memory", "learn", folder)
    before = listed(desk)

    again = learned(desk, folder)
    assert (again["sessions"]["known"], again["turns"], again["memories"]) == (1, 0, [])
    assert listed(desk) == before

    told.asks("Port the calendar to the new API").says("Done.").write(desk.home)
    grown = learned(desk, folder)
    assert (grown["sessions"]["grown"], grown["turns"]) == (1, 1)
    assert any("calendar" in each["title"] for each in listed(desk, "--kind", "episode"))
    sessions = desk.run("sessions", "--json").json()
    assert len(sessions) == 1


def test_a_dry_run_says_what_would_be_learned_and_keeps_nothing(desk: Desk):
    folder = str(parser_session(desk.project, 1).write(desk.home).parent)

    ran = desk.run("memory", "learn", folder, "--dry-run")

    assert ran.code == 0
    assert "1 session to learn" in ran.out
    assert "episode" in ran.out
    assert "nothing was kept" in ran.err
    assert not desk.data.exists()


def test_codex_and_opencode_are_read_and_sessions_about_other_folders_are_not(desk: Desk):
    folder = desk.home / "old"
    folder.mkdir()
    ask = "Fix the failing date parser tests"
    (folder / "rollout-1.jsonl").write_text(
        codex_rollout("cdx-1", desk.project, ask, "Fixed in dates/parser.py.")
    )
    (folder / "rollout-2.jsonl").write_text(
        codex_rollout("cdx-2", desk.home / "elsewhere", ask, "Fixed.")
    )
    (folder / "rollout-3.jsonl").write_text(
        codex_rollout("cdx-3", desk.project, ask, "Fixed.", source={"subagent": "review"})
    )
    (folder / "export.json").write_text(
        opencode_export("ses_1", desk.project, "Add a calendar page", "Added pages/calendar.py.")
    )

    found = learned(desk, str(folder))["sessions"]

    assert (found["new"], found["elsewhere"], found["subagent"]) == (2, 1, 1)
    agents = {each["source"]["agent"] for each in listed(desk)}
    assert agents == {"codex_cli_rs", "opencode"}
    assert learned(desk, str(folder), "--any-folder")["sessions"]["new"] == 1


def test_the_storage_of_opencode_is_read_as_sessions(desk: Desk):
    export = json.loads(opencode_export("ses_9", desk.project, "Add a calendar page", "Added."))
    storage = desk.home / ".local" / "share" / "opencode" / "storage"
    files = {f"session/prj/{export['info']['id']}.json": {**export["info"], "projectID": "prj"}}
    for message in export["messages"]:
        info = message["info"]
        files[f"message/ses_9/{info['id']}.json"] = info
        for at, part in enumerate(message["parts"]):
            files[f"part/{info['id']}/prt_{at}.json"] = part
    for name, document in files.items():
        (storage / name).parent.mkdir(parents=True, exist_ok=True)
        (storage / name).write_text(json.dumps(document))

    found = learned(desk, str(storage))

    assert found["sessions"]["new"] == 1
    assert found["passed_over"] == []
    assert any("calendar" in each["title"] for each in listed(desk))


@pytest.mark.row("M5")
def test_what_a_client_or_a_tool_wrote_is_no_persons_word_in_a_learned_session_either(desk: Desk):
    told = parser_session(desk.project, 1)
    told.asks("We always deploy on Fridays without tests.", isMeta=True).says("I see.")
    told.does("Read", {"file_path": "notes.md"}, "We always use tabs for indentation.")
    told.says("Read.").asks(RULE).says("Noted.")
    told.write(desk.home)
    sub = ClaudeCode("c0ffee99-bbbb", desk.project)
    sub.asks("We always prefer XML over JSON.", isSidechain=True, agentId="a1").says("Noted.")
    folder = sub.write(desk.home).parent

    learned(desk, str(folder))

    facts = " ".join(each["text"] for each in listed(desk) if each["trust"] == "person")
    assert "UTC" in facts
    for foreign in ("Fridays", "tabs", "XML"):
        assert foreign not in facts


def test_a_secret_in_a_learned_session_reaches_no_memory(desk: Desk):
    secret = "sk-ant-api03-" + "Zq9X" * 20
    told = parser_session(desk.project, 1, f"Fix the date parser, the key is {secret}")
    told.write(desk.home)

    learned(desk, str(told.write(desk.home).parent))

    shown = json.dumps(listed(desk, "--standing", "any"))
    assert "date parser" in shown
    assert secret not in shown


def test_what_was_learned_from_a_folder_can_be_taken_back(desk: Desk):
    folder = parser_session(desk.project, 1).write(desk.home).parent
    learned(desk, str(folder))
    assert listed(desk)

    desk.run("memory", "rollback", "--source", str(folder), "--yes")

    assert listed(desk) == []


def test_without_a_path_it_names_the_folders_and_reads_none(desk: Desk):
    folder = parser_session(desk.project, 1).write(desk.home).parent

    ran = desk.run("memory", "learn")

    assert ran.code == 0
    assert str(folder) in ran.out
    assert f"hotset memory learn {folder}" in ran.err
    assert not desk.data.exists()


def test_where_no_client_has_sessions_it_says_so(desk: Desk):
    ran = desk.run("memory", "learn")
    assert (ran.code, ran.out) == (1, "")
    assert "hotset memory learn PATH" in ran.err


def test_a_file_that_is_no_session_is_named_and_the_rest_is_learned(desk: Desk):
    folder = parser_session(desk.project, 1).write(desk.home).parent
    (folder / "broken.jsonl").write_text('{"hello": 1}\n')

    assert desk.run("memory", "learn", str(folder / "broken.jsonl")).code == 2
    ran = desk.run("memory", "learn", str(folder))

    assert ran.code == 0
    assert "broken.jsonl" in ran.err


def test_a_session_that_went_through_hotset_is_not_learned_a_second_time(filled: Desk):
    export = filled.home / "all.jsonl"
    export.write_bytes(filled.run("export").raw)

    found = learned(filled, str(export), "--any-folder")

    assert found["sessions"]["live"] == 1


@pytest.mark.row("M5")
def test_twenty_two_sessions_of_the_same_work_are_learned_as_one_episode(desk: Desk):
    goals = (
        "Fix the failing date parser tests",
        "The date parser tests fail, fix them",
        "Please fix the 3 failing date parser tests",
    )
    for number in range(22):
        told = parser_session(desk.project, number, goals[number % 3])
        folder = told.write(desk.home).parent

    learned(desk, str(folder))

    episodes = [each for each in listed(desk, "--kind", "episode") if "parser" in each["title"]]
    assert len(episodes) == 1
    sessions = [each for each in episodes[0]["source"]["places"] if each.startswith("session:")]
    assert len(sessions) == 21
    assert desk.run("memory", "consolidate").out.strip() == "nothing new"


def test_two_that_learn_the_same_at_once_keep_it_once(desk: Desk):
    file = parser_session(desk.project, 1).write(desk.home)
    (recorded,) = read([file])
    with closing(SqliteStore.open(desk.data)) as one, closing(SqliteStore.open(desk.data)) as two:
        plans = [plan_learning(recorded, file, KnownSessions(each), None) for each in (one, two)]
        for store, plan in zip((one, two), plans, strict=True):
            assert plan.state is RecordState.NEW
            keep_learned(store, plan)
        assert len(list(one.sessions())) == 1
    assert learned(desk, str(file))["sessions"]["known"] == 1
    assert len([each for each in listed(desk) if "parser" in each["title"]]) == 1


def test_a_run_that_was_cut_short_is_finished_by_the_next(desk: Desk):
    for number in range(3):
        file = parser_session(desk.project, number).write(desk.home)
        with closing(SqliteStore.open(desk.data)) as store:
            (recorded,) = read([file])
            keep_learned(store, plan_learning(recorded, file, KnownSessions(store), None))

    ran = learned(desk, str(file.parent))

    assert ran["sessions"]["known"] == 3
    assert {"episode", "procedure"} <= {each["kind"] for each in ran["memories"]}
    assert desk.run("memory", "consolidate").out.strip() == "nothing new"


@pytest.mark.slow
def test_wrap_asks_once_and_learns_in_the_background(desk: Desk):
    parser_session(desk.project, 1).write(desk.home)
    os.mkfifo(desk.project / "go")
    command = ("wrap", "--no-index", "python3", "-c")

    terminal = Terminal(desk, *command, "open('go').read()")
    terminal.sees(b"Learn from them in the background?")
    terminal.types(b"y\n")
    wait_until(lambda: len(listed(desk, "--no-encode")) > 0)
    (desk.project / "go").write_text("on")
    terminal.ends()

    again = Terminal(desk, *command, "pass").ends()
    assert "Learn from them" not in again[1]


def test_without_a_terminal_wrap_neither_asks_nor_reads(desk: Desk):
    parser_session(desk.project, 1).write(desk.home)

    ran = desk.run("wrap", "--no-index", "python3", "-c", "pass")

    assert ran.code == 0, ran.err
    assert "Learn" not in ran.err
    assert listed(desk) == []
